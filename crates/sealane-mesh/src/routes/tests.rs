use super::*;
use crate::InterfaceId;

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn via(number: u16) -> LinkId {
    LinkId { interface: InterfaceId(0), slot: slot(number) }
}

fn told(sequence: u16, metric: u16) -> AdvertisedRoute {
    let distance = RouteDistance { slot: slot(9), sequence, metric };
    AdvertisedRoute { distance, is_gateway: false, attached: None }
}

const LATE: MeshTime = MeshTime(u64::MAX);

fn even(_: LinkId) -> Option<NeighbourLink> {
    Some(NeighbourLink {
        cost: 100,
        blame: NeighbourBlame::default(),
        is_anew: false,
        patience: MeshSpan::seconds(4),
    })
}

fn blamed(is_bad: bool, since: u64) -> NeighbourBlame {
    NeighbourBlame { times: u16::from(is_bad), since: MeshTime(since) }
}

fn chosen(routes: &mut MeshRoutes, now: u64) -> Option<(u16, u16)> {
    let choice = routes.choose(slot(9), MeshTime(now), &even).unwrap();
    choice.now.map(|one| (one.via.slot.number(), one.metric))
}

#[test]
fn only_what_is_shorter_than_all_that_was_told_is_taken() {
    let mut routes = MeshRoutes::default();
    assert_eq!(routes.hear(via(1), &told(5, 200), LATE), UpdateResult::Taken);
    assert_eq!(chosen(&mut routes, 0), Some((1, 300)));
    assert_eq!(routes.tell(slot(9), MeshTime(0), false).unwrap().distance.metric, 300);
    // A neighbour that may have learnt it here.
    routes.hear(via(2), &told(5, 300), LATE);
    routes.hear(via(1), &told(5, INFINITE), LATE);
    let choice = routes.choose(slot(9), MeshTime(1), &even).unwrap();
    assert_eq!((choice.now, choice.starves), (None, true));
    assert_eq!(routes.tell(slot(9), MeshTime(1), false).unwrap().distance.metric, INFINITE);
    assert_eq!(routes.get(slot(9)).unwrap().wanted(), 6);
    assert_eq!(routes.hear(via(2), &told(5, 310), LATE), UpdateResult::Unfeasible);
    assert_eq!(routes.hear(via(2), &told(6, 4000), LATE), UpdateResult::Taken);
    assert_eq!(chosen(&mut routes, 2), Some((2, 4100)));
}

#[test]
fn a_way_in_use_that_would_be_unfeasible_stays_as_it_was_told() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 200), LATE);
    chosen(&mut routes, 0);
    routes.tell(slot(9), MeshTime(0), false);
    assert_eq!(routes.hear(via(1), &told(5, 900), LATE), UpdateResult::Unfeasible);
    assert_eq!(chosen(&mut routes, 1), Some((1, 300)));
}

#[test]
fn a_way_is_left_for_one_that_is_clearly_better_for_a_while() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 500), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 600)));
    routes.hear(via(2), &told(5, 400), LATE);
    assert_eq!(chosen(&mut routes, 1_000_000), Some((1, 600)), "not clearly");
    routes.hear(via(2), &told(5, 270), LATE);
    assert_eq!(chosen(&mut routes, 2_000_000), Some((1, 600)), "not for long");
    assert_eq!(chosen(&mut routes, 5_000_000), Some((1, 600)));
    assert_eq!(chosen(&mut routes, 6_000_000), Some((2, 370)));
    let lost = |one: LinkId| even(one).filter(|_| one == via(1));
    let choice = routes.choose(slot(9), MeshTime(6_000_001), &lost).unwrap();
    assert_eq!(choice.now.map(|one| one.via), Some(via(1)), "one that is lost at once");
}

