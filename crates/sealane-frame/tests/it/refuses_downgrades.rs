//! Nobody on the way makes a frame pass for another type or a weaker class.

use crate::shared::members::Members;
use sealane_frame::{FrameBuf, FrameError, open_stored, seal_frame};
use sealane_message::DataType;
use sealane_seal::policy::Policy;
use sealane_seal::{Class, Epoch, Group, GroupId, Suite};

const FLAGS: usize = 19;
const DATA_TYPE: usize = 21;

fn frame(members: &mut Members, data_type: DataType) -> Vec<u8> {
    members.fields.data_type = data_type.number();
    let mut buf = FrameBuf::new();
    seal_frame(&mut members.sealer, &members.fields, b"52.52 N", &mut buf).unwrap().to_vec()
}

#[test]
fn a_rewritten_type_or_class_does_not_open() {
    for class in [Class::Authenticated, Class::Group, Class::Signed] {
        let mut members = Members::new(class);
        let sealed = frame(&mut members, DataType::LOCATION);
        for data_type in DataType::ALL.iter().filter(|other| **other != DataType::LOCATION) {
            let mut changed = sealed.clone();
            changed[DATA_TYPE..DATA_TYPE + 2].copy_from_slice(&data_type.number().to_le_bytes());
            let refused = open_stored(&mut members.opener, Epoch(0), &mut changed).err();
            let not_authentic = FrameError::Seal(sealane_seal::Error::NotAuthentic);
            assert_eq!(refused, Some(not_authentic), "{data_type}");
        }
        for other in Class::ALL.into_iter().filter(|other| *other != class) {
            let mut changed = sealed.clone();
            changed[FLAGS] = changed[FLAGS] & !3 | other.number();
            assert!(open_stored(&mut members.opener, Epoch(0), &mut changed).is_err());
        }
        assert!(open_stored(&mut members.opener, Epoch(0), &mut sealed.clone()).is_ok());
    }
}

#[test]
fn a_member_who_seals_a_location_in_class_a_is_dropped_by_the_policy() {
    let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
    let policy = Policy::default();
    let mut members = Members::new(Class::Authenticated);
    let mut sealed = frame(&mut members, DataType::LOCATION);
    let opened = open_stored(&mut members.opener, Epoch(0), &mut sealed).unwrap();
    let data_type = DataType::from_number(opened.header.data_type());
    let refused = policy.admits(data_type, opened.opened.class(), &group).unwrap_err();
    assert_eq!(refused.info().name, "BelowFloor");
}
