//! Processes in network namespaces of their own, each with a card for each medium that it is on.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::card::SimCardMedium;
use super::keys::LiveKeyFolders;
use crate::engine::{OutsideDeparture, OutsideTransition};
use crate::lab::{NetworkLab, succeed};
use crate::limits::MAX_LIVE_PROCESSES;
use crate::scenario::{ProgramKind, Scenario};
use crate::{SimError, SimMediumProfile};

/// The longest name that the kernel allows (IFNAMSIZ, with its end).
const MAX_CARD_NAME: usize = 15;

/// Where processes of a live run are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveSettings<'a> {
    /// The scenario's own file: its folder is where processes begin.
    pub(crate) file: &'a Path,
    pub(crate) prefix: &'a str,
    pub(crate) logs: Option<&'a Path>,
    /// Where the page of the run is served, if anywhere.
    pub(crate) page: Option<SocketAddr>,
}

/// The machines of a scenario that are processes. They go with it, however it ends.
pub(super) struct LiveProcesses {
    machines: Vec<LiveProcess>,
    /// Where in the list a machine is.
    seats: BTreeMap<u32, usize>,
    folder: PathBuf,
    logs: Option<PathBuf>,
    /// Where the key folders of the machines are, if they are members of a mesh.
    keys: Option<PathBuf>,
    /// Its namespaces, where there are any.
    lab: Option<NetworkLab>,
    frame: Vec<u8>,
}

/// A machine that is a process.
struct LiveProcess {
    node: u32,
    name: String,
    namespace: String,
    command: Vec<String>,
    cards: Vec<LiveCard>,
    child: Option<Child>,
}

/// A card of such a machine: it is the other end of an interface in the namespace.
pub(super) struct LiveCard {
    pub(super) node: u32,
    pub(super) port: usize,
    pub(super) place: SimCardMedium,
    pub(super) device: SyncDevice,
}

/// An interface that is to be made.
struct LiveInterfacePlan<'a> {
    port: usize,
    place: SimCardMedium,
    name: &'a str,
    mtu: usize,
}

fn impossible(what: &str) -> impl Fn(std::io::Error) -> SimError + '_ {
    move |cause| refused(format!("{what}: {cause}"))
}

fn refused(what: impl Display) -> SimError {
    SimError::Live(what.to_string())
}

impl LiveProcesses {
    /// Makes the namespaces and the cards.
    pub(super) fn open(
        scenario: &Scenario,
        setting: &LiveSettings<'_>,
        keys: Option<&LiveKeyFolders>,
    ) -> Result<Self, SimError> {
        let nodes =
            (0..).zip(&scenario.nodes).filter(|(_, plan)| plan.kind == ProgramKind::Process);
        let nodes: Vec<_> = nodes.collect();
        let folder = setting.file.parent().filter(|folder| *folder != Path::new(""));
        let mut stage = Self {
            machines: vec![],
            seats: BTreeMap::new(),
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            logs: setting.logs.map(Path::to_owned),
            keys: keys.map(|keys| keys.folder.clone()),
            lab: None,
            frame: vec![],
        };
        if nodes.is_empty() {
            return Ok(stage);
        }
        if nodes.len() > MAX_LIVE_PROCESSES {
            let count = nodes.len();
            return Err(refused(format!("{count} processes are more than {MAX_LIVE_PROCESSES}")));
        }
        let name = |name: &str| format!("{}-{name}", setting.prefix);
        let namespaces: Vec<_> = nodes.iter().map(|(_, plan)| name(&plan.name)).collect();
        let own = keys.filter(|keys| keys.is_own()).map(|keys| &*keys.folder);
        let lab = stage.lab.insert(NetworkLab::make(namespaces.clone(), own).map_err(refused)?);
        for ((node, plan), namespace) in nodes.into_iter().zip(namespaces) {
            let mut cards = vec![];
            for (port, medium) in plan.media.iter().enumerate() {
                let Some(plan) = scenario.media.get(*medium) else { continue };
                let place =
                    SimCardMedium { medium: *medium as u8, is_radio: plan.profile.is_radio() };
                let wanted =
                    LiveInterfacePlan { port, place, name: &plan.name, mtu: mtu(&plan.profile) };
                cards.push(LiveCard::make(lab, node, &namespace, &wanted)?);
            }
            stage.seats.insert(node, stage.machines.len());
            let (name, command) = (plan.name.clone(), plan.command.clone());
            stage.machines.push(LiveProcess { node, name, namespace, command, cards, child: None });
        }
        Ok(stage)
    }

    /// All cards.
    pub(super) fn cards(&self) -> impl Iterator<Item = &LiveCard> {
        self.machines.iter().flat_map(|machine| &machine.cards)
    }

