//! The same telemetry over a relay that holds no key: a member gets it from another through a
//! third, over links in memory, and what leaves the relay does not hold it.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use sealane::{Codec, DataType, Value};
use sealane_frame::{FrameBuf, HeaderFields, PeerTag};
use sealane_group::{EpochSource, GroupMember, GroupSender, LiveReader};
use sealane_link::{
    Config, LinkAddress, LinkConfig, LinkError, LinkInbox, LinkReady, LinkRelay, LinkWire,
    MemoryNet, RelayCard, RelayLink,
};
use sealane_seal::{Binding, Class};

use super::ledger::{PublishedLedger, fingerprint};
use super::sealed;
use super::telemetry::{DemoMachine, KINDS};
use crate::CliFailure;
use crate::limits::MAX_DEMO_RELAY_WAIT_MS;
use crate::times::now_ms;

/// Messages that are carried.
const MESSAGES: usize = 1000;
/// The ports of the relay and of its neighbours.
const OWN: u32 = 0;
const BEFORE: u32 = 1;
const BEHIND: u32 = 2;
/// The relay's own tag, which is no member's.
const RELAY: PeerTag = PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, 1]);

/// The result of the relayed part of the demo.
pub(super) struct DemoRelayReport {
    pub(super) messages: u64,
    pub(super) lost: u64,
    /// From a message to the same message at its reader, sealed, relayed and opened.
    pub(super) us_per_message: f64,
    /// Frames behind the relay that held a word of their message.
    pub(super) found: u64,
    /// The same after they were opened: what shows that the search can find.
    pub(super) open_found: u64,
}

impl DemoRelayReport {
    /// The carried messages, in a line.
    pub(super) fn told(&self) -> String {
        let DemoRelayReport { messages, lost, us_per_message, .. } = self;
        let each = format!("{us_per_message:.0} us each");
        format!("{messages} messages from member to member, {each}, {lost} lost")
    }
}

/// Carries telemetry and a word that is looked for. `keys` is an empty folder.
pub(super) fn run(
    machine: &DemoMachine,
    keys: &Path,
    word: &str,
) -> Result<DemoRelayReport, CliFailure> {
    let (gateway, dashboard) = sealed::members(keys)?;
    let mut way = DemoRelayPath::open(&dashboard)?;
    let (mut sender, mut buf) = (gateway.sender()?, FrameBuf::new());
    let mut end = DemoRelayEnd { reader: dashboard.live_reader()?, word, found: 0, open_found: 0 };
    way.send(sender.announce(&mut buf)?)?;
    end.hear(&mut way.receive()?)?;
    let fields = HeaderFields {
        next_hop: RELAY,
        destination: dashboard.source()?,
        codec: 0,
        ..sender.fields(Class::Group, DataType::VITALS.number())
    };
    let mut ledger = PublishedLedger::default();
    let mut received = HashMap::new();
    let began = Instant::now();
    for number in 0..MESSAGES {
        let kind = KINDS.get(number % KINDS.len()).unwrap_or(&KINDS[0]);
        let (id, mut envelope) = machine.sample(kind, number)?;
        if let Value::Map(fields) = &mut envelope {
            fields.push(("note".to_owned(), word.into()));
        }
        ledger.add(id, &envelope);
        way.send(seal(&mut sender, &fields, &envelope, &mut buf)?)?;
        // A message that does not come is missing when the ledger is compared.
        let Ok(mut frame) = way.receive() else { break };
        received.extend(end.open(&mut frame));
    }
    let spent = began.elapsed();
    way.relay.stop();
    Ok(DemoRelayReport {
        messages: MESSAGES as u64,
        lost: ledger.missing(&received),
        us_per_message: spent.as_secs_f64() * 1e6 / MESSAGES as f64,
        found: end.found,
        open_found: end.open_found,
    })
}

fn seal<'b>(
    sender: &mut GroupSender,
    fields: &HeaderFields,
    envelope: &Value,
    buf: &'b mut FrameBuf,
) -> Result<&'b [u8], CliFailure> {
    let mut body = Vec::new();
    sealane_codec::encode(Codec::Cbor, envelope, &mut body);
    Ok(sender.seal(fields, &Binding::link(), &body, buf)?)
}

