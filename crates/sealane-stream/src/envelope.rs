mod buffer;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, Bytes};
use sealane_codec::{Codec, CodecError, DatumKind, DatumWriter, Transcoder};
use sealane_frame::{FrameView, GroupTag, RELAY_BYTES};
use sealane_protocol::SealedEnvelope;
use sealane_protocol::limits::{
    MAX_ENVELOPE_BYTES, MAX_ENVELOPE_DEPTH, MAX_ENVELOPE_VALUES, MAX_ID_BYTES,
};

use crate::Error;

pub use buffer::EnvelopeBuffer;

/// A message as a client wrote it: checked once, then carried verbatim.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEnvelope {
    pub(crate) content: EnvelopeContent,
    pub(crate) id: Bytes,
    pub(crate) body: Bytes,
}

/// The form of a message's body at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvelopeContent {
    /// The envelope, a map of this codec.
    Open(Codec),
    /// One frame in the full form, and nothing of the envelope around it.
    Sealed,
}

impl EnvelopeContent {
    /// No codec has this id: it tells a frame from an envelope in a record.
    const SEALED_ID: u8 = 128;

    /// The number in stored records (spec/store.md §3).
    pub(crate) fn id(self) -> u8 {
        match self {
            EnvelopeContent::Open(codec) => codec as u8,
            EnvelopeContent::Sealed => Self::SEALED_ID,
        }
    }

    pub(crate) fn from_id(id: u8) -> Option<EnvelopeContent> {
        match id {
            Self::SEALED_ID => Some(EnvelopeContent::Sealed),
            id => Codec::from_id(id).map(EnvelopeContent::Open),
        }
    }
}

impl StreamEnvelope {
    /// Checks `raw`, one encoded map, and adds an id where it has none. Of a sealed message the
    /// frame is taken out; its header is checked, and nothing of it can be read here.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Decode`], [`Error::InvalidEnvelope`] or
    /// [`Error::FrameMalformed`].
    pub fn read(
        scratch: &mut Transcoder,
        ids: &MessageIds,
        codec: Codec,
        raw: &[u8],
    ) -> Result<StreamEnvelope, Error> {
        Self::read_into(&mut EnvelopeBuffer::default(), scratch, ids, codec, raw)
    }

    /// As [`StreamEnvelope::read`], with the body in memory that it shares with others of its
    /// stream.
    ///
    /// # Errors
    /// As [`StreamEnvelope::read`].
    pub fn read_into(
        buffer: &mut EnvelopeBuffer,
        scratch: &mut Transcoder,
        ids: &MessageIds,
        codec: Codec,
        raw: &[u8],
    ) -> Result<StreamEnvelope, Error> {
        // The length is asked before anything is parsed, since parsing is what a large body would
        // cost.
        if raw.len() > MAX_ENVELOPE_BYTES {
            return Err(Error::TooLarge { what: "envelope", limit: MAX_ENVELOPE_BYTES });
        }
        if sealane_codec::kind(codec, raw) != Some(DatumKind::Map) {
            return Err(Error::InvalidEnvelope("is not a map"));
        }
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        scratch.validate(codec, raw).map_err(|cause| match cause {
            CodecError::TooDeep { .. } => Error::InvalidEnvelope(TOO_DEEP),
            CodecError::TooLarge { .. } => Error::InvalidEnvelope(TOO_MANY),
            cause => decode(cause),
        })?;
        // Readers transcode a message into their codec. One that they cannot hold is refused here,
        // where its writer learns it.
        let (values, depth) = scratch.size();
        if depth > MAX_ENVELOPE_DEPTH {
            return Err(Error::InvalidEnvelope(TOO_DEEP));
        }
        if values > MAX_ENVELOPE_VALUES {
            return Err(Error::InvalidEnvelope(TOO_MANY));
        }
        // Almost no open message is so small. The look for a frame costs the others one comparison.
        if values <= SEALED_VALUES
            && scratch.has_field(raw, "sealed")
            && let Some(sealed) = SealedEnvelope::read(codec, raw)?
        {
            return Self::sealed(ids, &sealed);
        }
        let not_text = |_| Error::InvalidEnvelope("has an id that is not text");
        let Some(id) = scratch.text_field(raw, "id").map_err(not_text)? else {
            // The id is put in front of the text. Writing the map anew would reorder or reformat a
            // client's bytes.
            if codec == Codec::Json {
                return Ok(Self::with_json_id(buffer, ids, raw, values));
            }
            let fields = sealane_codec::fields(codec, raw).map_err(decode)?;
            return Ok(Self::with_id(codec, ids.next(), &fields));
        };
        check_id(id)?;
        let body = buffer.copy(raw);
        // The id is a part of the body, unless it is written with escapes.
        let id = match place_in(raw, id.as_bytes()) {
            // The id shares the body's memory. A copy would be an allocation for each message.
            Some(place) => body.slice(place),
            None => Bytes::copy_from_slice(id.as_bytes()),
        };
        Ok(StreamEnvelope { content: EnvelopeContent::Open(codec), id, body })
    }

