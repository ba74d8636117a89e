//! The laws of media, whatever runs over them.

use sealane_sim::{SimRun, SimSummary, SimWatch};

use crate::{run, sketch};

/// One machine that sends 1,000 beacons of 100 bytes, and one that hears, so far away.
fn pair(profile: &str, medium: &str, metres: f64) -> String {
    format!(
        "[[medium]]\nname = \"m\"\nprofile = \"{profile}\"\n{medium}\n\
         [[node]]\nname = \"one\"\nkind = \"beacon\"\nmedia = [\"m\"]\n\
         beacon_ms = 100\nbeacon_bytes = 20\n\
         [[node]]\nname = \"two\"\nkind = \"flood\"\nmedia = [\"m\"]\nat = [{metres}, 0]\n"
    )
}

fn heard(summary: &SimSummary) -> f64 {
    summary.heard() as f64 / summary.units() as f64
}

#[test]
fn loss_by_distance_is_what_the_formula_says() {
    let fading = sealane_sim::NakagamiFading { m: 3, exponent: 2.7, range_m: 300.0 };
    for metres in [50.0, 200.0, 300.0, 400.0] {
        let summary = run(sketch(1000, &pair("11p", "range_m = 300", metres)), 5, 1000);
        let known = fading.arrives(metres);
        // 10,000 trials: three standard deviations are 0.015 at most.
        assert!((heard(&summary) - known).abs() < 0.016, "{metres} m: {summary} not {known}");
    }
}

#[test]
fn without_fading_the_range_is_an_edge() {
    for (metres, part) in [(99.0, 1.0), (101.0, 0.0)] {
        let medium = "range_m = 100\nfading = 0";
        for profile in ["11p", "lora", "ble-advertising"] {
            let medium = format!("{medium}\nduty_percent = 100");
            let summary = run(sketch(50, &pair(profile, &medium, metres)), 5, 50);
            assert_eq!(heard(&summary), part, "{profile} at {metres} m: {summary}");
        }
    }
}

#[test]
fn loss_duplication_and_delay_are_as_asked_for() {
    let lossy = run(sketch(1000, &pair("wire", "loss = 0.25", 0.0)), 1, 1000);
    assert!((heard(&lossy) - 0.75).abs() < 0.015, "{lossy}");
    let twice = run(sketch(1000, &pair("wire", "duplicates = 0.5", 0.0)), 1, 1000);
    let times = twice.arrived() as f64 / twice.units() as f64;
    assert!((times - 1.5).abs() < 0.016, "{times}");
}

#[test]
fn a_direction_loses_the_same_throughout_and_others_something_else() {
    let losses: Vec<_> = (0..20)
        .map(|seed| {
            1.0 - heard(&run(sketch(200, &pair("wire", "asymmetry = 0.5", 0.0)), seed, 200))
        })
        .collect();
    assert!(losses.iter().all(|loss| *loss < 0.55));
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    assert!((0.15..0.35).contains(&mean), "{losses:?}");
    let spread =
        losses.iter().cloned().fold(0.0, f64::max) - losses.iter().cloned().fold(1.0, f64::min);
    assert!(spread > 0.2, "{losses:?}");
}

/// The latency of messages between two machines on a wire.
fn latency(medium: &str, mtu_bytes: usize) -> SimSummary {
    let text = format!(
        "[[medium]]\nname = \"m\"\nprofile = \"wire\"\n{medium}\n\
         [[node]]\nname = \"end\"\ncount = 2\nkind = \"flood\"\nmedia = [\"m\"]\n\
         [[flow]]\nfrom = \"end-1\"\nto = \"end-2\"\nevery_ms = 10\nbytes = {mtu_bytes}\n"
    );
    run(sketch(20, &text), 1, 20)
}

#[test]
fn a_delay_holds_and_jitter_turns_the_order_over() {
    let steady = latency("delay_ms = 25", 100);
    assert_eq!(steady.half_within, steady.all_within);
    assert!((25_000..25_100).contains(&steady.all_within.0), "{steady}");
    let shaken = latency("delay_ms = 25\njitter_ms = 50", 100);
    assert!((70_000..75_100).contains(&shaken.all_within.0), "{shaken}");
    assert_eq!(shaken.delivered, shaken.expected - still_under_way(&shaken));

    let mut log = vec![];
    let text = "[[medium]]\nname = \"m\"\nprofile = \"wire\"\njitter_ms = 50\n\
                [[node]]\nname = \"end\"\ncount = 2\nkind = \"flood\"\nmedia = [\"m\"]\n\
                [[flow]]\nfrom = \"end-1\"\nto = \"end-2\"\nevery_ms = 10\nbytes = 8\n";
    SimRun::new(sketch(5, text), 1, &[], SimWatch::new().with_log(&mut log))
        .unwrap()
        .finish()
        .unwrap();
    let log = String::from_utf8(log).unwrap();
    let order = log.lines().filter(|line| line.contains("\"kind\":\"deliver\""));
    let order: Vec<u64> = order
        .map(|line| line.split("\"message\":").nth(1).unwrap().split(',').next().unwrap())
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(order.windows(2).any(|pair| pair[1] < pair[0]), "{order:?}");
}

