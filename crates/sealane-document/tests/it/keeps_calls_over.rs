//! A call for help that was cleared stays over, also when what cleared it is not kept any more.

use std::path::Path;

use sealane_document::agent::OriginDuty;
use sealane_document::limits::MAX_ANSWERS_KEPT;
use sealane_document::{DocumentQuota, DocumentStore, ShelfKeeper};
use sealane_message::DataType;
use sealane_message::document::EmergencyCall;
use sealane_seal::{Epoch, Sealer};

use crate::field::net::seal;
use crate::team::{GROUP, peer};
use crate::victim::Victim;

const CALLER: u16 = 3;
const CLEARER: u16 = 5;
const CALL: EmergencyCall = EmergencyCall { slot: CALLER, number: 7 };

fn open(path: &Path) -> DocumentStore {
    DocumentStore::open(path, ShelfKeeper::Member, DocumentQuota::default()).unwrap()
}

fn raise(sealer: &mut Sealer, slot: u16, number: u32) -> Vec<u8> {
    seal(sealer, slot, 7, &[&[0; 9], &number.to_le_bytes()[..], &[1]].concat())
}

fn clear(sealer: &mut Sealer, slot: u16, call: EmergencyCall) -> Vec<u8> {
    let (of, number) = (call.slot.to_le_bytes(), call.number.to_le_bytes());
    seal(sealer, slot, 9, &[&[0; 8], &of[..], &number].concat())
}

/// One that holds a call for help, and what has cleared it.
fn told(store: DocumentStore) -> Victim {
    let mut victim = Victim::with(store, vec![]);
    let call = raise(&mut victim.sealer(CALLER, 0), CALLER, CALL.number);
    let clear = clear(&mut victim.sealer(CLEARER, 0), CLEARER, CALL);
    assert_eq!(victim.hear(&[&call, &clear]), 2);
    assert!(!victim.agent.stays_over(GROUP, CALL), "the clear itself is kept");
    victim
}

fn has_clear(victim: &Victim) -> bool {
    let held = victim.agent.store().registers(GROUP).into_iter().flat_map(|all| all.iter());
    held.filter(|entry| entry.data_type == DataType::CLEAR).count() > 0
}

/// The orders remove these members.
fn remove(victim: &mut Victim, slots: &[u16]) {
    victim.team.removed.push(slots.to_vec());
    let newest = Epoch(victim.team.removed.len() as u64);
    victim.agent.set_group(victim.team.keys(0, newest)).unwrap();
}

#[test]
fn a_clear_that_gives_way_to_later_ones_leaves_its_call_over_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let mut victim = told(open(&path));
    let mut clearer = victim.sealer(CLEARER, 0);
    clearer.go_on_at(1);
    for number in 0..MAX_ANSWERS_KEPT as u32 {
        assert!(!victim.agent.stays_over(GROUP, CALL), "it is kept still");
        let other = clear(&mut clearer, CLEARER, EmergencyCall { slot: 4, number });
        assert_eq!(victim.hear(&[&other]), 1);
    }
    assert!(victim.agent.stays_over(GROUP, CALL));
    let mut victim = Victim::with(open_again(victim, &path), vec![]);
    assert!(victim.agent.stays_over(GROUP, CALL), "the store knows");
    for other in [
        EmergencyCall { number: 8, ..CALL },
        EmergencyCall { number: 6, ..CALL },
        EmergencyCall { slot: 4, ..CALL },
    ] {
        assert!(!victim.agent.stays_over(GROUP, other), "{other:?}");
    }
    // Clears whose calls are gone leave nothing.
    let next = clear(&mut clearer, CLEARER, EmergencyCall { slot: 4, number: 99 });
    assert_eq!(victim.hear(&[&next]), 1);
    assert!(!victim.agent.stays_over(GROUP, EmergencyCall { slot: 4, number: 0 }));
}

fn open_again(victim: Victim, path: &Path) -> DocumentStore {
    drop(victim);
    open(path)
}

#[test]
fn the_own_clears_leave_calls_over_too() {
    let mut victim = Victim::new();
    let call = raise(&mut victim.sealer(CALLER, 0), CALLER, CALL.number);
    assert_eq!(victim.hear(&[&call]), 1);
    let mut own = victim.sealer(0, 0);
    for number in 0..=MAX_ANSWERS_KEPT as u32 {
        let of = if number == 0 { CALL } else { EmergencyCall { slot: 4, number } };
        let frame = clear(&mut own, 0, of);
        assert!(victim.agent.write(&frame, peer(0)).unwrap().is_news());
    }
    assert!(victim.agent.stays_over(GROUP, CALL));
}

#[test]
fn the_removal_of_who_cleared_a_call_does_not_wake_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let mut victim = told(open(&path));
    remove(&mut victim, &[CLEARER]);
    assert!(!has_clear(&victim) && victim.agent.stays_over(GROUP, CALL));
    let removed = victim.team.removed.clone();
    let mut victim = Victim::with(open_again(victim, &path), removed);
    assert!(victim.agent.stays_over(GROUP, CALL), "the store knows");
    // It goes with its member.
    remove(&mut victim, &[CALLER]);
    assert!(victim.agent.store().is_empty() && !victim.agent.stays_over(GROUP, CALL));
}

#[test]
fn a_removal_that_is_obeyed_after_a_restart_does_not_wake_it_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let store = open_again(told(open(&path)), &path);
    let victim = Victim::with(store, vec![vec![CLEARER]]);
    assert!(!has_clear(&victim) && victim.agent.stays_over(GROUP, CALL));
}

#[test]
fn who_called_does_not_seal_the_call_anew_that_is_over() {
    for is_cleared in [false, true] {
        let mut victim = Victim::new();
        let call = raise(&mut victim.sealer(0, 0), 0, 1);
        victim.agent.write(&call, peer(0)).unwrap();
        if is_cleared {
            let clear = clear(
                &mut victim.sealer(CLEARER, 0),
                CLEARER,
                EmergencyCall { slot: 0, number: 1 },
            );
            assert_eq!(victim.hear(&[&clear]), 1);
        }
        remove(&mut victim, &[CLEARER]);
        let duty = victim.agent.next_duty();
        assert_eq!(matches!(duty, Some(OriginDuty::Reseal { .. })), !is_cleared, "{duty:?}");
    }
}
