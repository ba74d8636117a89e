//! A message that came over a link and was accepted is never accepted again. That holds for
//! everything that is recorded and played, before, during and after a restart of the reader. It
//! also holds for a folder that was put back. Nothing is stored for it.

use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_group::{EpochSource, Error, GroupMember, GroupSender, LiveReader, NewGroup};
use sealane_seal::{AnnouncedQuestions, Binding, Class, Sealer};
use sealane_testing::until;

use crate::shared::{Place, apply, copy, files, join};

/// A sender's announcement to a reader, and so many frames behind it.
fn record(sender: &mut GroupSender, reader: &mut LiveReader, count: usize) -> Vec<Vec<u8>> {
    let questions = AnnouncedQuestions::answering(&reader.questions().unwrap());
    let mut buf = FrameBuf::new();
    let mut frames = vec![sender.announce(questions, &mut buf).unwrap().to_vec()];
    let (fields, link) = (sender.fields(Class::Group, 1), Binding::link());
    for n in 0..count {
        let body = [n as u8];
        frames.push(sender.seal(&fields, &link, &body, &mut buf).unwrap().to_vec());
    }
    frames
}

/// Plays a recording; gives how many of its messages were accepted, and whether it began a session.
fn play(reader: &mut LiveReader, recorded: &[Vec<u8>]) -> (usize, bool) {
    let (first, frames) = recorded.split_first().unwrap();
    let is_announced = reader.announced(&mut first.clone()).is_ok();
    let accepted =
        frames.iter().filter(|frame| reader.open(&Binding::link(), &mut (*frame).clone()).is_ok());
    (accepted.count(), is_announced)
}

fn fleet(place: &Place) -> (GroupMember, GroupMember) {
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (car, _) = join(&mut base, &place.keys("car"));
    (base, car)
}

#[test]
fn a_recording_is_played_in_vain_before_and_after_every_restart() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let mut reader = base.live_reader().unwrap();
    let mut first = car.sender().unwrap();
    let early = record(&mut first, &mut reader, 50);
    assert_eq!(play(&mut reader, &early), (50, true));
    assert_eq!(play(&mut reader, &early), (0, false), "the whole again");
    for round in 0..3 {
        reader = base.live_reader().unwrap();
        assert_eq!(play(&mut reader, &early), (0, false), "restart {round}");
    }
    let on = record(&mut first, &mut reader, 50);
    assert_eq!(play(&mut reader, &on), (50, true), "it goes on once it has answered");
    let second = record(&mut car.sender().unwrap(), &mut reader, 50);
    assert_eq!(play(&mut reader, &second), (50, true), "a later start is heard");
    let mut again = base.live_reader().unwrap();
    for recorded in [&early, &on, &second] {
        assert_eq!(play(&mut reader, recorded).0, 0);
        assert_eq!(play(&mut again, recorded), (0, false));
    }
}

/// Two machines that begin at once hear each other after three announcements.
#[test]
fn two_readers_answer_each_other() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let mut ends: Vec<_> = [&base, &car]
        .map(|member| (member.sender().unwrap(), member.live_reader().unwrap()))
        .into();
    let mut heard = Vec::new();
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        let questions = ends[from].1.questions().unwrap();
        let mut buf = FrameBuf::new();
        let frame = ends[from].0.announce(questions, &mut buf).unwrap();
        heard.push(ends[to].1.announced(frame).is_ok());
    }
    assert_eq!(heard, [false, true, true]);
}

#[test]
fn a_reader_loses_nothing_behind_an_answer_and_stores_nothing() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let mut sender = car.sender().unwrap();
    let before = files(&place.path("base"));
    for _ in 0..4 {
        let mut reader = base.live_reader().unwrap();
        let recorded = record(&mut sender, &mut reader, 700);
        assert_eq!(play(&mut reader, &recorded), (700, true));
    }
    assert_eq!(files(&place.path("base")), before);
}

/// Two members obey orders while packets run. Neither announces itself anew: nothing is lost.
#[test]
fn an_order_that_is_obeyed_stops_no_packet() {
    let place = Place::new();
    let (mut base, mut car) = fleet(&place);
    let (mut reader, mut sender) = (base.live_reader().unwrap(), car.sender().unwrap());
    let recorded = record(&mut sender, &mut reader, 3);
    assert_eq!(play(&mut reader, &recorded), (3, true));
    let (link, mut buf) = (Binding::link(), FrameBuf::new());
    let mut heard = |sender: &mut GroupSender, reader: &mut LiveReader| {
        let fields = sender.fields(Class::Group, 1);
        let frame = sender.seal(&fields, &link, b"packet", &mut buf).unwrap();
        reader.open(&link, &mut frame.to_vec()).is_ok()
    };
    for order in 0..4 {
        // Two orders leave the epoch as it is, and two begin another one.
        let notices = match order {
            0 | 2 => join(&mut base, &place.keys(&format!("new{order}"))).1,
            _ => base.rotate().unwrap(),
        };
        apply(&mut car, &notices).unwrap();
        reader.follow(&base).unwrap();
        // A fresh secret ends the epoch before it for writing.
        let is_heard = heard(&mut sender, &mut reader);
        assert_eq!(is_heard, sender.epoch() == base.epochs().newest(), "the reader alone: {order}");
        sender.follow().unwrap();
        assert!(heard(&mut sender, &mut reader), "both have obeyed {order}");
        let questions = AnnouncedQuestions::default();
        let frame = sender.announce(questions, &mut FrameBuf::new()).unwrap().to_vec();
        let told = reader.announced(&mut frame.clone()).unwrap();
        assert_eq!(told.orders, sender.orders());
        assert!(heard(&mut sender, &mut reader));
    }
}

