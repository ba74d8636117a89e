//! The operator's view of consumers, delayed messages and retention, and the actions on them.

use std::ops::Range;
use std::sync::Arc;

use sealane_message::{Pattern, Topic};
use sealane_protocol::limits::{MAX_ID_BYTES, MAX_RANGE_MESSAGES};
use sealane_protocol::{
    Cancelled, ConsumerInfo, ConsumerVerb, Consumers, DelayedPage, ListDelayed, Purged,
    RetentionRule, StreamRules,
};
use tokio::sync::oneshot;

use super::StreamHub;
use crate::consumer::ConsumerSteer;
use crate::limits::MAX_SHOWN_PENDING;
use crate::stream::{ConsumerEntry, StreamEntry};
use crate::subscription::{blocking, start_offset};
use crate::writer::{ManageCommand, ManageDeed, RuleCommand, RuleDeed, WriterCommand};
use crate::{Error, ReadStart, Retention};

impl StreamHub {
    /// The consumers of a stream, by name.
    ///
    /// # Errors
    /// [`Error::UnknownStream`] and failures of the store.
    pub async fn consumers(&self, topic: &Topic) -> Result<Consumers, Error> {
        let stream = self.find(topic)?;
        let mut entries: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let consumers = self.inform(&stream, &entries).await?;
        Ok(Consumers { stream: topic.clone(), consumers })
    }

    /// One consumer, with the first of its messages that are not done.
    ///
    /// # Errors
    /// [`Error::UnknownStream`], [`Error::UnknownConsumer`] and failures of the store.
    pub async fn consumer(&self, topic: &Topic, name: &str) -> Result<ConsumerInfo, Error> {
        let stream = self.find(topic)?;
        let unknown =
            || Error::UnknownConsumer { stream: topic.to_string(), consumer: name.to_owned() };
        let entry = stream.known_consumer(name).ok_or_else(unknown)?;
        let mut info = self.inform(&stream, std::slice::from_ref(&entry)).await?;
        let mut info = info.pop().ok_or_else(unknown)?;
        info.pending = Some(entry.state.lock().pending(MAX_SHOWN_PENDING));
        Ok(info)
    }

    /// Steers a consumer; resolves once that is stored and in effect.
    ///
    /// # Errors
    /// [`Error::UnknownStream`], [`Error::UnknownConsumer`], [`Error::BeyondEnd`],
    /// [`Error::InvalidParameter`] and failures of the store; the consumer is as it was then.
    pub async fn steer(&self, topic: &Topic, name: &str, verb: ConsumerVerb) -> Result<(), Error> {
        let steer = match verb {
            ConsumerVerb::Pause => ConsumerSteer::Pause { since_ms: self.registry.clock.day_ms() },
            ConsumerVerb::Resume => ConsumerSteer::Resume,
            // A time becomes an offset before the writer is asked, since the search reads the disk.
            ConsumerVerb::Reset(start) => ConsumerSteer::Reset(self.place(topic, start).await?),
            ConsumerVerb::Skip(offsets) => ConsumerSteer::Skip(offsets),
            ConsumerVerb::Redeliver => ConsumerSteer::Redeliver,
        };
        let consumer = name.to_owned();
        self.manage(topic, ManageDeed::Steer { consumer, steer }).await.map(drop)
    }

    /// Removes a consumer with all that it has not finished. Its members are told.
    ///
    /// # Errors
    /// [`Error::UnknownStream`], [`Error::UnknownConsumer`] and failures of the store; the consumer
    /// is as it was then.
    pub async fn remove_consumer(&self, topic: &Topic, name: &str) -> Result<(), Error> {
        self.manage(topic, ManageDeed::RemoveConsumer(name.to_owned())).await.map(drop)
    }

    /// Messages of a stream that are held back.
    ///
    /// # Errors
    /// [`Error::UnknownStream`] and failures of the store.
    pub async fn delayed(&self, topic: &Topic, list: ListDelayed) -> Result<DelayedPage, Error> {
        let stream = self.find(topic)?;
        let registry = self.registry.clone();
        let (after, limit) = (list.after.unwrap_or_default(), list.limit.min(MAX_RANGE_MESSAGES));
        let read = move || Ok(registry.reads.delayed(stream.number, after, limit)?);
        let (delayed, next) = blocking(read).await?;
        Ok(DelayedPage { stream: topic.clone(), delayed, next })
    }

