//! The cost of documents in bytes, by the real encoder.

use sealane_document::stream_name;
use sealane_frame::{
    FrameAnnouncement, FrameBuf, FrameDictionary, FrameRoster, HeaderFields, LinkContext, PeerTag,
    seal_compact,
};
use sealane_message::DataType;
use sealane_seal::{Binding, Class, Epoch, SenderContext, Slot};

use crate::field::net::Team;
use crate::team::{GROUP, peer};

/// A frame of a member that is known on the link, in the compact form, with the longest counter
/// that a year at one message a second reaches.
fn bytes(data_type: DataType, class: Class, body: usize) -> usize {
    let team = Team { members: 1024, removed: vec![] };
    let (slot, context) = (1023, SenderContext([1; 8]));
    let mut sealer = team.sealer(slot, Epoch(0), u64::from_le_bytes(context.0));
    sealer.go_on_at(31_536_000);
    let dictionary = FrameDictionary::fixed(&[GROUP]);
    let (mut roster, of) = (FrameRoster::new(), Slot::new(slot).unwrap());
    roster.insert(GROUP, of, peer(slot)).unwrap();
    roster.announce(GROUP, of, FrameAnnouncement { context, orders: 0 }).unwrap();
    let link = LinkContext {
        dictionary: &dictionary,
        roster: &roster,
        next_hop: PeerTag::BROADCAST,
        previous_hop: peer(slot),
    };
    let binding = Binding::stream(&stream_name(GROUP, data_type));
    let fields = HeaderFields {
        class,
        next_hop: PeerTag::BROADCAST,
        previous_hop: peer(slot),
        ..HeaderFields::new(GROUP, peer(slot), data_type.number())
    };
    let mut buf = FrameBuf::new();
    seal_compact(&mut sealer, &fields, &binding, &vec![0; body], &link, &mut buf).unwrap().len()
}

#[test]
fn a_position_has_54_bytes_a_heartbeat_and_a_counter_36_an_acknowledgement_108_at_most() {
    let position = bytes(DataType::LOCATION, Class::Group, 20);
    let heartbeat = bytes(DataType::HEARTBEAT, Class::Group, 6);
    let counter = bytes(DataType::COUNTER, Class::Group, 4);
    let acknowledgement = bytes(DataType::ACKNOWLEDGEMENT, Class::Signed, 14);
    println!("{position}, {heartbeat}, {counter}, {acknowledgement} bytes");
    assert!(position <= 54, "{position}");
    assert!(heartbeat <= 36, "{heartbeat}");
    assert!(counter <= 36, "{counter}");
    assert!(acknowledgement <= 108, "{acknowledgement}");
}
