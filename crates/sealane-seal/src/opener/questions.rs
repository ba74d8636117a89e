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
    /// Those of others that wait for an answer.
    heard: VecDeque<ReaderQuestion>,
    /// The last question of each slot.
    last: SlotTable<ReaderQuestion>,
}

impl ReaderQuestions {
    /// Which of the reader's questions an announcement answers.
    pub(super) fn answered_by(&self, questions: &AnnouncedQuestions) -> FreshAnswer {
        let mut newest_first = self.own.iter().rev();
        let answered = newest_first.find(|(_, own)| questions.answers.contains(own));
        answered.map_or(FreshAnswer::Missing, |(number, _)| FreshAnswer::To(*number))
    }

    /// Notes the question of an authentic announcement. It is answered once: a sender whose answer
    /// was lost asks another one.
    pub(super) fn hear(&mut self, slot: Slot, questions: &AnnouncedQuestions) {
        let Some(question) = questions.own else { return };
        let is_known = self.last.get(slot) == Some(&question) || self.heard.contains(&question);
        if !is_known && self.heard.len() < MAX_ANSWERS {
            self.heard.push_back(question);
            self.last.set(slot, question);
        }
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
        let own = self.questions.own.back().map(|(_, question)| *question);
        AnnouncedQuestions { own, answers: self.questions.heard.drain(..).collect() }
    }
}
