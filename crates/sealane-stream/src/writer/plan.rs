//! One commit in the making: what each command is told, and what will be stored.
//!
//! Nothing here writes, and nothing is seen by anybody else before the plan is stored. A plan gives
//! a [`StoreCommit`], which can be stored again when a first attempt has failed, and keeps what
//! takes effect once that stands.

mod each;
mod made;
mod publish;
mod remove;
mod replies;
mod streams;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use sealane_frame::GroupTag;
use sealane_message::{System, Topic};
use sealane_protocol::limits::MAX_OFFSET;

use super::command::{
    AppendCommand, AppendedMessages, CommandAnswer, CommandRefusal, CommandReply, ConfigureCommand,
    WriterCommand, check_seal,
};
use super::keys::{replay, write_ids};
use super::manage::ManagedChanges;
use super::progress::ProgressPlan;
use super::rule::RuleDeed;
use super::sessions::RecentSessions;
use super::staged::StagedStream;
use super::upkeep::UpkeepPlan;
use crate::Level;
use crate::block::BlockRecord;
use crate::commit::StoreCommit;
use crate::envelope::StreamEnvelope;
use crate::registry::StreamRegistry;
use crate::shares::{ShareChanges, ShareKind, stored_key_owner};
use crate::store::{
    KeyRow, STREAM_NUMBERS, StoreFault, StoreNext, StoreWrites, StoredRequestKey, StreamSettings,
};
use crate::stream::StreamEntry;
use replies::ReplyPlan;
use streams::StreamPlan;

/// The state that planning reads, and the counters that it uses.
pub(super) struct CommitPlanner<'a> {
    pub(super) registry: &'a StreamRegistry,
    pub(super) writes: &'a StoreWrites,
    pub(super) defaults: StreamSettings,
    pub(super) next: &'a mut StoreNext,
    pub(super) unsaved: &'a [StagedStream],
    /// The stored state of the sessions that published last.
    pub(super) sessions: &'a RecentSessions,
    /// Numbers of removed streams that have left something in the store.
    pub(super) sweeping: &'a BTreeSet<u32>,
}

/// A commit in the making.
#[derive(Default)]
pub(super) struct CommitPlan {
    pub(super) now_ms: u64,
    /// The time that keys and sessions are stored with.
    pub(super) stamp_ms: u64,
    /// Streams that come, change and go.
    pub(super) streams: StreamPlan,
    /// The gains of streams, by their numbers.
    pub(super) gains: BTreeMap<u32, StagedStream>,
    pub(super) delayed: Vec<DelayedMessages>,
    /// How many those are, by owner.
    held_back: ShareChanges,
    pub(super) damage: Vec<(Arc<StreamEntry>, (u64, u64))>,
    pub(super) progress: ProgressPlan,
    /// The operator's actions.
    pub(super) managed: ManagedChanges,
    /// The rule of retention that comes or goes; another one waits for the next commit.
    pub(super) rule: Option<RuleDeed>,
    /// The work done by the clock.
    pub(super) upkeep: UpkeepPlan,
    pub(super) room: RoomPlan,
    pub(super) replies: ReplyPlan,
    /// Whether consumers and what waits for time were looked at.
    pub(super) has_flushed: bool,
    /// Whether only what removes is stored.
    pub(super) is_stripped: bool,
}

/// Whether there is room for what a commit adds.
#[derive(Default)]
pub(super) struct RoomPlan {
    /// Why nothing can be added, where that is known beforehand.
    pub(super) unstorable: Option<StoreFault>,
    /// Whether there was room for what is added.
    pub(super) has_room: bool,
    /// Whether there is no room for what the hub itself gives: delayed messages, dead letters.
    pub(super) is_ungivable: bool,
}

/// Messages that are held back together.
pub(super) struct DelayedMessages {
    pub(super) stream: Arc<StreamEntry>,
    pub(super) due_ms: u64,
    /// The owner of the share that they count to.
    pub(super) owner: Arc<str>,
    pub(super) records: Vec<BlockRecord>,
    /// The idempotency key that they came with.
    pub(super) key: Option<(Vec<u8>, KeyRow)>,
}

