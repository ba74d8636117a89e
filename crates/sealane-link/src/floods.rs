//! The memory of frames to everybody: those that were here, and the last announcement of each
//! sender.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use sealane_frame::{Header, PeerTag};

use crate::limits::{MAX_ANNOUNCEMENTS_HELD, MAX_REPEATS_KNOWN, MIN_ASK_INTERVAL_MS};

/// Frames to everybody, as far as they are remembered.
#[derive(Debug)]
pub(crate) struct RelayFloods {
    repeats: FloodRepeats,
    held: HashMap<(PeerTag, PeerTag), Vec<u8>>,
    /// When each neighbour was answered last.
    answered_ms: HashMap<PeerTag, u64>,
}

impl RelayFloods {
    pub(crate) fn new() -> Self {
        Self { repeats: FloodRepeats::new(), held: HashMap::new(), answered_ms: HashMap::new() }
    }

    /// Whether a frame comes for the first time, as far as is remembered.
    pub(crate) fn is_new(&mut self, header: &Header, frame: &[u8]) -> bool {
        self.repeats.is_new(header, frame)
    }

    /// Keeps a sender's announcement, as it came from a neighbour: none can take the place of what
    /// another has brought.
    pub(crate) fn hold(&mut self, source: PeerTag, from: PeerTag, frame: &[u8]) {
        // The first stay where there is no room: an attacker that makes up sources would else push
        // the announcements of members out.
        let has_room = self.held.len() < MAX_ANNOUNCEMENTS_HELD;
        // A full table renews what it holds, and takes no newcomer. So its memory is bounded
        // without evicting.
        if has_room || self.held.contains_key(&(source, from)) {
            let held = self.held.entry((source, from)).or_default();
            // The buffer is reused: announcements of a source have one length and come once a
            // second.
            held.clear();
            held.extend_from_slice(frame);
        }
    }

    /// The announcements that other neighbours than `to` have brought.
    pub(crate) fn held_for(&self, to: PeerTag) -> Vec<Vec<u8>> {
        let others = self.held.iter().filter(|((_, from), _)| *from != to);
        others.map(|(_, frame)| frame.clone()).collect()
    }

    /// How many announcements are held.
    pub(crate) fn announcements_held(&self) -> usize {
        self.held.len()
    }

    /// Whether a neighbour that asks is answered: not again at once.
    pub(crate) fn answers(&mut self, to: PeerTag, now_ms: u64) -> bool {
        let last = self.answered_ms.get(&to).copied();
        let is_time = last.is_none_or(|last| now_ms >= last.saturating_add(MIN_ASK_INTERVAL_MS));
        if is_time {
            self.answered_ms.insert(to, now_ms);
        }
        is_time
    }

    /// Forgets what came from those who are no neighbours any more.
    pub(crate) fn keep_of(&mut self, is_neighbour: impl Fn(PeerTag) -> bool) {
        self.held.retain(|(_, from), _| is_neighbour(*from));
        self.answered_ms.retain(|to, _| is_neighbour(*to));
    }
}

/// The frames that were here lately, by a keyed hash, so that nobody can make one look like
/// another. Two sets: when the newer is full, it becomes the older.
#[derive(Debug)]
struct FloodRepeats {
    key: RandomState,
    newer: FloodHashes,
    older: FloodHashes,
}

/// Keyed hashes, which are not hashed again to be found.
type FloodHashes = HashSet<u64, BuildHasherDefault<AsItIs>>;

/// Gives a keyed hash as it is.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    /// Only hashes come, as numbers; anything else would be right and slow.
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }
}

const HALF: usize = MAX_REPEATS_KNOWN / 2;

impl FloodRepeats {
    fn new() -> Self {
        let empty = || FloodHashes::with_capacity_and_hasher(HALF, BuildHasherDefault::default());
        Self { key: RandomState::new(), newer: empty(), older: empty() }
    }

