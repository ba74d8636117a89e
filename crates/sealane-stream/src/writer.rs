//! The one thread that writes: it commits what waits in its queue together, so that one fsync
//! serves many, and makes a message readable only after its level is reached.

mod stage;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sealane_message::Topic;
use sealane_message::limits::MAX_COMMIT_MESSAGES;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::envelope::Envelope;
use crate::registry::Registry;
use crate::store::{Key, PAGE_BYTES, Writes};
use crate::stream::Stream;
use crate::{Error, Level, now_ms};
use stage::Stage;
use upkeep::Upkeep;

/// What the writer is asked to do.
pub(crate) enum Command {
    Append(Append),
    /// Store a stream's settings.
    Save(Arc<Stream>, oneshot::Sender<Result<(), Error>>),
    Remove(Arc<Stream>, oneshot::Sender<Result<(), Error>>),
    /// Note that offsets cannot be read.
    Damage(Arc<Stream>, (u64, u64)),
    /// Consumers have changed.
    Dirty,
    Stop(oneshot::Sender<Result<(), Error>>),
}

/// Messages for one stream, all or none.
pub(crate) struct Append {
    pub(crate) stream: Arc<Stream>,
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) expect: Option<u64>,
    pub(crate) due_ms: Option<u64>,
    pub(crate) key: Option<Key>,
    pub(crate) reply: oneshot::Sender<Result<Appended, Error>>,
    /// The append's share of the queue, given back when it is done.
    pub(crate) _share: OwnedSemaphorePermit,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The stream.
    pub stream: Topic,
    /// The messages' ids, in order.
    pub ids: Vec<Bytes>,
    /// The offset of the first; 0 where it is delayed.
    pub offset: u64,
    /// The generation; 0 where it is delayed.
    pub generation: u64,
    /// When a delayed message enters the stream.
    pub due_ms: Option<u64>,
    /// The level that was reached.
    pub level: Level,
    /// Whether this answers a repeated idempotency key; nothing was appended.
    pub replayed: bool,
}

/// How long acknowledgements wait to be stored together.
const FLUSH_EVERY: Duration = Duration::from_millis(25);

/// How long the writer sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_millis(250);

/// The write-ahead log is copied into the database when it has grown by so much.
const CHECKPOINT_BYTES: u64 = 48 << 20;

/// Where that could not be done whole, it is tried again after so much more.
const CHECKPOINT_AGAIN_BYTES: u64 = 4 << 20;

pub(crate) struct Writer {
    registry: Arc<Registry>,
    queue: Receiver<Command>,
    writes: Writes,
    upkeep: Upkeep,
    /// Blocks of `memory` streams that are readable and not stored yet.
    unsaved: Vec<stage::Staged>,
    /// About how long the log is.
    written_bytes: u64,
    /// Why commits fail, as long as they do.
    failing: Option<Error>,
    /// How long it may become before it is copied.
    checkpoint_at_bytes: u64,
}

impl Writer {
    pub(crate) fn new(
        registry: Arc<Registry>,
        queue: Receiver<Command>,
        writes: Writes,
    ) -> Result<Self, Error> {
        let upkeep = Upkeep::new(&writes)?;
        Ok(Self {
            registry,
            queue,
            writes,
            upkeep,
            unsaved: Vec::new(),
            written_bytes: 0,
            failing: None,
            checkpoint_at_bytes: CHECKPOINT_BYTES,
        })
    }

    /// Works until it is told to stop, or nobody is left to tell it.
    pub(crate) fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            match self.queue.recv_timeout(self.patience()) {
                Ok(command) => batch.push(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.gather(&mut batch);
            let stop = batch.iter().position(|command| matches!(command, Command::Stop(_)));
            let stop = stop.map(|index| batch.swap_remove(index));
            self.commit(&mut batch);
            if let Some(Command::Stop(reply)) = stop {
                let _ = reply.send(self.stop());
                return;
            }
        }
        if let Err(error) = self.stop() {
            tracing::error!(%error, "the store did not close cleanly");
        }
    }