/// Where the dead letters of a stream go.
pub(super) enum LetterGrave {
    Stream(Arc<StreamEntry>),
    /// There can be no such stream.
    None,
    /// The stream is just being removed.
    Later,
}

/// The request of an append.
struct AppendAsked {
    topic: Topic,
    envelopes: Vec<StreamEnvelope>,
    group: Option<GroupTag>,
    expect: Option<u64>,
    due_ms: Option<u64>,
    key: Option<StoredRequestKey>,
    /// The keys of the messages, if each has one.
    each: Vec<StoredRequestKey>,
    /// The owner of the shares that it counts to.
    owner: Arc<str>,
    /// Whether the answer names the messages by their numbers, and not by their ids.
    is_numbered: bool,
}

impl AppendAsked {
    fn split(append: AppendCommand) -> (CommandReply<AppendedMessages>, Self) {
        let AppendCommand { topic, envelopes, group, expect, due_ms, .. } = append;
        let AppendCommand { key, each, owner, reply, .. } = append;
        let is_numbered = false;
        let asked = Self { topic, envelopes, group, expect, due_ms, key, each, owner, is_numbered };
        (reply, asked)
    }
}

/// Which stream a topic stands for.
pub(super) enum StreamTarget {
    /// One that is there, or that this commit makes.
    Known(Arc<StreamEntry>),
    /// None yet.
    New,
    /// One that this commit removes: whoever asks comes after it.
    Leaving,
}

impl CommitPlan {
    pub(super) fn new(now_ms: u64, stamp_ms: u64) -> Self {
        Self { now_ms, stamp_ms, ..Self::default() }
    }

    /// Plans what a command asks for, or notes its refusal. Whoever asks has one answer coming,
    /// from this commit or a later one.
    pub(super) fn add(
        &mut self,
        planner: &mut CommitPlanner,
        command: WriterCommand,
    ) -> Result<(), StoreFault> {
        let asks = usize::from(command.asks());
        let is_single = !matches!(command, WriterCommand::Publish(_));
        let before = self.replies.count();
        let planned = self.plan(planner, command);
        let after = self.replies.count();
        let is_answered = planned.is_err() || !is_single || after == before + asks;
        debug_assert!(is_answered, "one answer, or deferred");
        planned
    }

    fn plan(
        &mut self,
        planner: &mut CommitPlanner,
        command: WriterCommand,
    ) -> Result<(), StoreFault> {
        // A command for a topic comes behind all earlier commands for it.
        if command.topic().is_some_and(|topic| self.replies.awaits(topic)) {
            self.replies.defer(command);
            return Ok(());
        }
        match command {
            WriterCommand::Append(append) => self.append(planner, append)?,
            WriterCommand::Publish(publish) => return self.publish(planner, publish),
            WriterCommand::Configure(configure) => self.configure(planner, configure),
            WriterCommand::Manage(manage) => self.manage(planner, manage)?,
            WriterCommand::FindSession(find) => self.tell_session(planner, find)?,
            WriterCommand::Remove(remove) => self.ask_to_remove(planner, remove)?,
            WriterCommand::Rule(rule) => self.set_rule(planner, rule),
            WriterCommand::Damage(stream, range) => self.damage.push((stream, range)),
            WriterCommand::Dirty | WriterCommand::Stop(_) => {}
        }
        Ok(())
    }

    /// Keys and sessions that it adds, of which each counts to a share.
    pub(super) fn added_rows(&self) -> u64 {
        let rows = self.gains.values().map(|staged| staged.keys.len() + staged.sessions.len());
        let held_back = self.delayed.iter().filter(|delayed| delayed.key.is_some());
        (rows.sum::<usize>() + held_back.count()) as u64
    }

    /// Whether it has to be on the disk before anybody is told.
    pub(super) fn is_synced(&self) -> bool {
        let is_disk = |stream: &Arc<StreamEntry>| stream.settings().level == Level::Disk;
        self.streams.is_synced()
            || self.upkeep.is_synced()
            || !self.progress.buried.is_empty()
            || !self.managed.is_empty()
            || self.rule.is_some()
            || self.gains.values().any(|staged| staged.level == Level::Disk)
            || self.delayed.iter().any(|delayed| is_disk(&delayed.stream))
            || self.progress.stored.iter().any(|consumer| is_disk(&consumer.stream))
    }

