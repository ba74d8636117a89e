//! The same row without seals and checks: what a chain of user-space programs can carry at all.

use std::path::Path;

use super::net::{RowMachine, RowNamespaces, RowSide};
use super::row::RowSpec;
use crate::failure::Result;
use crate::process::BenchProcess;
use crate::programs::BenchPrograms;

/// A row that seals nothing and looks at nothing, and rewrites 17 bytes of each datagram.
#[derive(Debug)]
pub(super) struct BareRelayRow {
    _processes: Vec<BenchProcess>,
}

impl BareRelayRow {
    /// Starts all four machines.
    pub(super) fn start(
        net: &RowNamespaces,
        programs: &BenchPrograms,
        lane: RowSpec,
        log: &Path,
    ) -> Result<BareRelayRow> {
        let start = |machine: RowMachine| -> Result<BenchProcess> {
            let mut command = net.within(machine, &programs.bench);
            let (left, right) =
                (side(machine, RowSide::Left, lane), side(machine, RowSide::Right, lane));
            match machine {
                RowMachine::Truck | RowMachine::Gateway => command.args(["hop", "forward"]),
                RowMachine::Car | RowMachine::Server => {
                    let address = format!("{}/24", lane.inner(machine));
                    let name = lane.bare_interface();
                    command.args(["hop", "end", "--interface", &name, "--address", &address])
                }
            };
            for (own, other) in [left, right].into_iter().flatten() {
                command.args(["--link", &own, "--neighbour", &other]);
            }
            if !lane.offload && matches!(machine, RowMachine::Car | RowMachine::Server) {
                command.arg("--no-offload");
            }
            command.args(["--mtu", &lane.mtu.to_string()]);
            BenchProcess::start(&mut command, Some(log))
        };
        let processes = RowMachine::ALL.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok(BareRelayRow { _processes: processes })
    }
}

/// The own address and the neighbour's at a side, if there is somebody.
pub(super) fn side(machine: RowMachine, side: RowSide, lane: RowSpec) -> Option<(String, String)> {
    let other = machine.neighbour(side)?;
    let port = lane.port();
    let own = format!("{}:{port}", machine.address(side));
    Some((own, format!("{}:{port}", other.address(side.opposite()))))
}