    /// Takes what waits in the queue, up to one commit's worth.
    fn gather(&mut self, batch: &mut Vec<Command>) {
        let size = |command: &Command| match command {
            Command::Append(append) => append.envelopes.len(),
            _ => 1,
        };
        let mut messages: usize = batch.iter().map(size).sum();
        while messages < MAX_COMMIT_MESSAGES {
            match self.queue.try_recv() {
                Ok(command) => {
                    messages += size(&command);
                    batch.push(command);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
    }

    /// How long nothing has to be done if nobody asks.
    fn patience(&self) -> Duration {
        let now = Instant::now();
        let mut patience = IDLE;
        if self.registry.has_dirty() || !self.unsaved.is_empty() {
            patience = self.upkeep.flushed.map_or(Duration::ZERO, |flushed| {
                (flushed + FLUSH_EVERY).saturating_duration_since(now)
            });
        }
        if let Some(due_ms) = self.upkeep.next_due_ms {
            patience = patience.min(Duration::from_millis(due_ms.saturating_sub(now_ms())));
        }
        patience
    }

    fn commit(&mut self, batch: &mut Vec<Command>) {
        let flush = self.upkeep.flushed.is_none_or(|flushed| flushed.elapsed() >= FLUSH_EVERY);
        let dirty = if flush { self.registry.take_dirty() } else { Vec::new() };
        let mut stage = Stage::new(now_ms(), self.upkeep.delayed, dirty);
        stage.refuse_memory = !self.unsaved.is_empty();
        let due = self.upkeep.is_due(stage.now_ms);
        let tidy = self.upkeep.wants_retention(&self.registry);
        if batch.iter().all(|command| matches!(command, Command::Dirty))
            && stage.dirty.is_empty()
            && !due
            && !tidy
            && self.unsaved.is_empty()
        {
            batch.clear();
            return;
        }
        let result = self.transact(batch, &mut stage, (due, tidy));
        match result {
            Ok(()) => self.settle(stage),
            Err(error) => self.fail(stage, &error, due),
        }
    }

    fn transact(
        &mut self,
        batch: &mut Vec<Command>,
        stage: &mut Stage,
        (due, tidy): (bool, bool),
    ) -> Result<(), Error> {
        let synced = |command: &Command| match command {
            Command::Append(append) => append.stream.state.lock().level == Level::Disk,
            Command::Dirty => false,
            _ => true,
        };
        // Every command is staged, whatever goes wrong, so that each gets its answer.
        let sync = due || stage.has_synced_consumer() || batch.iter().any(synced);
        let begun = self.writes.set_sync(sync).and_then(|()| self.writes.begin());
        for command in batch.drain(..) {
            stage.add(&mut self.writes, command, &begun);
        }
        begun?;
        if let Some(error) = stage.failed.take() {
            return Err(error);
        }
        if due {
            self.upkeep.release(&mut self.writes, stage, &self.registry)?;
        }
        stage.bury(&mut self.writes, &self.registry)?;
        self.unsaved.append(&mut stage.answer_memory());
        for staged in &self.unsaved {
            stage.make_stream(&mut self.writes, &staged.stream)?;
            self.written_bytes += staged.store(&mut self.writes)?;
        }
        self.written_bytes += stage.store(&mut self.writes)?;
        if tidy {
            self.upkeep.retain(&mut self.writes, &self.registry, stage.now_ms)?;
        }
        self.writes.commit()
    }

    fn settle(&mut self, stage: Stage) {
        if self.failing.take().is_some() {
            tracing::info!("commits succeed again");
        }
        self.upkeep.settle();
        for staged in self.unsaved.drain(..) {
            staged.note_stored(&self.registry);
        }
        self.upkeep.delayed += stage.delayed;
        if let Some(due_ms) = stage.earliest_due_ms {
            let next = self.upkeep.next_due_ms.map_or(due_ms, |next| next.min(due_ms));
            self.upkeep.next_due_ms = Some(next);
        }
        self.upkeep.keys += stage.keys;
        if !stage.dirty.is_empty() {
            self.upkeep.flushed = Some(Instant::now());
        }
        self.registry.metrics.commits.fetch_add(1, Ordering::Relaxed);
        stage.settle(&self.registry);
        self.written_bytes += PAGE_BYTES as u64;
        if self.written_bytes >= self.checkpoint_at_bytes {
            self.checkpoint();
        }
    }

    fn fail(&mut self, stage: Stage, error: &Error, due: bool) {
        // Said once, and not again every time that is tried anew.
        if self.failing.as_ref() != Some(error) {
            tracing::error!(%error, "a commit failed; nothing of it is acknowledged");
            self.failing = Some(error.clone());
        }
        self.writes.rollback();
        self.registry.metrics.failed_commits.fetch_add(1, Ordering::Relaxed);
        self.upkeep.flushed = Some(Instant::now());
        if due {
            self.upkeep.delay_again(&self.writes);
        }
        self.upkeep.fail();
        stage.fail(&self.registry, error);
    }

    /// Most pages were copied by the checkpointer already; with nobody writing, the rest is
    /// copied here, and the log starts anew. The checkpointer is only waited for when the log has
    /// become twice as long as it should be.
    fn checkpoint(&mut self) {
        let copying = match self.written_bytes < 2 * CHECKPOINT_BYTES {
            true => self.registry.copying.try_lock(),
            false => Some(self.registry.copying.lock()),
        };
        self.checkpoint_at_bytes = self.written_bytes + CHECKPOINT_AGAIN_BYTES;
        if copying.is_none() {
            return;
        }
        match self.writes.checkpoint() {
            Ok((pages, copied)) if copied < pages => {
                tracing::debug!(pages, copied, "the log could not be copied whole");
            }
            Ok(_) => {
                self.written_bytes = 0;
                self.checkpoint_at_bytes = CHECKPOINT_BYTES;
            }
            Err(error) => tracing::warn!(%error, "the log could not be copied"),
        }
    }

    /// Stores everything that is known, and closes.
    fn stop(mut self) -> Result<(), Error> {
        self.upkeep.flushed = None;
        self.commit(&mut vec![Command::Dirty]);
        if !self.unsaved.is_empty() || self.registry.has_dirty() {
            return Err(Error::StorageFailed("the last commit failed".into()));
        }
        self.writes.set_sync(true)?;
        self.writes.begin()?;
        for stream in self.registry.streams() {
            if stream.stored.load(Ordering::Relaxed) {
                self.writes.stream(&stream)?;
            }
        }
        self.writes.commit()?;
        self.writes.checkpoint()?;
        self.writes.close()
    }
}
