//! The ways that a message can go: what is chosen at each step.

use std::fmt;

use sealane_codec::Codec;
use sealane_frame::FrameCompression;
use sealane_protocol::Level;
use sealane_seal::{Class, Form, Suite};

/// One choice at each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CostWay {
    pub(crate) codec: Codec,
    pub(crate) compression: FrameCompression,
    /// The class and cipher of the seal; none for an open stream.
    pub(crate) seal: Option<(Class, Suite)>,
    pub(crate) form: Form,
    /// How it goes from the sender to the reader.
    pub(crate) link: CostLink,
}

/// How a message goes from the sender to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostLink {
    /// Through a ring of slots in memory, over one relay.
    Memory,
    /// By HTTP to a hub that keeps it at this level, and by WebSocket to the reader.
    WebSocket(Level),
}

const fn memory(codec: Codec, class: Class, suite: Suite, form: Form) -> CostWay {
    let (compression, link) = (FrameCompression::None, CostLink::Memory);
    CostWay { codec, compression, seal: Some((class, suite)), form, link }
}

impl CostWay {
    /// The way that others are compared with: the usual way of a sealed message.
    pub(crate) const USUAL: CostWay =
        memory(Codec::Cbor, Class::Group, Suite::Aes256Gcm, Form::Full);

    /// The seal of that way.
    pub(crate) const USUAL_SEAL: (Class, Suite) = (Class::Group, Suite::Aes256Gcm);

    const fn over(self, link: CostLink) -> Self {
        Self { link, ..self }
    }

    const fn compressed(self, compression: FrameCompression) -> Self {
        Self { compression, ..self }
    }

    const fn encoded(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    const fn open(self) -> Self {
        Self { seal: None, ..self }
    }

    /// Ways in memory: both ends, a link and a relay on one thread.
    pub(crate) fn in_memory() -> Vec<CostWay> {
        use Class::{Authenticated, Group, Peer, Signed};
        use Codec::{Cbor, Json, MsgPack, MsgPackRecords};
        use Form::{Compact, Full};
        use Suite::{Aes256Gcm as Aes, ChaCha20Poly1305 as ChaCha};
        let usual = CostWay::USUAL;
        vec![
            usual.encoded(Json),
            usual.encoded(MsgPack),
            usual,
            usual.encoded(MsgPackRecords),
            memory(Cbor, Group, ChaCha, Full),
            memory(Cbor, Group, Aes, Compact),
            memory(Cbor, Group, ChaCha, Compact),
            memory(Cbor, Authenticated, Aes, Compact),
            memory(Cbor, Signed, Aes, Full),
            memory(Cbor, Peer, Aes, Compact),
            usual.encoded(Json).compressed(FrameCompression::Lz4),
            usual.encoded(Json).compressed(FrameCompression::Zstd),
            usual.compressed(FrameCompression::Lz4),
            usual.compressed(FrameCompression::Zstd),
            memory(Cbor, Group, Aes, Compact).compressed(FrameCompression::Zstd),
        ]
    }

    /// Ways over a hub that are run.
    pub(crate) fn over_hub() -> Vec<CostWay> {
        let [memory, os, disk] = Level::ALL.map(CostLink::WebSocket);
        let usual = CostWay::USUAL;
        vec![
            usual.encoded(Codec::Json).open().over(memory),
            usual.encoded(Codec::Json).open().over(disk),
            usual.encoded(Codec::MsgPack).open().over(disk),
            usual.over(memory),
            usual.over(os),
            usual.over(disk),
        ]
    }

    /// Ways over a hub whose ends are the first way's, which was measured in memory, and whose
    /// rest is the second's.
    pub(crate) fn composed() -> Vec<(CostWay, CostWay)> {
        let disk = CostLink::WebSocket(Level::Disk);
        let hub = CostWay::USUAL.over(disk);
        let ends = [
            CostWay::USUAL.compressed(FrameCompression::Zstd),
            memory(Codec::Cbor, Class::Group, Suite::ChaCha20Poly1305, Form::Full),
            memory(Codec::Cbor, Class::Signed, Suite::Aes256Gcm, Form::Full),
        ];
        ends.map(|ends| (ends, hub)).into()
    }
}

/// The compression's name.
pub(crate) fn compression_name(compression: FrameCompression) -> &'static str {
    match compression {
        FrameCompression::None => "none",
        FrameCompression::Lz4 => "lz4",
        FrameCompression::Zstd => "zstd",
    }
}

/// The cipher's short name.
pub(crate) fn suite_name(suite: Suite) -> &'static str {
    match suite {
        Suite::Aes256Gcm => "AES-256-GCM",
        Suite::ChaCha20Poly1305 => "ChaCha20",
    }
}

impl fmt::Display for CostWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![self.codec.name().to_owned()];
        if self.compression != FrameCompression::None {
            parts.push(compression_name(self.compression).to_owned());
        }
        match self.seal {
            None => parts.push("open".to_owned()),
            Some((class, suite)) => {
                let cipher = if suite == Suite::Aes256Gcm { "AES" } else { "ChaCha20" };
                parts.push(format!("class {} {cipher}", class.letter()));
                parts.push(if self.form == Form::Full { "full" } else { "compact" }.to_owned());
            }
        }
        match self.link {
            CostLink::Memory => parts.push("memory".to_owned()),
            CostLink::WebSocket(level) => parts.push(format!("WebSocket, {}", level.name())),
        }
        f.pad(&parts.join(" · "))
    }
}
