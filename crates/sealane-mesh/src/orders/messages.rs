//! The messages between neighbours about orders.

use sealane_frame::GroupTag;
use sealane_seal::Slot;

use crate::MeshError;
use crate::bytes::{MessageBytes, first, version};
use crate::limits::{MAX_KEPT_GROUPS, MAX_NOTICE_BYTES};
use crate::notice::REMOVAL_NOTICE_BYTES;

/// Bytes of each piece of a notice but the last.
pub const PIECE_BYTES: usize = 128;

/// Which orders a machine holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrdersHeld {
    /// Of each group whose orders it keeps.
    pub groups: Vec<HeldOf>,
}

/// Which orders of one group a machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldOf {
    /// The group.
    pub group: GroupTag,
    /// The first order that it lacks.
    pub wants: u64,
    /// From this one on it holds all below that, and can give them.
    pub first: u64,
    /// A hash of the notices of removal that it holds for orders which it lacks; 0: there are none.
    pub removals: u32,
}

impl OrdersHeld {
    /// The body as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![first(0)];
        for one in self.groups.iter().take(MAX_KEPT_GROUPS) {
            out.extend(one.group.to_bytes());
            out.extend(one.wants.to_le_bytes());
            out.extend(one.first.to_le_bytes());
            out.extend(one.removals.to_le_bytes());
        }
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// [`MeshError::Truncated`], [`MeshError::UnknownVersion`], [`MeshError::Range`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = begin(body)?;
        let mut held = Self::default();
        while !fields.is_empty() {
            let group = fields.take().map(GroupTag::from_bytes)?;
            let (wants, first) = (long(&mut fields)?, long(&mut fields)?);
            let removals = fields.long()?;
            let is_new = held.groups.iter().all(|known| known.group != group);
            if held.groups.len() == MAX_KEPT_GROUPS || first > wants || !is_new {
                return Err(MeshError::Range);
            }
            held.groups.push(HeldOf { group, wants, first, removals });
        }
        Ok(held)
    }
}

/// Which pieces of an order a machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PiecesAsked {
    /// The neighbour that is to give them.
    pub to: Slot,
    /// The group.
    pub group: GroupTag,
    /// The order's number.
    pub number: u64,
    /// The first piece that is asked for.
    pub first: u16,
    /// One bit for each of the 64 pieces from there on that is missing.
    pub pieces: u64,
}

impl PiecesAsked {
    /// The body as it travels.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = vec![first(0)];
        out.extend(self.to.number().to_le_bytes());
        out.extend(self.group.to_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.first.to_le_bytes());
        out.extend(self.pieces.to_le_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// As [`OrdersHeld::parse`], and [`MeshError::TooLong`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = begin(body)?;
        let to = fields.slot()?;
        let group = fields.take().map(GroupTag::from_bytes)?;
        let (number, first) = (long(&mut fields)?, fields.word()?);
        let asked = Self { to, group, number, first, pieces: long(&mut fields)? };
        fields.end().map(|()| asked)
    }
}

/// Pieces of an order, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderPieces {
    /// The group.
    pub group: GroupTag,
    /// The order's number.
    pub number: u64,
    /// The bytes of the whole notice.
    pub length: u16,
    /// The number of the first piece here.
    pub first: u16,
    /// The pieces: [`PIECE_BYTES`] each, and the last of all what is left.
    pub bytes: Vec<u8>,
}

impl OrderPieces {
    /// The bytes of the message before the pieces.
    pub(crate) const HEAD_BYTES: usize = 17;

    /// The body as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![first(0)];
        out.extend(self.group.to_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend(self.first.to_le_bytes());
        out.extend_from_slice(&self.bytes);
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// As [`OrdersHeld::parse`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = begin(body)?;
        let group = fields.take().map(GroupTag::from_bytes)?;
        let number = long(&mut fields)?;
        let (length, first) = (fields.word()?, fields.word()?);
        let bytes = fields.rest().to_vec();
        let end = usize::from(first) * PIECE_BYTES + bytes.len();
        let whole = usize::from(length);
        let is_cut_right = end == whole || end < whole && bytes.len().is_multiple_of(PIECE_BYTES);
        if bytes.is_empty() || whole > MAX_NOTICE_BYTES || !is_cut_right {
            return Err(MeshError::Range);
        }
        Ok(Self { group, number, length, first, bytes })
    }
}

/// That somebody is about to be removed: a notice of the group's authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalMessage {
    /// The group.
    pub group: GroupTag,
    /// The notice, as its authority has signed it.
    pub notice: [u8; REMOVAL_NOTICE_BYTES],
}

impl RemovalMessage {
    /// The bytes of the message.
    pub const BYTES: usize = 1 + 4 + REMOVAL_NOTICE_BYTES;

    /// The body as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![first(0)];
        out.extend(self.group.to_bytes());
        out.extend(self.notice);
        out
    }

    /// Reads a body. Who has signed the notice is not looked at.
    ///
    /// # Errors
    ///
    /// As [`PiecesAsked::parse`].
    pub fn parse(body: &[u8]) -> Result<Self, MeshError> {
        let mut fields = begin(body)?;
        let group = fields.take().map(GroupTag::from_bytes)?;
        let message = Self { group, notice: fields.take()? };
        fields.end().map(|()| message)
    }
}

/// The fields behind the first byte, of which no bit says anything.
fn begin(body: &[u8]) -> Result<MessageBytes<'_>, MeshError> {
    let mut fields = MessageBytes::new(body);
    match version(fields.byte()?)? {
        0 => Ok(fields),
        _ => Err(MeshError::Range),
    }
}

fn long(fields: &mut MessageBytes<'_>) -> Result<u64, MeshError> {
    fields.take().map(u64::from_le_bytes)
}
