use super::*;

pub(crate) const SALT: [u8; 32] = [6; 32];
const SECRET: [u8; 32] = [7; 32];

/// Where a secret is wrapped for a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct At {
    group: u8,
    epoch: u64,
    slot: u16,
    key: u8,
}

const AT: At = At { group: 1, epoch: 2, slot: 3, key: 4 };

pub(crate) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// The secret for two members, of whom the second has the key one higher.
fn wraps() -> Wraps {
    let key = |byte: u8| Zeroizing::new([byte; 32]);
    let keys = [(slot(AT.slot), key(AT.key)), (slot(AT.slot + 1), key(AT.key + 1))];
    let (group, epoch) = (GroupId([AT.group; 32]), Epoch(AT.epoch));
    let parts = Wraps::make(&EpochSecret::new(SECRET), group, epoch, &keys, SALT).unwrap();
    Wraps::join(parts).unwrap()
}

fn unwrapped(wraps: &Wraps, at: At) -> Option<[u8; 32]> {
    let (group, epoch) = (GroupId([at.group; 32]), Epoch(at.epoch));
    let whose = WrapId { group, epoch, slot: slot(at.slot) };
    Some(*wraps.unwrap(whose, &[at.key; 32])?.expose())
}

#[test]
fn a_secret_is_unwrapped_by_its_member_in_its_place_only() {
    let wraps = wraps();
    assert_eq!(unwrapped(&wraps, AT), Some(SECRET));
    let second = At { slot: AT.slot + 1, key: AT.key + 1, ..AT };
    assert_eq!(unwrapped(&wraps, second), Some(SECRET));
    for (what, at) in [
        ("another key", At { key: 9, ..AT }),
        ("the other's key", At { key: AT.key + 1, ..AT }),
        ("the other's slot", At { slot: AT.slot + 1, ..AT }),
        ("a slot without a wrap", At { slot: 9, ..AT }),
        ("another epoch", At { epoch: AT.epoch + 1, ..AT }),
        ("another group", At { group: 9, ..AT }),
    ] {
        assert_eq!(unwrapped(&wraps, at), None, "{what}");
    }
    let salted = Wraps { salt: [9; 32], ..wraps.clone() };
    assert_eq!(unwrapped(&salted, AT), None, "another salt");
}

#[test]
fn a_wrap_is_worth_nothing_in_another_slot_or_changed() {
    let whole = wraps();
    let (_, sealed) = whole.wraps[0];
    let moved = Wraps { wraps: vec![(slot(9), sealed)], ..whole.clone() };
    assert_eq!(unwrapped(&moved, At { slot: 9, ..AT }), None);
    for at in 0..WRAPPED_BYTES {
        let mut changed = whole.clone();
        changed.wraps[0].1[at] ^= 1;
        assert_eq!(unwrapped(&changed, AT), None, "{at}");
    }
}

#[test]
fn wraps_of_other_keys_places_and_salts_differ_all_over() {
    let make = |at: At, salt: [u8; 32]| {
        let keys = [(slot(at.slot), Zeroizing::new([at.key; 32]))];
        let (group, epoch) = (GroupId([at.group; 32]), Epoch(at.epoch));
        Wraps::make(&EpochSecret::new(SECRET), group, epoch, &keys, salt).unwrap()[0].wraps[0].1
    };
    let first = make(AT, SALT);
    let others = [
        make(At { key: 9, ..AT }, SALT),
        make(At { slot: 9, ..AT }, SALT),
        make(At { epoch: 9, ..AT }, SALT),
        make(At { group: 9, ..AT }, SALT),
        make(AT, [9; 32]),
    ];
    // The same key twice would show in the ciphertext, which comes before the tag.
    for other in others {
        assert_ne!(first[..32], other[..32]);
    }
}
