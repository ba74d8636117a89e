use sealane_message::Value;

use crate::cbor::Cbor;
use crate::msgpack::MsgPack;
use crate::tape::Tape;
use crate::writer::DatumWriter;
use crate::{Codec, CodecError, binary, json, records};

/// Appends `value`, encoded: CBOR deterministically, MessagePack as short as it can be, records
/// with their structures inline.
///
/// This function does not check for content that a [`Value`] must not hold (see there). A float
/// that is not finite becomes null. A map with a key twice is written as it is, and every reader
/// refuses it.
pub fn encode(codec: Codec, value: &Value, out: &mut Vec<u8>) {
    match codec {
        Codec::MsgPackRecords => records::Encoder::new().encode(value, out),
        _ => DatumWriter::new(codec, out).value(value),
    }
}

/// Reads the whole of `bytes` as one value.
///
/// # Errors
/// [`CodecError`] where it is not well-formed, outside the data model, beyond a limit, or followed
/// by anything.
pub fn decode(codec: Codec, bytes: &[u8]) -> Result<Value, CodecError> {
    let mut tape = Tape::for_input(bytes.len());
    read(codec, bytes, &mut tape)?;
    tape.datum(bytes).value()
}

/// Checks and translates, in memory that it keeps from call to call.
#[derive(Debug, Default)]
pub struct Transcoder {
    tape: Tape,
}

impl Transcoder {
    /// One that has no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether all of `bytes` is one datum, in the data model and within the limits.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn validate(&mut self, codec: Codec, bytes: &[u8]) -> Result<(), CodecError> {
        read(codec, bytes, &mut self.tape)
    }

    /// Of the datum that was read last: its values, each key and each element counted, and the
    /// levels of its nesting. For limits narrower than the codec's.
    pub fn size(&self) -> (usize, usize) {
        self.tape.size()
    }

    /// Whether the datum `bytes`, which was read last, is a map with a field of that name.
    pub fn has_field(&self, bytes: &[u8], name: &str) -> bool {
        self.tape.datum(bytes).keys(0).any(|key| key == name.as_bytes())
    }

    /// The text under `name` in the map `bytes`, which was read last; `None` where it has no such
    /// field.
    ///
    /// # Errors
    /// [`CodecError::WrongKind`] where the field is not text.
    pub fn text_field<'t>(
        &'t self,
        bytes: &'t [u8],
        name: &str,
    ) -> Result<Option<&'t str>, CodecError> {
        self.tape.datum(bytes).text_field(name)
    }

    /// Appends the datum `bytes` in another codec, or, in its own, in the form that we write.
    ///
    /// # Errors
    /// As [`decode`]; `out` is then as it was.
    pub fn transcode(
        &mut self,
        from: Codec,
        bytes: &[u8],
        to: Codec,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        read(from, bytes, &mut self.tape)?;
        match to {
            Codec::MsgPackRecords => {
                records::Encoder::new().write(self.tape.datum(bytes), out);
            }
            _ => self.tape.write(bytes, &mut DatumWriter::new(to, out)),
        }
        Ok(())
    }
}

/// Reads the whole of `bytes` onto the tape.
pub(crate) fn read(codec: Codec, bytes: &[u8], tape: &mut Tape) -> Result<(), CodecError> {
    match codec {
        Codec::Json => json::read(bytes, tape),
        Codec::MsgPack => binary::read(&mut MsgPack, bytes, tape),
        Codec::Cbor => binary::read(&mut Cbor, bytes, tape),
        Codec::MsgPackRecords => records::read_alone(bytes, tape),
    }
}