    /// Starts and ends programs as their machines join and leave.
    pub(super) fn follow(&mut self, turns: Vec<OutsideTransition>) -> Result<(), SimError> {
        for OutsideTransition { node, is_up } in turns {
            let Some(seat) = self.seats.get(&node) else { continue };
            let Some(machine) = self.machines.get_mut(*seat) else { continue };
            let Some(lab) = &self.lab else { continue };
            if is_up {
                let keys = self.keys.as_ref().map(|keys| keys.join(&machine.name));
                machine.start(lab, &self.folder, self.logs.as_deref(), keys.as_deref())?;
            } else {
                machine.kill(lab);
            }
        }
        Ok(())
    }

    /// Hands a unit to its process. One that the kernel does not take is lost, as with any card.
    pub(super) fn deliver(&mut self, departure: &OutsideDeparture) {
        let machine = self.seats.get(&departure.node).and_then(|seat| self.machines.get(*seat));
        let card = machine.and_then(|machine| machine.cards.get(departure.port));
        if let Some(card) = card {
            card.place.write(departure, &mut self.frame);
            let _ = card.device.send(&self.frame);
        }
    }

    /// Says which programs have ended by themselves since it was asked last.
    pub(super) fn tell_ended(&mut self) {
        for machine in &mut self.machines {
            let ended = machine.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                eprintln!("sealane-sim: {}: its program has ended: {status}", machine.name);
                machine.child = None;
            }
        }
    }
}

impl Drop for LiveProcesses {
    fn drop(&mut self) {
        if let Some(lab) = &self.lab {
            self.machines.iter_mut().for_each(|machine| machine.kill(lab));
        }
    }
}

impl LiveProcess {
    /// Starts its program, if it has one that does not run.
    fn start(
        &mut self,
        lab: &NetworkLab,
        folder: &Path,
        logs: Option<&Path>,
        keys: Option<&Path>,
    ) -> Result<(), SimError> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(()) };
        if self.child.is_some() {
            return Ok(());
        }
        let (out, err) = match logs {
            None => (Stdio::from(std::io::stderr()), Stdio::inherit()),
            Some(folder) => {
                let path = folder.join(&self.name).with_extension("log");
                let failed = |cause| SimError::File { file: path.clone(), cause };
                let file = File::options().create(true).append(true).open(&path);
                let file = file.map_err(failed)?;
                (Stdio::from(file.try_clone().map_err(failed)?), Stdio::from(file))
            }
        };
        let mut command = lab.command(&self.namespace, program);
        command.args(arguments);
        command.env("SEALANE_SIM_NAME", &self.name);
        command.env("SEALANE_SIM_NUMBER", self.node.to_string()).current_dir(folder);
        command.envs(keys.map(|keys| ("SEALANE_KEYS", keys)));
        command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        self.child = Some(command.spawn().map_err(impossible(&self.name))?);
        Ok(())
    }

    /// Ends all that runs in its namespace.
    fn kill(&mut self, lab: &NetworkLab) {
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        let _ = child.wait();
        lab.kill(&self.namespace);
    }
}

impl LiveCard {
    /// Makes an interface here, and puts it into the namespace under the name of its medium.
    fn make(
        lab: &NetworkLab,
        node: u32,
        namespace: &str,
        wanted: &LiveInterfacePlan<'_>,
    ) -> Result<Self, SimError> {
        let LiveInterfacePlan { port, place, name, mtu } = *wanted;
        if name.len() > MAX_CARD_NAME {
            let what = format!("medium `{name}`: an interface has {MAX_CARD_NAME} letters at most");
            return Err(refused(what));
        }
        let here = format!("s{:x}m{:x}n{node:x}", std::process::id(), place.medium);
        let builder = DeviceBuilder::new().name(&here).layer(Layer::L2).enable(false);
        let device = builder.build_sync().map_err(impossible("an interface (TAP)"))?;
        device.set_nonblocking(true).map_err(impossible("an interface (TAP)"))?;
        let mut command = Command::new("ip");
        succeed(command.args(["link", "set", &here, "netns", namespace])).map_err(refused)?;
        let [a, b, c, d, e, f] = place.mac(node);
        let lines = format!(
            "link set {here} name {name}\nlink set {name} mtu {mtu} address \
             {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} up\n"
        );
        lab.batch(namespace, &lines).map_err(refused)?;
        Ok(Self { node, port, place, device })
    }
}

/// The longest frame that a card takes, without the header of Ethernet: a unit of a radio stands
/// behind its length.
fn mtu(profile: &SimMediumProfile) -> usize {
    profile.unit_bytes() + if profile.is_radio() { 2 } else { 0 }
}