    fn sealed(ids: &MessageIds, sealed: &SealedEnvelope<'_>) -> Result<StreamEnvelope, Error> {
        // The header is all that the hub can read. A frame that no member could open is refused at
        // once.
        FrameView::parse(&sealed.frame).map_err(Error::FrameMalformed)?;
        let id = match &sealed.id {
            Some(id) => {
                check_id(id)?;
                Bytes::copy_from_slice(id.as_bytes())
            }
            None => ids.next().into_bytes().into(),
        };
        let body = Bytes::copy_from_slice(&sealed.frame);
        Ok(StreamEnvelope { content: EnvelopeContent::Sealed, id, body })
    }

    /// Gives the body memory of its own, where it shares some with bodies that are not stored. Else
    /// it would keep their memory, which nobody counts, for as long as it is in memory itself.
    pub fn own(&mut self) {
        // A larger body shares none. To copy it would be for nothing.
        if self.body.len() > buffer::SHARED_BODY_BYTES {
            return;
        }
        let body = Bytes::copy_from_slice(&self.body);
        if let Some(place) = place_in(&self.body, &self.id) {
            self.id = body.slice(place);
        }
        self.body = body;
    }

    /// The group whose keys open this message; none: it is open.
    pub fn group(&self) -> Option<GroupTag> {
        match self.content {
            EnvelopeContent::Open(_) => None,
            EnvelopeContent::Sealed => Some(FrameView::parse(&self.body).ok()?.header().group()),
        }
    }

    /// The part of a frame that is the same on every path: all but the bytes that relays write.
    /// None: the message is open.
    pub(crate) fn sealed_content(&self) -> Option<&[u8]> {
        match self.content {
            EnvelopeContent::Open(_) => None,
            EnvelopeContent::Sealed => self.body.get(RELAY_BYTES..),
        }
    }

    /// The id, as the client wrote it or as the hub added it.
    pub fn id(&self) -> &str {
        std::str::from_utf8(&self.id).unwrap_or_default()
    }

    /// Puts an id before the fields of a map that was read, and has so many values with itself.
    fn with_json_id(
        buffer: &mut EnvelopeBuffer,
        ids: &MessageIds,
        raw: &[u8],
        values: usize,
    ) -> StreamEnvelope {
        let fields = raw.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
        let comma: &[u8] = if values > 1 { b"," } else { b"" };
        // An id of the hub's has no character that JSON escapes.
        const HEAD: &[u8] = br#"{"id":""#;
        let mut id_end = 0;
        let body = buffer.body(raw.len(), fields.len() + ID_FIELD_BYTES, |out| {
            let start = out.len();
            out.put_slice(HEAD);
            ids.write_next(out);
            id_end = out.len() - start;
            out.put_slice(b"\"");
            out.put_slice(comma);
            out.put_slice(fields);
        });
        let id = body.slice(HEAD.len()..id_end);
        StreamEnvelope { content: EnvelopeContent::Open(Codec::Json), id, body }
    }

