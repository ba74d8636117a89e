//! An attacker that has recorded a session, announcement and all, plays it in vain: before, while
//! and after its reader starts again.

use std::collections::BTreeSet;

use crate::shared::node::{Fate, Node, Sent, Start};
use crate::shared::world::*;
use proptest::prelude::*;
use sealane_seal::*;

/// The orders in which a recording is played.
fn orders(recorded: &[Sent]) -> [Vec<&Sent>; 4] {
    let forward: Vec<_> = recorded.iter().collect();
    let backward = recorded.iter().rev().collect();
    // Each message behind the announcement, again and again.
    let announced = recorded.iter().flat_map(|sent| [&recorded[0], sent]).collect();
    let (odd, even): (Vec<_>, Vec<_>) =
        recorded.iter().enumerate().partition(|(index, _)| index % 2 == 1);
    let split = odd.into_iter().chain(even).map(|(_, sent)| sent).collect();
    [forward, backward, announced, split]
}

fn is_played_in_vain(node: &mut Node, recorded: &[Sent], when: &str) {
    for order in orders(recorded) {
        assert_eq!(node.play(order), 0, "{when}");
    }
}

#[test]
fn before_and_after_the_reader_starts_again() {
    for suite in Suite::ALL {
        let group = group(suite);
        let mut epochs = epochs(group);
        let mut node = Node::new(group, epochs.clone());
        let mut sender = Start::new(group, slot(1), &epochs, 100);
        let first = sender.record(40, node.question());
        let heard = first.iter().map(|sent| node.play([sent])).sum::<usize>();
        assert_eq!(heard, first.len(), "the honest session is heard");
        is_played_in_vain(&mut node, &first, "in the same run");
        for restart in ["after a restart", "after another"] {
            node.restart();
            is_played_in_vain(&mut node, &first, restart);
        }
        let on = sender.record(40, node.question());
        assert_eq!(node.play(&on), on.len(), "the session goes on once it has answered");
        is_played_in_vain(&mut node, &first, "beside the session that goes on");

        let second = Start::new(group, slot(1), &epochs, 200).record(40, node.question());
        assert_eq!(node.play(&second), second.len());
        node.restart();
        for recorded in [&first, &on, &second] {
            is_played_in_vain(&mut node, recorded, "after that and a restart");
        }
        let secret = advance(&mut epochs);
        node.enter(Epoch(1), &secret);
        is_played_in_vain(&mut node, &second, "in the next epoch, where nothing was said yet");
    }
}

/// The recorder plays while the honest sender still speaks and the reader comes and goes.
#[test]
fn while_the_reader_starts_again_and_the_sender_speaks() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut node = Node::new(group, epochs.clone());
    let old = Start::new(group, slot(1), &epochs, 100).record(20, node.question());
    assert_eq!(node.play(&old), old.len());
    let mut sender = Start::new(group, slot(1), &epochs, 200);
    let mut said = Vec::new();
    for index in 0..60 {
        if index % 7 == 0 {
            node.restart();
            said.push(sender.announcement(node.question()));
            assert_eq!(node.play(said.last()), 1);
        }
        said.push(sender.message(Class::ALL[index % 3]));
        assert_eq!(node.play(said.last()), 1, "nothing is lost behind an answer");
        is_played_in_vain(&mut node, &old, "the old one");
        is_played_in_vain(&mut node, &said, "what was just said");
    }
}

#[test]
fn when_the_reader_stops_before_it_accepts() {
    let group = group(Suite::ChaCha20Poly1305);
    let epochs = epochs(group);
    for fate in [Fate::Crash, Fate::Drop] {
        for at in 0..24 {
            let mut node = Node::new(group, epochs.clone());
            let recorded = Start::new(group, slot(1), &epochs, 100).record(24, node.question());
            assert_eq!(node.play(&recorded[..at]), at);
            assert_eq!(node.take(&recorded[at], fate), Ok(false));
            is_played_in_vain(&mut node, &recorded[..at], "what was accepted");
            let again = node.play([&recorded[at]]);
            assert_eq!(again, usize::from(fate == Fate::Drop), "{fate:?} {at}");
            node.restart();
            is_played_in_vain(&mut node, &recorded[..at], "what was accepted, after a restart");
        }
    }
}

