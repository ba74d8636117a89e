//! Messages of neighbours about the documents that they hold.

use sealane_document::exchange::{differing, inventory, lacks, overview, read_frames};
use sealane_document::{DocumentStamp, RegisterEntry, RegisterSet};
use sealane_frame::GroupTag;
use sealane_message::DataType;
use sealane_seal::{Epoch, Slot};

/// A message of a neighbour, after some frames that are held: four bytes each, as many as the first
/// byte says.
pub fn exchange(bytes: &[u8]) {
    let Some((&count, rest)) = bytes.split_first() else { return };
    let (names, message) = rest.split_at(rest.len().min(4 * usize::from(count % 64)));
    let mut held = RegisterSet::new();
    for name in names.as_chunks::<4>().0 {
        let [origin, data_type, epoch, counter] = *name;
        let origin = Slot::new(origin.into()).expect("a slot");
        let stamp = DocumentStamp { epoch: Epoch(epoch.into()), counter: counter.into() };
        let data_type = DataType::from_number(u16::from(data_type % 10));
        held.take(RegisterEntry::new(origin, data_type, stamp, name[..].into()));
    }
    if let Ok(frames) = read_frames(GroupTag::from_bytes([9; 4]), message) {
        let bytes: usize = frames.iter().map(|frame| frame.len() - 17).sum();
        assert!(bytes < message.len() + 27 * frames.len(), "a brief form says all but 27 bytes");
    }
    if let Ok(origins) = differing(&held, message) {
        assert!(origins.windows(2).all(|two| two[0] < two[1]));
        for own in inventory(&held, &origins, 100) {
            assert_eq!(lacks(&held, &own), Ok(vec![]), "nobody lacks what it has itself");
        }
    }
    if let Ok(lacking) = lacks(&held, message) {
        assert!(lacking.len() <= held.len());
    }
    for own in overview(&held, count, 100) {
        assert_eq!(differing(&held, &own), Ok(vec![]));
    }
}
