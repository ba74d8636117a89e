//! The queue of commands, and what of it one commit takes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::command::WriterCommand;
use crate::limits::{MAX_COMMIT_BYTES, MAX_COMMIT_MESSAGES};

/// The commands that the writer has not looked at.
pub(super) struct CommandQueue {
    receiver: Receiver<WriterCommand>,
    /// Commands for streams that the last commit was removing: they are the first of the next one.
    deferred: Vec<WriterCommand>,
    /// Whether the last commit served several commands.
    is_shared: bool,
}

impl CommandQueue {
    pub(super) fn new(receiver: Receiver<WriterCommand>) -> Self {
        Self { receiver, deferred: Vec::new(), is_shared: false }
    }

    /// Leaves commands to the next commit.
    pub(super) fn defer(&mut self, commands: Vec<WriterCommand>) {
        debug_assert!(self.deferred.is_empty(), "they come before all others");
        self.deferred = commands;
    }

    /// The commands left to the next commit.
    pub(super) fn take_deferred(&mut self) -> Vec<WriterCommand> {
        std::mem::take(&mut self.deferred)
    }

    /// One commit's worth of commands, none where nobody asks within `patience`. None: nobody is
    /// left to ask.
    pub(super) fn next(&mut self, patience: Duration) -> Option<Vec<WriterCommand>> {
        let mut batch = self.take_deferred();
        if batch.is_empty() {
            // No spinning before it sleeps: that cost 56 µs of CPU a message, and answers came
            // later.
            match self.receiver.recv_timeout(patience) {
                Ok(command) => batch.push(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.gather(&mut batch);
        Some(batch)
    }

    /// Takes what waits in the queue, up to one commit's worth.
    fn gather(&mut self, batch: &mut Vec<WriterCommand>) {
        let mut has_waited = !self.is_shared;
        let mut messages: usize = batch.iter().map(WriterCommand::messages).sum();
        // Bytes bound a commit, too: the log would outgrow its bound, which is 32 MiB.
        let mut bytes: u64 = batch.iter().map(WriterCommand::bytes).sum();
        while messages < MAX_COMMIT_MESSAGES && bytes < MAX_COMMIT_BYTES {
            match self.receiver.try_recv() {
                Ok(command) => {
                    messages += command.messages();
                    bytes += command.bytes();
                    batch.push(command);
                }
                // Where many ask at once, others are about to: one commit serves them too. A
                // command that comes alone does not pay for that.
                Err(TryRecvError::Empty) if !has_waited => {
                    has_waited = true;
                    std::thread::yield_now();
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        // The yield above pays only where many ask. A lone client would wait for nobody.
        self.is_shared = batch.len() > 1;
    }
}