    /// Makes the gains of streams of level `memory` readable and answers for them. They are stored
    /// next. Messages that the hub itself gives are taken from elsewhere by this commit, so they
    /// wait for it. The stream that receives them waits as well.
    pub(super) fn publish_memory(&mut self, registry: &StreamRegistry) -> Vec<StagedStream> {
        let made: HashSet<u32> = self.streams.made().map(|stream| stream.number).collect();
        let is_early = |number: &u32, staged: &mut StagedStream| {
            staged.may_be_early() && !staged.blocks.is_empty() && !made.contains(number)
        };
        let early = self.gains.extract_if(.., is_early);
        let all: Vec<StagedStream> = early.map(|(_, staged)| staged).collect();
        if all.is_empty() {
            return all;
        }
        // Readable first, then answered: a client may read at once what it was told is there.
        for staged in &all {
            registry.publish(&staged.stream, staged.blocks.clone());
        }
        let numbers: HashSet<u32> = all.iter().map(|staged| staged.stream.number).collect();
        self.replies.send_early(&numbers);
        all
    }

    /// Takes out what adds to the store, as `commit` does, and tells those who asked for it why;
    /// what removes stays.
    pub(super) fn strip(
        &mut self,
        commit: &mut StoreCommit,
        registry: &StreamRegistry,
        fault: &StoreFault,
    ) {
        self.is_stripped = true;
        let given_up = commit.strip();
        self.replies.strip(&given_up, fault);
        self.streams.strip(&given_up);
        self.gains.clear();
        self.delayed.clear();
        self.managed.steered.clear();
        // A rule that comes adds to the store, and one that goes does not.
        self.rule.take_if(|deed| matches!(deed, RuleDeed::Set(_)));
        self.upkeep.strip(self.now_ms);
        self.progress.strip(registry);
    }

    pub(super) fn target(&self, planner: &CommitPlanner, topic: &Topic) -> StreamTarget {
        self.streams.target(planner.registry, topic)
    }

    /// The stream of dead letters of `stream`; none where there can be none.
    pub(super) fn grave(
        &mut self,
        planner: &mut CommitPlanner,
        stream: &StreamEntry,
    ) -> LetterGrave {
        let topic = format!("{}/{}", System::Dead.name(), stream.topic).parse::<Topic>();
        let Ok(topic) = topic else { return LetterGrave::None };
        if stream.topic.system() == Some(System::Dead) {
            return LetterGrave::None;
        }
        match self.target(planner, &topic) {
            StreamTarget::Known(grave) => LetterGrave::Stream(grave),
            StreamTarget::New => {
                // Its letters are of this stream's making, and so is their stream.
                let owner = stream.owner.clone();
                let made = self.streams.make(planner, &topic, None, self.now_ms, owner);
                made.map_or(LetterGrave::None, LetterGrave::Stream)
            }
            StreamTarget::Leaving => LetterGrave::Later,
        }
    }

    pub(super) fn staged(&mut self, stream: &Arc<StreamEntry>) -> &mut StagedStream {
        self.gains.entry(stream.number).or_insert_with(|| StagedStream::new(stream.clone()))
    }

    fn configure(&mut self, planner: &mut CommitPlanner, configure: ConfigureCommand) {
        let ConfigureCommand { topic, change, owner, reply } = configure;
        let sealed = change.sealed;
        let result = match self.target(planner, &topic) {
            StreamTarget::Leaving => {
                let again = ConfigureCommand { topic, change, owner, reply };
                self.replies.defer(WriterCommand::Configure(again));
                return;
            }
            StreamTarget::Known(stream) => {
                let is_meant = sealed.map_or(Ok(()), |_| check_seal(stream.sealed, sealed));
                is_meant.map(|()| (stream, false))
            }
            StreamTarget::New => {
                let made = self.streams.make(planner, &topic, sealed, self.now_ms, owner);
                made.map(|stream| (stream, true))
            }
        };
        if let Ok((stream, _)) = &result {
            self.streams.configure(stream, change);
        }
        self.replies.push(None, CommandAnswer::Configure(reply, result));
    }