    fn with_id<'a, K: AsRef<str> + 'a>(
        codec: Codec,
        id: String,
        fields: &[(K, &'a [u8])],
    ) -> StreamEnvelope {
        let size: usize = fields.iter().map(|(key, raw)| key.as_ref().len() + raw.len() + 6).sum();
        let mut body = Vec::with_capacity(size + id.len() + 16);
        let mut writer = DatumWriter::new(codec, &mut body);
        writer.map(fields.len() + 1);
        writer.key("id");
        writer.text(&id);
        for (key, raw) in fields {
            writer.key(key.as_ref());
            writer.raw(raw);
        }
        writer.end();
        let content = EnvelopeContent::Open(codec);
        StreamEnvelope { content, id: id.into_bytes().into(), body: body.into() }
    }
}

/// The place of `part` in the memory of `whole`. None: it is elsewhere.
fn place_in(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    let place = start..start.saturating_add(part.len());
    whole.get(place.clone()).filter(|found| *found == part).map(|_| place)
}

fn check_id(id: &str) -> Result<(), Error> {
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        return Err(Error::InvalidEnvelope("has an id that is not 1 to 128 bytes"));
    }
    Ok(())
}

/// The map, and two keys with their values: what has more is no sealed message's envelope, and is
/// not looked at again.
const SEALED_VALUES: usize = 5;

const TOO_DEEP: &str = "is nested deeper than 28 levels";
const TOO_MANY: &str = "has too many values";

/// Makes ids for messages that have none: 12 random characters drawn at start, `-`, and a counter
/// in base 36, so that an id is short and never comes twice.
#[derive(Debug)]
pub struct MessageIds {
    /// The random characters, and what stands behind them.
    prefix: String,
    count: AtomicU64,
}

impl MessageIds {
    /// A new series of ids.
    ///
    /// # Errors
    /// [`Error::StorageFailed`] where the system gives no random bytes.
    pub fn new() -> Result<Self, Error> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(|cause| Error::StorageFailed(cause.to_string()))?;
        let mut prefix = Vec::new();
        // 12 digits in base 36 hold 62 bits, so that two are shifted off.
        put_base36(u64::from_le_bytes(random) >> 2, PREFIX_DIGITS, &mut prefix);
        prefix.push(b'-');
        let prefix = String::from_utf8(prefix).unwrap_or_default();
        Ok(Self { prefix, count: AtomicU64::new(0) })
    }

    /// The next of the series.
    pub fn next(&self) -> String {
        let mut id = Vec::with_capacity(self.prefix.len() + U64_DIGITS);
        self.write_next(&mut id);
        String::from_utf8(id).unwrap_or_default()
    }

    /// Appends the next of the series.
    fn write_next(&self, out: &mut impl BufMut) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        out.put_slice(self.prefix.as_bytes());
        put_base36(count, 1, out);
    }
}

/// Digits of the random part of an id.
const PREFIX_DIGITS: usize = 12;
/// Digits that a number of 64 bits has at most.
const U64_DIGITS: usize = 13;

/// Appends a number in base 36, in at least so many digits.
fn put_base36(mut n: u64, width: usize, out: &mut impl BufMut) {
    let (mut digits, mut len) = ([0_u8; U64_DIGITS], 0);
    for digit in digits.iter_mut().rev() {
        if n == 0 && len >= width {
            break;
        }
        let value = (n % 36) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        n /= 36;
        len += 1;
    }
    out.put_slice(digits.get(U64_DIGITS - len..).unwrap_or_default());
}

