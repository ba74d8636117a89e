//! One commit in the making: what each command is told, and what will be stored.
//!
//! Nothing here writes, and nothing is seen by anybody else before the plan is stored. A plan can
//! therefore be stored again when a first attempt has failed.

mod each;
mod made;
mod publish;
mod remove;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::limits::MAX_DELAYED;
use bytes::Bytes;
use sealane_frame::GroupTag;
use sealane_message::{System, Topic};
use sealane_protocol::limits::MAX_OFFSET;

use super::command::{Answer, Append, Appended, Command, Configure, Refusal, Reply, check_seal};
use super::keys::{replay, write_ids};
use super::letters::Buried;
use super::manage::Managed;
use super::progress::ConsumerPlan;
use super::sessions::Sessions;
use super::staged::Staged;
use super::upkeep::RELEASE_AGAIN_MS;
use crate::Level;
use crate::block::Record;
use crate::envelope::Envelope;
use crate::publishing;
use crate::registry::Registry;
use crate::rooms::{Room, Rooms};
use crate::store::{
    Fault, Key, KeyRow, Next, STREAM_NUMBERS, Settings, StreamRow, Trimmed, Writes,
};
use crate::stream::{ConsumerEntry, Stream};
use made::Made;

/// What planning looks at and counts by.
pub(super) struct Planner<'a> {
    pub(super) registry: &'a Registry,
    pub(super) writes: &'a Writes,
    pub(super) defaults: Settings,
    pub(super) next: &'a mut Next,
    pub(super) unsaved: &'a [Staged],
    /// What the store holds of the sessions that published last.
    pub(super) sessions: &'a Sessions,
    /// Delayed messages that are stored.
    pub(super) delayed: u64,
    /// Numbers of removed streams that have left something in the store.
    pub(super) sweeping: &'a BTreeSet<u32>,
}

pub(super) struct Plan {
    pub(super) now_ms: u64,
    /// What streams gain, by their numbers.
    pub(super) gains: BTreeMap<u32, Staged>,
    /// Streams that are made.
    pub(super) made: BTreeMap<Topic, Arc<Stream>>,
    /// How many they are.
    rooms_made: Rooms,
    /// Settings that change, by the stream's number.
    pub(super) settings: BTreeMap<u32, (Arc<Stream>, Settings)>,
    /// Streams that go. Who asks for their topics comes after that, in the next commit.
    pub(super) removing: BTreeMap<Topic, Arc<Stream>>,
    /// How many they are.
    rooms_left: Rooms,
    pub(super) delayed: Vec<Delayed>,
    /// Delayed messages that are delayed no more, by the numbers of their rows.
    pub(super) released: Vec<i64>,
    pub(super) damage: Vec<(Arc<Stream>, (u64, u64))>,
    pub(super) buried: Vec<Buried>,
    pub(super) consumers: Vec<ConsumerPlan>,
    /// What those who run the hub do.
    pub(super) managed: Managed,
    /// Consumers that changed and go with their streams, if the commit stands.
    pub(super) set_aside: Vec<(Arc<Stream>, Arc<ConsumerEntry>)>,
    /// What retention takes off streams, as the last attempt has found it.
    pub(super) trimmed: Vec<(Arc<Stream>, Trimmed)>,
    /// Whether consumers and what waits for time were looked at.
    pub(super) has_flushed: bool,
    /// Why nothing can be added, where that is known beforehand.
    pub(super) unstorable: Option<Fault>,
    /// Whether there was room for what is added.
    pub(super) has_room: bool,
    /// Whether there is no room for what the hub itself gives: delayed messages, dead letters.
    pub(super) ungivable: bool,
    /// When the next delayed message is due, behind those that are released.
    pub(super) next_due_ms: Option<u64>,
    /// Whether retention looks at the streams.
    pub(super) retains: bool,
    /// The removed stream of which some of what it left goes.
    pub(super) sweeps: Option<u32>,
    /// Idempotency keys that the last attempt has stored.
    pub(super) keys_stored: u64,
    /// Sessions that the last attempt has stored and that had no row.
    pub(super) sessions_stored: u64,
    /// The rows of `progress` below this one went with the last attempt; 0: none.
    pub(super) progress_dropped: u64,
    /// Whether only what removes is stored.
    pub(super) is_stripped: bool,
    pub(super) answers: Vec<(Option<u32>, Answer)>,
    pub(super) deferred: Vec<Command>,
    /// The topics of deferred commands.
    waiting: HashSet<Topic>,
}

