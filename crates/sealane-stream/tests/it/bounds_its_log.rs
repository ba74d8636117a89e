//! The write-ahead log stays within its bound under small commits, which write whole pages.

use sealane_codec::{Codec, Transcoder};
use sealane_stream::limits::MAX_LOG_BYTES;
use sealane_stream::{HubConfig, Level, Retention, StreamEnqueue, StreamEnvelope, StreamHub};

const COMMITS: usize = 30_000;
/// The log is copied before it is longer (spec/store.md §9); its frames have heads of 24 bytes.
const LOG_BYTES_MAX: u64 = MAX_LOG_BYTES + (1 << 20);

#[test]
fn small_commits_do_not_fill_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (level, retention) = (Level::Os, Retention::default());
    let hub =
        StreamHub::open(HubConfig { folder: folder.path().to_owned(), level, retention }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut scratch = Transcoder::new();
    for _ in 0..COMMITS {
        let envelope = StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, b"{}").unwrap();
        let topic = "log".parse().unwrap();
        let envelopes = vec![envelope];
        let enqueue = StreamEnqueue {
            topic,
            envelopes,
            expect: None,
            delay_ms: None,
            key: None,
            owner: "".into(),
        };
        runtime.block_on(hub.enqueue(enqueue)).unwrap();
    }
    let log = std::fs::metadata(folder.path().join("streams.db-wal")).unwrap();
    assert!(log.len() > LOG_BYTES_MAX / 4, "{} bytes show nothing", log.len());
    assert!(log.len() < LOG_BYTES_MAX, "{} bytes", log.len());
}
