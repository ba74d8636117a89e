use sealane_frame::GroupTag;
use sealane_seal::GroupId;

use super::*;
use crate::InterfaceId;
use crate::neighbour::LinkId;

fn keeper(orders: u64) -> OrderKeeper {
    keeper_of(orders, true)
}

fn keeper_of(orders: u64, has_member: bool) -> OrderKeeper {
    let (tag, id) = (GroupTag::from_bytes([1; 4]), GroupId([2; 32]));
    OrderKeeper::new(KeptGroup { tag, id, authority: [3; 32], orders, has_member })
}

fn giver(slot: u16, holds: OrderRange) -> OrderGiver {
    let link = LinkId { interface: InterfaceId(0), slot: Slot::new(slot).unwrap() };
    OrderGiver { link, holds }
}

fn notice(number: u64, bytes: usize) -> Arc<[u8]> {
    let mut notice = vec![0; bytes];
    notice[..8].copy_from_slice(&number.to_le_bytes());
    notice.into()
}

fn order(number: u64, is_anew: bool) -> (NoticeContent, Arc<[u8]>) {
    (NoticeContent::Order { number, is_anew }, notice(number, 10))
}

fn take(keeper: &mut OrderKeeper, number: u64, is_anew: bool) -> Vec<u64> {
    let (told, notice) = order(number, is_anew);
    let turned = keeper.take(told, notice);
    turned.iter().map(|one| u64::from_le_bytes(*one.first_chunk().unwrap())).collect()
}

#[test]
fn orders_are_given_in_their_turn_and_once() {
    let mut keeper = keeper(5);
    assert_eq!(take(&mut keeper, 7, false), []);
    assert_eq!(take(&mut keeper, 3, false), [], "obeyed before, and not the last one");
    assert_eq!(take(&mut keeper, 5, false), [5]);
    assert_eq!(take(&mut keeper, 5, false), []);
    assert_eq!(take(&mut keeper, 6, false), [6, 7]);
    assert_eq!((keeper.wants(), keeper.held().first), (8, 5));
    assert_eq!(keeper.order(6).map(|(at, _)| at), Some(6));
    assert!(keeper.order(4).is_none() && keeper.order(8).is_none());
    // Those before can be kept for others, one by one.
    assert_eq!((take(&mut keeper, 4, false), keeper.held().first), (vec![], 4));
    assert_eq!((take(&mut keeper, 2, false), keeper.held().first), (vec![], 4));
    assert!(keeper.order(4).is_some() && keeper.order(2).is_none());
}

#[test]
fn a_new_beginning_stands_in_place_of_what_was_never_given() {
    let mut keeper = keeper(5);
    assert_eq!(take(&mut keeper, 5, false), [5]);
    assert_eq!(take(&mut keeper, 9, false), []);
    assert_eq!(take(&mut keeper, 1 << 20, true), [1 << 20]);
    assert_eq!(take(&mut keeper, 9, false), [], "left behind");
    assert_eq!((keeper.wants(), keeper.held().first), ((1 << 20) + 1, 5));
    assert_eq!(keeper.order(6).map(|(at, _)| at), Some(1 << 20), "it is what follows 5");
    assert!(keeper.order(3).is_none(), "perhaps there was an order 3");
}

#[test]
fn what_was_obeyed_elsewhere_is_not_wanted_and_cannot_be_given() {
    let mut keeper = keeper(0);
    assert!(keeper.is_silent());
    assert_eq!(take(&mut keeper, 0, false), [0]);
    assert_eq!(take(&mut keeper, 4, false), []);
    assert_eq!(keeper.go_on(4).len(), 1, "its turn has come");
    assert_eq!((keeper.wants(), keeper.held().first), (5, 4));
    assert!(keeper.order(0).is_none() && keeper.go_on(2).is_empty() && keeper.wants() == 5);
}

