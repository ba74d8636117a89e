use super::*;
use crate::MeshSpan;

fn waiting(from: Option<u16>, urgency: SendUrgency) -> WaitingFrame {
    let interface = InterfaceId(0);
    let link = |slot| LinkId { interface, slot: Slot::new(slot).unwrap() };
    WaitingFrame {
        interface,
        to: UnitReceiver::Everybody,
        frame: [0; 4].into(),
        urgency,
        due: MeshTime(0),
        until: MeshTime(0) + MeshSpan::seconds(5),
        from: from.map(link),
        is_documents: false,
        flood: None,
        heard_of: vec![],
    }
}

#[test]
fn what_a_few_neighbours_bring_keeps_nobody_from_calling_for_help() {
    let mut floods = MeshFloods::new(&[7; 32]);
    for from in 1..20 {
        for _ in 0..100 {
            floods.wait(waiting(Some(from), SendUrgency::Normal));
        }
    }
    assert_eq!(floods.brought(), MAX_FLOODS_WAITING);
    let left = floods.wait(waiting(Some(50), SendUrgency::Normal)).unwrap();
    assert_eq!(left.from.unwrap().slot.number(), 50, "there is no room for more of the same");
    // A frame that is made here has room of its own, however urgent it is.
    assert!(floods.wait(waiting(None, SendUrgency::Low)).is_none());
    // An urgent frame takes the place of one that is not, whichever neighbour brings it.
    for from in [50, 1] {
        let left = floods.wait(waiting(Some(from), SendUrgency::Urgent)).unwrap();
        assert_eq!(left.urgency, SendUrgency::Normal);
    }
    let first = floods.next(MeshTime(1)).unwrap();
    assert_eq!(first.one.urgency, SendUrgency::Urgent);
    // Urgent ones have their bounds, too.
    (0..1000).for_each(|at| drop(floods.wait(waiting(Some(at % 9), SendUrgency::Urgent))));
    assert_eq!(floods.brought(), MAX_FLOODS_WAITING);
    (0..1000).for_each(|_| drop(floods.wait(waiting(None, SendUrgency::Normal))));
    let own = floods.waiting.iter().filter(|queued| queued.one.is_own()).count();
    assert_eq!(own, MAX_FLOODS_OF_ONE);
}

/// The frames in the order in which they go, each by its first byte.
fn order(floods: &mut MeshFloods) -> Vec<u8> {
    std::iter::from_fn(|| {
        let queued = floods.next(MeshTime(1))?;
        floods.took_turn(queued.one.is_own());
        Some(queued.one.frame[0])
    })
    .collect()
}

#[test]
fn two_frames_of_others_go_before_each_own_one_and_none_waits_for_what_is_not_there() {
    let mut floods = MeshFloods::new(&[1; 32]);
    let frames = [1, 2, 3, 4].map(|frame| (None, frame)).into_iter();
    for (from, frame) in frames.chain([11, 12, 13].map(|frame| (Some(7), frame))) {
        let one = WaitingFrame { frame: [frame].into(), ..waiting(from, SendUrgency::Normal) };
        assert!(floods.wait(one).is_none());
    }
    let urgent = WaitingFrame { frame: [99].into(), ..waiting(None, SendUrgency::Urgent) };
    assert!(floods.wait(urgent).is_none());
    assert_eq!(order(&mut floods), [99, 11, 12, 1, 13, 2, 3, 4]);
}

#[test]
fn what_was_told_is_told_again_until_enough_others_are_heard() {
    let link = |slot| LinkId { interface: InterfaceId(0), slot: Slot::new(slot).unwrap() };
    let mut floods = MeshFloods::new(&[1; 32]);
    let flood = WaitingFrame { flood: Some(5), ..waiting(None, SendUrgency::Urgent) };
    assert!(floods.wait(flood).is_none());
    assert_eq!(floods.heard(5, link(1), 2, |_| true), 0, "it was not told yet");
    let queued = floods.next(MeshTime(1)).unwrap();
    assert_eq!(queued.one.heard_of, []);
    floods.put_back(QueuedFrame { told: 1, ..queued });
    for slot in [1, 1] {
        floods.heard(5, link(slot), 2, |_| true);
        assert_eq!(floods.waiting.len(), 1, "one neighbour is not two");
    }
    assert_eq!(floods.heard(5, link(2), 2, |_| false), 0, "it was sent, so it is not spared");
    assert!(floods.waiting.is_empty());
}
