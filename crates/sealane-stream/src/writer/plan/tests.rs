use sealane_codec::{Codec, Transcoder};

use super::made::StreamMade;
use super::*;
use crate::Retention;
use crate::envelope::{MessageIds, StreamEnvelope};
use crate::store::{OwnBounds, StreamRow, StreamSettings};

#[test]
fn what_waits_is_taken_for_as_much_as_is_written_of_it() {
    let topic: Topic = "a".parse().unwrap();
    let settings = StreamSettings {
        level: Level::Os,
        retention: Retention::default(),
        own_bounds: OwnBounds::default(),
    };
    let made = StreamMade { topic: &topic, owner: "", sealed: None, now_ms: 1 };
    let stream = Arc::new(StreamEntry::new(StreamRow::new(1, 1, settings, made)));
    let ids = MessageIds::new().unwrap();
    for body in ["{}".to_owned(), format!(r#"{{"x": "{}"}}"#, "x".repeat(5000))] {
        let read = |_| {
            let mut scratch = Transcoder::new();
            StreamEnvelope::read(&mut scratch, &ids, Codec::Json, body.as_bytes()).unwrap()
        };
        let mut staged = StagedStream::new(stream.clone());
        staged.push((0..100).map(read).collect(), 1);
        let mut commit = StoreCommit::default();
        staged.add_to(&mut commit, 1, 1, false);
        let written: u64 = staged.blocks.iter().map(|block| block.stored_bytes()).sum();
        let estimated = commit.bytes();
        let pages = staged.blocks.len() as u64 * (16 << 10);
        assert_eq!(estimated, written + pages, "{body:.9}");
    }
}
