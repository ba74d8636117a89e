//! The full header: 64 bytes, read in place.

use sealane_seal::{Class, SenderContext, limits};
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::limits::{MAX_FRAME_BODY_BYTES, MAX_HOP_LIMIT};
use crate::{
    ANNOUNCEMENT_TYPE, FrameCompression, FrameError, FrameKind, GroupTag, PeerTag, Priority,
};

/// The full header's length.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// The bytes at its start that relays change and no seal protects.
pub const RELAY_BYTES: usize = size_of::<Hops>();
/// The bytes behind them, which every seal protects.
pub const AUTHENTICATED_BYTES: usize = HEADER_BYTES - RELAY_BYTES;
/// The version of the format that this crate writes and reads.
pub const VERSION: u8 = 2;

/// The full header, as it lies in a frame: `spec/frame.md`, section *Full form*.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    hops: Hops,
    /// Version in the low byte, kind in the high one: a relay compares both at once.
    version_and_kind: U16,
    flags: u8,
    codec: u8,
    data_type: U16,
    group: GroupTag,
    source: PeerTag,
    destination: PeerTag,
    body_bytes: U32,
    sequence: U64,
    context: [u8; SenderContext::BYTES],
    orders: u8,
}

/// The fields that relays change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub(crate) struct Hops {
    pub(crate) next: PeerTag,
    pub(crate) previous: PeerTag,
    pub(crate) limit: u8,
}

/// The bytes at the start of a frame that relays change, for these hops.
pub const fn hop_bytes(next: PeerTag, previous: PeerTag, limit: u8) -> [u8; RELAY_BYTES] {
    zerocopy::transmute!(Hops { next, previous, limit })
}

/// Sets how often a full frame may be relayed, as its sender does; more than [`MAX_HOP_LIMIT`]
/// counts as that. Bytes that are too short for the fields that relays change stay as they are.
#[inline]
pub fn set_hop_limit(frame: &mut [u8], limit: u8) {
    if let Ok((hops, _)) = Hops::mut_from_prefix(frame) {
        hops.limit = limit.min(MAX_HOP_LIMIT);
    }
}

/// A sender's fields about a message. Body length, sequence and context come with the seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderFields {
    /// The machine that takes the frame from this link.
    pub next_hop: PeerTag,
    /// The machine that put it on this link.
    pub previous_hop: PeerTag,
    /// How often it may be relayed; more than [`MAX_HOP_LIMIT`] counts as that.
    pub hop_limit: u8,
    /// The purpose of the frame.
    pub kind: FrameKind,
    /// The protection of the seal.
    pub class: Class,
    /// The priority on a slow link.
    pub priority: Priority,
    /// How the body was compressed.
    pub compression: FrameCompression,
    /// The codec's number (`spec/codec.md`), or 0 for bytes of no codec.
    pub codec: u8,
    /// The data type of the body.
    pub data_type: u16,
    /// The group whose keys seal it.
    pub group: GroupTag,
    /// The sender of the message.
    pub source: PeerTag,
    /// Whom it is for.
    pub destination: PeerTag,
    /// The low byte of how many orders of its group the sender has obeyed.
    pub orders: u8,
}

impl HeaderFields {
    /// A message of class C and ordinary priority to all of a group, in CBOR.
    pub fn new(group: GroupTag, source: PeerTag, data_type: u16) -> Self {
        Self {
            next_hop: PeerTag::BROADCAST,
            previous_hop: source,
            hop_limit: MAX_HOP_LIMIT,
            kind: FrameKind::Message,
            class: Class::Group,
            priority: Priority::Normal,
            compression: FrameCompression::None,
            codec: 3,
            data_type,
            group,
            source,
            destination: PeerTag::BROADCAST,
            orders: 0,
        }
    }

    /// Class, priority and compression as they travel.
    pub fn flags(&self) -> u8 {
        self.class.number()
            | (self.priority as u8) << PRIORITY_SHIFT
            | (self.compression as u8) << COMPRESSION_SHIFT
    }
}

impl Header {
    /// The header of a message with that body length, sequence and context.
    ///
    /// # Errors
    ///
    /// [`FrameError::BodyTooLong`].
    pub fn new(
        fields: &HeaderFields,
        body_bytes: usize,
        sequence: u64,
        context: SenderContext,
    ) -> Result<Self, FrameError> {
        if body_bytes > MAX_FRAME_BODY_BYTES {
            return Err(FrameError::BodyTooLong);
        }
        let body_bytes = u32::try_from(body_bytes).map_err(|_| FrameError::BodyTooLong)?;
        let hops = Hops {
            next: fields.next_hop,
            previous: fields.previous_hop,
            limit: fields.hop_limit.min(MAX_HOP_LIMIT),
        };
        Ok(Self {
            hops,
            version_and_kind: u16::from_le_bytes([VERSION, fields.kind as u8]).into(),
            flags: fields.flags(),
            codec: fields.codec,
            data_type: fields.data_type.into(),
            group: fields.group,
            source: fields.source,
            destination: fields.destination,
            body_bytes: body_bytes.into(),
            sequence: sequence.into(),
            context: context.0,
            orders: fields.orders,
        })
    }

