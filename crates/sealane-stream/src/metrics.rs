use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident = $metric:literal;)+) => {
        /// What the hub counts; all of it only grows.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: AtomicU64,)+
        }

        impl Metrics {
            /// Each counter as (metric, help, value).
            pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$(($metric, concat!($($doc),+), self.$name.load(Ordering::Relaxed)),)+]
            }
        }
    };
}

counters! {
    /// Messages stored.
    stored = "sealane_stream_stored_total";
    /// Messages of sealed streams stored.
    stored_sealed = "sealane_stream_stored_sealed_total";
    /// Commits of the store.
    commits = "sealane_stream_commits_total";
    /// Commits that failed; nothing of them was acknowledged.
    failed_commits = "sealane_stream_failed_commits_total";
    /// Deliveries handed to connections, redeliveries included.
    delivered = "sealane_stream_delivered_total";
    /// Deliveries that were not the first of their message to their consumer.
    redelivered = "sealane_stream_redelivered_total";
    /// Acknowledgements that ended a delivery.
    acked = "sealane_stream_acked_total";
    /// Acknowledgements of what was not in flight to their connection.
    acked_in_vain = "sealane_stream_acked_in_vain_total";
    /// Messages set back by nack.
    nacked = "sealane_stream_nacked_total";
    /// Messages put into deliver frames; once per codec that is read, however many read it.
    encoded = "sealane_codec_encoded_total";
    /// Messages removed by retention.
    retired = "sealane_stream_retired_total";
    /// Messages removed by retention before a consumer was done with them.
    expired = "sealane_stream_expired_total";
    /// Messages out of attempts for which there can be no dead letter.
    dead_dropped = "sealane_stream_dead_dropped_total";
    /// Messages found damaged.
    damaged = "sealane_stream_damaged_total";
    /// Blocks read from disk for readers who catch up.
    blocks_read = "sealane_stream_blocks_read_total";
}