#[test]
fn a_way_behind_which_frames_vanish_is_the_last_choice() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 100), LATE);
    routes.hear(via(2), &told(5, 3000), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 200)));
    let bad =
        |one: LinkId| even(one).map(|way| NeighbourLink { blame: blamed(one == via(1), 0), ..way });
    let now = |routes: &mut MeshRoutes| {
        let choice = routes.choose(slot(9), MeshTime(1), &bad).unwrap();
        choice.now.map(|one| one.via.slot.number())
    };
    assert_eq!(now(&mut routes), Some(2));
    routes.hear(via(2), &told(5, INFINITE), LATE);
    assert_eq!(now(&mut routes), Some(1), "better than none");
}

#[test]
fn three_ways_are_kept_and_the_worst_goes() {
    let mut routes = MeshRoutes::default();
    for (number, metric) in [(1, 500), (2, 600), (3, 700), (4, 650), (5, 800)] {
        routes.hear(via(number), &told(5, metric), LATE);
        chosen(&mut routes, 0);
    }
    let kept = &routes.get(slot(9)).unwrap().candidates;
    let kept: Vec<_> = kept.iter().map(|one| one.via.slot.number()).collect();
    assert_eq!(kept, [1, 2, 4]);
    routes.sweep(MeshTime(0), |_| true);
    assert!(routes.get(slot(9)).is_some());
    routes.sweep(MeshTime(0), |_| false);
    assert!(routes.get(slot(9)).is_none());
}

#[test]
fn sequences_wrap() {
    assert!(is_later(1, 0) && is_later(0, u16::MAX) && is_later(0x7fff, 0));
    assert!(!is_later(0, 0) && !is_later(0, 1) && !is_later(0x8000, 0));
}

#[test]
fn what_was_told_is_remembered_for_as_long_as_others_may_rest_on_it() {
    for (interval, remembered) in [(1, 180), (60, 48 * 60)] {
        let mut routes = MeshRoutes::default();
        routes.pace(MeshSpan::seconds(interval));
        let second = |at: u64| MeshTime(0) + MeshSpan::seconds(at);
        routes.hear(via(1), &told(5, 200), LATE);
        chosen(&mut routes, 0);
        routes.tell(slot(9), MeshTime(0), false);
        routes.hear(via(1), &told(5, INFINITE), LATE);
        chosen(&mut routes, 1);
        let metric = |routes: &mut MeshRoutes, at| {
            routes.tell(slot(9), second(at), false).map(|told| told.distance.metric)
        };
        // With all others it is told as lost once at least.
        assert_eq!(metric(&mut routes, 8 * interval), Some(INFINITE));
        assert_eq!(metric(&mut routes, 30.max(9 * interval) + 1), None);
        routes.sweep(second(remembered), |_| true);
        assert_eq!(
            routes.hear(via(2), &told(5, 400), LATE),
            UpdateResult::Unfeasible,
            "{interval}"
        );
        routes.hear(via(2), &told(5, INFINITE), LATE);
        routes.sweep(second(remembered + 1), |_| true);
        assert_eq!(routes.hear(via(2), &told(5, 400), LATE), UpdateResult::Taken, "{interval}");
    }
}

#[test]
fn a_way_in_use_that_is_told_as_unfeasible_does_not_run_out() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 200), MeshTime(10));
    chosen(&mut routes, 0);
    routes.tell(slot(9), MeshTime(0), false);
    assert_eq!(routes.hear(via(1), &told(5, 900), MeshTime(20)), UpdateResult::Unfeasible);
    assert_eq!(chosen(&mut routes, 15), Some((1, 300)));
    assert_eq!(chosen(&mut routes, 20), None);
}

#[test]
fn a_way_that_was_blamed_just_now_is_not_told_so_that_another_one_stays_feasible() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 100), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 200)));
    routes.tell(slot(9), MeshTime(0), false);
    let bad = |one: LinkId| {
        let is_bad = one == via(1);
        even(one).map(|way| NeighbourLink { blame: blamed(is_bad, 0), is_anew: is_bad, ..way })
    };
    let now = |routes: &mut MeshRoutes| {
        let choice = routes.choose(slot(9), MeshTime(1), &bad).unwrap();
        choice.now.map(|one| one.via.slot.number())
    };
    // The later sequence comes by the hole first, and by the other way behind it.
    routes.hear(via(1), &told(6, 100), LATE);
    assert_eq!(now(&mut routes), Some(1));
    assert_eq!(routes.tell(slot(9), MeshTime(1), false), None);
    routes.hear(via(2), &told(6, 400), LATE);
    assert_eq!(now(&mut routes), Some(2));
    assert!(routes.tell(slot(9), MeshTime(1), false).is_some());
}

