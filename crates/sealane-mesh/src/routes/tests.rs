use super::*;
use crate::InterfaceId;

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn via(number: u16) -> LinkId {
    LinkId { interface: InterfaceId(0), slot: slot(number) }
}

fn told(sequence: u16, metric: u16) -> Advertised {
    let distance = Distance { slot: slot(9), sequence, metric };
    Advertised { distance, is_gateway: false, attached: None }
}

const LATE: Time = Time(u64::MAX);

fn even(_: LinkId) -> Option<Way> {
    Some(Way { cost: 100, blame: 0, is_anew: false, patience: Span::seconds(4) })
}

fn chosen(routes: &mut Routes, now: u64) -> Option<(u16, u16)> {
    let choice = routes.choose(slot(9), Time(now), &even).unwrap();
    choice.now.map(|one| (one.via.slot.number(), one.metric))
}

#[test]
fn only_what_is_shorter_than_all_that_was_told_is_taken() {
    let mut routes = Routes::default();
    assert_eq!(routes.hear(via(1), &told(5, 200), LATE), Heard::Taken);
    assert_eq!(chosen(&mut routes, 0), Some((1, 300)));
    assert_eq!(routes.tell(slot(9), Time(0), false).unwrap().distance.metric, 300);
    // A neighbour that may have learnt it here.
    routes.hear(via(2), &told(5, 300), LATE);
    routes.hear(via(1), &told(5, INFINITE), LATE);
    let choice = routes.choose(slot(9), Time(1), &even).unwrap();
    assert_eq!((choice.now, choice.starves), (None, true));
    assert_eq!(routes.tell(slot(9), Time(1), false).unwrap().distance.metric, INFINITE);
    assert_eq!(routes.get(slot(9)).unwrap().wanted(), 6);
    assert_eq!(routes.hear(via(2), &told(5, 310), LATE), Heard::Unfeasible);
    assert_eq!(routes.hear(via(2), &told(6, 4000), LATE), Heard::Taken);
    assert_eq!(chosen(&mut routes, 2), Some((2, 4100)));
}

#[test]
fn a_way_in_use_that_would_be_unfeasible_stays_as_it_was_told() {
    let mut routes = Routes::default();
    routes.hear(via(1), &told(5, 200), LATE);
    chosen(&mut routes, 0);
    routes.tell(slot(9), Time(0), false);
    assert_eq!(routes.hear(via(1), &told(5, 900), LATE), Heard::Unfeasible);
    assert_eq!(chosen(&mut routes, 1), Some((1, 300)));
}

#[test]
fn a_way_is_left_for_one_that_is_clearly_better_for_a_while() {
    let mut routes = Routes::default();
    routes.hear(via(1), &told(5, 500), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 600)));
    routes.hear(via(2), &told(5, 400), LATE);
    assert_eq!(chosen(&mut routes, 1_000_000), Some((1, 600)), "not clearly");
    routes.hear(via(2), &told(5, 270), LATE);
    assert_eq!(chosen(&mut routes, 2_000_000), Some((1, 600)), "not for long");
    assert_eq!(chosen(&mut routes, 5_000_000), Some((1, 600)));
    assert_eq!(chosen(&mut routes, 6_000_000), Some((2, 370)));
    let lost = |one: LinkId| even(one).filter(|_| one == via(1));
    let choice = routes.choose(slot(9), Time(6_000_001), &lost).unwrap();
    assert_eq!(choice.now.map(|one| one.via), Some(via(1)), "one that is lost at once");
}

#[test]
fn a_way_behind_which_frames_vanish_is_the_last_choice() {
    let mut routes = Routes::default();
    routes.hear(via(1), &told(5, 100), LATE);
    routes.hear(via(2), &told(5, 3000), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 200)));
    let bad = |one: LinkId| even(one).map(|way| Way { blame: u16::from(one == via(1)), ..way });
    let now = |routes: &mut Routes| {
        let choice = routes.choose(slot(9), Time(1), &bad).unwrap();
        choice.now.map(|one| one.via.slot.number())
    };
    assert_eq!(now(&mut routes), Some(2));
    routes.hear(via(2), &told(5, INFINITE), LATE);
    assert_eq!(now(&mut routes), Some(1), "better than none");
}

#[test]
fn three_ways_are_kept_and_the_worst_goes() {
    let mut routes = Routes::default();
    for (number, metric) in [(1, 500), (2, 600), (3, 700), (4, 650), (5, 800)] {
        routes.hear(via(number), &told(5, metric), LATE);
        chosen(&mut routes, 0);
    }
    let kept = &routes.get(slot(9)).unwrap().candidates;
    let kept: Vec<_> = kept.iter().map(|one| one.via.slot.number()).collect();
    assert_eq!(kept, [1, 2, 4]);
    routes.sweep(Time(0), |_| true);
    assert!(routes.get(slot(9)).is_some());
    routes.sweep(Time(0), |_| false);
    assert!(routes.get(slot(9)).is_none());
}

#[test]
fn sequences_wrap() {
    assert!(is_later(1, 0) && is_later(0, u16::MAX) && is_later(0x7fff, 0));
    assert!(!is_later(0, 0) && !is_later(0, 1) && !is_later(0x8000, 0));
}
