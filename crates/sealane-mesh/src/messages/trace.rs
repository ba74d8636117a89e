//! The way to a machine, as each machine on it says that it sends.

use sealane_seal::Slot;

use crate::MeshError;
use crate::bytes::{MessageBytes, first, version};
use crate::limits::{MAX_CANDIDATES, MAX_TRACE_HOPS};

/// A question which way leads to a machine, or the answer, with all machines that it has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTrace {
    /// Whether it goes back to who asked.
    pub is_answer: bool,
    /// Whether it was turned back before it came to the machine: there was no way on.
    pub is_cut: bool,
    /// The neighbour that it is for.
    pub to: Slot,
    /// A number that the answer gives back.
    pub number: u32,
    /// The machine that asked.
    pub origin: Slot,
    /// The machine to which the way is wanted.
    pub target: Slot,
    /// The machines that it has passed, that of the origin first.
    pub hops: Vec<TraceHop>,
}

/// A machine on a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHop {
    /// The machine.
    pub slot: Slot,
    /// How long to the next one and back takes, in microseconds, if that is known.
    pub round_trip_us: Option<u32>,
    /// The ways that it knows to the target, the one in use first: at most [`MAX_CANDIDATES`].
    pub ways: Vec<TraceWay>,
}

/// A way that a machine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceWay {
    /// The next machine.
    pub via: Slot,
    /// How far the target is that way; 65,535 is not at all.
    pub metric: u16,
}

const ANSWER: u8 = 1;
const CUT: u8 = 2;
/// In place of a round trip that is not known.
const UNKNOWN: u32 = u32::MAX;

impl RouteTrace {
    /// The bytes of one without hops.
    pub const BYTES_MIN: usize = 11;

    /// The body as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let flags = if self.is_answer { ANSWER } else { 0 } | if self.is_cut { CUT } else { 0 };
        let mut out = vec![first(flags)];
        out.extend(self.to.number().to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.origin.number().to_le_bytes());
        out.extend(self.target.number().to_le_bytes());
        self.hops.iter().take(MAX_TRACE_HOPS).for_each(|hop| hop.write(&mut out));
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// [`MeshError::Truncated`], [`MeshError::UnknownVersion`], [`MeshError::Range`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = MessageBytes::new(body);
        let flags = version(fields.byte()?)?;
        if flags & !(ANSWER | CUT) != 0 {
            return Err(MeshError::Range);
        }
        let mut trace = Self {
            is_answer: flags & ANSWER != 0,
            is_cut: flags & CUT != 0,
            to: fields.slot()?,
            number: fields.long()?,
            origin: fields.slot()?,
            target: fields.slot()?,
            hops: vec![],
        };
        while !fields.is_empty() {
            if trace.hops.len() == MAX_TRACE_HOPS {
                return Err(MeshError::Range);
            }
            trace.hops.push(TraceHop::read(&mut fields)?);
        }
        Ok(trace)
    }
}

impl TraceHop {
    fn write(&self, out: &mut Vec<u8>) {
        let ways = self.ways.get(..MAX_CANDIDATES).unwrap_or(&self.ways);
        out.extend(self.slot.number().to_le_bytes());
        out.extend(self.round_trip_us.unwrap_or(UNKNOWN).to_le_bytes());
        out.push(ways.len() as u8);
        for way in ways {
            out.extend(way.via.number().to_le_bytes());
            out.extend(way.metric.to_le_bytes());
        }
    }

    fn read(fields: &mut MessageBytes<'_>) -> Result<Self, MeshError> {
        let (slot, round_trip) = (fields.slot()?, fields.long()?);
        let round_trip_us = Some(round_trip).filter(|us| *us != UNKNOWN);
        let count = usize::from(fields.byte()?);
        if count > MAX_CANDIDATES {
            return Err(MeshError::Range);
        }
        let way = |fields: &mut MessageBytes<'_>| -> Result<TraceWay, MeshError> {
            Ok(TraceWay { via: fields.slot()?, metric: fields.word()? })
        };
        let ways = (0..count).map(|_| way(fields)).collect::<Result<_, _>>()?;
        Ok(Self { slot, round_trip_us, ways })
    }
}
