//! Four machines in a row: network namespaces, each joined to the next by a wire.
//!
//! ```text
//!   car ───────── truck ───────── gateway ───────── server
//!      10.78.1.0       10.78.2.0          10.78.3.0
//! ```

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Error;

/// A machine of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowMachine {
    Car,
    Truck,
    Gateway,
    Server,
}

impl RowMachine {
    pub(super) const ALL: [RowMachine; 4] =
        [RowMachine::Car, RowMachine::Truck, RowMachine::Gateway, RowMachine::Server];

    pub(super) fn name(self) -> &'static str {
        match self {
            RowMachine::Car => "car",
            RowMachine::Truck => "truck",
            RowMachine::Gateway => "gateway",
            RowMachine::Server => "server",
        }
    }

    /// The wires at its left and at its right, counted from 1.
    fn wires(self) -> Vec<(RowSide, u8)> {
        match self {
            RowMachine::Car => vec![(RowSide::Right, 1)],
            RowMachine::Truck => vec![(RowSide::Left, 1), (RowSide::Right, 2)],
            RowMachine::Gateway => vec![(RowSide::Left, 2), (RowSide::Right, 3)],
            RowMachine::Server => vec![(RowSide::Left, 3)],
        }
    }

    /// The address of its card on the wire at that side.
    pub(super) fn card(self, side: RowSide) -> String {
        let wire = self.wires().into_iter().find(|(of, _)| *of == side);
        let host = if side == RowSide::Right { 1 } else { 2 };
        wire.map_or_else(String::new, |(_, wire)| format!("02:00:00:00:{wire:02x}:{host:02x}"))
    }

    /// The machine next to it at that side.
    pub(super) fn neighbour(self, side: RowSide) -> Option<RowMachine> {
        match (self, side) {
            (RowMachine::Car, RowSide::Right) | (RowMachine::Gateway, RowSide::Left) => {
                Some(RowMachine::Truck)
            }
            (RowMachine::Truck, RowSide::Right) | (RowMachine::Server, RowSide::Left) => {
                Some(RowMachine::Gateway)
            }
            (RowMachine::Truck, RowSide::Left) => Some(RowMachine::Car),
            (RowMachine::Gateway, RowSide::Right) => Some(RowMachine::Server),
            (RowMachine::Car, RowSide::Left) | (RowMachine::Server, RowSide::Right) => None,
        }
    }

    /// Its address on the wire at that side. There is none at the ends of the row.
    pub(super) fn address(self, side: RowSide) -> String {
        let wire = self.wires().into_iter().find(|(of, _)| *of == side);
        let host = if side == RowSide::Right { 1 } else { 2 };
        wire.map_or_else(String::new, |(_, wire)| format!("10.78.{wire}.{host}"))
    }
}

/// The carrier of units between two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowWire {
    Udp,
    /// Raw Ethernet, without IP.
    Ethernet,
}

impl RowWire {
    pub(super) const ALL: [RowWire; 2] = [RowWire::Udp, RowWire::Ethernet];

    pub(super) fn name(self) -> &'static str {
        match self {
            RowWire::Udp => "UDP",
            RowWire::Ethernet => "Ethernet",
        }
    }
}

/// A side of a machine, which is also what its interface is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowSide {
    Left,
    Right,
}

impl RowSide {
    pub(super) fn opposite(self) -> RowSide {
        match self {
            RowSide::Left => RowSide::Right,
            RowSide::Right => RowSide::Left,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            RowSide::Left => "left",
            RowSide::Right => "right",
        }
    }
}

/// The namespaces of one run. They go with it, however it ends.
#[derive(Debug)]
pub(super) struct RowNamespaces {
    id: u32,
    reaper: Child,
}

/// Waits for the end of its input, which is the end of the run, also when that is killed; then ends
/// what still runs in the namespaces, and removes them.
const REAPER: &str = "trap '' INT TERM HUP; read -r _; for name; do \
                      ip netns pids $name | xargs -r kill -9; ip netns delete $name; done";

