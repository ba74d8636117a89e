//! The compact form: at most eleven bytes of headers, fifteen for class P.

use sealane_seal::{self as seal, Class, Epoch, Form, limits};

use crate::draft::HEAD_ROOM_BYTES;
use crate::header::{Header, trailer_bytes};
use crate::limits::{MAX_FRAME_BODY_BYTES, MAX_HOP_LIMIT};
use crate::{
    DictionaryEntry, FrameAnnouncement, FrameDictionary, FrameError, FrameKind, FrameRoster,
    FrameView, GroupTag, HeaderFields, PeerTag,
};

/// The knowledge of the two ends of a link about a frame on it.
#[derive(Debug, Clone, Copy)]
pub struct LinkContext<'a> {
    /// The dictionary of this direction of the connection.
    pub dictionary: &'a FrameDictionary,
    /// The members of groups.
    pub roster: &'a FrameRoster,
    /// The machine that takes frames from the link.
    pub next_hop: PeerTag,
    /// The machine that puts them on the link.
    pub previous_hop: PeerTag,
}

/// A frame in the compact form, taken apart.
#[derive(Debug, Clone, Copy)]
pub struct CompactView<'a> {
    prefix: CompactPrefix,
    entry: &'a DictionaryEntry,
    seal: seal::SframeHeader,
    seal_bytes: usize,
    body_bytes: usize,
    bytes: &'a [u8],
}

/// The bytes before the SFrame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompactPrefix {
    kind: FrameKind,
    hop_limit: u8,
    entry: u8,
    /// The last byte of the sender's context.
    context_low: u8,
    data_type: u16,
    /// The group of class P.
    pair: Option<GroupTag>,
}

impl<'a> CompactView<'a> {
    /// Reads a compact frame of this link.
    ///
    /// # Errors
    ///
    /// The first that does not hold, from [`FrameError::TooShort`] to
    /// [`FrameError::HeadersDisagree`], and [`FrameError::UnknownEntry`].
    pub fn parse(bytes: &'a [u8], link: &LinkContext<'a>) -> Result<Self, FrameError> {
        let (prefix, entry, sealed) = CompactPrefix::parse(bytes, link.dictionary)?;
        let near = link.roster.epoch(prefix.pair.unwrap_or(entry.group()));
        let (seal, seal_bytes) = seal::SframeHeader::parse(sealed, Form::Compact, near)
            .map_err(|_| FrameError::BadSealHeader)?;
        if prefix.bytes() + seal_bytes > header_bytes_max(entry.class()) {
            return Err(FrameError::BadSealHeader);
        }
        if seal.key.class != entry.class() {
            return Err(FrameError::HeadersDisagree);
        }
        let around = seal_bytes + trailer_bytes(entry.class());
        let body_bytes = sealed.len().checked_sub(around).ok_or(FrameError::LengthMismatch)?;
        if body_bytes > MAX_FRAME_BODY_BYTES {
            return Err(FrameError::BodyTooLong);
        }
        Ok(Self { prefix, entry, seal, seal_bytes, body_bytes, bytes })
    }

    /// The same header in the full form, as the seal protects it.
    ///
    /// # Errors
    ///
    /// [`FrameError::UnknownSource`] if the roster has no tag for the sender's slot,
    /// [`FrameError::Unannounced`] if the slot has not announced this context.
    pub fn header(&self, link: &LinkContext<'_>) -> Result<Header, FrameError> {
        let group = self.prefix.pair.unwrap_or(self.entry.group());
        let known = link.roster.known(group, self.seal.key.slot);
        let known = known.ok_or(FrameError::UnknownSource)?;
        let announced = known.announced.filter(|one| one.context.low() == self.prefix.context_low);
        let FrameAnnouncement { context, orders } = announced.ok_or(FrameError::Unannounced)?;
        let fields = HeaderFields {
            next_hop: link.next_hop,
            previous_hop: link.previous_hop,
            hop_limit: self.prefix.hop_limit,
            kind: self.prefix.kind,
            destination: self.entry.destination(),
            orders,
            ..HeaderFields::new(group, known.tag, self.prefix.data_type)
        };
        let header = Header::new(&fields, self.body_bytes, self.seal.counter, context)?;
        Ok(header.with_entry(self.entry.flags(), self.entry.codec()))
    }

    /// The SFrame header. Its epoch is the one nearest to what the roster knows.
    pub fn seal_header(&self) -> seal::SframeHeader {
        self.seal
    }

