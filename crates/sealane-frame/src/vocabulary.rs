//! How the two ends of a compact link, or all on a medium, come to know what dictionary bytes
//! stand for: `spec/frame.md`, section *Dictionary*.

use crate::limits::{MAX_ENTRY_IDLE_MS, MIN_DEFINE_INTERVAL_MS};
use crate::{
    CompactUnit, Definition, DictionaryEntry, FrameDictionary, FrameError, GroupTag, PeerTag,
};

/// The medium of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DictionaryMedium {
    /// One direction of a connection: its sender chooses bytes.
    Connection,
    /// All who hear each other: an entry chooses its byte.
    Broadcast,
}

/// How a frame with some entry is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// In the compact form with this byte.
    Byte(u8),
    /// The same, behind this definition.
    Define(Definition),
    /// In the full form: no byte can stand for the entry.
    Long,
}

/// A dictionary and what is needed to make it known under loss. A connection has one for each
/// direction; on a medium each machine has one for all it says and hears. It holds 256 entries,
/// whoever defines what.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    medium: DictionaryMedium,
    dictionary: FrameDictionary,
    /// The groups whose entries are fixed.
    groups: usize,
    places: Vec<VocabularyEntry>,
}

/// The knowledge about one byte.
#[derive(Debug, Clone, Copy, Default)]
struct VocabularyEntry {
    /// How often it was said here.
    uses: u32,
    /// When it was defined here last.
    told_ms: Option<u64>,
    /// When anybody asked for it last.
    asked_ms: Option<u64>,
    /// When a frame of it opened last, or it was defined first.
    used_ms: u64,
}

impl Vocabulary {
    /// That of one direction of a new connection: nothing is known.
    pub fn of_connection() -> Self {
        Self::new(DictionaryMedium::Connection, FrameDictionary::new(), 0)
    }

    /// That of a medium on which these groups, of which the first two count, are at home: what
    /// they say to everybody is fixed.
    pub fn of_medium(groups: &[GroupTag]) -> Self {
        let dictionary = FrameDictionary::fixed(groups);
        Self::new(DictionaryMedium::Broadcast, dictionary, groups.len().min(FIXED_GROUPS))
    }

    fn new(medium: DictionaryMedium, dictionary: FrameDictionary, groups: usize) -> Self {
        Self { medium, dictionary, groups, places: vec![VocabularyEntry::default(); 256] }
    }

    /// The entries that bytes stand for.
    pub fn dictionary(&self) -> &FrameDictionary {
        &self.dictionary
    }

    /// How to send a frame with an entry. An entry is defined before the first frame that uses it,
    /// and again before the second, fourth, eighth and so on: whoever has missed one hears another.
    pub fn say(&mut self, entry: DictionaryEntry, now_ms: u64) -> Word {
        let byte = match self.dictionary.byte(&entry).or_else(|| self.choose(&entry, now_ms)) {
            Some(byte) => byte,
            None => return Word::Long,
        };
        if self.is_fixed(byte) {
            return Word::Byte(byte);
        }
        self.learn(Definition { byte, entry }, now_ms);
        let Some(place) = self.places.get_mut(usize::from(byte)) else { return Word::Long };
        place.used_ms = now_ms;
        place.uses = place.uses.saturating_add(1);
        if !place.uses.is_power_of_two() {
            return Word::Byte(byte);
        }
        place.told_ms = Some(now_ms);
        Word::Define(Definition { byte, entry })
    }

    /// Answers one who asks, if the entry is used here: not again within
    /// [`MIN_DEFINE_INTERVAL_MS`].
    pub fn asked(&mut self, byte: u8, now_ms: u64) -> Option<Definition> {
        let entry = *self.dictionary.entry(byte)?;
        let place = self.places.get_mut(usize::from(byte))?;
        // All who lack it hear the same question.
        place.asked_ms = Some(now_ms);
        if place.uses == 0 || !is_due(place.told_ms, now_ms) {
            return None;
        }
        place.told_ms = Some(now_ms);
        Some(Definition { byte, entry })
    }

