//! One commit in the making: what it will store, and what it will answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use sealane_codec::{Codec, Writer};
use sealane_message::limits::{MAX_DELAYED, MAX_OFFSET};
use tokio::sync::oneshot;

use super::{Append, Appended, Command};
use crate::block::{Block, Record};
use crate::consumer::Handed;
use crate::envelope::{Content, Envelope};
use crate::protocol::write_sealed;
use crate::registry::Registry;
use crate::store::{KeyRow, Writes};
use crate::stream::{Found, Shared, Stream};
use crate::{Error, Level};

/// Records of one block, at most; a block is what one reader takes into memory at once.
const BLOCK_RECORDS: usize = 1024;
/// Bytes of one block's bodies, unless a single message is larger.
const BLOCK_BYTES: usize = 256 << 10;

type Reply = oneshot::Sender<Result<Appended, Error>>;

pub(super) struct Stage {
    pub(super) now_ms: u64,
    streams: BTreeMap<u32, Staged>,
    answers: Vec<(Reply, Result<Appended, Error>, Level)>,
    done: Vec<oneshot::Sender<Result<(), Error>>>,
    removed: Vec<Arc<Stream>>,
    saved: Vec<Arc<Stream>>,
    pub(super) dirty: Vec<(Arc<Stream>, Arc<Shared>)>,
    buried: Vec<(Arc<Stream>, Arc<Shared>, Vec<u64>)>,
    pub(super) delayed: u64,
    delayed_before: u64,
    pub(super) earliest_due_ms: Option<u64>,
    pub(super) keys: u64,
    /// Whether `memory` streams gain nothing, because what they gained before is not stored yet.
    pub(super) refuse_memory: bool,
    /// A failure of the store while staging; the whole commit is given up.
    pub(super) failed: Option<Error>,
}

/// What one stream gains.
pub(super) struct Staged {
    pub(super) stream: Arc<Stream>,
    generation: u64,
    next: u64,
    last_ms: u64,
    records: Vec<Record>,
    blocks: Vec<Arc<Block>>,
}

impl Stage {
    pub(super) fn new(now_ms: u64, delayed: u64, dirty: Vec<(Arc<Stream>, Arc<Shared>)>) -> Self {
        Self {
            now_ms,
            streams: BTreeMap::new(),
            answers: Vec::new(),
            done: Vec::new(),
            removed: Vec::new(),
            saved: Vec::new(),
            dirty,
            buried: Vec::new(),
            delayed: 0,
            delayed_before: delayed,
            earliest_due_ms: None,
            keys: 0,
            refuse_memory: false,
            failed: None,
        }
    }

    /// Whether a consumer that changed belongs to a stream whose level is `disk`.
    pub(super) fn has_synced_consumer(&self) -> bool {
        self.dirty.iter().any(|(stream, _)| stream.state.lock().level == Level::Disk)
    }

    /// Stages a command, or notes its refusal. Where the transaction could not begin, every
    /// command is noted to be answered with that error.
    pub(super) fn add(&mut self, writes: &mut Writes, command: Command, begun: &Result<(), Error>) {
        match command {
            Command::Append(append) => self.append(writes, append, begun),
            Command::Save(stream, reply) => {
                let result = writes.stream(&stream);
                self.note(&result);
                self.saved.push(stream);
                self.done.push(reply);
            }
            Command::Remove(stream, reply) => {
                let floor = stream.state.lock().generation() + 1;
                let result = writes.remove(stream.number, floor);
                self.note(&result);
                self.streams.remove(&stream.number);
                self.removed.push(stream);
                self.done.push(reply);
            }
            Command::Damage(stream, range) => {
                let result = writes.damage(stream.number, range, self.now_ms);
                self.note(&result);
            }
            Command::Dirty | Command::Stop(_) => {}
        }
    }

