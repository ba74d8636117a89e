//! The state that a reader holds, which no test through the public API can count.

use super::*;
use crate::sign::SigningKey;
use crate::{Binding, GroupId, History, Sealer, Suite};

const META: &[u8] = b"meta";

fn group() -> Group {
    Group::new(GroupId([7; 32]), Suite::Aes256Gcm)
}

fn epochs() -> Epochs {
    Epochs::new(group().id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]))
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn signing_key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn reader() -> Opener {
    let mut reader = Opener::new(group(), None, epochs()).unwrap();
    let verifying_key = signing_key().verifying_key();
    let terms = (0..=1023).map(slot);
    let (since, until) = (Epoch(0), None);
    reader.set_terms(terms.map(|slot| Term { slot, since, until, verifying_key })).unwrap();
    reader
}

fn announcement(slot: Slot, context: SenderContext) -> Vec<u8> {
    let mut sealer = Sealer::new(group(), slot, context, &epochs(), 0).unwrap();
    sealer.set_signing_key(signing_key());
    let (body, mut sealed) = (Announcement::new(5, 0).to_bytes(), Vec::new());
    let (class, form, binding) = (Class::Signed, Form::Full, Binding::link());
    sealer.append(class, form, &binding, META, &body, &mut sealed).unwrap();
    sealed
}

/// Sessions, keys, and how many of each there is room for.
fn held(reader: &Opener) -> [usize; 4] {
    let (sessions, keys) = (reader.sessions.entries(), reader.keys.entries());
    let count = |is_held: &mut dyn Iterator<Item = bool>| is_held.filter(|held| *held).count();
    [
        count(&mut sessions.iter().map(Option::is_some)),
        count(&mut keys.iter().map(Option::is_some)),
        sessions.len(),
        keys.len(),
    ]
}

#[test]
fn forged_contexts_and_slots_are_not_held() {
    let (mut reader, binding) = (reader(), Binding::link());
    let honest = SenderContext([1; 8]);
    let mut first = announcement(slot(3), honest);
    let attached = Attached { context: honest, binding: &binding, meta: META };
    let _ = reader.open_announcement(&attached, &mut first).unwrap().accept();
    let before = held(&reader);
    assert_eq!(before[..2], [1, 1]);
    for number in 0..3000_u64 {
        let context = SenderContext(number.to_be_bytes());
        let mut forged = announcement(slot((number % 1024) as u16), context);
        *forged.last_mut().unwrap() ^= 1;
        let attached = Attached { context, binding: &binding, meta: META };
        reader.allow_trials();
        let refused = reader.open_announcement(&attached, &mut forged.clone());
        assert_eq!(refused.map(|_| ()), Err(Error::NotAuthentic));
        let refused = reader.open_live(Form::Full, &attached, &mut forged.clone(), 0);
        assert_eq!(refused.map(|_| ()), Err(Error::Unannounced));
        let refused = reader.open_stored(Epoch(0), Form::Full, &attached, &mut forged, 0);
        assert_eq!(refused, Err(Error::NotAuthentic));
    }
    assert_eq!(held(&reader), before);
    assert_eq!(reader.announced(slot(3)), Some(honest));
}

/// An authentic announcement that is not accepted leaves its key, and no session.
#[test]
fn a_dropped_announcement_begins_nothing() {
    let (mut reader, binding) = (reader(), Binding::link());
    let context = SenderContext([1; 8]);
    let mut sealed = announcement(slot(3), context);
    let attached = Attached { context, binding: &binding, meta: META };
    drop(reader.open_announcement(&attached, &mut sealed).unwrap());
    assert_eq!((held(&reader)[0], reader.announced(slot(3))), (0, None));
}