    /// The entry that the dictionary byte stands for.
    pub fn entry(&self) -> &'a DictionaryEntry {
        self.entry
    }

    /// The data type of the body.
    pub fn data_type(&self) -> u16 {
        self.prefix.data_type
    }

    /// How often it may still be relayed.
    pub fn hop_limit(&self) -> u8 {
        self.prefix.hop_limit
    }

    /// The bytes of both headers.
    pub fn header_bytes(&self) -> usize {
        self.prefix.bytes() + self.seal_bytes
    }

    /// Body, or ciphertext, and tag.
    fn behind_headers(&self) -> &'a [u8] {
        self.bytes.get(self.header_bytes()..).unwrap_or_default()
    }

    pub(crate) fn layout(&self) -> CompactLayout {
        CompactLayout {
            prefix_bytes: self.prefix.bytes(),
            seal_bytes: self.seal_bytes,
            clear_bytes: if self.is_clear() { self.body_bytes } else { 0 },
        }
    }

    fn is_clear(&self) -> bool {
        self.entry.class() == Class::Authenticated
    }
}

/// Appends the compact form of a full frame to `out`.
///
/// # Errors
///
/// As [`FrameView::parse`]. [`FrameError::NoCompactForm`] if this link's context would not give the
/// same full frame again. There are five causes. The hops are not those of the link. The context
/// was not announced on it. Dictionary or roster lack an entry that is needed. The group's epoch is
/// not near. The headers would be longer than the form allows.
pub fn to_compact(
    frame: &[u8],
    link: &LinkContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let view = FrameView::parse(frame)?;
    let (header, seal) = (view.header(), view.seal_header());
    let prefix = CompactPrefix::of(header, seal.key.slot, link)?;
    let near = link.roster.epoch(header.group());
    let hops = (header.next_hop(), header.previous_hop());
    let is_near = seal.key.epoch_low == nearest_low(seal, near);
    let head = seal.encode(Form::Compact);
    let is_short = prefix.bytes() + head.len() <= header_bytes_max(header.class());
    if hops != (link.next_hop, link.previous_hop) || !is_near || !is_short {
        return Err(FrameError::NoCompactForm);
    }
    prefix.write(out);
    out.extend_from_slice(&head);
    out.extend_from_slice(view.clear_body().unwrap_or_default());
    out.extend_from_slice(view.seal_parts().1);
    Ok(())
}

/// Appends the full form of a compact frame to `out`.
///
/// # Errors
///
/// As [`CompactView::parse`] and [`CompactView::header`].
pub fn to_full(
    compact: &[u8],
    link: &LinkContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let view = CompactView::parse(compact, link)?;
    let header = view.header(link)?;
    let head = view.seal.encode(Form::Full);
    let clear = if view.is_clear() { view.body_bytes } else { 0 };
    let (clear, rest) =
        view.behind_headers().split_at_checked(clear).ok_or(FrameError::LengthMismatch)?;
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(clear);
    out.extend_from_slice(&head);
    out.extend_from_slice(rest);
    Ok(())
}

/// Sends a compact frame on in the buffer it arrived in: the hop limit goes down, and the
/// dictionary byte becomes `byte`, which stands for the same entry on the next link.
///
/// # Errors
///
/// [`FrameError::TooShort`], [`FrameError::UnknownVersion`] and [`FrameError::HopLimitSpent`]; the
/// frame is left as it was.
pub fn forward_compact_in_place(frame: &mut [u8], byte: u8) -> Result<(), FrameError> {
    let [first, entry, _, ..] = frame else { return Err(FrameError::TooShort) };
    if *first & MARK == 0 {
        return Err(FrameError::UnknownVersion);
    }
    if *first & HOPS_MASK == 0 {
        return Err(FrameError::HopLimitSpent);
    }
    *first -= 1;
    *entry = byte;
    Ok(())
}

/// Sets how often a compact frame may be relayed, as its sender does; more than
/// [`MAX_HOP_LIMIT`] counts as that.
#[inline]
pub fn set_compact_hop_limit(frame: &mut [u8], limit: u8) {
    if let Some(first) = frame.first_mut() {
        *first = *first & !HOPS_MASK | limit.min(MAX_HOP_LIMIT);
    }
}

/// Where the parts of a compact frame lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompactLayout {
    pub(crate) prefix_bytes: usize,
    pub(crate) seal_bytes: usize,
    /// The body of class A.
    pub(crate) clear_bytes: usize,
}

