//! The windows of a session, and what moves each of them.

use super::*;

const CONTEXT: SenderContext = SenderContext(*b"start 01");
const EPOCH: Epoch = Epoch(3);
const C: Class = Class::Group;
const S: Class = Class::Signed;
const LAST: u64 = crate::limits::MAX_COUNTER;

/// The session of a sender whose announcement had counter 5.
fn session() -> SenderSession {
    let mut session = SenderSession::new(CONTEXT, 1, EPOCH, 5);
    assert!(!session.announce(EPOCH, 5, FreshAnswer::Missing));
    session
}

fn take(session: &mut SenderSession, class: Class, epoch: Epoch, counter: u64) -> bool {
    let outcome = session.check(class, epoch, counter);
    if outcome.is_ok() {
        session.accept(class, epoch, counter);
    }
    outcome.is_ok()
}

#[test]
fn nothing_from_before_the_first_announcement_is_taken() {
    let mut session = session();
    for class in Class::ALL {
        assert!(!take(&mut session, class, EPOCH, 4) && !take(&mut session, class, Epoch(2), 9));
    }
    assert!(take(&mut session, C, EPOCH, 6) && take(&mut session, S, EPOCH, 6));
}

#[test]
fn unsigned_frames_move_nothing_of_signed_ones() {
    let mut session = session();
    for (epoch, counter) in [(EPOCH, 6), (EPOCH, LAST), (Epoch(4), LAST)] {
        assert!(take(&mut session, C, epoch, counter));
    }
    assert!(!take(&mut session, C, EPOCH, 7), "the window of unsigned ones");
    assert!(take(&mut session, S, EPOCH, 6) && take(&mut session, S, EPOCH, 7));
    assert!(!session.is_before(EPOCH, 1) && session.is_before(EPOCH, 2), "nor its epoch");
}

#[test]
fn signed_messages_move_the_epoch_of_all() {
    let mut session = session();
    assert!(take(&mut session, S, Epoch(4), 0));
    assert_eq!(session.check(C, EPOCH, 9), Err(Error::EpochPast));
    assert_eq!(session.check(S, EPOCH, 9), Err(Error::EpochPast));
    assert!(take(&mut session, C, Epoch(4), 0));
}

/// An announcement that is overtaken by a later one proves nothing, whatever it answers.
#[test]
fn only_the_newest_announcement_sets_it_back() {
    let mut session = session();
    assert!(take(&mut session, C, EPOCH, 9000));
    assert!(session.announce(EPOCH, 20, FreshAnswer::Missing));
    session.ask(1);
    session.announce(EPOCH, 10, FreshAnswer::To(1));
    assert!(!take(&mut session, C, EPOCH, 21));
    session.announce(EPOCH, 22, FreshAnswer::To(1));
    assert!(!take(&mut session, C, EPOCH, 21) && take(&mut session, C, EPOCH, 23));
}

/// Somebody holds an announcement back until true frames have come.
#[test]
fn an_announcement_that_was_held_back_sets_nothing_back() {
    for answer in [FreshAnswer::Missing, FreshAnswer::To(1)] {
        let mut session = session();
        assert!((7..3000).all(|counter| take(&mut session, C, EPOCH, counter)));
        assert!(session.announce(EPOCH, 6, answer), "the sender is to be asked");
        session.ask(2);
        // The sender announced itself before it heard of the question.
        assert!(session.announce(EPOCH, 6 + WINDOW_BITS, answer));
        assert!((7..3000).all(|counter| !take(&mut session, C, EPOCH, counter)), "{answer:?}");
        // Its answer comes behind all that it has sealed, and so behind no window.
        assert!(take(&mut session, C, EPOCH, 3001));
        session.announce(EPOCH, 3000, FreshAnswer::To(2));
        assert!((7..3000).all(|counter| !take(&mut session, C, EPOCH, counter)), "{answer:?}");
        assert!(take(&mut session, C, EPOCH, 3002));
    }
}

#[test]
fn an_answer_sets_back_what_others_have_moved_and_opens_nothing_again() {
    for (epoch, forged) in [(EPOCH, 9000), (EPOCH, LAST - 9), (Epoch(4), 3)] {
        let mut session = session();
        assert!((6..100).all(|counter| take(&mut session, C, EPOCH, counter)));
        assert!(take(&mut session, C, epoch, forged));
        assert!(session.announce(EPOCH, 100, FreshAnswer::Missing));
        session.ask(1);
        // The forger goes on while the question is on its way.
        assert!(take(&mut session, C, epoch, forged + 1));
        assert!(!session.announce(EPOCH, 102, FreshAnswer::To(1)));
        for (epoch, counter) in
            (6..=102).map(|counter| (EPOCH, counter)).chain([(epoch, forged), (epoch, forged + 1)])
        {
            assert!(!take(&mut session, C, epoch, counter), "{epoch:?} {counter}");
        }
        assert!((103..3000).all(|counter| take(&mut session, C, EPOCH, counter)));
    }
}

