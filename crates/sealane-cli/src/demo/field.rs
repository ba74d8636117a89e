//! Field to cloud: a member in the field writes documents, a relay and a gateway without its keys
//! bring them to the hub, and a member elsewhere reads them. No file names a neighbour or a way:
//! the machines find each other.
//!
//! ```text
//!  this process              sealane relay      sealane gateway     sealane up     this process
//!  a member, its documents ─► UDP ────────────► UDP ──────────────► HTTP ────────► a member
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealane::{Client, GroupClient, StartPosition, Value};
use sealane_group::{EpochSource, GroupMember, KeyFolder, NewGroup};
use sealane_link::RelayCard;
use sealane_machine::{DaemonRole, Machine, MachineConfig, MachineHandle, MachineKeys, MemberKeys};

use super::ledger::{PublishedLedger, fingerprint};
use super::node::end;
use super::sealed::{DemoCanaries, holding, join};
use super::telemetry::{self, KINDS};
use crate::CliFailure;
use crate::limits::{DEMO_FIELD_LOOK_MS, MAX_DEMO_FIELD_WAIT_MS};

/// Documents that are written: fewer than the log of a member keeps.
const DOCUMENTS: usize = 60;
/// The log of an application that they are kept in.
const LOG: &str = "72";
/// Where machines on one link hear each other; each link here has a port of its own.
const EVERYBODY: &str = "239.192.83.76";

/// The result of the way from the field to the cloud.
pub(super) struct FieldToCloud {
    pub(super) documents: u64,
    pub(super) lost: u64,
    /// From the start of all machines until the first document is at the hub.
    pub(super) ways: Duration,
    /// From there until a reader has all.
    pub(super) rest: Duration,
    /// Files of relay and gateway that hold the word of all documents.
    pub(super) found: u64,
    /// Documents that hold it once a member has opened them: what shows that the search can find.
    pub(super) open_found: u64,
}

impl FieldToCloud {
    /// The result, in a line.
    pub(super) fn told(&self) -> String {
        format!(
            "the first of {} documents was at the hub after {:.1} s; the machines had to be found",
            self.documents,
            self.ways.as_secs_f64()
        )
    }
}

/// Writes at one end and reads at the other. `folder` is empty.
pub(super) async fn run(
    hub: &str,
    machine: &telemetry::DemoMachine,
    folder: &Path,
    words: &DemoCanaries,
) -> Result<FieldToCloud, CliFailure> {
    let stage = DemoFieldStage::set(hub, folder)?;
    let began = Instant::now();
    let _others = [stage.start("relay")?, stage.start("gateway")?];
    let car = stage.car().await?;
    let mut documents = sealane::DocumentsClient::connect(folder.join("car.socket")).await?;
    let client = Client::connect(hub)?;
    let mut ledger = PublishedLedger::default();
    let (mut ways, mut after) = (Duration::ZERO, began);
    for number in 0..DOCUMENTS {
        // The others have more numbers than a document has room for.
        let kind = KINDS.get(number % 3).unwrap_or(&KINDS[0]);
        let (id, mut envelope) = machine.sample(kind, number)?;
        if let Value::Map(fields) = &mut envelope {
            fields.push(("note".to_owned(), words.hidden.as_str().into()));
        }
        ledger.add(id, &envelope);
        // A document that waits for its turn is stored before the first machine ends.
        let _ = documents.set(LOG, envelope).await?;
        if number == 0 {
            until_stored(&client, &stage.topic).await?;
            (ways, after) = (began.elapsed(), Instant::now());
        }
    }
    let group = client.group(stage.reader).await?;
    let read = read_back(&group, &stage.topic, &words.hidden).await?;
    let rest = after.elapsed();
    let _ = car.stop().await?;
    Ok(FieldToCloud {
        documents: DOCUMENTS as u64,
        lost: ledger.missing(&read.prints),
        ways,
        rest,
        found: holding(&folder.join("transit"), &words.hidden)?,
        open_found: read.found,
    })
}

/// All files, and the member that reads.
struct DemoFieldStage {
    folder: PathBuf,
    reader: GroupMember,
    /// The stream that the documents land in.
    topic: String,
}

impl DemoFieldStage {
    /// Makes two groups, that of the machines and that of the members, and everybody's files.
    fn set(hub: &str, folder: &Path) -> Result<DemoFieldStage, CliFailure> {
        let keys = |name: &str| KeyFolder::create(&folder.join("keys").join(name), name, None);
        let base = keys("base")?;
        let mut roads = base.new_group("roads", NewGroup::default())?;
        let mut reader = base.new_group("fleet", NewGroup::default())?;
        let (relay, gateway, car) = (keys("relay")?, keys("gateway")?, keys("car")?);
        let machines = [&relay, &gateway, &car].map(|folder| join(&mut roads, folder));
        for member in machines {
            let mut member = member?;
            for notice in roads.notices(member.orders())? {
                member.apply(&notice)?;
            }
        }
        join(&mut reader, &car)?;
        let topic = format!("mesh/{}/{LOG}", reader.tag());
        let stage = DemoFieldStage { folder: folder.to_owned(), reader, topic };
        stage.write_files(hub)?;
        Ok(stage)
    }