    /// The same header with other flags and codec, which are not looked at: those of a dictionary
    /// entry, or of a brief form of the frame.
    #[must_use]
    pub fn with_entry(mut self, flags: u8, codec: u8) -> Self {
        self.flags = flags;
        self.codec = codec;
        self
    }

    /// The whole header as it travels.
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// The bytes that every seal protects: associated data, whichever form travels.
    pub fn authenticated(&self) -> &[u8] {
        self.as_bytes().get(RELAY_BYTES..).unwrap_or_default()
    }

    /// All that a sender says about a message.
    pub fn fields(&self) -> HeaderFields {
        HeaderFields {
            next_hop: self.next_hop(),
            previous_hop: self.previous_hop(),
            hop_limit: self.hop_limit(),
            kind: self.kind(),
            class: self.class(),
            priority: self.priority(),
            compression: self.compression(),
            codec: self.codec(),
            data_type: self.data_type(),
            group: self.group(),
            source: self.source(),
            destination: self.destination(),
            orders: self.orders(),
        }
    }

    /// The machine that takes the frame from this link.
    pub fn next_hop(&self) -> PeerTag {
        self.hops.next
    }

    /// The machine that put it on this link.
    pub fn previous_hop(&self) -> PeerTag {
        self.hops.previous
    }

    /// How often it may still be relayed, at most [`MAX_HOP_LIMIT`].
    pub fn hop_limit(&self) -> u8 {
        self.hops.limit.min(MAX_HOP_LIMIT)
    }

    /// The purpose of the frame.
    pub fn kind(&self) -> FrameKind {
        let [_, kind] = self.version_and_kind.to_bytes();
        FrameKind::from_id(kind).unwrap_or(FrameKind::Message)
    }

    /// Whether the frame is a message between machines of that group's mesh.
    #[inline]
    pub fn is_routing(&self, group: GroupTag) -> bool {
        self.kind() == FrameKind::Routing && self.group() == group
    }

    /// Whether the frame says that it announces a sender of that group. The class is left to the
    /// member that opens it.
    #[inline]
    pub fn is_announcement(&self, group: GroupTag) -> bool {
        let what = (self.kind(), self.data_type(), self.group());
        what == (FrameKind::Control, ANNOUNCEMENT_TYPE, group)
    }

    /// The protection of the seal.
    pub fn class(&self) -> Class {
        Class::from_bits(self.flags)
    }

    /// The priority on a slow link.
    pub fn priority(&self) -> Priority {
        match self.flags >> PRIORITY_SHIFT & 3 {
            0 => Priority::Low,
            1 => Priority::Normal,
            2 => Priority::High,
            _ => Priority::Critical,
        }
    }

    /// How the body was compressed.
    pub fn compression(&self) -> FrameCompression {
        match self.flags >> COMPRESSION_SHIFT & 3 {
            1 => FrameCompression::Lz4,
            2 => FrameCompression::Zstd,
            _ => FrameCompression::None,
        }
    }

    /// Class, priority and compression as they travel.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// The codec's number, or 0 for bytes of no codec.
    pub fn codec(&self) -> u8 {
        self.codec
    }

    /// The data type of the body.
    pub fn data_type(&self) -> u16 {
        self.data_type.get()
    }

    /// The group whose keys seal it.
    pub fn group(&self) -> GroupTag {
        self.group
    }

    /// The sender of the message.
    pub fn source(&self) -> PeerTag {
        self.source
    }

    /// Whom it is for.
    pub fn destination(&self) -> PeerTag {
        self.destination
    }

    /// The body's length, without signature and tag.
    pub fn body_bytes(&self) -> usize {
        self.body_bytes.get() as usize
    }

    /// The sender's counter of this message.
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// The start of the sender that made it.
    pub fn context(&self) -> SenderContext {
        SenderContext(self.context)
    }

    /// The low byte of how many orders of its group the sender had obeyed.
    pub fn orders(&self) -> u8 {
        self.orders
    }

    pub(crate) fn hops_mut(&mut self) -> &mut Hops {
        &mut self.hops
    }

    /// Checks all that can be told from the header and the frame's length alone, which is what a
    /// relay checks.
    #[inline]
    pub(crate) fn check(&self, frame_bytes: usize) -> Result<(), FrameError> {
        let seal_bytes = frame_bytes.wrapping_sub(self.room());
        // Joined without branches: nearly every frame passes all of them.
        let is_frame = (self.version_and_kind.get() & !KINDS == VERSION.into())
            & are_flags(self.flags)
            & (seal_bytes.wrapping_sub(1) < limits::MAX_HEADER_BYTES);
        if is_frame { Ok(()) } else { Err(self.fault(frame_bytes)) }
    }

