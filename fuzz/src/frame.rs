//! Frames of `sealane-frame`: both forms, relaying, fragments.

use std::collections::HashMap;

use sealane_frame::limits::{
    MAX_PARTIAL_BYTES, MAX_PARTIAL_FRAMES, MAX_PARTIAL_TOTAL_BYTES, MAX_SHORT_PARTIALS,
};
use sealane_frame::{
    CompactUnit, CompactView, Definition, DictionaryEntry, Fragment, FrameAnnouncement, FrameBatch,
    FrameDictionary, FrameError, FrameRoster, FrameUnit, FrameView, GroupTag, LinkContext, PeerTag,
    Reassembly, ReassemblyProgress, ShortReassembly, Vocabulary, Word, forward_compact_in_place,
    forward_in_place, to_compact, to_full,
};
use sealane_seal::{Epoch, SenderContext, Slot};

const OWN: PeerTag = PeerTag::from_bytes([0x52; 8]);
const NEXT: PeerTag = PeerTag::from_bytes([0x53; 8]);

/// A frame of the full form from anywhere: what reads it agrees, and a relay touches its own bytes
/// only.
pub fn frame(bytes: &[u8]) {
    let parsed = FrameView::parse(bytes);
    if let Err(error) = &parsed {
        assert!(error.info().code.starts_with("SL-FRAME-"));
    }
    let mut relayed = bytes.to_vec();
    let forwarded = forward_in_place(&mut relayed, NEXT, OWN);
    if forwarded.is_err() {
        assert_eq!(relayed, bytes);
    } else {
        assert_eq!(relayed[17..], bytes[17..]);
        assert_eq!(relayed[16], bytes[16].min(15) - 1);
    }
    let Ok(view) = parsed else { return };
    let header = view.header();
    assert_eq!(header.as_bytes(), &bytes[..64]);
    assert_eq!(header.sequence(), view.seal_header().counter);
    assert_eq!(header.context().0, bytes[55..63]);
    assert_eq!(header.orders(), bytes[63]);
    let may_relay = header.hop_limit() > 0;
    let is_ours = header.next_hop() == OWN || header.next_hop() == PeerTag::BROADCAST;
    assert_eq!(forwarded.is_ok(), may_relay && is_ours);
    let back = FrameView::parse(&relayed).map(|view| view.header().authenticated().to_vec());
    assert_eq!(back, Ok(header.authenticated().to_vec()));
}

/// Differential: a compact frame becomes a full one that reads as well, and comes back from it byte
/// by byte; a full frame that has a compact form likewise. The first byte says which it is.
pub fn compact(bytes: &[u8]) {
    let Some((&form, bytes)) = bytes.split_first() else { return };
    let (dictionary, roster) = context();
    let link =
        LinkContext { dictionary: &dictionary, roster: &roster, next_hop: OWN, previous_hop: NEXT };
    let (mut other, mut back) = (vec![], vec![]);
    if form & 1 == 0 {
        let view = CompactView::parse(bytes, &link);
        if to_full(bytes, &link, &mut other).is_err() {
            assert!(other.is_empty());
            return;
        }
        let view = view.expect("it has a full form");
        let full = FrameView::parse(&other).expect("the full form of a compact frame");
        assert_eq!(full.header(), &view.header(&link).expect("its header"));
        assert_eq!(full.seal_header(), view.seal_header());
        to_compact(&other, &link, &mut back).expect("what came from this link");
        let mut relayed = bytes.to_vec();
        let forwarded = forward_compact_in_place(&mut relayed, bytes[1]);
        assert_eq!(forwarded.is_ok(), view.hop_limit() > 0);
        assert_eq!(relayed[1..], bytes[1..]);
    } else {
        if to_compact(bytes, &link, &mut other).is_err() {
            assert!(other.is_empty());
            return;
        }
        to_full(&other, &link, &mut back).expect("what was made compact");
        // A hop limit beyond the maximum is read as the maximum.
        let mut expected = bytes.to_vec();
        expected[16] = expected[16].min(15);
        assert_eq!(back, expected);
        return;
    }
    assert_eq!(back, bytes);
}

/// Units of one or two neighbours, each behind its length in one byte and the hundreds of
/// milliseconds that have passed in another: bounds hold, and what comes whole is what a plain
/// model makes of the same parts.
pub fn fragments(bytes: &[u8]) {
    let (mut reassembly, mut now_ms, mut rest) = (Reassembly::new(), 0, bytes);
    let mut parts: HashMap<(u8, u16), Vec<Vec<u8>>> = HashMap::new();
    while let [len, passed, from, after @ ..] = rest {
        let (unit, next) = after.split_at(after.len().min(usize::from(*len)));
        rest = next;
        now_ms += u64::from(*passed) * 100;
        let peer = PeerTag::from_hash([from & 1; 8]);
        let Ok(FrameUnit::Fragment(fragment)) = FrameUnit::parse(unit) else {
            if let Ok(FrameUnit::Batch(batch)) = FrameUnit::parse(unit) {
                again(batch, unit);
            }
            continue;
        };
        assert_eq!([&fragment.header()[..], fragment.part()].concat(), unit);
        let seen = parts.entry((from & 1, fragment.id)).or_default();
        seen.push(fragment.part().to_vec());
        match reassembly.push(peer, now_ms, &fragment) {
            Ok(ReassemblyProgress::Whole(frame)) => {
                assert!(seen.iter().any(|part| frame.starts_with(part)));
                split_again(frame, fragment);
            }
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, FrameError::MixedFragments | FrameError::FragmentConflict))
            }
        }
        let (frames, held) = reassembly.held(peer);
        assert!(frames <= MAX_PARTIAL_FRAMES && (frames <= 1 || held <= MAX_PARTIAL_BYTES));
        assert!(reassembly.held_bytes() <= MAX_PARTIAL_TOTAL_BYTES);
    }
}

