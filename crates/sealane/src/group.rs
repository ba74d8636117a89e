//! Groups: what is published is sealed, and what is read is opened, by keys that the hub has not.

mod control;
mod keys;
mod reading;
mod seen;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use sealane_codec::Codec;
use sealane_frame::GroupTag;
use sealane_group::{Change, Member, Notice};
use sealane_message::{DataType, Topic, Value};
use sealane_seal::Epoch;
use sealane_seal::policy::{Conditions, Decision, Policy};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::event::Events;
use crate::limits::MAX_EVENTS;
use crate::publish::{Publish, PublishBatch};
use crate::publisher::Publisher;
use crate::subscribe::Subscribe;
use crate::{Client, Error, Event, Message, SealCounts};
use control::Control;
use keys::GroupKeys;
pub(crate) use reading::Reading;

/// A client with the keys of a group: what it publishes is sealed before it leaves this process,
/// what it reads is opened in it.
///
/// The class of each message is decided by a [`Policy`] and the message's [`DataType`]; a message
/// that cannot be sealed so is an error, and never sent in another way. As long as one clone of it
/// lives, it follows the group's control stream, so that a revocation reaches what it seals next.
#[derive(Clone)]
pub struct Group {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    tag: GroupTag,
    keys: Mutex<GroupKeys>,
    control: tokio::sync::Mutex<Control>,
    events: broadcast::Sender<Event>,
    follower: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let follower = self.follower.get_mut();
        if let Some(follower) = follower.take() {
            follower.abort();
        }
    }
}

impl Group {
    /// Reads the group's control stream to its end, and follows it from then on.
    pub(crate) async fn open(client: &Client, member: Member) -> Result<Group, Error> {
        let tag = member.tag();
        let (events, _) = broadcast::channel(MAX_EVENTS);
        let inner = Inner {
            client: client.clone(),
            tag,
            keys: Mutex::new(GroupKeys::new(member)?),
            control: tokio::sync::Mutex::new(Control::new(tag)?),
            events,
            follower: Mutex::new(None),
        };
        let group = Group { inner: Arc::new(inner) };
        group.catch_up().await?;
        let follower = control::follow(&group).await?;
        *group.inner.follower.lock() = Some(follower);
        Ok(group)
    }

    /// The group's address in frames and in the names of sealed streams.
    pub fn tag(&self) -> GroupTag {
        self.inner.tag
    }

    /// The stream of the authority's orders.
    pub fn control_topic(&self) -> Topic {
        control::topic(self.inner.tag)
    }

