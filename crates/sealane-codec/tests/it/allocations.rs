//! Checking and translating allocate nothing once warm.

use crate::shared::counting::allocations_of;
use crate::shared::five::FIVE;
use sealane_codec::{Codec, Transcoder, records};

/// Each of the five messages in `codec`.
fn five_in(codec: Codec) -> Vec<Vec<u8>> {
    let mut transcoder = Transcoder::new();
    let encode = |(_, json): &(&str, &str)| {
        let mut out = Vec::new();
        transcoder.transcode(Codec::Json, json.as_bytes(), codec, &mut out).unwrap();
        out
    };
    FIVE.iter().map(encode).collect()
}

#[test]
fn a_warm_transcoder_allocates_nothing() {
    for from in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
        for to in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
            let messages = five_in(from);
            let mut transcoder = Transcoder::new();
            let mut out = Vec::new();
            let mut all = || {
                for message in &messages {
                    out.clear();
                    transcoder.validate(from, message).unwrap();
                    transcoder.transcode(from, message, to, &mut out).unwrap();
                }
            };
            all();
            assert_eq!(allocations_of(all), 0, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn a_warm_connection_of_records_allocates_nothing() {
    let messages = five_in(Codec::MsgPack);
    let (mut encoder, mut decoder) = (records::Encoder::new(), records::Decoder::new());
    let (mut packed, mut plain) = (Vec::new(), Vec::new());
    let mut all = || {
        for message in &messages {
            packed.clear();
            plain.clear();
            encoder.transcode(Codec::MsgPack, message, &mut packed).unwrap();
            decoder.to_plain(&packed, &mut plain).unwrap();
            assert_eq!(&plain, message);
        }
    };
    all();
    assert_eq!(allocations_of(all), 0);
}
