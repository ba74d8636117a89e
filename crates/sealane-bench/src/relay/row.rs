//! The product on four machines: members at the ends, relays without keys between them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::net::{self, RowMachine, RowNamespaces, RowSide, RowWire};
use crate::failure::{BenchFailure, Result};
use crate::process::BenchProcess;
use crate::programs::BenchPrograms;

/// Two members, each with a key folder, and the card that relays have of their group.
#[derive(Debug)]
pub(super) struct RowKeyFolders {
    folder: TempDir,
    sealane: PathBuf,
}

/// The name of the group, which relays are not told.
pub(super) const GROUP: &str = "convoy-zwetschgental";
/// The name of the mesh's group.
pub(super) const MESH: &str = "roads";
/// The names of the members, which they are not told either.
pub(super) const NAMES: [&str; 2] = ["wilhelmina-quellenberg", "thaddaeus-obermoosbach"];

impl RowKeyFolders {
    /// Makes a group under this cipher; the server founds it, and the car joins.
    pub(super) fn new(programs: &BenchPrograms, suite: &str) -> Result<RowKeyFolders> {
        let folder = tempfile::tempdir().map_err(BenchFailure::io("making a folder"))?;
        let crew = RowKeyFolders { folder, sealane: programs.sealane.clone() };
        let [server, car] = NAMES;
        crew.run(RowMachine::Server, &["key", "new", server])?;
        crew.run(RowMachine::Car, &["key", "new", car])?;
        crew.run(RowMachine::Server, &["group", "new", GROUP, "--suite", suite])?;
        crew.join(GROUP, RowMachine::Car)?;
        let card = crew.run(RowMachine::Server, &["group", "relay-card", GROUP])?;
        crew.write("group.card", card)?;
        Ok(crew)
    }

    /// Gives all four machines keys of a mesh, a group of its own, in which they find each other.
    pub(super) fn with_mesh(self) -> Result<RowKeyFolders> {
        use RowMachine::{Car, Gateway, Server, Truck};
        for relay in [Truck, Gateway] {
            self.run(relay, &["key", "new", relay.name()])?;
        }
        self.run(Server, &["group", "new", MESH])?;
        for machine in [Car, Truck, Gateway] {
            self.join(MESH, machine)?;
        }
        let orders = self.write("orders", self.run(Server, &["group", "orders", MESH])?)?;
        // The machine that joined last knows all others.
        for machine in [Car, Truck] {
            self.run(machine, &["group", "apply", MESH, &orders])?;
        }
        Ok(self)
    }

    /// The server invites a machine, which joins.
    fn join(&self, group: &str, machine: RowMachine) -> Result<()> {
        let card = self.write("card", self.run(machine, &["key", "card"])?)?;
        let invited = self.run(RowMachine::Server, &["group", "invite", group, &card])?;
        let invitation = self.write("invitation", invited)?;
        self.run(machine, &["group", "join", &invitation]).map(drop)
    }

    fn run(&self, who: RowMachine, words: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.sealane);
        command.args(words).env_clear().env("HOME", self.folder.path());
        net::bytes(command.env("SEALANE_KEYS", self.keys(who)))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The key folder of a member.
    pub(super) fn keys(&self, who: RowMachine) -> PathBuf {
        self.path(who.name())
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<String> {
        let path = self.path(name);
        std::fs::write(&path, text.as_ref()).map_err(BenchFailure::io("writing a file"))?;
        Ok(path.display().to_string())
    }
}

/// The settings that tell a row apart from others on the same machines, and how wide its links are.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSpec {
    pub(super) number: u8,
    pub(super) mtu: u16,
    /// Whether interfaces take what is not cut into packets yet.
    pub(super) offload: bool,
    pub(super) wire: RowWire,
    /// How machines know each other, and the ways.
    pub(super) ways: RowRouting,
}

/// How machines know their neighbours, and who is behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowRouting {
    /// Their configuration says it.
    Static,
    /// They find it out, as machines of a mesh; their configuration has no neighbour and no route.
    Found,
}