    fn append(
        &mut self,
        planner: &mut CommitPlanner,
        append: AppendCommand,
    ) -> Result<(), StoreFault> {
        let target = self.target(planner, &append.topic);
        if matches!(target, StreamTarget::Leaving) {
            self.replies.defer(WriterCommand::Append(append));
            return Ok(());
        }
        let stream = match target {
            StreamTarget::Known(stream) => Some(stream),
            StreamTarget::New | StreamTarget::Leaving => None,
        };
        let (reply, mut asked) = AppendAsked::split(append);
        let seen = match self.seen(planner, stream.as_deref(), &mut asked) {
            Ok(seen) => seen,
            Err(fault) => {
                // The fault ends the commit, whose answers are told by it. This command has none
                // among those.
                CommandAnswer::Append(reply, Err(CommandRefusal::Unstorable(fault.clone()))).send();
                return Err(fault);
            }
        };
        let result = self.accept(planner, stream, asked, seen);
        // A delayed message is told of once it is stored, whatever the level is.
        let number = match &result {
            Ok((appended, number)) => appended.due_ms.is_none().then_some(*number),
            Err(_) => None,
        };
        let answer = CommandAnswer::Append(reply, result.map(|(appended, _)| appended));
        self.replies.push(number, answer);
        Ok(())
    }

    /// The answer that the key got when it came before.
    fn find_key(
        &self,
        planner: &CommitPlanner,
        stream: &StreamEntry,
        key: &[u8],
    ) -> Result<Option<KeyRow>, StoreFault> {
        let is_meant = |staged: &&StagedStream| staged.stream.number == stream.number;
        let staged = self.gains.get(&stream.number).into_iter();
        let mut staged = staged.chain(planner.unsaved.iter().filter(is_meant));
        if let Some(row) = staged.find_map(|staged| staged.keys.get(key)) {
            return Ok(Some(row.clone()));
        }
        let delayed = self.delayed.iter().filter(|delayed| delayed.stream.number == stream.number);
        let mut keys = delayed.filter_map(|delayed| delayed.key.as_ref());
        if let Some((_, row)) = keys.find(|(other, _)| other == key) {
            return Ok(Some(row.clone()));
        }
        // A new stream has a number of its own, under which the store has nothing.
        if self.streams.makes(&stream.topic) {
            return Ok(None);
        }
        planner.writes.find_key(stream.number, key)
    }

    /// Accepts or refuses messages for `stream`, which is made where there is none; also returns
    /// the stream's number.
    fn accept(
        &mut self,
        planner: &mut CommitPlanner,
        stream: Option<Arc<StreamEntry>>,
        asked: AppendAsked,
        seen: Option<KeyRow>,
    ) -> Result<(AppendedMessages, u32), CommandRefusal> {
        if let Some(stream) = &stream {
            check_seal(stream.sealed, asked.group)?;
            match (seen, &asked.key) {
                (Some(row), Some(key)) => {
                    let appended = replay(stream, row, &key.body)?;
                    return Ok((appended, stream.number));
                }
                (Some(row), None) if asked.envelopes.is_empty() => {
                    return Ok((Self::all_seen(stream, &row), stream.number));
                }
                _ => {}
            }
        }
        // Refusals come before the stream is made: a refused message leaves no stream behind.
        let next = stream.as_ref().map_or(0, |stream| self.next_offset(stream));
        if asked.expect.is_some_and(|expect| expect != next) {
            return Err(CommandRefusal::OffsetMismatch { next });
        }
        if next + asked.envelopes.len() as u64 > MAX_OFFSET {
            return Err(CommandRefusal::TooMany { what: "offsets", limit: MAX_OFFSET });
        }
        if let Some(fault) = self.is_unstorable(planner, stream.as_deref()) {
            return Err(CommandRefusal::Unstorable(fault));
        }
        if asked.due_ms.is_some() {
            self.check_delayed(planner, &asked)?;
        }
        let stream = match stream {
            Some(stream) => stream,
            None => {
                let owner = asked.owner.clone();
                self.streams.make(planner, &asked.topic, asked.group, self.now_ms, owner)?
            }
        };
        if asked.due_ms.is_some() {
            // Only now nothing speaks against it. What was refused takes nobody's share.
            let count = asked.envelopes.len() as u64;
            self.held_back.add(&asked.owner, ShareKind::Delayed, count);
        }
        let appended = self.take(&stream, asked);
        Ok((appended, stream.number))
    }

