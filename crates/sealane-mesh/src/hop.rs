//! The hop seal: what lets a neighbour drop the frames of strangers before they cost air time.

use blake3::Hasher;
use sealane_seal::{Epoch, EpochSecret, SenderContext, Slot};

use crate::MeshError;

/// The bytes behind a frame: 2 of the counter, 8 of the tag.
pub const HOP_SEAL_BYTES: usize = COUNTER_BYTES + TAG_BYTES;
const COUNTER_BYTES: usize = 2;
const TAG_BYTES: usize = 8;

/// The sender of hop seals: one start of a member, in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopSender {
    /// The member.
    pub slot: Slot,
    /// Its start.
    pub context: SenderContext,
    /// The epoch.
    pub epoch: Epoch,
}

/// The key of a sender's hop seals.
#[derive(Clone)]
struct HopKey([u8; 32]);

impl HopKey {
    fn new(secret: &EpochSecret, sender: HopSender) -> Self {
        let mut hasher = Hasher::new_derive_key("Sealane 1.0 mesh hop seal");
        hasher.update(secret.expose());
        hasher.update(&sender.epoch.0.to_le_bytes());
        hasher.update(&sender.slot.number().to_le_bytes());
        hasher.update(&sender.context.0);
        Self(hasher.finalize().into())
    }

    fn tag(&self, counter: u64, frame: &[u8]) -> u64 {
        let mut hasher = Hasher::new_keyed(&self.0);
        hasher.update(&counter.to_le_bytes()).update(frame);
        let hash = hasher.finalize();
        u64::from_le_bytes(hash.as_bytes().first_chunk().copied().unwrap_or_default())
    }
}

impl std::fmt::Debug for HopKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("HopKey(…)")
    }
}

/// Seals what a machine sends.
#[derive(Debug)]
pub struct HopWriter {
    key: HopKey,
    next: u64,
}

impl HopWriter {
    /// The hop seals of a sender, from a counter on.
    pub fn new(secret: &EpochSecret, sender: HopSender, next: u64) -> Self {
        Self { key: HopKey::new(secret, sender), next }
    }

    /// The counter of the next seal.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Puts the next seal behind a frame.
    pub fn seal(&mut self, frame: &mut Vec<u8>) {
        let tag = self.key.tag(self.next, frame);
        let [low, high, ..] = self.next.to_le_bytes();
        frame.extend([low, high]);
        frame.extend(tag.to_le_bytes());
        self.next = self.next.wrapping_add(1);
    }
}

/// Checks what one neighbour sends.
#[derive(Debug)]
pub struct HopReader {
    key: HopKey,
    sender: HopSender,
    /// One more than the highest counter that was taken.
    next: u64,
    /// The 64 counters below it: bit 0 is the highest. Whether they were taken.
    taken: u64,
    /// Nothing was opened yet: it knows the lowest 32 bits of the counter alone, from a hello.
    is_new: bool,
}

impl HopReader {
    /// Takes nothing below a counter, of which a hello has told the lowest 32 bits.
    pub fn new(secret: &EpochSecret, sender: HopSender, next: u64) -> Self {
        Self { key: HopKey::new(secret, sender), sender, next, taken: u64::MAX, is_new: true }
    }

    /// The sender whose seals it checks.
    pub fn sender(&self) -> HopSender {
        self.sender
    }

    /// The sender says in the lowest 32 bits of a counter that it has come at least as far.
    pub fn go_on_at(&mut self, counter: u64) {
        let near = self.next - self.next % ERA + counter % ERA;
        let is_over = near + ERA / 2 < self.next;
        let counter = if is_over { near + ERA } else { near };
        if counter > self.next {
            self.move_to(counter);
        }
    }

    /// Checks a sealed frame, and gives it without its seal.
    ///
    /// # Errors
    ///
    /// [`MeshError::Truncated`], [`MeshError::HopReplayed`], [`MeshError::HopSeal`].
    pub fn open<'a>(&mut self, sealed: &'a [u8]) -> Result<&'a [u8], MeshError> {
        let (rest, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(MeshError::Truncated)?;
        let (frame, low) = rest.split_last_chunk().ok_or(MeshError::Truncated)?;
        let counter = self.complete(u16::from_le_bytes(*low));
        if self.is_taken(counter) {
            return Err(MeshError::HopReplayed);
        }
        let eras = if self.is_new { ERAS } else { 1 };
        // One comparison of a whole word takes the same time whatever differs.
        let is_its = |era: &u64| self.key.tag(counter + era, frame) ^ u64::from_le_bytes(*tag) == 0;
        let era = (0..eras).map(|era| era * ERA).find(is_its).ok_or(MeshError::HopSeal)?;
        self.is_new = false;
        self.next += era;
        let counter = counter + era;
        if counter >= self.next {
            self.move_to(counter + 1);
        }
        self.taken |= 1 << (self.next - 1 - counter).min(63);
        Ok(frame)
    }

    /// The counter with these low bits that is nearest to the next one.
    fn complete(&self, low: u16) -> u64 {
        let least = self.next.saturating_sub(HALF);
        let step = low.wrapping_sub(least as u16);
        least + u64::from(step)
    }

    fn is_taken(&self, counter: u64) -> bool {
        let Some(behind) = self.next.checked_sub(counter + 1) else { return false };
        behind >= 64 || self.taken >> behind & 1 == 1
    }

    fn move_to(&mut self, next: u64) {
        let step = u32::try_from(next - self.next).unwrap_or(u32::MAX);
        self.taken = self.taken.checked_shl(step).unwrap_or(0);
        self.next = next;
    }
}

