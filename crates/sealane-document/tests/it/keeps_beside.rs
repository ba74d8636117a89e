//! A machine without keys keeps the true frames, whatever others make up.

use sealane_document::{
    DocumentCursor, DocumentQuota, DocumentStore, RegisterName, ShelfKeeper, TakeOutcome,
};
use sealane_message::DataType;
use sealane_seal::Slot;

use crate::team::{GROUP, Origin, peer};

fn relay() -> DocumentStore {
    DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap()
}

fn has(store: &DocumentStore, frame: &[u8]) -> bool {
    let mark = sealane_document::entry_of(frame, sealane_seal::Epoch(0)).unwrap().mark();
    store.since(DocumentCursor::START, usize::MAX).iter().any(|one| one.entry.mark() == mark)
}

#[test]
fn a_forged_header_does_not_displace_the_true_frame() {
    let mut store = relay();
    let (mut origin, mut forger) = (Origin::new(3), Origin::new(3));
    let location = origin.seal(4, b"here");
    assert_eq!(store.take(&location, peer(1)).unwrap(), TakeOutcome::New);
    forger.skip_to(1000);
    for _ in 0..100 {
        store.take(&forger.forge(4), peer(2)).unwrap();
    }
    assert!(has(&store, &location), "what the true neighbour brought stays");
    assert_eq!(store.len(), 4);
    // The next true one is kept too, though its counter is far below, and is news to who reads.
    let last = store.since(DocumentCursor::START, 10).last().unwrap().at;
    let next = origin.seal(4, b"there");
    assert_eq!(store.take(&next, peer(1)).unwrap(), TakeOutcome::Beside);
    assert!(store.since(last, 10).iter().any(|one| one.from == peer(1)));
}

#[test]
fn behind_one_neighbour_the_frame_that_a_member_opened_stays() {
    let mut store = relay();
    let (mut origin, mut forger) = (Origin::new(3), Origin::new(3));
    let location = origin.seal(4, b"here");
    let stamp = sealane_document::entry_of(&location, sealane_seal::Epoch(0)).unwrap().stamp;
    store.take(&location, peer(1)).unwrap();
    forger.skip_to(1000);
    store.take(&forger.forge(4), peer(1)).unwrap();
    let of =
        RegisterName { group: GROUP, origin: Slot::new(3).unwrap(), data_type: DataType::LOCATION };
    // The neighbour that brings the forged ones is the one that has opened the true one.
    store.vouch(of, &[stamp], peer(1));
    for _ in 0..100 {
        store.take(&forger.forge(4), peer(1)).unwrap();
    }
    assert!(has(&store, &location));
    assert_eq!(store.len(), 4);
}

#[test]
fn a_neighbour_that_says_it_has_opened_what_it_forged_displaces_nobodys_frame() {
    let stamp =
        |frame: &[u8]| sealane_document::entry_of(frame, sealane_seal::Epoch(0)).unwrap().stamp;
    let of =
        RegisterName { group: GROUP, origin: Slot::new(3).unwrap(), data_type: DataType::LOCATION };
    let mut store = relay();
    let (mut origin, mut forger) = (Origin::new(3), Origin::new(3));
    forger.skip_to(1000);
    let forged: Vec<_> = (0..100).map(|_| forger.forge(4)).collect();
    let lies: Vec<_> = forged.iter().map(|frame| stamp(frame)).collect();
    let take_forged = |store: &mut DocumentStore| {
        for frame in &forged {
            store.take(frame, peer(2)).unwrap();
            store.vouch(of, &lies, peer(2));
        }
    };
    take_forged(&mut store);
    let location = origin.seal(4, b"here");
    assert_eq!(store.take(&location, peer(1)).unwrap(), TakeOutcome::Beside);
    assert!(has(&store, &location));
    // It says the same of the true frame, so that it seems to be its own.
    let all: Vec<_> = lies.iter().copied().chain([stamp(&location)]).collect();
    store.vouch(of, &all, peer(2));
    forger.skip_to(5000);
    for _ in 0..100 {
        store.take(&forger.forge(4), peer(2)).unwrap();
        store.vouch(of, &all, peer(2));
    }
    assert!(has(&store, &location), "it was not its neighbour's to give away");
    // Behind the forger alone, what an honest neighbour has opened stays.
    let mut store = relay();
    store.take(&location, peer(2)).unwrap();
    store.vouch(of, &all, peer(2));
    store.vouch(of, &[stamp(&location)], peer(7));
    take_forged(&mut store);
    assert!(has(&store, &location));
}