/// Messages that are held back together.
pub(super) struct Delayed {
    pub(super) stream: Arc<Stream>,
    pub(super) due_ms: u64,
    pub(super) records: Vec<Record>,
    /// The idempotency key that they came with.
    pub(super) key: Option<(Vec<u8>, KeyRow)>,
}

impl Delayed {
    fn bytes(&self) -> u64 {
        self.records.iter().map(|record| record.body.len() as u64 + 64).sum()
    }
}

/// Where the dead letters of a stream go.
pub(super) enum Grave {
    Stream(Arc<Stream>),
    /// There can be no such stream.
    None,
    /// The stream is just being removed.
    Later,
}

/// What an append asks for.
struct Asked {
    topic: Topic,
    envelopes: Vec<Envelope>,
    group: Option<GroupTag>,
    expect: Option<u64>,
    due_ms: Option<u64>,
    key: Option<Key>,
    /// The keys of the messages, if each has one.
    each: Vec<Key>,
    /// Whether the answer names the messages by their numbers, and not by their ids.
    is_numbered: bool,
}

impl Asked {
    fn split(append: Append) -> (Reply<Appended>, Self) {
        let Append { topic, envelopes, group, expect, due_ms, key, each, reply, .. } = append;
        (reply, Self { topic, envelopes, group, expect, due_ms, key, each, is_numbered: false })
    }
}

/// Which stream a topic stands for.
pub(super) enum Target {
    /// One that is there, or that this commit makes.
    Known(Arc<Stream>),
    /// None yet.
    New,
    /// One that this commit removes: whoever asks comes after it.
    Leaving,
}

