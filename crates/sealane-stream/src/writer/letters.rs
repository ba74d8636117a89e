//! Dead letters: what becomes of messages that are out of attempts.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use sealane_codec::{Codec, DatumWriter};
use sealane_protocol::write_sealed;

use super::plan::{CommitPlan, CommitPlanner, LetterGrave};
use crate::block::{BlockRecord, StreamBlock};
use crate::consumer::HandedMessage;
use crate::envelope::{EnvelopeContent, StreamEnvelope};
use crate::limits::{
    MAX_COMMIT_LETTER_BYTES, MAX_COMMIT_LETTERS, MAX_LETTER_BLOCKS, MIN_CONSUMER_LETTERS,
};
use crate::registry::StreamRegistry;
use crate::store::StoreFault;
use crate::stream::{ConsumerEntry, OffsetPlace, StreamEntry};

/// The effect of a commit on the messages of one consumer that are out of attempts.
pub(super) struct BuriedMessages {
    pub(super) entry: Arc<ConsumerEntry>,
    /// The messages that are done by it, ascending.
    pub(super) offsets: Vec<u64>,
    /// How many of them are dead letters now.
    pub(super) lettered: u64,
    /// How many could not be: there can be no such stream, or the message is gone.
    pub(super) dropped: u64,
}

/// Plans dead letters for the consumers that changed, as many as fit one commit. The others'
/// turn comes with the next one.
pub(super) fn plan(
    plan: &mut CommitPlan,
    planner: &mut CommitPlanner,
    dirty: &[(Arc<StreamEntry>, Arc<ConsumerEntry>)],
) {
    let with_dead: Vec<_> =
        dirty.iter().filter(|(_, entry)| entry.state.lock().has_dead()).collect();
    // They stay dead, and are asked about again when the clock looks after their consumer.
    if with_dead.is_empty() || plan.room.is_ungivable {
        return;
    }
    // Each consumer gets its part: one with 65,536 dead messages must not hold up the others.
    let share = (MAX_COMMIT_LETTERS / with_dead.len()).max(MIN_CONSUMER_LETTERS);
    let mut budget = LetterBudget { bytes: MAX_COMMIT_LETTER_BYTES, blocks: MAX_LETTER_BLOCKS };
    for (stream, entry) in with_dead {
        let is_leaving = plan.streams.removes(&stream.topic);
        let is_gone = entry.removed.load(Ordering::Relaxed);
        if is_leaving || is_gone || stream.removed.load(Ordering::Relaxed) {
            continue;
        }
        let dead = entry.state.lock().dead(share);
        let grave = match plan.grave(planner, stream) {
            LetterGrave::Stream(grave) => Some(grave),
            LetterGrave::None => None,
            // The stream of letters is being removed by this commit. The next one can make it anew.
            LetterGrave::Later => continue,
        };
        let mut buried =
            BuriedMessages { entry: entry.clone(), offsets: Vec::new(), lettered: 0, dropped: 0 };
        match grave {
            Some(grave) => {
                bury(plan, planner.registry, &grave, stream, dead, &mut budget, &mut buried)
            }
            None => drop_all(stream, entry, dead, &mut buried),
        }
        if !buried.offsets.is_empty() {
            plan.progress.buried.push(buried);
        }
    }
}

/// The room that is left for the letters of one commit.
struct LetterBudget {
    bytes: usize,
    blocks: usize,
}