    fn append(&mut self, writes: &mut Writes, append: Append, begun: &Result<(), Error>) {
        let level = append.stream.state.lock().level;
        let Append { stream, envelopes, expect, due_ms, key, reply, .. } = append;
        let mut result = begun.clone();
        let refused = level == Level::Memory && self.refuse_memory;
        if refused {
            result = result.and(Err(Error::StorageFull));
        }
        if result.is_ok() {
            result = self.make_stream(writes, &stream);
            self.note(&result);
        }
        let result = result.and_then(|()| {
            let found = match &key {
                Some(key) => writes.find_key(stream.number, &key.key)?,
                None => None,
            };
            if let (Some(row), Some(key)) = (found, &key) {
                return replay(&stream, row, &key.body, level);
            }
            let ids: Vec<Bytes> = envelopes.iter().map(|envelope| envelope.id.clone()).collect();
            let (generation, offset) = match due_ms {
                Some(due_ms) => self.delay(writes, &stream, envelopes, due_ms)?,
                None => self.push(&stream, envelopes, expect)?,
            };
            if let Some(key) = &key {
                let answer = (generation, offset, due_ms.unwrap_or(0));
                writes.keep_key(stream.number, key, answer, &write_ids(&ids), self.now_ms)?;
                self.keys += 1;
            }
            let stream = stream.topic.clone();
            Ok(Appended { stream, ids, offset, generation, due_ms, level, replayed: false })
        });
        if let Err(error @ (Error::StorageFull | Error::StorageFailed(_))) = &result
            && !refused
        {
            self.failed.get_or_insert(error.clone());
        }
        self.answers.push((reply, result, level));
    }

