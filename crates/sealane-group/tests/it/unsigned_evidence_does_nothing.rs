//! Messages that a member can make without the authority's key change nobody's state: messages in
//! the slots of others, with huge counters, replayed. Among them are notices of junk, of its own
//! signature, and of true frames under false numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aws_lc_rs::signature::Ed25519KeyPair;

use crate::shared::{Place, apply, files, log, open, seal};
use sealane_frame::{
    FrameBuf, FrameKind, HeaderFields, open_announcement, open_frame, open_stored, seal_frame,
};
use sealane_group::{EpochSource, GroupMember, GroupNotice, KeyFolder, NewGroup};
use sealane_seal::limits::MAX_COUNTER;
use sealane_seal::{Binding, Class, Epoch, Sealer, SenderContext, Slot};

/// An authority, two members, and a third who goes by no rules.
struct FleetWithThief {
    place: Place,
    base: GroupMember,
    members: Vec<GroupMember>,
    thief: GroupMember,
}

impl FleetWithThief {
    fn new() -> FleetWithThief {
        let place = Place::new();
        let (base, mut members) = place.fleet(4, NewGroup::default());
        let thief = members.pop().unwrap();
        FleetWithThief { place, base, members, thief }
    }

    /// All that is written of the authority and the members.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let folders = ["base", "car1", "car2"].into_iter();
        folders.flat_map(|name| files(&self.place.path(name))).collect()
    }

    /// Everybody but the thief.
    fn all(&mut self) -> impl Iterator<Item = &mut GroupMember> {
        self.members.iter_mut().chain([&mut self.base])
    }
}

/// A frame in any slot, with any counter and context, signed with the thief's key.
struct Forged {
    slot: Slot,
    class: Class,
    counter: u64,
    context: SenderContext,
    kind: FrameKind,
    data_type: u16,
}

impl Forged {
    fn frame(&self, world: &FleetWithThief, binding: &Binding, body: &[u8]) -> Vec<u8> {
        let (thief, counter) = (&world.thief, self.counter);
        let epochs = thief.epochs();
        let sealer = Sealer::new(thief.group(), self.slot, self.context, epochs, counter);
        let mut sealer = sealer.unwrap();
        let keys = KeyFolder::open(&world.place.path("car3"), None).unwrap();
        sealer.set_signing_key(keys.identity().signing_key().unwrap());
        let fields = HeaderFields {
            kind: self.kind,
            class: self.class,
            codec: 0,
            ..HeaderFields::new(thief.tag(), thief.source().unwrap(), self.data_type)
        };
        seal_frame(&mut sealer, &fields, binding, body, &mut FrameBuf::new()).unwrap().to_vec()
    }
}

/// The order to advance to epoch 1, as the authority would seal it.
fn advance(number: u64) -> Vec<u8> {
    [number.to_be_bytes(), 1_u64.to_be_bytes()].concat()
}

/// A notice of a frame under a number, with a signature by somebody.
fn notice(
    number: u64,
    frame: &[u8],
    world: &FleetWithThief,
    signer: Option<&Ed25519KeyPair>,
) -> GroupNotice {
    let mut bytes = [&[1], &number.to_be_bytes()[..], frame].concat();
    let signed = [b"Sealane 1.0 order ", &world.base.id().0[..], &bytes].concat();
    match signer {
        Some(key) => bytes.extend(key.sign(&signed).as_ref()),
        None => bytes.extend([0x5a; 64]),
    }
    GroupNotice::from_bytes(&bytes).unwrap()
}

/// The thief's key, which signs whatever it likes.
fn thiefs_key(place: &Place) -> Ed25519KeyPair {
    let keys = KeyFolder::open(&place.path("car3"), None).unwrap();
    let seed = blake3::derive_key("Sealane 1.0 identity Ed25519", keys.identity().expose_seed());
    Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
}

#[test]
fn messages_in_the_slots_of_others_move_nothing() {
    let mut world = FleetWithThief::new();
    let mut sender = world.members[0].sender().unwrap();
    let honest = seal(&mut sender, Class::Group, b"honest");
    let counters = world.files();
    let mut readers: Vec<_> = world.all().map(|one| one.opener().unwrap()).collect();
    for counter in [0, 1, 1023, 1 << 32, MAX_COUNTER] {
        for class in [Class::Authenticated, Class::Group, Class::Signed] {
            for slot in (0..5).map(|number| Slot::new(number).unwrap()) {
                let forged = Forged {
                    slot,
                    class,
                    counter,
                    context: sender.context(),
                    kind: FrameKind::Message,
                    data_type: 1,
                };
                let frame = forged.frame(&world, &log(), b"forged");
                for reader in &mut readers {
                    // A class that shows a member only opens in any member's slot, by design.
                    let _ = open(reader, &frame);
                    assert!(open_frame(reader, &log(), &mut frame.clone()).is_err());
                    assert_eq!(open(reader, &honest).unwrap(), b"honest");
                }
            }
        }
    }
    assert_eq!(world.files(), counters);
    // The one whose slot was used goes on, in the same slot and context.
    let next = seal(&mut sender, Class::Group, b"next");
    readers.iter_mut().for_each(|reader| assert_eq!(open(reader, &next).unwrap(), b"next"));
    drop(sender);
    world.members[0].sender().unwrap();
    let rotated = world.base.rotate().unwrap();
    for member in &mut world.members {
        apply(member, &rotated).unwrap();
        member.sender().unwrap();
    }
}

