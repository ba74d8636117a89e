//! Carry messages through a hub: publish them from anywhere, read them anywhere else, in the
//! codec that suits each side, durable when they are acknowledged.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!  ^^^^^                                                         ^^^^
//! ```
//!
//! This crate is the library that users import. [`Client`] speaks the hub protocol
//! (`spec/hub.md`); [`Publisher`] sends many messages in order and in batches; [`Subscription`] is
//! a `Stream` of [`ReceivedMessage`]s that connects again and goes on where it was.
//!
//! ```
//! use sealane::{Client, StartPosition, Value};
//!
//! # let folder = tempfile::tempdir()?;
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let (listen, data) = ("127.0.0.1:0".parse()?, folder.path().to_owned());
//! # let config = sealane_node::Config { listen, data, ..Default::default() };
//! # let node = sealane_node::HubNode::start(config).await?;
//! # let address = node.address().to_string();
//! let client = Client::connect(&address)?; // 127.0.0.1:9087 where `sealane up` runs
//! let place = Value::Map(vec![("lat".into(), Value::F64(48.2))]);
//! client.publish("fleet/7/location", &place).await?;
//!
//! let mut places = client.subscribe("fleet/*/location").from(StartPosition::First).await?;
//! while let Some(message) = places.next().await {
//!     let message = message?;
//!     println!("{} {:?}", message.stream, message.value()?);
//! #   assert_eq!(message.value()?.field("lat"), Some(&Value::F64(48.2)));
//! #   break;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds
//!
//! - *A repeated request stores nothing twice.* Where an answer is lost, the library asks again
//!   under the same idempotency key, for 10 s ([`Client::patience`]).
//! - *Work is shared by name.* `.consumer("billing")` divides the messages among all programs that
//!   give that name. A message that [`ReceivedMessage::ack`] did not confirm comes again, with
//!   [`ReceivedMessage::attempt`] counting.
//! - *Nothing here grows without bound.* A subscription holds at most its credit window, a
//!   publisher at most its queue; who is slow slows the other side down.
//! - *Interruptions are visible.* [`Subscription::events`] tells of lost connections, gaps, and
//!   streams that could not be continued where they were.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

mod address;
mod backoff;
mod client;
pub mod documents;
mod error;
mod event;
#[cfg(feature = "group")]
mod group;
#[cfg(not(feature = "group"))]
#[path = "no_group.rs"]
mod group;
mod http;
mod hub_error;
pub mod limits;
mod manage;
mod message;
mod publish;
mod publisher;
mod request;
mod seal;
mod socket;
mod stream;
mod subscribe;
mod subscription;
mod wire;

pub use client::Client;
pub use documents::{
    DocumentRefusal, DocumentWriteOutcome, DocumentsClient, DocumentsError, EmergencyRequest,
};
pub use error::{ERRORS, Error, TlsTrustError};
pub use event::{ClientEvent, ClientEvents};
#[cfg(feature = "group")]
pub use group::{ControlPage, ControlPlace, ControlReader, GroupBeater, GroupClient, GroupReader};
pub use hub_error::HubError;
pub use manage::ConsumerHandle;
pub use message::ReceivedMessage;
pub use publish::{
    PublishBatch, PublishBuilder, PublishLater, PublishedBatch, PublishedMessage, ScheduledMessage,
};
pub use publisher::{Publisher, PublisherProgress};
pub use seal::{Seal, SealCounts};
pub use sealane_codec::Codec;
pub use sealane_frame::GroupTag;
#[cfg(feature = "group")]
pub use sealane_group::{GroupMember, KeyFolder};
pub use sealane_message::{DataType, Pattern, Retry, Topic, Value};
pub use sealane_protocol::{
    Cancelled, ConnectionState, ConsumerInfo, ConsumerSettings, ConsumerState, DelayedMessage,
    DelayedPage, DelayedPlace, Health, HubLevel, Level, PendingMessage, Purged, Retention,
    RetentionRule, StreamRules, StreamState, StreamsPage, WireError,
};
pub use sealane_seal::{Class, policy};
pub use stream::{ConfigureStream, ListStreams, MessagePage};
pub use subscribe::{StartPosition, SubscribeBuilder};
pub use subscription::Subscription;