    fn note(&mut self, result: &Result<(), Error>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error.clone());
        }
    }

    /// Stores the stream's row, where this is the first that it gains.
    pub(super) fn make_stream(
        &mut self,
        writes: &mut Writes,
        stream: &Arc<Stream>,
    ) -> Result<(), Error> {
        if stream.removed.load(Ordering::Relaxed) {
            return Err(Error::StreamRemoved);
        }
        let is_saved = |saved: &Arc<Stream>| saved.number == stream.number;
        if !stream.stored.load(Ordering::Relaxed) && !self.saved.iter().any(is_saved) {
            writes.stream(stream)?;
            self.saved.push(stream.clone());
        }
        Ok(())
    }

    fn staged(&mut self, stream: &Arc<Stream>) -> &mut Staged {
        self.streams.entry(stream.number).or_insert_with(|| Staged::new(stream.clone()))
    }

    /// Gives the messages their offsets.
    pub(super) fn push(
        &mut self,
        stream: &Arc<Stream>,
        envelopes: Vec<Envelope>,
        expect: Option<u64>,
    ) -> Result<(u64, u64), Error> {
        let now_ms = self.now_ms;
        let staged = self.staged(stream);
        let offset = staged.next;
        if expect.is_some_and(|expect| expect != offset) {
            return Err(Error::OffsetMismatch { next: offset });
        }
        if offset + envelopes.len() as u64 > MAX_OFFSET {
            return Err(Error::TooMany { what: "offsets", limit: MAX_OFFSET });
        }
        // Times never decrease along a stream, whatever the system's clock does.
        staged.last_ms = staged.last_ms.max(now_ms);
        for Envelope { content, id, body } in envelopes {
            let (offset, time_ms) = (staged.next, staged.last_ms);
            staged.records.push(Record { offset, time_ms, content, id, body });
            staged.next += 1;
        }
        Ok((staged.generation, offset))
    }

    fn delay(
        &mut self,
        writes: &mut Writes,
        stream: &Arc<Stream>,
        envelopes: Vec<Envelope>,
        due_ms: u64,
    ) -> Result<(u64, u64), Error> {
        let count = self.delayed_before + self.delayed + envelopes.len() as u64;
        if count > MAX_DELAYED as u64 {
            return Err(Error::TooMany { what: "delayed messages", limit: MAX_DELAYED as u64 });
        }
        for Envelope { content, id, body } in envelopes {
            let record = Record { offset: 0, time_ms: self.now_ms, content, id, body };
            writes.delay(stream.number, due_ms, &record)?;
            self.delayed += 1;
        }
        self.earliest_due_ms = Some(self.earliest_due_ms.map_or(due_ms, |old| old.min(due_ms)));
        Ok((0, 0))
    }

    /// Stages a dead letter for each message that is out of attempts.
    pub(super) fn bury(&mut self, writes: &mut Writes, registry: &Registry) -> Result<(), Error> {
        for index in 0..self.dirty.len() {
            let Some((stream, shared)) = self.dirty.get(index).cloned() else { break };
            let dead = shared.state.lock().dead();
            if dead.is_empty() {
                continue;
            }
            let grave = registry.dead_letters(&stream)?;
            self.make_stream(writes, &grave)?;
            for handed in &dead {
                if let Some(letter) = dead_letter(registry, &stream, &shared.name, *handed)? {
                    self.push(&grave, vec![letter], None)?;
                }
            }
            let offsets = dead.iter().map(|handed| handed.offset).collect();
            self.buried.push((stream, shared, offsets));
        }
        Ok(())
    }

    /// Makes what `memory` streams gained readable, and answers for it; it is stored next.
    pub(super) fn answer_memory(&mut self) -> Vec<Staged> {
        let in_memory = |staged: &Staged| staged.stream.state.lock().level == Level::Memory;
        let numbers: Vec<u32> =
            self.streams.iter().filter(|(_, s)| in_memory(s)).map(|(number, _)| *number).collect();
        let mut all = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some(mut staged) = self.streams.remove(&number) else { continue };
            staged.seal_blocks();
            staged.stream.publish(staged.blocks.iter().cloned());
            all.push(staged);
        }
        if !all.is_empty() {
            for (reply, result, level) in std::mem::take(&mut self.answers) {
                if level == Level::Memory {
                    let _ = reply.send(result);
                } else {
                    self.answers.push((reply, result, level));
                }
            }
        }
        all
    }

    /// Writes blocks and consumers; returns the bytes written.
    pub(super) fn store(&mut self, writes: &mut Writes) -> Result<u64, Error> {
        let mut bytes = 0;
        for staged in self.streams.values_mut() {
            staged.seal_blocks();
            bytes += staged.store(writes)?;
        }
        for (stream, shared) in &self.dirty {
            if stream.removed.load(Ordering::Relaxed) {
                continue;
            }
            shared.dirty.store(false, Ordering::SeqCst);
            let buried = self.buried.iter().find(|(_, other, _)| Arc::ptr_eq(other, shared));
            let buried = buried.map_or(&[][..], |(_, _, offsets)| offsets);
            let (settings, state) = {
                let consumer = shared.state.lock();
                (consumer.settings, consumer.snapshot(buried))
            };
            let dead = shared.dead_lettered.load(Ordering::Relaxed) + buried.len() as u64;
            writes.consumer(stream.number, &shared.name, &settings, dead, &state)?;
            bytes += state.len() as u64;
        }
        Ok(bytes)
    }

    /// The commit stands: makes everything readable, then answers.
    pub(super) fn settle(self, registry: &Registry) {
        for stream in &self.saved {
            stream.stored.store(true, Ordering::Relaxed);
        }
        for stream in &self.removed {
            stream.stored.store(false, Ordering::Relaxed);
        }
        for staged in self.streams.into_values() {
            staged.note_stored(registry);
            staged.stream.publish(staged.blocks);
        }
        for (_, shared, offsets) in self.buried {
            let mut consumer = shared.state.lock();
            offsets.iter().for_each(|offset| consumer.bury(*offset));
            shared.dead_lettered.fetch_add(offsets.len() as u64, Ordering::Relaxed);
        }
        for (reply, result, _) in self.answers {
            let _ = reply.send(result);
        }
        for reply in self.done {
            let _ = reply.send(Ok(()));
        }
    }

    /// The commit was given up: everybody is told, and what can be tried again is kept.
    pub(super) fn fail(self, registry: &Registry, error: &Error) {
        for (stream, shared) in self.dirty {
            shared.dirty.store(false, Ordering::SeqCst);
            registry.mark_dirty(&stream, &shared);
        }
        for (reply, result, _) in self.answers {
            let _ = reply.send(result.and(Err(error.clone())));
        }
        for reply in self.done {
            let _ = reply.send(Err(error.clone()));
        }
    }
}

impl Staged {
    fn new(stream: Arc<Stream>) -> Self {
        let state = stream.state.lock();
        let (generation, next, last_ms) = (state.generation(), state.next, state.last_ms);
        drop(state);
        Self { stream, generation, next, last_ms, records: Vec::new(), blocks: Vec::new() }
    }

    fn seal_blocks(&mut self) {
        let mut records = Vec::new();
        let mut bytes = 0;
        for record in std::mem::take(&mut self.records) {
            let full = records.len() >= BLOCK_RECORDS || bytes + record.body.len() > BLOCK_BYTES;
            if full && !records.is_empty() {
                self.seal_block(std::mem::take(&mut records));
                bytes = 0;
            }
            bytes += record.body.len();
            records.push(record);
        }
        self.seal_block(records);
    }

