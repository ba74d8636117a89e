//! The questions by which a machine finds out whether somebody else has moved the window of a
//! neighbour's unsigned frames. `spec/seal.md`, section *Unsigned frames that others have made*.

use std::collections::{BTreeMap, VecDeque};

use sealane_frame::FrameError;
use sealane_seal::{AnnouncedQuestions, Error as Seal, Form, Opener, ReaderQuestion, Slot};

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
    /// How many frames of a slot were refused as repeats since one opened.
    repeats: BTreeMap<Slot, u8>,
    /// The last frame that was refused is a reason to ask for announcements.
    is_suspicious: bool,
    /// The newest own question, in how many seconds another one may follow, and how long after that
    /// the next one. On a slow mesh an answer takes minutes, and only the newest questions count.
    asked: Option<ReaderQuestion>,
    rest_s: u8,
    wait_s: u8,
}

/// In so many announcements a question is asked, and answered.
const ANNOUNCEMENTS: u8 = 4;
/// So long behind a frame that lies behind its window announcements are looked at.
const DUE_SECONDS: u8 = 120;
/// So many repeats of a slot in a row mean that somebody else has used its counters up. A medium
/// that brings each unit several times makes fewer.
const REPEATS: u8 = 4;
/// How long an answer is waited for at first, and at most.
const FIRST_WAIT_S: u8 = 2;
const LONGEST_WAIT_S: u8 = 60;

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

    /// Notes why a frame did not open that says it is of that slot.
    fn refused(&mut self, slot: Option<Slot>, error: &FrameError) {
        self.is_suspicious = match (error, slot) {
            (FrameError::Seal(Seal::Stale), _) => true,
            (FrameError::Seal(Seal::Replayed), Some(slot)) => {
                let repeats = self.repeats.entry(slot).or_default();
                *repeats = repeats.saturating_add(1);
                *repeats >= REPEATS
            }
            _ => false,
        };
        if self.is_suspicious {
            self.due_s = DUE_SECONDS;
        }
    }

    /// A frame of that slot has opened.
    pub(super) fn opened(&mut self, slot: Slot) {
        self.repeats.remove(&slot);
    }

    /// Somebody has answered: another question may follow soon.
    pub(super) fn answered(&mut self, questions: &AnnouncedQuestions) {
        if self.asked.is_some_and(|asked| questions.answers.contains(&asked)) {
            (self.rest_s, self.wait_s) = (0, FIRST_WAIT_S);
        }
    }

    /// Whether announcements are opened that seem to say nothing new.
    pub(super) fn are_due(&self) -> bool {
        self.due_s > 0
    }

    pub(super) fn second_passed(&mut self) {
        self.due_s = self.due_s.saturating_sub(1);
        self.rest_s = self.rest_s.saturating_sub(1);
    }
}

impl MeshVoice {
    /// Asks a question if one is worth asking, and says whether.
    pub(crate) fn ask(&mut self, random: impl FnOnce() -> u64) -> bool {
        let asks = self.opener.lacks_answers() && self.questions.rest_s == 0;
        if asks {
            let question = ReaderQuestion(random().to_be_bytes());
            self.opener.ask(question);
            let VoiceQuestions { own, asked, rest_s, wait_s, .. } = &mut self.questions;
            (*own, *asked) = (ANNOUNCEMENTS, Some(question));
            *rest_s = (*wait_s).max(FIRST_WAIT_S);
            *wait_s = rest_s.saturating_mul(2).min(LONGEST_WAIT_S);
        }
        asks
    }

    /// Notes why a unit did not open.
    pub(super) fn refused(&mut self, form: Form, unit: &[u8], error: &FrameError) {
        let slot = self.claimed_by_unit(form, unit);
        self.questions.refused(slot, error);
    }

    /// Whether the unit that was refused last is a reason to ask for announcements.
    pub(crate) fn take_suspicion(&mut self) -> bool {
        std::mem::take(&mut self.questions.is_suspicious)
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

    /// The forger uses up the counters that the neighbour is about to use.
    #[test]
    fn a_neighbour_whose_counters_others_have_used_up_is_heard_again() {
        let mut voices = Voices::met();
        voices.forger = {
            let provision = MeshProvision::new([7; 32], 3).unwrap();
            MeshVoice::new(provision.keys(1, [1; 8], 1000).unwrap()).unwrap()
        };
        let next = voices.near.sealer.next_counter().unwrap();
        voices.forger.sealer.go_on_at(next);
        for _ in 0..200 {
            let forged = voices.forger.say(Form::Full, MessageType::Hello, b"forged").unwrap();
            voices.own.hear(Form::Full, &forged).expect("it shows that a member made it");
        }
        for number in 1..=REPEATS {
            assert!(!voices.is_heard());
            assert_eq!(voices.own.take_suspicion(), number == REPEATS, "{number}");
        }
        let Voices { near, own, .. } = &mut voices;
        assert_eq!(own.hear_announcement(&near.announcement().unwrap()), Ok(false));
        assert!(own.ask(|| 7));
        assert_eq!(near.hear_announcement(&own.announcement().unwrap()), Ok(true));
        assert_eq!(own.hear_announcement(&near.announcement().unwrap()), Ok(false));
        assert!((0..1000).all(|_| voices.is_heard()));
    }

    /// A medium that brings each unit several times gives no reason to ask.
    #[test]
    fn repeats_between_what_opens_are_no_reason_to_ask() {
        let mut voices = Voices::met();
        for _ in 0..2 * REPEATS {
            let unit = voices.near.say(Form::Full, MessageType::Hello, b"hello").unwrap();
            assert!(voices.own.hear(Form::Full, &unit).is_ok());
            for _ in 1..REPEATS {
                assert!(voices.own.hear(Form::Full, &unit).is_err());
                assert!(!voices.own.take_suspicion());
            }
        }
    }

    /// A question is void after 16 others, and a slow mesh answers after minutes.
    #[test]
    fn each_question_waits_twice_as_long_until_one_is_answered() {
        let Voices { mut near, mut own, mut forger } = Voices::met();
        let forged = forger.say(Form::Full, MessageType::Hello, b"forged").unwrap();
        own.hear(Form::Full, &forged).unwrap();
        let unit = near.say(Form::Full, MessageType::Hello, b"hello").unwrap();
        own.hear(Form::Full, &unit).unwrap_err();
        let mut asked = Vec::new();
        for second in 0..190_u64 {
            own.allow_trials();
            own.hear_announcement(&near.announcement().unwrap()).unwrap();
            if own.ask(|| second) {
                asked.push(second);
            }
            if own.questions.due_s == 0 {
                own.questions.due_s = DUE_SECONDS;
            }
        }
        assert_eq!(asked, [0, 2, 6, 14, 30, 62, 122, 182]);
        near.hear_announcement(&own.announcement().unwrap()).unwrap();
        own.hear_announcement(&near.announcement().unwrap()).unwrap();
        let VoiceQuestions { rest_s, wait_s, .. } = own.questions;
        assert_eq!((rest_s, wait_s), (0, FIRST_WAIT_S));
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
