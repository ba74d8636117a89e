//! Nobody on the way makes a frame pass for another type or a weaker class.

use crate::shared::members::{self, EPOCH, Members, READER, RELAY};
use sealane_frame::{
    FrameBuf, FrameError, FrameView, forward_in_place, open_announcement, open_frame, open_stored,
    seal_frame,
};
use sealane_message::DataType;
use sealane_seal::policy::Policy;
use sealane_seal::{Class, Group, GroupId, Suite};

const FLAGS: usize = 19;
const DATA_TYPE: usize = 21;

fn frame(members: &mut Members, data_type: DataType) -> Vec<u8> {
    members.fields.data_type = data_type.number();
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    let (sealer, fields) = (&mut members.sealer, &members.fields);
    seal_frame(sealer, fields, &binding, b"52.52 N", &mut buf).unwrap().to_vec()
}

#[test]
fn a_rewritten_type_or_class_does_not_open() {
    for class in [Class::Authenticated, Class::Group, Class::Signed] {
        let mut members = Members::new(class);
        let sealed = frame(&mut members, DataType::LOCATION);
        let binding = members::binding();
        for data_type in DataType::ALL.iter().filter(|other| **other != DataType::LOCATION) {
            let mut changed = sealed.clone();
            changed[DATA_TYPE..DATA_TYPE + 2].copy_from_slice(&data_type.number().to_le_bytes());
            let refused = open_stored(&mut members.opener, EPOCH, &binding, &mut changed).err();
            let not_authentic = FrameError::Seal(sealane_seal::Error::NotAuthentic);
            assert_eq!(refused, Some(not_authentic), "{data_type}");
        }
        for other in Class::ALL.into_iter().filter(|other| *other != class) {
            let mut changed = sealed.clone();
            changed[FLAGS] = changed[FLAGS] & !3 | other.number();
            assert!(open_stored(&mut members.opener, EPOCH, &binding, &mut changed).is_err());
        }
        assert!(open_stored(&mut members.opener, EPOCH, &binding, &mut sealed.clone()).is_ok());
    }
}

#[test]
fn a_member_who_seals_a_location_in_class_a_is_dropped_by_the_policy() {
    let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
    let policy = Policy::default();
    let mut members = Members::new(Class::Authenticated);
    let mut sealed = frame(&mut members, DataType::LOCATION);
    let binding = members::binding();
    let opened = open_stored(&mut members.opener, EPOCH, &binding, &mut sealed).unwrap();
    let data_type = DataType::from_number(opened.header.data_type());
    let refused = policy.admits(data_type, opened.opened.class(), &group).unwrap_err();
    assert_eq!(refused.info().name, "BelowFloor");
}

/// A frame of version 1, as that version made it: class C, slot 700, epoch 0, counter 300.
const VERSION_1: &str = "525252525252525251515151515151510f010005032100a1a2a3a4515151515151515153\
    535353535353080000002c01000000000000000000000000000000a90af100012c4b9a76b14b935f04ba1a8f5e0b\
    d4adae52e0e998e2f197c0";

#[test]
fn frames_of_version_1_are_refused_by_name() {
    let digits = VERSION_1.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let mut old: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    let mut members = Members::new(Class::Group);
    let (opener, binding) = (&mut members.opener, members::binding());
    let refused = [
        FrameView::parse(&old).err(),
        open_frame(opener, &binding, &mut old.clone()).err(),
        open_stored(opener, EPOCH, &binding, &mut old.clone()).err(),
        open_announcement(opener, &mut old.clone()).err(),
        forward_in_place(&mut old, READER, RELAY).err(),
    ];
    assert_eq!(refused, [Some(FrameError::UnknownVersion); 5]);
    assert_eq!(FrameError::UnknownVersion.info().name, "UnknownFrameVersion");
    // And one of this version that claims to be of another.
    for version in (0..=u8::MAX).filter(|version| *version != 2) {
        let mut other = frame(&mut members, DataType::LOCATION);
        other[17] = version;
        assert_eq!(FrameView::parse(&other).err(), Some(FrameError::UnknownVersion), "{version}");
    }
}