impl RowSpec {
    pub(super) fn port(self) -> u16 {
        FIRST_PORT + u16::from(self.number)
    }

    pub(super) fn interface(self) -> String {
        format!("sealane{}", self.number)
    }

    /// The name of the interface of an end that seals nothing.
    pub(super) fn bare_interface(self) -> String {
        format!("bare{}", self.number)
    }

    /// The address of an end within the network that is sealed.
    pub(super) fn inner(self, end: RowMachine) -> String {
        let host = if end == RowMachine::Server { 1 } else { 2 };
        format!("10.9.{}.{host}", self.number)
    }
}

const FIRST_PORT: u16 = 9190;

/// A row that runs.
#[derive(Debug)]
pub(super) struct RelayRow<'n> {
    net: &'n RowNamespaces,
    crew: RowKeyFolders,
    pub(super) lane: RowSpec,
    /// Whether each machine captures what its links carry.
    captures: bool,
    processes: [Option<BenchProcess>; 4],
}

impl<'n> RelayRow<'n> {
    /// Starts all four machines.
    pub(super) fn start(
        net: &'n RowNamespaces,
        crew: RowKeyFolders,
        lane: RowSpec,
    ) -> Result<RelayRow<'n>> {
        Self::capturing(net, crew, lane, false)
    }

    /// The same, each with a capture of its own where it says so.
    pub(super) fn capturing(
        net: &'n RowNamespaces,
        crew: RowKeyFolders,
        lane: RowSpec,
        captures: bool,
    ) -> Result<RelayRow<'n>> {
        for machine in RowMachine::ALL {
            crew.write(&file(machine), config(machine, lane))?;
        }
        let mut row = RelayRow { net, crew, lane, captures, processes: [const { None }; 4] };
        // Relays first, so that they hear the ends' announcements.
        for machine in [RowMachine::Truck, RowMachine::Gateway, RowMachine::Car, RowMachine::Server]
        {
            row.begin(machine)?;
        }
        Ok(row)
    }

    fn begin(&mut self, machine: RowMachine) -> Result<&BenchProcess> {
        let mut command = self.net.within(machine, &self.crew.sealane);
        match machine {
            RowMachine::Truck | RowMachine::Gateway => command.args(["--json", "relay"]),
            RowMachine::Car | RowMachine::Server => command.args(["--json", "mesh", "up", GROUP]),
        };
        command.arg(self.crew.path(&file(machine))).env_clear();
        if self.captures {
            command.arg("--capture").arg(self.capture(machine));
        }
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.crew.folder.path()).env("SEALANE_KEYS", self.crew.keys(machine));
        let log = self.crew.path(&format!("{}.log", machine.name()));
        let process = BenchProcess::start(&mut command, Some(&log))?;
        Ok(self.place(machine).insert(process))
    }

    fn place(&mut self, machine: RowMachine) -> &mut Option<BenchProcess> {
        let [car, truck, gateway, server] = &mut self.processes;
        match machine {
            RowMachine::Car => car,
            RowMachine::Truck => truck,
            RowMachine::Gateway => gateway,
            RowMachine::Server => server,
        }
    }

    /// SIGKILL for the machine's process.
    pub(super) fn kill(&mut self, machine: RowMachine) {
        drop(self.place(machine).take());
    }

    /// Starts a machine's process again; gives when it was started.
    pub(super) fn restart(&mut self, machine: RowMachine) -> Result<std::time::Instant> {
        Ok(self.begin(machine)?.spawned)
    }

    pub(super) fn process(&mut self, machine: RowMachine) -> Result<&BenchProcess> {
        let gone = || BenchFailure::said(machine.name(), "is gone");
        self.place(machine).as_ref().ok_or_else(gone)
    }

    /// The file of a machine's capture of its links.
    pub(super) fn capture(&self, machine: RowMachine) -> PathBuf {
        self.crew.path(&format!("{}-links.pcap", machine.name()))
    }

    /// The output of a command of the product, whether or not it succeeds.
    pub(super) fn said(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.crew.sealane);
        let output = command.args(words).env_clear().env("HOME", self.crew.path("")).output();
        let output = output.map_err(BenchFailure::io("running sealane"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(super) fn crew(&self) -> &RowKeyFolders {
        &self.crew
    }

    /// Ends all machines in turn; gives what each of them says.
    pub(super) fn stop(mut self) -> Result<Vec<(RowMachine, Value)>> {
        self.end()
    }

    /// The same; its files stay.
    pub(super) fn end(&mut self) -> Result<Vec<(RowMachine, Value)>> {
        let mut said = Vec::new();
        for machine in RowMachine::ALL {
            if let Some(process) = self.place(machine).take() {
                said.push((machine, process.stop()?));
            }
        }
        Ok(said)
    }
}

fn file(machine: RowMachine) -> String {
    format!("{}.toml", machine.name())
}

/// The configuration of one machine.
fn config(machine: RowMachine, lane: RowSpec) -> String {
    let mut text = "version = 1\n".to_owned();
    let mut add = |line: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    };
    if let Some(tag) = relay_tag(machine) {
        if lane.ways == RowRouting::Static {
            add(format!("tag = \"{tag}\""));
        }
        add("cards = [\"group.card\"]".to_owned());
    }
    let mtu = lane.mtu;
    for (side, target) in [(RowSide::Left, "slot 1"), (RowSide::Right, "slot 0")] {
        let Some(other) = machine.neighbour(side) else { continue };
        let name = side.name();
        let (own, opposite) = places(machine, side, other, lane);
        add(format!("[[link]]\nname = \"{name}\"\n{own}\nmtu = {mtu}"));
        if lane.ways == RowRouting::Found {
            add("discover = true".to_owned());
            continue;
        }
        let tag = relay_tag(other).unwrap_or(target);
        add(format!(
            "[[neighbour]]\nname = \"{name}\"\ntag = \"{tag}\"\nlink = \"{name}\"\n\
             address = \"{opposite}\""
        ));
        add(format!("[[route]]\nto = \"{target}\"\nvia = \"{name}\""));
    }
    if lane.ways == RowRouting::Found {
        add(format!("[routing]\nkeys = \"{}\"\ngroup = \"{MESH}\"", machine.name()));
    }
    if relay_tag(machine).is_none() {
        let (interface, own) = (lane.interface(), lane.inner(machine));
        add(format!("[mesh]\ninterface = \"{interface}\"\naddresses = [\"{own}/24\"]"));
        if !lane.offload {
            add("offload = false".to_owned());
        }
        for (slot, end) in [(0, RowMachine::Server), (1, RowMachine::Car)] {
            let address = lane.inner(end);
            add(format!("[[mesh.member]]\nslot = {slot}\nprefixes = [\"{address}/32\"]"));
        }
    }
    text
}

/// The line of the own link, and the address of the neighbour at its other end.
fn places(
    machine: RowMachine,
    side: RowSide,
    other: RowMachine,
    lane: RowSpec,
) -> (String, String) {
    let port = lane.port();
    match lane.wire {
        RowWire::Udp => (
            format!("udp = \"{}:{port}\"", machine.address(side)),
            format!("{}:{port}", other.address(side.opposite())),
        ),
        RowWire::Ethernet => {
            (format!("ethernet = \"{}\"", side.name()), other.card(side.opposite()))
        }
    }
}

/// The tag of a relay, which is no member's.
pub(super) fn relay_tag(machine: RowMachine) -> Option<&'static str> {
    match machine {
        RowMachine::Truck => Some("b100000000000001"),
        RowMachine::Gateway => Some("b100000000000002"),
        RowMachine::Car | RowMachine::Server => None,
    }
}

/// The path of a script of this repository.
pub(super) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name)
}
