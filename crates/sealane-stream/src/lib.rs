//! Step 7 of a message's way: *keep*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                                        ^^^^
//! ```
//!
//! Takes messages and gives durable streams: each message has an offset, is on disk when it is
//! acknowledged (or as the stream's [`Level`] says), and comes out exactly as readers grant
//! credit, in the codec that each asked for.
//!
//! ```text
//!  enqueue ─► queue ─► writer: one commit for many ─► tail ─► subscriptions take what they may
//!                            └─► SQLite, blocks of messages ─────┘ (those who catch up)
//! ```
//!
//! ```
//! use sealane_stream::{StreamEnqueue, StreamEnvelope, StreamHub, HubConfig, Level, Retention};
//! # use sealane_codec::{Codec, Transcoder};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().to_owned();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let config = HubConfig { folder, level: Level::Disk, retention: Retention::default() };
//! let hub = StreamHub::open(config)?;
//! let body = br#"{"speed":42}"#;
//! let envelope = StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, body)?;
//! let (topic, envelopes) = ("fleet/7".parse()?, vec![envelope]);
//! let enqueue = StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None,
//!     owner: "".into() };
//! assert_eq!(hub.enqueue(enqueue).await?.offset, 0);
//! # hub.close()?;
//! # Ok::<(), sealane_stream::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod block;
mod checkpoint;
mod clock;
mod commit;

mod consumer;
mod envelope;
mod hub;
pub mod limits;
mod metrics;
#[cfg(test)]
mod model;
mod publishing;
mod registry;
mod rooms;
mod rules;
mod shares;
mod signal;
mod store;
mod stream;
mod subscription;
mod writer;

pub use block::{DeliverLayout, take_encoded};
pub use clock::HubClock;
pub use envelope::{EnvelopeBuffer, MessageIds, StreamEnvelope};
pub use hub::{HubConfig, IdempotencyKey, StreamEnqueue, StreamHub, StreamPage, StreamsFound};
pub use metrics::{
    ConsumerFigures, HistogramBucket, HistogramSpread, HubCounter, HubTiming, Metrics,
    SeriesFigures, StreamFigures, TimingHistogram, Timings,
};
pub use publishing::{DirectAnswer, PublishAnswered, PublishSession, QueueShare, StoredPlace};
pub use shares::{OwnShares, ShareHeld, ShareKind, ShareRules};
pub use store::{
    OwnedRows, StoreBackup, StoreId, backup, check, is_in_use, newest_generation, newest_ms, owned,
    restore, store_id,
};
pub use subscription::{
    DeliveryBurst, DeliveryPiece, SteeredTopics, StreamDelivery, StreamSubscription,
    SubscriptionOutput, SubscriptionReader,
};
pub use writer::{AppendedMessages, SessionItem};

pub use sealane_protocol::{
    ConsumerChange, ConsumerSettings, ConsumerState, ERRORS, Error, Level, ReadStart, Retention,
    StreamChange, StreamPosition, StreamState,
};
