use std::borrow::Cow;

use sealane_codec::{Codec, DatumKind, DatumWriter};

use crate::Error;

/// The envelope of a sealed message: `{id?, sealed}` and nothing else (spec/hub.md §6).
///
/// `sealed` is bytes: bin in MessagePack, a byte string in CBOR, base64url text without padding in
/// JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedEnvelope<'a> {
    /// The message's id, 1 to 128 bytes; the hub adds one where it is missing.
    pub id: Option<Cow<'a, str>>,
    /// One frame in the full form (spec/frame.md), which is not looked at here.
    pub frame: Cow<'a, [u8]>,
}

impl<'a> SealedEnvelope<'a> {
    /// Reads an envelope; none where it is that of an open message. A map whose only field beside
    /// `id` is a `sealed` that is bytes or text is never one.
    ///
    /// # Errors
    /// [`Error::Decode`] where it is no map of the codec, [`Error::InvalidEnvelope`] where `sealed`
    /// is text but no bytes, or the id is no text.
    pub fn read(codec: Codec, envelope: &'a [u8]) -> Result<Option<Self>, Error> {
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        let (mut id, mut sealed) = (None, None);
        for (key, raw) in sealane_codec::fields(codec, envelope).map_err(decode)? {
            match key.as_ref() {
                "id" => id = Some(raw),
                "sealed" => sealed = Some(raw),
                _ => return Ok(None),
            }
        }
        let Some(raw) = sealed else { return Ok(None) };
        if !matches!(sealane_codec::kind(codec, raw), Some(DatumKind::Bytes | DatumKind::Text)) {
            return Ok(None);
        }
        let frame = sealane_codec::read_bytes(codec, raw)
            .map_err(|_| Error::InvalidEnvelope("has a `sealed` that is not bytes of its codec"))?;
        let id = id.map(|raw| sealane_codec::read_text(codec, raw)).transpose();
        let id = id.map_err(|_| Error::InvalidEnvelope("has an id that is not text"))?;
        Ok(Some(Self { id, frame }))
    }

    /// Appends the envelope.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        write_sealed(codec, self.id.as_deref(), &self.frame, out);
    }
}

/// Appends `{id?, sealed}`: the id first, as CBOR's order of keys wants it.
pub fn write_sealed(codec: Codec, id: Option<&str>, frame: &[u8], out: &mut Vec<u8>) {
    let mut writer = DatumWriter::new(codec, out);
    writer.map(1 + usize::from(id.is_some()));
    if let Some(id) = id {
        writer.key("id");
        writer.text(id);
    }
    writer.key("sealed");
    writer.bytes(frame);
    writer.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(envelope: &str) -> Result<Option<SealedEnvelope<'_>>, Error> {
        SealedEnvelope::read(Codec::Json, envelope.as_bytes())
    }

    #[test]
    fn what_is_written_is_read_back_in_every_codec() {
        for codec in Codec::AT_REST {
            for id in [None, Some("m1".into())] {
                let sealed = SealedEnvelope { id, frame: vec![0, 0xff, 7].into() };
                let mut envelope = Vec::new();
                sealed.write(codec, &mut envelope);
                assert_eq!(SealedEnvelope::read(codec, &envelope), Ok(Some(sealed)));
            }
        }
    }

    #[test]
    fn json_carries_base64url_without_padding() {
        let sealed = json(r#"{"sealed":"_-8"}"#).unwrap().unwrap();
        assert_eq!(sealed.frame.as_ref(), [0xff, 0xef]);
        for text in ["_-8=", "/+8", "_", "not sealed"] {
            let envelope = format!(r#"{{"sealed":"{text}"}}"#);
            assert!(matches!(json(&envelope), Err(Error::InvalidEnvelope(_))), "{text}");
        }
    }

    #[test]
    fn open_messages_may_have_a_field_of_the_same_name() {
        for envelope in [
            "{}",
            r#"{"id":"m"}"#,
            r#"{"sealed":true}"#,
            r#"{"sealed":{"by":"x"},"id":"m"}"#,
            r#"{"sealed":"_-8","id":"m","more":1}"#,
        ] {
            assert_eq!(json(envelope), Ok(None), "{envelope}");
        }
        assert!(matches!(json(r#"{"sealed":"_-8","id":7}"#), Err(Error::InvalidEnvelope(_))));
        let text = SealedEnvelope::read(Codec::MsgPack, b"\x81\xa6sealed\xa3_-8");
        assert!(matches!(text, Err(Error::InvalidEnvelope(_))), "{text:?}");
    }
}