/// A recorded session that a reader has never heard begins none: it answers nothing.
#[test]
fn a_session_that_was_never_heard_is_a_recording() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (elsewhere, mut node) =
        (Node::new(group, epochs.clone()), Node::new(group, epochs.clone()));
    node.ask();
    let never_heard = Start::new(group, slot(1), &epochs, 100).record(10, elsewhere.question());
    node.restart();
    assert!(!node.lacks_answers());
    is_played_in_vain(&mut node, &never_heard, "it answers another reader");
    assert!(node.lacks_answers(), "another question is worth asking");
    node.ask();
    assert!(!node.lacks_answers());
    let second = Start::new(group, slot(1), &epochs, 200).record(10, node.question());
    assert_eq!(node.play(&second), second.len());
    is_played_in_vain(&mut node, &never_heard, "older than what was heard");
    let mut other = Start::new(group, slot(1), &epochs, 200).record(3, node.question());
    other.iter_mut().for_each(|sent| sent.sealed.context = SenderContext([7; 8]));
    is_played_in_vain(&mut node, &other, "under a context that it does not have");
}

/// A question counts until 16 others were asked, since an answer may come late.
#[test]
fn an_answer_to_an_earlier_question_counts_for_a_while() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    for later in [0, limits::MAX_QUESTIONS_HELD - 1, limits::MAX_QUESTIONS_HELD] {
        let mut node = Node::new(group, epochs.clone());
        let announced = Start::new(group, slot(1), &epochs, 1).announcement(node.question());
        (0..later).for_each(|_| node.ask());
        let is_heard = node.play([&announced]) == 1;
        assert_eq!(is_heard, later < limits::MAX_QUESTIONS_HELD, "{later}");
    }
}

/// Each question of others is given to the next announcement, once.
#[test]
fn one_announcement_answers_several_readers() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut reader = opener(group, &epochs);
    reader.require_answers();
    reader.ask(ReaderQuestion([9; 8]));
    let mut others = [1, 2, 3].map(|number| sealer(group, slot(number), &epochs));
    let mut hear = |reader: &mut Opener, at: usize, question: u8| {
        let own = Some(ReaderQuestion([question; 8]));
        let questions = AnnouncedQuestions { own, answers: Vec::new() };
        let announced = announcement_with(&mut others[at], 1, questions).announce(reader);
        assert_eq!(announced, Err(Error::Unannounced));
    };
    (0..3).for_each(|at| hear(&mut reader, at, at as u8 + 1));
    hear(&mut reader, 0, 1);
    let answers = [1, 2, 3].map(|byte| ReaderQuestion([byte; 8])).to_vec();
    let own = Some(ReaderQuestion([9; 8]));
    assert_eq!(reader.questions(), AnnouncedQuestions { own, answers });
    hear(&mut reader, 1, 2);
    assert_eq!(reader.questions(), AnnouncedQuestions { own, answers: Vec::new() });
    hear(&mut reader, 1, 7);
    assert_eq!(reader.questions().answers, [ReaderQuestion([7; 8])]);
}

/// A start that is not later: a copied machine with the clock of the first, or an earlier one.
#[test]
fn a_start_that_is_not_later_is_refused() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut reader = opener(group, &epochs);
    introduce(&mut sealer(group, slot(1), &epochs), &mut reader);
    let mut announce = |start: u64, context: u8| {
        reader.allow_trials();
        let context = SenderContext([context; 8]);
        let mut sender = sealer_of(group, slot(1), &epochs, context, 50);
        let announced = announcement(&mut sender, start).announce(&mut reader);
        announced.map(|_| reader.announced(slot(1)) == Some(context))
    };
    assert_eq!(announce(5, 1), Ok(true));
    for start in [5, 4, 0] {
        assert_eq!(announce(start, 2), Err(Error::Replayed), "{start}");
    }
    assert_eq!(announce(6, 3), Ok(true));
    assert_eq!(announce(u64::MAX, 4), Ok(true));
    assert_eq!(announce(u64::MAX, 5), Err(Error::Replayed));
}

