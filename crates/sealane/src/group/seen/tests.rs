use super::*;

const EPOCH: Epoch = Epoch(3);

fn start(slot: u16, epoch: Epoch, context: u64) -> SenderStart {
    let (slot, context) = (Slot::new(slot).unwrap(), SenderContext(context.to_be_bytes()));
    SenderStart { slot, epoch, context }
}

fn name(is_signed: bool, counter: u64) -> MessageIdentity {
    MessageIdentity { sender: start(1, EPOCH, 5), is_signed, counter }
}

/// A message at an offset; the hash of its frame is that of `frame`.
fn see(
    seen: &mut SeenMessages,
    identity: MessageIdentity,
    frame: u64,
    offset: u64,
) -> DuplicateVerdict {
    let stream: Topic = "a".parse().unwrap();
    seen.see(identity, FrameHash(frame), &stream, HubPosition(7, 1, offset))
}

#[test]
fn a_repeat_is_known_in_any_order_and_gaps_are_counted() {
    for is_signed in [true, false] {
        let mut seen = SeenMessages::new(false);
        let mut see = |counter, offset| see(&mut seen, name(is_signed, counter), counter, offset);
        for (offset, counter) in [5, 3, 4, 9, 7, 8, 0].into_iter().enumerate() {
            assert_eq!(see(counter, offset as u64), DuplicateVerdict::New);
        }
        for counter in [0, 3, 4, 5, 7, 8, 9] {
            assert_eq!(see(counter, 20), DuplicateVerdict::Elsewhere);
        }
        assert_eq!((seen.signed.count() + seen.unsigned.count(), seen.skipped()), (3, 3));
        let six = name(is_signed, 6);
        assert_eq!(super::tests::see(&mut seen, six, 6, 21), DuplicateVerdict::New);
        assert_eq!((seen.signed.count() + seen.unsigned.count(), seen.skipped()), (2, 2));
        assert_eq!(seen.newest(&"a".parse().unwrap()), Some(EPOCH));
    }
}

#[test]
fn a_sender_that_signs_some_messages_skips_none() {
    let mut seen = SeenMessages::new(false);
    for counter in 0..100 {
        assert_eq!(
            see(&mut seen, name(counter % 3 == 0, counter), counter, counter),
            DuplicateVerdict::New
        );
    }
    assert_eq!(seen.skipped(), 0);
}

#[test]
fn an_unsigned_frame_under_the_same_counter_is_another_message() {
    let mut seen = SeenMessages::new(true);
    for (is_signed, offset) in [(false, 1), (true, 2)] {
        assert_eq!(see(&mut seen, name(is_signed, 7), 9, offset), DuplicateVerdict::New);
    }
    for (is_signed, offset) in [(false, 3), (true, 4)] {
        assert_eq!(see(&mut seen, name(is_signed, 7), 9, offset), DuplicateVerdict::Elsewhere);
    }
}

#[test]
fn a_consumers_message_comes_again_from_its_place_only() {
    let mut seen = SeenMessages::new(true);
    assert_eq!(see(&mut seen, name(true, 7), 4, 1), DuplicateVerdict::New);
    assert_eq!(see(&mut seen, name(true, 7), 4, 1), DuplicateVerdict::Again);
    assert_eq!(see(&mut seen, name(true, 7), 4, 2), DuplicateVerdict::Elsewhere);
    for offset in 10..10 + MAX_IN_FLIGHT as u64 + 5 {
        see(&mut seen, name(true, offset), offset, offset);
    }
    let origins = seen.origins.as_ref().unwrap();
    assert_eq!((origins.of.len(), origins.order.len()), (MAX_IN_FLIGHT, MAX_IN_FLIGHT));
    assert_eq!(see(&mut seen, name(true, 7), 4, 1), DuplicateVerdict::Elsewhere, "long ago");
}

#[test]
fn another_unsigned_frame_under_a_name_is_a_conflict_once() {
    let mut seen = SeenMessages::new(false);
    for frame in [1, 2, 3] {
        let expected = if frame == 1 { DuplicateVerdict::New } else { DuplicateVerdict::Conflict };
        assert_eq!(see(&mut seen, name(false, 7), frame, 0), expected);
    }
    for frame in [1, 2, 3] {
        assert_eq!(see(&mut seen, name(false, 7), frame, 0), DuplicateVerdict::Elsewhere);
    }
    assert_eq!(see(&mut seen, name(true, 7), 1, 0), DuplicateVerdict::New);
    assert_eq!(see(&mut seen, name(true, 7), 2, 0), DuplicateVerdict::Elsewhere, "it is signed");
}

