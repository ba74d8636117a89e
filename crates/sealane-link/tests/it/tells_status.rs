//! A relay tells what it carries and drops, by neighbour too, across changes of its configuration,
//! and writes what its links carry to a file.

use std::io::Write;
use std::sync::{Arc, Mutex};

use sealane_frame::PeerTag;
use sealane_link::{ChangeCount, Config, DropReason};

use crate::stage::{Maker, Stage, addresses, card, route, tag, text, wait_until};

#[test]
fn each_neighbour_has_counts_of_its_own_which_a_reload_keeps() {
    let stage = Stage::new(3);
    let watch = stage.relay.watch();
    let (mut maker, silent) = (Maker::new(0), watch.status());
    assert!(silent.neighbours.iter().all(|one| one.heard.is_none()));
    let good = maker.frame(tag(1), b"to one");
    let mut bad = good.clone();
    bad[17] ^= 1;
    stage.send(0, &good);
    stage.send(0, &bad);
    stage.receive(1);
    stage.wait_for(DropReason::Malformed, 1);
    stage.send(0, &maker.announcement());
    stage.receive(2);
    // A worker tells what it counted after it has sent.
    wait_until("the counts", || {
        let [of_0, of_1, _] = &*counts(&stage) else { panic!("three neighbours") };
        of_0.received.units == 3 && of_1.sent.units == 3
    });
    let [of_0, of_1, _] = &*counts(&stage) else { panic!("three neighbours") };
    assert_eq!((of_0.received.units, of_0.dropped), (3, 1));
    assert!(of_0.received.bytes > 3 * 64);
    // The note of the start, a frame, and an announcement.
    assert_eq!((of_1.sent.units, of_1.received.units, of_1.dropped), (3, 0, 0));
    let status = watch.status();
    assert_eq!((status.announcements_held, status.routes.len()), (1, 3));
    assert!(status.neighbours[0].heard.is_some() && status.neighbours[1].heard.is_none());
    assert_eq!(status.groups[0].members, 9);

    let all = addresses(&stage.peers);
    let fewer = text(0, stage.at, &all[..2], &route("*", "n1"));
    let change = stage.relay.reload(&Config::parse(&fewer).unwrap(), &[card()]).unwrap();
    assert_eq!(change.neighbours, ChangeCount { added: 0, removed: 1 });
    assert_eq!(change.routes, ChangeCount { added: 1, removed: 1 });
    assert_eq!(change.members, ChangeCount::default());
    stage.relay.refuse_reload("no such file".to_owned());
    let status = watch.status();
    assert_eq!((status.reloads.taken, status.reloads.refused), (1, 1));
    assert_eq!(status.reloads.last.unwrap().outcome, Err("no such file".into()));
    assert_eq!(status.neighbours.len(), 2);
    assert_eq!(status.neighbours[0].tally.received.units, 3, "it is the same neighbour");
    stage.send(0, &maker.frame(tag(1), b"and on"));
    stage.receive(1);
    wait_until("the next one", || counts(&stage)[0].received.units == 4);
}

fn counts(stage: &Stage) -> Vec<sealane_link::NeighbourTally> {
    stage.relay.watch().status().neighbours.iter().map(|one| one.tally).collect()
}

#[test]
fn the_metrics_have_a_series_for_each_reason_and_neighbour() {
    let stage = Stage::new(2);
    let frame = Maker::new(0).frame(PeerTag::BROADCAST, b"hello");
    stage.send(0, &frame);
    stage.send(0, &frame);
    stage.wait_for(DropReason::Repeat, 1);
    wait_until("counted", || counts(&stage)[0].received.units == 2);
    let page = stage.relay.watch().status().metrics();
    for why in DropReason::ALL {
        let count = u64::from(why == DropReason::Repeat);
        let line = format!("\nsealane_relay_dropped_total{{reason=\"{}\"}} {count}\n", why.name());
        assert!(page.contains(&line), "{line}{page}");
    }
    for line in [
        "# TYPE sealane_carry_received counter\n",
        "\nsealane_carry_received_total 2\n",
        "\nsealane_relay_forwarded_total 1\n",
        "\nsealane_carry_neighbour_received_total{neighbour=\"n0\"} 2\n",
        "\nsealane_relay_neighbour_dropped_total{neighbour=\"n0\"} 1\n",
        "\nsealane_carry_neighbour_silent_seconds{neighbour=\"n0\"} ",
        "\nsealane_relay_members{group=\"9a9a9a9a\"} 9\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    assert!(!page.contains("silent_seconds{neighbour=\"n1\"}"), "it has said nothing");
    assert!(page.ends_with("# EOF\n"));
}

/// A file that others can read while it is written.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_has_what_came_as_it_came_and_what_left_as_it_left() {
    let stage = Stage::new(2);
    let file = Shown::default();
    stage.relay.capture(file.clone()).unwrap();
    let sent = Maker::new(0).frame(tag(1), b"where I am");
    stage.send(0, &sent);
    let got = stage.receive(1);
    let junk = [0xee; 20];
    stage.send(1, &junk);
    stage.wait_for(DropReason::Malformed, 1);
    let watch = stage.relay.watch();
    stage.relay.stop();
    let bytes = file.0.lock().unwrap().clone();
    let holds = |unit: &[u8]| bytes.windows(unit.len()).filter(|window| *window == unit).count();
    assert_eq!((holds(&sent), holds(&got), holds(&junk)), (1, 1, 1));
    let tally = watch.status().capture.unwrap();
    // The notes of the start may have left before it.
    assert!((3..=5).contains(&tally.units) && tally.missed == 0, "{tally:?}");
}