/// Messages of one context do not open in the session of another.
#[test]
fn what_was_not_announced_is_refused() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut node = Node::new(group, epochs.clone());
    let question = node.question();
    let (mut first, mut second) =
        (Start::new(group, slot(1), &epochs, 1), Start::new(group, slot(1), &epochs, 2));
    let other_slot = Start::new(group, slot(2), &epochs, 9).record(3, question);
    let early = first.message(Class::Group);
    assert_eq!(node.take(&early, Fate::Accept), Err(Error::Unannounced));
    assert_eq!(node.play([&first.announcement(question), &early]), 1, "it came before");
    for class in [Class::Authenticated, Class::Group, Class::Signed] {
        let unannounced = second.message(class);
        assert_eq!(node.take(&unannounced, Fate::Accept), Err(Error::Unannounced));
    }
    assert_eq!(node.take(&other_slot[1], Fate::Accept), Err(Error::Unannounced));
    assert_eq!(node.play([&second.announcement(question), &second.message(Class::Group)]), 2);
    let closed = first.message(Class::Group);
    assert_eq!(node.take(&closed, Fate::Accept), Err(Error::Unannounced), "the session is closed");
}

#[derive(Debug, Clone)]
enum Step {
    Announce(usize),
    Send(usize, usize),
    /// One of what was sent so far, from the last one on.
    Play(prop::sample::Index, Fate),
    /// All from there on, as many.
    PlayOn(prop::sample::Index, usize),
    /// A frame that a member forges under the start's name, so far ahead.
    Forge(usize, u64),
    Ask,
    Restart,
    Advance,
}

fn step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![5 => Just(Fate::Accept), 1 => Just(Fate::Drop), 1 => Just(Fate::Crash)];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (0..4_usize).prop_map(Step::Announce),
        6 => (0..4_usize, 0..3_usize).prop_map(|(start, class)| Step::Send(start, class)),
        8 => (index(), fate).prop_map(|(at, fate)| Step::Play(at, fate)),
        4 => (index(), 1..20_usize).prop_map(|(at, n)| Step::PlayOn(at, n)),
        1 => (0..4_usize, prop_oneof![0..9_u64, 900..3000_u64]).prop_map(|(start, ahead)| {
            Step::Forge(start, ahead)
        }),
        1 => Just(Step::Ask),
        1 => Just(Step::Restart),
        1 => Just(Step::Advance),
    ]
}

/// Has a reader go through the steps, and plays all that was sent in the end.
fn runs(steps: Vec<Step>) {
    let group = group(Suite::Aes256Gcm);
    let mut epochs = epochs(group);
    let mut node = Node::new(group, epochs.clone());
    let of_start = |epochs: &Epochs| {
        [(1, 100), (1, 200), (2, 150), (1, 300)]
            .map(|(number, start)| Start::new(group, slot(number), epochs, start))
    };
    let (mut starts, mut all) = (of_start(&epochs), Vec::new());
    let (secret, mut forged) = (advance(&mut epochs), BTreeSet::new());
    for step in steps {
        match step {
            Step::Announce(start) => all.push(starts[start].announcement(node.question())),
            Step::Send(start, class) => all.push(starts[start].message(Class::ALL[class])),
            Step::Play(at, fate) if !all.is_empty() => {
                let _ = node.take(at.get(&all), fate);
            }
            Step::PlayOn(at, count) if !all.is_empty() => {
                let at = at.index(all.len());
                node.play(&all[at..(at + count).min(all.len())]);
            }
            // A forger has its own frames taken as often as it likes; the law is about others.
            Step::Forge(start, ahead) => {
                let next = starts[start].next() + ahead;
                let is_new = forged.insert((start, next));
                if is_new {
                    node.forged(&starts[start].forged(next));
                }
            }
            Step::Ask => node.ask(),
            Step::Restart => node.restart(),
            Step::Advance if node.newest() == Epoch(0) => {
                node.enter(Epoch(1), &secret);
                starts = of_start(&epochs);
            }
            Step::Play(..) | Step::PlayOn(..) | Step::Advance => {}
        }
    }
    node.play(&all);
    node.restart();
    is_played_in_vain(&mut node, &all, "in the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Law: in whatever order messages come, are held back and dropped, members forge unsigned
    /// ones, and the reader stops, it accepts no signed one twice. The reader of these tests
    /// asserts it.
    #[test]
    fn in_any_order_with_any_stops(steps in prop::collection::vec(step(), 1..120)) {
        runs(steps);
    }

    /// Law: the same of unsigned frames, as long as nobody forges any.
    #[test]
    fn in_any_order_without_a_forger(steps in prop::collection::vec(step(), 1..120)) {
        let steps = steps.into_iter().filter(|step| !matches!(step, Step::Forge(..)));
        runs(steps.collect());
    }
}
