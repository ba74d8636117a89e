//! The content of `vectors/document/exchange.json`: the exchange of neighbours about documents.

use sealane_document::agent::{OutboxScope, StrangerGroup};
use sealane_document::exchange::{differing, digest, inventory, lacks, overview, read_frames};
use sealane_document::{
    DocumentAgent, DocumentQuota, DocumentStore, RegisterEntry, RegisterSet, ShelfKeeper, entry_of,
    stream_name,
};
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_message::DataType;
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext,
    SigningKey, Slot, Suite,
};
use sealane_testing::hex;
use serde_json::{Value, json};

/// The text of the file.
pub(crate) fn text() -> String {
    let cases = [digests(), compared(), messages(), refused()].concat();
    format!("{:#}\n", Value::Array(cases))
}

const GROUP: GroupTag = GroupTag::from_bytes([0x61, 0x62, 0x63, 0x64]);
/// The salt of the overviews here.
const SALT: u8 = 0xa5;

fn slot(number: u16) -> Slot {
    Slot::new(number).expect("a slot")
}

fn tag(number: u16) -> PeerTag {
    let [low, high] = number.to_le_bytes();
    PeerTag::from_hash([0x70, low, high, 1, 2, 3, 4, 5])
}

/// A member that seals.
struct Origin {
    slot: u16,
    sealer: Sealer,
}

impl Origin {
    fn new(number: u16, epoch: u64, counter: u64) -> Self {
        let group = Group::new(GroupId([7; 32]), Suite::ChaCha20Poly1305);
        let secret = |epoch: u64| EpochSecret::new([epoch as u8; 32]);
        let mut epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret(0));
        (1..=epoch).for_each(|epoch| epochs.insert(Epoch(epoch), secret(epoch)).unwrap());
        let context = SenderContext([number as u8, 9, 8, 7, 6, 5, 4, 3]);
        let mut sealer = Sealer::new(group, slot(number), context, &epochs, counter).unwrap();
        sealer.set_signing_key(SigningKey::from_seed(&[number as u8; 32]).unwrap());
        Self { slot: number, sealer }
    }

    fn seal(&mut self, data_type: u16, class: Class, body: &[u8]) -> Vec<u8> {
        let binding = Binding::stream(&stream_name(GROUP, DataType::from_number(data_type)));
        let fields = HeaderFields {
            class,
            orders: 3,
            next_hop: PeerTag::BROADCAST,
            previous_hop: PeerTag::NOBODY,
            hop_limit: 0,
            ..HeaderFields::new(GROUP, tag(self.slot), data_type)
        };
        let mut buf = FrameBuf::new();
        seal_frame(&mut self.sealer, &fields, &binding, body, &mut buf).unwrap().to_vec()
    }
}

/// Frames of two members in two epochs, of each class, registers and logs.
fn frames() -> Vec<Vec<u8>> {
    let (mut early, mut late) = (Origin::new(3, 0, 5), Origin::new(3, 2, 0));
    let mut other = Origin::new(300, 2, 70_000);
    vec![
        early.seal(72, Class::Group, b"sample one"),
        late.seal(72, Class::Group, b"sample two"),
        late.seal(72, Class::Group, b"sample three"),
        late.seal(4, Class::Group, &[0; 15]),
        late.seal(7, Class::Signed, &[0; 14]),
        other.seal(1, Class::Authenticated, &[1, 5]),
        other.seal(8, Class::Signed, &[0; 14]),
        other.seal(8, Class::Signed, &[1; 14]),
    ]
}

const NEWEST: Epoch = Epoch(2);

fn entries(frames: &[Vec<u8>]) -> Vec<RegisterEntry> {
    frames.iter().map(|frame| entry_of(frame, NEWEST).unwrap()).collect()
}

fn holding(frames: &[Vec<u8>]) -> RegisterSet {
    let mut registers = RegisterSet::new();
    entries(frames).into_iter().for_each(|entry| {
        registers.take(entry);
    });
    registers
}

fn hexes(frames: &[Vec<u8>]) -> Value {
    frames.iter().map(|frame| hex(frame)).collect()
}

/// The digests for hellos of frames that are held.
fn digests() -> Vec<Value> {
    let all = frames();
    let of = |name: &str, held: &[Vec<u8>]| {
        let mut store =
            DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
        store.set_epoch(GROUP, NEWEST);
        held.iter().for_each(|frame| {
            store.take(frame, PeerTag::NOBODY).unwrap();
        });
        let mut agent = DocumentAgent::new(slot(1), store, 400);
        json!({
            "name": name, "group": hex(&GROUP.to_bytes()), "newest": NEWEST.0, "held": hexes(held),
            "registers_hash": hex(&digest(&holding(held))), "digest": hex(&agent.digest()),
        })
    };
    vec![of("a digest of nothing", &[]), of("of one frame", &all[3..4]), of("of all", &all)]
}

