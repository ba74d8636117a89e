//! The questions of a live reader, by which it tells a sender that is there from a recording.

use std::collections::VecDeque;

use super::*;
use crate::limits::{MAX_ANSWERS, MAX_QUESTIONS_HELD};
use crate::session::FreshAnswer;
use crate::{AnnouncedQuestions, ReaderQuestion};

/// The questions that a reader has asked, and those that it has heard.
#[derive(Default)]
pub(super) struct ReaderQuestions {
    /// The newest last, each with its number.
    own: VecDeque<(u64, ReaderQuestion)>,
    asked: u64,
    /// No session begins without an answer.
    pub(super) are_required: bool,
    /// A sender has not answered, so that nothing of it is taken.
    pub(super) lacks_answers: bool,
    /// The newest authentic announcement of each slot. One slot has one place here, so that
    /// recordings and bad members push no question of others out.
    heard: SlotTable<HeardAnnouncement>,
    /// The slots whose question waits for an answer, each once.
    waiting: VecDeque<Slot>,
}

/// The parts of an announcement that are kept, whether it began a session or not.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeardAnnouncement {
    pub(super) context: SenderContext,
    pub(super) made: AnnouncedAt,
    /// The last question of the slot.
    question: Option<ReaderQuestion>,
}

/// When its sender made an announcement: of one slot, what is made later compares greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnnouncedAt {
    pub(super) epoch: Epoch,
    pub(super) start: u64,
    pub(super) counter: u64,
}

impl ReaderQuestions {
    /// Which of the reader's questions an announcement answers.
    pub(super) fn answered_by(&self, questions: &AnnouncedQuestions) -> FreshAnswer {
        let mut newest_first = self.own.iter().rev();
        let answered = newest_first.find(|(_, own)| questions.answers.contains(own));
        answered.map_or(FreshAnswer::Missing, |(number, _)| FreshAnswer::To(*number))
    }

    /// Whether an announcement goes on behind the newest one of its slot, under its context. Its
    /// key is at hand then.
    pub(super) fn is_next(&self, key: KeyOf, slot: Slot, counter: u64) -> bool {
        self.heard.get(slot).is_some_and(|heard| {
            let AnnouncedAt { epoch, counter: last, .. } = heard.made;
            heard.context == key.context && (key.epoch, counter) > (epoch, last)
        })
    }

    /// Notes an authentic announcement, and its question for an answer. A question is answered
    /// once: a sender whose answer was lost asks another one. Gives whether the announcement is the
    /// newest of its slot. A recording is not, and changes nothing.
    pub(super) fn hear(
        &mut self,
        slot: Slot,
        context: SenderContext,
        made: AnnouncedAt,
        asked: Option<ReaderQuestion>,
    ) -> bool {
        let known = self.heard.get(slot).copied();
        if known.is_some_and(|known| made <= known.made) {
            return false;
        }
        let last = known.and_then(|known| known.question);
        if asked.is_some_and(|asked| last != Some(asked)) && !self.waiting.contains(&slot) {
            self.waiting.push_back(slot);
        }
        self.heard.set(slot, HeardAnnouncement { context, made, question: asked.or(last) });
        true
    }

    /// The own newest question, and those of up to [`MAX_ANSWERS`] slots that have waited longest.
    fn tell(&mut self) -> AnnouncedQuestions {
        let own = self.own.back().map(|(_, question)| *question);
        let told = self.waiting.len().min(MAX_ANSWERS);
        let questions = self.waiting.drain(..told).filter_map(|slot| self.heard.get(slot));
        let answers = questions.filter_map(|heard| heard.question).collect();
        AnnouncedQuestions { own, answers }
    }
}

impl Opener {
    /// From now on no session begins before its sender has answered a question. A reader that does
    /// not call it takes the first announcement of a sender as it comes, a recorded one too.
    pub fn require_answers(&mut self) {
        self.questions.are_required = true;
    }

    /// Asks all senders a question, 8 random bytes, in the next announcement of the reader's own.
    /// The last [`MAX_QUESTIONS_HELD`] count.
    pub fn ask(&mut self, question: ReaderQuestion) {
        let questions = &mut self.questions;
        if questions.own.len() >= MAX_QUESTIONS_HELD {
            questions.own.pop_front();
        }
        questions.asked += 1;
        questions.lacks_answers = false;
        let number = questions.asked;
        questions.own.push_back((number, question));
        self.sessions.values_mut().for_each(|session| session.ask(number));
    }

    /// Whether another question is worth asking: a sender is there that has answered none.
    pub fn lacks_answers(&self) -> bool {
        self.questions.lacks_answers
    }

    /// The questions for the next announcement of the reader's own: its newest one, and those of
    /// others that wait for an answer. Each of those is given once.
    pub fn questions(&mut self) -> AnnouncedQuestions {
        self.questions.tell()
    }

    /// Has the last question of each slot answered again: the sender beside this reader has drawn
    /// another context, which no announcement has answered under.
    pub fn answer_again(&mut self) {
        let ReaderQuestions { heard, waiting, .. } = &mut self.questions;
        let others: Vec<_> = heard.slots().filter(|slot| !waiting.contains(slot)).collect();
        waiting.extend(others);
    }
}

#[cfg(test)]
mod tests;
