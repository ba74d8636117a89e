//! A machine's documents, while two neighbours tell it whatever they like.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use sealane_document::agent::{
    DocumentGroupKeys, DocumentLeaver, DocumentNeighbour, OutboxScope, StrangerGroup,
};
use sealane_document::exchange::read_frames;
use sealane_document::limits::MAX_DOCUMENT_BYTES;
use sealane_document::{
    DocumentAgent, DocumentQuota, DocumentStore, RegisterEntry, RegisterSet, ShelfKeeper,
    stream_name,
};
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, RELAY_BYTES, seal_frame};
use sealane_message::DataType;
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext,
    SigningKey, Slot, Suite, Term,
};

const GROUP: GroupTag = GroupTag::from_bytes([9; 4]);
/// The machine itself, and two others.
const MEMBERS: u16 = 3;
/// The bytes that a message fills where it can.
const MESSAGE_BYTES: usize = 180;
/// The sort of a message of frames: `spec/document.md`, *Exchange*.
const FRAMES: u8 = 4;
/// More messages than anything that a neighbour tells may call for.
const TELLINGS_MAX: usize = 20_000;
/// A register and a log of applications, lines of chat, which are signed, and a type whose bodies
/// have a form.
const TYPES: [DataType; 4] =
    [DataType::from_number(64), DataType::from_number(72), DataType::CHAT, DataType::LOCATION];

/// The signing keys of the members. Making such a key takes longer than all else.
static SIGNING: LazyLock<Vec<SigningKey>> = LazyLock::new(|| {
    (0..MEMBERS).map(|slot| SigningKey::from_seed(&[slot as u8; 32]).unwrap()).collect()
});