#[test]
fn memory_is_bounded_and_the_oldest_leave() {
    let mut keeper = keeper(0);
    for number in 0..3 * MAX_KEPT_ORDERS as u64 {
        let told = NoticeContent::Order { number, is_anew: false };
        keeper.take(told, notice(number, 3000));
        assert!(keeper.is_bounded());
    }
    assert_eq!(keeper.wants(), 3 * MAX_KEPT_ORDERS as u64);
    let first = keeper.held().first;
    assert!(keeper.order(first).is_some() && keeper.order(first - 1).is_none());
    for number in 0..200 {
        let slot = Slot::new(number as u16).unwrap();
        keeper.take(NoticeContent::Removal { order: 1000 + number, slot }, notice(number, 91));
        take(&mut keeper, 5000 + number, false);
        assert!(keeper.is_bounded());
    }
}

#[test]
fn removals_count_until_their_order_has_come() {
    let (mut keeper, slot) = (keeper(3), Slot::new(9).unwrap());
    let removal = |order| (NoticeContent::Removal { order, slot }, notice(order, 91));
    let (told, bytes) = removal(3);
    assert_eq!(keeper.take(told, Arc::clone(&bytes)).len(), 1);
    assert_eq!(keeper.take(told, bytes).len(), 0, "again does nothing");
    let (told, bytes) = removal(2);
    assert_eq!(keeper.take(told, bytes).len(), 0, "its order was obeyed");
    assert!(keeper.held().removals != 0 && keeper.hash_of_removals(0) != keeper.held().removals);
    take(&mut keeper, 3, false);
    assert_eq!(keeper.held().removals, 0);
    assert_ne!(keeper.hash_of_removals(3), 0, "for those who lack the order");
}

#[test]
fn without_a_member_a_later_order_that_was_asked_for_is_where_it_begins() {
    for (has_member, given) in [(false, vec![9]), (true, vec![])] {
        let mut keeper = keeper_of(5, has_member);
        let holds = OrderRange { first: 9, wants: 12 };
        assert_eq!(keeper.lacks_of(holds), (!has_member).then_some(9));
        assert_eq!(take(&mut keeper, 8, false), [], "nobody has asked for it");
        keeper.asked(9);
        assert_eq!(take(&mut keeper, 9, false), given);
    }
    let mut keeper = keeper_of(5, false);
    keeper.asked(9);
    assert_eq!(take(&mut keeper, 9, false), [9]);
    assert_eq!((keeper.held().first, keeper.wants()), (9, 10));
    keeper.asked(40);
    assert_eq!(take(&mut keeper, 39, false), [], "it is none that was asked for");
    assert_eq!(keeper.held().first, 9, "what is held stays");
}

#[test]
fn earlier_orders_are_asked_for_where_somebody_lacks_them() {
    let mut keeper = keeper_of(5, false);
    let all = OrderRange { first: 0, wants: 5 };
    assert_eq!(keeper.lacks_of(all), None, "nobody needs them");
    assert_eq!(keeper.note(giver(1, all)), []);
    // A neighbour that has told before that it holds them is asked as soon as another lacks them.
    assert_eq!(keeper.note(giver(2, OrderRange { first: 0, wants: 3 })), [giver(1, all)]);
    assert_eq!(keeper.note(giver(3, OrderRange { first: 0, wants: 3 })), [], "it has been asked");
    assert_eq!(keeper.lacks_of(all), Some(4));
    assert_eq!(keeper.lacks_of(OrderRange { first: 0, wants: 4 }), None, "it lacks that one, too");
    assert_eq!(
        keeper.lacks_of(OrderRange { first: 0, wants: 9 }),
        Some(5),
        "what is new comes first"
    );
    take(&mut keeper, 4, false);
    take(&mut keeper, 3, false);
    assert_eq!((keeper.held().first, keeper.lacks_of(all)), (3, None));
    // A neighbour that lacks all costs no more than there is room for.
    let mut keeper = keeper_of(1000, false);
    keeper.note(giver(2, OrderRange { first: 0, wants: 0 }));
    let mut asked = 0;
    while let Some(number) = keeper.lacks_of(OrderRange { first: 0, wants: 1000 }) {
        take(&mut keeper, number, false);
        asked += 1;
    }
    assert_eq!(asked, MAX_KEPT_ORDERS);
}
