//! The stored state of a session, and when it is stored.

use super::*;

const CONTEXT: SenderContext = SenderContext(*b"start 01");
const EPOCH: Epoch = Epoch(3);

fn state() -> SessionState {
    let (slot, epoch) = (Slot::new(0x0123).unwrap(), Epoch(0x0405));
    SessionState { slot, epoch, context: CONTEXT, start: 0x0607, ceiling: 0x0809 }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let bytes = state().to_bytes();
    assert_eq!(bytes.len(), 35);
    assert_eq!(bytes[..11], [1, 1, 0x23, 0, 0, 0, 0, 0, 0, 4, 5]);
    assert_eq!(&bytes[11..19], b"start 01");
    assert_eq!(bytes[19..], [0, 0, 0, 0, 0, 0, 6, 7, 0, 0, 0, 0, 0, 0, 8, 9]);
    assert_eq!(SessionState::from_bytes(&bytes), Ok(state()));
}

#[test]
fn a_damaged_state_is_refused() {
    let bytes = state().to_bytes();
    assert_eq!(SessionState::from_bytes(&bytes[1..]), Err(Error::Malformed));
    assert_eq!(SessionState::from_bytes(&[&bytes[..], &[0]].concat()), Err(Error::Malformed));
    for (at, value) in [(0, 0), (0, 2), (1, 4), (27, 1)] {
        let mut bytes = bytes;
        bytes[at] = value;
        assert_eq!(SessionState::from_bytes(&bytes), Err(Error::Malformed), "{at}");
    }
    let mut last = SessionState { ceiling: MAX_COUNTER + MAX_CEILING_BLOCK, ..state() };
    assert_eq!(SessionState::from_bytes(&last.to_bytes()), Ok(last));
    last.ceiling += 1;
    assert_eq!(SessionState::from_bytes(&last.to_bytes()), Err(Error::Malformed));
}

/// Accepts `counter` as a reader does; gives the ceiling that it stored before.
fn take(session: &mut SenderSession, epoch: Epoch, counter: u64, now_ms: u64) -> Option<u64> {
    let raise = session.raise(epoch, counter, now_ms);
    session.accept(epoch, counter, raise);
    raise.map(|raise| raise.ceiling)
}

/// A session of which 600 messages came at once.
fn fast() -> SenderSession {
    let mut session = SenderSession::new(CONTEXT, 1, EPOCH);
    for counter in 0..600 {
        take(&mut session, EPOCH, counter, 9000);
    }
    session
}

#[test]
fn a_block_doubles_halves_and_begins_again() {
    let mut session = SenderSession::new(CONTEXT, 1, EPOCH);
    let mut counter = 0;
    // How long each block lasts, and how large the next one is.
    let blocks = [
        (0, 1),
        (499, 2),
        (0, 4),
        (500, 2),
        (499, 4),
        (499, 8),
        (999, 4),
        (1000, 1),
        (999, 1),
        (499, 2),
        (499, 4),
        (100_000, 1),
    ];
    let mut now_ms = 1_000_000;
    for (passed_ms, block) in blocks {
        now_ms += passed_ms;
        let ceiling = take(&mut session, EPOCH, counter, now_ms);
        assert_eq!(ceiling, Some(counter + block), "after {passed_ms} ms");
        for below in counter + 1..counter + block {
            assert_eq!(take(&mut session, EPOCH, below, now_ms), None, "below the ceiling");
        }
        counter += block;
    }
    for _ in 0..16 {
        let ceiling = take(&mut session, EPOCH, counter, now_ms).unwrap();
        assert!(ceiling - counter <= MAX_CEILING_BLOCK);
        counter = ceiling;
    }
    assert_eq!(take(&mut session, EPOCH, counter, now_ms), Some(counter + MAX_CEILING_BLOCK));
}

#[test]
fn a_sender_that_became_slower_lowers_its_ceiling() {
    let mut session = fast();
    let high = session.ceiling;
    assert!(high > 1000, "{high}");
    assert_eq!(session.raise(EPOCH, 700, 9999), None, "not yet");
    assert_eq!(take(&mut session, EPOCH, 700, 10_000), Some(701));
    assert_eq!(session.ceiling, 701);
    assert_eq!(take(&mut session, EPOCH, 650, 20_000), None, "it lies as low as it can");
    assert_eq!(session.ceiling, 701, "never below what was accepted");
}

/// A lower ceiling that was stored and never accepted must not leave a higher one in memory: what
/// lies between the two would be accepted, and accepted again after a restart.
#[test]
fn a_lower_ceiling_counts_before_its_message_is_accepted() {
    let mut session = fast();
    let high = session.ceiling;
    let raise = session.raise(EPOCH, 600, 20_000).unwrap();
    assert_eq!(raise.ceiling, 601);
    session.lower(EPOCH, raise.ceiling);
    assert!(session.raise(EPOCH, high - 1, 20_001).is_some(), "what is stored does not cover it");
    session.lower(Epoch(4), 0);
    assert_eq!(session.ceiling, 601, "that of another epoch");
}

#[test]
fn a_later_epoch_begins_anew() {
    let mut session = fast();
    let raise = session.raise(Epoch(4), 5, 9000).unwrap();
    assert!(raise.ceiling > 5 && raise.ceiling <= 5 + MAX_CEILING_BLOCK);
    session.accept(Epoch(4), 5, Some(raise));
    assert_eq!((session.window.epoch(), session.ceiling), (Epoch(4), raise.ceiling));
    assert_eq!(session.window.check(4), Ok(()));
}

/// A ceiling that is stored ahead is at rest while messages come. If a lower ceiling is stored
/// meanwhile, the ceiling that was asked for must not count. It does not matter which of the two
/// was written last.
#[test]
fn a_ceiling_that_is_stored_ahead_is_void_once_another_one_is() {
    let mut session = fast();
    let (before, mut counter) = (session.ceiling, 600);
    let asked = loop {
        take(&mut session, EPOCH, counter, 9001);
        counter += 1;
        if let Some(ceiling) = session.ask_ahead(9001) {
            break ceiling;
        }
    };
    assert!(asked > before && session.ceiling == before, "{asked}");
    assert_eq!(session.ask_ahead(9001), None, "it is asked for once");
    let (mut stored, mut other_epoch) = (session, session);
    stored.take_ahead(EPOCH, asked);
    assert_eq!(stored.ceiling, asked);
    other_epoch.take_ahead(Epoch(4), asked);
    assert_eq!(other_epoch.ceiling, before);
    session.lower(EPOCH, counter + 1);
    session.take_ahead(EPOCH, asked);
    assert_eq!(session.ceiling, counter + 1);
}
