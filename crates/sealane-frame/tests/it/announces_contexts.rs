//! A compact frame says one byte of its sender's context: it is read under the context that the
//! sender announced on the link, and under no other.

use crate::shared::members::{
    self, CLASSES, CONTEXT, GROUP_TAG, Members, ORDERS, announcing, binding, session,
};
use sealane_frame::{
    FrameAnnouncement, FrameBuf, FrameError, FrameKind, HeaderFields, open_announcement,
    open_compact, open_frame, seal_compact, seal_frame, to_compact, to_full,
};
use sealane_seal::{Announcement, Binding, Class, Error, SenderContext, Suite};

/// The context of another start whose last byte is the same.
const SAME_LOW: SenderContext = SenderContext(*b"START 01");
/// And one whose last byte is not.
const OTHER_LOW: SenderContext = SenderContext(*b"start 02");

fn seal(members: &mut Members, body: &[u8]) -> Result<Vec<u8>, FrameError> {
    let link = members::link(&members.dictionary, &members.roster);
    let (mut buf, sealer) = (FrameBuf::new(), &mut members.sealer);
    let frame = seal_compact(sealer, &members.fields, &binding(), body, &link, &mut buf);
    frame.map(|frame| frame.to_vec())
}

fn open(members: &mut Members, frame: &[u8]) -> Result<Vec<u8>, FrameError> {
    let link = members::link(&members.dictionary, &members.roster);
    let mut frame = frame.to_vec();
    let received = open_compact(&mut members.opener, &binding(), &mut frame, &link)?;
    let body = received.body.to_vec();
    let _ = received.accept();
    Ok(body)
}

fn announced(context: SenderContext, orders: u8) -> FrameAnnouncement {
    FrameAnnouncement { context, orders }
}

/// The way that a link takes: a frame is announced in the full form, then the compact form flows.
#[test]
fn a_sender_announces_itself_and_is_heard() {
    for class in CLASSES {
        let mut members = Members::strangers(class, Suite::Aes256Gcm, 300);
        assert_eq!(seal(&mut members, b"early"), Err(FrameError::NoCompactForm));
        let mut early = Members::starting_at(class, Suite::Aes256Gcm, 200);
        let early = seal(&mut early, b"early").unwrap();
        assert_eq!(open(&mut members, &early), Err(FrameError::Unannounced));
        let mut full = vec![];
        let link = members::link(&members.dictionary, &members.roster);
        assert_eq!(to_full(&early, &link, &mut full), Err(FrameError::Unannounced));

        let mut frame = members.announcement(Announcement { start: 5, orders: 0x1007 });
        let opened = open_announcement(&mut members.opener, &mut frame).unwrap();
        assert_eq!(opened.announcement(), Announcement { start: 5, orders: 0x1007 });
        let [orders, ..] = opened.announcement().orders.to_le_bytes();
        let opened = opened.accept();
        let heard = announced(opened.context(), orders);
        assert_eq!((heard, opened.slot()), (announced(CONTEXT, ORDERS), members.sealer.slot()));
        members.roster.announce(GROUP_TAG, opened.slot(), heard).unwrap();
        let frame = seal(&mut members, b"heard").unwrap();
        assert_eq!(open(&mut members, &frame).unwrap(), b"heard");
        assert_eq!(open(&mut members, &early).unwrap(), b"early");
    }
}

#[test]
fn a_frame_of_another_low_byte_is_unannounced() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let old = seal(&mut members, b"old").unwrap();
        let slot = members.sealer.slot();
        members.start_again(OTHER_LOW);
        assert_eq!(seal(&mut members, b"new"), Err(FrameError::NoCompactForm));
        members.roster.announce(GROUP_TAG, slot, announced(OTHER_LOW, ORDERS)).unwrap();
        let new = seal(&mut members, b"new").unwrap();
        assert_eq!((old[2], new[2]), (b'1', b'2'));
        assert_eq!(open(&mut members, &old), Err(FrameError::Unannounced));
        // The link has heard the new start, the reader has not: they are told apart there, too.
        assert_eq!(open(&mut members, &new), Err(FrameError::Seal(Error::Unannounced)));
        members.opener.restore(&session(slot, OTHER_LOW));
        assert_eq!(open(&mut members, &new).unwrap(), b"new");
    }
}

/// One byte tells 256 starts apart: the seal tells all of them.
#[test]
fn two_contexts_of_one_low_byte_do_not_open_each_other() {
    assert_eq!(SAME_LOW.low(), CONTEXT.low());
    let not_authentic = FrameError::Seal(Error::NotAuthentic);
    for class in CLASSES {
        let mut members = Members::new(class);
        let old = seal(&mut members, b"old").unwrap();
        let slot = members.sealer.slot();
        members.start_again(SAME_LOW);
        assert_eq!(seal(&mut members, b"new"), Err(FrameError::NoCompactForm));
        members.roster.announce(GROUP_TAG, slot, announced(SAME_LOW, ORDERS)).unwrap();
        members.opener.restore(&session(slot, SAME_LOW));
        assert_eq!(open(&mut members, &old), Err(not_authentic), "the old one as the new one");
        let new = seal(&mut members, b"new").unwrap();
        members.roster.announce(GROUP_TAG, slot, announced(CONTEXT, ORDERS)).unwrap();
        members.opener.restore(&session(slot, CONTEXT));
        assert_eq!(open(&mut members, &new), Err(not_authentic), "the new one as the old one");
        assert_eq!(open(&mut members, &old).unwrap(), b"old");
    }
}

