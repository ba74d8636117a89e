//! `sealane gateway`.

use sealane_machine::{DaemonRole, MachineConfig, MachineHandle, MachineKeys};

use crate::args::key::KeysArgs;
use crate::args::operate::GatewayArgs as Args;
use crate::relay::{carry, mesh_member, started};
use crate::{CliFailure, Terminal};

/// Brings frames to the hub, and its own into the mesh, until Ctrl-C or SIGTERM. SIGHUP reads the
/// configuration and its cards again.
///
/// # Errors
/// [`CliFailure::Machine`], or a file that cannot be read.
pub async fn run(args: &Args, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let mut config = MachineConfig::read(&args.file)?;
    config.capture.clone_from(&args.capture);
    let links = config.links.clone();
    let mesh = mesh_member(&config, &KeysArgs::default())?;
    let keys = MachineKeys { role: DaemonRole::Gateway, mesh };
    let say = |machine: &MachineHandle, terminal: &mut Terminal| {
        let more = machine.status().gateway.map_or(vec![], |gateway| {
            vec![("hub", gateway.address.into()), ("waiting", gateway.queue.frames.into())]
        });
        started(machine, &links.links, links.neighbours.len(), more, terminal)
    };
    carry(config, keys, say, terminal).await
}
