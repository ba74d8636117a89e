//! The window against a model: the set of all that was accepted.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The answer that the window must give.
fn expected(accepted: &BTreeSet<u64>, counter: u64) -> Result<(), Error> {
    match accepted.last() {
        Some(last) if last + 1 > counter + WINDOW_BITS => Err(Error::Stale),
        _ if accepted.contains(&counter) => Err(Error::Replayed),
        _ => Ok(()),
    }
}

fn agrees(counters: impl IntoIterator<Item = u64>) {
    let (mut window, mut accepted) = (ReplayWindow::new(Epoch(3)), BTreeSet::new());
    for counter in counters {
        let verdict = window.check(counter);
        assert_eq!(verdict, expected(&accepted, counter), "{counter} in {accepted:?}");
        if verdict.is_ok() {
            window.accept(counter);
            accepted.insert(counter);
            assert_eq!(window.check(counter), Err(Error::Replayed));
        }
    }
}

#[test]
fn the_edges_agree_with_the_model() {
    for start in [0, 1, 1023, 1024, 5000] {
        for jump in [1, 2, 63, 64, 65, 1022, 1023, 1024, 1025, 1026, 4096, 1 << 39] {
            let back = [0, 1, 2, 1022, 1023, 1024, 1025, 2048];
            let top: u64 = start + jump;
            agrees([start, top].into_iter().chain(back.map(|back| top.saturating_sub(back))));
        }
    }
}

fn step() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 0..1200_u64, 0..5000_u64]
}

proptest! {
    #[test]
    fn any_order_agrees_with_the_model(
        steps in prop::collection::vec((any::<bool>(), step()), 1..400),
    ) {
        let mut at = 2000_u64;
        agrees(steps.into_iter().map(|(is_forward, step)| {
            if is_forward { at += step; at } else { at.saturating_sub(step) }
        }));
    }
}

/// A restart leaves of a window its end: no counter below the end is taken, and all from there on
/// are.
#[test]
fn a_closed_window_takes_nothing_below_its_end() {
    for next in [0, 1, 63, 64, 1023, 1024, 1025, 5000, 1 << 39] {
        let closed = ReplayWindow::closed_below(Epoch(3), next);
        for back in (1..=next.min(3000)).filter(|back| *back < 70 || back % 97 == 0) {
            let expected = if back > WINDOW_BITS { Error::Stale } else { Error::Replayed };
            assert_eq!(closed.check(next - back), Err(expected), "{back} below {next}");
        }
        for ahead in [0, 1, 63, 64, 1023, 1024, 1025, 4096] {
            let mut window = closed;
            window.accept(next + ahead);
            let least = next.max((next + ahead + 1).saturating_sub(WINDOW_BITS));
            (least..next + ahead).for_each(|skipped| assert_eq!(window.check(skipped), Ok(())));
            assert!((next.saturating_sub(9)..next).all(|below| window.check(below).is_err()));
        }
    }
}

#[test]
fn what_is_kept_of_a_sender_is_small() {
    const {
        assert!(
            size_of::<ReplayWindow>() <= 160 && size_of::<crate::session::SenderSession>() <= 208
        )
    };
}