/// One forged counter within the window costs that counter, and no question.
#[test]
fn a_window_that_still_admits_the_sender_stays() {
    let mut session = session();
    assert!(take(&mut session, C, EPOCH, 500));
    assert!(!session.announce(EPOCH, 6, FreshAnswer::To(1)));
    assert!((7..1000).all(|counter| take(&mut session, C, EPOCH, counter) != (counter == 500)));
}

/// A forger uses up the counters that the sender is about to use. Each true frame is a repeat then,
/// and no announcement lies far behind.
#[test]
fn counters_that_others_have_used_up_are_free_after_an_answer() {
    for forged in [20..30, 20..1000, 20..1020] {
        let mut session = session();
        assert!((6..20).all(|counter| take(&mut session, C, EPOCH, counter)));
        assert!(forged.clone().all(|counter| take(&mut session, C, EPOCH, counter)));
        assert_eq!(session.check(C, EPOCH, 20), Err(Error::Replayed));
        session.refused(C, &Error::Replayed);
        assert!(session.announce(EPOCH, 21, FreshAnswer::Missing), "the sender is to be asked");
        session.ask(1);
        // A true frame that overtakes the answer stays a repeat.
        assert!(take(&mut session, C, EPOCH, forged.end + 1));
        assert!(!session.announce(EPOCH, 23, FreshAnswer::To(1)));
        assert!(!take(&mut session, C, EPOCH, forged.end + 1));
        assert!((6..24).all(|counter| !take(&mut session, C, EPOCH, counter)));
        let mut on = (24..4000).filter(|counter| *counter != forged.end + 1);
        assert!(on.all(|counter| take(&mut session, C, EPOCH, counter)), "{forged:?}");
    }
}

/// Without a refused frame an overtaken announcement is no doubt. A refused signed one is no sign.
#[test]
fn only_a_refused_unsigned_frame_raises_a_doubt_within_the_window() {
    for (class, error, is_asked) in
        [(C, Error::Replayed, true), (C, Error::Stale, true), (S, Error::Replayed, false)]
    {
        let mut session = session();
        assert!(take(&mut session, C, EPOCH, 500));
        assert!(!session.announce(EPOCH, 6, FreshAnswer::Missing));
        session.refused(class, &error);
        assert_eq!(session.announce(EPOCH, 8, FreshAnswer::Missing), is_asked, "{class:?}");
        assert!(!session.announce(EPOCH, 500, FreshAnswer::Missing) || is_asked);
    }
}

/// A link that holds an announcement back and repeats frames gains a question, and no frame.
#[test]
fn a_repeat_and_an_announcement_that_was_held_back_open_nothing() {
    let mut session = session();
    assert!((7..900).all(|counter| take(&mut session, C, EPOCH, counter)));
    session.refused(C, &Error::Replayed);
    assert!(session.announce(EPOCH, 6, FreshAnswer::Missing));
    session.ask(1);
    assert!((901..950).all(|counter| take(&mut session, C, EPOCH, counter)));
    session.announce(EPOCH, 900, FreshAnswer::To(1));
    let mut true_ones = (7..900).chain(901..950);
    assert!(true_ones.all(|counter| !take(&mut session, C, EPOCH, counter)));
}

/// The sender comes to the counters that stayed closed, and its frames are taken.
#[test]
fn closed_counters_open_before_the_sender_comes_to_them() {
    let mut session = session();
    assert!((2000..3000).all(|counter| take(&mut session, C, EPOCH, counter)));
    assert!(session.announce(EPOCH, 6, FreshAnswer::Missing));
    session.ask(1);
    assert!(!session.announce(EPOCH, 8, FreshAnswer::To(1)));
    assert!(!take(&mut session, C, EPOCH, 2500), "a recording of the forged frame");
    assert!((9..1500).all(|counter| take(&mut session, C, EPOCH, counter)));
    session.announce(EPOCH, 1500, FreshAnswer::Missing);
    assert!((1501..3500).all(|counter| take(&mut session, C, EPOCH, counter)));
}
