//! The same row without seals and checks: what a chain of user-space programs can carry at all.

use std::path::Path;

use super::Error;
use super::net::{Machine, Net, Side};
use super::process::Process;
use super::row::Lane;
use crate::programs::Programs;

/// A row that seals nothing and looks at nothing, and rewrites 17 bytes of each datagram.
#[derive(Debug)]
pub(super) struct Bare {
    _processes: Vec<Process>,
}

impl Bare {
    /// Starts all four machines.
    pub(super) fn start(
        net: &Net,
        programs: &Programs,
        lane: Lane,
        log: &Path,
    ) -> Result<Bare, Error> {
        let start = |machine: Machine| -> Result<Process, Error> {
            let mut command = net.within(machine, &programs.bench);
            let (left, right) = (side(machine, Side::Left, lane), side(machine, Side::Right, lane));
            match machine {
                Machine::Truck | Machine::Gateway => command.args(["hop", "forward"]),
                Machine::Car | Machine::Server => {
                    let address = format!("{}/24", lane.inner(machine));
                    let name = lane.bare_interface();
                    command.args(["hop", "end", "--interface", &name, "--address", &address])
                }
            };
            for (own, other) in [left, right].into_iter().flatten() {
                command.args(["--link", &own, "--neighbour", &other]);
            }
            if !lane.offload && matches!(machine, Machine::Car | Machine::Server) {
                command.arg("--no-offload");
            }
            command.args(["--mtu", &lane.mtu.to_string()]);
            Process::start(command, log)
        };
        let processes = Machine::ALL.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok(Bare { _processes: processes })
    }
}

/// The own address and the neighbour's at a side, if there is somebody.
pub(super) fn side(machine: Machine, side: Side, lane: Lane) -> Option<(String, String)> {
    let other = machine.neighbour(side)?;
    let port = lane.port();
    let own = format!("{}:{port}", machine.address(side));
    Some((own, format!("{}:{port}", other.address(side.opposite()))))
}