    fn is_new(&mut self, header: &Header, frame: &[u8]) -> bool {
        // Source, context and sequence name a frame; its tag tells one of a member from one that
        // somebody has made up to keep the member's out.
        let tag = frame.len().checked_sub(TAG_BYTES).and_then(|at| frame.get(at..)?.first_chunk());
        let tag = u64::from_le_bytes(tag.copied().unwrap_or_default());
        let [source, context] = [header.source().to_bytes(), header.context().0];
        let hash = self.key.hash_one([
            u64::from_le_bytes(source),
            u64::from_le_bytes(context),
            header.sequence(),
            tag,
        ]);
        // A hash in the older set is not renewed. A frame repeated for ever must not keep its own
        // place.
        if self.older.contains(&hash) || !self.newer.insert(hash) {
            return false;
        }
        if self.newer.len() >= HALF {
            // Two sets forget without a time for each frame. A frame is known for at least half of
            // the bound, and nothing is allocated.
            std::mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
        }
        true
    }
}

const TAG_BYTES: usize = sealane_seal::limits::TAG_BYTES;

#[cfg(test)]
mod tests {
    use sealane_frame::{GroupTag, HeaderFields};
    use sealane_seal::SenderContext;

    use super::*;

    fn header(sequence: u64) -> Header {
        let fields = HeaderFields::new(GroupTag::default(), PeerTag::from_hash([9; 8]), 3);
        Header::new(&fields, 0, sequence, SenderContext([1; 8])).unwrap()
    }

    #[test]
    fn a_frame_is_new_once_and_memory_is_bounded() {
        let mut repeats = FloodRepeats::new();
        let capacity = (repeats.newer.capacity(), repeats.older.capacity());
        for sequence in 0..4 * MAX_REPEATS_KNOWN as u64 {
            assert!(repeats.is_new(&header(sequence), &[7; 80]));
            assert!(!repeats.is_new(&header(sequence), &[7; 80]));
            let recent = sequence.saturating_sub(HALF as u64 - 1);
            assert!(!repeats.is_new(&header(recent), &[7; 80]), "{sequence}");
        }
        assert_eq!((repeats.newer.capacity(), repeats.older.capacity()), capacity);
        assert!(repeats.is_new(&header(0), &[7; 80]), "long forgotten");
        assert!(repeats.is_new(&header(0), &[8; 80]), "another tag is another frame");
        let mut changed = [7; 80];
        changed[79] ^= 1;
        assert!(!repeats.is_new(&header(0), &changed), "half of the tag tells it");
    }

    #[test]
    fn each_neighbour_gets_what_others_have_brought() {
        let mut floods = RelayFloods::new();
        let [one, two, a, b, c] = [1, 2, 3, 4, 5].map(|n| PeerTag::from_hash([n; 8]));
        floods.hold(one, a, b"old");
        floods.hold(one, a, b"one");
        floods.hold(two, b, b"two");
        floods.hold(two, a, b"false");
        let told = |floods: &RelayFloods, to| {
            let mut all = floods.held_for(to);
            all.sort();
            all
        };
        assert_eq!(told(&floods, a), [b"two".to_vec()]);
        assert_eq!(told(&floods, b), [b"false".to_vec(), b"one".to_vec()]);
        assert_eq!(told(&floods, c).len(), 3);
        assert!(floods.answers(b, 1000) && !floods.answers(b, 1499) && floods.answers(c, 1001));
        assert!(floods.answers(b, 1500));
        floods.keep_of(|neighbour| neighbour != a);
        assert_eq!(told(&floods, c), [b"two".to_vec()]);
    }

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let mut floods = RelayFloods::new();
        let tag = |n: usize| PeerTag::from_hash(((n as u64) << 8 | 7).to_le_bytes());
        for number in 0..MAX_ANNOUNCEMENTS_HELD + 9 {
            floods.hold(tag(number), tag(0), b"first");
        }
        floods.hold(tag(1), tag(0), b"second");
        assert_eq!(floods.held.len(), MAX_ANNOUNCEMENTS_HELD);
        assert_eq!(floods.held[&(tag(1), tag(0))], b"second");
    }
}