    /// Refuses to hold messages back for an owner that has its share of them.
    fn check_delayed(
        &self,
        planner: &CommitPlanner,
        asked: &AppendAsked,
    ) -> Result<(), CommandRefusal> {
        let (kind, count) = (ShareKind::Delayed, asked.envelopes.len() as i64);
        // Messages of this same commit count: a burst would pass the share otherwise.
        let more = self.held_back.of(&asked.owner, kind) + count;
        let all = self.held_back.of_all(kind) + count;
        let checked = planner.registry.shares.of(&asked.owner).check(kind, more, all);
        checked.map_err(|error| CommandRefusal::Share(Box::new(error)))
    }

    /// Why nothing can be added to the stream now. What a `memory` stream was answered for before
    /// is stored first.
    fn is_unstorable(
        &self,
        planner: &CommitPlanner,
        stream: Option<&StreamEntry>,
    ) -> Option<StoreFault> {
        let is_memory = stream.is_some_and(|stream| stream.settings().level == Level::Memory);
        // Otherwise messages would pile up in memory for as long as the store is broken.
        let waits = is_memory && !planner.unsaved.is_empty();
        // Where the store has come back, this very commit stores it.
        let fault = if waits { planner.registry.fault.lock().clone() } else { None };
        self.room.unstorable.clone().or(fault)
    }

    fn next_offset(&self, stream: &StreamEntry) -> u64 {
        let staged = self.gains.get(&stream.number);
        staged.map_or_else(|| stream.state.lock().next, |staged| staged.next)
    }

    /// Takes messages that nothing speaks against.
    fn take(&mut self, stream: &Arc<StreamEntry>, asked: AppendAsked) -> AppendedMessages {
        let now_ms = self.now_ms;
        let owner = asked.owner.clone();
        let level = stream.settings().level;
        let named = if asked.is_numbered { &[] } else { &*asked.envelopes };
        let ids: Vec<Bytes> = named.iter().map(|envelope| envelope.id.clone()).collect();
        let key = asked.key.map(|key| {
            let owner = stored_key_owner(&owner, key.share_kind());
            (key.key, key.body.to_vec(), write_ids(&ids), owner)
        });
        if let Some(due_ms) = asked.due_ms {
            let record = |envelope| BlockRecord::new(0, now_ms, envelope);
            let records = asked.envelopes.into_iter().map(record).collect();
            let key = key.map(|(key, body, ids, owner)| {
                (key, KeyRow { body, generation: 0, offset: 0, due_ms, ids, owner })
            });
            let messages = DelayedMessages { stream: stream.clone(), due_ms, owner, records, key };
            self.delayed.push(messages);
            let stream = stream.topic.clone();
            let due_ms = Some(due_ms);
            let (offset, generation) = (0, 0);
            return AppendedMessages {
                stream,
                ids,
                offset,
                generation,
                due_ms,
                level,
                replayed: false,
            };
        }
        let staged = self.staged(stream);
        let offset = staged.push(asked.envelopes, now_ms);
        let generation = staged.generation;
        if let Some((key, body, ids, owner)) = key {
            let row = KeyRow { body, generation, offset, due_ms: 0, ids, owner };
            staged.keys.insert(key, row);
        }
        let due_ms = None;
        let stream = stream.topic.clone();
        let appended =
            AppendedMessages { stream, ids, offset, generation, due_ms, level, replayed: false };
        staged.keys.extend(each::rows(asked.each, &appended, &owner));
        appended
    }
}

impl CommitPlanner<'_> {
    /// A number that no stream has and that nothing in the store belongs to.
    fn number(&mut self, made: &BTreeMap<Topic, Arc<StreamEntry>>) -> u32 {
        loop {
            let number = self.next.stream;
            self.next.stream = match number + 1 {
                STREAM_NUMBERS => 1,
                next => next,
            };
            // Nobody has one of the next numbers before all others were given out.
            let is_free = self.registry.by_number(number).is_none()
                && !self.sweeping.contains(&number)
                && made.values().all(|stream| stream.number != number);
            if is_free {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests;