/// The most bytes that an id of the hub's takes in an envelope with what JSON puts around it.
const ID_FIELD_BYTES: usize = 7 + PREFIX_DIGITS + 1 + U64_DIGITS + 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(codec: Codec, raw: &[u8]) -> Result<StreamEnvelope, Error> {
        StreamEnvelope::read(&mut Transcoder::new(), &MessageIds::new().unwrap(), codec, raw)
    }

    #[test]
    fn an_envelope_with_an_id_is_kept_verbatim() {
        let raw = br#"{ "a" : 1.50, "id":"m\u0031" }"#;
        let envelope = read(Codec::Json, raw).unwrap();
        assert_eq!(envelope.body.as_ref(), raw);
        assert_eq!(envelope.id(), "m1");
    }

    #[test]
    fn a_missing_id_is_added_first_and_nothing_else_changes() {
        let envelope = read(Codec::Json, br#"{"a": [1, 2.50]}"#).unwrap();
        let expected = format!(r#"{{"id":"{}","a": [1, 2.50]}}"#, envelope.id());
        assert_eq!(envelope.body, expected.as_bytes());
        for raw in ["{}", " { } ", "{ \"a\" : 1}"] {
            let envelope = read(Codec::Json, raw.as_bytes()).unwrap();
            let value = sealane_codec::decode(Codec::Json, &envelope.body).unwrap();
            assert_eq!(value.field("id").unwrap().as_text(), Some(envelope.id()));
            let a = value.field("a").and_then(sealane_message::Value::as_u64);
            assert_eq!(a, raw.contains('a').then_some(1));
        }
        for (codec, raw) in [(Codec::MsgPack, b"\x81\xa1a\x01"), (Codec::Cbor, b"\xa1\x61a\x01")] {
            let envelope = read(codec, raw).unwrap();
            let value = sealane_codec::decode(codec, &envelope.body).unwrap();
            assert_eq!(value.field("id").unwrap().as_text(), Some(envelope.id()));
            assert_eq!(value.field("a").unwrap().as_u64(), Some(1));
        }
    }

    #[test]
    fn a_body_of_its_own_keeps_nothing_of_its_companions() {
        let (ids, mut scratch) = (MessageIds::new().unwrap(), Transcoder::new());
        // The id is a part of the body where it stands there, and a copy where it has escapes.
        for raw in [r#"{"a":1}"#, r#"{"id":"m1"}"#, r#"{"id":"m\u0031"}"#] {
            let mut buffer = EnvelopeBuffer::expecting([raw.len(); 2]);
            let mut read = || {
                let raw = raw.as_bytes();
                StreamEnvelope::read_into(&mut buffer, &mut scratch, &ids, Codec::Json, raw)
            };
            let (mut kept, left) = (read().unwrap(), read().unwrap());
            let StreamEnvelope { id, body, .. } = left;
            drop(id);
            assert!(!body.is_unique(), "{raw} shares a piece");
            let before = kept.clone();
            kept.own();
            assert_eq!(kept, before, "{raw}");
            drop(before);
            // Nothing but the other one is left in the piece, once the buffer lets it go.
            drop(buffer);
            assert!(body.is_unique(), "{raw}");
            let is_within = place_in(&kept.body, &kept.id).is_some();
            assert_eq!(is_within, !raw.contains('\\'), "{raw}");
        }
    }

    #[test]
    fn numbers_in_base_36_have_all_their_digits() {
        let written = |n, width| {
            let mut out = Vec::new();
            put_base36(n, width, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([written(0, 1), written(0, 3), written(35, 1)], ["0", "000", "z"]);
        assert_eq!([written(36, 1), written(u64::MAX, 1)], ["10", "3w5e11264sgsf"]);
    }

    #[test]
    fn ids_never_come_twice() {
        let ids = MessageIds::new().unwrap();
        let all: std::collections::HashSet<_> = (0..10_000).map(|_| ids.next()).collect();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|id| id.len() <= 20));
    }

    #[test]
    fn what_cannot_be_carried_is_refused_by_cause() {
        assert_eq!(read(Codec::Json, b"[1]"), Err(Error::InvalidEnvelope("is not a map")));
        assert!(matches!(read(Codec::Json, br#"{"id":7}"#), Err(Error::InvalidEnvelope(_))));
        assert!(matches!(read(Codec::Json, br#"{"id":""}"#), Err(Error::InvalidEnvelope(_))));
        assert!(matches!(read(Codec::Json, b"{\"a\":1"), Err(Error::Decode { .. })));
        let nested = |levels| "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        assert!(read(Codec::Json, nested(MAX_ENVELOPE_DEPTH).as_bytes()).is_ok());
        let deeper = read(Codec::Json, nested(MAX_ENVELOPE_DEPTH + 1).as_bytes());
        assert_eq!(deeper, Err(Error::InvalidEnvelope(TOO_DEEP)));
        assert!(TOO_DEEP.contains(&format!(" {MAX_ENVELOPE_DEPTH} ")));
        let huge = vec![b' '; MAX_ENVELOPE_BYTES + 1];
        assert!(matches!(read(Codec::Json, &huge), Err(Error::TooLarge { .. })));
    }
}
