//! The decoders of `sealane-codec`.

use sealane_codec::{
    Codec, Transcoder, decode, document, elements, encode, fields, kind, read_bool, read_text,
    read_u64, records,
};
use sealane_message::{DataType, Value};

/// JSON from anywhere.
pub fn json(bytes: &[u8]) {
    one(Codec::Json, bytes);
}

/// MessagePack from anywhere.
pub fn msgpack(bytes: &[u8]) {
    one(Codec::MsgPack, bytes);
}

/// CBOR from anywhere. What we write of it is a fixed point.
pub fn cbor(bytes: &[u8]) {
    if let Some(value) = one(Codec::Cbor, bytes) {
        let once = encoded(Codec::Cbor, &value);
        assert_eq!(transcoded(Codec::Cbor, &once, Codec::Cbor), once);
    }
}

/// A connection of records: parts of the input, each behind its length in one byte. Refused parts
/// leave no trace, and what is read can be written by a connection of ours.
pub fn records(bytes: &[u8]) {
    one(Codec::MsgPackRecords, bytes);
    let (mut values, mut plains) = (records::Decoder::new(), records::Decoder::new());
    let (mut only_good, mut encoder) = (records::Decoder::new(), records::Encoder::new());
    let mut ours = records::Decoder::new();
    let mut rest = bytes;
    while let Some((&len, after)) = rest.split_first() {
        let (part, next) = after.split_at(after.len().min(len.into()));
        rest = next;
        let mut plain = Vec::new();
        let read = values.decode(part);
        assert_eq!(plains.to_plain(part, &mut plain).is_ok(), read.is_ok());
        let Ok(value) = read else {
            assert!(plain.is_empty());
            continue;
        };
        same(&only_good.decode(part).expect("good parts do not depend on bad ones"), &value);
        same(&decode(Codec::MsgPack, &plain).expect("plain MessagePack"), &value);
        let mut packed = Vec::new();
        encoder.transcode(Codec::MsgPack, &plain, &mut packed).expect("records of ours");
        same(&ours.decode(&packed).expect("our own records"), &value);
    }
}

/// A datum in the codec that the first byte chooses comes to the same in any codec, by whatever
/// way it gets there.
pub fn transcode(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let from = Codec::ALL[usize::from(first) % Codec::ALL.len()];
    if Transcoder::new().validate(from, bytes).is_err() {
        return;
    }
    for to in Codec::ALL {
        let direct = transcoded(from, bytes, to);
        let value = decode(from, bytes).expect("a valid datum");
        assert_eq!(encoded(to, &value), direct);
        for way in [Codec::MsgPack, Codec::Cbor, Codec::MsgPackRecords] {
            let there = transcoded(way, &transcoded(from, bytes, way), to);
            let back = |bytes: &[u8]| ordered(decode(to, bytes).expect("a valid datum"));
            same(&back(&there), &back(&direct));
        }
    }
}

/// The body of a document, whose data type the first byte says, from anywhere.
pub fn document(bytes: &[u8]) {
    let Some((&first, body)) = bytes.split_first() else { return };
    let data_type = DataType::from_number(first.into());
    match document::decode(data_type, body) {
        Ok(read) => {
            let mut written = Vec::new();
            document::encode(&read, &mut written).expect("what was read");
            assert_eq!(written, body);
            let mut json = Vec::new();
            encode(Codec::Json, &document::to_value(&read), &mut json);
            Transcoder::new().validate(Codec::Json, &json).expect("a value that JSON can say");
        }
        Err(error) => assert!(error.info().code.starts_with("SL-DOC-")),
    }
}

/// The laws of an input of one codec.
fn one(codec: Codec, bytes: &[u8]) -> Option<Value> {
    let read = decode(codec, bytes);
    let verdict = Transcoder::new().validate(codec, bytes);
    assert_eq!(verdict.as_ref().err(), read.as_ref().err());
    let _ = (kind(codec, bytes), read_u64(codec, bytes), read_bool(codec, bytes));
    let _ = sealane_codec::maps(codec, bytes);
    let views = (fields(codec, bytes), elements(codec, bytes), read_text(codec, bytes));
    if let Err(error) = &read {
        assert!(error.info().code.starts_with("SL-CODEC-"));
    }
    let value = read.ok()?;
    if codec != Codec::MsgPackRecords {
        agrees(codec, &value, views);
    }
    if codec != Codec::Json || kind(codec, bytes).is_some() {
        let back = decode(codec, &encoded(codec, &value)).expect("what we write");
        same(&ordered(back), &ordered(value.clone()));
    }
    Some(value)
}

type Views<'a> = (
    Result<Vec<sealane_codec::MapField<'a>>, sealane_codec::CodecError>,
    Result<Vec<&'a [u8]>, sealane_codec::CodecError>,
    Result<std::borrow::Cow<'a, str>, sealane_codec::CodecError>,
);

fn agrees(codec: Codec, value: &Value, (fields, elements, text): Views<'_>) {
    match value {
        Value::Map(pairs) => {
            let fields = fields.expect("fields of a valid map");
            assert_eq!(fields.len(), pairs.len());
            for ((key, span), (name, value)) in fields.iter().zip(pairs) {
                assert_eq!(key, name);
                same(&decode(codec, span).expect("a valid field"), value);
            }
        }
        Value::Array(values) => {
            let elements = elements.expect("elements of a valid array");
            assert_eq!(elements.len(), values.len());
            for (span, value) in elements.iter().zip(values) {
                same(&decode(codec, span).expect("a valid element"), value);
            }
        }
        Value::Text(read) => assert_eq!(&text.expect("valid text"), read),
        _ => assert!(fields.is_err() && elements.is_err() && text.is_err()),
    }
}

fn encoded(codec: Codec, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(codec, value, &mut out);
    out
}

fn transcoded(from: Codec, bytes: &[u8], to: Codec) -> Vec<u8> {
    let mut out = Vec::new();
    Transcoder::new().transcode(from, bytes, to, &mut out).expect("a valid datum");
    out
}

/// Map fields in one order, since CBOR has its own.
fn ordered(value: Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(ordered).collect()),
        Value::Map(fields) => {
            let mut fields: Vec<_> =
                fields.into_iter().map(|(key, value)| (key, ordered(value))).collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Map(fields)
        }
        value => value,
    }
}

/// Equal, with zeros of the same sign.
fn same(a: &Value, b: &Value) {
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}