/// In the epoch before it has used counters that the folder does not know any more.
#[test]
fn a_sender_whose_folder_is_put_back_draws_another_context() {
    let place = Place::new();
    let (mut base, mut car) = fleet(&place);
    let mut sender = car.sender().unwrap();
    copy(&place.path("car"), &place.path("kept"));
    let before = (sender.epoch(), sender.context());
    apply(&mut car, &base.rotate().unwrap()).unwrap();
    sender.follow().unwrap();
    assert!(sender.epoch() > before.0);
    assert_eq!(sender.context(), before.1);
    std::fs::remove_dir_all(place.path("car")).unwrap();
    copy(&place.path("kept"), &place.path("car"));
    sender.follow().unwrap();
    assert_eq!(sender.epoch(), before.0);
    assert_ne!(sender.context(), before.1);
}

/// An order is known that the member has not got: it may send no packet, and hears its peer anew.
#[test]
fn a_member_that_is_behind_asks_and_hears() {
    let place = Place::new();
    let (mut base, mut car) = fleet(&place);
    let mut notices = join(&mut base, &place.keys("van")).1;
    notices.extend(join(&mut base, &place.keys("bus")).1);
    apply(&mut car, &notices[1..]).unwrap();
    assert!(matches!(car.sender(), Err(Error::Behind { .. })));
    let mut ends: Vec<_> = [car.urgent_sender(), base.sender()]
        .into_iter()
        .zip([&car, &base])
        .map(|(sender, member)| (sender.unwrap(), member.live_reader().unwrap()))
        .collect();
    let mut heard = Vec::new();
    for (from, to) in [(0, 1), (1, 0)] {
        let questions = ends[from].1.questions().unwrap();
        let mut buf = FrameBuf::new();
        let frame = ends[from].0.announce(questions, &mut buf).unwrap();
        heard.push(ends[to].1.announced(frame).is_ok());
    }
    assert_eq!(heard, [false, true]);
}

/// A forger with the group's key, and an announcement that answers: no frame opens twice.
#[test]
fn unsigned_frames_in_its_name_silence_a_sender_for_one_announcement() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let mut reader = base.live_reader().unwrap();
    let mut sender = car.sender().unwrap();
    let recorded = record(&mut sender, &mut reader, 3);
    assert_eq!(play(&mut reader, &recorded), (3, true));
    let forged = {
        let (slot, context) = (sender.slot(), sender.context());
        let mut forger = Sealer::new(base.group(), slot, context, base.epochs(), 1 << 39).unwrap();
        let fields = HeaderFields {
            class: Class::Group,
            ..HeaderFields::new(base.tag(), base.source().unwrap(), 1)
        };
        let (link, mut buf) = (Binding::link(), FrameBuf::new());
        seal_frame(&mut forger, &fields, &link, b"", &mut buf).unwrap().to_vec()
    };
    reader.open(&Binding::link(), &mut forged.clone()).expect("it shows that a member made it");
    let silenced = record(&mut sender, &mut reader, 3);
    assert_eq!(play(&mut reader, &silenced), (0, true), "signed ones are heard all the time");
    let before = reader.questions().unwrap().own;
    until("another question is asked", || reader.questions().unwrap().own != before);
    let on = record(&mut sender, &mut reader, 3);
    assert_eq!(play(&mut reader, &on), (3, true));
    assert_eq!(play(&mut reader, &on), (0, false));
    assert!(reader.open(&Binding::link(), &mut forged.clone()).is_err());
}

#[test]
fn a_reader_of_a_folder_that_was_put_back_hears_no_recording() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let mut reader = base.live_reader().unwrap();
    copy(&place.path("base"), &place.path("kept"));
    let recorded = record(&mut car.sender().unwrap(), &mut reader, 20);
    assert_eq!(play(&mut reader, &recorded), (20, true));
    std::fs::remove_dir_all(place.path("base")).unwrap();
    copy(&place.path("kept"), &place.path("base"));
    let base = sealane_group::KeyFolder::open(&place.path("base"), None).unwrap();
    let mut reader = base.group("fleet").unwrap().live_reader().unwrap();
    assert_eq!(play(&mut reader, &recorded), (0, false));
    let fresh = record(&mut car.sender().unwrap(), &mut reader, 5);
    assert_eq!(play(&mut reader, &fresh), (5, true));
}
