use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealane_codec::Codec;
use sealane_message::Pattern;
use sealane_message::time::whole_ms;
use sealane_protocol::ConsumerChange;
use sealane_protocol::limits::MAX_DELIVERY_BATCH;

use crate::address::RequestPath;
use crate::group::GroupClient;
use crate::limits::HEARTBEAT_INTERVAL_MS;
use crate::subscription::Subscription;
use crate::{Client, Error};

/// Messages that a subscription asks for ahead, unless [`Subscribe::credit`] says otherwise.
const DEFAULT_CREDIT: u32 = 1024;

/// Messages that the hub may put in one frame, unless [`Subscribe::batch`] says otherwise.
const DEFAULT_BATCH: usize = 256;

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPosition {
    /// The first message that is kept.
    First,
    /// The first message that comes after subscribing.
    New,
    /// This offset.
    Offset(u64),
    /// This offset, as it was seen in this generation: the subscription tells with
    /// [`crate::ClientEvent::NotRecovered`] where what was between is no more.
    Resume {
        /// The next offset.
        offset: u64,
        /// The generation in which the one before was seen.
        generation: u64,
    },
    /// The first message appended at this time or later.
    Time(SystemTime),
}

impl StartPosition {
    /// As the protocol says it.
    pub(crate) fn asked(self) -> sealane_protocol::ReadStart {
        use sealane_protocol::ReadStart as Asked;
        match self {
            StartPosition::First => Asked::First,
            StartPosition::New => Asked::New,
            StartPosition::Offset(offset) | StartPosition::Resume { offset, .. } => {
                Asked::Offset(offset)
            }
            StartPosition::Time(time) => {
                Asked::Time(whole_ms(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
            }
        }
    }

    pub(crate) fn generation(self) -> Option<u64> {
        match self {
            StartPosition::Resume { generation, .. } => Some(generation),
            _ => None,
        }
    }
}

/// A subscription about to be made; awaiting it connects.
#[must_use = "nothing is subscribed until this is awaited"]
#[derive(Debug, Clone)]
pub struct SubscribeBuilder {
    pub(crate) client: Client,
    pub(crate) pattern: String,
    pub(crate) start: Option<StartPosition>,
    pub(crate) consumer: Option<String>,
    pub(crate) inbox: bool,
    pub(crate) codec: Codec,
    pub(crate) batch: usize,
    pub(crate) credit: u32,
    pub(crate) limit: Option<u64>,
    pub(crate) ack_wait: Option<Duration>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) max_in_flight: Option<u32>,
    pub(crate) group: Option<GroupClient>,
}

impl SubscribeBuilder {
    pub(crate) fn new(client: Client, pattern: &str) -> Self {
        Self {
            codec: client.codec(),
            client,
            pattern: pattern.to_owned(),
            start: None,
            consumer: None,
            inbox: false,
            batch: DEFAULT_BATCH,
            credit: DEFAULT_CREDIT,
            limit: None,
            ack_wait: None,
            max_attempts: None,
            max_in_flight: None,
            group: None,
        }
    }

    #[cfg(feature = "group")]
    pub(crate) fn group(self, group: &GroupClient) -> Self {
        Self { group: Some(group.clone()), ..self }
    }

    /// Where to begin; default [`StartPosition::New`]. With a consumer: where one that is new
    /// begins, default [`StartPosition::First`].
    pub fn from(mut self, start: StartPosition) -> Self {
        self.start = Some(start);
        self
    }

    /// Shares the messages with all who give the same name; what is not acknowledged comes again.
    pub fn consumer(mut self, name: impl Into<String>) -> Self {
        self.consumer = Some(name.into());
        self.inbox = false;
        self
    }

    /// Joins the stream's inbox, the consumer without a name; it begins at the first message.
    pub fn inbox(mut self) -> Self {
        self.inbox = true;
        self.consumer = None;
        self
    }

    /// The codec of the deliveries; default the client's. An opened message has its publisher's.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// How many messages the hub may put in one frame; default 256. More is cheaper, never later.
    pub fn batch(mut self, messages: usize) -> Self {
        self.batch = messages.clamp(1, MAX_DELIVERY_BATCH);
        self
    }

    /// How many messages may be on their way or waiting here at most; default 1024.
    pub fn credit(mut self, window: u32) -> Self {
        self.credit = window.max(1);
        self
    }

    /// Ends after so many messages, and never asks the hub for more.
    pub fn limit(mut self, messages: u64) -> Self {
        self.limit = Some(messages);
        self
    }

    /// Consumer: redeliver what was not acknowledged for so long.
    pub fn ack_wait(mut self, wait: Duration) -> Self {
        self.ack_wait = Some(wait);
        self
    }

    /// Consumer: a dead letter after so many deliveries; 0: never.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Consumer: delivered and unacknowledged messages at most; 1 gives strict order.
    pub fn max_in_flight(mut self, messages: u32) -> Self {
        self.max_in_flight = Some(messages);
        self
    }

    /// Whether this reads for itself, without acknowledgement.
    pub(crate) fn is_reader(&self) -> bool {
        self.consumer.is_none() && !self.inbox
    }

    /// The request line of a subscription to `pattern`, beginning at `start`.
    pub(crate) fn path(&self, pattern: Pattern, start: Option<StartPosition>) -> String {
        let change = ConsumerChange {
            max_in_flight: self.max_in_flight,
            ack_wait_ms: self.ack_wait.map(whole_ms),
            max_attempts: self.max_attempts,
        };
        let asked = sealane_protocol::SubscribeQuery {
            pattern,
            start: start.map(StartPosition::asked),
            generation: start.and_then(StartPosition::generation),
            consumer: self.consumer.clone(),
            batch: self.batch,
            heartbeat_ms: Some(HEARTBEAT_INTERVAL_MS),
            change,
        };
        RequestPath::new("/v1/subscribe")
            .with("codec", self.codec.name())
            .with_all(asked.parameters())
            .into_string()
    }
}

impl IntoFuture for SubscribeBuilder {
    type Output = Result<Subscription, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            if self.codec == Codec::MsgPackRecords {
                return Err(Error::RecordsCodec);
            }
            let pattern: Pattern = self.pattern.parse()?;
            if self.is_reader() {
                self.start.get_or_insert(StartPosition::New);
            } else if self.inbox {
                self.start = None;
            }
            Subscription::open(self, pattern).await
        })
    }
}
