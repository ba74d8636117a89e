//! Ways in words that a user knows, who has not read the specification.

use sealane_codec::Codec;
use sealane_frame::FrameCompression;
use sealane_seal::{Class, Form, Suite};

use crate::cost::{CostLink, CostWay};

/// How people call the codecs whose own names they would not know.
const SPOKEN: [(Codec, &str); 4] = [
    (Codec::Json, "JSON"),
    (Codec::MsgPack, "MessagePack"),
    (Codec::Cbor, "CBOR"),
    (Codec::MsgPackRecords, "MessagePack records"),
];

/// The choices of a way, without those that all others have too: a full header.
pub(super) fn way(way: &CostWay) -> String {
    let spoken = SPOKEN.iter().find(|(codec, _)| *codec == way.codec);
    let mut words = spoken.map_or(way.codec.name(), |(_, name)| name).to_owned();
    words += match way.compression {
        FrameCompression::None => "",
        FrameCompression::Lz4 => " + LZ4",
        FrameCompression::Zstd => " + Zstandard",
    };
    let Some((class, suite)) = way.seal else { return words + ", not encrypted" + &kept(way.link) };
    words += match class {
        Class::Authenticated => ", readable",
        Class::Group => ", for a group",
        Class::Peer => ", for one peer",
        Class::Signed => ", signed, for a group",
    };
    words += if suite == Suite::Aes256Gcm { ", AES" } else { ", ChaCha20" };
    words += if way.form == Form::Compact { ", compact" } else { "" };
    words + &kept(way.link)
}

fn kept(link: CostLink) -> String {
    match link {
        CostLink::Memory => String::new(),
        CostLink::WebSocket(level) => format!(", {}", level.name()),
    }
}

/// The words of [`way`] and of the tables, each with what it means.
pub(super) const MEANINGS: &[[&str; 2]] = &[
    ["for a group", "encrypted: the members of a group can read it (class C)"],
    ["for one peer", "encrypted between two members (class P)"],
    ["signed", "encrypted for a group and signed, so that its sender can be proven (class S)"],
    ["readable", "nobody can change it unnoticed, and everybody on the way can read it (class A)"],
    ["AES, ChaCha20", "the ciphers AES-256-GCM and ChaCha20-Poly1305"],
    ["compact", "a header of at most 11 bytes, on links whose ends know each other; else 64 bytes"],
    ["MessagePack records", "MessagePack that sends field names once for each connection"],
    ["memory, os, disk", "when the hub answers: at once, once written, once fsynced"],
    ["*", "composed: the ends as measured in memory, carrying and keeping as measured another way"],
    ["body, wire, at rest", "bytes encoded, bytes that a link carries, bytes that are kept"],
    ["p50, p99", "wall time of one message alone: the median, and 99 of 100 are faster"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_told_apart_without_letters_of_the_specification() {
        let all = [CostWay::in_memory(), CostWay::over_hub()].concat();
        let mut words: Vec<String> = all.iter().map(way).collect();
        assert_eq!(words[0], "JSON, for a group, AES");
        assert!(words.iter().all(|words| !words.contains("class")), "{words:?}");
        assert!(words.iter().all(|words| words.len() <= 60), "{words:?}");
        words.sort();
        let count = words.len();
        words.dedup();
        assert_eq!(words.len(), count, "two ways have the same words");
    }
}