fn still_under_way(summary: &SimSummary) -> u64 {
    summary.expected - summary.delivered
}

#[test]
fn a_wire_that_is_full_queues_and_then_drops() {
    // 1,400 bytes each 10 ms over 0.5 Mbit/s: more than twice what it carries.
    let full = latency("megabits_per_second = 0.5", 1400);
    assert!(full.losses().any(|(why, count)| why == "full" && count > 500), "{full}");
    assert!(full.all_within.0 > 1_000_000 && full.all_within.0 < 2_000_000, "{full}");
}

#[test]
fn radios_that_cannot_hear_each_other_collide_and_those_that_can_take_turns() {
    let scene = |metres: f64| {
        let text = format!(
            "[[medium]]\nname = \"m\"\nprofile = \"11p\"\nrange_m = 100\nfading = 0\n\
             [[node]]\nname = \"side\"\ncount = 2\nkind = \"beacon\"\nmedia = [\"m\"]\n\
             at = [-{metres}, 0]\nline = [{}, 0]\nbeacon_ms = 3\nbeacon_bytes = 1000\n\
             [[node]]\nname = \"middle\"\nkind = \"flood\"\nmedia = [\"m\"]\n",
            2.0 * metres
        );
        let summary = run(sketch(20, &text), 1, 20);
        let lost = summary.losses().find(|(why, _)| *why == "collision").unwrap().1;
        (lost as f64 / summary.units() as f64, summary)
    };
    let (hidden, _) = scene(90.0);
    assert!(hidden > 0.4, "{hidden}: two hidden senders that are busy half of the time");
    let (near, summary) = scene(40.0);
    assert!(near < 0.15, "{near}: {summary}");
    assert!(summary.heard_ppm_most > 700_000, "the channel is used: {summary}");
}

#[test]
fn the_stronger_one_is_received() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"lora\"\nlistens = false\n\
                range_m = 1000\nfading = 0\nduty_percent = 100\n\
                [[node]]\nname = \"near\"\nkind = \"beacon\"\nmedia = [\"m\"]\nat = [100, 0]\n\
                beacon_ms = 100\nbeacon_bytes = 20\n\
                [[node]]\nname = \"far\"\nkind = \"beacon\"\nmedia = [\"m\"]\nat = [-950, 0]\n\
                beacon_ms = 100\nbeacon_bytes = 20\n\
                [[node]]\nname = \"ear\"\nkind = \"flood\"\nmedia = [\"m\"]\n";
    let mut log = vec![];
    let watch = SimWatch::new().with_log(&mut log);
    SimRun::new(sketch(100, text), 1, &[], watch).unwrap().finish().unwrap();
    let log = String::from_utf8(log).unwrap();
    let sent = |node: u32| {
        let lines = log.lines().filter(|line| line.contains("\"kind\":\"send\""));
        let own = lines.filter(|line| line.contains(&format!("\"node\":{node},"))).count();
        let heard = log.lines().filter(|line| {
            line.contains("\"kind\":\"send\"")
                && line.contains(&format!("\"node\":{node},"))
                && line.contains("\"heard\":[2]")
        });
        heard.count() as f64 / own as f64
    };
    assert_eq!(sent(0), 1.0, "the near one is never drowned");
    assert!(sent(1) < 0.6, "the far one is, when both speak");
}

#[test]
fn connections_of_bluetooth_repeat_what_is_lost_and_keep_their_beat() {
    for (mtu, bytes) in [(23, 8), (185, 100), (247, 200)] {
        let text = format!(
            "[[medium]]\nname = \"m\"\nprofile = \"ble\"\nmtu = {mtu}\ninterval_ms = 50\n\
             range_m = 50\n\
             [[node]]\nname = \"end\"\ncount = 2\nkind = \"flood\"\nmedia = [\"m\"]\n\
             line = [50, 0]\n\
             [[flow]]\nfrom = \"end-1\"\nto = \"end-2\"\nevery_ms = 1000\nbytes = {bytes}\n\
             until_s = 190\nrandom = true\n"
        );
        let summary = run(sketch(200, &text), 1, 200);
        assert_eq!(summary.delivered, summary.expected, "{summary}");
        let half = summary.half_within.0;
        assert!((20_000..110_000).contains(&half), "a packet of two is repeated: {summary}");
    }
}

