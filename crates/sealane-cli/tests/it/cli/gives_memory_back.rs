//! A node has little memory again when a crowd has gone.

use std::io::{Read, Write};
use std::net::TcpStream;

use sealane_testing::{TestProcess, process_memory_kib, until_told};

use crate::cli::{json, sealane, text};

/// Connections that come and go at once.
const CROWD: usize = 800;

/// So many connections, each of which has been answered and stays.
fn crowd_at(address: &str) -> Vec<TcpStream> {
    let ask = |_| {
        let mut one = TcpStream::connect(address).unwrap();
        one.write_all(b"GET /v1/streams HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        one
    };
    let mut all: Vec<_> = (0..CROWD).map(ask).collect();
    all.iter_mut().for_each(|one| assert!(one.read(&mut [0; 4096]).unwrap() > 0));
    all
}

#[test]
fn a_crowd_that_has_gone_leaves_no_memory_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = sealane(folder.path());
    let places = (CROWD + 10).to_string();
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--connections-per-address", &places]);
    let (process, line) = TestProcess::started(&mut up);
    let address = text(&json(&line), "address");
    let resident = || process_memory_kib(process.id(), "VmRSS:");
    let quiet = resident();
    let all = crowd_at(&address);
    let crowded = resident();
    drop(all);
    // The allocator alone keeps nearly all of it.
    let left = until_told(resident, |left| *left < quiet + (crowded - quiet) / 2);
    println!("{quiet} KiB, beside a crowd of {CROWD} {crowded}, and {left} without it");
}