/// The first byte says what the machine is. Steps follow it: a byte of length, a byte that says
/// what is told, by whom and when, and so many bytes.
///
/// A machine keeps nothing of who is no member, hands on what it keeps, and comes to an end with
/// it. A member keeps nothing that no member has sealed, and takes what a member seals afterwards.
pub fn agent(bytes: &[u8]) {
    let Some((&first, mut rest)) = bytes.split_first() else { return };
    let mut told = FuzzedAgent::new(first);
    while let Some(([length, how], after)) = rest.split_first_chunk() {
        let (body, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        told.step(*how, body);
    }
    told.check();
}

/// A machine, and members that seal.
struct FuzzedAgent {
    agent: DocumentAgent,
    keeper: ShelfKeeper,
    sealers: Vec<Sealer>,
    /// The frames that members have sealed.
    sealed: BTreeSet<Vec<u8>>,
    leaver: Option<DocumentLeaver>,
    now_ms: u64,
}

impl FuzzedAgent {
    fn new(first: u8) -> Self {
        let keeper = if first & 1 == 0 { ShelfKeeper::Member } else { ShelfKeeper::Relay };
        let quota = match first & 2 {
            0 => DocumentQuota::default(),
            _ => DocumentQuota { origin_bytes: 2048, total_bytes: 4096 },
        };
        let store = DocumentStore::in_memory(keeper, quota).unwrap();
        let mut agent = DocumentAgent::new(slot(0), store, MESSAGE_BYTES);
        agent.set_scarce(first & 4 != 0);
        if keeper == ShelfKeeper::Member {
            agent.set_group(keys()).unwrap();
        } else {
            let members = (0..MEMBERS).map(|number| (slot(number), tag(number))).collect();
            agent.set_strangers(vec![StrangerGroup { group: GROUP, newest: Epoch(0), members }]);
        }
        let leaves = first & 8 != 0 && keeper == ShelfKeeper::Member;
        let leaver = leaves.then_some(DocumentLeaver { slot: slot(2), epoch: Epoch(0), mark: 2 });
        leaver.into_iter().for_each(|one| agent.set_leaving(GROUP, vec![one]));
        let sealers = (0..MEMBERS).map(sealer).collect();
        Self { agent, keeper, sealers, sealed: BTreeSet::new(), leaver, now_ms: 0 }
    }

    /// One step: what is told, by which of two, whether that one is there, and after how long.
    fn step(&mut self, how: u8, body: &[u8]) {
        self.now_ms += u64::from(how >> 4) * 100;
        let number = 1 + u16::from(how >> 2 & 1);
        let by =
            DocumentNeighbour { slot: slot(number), tag: tag(number), is_proven: how & 8 == 0 };
        match how & 3 {
            0 => self.hear(by, body),
            1 => self.hear(by, &[&GROUP.to_bytes()[..], body].concat()),
            2 => self.agent.hear_digest(by.slot, body.first_chunk().copied()),
            _ => self.hear_sealed(by, body),
        }
        self.drain();
    }

    fn hear(&mut self, by: DocumentNeighbour, message: &[u8]) {
        self.agent.hear(by, message).unwrap();
    }

    /// A frame that a member has sealed, with one byte changed.
    fn hear_sealed(&mut self, by: DocumentNeighbour, body: &[u8]) {
        let Some(([what, place, mask], body)) = body.split_first_chunk() else { return };
        let origin = u16::from(what % 3);
        let mut frame = self.seal(origin, TYPES[usize::from(what / 3 % 4)], body);
        let places = frame.len() - RELAY_BYTES;
        frame[RELAY_BYTES + usize::from(*place) % places] ^= mask;
        self.hear(by, &message_of(&frame));
    }

    fn seal(&mut self, origin: u16, data_type: DataType, body: &[u8]) -> Vec<u8> {
        let class = if data_type == DataType::CHAT { Class::Signed } else { Class::Group };
        let fields =
            HeaderFields { class, ..HeaderFields::new(GROUP, tag(origin), data_type.number()) };
        let binding = Binding::stream(&stream_name(GROUP, data_type));
        let sealer = &mut self.sealers[usize::from(origin)];
        let mut buf = FrameBuf::new();
        let frame = seal_frame(sealer, &fields, &binding, body, &mut buf).unwrap().to_vec();
        self.sealed.insert(frame[RELAY_BYTES..].to_vec());
        frame
    }

    /// Takes all that the machine wants told, which is what it keeps and has an end.
    fn drain(&mut self) {
        for _ in 0..TELLINGS_MAX {
            let Some(telling) = self.agent.next_telling(self.now_ms, OutboxScope::All) else {
                return;
            };
            let message = telling.message;
            assert!(message.len() <= MAX_DOCUMENT_BYTES + MESSAGE_BYTES, "{}", message.len());
            if message.get(4) == Some(&FRAMES) {
                let (group, rest) = message.split_first_chunk().unwrap();
                assert_eq!(*group, GROUP.to_bytes());
                for frame in read_frames(GROUP, rest).unwrap() {
                    assert!(self.is_kept(&frame), "what is handed on is kept");
                }
            }
        }
        panic!("it tells without end");
    }

    /// The frames that are kept, and of a machine without keys those beside them.
    fn kept(&self) -> impl Iterator<Item = &RegisterEntry> {
        let store = self.agent.store();
        let beside = (0..MEMBERS).flat_map(|number| store.beside(GROUP, slot(number)));
        store.registers(GROUP).into_iter().flat_map(RegisterSet::iter).chain(beside)
    }

    fn is_kept(&self, frame: &[u8]) -> bool {
        self.kept().any(|entry| entry.frame()[RELAY_BYTES..] == frame[RELAY_BYTES..])
    }

    fn check(&mut self) {
        assert!(self.agent.store().groups().all(|group| group == GROUP), "of another group");
        for entry in self.kept() {
            assert!(entry.origin.number() < MEMBERS, "of who is no member");
            if self.keeper == ShelfKeeper::Member {
                assert!(self.sealed.contains(&entry.frame()[RELAY_BYTES..]), "sealed by no member");
                assert!(!self.has_left(entry), "of who is about to be removed");
            }
        }
        if self.keeper == ShelfKeeper::Member {
            self.takes_what_is_sealed();
        }
    }

    fn has_left(&self, entry: &RegisterEntry) -> bool {
        let leaver = self.leaver.filter(|one| one.slot == entry.origin);
        leaver.is_some_and(|one| entry.stamp.counter >= one.mark)
    }

    /// Nothing that was told before keeps a member's next frame out.
    fn takes_what_is_sealed(&mut self) {
        let frame = self.seal(1, TYPES[0], b"after all");
        let by = DocumentNeighbour { slot: slot(2), tag: tag(2), is_proven: true };
        self.hear(by, &message_of(&frame));
        assert!(self.is_kept(&frame), "a true frame is taken");
        self.drain();
    }
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn tag(number: u16) -> PeerTag {
    PeerTag::from_hash([8, number as u8, 1, 1, 1, 1, 1, 1])
}

fn keys() -> DocumentGroupKeys {
    let term = |number: u16| Term {
        slot: slot(number),
        since: Epoch(0),
        until: None,
        verifying_key: SIGNING[usize::from(number)].verifying_key(),
    };
    let terms = (0..MEMBERS).map(term).collect();
    DocumentGroupKeys { group: group(), tag: GROUP, own: slot(0), epochs: epochs(), terms }
}

fn group() -> Group {
    Group::new(GroupId([7; 32]), Suite::ChaCha20Poly1305)
}

fn epochs() -> Epochs {
    Epochs::new(group().id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]))
}

fn sealer(number: u16) -> Sealer {
    let context = SenderContext([number as u8; 8]);
    let mut sealer = Sealer::new(group(), slot(number), context, &epochs(), 0).unwrap();
    sealer.set_signing_key(SIGNING[usize::from(number)].clone());
    sealer
}

/// A message of one frame, in the whole form.
fn message_of(frame: &[u8]) -> Vec<u8> {
    let told = &frame[RELAY_BYTES..];
    let mut message = [&GROUP.to_bytes()[..], &[FRAMES]].concat();
    let mut head = (told.len() as u64) << 1 | 1;
    while head > 0x7f {
        message.push(head as u8 | 0x80);
        head >>= 7;
    }
    message.push(head as u8);
    message.extend(told);
    message
}
