//! The units of compact links: vectors.

use sealane_frame::{
    CompactUnit, Definition, DictionaryEntry, FrameError, GroupTag, HeaderFields, LongFrame,
    PeerTag, Reassembly, ReassemblyProgress, ShortFragment, ShortReassembly, Vocabulary,
};
use serde::Serialize;

use super::members::{READER, RELAY};
use super::vectors::hex;

/// A link, what it hands over, and what comes of it.
#[derive(Serialize)]
pub(crate) struct Case {
    name: String,
    /// The groups at home on a medium; none on a connection.
    groups: Option<Vec<String>>,
    next_hop: String,
    previous_hop: String,
    units: Vec<String>,
    frames: Vec<String>,
    /// The definitions in the end, but for those that are fixed.
    defined: Vec<(u8, String)>,
    error: Option<String>,
}

/// The link of a case.
struct Link {
    vocabulary: Vocabulary,
    reassembly: Reassembly,
    short: ShortReassembly,
    frames: Vec<String>,
}

impl Link {
    fn push(&mut self, unit: &[u8]) -> Result<(), FrameError> {
        let whole = match CompactUnit::parse(unit)? {
            CompactUnit::Batch(batch) => {
                return batch.into_iter().try_for_each(|item| self.push(item));
            }
            CompactUnit::Definition(definition) => return self.vocabulary.define(&definition, 0),
            CompactUnit::Ask(_) => return Ok(()),
            CompactUnit::Fragment(part) => self.reassembly.push(RELAY, 0, &part)?,
            CompactUnit::Short(part) => self.short.push(RELAY, 0, &part)?,
            CompactUnit::Frame(_) | CompactUnit::Long(_) => return self.frame(unit),
        };
        match whole {
            ReassemblyProgress::Whole(frame) => {
                let frame = frame.to_vec();
                self.frame(&frame)
            }
            _ => Ok(()),
        }
    }

    fn frame(&mut self, unit: &[u8]) -> Result<(), FrameError> {
        match CompactUnit::parse(unit)? {
            CompactUnit::Frame(frame) => self.frames.push(hex(frame)),
            CompactUnit::Long(long) => {
                let mut full = vec![];
                long.expand(READER, RELAY, &mut full);
                self.frames.push(hex(&full));
            }
            _ => return Err(FrameError::BadFragment),
        }
        Ok(())
    }
}

fn case(name: &str, groups: Option<&[GroupTag]>, units: Vec<Vec<u8>>) -> Case {
    let vocabulary = groups.map_or_else(Vocabulary::of_connection, Vocabulary::of_medium);
    let (reassembly, short) = (Reassembly::new(), ShortReassembly::new());
    let mut link = Link { vocabulary, reassembly, short, frames: vec![] };
    let mut error = None;
    for unit in &units {
        if let Err(refused) = link.push(unit) {
            error = Some(refused.info().code.to_owned());
        }
    }
    let dictionary = link.vocabulary.dictionary();
    let fixed = 64 * groups.map_or(0, |groups| groups.len().min(2));
    let defined = (0..=u8::MAX).filter(|byte| usize::from(*byte) >= fixed);
    let defined = defined.filter_map(|byte| Some((byte, hex(&dictionary.entry(byte)?.to_bytes()))));
    Case {
        name: name.to_owned(),
        groups: groups.map(|all| all.iter().map(|group| hex(&group.to_bytes())).collect()),
        next_hop: hex(&READER.to_bytes()),
        previous_hop: hex(&RELAY.to_bytes()),
        units: units.iter().map(|unit| hex(unit)).collect(),
        frames: link.frames,
        defined: defined.collect(),
        error,
    }
}

fn entry(number: u16) -> DictionaryEntry {
    let fields = HeaderFields::new(GroupTag::from_bytes([7; 4]), PeerTag::NOBODY, 1);
    let [low, high] = number.to_le_bytes();
    let destination = PeerTag::from_bytes([5, 0, 0, 0, 0, 0, high, low]);
    DictionaryEntry::of(&HeaderFields { destination, ..fields })
}

/// The definition that a medium's sender makes of an entry.
fn of_medium(entry: DictionaryEntry) -> Definition {
    match Vocabulary::of_medium(&[]).say(entry, 0) {
        sealane_frame::Word::Define(definition) => definition,
        word => panic!("{word:?}"),
    }
}

/// Two entries of one byte, the lesser first.
fn rivals() -> [Definition; 2] {
    let first = of_medium(entry(0));
    let other = (1..u16::MAX).map(|number| of_medium(entry(number)));
    [first, other.into_iter().find(|other| other.byte == first.byte).unwrap()]
}