    /// Decides classes by this policy instead of the built-in one; from the next message on.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Group {
        self.set_policy(policy);
        self
    }

    /// Takes another policy while it is at work. What is under way was decided before.
    pub fn set_policy(&self, policy: Policy) {
        self.keys().policy = policy;
    }

    /// What the sender knows of its link, readers, battery and rate.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.keys().conditions = conditions;
    }

    /// How a message of that type is sealed and sent at present.
    pub fn decide(&self, data_type: DataType) -> Decision {
        self.keys().decide(data_type)
    }

    /// Publishes a map, sealed, to the stream of `topic`, which its first message makes sealed.
    ///
    /// # Errors
    /// As [`Client::publish`]; [`Error::Group`] where it cannot be sealed as its type needs.
    pub fn publish(&self, topic: &str, data_type: DataType, envelope: &Value) -> Publish {
        Publish::value(&self.inner.client, topic, envelope).sealed(self, data_type)
    }

    /// Publishes an envelope that is encoded already, sealed.
    ///
    /// # Errors
    /// As [`Group::publish`].
    pub fn publish_raw(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelope: impl Into<Bytes>,
    ) -> Publish {
        Publish::new(&self.inner.client, topic, codec, envelope.into()).sealed(self, data_type)
    }

    /// Publishes encoded envelopes, each sealed, in one commit: all or none.
    ///
    /// # Errors
    /// As [`Group::publish`].
    pub fn publish_batch<E: AsRef<[u8]>>(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelopes: &[E],
    ) -> PublishBatch {
        let sealed: Result<Vec<Vec<u8>>, Error> =
            envelopes.iter().map(|one| self.seal(data_type, codec, one.as_ref())).collect();
        match sealed {
            Ok(sealed) => PublishBatch::new(&self.inner.client, topic, SEALED_IN, &sealed, None),
            Err(error) => PublishBatch::failed(&self.inner.client, error),
        }
    }

    /// A handle that publishes sealed messages to one stream in the background, in order. They are
    /// sealed just before they are sent.
    ///
    /// # Errors
    /// [`Error::Topic`] where the name is no topic.
    pub fn publisher(&self, topic: &str, data_type: DataType) -> Result<Publisher, Error> {
        let seal = Some((self.clone(), data_type));
        Publisher::start(self.inner.client.clone(), topic.parse()?, seal)
    }

    /// Subscribes to a topic or pattern of sealed streams, and opens what comes.
    ///
    /// A frame that does not open, is below its floor or came before is not shown: it is told as
    /// [`Event::Refused`] and counted in [`crate::Subscription::seal_counts`]. A consumer
    /// acknowledges it; if only its epoch is not known yet, it asks for it again later.
    pub fn subscribe(&self, pattern: &str) -> Subscribe {
        Subscribe::new(self.inner.client.clone(), pattern).group(self)
    }

    /// What happens to the group's keys from now on.
    pub fn events(&self) -> Events {
        Events(self.inner.events.subscribe())
    }

    /// Reads the control stream to its end and obeys the orders there.
    ///
    /// # Errors
    /// [`Error::NotReachable`], [`Error::NoAnswer`] or the hub's refusal.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let mut control = self.inner.control.lock().await;
        control.catch_up(self).await
    }

    /// Publishes what this authority has ordered and the control stream does not have; gives how
    /// many there were. Doing it again does nothing. A token needs `read` and `orders` on
    /// [`Group::control_topic`].
    ///
    /// # Errors
    /// [`Error::Group`] if this is not the authority; as [`Client::publish`].
    pub async fn publish_orders(&self) -> Result<usize, Error> {
        let notices = self.keys().notices()?;
        control::publish_missing(&self.inner.client, self.inner.tag, &notices).await
    }

    /// Seals an envelope, and gives the sealed envelope in MessagePack, for who enqueues it by
    /// other means: what [`Group::publish_raw`] sends.
    ///
    /// # Errors
    /// [`Error::Policy`], [`Error::Group`], [`Error::NoEnvelope`], [`Error::TooLarge`].
    pub fn seal(
        &self,
        data_type: DataType,
        codec: Codec,
        envelope: &[u8],
    ) -> Result<Vec<u8>, Error> {
        self.keys().seal(data_type, codec, envelope)
    }

    /// Opens messages that were read by [`Client::read`], or without this group.
    pub fn reader(&self) -> GroupReader {
        GroupReader { reading: Reading::new(self.clone(), false) }
    }

    /// All who share this folder have read what was sealed before `epoch`: a forward-secret group
    /// erases the secrets before it, so that a later thief reads nothing of it either.
    ///
    /// # Errors
    /// [`Error::Group`] where that could not be made durable.
    pub fn passed(&self, epoch: u64) -> Result<(), Error> {
        self.keys().passed(Epoch(epoch))
    }

    pub(crate) fn keys(&self) -> MutexGuard<'_, GroupKeys> {
        self.inner.keys.lock()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Obeys one message of the control stream, and tells of what changed. What is refused changes
    /// nothing: whoever may write there may have written it.
    fn obey(&self, stream: &Topic, offset: u64, notice: Result<Notice, Error>) {
        let outcome = notice.and_then(|notice| self.keys().obey(&notice));
        match outcome {
            Ok((Change::Nothing | Change::Certified(_), _)) => {}
            Ok((change, epoch)) => {
                let removed = change == Change::Removed;
                self.tell(Event::Keys { group: self.inner.tag, epoch: epoch.0, removed });
            }
            Err(error) => self.tell(Event::refused(stream, offset, &error)),
        }
    }

    fn tell(&self, event: Event) {
        event.log();
        // Nobody may be listening.
        let _ = self.inner.events.send(event);
    }
}

/// Opens messages one by one. What a subscription refuses, it refuses.
#[derive(Debug)]
pub struct GroupReader {
    reading: Reading,
}

impl GroupReader {
    /// The message as it was before it was sealed. `message` stays as it is.
    ///
    /// # Errors
    /// Why it is not to be shown; `Repeated` if it was opened before.
    pub fn open(&mut self, message: &Message) -> Result<Message, Error> {
        let outcome = self.reading.open(message);
        outcome.map_err(|refusal| {
            self.reading.count(&refusal);
            Error::Group { info: refusal.info(), message: refusal.to_string() }
        })
    }

    /// What was met so far.
    pub fn counts(&self) -> SealCounts {
        self.reading.counts()
    }
}

/// The codec of the envelope around a frame, which carries bytes as they are. The codec of the
/// envelope within is the publisher's, and stands in the frame's header.
pub(crate) const SEALED_IN: Codec = Codec::MsgPack;

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("tag", &self.inner.tag).finish_non_exhaustive()
    }
}
