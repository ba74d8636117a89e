//! Inputs that fuzzing has found interesting, replayed through the checks of the fuzz targets.

#[path = "../../../../fuzz/src/codec.rs"]
#[allow(unreachable_pub, reason = "it is the public module of another crate")]
mod codec;

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[
        ("json", codec::json),
        ("msgpack", codec::msgpack),
        ("cbor", codec::cbor),
        ("records", codec::records),
        ("transcode", codec::transcode),
        ("document", codec::document),
    ]);
}
