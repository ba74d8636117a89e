//! The hello: what a machine tells all neighbours of an interface again and again.

use sealane_seal::Slot;

use crate::bytes::{MessageBytes, first, version};
use crate::limits::{MAX_HELLO_ECHOES, MAX_HELLO_GATEWAYS, MAX_HELLO_NEIGHBOURS, MIN_HELLO_MS};
use crate::{MeshError, MeshSpan};

/// A hello, taken apart: `spec/mesh.md`, section *Hello*.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HelloMessage {
    /// The sender sleeps between its hellos: frames for it wait until it is heard.
    pub sleeps: bool,
    /// The sender lacks announcements: of those whom it lists as strangers, or of anybody where it
    /// lists none.
    pub asks: bool,
    /// Counts the hellos of this sender on this interface.
    pub sequence: u16,
    /// When it was sent: microseconds mod 2^32 of a clock of the sender's own.
    pub sent: u32,
    /// The next one comes within so many steps of [`INTERVAL_STEP`].
    pub interval: u16,
    /// How busy the sender finds the channel: 255 is always.
    pub load: u8,
    /// Bits 8 to 31 of the counter of the sender's next hop seal.
    pub hop_counter: u32,
    /// Some of the sender's neighbours, in turn.
    pub neighbours: Vec<HelloNeighbour>,
    /// Time stamps that it gives back to some of them, in turn.
    pub echoes: Vec<HelloEcho>,
    /// Gateways that it reaches.
    pub gateways: Vec<RouteDistance>,
    /// A digest of the documents that it holds (`spec/document.md`), if it holds any at all.
    pub digest: Option<[u8; DIGEST_BYTES]>,
}

/// A neighbour in a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelloNeighbour {
    /// The neighbour's slot.
    pub slot: Slot,
    /// How many of its hellos the sender hears, of 15.
    pub heard: u8,
    /// How many of the sender's hellos it says that it hears, of 15.
    pub told: u8,
}

impl HelloNeighbour {
    /// Somebody of whom the sender has opened nothing.
    pub(crate) fn stranger(slot: Slot) -> Self {
        Self { slot, heard: 0, told: 0 }
    }

    pub(crate) fn is_stranger(&self) -> bool {
        (self.heard, self.told) == (0, 0)
    }
}

/// A time stamp that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelloEcho {
    /// The place in the list of the neighbour that it is for.
    pub index: u8,
    /// When that neighbour's last hello was sent, by its own clock.
    pub sent: u32,
    /// When it was heard, by the clock of this hello's sender.
    pub heard: u32,
}

/// How far a destination is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteDistance {
    /// The destination.
    pub slot: Slot,
    /// The sequence of the destination that this is of.
    pub sequence: u16,
    /// The metric; [`INFINITE`] is not at all.
    pub metric: u16,
}

/// The metric of what is not reached.
pub const INFINITE: u16 = u16::MAX;
/// The step in which a hello says its interval.
pub const INTERVAL_STEP: MeshSpan = MeshSpan::millis(20);
/// The bytes of a hello that lists nothing.
pub const HELLO_BYTES_MIN: usize = 15;
/// The bytes of a neighbour, an echo and a gateway in it.
pub const LISTED_BYTES: usize = 3;
/// See [`LISTED_BYTES`].
pub const ECHO_BYTES: usize = 9;
/// See [`LISTED_BYTES`].
pub const DISTANCE_BYTES: usize = 6;
/// The bytes of a digest of documents.
pub const DIGEST_BYTES: usize = 8;

