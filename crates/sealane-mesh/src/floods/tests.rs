use super::*;
use crate::Span;

fn waiting(from: Option<u16>, urgency: Urgency) -> Waiting {
    let interface = InterfaceId(0);
    let link = |slot| LinkId { interface, slot: Slot::new(slot).unwrap() };
    Waiting {
        interface,
        to: To::Everybody,
        frame: [0; 4].into(),
        urgency,
        due: Time(0),
        until: Time(0) + Span::seconds(5),
        from: from.map(link),
        is_documents: false,
        flood: None,
        heard_of: vec![],
    }
}

#[test]
fn what_a_few_neighbours_bring_keeps_nobody_from_calling_for_help() {
    let mut floods = Floods::new(&[7; 32]);
    for from in 1..20 {
        for _ in 0..100 {
            floods.wait(waiting(Some(from), Urgency::Normal));
        }
    }
    assert_eq!(floods.brought(), MAX_FLOODS_WAITING);
    let left = floods.wait(waiting(Some(50), Urgency::Normal)).unwrap();
    assert_eq!(left.from.unwrap().slot.number(), 50, "there is no room for more of the same");
    // What is made here has room of its own, however urgent it is.
    assert!(floods.wait(waiting(None, Urgency::Low)).is_none());
    // What is urgent takes the place of what is not, whoever brings it.
    for from in [50, 1] {
        let left = floods.wait(waiting(Some(from), Urgency::Urgent)).unwrap();
        assert_eq!(left.urgency, Urgency::Normal);
    }
    let first = floods.next(Time(1)).unwrap();
    assert_eq!(first.urgency, Urgency::Urgent);
    // Urgent ones have their bounds, too.
    (0..1000).for_each(|at| drop(floods.wait(waiting(Some(at % 9), Urgency::Urgent))));
    assert_eq!(floods.brought(), MAX_FLOODS_WAITING);
    (0..1000).for_each(|_| drop(floods.wait(waiting(None, Urgency::Normal))));
    let own = floods.waiting.iter().filter(|one| one.from.is_none()).count();
    assert_eq!(own, MAX_FLOODS_OF_ONE);
}
