//! The other messages between neighbours: routes, requests, probes, missing parts, and the report
//! of a gateway.

use sealane_frame::PeerTag;
use sealane_seal::Slot;

use crate::bytes::{MessageBytes, first, slot, version};
use crate::limits::{MAX_ATTACHED, MAX_MESSAGE_ROUTES, MAX_REPORTED};
use crate::{MeshError, RouteDistance};

mod trace;

pub use trace::{RouteTrace, TraceHop, TraceWay};

/// The type of a frame of the mesh: its data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum MessageType {
    /// [`crate::HelloMessage`].
    Hello = 1,
    /// [`RouteMessage`].
    Routes = 2,
    /// [`RouteRequest`]s.
    Request = 3,
    /// [`NeighbourProbe`].
    Probe = 4,
    /// [`MissingParts`].
    Missing = 5,
    /// [`GatewayReport`].
    Report = 6,
    /// [`RouteTrace`].
    Trace = 7,
    /// About documents: `spec/document.md`, section *Exchange*.
    Documents = 8,
    /// [`crate::OrdersHeld`].
    Held = 9,
    /// [`crate::PiecesAsked`].
    Asked = 10,
    /// [`crate::OrderPieces`].
    Pieces = 11,
    /// [`crate::RemovalMessage`].
    Removal = 12,
}

impl MessageType {
    /// All types, in the order of their numbers.
    pub const ALL: [MessageType; 12] = [
        MessageType::Hello,
        MessageType::Routes,
        MessageType::Request,
        MessageType::Probe,
        MessageType::Missing,
        MessageType::Report,
        MessageType::Trace,
        MessageType::Documents,
        MessageType::Held,
        MessageType::Asked,
        MessageType::Pieces,
        MessageType::Removal,
    ];

    /// The type with that number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|one| *one as u16 == number)
    }
}

/// The destinations that a machine reaches, as it tells its neighbours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteMessage {
    /// Counts the route messages of this sender on this interface.
    pub sequence: u16,
    /// The destinations.
    pub routes: Vec<AdvertisedRoute>,
}

/// A destination in a route message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertisedRoute {
    /// Which one, and how far.
    pub distance: RouteDistance,
    /// Whether it is a gateway.
    pub is_gateway: bool,
    /// The addresses of other groups that live there, if this message tells them.
    pub attached: Option<Vec<PeerTag>>,
}

impl AdvertisedRoute {
    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        let tags = self.attached.as_ref().map_or(0, |tags| 1 + 8 * tags.len());
        crate::hello::DISTANCE_BYTES + tags
    }

    fn read(fields: &mut MessageBytes<'_>) -> Result<Self, MeshError> {
        let word = fields.word()?;
        let slot = slot(word & !(GATEWAY | ATTACHED))?;
        let distance = RouteDistance { slot, sequence: fields.word()?, metric: fields.word()? };
        let mut attached = None;
        if word & ATTACHED != 0 {
            let count = usize::from(fields.byte()?);
            if count > MAX_ATTACHED {
                return Err(MeshError::Range);
            }
            attached = Some((0..count).map(|_| fields.tag()).collect::<Result<_, _>>()?);
        }
        Ok(Self { distance, is_gateway: word & GATEWAY != 0, attached })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let tags = self.attached.as_deref().map(|tags| tags.get(..MAX_ATTACHED).unwrap_or(tags));
        let gateway = if self.is_gateway { GATEWAY } else { 0 };
        let attached = if tags.is_some() { ATTACHED } else { 0 };
        out.extend((self.distance.slot.number() | gateway | attached).to_le_bytes());
        out.extend(self.distance.sequence.to_le_bytes());
        out.extend(self.distance.metric.to_le_bytes());
        if let Some(tags) = tags {
            out.push(tags.len() as u8);
            tags.iter().for_each(|tag| out.extend(tag.to_bytes()));
        }
    }
}

/// The bytes of a route message without routes.
pub(crate) const ROUTES_BYTES_MIN: usize = 3;

impl RouteMessage {
    /// The body as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![first(0)];
        out.extend(self.sequence.to_le_bytes());
        self.routes.iter().take(MAX_MESSAGE_ROUTES).for_each(|route| route.write(&mut out));
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// [`MeshError::Truncated`], [`MeshError::UnknownVersion`], [`MeshError::Range`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = MessageBytes::new(body);
        zero(version(fields.byte()?)?)?;
        let mut message = Self { sequence: fields.word()?, routes: vec![] };
        message.routes.reserve(fields.rest().len() / crate::hello::DISTANCE_BYTES);
        while !fields.is_empty() {
            if message.routes.len() == MAX_MESSAGE_ROUTES {
                return Err(MeshError::Range);
            }
            message.routes.push(AdvertisedRoute::read(&mut fields)?);
        }
        Ok(message)
    }
}

/// Somebody wants a route of a later sequence, lest it starve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRequest {
    /// The destination.
    pub slot: Slot,
    /// The sequence that is wanted, or a later one.
    pub sequence: u16,
    /// How often the request may still be passed on.
    pub hops: u8,
    /// The neighbour that is to pass it on; nobody: each that hears it.
    pub to: Option<Slot>,
}

