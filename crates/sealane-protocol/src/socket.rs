//! The head before a server's message on a WebSocket (RFC 6455 §5.2).
//!
//! A server's frames carry no mask. So the same bytes are for every client that reads in the same
//! codec.

use sealane_codec::Codec;

/// The first byte of a message in one frame, of text and of anything else.
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
/// The values of the second byte where the length stands behind it, in two bytes or in eight.
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;
/// The head of a message of 126 to 65,535 bytes, which most are.
const HEAD_BYTES: usize = 4;

/// Appends what `write` appends, as one message of a server's WebSocket.
pub fn write_message(codec: Codec, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write(out);
    let length = out.len().saturating_sub(start + HEAD_BYTES);
    let first = if codec == Codec::Json { TEXT } else { BINARY };
    // Where the head has another length, the message moves.
    let room = start..start + HEAD_BYTES;
    if let (Ok(length), true) = (u8::try_from(length), length < LENGTH_16.into()) {
        out.splice(room, [first, length]);
    } else if let Ok(length) = u16::try_from(length) {
        let [high, low] = length.to_be_bytes();
        out.splice(room, [first, LENGTH_16, high, low]);
    } else {
        let head = [first, LENGTH_64].into_iter();
        out.splice(room, head.chain((length as u64).to_be_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_kind_and_length() {
        let expected: [(usize, &[u8]); 6] = [
            (0, &[0x81, 0]),
            (125, &[0x81, 125]),
            (126, &[0x81, 126, 0, 126]),
            (65_535, &[0x81, 126, 0xff, 0xff]),
            (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
            (70_000, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]),
        ];
        for (length, head) in expected {
            let body: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut out = b"before".to_vec();
            write_message(Codec::Json, &mut out, |out| out.extend_from_slice(&body));
            assert_eq!(out, [b"before", head, &body].concat(), "{length}");
            out.clear();
            write_message(Codec::Cbor, &mut out, |out| out.extend_from_slice(&body));
            assert_eq!((out[0], &out[1..]), (0x82, &[&head[1..], &body].concat()[..]));
        }
    }
}
