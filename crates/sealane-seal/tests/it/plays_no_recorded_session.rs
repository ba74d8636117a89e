//! An attacker that has recorded a session, announcement and all, plays it in vain: before, while
//! and after its reader starts again.

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
        let first = Start::new(group, slot(1), &epochs, 100).record(40);
        let heard = first.iter().map(|sent| node.play([sent])).sum::<usize>();
        assert_eq!(heard, first.len(), "the honest session is heard");
        is_played_in_vain(&mut node, &first, "in the same run");
        node.restart();
        is_played_in_vain(&mut node, &first, "after a restart");
        node.restart();
        is_played_in_vain(&mut node, &first, "after another");

        let second = Start::new(group, slot(1), &epochs, 200).record(40);
        assert_eq!(node.play(&second), second.len());
        is_played_in_vain(&mut node, &first, "beside a later session");
        is_played_in_vain(&mut node, &second, "the later one as well");
        node.restart();
        is_played_in_vain(&mut node, &first, "after that and a restart");
        is_played_in_vain(&mut node, &second, "and the later one");

        let secret = advance(&mut epochs);
        node.enter(Epoch(1), &secret);
        is_played_in_vain(&mut node, &second, "in the next epoch, where nothing was said yet");
        node.restart();
        is_played_in_vain(&mut node, &second, "and after a restart");
    }
}

/// The recorder plays while the honest sender still speaks and the reader comes and goes.
#[test]
fn while_the_reader_starts_again_and_the_sender_speaks() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut node = Node::new(group, epochs.clone());
    let old = Start::new(group, slot(1), &epochs, 100).record(20);
    assert_eq!(node.play(&old), old.len());
    let new = Start::new(group, slot(1), &epochs, 200).record(60);
    let mut heard = 0;
    for (index, sent) in new.iter().enumerate() {
        node.now_ms += 1000;
        heard += usize::from(node.take(sent, Fate::Accept).is_ok());
        is_played_in_vain(&mut node, &old, "the old one");
        is_played_in_vain(&mut node, &new[..=index], "what was just said");
        if index % 7 == 0 {
            node.restart();
        }
    }
    assert_eq!(heard, new.len(), "a slow sender loses nothing by restarts");
}

#[test]
fn when_the_reader_stops_between_storing_and_accepting() {
    let group = group(Suite::ChaCha20Poly1305);
    let epochs = epochs(group);
    let recorded = Start::new(group, slot(1), &epochs, 100).record(24);
    for fate in [Fate::Crash, Fate::Drop, Fate::CrashEarly] {
        for at in 0..recorded.len() {
            let mut node = Node::new(group, epochs.clone());
            for sent in &recorded[..at] {
                node.now_ms += 100;
                node.take(sent, Fate::Accept).unwrap();
            }
            assert_eq!(node.take(&recorded[at], fate), Ok(false));
            is_played_in_vain(&mut node, &recorded[..at], "what was accepted");
            let again = node.play([&recorded[at]]);
            match fate {
                Fate::Crash => assert_eq!(again, 0, "what was stored counts as accepted: {at}"),
                Fate::Drop => assert_eq!(again, 1, "what was dropped may come again: {at}"),
                _ => {}
            }
            node.restart();
            is_played_in_vain(&mut node, &recorded[..at], "what was accepted, after a restart");
        }
    }
}

/// A recorded session that a reader has never heard is taken at most once, and closed for good by
/// the first later one.
#[test]
fn a_session_that_was_never_heard_is_closed_by_a_later_one() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let [first, second] =
        [100, 200].map(|start| Start::new(group, slot(1), &epochs, start).record(10));
    let mut node = Node::new(group, epochs.clone());
    assert_eq!(node.play(&second), second.len());
    is_played_in_vain(&mut node, &first, "older than what was heard");
    node.restart();
    is_played_in_vain(&mut node, &first, "and after a restart");
    let same_start = Start::new(group, slot(1), &epochs, 200);
    let mut other = same_start.record(3);
    other.iter_mut().for_each(|sent| sent.sealed.context = SenderContext([7; 8]));
    is_played_in_vain(&mut node, &other, "under a context that it does not have");
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
    let (mut first, mut second) =
        (Start::new(group, slot(1), &epochs, 1), Start::new(group, slot(1), &epochs, 2));
    let other_slot = Start::new(group, slot(2), &epochs, 9).record(3);
    let early = first.message(Class::Group);
    assert_eq!(node.take(&early, Fate::Accept), Err(Error::Unannounced));
    assert_eq!(node.play([&first.announcement(), &early]), 2, "late, and in the window");
    for class in [Class::Authenticated, Class::Group, Class::Signed] {
        let unannounced = second.message(class);
        assert_eq!(node.take(&unannounced, Fate::Accept), Err(Error::Unannounced));
    }
    assert_eq!(node.take(&other_slot[1], Fate::Accept), Err(Error::Unannounced));
    assert_eq!(node.play([&second.announcement(), &second.message(Class::Group)]), 2);
    let closed = first.message(Class::Group);
    assert_eq!(node.take(&closed, Fate::Accept), Err(Error::Unannounced), "the session is closed");
}

/// Sessions of two slots in two epochs, in the order in which they were sent.
fn world(group: Group) -> (Epochs, EpochSecret, Vec<Sent>) {
    let mut epochs = epochs(group);
    let early = epochs.clone();
    let mut all = Start::new(group, slot(1), &early, 100).record(12);
    all.extend(Start::new(group, slot(2), &early, 150).record(6));
    all.extend(Start::new(group, slot(1), &early, 200).record(12));
    let secret = advance(&mut epochs);
    // The same starts go on in the next epoch, where their counters begin where they like.
    all.extend(Start::new(group, slot(1), &epochs, 200).record(8));
    all.extend(Start::new(group, slot(1), &epochs, 300).record(8));
    (early, secret, all)
}

#[derive(Debug, Clone)]
enum Step {
    Play(prop::sample::Index, Fate),
    /// All from there on, as many.
    PlayOn(prop::sample::Index, usize),
    Restart,
    Advance,
}

fn step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![
        5 => Just(Fate::Accept), 1 => Just(Fate::Drop),
        1 => Just(Fate::Crash), 1 => Just(Fate::CrashEarly),
    ];
    prop_oneof![
        8 => (any::<prop::sample::Index>(), fate).prop_map(|(at, fate)| Step::Play(at, fate)),
        4 => (any::<prop::sample::Index>(), 1..20_usize).prop_map(|(at, n)| Step::PlayOn(at, n)),
        1 => Just(Step::Restart),
        1 => Just(Step::Advance),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Law: in whatever order messages come, are dropped, and the reader stops, it accepts none
    /// twice. The reader of these tests asserts it.
    #[test]
    fn in_any_order_with_any_stops(
        steps in prop::collection::vec((step(), 0..1500_u64), 1..60),
    ) {
        let (early, secret, all) = world(group(Suite::Aes256Gcm));
        let mut node = Node::new(group(Suite::Aes256Gcm), early);
        for (step, passed_ms) in steps {
            node.now_ms += passed_ms;
            match step {
                Step::Play(at, fate) => {
                    let _ = node.take(at.get(&all), fate);
                }
                Step::PlayOn(at, count) => {
                    let at = at.index(all.len());
                    node.play(&all[at..(at + count).min(all.len())]);
                }
                Step::Restart => node.restart(),
                Step::Advance => node.enter(Epoch(1), &secret),
            }
        }
        node.play(&all);
        node.restart();
        node.play(&all);
        is_played_in_vain(&mut node, &all, "in the end");
    }
}
