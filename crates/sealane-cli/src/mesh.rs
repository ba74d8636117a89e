//! `sealane mesh`.

mod status;
mod trace;

use sealane_link::MeshConfig;
use sealane_machine::{DaemonRole, MachineConfig, MachineHandle, MachineKeys, MemberKeys};

use crate::args::key::KeysArgs;
use crate::args::mesh::{MeshArgs, MeshUpArgs, MeshVerb};
use crate::key::open;
use crate::relay::{carry, mesh_member};
use crate::{CliFailure, Terminal};

/// Runs what was asked of a mesh.
///
/// # Errors
/// [`CliFailure::Machine`], what the key folder refuses, or a file that cannot be read.
pub async fn run(args: &MeshArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    match &args.verb {
        MeshVerb::Up(asked) => up(&args.keys, asked, terminal).await,
        MeshVerb::Status(asked) => status::run(asked, terminal).await,
        MeshVerb::Trace(asked) => trace::run(&args.keys, asked, terminal).await,
    }
}

/// Gives this machine an interface until Ctrl-C or SIGTERM, then says what was carried and dropped.
/// SIGHUP reads the configuration, its cards and the group again.
async fn up(
    keys: &KeysArgs,
    asked: &MeshUpArgs,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let folder = open(keys)?;
    let mut config = MachineConfig::read(&asked.file)?;
    config.capture.clone_from(&asked.capture);
    config.view = asked.view;
    let mesh = config.links.mesh.clone();
    let member = MemberKeys { folder, group: asked.group.clone() };
    let role = DaemonRole::Member(member);
    let machine = MachineKeys { role, mesh: mesh_member(&config, keys)? };
    let say = |machine: &MachineHandle, terminal: &mut Terminal| match &mesh {
        Some(mesh) => started(machine, mesh, terminal),
        None => Ok(()),
    };
    carry(config, machine, say, terminal).await
}

/// Says what has started: the interface, and where the page of the team is.
fn started(
    machine: &MachineHandle,
    mesh: &MeshConfig,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let version = env!("CARGO_PKG_VERSION");
    let (end, interface) = (machine.status().end.unwrap_or_default(), &mesh.interface);
    let addresses: Vec<String> = mesh.addresses.iter().map(ToString::to_string).collect();
    if terminal.json() {
        let addresses = addresses.into_iter().map(sealane::Value::from).collect();
        let mut fields = vec![
            ("version", version.into()),
            ("group", end.group.into()),
            ("interface", interface.as_str().into()),
            ("addresses", sealane::Value::Array(addresses)),
            ("mtu", u64::from(end.mtu).into()),
        ];
        fields.extend(machine.view().map(|view| ("view", view.into())));
        terminal.record(fields)?;
    } else {
        let (group, mtu, addresses) = (end.group, end.mtu, addresses.join(", "));
        terminal.line(format_args!(
            "sealane {version}  mesh of {group}  {interface} {addresses}  mtu {mtu}"
        ))?;
        if let Some(view) = machine.view() {
            terminal.line(format_args!("the team: {view}"))?;
        }
    }
    terminal.flush()
}
