//! A message that came over a link and was accepted is never accepted again. That holds for
//! everything that is recorded and played, before, during and after a restart of the reader. It
//! also holds for a folder that was put back.

use sealane_frame::FrameBuf;
use sealane_group::{EpochSource, Error, GroupMember, GroupSender, LiveReader, NewGroup};
use sealane_seal::{Binding, Class};
use sealane_testing::until;

use crate::shared::{Place, copy, join};

/// A sender's announcement, and so many frames behind it.
fn record(sender: &mut GroupSender, count: usize) -> Vec<Vec<u8>> {
    let mut buf = FrameBuf::new();
    let mut frames = vec![sender.announce(&mut buf).unwrap().to_vec()];
    let (fields, link) = (sender.fields(Class::Group, 1), Binding::link());
    for n in 0..count {
        let body = [n as u8];
        frames.push(sender.seal(&fields, &link, &body, &mut buf).unwrap().to_vec());
    }
    frames
}

/// Plays a recording; gives how many of its messages were accepted, and whether it began a session.
fn play(reader: &mut LiveReader, recorded: &[Vec<u8>], now_ms: u64) -> (usize, bool) {
    let (first, frames) = recorded.split_first().unwrap();
    let is_announced = reader.announced(&mut first.clone(), now_ms).is_ok();
    let accepted = frames
        .iter()
        .filter(|frame| reader.open(&Binding::link(), &mut (*frame).clone(), now_ms).is_ok());
    (accepted.count(), is_announced)
}

fn fleet(place: &Place) -> (GroupMember, GroupMember) {
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (car, _) = join(&mut base, &place.keys("car"));
    (base, car)
}

fn name(error: &Error) -> &'static str {
    error.info().name
}

#[test]
fn a_recording_is_played_in_vain_before_and_after_every_restart() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let (first, second) =
        (record(&mut car.sender().unwrap(), 50), record(&mut car.sender().unwrap(), 50));
    let mut reader = base.live_reader().unwrap();
    assert_eq!(play(&mut reader, &first, 0), (50, true));
    assert_eq!(play(&mut reader, &first, 1), (0, false), "the whole again");
    for round in 0..3 {
        drop(reader);
        reader = base.live_reader().unwrap();
        assert_eq!(play(&mut reader, &first, 10 + round), (0, false), "restart {round}");
    }
    assert_eq!(play(&mut reader, &second, 20), (50, true), "a later start is heard");
    assert_eq!(play(&mut reader, &first, 21), (0, false), "an earlier one is not");
    drop(reader);
    let mut reader = base.live_reader().unwrap();
    for recorded in [&first, &second] {
        assert_eq!(play(&mut reader, recorded, 30).0, 0);
    }
}

#[test]
fn a_reader_that_stops_in_the_middle_refuses_little_and_hears_nothing_twice() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let recorded = record(&mut car.sender().unwrap(), 3000);
    let (first, frames) = recorded.split_first().unwrap();
    let mut reader = base.live_reader().unwrap();
    reader.announced(&mut first.clone(), 0).unwrap();
    let mut heard = vec![0; frames.len()];
    // 1,000 frames a second; the reader is stopped at odd moments.
    for (at, frame) in frames.iter().enumerate() {
        if [7, 500, 501, 1777].contains(&at) {
            drop(reader);
            reader = base.live_reader().unwrap();
        }
        heard[at] +=
            usize::from(reader.open(&Binding::link(), &mut frame.clone(), at as u64).is_ok());
    }
    for frame in frames {
        assert!(reader.open(&Binding::link(), &mut frame.clone(), 9999).is_err());
    }
    assert!(heard.iter().all(|times| *times <= 1));
    let lost = heard.iter().filter(|times| **times == 0).count();
    assert!(lost < 2200, "{lost} were refused");
}

/// The ceiling of the only session that is on disk.
fn stored_ceiling(place: &Place) -> u64 {
    let bytes = std::fs::read(place.path("base/groups/fleet/sessions")).unwrap();
    let (states, _checksum) = bytes.split_at(bytes.len() - 16);
    u64::from_be_bytes(states[states.len() - 8..].try_into().unwrap())
}