    /// Cancels the messages of this id that are held back for a stream: they never come.
    ///
    /// # Errors
    /// [`Error::UnknownStream`], [`Error::NotDelayed`] and failures of the store; they come then.
    pub async fn cancel(&self, topic: &Topic, id: String) -> Result<Cancelled, Error> {
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return Err(Error::parameter("id", "is not 1 to 128 bytes"));
        }
        let cancelled = self.manage(topic, ManageDeed::Cancel { id: id.clone() }).await?;
        Ok(Cancelled { stream: topic.clone(), id, cancelled })
    }

    /// The rules of retention, and the bounds of streams that none of them matches.
    pub fn rules(&self) -> StreamRules {
        let rules = self.registry.rules();
        StreamRules { rules: rules.all().to_vec(), default: rules.default_bounds() }
    }

    /// Has a rule hold for the streams whose topics match, those that are there and those that
    /// come, in the place of one of the same pattern.
    ///
    /// # Errors
    /// [`Error::RuleTie`], [`Error::TooMany`], [`Error::ShareTaken`] and failures of the store; all
    /// is as it was then.
    pub async fn set_rule(
        &self,
        pattern: Pattern,
        retention: Retention,
        maker: &str,
    ) -> Result<RetentionRule, Error> {
        let (created_ms, maker) = (self.registry.clock.day_ms(), maker.to_owned());
        let rule = RetentionRule { pattern, retention, created_ms, maker };
        self.ask_of_rules(RuleDeed::Set(rule.clone())).await?;
        Ok(rule)
    }

    /// Removes the rule of a pattern. Its streams have the bounds of the next rule that matches.
    ///
    /// # Errors
    /// [`Error::UnknownRule`] and failures of the store; all is as it was then.
    pub async fn remove_rule(&self, pattern: Pattern) -> Result<(), Error> {
        self.ask_of_rules(RuleDeed::Remove(pattern)).await
    }

    async fn ask_of_rules(&self, deed: RuleDeed) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.registry.send(WriterCommand::Rule(RuleCommand { deed, reply }))?;
        answer.await.unwrap_or(Err(Error::Draining))
    }

    /// Removes the messages of a stream that stand before a place.
    ///
    /// # Errors
    /// [`Error::UnknownStream`], [`Error::BeyondEnd`] and failures of the store; the stream is as
    /// it was then.
    pub async fn purge(&self, topic: &Topic, before: ReadStart) -> Result<Purged, Error> {
        let before = self.place(topic, before).await?;
        // The writer decides how many went. Between place and commit retention may have taken some.
        let purged = self.manage(topic, ManageDeed::Purge { before }).await?;
        let stream = self.find(topic)?;
        let state = stream.state.lock();
        Ok(Purged { stream: topic.clone(), purged, first: state.first, next: state.next })
    }

    /// The offset of a place that must not be beyond the end.
    async fn place(&self, topic: &Topic, start: ReadStart) -> Result<u64, Error> {
        let stream = self.find(topic)?;
        if let ReadStart::Offset(offset) = start {
            let (first, next) = {
                let state = stream.state.lock();
                (state.first, state.next)
            };
            let is_there = offset <= next;
            return is_there.then_some(offset.max(first)).ok_or(Error::BeyondEnd { next });
        }
        start_offset(&self.registry, &stream, start).await
    }

    async fn manage(&self, topic: &Topic, deed: ManageDeed) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        self.registry.send(WriterCommand::Manage(ManageCommand {
            topic: topic.clone(),
            deed,
            reply,
        }))?;
        answer.await.unwrap_or(Err(Error::Draining))
    }

    /// The state of consumers of a stream, but for their connections and messages.
    async fn inform(
        &self,
        stream: &Arc<StreamEntry>,
        entries: &[Arc<ConsumerEntry>],
    ) -> Result<Vec<ConsumerInfo>, Error> {
        let (visible, now_ms) = (stream.state.lock().visible(), self.registry.clock.day_ms());
        let mut all: Vec<ConsumerInfo> =
            entries.iter().map(|entry| entry.inform(stream, visible.clone())).collect();
        // Two messages of each: the first that it was not given, and the oldest that is not done.
        let mut offsets = Vec::new();
        for (entry, info) in entries.iter().zip(&all) {
            let given = (info.lag > 0).then(|| info.state.next.max(visible.start));
            offsets.extend([given, entry.state.lock().oldest(&visible)]);
        }
        let asked = offsets.iter().flatten().copied().collect();
        let mut times = self.times_of(stream, asked).await?.into_iter();
        let mut ages = offsets.iter().map(|offset| {
            let time_ms = offset.and_then(|_| times.next()).filter(|time_ms| *time_ms > 0);
            time_ms.map_or(0, |time_ms| now_ms.saturating_sub(time_ms))
        });
        for info in &mut all {
            info.lag_ms = ages.next().unwrap_or_default();
            info.oldest_ms = ages.next().unwrap_or_default();
        }
        Ok(all)
    }

    /// When messages were stored; what is not among the recent ones is looked for on disk.
    async fn times_of(
        &self,
        stream: &Arc<StreamEntry>,
        offsets: Vec<u64>,
    ) -> Result<Vec<u64>, Error> {
        let recent: Vec<Option<u64>> = {
            let state = stream.state.lock();
            offsets.iter().map(|offset| state.time_of(*offset)).collect()
        };
        // Consumers that keep up are answered from memory. Only real backlogs cost a read.
        if recent.iter().all(Option::is_some) {
            return Ok(recent.into_iter().flatten().collect());
        }
        let (registry, number) = (self.registry.clone(), stream.number);
        blocking(move || Ok(registry.reads.times_of(number, &offsets)?)).await
    }
}

impl ConsumerEntry {
    fn inform(&self, stream: &StreamEntry, visible: Range<u64>) -> ConsumerInfo {
        let state = self.describe();
        let consumer = self.state.lock();
        // Messages that retention took are behind nobody.
        let lag = visible.end.saturating_sub(state.next.max(visible.start));
        ConsumerInfo {
            stream: stream.topic.clone(),
            lag,
            lag_ms: 0,
            unfinished: lag + state.in_flight,
            oldest_ms: 0,
            held: consumer.held() as u64,
            settings: consumer.settings,
            state,
            connections: None,
            pending: None,
        }
    }
}
