//! The stream of a group's orders: read from where it was left, and followed.
//!
//! Its messages are `{notice: bytes}`. It is an open stream, since a member that has missed too
//! much is told without the secrets that it missed; what the notices say is sealed in themselves.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sealane_codec::Codec;
use sealane_frame::GroupTag;
use sealane_group::{ControlCursor, GroupNotice, control_topic};
use sealane_message::Topic;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::keys::RolledBack;
use super::{GroupClient, GroupClientState};
use crate::limits::{
    CONTROL_REJOIN_MS, MAX_NOTICES_PUBLISHED, MAX_NOTICES_READ, MIN_CONTROL_LOOK_MS,
};
use crate::subscribe::SubscribeBuilder;
use crate::{Client, ClientEvent, Error, HubError, ReceivedMessage, StartPosition, Subscription};

/// Reads the control stream of a group, page by page, from where it was left.
#[derive(Debug, Clone)]
pub struct ControlReader {
    topic: String,
    place: Option<ControlPlace>,
}

/// How far a control stream was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPlace {
    /// The generation of the stream.
    pub generation: u64,
    /// The offset of what comes next.
    pub next: u64,
}

/// The part of a control stream behind a place.
#[derive(Debug)]
pub enum ControlPage {
    /// Nobody has ordered anything here yet, or the stream was removed.
    Nothing,
    /// It is another stream than before, or ends before the place. The next page is its first one.
    Anew,
    /// Some messages.
    Messages {
        /// In their order.
        messages: Vec<ReceivedMessage>,
        /// Nothing follows now.
        is_last: bool,
    },
}

impl ControlReader {
    /// Of a group, from that place on, or from the beginning.
    pub fn new(tag: GroupTag, place: Option<ControlPlace>) -> ControlReader {
        ControlReader { topic: control_topic(tag), place }
    }

    pub(super) fn of(topic: &str) -> ControlReader {
        ControlReader { topic: topic.to_owned(), place: None }
    }

    /// The topic of the stream.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// How far it was read; none: from its beginning.
    pub fn place(&self) -> Option<ControlPlace> {
        self.place
    }

    /// Goes on behind a message that a subscription has brought.
    pub fn pass(&mut self, message: &ReceivedMessage) {
        let (generation, next) = (message.generation, message.offset.saturating_add(1));
        self.place = Some(ControlPlace { generation, next });
    }

    /// Reads the next page.
    ///
    /// # Errors
    /// As [`Client::read`], but for a stream that nobody has made.
    pub async fn page(&mut self, client: &Client) -> Result<ControlPage, Error> {
        let start =
            self.place.map_or(StartPosition::First, |place| StartPosition::Offset(place.next));
        let page = match client.read(&self.topic, start, MAX_NOTICES_READ).await {
            Ok(page) => page,
            Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {
                self.place = None;
                return Ok(ControlPage::Nothing);
            }
            Err(error) => return Err(error),
        };
        let is_same =
            |place: ControlPlace| page.generation == place.generation && page.next >= place.next;
        if self.place.is_some_and(|place| !is_same(place)) {
            self.place = None;
            return Ok(ControlPage::Anew);
        }
        self.place = Some(ControlPlace { generation: page.generation, next: page.next });
        Ok(ControlPage::Messages { messages: page.messages, is_last: page.end })
    }

    /// The notice of a message.
    ///
    /// # Errors
    /// The message has none.
    pub fn notice(message: &ReceivedMessage) -> Result<Vec<u8>, Error> {
        let fields = sealane_codec::fields(message.codec, &message.envelope)?;
        let field = fields.iter().find(|(key, _)| key == "notice").ok_or(Error::NoEnvelope)?;
        Ok(sealane_codec::read_bytes(message.codec, field.1)?.into_owned())
    }
}

/// How far a client has read.
pub(super) struct ControlStreamReader {
    topic: Topic,
    /// Of the beginning of the stream at this hub.
    first: ControlCursor,
    /// None before the folder was asked.
    cursor: Option<ControlCursor>,
    /// Whether the stream has to be read from its beginning: it has lost orders.
    is_rolled_back: bool,
    looked: Option<Instant>,
}

impl ControlStreamReader {
    pub(super) fn new(client: &Client, topic: Topic) -> ControlStreamReader {
        let first = ControlCursor::new(&client.address());
        ControlStreamReader { topic, first, cursor: None, is_rolled_back: false, looked: None }
    }

    /// How many orders the stream shows. One that has lost some needs all of them again.
    pub(super) fn shown(&self) -> u64 {
        self.cursor.filter(|_| !self.is_rolled_back).map_or(0, |cursor| cursor.shown)
    }

    pub(super) async fn catch_up(&mut self, group: &GroupClient) -> Result<(), Error> {
        if let Some(looked) = self.looked {
            sleep_until(looked + Duration::from_millis(MIN_CONTROL_LOOK_MS)).await;
        }
        let outcome = self.read(group).await;
        self.looked = Some(Instant::now());
        outcome
    }

