//! The window against a model: the set of all that was accepted.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// What the window must say.
fn expected(accepted: &BTreeSet<u64>, counter: u64) -> Result<(), Error> {
    match accepted.last() {
        Some(last) if last + 1 > counter + WINDOW_BITS => Err(Error::Stale),
        _ if accepted.contains(&counter) => Err(Error::Replayed),
        _ => Ok(()),
    }
}

fn agrees(counters: impl IntoIterator<Item = u64>) {
    let (mut window, mut accepted) = (Window::new(Epoch(3)), BTreeSet::new());
    for counter in counters {
        let verdict = window.check(counter);
        assert_eq!(verdict, expected(&accepted, counter), "{counter} in {accepted:?}");
        if verdict.is_ok() {
            window.accept(counter);
            accepted.insert(counter);
            assert_eq!(window.check(counter), Err(Error::Replayed));
        }
    }
    let state = WindowState { slot: Slot::new(5).unwrap(), window };
    assert_eq!(WindowState::from_bytes(&state.to_bytes()), Ok(state));
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

#[test]
fn the_state_of_a_sender_is_small() {
    const { assert!(WindowState::BYTES <= 160 && size_of::<Window>() <= 160) };
}

#[test]
fn a_damaged_state_is_refused() {
    let state = WindowState { slot: Slot::new(1023).unwrap(), window: Window::new(Epoch(9)) };
    let bytes = state.to_bytes();
    assert_eq!(WindowState::from_bytes(&bytes[1..]), Err(Error::Malformed));
    assert_eq!(WindowState::from_bytes(&[&bytes[..], &[0]].concat()), Err(Error::Malformed));
    for (at, value) in [(0, 2), (1, 4), (11, 1)] {
        let mut bytes = bytes;
        bytes[at] = value;
        assert_eq!(WindowState::from_bytes(&bytes), Err(Error::Malformed), "{at}");
    }
}