impl CompactPrefix {
    /// The prefix of a message on a link, if the link's context says the rest of its header.
    pub(crate) fn of(
        header: &Header,
        slot: seal::Slot,
        link: &LinkContext<'_>,
    ) -> Result<Self, FrameError> {
        let fields = header.fields();
        let entry = link.dictionary.byte(&DictionaryEntry::of(&fields));
        let entry = entry.ok_or(FrameError::NoCompactForm)?;
        let is_source = link.roster.tag(fields.group, slot) == Some(fields.source);
        let announced = FrameAnnouncement { context: header.context(), orders: header.orders() };
        if !is_source || link.roster.announced(fields.group, slot) != Some(announced) {
            return Err(FrameError::NoCompactForm);
        }
        let pair = (fields.class == Class::Peer).then_some(fields.group);
        let (kind, hop_limit, data_type) = (fields.kind, fields.hop_limit, fields.data_type);
        let context_low = announced.context.low();
        Ok(Self { kind, hop_limit, entry, context_low, data_type, pair })
    }

    fn parse<'a, 'd>(
        bytes: &'a [u8],
        dictionary: &'d FrameDictionary,
    ) -> Result<(Self, &'d DictionaryEntry, &'a [u8]), FrameError> {
        let [first, byte, context_low, low, rest @ ..] = bytes else {
            return Err(FrameError::TooShort);
        };
        if first & MARK == 0 {
            return Err(FrameError::UnknownVersion);
        }
        let (high, rest) = if first & WIDE == 0 {
            (0, rest)
        } else {
            let (&high, rest) = rest.split_first().ok_or(FrameError::TooShort)?;
            if high == 0 {
                return Err(FrameError::ReservedBits);
            }
            (high, rest)
        };
        let entry = dictionary.entry(*byte).ok_or(FrameError::UnknownEntry)?;
        let (pair, rest) = if entry.class() == Class::Peer {
            let (group, rest) = rest.split_first_chunk().ok_or(FrameError::TooShort)?;
            (Some(GroupTag::from_bytes(*group)), rest)
        } else {
            (None, rest)
        };
        let kind = FrameKind::from_id(first >> KIND_SHIFT & 3).ok_or(FrameError::UnknownKind)?;
        let data_type = u16::from_le_bytes([*low, high]);
        let (hop_limit, entry_byte, context_low) = (first & HOPS_MASK, *byte, *context_low);
        let prefix = Self { kind, hop_limit, entry: entry_byte, context_low, data_type, pair };
        Ok((prefix, entry, rest))
    }

    /// The prefix as it travels, and how many of the bytes it takes.
    pub(crate) fn encode(&self) -> ([u8; PREFIX_BYTES_MAX], usize) {
        let [low, high] = self.data_type.to_le_bytes();
        let wide = if high == 0 { 0 } else { WIDE };
        let first = MARK | wide | (self.kind as u8) << KIND_SHIFT | self.hop_limit & HOPS_MASK;
        let [a, b, c, d] = self.pair.unwrap_or_default().to_bytes();
        let bytes = match high {
            0 => [first, self.entry, self.context_low, low, a, b, c, d, 0],
            _ => [first, self.entry, self.context_low, low, high, a, b, c, d],
        };
        (bytes, self.bytes())
    }

    pub(crate) fn bytes(&self) -> usize {
        let wide = usize::from(self.data_type > 0xff);
        4 + wide + if self.pair.is_some() { size_of::<GroupTag>() } else { 0 }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (bytes, len) = self.encode();
        out.extend_from_slice(bytes.get(..len).unwrap_or_default());
    }
}

/// The most bytes of both headers.
pub(crate) const fn header_bytes_max(class: Class) -> usize {
    match class {
        Class::Peer => COMPACT_HEADER_BYTES_MAX + size_of::<GroupTag>(),
        _ => COMPACT_HEADER_BYTES_MAX,
    }
}

/// The low bits of the epoch that a reader of the compact form completes.
fn nearest_low(seal: seal::SframeHeader, near: Epoch) -> u8 {
    let head = seal.encode(Form::Compact);
    let read = seal::SframeHeader::parse(&head, Form::Compact, near);
    read.map_or(!seal.key.epoch_low, |(read, _)| read.key.epoch_low)
}

/// The most bytes of both headers, but for the group tag of class P: what the byte of the context
/// takes, the counter has less.
pub const COMPACT_HEADER_BYTES_MAX: usize = 11;
/// First byte, dictionary byte, low byte of the context, data type, group tag.
pub(crate) const PREFIX_BYTES_MAX: usize = 9;
/// The bit that tells a compact frame from fragments, batches and later versions.
const MARK: u8 = 0x80;
/// The bit for a data type of two bytes.
const WIDE: u8 = 0x40;
const KIND_SHIFT: u32 = 4;
const HOPS_MASK: u8 = 0x0f;
const _: () = assert!(COMPACT_HEADER_BYTES_MAX == 3 + limits::MAX_COMPACT_HEADER_BYTES);
const _: () = assert!(HEAD_ROOM_BYTES >= PREFIX_BYTES_MAX + limits::MAX_COMPACT_HEADER_BYTES);
