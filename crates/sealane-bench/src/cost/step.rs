//! The steps of the way, each by the call that the product makes.

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use sealane_codec::{Codec, CodecError, records};
use sealane_frame::limits::MAX_FRAME_BODY_BYTES;
use sealane_frame::{
    Compression, Draft, FrameError, SlotRing, forward_compact_in_place, forward_in_place,
    open_compact, open_frame,
};
use sealane_message::Value;
use sealane_seal::Form;

use crate::members::{self, Members, READER, RELAY};

/// One step of a message's way, as it is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Value to bytes.
    Encode,
    /// Bytes to fewer bytes.
    Compress,
    /// Bytes to sealed bytes in a frame.
    Seal,
    /// The frame from one buffer to another: a link.
    Carry,
    /// A relay's work.
    Relay,
    /// The hub's work: take, store, deliver.
    Keep,
    /// Frame to bytes.
    Open,
    /// Fewer bytes to bytes.
    Decompress,
    /// Bytes to value.
    Decode,
}

impl Step {
    /// All, in the order of the way.
    pub const ALL: [Step; 9] = [
        Step::Encode,
        Step::Compress,
        Step::Seal,
        Step::Carry,
        Step::Relay,
        Step::Keep,
        Step::Open,
        Step::Decompress,
        Step::Decode,
    ];

    /// The step's name, as people and programs are shown it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Encode => "encode",
            Step::Compress => "compress",
            Step::Seal => "seal",
            Step::Carry => "carry",
            Step::Relay => "relay",
            Step::Keep => "keep",
            Step::Open => "open",
            Step::Decompress => "decompress",
            Step::Decode => "decode",
        }
    }
}

/// A frame to its body, where it stands.
type Open = for<'f> fn(&mut Members, Form, &'f mut [u8]) -> Result<&'f [u8], members::Error>;

/// The calls that a row is made of. Tests take one out and see that there is no row without it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    pub(super) encode: fn(&mut Coder, &Value, &mut Vec<u8>),
    pub(super) compress: fn(&mut Press, &[u8], &mut Vec<u8>),
    pub(super) seal: for<'b> fn(Draft<'b>, &mut Members, Form) -> Result<&'b mut [u8], FrameError>,
    pub(super) carry: fn(&mut SlotRing, &[u8]) -> Result<(), FrameError>,
    pub(super) relay: fn(&mut [u8], Form) -> Result<(), FrameError>,
    pub(super) open: Open,
    pub(super) decompress: fn(&mut Press, &[u8], &mut Vec<u8>),
    pub(super) decode: fn(&mut Coder, &[u8]) -> Result<Value, CodecError>,
}

impl Steps {
    /// The calls of the product.
    pub(crate) const PRODUCT: Steps = Steps {
        encode: Coder::encode,
        compress: Press::compress,
        seal,
        carry: SlotRing::push,
        relay,
        open,
        decompress: Press::decompress,
        decode: Coder::decode,
    };
}

/// One codec on one connection.
#[derive(Debug)]
pub(super) struct Coder {
    codec: Codec,
    encoder: records::Encoder,
    decoder: records::Decoder,
}

impl Coder {
    pub(super) fn new(codec: Codec) -> Self {
        Self { codec, encoder: records::Encoder::new(), decoder: records::Decoder::new() }
    }

    pub(super) fn encode(&mut self, value: &Value, out: &mut Vec<u8>) {
        match self.codec {
            Codec::MsgPackRecords => self.encoder.encode(value, out),
            codec => sealane_codec::encode(codec, value, out),
        }
    }

    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<Value, CodecError> {
        match self.codec {
            Codec::MsgPackRecords => self.decoder.decode(bytes),
            codec => sealane_codec::decode(codec, bytes),
        }
    }
}

/// The level of Zstandard, its own default.
pub(super) const ZSTD_LEVEL: i32 = 3;

/// Compression and its contexts, which are made once.
pub(super) struct Press {
    compression: Compression,
    zstd: Option<(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)>,
}

impl Press {
    /// `None` where the library has no memory for its contexts.
    pub(super) fn new(compression: Compression) -> Option<Self> {
        let zstd = match compression {
            Compression::Zstd => Some((
                zstd::bulk::Compressor::new(ZSTD_LEVEL).ok()?,
                zstd::bulk::Decompressor::new().ok()?,
            )),
            _ => None,
        };
        Some(Self { compression, zstd })
    }

    /// Appends what `body` becomes: an LZ4 block behind its length, or a Zstandard frame.
    pub(super) fn compress(&mut self, body: &[u8], out: &mut Vec<u8>) {
        match &mut self.zstd {
            Some((zstd, _)) => {
                let start = out.len();
                out.resize(start + zstd::zstd_safe::compress_bound(body.len()), 0);
                let room = out.get_mut(start..).unwrap_or_default();
                let written = zstd.compress_to_buffer(body, room).unwrap_or(0);
                out.truncate(start + written);
            }
            None => out.extend_from_slice(&compress_prepend_size(body)),
        }
    }

    /// Appends the body; nothing where there is none.
    pub(super) fn decompress(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.zstd {
            Some((_, zstd)) => {
                let body = zstd.decompress(bytes, MAX_FRAME_BODY_BYTES).unwrap_or_default();
                out.extend_from_slice(&body);
            }
            None => out.extend_from_slice(&decompress_size_prepended(bytes).unwrap_or_default()),
        }
    }

    pub(super) fn compression(&self) -> Compression {
        self.compression
    }
}

fn seal<'b>(
    draft: Draft<'b>,
    members: &mut Members,
    form: Form,
) -> Result<&'b mut [u8], FrameError> {
    let Members { sealer, fields, binding, dictionary, roster, .. } = members;
    match form {
        Form::Full => draft.seal(sealer, fields, binding),
        Form::Compact => {
            let link = sealane_frame::LinkContext {
                dictionary,
                roster,
                next_hop: RELAY,
                previous_hop: crate::members::SENDER,
            };
            draft.seal_compact(sealer, fields, binding, &link)
        }
    }
}

/// A relay sends the frame on; in the compact form with the next link's dictionary byte, which is
/// the same here.
fn relay(frame: &mut [u8], form: Form) -> Result<(), FrameError> {
    match form {
        Form::Full => forward_in_place(frame, READER, RELAY),
        Form::Compact => {
            let byte = frame.get(1).copied().ok_or(FrameError::TooShort)?;
            forward_compact_in_place(frame, byte)
        }
    }
}

/// A live message: the window moves, and the session of its sender is stored first where it asks
/// for that.
fn open<'f>(
    members: &mut Members,
    form: Form,
    frame: &'f mut [u8],
) -> Result<&'f [u8], members::Error> {
    let Members { opener, binding, dictionary, roster, sessions, .. } = members;
    let received = match form {
        Form::Full => open_frame(opener, binding, frame)?,
        Form::Compact => {
            let (next_hop, previous_hop) = (READER, RELAY);
            let link = sealane_frame::LinkContext { dictionary, roster, next_hop, previous_hop };
            open_compact(opener, binding, frame, &link)?
        }
    };
    let body = received.body;
    sessions.accept(received)?;
    Ok(body)
}
