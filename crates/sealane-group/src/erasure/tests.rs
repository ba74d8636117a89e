use std::fs;

use sealane_seal::History;
use tempfile::TempDir;

use super::*;
use crate::{EpochSource, KeyFolder, NewGroup};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn member(folder: &TempDir) -> GroupMember {
    let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
    let options = NewGroup { history: History::ForwardSecret, ..NewGroup::default() };
    keys.new_group("fleet", options).unwrap()
}

fn held(member: &GroupMember) -> Vec<u64> {
    member.epochs().held().map(|(epoch, _)| epoch.0).collect()
}

/// A look at that moment, as a process makes it that begins then.
fn look(member: &mut GroupMember, boot: u8, uptime_ms: u64) -> Vec<u64> {
    let now = MachineUptime { boot: [boot; 16], uptime_ms };
    let changed = member.change(|keys, lock, name, state| {
        keys.erase_past_at(lock, name, state, ErasureCause::Time, now)
    });
    changed.unwrap();
    held(member)
}

/// An account that begins at that moment, with all epochs held for a consumer.
fn begin(member: &mut GroupMember, boot: u8, uptime_ms: u64, epochs: u64) {
    let slow = ConsumerId::new("hub", "s", "slow");
    member.consumer_at(slow, None).unwrap();
    (0..epochs).for_each(|_| drop(member.rotate().unwrap()));
    let lock = member.keys.lock().unwrap();
    let mut ledger = member.keys.ledger(&lock, "fleet").unwrap().unwrap();
    ledger.counted = MachineUptime { boot: [boot; 16], uptime_ms };
    member.keys.save_ledger(&lock, "fleet", &ledger).unwrap();
}

#[test]
fn without_a_consumer_the_present_epoch_and_the_one_before_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let mut member = member(&folder);
    for epoch in 1..4 {
        member.rotate().unwrap();
        assert_eq!(held(&member), [epoch - 1, epoch]);
    }
}

#[test]
fn the_slowest_consumer_holds_what_it_has_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut member = member(&folder);
    let [slow, quick] = ["slow", "quick"].map(|name| ConsumerId::new("hub", "s", name));
    member.consumer_at(slow, None).unwrap();
    member.consumer_at(quick, None).unwrap();
    (0..4).for_each(|_| drop(member.rotate().unwrap()));
    assert_eq!(held(&member), [0, 1, 2, 3, 4]);
    member.consumer_at(quick, Some(Epoch(4))).unwrap();
    assert_eq!(held(&member), [0, 1, 2, 3, 4]);
    member.consumer_at(slow, Some(Epoch(2))).unwrap();
    assert_eq!(held(&member), [2, 3, 4]);
    member.consumer_at(slow, Some(Epoch(1))).unwrap();
    member.consumer_at(slow, None).unwrap();
    assert_eq!(held(&member), [2, 3, 4], "a cursor never goes back");
    member.consumer_at(slow, Some(Epoch(4))).unwrap();
    assert_eq!(held(&member), [4]);
    member.rotate().unwrap();
    assert_eq!(held(&member), [4, 5], "until both have gone on");
}

#[test]
fn an_epoch_is_erased_a_while_after_its_end_however_slow_a_consumer_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut member = member(&folder);
    begin(&mut member, 1, 5 * DAY_MS, 2);
    assert_eq!(look(&mut member, 1, 34 * DAY_MS), [0, 1, 2]);
    // The machine is started anew. The count stays, and the time for which it was off is left out.
    assert_eq!(look(&mut member, 2, 23 * HOUR_MS), [0, 1, 2]);
    assert_eq!(look(&mut member, 2, 25 * HOUR_MS), [2]);
}

#[test]
fn no_clock_that_is_set_erases_anything_early_or_keeps_it_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut member = member(&folder);
    begin(&mut member, 1, DAY_MS, 1);
    // An uptime that goes back, as of a machine that was put back, counts nothing.
    assert_eq!(look(&mut member, 1, HOUR_MS), [0, 1]);
    assert_eq!(look(&mut member, 1, 30 * DAY_MS), [0, 1]);
    assert_eq!(look(&mut member, 1, 31 * DAY_MS), [1]);
}

#[test]
fn a_folder_may_allow_less_and_a_damaged_account_holds_everything() {
    let folder = tempfile::tempdir().unwrap();
    let mut member = member(&folder);
    member.consumer_at(ConsumerId::new("hub", "s", "slow"), None).unwrap();
    (0..2).for_each(|_| drop(member.rotate().unwrap()));
    member.set_forget_after(HOUR_MS).unwrap();
    let path = folder.path().join("base/groups/fleet/erasure");
    fs::write(&path, "junk").unwrap();
    member.rotate().unwrap();
    assert_eq!(held(&member), [0, 1, 2, 3]);
    member.set_forget_after(0).unwrap();
    assert_eq!(held(&member), [3], "too old is too old");
}

#[test]
fn an_account_is_read_back_and_nothing_else() {
    let mut ledger = ErasureLedger::new(MachineUptime { boot: [7; 16], uptime_ms: 9 });
    ledger.ended = vec![(Epoch(1), 5), (Epoch(4), 0)];
    ledger.consumers = vec![(ConsumerId([3; 16]), Epoch(4))];
    let bytes = ledger.to_bytes();
    assert_eq!(ErasureLedger::from_bytes(&bytes).unwrap(), ledger);
    for end in 0..bytes.len() {
        assert!(ErasureLedger::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert!(ErasureLedger::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}