#[test]
fn what_is_longer_than_a_medium_carries_is_dropped_and_counted() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"ble\"\nmtu = 23\n\
                [[node]]\nname = \"end\"\ncount = 2\nkind = \"flood\"\nmedia = [\"m\"]\n\
                [[flow]]\nfrom = \"end-1\"\nto = \"end-2\"\nevery_ms = 1000\nbytes = 14\n";
    let summary = run(sketch(100, text), 1, 100);
    let long = summary.losses().find(|(why, _)| *why == "too_long").unwrap().1;
    assert_eq!((long, summary.units()), (summary.messages, 0), "21 bytes are more than 20");
}

#[test]
fn a_battery_runs_out_when_its_joules_are_spent() {
    // 38 mW of listening: 3.8 J last for 100 s.
    let text = "[[medium]]\nname = \"m\"\nprofile = \"lora\"\n\
                [[node]]\nname = \"one\"\nkind = \"flood\"\nmedia = [\"m\"]\nbattery_j = 3.8\n";
    let mut log = vec![];
    let watch = SimWatch::new().with_log(&mut log);
    SimRun::new(sketch(200, text), 1, &[], watch).unwrap().finish().unwrap();
    let log = String::from_utf8(log).unwrap();
    let empty = log.lines().find(|line| line.contains("\"kind\":\"empty\"")).unwrap();
    assert!(empty.contains("\"at\":100000000,") || empty.contains("\"at\":101000000,"), "{empty}");
}

#[test]
fn who_leaves_joins_and_sleeps_hears_what_is_sent_meanwhile() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"wire\"\n\
                [[node]]\nname = \"one\"\nkind = \"beacon\"\nmedia = [\"m\"]\n\
                [[node]]\nname = \"two\"\nkind = \"flood\"\nmedia = [\"m\"]\n\
                [[event]]\nat_s = 100\ndo = \"leave\"\nwho = [\"two\"]\n\
                [[event]]\nat_s = 200\ndo = \"join\"\nwho = [\"two\"]\n\
                [[event]]\nat_s = 300\ndo = \"sleep\"\nwho = [\"two\"]\n\
                [[event]]\nat_s = 400\ndo = \"wake\"\nwho = [\"two\"]\n";
    let summary = run(sketch(500, text), 1, 500);
    assert!((298..=302).contains(&summary.arrived()), "{summary}");
}

#[test]
fn random_waits_come_to_the_rate_that_was_asked_for() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"wire\"\n\
                [[node]]\nname = \"end\"\ncount = 2\nkind = \"flood\"\nmedia = [\"m\"]\n\
                [[flow]]\nfrom = \"end\"\nto = \"end\"\nevery_ms = 100\nbytes = 20\n\
                random = true\n";
    let summary = run(sketch(1000, text), 1, 1000);
    assert!((19_400..20_600).contains(&summary.messages), "{summary}");
    assert_eq!(summary.delivered, summary.messages);
}

/// A disk that is full.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_log_that_finds_no_room_ends_the_run_by_name() {
    let mut full = Full;
    let scenario = sketch(5, &pair("11p", "", 10.0));
    let error = SimRun::new(scenario, 1, &[], SimWatch::new().with_log(&mut full)).err().unwrap();
    assert_eq!(error.info().code, "SL-SIM-06");
}

#[test]
fn a_run_that_has_too_much_to_do_ends_by_name_and_not_with_the_memory() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"wire\"\ndelay_ms = 60000\n\
                [[node]]\nname = \"one\"\ncount = 600\nkind = \"beacon\"\nmedia = [\"m\"]\n\
                beacon_ms = 1\n";
    let error =
        SimRun::new(sketch(60, text), 1, &[], SimWatch::new()).unwrap().finish().unwrap_err();
    assert_eq!(error.info().code, "SL-SIM-07");
    assert!(error.to_string().contains("more than 1048576 steps"), "{error}");
}

#[test]
fn who_is_moved_out_of_reach_and_back_is_heard_where_it_is() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"11p\"\nrange_m = 100\nfading = 0\n\
                [[node]]\nname = \"one\"\nkind = \"beacon\"\nmedia = [\"m\"]\n\
                [[node]]\nname = \"two\"\nkind = \"flood\"\nmedia = [\"m\"]\nat = [50, 0]\n\
                [[event]]\nat_s = 100\ndo = \"move\"\nwho = [\"two\"]\nto = [150, 0]\n\
                [[event]]\nat_s = 200\ndo = \"move\"\nwho = [\"one\"]\nto = [100, 0]\n";
    let summary = run(sketch(300, text), 1, 300);
    assert!((199..=201).contains(&summary.heard()), "{summary}");
}