/// The sender's count of obeyed orders is announced with the context, and sealed with every frame.
#[test]
fn other_orders_than_announced_have_no_compact_form_and_do_not_open() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let (frame, slot) = (seal(&mut members, b"before").unwrap(), members.sealer.slot());
        members.fields.orders = ORDERS + 1;
        assert_eq!(seal(&mut members, b"after"), Err(FrameError::NoCompactForm));
        members.roster.announce(GROUP_TAG, slot, announced(CONTEXT, ORDERS + 1)).unwrap();
        let after = seal(&mut members, b"after").unwrap();
        assert_eq!(open(&mut members, &after).unwrap(), b"after");
        let refused = open(&mut members, &frame);
        assert_eq!(refused, Err(FrameError::Seal(Error::NotAuthentic)), "{class:?}");
    }
}

/// Frames that come live in the full form say the whole context, and need its session as well.
#[test]
fn full_frames_of_a_context_that_was_not_announced() {
    for class in CLASSES {
        let mut members = Members::new(class);
        let mut buf = FrameBuf::new();
        for context in [SAME_LOW, OTHER_LOW] {
            members.start_again(context);
            let (sealer, fields) = (&mut members.sealer, &members.fields);
            let frame = seal_frame(sealer, fields, &binding(), b"body", &mut buf).unwrap();
            let refused = open_frame(&mut members.opener, &binding(), &mut frame.to_vec()).err();
            assert_eq!(refused, Some(FrameError::Seal(Error::Unannounced)));
            let link = members::link(&members.dictionary, &members.roster);
            let refused = to_compact(frame, &link, &mut vec![]);
            assert_eq!(refused, Err(FrameError::NoCompactForm));
        }
    }
}

#[test]
fn what_is_no_announcement_is_not_read_as_one() {
    let mut members = Members::new(Class::Group);
    let body = Announcement { start: 9, orders: 7 }.to_bytes();
    let good = announcing(&members.fields);
    let disagree = Some(FrameError::HeadersDisagree);
    let not_authentic = Some(FrameError::Seal(Error::NotAuthentic));
    let malformed = Some(FrameError::Seal(Error::Malformed));
    let cases: [(HeaderFields, Binding, &[u8], Option<FrameError>); 9] = [
        (HeaderFields { kind: FrameKind::Message, ..good }, Binding::link(), &body, disagree),
        (HeaderFields { kind: FrameKind::Routing, ..good }, Binding::link(), &body, disagree),
        (HeaderFields { kind: FrameKind::Gossip, ..good }, Binding::link(), &body, disagree),
        (HeaderFields { data_type: 4, ..good }, Binding::link(), &body, disagree),
        (HeaderFields { class: Class::Group, ..good }, Binding::link(), &body, disagree),
        (HeaderFields { class: Class::Authenticated, ..good }, Binding::link(), &body, disagree),
        (good, binding(), &body, not_authentic),
        (good, Binding::link(), b"seventeen bytes..", malformed),
        (good, Binding::link(), &body, None),
    ];
    for (fields, place, body, expected) in cases {
        let mut buf = FrameBuf::new();
        let frame = seal_frame(&mut members.sealer, &fields, &place, body, &mut buf).unwrap();
        let refused = open_announcement(&mut members.opener, frame).err();
        assert_eq!(refused, expected, "{fields:?} {place:?}");
    }
    let mut compact = seal(&mut members, b"body").unwrap();
    assert!(open_announcement(&mut members.opener, &mut compact).is_err());
}

/// And an announcement is no message of the stream that somebody kept it in.
#[test]
fn an_announcement_is_not_read_as_a_message() {
    let mut members = Members::new(Class::Group);
    let frame = members.announcement(Announcement { start: 9, orders: 7 });
    let refused = open_frame(&mut members.opener, &binding(), &mut frame.clone()).err();
    assert_eq!(refused, Some(FrameError::Seal(Error::NotAuthentic)));
    let _ = open_announcement(&mut members.opener, &mut frame.clone()).unwrap().accept();
    let replayed = open_announcement(&mut members.opener, &mut frame.clone()).err();
    assert_eq!(replayed, Some(FrameError::Seal(Error::Replayed)));
}

#[test]
fn a_slot_without_a_tag_announces_nothing() {
    let mut members = Members::new(Class::Group);
    let other = sealane_seal::Slot::new(5).unwrap();
    let refused = members.roster.announce(GROUP_TAG, other, announced(CONTEXT, ORDERS));
    assert_eq!(refused, Err(FrameError::UnknownSource));
    assert_eq!(members.roster.announced(GROUP_TAG, other), None);
    let slot = members.sealer.slot();
    assert_eq!(members.roster.announced(GROUP_TAG, slot), Some(announced(CONTEXT, ORDERS)));
    members.roster.remove(GROUP_TAG);
    assert_eq!(members.roster.announced(GROUP_TAG, slot), None);
}
