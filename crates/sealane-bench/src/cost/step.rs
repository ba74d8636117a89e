//! The steps of the way, each by the call that the product makes.

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use sealane_codec::{Codec, CodecError, records};
use sealane_frame::limits::MAX_FRAME_BODY_BYTES;
use sealane_frame::{
    FrameCompression, FrameDraft, FrameError, SlotRing, forward_compact_in_place, forward_in_place,
    open_compact, open_frame,
};
use sealane_message::Value;
use sealane_seal::Form;

use crate::failure::Result;
use crate::members::{BenchMembers, READER, RELAY};

/// One step of a message's way, as it is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CostStep {
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

impl CostStep {
    /// All, in the order of the way.
    pub(crate) const ALL: [CostStep; 9] = [
        CostStep::Encode,
        CostStep::Compress,
        CostStep::Seal,
        CostStep::Carry,
        CostStep::Relay,
        CostStep::Keep,
        CostStep::Open,
        CostStep::Decompress,
        CostStep::Decode,
    ];

    /// The step's name, as people and programs are shown it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CostStep::Encode => "encode",
            CostStep::Compress => "compress",
            CostStep::Seal => "seal",
            CostStep::Carry => "carry",
            CostStep::Relay => "relay",
            CostStep::Keep => "keep",
            CostStep::Open => "open",
            CostStep::Decompress => "decompress",
            CostStep::Decode => "decode",
        }
    }
}

/// A frame to its body, where it stands.
type OpenFrameFn = for<'f> fn(&mut BenchMembers, Form, &'f mut [u8]) -> Result<&'f [u8]>;

/// The calls that a row is made of. Tests take one out and see that there is no row without it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepCalls {
    pub(super) encode: fn(&mut StepCoder, &Value, &mut Vec<u8>),
    pub(super) compress: fn(&mut StepCompressor, &[u8], &mut Vec<u8>),
    pub(super) seal:
        for<'b> fn(FrameDraft<'b>, &mut BenchMembers, Form) -> Result<&'b mut [u8], FrameError>,
    pub(super) carry: fn(&mut SlotRing, &[u8]) -> Result<(), FrameError>,
    pub(super) relay: fn(&mut [u8], Form) -> Result<(), FrameError>,
    pub(super) open: OpenFrameFn,
    pub(super) decompress: fn(&mut StepCompressor, &[u8], &mut Vec<u8>),
    pub(super) decode: fn(&mut StepCoder, &[u8]) -> Result<Value, CodecError>,
}

impl StepCalls {
    /// The calls of the product.
    pub(crate) const PRODUCT: StepCalls = StepCalls {
        encode: StepCoder::encode,
        compress: StepCompressor::compress,
        seal,
        carry: SlotRing::push,
        relay,
        open,
        decompress: StepCompressor::decompress,
        decode: StepCoder::decode,
    };
}

/// One codec on one connection.
#[derive(Debug)]
pub(super) struct StepCoder {
    codec: Codec,
    encoder: records::Encoder,
    decoder: records::Decoder,
}

impl StepCoder {
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
pub(super) struct StepCompressor {
    compression: FrameCompression,
    zstd: Option<(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)>,
}

impl StepCompressor {
    /// `None` where the library has no memory for its contexts.
    pub(super) fn new(compression: FrameCompression) -> Option<Self> {
        let zstd = match compression {
            FrameCompression::Zstd => Some((
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

    pub(super) fn compression(&self) -> FrameCompression {
        self.compression
    }
}

fn seal<'b>(
    draft: FrameDraft<'b>,
    members: &mut BenchMembers,
    form: Form,
) -> Result<&'b mut [u8], FrameError> {
    let BenchMembers { sealer, fields, binding, dictionary, roster, .. } = members;
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
fn open<'f>(members: &mut BenchMembers, form: Form, frame: &'f mut [u8]) -> Result<&'f [u8]> {
    let BenchMembers { opener, binding, dictionary, roster, sessions, .. } = members;
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