    /// Takes a definition that came.
    ///
    /// # Errors
    ///
    /// [`FrameError::EntryConflict`] if the byte stands for something else that stays, or cannot
    /// stand for this.
    pub fn define(&mut self, definition: &Definition, now_ms: u64) -> Result<(), FrameError> {
        let Definition { byte, entry } = *definition;
        let known = self.dictionary.entry(byte);
        let is_taken = known.is_some_and(|known| *known != entry);
        let is_refused = match self.medium {
            _ if known == Some(&entry) => false,
            DictionaryMedium::Connection => is_taken,
            DictionaryMedium::Broadcast => {
                let is_own_byte = byte == hashed(&entry) && !self.is_fixed(byte);
                !is_own_byte || !self.may_take(byte, &entry, now_ms)
            }
        };
        if is_refused {
            return Err(FrameError::EntryConflict);
        }
        self.learn(*definition, now_ms);
        Ok(())
    }

    /// Has a byte stand for an entry, of which nothing was said yet if it is another one.
    fn learn(&mut self, definition: Definition, now_ms: u64) {
        let Definition { byte, entry } = definition;
        if self.dictionary.entry(byte) == Some(&entry) {
            return;
        }
        self.dictionary.replace(byte, entry);
        if let Some(place) = self.places.get_mut(usize::from(byte)) {
            *place = VocabularyEntry {
                used_ms: now_ms,
                asked_ms: place.asked_ms,
                ..VocabularyEntry::default()
            };
        }
    }

    /// The question for a byte that stands for nothing, when a frame uses it. It is asked once in
    /// [`MIN_DEFINE_INTERVAL_MS`], whatever machine asked last.
    pub fn ask(&mut self, byte: u8, now_ms: u64) -> Option<[u8; 2]> {
        let place = self.places.get_mut(usize::from(byte))?;
        if self.dictionary.entry(byte).is_some() || !is_due(place.asked_ms, now_ms) {
            return None;
        }
        place.asked_ms = Some(now_ms);
        Some(CompactUnit::ask(byte))
    }

    /// Notes that somebody else has asked for a byte.
    pub fn heard_ask(&mut self, byte: u8, now_ms: u64) {
        if let Some(place) = self.places.get_mut(usize::from(byte)) {
            place.asked_ms = Some(now_ms);
        }
    }

    /// Notes that a frame with this byte has opened: its entry is true, and stays.
    pub fn opened(&mut self, byte: u8, now_ms: u64) {
        if let Some(place) = self.places.get_mut(usize::from(byte)) {
            place.used_ms = now_ms;
        }
    }

    /// A byte for an entry that has none.
    fn choose(&self, entry: &DictionaryEntry, now_ms: u64) -> Option<u8> {
        match self.medium {
            DictionaryMedium::Connection => self.dictionary.free_byte(),
            DictionaryMedium::Broadcast => {
                Some(hashed(entry)).filter(|byte| self.may_take(*byte, entry, now_ms))
            }
        }
    }

    /// Of two entries that want one byte of a medium the lesser has it, as long as it is used: all
    /// decide alike, in whatever order they hear of them.
    fn may_take(&self, byte: u8, entry: &DictionaryEntry, now_ms: u64) -> bool {
        let Some(other) = self.dictionary.entry(byte) else { return true };
        let used_ms = self.places.get(usize::from(byte)).map_or(0, |place| place.used_ms);
        let is_idle = now_ms.saturating_sub(used_ms) >= MAX_ENTRY_IDLE_MS;
        entry.to_bytes() < other.to_bytes() || is_idle
    }

    fn is_fixed(&self, byte: u8) -> bool {
        usize::from(byte) < self.groups * FIXED_ENTRIES
    }
}