impl HelloMessage {
    /// The body as it travels. Lists beyond their bounds are cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let neighbours = || self.neighbours.iter().take(MAX_HELLO_NEIGHBOURS);
        let echoes = || self.echoes.iter().take(MAX_HELLO_ECHOES);
        let gateways = || self.gateways.iter().take(MAX_HELLO_GATEWAYS);
        let counts = (gateways().count() as u8) << GATEWAYS_SHIFT | echoes().count() as u8;
        let flags = (u8::from(self.sleeps) * SLEEPS)
            | (u8::from(self.asks) * ASKS)
            | (u8::from(self.digest.is_some()) * HOLDS);
        let mut out = vec![first(counts), flags];
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.sent.to_le_bytes());
        out.extend(self.interval.to_le_bytes());
        out.push(self.load);
        let [low, middle, high, _] = self.hop_counter.to_le_bytes();
        out.extend([low, middle, high, neighbours().count() as u8]);
        for one in neighbours() {
            out.extend(one.slot.number().to_le_bytes());
            out.push(one.heard.min(BEST) << 4 | one.told.min(BEST));
        }
        for one in echoes() {
            out.push(one.index);
            out.extend(one.sent.to_le_bytes());
            out.extend(one.heard.to_le_bytes());
        }
        gateways().for_each(|one| one.write(&mut out));
        out.extend(self.digest.iter().flatten());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// [`MeshError::Truncated`], [`MeshError::UnknownVersion`], [`MeshError::Range`],
    /// [`MeshError::TooLong`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = MessageBytes::new(body);
        let counts = version(fields.byte()?)?;
        let (gateways, echoes) = (counts >> GATEWAYS_SHIFT, counts & ECHOES_MASK);
        let flags = fields.byte()?;
        let sequence = fields.word()?;
        let sent = fields.long()?;
        let interval = fields.word()?;
        let load = fields.byte()?;
        let [low, middle, high] = fields.take()?;
        let neighbours = fields.byte()?;
        let is_bounded = usize::from(neighbours) <= MAX_HELLO_NEIGHBOURS
            && usize::from(echoes) <= MAX_HELLO_ECHOES
            && usize::from(gateways) <= MAX_HELLO_GATEWAYS
            && INTERVAL_STEP.times(interval.into()) >= MeshSpan::millis(MIN_HELLO_MS);
        if !is_bounded || flags & !(SLEEPS | ASKS | HOLDS) != 0 {
            return Err(MeshError::Range);
        }
        let hello = Self {
            sleeps: flags & SLEEPS != 0,
            asks: flags & ASKS != 0,
            sequence,
            sent,
            interval,
            load,
            hop_counter: u32::from_le_bytes([low, middle, high, 0]),
            neighbours: read(neighbours, || HelloNeighbour::read(&mut fields))?,
            echoes: read(echoes, || HelloEcho::read(&mut fields, neighbours))?,
            gateways: read(gateways, || RouteDistance::read(&mut fields))?,
            digest: if flags & HOLDS == 0 { None } else { Some(fields.take()?) },
        };
        fields.end().map(|()| hello)
    }

    /// Whether it asks that machine for its announcement.
    pub fn asks_of(&self, slot: Slot) -> bool {
        let mut strangers = self.neighbours.iter().filter(|one| one.is_stranger()).peekable();
        self.asks && (strangers.peek().is_none() || strangers.any(|one| one.slot == slot))
    }

    /// How soon the next one comes.
    pub fn interval(&self) -> MeshSpan {
        INTERVAL_STEP.times(self.interval.into())
    }
}

fn read<T>(count: u8, mut one: impl FnMut() -> Result<T, MeshError>) -> Result<Vec<T>, MeshError> {
    let mut all = Vec::with_capacity(count.into());
    for _ in 0..count {
        all.push(one()?);
    }
    Ok(all)
}

impl HelloNeighbour {
    fn read(fields: &mut MessageBytes<'_>) -> Result<Self, MeshError> {
        let slot = fields.slot()?;
        let quality = fields.byte()?;
        Ok(Self { slot, heard: quality >> 4, told: quality & BEST })
    }
}

impl HelloEcho {
    fn read(fields: &mut MessageBytes<'_>, neighbours: u8) -> Result<Self, MeshError> {
        let echo = Self { index: fields.byte()?, sent: fields.long()?, heard: fields.long()? };
        if echo.index < neighbours { Ok(echo) } else { Err(MeshError::Range) }
    }
}

impl RouteDistance {
    fn read(fields: &mut MessageBytes<'_>) -> Result<Self, MeshError> {
        Ok(Self { slot: fields.slot()?, sequence: fields.word()?, metric: fields.word()? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        for word in [self.slot.number(), self.sequence, self.metric] {
            out.extend(word.to_le_bytes());
        }
    }
}

/// The best of a quality: all are heard.
pub(crate) const BEST: u8 = 15;
const GATEWAYS_SHIFT: u32 = 4;
const ECHOES_MASK: u8 = 0x0f;
const SLEEPS: u8 = 1;
const ASKS: u8 = 2;
const HOLDS: u8 = 4;

#[cfg(test)]
mod tests;