    fn write_files(&self, hub: &str) -> Result<(), CliFailure> {
        let reader = &self.reader;
        let card = RelayCard::new(reader.tag(), reader.epochs().newest(), reader.addresses());
        let [before, behind] = [free_port()?, free_port()?];
        let [car, near, far, gateway] = [
            link("car", before)?,
            link("near", before)?,
            link("far", behind)?,
            link("hub", behind)?,
        ];
        let documents = |name: &str| format!("[documents]\nstore = \"{name}.documents\"\n");
        let routing = |keys: &str| format!("[routing]\nkeys = \"{keys}\"\ngroup = \"roads\"\n");
        let head = "version = 1\ncards = [\"fleet.card\"]\n";
        let relay = [head, &near, &far, &routing("../keys/relay"), &documents("relay")].concat();
        let role = "role = \"gateway\"\n";
        let to_hub = format!("[gateway]\nhub = \"{hub}\"\nqueue = \"gateway.queue\"\n");
        let keys = routing("../keys/gateway");
        let gateway = [head, &gateway, &keys, role, &documents("gateway"), &to_hub].concat();
        let socket = "socket = \"car.socket\"\n";
        let car = ["version = 1\n", &car, &routing("keys/car"), &documents("car"), socket].concat();
        let transit = self.folder.join("transit");
        std::fs::create_dir_all(&transit).map_err(|error| failed(&transit, error))?;
        for (path, text) in [
            (transit.join("fleet.card"), card.to_text()),
            (transit.join("relay.toml"), relay),
            (transit.join("gateway.toml"), gateway),
            (self.folder.join("car.toml"), car),
        ] {
            std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }

    /// A relay or a gateway, as a process of its own.
    fn start(&self, verb: &str) -> Result<DemoProcess, CliFailure> {
        let file = self.folder.join("transit").join(format!("{verb}.toml"));
        let log = file.with_extension("log");
        let refused = |error| failed(&log, error);
        let program = std::env::current_exe().map_err(|e| CliFailure::Demo(e.to_string()))?;
        let mut child = Command::new(program)
            .args(["--json", verb])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).map_err(refused)?)
            .spawn()
            .map_err(refused)?;
        let out = child.stdout.take();
        let process = DemoProcess { child };
        let mut line = String::new();
        if let Some(out) = out {
            BufReader::new(out).read_line(&mut line).map_err(refused)?;
        }
        if line.is_empty() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(CliFailure::Demo(format!("the {verb} did not start: {}", said.trim())));
        }
        Ok(process)
    }

    /// The member in the field. What programs send over a mesh needs an interface, and so root;
    /// documents do not.
    async fn car(&self) -> Result<MachineHandle, CliFailure> {
        let config = MachineConfig::read(&self.folder.join("car.toml"))?;
        let folder = KeyFolder::open(&self.folder.join("keys").join("car"), None)?;
        let mesh = Some(folder.group("roads")?.into());
        let role = DaemonRole::Documents(MemberKeys { folder, group: "fleet".to_owned() });
        Ok(Machine::start(config, MachineKeys { role, mesh }).await?)
    }
}

/// A process. It is killed when this is dropped.
struct DemoProcess {
    child: Child,
}

impl Drop for DemoProcess {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// One end of a link on which machines find each other: those with the same port for everybody.
fn link(name: &str, everybody: u16) -> Result<String, CliFailure> {
    let own = free_port()?;
    Ok(format!(
        "[[link]]\nname = \"{name}\"\nudp = \"{}:{own}\"\ndiscover = true\n\
         multicast = \"{EVERYBODY}:{everybody}\"\n",
        Ipv4Addr::LOCALHOST
    ))
}

/// A port of UDP that nobody has now.
fn free_port() -> Result<u16, CliFailure> {
    let bound = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    bound.map(|address| address.port()).map_err(|error| CliFailure::Demo(error.to_string()))
}

fn failed(path: &Path, error: std::io::Error) -> CliFailure {
    CliFailure::Demo(format!("{}: {error}", path.display()))
}

/// Waits until the hub has the first document.
async fn until_stored(client: &Client, topic: &str) -> Result<(), CliFailure> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(MAX_DEMO_FIELD_WAIT_MS) {
        // Before it, there is no such stream.
        if client
            .read(topic, StartPosition::First, 1)
            .await
            .is_ok_and(|page| !page.messages.is_empty())
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(DEMO_FIELD_LOOK_MS)).await;
    }
    Err(CliFailure::Demo("nothing came from the field to the hub".into()))
}

/// The messages that a member has read.
#[derive(Default)]
struct DemoFieldReceived {
    prints: HashMap<String, u64>,
    /// Messages that hold a word.
    found: u64,
}

async fn read_back(
    group: &GroupClient,
    topic: &str,
    word: &str,
) -> Result<DemoFieldReceived, CliFailure> {
    let mut sealed = group.subscribe(topic).from(StartPosition::First).await?;
    let mut received = DemoFieldReceived::default();
    while received.prints.len() < DOCUMENTS {
        let patience = Duration::from_millis(MAX_DEMO_FIELD_WAIT_MS);
        let Ok(Some(message)) = tokio::time::timeout(patience, sealed.next()).await else { break };
        let envelope = message?.value()?;
        let note = envelope.field("note").and_then(Value::as_text);
        received.found += u64::from(note == Some(word));
        if let Some(id) = envelope.field("id").and_then(Value::as_text) {
            received.prints.insert(id.to_owned(), fingerprint(&envelope));
        }
    }
    sealed.close().await;
    Ok(received)
}