impl FrameDictionary {
    /// The entries that are fixed on a medium of these groups, of which the first two count: what
    /// is said to everybody, by class, priority and codec.
    pub fn fixed(groups: &[GroupTag]) -> Self {
        let mut dictionary = Self::new();
        for (index, group) in groups.iter().take(FIXED_GROUPS).enumerate() {
            for number in 0..FIXED_ENTRIES as u8 {
                let (class, priority, codec) = (number >> 4, number >> 2 & 3, number & 3);
                let [a, b, c, d] = if class == 3 { [0; 4] } else { group.to_bytes() };
                let [e, f, g, h, i, j, k, l] = PeerTag::BROADCAST.to_bytes();
                let flags = priority << 2 | class;
                let bytes = [a, b, c, d, e, f, g, h, i, j, k, l, codec, flags];
                if let Ok(entry) = DictionaryEntry::from_bytes(bytes) {
                    dictionary.replace((index * FIXED_ENTRIES) as u8 + number, entry);
                }
            }
        }
        dictionary
    }
}

fn is_due(last_ms: Option<u64>, now_ms: u64) -> bool {
    last_ms.is_none_or(|last| now_ms.saturating_sub(last) >= MIN_DEFINE_INTERVAL_MS)
}

/// The byte of the upper half that an entry has on a medium: FNV-1a of 32 bits over its bytes.
/// Nothing rests on it being hard to find another entry of the same byte.
fn hashed(entry: &DictionaryEntry) -> u8 {
    let hash = entry
        .to_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    let [low, ..] = (hash ^ hash >> 16).to_le_bytes();
    DEFINED | low
}