    fn seal_block(&mut self, records: Vec<Record>) {
        if let Some(first) = records.first().map(|record| record.offset) {
            let topic = self.stream.topic.clone();
            self.blocks.push(Arc::new(Block::new(topic, self.generation, first, records)));
        }
    }

    pub(super) fn store(&self, writes: &mut Writes) -> Result<u64, Error> {
        if self.stream.removed.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let mut bytes = 0;
        for block in &self.blocks {
            bytes += writes.block(self.stream.number, self.generation, &block.records)?;
        }
        Ok(bytes)
    }

    /// The commit that holds the blocks stands.
    pub(super) fn note_stored(&self, registry: &Registry) {
        let messages = self.blocks.iter().map(|block| block.records.len() as u64).sum();
        registry.metrics.stored.fetch_add(messages, Ordering::Relaxed);
        if self.stream.sealed.is_some() {
            registry.metrics.stored_sealed.fetch_add(messages, Ordering::Relaxed);
        }
        if let Some(last) = self.blocks.last() {
            let bytes = self.blocks.iter().map(|block| block.stored_bytes()).sum();
            self.stream.note_stored(last.last, bytes);
        }
    }
}

/// Answers a repeated key as it was answered first.
fn replay(stream: &Stream, row: KeyRow, body: &[u8], level: Level) -> Result<Appended, Error> {
    if row.body != body {
        return Err(Error::KeyReused);
    }
    Ok(Appended {
        stream: stream.topic.clone(),
        ids: read_ids(&row.ids.into()),
        offset: row.offset,
        generation: row.generation,
        due_ms: (row.due_ms > 0).then_some(row.due_ms),
        level,
        replayed: true,
    })
}

fn write_ids(ids: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ids.iter().map(|id| id.len() + 1).sum());
    for id in ids {
        out.push(id.len() as u8);
        out.extend_from_slice(id);
    }
    out
}

fn read_ids(blob: &Bytes) -> Vec<Bytes> {
    let (mut ids, mut at) = (Vec::new(), 0);
    while let Some(size) = blob.get(at)
        && let end = at + 1 + usize::from(*size)
        && end <= blob.len()
    {
        ids.push(blob.slice(at + 1..end));
        at = end;
    }
    ids
}

/// The dead letter of a message; none where the message itself is gone.
fn dead_letter(
    registry: &Registry,
    stream: &Arc<Stream>,
    consumer: &str,
    handed: Handed,
) -> Result<Option<Envelope>, Error> {
    let block = match stream.find(handed.offset) {
        Found::Block(block) => block,
        Found::Behind => match registry.reads.block(&stream.topic, stream.number, handed.offset)? {
            Some(block) => Arc::new(block),
            None => return Ok(None),
        },
        Found::AtEnd | Found::Trimmed(_) | Found::Damaged(_) => return Ok(None),
    };
    let at = block.index_of(handed.offset);
    let Some(record) = block.records.get(at).filter(|record| record.offset == handed.offset) else {
        return Ok(None);
    };
    Ok(Some(write_letter(&block, record, consumer, handed.attempt)))
}

/// A dead letter is open, whatever its message is: what it says beside it the hub knows anyway. A
/// frame stands in it as bytes, and whoever has the group's keys opens it there.
fn write_letter(block: &Block, record: &Record, consumer: &str, attempts: u32) -> Envelope {
    let mut sealed = Vec::new();
    let (codec, envelope) = match record.content {
        Content::Open(codec) => (codec, record.body.as_ref()),
        Content::Sealed => {
            let codec = Codec::MsgPack;
            write_sealed(codec, Some(record.id_text()), &record.body, &mut sealed);
            (codec, sealed.as_slice())
        }
    };
    let mut body = Vec::with_capacity(envelope.len() + 160);
    let mut writer = Writer::new(codec, &mut body);
    writer.map(8);
    let texts = [
        ("id", record.id_text()),
        ("type", "dead-letter"),
        ("stream", block.topic.as_str()),
        ("consumer", consumer),
    ];
    for (key, text) in texts {
        writer.key(key);
        writer.text(text);
    }
    let numbers = [
        ("offset", record.offset),
        ("generation", block.generation),
        ("attempts", u64::from(attempts)),
    ];
    for (key, number) in numbers {
        writer.key(key);
        writer.u64(number);
    }
    writer.key("envelope");
    writer.raw(envelope);
    writer.end();
    Envelope { content: Content::Open(codec), id: record.id.clone(), body: body.into() }
}