/// However often a member starts, it takes the room of one.
#[test]
fn a_later_start_takes_the_place_of_the_one_before() {
    let (mut reader, binding) = (reader(), Binding::link());
    let mut before = None;
    for start in 1..200_u64 {
        let context = SenderContext(start.to_be_bytes());
        let mut sealer = Sealer::new(group(), slot(3), context, &epochs(), 0).unwrap();
        sealer.set_signing_key(signing_key());
        let (body, mut sealed) = (Announcement::new(start, 0).to_bytes(), Vec::new());
        let (class, form) = (Class::Signed, Form::Full);
        sealer.append(class, form, &binding, META, &body, &mut sealed).unwrap();
        let attached = Attached { context, binding: &binding, meta: META };
        reader.allow_trials();
        let _ = reader.open_announcement(&attached, &mut sealed).unwrap().accept();
        assert_eq!(*before.get_or_insert(held(&reader)), held(&reader));
    }
}

/// The announcement of a start that asks a question.
fn asking(slot: Slot, start: u64, counter: u64, question: u64) -> (SenderContext, Vec<u8>) {
    let context = SenderContext(start.to_be_bytes());
    let mut sealer = Sealer::new(group(), slot, context, &epochs(), counter).unwrap();
    sealer.set_signing_key(signing_key());
    let own = Some(crate::ReaderQuestion(question.to_be_bytes()));
    let questions = crate::AnnouncedQuestions { own, answers: Vec::new() };
    let (body, mut sealed) = (Announcement { start, orders: 0, questions }, Vec::new());
    let (class, form, binding) = (Class::Signed, Form::Full, Binding::link());
    sealer.append(class, form, &binding, META, &body.to_bytes(), &mut sealed).unwrap();
    (context, sealed)
}

/// Why a reader that requires answers refuses an announcement.
fn refused(reader: &mut Opener, announced: &(SenderContext, Vec<u8>)) -> Error {
    let (binding, mut sealed) = (Binding::link(), announced.1.clone());
    let attached = Attached { context: announced.0, binding: &binding, meta: META };
    reader.open_announcement(&attached, &mut sealed).unwrap_err()
}

/// More members than there are trials: in one second the reader notes all their questions.
#[test]
fn an_authentic_announcement_takes_no_trial_from_others() {
    let mut reader = reader();
    reader.require_answers();
    let members = 0..MAX_TRIALS as u16 + 3;
    for counter in 0..2 {
        for number in members.clone() {
            let announced = asking(slot(number), 9, counter, u64::from(number) + 1);
            assert_eq!(refused(&mut reader, &announced), Error::Unannounced, "{number}");
        }
    }
    let told: usize = (0..3).map(|_| reader.questions().answers.len()).sum();
    assert_eq!(told, members.len());
    // Made-up ones take theirs, and so do recordings.
    let recorded = asking(slot(1), 9, 0, 2);
    for _ in 0..MAX_TRIALS {
        assert_eq!(refused(&mut reader, &recorded), Error::Unannounced);
    }
    assert_eq!(refused(&mut reader, &recorded), Error::TooManyTrials);
    let goes_on = asking(slot(1), 9, 2, 77);
    assert_eq!(refused(&mut reader, &goes_on), Error::Unannounced, "its key is at hand");
    assert_eq!(reader.questions().answers.len(), 1);
}

/// A recorder plays old announcements of a slot between the true ones.
#[test]
fn recordings_leave_the_question_that_was_asked_last() {
    let mut reader = reader();
    reader.require_answers();
    let recorded: Vec<_> = (1..20).map(|start| asking(slot(1), start, 0, start)).collect();
    let honest = [asking(slot(1), 100, 0, 100), asking(slot(2), 100, 0, 200)];
    for announced in honest.iter().chain(&recorded) {
        assert_eq!(refused(&mut reader, announced), Error::Unannounced);
    }
    let asked = [100_u64, 200].map(|asked| crate::ReaderQuestion(asked.to_be_bytes()));
    assert_eq!(reader.questions().answers, asked);
    // The sender beside this reader draws another context.
    reader.answer_again();
    assert_eq!(reader.questions().answers, asked);
    assert!(reader.questions().answers.is_empty());
}
