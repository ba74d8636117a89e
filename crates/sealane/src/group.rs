//! Groups: what is published is sealed, and what is read is opened, by keys that the hub has not.

mod beater;
mod control;
mod keys;
mod reading;
mod seen;
mod sent;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use sealane_codec::Codec;
use sealane_frame::GroupTag;
use sealane_group::{GroupChange, GroupMembership, GroupNotice, RemovalMark};
use sealane_message::{DataType, Topic, Value};
use sealane_seal::policy::{Conditions, Decision, Policy};
use sealane_seal::{Binding, Epoch};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::event::ClientEvents;
use crate::limits::{MAX_EVENTS, MAX_SENT_HELD};
use crate::publish::{PublishBatch, PublishBuilder};
use crate::publisher::Publisher;
use crate::request::now_ms;
use crate::subscribe::SubscribeBuilder;
use crate::{Client, ClientEvent, Error, ReceivedMessage, SealCounts};
pub use beater::GroupBeater;
use control::ControlStreamReader;
pub use control::{ControlPage, ControlPlace, ControlReader};
use keys::{GroupKeyring, SealedNow};
pub(crate) use reading::SubscriptionOpener;
pub(crate) use sent::SentEnvelopes;
use sent::{GroupStreamSet, SentMessages};

/// A client with the keys of a group: what it publishes is sealed before it leaves this process,
/// what it reads is opened in it.
///
/// The class of each message is decided by a [`Policy`] and the message's [`DataType`]; a message
/// that cannot be sealed so is an error, and never sent in another way. As long as one clone of it
/// lives, it follows the group's control stream, so that a revocation reaches what it seals next.
#[derive(Clone)]
pub struct GroupClient {
    inner: Arc<GroupClientState>,
}

struct GroupClientState {
    client: Client,
    tag: GroupTag,
    /// Of its orders.
    topic: Topic,
    keys: Mutex<GroupKeyring>,
    control: tokio::sync::Mutex<ControlStreamReader>,
    events: broadcast::Sender<ClientEvent>,
    sent: Mutex<SentMessages>,
    streams: Mutex<GroupStreamSet>,
    follower: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for GroupClientState {
    fn drop(&mut self) {
        let follower = self.follower.get_mut();
        if let Some(follower) = follower.take() {
            follower.abort();
        }
    }
}

impl GroupClient {
    /// Reads the group's control stream to its end, and follows it from then on.
    pub(crate) async fn open(
        client: &Client,
        member: GroupMembership,
    ) -> Result<GroupClient, Error> {
        let tag = member.tag();
        let topic: Topic = sealane_group::control_topic(tag).parse()?;
        let (events, _) = broadcast::channel(MAX_EVENTS);
        let inner = GroupClientState {
            client: client.clone(),
            tag,
            keys: Mutex::new(GroupKeyring::new(member)?),
            control: tokio::sync::Mutex::new(ControlStreamReader::new(client, topic.clone())),
            topic,
            events,
            sent: Mutex::new(SentMessages::default()),
            streams: Mutex::new(GroupStreamSet::default()),
            follower: Mutex::new(None),
        };
        let group = GroupClient { inner: Arc::new(inner) };
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
        self.inner.topic.clone()
    }

    /// Decides classes by this policy instead of the built-in one; from the next message on.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> GroupClient {
        self.set_policy(policy);
        self
    }

    /// Takes another policy while it is at work. What is under way was decided before.
    pub fn set_policy(&self, policy: Policy) {
        self.keys().policy = policy;
    }

    /// Sets the sender's view of its link, readers, battery and rate.
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
    pub fn publish(&self, topic: &str, data_type: DataType, envelope: &Value) -> PublishBuilder {
        PublishBuilder::value(&self.inner.client, topic, envelope).sealed(self, data_type)
    }

    /// Publishes an envelope that is encoded already, sealed.
    ///
    /// # Errors
    /// As [`GroupClient::publish`].
    pub fn publish_raw(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelope: impl Into<Bytes>,
    ) -> PublishBuilder {
        PublishBuilder::new(&self.inner.client, topic, codec, envelope.into())
            .sealed(self, data_type)
    }