/// Units of a compact link, of one or two neighbours, each behind its length in one byte and the
/// seconds that have passed in another.
pub fn units(bytes: &[u8]) {
    let (mut short, mut now_ms, mut rest) = (ShortReassembly::new(), 0, bytes);
    let mut heard = [Vocabulary::of_connection(), Vocabulary::of_medium(&[GroupTag::default()])];
    let mut definitions = vec![];
    while let [len, passed, from, after @ ..] = rest {
        let (unit, next) = after.split_at(after.len().min(usize::from(*len)));
        rest = next;
        now_ms += u64::from(*passed) * 1000;
        let peer = PeerTag::from_hash([from & 1; 8]);
        match CompactUnit::parse(unit) {
            Ok(CompactUnit::Short(part)) => {
                assert_eq!([&part.header()[..], part.part()].concat(), unit);
                let pushed = short.push(peer, now_ms, &part);
                assert!(!matches!(pushed, Ok(ReassemblyProgress::Whole(frame)) if frame.len() < 2));
                assert!(short.held() <= MAX_SHORT_PARTIALS);
            }
            Ok(CompactUnit::Long(long)) => {
                let mut full = vec![];
                long.expand(OWN, NEXT, &mut full);
                assert!(full.len() >= 64 && full[16..] == unit[1..]);
            }
            Ok(CompactUnit::Definition(definition)) => {
                assert_eq!(definition.to_bytes(), unit);
                heard.iter_mut().for_each(|one| define(one, &definition, now_ms));
                definitions.push(definition);
            }
            Ok(CompactUnit::Ask(byte)) => {
                assert_eq!(CompactUnit::ask(byte), unit);
                for one in &mut heard {
                    let answer = one.asked(byte, now_ms);
                    assert!(answer.is_none_or(|told| told.byte == byte));
                    assert_eq!(one.asked(byte, now_ms), None, "at once again");
                }
            }
            Ok(CompactUnit::Batch(batch)) => again(batch, unit),
            Ok(CompactUnit::Frame(_) | CompactUnit::Fragment(_)) => {}
            Err(error) => assert!(error.info().code.starts_with("SL-FRAME-")),
        }
    }
    agree(&definitions);
}

/// A defined byte stands for its entry. The vocabulary says the entry with a byte that stands for
/// it.
fn define(heard: &mut Vocabulary, definition: &Definition, now_ms: u64) {
    let Definition { byte, entry } = *definition;
    if heard.define(definition, now_ms).is_ok() {
        assert_eq!(heard.dictionary().entry(byte), Some(&entry));
        assert_eq!(heard.ask(byte, now_ms), None);
    }
    match heard.say(entry, now_ms) {
        Word::Byte(byte) | Word::Define(Definition { byte, .. }) => {
            assert_eq!(heard.dictionary().entry(byte), Some(&entry));
        }
        Word::Long => {}
    }
}

/// Two machines that hear the same on a medium, in opposite orders, know the same.
fn agree(definitions: &[Definition]) {
    let (one, other) = (hear(definitions.iter()), hear(definitions.iter().rev()));
    for byte in 0..=u8::MAX {
        assert_eq!(one.dictionary().entry(byte), other.dictionary().entry(byte), "{byte}");
    }
}

fn hear<'d>(all: impl Iterator<Item = &'d Definition>) -> Vocabulary {
    let mut heard = Vocabulary::of_medium(&[GroupTag::default()]);
    for definition in all {
        let _ = heard.define(definition, 0);
    }
    heard
}

/// Splitting the whole at the same stride gives the last fragment again.
fn split_again(frame: &[u8], last: Fragment<'_>) {
    let unit = [&last.header()[..], last.part()].concat();
    let is_same = |stride: usize| {
        let split = Fragment::split(frame, last.id, stride + 8);
        split.is_ok_and(|mut parts| parts.any(|part| part == last))
    };
    let is_tail = frame.ends_with(last.part());
    assert!(is_same(last.part().len()) || is_tail && unit[4] & 0x80 != 0);
}

/// A batch written from its items is the batch.
fn again(batch: FrameBatch<'_>, unit: &[u8]) {
    let mut written = vec![];
    batch.for_each(|item| FrameBatch::append(&mut written, item).expect("an item of a batch"));
    assert_eq!(written, unit);
}

/// Entries of every class, and a few members.
fn context() -> (FrameDictionary, FrameRoster) {
    let (mut dictionary, mut roster) = (FrameDictionary::new(), FrameRoster::new());
    for flags in 0..0x30 {
        let mut entry = [0xa1, 0xa1, 0xa1, 0xa1, 3, 3, 3, 3, 3, 3, 3, 3, 3, flags];
        if flags & 3 == 3 {
            entry[..4].fill(0);
        }
        let entry = DictionaryEntry::from_bytes(entry).expect("flags with a meaning");
        dictionary.define(flags, entry).expect("a free byte");
    }
    for group in [[0xa1; 4], [0; 4]].map(GroupTag::from_bytes) {
        for slot in [0, 1, 2, 700].map(|slot| Slot::new(slot).expect("a slot")) {
            roster.insert(group, slot, PeerTag::from_bytes([9; 8])).expect("room");
            // Slot 2 has not announced itself.
            if slot.number() != 2 {
                let announced = FrameAnnouncement { context: SenderContext([0xc7; 8]), orders: 7 };
                roster.announce(group, slot, announced).expect("a known slot");
            }
        }
        roster.set_epoch(group, Epoch(300));
    }
    (dictionary, roster)
}
