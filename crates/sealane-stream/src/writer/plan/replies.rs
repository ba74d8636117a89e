//! The answers to commands, and the commands left to the next commit.

use std::collections::HashSet;
use std::sync::Arc;

use sealane_message::Topic;

use crate::publishing;
use crate::store::StoreFault;
use crate::writer::command::{CommandAnswer, WriterCommand};

/// The answers that commands get when the commit has ended.
#[derive(Default)]
pub(in crate::writer) struct ReplyPlan {
    /// Each with the number of the stream whose level it waits for.
    answers: Vec<(Option<u32>, CommandAnswer)>,
    deferred: Vec<WriterCommand>,
    /// The topics of deferred commands.
    waiting: HashSet<Topic>,
}

impl ReplyPlan {
    /// How many commands have an answer coming, from this commit or a later one.
    pub(super) fn count(&self) -> usize {
        self.answers.len() + self.deferred.len()
    }

    pub(in crate::writer) fn push(&mut self, number: Option<u32>, answer: CommandAnswer) {
        self.answers.push((number, answer));
    }

    /// The answer that was noted last.
    pub(super) fn last_mut(&mut self) -> Option<&mut (Option<u32>, CommandAnswer)> {
        self.answers.last_mut()
    }

    /// Whether a command for the topic waits for the next commit, so that all that follow wait too.
    pub(super) fn awaits(&self, topic: &Topic) -> bool {
        self.waiting.contains(topic)
    }

    /// Notes that commands for the topic wait for the next commit.
    pub(super) fn wait_for(&mut self, topic: Topic) {
        self.waiting.insert(topic);
    }

    /// Leaves a command to the next commit, and with it all that follow for its topic.
    pub(in crate::writer) fn defer(&mut self, command: WriterCommand) {
        self.waiting.extend(command.topic().cloned());
        self.deferred.push(command);
    }

    pub(in crate::writer) fn take_deferred(&mut self) -> Vec<WriterCommand> {
        std::mem::take(&mut self.deferred)
    }

    /// Answers for these streams before the commit stands.
    pub(super) fn send_early(&mut self, streams: &HashSet<u32>) {
        let is_early = |(number, _): &mut (Option<u32>, CommandAnswer)| {
            number.is_some_and(|number| streams.contains(&number))
        };
        let answered = self.answers.extract_if(.., is_early);
        // Sent by other threads: the commit is not stored yet, and the writer has that to do first.
        let told: Vec<_> = answered.filter_map(|(_, answer)| answer.send()).collect();
        told.iter().for_each(|outbox| outbox.wake());
    }

    /// Tells those who added something that it is not stored; `given_up` are streams that are not
    /// made, or keep their settings.
    pub(super) fn strip(&mut self, given_up: &HashSet<u32>, fault: &StoreFault) {
        let stays = |(_, answer): &(Option<u32>, CommandAnswer)| match answer {
            // The stripping may take out the very command that kept a stream.
            CommandAnswer::Remove(_, result) => *result != Ok(false),
            CommandAnswer::Configure(_, Ok((stream, _))) => !given_up.contains(&stream.number),
            CommandAnswer::Manage { removes, .. } | CommandAnswer::Rule { removes, .. } => *removes,
            CommandAnswer::Configure(_, Err(_))
            | CommandAnswer::Append(..)
            | CommandAnswer::FindSession(..)
            | CommandAnswer::Publish(..) => false,
        };
        let (kept, failed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.answers).into_iter().partition(stays);
        failed.into_iter().for_each(|(_, answer)| answer.fail(fault));
        self.answers = kept;
    }

    /// The commit stands.
    pub(in crate::writer) fn send(&mut self) {
        let told: Vec<Arc<_>> =
            self.answers.drain(..).filter_map(|(_, answer)| answer.send()).collect();
        // The writer sends some itself: to wake a task costs more than to send (decision 12).
        publishing::send(&told);
    }

    /// The commit was given up.
    pub(in crate::writer) fn fail(&mut self, fault: &StoreFault) {
        self.answers.drain(..).for_each(|(_, answer)| answer.fail(fault));
        // They waited for a removal of this commit, which has not taken place.
        self.deferred.drain(..).for_each(|command| command.fail(fault));
    }
}