    /// Publishes encoded envelopes, each sealed, in one commit: all or none.
    ///
    /// # Errors
    /// As [`GroupClient::publish`].
    pub fn publish_batch<E: AsRef<[u8]>>(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelopes: &[E],
    ) -> PublishBatch {
        let seal = |one: &E| self.seal_now(topic, data_type, codec, one.as_ref());
        let sealed: Result<Vec<SealedNow>, Error> = envelopes.iter().map(seal).collect();
        match sealed {
            Ok(sealed) => {
                let bytes: Vec<&[u8]> = sealed.iter().map(|one| one.bytes.as_slice()).collect();
                let publish = PublishBatch::new(&self.inner.client, topic, SEALED_IN, &bytes, None);
                let epoch = sealed.first().map_or(Epoch(0), |one| one.epoch);
                let of = |one: &E| Bytes::copy_from_slice(one.as_ref());
                let envelopes = envelopes.iter().take(MAX_SENT_HELD).map(of).collect();
                publish.sealed(self, SentEnvelopes { epoch, data_type, codec, envelopes })
            }
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
    /// [`ClientEvent::Refused`] and counted in [`crate::Subscription::seal_counts`]. A consumer
    /// acknowledges it; if only its epoch is not known yet, it asks for it again later.
    pub fn subscribe(&self, pattern: &str) -> SubscribeBuilder {
        SubscribeBuilder::new(self.inner.client.clone(), pattern).group(self)
    }

    /// The events of the group's keys from now on.
    pub fn events(&self) -> ClientEvents {
        ClientEvents(self.inner.events.subscribe())
    }

    /// Reads the control stream to its end and obeys the orders there.
    ///
    /// # Errors
    /// [`Error::NotReachable`], [`Error::NoAnswer`] or the hub's refusal.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let outcome = self.inner.control.lock().await.catch_up(self).await;
        self.settle().await;
        outcome
    }

    /// Publishes what this authority has ordered and the control stream does not have; gives how
    /// many there were. Behind a removal it marks how far the group's streams had come. Doing it
    /// again does nothing. A token needs `read` and `orders` on [`GroupClient::control_topic`].
    ///
    /// # Errors
    /// [`Error::Group`] if this is not the authority; as [`Client::publish`].
    pub async fn publish_orders(&self) -> Result<usize, Error> {
        let from = self.inner.control.lock().await.shown();
        let mut count = self.resend_orders(from).await?;
        if self.keys().provisioned()?.owes_marks() {
            let marks = self.streams_of_group().await?;
            let notices = self.keys().provisioned()?.mark(&marks)?;
            count += control::publish(&self.inner.client, self.inner.tag, &notices).await?;
        }
        self.inner.control.lock().await.catch_up(self).await?;
        Ok(count)
    }

    /// Publishes what this authority has ordered, from that number on, whether the control stream
    /// has it or not.
    ///
    /// # Errors
    /// As [`GroupClient::publish_orders`].
    pub async fn resend_orders(&self, from: u64) -> Result<usize, Error> {
        let (ahead, notices) = {
            let mut keys = self.keys();
            let authority = keys.provisioned()?;
            (authority.removals(from)?, authority.notices(from)?)
        };
        // Short notices go ahead of long orders, also where a gateway takes them into the field.
        control::publish(&self.inner.client, self.inner.tag, &ahead).await?;
        control::publish(&self.inner.client, self.inner.tag, &notices).await
    }

    /// Publishes a heartbeat of this authority: members know then that they have missed no order.
    ///
    /// # Errors
    /// As [`GroupClient::publish_orders`].
    pub async fn beat(&self) -> Result<(), Error> {
        let notice = self.keys().provisioned()?.heartbeat()?;
        control::publish(&self.inner.client, self.inner.tag, &[notice]).await.map(|_| ())
    }

    /// Warnings for people before they trust what they read. This member may be removed, or may not
    /// have obeyed all orders. The control stream may have lost orders. The folder may be copied or
    /// restored. No heartbeat may have come for longer than the group's charter allows.
    pub fn warnings(&self) -> Vec<Error> {
        let keys = self.keys();
        let behind = keys.check_orders().err();
        let stale = keys.known().check_heartbeat(now_ms()).err().map(Error::from);
        let copied = keys.known().is_copied().then_some(Error::CopiedKeys);
        behind.into_iter().chain(stale).chain(copied).collect()
    }

    /// Streams that are sealed for this group, and their dead letters, with where they end.
    async fn streams_of_group(&self) -> Result<Vec<RemovalMark>, Error> {
        let (mut names, mut marks, mut letters) = (HashSet::new(), Vec::new(), Vec::new());
        let mut list = self.inner.client.streams();
        loop {
            let page = list.await?;
            for state in page.streams {
                let end = mark(&state.stream, state.generation, state.next);
                if state.sealed == Some(self.inner.tag) {
                    names.insert(state.stream.as_str().to_owned());
                    marks.push(end);
                } else if let Some(of) = state.stream.as_str().strip_prefix(DEAD) {
                    letters.push((of.to_owned(), end));
                }
            }
            match page.next {
                Some(last) => list = self.inner.client.streams().after(last),
                None => break,
            }
        }
        let of_group = letters.into_iter().filter(|(of, _)| names.contains(of));
        marks.extend(of_group.map(|(_, end)| end));
        Ok(marks)
    }

    /// Seals again what fell behind a removal, and remembers where streams stood when one was
    /// learned of that nobody has marked.
    async fn settle(&self) {
        for late in self.superseded() {
            self.tell(ClientEvent::Superseded { stream: late.stream.clone(), offset: late.offset });
            let publish =
                self.publish_raw(late.stream.as_str(), late.data_type, late.codec, late.envelope);
            if let Err(error) = publish.await {
                let stream = &late.stream;
                tracing::warn!(%stream, code = error.code(), %error, "not sealed again");
            }
        }
        let unmarked = self.inner.streams.lock().unmarked(self.keys().known());
        let mut marks = Vec::new();
        for stream in unmarked {
            if let Ok(state) = self.inner.client.stream(stream.as_str()).await {
                marks.push(mark(&stream, state.generation, state.next));
            }
        }
        if !marks.is_empty()
            && let Err(error) = self.keys().mark_here(&marks)
        {
            tracing::warn!(code = error.code(), %error, "where a removal began is not kept");
        }
    }

    /// Messages of this client that no reader takes, since they stand behind a removal.
    fn superseded(&self) -> Vec<sent::StaleEpochMessage> {
        let keys = self.keys();
        let mut sent = self.inner.sent.lock();
        sent.take_late(|stream, generation, offset| {
            keys.known().first_epoch(&Binding::stream(stream.as_str()), generation, offset)
        })
    }

    /// Remembers what was stored, in case that a removal was given before it.
    pub(crate) fn sent(&self, sent: SentEnvelopes, stream: &Topic, generation: u64, offset: u64) {
        self.met(stream);
        self.inner.sent.lock().add(sent, stream, generation, offset);
    }

    /// Remembers a stream of the group.
    pub(crate) fn met(&self, stream: &Topic) {
        self.inner.streams.lock().add(stream);
    }

    /// A sender knows of so many orders, by their low byte: if that is more than are known here,
    /// the control stream is read, at most once a second.
    pub(crate) fn hinted(&self, orders: u8) {
        let [own, ..] = self.keys().known().orders().to_le_bytes();
        let is_ahead = (1..128).contains(&orders.wrapping_sub(own));
        if !is_ahead || !self.inner.streams.lock().may_look() {
            return;
        }
        let (group, runtime) = (self.clone(), tokio::runtime::Handle::try_current());
        let Ok(runtime) = runtime else { return };
        runtime.spawn(async move {
            if let Err(error) = group.catch_up().await {
                tracing::warn!(code = error.code(), %error, "the orders cannot be read");
            }
        });
    }

    /// Seals an envelope for a stream, and gives the sealed envelope in MessagePack, for who
    /// enqueues it by other means: what [`GroupClient::publish_raw`] sends.
    ///
    /// # Errors
    /// [`Error::Policy`], [`Error::Group`], [`Error::NoEnvelope`], [`Error::TooLarge`].
    pub fn seal(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelope: &[u8],
    ) -> Result<Vec<u8>, Error> {
        self.seal_now(topic, data_type, codec, envelope).map(|sealed| sealed.bytes)
    }

    pub(crate) fn seal_now(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelope: &[u8],
    ) -> Result<SealedNow, Error> {
        self.keys().seal(&topic.parse()?, data_type, codec, envelope)
    }

    /// Opens messages that were read by [`Client::read`], or without this group.
    pub fn reader(&self) -> GroupReader {
        GroupReader { reading: SubscriptionOpener::new(self.clone(), false) }
    }

    /// All who share this folder have read what was sealed before `epoch`: a forward-secret group
    /// erases the secrets before it, so that a later thief reads nothing of it either.
    ///
    /// # Errors
    /// [`Error::Group`] where that could not be made durable.
    pub fn passed(&self, epoch: u64) -> Result<(), Error> {
        self.keys().passed(Epoch(epoch))
    }

    pub(crate) fn keys(&self) -> MutexGuard<'_, GroupKeyring> {
        self.inner.keys.lock()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Obeys one message of the control stream, and tells of what changed. What is refused changes
    /// nothing: whoever may write there may have written it.
    fn obey(&self, stream: &Topic, offset: u64, notice: Result<GroupNotice, Error>) {
        let outcome = notice.and_then(|notice| {
            let mut keys = self.keys();
            let was_removed = keys.known().is_removed();
            if was_removed {
                // It was told so once, and nothing that follows is for it.
                return Ok((Vec::new(), keys.newest()));
            }
            keys.obey(&notice).map(|changes| (changes, keys.newest()))
        });
        let (changes, epoch) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.tell(ClientEvent::refused(stream, offset, &error)),
        };
        let is_of_keys = |change: &GroupChange| {
            use GroupChange::{Certified, Heartbeat, Held, Leaving, Stays};
            let is_late = matches!(change, Held { .. } | Leaving(_) | Stays { .. });
            !is_late && !matches!(change, Certified(_) | Heartbeat(_))
        };
        if changes.iter().any(is_of_keys) {
            let removed = changes.contains(&GroupChange::Removed);
            self.tell(ClientEvent::Keys { group: self.inner.tag, epoch: epoch.0, removed });
        }
        if let Some(GroupChange::Held { missing }) = changes.last() {
            let known = self.keys().known().orders().max(*missing + 1);
            let behind = sealane_group::Error::Behind { missing: *missing, known };
            self.tell(ClientEvent::refused(stream, offset, &behind.into()));
        }
    }

