//! The hub protocol (spec/hub.md), as both of its ends speak it.
//!
//! ```text
//!  client ── Enqueue, Change, Subscribe, Op ──► hub
//!         ◄── Enqueued, StreamState, ServerFrame, Error ──
//! ```
//!
//! Every request, answer and frame is a type that writes itself and reads what the other end wrote.
//! Envelopes are never decoded here: they are spliced into frames and cut out of them. Requests are
//! read strictly, since the hub refuses what it does not know. Answers and frames of a newer hub
//! may say more: what is not known is passed over, or kept as text.
//!
//! There is no I/O, no clock, no randomness and no `unsafe`.
//!
//! ```
//! use sealane_codec::Codec;
//! use sealane_protocol::{Op, read_ops};
//!
//! let (mut frame, mut ops) = (Vec::new(), Vec::new());
//! Op::Credit(10).write(Codec::Json, &mut frame);
//! assert_eq!(frame, br#"{"credit":10}"#);
//! read_ops(Codec::Json, &frame, &mut ops)?;
//! assert_eq!(ops, [Op::Credit(10)]);
//! # Ok::<(), sealane_protocol::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod consumer;
mod delayed;
mod enqueue;
mod error;
mod features;
mod fields;
mod forms;
mod frame;
mod health;
mod level;
pub mod limits;
mod op;
mod overview;
mod page;
mod publish;
mod purge;
mod rule;
#[cfg(test)]
mod schema;
mod sealed;
mod socket;
mod state;
mod subscribe;
mod ticket;

pub use consumer::{
    ConsumerInfo, ConsumerVerb, Consumers, ConsumersPage, PendingMessage, read_consumer_query,
    write_consumer_removed,
};
pub use delayed::{
    Cancelled, DelayedMessage, DelayedPage, DelayedPlace, ListDelayed, read_cancel_query,
};
pub use enqueue::{Enqueue, EnqueueOutcome, Enqueued};
pub use error::{ERRORS, Error};
pub use features::{FEATURES, Features};
pub use fields::Malformed;
pub use frame::{
    Deliver, DeliverHead, ServerFrame, StreamJoined, StreamPosition, WireError, write_batch,
    write_deliver,
};
pub use health::Health;
pub use level::{HubLevel, Level, UnknownLevel};
pub use op::{AckMark, Op, read_ops};
pub use overview::{NodeOverview, OverviewCounters};
pub use page::{RangePage, RangeQuery};
pub use publish::{
    NotPlaced, NumberRange, PublishAsked, PublishFrame, PublishItem, PublishQuery, SessionPlace,
    StoredRange, read_publish, write_publish,
};
pub use purge::{Purge, Purged};
pub use rule::{RetentionRule, RuleBounds, StreamRules, read_rule_query, write_rule_removed};
pub use sealed::{SealedEnvelope, write_sealed};
pub use socket::write_message;
pub use state::{
    ConnectionState, ConsumerState, Retention, StreamChange, StreamState, StreamsPage,
    StreamsQuery, write_removed,
};
pub use subscribe::{ConsumerChange, ConsumerSettings, ReadStart, SubscribeQuery};
pub use ticket::AccessTicket;
