//! A reader that starts again accepts nothing twice, refuses little, and writes little for it.

use crate::shared::node::{Fate, Node, Sent, Start};
use crate::shared::world::*;
use proptest::prelude::*;
use sealane_seal::*;

const C: Class = Class::Group;

/// A sender, and a reader that has heard it announce itself.
fn met() -> (Start, Node) {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut node) =
        (Start::new(group, slot(1), &epochs, 1), Node::new(group, epochs.clone()));
    node.take(&sender.announcement(), Fate::Accept).unwrap();
    (sender, node)
}

/// How many of the messages that come next are refused, until one is accepted.
fn refused(sender: &mut Start, node: &mut Node) -> u64 {
    let most = 2 * limits::MAX_CEILING_BLOCK;
    let refused = (0..most).take_while(|_| node.take(&sender.message(C), Fate::Accept).is_err());
    refused.count() as u64
}

#[test]
fn a_fast_sender_is_stored_seldom_and_loses_at_most_a_block() {
    let (mut sender, mut node) = met();
    for _ in 0..40_000 {
        node.take(&sender.message(C), Fate::Accept).unwrap();
    }
    assert!(node.stored <= 20, "{} times for 40,000 messages", node.stored);
    node.restart();
    let lost = refused(&mut sender, &mut node);
    assert!(lost <= limits::MAX_CEILING_BLOCK, "{lost}");
    assert!(lost > 0, "the ceiling lies ahead");
    node.restart();
    assert!(refused(&mut sender, &mut node) <= 1, "a second restart begins small again");
}

/// Of a sender that keeps its rate, nothing has to be stored for a message that waits.
#[test]
fn a_sender_that_keeps_its_rate_waits_for_no_disk() {
    for (each_ms, slowness) in [(1, 50), (10, 5), (100, 1), (400, 0)] {
        let (mut sender, mut node) = met();
        node.slowness = slowness;
        for index in 0..3000 {
            node.now_ms += each_ms;
            let stored = node.stored;
            node.take(&sender.message(C), Fate::Accept).unwrap();
            let is_settled = index > 1000;
            assert!(!is_settled || node.stored == stored, "message {index}, each {each_ms} ms");
        }
        assert!(node.asked > 3, "{}", node.asked);
        let (lost, rate) = (node.ceiling(slot(1)) - 3001, 1000 / each_ms);
        assert!(lost <= rate, "{lost} of {rate} a second");
    }
}

#[test]
fn a_slow_sender_loses_nothing() {
    let (mut sender, mut node) = met();
    for _ in 0..20 {
        node.now_ms += 1000;
        node.take(&sender.message(C), Fate::Accept).unwrap();
        node.restart();
        assert_eq!(node.play([&sender.message(C)]), 1);
    }
}

/// The state after a burst does not count against the slow messages after it.
#[test]
fn a_sender_that_became_slow_loses_nothing() {
    let (mut sender, mut node) = met();
    for _ in 0..700 {
        node.take(&sender.message(C), Fate::Accept).unwrap();
    }
    assert!(node.ceiling(slot(1)) > 1000);
    node.now_ms += 60_000;
    node.take(&sender.message(C), Fate::Accept).unwrap();
    node.restart();
    assert_eq!(refused(&mut sender, &mut node), 0);
}

/// As before, but the message that lowers the ceiling is not accepted. What comes next and lies
/// right below the higher ceiling, which is no longer stored, must not be accepted under it.
#[test]
fn a_lower_ceiling_counts_whether_its_message_is_accepted_or_not() {
    for is_announcement in [false, true] {
        let (mut sender, mut node) = met();
        for _ in 0..700 {
            node.take(&sender.message(C), Fate::Accept).unwrap();
        }
        let (high, slot) = (node.ceiling(slot(1)), slot(1));
        node.now_ms += 60_000;
        let lowers = if is_announcement { sender.announcement() } else { sender.message(C) };
        node.take(&lowers, Fate::Drop).unwrap();
        assert!(node.ceiling(slot) < high);
        let mut last = sender.message(C);
        while last.sealed.header().counter < high - 1 {
            last = sender.message(C);
        }
        assert_eq!(node.play([&last]), 1);
        node.restart();
        assert_eq!(node.play([&last]), 0, "none is accepted twice");
    }
}

/// One message, and how long after the one before it.
type Come = (u64, Fate);

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        50 => Just(Fate::Accept), 2 => Just(Fate::Drop),
        1 => Just(Fate::Crash), 1 => Just(Fate::CrashEarly),
    ]
}

/// Stretches of messages at a rate of their own, from a thousand a second to one in two seconds.
fn rates() -> impl Strategy<Value = Vec<Come>> {
    let stretch = (0..12_u32, 1..60_usize).prop_flat_map(|(rate, count)| {
        let passed_ms = 0..=2_u64.pow(rate);
        prop::collection::vec((passed_ms, fates()), count)
    });
    prop::collection::vec(stretch, 1..8).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Law: of a sender that keeps its rate, a restart refuses no more than a second's messages.
    #[test]
    fn at_most_a_second_is_lost(
        rate in 1..1500_u64,
        heard in 0..800_u64,
        slowness in 0..40_usize,
    ) {
        let (mut sender, mut node) = met();
        node.slowness = slowness;
        let started_ms = node.now_ms;
        for index in 1..=heard {
            node.now_ms = started_ms + index * 1000 / rate;
            node.take(&sender.message(C), Fate::Accept).unwrap();
        }
        node.restart();
        let lost = refused(&mut sender, &mut node);
        prop_assert!(lost <= rate && lost <= limits::MAX_CEILING_BLOCK, "{} at {}/s", lost, rate);
    }

    /// Law: whatever the rates, no message is accepted twice, and a ceiling lies no farther ahead
    /// than twice what came since the one before: not at all, if that was a second before.
    #[test]
    fn no_message_comes_twice_whatever_the_rates(
        comes in rates(),
        announces in 0..50_usize,
        slowness in 0..40_usize,
    ) {
        let (mut sender, mut node) = met();
        node.slowness = slowness;
        let mut sent: Vec<Sent> = vec![];
        let mut last = (node.now_ms, 0);
        for (index, (passed_ms, fate)) in comes.into_iter().enumerate() {
            node.now_ms += passed_ms;
            let is_announcement = index % 50 == announces;
            let message =
                if is_announcement { sender.announcement() } else { sender.message(C) };
            let counter = message.sealed.header().counter;
            let (stored, asked) = (node.stored, node.asked);
            let is_accepted = node.take(&message, fate) == Ok(true);
            sent.push(message);
            if node.stored > stored {
                let ahead = node.ceiling(slot(1)) - counter - 1;
                let is_recent = node.now_ms - last.0 < 1000;
                prop_assert!(ahead <= limits::MAX_CEILING_BLOCK);
                prop_assert!(ahead == 0 || is_recent && ahead < 2 * (counter - last.1));
                last = if is_accepted { (node.now_ms, counter) } else { last };
            }
            if node.asked > asked {
                last = (node.now_ms, counter);
            }
            if index % 16 == 0 {
                let (stored, asked) = (node.stored, node.asked);
                node.play(&sent);
                let is_raised = node.stored > stored || node.asked > asked;
                last.0 = if is_raised { node.now_ms } else { last.0 };
            }
        }
        node.play(&sent);
        node.restart();
        prop_assert_eq!(node.play(&sent), 0, "all that came lies below the ceiling");
        let lost = refused(&mut sender, &mut node);
        prop_assert!(lost <= limits::MAX_CEILING_BLOCK, "{}", lost);
    }
}
