//! `sealane mesh`.

mod end;

use std::sync::Arc;

use sealane_group::{EpochSource, KeyFolder, Member};
use sealane_link::{Behind, LinkError, MeshConfig, Relay, RelayCard, Tun};

use crate::args::mesh::{Mesh, MeshVerb, Up};
use crate::key::open;
use crate::relay::{Plan, read, refused, tell};
use crate::signals::Signals;
use crate::{Failure, Terminal};
use end::End;

/// Runs what was asked of a mesh.
///
/// # Errors
/// [`Failure::Link`], what the key folder refuses, or a file that cannot be read.
pub async fn run(args: &Mesh, terminal: &mut Terminal) -> Result<(), Failure> {
    let MeshVerb::Up(asked) = &args.verb;
    up(&open(&args.keys)?, asked, terminal).await
}

/// Gives this machine an interface until Ctrl-C or SIGTERM, then says what was carried and dropped.
/// SIGHUP reads the configuration, its cards and the group again.
async fn up(keys: &KeyFolder, asked: &Up, terminal: &mut Terminal) -> Result<(), Failure> {
    let member = keys.group(&asked.group)?;
    let wrong = |cause| refused(&asked.file, cause);
    let plan = with_own_card(read(&asked.file)?, &member);
    let mesh = mesh_of(&plan).map_err(wrong)?.clone();
    let own = member.source()?;
    let mut signals = Signals::new().map_err(Failure::Runtime)?;
    let behind = behind(&plan, &mesh).map_err(wrong)?;
    let mtu = plan.config.packet_bytes().map_err(wrong)?;
    let tun = Tun::open(&mesh, mtu).map_err(wrong)?;
    let sender = member.sender()?;
    let end = Arc::new(End::new(member, tun, behind)?);
    let taker = Arc::clone(&end);
    let take = Box::new(move |arrival: sealane_link::Arrival<'_>| taker.take(arrival));
    let relay = Relay::join(&plan.config, &plan.cards, own, take).map_err(wrong)?;
    let (port, carrier) = (relay.port(), Arc::clone(&end));
    let carrier = std::thread::spawn(move || carrier.carry(sender, port));
    started(&asked.group, &mesh, mtu, terminal)?;
    let name = loop {
        match signals.next().await {
            "SIGHUP" => match reload(keys, asked, &mesh, &relay, &end) {
                Ok(()) => eprintln!("sealane: SIGHUP: configuration and cards were read again"),
                Err(failure) => eprintln!("sealane: SIGHUP: {failure}; it is as it was"),
            },
            name => break name,
        }
    };
    eprintln!("sealane: {name}: stopping");
    let tally = tokio::task::spawn_blocking(move || {
        end.stop();
        // A thread that has panicked has said so on standard error.
        let _ = carrier.join();
        relay.stop()
    });
    tell(&tally.await.map_err(|error| Failure::Runtime(error.into()))?, terminal)
}

fn reload(
    keys: &KeyFolder,
    asked: &Up,
    before: &MeshConfig,
    relay: &Relay,
    end: &End,
) -> Result<(), Failure> {
    let wrong = |cause| refused(&asked.file, cause);
    let plan = with_own_card(read(&asked.file)?, &keys.group(&asked.group)?);
    let mesh = mesh_of(&plan).map_err(wrong)?;
    if !mesh.has_interface_of(before) {
        return Err(wrong(LinkError::LinksChanged));
    }
    let behind = behind(&plan, mesh).map_err(wrong)?;
    relay.reload(&plan.config, &plan.cards).map_err(wrong)?;
    end.go_on_with(behind);
    Ok(())
}

/// The card of the own group is the last one.
fn with_own_card(mut plan: Plan, member: &Member) -> Plan {
    plan.cards.retain(|card| card.group() != member.tag());
    plan.cards.push(RelayCard::new(member.tag(), member.epochs().newest(), member.addresses()));
    plan
}

fn mesh_of(plan: &Plan) -> Result<&MeshConfig, LinkError> {
    let missing = || LinkError::ConfigValue("[mesh] is missing: the interface".to_owned());
    plan.config.mesh.as_ref().ok_or_else(missing)
}

fn behind(plan: &Plan, mesh: &MeshConfig) -> Result<Behind, LinkError> {
    let missing = || LinkError::ConfigValue("there is no card".to_owned());
    Behind::new(mesh, plan.cards.last().ok_or_else(missing)?)
}

fn started(
    group: &str,
    mesh: &MeshConfig,
    mtu: u16,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let addresses: Vec<String> = mesh.addresses.iter().map(ToString::to_string).collect();
    if terminal.json() {
        let addresses = addresses.into_iter().map(sealane::Value::from).collect();
        terminal.record(vec![
            ("version", version.into()),
            ("group", group.into()),
            ("interface", mesh.interface.as_str().into()),
            ("addresses", sealane::Value::Array(addresses)),
            ("mtu", u64::from(mtu).into()),
        ])?;
    } else {
        let (interface, addresses) = (&mesh.interface, addresses.join(", "));
        terminal.line(format_args!(
            "sealane {version}  mesh of {group}  {interface} {addresses}  mtu {mtu}"
        ))?;
    }
    terminal.flush()
}
