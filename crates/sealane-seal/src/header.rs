use crate::Error;
use crate::group::{Class, Epoch, Slot};
use crate::limits::{MAX_COUNTER, MAX_HEADER_BYTES};

/// How many bits of the epoch travel. Both forms stand for the same [`KeyId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Key id of 20 bits, epoch mod 256: canonical, a valid SFrame header of its own.
    Full,
    /// Key id of 16 bits, epoch mod 16: for radio.
    Compact,
}

impl Form {
    pub(crate) const fn epoch_bits(self) -> u32 {
        match self {
            Form::Full => 8,
            Form::Compact => 4,
        }
    }
}

/// The canonical key id: slot (10 bits) ‖ class (2) ‖ epoch mod 256 (8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId {
    /// The sender.
    pub slot: Slot,
    /// The protection of the seal.
    pub class: Class,
    /// The epoch's low eight bits.
    pub epoch_low: u8,
}

impl KeyId {
    /// The key id of a sender's class in an epoch.
    pub fn new(slot: Slot, class: Class, epoch: Epoch) -> KeyId {
        let [epoch_low, ..] = epoch.0.to_le_bytes();
        KeyId { slot, class, epoch_low }
    }

    /// The value that a header of that form carries; in the full form also what keys derive from.
    pub fn value(self, form: Form) -> u32 {
        let low = u32::from(self.epoch_low);
        let high = u32::from(self.slot.number()) << 2 | u32::from(self.class.number());
        let bits = form.epoch_bits();
        high << bits | low & ((1 << bits) - 1)
    }

    /// The key id behind the value of a header. A compact value is completed to the epoch nearest
    /// to `near`, from 7 below it to 8 above; a full value needs no completion.
    fn from_value(value: u32, form: Form, near: Epoch) -> Option<KeyId> {
        let bits = form.epoch_bits();
        let slot = Slot::new(u16::try_from(value >> (bits + 2)).ok()?)?;
        let [class, ..] = (value >> bits).to_le_bytes();
        let low = value & ((1 << bits) - 1);
        Some(KeyId::new(slot, Class::from_bits(class), near.nearest(low.into(), bits)))
    }

    /// The epoch nearest to `near` that this key id may mean, from 127 below to 128 above.
    pub fn epoch(self, near: Epoch) -> Epoch {
        near.nearest(self.epoch_low.into(), Form::Full.epoch_bits())
    }
}

/// An SFrame header (RFC 9605 §4.3): which key, which counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SframeHeader {
    /// Sender, class and epoch.
    pub key: KeyId,
    /// The sender's counter, up to [`MAX_COUNTER`].
    pub counter: u64,
}

impl SframeHeader {
    /// Reads the header at the start of `bytes` and says how long it is. `near` completes the epoch
    /// of the compact form: any epoch of the group that is less than eight from the sender's.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], and [`Error::Header`] for a value out of range or not in its shortest
    /// encoding.
    #[inline]
    pub fn parse(bytes: &[u8], form: Form, near: Epoch) -> Result<(SframeHeader, usize), Error> {
        let (&config, rest) = bytes.split_first().ok_or(Error::Truncated)?;
        let (key, rest) = value(config >> 4, rest)?;
        let (counter, rest) = value(config & 0x0f, rest)?;
        let key = u32::try_from(key).map_err(|_| Error::Header)?;
        let key = KeyId::from_value(key, form, near).ok_or(Error::Header)?;
        if counter > MAX_COUNTER {
            return Err(Error::Header);
        }
        Ok((SframeHeader { key, counter }, bytes.len() - rest.len()))
    }

    /// The header's bytes in that form. Of a counter beyond [`MAX_COUNTER`], which this crate never
    /// gives, the low 40 bits are written.
    #[inline]
    pub fn encode(&self, form: Form) -> Encoded {
        let (key, key_bytes, key_bits) = field(self.key.value(form).into());
        let (counter, counter_bytes, counter_bits) = field(self.counter & MAX_COUNTER);
        let config = u128::from(key_bits << 4 | counter_bits);
        let all = config << (8 * key_bytes) | u128::from(key);
        let all = all << (8 * counter_bytes) | u128::from(counter);
        let len = 1 + key_bytes as usize + counter_bytes as usize;
        Encoded { bytes: all.to_be_bytes(), start: size_of::<u128>() - len }
    }
}

/// The bytes of a header.
#[derive(Debug, Clone, Copy)]
pub struct Encoded {
    bytes: [u8; size_of::<u128>()],
    start: usize,
}

const _: () = assert!(MAX_HEADER_BYTES <= size_of::<u128>());

impl Encoded {
    /// The header at the end of bytes that are zero before it.
    pub(crate) fn right_aligned(&self) -> &[u8; size_of::<u128>()] {
        &self.bytes
    }
}

impl std::ops::Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// The value behind the config byte, its length in bytes, and the value of four bits of the config
/// byte.
fn field(value: u64) -> (u64, u32, u8) {
    if let Ok(small @ 0..8) = u8::try_from(value) {
        return (0, 0, small);
    }
    let bytes = (u64::BITS - value.leading_zeros()).div_ceil(8);
    let [bits, ..] = (7 + bytes).to_le_bytes();
    (value, bytes, bits)
}

/// The value that four bits of the config byte announce, and what follows it.
#[inline]
fn value(bits: u8, rest: &[u8]) -> Result<(u64, &[u8]), Error> {
    if bits < 8 {
        return Ok((bits.into(), rest));
    }
    let (bytes, after) = rest.split_at_checked(usize::from(bits - 7)).ok_or(Error::Truncated)?;
    // Eight bytes at once, where the message goes on behind the value, as all real ones do.
    let value = match rest.first_chunk() {
        Some(eight) => u64::from_be_bytes(*eight) >> (u64::BITS - 8 * u32::from(bits - 7)),
        None => bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    let is_shortest = value >= 8 && bytes.first() != Some(&0);
    if is_shortest { Ok((value, after)) } else { Err(Error::Header) }
}
