//! The questions by which a machine finds out whether somebody else has moved the window of a
//! neighbour's unsigned frames. `spec/seal.md`, section *Unsigned frames that others have made*.

use std::collections::VecDeque;

use sealane_frame::FrameError;
use sealane_seal::{AnnouncedQuestions, Error as Seal, Opener, ReaderQuestion};

use super::MeshVoice;

/// The machine's own question, and those of others that its announcements answer.
#[derive(Debug, Default)]
pub(super) struct VoiceQuestions {
    /// In how many more announcements the own question stands.
    own: u8,
    /// Each with the announcements in which it is still answered: a machine announces itself on
    /// each interface, and parts may be lost.
    answers: VecDeque<(ReaderQuestion, u8)>,
    /// For so many seconds announcements are opened that seem to say nothing new.
    due_s: u8,
}

/// In so many announcements a question is asked, and answered.
const ANNOUNCEMENTS: u8 = 4;
/// So long behind a frame that lies behind its window announcements are looked at.
const DUE_SECONDS: u8 = 120;

impl VoiceQuestions {
    /// The questions of the next announcement.
    pub(super) fn next(&mut self, opener: &mut Opener) -> AnnouncedQuestions {
        let mut told = opener.questions();
        self.answers.extend(told.answers.drain(..).map(|answer| (answer, ANNOUNCEMENTS)));
        while self.answers.len() > sealane_seal::limits::MAX_ANSWERS {
            self.answers.pop_front();
        }
        told.answers.extend(self.answers.iter().map(|(answer, _)| *answer));
        for (_, left) in &mut self.answers {
            *left -= 1;
        }
        self.answers.retain(|(_, left)| *left > 0);
        told.own = told.own.filter(|_| self.own > 0);
        self.own = self.own.saturating_sub(1);
        told
    }

    /// Notes why a frame did not open.
    pub(super) fn refused(&mut self, error: &FrameError) {
        if *error == FrameError::Seal(Seal::Stale) {
            self.due_s = DUE_SECONDS;
        }
    }

    /// Whether announcements are opened that seem to say nothing new.
    pub(super) fn are_due(&self) -> bool {
        self.due_s > 0
    }

    pub(super) fn second_passed(&mut self) {
        self.due_s = self.due_s.saturating_sub(1);
    }
}

impl MeshVoice {
    /// Asks a question if one is worth asking, and says whether.
    pub(crate) fn ask(&mut self, random: impl FnOnce() -> u64) -> bool {
        let asks = self.opener.lacks_answers();
        if asks {
            self.opener.ask(ReaderQuestion(random().to_be_bytes()));
            self.questions.own = ANNOUNCEMENTS;
        }
        asks
    }
}
