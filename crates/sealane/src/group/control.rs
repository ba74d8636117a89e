//! The stream of a group's orders: read from where it was left, and followed.
//!
//! Its messages are `{notice: bytes}`. It is an open stream, since a member that has missed too
//! much is told without the secrets that it missed; what the notices say is sealed in themselves.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sealane_codec::Codec;
use sealane_frame::GroupTag;
use sealane_group::Notice;
use sealane_message::Topic;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Group, Inner};
use crate::subscribe::Subscribe;
use crate::{Client, Error, Event, HubError, Message, Start, Subscription};

/// Notices of one request.
const PAGE: usize = 500;

/// The least time between two looks at the end of the control stream.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a client waits before it follows a control stream again that it lost for good.
const FOLLOW_AGAIN: Duration = Duration::from_secs(1);

/// The topic of a group's control stream.
pub(super) fn topic(tag: GroupTag) -> Topic {
    // Eight hexadecimal digits are a segment.
    format!("groups/{tag}").parse().unwrap_or_else(|_| unreachable!("a tag is a segment"))
}

/// How far a client has read.
pub(super) struct Control {
    topic: Topic,
    generation: Option<u64>,
    next: u64,
    looked: Option<Instant>,
}

impl Control {
    pub(super) fn new(tag: GroupTag) -> Result<Control, Error> {
        Ok(Control { topic: topic(tag), generation: None, next: 0, looked: None })
    }

    pub(super) async fn catch_up(&mut self, group: &Group) -> Result<(), Error> {
        if let Some(looked) = self.looked {
            sleep_until(looked + LOOK_EVERY).await;
        }
        let outcome = self.read(group).await;
        self.looked = Some(Instant::now());
        outcome
    }

    async fn read(&mut self, group: &Group) -> Result<(), Error> {
        loop {
            let start =
                if self.generation.is_some() { Start::Offset(self.next) } else { Start::First };
            let page = match group.client().read(self.topic.as_str(), start, PAGE).await {
                Ok(page) => page,
                // Nobody has ordered anything yet.
                Err(error) if error.hub_error() == Some(HubError::UnknownStream) => return Ok(()),
                Err(error) => return Err(error),
            };
            if self.generation.is_some_and(|known| known != page.generation) {
                // Something may have been lost behind this place; orders are obeyed once anyway.
                self.generation = None;
                continue;
            }
            self.generation = Some(page.generation);
            for message in &page.messages {
                group.obey(&message.stream, message.offset, notice(message));
            }
            self.next = page.next;
            if page.end {
                return Ok(());
            }
        }
    }

    fn subscribe(&self, group: &Group) -> Subscribe {
        let start = match self.generation {
            Some(generation) => Start::Resume { offset: self.next, generation },
            None => Start::First,
        };
        group.client().subscribe(self.topic.as_str()).codec(Codec::MsgPack).from(start)
    }
}

/// Obeys what comes, until the group is dropped.
pub(super) async fn follow(group: &Group) -> Result<JoinHandle<()>, Error> {
    let subscription = subscribe(group).await?;
    Ok(tokio::spawn(run(Arc::downgrade(&group.inner), subscription)))
}

async fn subscribe(group: &Group) -> Result<Subscription, Error> {
    let subscribe = group.inner.control.lock().await.subscribe(group);
    subscribe.await
}

/// A stream that was removed, or a hub that refuses, must not leave the keys behind for good.
async fn run(group: Weak<Inner>, mut subscription: Subscription) {
    let upgrade = || group.upgrade().map(|inner| Group { inner });
    loop {
        while let Some(next) = subscription.next().await {
            let Some(group) = upgrade() else { return };
            match next {
                Ok(message) => group.obey(&message.stream, message.offset, notice(&message)),
                Err(error) => group.tell(Event::Disconnected { cause: error.to_string() }),
            }
        }
        subscription = loop {
            sleep(FOLLOW_AGAIN).await;
            let Some(group) = upgrade() else { return };
            if group.catch_up().await.is_ok()
                && let Ok(next) = subscribe(&group).await
            {
                group.tell(Event::Connected);
                break next;
            }
        };
    }
}

/// Publishes those that the stream does not have, in their order.
pub(super) async fn publish_missing(
    client: &Client,
    tag: GroupTag,
    notices: &[Notice],
) -> Result<usize, Error> {
    let topic = topic(tag);
    let there = read_all(client, &topic).await?;
    let missing: Vec<Vec<u8>> = notices
        .iter()
        .map(|notice| notice.as_bytes().to_vec())
        .filter(|notice| !there.contains(notice))
        .map(|notice| envelope(&notice))
        .collect();
    if !missing.is_empty() {
        client.publish_batch(topic.as_str(), Codec::MsgPack, &missing).await?;
    }
    Ok(missing.len())
}

async fn read_all(client: &Client, topic: &Topic) -> Result<HashSet<Vec<u8>>, Error> {
    let mut there = HashSet::new();
    let mut start = Start::First;
    loop {
        let page = match client.read(topic.as_str(), start, PAGE).await {
            Ok(page) => page,
            Err(error) if error.hub_error() == Some(HubError::UnknownStream) => return Ok(there),
            Err(error) => return Err(error),
        };
        let read = page.messages.iter().filter_map(|message| bytes(message).ok());
        there.extend(read);
        if page.end {
            return Ok(there);
        }
        start = Start::Offset(page.next);
    }
}

fn envelope(notice: &[u8]) -> Vec<u8> {
    let mut envelope = Vec::with_capacity(notice.len() + 16);
    let mut writer = sealane_codec::Writer::new(Codec::MsgPack, &mut envelope);
    writer.map(1);
    writer.key("notice");
    writer.bytes(notice);
    writer.end();
    envelope
}

fn notice(message: &Message) -> Result<Notice, Error> {
    Ok(Notice::from_bytes(&bytes(message)?)?)
}

fn bytes(message: &Message) -> Result<Vec<u8>, Error> {
    let fields = sealane_codec::fields(message.codec, &message.envelope)?;
    let field = fields.iter().find(|(key, _)| key == "notice").ok_or(Error::NoEnvelope)?;
    Ok(sealane_codec::read_bytes(message.codec, field.1)?.into_owned())
}