/// The reader, and what it looks for in frames before it opens them.
struct DemoRelayEnd<'w> {
    reader: LiveReader,
    word: &'w str,
    found: u64,
    open_found: u64,
}

impl DemoRelayEnd<'_> {
    fn hear(&mut self, frame: &mut [u8]) -> Result<(), CliFailure> {
        self.reader.announced(frame, now_ms())?;
        Ok(())
    }

    /// The id of a message and its fingerprint; none where it does not open.
    fn open(&mut self, frame: &mut [u8]) -> Option<(String, u64)> {
        let word = self.word.as_bytes();
        let holds = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        self.found += u64::from(holds(frame));
        let opened = self.reader.open(&Binding::link(), frame, now_ms()).ok()?;
        self.open_found += u64::from(holds(opened.body));
        let envelope = sealane_codec::decode(Codec::Cbor, opened.body).ok()?;
        let id = envelope.field("id").and_then(Value::as_text)?.to_owned();
        Some((id, fingerprint(&envelope)))
    }
}

/// A relay, and the links of its two neighbours.
struct DemoRelayPath {
    relay: LinkRelay,
    before: RelayLink,
    behind: RelayLink,
    inbox: LinkInbox,
}

impl DemoRelayPath {
    fn open(member: &GroupMember) -> Result<DemoRelayPath, CliFailure> {
        let card = RelayCard::new(member.tag(), member.epochs().newest(), member.addresses());
        let net = MemoryNet::new();
        let link = |port| {
            let config = LinkConfig::new("own", LinkWire::Memory(port), 1500);
            RelayLink::open(&config, Some(&net)).map_err(failed)
        };
        let (before, behind) = (link(BEFORE)?, link(BEHIND)?);
        let mut config = Config::parse(&config()).map_err(failed)?;
        config.memory = Some(net.clone());
        let relay = LinkRelay::start(&config, &[card]).map_err(failed)?;
        Ok(DemoRelayPath { relay, before, behind, inbox: LinkInbox::new() })
    }

    fn send(&self, frame: &[u8]) -> Result<(), CliFailure> {
        match self.before.send(LinkAddress::Memory(OWN), frame, frame.len()).stopped {
            None => Ok(()),
            Some(error) => Err(CliFailure::Demo(format!("a frame: {error}"))),
        }
    }

    /// The next frame that the relay passes on; its notes are passed over.
    fn receive(&mut self) -> Result<Vec<u8>, CliFailure> {
        let lost = || CliFailure::Demo("nothing came over the relay".to_owned());
        loop {
            let patience = Duration::from_millis(MAX_DEMO_RELAY_WAIT_MS);
            if !self.behind.wait(LinkReady::ToReceive, patience).map_err(|_| lost())? {
                return Err(lost());
            }
            let Ok(count) = self.behind.receive(&mut self.inbox) else { continue };
            let frames = self.inbox.batches(count).map(|(_, segments)| segments.to_vec());
            // One frame is on the way at a time.
            if let Some(frame) = frames.into_iter().find(|unit| unit.first() != Some(&NOTE)) {
                return Ok(frame);
            }
        }
    }
}

/// The first byte of a relay's notes: `spec/link.md`, section *Notes*.
const NOTE: u8 = 1;

fn failed(error: LinkError) -> CliFailure {
    CliFailure::Demo(format!("the relay: {error}"))
}

/// A relay between the founder of a group, which has slot 0, and who joined it.
fn config() -> String {
    let own = format!("[[link]]\nname = \"road\"\nmemory = {OWN}\n");
    let neighbour = |slot: u8, port: u32| {
        format!(
            "[[neighbour]]\nname = \"{slot}\"\ntag = \"slot {slot}\"\nlink = \"road\"\n\
             address = \"memory {port}\"\n[[route]]\nto = \"slot {slot}\"\nvia = \"{slot}\"\n"
        )
    };
    let neighbours = [neighbour(0, BEFORE), neighbour(1, BEHIND)].concat();
    format!("version = 1\ntag = \"{RELAY}\"\n{own}{neighbours}")
}