#[test]
fn a_quota_does_not_take_the_true_frame_before_those_that_another_one_brought() {
    let quota = DocumentQuota { origin_bytes: 20_000, total_bytes: 50_000 };
    let mut store = DocumentStore::in_memory(ShelfKeeper::Relay, quota).unwrap();
    let (mut origin, mut forger) = (Origin::new(3), Origin::new(3));
    let measured = origin.seal(72, &[0; 500]);
    store.take(&measured, peer(1)).unwrap();
    forger.skip_to(1000);
    for count in 0..400 {
        store.take(&forger.forge(72 + count % 2), peer(2)).unwrap();
    }
    assert!(store.counters().evicted > 0, "the quota was full");
    assert!(has(&store, &measured));
}

#[test]
fn two_frames_of_one_stamp_are_both_kept() {
    let mut store = relay();
    let location = Origin::new(3).seal(4, b"here");
    let forged = Origin::new(3).forge(4);
    for frame in [&location, &forged] {
        store.take(frame, peer(1)).unwrap();
    }
    assert!(has(&store, &location) && has(&store, &forged));
}

#[test]
fn an_origin_that_writes_without_end_stays_within_its_quota() {
    let quota = DocumentQuota { origin_bytes: 20_000, total_bytes: 50_000 };
    for keeper in [ShelfKeeper::Member, ShelfKeeper::Relay] {
        let mut store = DocumentStore::in_memory(keeper, quota).unwrap();
        let quiet = Origin::new(1).seal(7, b"help");
        store.take(&quiet, peer(1)).unwrap();
        for origin in 2..12 {
            let mut origin = Origin::new(origin);
            for count in 0..100 {
                let data_type = 64 + count % 16;
                store.take(&origin.seal(data_type, &[0; 500]), peer(2)).unwrap();
                assert!(store.total_bytes() <= quota.total_bytes);
            }
        }
        assert!(has(&store, &quiet), "others leave first");
        assert!(store.counters().evicted > 100, "{:?}", store.counters());
    }
}

#[test]
fn what_a_member_had_to_let_go_is_not_new_again() {
    let quota = DocumentQuota { origin_bytes: 2_000, total_bytes: 50_000 };
    let mut store = DocumentStore::in_memory(ShelfKeeper::Member, quota).unwrap();
    let mut origin = Origin::new(3);
    let frames: Vec<_> = (0..10).map(|_| origin.seal(72, &[0; 500])).collect();
    for frame in &frames {
        store.take(frame, peer(3)).unwrap();
    }
    assert_eq!(store.take(&frames[0], peer(3)).unwrap(), TakeOutcome::Older);
}

#[test]
fn groups_without_end_are_refused() {
    let mut store = relay();
    let frame = Origin::new(3).seal(4, b"here");
    let group_at = frame.windows(4).position(|four| four == GROUP.to_bytes()).unwrap();
    for group in 0..40_u8 {
        let mut other = frame.clone();
        other[group_at] = group;
        store.take(&other, peer(1)).unwrap();
    }
    assert_eq!((store.len(), store.counters().refused), (16, 24));
}

#[test]
fn frames_are_of_the_epoch_that_is_nearest_to_the_newest() {
    let epoch_kept = |newest: u64| {
        let mut store = relay();
        store.set_epoch(GROUP, sealane_seal::Epoch(newest));
        store.take(&Origin::new(3).seal(4, b"here"), peer(1)).unwrap();
        store.since(DocumentCursor::START, 1).first().unwrap().entry.stamp.epoch.0
    };
    // The frame says that the lowest byte of its epoch is 0.
    assert_eq!([0, 100, 200, 300, 1000].map(epoch_kept), [0, 0, 256, 256, 1024]);
}