#[test]
fn a_live_sender_is_not_closed_by_who_announces_itself_in_its_slot() {
    let world = FleetWithThief::new();
    let mut sender = world.members[0].sender().unwrap();
    let mut reader = world.base.opener().unwrap();
    let mut buf = FrameBuf::new();
    let mut announcement = sender.announce(&mut buf).unwrap().to_vec();
    let announced = open_announcement(&mut reader, &mut announcement).unwrap();
    assert_eq!(announced.announcement().orders, world.members[0].orders());
    announced.accept();
    // Of a later start, and with more orders, but not with the key of the slot.
    let mut body = vec![1];
    body.extend([u64::MAX, u64::MAX].into_iter().flat_map(u64::to_be_bytes));
    let forged = Forged {
        slot: sender.slot(),
        class: Class::Signed,
        counter: 0,
        context: SenderContext([9; 8]),
        kind: FrameKind::Control,
        data_type: 3,
    };
    let mut frame = forged.frame(&world, &Binding::link(), &body);
    let refused = open_announcement(&mut reader, &mut frame).unwrap_err();
    assert_eq!(refused.info().name, "SignatureInvalid");
    let mut live = seal(&mut sender, Class::Group, b"live");
    open_frame(&mut reader, &log(), &mut live).unwrap().accept();
}

#[test]
fn notices_that_the_authority_has_not_signed_are_nothing() {
    let mut world = FleetWithThief::new();
    let key = thiefs_key(&world.place);
    let orders = world.base.orders();
    let control = Binding::stream(&world.base.control_topic());
    let true_frame = world.base.notices(0).unwrap()[1].frame().unwrap().to_vec();
    let before = world.files();
    let mut tried = 0;
    for number in [0, orders - 1, orders, orders + 1, u64::MAX - 1, u64::MAX] {
        let mut frames = vec![true_frame.clone()];
        for (slot, class, kind, data_type) in [
            (0, Class::Signed, FrameKind::Control, 4),
            (0, Class::Group, FrameKind::Control, 4),
            (3, Class::Signed, FrameKind::Control, 4),
            (3, Class::Signed, FrameKind::Message, 4),
            (1, Class::Authenticated, FrameKind::Control, 6),
        ] {
            let (slot, context) = (Slot::new(slot).unwrap(), SenderContext([9; 8]));
            let forged = Forged { slot, class, counter: number % 1000, context, kind, data_type };
            frames.push(forged.frame(&world, &control, &advance(number)));
        }
        for frame in frames {
            for signer in [None, Some(&key)] {
                let notice = notice(number, &frame, &world, signer);
                for member in world.all() {
                    // A notice that is older than the obeyed orders is not even looked at.
                    assert!(member.apply(&notice).is_err() || number < orders);
                    tried += 1;
                }
            }
        }
    }
    assert_eq!((world.files(), tried), (before, 6 * 6 * 2 * 3));
    for member in world.all() {
        assert_eq!((member.orders(), member.epochs().newest()), (orders, Epoch(0)));
        member.check_sealing().unwrap();
    }
    // The authority has not taken any of it for its own.
    world.base.rotate().unwrap();
}

/// The other way round: the frame is closed to who is no member, and its signature to who is.
#[test]
fn a_true_notice_says_nothing_in_another_place() {
    let mut world = FleetWithThief::new();
    let rotated = world.base.rotate().unwrap();
    let frame = rotated[0].frame().unwrap().to_vec();
    let mut reader = world.thief.opener().unwrap();
    for wrong in [log(), Binding::link(), Binding::conversation(world.base.id())] {
        let mut frame = frame.clone();
        let opened = open_stored(&mut reader, Epoch(0), &wrong, &mut frame);
        assert_eq!(opened.unwrap_err().info().name, "NotAuthentic");
    }
    let control = Binding::stream(&world.base.control_topic());
    open_stored(&mut reader, Epoch(0), &control, &mut frame.clone()).unwrap();
    // Another number in clear before a true frame.
    let mut bytes = rotated[0].as_bytes().to_vec();
    bytes[8] ^= 3;
    let renumbered = GroupNotice::from_bytes(&bytes).unwrap();
    let before = world.files();
    for member in world.all() {
        let outcome = member.apply(&renumbered);
        assert!(outcome.is_err() || outcome.unwrap().is_empty());
    }
    assert_eq!(world.files(), before);
}
