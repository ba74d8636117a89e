//! The bounds of the bench.

use sealane_frame::limits::MAX_FRAME_BODY_BYTES;

sealane_message::limits! {
    /// A message that the bench looks at. A larger one is counted as broken.
    MAX_BENCH_MESSAGE_BYTES: usize = MAX_FRAME_BODY_BYTES / 2, "bytes";
    /// Messages that the bench measures with. Of more, so many are drawn at random.
    MAX_BENCH_SAMPLE_MESSAGES: usize = 1024, "messages";
    /// Bytes of those messages. Beyond it, fewer are kept.
    MAX_BENCH_SAMPLE_BYTES: usize = 16 << 20, "bytes";
}