#[test]
fn of_two_that_are_blamed_as_much_the_one_is_taken_where_it_is_longer_ago() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 100), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 200)));
    routes.hear(via(2), &told(5, 3000), LATE);
    let since = |one: LinkId| if one == via(1) { 8 } else { 4 };
    let bad =
        |one: LinkId| even(one).map(|way| NeighbourLink { blame: blamed(true, since(one)), ..way });
    let choice = routes.choose(slot(9), MeshTime(9), &bad).unwrap();
    assert_eq!(choice.now.map(|one| one.via), Some(via(2)));
}

#[test]
fn a_way_of_the_sequence_that_is_asked_for_again_is_taken_at_once() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 100), LATE);
    assert_eq!(chosen(&mut routes, 0), Some((1, 200)));
    routes.hear(via(2), &told(6, 900), LATE);
    assert_eq!(chosen(&mut routes, 1), Some((1, 200)));
    routes.get_mut(slot(9)).unwrap().want(6, MeshTime(3));
    assert_eq!(chosen(&mut routes, 3), Some((1, 200)), "it is forgotten");
    routes.get_mut(slot(9)).unwrap().want(7, MeshTime(10));
    assert_eq!(chosen(&mut routes, 4), Some((1, 200)), "it is not of that sequence");
    routes.get_mut(slot(9)).unwrap().want(6, MeshTime(10));
    assert_eq!(chosen(&mut routes, 4), Some((2, 1000)));
    // Where the way in use has it, nothing follows.
    routes.hear(via(1), &told(6, 100), LATE);
    assert_eq!(chosen(&mut routes, 5), Some((2, 1000)));
}

#[test]
fn a_better_way_stays_the_better_one_while_it_lacks_the_latest_sequence() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 500), LATE);
    chosen(&mut routes, 0);
    routes.hear(via(2), &told(5, 200), LATE);
    assert_eq!(chosen(&mut routes, 2_000_000), Some((1, 600)), "not for long");
    routes.hear(via(1), &told(6, 500), LATE);
    chosen(&mut routes, 3_000_000);
    routes.tell(slot(9), MeshTime(3_000_000), false);
    // Now it is not feasible; four seconds after it came it is again.
    assert_eq!(chosen(&mut routes, 4_000_000), Some((1, 600)));
    assert_eq!(chosen(&mut routes, 6_000_000), Some((1, 600)));
    routes.hear(via(2), &told(6, 200), LATE);
    assert_eq!(chosen(&mut routes, 6_000_001), Some((2, 300)));
}

#[test]
fn the_first_way_is_left_soon_for_one_that_is_clearly_better() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 500), LATE);
    chosen(&mut routes, 0);
    routes.hear(via(2), &told(5, 200), LATE);
    assert_eq!(chosen(&mut routes, 900_000), Some((1, 600)));
    assert_eq!(chosen(&mut routes, 1_300_000), Some((1, 600)));
    assert_eq!(chosen(&mut routes, 1_400_000), Some((2, 300)));
}

#[test]
fn a_sequence_that_leaps_ahead_is_not_taken_since_a_few_leaps_would_come_around() {
    let mut routes = MeshRoutes::default();
    routes.hear(via(1), &told(5, 200), LATE);
    chosen(&mut routes, 0);
    routes.tell(slot(9), MeshTime(0), false);
    routes.hear(via(1), &told(5, INFINITE), LATE);
    for (ahead, taken) in [(8193, None), (30_011, None), (8192, Some((2, 300)))] {
        routes.hear(via(2), &told(5 + ahead, 200), LATE);
        assert_eq!(chosen(&mut routes, 1), taken, "{ahead}");
    }
}
