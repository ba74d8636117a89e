//! The ways that a message can go: what is chosen at each step.

use std::fmt;

use sealane_codec::Codec;
use sealane_frame::Compression;
use sealane_protocol::Level;
use sealane_seal::{Class, Form, Suite};

/// One choice at each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    /// The codec of the body.
    pub codec: Codec,
    /// The compression of the body.
    pub compression: Compression,
    /// The class and cipher of the seal; none for an open stream.
    pub seal: Option<(Class, Suite)>,
    /// The form of the frame.
    pub form: Form,
    /// How it goes from the sender to the reader.
    pub link: Link,
}

/// How a message goes from the sender to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Through a ring of slots in memory, over one relay.
    Memory,
    /// By HTTP to a hub that keeps it at this level, and by WebSocket to the reader.
    WebSocket(Level),
}

const fn memory(codec: Codec, class: Class, suite: Suite, form: Form) -> Way {
    let (compression, link) = (Compression::None, Link::Memory);
    Way { codec, compression, seal: Some((class, suite)), form, link }
}

impl Way {
    /// The way that others are compared with: the usual way of a sealed message.
    pub const USUAL: Way = memory(Codec::Cbor, Class::Group, Suite::Aes256Gcm, Form::Full);

    /// The seal of that way.
    pub const USUAL_SEAL: (Class, Suite) = (Class::Group, Suite::Aes256Gcm);

    const fn over(self, link: Link) -> Self {
        Self { link, ..self }
    }

    const fn compressed(self, compression: Compression) -> Self {
        Self { compression, ..self }
    }

    const fn encoded(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    const fn open(self) -> Self {
        Self { seal: None, ..self }
    }

    /// Ways in memory: both ends, a link and a relay on one thread.
    pub fn in_memory() -> Vec<Way> {
        use Class::{Authenticated, Group, Peer, Signed};
        use Codec::{Cbor, Json, MsgPack, MsgPackRecords};
        use Form::{Compact, Full};
        use Suite::{Aes256Gcm as Aes, ChaCha20Poly1305 as ChaCha};
        let usual = Way::USUAL;
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
            usual.encoded(Json).compressed(Compression::Lz4),
            usual.encoded(Json).compressed(Compression::Zstd),
            usual.compressed(Compression::Lz4),
            usual.compressed(Compression::Zstd),
            memory(Cbor, Group, Aes, Compact).compressed(Compression::Zstd),
        ]
    }

    /// Ways over a hub that are run.
    pub fn over_hub() -> Vec<Way> {
        let [memory, os, disk] = Level::ALL.map(Link::WebSocket);
        let usual = Way::USUAL;
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
    pub fn composed() -> Vec<(Way, Way)> {
        let disk = Link::WebSocket(Level::Disk);
        let hub = Way::USUAL.over(disk);
        let ends = [
            Way::USUAL.compressed(Compression::Zstd),
            memory(Codec::Cbor, Class::Group, Suite::ChaCha20Poly1305, Form::Full),
            memory(Codec::Cbor, Class::Signed, Suite::Aes256Gcm, Form::Full),
        ];
        ends.map(|ends| (ends, hub)).into()
    }
}

/// The compression's name.
pub fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    }
}

/// The cipher's short name.
pub fn suite_name(suite: Suite) -> &'static str {
    match suite {
        Suite::Aes256Gcm => "AES-256-GCM",
        Suite::ChaCha20Poly1305 => "ChaCha20",
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![self.codec.name().to_owned()];
        if self.compression != Compression::None {
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
            Link::Memory => parts.push("memory".to_owned()),
            Link::WebSocket(level) => parts.push(format!("WebSocket, {}", level.name())),
        }
        f.pad(&parts.join(" · "))
    }
}
