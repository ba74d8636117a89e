//! Groups: what is published is sealed, and what is read is opened, by keys that the hub has not.

mod beater;
mod control;
mod keys;
mod marking;
mod passage;
mod reading;
mod seen;
mod sent;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use sealane_codec::Codec;
use sealane_frame::GroupTag;
use sealane_group::{GroupChange, GroupMembership, GroupNotice, RemovalMark};
use sealane_message::{DataType, Topic, Value};
use sealane_seal::policy::{Conditions, Decision, Policy};
use sealane_seal::{Binding, Class, Epoch};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::event::ClientEvents;
use crate::limits::{MAX_EVENTS, MAX_SENT_HELD};
use crate::publish::{PublishBatch, PublishBuilder};
use crate::publisher::Publisher;
use crate::request::{RequestExchange, now_ms};
use crate::subscribe::SubscribeBuilder;
use crate::{Client, ClientEvent, Error, ReceivedMessage, SealCounts};
pub use beater::GroupBeater;
use control::ControlStreamReader;
pub use control::{ControlPage, ControlPlace, ControlReader};
use keys::{GroupKeyring, RolledBack, SealedNow};
pub(crate) use passage::ConsumerPassage;
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
        PublishBuilder::value(&self.inner.client, topic, envelope)
            .sealed(Some((self.clone(), data_type)))
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
            .sealed(Some((self.clone(), data_type)))
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
        let seal = |one: &E| self.seal_now(topic, data_type, codec, one.as_ref(), None);
        let sealed: Result<Vec<SealedNow>, Error> = envelopes.iter().map(seal).collect();
        match sealed {
            Ok(sealed) => {
                let bytes: Vec<&[u8]> = sealed.iter().map(|one| one.bytes.as_slice()).collect();
                let publish = PublishBatch::new(&self.inner.client, topic, SEALED_IN, &bytes, None);
                let first = sealed.first().map(|one| (one.epoch, one.made_ms));
                let (epoch, made_ms) = first.unwrap_or((Epoch(0), 0));
                let of = |one: &E| Bytes::copy_from_slice(one.as_ref());
                let envelopes = envelopes.iter().take(MAX_SENT_HELD).map(of).collect();
                let sent = SentEnvelopes { epoch, made_ms, data_type, codec, envelopes };
                publish.sealed(self, sent)
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

    /// As [`Client::request`], sealed: the request and its answer, with `id` and `replyTo` in them.
    /// No answer is taken that the group has not sealed.
    ///
    /// # Errors
    /// As [`Client::request`] and [`GroupClient::publish`].
    pub async fn request(
        &self,
        topic: &str,
        data_type: DataType,
        body: &Value,
        deadline: Duration,
    ) -> Result<ReceivedMessage, Error> {
        self.exchange(data_type).request(topic, body, deadline).await
    }

    /// As [`Client::reply`], sealed.
    ///
    /// # Errors
    /// As [`Client::reply`] and [`GroupClient::publish`].
    pub async fn reply(
        &self,
        request: &ReceivedMessage,
        data_type: DataType,
        body: &Value,
    ) -> Result<bool, Error> {
        self.exchange(data_type).reply(request, body).await
    }

    fn exchange(&self, data_type: DataType) -> RequestExchange<'_> {
        RequestExchange { client: &self.inner.client, seal: Some((self.clone(), data_type)) }
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

    /// Reads the control stream, and whether this authority may give orders then: nobody has given
    /// others with its key. An authority asks before it signs, since what was signed cannot be
    /// taken back.
    ///
    /// # Errors
    /// [`Error::Group`] if this is not the authority, or its folder was copied or restored; as
    /// [`GroupClient::catch_up`].
    pub async fn check_giving(&self) -> Result<(), Error> {
        self.catch_up().await?;
        Ok(self.keys().provisioned()?.check_giving()?)
    }

    /// Whether the control stream, where it was read last, has shown at least the orders that this
    /// folder has obeyed or given, and as many as it had shown before. A stream that shows fewer
    /// tells an authority nothing of what it has forgotten.
    ///
    /// # Errors
    /// [`Error::Group`] of code `SL-GROUP-31` if it has shown fewer.
    pub async fn check_shown(&self) -> Result<(), Error> {
        let shown = self.inner.control.lock().await.shown();
        let keys = self.keys();
        let seen = keys.known().orders();
        let too_few = (shown < seen).then_some(RolledBack { shown, seen });
        match keys.rolled_back.or(too_few) {
            None => Ok(()),
            Some(RolledBack { shown, seen }) => {
                Err(sealane_group::Error::RolledBack { shown, seen }.into())
            }
        }
    }

    /// Publishes what this authority has ordered and the control stream does not have; gives how
    /// many there were. Behind a removal it marks how far the group's streams had come. Doing it
    /// again does nothing. A token needs `read` and `orders` on [`GroupClient::control_topic`].
    ///
    /// # Errors
    /// As [`GroupClient::check_giving`] and [`Client::publish`].
    pub async fn publish_orders(&self) -> Result<usize, Error> {
        self.check_giving().await?;
        let from = self.inner.control.lock().await.shown();
        let mut count = self.send_orders(from).await?;
        if self.keys().provisioned()?.owes_marks() {
            let marks = marking::marks(self).await?;
            let lost = self.keys().provisioned()?.marks_lost_by(&marks);
            if lost > 0 {
                tracing::error!(lost, "marks of earlier removals leave for want of room");
            }
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
        self.check_giving().await?;
        self.send_orders(from).await
    }

    async fn send_orders(&self, from: u64) -> Result<usize, Error> {
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
    /// have obeyed all orders, also by the signed word of another member. The control stream may
    /// have lost orders. The folder may be copied or restored. No heartbeat may have come for
    /// longer than the group's charter allows.
    pub fn warnings(&self) -> Vec<Error> {
        let keys = self.keys();
        let behind = keys.check_orders().err().or_else(|| keys.behind_by_word());
        let stale = keys.known().check_heartbeat(now_ms()).err().map(Error::from);
        let copied = keys.known().is_copied().then_some(Error::CopiedKeys);
        behind.into_iter().chain(stale).chain(copied).collect()
    }

    /// Seals again what fell behind a removal, and remembers where streams stood when one was
    /// learned of that nobody has marked.
    async fn settle(&self) {
        for late in self.superseded() {
            self.tell(ClientEvent::Superseded { stream: late.stream.clone(), offset: late.offset });
            let publish =
                self.publish_raw(late.stream.as_str(), late.data_type, late.codec, late.envelope);
            // Its time stays that at which it was made.
            if let Err(error) = publish.made(late.made_ms).await {
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
        let first_epoch = |stream: &Topic, generation, offset| {
            keys.known().first_epoch(&Binding::stream(stream.as_str()), generation, offset)
        };
        sent.take_late(first_epoch, |data_type, epoch| keys.shows_own_of(data_type, epoch))
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
    /// the control stream is read, at most once a second. If the sender has signed that, and the
    /// hub does not show those orders, people are told: somebody may be holding orders back. It
    /// stops nothing, since a member gone bad can sign any number.
    pub(crate) fn hinted(&self, orders: u8, class: Class) {
        let is_news = {
            let mut keys = self.keys();
            let own = keys.known().orders();
            let [low, ..] = own.to_le_bytes();
            let ahead = orders.wrapping_sub(low);
            if !(1..128).contains(&ahead) {
                return;
            }
            let said = own.saturating_add(u64::from(ahead));
            let is_news = class == Class::Signed && said > keys.signed_orders;
            if is_news {
                keys.signed_orders = said;
            }
            is_news
        };
        if !self.inner.streams.lock().may_look() && !is_news {
            return;
        }
        let (group, runtime) = (self.clone(), tokio::runtime::Handle::try_current());
        let Ok(runtime) = runtime else { return };
        runtime.spawn(async move {
            match group.catch_up().await {
                Ok(()) if is_news => group.tell_of_what_is_held_back(),
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(code = error.code(), %error, "the orders cannot be read");
                }
            }
        });
    }

    /// Tells people that a member has signed to have obeyed more orders than the hub shows.
    fn tell_of_what_is_held_back(&self) {
        let behind = self.keys().behind_by_word();
        if let Some(behind) = behind {
            let next = self.keys().known().orders();
            self.tell(ClientEvent::refused(&self.inner.topic, next, &behind));
        }
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
        self.seal_now(topic, data_type, codec, envelope, None).map(|sealed| sealed.bytes)
    }

    pub(crate) fn seal_now(
        &self,
        topic: &str,
        data_type: DataType,
        codec: Codec,
        envelope: &[u8],
        made_ms: Option<u64>,
    ) -> Result<SealedNow, Error> {
        self.keys().seal(&topic.parse()?, data_type, codec, envelope, made_ms)
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
