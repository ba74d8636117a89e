//! Four machines in a row: network namespaces, each joined to the next by a wire.
//!
//! ```text
//!   car ───────── truck ───────── gateway ───────── server
//!      10.78.1.0       10.78.2.0          10.78.3.0
//! ```

use std::path::Path;
use std::process::Command;

use sealane_sim::lab::{self, NetworkLab};

use crate::failure::{BenchFailure, Result};

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

    /// Its neighbours in the row, each with the number of the wire to it.
    fn wires(self) -> Vec<(RowSide, u8, RowMachine)> {
        let own = self as usize;
        let at = |side, wire: usize, other: usize| {
            Some((side, wire as u8, RowMachine::ALL.get(other).copied()?))
        };
        let left = own.checked_sub(1).and_then(|other| at(RowSide::Left, own, other));
        [left, at(RowSide::Right, own + 1, own + 1)].into_iter().flatten().collect()
    }

    /// The wire at a side, and the number of its end there.
    fn end(self, side: RowSide) -> Option<(u8, u8)> {
        let (_, wire, _) = self.wires().into_iter().find(|(of, ..)| *of == side)?;
        Some((wire, if side == RowSide::Right { 1 } else { 2 }))
    }

    /// The address of its card on the wire at that side.
    pub(super) fn card(self, side: RowSide) -> String {
        let shown = |(wire, host)| format!("02:00:00:00:{wire:02x}:{host:02x}");
        self.end(side).map(shown).unwrap_or_default()
    }

    /// The machine next to it at that side.
    pub(super) fn neighbour(self, side: RowSide) -> Option<RowMachine> {
        self.wires().into_iter().find(|(of, ..)| *of == side).map(|(_, _, other)| other)
    }

    /// Its address on the wire at that side. There is none at the ends of the row.
    pub(super) fn address(self, side: RowSide) -> String {
        let shown = |(wire, host)| format!("10.78.{wire}.{host}");
        self.end(side).map(shown).unwrap_or_default()
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
    lab: NetworkLab,
}

impl RowNamespaces {
    /// Makes the namespaces and the wires.
    pub(super) fn make() -> Result<RowNamespaces> {
        let id = std::process::id();
        let lab = NetworkLab::make(RowMachine::ALL.map(|one| full_name(id, one)), None);
        let net =
            RowNamespaces { id, lab: lab.map_err(BenchFailure::io("this needs namespaces"))? };
        for pair in RowMachine::ALL.windows(2) {
            let [left, right] = pair else { continue };
            let (one, other) = (net.name(*left), net.name(*right));
            net.lab.join([&one, RowSide::Right.name()], [&other, RowSide::Left.name()])?;
        }
        for machine in RowMachine::ALL {
            for (side, ..) in machine.wires() {
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
    fn route(&self) -> Result<()> {
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
    pub(super) fn set_mtu(&self, mtu: u16) -> Result<()> {
        self.on_wires(|name| format!("ip link set {name} mtu {mtu}"))
    }

    /// Whether wires carry what is not cut into packets yet.
    pub(super) fn set_offload(&self, on: bool) -> Result<()> {
        let word = if on { "on" } else { "off" };
        self.on_wires(|name| offload(name, word))
    }

    fn on_wires(&self, command: impl Fn(&str) -> String) -> Result<()> {
        for machine in RowMachine::ALL {
            for (side, ..) in machine.wires() {
                let mut shell = self.within(machine, Path::new("sh"));
                run(shell.args(["-c", &command(side.name())]))?;
            }
        }
        Ok(())
    }

    pub(super) fn name(&self, machine: RowMachine) -> String {
        full_name(self.id, machine)
    }

    /// A command on a machine.
    pub(super) fn within(&self, machine: RowMachine, program: &Path) -> Command {
        self.lab.command(&self.name(machine), program)
    }

    /// Does something on a machine that leaves a socket, which stays there.
    pub(super) fn on<T: Send>(
        &self,
        machine: RowMachine,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> Result<T> {
        let made = self.lab.on(&self.name(machine), work);
        made.map_err(BenchFailure::io("working in a namespace"))
    }

    fn ip(&self, machine: RowMachine, words: &str) -> Result<()> {
        Ok(self.lab.ip(&self.name(machine), words)?)
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

/// Runs a command that has to succeed.
pub(super) fn run(command: &mut Command) -> Result<()> {
    bytes(command).map(drop)
}

/// Runs a command that has to succeed, and gives its output as text.
pub(super) fn output(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(command)?).into_owned())
}

/// The same, as it is.
pub(super) fn bytes(command: &mut Command) -> Result<Vec<u8>> {
    Ok(lab::succeed(command)?)
}
