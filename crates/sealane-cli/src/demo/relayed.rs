//! The same telemetry over a relay that holds no key: a member gets it from another through a
//! third, over links in memory, and what leaves the relay does not hold it.

use std::path::Path;
use std::time::{Duration, Instant};

use sealane::{Codec, DataType, Value};
use sealane_frame::{FrameBuf, HeaderFields, PeerTag};
use sealane_group::{
    EpochSource, GroupMember, IdentityCard, KeyFolder, LiveReader, NewGroup, PastSecrets,
};
use sealane_link::{
    Config, LinkAddress, LinkConfig, LinkInbox, LinkReady, LinkRelay, LinkWire, MemoryNet,
    RelayCard, RelayLink,
};
use sealane_seal::{Binding, Class};

use super::failed;
use super::report::{DemoClaim, DemoReport};
use super::script::holds;
use super::show::count;
use super::telemetry::{DemoLedger, DemoMachine};
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
/// The first byte of a relay's notes: `spec/link.md`, section *Notes*.
const NOTE: u8 = 1;

/// The result of the relayed part of the demo.
#[derive(Default)]
pub(super) struct DemoRelayReport {
    lost: u64,
    /// From a message to the same message at its reader, sealed, relayed and opened.
    us_per_message: f64,
    /// Frames behind the relay that held a word of their message.
    found: u64,
    /// The same after they were opened: what shows that the search can find.
    open_found: u64,
}

impl DemoRelayReport {
    /// The carried messages, in a line.
    pub(super) fn told(&self) -> String {
        let (each, lost) = (self.us_per_message, self.lost);
        format!("{MESSAGES} messages from member to member, {each:.0} us each, {lost} lost")
    }

    pub(super) fn add_to(&self, report: &mut DemoReport) {
        let (messages, found) = (MESSAGES as u64, self.found);
        report.lost += self.lost;
        report.searched(found, self.open_found);
        report.figures.extend([("relayed", messages.into()), ("relayedFound", found.into())]);
        report.claims.push(DemoClaim {
            claim: "A relay carries what members seal, and holds no key.",
            measured: format!(
                "{} messages sealed, relayed and opened, {:.0} us each. A word that was sealed in \
                 each of them stands in {found} of the frames that left the relay, and in {} of \
                 the messages that came out of them.",
                count(messages),
                self.us_per_message,
                count(self.open_found)
            ),
        });
    }
}

/// Carries telemetry and a word that is looked for. `keys` is an empty folder.
pub(super) fn run(
    machine: &DemoMachine,
    keys: &Path,
    word: &str,
) -> Result<DemoRelayReport, CliFailure> {
    let [gateway, dashboard] =
        ["gateway", "dashboard"].map(|name| KeyFolder::create(&keys.join(name), name, None));
    let mut gateway = gateway?.new_group("demo", NewGroup::default())?;
    let dashboard = join(&mut gateway, &dashboard?)?;
    let mut way = DemoRelayPath::open(&dashboard)?;
    let (mut sender, mut reader) = (gateway.sender()?, dashboard.live_reader()?);
    let mut buf = FrameBuf::new();
    way.send(sender.announce(&mut buf)?)?;
    reader.announced(&mut way.receive()?, now_ms())?;
    let fields = HeaderFields {
        next_hop: RELAY,
        destination: dashboard.source()?,
        codec: 0,
        ..sender.fields(Class::Group, DataType::VITALS.number())
    };
    let (mut sent, mut received) = (DemoLedger::default(), DemoLedger::default());
    let (mut report, began) = (DemoRelayReport::default(), Instant::now());
    for number in 0..MESSAGES {
        let envelope = machine.sample_with(number, word)?;
        sent.add(&envelope);
        let mut body = Vec::new();
        sealane_codec::encode(Codec::Cbor, &envelope, &mut body);
        way.send(sender.seal(&fields, &Binding::link(), &body, &mut buf)?)?;
        // A message that does not come is missing when the ledgers are compared.
        let Ok(mut frame) = way.receive() else { break };
        report.found += u64::from(holds(&frame, word));
        if let Some(envelope) = open(&mut reader, &mut frame, word, &mut report.open_found) {
            received.add(&envelope);
        }
    }
    report.us_per_message = began.elapsed().as_secs_f64() * 1e6 / MESSAGES as f64;
    report.lost = sent.missing(&received);
    way.relay.stop();
    Ok(report)
}

/// The message in a frame; none where it does not open.
fn open(reader: &mut LiveReader, frame: &mut [u8], word: &str, found: &mut u64) -> Option<Value> {
    let opened = reader.open(&Binding::link(), frame, now_ms()).ok()?;
    *found += u64::from(holds(opened.body, word));
    sealane_codec::decode(Codec::Cbor, opened.body).ok()
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

/// The card that relays have of a group.
pub(super) fn relay_card(member: &GroupMember) -> RelayCard {
    RelayCard::new(member.tag(), member.epochs().newest(), member.addresses())
}

/// A relay, and the links of its two neighbours.
struct DemoRelayPath {
    relay: LinkRelay,
    before: RelayLink,
    behind: RelayLink,
    inbox: LinkInbox,
}

impl DemoRelayPath {
    /// A relay between the founder of a group, who has slot 0, and the member who joined it.
    fn open(member: &GroupMember) -> Result<DemoRelayPath, CliFailure> {
        let net = MemoryNet::new();
        let link = |port| {
            let config = LinkConfig::new("own", LinkWire::Memory(port), 1500);
            RelayLink::open(&config, Some(&net)).map_err(failed)
        };
        let (before, behind) = (link(BEFORE)?, link(BEHIND)?);
        let neighbour = |slot: u8, port: u32| {
            format!(
                "[[neighbour]]\nname = \"{slot}\"\ntag = \"slot {slot}\"\nlink = \"road\"\n\
                 address = \"memory {port}\"\n[[route]]\nto = \"slot {slot}\"\nvia = \"{slot}\"\n"
            )
        };
        let own = format!("[[link]]\nname = \"road\"\nmemory = {OWN}\n");
        let neighbours = [neighbour(0, BEFORE), neighbour(1, BEHIND)].concat();
        let text = format!("version = 1\ntag = \"{RELAY}\"\n{own}{neighbours}");
        let mut config = Config::parse(&text).map_err(failed)?;
        config.memory = Some(net.clone());
        let relay = LinkRelay::start(&config, &[relay_card(member)]).map_err(failed)?;
        Ok(DemoRelayPath { relay, before, behind, inbox: LinkInbox::new() })
    }

    fn send(&self, frame: &[u8]) -> Result<(), CliFailure> {
        let sent = self.before.send(LinkAddress::Memory(OWN), frame, frame.len());
        sent.stopped.map_or(Ok(()), |error| Err(failed(error)))
    }

    /// The next frame that the relay passes on; its notes are passed over.
    fn receive(&mut self) -> Result<Vec<u8>, CliFailure> {
        let patience = Duration::from_millis(MAX_DEMO_RELAY_WAIT_MS);
        while self.behind.wait(LinkReady::ToReceive, patience).map_err(failed)? {
            let Ok(count) = self.behind.receive(&mut self.inbox) else { continue };
            let mut frames = self.inbox.batches(count).map(|(_, segments)| segments.to_vec());
            // One frame is on the way at a time.
            if let Some(frame) = frames.find(|unit| unit.first() != Some(&NOTE)) {
                return Ok(frame);
            }
        }
        Err(failed("nothing came over the relay"))
    }
}
