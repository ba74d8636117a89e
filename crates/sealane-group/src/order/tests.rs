use super::*;

pub(crate) const SALT: [u8; 32] = [6; 32];
const SECRET: [u8; 32] = [7; 32];

/// Where a secret is wrapped for a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WrapPosition {
    group: u8,
    epoch: u64,
    slot: u16,
    key: u8,
}

const AT: WrapPosition = WrapPosition { group: 1, epoch: 2, slot: 3, key: 4 };

pub(crate) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// The secret for two members, of whom the second has the key one higher.
fn wraps() -> SecretWraps {
    let key = |byte: u8| Zeroizing::new([byte; 32]);
    let keys = [(slot(AT.slot), key(AT.key)), (slot(AT.slot + 1), key(AT.key + 1))];
    let (group, epoch) = (GroupId([AT.group; 32]), Epoch(AT.epoch));
    let parts = SecretWraps::make(&EpochSecret::new(SECRET), group, epoch, &keys, SALT).unwrap();
    SecretWraps::join(parts).unwrap()
}

fn unwrapped(wraps: &SecretWraps, at: WrapPosition) -> Option<[u8; 32]> {
    let (group, epoch) = (GroupId([at.group; 32]), Epoch(at.epoch));
    let whose = WrapId { group, epoch, slot: slot(at.slot) };
    Some(*wraps.unwrap(whose, &[at.key; 32])?.expose())
}

#[test]
fn a_secret_is_unwrapped_by_its_member_in_its_place_only() {
    let wraps = wraps();
    assert_eq!(unwrapped(&wraps, AT), Some(SECRET));
    let second = WrapPosition { slot: AT.slot + 1, key: AT.key + 1, ..AT };
    assert_eq!(unwrapped(&wraps, second), Some(SECRET));
    for (what, at) in [
        ("another key", WrapPosition { key: 9, ..AT }),
        ("the other's key", WrapPosition { key: AT.key + 1, ..AT }),
        ("the other's slot", WrapPosition { slot: AT.slot + 1, ..AT }),
        ("a slot without a wrap", WrapPosition { slot: 9, ..AT }),
        ("another epoch", WrapPosition { epoch: AT.epoch + 1, ..AT }),
        ("another group", WrapPosition { group: 9, ..AT }),
    ] {
        assert_eq!(unwrapped(&wraps, at), None, "{what}");
    }
    let salted = SecretWraps { salt: [9; 32], ..wraps.clone() };
    assert_eq!(unwrapped(&salted, AT), None, "another salt");
}

#[test]
fn a_wrap_is_worth_nothing_in_another_slot_or_changed() {
    let whole = wraps();
    let (_, sealed) = whole.wraps[0];
    let moved = SecretWraps { wraps: vec![(slot(9), sealed)], ..whole.clone() };
    assert_eq!(unwrapped(&moved, WrapPosition { slot: 9, ..AT }), None);
    for at in 0..WRAPPED_BYTES {
        let mut changed = whole.clone();
        changed.wraps[0].1[at] ^= 1;
        assert_eq!(unwrapped(&changed, AT), None, "{at}");
    }
}

#[test]
fn wraps_of_other_keys_places_and_salts_differ_all_over() {
    let make = |at: WrapPosition, salt: [u8; 32]| {
        let keys = [(slot(at.slot), Zeroizing::new([at.key; 32]))];
        let (group, epoch) = (GroupId([at.group; 32]), Epoch(at.epoch));
        SecretWraps::make(&EpochSecret::new(SECRET), group, epoch, &keys, salt).unwrap()[0].wraps[0]
            .1
    };
    let first = make(AT, SALT);
    let others = [
        make(WrapPosition { key: 9, ..AT }, SALT),
        make(WrapPosition { slot: 9, ..AT }, SALT),
        make(WrapPosition { epoch: 9, ..AT }, SALT),
        make(WrapPosition { group: 9, ..AT }, SALT),
        make(AT, [9; 32]),
    ];
    // The same key twice would show in the ciphertext, which comes before the tag.
    for other in others {
        assert_ne!(first[..32], other[..32]);
    }
}