impl RouteRequest {
    /// The bytes of one request.
    pub(crate) const BYTES: usize = 7;

    /// The body of a message of requests.
    pub fn write(requests: &[RouteRequest]) -> Vec<u8> {
        let mut out = vec![first(0)];
        for one in requests.iter().take(MAX_MESSAGE_ROUTES) {
            out.extend(one.slot.number().to_le_bytes());
            out.extend(one.sequence.to_le_bytes());
            out.push(one.hops);
            out.extend(one.to.map_or(EACH, Slot::number).to_le_bytes());
        }
        out
    }

    /// Reads the body of a message of requests.
    ///
    /// # Errors
    ///
    /// [`MeshError::Truncated`], [`MeshError::UnknownVersion`], [`MeshError::Range`].
    pub fn parse(body: &[u8]) -> Result<Vec<RouteRequest>, MeshError> {
        let mut fields = MessageBytes::new(body);
        zero(version(fields.byte()?)?)?;
        let mut requests = vec![];
        while !fields.is_empty() {
            if requests.len() == MAX_MESSAGE_ROUTES {
                return Err(MeshError::Range);
            }
            let (wanted, sequence) = (fields.slot()?, fields.word()?);
            let (hops, to) = (fields.byte()?, fields.word()?);
            let to = if to == EACH { None } else { Some(slot(to)?) };
            requests.push(RouteRequest { slot: wanted, sequence, hops, to });
        }
        Ok(requests)
    }
}

/// A question to one neighbour whether it is there, or the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourProbe {
    /// Whether it answers one.
    pub is_answer: bool,
    /// The neighbour that it is for.
    pub to: Slot,
    /// A number that the answer gives back.
    pub number: u32,
}

impl NeighbourProbe {
    /// The bytes of a probe.
    pub const BYTES: usize = 7;

    /// The body as it travels.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = vec![first(u8::from(self.is_answer))];
        out.extend(self.to.number().to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// All that [`crate::HelloMessage::parse`] may say.
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = MessageBytes::new(body);
        let flags = version(fields.byte()?)?;
        let probe = Self { is_answer: flags == 1, to: fields.slot()?, number: fields.long()? };
        zero(flags & !1)?;
        fields.end().map(|()| probe)
    }
}

/// The parts that a neighbour has not got of a frame in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingParts {
    /// The neighbour that sent the parts.
    pub to: Slot,
    /// The id of the frame's parts.
    pub id: u16,
    /// One bit for each part that is missing, of the first 64. Parts behind the last that came
    /// are not known here: a bit that stands for none means nothing.
    pub parts: u64,
}

impl MissingParts {
    /// The body as it travels.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = vec![first(0)];
        out.extend(self.to.number().to_le_bytes());
        out.extend(self.id.to_le_bytes());
        out.extend(self.parts.to_le_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// All that [`crate::HelloMessage::parse`] may say.
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = MessageBytes::new(body);
        zero(version(fields.byte()?)?)?;
        let (to, id) = (fields.slot()?, fields.word()?);
        let missing = Self { to, id, parts: fields.take().map(u64::from_le_bytes)? };
        fields.end().map(|()| missing)
    }
}

/// How many frames of whom came to a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayReport {
    /// Whether all are in it whose frames came since the last one.
    pub is_complete: bool,
    /// When the gateway started: milliseconds since 1970-01-01 UTC.
    pub start: u64,
    /// Counts its reports since then.
    pub sequence: u32,
    /// Of each, how many came since the gateway started, mod 2^16.
    pub counts: Vec<(Slot, u16)>,
}

impl GatewayReport {
    /// The bytes of a report that counts nothing.
    pub const BYTES_MIN: usize = 13;

    /// The body as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![first(u8::from(self.is_complete))];
        out.extend(self.start.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        for (slot, count) in self.counts.iter().take(MAX_REPORTED) {
            out.extend(slot.number().to_le_bytes());
            out.extend(count.to_le_bytes());
        }
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// All that [`crate::HelloMessage::parse`] may say.
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = MessageBytes::new(body);
        let flags = version(fields.byte()?)?;
        zero(flags & !1)?;
        let start = fields.take().map(u64::from_le_bytes)?;
        let mut report =
            Self { is_complete: flags == 1, start, sequence: fields.long()?, counts: vec![] };
        while !fields.is_empty() {
            if report.counts.len() == MAX_REPORTED {
                return Err(MeshError::Range);
            }
            report.counts.push((fields.slot()?, fields.word()?));
        }
        Ok(report)
    }
}

fn zero(bits: u8) -> Result<(), MeshError> {
    if bits == 0 { Ok(()) } else { Err(MeshError::Range) }
}

/// The bits of a route's slot that say more.
const GATEWAY: u16 = 1 << 15;
const ATTACHED: u16 = 1 << 14;
/// In place of a slot: whoever hears it.
const EACH: u16 = u16::MAX;

#[cfg(test)]
mod tests;