    fn tell(&self, event: ClientEvent) {
        event.log();
        // Nobody may be listening.
        let _ = self.inner.events.send(event);
    }
}

/// The beginning of a dead letter's topic, before the stream that it comes from.
const DEAD: &str = "dead/";

fn mark(stream: &Topic, generation: u64, next: u64) -> RemovalMark {
    RemovalMark { stream: Binding::stream(stream.as_str()), generation, next }
}

/// Opens messages one by one. What a subscription refuses, it refuses.
#[derive(Debug)]
pub struct GroupReader {
    reading: SubscriptionOpener,
}

impl GroupReader {
    /// The message as it was before it was sealed. `message` stays as it is.
    ///
    /// # Errors
    /// Why it is not to be shown; `Repeated` if it was opened before.
    pub fn open(&mut self, message: &ReceivedMessage) -> Result<ReceivedMessage, Error> {
        let outcome = self.reading.open(message);
        outcome.map_err(|refusal| {
            self.reading.count(&refusal);
            Error::Group { info: refusal.info(), message: refusal.to_string() }
        })
    }

    /// The counts of sealed messages so far.
    pub fn counts(&self) -> SealCounts {
        self.reading.counts()
    }
}

/// The codec of the envelope around a frame, which carries bytes as they are. The codec of the
/// envelope within is the publisher's, and stands in the frame's header.
pub(crate) const SEALED_IN: Codec = Codec::MsgPack;

impl fmt::Debug for GroupClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("tag", &self.inner.tag).finish_non_exhaustive()
    }
}
