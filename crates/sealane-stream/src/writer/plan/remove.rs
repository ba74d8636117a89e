//! Streams that go.

use std::sync::Arc;

use sealane_message::Topic;
use sealane_protocol::StreamPosition;

use super::{CommitPlan, CommitPlanner, StreamTarget};
use crate::store::StoreFault;
use crate::stream::StreamEntry;
use crate::writer::command::{CommandAnswer, CommandRefusal, RemoveCommand, WriterCommand};

impl CommitPlan {
    /// Plans that a stream goes, or notes why it stays. Here is decided whether it is idle: what
    /// came before in the queue is known, and whoever comes behind has a stream of its own.
    pub(super) fn ask_to_remove(
        &mut self,
        planner: &CommitPlanner,
        remove: RemoveCommand,
    ) -> Result<(), StoreFault> {
        let stream = match self.target(planner, &remove.topic) {
            StreamTarget::Known(stream) => stream,
            StreamTarget::New | StreamTarget::Leaving => {
                let refusal = CommandRefusal::UnknownStream(remove.topic);
                self.replies.push(None, CommandAnswer::Remove(remove.reply, Err(refusal)));
                return Ok(());
            }
        };
        if let Some(since) = remove.idle_since {
            match self.is_idle(planner, &stream, since) {
                Ok(true) => {}
                Ok(false) => {
                    self.replies.push(None, CommandAnswer::Remove(remove.reply, Ok(false)));
                    return Ok(());
                }
                Err(fault) => {
                    let refusal = CommandRefusal::Unstorable(fault.clone());
                    CommandAnswer::Remove(remove.reply, Err(refusal)).send();
                    return Err(fault);
                }
            }
        }
        // Its row is not stored yet. One commit that makes and removes it would have to undo a
        // plan.
        if self.streams.makes(&remove.topic) {
            self.replies.defer(WriterCommand::Remove(remove));
            return Ok(());
        }
        self.remove(remove.topic, stream);
        self.replies.push(None, CommandAnswer::Remove(remove.reply, Ok(true)));
        Ok(())
    }

    /// Whether the stream is the one that was seen, has got nothing since, waits for nothing and is
    /// read by nobody.
    fn is_idle(
        &self,
        planner: &CommitPlanner,
        stream: &StreamEntry,
        since: StreamPosition,
    ) -> Result<bool, StoreFault> {
        let generation = stream.state.lock().generation();
        let offset = self.next_offset(stream);
        let is_awaited = || self.delayed.iter().any(|held| held.stream.number == stream.number);
        if since != (StreamPosition { generation, offset }) || is_awaited() || stream.is_read() {
            return Ok(false);
        }
        Ok(!planner.writes.has_delayed(stream.number)?)
    }

    fn remove(&mut self, topic: Topic, stream: Arc<StreamEntry>) {
        stream.state.lock().leaving = u64::MAX;
        self.gains.remove(&stream.number);
        self.managed.forget(stream.number);
        self.delayed.retain(|delayed| delayed.stream.number != stream.number);
        self.streams.remove(topic, stream);
    }
}
