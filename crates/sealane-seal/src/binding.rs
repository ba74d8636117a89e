use std::sync::LazyLock;

use crate::GroupId;

/// The place where a message belongs: 16 bytes that do not travel and that every seal covers.
///
/// The sender names the place that the message is made to be read from. The reader names the place
/// that it was read from. `spec/seal.md`, section *Binding*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding([u8; Binding::BYTES]);

impl Binding {
    /// Bytes of a binding.
    pub const BYTES: usize = 16;

    /// A message between two neighbours on a link, which nobody keeps.
    pub fn link() -> Binding {
        // Every frame of a link asks for it, and it is always the same.
        static OF_LINKS: LazyLock<Binding> = LazyLock::new(|| Binding::of(LINK, &[]));
        *OF_LINKS
    }

    /// A message of a stream, by the stream's topic.
    pub fn stream(topic: &str) -> Binding {
        Binding::of(STREAM, topic.as_bytes())
    }

    /// A message of a conversation, which may be kept in any stream of its group.
    pub fn conversation(group: GroupId) -> Binding {
        Binding::of(CONVERSATION, &group.0)
    }

    /// A binding that was written down.
    pub fn from_bytes(bytes: [u8; Binding::BYTES]) -> Binding {
        Binding(bytes)
    }

    /// The bytes that are authenticated.
    pub fn as_bytes(&self) -> &[u8; Binding::BYTES] {
        &self.0
    }

    fn of(kind: u8, name: &[u8]) -> Binding {
        let mut hasher = blake3::Hasher::new_derive_key("Sealane 1.0 binding");
        hasher.update(&[kind]).update(name);
        let mut bytes = [0; Binding::BYTES];
        hasher.finalize_xof().fill(&mut bytes);
        Binding(bytes)
    }
}

const LINK: u8 = 0;
const STREAM: u8 = 1;
const CONVERSATION: u8 = 2;

/// Metadata that is authenticated with a body and stands beside its sealed bytes.
#[derive(Debug, Clone, Copy)]
pub struct Attached<'a> {
    /// The context that the sender drew, as the frame or the link says.
    pub context: crate::SenderContext,
    /// Where the message was read from.
    pub binding: &'a Binding,
    /// The authenticated part of the frame's header.
    pub meta: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_name_decide_and_nothing_else() {
        let group = GroupId([b'a'; 32]);
        let same_name = "a".repeat(32);
        let all = [
            Binding::link(),
            Binding::stream("chat/1"),
            Binding::stream("chat/2"),
            Binding::stream(&same_name),
            Binding::conversation(group),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|other| other == one), Some(at));
        }
        assert_eq!(Binding::stream("chat/1"), all[1]);
    }
}
