//! Processes in network namespaces of their own, each with a card for each medium that it is on.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::card::SimCardMedium;
use super::keys::LiveKeyFolders;
use crate::engine::{OutsideDeparture, OutsideTransition};
use crate::limits::MAX_LIVE_PROCESSES;
use crate::scenario::{ProgramKind, Scenario};
use crate::{SimError, SimMediumProfile};

/// Waits for the end of its input, which is the end of the run, also when that is killed; then ends
/// what still runs in the namespaces, and removes them, and the keys that were made for the run.
const REAPER: &str = "trap '' INT TERM HUP; read -r _; for name; do \
                      ip netns pids $name | xargs -r kill -9; ip netns delete $name; done; \
                      if [ -n \"$KEYS\" ]; then rm -rf -- \"$KEYS\"; fi";
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
    reaper: Option<Child>,
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
            reaper: None,
            frame: vec![],
        };
        if nodes.is_empty() {
            return Ok(stage);
        }
        if nodes.len() > MAX_LIVE_PROCESSES {
            let count = nodes.len();
            return Err(refused(format!("{count} processes are more than {MAX_LIVE_PROCESSES}")));
        }
        if !geteuid().is_root() {
            return Err(refused("network namespaces need root"));
        }
        let name = |name: &str| format!("{}-{name}", setting.prefix);
        let namespaces: Vec<_> = nodes.iter().map(|(_, plan)| name(&plan.name)).collect();
        stage.guard(&namespaces, keys.filter(|keys| keys.is_own()))?;
        for ((node, plan), namespace) in nodes.into_iter().zip(namespaces) {
            ip(&["netns", "add", &namespace])?;
            let mut cards = vec![];
            for (port, medium) in plan.media.iter().enumerate() {
                let Some(plan) = scenario.media.get(*medium) else { continue };
                let place =
                    SimCardMedium { medium: *medium as u8, is_radio: plan.profile.is_radio() };
                let wanted =
                    LiveInterfacePlan { port, place, name: &plan.name, mtu: mtu(&plan.profile) };
                cards.push(LiveCard::make(node, &namespace, &wanted)?);
            }
            ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
            stage.seats.insert(node, stage.machines.len());
            let (name, command) = (plan.name.clone(), plan.command.clone());
            stage.machines.push(LiveProcess { node, name, namespace, command, cards, child: None });
        }
        Ok(stage)
    }

    /// Sees to it that the namespaces go, whatever happens. None of them may be there already: it
    /// would be somebody else's.
    fn guard(
        &mut self,
        namespaces: &[String],
        keys: Option<&LiveKeyFolders>,
    ) -> Result<(), SimError> {
        let is_there = |name: &&String| Path::new("/run/netns").join(name).exists();
        if let Some(name) = namespaces.iter().find(is_there) {
            return Err(refused(format!("a network namespace `{name}` is there already")));
        }
        let mut reaper = Command::new("sh");
        reaper.args(["-c", REAPER, "reaper"]).args(namespaces);
        reaper.env("KEYS", keys.map(|keys| keys.folder.as_os_str()).unwrap_or_default());
        // Of a group of its own, so that Ctrl-C does not end it together with the run.
        reaper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.reaper = Some(reaper.spawn().map_err(impossible("sh"))?);
        Ok(())
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
            if is_up {
                let keys = self.keys.as_ref().map(|keys| keys.join(&machine.name));
                machine.start(&self.folder, self.logs.as_deref(), keys.as_deref())?;
            } else {
                machine.kill();
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
        self.machines.iter_mut().for_each(LiveProcess::kill);
        if let Some(mut reaper) = self.reaper.take() {
            drop(reaper.stdin.take());
            let _ = reaper.wait();
        }
    }
}

impl LiveProcess {
    /// Starts its program, if it has one that does not run.
    fn start(
        &mut self,
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
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]).args(arguments);
        command.env("SEALANE_SIM_NAME", &self.name);
        command.env("SEALANE_SIM_NUMBER", self.node.to_string()).current_dir(folder);
        command.envs(keys.map(|keys| ("SEALANE_KEYS", keys)));
        command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        self.child = Some(command.spawn().map_err(impossible(&self.name))?);
        Ok(())
    }

    /// Ends all that runs in its namespace.
    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        let _ = child.wait();
        let pids = Command::new("ip").args(["netns", "pids", &self.namespace]).output();
        let pids = pids.map(|pids| String::from_utf8_lossy(&pids.stdout).into_owned());
        for pid in pids.unwrap_or_default().split_whitespace() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl LiveCard {
    /// Makes an interface here, and puts it into the namespace under the name of its medium.
    fn make(node: u32, namespace: &str, wanted: &LiveInterfacePlan<'_>) -> Result<Self, SimError> {
        let LiveInterfacePlan { port, place, name, mtu } = *wanted;
        if name.len() > MAX_CARD_NAME {
            let what = format!("medium `{name}`: an interface has {MAX_CARD_NAME} letters at most");
            return Err(refused(what));
        }
        let here = format!("s{:x}m{:x}n{node:x}", std::process::id(), place.medium);
        let builder = DeviceBuilder::new().name(&here).layer(Layer::L2).enable(false);
        let device = builder.build_sync().map_err(impossible("an interface (TAP)"))?;
        device.set_nonblocking(true).map_err(impossible("an interface (TAP)"))?;
        ip(&["link", "set", &here, "netns", namespace])?;
        let [a, b, c, d, e, f] = place.mac(node);
        let lines = format!(
            "link set {here} name {name}\nlink set {name} mtu {mtu} address \
             {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} up\n"
        );
        batch(namespace, &lines)?;
        Ok(Self { node, port, place, device })
    }
}

/// The longest frame that a card takes, without the header of Ethernet: a unit of a radio stands
/// behind its length.
fn mtu(profile: &SimMediumProfile) -> usize {
    profile.unit_bytes() + if profile.is_radio() { 2 } else { 0 }
}

fn ip(arguments: &[&str]) -> Result<(), SimError> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    succeeded(&arguments.join(" "), &output.map_err(impossible("ip"))?)
}

/// Several commands in a namespace.
fn batch(namespace: &str, lines: &str) -> Result<(), SimError> {
    let mut command = Command::new("ip");
    command.args(["-n", namespace, "-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(impossible("ip"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(lines.as_bytes()).map_err(impossible("ip"))?;
    }
    succeeded(lines, &child.wait_with_output().map_err(impossible("ip"))?)
}

fn succeeded(what: &str, output: &std::process::Output) -> Result<(), SimError> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(refused(format!("ip {}: {}", what.trim(), said.trim()))),
    }
}