/// One order of each kind, as the vectors have them.
pub(crate) fn one_of_each(
    certificate: &[u8],
    rekey: RekeyOrder,
) -> Vec<(&'static str, GroupOrder)> {
    let mark = |name: &str, generation, next| RemovalMark {
        stream: sealane_seal::Binding::stream(name),
        generation,
        next,
    };
    let hash = *blake3::hash(certificate).as_bytes();
    let epoch = Epoch(0x0102_0304_0506);
    vec![
        ("certify", GroupOrder::Certify(certificate.to_vec())),
        ("advance", GroupOrder::Advance(epoch)),
        ("admit", GroupOrder::Admit { slot: slot(1), certificate: hash, replaces: None }),
        (
            "admit in place of another",
            GroupOrder::Admit { slot: slot(1000), certificate: hash, replaces: Some(slot(5)) },
        ),
        ("re-key", GroupOrder::Rekey(rekey)),
        (
            "mark",
            GroupOrder::Mark { epoch, marks: vec![mark("a", 1, 2), mark("b/c", u64::MAX, 3)] },
        ),
        ("beater", GroupOrder::Beater(Some([9; 32]))),
        ("no beater", GroupOrder::Beater(None)),
    ]
}

fn rekey() -> RekeyOrder {
    RekeyOrder { epoch: Epoch(AT.epoch), removed: vec![slot(7), slot(9)], wraps: wraps() }
}

#[test]
fn every_order_reads_back_and_no_other_length_does() {
    for (what, order) in one_of_each(b"a certificate", rekey()) {
        let bytes = order.to_bytes(77);
        let read = GroupOrder::from_bytes(order.data_type(), &bytes).unwrap();
        assert_eq!(read, NumberedOrder { number: 77, order: order.clone() }, "{what}");
        if matches!(order, GroupOrder::Certify(_)) {
            // It is as long as its frame; what it says is read with its signatures.
            continue;
        }
        for end in 0..bytes.len() {
            assert!(
                GroupOrder::from_bytes(order.data_type(), &bytes[..end]).is_err(),
                "{what} {end}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(GroupOrder::from_bytes(order.data_type(), &longer).is_err(), "{what}");
    }
    for data_type in [0, 2, 3, 9, u16::MAX] {
        assert!(GroupOrder::from_bytes(data_type, &GroupOrder::Beater(None).to_bytes(0)).is_err());
    }
}

#[test]
fn wraps_that_contradict_themselves_are_refused() {
    let read = |change: fn(&mut RekeyOrder)| {
        let mut rekey = rekey();
        change(&mut rekey);
        let order = GroupOrder::Rekey(rekey);
        GroupOrder::from_bytes(REKEY, &order.to_bytes(0)).is_ok()
    };
    assert!(read(|_| {}));
    assert!(read(|rekey| rekey.wraps.wraps.clear()));
    assert!(!read(|rekey| rekey.wraps.wraps.swap(0, 1)), "not in order");
    assert!(!read(|rekey| rekey.wraps.wraps[1] = rekey.wraps.wraps[0]), "one slot twice");
    assert!(!read(|rekey| rekey.wraps.first = slot(AT.slot + 1)), "a wrap before the first");
    assert!(!read(|rekey| rekey.wraps.last = slot(AT.slot)), "a wrap behind the last");
    let many = |count: u16| {
        let wraps = (0..count).map(|number| (slot(number), [0; WRAPPED_BYTES])).collect();
        let (first, last, salt) = (slot(0), slot(1023), SALT);
        let wraps = SecretWraps { first, last, salt, wraps };
        let order = GroupOrder::Rekey(RekeyOrder { epoch: Epoch(1), removed: Vec::new(), wraps });
        GroupOrder::from_bytes(REKEY, &order.to_bytes(0)).is_ok()
    };
    assert!(many(1024));
}

/// A member of any slot finds itself covered by one part, and only by one.
#[test]
fn parts_cover_every_slot_once() {
    for count in [0, 1, 255, 256, 257, 512, 513, 1000] {
        let keys: Vec<_> =
            (1..=count).map(|number| (slot(number), Zeroizing::new([1; 32]))).collect();
        let secret = EpochSecret::new(SECRET);
        let parts = SecretWraps::make(&secret, GroupId([1; 32]), Epoch(1), &keys, SALT).unwrap();
        assert_eq!(parts.len(), usize::from(count).div_ceil(MAX_ORDER_WRAPS).max(1), "{count}");
        for number in 0..1024 {
            let covering: Vec<_> = parts.iter().filter(|part| part.covers(slot(number))).collect();
            assert_eq!(covering.len(), 1, "{number} of {count}");
            let has = covering[0].wraps.iter().any(|(of, _)| of.number() == number);
            assert_eq!(has, (1..=count).contains(&number));
        }
    }
}