    /// Reads on from where the folder says that it was left. A stream that has another generation,
    /// or ends before that place, is read from its beginning: if it shows fewer orders than it did
    /// before, it was rolled back, and nothing is sealed until it shows them again.
    async fn read(&mut self, group: &GroupClient) -> Result<(), Error> {
        let kept = match self.cursor {
            Some(cursor) => Some(cursor),
            None => group.keys().known().control_cursor(&self.first.hub)?,
        };
        let from_beginning = |cursor| ControlCursor { shown: 0, next: 0, ..cursor };
        let known = kept.filter(|_| !self.is_rolled_back);
        let mut cursor = known.unwrap_or_else(|| from_beginning(kept.unwrap_or(self.first)));
        let place =
            known.map(|cursor| ControlPlace { generation: cursor.generation, next: cursor.next });
        let mut reader = ControlReader::new(group.tag(), place);
        loop {
            match reader.page(group.client()).await? {
                ControlPage::Nothing => {
                    cursor = from_beginning(cursor);
                    break;
                }
                ControlPage::Anew => cursor = from_beginning(cursor),
                ControlPage::Messages { messages, is_last } => {
                    for message in &messages {
                        cursor.shown = cursor.shown.max(obey(group, message));
                    }
                    if let Some(ControlPlace { generation, next }) = reader.place() {
                        cursor = ControlCursor { generation, next, ..cursor };
                    }
                    if is_last {
                        break;
                    }
                }
            }
        }
        self.keep(group, kept, cursor)
    }

    fn keep(
        &mut self,
        group: &GroupClient,
        kept: Option<ControlCursor>,
        cursor: ControlCursor,
    ) -> Result<(), Error> {
        let seen = kept.map_or(0, |kept| kept.shown);
        self.is_rolled_back = cursor.shown < seen;
        let fault = self.is_rolled_back.then_some(RolledBack { shown: cursor.shown, seen });
        let was = std::mem::replace(&mut group.keys().rolled_back, fault);
        if self.is_rolled_back {
            // The greatest order count that the stream ever showed stays the measure.
            self.cursor = kept;
            if was != fault {
                let error = sealane_group::Error::RolledBack { shown: cursor.shown, seen };
                group.tell(ClientEvent::refused(&self.topic, cursor.next, &error.into()));
            }
            return Ok(());
        }
        if kept != Some(cursor) && (kept.is_some() || cursor.next > 0) {
            group.keys().known().save_control_cursor(cursor)?;
        }
        self.cursor = Some(cursor);
        Ok(())
    }

    fn subscribe(&self, group: &GroupClient) -> SubscribeBuilder {
        let start = match self.cursor {
            Some(cursor) if cursor.next > 0 && !self.is_rolled_back => {
                StartPosition::Resume { offset: cursor.next, generation: cursor.generation }
            }
            _ => StartPosition::First,
        };
        group.client().subscribe(self.topic.as_str()).codec(Codec::MsgPack).from(start)
    }
}

/// Obeys a message of the control stream, and gives how many orders it shows.
fn obey(group: &GroupClient, message: &ReceivedMessage) -> u64 {
    let notice = notice(message);
    let shown = notice.as_ref().ok().and_then(|notice| group.keys().known().shown_by(notice));
    group.obey(&message.stream, message.offset, notice);
    shown.unwrap_or(0)
}

/// Obeys what comes, until the group is dropped.
pub(super) async fn follow(group: &GroupClient) -> Result<JoinHandle<()>, Error> {
    let subscription = subscribe(group).await?;
    Ok(tokio::spawn(run(Arc::downgrade(&group.inner), subscription)))
}

async fn subscribe(group: &GroupClient) -> Result<Subscription, Error> {
    let subscribe = group.inner.control.lock().await.subscribe(group);
    subscribe.await
}

/// A stream that was removed, or a hub that refuses, must not leave the keys behind for good.
async fn run(group: Weak<GroupClientState>, mut subscription: Subscription) {
    let upgrade = || group.upgrade().map(|inner| GroupClient { inner });
    loop {
        while let Some(next) = subscription.next().await {
            let Some(group) = upgrade() else { return };
            match next {
                Ok(message) => {
                    obey(&group, &message);
                    group.settle().await;
                }
                Err(error) => group.tell(ClientEvent::Disconnected { cause: error.to_string() }),
            }
        }
        subscription = loop {
            sleep(Duration::from_millis(CONTROL_REJOIN_MS)).await;
            let Some(group) = upgrade() else { return };
            if group.catch_up().await.is_ok()
                && let Ok(next) = subscribe(&group).await
            {
                group.tell(ClientEvent::Connected);
                break next;
            }
        };
    }
}

/// Publishes notices in their order.
pub(super) async fn publish(
    client: &Client,
    tag: GroupTag,
    notices: &[GroupNotice],
) -> Result<usize, Error> {
    publish_to(client, &control_topic(tag), notices).await
}

pub(super) async fn publish_to(
    client: &Client,
    topic: &str,
    notices: &[GroupNotice],
) -> Result<usize, Error> {
    for some in notices.chunks(MAX_NOTICES_PUBLISHED) {
        let some: Vec<Vec<u8>> = some.iter().map(|notice| envelope(notice.as_bytes())).collect();
        client.publish_batch(topic, Codec::MsgPack, &some).await?;
    }
    Ok(notices.len())
}

fn envelope(notice: &[u8]) -> Vec<u8> {
    let mut envelope = Vec::with_capacity(notice.len() + 16);
    let mut writer = sealane_codec::DatumWriter::new(Codec::MsgPack, &mut envelope);
    writer.map(1);
    writer.key("notice");
    writer.bytes(notice);
    writer.end();
    envelope
}

pub(super) fn notice(message: &ReceivedMessage) -> Result<GroupNotice, Error> {
    Ok(GroupNotice::from_bytes(&ControlReader::notice(message)?)?)
}
