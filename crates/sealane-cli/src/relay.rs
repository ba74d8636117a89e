//! `sealane relay`, and how each verb runs a machine until it is asked to end.

use sealane::{KeyFolder, Value};
use sealane_group::GroupMembership;
use sealane_link::{DropReason, FrameTally, LinkConfig, UnitVolume};
use sealane_machine::{
    DaemonRole, Machine, MachineConfig, MachineEnd, MachineHandle, MachineKeys, WaitingFrames,
};

use crate::args::key::KeysArgs;
use crate::args::operate::RelayArgs as Args;
use crate::key::{open, root};
use crate::signals::ProcessSignals;
use crate::terminal::{map, table};
use crate::{CliFailure, Terminal};

/// Relays until Ctrl-C or SIGTERM, then says what was carried and dropped. SIGHUP reads the
/// configuration and its cards again.
///
/// # Errors
/// [`CliFailure::Machine`], or a file that cannot be read.
pub async fn run(args: &Args, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let mut config = MachineConfig::read(&args.file)?;
    config.capture.clone_from(&args.capture);
    let links = config.links.clone();
    let mesh = mesh_member(&config, &KeysArgs::default())?;
    let keys = MachineKeys { role: DaemonRole::Relay, mesh };
    let say = |machine: &MachineHandle, terminal: &mut Terminal| {
        started(machine, &links.links, links.neighbours.len(), vec![], terminal)
    };
    carry(config, keys, say, terminal).await
}

/// Runs a machine until a signal ends it, or it ends by itself, and says what was carried.
pub(crate) async fn carry(
    config: MachineConfig,
    keys: MachineKeys,
    say: impl FnOnce(&MachineHandle, &mut Terminal) -> Result<(), CliFailure>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let mut signals = ProcessSignals::new().map_err(CliFailure::Runtime)?;
    let machine = Machine::start(config, keys).await?;
    say(&machine, terminal)?;
    let name = loop {
        tokio::select! {
            name = signals.next() => match name {
                "SIGHUP" => match machine.reload().await {
                    Ok(()) => eprintln!("sealane: SIGHUP: configuration and cards were read again"),
                    Err(error) => eprintln!("sealane: SIGHUP: {error}; it is as it was"),
                },
                name => break name,
            },
            () = machine.ended() => break "it has ended",
        }
    };
    eprintln!("sealane: {name}: stopping");
    let MachineEnd { tally, waiting, fault, .. } = machine.stop().await?;
    tell(&tally, terminal)?;
    if let Some(WaitingFrames { queue, frames }) = waiting {
        eprintln!("sealane: frames that wait in {}: {frames}", queue.display());
    }
    fault.map_or(Ok(()), |fault| Err(fault.into()))
}

/// The membership of the mesh's group, if a configuration has a machine that routes. `keys` are
/// those of the command line.
///
/// # Errors
/// The key folder's refusal.
pub(crate) fn mesh_member(
    config: &MachineConfig,
    keys: &KeysArgs,
) -> Result<Option<GroupMembership>, CliFailure> {
    let Some(routing) = &config.links.routing else { return Ok(None) };
    Ok(Some(open(&mesh_keys(config, keys))?.group(&routing.group)?.into()))
}

/// The same if the folder is there and needs no passphrase.
pub(crate) fn open_mesh_member(config: &MachineConfig, keys: &KeysArgs) -> Option<GroupMembership> {
    let is_open = !KeyFolder::is_protected(&root(&mesh_keys(config, keys))).ok()?;
    is_open.then(|| mesh_member(config, keys).ok()).flatten().flatten()
}

/// The folder of the keys: the one that the configuration names, else that of the command line.
fn mesh_keys(config: &MachineConfig, keys: &KeysArgs) -> KeysArgs {
    KeysArgs { keys: config.mesh_keys().or_else(|| keys.keys.clone()), ..keys.clone() }
}

/// Says what was started: a relay, and what else is true of the machine.
pub(crate) fn started(
    machine: &MachineHandle,
    links: &[LinkConfig],
    neighbours: usize,
    more: Vec<(&str, Value)>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let (version, tag) = (env!("CARGO_PKG_VERSION"), machine.tag());
    let members: usize = machine.cards().iter().map(|card| card.members().count()).sum();
    let groups = machine.cards().len();
    if terminal.json() {
        let link = |link: &LinkConfig| {
            let (name, at) = (link.name.as_str().into(), Value::from(link.wire.to_string()));
            map(vec![("name", name), (link.wire.kind(), at)])
        };
        let mut fields = vec![
            ("version", version.into()),
            ("tag", tag.to_string().into()),
            ("links", Value::Array(links.iter().map(link).collect())),
            ("neighbours", (neighbours as u64).into()),
            ("groups", (groups as u64).into()),
            ("members", (members as u64).into()),
        ];
        fields.extend(more);
        terminal.record(fields)?;
    } else {
        let links: Vec<_> =
            links.iter().map(|link| format!("{} {}", link.name, link.wire)).collect();
        terminal.line(format_args!(
            "sealane {version}  relay {tag}  {}  neighbours {neighbours}  groups {groups}, \
             members {members}",
            links.join(", ")
        ))?;
    }
    terminal.flush()
}

/// Says what was carried and dropped: of the reasons, those that there were.
fn tell(tally: &FrameTally, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let volumes = [
        ("received", tally.received),
        ("forwarded", tally.forwarded),
        ("delivered", tally.delivered),
        ("sent", tally.sent),
    ];
    let reasons = DropReason::ALL.into_iter().map(|why| (why.name(), tally.dropped(why)));
    let dropped = reasons.filter(|(_, count)| *count > 0);
    if terminal.json() {
        let volume = |UnitVolume { units, bytes }| {
            map(vec![("units", units.into()), ("bytes", bytes.into())])
        };
        let mut fields: Vec<_> =
            volumes.into_iter().map(|(name, amount)| (name, volume(amount))).collect();
        let dropped = dropped.map(|(name, count)| (name.to_owned(), count.into())).collect();
        fields.push(("dropped", Value::Map(dropped)));
        return terminal.record(fields);
    }
    let carried = volumes.into_iter().map(|(name, UnitVolume { units, bytes })| {
        vec![name.to_owned(), units.to_string(), bytes.to_string()]
    });
    let dropped = dropped
        .map(|(name, count)| vec![format!("dropped: {name}"), count.to_string(), String::new()]);
    let rows: Vec<_> = carried.chain(dropped).collect();
    terminal.write(table(&["", "UNITS", "BYTES"], &rows).as_bytes())
}
