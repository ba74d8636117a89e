//! One seed, one log, byte for byte: twice, with a capture and without. Another seed differs.

use sealane_sim::{SimRun, SimSpan, SimWatch};

use crate::named;

/// Every scenario, for so long that something of each kind has happened.
const RUNS: [(&str, u64); 10] = [
    ("chain", 20),
    ("star", 60),
    ("mixed", 105),
    ("team", 10),
    ("city", 1),
    ("radios", 5),
    ("black-hole", 65),
    ("ack-storm", 8),
    ("documents", 30),
    ("slow", 1800),
];

fn log(name: &str, seconds: u64, seed: u64, is_watched: bool) -> Vec<u8> {
    let (mut log, mut capture) = (vec![], vec![]);
    let scenario = named(name).lasting(SimSpan::from_s(seconds));
    let mut watch = SimWatch::new().with_log(&mut log);
    if is_watched {
        watch = watch.with_capture(&mut capture).with_page(&scenario, seed);
    }
    let outcome = SimRun::new(scenario, seed, &[], watch).unwrap().finish().unwrap();
    assert_eq!(outcome.page.is_some(), is_watched);
    assert_eq!(capture.len() > 24, is_watched);
    log
}

#[test]
fn one_seed_is_one_log_with_and_without_a_capture_and_another_seed_differs() {
    for (name, seconds) in RUNS {
        let first = log(name, seconds, 7, false);
        assert!(first.iter().filter(|byte| **byte == b'\n').count() > 20, "{name}");
        let second = log(name, seconds, 7, true);
        assert!(first == second, "{name}: a second run, with a capture, differs");
        let other = log(name, seconds, 8, false);
        assert!(events(&first) != events(&other), "{name}: another seed changes nothing");
    }
}

/// All but the first line, which names the seed.
fn events(log: &[u8]) -> &[u8] {
    let end = log.iter().position(|byte| *byte == b'\n').unwrap();
    &log[end..]
}

#[test]
fn logs_are_read_again_and_say_the_same() {
    for (name, seconds) in RUNS {
        let log = log(name, seconds, 3, false);
        let replay = sealane_sim::LogReplay::read(log.as_slice()).unwrap();
        let summary = crate::run(named(name), 3, seconds);
        assert_eq!((replay.units, replay.heard), (summary.units(), summary.heard()), "{name}");
        assert_eq!((replay.delivered, replay.expected), (summary.delivered, summary.expected));
    }
}
