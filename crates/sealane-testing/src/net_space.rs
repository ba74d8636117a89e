//! Network namespaces: machines of a test, each with a network of its own.
//!
//! Addresses stand within a namespace, and names hold the number of the process and a count. So
//! laboratories of one process, and of several, stand beside each other.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{run, succeed};

/// A network namespace; it goes with its test.
pub struct NetSpace {
    name: String,
}

/// Fails where no namespaces can be made.
pub fn require_namespaces() {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root, "this test makes network namespaces: it has to run as root");
    let is_there = Command::new("ip").arg("-V").output().is_ok();
    assert!(is_there, "`ip` is missing; run: cargo xtask needs");
}

impl NetSpace {
    /// A namespace with its loopback interface and nothing else; the label is part of its name.
    pub fn new(label: &str) -> NetSpace {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        require_namespaces();
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let space = NetSpace { name: format!("sealane-{process}-{number}-{label}") };
        run("ip", &["netns", "add", &space.name]);
        space.ip("link set lo up");
        space
    }

    /// Its name, as `ip netns` has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` with these words here.
    pub fn ip(&self, words: &str) -> String {
        succeed(Command::new("ip").args(["-n", &self.name]).args(words.split(' ')))
    }

    /// A command of a program here. `ip netns exec` becomes the program, so that to end one is to
    /// end the other.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Moves the calling thread here, and those that it starts.
    pub fn enter(&self) {
        enter(&self.name);
    }

    /// Runs something here, on a thread of its own that ends with it.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let name = self.name.clone();
        std::thread::spawn(move || {
            enter(&name);
            work()
        })
    }

    /// The result of something that runs here.
    pub fn on<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(work).join().expect("it ends well")
    }
}

impl Drop for NetSpace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

fn enter(name: &str) {
    let space = File::open(Path::new("/run/netns").join(name)).expect("the namespace is there");
    move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
}

/// Lays a virtual wire between two namespaces, of the same name and with these addresses at its
/// ends.
pub fn lay_wire(wire: &str, ends: [(&NetSpace, &[String]); 2]) {
    let [(one, _), (other, _)] = ends;
    one.ip(&format!("link add {wire} type veth peer {wire} netns {}", other.name));
    for (space, addresses) in ends {
        for address in addresses {
            // An IPv6 address would otherwise wait for the detection of duplicates.
            let nodad = if address.contains(':') { " nodad" } else { "" };
            space.ip(&format!("address add {address} dev {wire}{nodad}"));
        }
        space.ip(&format!("link set {wire} up"));
    }
}
