//! The same telemetry through a sealed stream: a reader with the group's keys gets it back, and
//! what the hub keeps does not hold it.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use sealane::{Client, DataType, StartPosition, Value};
use sealane_frame::FrameView;
use sealane_group::{GroupMember, IdentityCard, KeyFolder, NewGroup, PastSecrets};

use super::ledger::{PublishedLedger, fingerprint};
use super::show::{hex, json};
use super::telemetry::{DemoMachine, KINDS};
use crate::CliFailure;
use crate::limits::MAX_DEMO_STALL_MS;
use crate::sealed::read;

/// Messages that are sealed.
const MESSAGES: usize = 1000;

/// The result of the sealed part of the demo.
pub(super) struct DemoSealedReport {
    pub(super) messages: u64,
    pub(super) lost: u64,
    /// Time to seal and to store, and to read and to open, for each message.
    pub(super) us_per_message: f64,
    /// The hub's view of the first of them, in one line.
    pub(super) kept: String,
    /// How its body looks there.
    pub(super) body: String,
    /// A member's view of the same message.
    pub(super) opened: String,
}

/// Words that are looked for in what the node has written.
pub(super) struct DemoCanaries {
    /// Published as it is.
    pub(super) open: String,
    /// Published sealed.
    pub(super) hidden: String,
}

impl DemoCanaries {
    pub(super) fn new() -> Result<Self, CliFailure> {
        Ok(Self { open: canary("open")?, hidden: canary("sealed")? })
    }
}

/// A word that is nowhere by chance.
fn canary(kind: &str) -> Result<String, CliFailure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| CliFailure::Demo(error.to_string()))?;
    Ok(format!("{kind}-{}", sealane_message::hex::encode(&random)))
}

/// Seals, publishes, reads and opens. `keys` is an empty folder.
pub(super) async fn run(
    hub: &str,
    machine: &DemoMachine,
    keys: &Path,
    words: &DemoCanaries,
) -> Result<DemoSealedReport, CliFailure> {
    let (gateway, dashboard) = members(keys)?;
    let client = Client::connect(hub)?;
    client.publish("demo/open", &note(&words.open)).await?;
    let gateway = client.group(gateway).await?;
    gateway.publish("demo/sealed", DataType::CHAT, &note(&words.hidden)).await?;

    let began = Instant::now();
    let mut ledger = PublishedLedger::default();
    let publisher = gateway.publisher("demo/sealed", DataType::VITALS)?;
    for number in 0..MESSAGES {
        let kind = KINDS.get(number % KINDS.len()).unwrap_or(&KINDS[0]);
        let (id, envelope) = machine.sample(kind, number)?;
        ledger.add(id, &envelope);
        publisher.send(&envelope).await?;
    }
    publisher.flush().await?;
    let received = read_back(&client, dashboard).await?;
    let spent = began.elapsed();
    let (kept, body) = as_kept(&client).await?;
    Ok(DemoSealedReport {
        messages: MESSAGES as u64,
        lost: ledger.missing(&received.prints),
        us_per_message: spent.as_secs_f64() * 1e6 / MESSAGES as f64,
        kept,
        body,
        opened: received.first,
    })
}

/// The first telemetry as the hub has it: what its header says, and the beginning of its body.
async fn as_kept(client: &Client) -> Result<(String, String), CliFailure> {
    let page = client.read("demo/sealed", StartPosition::Offset(1), 1).await?;
    let missing = || CliFailure::Demo("the sealed message is not there".into());
    let message = page.messages.first().ok_or_else(missing)?;
    let frame = read(message)?.ok_or_else(missing)?.frame;
    let view = FrameView::parse(&frame).map_err(|error| CliFailure::Demo(error.to_string()))?;
    let header = view.header();
    let kept = format!(
        "{} B: group {}, sender {}, data type {}, class {}, number {}",
        frame.len(),
        header.group(),
        header.source(),
        header.data_type(),
        header.class().letter(),
        header.sequence()
    );
    Ok((kept, hex(view.sealed())))
}

/// Two key folders in one group, joined as two machines would be.
pub(super) fn members(keys: &Path) -> Result<(GroupMember, GroupMember), CliFailure> {
    let gateway = KeyFolder::create(&keys.join("gateway"), "gateway", None)?;
    let dashboard = KeyFolder::create(&keys.join("dashboard"), "dashboard", None)?;
    let mut founder = gateway.new_group("demo", NewGroup::default())?;
    let member = join(&mut founder, &dashboard)?;
    Ok((founder, member))
}

/// Invites the owner of a key folder, who joins.
pub(super) fn join(
    founder: &mut GroupMember,
    folder: &KeyFolder,
) -> Result<GroupMember, CliFailure> {
    let card = IdentityCard::from_bytes(&folder.card()?)?;
    let invited = founder.invite(&card, PastSecrets::All)?;
    Ok(folder.join(&invited.invitation, Some(founder.authority()), None)?)
}

fn note(text: &str) -> Value {
    Value::Map(vec![("note".to_owned(), text.into())])
}

/// The messages that a member has read.
struct DemoSealedReceived {
    prints: HashMap<String, u64>,
    /// The first message, as JSON.
    first: String,
}

/// Everything that the sealed stream holds, opened.
async fn read_back(client: &Client, member: GroupMember) -> Result<DemoSealedReceived, CliFailure> {
    let group = client.group(member).await?;
    let mut sealed = group.subscribe("demo/sealed").from(StartPosition::First).await?;
    let (mut received, mut first) = (HashMap::new(), String::new());
    while received.len() < MESSAGES {
        let patience = Duration::from_millis(MAX_DEMO_STALL_MS);
        let next = tokio::time::timeout(patience, sealed.next()).await;
        let Ok(Some(message)) = next else { break };
        let envelope = message?.value()?;
        if let Some(id) = envelope.field("id").and_then(Value::as_text) {
            if first.is_empty() {
                first = json(&envelope);
            }
            received.insert(id.to_owned(), fingerprint(&envelope));
        }
    }
    sealed.close().await;
    Ok(DemoSealedReceived { prints: received, first })
}

/// How many files below a folder hold a text.
pub(super) fn holding(folder: &Path, text: &str) -> Result<u64, CliFailure> {
    let failed = |error: std::io::Error| CliFailure::Demo(format!("{}: {error}", folder.display()));
    let mut found = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            found += holding(&path, text)?;
        } else if path.is_file() {
            let mut bytes = Vec::new();
            fs::File::open(&path).and_then(|mut f| f.read_to_end(&mut bytes)).map_err(failed)?;
            let holds = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            found += u64::from(holds);
        }
    }
    Ok(found)
}
