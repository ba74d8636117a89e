//! MessagePack as npm's `msgpackr` writes it by default: every map with a head of three bytes.

use sealane_codec::Codec;
use sealane_message::Value;

// The tests of the codecs have them, too.
#[path = "../../../sealane-codec/tests/it/shared/five.rs"]
mod five;

pub(crate) use five::FIVE;

/// Appends a value.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Map(fields) => {
            out.push(0xde);
            out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
            for (key, value) in fields {
                text(key, out);
                write(value, out);
            }
        }
        Value::Array(values) => {
            match u8::try_from(values.len()) {
                Ok(count) if count < 16 => out.push(0x90 | count),
                _ => {
                    out.push(0xdc);
                    out.extend_from_slice(&(values.len() as u16).to_be_bytes());
                }
            }
            values.iter().for_each(|value| write(value, out));
        }
        value => sealane_codec::encode(Codec::MsgPack, value, out),
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    sealane_codec::DatumWriter::new(Codec::MsgPack, out).text(text);
}

/// The gateway copies each buffer before it decodes it.
pub(crate) fn read_copied(bytes: &[u8]) -> Option<serde_json::Value> {
    let copy = bytes.to_vec();
    rmp_serde::from_slice(&copy).ok()
}

#[cfg(test)]
mod tests {
    use sealane_codec::decode;

    use super::*;

    #[test]
    fn the_five_messages_have_the_reports_sizes() {
        let sizes = FIVE.map(|(_, json)| {
            let mut out = Vec::new();
            write(&decode(Codec::Json, json.as_bytes()).unwrap(), &mut out);
            let read: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(read_copied(&out), Some(read));
            (json.len(), out.len())
        });
        assert_eq!(sizes, [(13, 11), (100, 81), (274, 226), (196, 175), (231, 208)]);
    }
}