impl RowNamespaces {
    /// Makes the namespaces and the wires.
    ///
    /// # Errors
    /// Where this user may not, or `ip` is missing.
    pub(super) fn make() -> Result<RowNamespaces, Error> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Missing("root: it makes network namespaces".to_owned()));
        }
        if Command::new("ip").arg("-V").output().is_err() {
            return Err(Error::Missing("`ip` of the package iproute2".to_owned()));
        }
        let id = std::process::id();
        let mut reaper = Command::new("sh");
        reaper.args(["-c", REAPER, "reaper"]).args(RowMachine::ALL.map(|one| full_name(id, one)));
        // Of a group of its own, so that Ctrl-C does not end it together with the run.
        let reaper = reaper.stdin(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn();
        let net = RowNamespaces { id, reaper: reaper.map_err(Error::io("starting sh"))? };
        for machine in RowMachine::ALL {
            ip(&["netns", "add", &net.name(machine)])?;
            net.ip(machine, "link set lo up")?;
        }
        for pair in RowMachine::ALL.windows(2) {
            let [left, right] = pair else { continue };
            let peer = net.name(*right);
            net.ip(*left, &format!("link add right type veth peer left netns {peer}"))?;
        }
        for machine in RowMachine::ALL {
            for (side, _) in machine.wires() {
                let (own, name) = (machine.address(side), side.name());
                net.ip(machine, &format!("link set {name} address {}", machine.card(side)))?;
                net.ip(machine, &format!("address add {own}/30 dev {name}"))?;
                net.ip(machine, &format!("link set {name} up"))?;
            }
        }
        net.route()?;
        Ok(net)
    }

    /// Lets the kernel forward between the ends of the row, as the floor of what relays cost.
    fn route(&self) -> Result<(), Error> {
        // No default route: while an end's interface is away, nothing goes another way.
        self.ip(RowMachine::Car, "route add 10.78.0.0/16 via 10.78.1.2")?;
        self.ip(RowMachine::Truck, "route add 10.78.3.0/30 via 10.78.2.2")?;
        self.ip(RowMachine::Gateway, "route add 10.78.1.0/30 via 10.78.2.1")?;
        self.ip(RowMachine::Server, "route add 10.78.0.0/16 via 10.78.3.1")?;
        for machine in [RowMachine::Truck, RowMachine::Gateway] {
            let mut shell = self.within(machine, Path::new("sh"));
            run(shell.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]))?;
        }
        Ok(())
    }

    /// Sets the bytes that all wires carry at once.
    pub(super) fn set_mtu(&self, mtu: u16) -> Result<(), Error> {
        self.on_wires(|name| format!("ip link set {name} mtu {mtu}"))
    }

    /// Whether wires carry what is not cut into packets yet.
    pub(super) fn set_offload(&self, on: bool) -> Result<(), Error> {
        let word = if on { "on" } else { "off" };
        self.on_wires(|name| offload(name, word))
    }

    fn on_wires(&self, command: impl Fn(&str) -> String) -> Result<(), Error> {
        for machine in RowMachine::ALL {
            for (side, _) in machine.wires() {
                let mut shell = self.within(machine, Path::new("sh"));
                run(shell.args(["-c", &command(side.name())]))?;
            }
        }
        Ok(())
    }

    pub(super) fn name(&self, machine: RowMachine) -> String {
        full_name(self.id, machine)
    }

    /// A command on a machine. `ip netns exec` becomes the program, so that to end one is to end
    /// the other.
    pub(super) fn within(&self, machine: RowMachine, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(machine)]).arg(program);
        command
    }

    /// Does something on a machine that leaves a socket, which stays there.
    pub(super) fn on<T: Send>(
        &self,
        machine: RowMachine,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> Result<T, Error> {
        let space = File::open(Path::new("/run/netns").join(self.name(machine)))
            .map_err(Error::io("opening a namespace"))?;
        // Only this thread moves, and it ends here.
        let moved = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")))
        });
        moved.map_err(Error::io("working in a namespace"))
    }

    fn ip(&self, machine: RowMachine, words: &str) -> Result<(), Error> {
        let name = self.name(machine);
        ip(&["-n", &name].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
    }
}

impl Drop for RowNamespaces {
    fn drop(&mut self) {
        drop(self.reaper.stdin.take());
        // Where it did not start or was killed, namespaces stay, which nobody can help here.
        let _ = self.reaper.wait();
    }
}

fn full_name(id: u32, machine: RowMachine) -> String {
    format!("sealane-{id}-{}", machine.name())
}

/// If a kernel cannot switch a feature, it does not have it either. A refusal is therefore no
/// failure.
fn offload(name: &str, word: &str) -> String {
    let kinds = ["tso", "gso", "gro", "tx-udp-segmentation"];
    let each = kinds.map(|kind| format!("ethtool -K {name} {kind} {word} 2>/dev/null"));
    format!("{}; true", each.join("; "))
}

fn ip(words: &[&str]) -> Result<(), Error> {
    run(Command::new("ip").args(words))
}

/// Runs a command that has to succeed.
pub(super) fn run(command: &mut Command) -> Result<(), Error> {
    output(command).map(|_| ())
}

/// Runs a command that has to succeed, and gives its output as text.
pub(super) fn output(command: &mut Command) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&bytes(command)?).into_owned())
}

/// The same, as it is.
pub(super) fn bytes(command: &mut Command) -> Result<Vec<u8>, Error> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|cause| Error::Said { what: shown.clone(), said: cause.to_string() })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let said = format!("{} {out} {err}", output.status);
    Err(Error::Said { what: shown, said: said.trim().to_owned() })
}
