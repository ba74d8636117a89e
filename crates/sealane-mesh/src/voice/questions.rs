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

#[cfg(test)]
mod tests {
    use sealane_seal::Form;

    use super::*;
    use crate::{MeshError, MeshProvision, MessageType};

    const FAR: u64 = 1 << 39;

    struct Voices {
        near: MeshVoice,
        own: MeshVoice,
        /// Another member that poses as the first one.
        forger: MeshVoice,
    }

    impl Voices {
        fn met() -> Voices {
            let provision = MeshProvision::new([7; 32], 3).unwrap();
            let voice = |slot, context: u8| {
                MeshVoice::new(provision.keys(slot, [context; 8], 1000).unwrap()).unwrap()
            };
            let (mut near, mut own, mut forger) = (voice(1, 1), voice(0, 2), voice(1, 1));
            forger.sealer.go_on_at(FAR);
            assert_eq!(own.hear_announcement(&near.announcement().unwrap()), Ok(true));
            assert_eq!(near.hear_announcement(&own.announcement().unwrap()), Ok(true));
            Voices { near, own, forger }
        }

        fn is_heard(&mut self) -> bool {
            let unit = self.near.say(Form::Full, MessageType::Hello, b"hello").unwrap();
            match self.own.hear(Form::Full, &unit) {
                Ok(_) => true,
                Err(MeshError::Frame(FrameError::Seal(Seal::Stale | Seal::Replayed))) => false,
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_neighbour_that_another_member_poses_as_is_heard_again() {
        let mut voices = Voices::met();
        assert!(voices.is_heard());
        let forged = voices.forger.say(Form::Full, MessageType::Hello, b"forged").unwrap();
        voices.own.hear(Form::Full, &forged).expect("it shows that a member made it");
        assert!(!voices.is_heard() && !voices.own.ask(|| 7), "nothing shows yet who made it");
        let Voices { near, own, .. } = &mut voices;
        let recorded = near.say(Form::Full, MessageType::Hello, b"early").unwrap();
        assert_eq!(own.hear_announcement(&near.announcement().unwrap()), Ok(false));
        assert!(own.ask(|| 7) && !own.ask(|| 7));
        assert_eq!(near.hear_announcement(&own.announcement().unwrap()), Ok(true));
        assert_eq!(own.hear_announcement(&near.announcement().unwrap()), Ok(false));
        assert!(voices.is_heard());
        for played in [&recorded, &forged] {
            assert!(voices.own.hear(Form::Full, played).is_err());
        }
    }

    #[test]
    fn questions_and_answers_stand_in_few_announcements() {
        let Voices { mut near, mut own, mut forger } = Voices::met();
        // Counters and slots differ by less than a question.
        let asked = near.announcement().unwrap().len() + 7;
        let forged = forger.say(Form::Full, MessageType::Hello, b"forged").unwrap();
        own.hear(Form::Full, &forged).unwrap();
        let unit = near.say(Form::Full, MessageType::Hello, b"hello").unwrap();
        own.hear(Form::Full, &unit).unwrap_err();
        own.hear_announcement(&near.announcement().unwrap()).unwrap();
        assert!(own.ask(|| 7));
        for number in 0..2 * ANNOUNCEMENTS {
            let announcement = own.announcement().unwrap();
            assert_eq!(announcement.len() > asked, number < ANNOUNCEMENTS);
            near.hear_announcement(&announcement).unwrap();
        }
        let answers = (0..2 * ANNOUNCEMENTS).map(|_| near.announcement().unwrap().len() > asked);
        assert_eq!(answers.filter(|answers| *answers).count(), ANNOUNCEMENTS.into());
    }
}