/// The results of an overview, and of the inventory that answers it.
fn compared() -> Vec<Value> {
    let all = frames();
    let of = |name: &str, ours: &[Vec<u8>], theirs: &[Vec<u8>]| {
        let (held, other) = (holding(ours), holding(theirs));
        let overview = overview(&other, SALT, 400).remove(0);
        let origins = differing(&held, &overview).unwrap();
        let asked = inventory(&other, &origins, 400).remove(0);
        let given = lacks(&held, &asked).unwrap();
        let given: Vec<String> = given.iter().map(|entry| hex(entry.frame())).collect();
        let message = |part: &[u8]| hex(&[&GROUP.to_bytes()[..], part].concat());
        json!({
            "name": name, "group": hex(&GROUP.to_bytes()), "newest": NEWEST.0, "held": hexes(ours),
            "overview": message(&overview),
            "differing": origins.iter().map(|slot| slot.number()).collect::<Vec<_>>(),
            "inventory": message(&asked), "given": given,
        })
    };
    let mut changed = all.clone();
    // The last byte of a tag: another frame of the same stamp.
    changed[4].last_mut().map(|last| *last ^= 1).unwrap();
    vec![
        of("one who holds nothing is given all, urgent ones first", &all, &[]),
        of("one who lacks the newest of a log", &all, &[&all[..2], &all[3..]].concat()),
        of("one who lacks a member", &all, &all[..5]),
        of("frames of one stamp and different marks", &all, &changed),
    ]
}

/// The messages of an agent, as they travel.
fn messages() -> Vec<Value> {
    let all = frames();
    let registers = holding(&all);
    let message = |part: &[u8]| [&GROUP.to_bytes()[..], part].concat();
    let mut messages = vec![
        ("an overview of all", message(&overview(&registers, SALT, 400)[0])),
        ("an overview of a part", message(&overview(&registers, SALT, 12)[1])),
        ("an overview of nothing", vec![0, 0, 0, 0, 1, 7, 0, 0, 0xff, 3]),
        ("an inventory", message(&inventory(&registers, &[slot(3), slot(300)], 400)[0])),
        ("an inventory of nothing", message(&inventory(&RegisterSet::new(), &[slot(5)], 400)[0])),
    ];
    let mut unopened = message(&inventory(&registers, &[slot(3)], 400)[0]);
    unopened[4] = 3;
    messages.push(("an inventory of one without keys", unopened));
    messages.push(("frames in the brief form", told(&all)));
    // Twice its length and one more, as LEB128 of two bytes.
    let whole = &all[3][17..];
    let head = 2 * whole.len() + 1;
    let head = [(head & 0x7f | 0x80) as u8, (head >> 7) as u8];
    messages.push(("a whole frame", message(&[&[4][..], &head, whole].concat())));
    let says = |(name, message): (&str, Vec<u8>)| {
        let mut case = json!({ "name": name, "message": hex(&message), "error": null });
        if message[4] == 4 {
            let group = GroupTag::from_bytes(*message.first_chunk().unwrap());
            let read = read_frames(group, &message[4..]).unwrap();
            case["frames"] = read.iter().map(|frame| hex(&frame[17..])).collect();
        }
        case
    };
    messages.into_iter().map(says).collect()
}

/// The message in which a machine without keys hands frames on.
fn told(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut store = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
    store.set_epoch(GROUP, NEWEST);
    let mut agent = DocumentAgent::new(slot(1), store, 4000);
    let members = [3, 300].map(|number| (slot(number), tag(number)));
    let members = members.into_iter().collect();
    agent.set_strangers(vec![StrangerGroup { group: GROUP, newest: NEWEST, members }]);
    for frame in frames {
        agent.write(frame, tag(1)).unwrap();
    }
    let mut told = vec![];
    while let Some(telling) = agent.next_telling(0, OutboxScope::All) {
        told.push(telling.message);
    }
    let longest = told.into_iter().max_by_key(Vec::len);
    longest.expect("a message of frames")
}

fn refused() -> Vec<Value> {
    let said = told(&frames()[3..4]);
    let cut = said[..said.len() - 1].to_vec();
    let mut short = said.clone();
    // A brief form that ends before its tag is whole.
    short.truncate(6 + 30);
    short[5] = 60;
    let mut kid = said.clone();
    // The config byte of the SFrame header says a counter that is not in its shortest form.
    kid[6 + 20] |= 0x0f;
    let group = |rest: &[u8]| [&GROUP.to_bytes()[..], rest].concat();
    let cases = [
        ("a message without a sort", group(&[])),
        ("a sort that is not known", group(&[5])),
        ("an overview that ends early", group(&[1, 0, 0, 0])),
        ("an overview of slots that are none", group(&[1, 0, 0, 0, 0xff, 0xff])),
        ("an overview beyond its range", group(&[1, 0, 0, 0, 1, 0, 2, 9, 9, 9])),
        ("a gap that is not in its shortest form", group(&[1, 0, 0, 0, 9, 0, 0x81, 0, 9, 9, 9])),
        ("an inventory with an origin twice", group(&[2, 1, 0, 0, 1, 0, 0])),
        ("an inventory with no frames", group(&[2, 1, 0, 1, 4, 0, 0, 0])),
        ("an inventory whose stamps do not fall", group(&[2, 1, 0, 1, 4, 2, 0, 0, 1, 1, 0, 0])),
        ("a frame that is cut", cut),
        ("a brief form that is cut", short),
        ("a brief form with another SFrame header", kid),
        ("a frame that is too long", group(&[4, 0xff, 0x7f])),
    ];
    let error_of = |message: &[u8]| {
        let error = match message.get(4) {
            Some(1) => differing(&RegisterSet::new(), &message[4..]).map(|_| ()),
            Some(2 | 3) => lacks(&RegisterSet::new(), &message[4..]).map(|_| ()),
            _ => read_frames(GROUP, &message[4..]).map(|_| ()),
        };
        error.expect_err("it is refused").info().code
    };
    let case = |(name, message): (&str, Vec<u8>)| {
        let error = error_of(&message);
        json!({ "name": name, "message": hex(&message), "error": error })
    };
    cases.into_iter().map(case).collect()
}
