//! Two machines and a hub between them: network namespaces that only see the hub, joined to it by
//! a wire each.

use std::path::Path;
use std::process::Command;

use sealane_node::access::TokenSecret;

/// Where the hub listens.
pub(crate) const PORT: u16 = 9087;

/// The token that the members show the hub, which others can reach.
pub(crate) fn token() -> TokenSecret {
    TokenSecret::new([7; 32])
}

/// The namespaces of one test; they go with it.
pub(crate) struct Net {
    names: [String; 3],
}

/// Fails where no namespaces can be made.
pub(crate) fn require() {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root, "this test makes network namespaces: it has to run as root");
    let is_there = Command::new("ip").arg("-V").output().is_ok();
    assert!(is_there, "`ip` is missing; run: cargo xtask needs");
}

impl Net {
    /// Two wires: 10.77.1.1 to the hub at 10.77.1.2, and 10.77.2.1 to the hub at 10.77.2.2.
    pub(crate) fn make() -> Net {
        let id = std::process::id();
        let net = Net { names: ["a", "b", "hub"].map(|name| format!("sealane-{id}-{name}")) };
        for name in &net.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        for (side, number) in [(0, "1"), (1, "2")] {
            let [name, hub] = [&net.names[side], &net.names[2]];
            let wire = format!("wire{number}");
            ip(&["-n", name, "link", "add", &wire, "type", "veth", "peer", &wire, "netns", hub]);
            for (end, host) in [(name, "1"), (hub, "2")] {
                let address = format!("10.77.{number}.{host}/30");
                ip(&["-n", end, "address", "add", &address, "dev", &wire]);
                ip(&["-n", end, "link", "set", &wire, "up"]);
            }
        }
        net
    }

    pub(crate) fn side(&self, side: usize) -> &str {
        &self.names[side]
    }

    pub(crate) fn hub(&self) -> &str {
        &self.names[2]
    }

    /// A command within the namespace of side 0 or 1, with the hub's address as that side sees it.
    pub(crate) fn on_side(&self, side: usize, program: &Path) -> Command {
        let mut command = self.within(&self.names[side], program);
        command.env("SEALANE_SERVER", Self::hub_address(side));
        command.env("SEALANE_TOKEN", token().reveal());
        command
    }

    /// The hub's address, as side 0 or 1 sees it.
    pub(crate) fn hub_address(side: usize) -> String {
        format!("10.77.{}.2:{PORT}", side + 1)
    }

    /// A command within the hub's namespace.
    pub(crate) fn on_hub(&self, program: &Path) -> Command {
        self.within(self.hub(), program)
    }

    /// `ip netns exec` becomes the program, so that to end one is to end the other.
    fn within(&self, name: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).arg(program);
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {said}", arguments.join(" "));
}
