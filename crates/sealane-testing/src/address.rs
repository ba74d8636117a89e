//! Addresses that no other test has.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};

/// A host of the loopback network that no other process has; a test counts its hosts itself.
pub fn numbered_host(number: u8) -> String {
    let process = std::process::id();
    format!("127.{}.{}.{number}", 1 + process % 250, 1 + process / 250 % 250)
}

/// A host of the loopback network that no other test of this process or another one has. Tests of
/// one process count their hosts by this or by themselves.
pub fn loopback_host() -> String {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number > 0 && number < 255, "no more hosts for the tests of one process");
    numbered_host(number)
}

/// An address of this machine at which nothing listens.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port")
}