/// Groups whose entries are fixed on a medium.
const FIXED_GROUPS: usize = 2;
/// Fixed entries of one group.
const FIXED_ENTRIES: usize = 64;
/// The bit of bytes that are defined on a medium.
const DEFINED: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeaderFields;

    fn entry(number: u64) -> DictionaryEntry {
        let fields = HeaderFields::new(GroupTag::from_bytes([7; 4]), PeerTag::NOBODY, 1);
        let destination = PeerTag::from_hash(number.to_be_bytes());
        DictionaryEntry::of(&HeaderFields { destination, ..fields })
    }

    /// Two entries of one byte, the lesser first.
    fn rivals() -> [DictionaryEntry; 2] {
        let first = entry(0x0500_0000_0000_0000);
        let same = |number: &u64| hashed(&entry(*number)) == hashed(&first);
        let other = (0x0500_0000_0000_0001..).find(same).unwrap();
        [first, entry(other)]
    }

    #[test]
    fn half_of_all_frames_lost_still_tells_what_bytes_stand_for() {
        let mut sender = Vocabulary::of_connection();
        let mut listener = Vocabulary::of_connection();
        let (mut understood, mut answers) = (0, 0);
        for number in 0..200_u64 {
            let arrives = number % 2 == 1;
            let word = sender.say(entry(1), number);
            let byte = match word {
                Word::Byte(byte) => byte,
                Word::Define(definition) => {
                    if arrives {
                        listener.define(&definition, number).unwrap();
                    }
                    definition.byte
                }
                Word::Long => panic!(),
            };
            if arrives {
                understood += u32::from(listener.dictionary().entry(byte) == Some(&entry(1)));
                if let Some([_, asked]) = listener.ask(byte, number) {
                    answers += u32::from(sender.asked(asked, number).is_some());
                }
            }
        }
        assert_eq!((understood, answers), (100, 0), "the second use brings it");
    }

    #[test]
    fn who_joins_late_asks_and_nobody_is_asked_or_told_too_often() {
        let mut sender = Vocabulary::of_medium(&[]);
        for now in 0..100 {
            let _ = sender.say(entry(1), now);
        }
        let Word::Byte(byte) = sender.say(entry(1), 100) else { panic!("defined long ago") };
        let mut late = Vocabulary::of_medium(&[]);
        let mut told = 0;
        for now in (100..).step_by(10).take(4000) {
            if let Some([_, asked]) = late.ask(byte, now) {
                // Every second answer is lost.
                if let Some(definition) = sender.asked(asked, now) {
                    told += 1;
                    if told % 2 == 0 {
                        late.define(&definition, now).unwrap();
                    }
                }
            }
        }
        assert_eq!((told, late.dictionary().entry(byte)), (2, Some(&entry(1))));
        let mut other = Vocabulary::of_medium(&[]);
        other.heard_ask(byte, 500);
        assert_eq!(other.ask(byte, 500 + MIN_DEFINE_INTERVAL_MS - 1), None, "another has asked");
        assert!(other.ask(byte, 500 + MIN_DEFINE_INTERVAL_MS).is_some());
        assert_eq!(other.asked(byte, 500), None, "it does not use it");
    }

    #[test]
    fn a_connection_keeps_each_byte_and_goes_long_beyond_256() {
        let (mut sender, mut listener) = (Vocabulary::of_connection(), Vocabulary::of_connection());
        for number in 0..256 {
            let Word::Define(definition) = sender.say(entry(number << 40), 0) else { panic!() };
            listener.define(&definition, 0).unwrap();
        }
        assert_eq!(sender.say(entry(999), 0), Word::Long);
        let forged = Definition { byte: 7, entry: entry(999) };
        assert_eq!(listener.define(&forged, 0), Err(FrameError::EntryConflict));
        assert_eq!(listener.dictionary().entry(7), Some(&entry(7 << 40)));
    }

    #[test]
    fn two_senders_on_a_medium_agree_whoever_is_heard_first() {
        let [lesser, greater] = rivals();
        let byte = hashed(&lesser);
        let [of_lesser, of_greater] = [lesser, greater].map(|entry| Definition { byte, entry });
        let orders = [[of_lesser, of_greater], [of_greater, of_lesser]];
        for order in orders {
            let mut heard = Vocabulary::of_medium(&[]);
            for definition in &order {
                let _ = heard.define(definition, 0);
            }
            assert_eq!(heard.dictionary().entry(byte), Some(&lesser));
            assert_eq!(heard.say(greater, 1), Word::Long);
            assert_eq!(heard.say(lesser, 1), Word::Define(of_lesser));
        }
        // One that had its byte first gives way, and takes it back when the other is silent.
        let mut sender = Vocabulary::of_medium(&[]);
        assert_eq!(sender.say(greater, 0), Word::Define(of_greater));
        sender.define(&of_lesser, 1).unwrap();
        assert_eq!(sender.say(greater, 2), Word::Long);
        sender.opened(byte, 3);
        assert_eq!(sender.say(greater, 2 + MAX_ENTRY_IDLE_MS), Word::Long);
        assert_eq!(sender.say(greater, 3 + MAX_ENTRY_IDLE_MS), Word::Define(of_greater));
        let elsewhere = Definition { byte: byte ^ 1, entry: lesser };
        assert_eq!(sender.define(&elsewhere, 4), Err(FrameError::EntryConflict));
    }

    #[test]
    fn what_is_fixed_needs_no_word_and_cannot_be_taken() {
        let groups = [1, 2, 3].map(|n| GroupTag::from_bytes([n; 4]));
        let mut medium = Vocabulary::of_medium(&groups);
        for byte in 0..128_u8 {
            let entry = *medium.dictionary().entry(byte).unwrap();
            assert!(matches!(medium.say(entry, 0), Word::Byte(_)), "{byte}");
            let forged = Definition { byte, entry: self::entry(1) };
            assert_eq!(medium.define(&forged, u64::MAX), Err(FrameError::EntryConflict));
        }
        assert!((128..=255).all(|byte| medium.dictionary().entry(byte).is_none()));
        let hello = HeaderFields {
            class: sealane_seal::Class::Signed,
            destination: PeerTag::BROADCAST,
            codec: 3,
            ..HeaderFields::new(groups[1], PeerTag::NOBODY, 1)
        };
        let expected = 64 | 2 << 4 | (hello.priority as u8) << 2 | 3;
        assert_eq!(medium.say(DictionaryEntry::of(&hello), 0), Word::Byte(expected));
    }
}