/// Counters with the same lowest 32 bits are so far apart.
const ERA: u64 = 1 << 32;
/// So many of them are tried at the first frame of a sender: in one start it sends no more frames.
const ERAS: u64 = 16;
/// Half of what the two bytes of a counter tell apart.
const HALF: u64 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(slot: u16) -> HopSender {
        let slot = Slot::new(slot).unwrap();
        HopSender { slot, context: SenderContext([9; 8]), epoch: Epoch(3) }
    }

    fn pair(next: u64) -> (HopWriter, HopReader) {
        let secret = EpochSecret::new([4; 32]);
        let writer = HopWriter::new(&secret, sender(1), next);
        (writer, HopReader::new(&secret, sender(1), next))
    }

    fn sealed(writer: &mut HopWriter, frame: &[u8]) -> Vec<u8> {
        let mut unit = frame.to_vec();
        writer.seal(&mut unit);
        assert_eq!(unit.len(), frame.len() + HOP_SEAL_BYTES);
        unit
    }

    #[test]
    fn every_frame_opens_once_in_any_order_within_the_window() {
        let (mut writer, mut reader) = pair(65_500);
        let units: Vec<_> = (0..200_u8).map(|n| sealed(&mut writer, &[n])).collect();
        for (n, unit) in units.iter().enumerate() {
            let ahead = &units[(n + 3).min(199)];
            let opened = reader.open(ahead).map(<[u8]>::to_vec);
            let is_first = n + 3 <= 199;
            assert_eq!(opened.is_ok(), is_first, "{n}");
            assert_eq!(reader.open(unit).is_ok(), n < 3, "{n}");
        }
        assert!(units.iter().all(|unit| reader.open(unit) == Err(MeshError::HopReplayed)));
    }

    #[test]
    fn nothing_opens_that_is_changed_cut_or_of_another_sender() {
        let (mut writer, mut reader) = pair(0);
        let unit = sealed(&mut writer, b"frame");
        for at in 0..unit.len() {
            for bit in 0..8 {
                let mut bad = unit.clone();
                bad[at] ^= 1 << bit;
                assert!(reader.open(&bad).is_err(), "{at} {bit}");
            }
            assert!(reader.open(&unit[..at]).is_err());
        }
        let secret = EpochSecret::new([4; 32]);
        for other in [
            sender(2),
            HopSender { epoch: Epoch(4), ..sender(1) },
            HopSender { context: SenderContext([8; 8]), ..sender(1) },
        ] {
            let mut reader = HopReader::new(&secret, other, 0);
            assert_eq!(reader.open(&unit), Err(MeshError::HopSeal));
        }
        assert_eq!(reader.open(&unit), Ok(&b"frame"[..]));
    }

    #[test]
    fn hop_seals_go_on_when_their_counter_no_longer_fits_a_hello() {
        let hello = |writer: &HopWriter| (writer.next() >> 8 & 0x00ff_ffff) << 8;
        let (mut writer, mut reader) = pair((1 << 32) - 3);
        let mut units: Vec<_> = (0..6).map(|_| sealed(&mut writer, b"frame")).collect();
        assert!(units.iter().all(|unit| reader.open(unit) == Ok(&b"frame"[..])));
        reader.go_on_at(hello(&writer));
        units.push(sealed(&mut writer, b"frame"));
        assert_eq!(reader.open(&units[6]), Ok(&b"frame"[..]));
        assert!(units.iter().all(|unit| reader.open(unit) == Err(MeshError::HopReplayed)));
        // One that meets the sender then, and one that has missed very many.
        let secret = EpochSecret::new([4; 32]);
        let mut late = HopReader::new(&secret, sender(1), hello(&writer));
        (0..70_000).for_each(|_| drop(sealed(&mut writer, b"lost")));
        let unit = sealed(&mut writer, b"heard");
        for reader in [&mut late, &mut reader] {
            assert_eq!(reader.open(&unit), Err(MeshError::HopSeal));
            reader.go_on_at(hello(&writer));
            let unit = sealed(&mut writer, b"heard");
            assert_eq!(reader.open(&unit), Ok(&b"heard"[..]));
        }
    }

    #[test]
    fn a_hello_brings_a_reader_back_that_has_missed_very_many() {
        let (mut writer, mut reader) = pair(0);
        for _ in 0..70_000 {
            sealed(&mut writer, b"lost");
        }
        let unit = sealed(&mut writer, b"heard");
        assert_eq!(reader.open(&unit), Err(MeshError::HopSeal));
        reader.go_on_at(writer.next() >> 8 << 8);
        let unit = sealed(&mut writer, b"heard");
        assert_eq!(reader.open(&unit), Ok(&b"heard"[..]));
        reader.go_on_at(5);
        assert_eq!(reader.open(&unit), Err(MeshError::HopReplayed), "it never goes back");
    }
}