impl Plan {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            now_ms,
            gains: BTreeMap::new(),
            made: BTreeMap::new(),
            rooms_made: Rooms::default(),
            settings: BTreeMap::new(),
            removing: BTreeMap::new(),
            rooms_left: Rooms::default(),
            delayed: Vec::new(),
            released: Vec::new(),
            damage: Vec::new(),
            buried: Vec::new(),
            consumers: Vec::new(),
            managed: Managed::default(),
            set_aside: Vec::new(),
            trimmed: Vec::new(),
            has_flushed: false,
            unstorable: None,
            has_room: false,
            ungivable: false,
            next_due_ms: None,
            retains: false,
            sweeps: None,
            keys_stored: 0,
            sessions_stored: 0,
            progress_dropped: 0,
            is_stripped: false,
            answers: Vec::new(),
            deferred: Vec::new(),
            waiting: HashSet::new(),
        }
    }

    /// Plans what a command asks for, or notes its refusal. Whoever asks has one answer coming,
    /// from this commit or a later one.
    pub(super) fn add(&mut self, planner: &mut Planner, command: Command) -> Result<(), Fault> {
        let asks = usize::from(command.topic().is_some());
        let is_single = !matches!(command, Command::Publish(_));
        let before = self.answers.len() + self.deferred.len();
        let planned = self.plan(planner, command);
        let after = self.answers.len() + self.deferred.len();
        let is_answered = planned.is_err() || !is_single || after == before + asks;
        debug_assert!(is_answered, "one answer, or deferred");
        planned
    }

    fn plan(&mut self, planner: &mut Planner, command: Command) -> Result<(), Fault> {
        // Whoever asks for a topic comes behind all who asked for it before.
        if command.topic().is_some_and(|topic| self.waiting.contains(topic)) {
            self.deferred.push(command);
            return Ok(());
        }
        match command {
            Command::Append(append) => self.append(planner, append)?,
            Command::Publish(publish) => return self.publish(planner, publish),
            Command::Configure(configure) => self.configure(planner, configure),
            Command::Manage(manage) => self.manage(planner, manage)?,
            Command::Remove(remove) => self.ask_to_remove(planner, remove)?,
            Command::Damage(stream, range) => self.damage.push((stream, range)),
            Command::Dirty | Command::Stop(_) => {}
        }
        Ok(())
    }

    /// Leaves a command to the next commit, and with it all that follow for its topic.
    pub(super) fn defer(&mut self, command: Command) {
        self.waiting.extend(command.topic().cloned());
        self.deferred.push(command);
    }

    /// Whether it has to be on the disk before anybody is told.
    pub(super) fn is_synced(&self) -> bool {
        let is_disk = |stream: &Arc<Stream>| stream.state.lock().level == Level::Disk;
        !self.removing.is_empty()
            || !self.settings.is_empty()
            || !self.released.is_empty()
            || !self.buried.is_empty()
            || !self.managed.is_empty()
            || self.gains.values().any(|staged| staged.level == Level::Disk)
            || self.delayed.iter().any(|delayed| is_disk(&delayed.stream))
            || self.consumers.iter().any(|consumer| is_disk(&consumer.stream))
    }

    /// About how many bytes it adds to the log.
    pub(super) fn bytes(&self) -> u64 {
        let gains: u64 = self.gains.values().map(Staged::bytes).sum();
        let delayed: u64 = self.delayed.iter().map(Delayed::bytes).sum();
        let consumers: u64 = self.consumers.iter().map(ConsumerPlan::bytes).sum();
        let managed = self.managed.bytes();
        let streams = (self.made.len() + self.gains.len()) as u64;
        gains + delayed + consumers + managed + streams * (16 << 10)
    }

    /// No new stream has a generation below: a removed one of its topic may have had it.
    pub(super) fn generation_floor(&self) -> u64 {
        let generations = self.removing.values().map(|s| s.state.lock().generation() + 1);
        generations.max().unwrap_or_default()
    }

    /// Makes what streams of level `memory` gain readable and answers for it; it is stored next.
    /// What the hub itself gives is taken from elsewhere by this commit, so that it waits for it,
    /// and so does the stream that it is given to.
    pub(super) fn publish_memory(&mut self, registry: &Registry) -> Vec<Staged> {
        let is_early = |staged: &Staged| {
            staged.level == Level::Memory && !staged.waits && staged.has_records()
        };
        let made: HashSet<u32> = self.made.values().map(|stream| stream.number).collect();
        let early = self.gains.extract_if(.., |number, s| is_early(s) && !made.contains(number));
        let mut all: Vec<Staged> = early.map(|(_, staged)| staged).collect();
        if all.is_empty() {
            return all;
        }
        let numbers: HashSet<u32> = all.iter().map(|staged| staged.stream.number).collect();
        for staged in &mut all {
            staged.seal_blocks();
            registry.publish(&staged.stream, staged.blocks.clone());
        }
        let is_published = |(number, _): &mut (Option<u32>, Answer)| {
            number.is_some_and(|number| numbers.contains(&number))
        };
        let answered = self.answers.extract_if(.., is_published);
        let told: Vec<_> = answered.filter_map(|(_, answer)| answer.send()).collect();
        told.iter().for_each(|outbox| outbox.wake());
        all
    }

    /// Takes out what adds to the store and tells those who asked for it why; what removes stays.
    pub(super) fn strip(&mut self, registry: &Registry, fault: &Fault) {
        self.is_stripped = true;
        let made = self.made.values().map(|stream| stream.number);
        let mut added: HashSet<u32> = made.collect();
        // What a stream was answered for at its old level is not stored by this commit.
        let levels = self.settings.values().filter(|(s, new)| s.settings().level != new.level);
        added.extend(levels.map(|(stream, _)| stream.number));
        let stays = |(_, answer): &(Option<u32>, Answer)| match answer {
            // What has kept a stream may be taken out here.
            Answer::Remove(_, result) => *result != Ok(false),
            Answer::Configure(_, Ok((stream, _))) => !added.contains(&stream.number),
            Answer::Manage { removes, .. } => *removes,
            Answer::Configure(_, Err(_)) | Answer::Append(..) | Answer::Publish(..) => false,
        };
        let (kept, failed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.answers).into_iter().partition(stays);
        failed.into_iter().for_each(|(_, answer)| answer.fail(fault));
        self.answers = kept;
        self.settings.retain(|number, _| !added.contains(number));
        self.gains.clear();
        self.made.clear();
        self.delayed.clear();
        self.buried.clear();
        self.managed.steered.clear();
        if !std::mem::take(&mut self.released).is_empty() {
            self.next_due_ms = Some(self.now_ms + RELEASE_AGAIN_MS);
        }
        for consumer in self.consumers.drain(..) {
            consumer.is_unstored(registry);
        }
    }

    /// Tells everybody, once the commit has ended.
    pub(super) fn answer(&mut self, fault: Option<&Fault>) {
        let Some(fault) = fault else {
            let answers = self.answers.drain(..);
            return publishing::send(
                &answers.filter_map(|(_, answer)| answer.send()).collect::<Vec<_>>(),
            );
        };
        self.answers.drain(..).for_each(|(_, answer)| answer.fail(fault));
    }

    pub(super) fn target(&self, planner: &Planner, topic: &Topic) -> Target {
        if self.removing.contains_key(topic) {
            return Target::Leaving;
        }
        let known = self.made.get(topic).cloned().or_else(|| planner.registry.find(topic));
        known.map_or(Target::New, Target::Known)
    }

    /// Makes a stream, which is there for others once the commit stands.
    fn make(
        &mut self,
        planner: &mut Planner,
        topic: &Topic,
        sealed: Option<GroupTag>,
    ) -> Result<Arc<Stream>, Refusal> {
        if let Some(asked) = sealed.filter(|_| topic.system() == Some(System::Dead)) {
            return Err(Refusal::SealMismatch { stream: None, asked });
        }
        let count = planner.registry.rooms().taken(topic) + self.rooms_made.taken(topic);
        let Room { what, limit } = Room::of(topic);
        if count.saturating_sub(self.rooms_left.taken(topic)) >= limit {
            return Err(Refusal::TooMany { what, limit: limit as u64 });
        }
        let number = planner.number(&self.made);
        let made = Made { topic, sealed, now_ms: self.now_ms };
        let generation = planner.next.generation;
        let row = StreamRow::new(number, generation, planner.defaults, made);
        let stream = Arc::new(Stream::new(row));
        self.made.insert(topic.clone(), stream.clone());
        self.rooms_made.add(topic);
        Ok(stream)
    }

    /// The stream of dead letters of `stream`; none where there can be none.
    pub(super) fn grave(&mut self, planner: &mut Planner, stream: &Stream) -> Grave {
        let topic = format!("{}/{}", System::Dead.name(), stream.topic).parse::<Topic>();
        let Ok(topic) = topic else { return Grave::None };
        if stream.topic.system() == Some(System::Dead) {
            return Grave::None;
        }
        match self.target(planner, &topic) {
            Target::Known(grave) => Grave::Stream(grave),
            Target::New => self.make(planner, &topic, None).map_or(Grave::None, Grave::Stream),
            Target::Leaving => Grave::Later,
        }
    }

    pub(super) fn staged(&mut self, stream: &Arc<Stream>) -> &mut Staged {
        self.gains.entry(stream.number).or_insert_with(|| Staged::new(stream.clone()))
    }

    fn configure(&mut self, planner: &mut Planner, configure: Configure) {
        let Configure { topic, change, reply } = configure;
        let sealed = change.sealed;
        let result = match self.target(planner, &topic) {
            Target::Leaving => {
                let again = Configure { topic, change, reply };
                self.defer(Command::Configure(again));
                return;
            }
            Target::Known(stream) => {
                let is_meant = sealed.map_or(Ok(()), |_| check_seal(stream.sealed, sealed));
                is_meant.map(|()| (stream, false))
            }
            Target::New => self.make(planner, &topic, sealed).map(|stream| (stream, true)),
        };
        if let Ok((stream, _)) = &result {
            let before = self.settings.get(&stream.number).map(|(_, settings)| *settings);
            let mut settings = before.unwrap_or_else(|| stream.settings());
            settings.change(change);
            self.settings.insert(stream.number, (stream.clone(), settings));
        }
        self.answers.push((None, Answer::Configure(reply, result)));
    }

    fn append(&mut self, planner: &mut Planner, append: Append) -> Result<(), Fault> {
        let target = self.target(planner, &append.topic);
        if matches!(target, Target::Leaving) {
            self.defer(Command::Append(append));
            return Ok(());
        }
        let stream = match target {
            Target::Known(stream) => Some(stream),
            Target::New | Target::Leaving => None,
        };
        let (reply, mut asked) = Asked::split(append);
        let seen = match self.seen(planner, stream.as_deref(), &mut asked) {
            Ok(seen) => seen,
            Err(fault) => {
                Answer::Append(reply, Err(Refusal::Unstorable(fault.clone()))).send();
                return Err(fault);
            }
        };
        let result = self.accept(planner, stream, asked, seen);
        // A delayed message is told of once it is stored, whatever the level is.
        let number = match &result {
            Ok((appended, number)) => appended.due_ms.is_none().then_some(*number),
            Err(_) => None,
        };
        let answer = Answer::Append(reply, result.map(|(appended, _)| appended));
        self.answers.push((number, answer));
        Ok(())
    }

    /// What was answered when the key came before.
    fn find_key(
        &self,
        planner: &Planner,
        stream: &Stream,
        key: &[u8],
    ) -> Result<Option<KeyRow>, Fault> {
        let is_meant = |staged: &&Staged| staged.stream.number == stream.number;
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
        if self.made.contains_key(&stream.topic) {
            return Ok(None);
        }
        planner.writes.find_key(stream.number, key)
    }

    /// Accepts or refuses messages for `stream`, which is made where there is none; also returns
    /// the stream's number.
    fn accept(
        &mut self,
        planner: &mut Planner,
        stream: Option<Arc<Stream>>,
        asked: Asked,
        seen: Option<KeyRow>,
    ) -> Result<(Appended, u32), Refusal> {
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
        let next = stream.as_ref().map_or(0, |stream| self.next_offset(stream));
        if asked.expect.is_some_and(|expect| expect != next) {
            return Err(Refusal::OffsetMismatch { next });
        }
        if next + asked.envelopes.len() as u64 > MAX_OFFSET {
            return Err(Refusal::TooMany { what: "offsets", limit: MAX_OFFSET });
        }
        if let Some(fault) = self.is_unstorable(planner, stream.as_deref()) {
            return Err(Refusal::Unstorable(fault));
        }
        let planned: usize = self.delayed.iter().map(|delayed| delayed.records.len()).sum();
        let delayed = planner.delayed + (planned + asked.envelopes.len()) as u64;
        if asked.due_ms.is_some() && delayed > MAX_DELAYED as u64 {
            let limit = MAX_DELAYED as u64;
            return Err(Refusal::TooMany { what: "delayed messages", limit });
        }
        let stream = match stream {
            Some(stream) => stream,
            None => self.make(planner, &asked.topic, asked.group)?,
        };
        let appended = self.take(&stream, asked);
        Ok((appended, stream.number))
    }

    /// Why nothing can be added to the stream now. What a `memory` stream was answered for before
    /// is stored first.
    fn is_unstorable(&self, planner: &Planner, stream: Option<&Stream>) -> Option<Fault> {
        let is_memory = stream.is_some_and(|stream| stream.state.lock().level == Level::Memory);
        let waits = is_memory && !planner.unsaved.is_empty();
        // Where the store has come back, this very commit stores it.
        let fault = if waits { planner.registry.fault.lock().clone() } else { None };
        self.unstorable.clone().or(fault)
    }

    fn next_offset(&self, stream: &Stream) -> u64 {
        let staged = self.gains.get(&stream.number);
        staged.map_or_else(|| stream.state.lock().next, |staged| staged.next)
    }

    /// Takes messages that nothing speaks against.
    fn take(&mut self, stream: &Arc<Stream>, asked: Asked) -> Appended {
        let now_ms = self.now_ms;
        let level = stream.state.lock().level;
        let named = asked.envelopes.iter().filter(|_| !asked.is_numbered);
        let ids: Vec<Bytes> = named.map(|envelope| envelope.id.clone()).collect();
        let key = asked.key.map(|key| (key.key, key.body.to_vec(), write_ids(&ids)));
        if let Some(due_ms) = asked.due_ms {
            let record = |envelope| Record::new(0, now_ms, envelope);
            let records = asked.envelopes.into_iter().map(record).collect();
            let key = key.map(|(key, body, ids)| {
                (key, KeyRow { body, generation: 0, offset: 0, due_ms, ids })
            });
            self.delayed.push(Delayed { stream: stream.clone(), due_ms, records, key });
            let stream = stream.topic.clone();
            let due_ms = Some(due_ms);
            let (offset, generation) = (0, 0);
            return Appended { stream, ids, offset, generation, due_ms, level, replayed: false };
        }
        let staged = self.staged(stream);
        let offset = staged.push(asked.envelopes, now_ms);
        let generation = staged.generation;
        if let Some((key, body, ids)) = key {
            let row = KeyRow { body, generation, offset, due_ms: 0, ids };
            staged.keys.insert(key, row);
        }
        let due_ms = None;
        let stream = stream.topic.clone();
        let appended = Appended { stream, ids, offset, generation, due_ms, level, replayed: false };
        staged.keys.extend(each::rows(asked.each, &appended));
        appended
    }
}

impl Planner<'_> {
    /// A number that no stream has and that nothing in the store belongs to.
    fn number(&mut self, made: &BTreeMap<Topic, Arc<Stream>>) -> u32 {
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
