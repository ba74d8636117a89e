//! How a sender makes itself known on a live link.

use crate::Error;
use crate::limits::MAX_ANSWERS;

/// The body of an announcement: a class S message that is bound to the link. Its frame says the
/// context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Milliseconds since 1970-01-01 UTC when the sender started, or one more than the start
    /// before if that is not below: a later start always has a greater number.
    pub start: u64,
    /// How many orders of its group the sender has obeyed.
    pub orders: u64,
    /// The sender's own question, and those that it answers.
    pub questions: AnnouncedQuestions,
}

/// 8 random bytes of a reader. An announcement that repeats them was made after they were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderQuestion(pub [u8; 8]);

/// The questions that an announcement carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnouncedQuestions {
    /// That of the sender as a reader, for all who hear the announcement. A sender that reads
    /// nothing live has none.
    pub own: Option<ReaderQuestion>,
    /// Those of others, up to [`MAX_ANSWERS`]: none unless there is an own one.
    pub answers: Vec<ReaderQuestion>,
}

impl AnnouncedQuestions {
    /// The answer to the question of another announcement, for a sender that asks nothing itself.
    pub fn answering(other: &AnnouncedQuestions) -> AnnouncedQuestions {
        AnnouncedQuestions { own: None, answers: other.own.into_iter().collect() }
    }
}

const VERSION: u8 = 2;

impl Announcement {
    /// Bytes of a body without questions.
    pub const MIN_BYTES: usize = 1 + 8 + 8;

    /// Whether a body of so many bytes can be one.
    pub fn has_length(bytes: usize) -> bool {
        let questions = bytes.checked_sub(Announcement::MIN_BYTES);
        questions.is_some_and(|all| all.is_multiple_of(8) && all / 8 <= 1 + MAX_ANSWERS)
    }

    /// One without questions.
    pub fn new(start: u64, orders: u64) -> Announcement {
        Announcement { start, orders, questions: AnnouncedQuestions::default() }
    }

    /// Version 2, start and orders, then the own question and the answers; integers big-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let AnnouncedQuestions { own, answers } = &self.questions;
        let mut bytes = vec![VERSION];
        bytes.extend([self.start, self.orders].into_iter().flat_map(u64::to_be_bytes));
        let own = own.unwrap_or(ReaderQuestion([0; 8]));
        let has_questions = own.0 != [0; 8] || !answers.is_empty();
        let questions = [own].into_iter().chain(answers.iter().copied()).take(1 + MAX_ANSWERS);
        bytes.extend(questions.filter(|_| has_questions).flat_map(|question| question.0));
        bytes
    }

    /// Reads the body. An own question of zeros stands for none.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for another length or version, and for zeros without an answer.
    pub fn from_bytes(bytes: &[u8]) -> Result<Announcement, Error> {
        if !Announcement::has_length(bytes.len()) {
            return Err(Error::Malformed);
        }
        let [VERSION, words @ ..] = bytes else { return Err(Error::Malformed) };
        let (words, _) = words.as_chunks::<8>();
        let [start, orders, questions @ ..] = words else { return Err(Error::Malformed) };
        let mut questions = questions.iter().copied().map(ReaderQuestion);
        let own = questions.next();
        let answers: Vec<_> = questions.collect();
        let is_none = own == Some(ReaderQuestion([0; 8]));
        if is_none && answers.is_empty() {
            return Err(Error::Malformed);
        }
        let own = own.filter(|_| !is_none);
        let (start, orders) = (u64::from_be_bytes(*start), u64::from_be_bytes(*orders));
        Ok(Announcement { start, orders, questions: AnnouncedQuestions { own, answers } })
    }
}

#[cfg(test)]
mod tests;