fn bury(
    plan: &mut CommitPlan,
    registry: &StreamRegistry,
    grave: &Arc<StreamEntry>,
    stream: &Arc<StreamEntry>,
    dead: Vec<HandedMessage>,
    budget: &mut LetterBudget,
    buried: &mut BuriedMessages,
) {
    let mut block = None;
    for handed in dead {
        if budget.bytes == 0 {
            break;
        }
        match locate(registry, stream, handed.offset, &mut block, budget) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(()) => break,
        }
        let record = block.as_ref().and_then(|block: &Arc<StreamBlock>| {
            let record = block.records.get(block.index_of(handed.offset))?;
            (record.offset == handed.offset).then_some((block, record))
        });
        // A message that is gone is done as well, or it would be asked for at every commit.
        buried.offsets.push(handed.offset);
        let Some((block, record)) = record else {
            // Retention or damage took the message. It counts as done, or its consumer would ask
            // for ever.
            buried.dropped += 1;
            continue;
        };
        let letter = write_letter(block, record, &buried.entry.name, handed.attempt);
        budget.bytes = budget.bytes.saturating_sub(letter.body.len());
        let now_ms = plan.now_ms;
        let staged = plan.staged(grave);
        // The letter must not be readable before its message is done. A crash would show it twice.
        staged.waits = true;
        staged.push(vec![letter], now_ms);
        buried.lettered += 1;
    }
}

/// Nobody can be told of these messages but by a count.
fn drop_all(
    stream: &StreamEntry,
    entry: &ConsumerEntry,
    dead: Vec<HandedMessage>,
    buried: &mut BuriedMessages,
) {
    buried.dropped = dead.len() as u64;
    if entry.dead_dropped.load(Ordering::Relaxed) == 0 {
        tracing::warn!(stream = %stream.topic, consumer = %entry.name,
            "messages are out of attempts, and there can be no stream for their dead letters");
    }
    buried.offsets = dead.into_iter().map(|handed| handed.offset).collect();
}

/// Puts the block that holds `offset` into `block`; none where the message is gone. Breaks where
/// that has to wait for another commit.
fn locate(
    registry: &StreamRegistry,
    stream: &Arc<StreamEntry>,
    offset: u64,
    block: &mut Option<Arc<StreamBlock>>,
    budget: &mut LetterBudget,
) -> ControlFlow<()> {
    if block.as_ref().is_some_and(|block| (block.first..=block.last).contains(&offset)) {
        return ControlFlow::Continue(());
    }
    *block = match stream.find(offset) {
        OffsetPlace::Block(block) => Some(block),
        // Reading from disk holds up every client of this commit, so that it has a bound of its
        // own.
        OffsetPlace::Behind if budget.blocks == 0 => return ControlFlow::Break(()),
        OffsetPlace::Behind => {
            budget.blocks -= 1;
            match registry.reads.block(&stream.topic, stream.number, offset) {
                Ok(block) => block.map(Arc::new),
                Err(fault) => return unreadable(stream, offset, fault),
            }
        }
        OffsetPlace::AtEnd | OffsetPlace::Trimmed(_) | OffsetPlace::Damaged(_) => None,
    };
    ControlFlow::Continue(())
}

/// A block that cannot be read now is nobody else's trouble: its messages stay dead.
fn unreadable(stream: &StreamEntry, offset: u64, fault: StoreFault) -> ControlFlow<()> {
    let error = crate::Error::from(fault);
    tracing::error!(stream = %stream.topic, offset, %error, "a dead letter waits");
    ControlFlow::Break(())
}

/// A dead letter is open, whatever its message is: what it says beside it the hub knows anyway. A
/// frame stands in it as bytes, and whoever has the group's keys opens it there.
fn write_letter(
    block: &StreamBlock,
    record: &BlockRecord,
    consumer: &str,
    attempts: u32,
) -> StreamEnvelope {
    let mut sealed = Vec::new();
    let (codec, envelope) = match record.content {
        EnvelopeContent::Open(codec) => (codec, record.body.as_ref()),
        EnvelopeContent::Sealed => {
            let codec = Codec::MsgPack;
            write_sealed(codec, Some(record.id_text()), &record.body, &mut sealed);
            (codec, sealed.as_slice())
        }
    };
    let mut body = Vec::with_capacity(envelope.len() + 160);
    let mut writer = DatumWriter::new(codec, &mut body);
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
    // The record's id is a piece of its whole block, which the letter is not to hold on to.
    let id = Bytes::copy_from_slice(&record.id);
    StreamEnvelope { content: EnvelopeContent::Open(codec), id, body: body.into() }
}
