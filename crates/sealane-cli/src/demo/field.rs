//! Field to cloud: a member in the field writes documents, a relay and a gateway without its keys
//! bring them to the hub, and a member elsewhere reads them. No file names a neighbour or a way:
//! the machines find each other.
//!
//! ```text
//!  this process              sealane relay      sealane gateway     sealane up     this process
//!  a member, its documents ─► UDP ────────────► UDP ──────────────► HTTP ────────► a member
//! ```

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sealane::{Client, StartPosition, Value};
use sealane_group::{EpochSource, GroupMember, KeyFolder, NewGroup};
use sealane_machine::{DaemonRole, Machine, MachineConfig, MachineHandle, MachineKeys, MemberKeys};

use super::failed;
use super::relayed::{join, relay_card};
use super::report::{DemoClaim, DemoReport};
use super::script::{DemoProcess, DemoScript, holding};
use super::telemetry::{DemoLedger, DemoMachine};
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
    lost: u64,
    /// From the start of all machines until the first document is at the hub.
    ways: Duration,
    /// From there until a reader has all.
    rest: Duration,
    /// Files of relay and gateway that hold the word of all documents.
    found: u64,
    /// Documents that hold it once a member has opened them: what shows that the search can find.
    open_found: u64,
}

impl FieldToCloud {
    /// The result, in a line.
    pub(super) fn told(&self) -> String {
        let s = self.ways.as_secs_f64();
        format!(
            "the first of {DOCUMENTS} documents was at the hub after {s:.1} s; the machines had to \
             be found"
        )
    }

    pub(super) fn add_to(&self, report: &mut DemoReport) {
        let (documents, found) = (DOCUMENTS as u64, self.found);
        report.lost += self.lost;
        report.searched(found, self.open_found);
        let figures = [("fieldToCloud", documents), ("fieldToCloudFound", found)];
        report.figures.extend(figures.map(|(name, value)| (name, value.into())));
        report.claims.push(DemoClaim {
            claim: "Field to cloud: what a member writes far from the hub is read elsewhere, over \
                    machines that find their ways.",
            measured: format!(
                "{documents} documents over a relay and a gateway without their keys: the first \
                 after {:.1} s, in which they found each other and the gateway waited for earlier \
                 ones, the others in {:.2} s more, {} lost. Their word stands in {found} files of \
                 relay and gateway.",
                self.ways.as_secs_f64(),
                self.rest.as_secs_f64(),
                self.lost
            ),
        });
    }
}

/// Writes at one end and reads at the other. `folder` is not there yet.
pub(super) async fn run(
    script: &DemoScript,
    machine: &DemoMachine,
    folder: &Path,
    word: &str,
) -> Result<FieldToCloud, CliFailure> {
    let stage = DemoFieldStage::set(&script.hub, folder)?;
    let began = Instant::now();
    let start = async |verb: &str| {
        let words = format!("{verb} field/transit/{verb}.toml");
        DemoProcess::start(script, &words, stage.folder.join(format!("transit/{verb}.log"))).await
    };
    let _others = [start("relay").await?, start("gateway").await?];
    let car = stage.car().await?;
    let mut documents = sealane::DocumentsClient::connect(folder.join("car.socket")).await?;
    let client = Client::connect(&script.hub)?;
    let mut sent = DemoLedger::default();
    let (mut ways, mut after) = (Duration::ZERO, began);
    for number in 0..DOCUMENTS {
        // Only the first kinds: the others have more numbers than a document has room for.
        let envelope = machine.sample_with(number / 3 * 5 + number % 3, word)?;
        sent.add(&envelope);
        // A document that waits for its turn is stored before the first machine ends.
        let _ = documents.set(LOG, envelope).await?;
        if number == 0 {
            until_stored(&client, &stage.topic).await?;
            (ways, after) = (began.elapsed(), Instant::now());
        }
    }
    let group = client.group(stage.reader).await?;
    let mut sealed = group.subscribe(&stage.topic).from(StartPosition::First).await?;
    let (mut received, mut open_found) = (DemoLedger::default(), 0);
    let patience = Duration::from_millis(MAX_DEMO_FIELD_WAIT_MS);
    while received.len() < DOCUMENTS as u64 {
        let Ok(Some(message)) = tokio::time::timeout(patience, sealed.next()).await else { break };
        let envelope = message?.value()?;
        let note = envelope.field("note").and_then(Value::as_text);
        open_found += u64::from(note == Some(word));
        received.add(&envelope);
    }
    sealed.close().await;
    let rest = after.elapsed();
    let _ = car.stop().await?;
    let found = holding(&folder.join("transit"), word)?;
    Ok(FieldToCloud { lost: sent.missing(&received), ways, rest, found, open_found })
}

/// Waits until the hub has the first document.
async fn until_stored(client: &Client, topic: &str) -> Result<(), CliFailure> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(MAX_DEMO_FIELD_WAIT_MS) {
        // Before it, there is no such stream.
        let page = client.read(topic, StartPosition::First, 1).await;
        if page.is_ok_and(|page| !page.messages.is_empty()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(DEMO_FIELD_LOOK_MS)).await;
    }
    Err(failed("nothing came from the field to the hub"))
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
        let [before, behind] = [free_port()?, free_port()?];
        let (car, near) = (link("car", before)?, link("near", before)?);
        let (far, cloud) = (link("far", behind)?, link("hub", behind)?);
        let documents = |name: &str| format!("[documents]\nstore = \"{name}.documents\"\n");
        let routing = |keys: &str| format!("[routing]\nkeys = \"{keys}\"\ngroup = \"roads\"\n");
        let head = "version = 1\ncards = [\"fleet.card\"]\n";
        let to_hub = format!("[gateway]\nhub = \"{hub}\"\nqueue = \"gateway.queue\"\n");
        let (relay_keys, gateway_keys) = (routing("../keys/relay"), routing("../keys/gateway"));
        let files = [
            ("transit/fleet.card", relay_card(&self.reader).to_text()),
            ("transit/relay.toml", [head, &near, &far, &relay_keys, &documents("relay")].concat()),
            (
                "transit/gateway.toml",
                [
                    head,
                    &cloud,
                    &gateway_keys,
                    "role = \"gateway\"\n",
                    &documents("gateway"),
                    &to_hub,
                ]
                .concat(),
            ),
            (
                "car.toml",
                [
                    "version = 1\n",
                    &car,
                    &routing("keys/car"),
                    &documents("car"),
                    "socket = \"car.socket\"\n",
                ]
                .concat(),
            ),
        ];
        std::fs::create_dir_all(self.folder.join("transit")).map_err(failed)?;
        files.into_iter().try_for_each(|(name, text)| {
            std::fs::write(self.folder.join(name), text).map_err(failed)
        })
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
    bound.map(|address| address.port()).map_err(failed)
}