fn short(frame: &[u8], id: u8, unit_bytes: usize) -> Vec<Vec<u8>> {
    let parts = ShortFragment::split(frame, id, unit_bytes).unwrap();
    parts.map(|part| [&part.header()[..], part.part()].concat()).collect()
}

/// A frame of the compact form, and another of the same length.
fn frames() -> [Vec<u8>; 2] {
    let compact: Vec<u8> = (0x80..0xc0).collect();
    let mut other = compact.clone();
    other[1..].reverse();
    [compact, other]
}

/// The unit of a frame in the full form.
fn long() -> Vec<u8> {
    let full: Vec<u8> = (1..=100).collect();
    let mut long = vec![];
    LongFrame::of(&full).unwrap().write(&mut long);
    long
}

fn define(byte: u8, number: u16) -> Vec<u8> {
    Definition { byte, entry: entry(number) }.to_bytes().to_vec()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = taken();
    all.extend(refused());
    all
}

fn taken() -> Vec<Case> {
    let ([compact, _], long) = (frames(), long());
    let a = short(&compact, 77, 20);
    let [lesser, greater] = rivals().map(|rival| rival.to_bytes().to_vec());
    let mut batch = vec![];
    for item in [&define(3, 1)[..], &compact] {
        sealane_frame::FrameBatch::append(&mut batch, item).unwrap();
    }
    let medium = Some(&[][..]);
    let backwards = a.iter().rev().cloned().collect();
    let repeated = vec![a[0].clone(), a[0].clone(), a[1].clone(), a[2].clone(), a[3].clone()];
    vec![
        case("a compact frame", None, vec![compact.clone()]),
        case("a frame in the full form", None, vec![long.clone()]),
        case("short fragments", None, a.clone()),
        case("short fragments the other way round, one of them twice", None, {
            let mut units: Vec<_> = backwards;
            units.insert(1, a[3].clone());
            units
        }),
        case("a short fragment comes twice", None, repeated),
        case("short fragments of a frame in the full form", None, short(&long, 3, 40)),
        case("a definition and a frame in one batch", None, vec![batch.clone()]),
        case("a definition twice", None, vec![define(9, 1), define(9, 1)]),
        case("two senders on a medium, the lesser entry first", medium, {
            vec![lesser.clone(), greater.clone()]
        }),
        case("two senders on a medium, the greater entry first", medium, {
            vec![greater.clone(), lesser.clone()]
        }),
        case("a question, which changes nothing", None, vec![vec![4, 9]]),
    ]
}

fn refused() -> Vec<Case> {
    let ([compact, other], long) = (frames(), long());
    let (a, b) = (short(&compact, 77, 20), short(&other, 77, 20));
    let [lesser, _] = rivals().map(|rival| rival.to_bytes().to_vec());
    let with = |unit: &[u8], at: usize, byte: u8| {
        let mut unit = unit.to_vec();
        unit[at] = byte;
        unit
    };
    let groups: Vec<_> = [1, 2].map(|n| GroupTag::from_bytes([n; 4])).into();
    let medium = Some(&groups[..0]);
    vec![
        case("a definition with another meaning", None, vec![define(9, 1), define(9, 2)]),
        case("a fixed byte is defined", Some(&groups), vec![define(9, 1)]),
        case("a byte that is not the entry's own", medium, vec![with(&lesser, 1, lesser[1] ^ 1)]),
        case("a definition that ends early", None, vec![define(9, 1)[..15].to_vec()]),
        case("a definition that is too long", None, vec![[define(9, 1), vec![0]].concat()]),
        case("reserved bits in an entry", None, vec![with(&define(9, 1), 15, 0x40)]),
        case("other bytes for one part", None, vec![a[0].clone(), b[0].clone()]),
        case("another stride", None, vec![a[0].clone(), short(&compact, 77, 19)[1].clone()]),
        case("two last parts", None, vec![a[3].clone(), short(&other, 77, 17)[4].clone()]),
        case("a last part that is the only one", None, vec![vec![0x40, 0x40, 9]]),
        case(
            "a part longer than a short link carries",
            None,
            vec![[vec![0x40, 0], vec![9; 62]].concat()],
        ),
        case("a header without a part", None, vec![vec![0x40, 0]]),
        case("a unit of a later version", None, vec![vec![5, 1, 2, 3]]),
        case("a frame in the full form that is cut", None, vec![long[..48].to_vec()]),
        case("a fragment that makes no frame", None, short(&[3; 50], 1, 30)),
        case("nothing at all", None, vec![vec![]]),
    ]
}
