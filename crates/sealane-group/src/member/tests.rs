//! What an order holds, whoever reads it: a member that does not go by the rules takes its pairwise
//! key and tries every wrap, instead of asking [`Member::apply`] whether it was removed.

use std::collections::BTreeSet;

use sealane_frame::open_stored;
use sealane_seal::EpochSecret;
use tempfile::TempDir;

use super::*;
use crate::order::{Order, Rekey, WrapId};
use crate::{Card, KeyFolder, Past};

struct Fleet {
    folder: TempDir,
    base: Member,
    members: Vec<Member>,
}

impl Fleet {
    fn of(count: usize) -> Fleet {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
        let base = keys.new_group("fleet", NewGroup::default()).unwrap();
        let mut fleet = Fleet { folder, base, members: Vec::new() };
        (0..count).for_each(|at| {
            let path = fleet.folder.path().join(format!("car{at}"));
            let member = fleet.join(&KeyFolder::create(&path, &format!("car{at}"), None).unwrap());
            fleet.members.push(member);
        });
        fleet
    }

    fn join(&mut self, keys: &KeyFolder) -> Member {
        let card = Card::from_bytes(&keys.card().unwrap()).unwrap();
        let invited = self.base.invite(&card, Past::All).unwrap();
        keys.join(&invited.invitation, None, None).unwrap()
    }

    /// The order to go to a fresh secret, as any reader of its frame sees it.
    fn rekey(&self, notices: &[Notice]) -> Rekey {
        let [notice] = notices else { panic!("{} notices", notices.len()) };
        let mut frame = notice.frame().unwrap().to_vec();
        let mut reader = self.base.opener().unwrap();
        let before = Epoch(self.base.epochs().newest().0 - 1);
        let body = open_stored(&mut reader, before, &mut frame).unwrap().body.to_vec();
        match Order::from_bytes(&body).unwrap() {
            Order::Rekey(order) => order,
            other => panic!("{other:?}"),
        }
    }

    /// The secret of that order's epoch, if any slot's wrap opens with that member's pairwise key.
    fn stolen(&self, order: &Rekey, thief: &Member) -> Option<EpochSecret> {
        let slots = (0..=sealane_seal::limits::MAX_SLOT).filter_map(Slot::new);
        let whose = |slot| WrapId { group: self.base.id(), epoch: order.epoch, slot };
        slots.into_iter().find_map(|slot| order.wraps.unwrap(whose(slot), &thief.state.wrap_key))
    }
}

fn wrapped(order: &Rekey) -> BTreeSet<u16> {
    order.wraps.wraps.iter().map(|(slot, _)| slot.number()).collect()
}

#[test]
fn a_removed_member_is_wrapped_nothing() {
    let mut fleet = Fleet::of(19);
    let thief = fleet.members.remove(6);
    let notices = fleet.base.revoke(&[thief.slot()]).unwrap();
    let order = fleet.rekey(&notices);
    let stay: BTreeSet<u16> = fleet.members.iter().map(|one| one.slot().number()).collect();
    assert_eq!(stay.len(), 18);
    assert_eq!(wrapped(&order), stay, "one wrap for each that stays, and no other");
    assert!(fleet.stolen(&order, &thief).is_none());
    let secret = fleet.base.epochs().secret(order.epoch).unwrap();
    for member in &fleet.members {
        let found = fleet.stolen(&order, member).expect("who stays has a wrap");
        assert_eq!(found.expose(), secret.expose());
    }
    // Nor is there anything for it in what comes later.
    let notices = fleet.base.rotate().unwrap();
    let order = fleet.rekey(&notices);
    assert_eq!(wrapped(&order), stay);
    assert!(fleet.stolen(&order, &thief).is_none());
}

#[test]
fn a_slot_that_was_replaced_is_wrapped_nothing() {
    let mut fleet = Fleet::of(3);
    let old = fleet.members.remove(1);
    let keys = KeyFolder::open(&fleet.folder.path().join("car1"), None).unwrap();
    let new = fleet.join(&keys);
    assert_ne!(new.slot(), old.slot());
    let notices = fleet.base.rotate().unwrap();
    let order = fleet.rekey(&notices);
    let slots = [&fleet.members[0], &fleet.members[1], &new].map(|one| one.slot().number());
    assert_eq!(wrapped(&order), slots.into());
    assert!(fleet.stolen(&order, &old).is_none());
    assert!(fleet.stolen(&order, &new).is_some());
}