    /// The frame's length but for the SFrame header.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        HEADER_BYTES + self.body_bytes() + trailer_bytes(self.class())
    }

    #[cold]
    fn fault(&self, frame_bytes: usize) -> FrameError {
        let [version, kind] = self.version_and_kind.to_bytes();
        match () {
            () if frame_bytes < HEADER_BYTES => FrameError::TooShort,
            () if version != VERSION => FrameError::UnknownVersion,
            () if FrameKind::from_id(kind).is_none() => FrameError::UnknownKind,
            () if !are_flags(self.flags) => FrameError::ReservedBits,
            () => FrameError::LengthMismatch,
        }
    }
}

/// Whether flags have a meaning.
pub(crate) const fn are_flags(flags: u8) -> bool {
    flags <= FLAGS_MAX
}

/// The bytes behind a body of that class: tag, and signature within the ciphertext.
pub(crate) const fn trailer_bytes(class: Class) -> usize {
    match class {
        Class::Signed => limits::SIGNATURE_BYTES + limits::TAG_BYTES,
        _ => limits::TAG_BYTES,
    }
}

const PRIORITY_SHIFT: u32 = 2;
const COMPRESSION_SHIFT: u32 = 4;
/// The two highest bits are zero, and so is one of the two below: three compressions are known.
const FLAGS_MAX: u8 = 0b10_11_11;
/// The bits of the kind that may be set, beside a version.
const KINDS: u16 = (FrameKind::ALL.len() as u16 - 1) << 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameView;

    #[test]
    fn every_field_lies_where_the_specification_says() {
        let hash = |first: u8| PeerTag::from_bytes(std::array::from_fn(|at| first + at as u8));
        let fields = HeaderFields {
            next_hop: hash(0x10),
            previous_hop: hash(0x20),
            hop_limit: 7,
            kind: FrameKind::Gossip,
            class: Class::Signed,
            priority: Priority::Critical,
            compression: FrameCompression::Lz4,
            codec: 3,
            data_type: 0x3132,
            group: GroupTag::from_bytes([0x40, 0x41, 0x42, 0x43]),
            source: hash(0x50),
            destination: hash(0x60),
            orders: 0x98,
        };
        let context = SenderContext([0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97]);
        let header = Header::new(&fields, 0x7_0001, 0x71_7273_7475, context).unwrap();
        assert_eq!(header.fields(), fields);
        let bytes = header.as_bytes();
        assert_eq!(bytes.len(), 64);
        let at = |start: usize, expected: &[u8]| {
            assert_eq!(&bytes[start..start + expected.len()], expected, "at {start}");
        };
        at(0, &fields.next_hop.to_bytes());
        at(8, &fields.previous_hop.to_bytes());
        at(16, &[7, 2, 3, 0b01_11_10, 3, 0x32, 0x31]);
        at(23, &fields.group.to_bytes());
        at(27, &fields.source.to_bytes());
        at(35, &fields.destination.to_bytes());
        at(43, &[1, 0, 7, 0]);
        at(47, &[0x75, 0x74, 0x73, 0x72, 0x71, 0, 0, 0]);
        at(55, &[0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98]);
        assert_eq!(header.authenticated(), &bytes[17..]);
    }

    /// Relays and the mesh decide by these bytes before any seal is checked, so that they are
    /// written here as the specification counts them and not as the struct lies.
    #[test]
    fn messages_between_machines_are_known_by_the_places_of_the_specification() {
        let (group, other) = (GroupTag::from_bytes([9; 4]), GroupTag::from_bytes([8; 4]));
        let mut unit = [0x55; 70];
        unit[17..19].copy_from_slice(&[2, 2]);
        unit[23..27].copy_from_slice(&[9; 4]);
        let header = FrameView::peek(&unit).unwrap();
        assert!(header.is_routing(group) && !header.is_routing(other));
        assert!(!header.is_announcement(group));
        unit[18] = 1;
        unit[21..23].copy_from_slice(&[3, 0]);
        let header = FrameView::peek(&unit).unwrap();
        assert!(header.is_announcement(group) && !header.is_announcement(other));
        assert!(!header.is_routing(group));
        unit[21] = 4;
        assert!(!FrameView::peek(&unit).unwrap().is_announcement(group));
        assert!(FrameView::peek(&unit[..63]).is_none());
    }

    #[test]
    fn hop_limits_are_clamped() {
        let mut fields = HeaderFields::new(GroupTag::default(), PeerTag::NOBODY, 0);
        fields.hop_limit = 255;
        let mut header = Header::new(&fields, 0, 0, SenderContext([0; 8])).unwrap();
        assert_eq!(header.as_bytes()[16], MAX_HOP_LIMIT);
        header.hops_mut().limit = 200;
        assert_eq!(header.hop_limit(), MAX_HOP_LIMIT);
    }
}