/// The next ceiling is stored while messages still come below the last one. They wait for nothing:
/// here another process holds the folder, and nothing can be stored.
#[test]
fn messages_below_a_ceiling_wait_for_no_disk() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let recorded = record(&mut car.sender().unwrap(), 3000);
    let (first, frames) = recorded.split_first().unwrap();
    let mut reader = base.live_reader().unwrap();
    reader.announced(&mut first.clone(), 0).unwrap();
    let mut frames = (1..).zip(frames).map(|(ms, frame)| (ms, frame.clone()));
    // The announcement has counter 0, and each frame the next one. One comes each millisecond.
    let mut next = 1;
    let mut take = |reader: &mut LiveReader, until: u64| {
        for (ms, mut frame) in frames.by_ref().take((until - next) as usize) {
            reader.open(&Binding::link(), &mut frame, ms).unwrap();
        }
        next = until;
    };
    take(&mut reader, 500);
    let before = stored_ceiling(&place);
    assert!(before > 500, "{before}");
    take(&mut reader, before - 1);
    until("another one is stored ahead", || stored_ceiling(&place) != before);
    let lock = std::fs::File::open(place.path("base/lock")).unwrap();
    lock.lock().unwrap();
    let after = stored_ceiling(&place);
    assert!(after > before, "{before}, {after}");
    // Were it to wait for the folder, it would wait for itself.
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (reader, take) = (&mut reader, &mut take);
        scope.spawn(move || {
            take(reader, after);
            done.send(()).unwrap();
        });
        let outcome = is_done.recv_timeout(std::time::Duration::from_secs(60));
        lock.unlock().unwrap();
        assert!(outcome.is_ok(), "a message waited for the folder");
    });
    take(&mut reader, after + 500);
}

#[test]
fn a_reader_of_a_folder_that_was_put_back_waits_for_a_later_start() {
    let place = Place::new();
    let (base, car) = fleet(&place);
    let recorded = record(&mut car.sender().unwrap(), 20);
    let (first, frames) = recorded.split_first().unwrap();
    let mut reader = base.live_reader().unwrap();
    reader.announced(&mut first.clone(), 0).unwrap();
    reader.open(&Binding::link(), &mut frames[0].clone(), 0).unwrap();
    copy(&place.path("base"), &place.path("kept"));
    for (at, frame) in frames.iter().enumerate().skip(1) {
        reader.open(&Binding::link(), &mut frame.clone(), 1000 * at as u64).unwrap();
    }
    drop(reader);
    std::fs::remove_dir_all(place.path("base")).unwrap();
    copy(&place.path("kept"), &place.path("base"));
    let base = sealane_group::KeyFolder::open(&place.path("base"), None).unwrap();
    let mut reader = base.group("fleet").unwrap().live_reader().unwrap();
    assert_eq!(play(&mut reader, &recorded, 99_000), (0, false));
    assert_eq!(play(&mut reader, &record(&mut car.sender().unwrap(), 5), 99_001), (5, true));
}

#[test]
fn a_reader_that_has_lost_its_sessions_waits_for_the_next_epoch() {
    let place = Place::new();
    let (mut base, mut car) = fleet(&place);
    let mut reader = base.live_reader().unwrap();
    assert_eq!(play(&mut reader, &record(&mut car.sender().unwrap(), 3), 0), (3, true));
    drop(reader);
    let sessions = place.path("base/groups/fleet/sessions");
    let mut bytes = std::fs::read(&sessions).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    std::fs::write(&sessions, bytes).unwrap();
    let mut reader = base.live_reader().unwrap();
    let fresh = record(&mut car.sender().unwrap(), 3);
    let refused = reader.announced(&mut fresh[0].clone(), 1).unwrap_err();
    assert_eq!(name(&refused), "EpochPast");
    let rotated = base.rotate().unwrap();
    for notice in &rotated {
        car.apply(notice).unwrap();
    }
    reader.follow(&base).unwrap();
    assert_eq!(play(&mut reader, &fresh, 2), (0, false), "the epoch before is not taken any more");
    assert_eq!(play(&mut reader, &record(&mut car.sender().unwrap(), 3), 2), (3, true));
}