/// Behind the memory of frames the second one is refused, and the first one is never shown again.
#[test]
fn the_memory_of_frames_is_bounded() {
    let mut seen = SeenMessages::new(false);
    assert_eq!(see(&mut seen, name(false, 7), 1, 0), DuplicateVerdict::New);
    assert_eq!(see(&mut seen, name(false, 7), 2, 0), DuplicateVerdict::Conflict);
    for counter in 8..MAX_SEEN_TAGS as u64 + 7 {
        assert_eq!(see(&mut seen, name(false, counter), 1, 0), DuplicateVerdict::New);
    }
    assert_eq!(seen.tags.count(), MAX_SEEN_TAGS);
    for frame in [1, 2, 3] {
        assert_eq!(see(&mut seen, name(false, 7), frame, 0), DuplicateVerdict::Elsewhere);
    }
}

#[test]
fn what_had_to_leave_is_shown_as_a_doubt_once_and_then_known_again() {
    for is_signed in [true, false] {
        let mut seen = SeenMessages::new(false);
        for n in 0..2 * MAX_SEEN_RANGES_OF_SLOT as u64 {
            assert_eq!(see(&mut seen, name(is_signed, 2 * n), n, n), DuplicateVerdict::New);
            assert!(seen.signed.count() <= MAX_SEEN_RANGES_OF_SLOT);
            assert!(seen.unsigned.count() <= MAX_SEEN_RANGES_OF_SLOT);
        }
        for counter in [0, 1] {
            for expected in [DuplicateVerdict::Perhaps, DuplicateVerdict::Elsewhere] {
                let identity = name(is_signed, counter);
                assert_eq!(see(&mut seen, identity, counter, 7), expected, "{counter}");
            }
        }
        let newest = 4 * MAX_SEEN_RANGES_OF_SLOT as u64 - 2;
        let identity = name(is_signed, newest);
        assert_eq!(see(&mut seen, identity, newest / 2, 7), DuplicateVerdict::Elsewhere);
    }
}

#[test]
fn a_slot_with_many_starts_forgets_its_own_quiet_ones() {
    let mut seen = SeenMessages::new(false);
    let mut see = |slot, epoch, context, counter| {
        let sender = start(slot, epoch, context);
        let identity = MessageIdentity { sender, is_signed: true, counter };
        super::tests::see(&mut seen, identity, counter, 0)
    };
    assert_eq!(see(2, EPOCH, 0, 0), DuplicateVerdict::New);
    // A start's counters go on behind those of the start before it.
    for context in 0..MAX_SEEN_RANGES_OF_SLOT as u64 + 9 {
        assert_eq!(see(1, EPOCH, context, context), DuplicateVerdict::New);
    }
    assert_eq!(see(1, EPOCH, 3, 3), DuplicateVerdict::Perhaps, "it was let go");
    assert_eq!(see(1, EPOCH, 3, 4), DuplicateVerdict::Perhaps, "and so was all of it");
    assert_eq!(see(1, EPOCH, 1 << 20, 1 << 20), DuplicateVerdict::New, "it is behind all of them");
    assert_eq!(see(1, Epoch(4), 3, 0), DuplicateVerdict::New, "of a later epoch nothing was");
    assert_eq!(see(2, EPOCH, 0, 0), DuplicateVerdict::Elsewhere);
}

/// Law: junk under made-up contexts, in whatever slot, takes nothing from the signed entries of
/// others.
#[test]
fn junk_takes_no_room_of_signed_messages() {
    let mut seen = SeenMessages::new(false);
    for slot in 0..64 {
        let identity =
            MessageIdentity { sender: start(slot, EPOCH, 5), is_signed: true, counter: 9 };
        assert_eq!(see(&mut seen, identity, 1, 0), DuplicateVerdict::New);
    }
    for context in 0..MAX_SEEN_RANGES as u64 + 100 {
        let sender = start((context % 1024) as u16, EPOCH, context);
        // The forger signs in its own slot alone.
        for is_signed in [false, sender.slot.number() == 1023] {
            let identity = MessageIdentity { sender, is_signed, counter: 0 };
            see(&mut seen, identity, context, context);
        }
    }
    assert!(seen.unsigned.count() <= 2 * MAX_SEEN_RANGES, "{}", seen.unsigned.count());
    for slot in 0..64 {
        let sender = start(slot, EPOCH, 5);
        for (counter, expected) in [(9, DuplicateVerdict::Elsewhere), (10, DuplicateVerdict::New)] {
            let identity = MessageIdentity { sender, is_signed: true, counter };
            assert_eq!(see(&mut seen, identity, 1, 7), expected, "{slot}");
        }
    }
}
