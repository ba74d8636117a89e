//! The scenarios that are shipped: three seeds each, together five simulated minutes and more.

use std::collections::BTreeSet;

use sealane_sim::SimSpan;

use crate::story::{Line, hops, told};
use crate::{folder, named, run};

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn a_chain_of_machines_finds_its_routes_and_carries_messages_over_five_hops_and_back() {
    for seed in SEEDS {
        let summary = run(named("chain"), seed, 300);
        assert!(summary.messages > 560 && summary.ratio() > 0.97, "seed {seed}: {summary}");
        assert_eq!((summary.again, summary.astray, summary.loops()), (0, 0, 0));
        assert!((25..200).contains(&summary.routes()), "seed {seed}: {summary}");
    }
}

#[test]
fn a_star_of_sleepers_reaches_its_gateway() {
    for seed in SEEDS {
        let summary = run(named("star"), seed, 300);
        assert!(summary.messages > 200 && summary.ratio() > 0.9, "seed {seed}: {summary}");
        assert_eq!(summary.loops(), 0, "seed {seed}: {summary}");
    }
}

#[test]
fn a_partition_stops_what_crosses_it_and_only_that() {
    for seed in SEEDS {
        let summary = run(named("mixed"), seed, 180);
        assert!((0.3..0.95).contains(&summary.ratio()), "seed {seed}: {summary}");
        assert_eq!(summary.loops(), 0, "seed {seed}: {summary}");
    }
}

#[test]
fn a_team_of_twenty_is_reached_over_seven_hops() {
    const LAST: usize = 14;
    let mut sent = Sent::default();
    for seed in SEEDS {
        let lines = told(named("team").lasting(SimSpan::from_s(40)), seed);
        assert_eq!(lines.last().unwrap().loops, 0, "seed {seed}");
        assert!(hops(&lines, 0, LAST) >= Some(7), "seed {seed}");
        let delivered: BTreeSet<_> =
            lines.iter().filter(|line| line.is("deliver")).map(|l| (l.message, l.node)).collect();
        // Until then all find each other; and what is sent at the end is on its way.
        let is_calm = |line: &&Line| (15_000_000..39_000_000).contains(&line.at);
        for offer in lines.iter().filter(|line| line.is("offer")).filter(is_calm) {
            let has = |node: usize| u64::from(delivered.contains(&(offer.message, node)));
            match offer.node {
                0 => sent.there.note(has(LAST)),
                LAST => sent.back.note(has(0)),
                _ => {
                    let heard: u64 = (0..19).map(has).sum();
                    assert_eq!(heard, 19, "seed {seed}: a call for help reaches all");
                    sent.calls += 1;
                }
            }
        }
    }
    // Nobody acknowledges what goes to one machine by Bluetooth advertising, and no hop repeats it.
    println!("{sent:?}");
    assert!(sent.calls == 3 && sent.there.offered >= 14 && sent.back.offered >= 7, "{sent:?}");
    assert!(2 * sent.there.came >= sent.there.offered, "{sent:?}");
    assert!(2 * sent.back.came >= sent.back.offered, "{sent:?}");
}

/// The messages along the team, and the answers.
#[derive(Debug, Default)]
struct Sent {
    there: Share,
    back: Share,
    calls: u64,
}

#[derive(Debug, Default)]
struct Share {
    offered: u64,
    came: u64,
}

impl Share {
    fn note(&mut self, came: u64) {
        self.offered += 1;
        self.came += came;
    }
}

#[test]
fn documents_are_with_all_after_a_cut_and_a_start_that_has_lost_all() {
    for seed in SEEDS {
        let summary = run(named("documents"), seed, 300);
        assert!(summary.messages > 130, "seed {seed}: {summary}");
        // At 30 % loss, over a cut of a minute; nobody writes in the last one.
        assert_eq!(summary.delivered, summary.expected, "seed {seed}: {summary}");
        // A machine that has started anew gets its documents again.
        assert!((50..200).contains(&summary.again), "seed {seed}: {summary}");
        assert_eq!((summary.astray, summary.loops()), (0, 0), "seed {seed}: {summary}");
    }
}

#[test]
fn documents_are_with_all_over_slow_radios_that_may_hardly_send() {
    for seed in SEEDS {
        let summary = run(named("slow"), seed, 21_600);
        assert_eq!((summary.messages, summary.delivered), (20, 380), "seed {seed}: {summary}");
        assert_eq!((summary.again, summary.loops()), (0, 0), "seed {seed}: {summary}");
        // One percent of the time.
        assert!(summary.sent_ppm_most < 10_000, "seed {seed}: {summary}");
    }
}

#[test]
fn no_radio_exceeds_its_share_however_much_it_is_offered() {
    for seed in SEEDS {
        // 20 beacons a second of 222 bytes are seven times the channel, and 700 times the share.
        let text = "[[medium]]\nname = \"air\"\nprofile = \"lora\"\n\
                    [[node]]\nname = \"loud\"\nkind = \"beacon\"\nmedia = [\"air\"]\n\
                    beacon_ms = 50\nbeacon_bytes = 222\n\
                    [[node]]\nname = \"quiet\"\nkind = \"flood\"\nmedia = [\"air\"]\n\
                    at = [10, 0]\n";
        let summary = run(crate::sketch(7200, text), seed, 7200);
        assert!((9_000..=10_000).contains(&summary.sent_ppm_most), "{summary}");
        assert!(summary.losses().any(|(why, count)| why == "duty" && count > 100_000));
    }
}

#[test]
fn answers_that_come_at_once_arrive_beside_noise_and_replays() {
    // The noise begins at 25 s and the replays at 45 s. The speaker speaks at 60 s too.
    let [noise, replays] = [(21, 25), (22, 45)];
    let lines = told(named("ack-storm").lasting(SimSpan::from_s(70)), 2);
    for (node, since) in [noise, replays] {
        let sent = |from: u64, to: u64| {
            let is_within = |line: &&Line| (from..to).contains(&(line.at / 1_000_000));
            let sends = lines.iter().filter(|line| line.is("send") && line.node == node);
            sends.filter(is_within).count()
        };
        let (before, after) = (sent(since - 20, since), sent(since, since + 20));
        assert!(after >= 8 * before.max(1), "machine {node}: {after} units, {before} before");
    }
    let delivered = |message: u64| {
        let is_its = |line: &&Line| line.is("deliver") && line.message == message;
        lines.iter().filter(is_its).count()
    };
    let offers = lines.iter().filter(|line| line.is("offer") && line.at >= 55_000_000);
    let [mut listeners, mut answers, mut answered] = [0; 3];
    for offer in offers {
        match offer.to {
            None => listeners += delivered(offer.message),
            Some(_) => (answers, answered) = (answers + 1, answered + delivered(offer.message)),
        }
    }
    println!("{listeners} listeners, {answered} of {answers} answers");
    assert_eq!((listeners, answers), (20, 20));
    assert!(answered >= 18, "{answered} answers beside noise and replays");
    let end = lines.last().unwrap();
    assert_eq!((end.again, end.loops), (0, 0), "nothing that comes again is taken");
    let storm = run(noisy(), 1, 30);
    assert!(storm.ratio() > 0.9 && storm.loops() == 0, "{storm}");
}

/// Six machines in a cell, of which one is taken after 10 s and replays, and another makes noise.
fn noisy() -> sealane_sim::Scenario {
    crate::sketch(
        30,
        "[[medium]]\nname = \"m\"\nprofile = \"11p\"\n\
         [[node]]\nname = \"one\"\ncount = 6\nkind = \"mesh\"\nmedia = [\"m\"]\nring_m = 50\n\
         [[flow]]\nfrom = \"one-1\"\nto = \"one-4\"\nevery_ms = 500\nbytes = 100\nfrom_s = 5\n\
         [[event]]\nat_s = 10\ndo = \"capture\"\nwho = [\"one-2\"]\nas = \"replay\"\n\
         [[event]]\nat_s = 10\ndo = \"capture\"\nwho = [\"one-3\"]\nas = \"noise\"\n",
    )
}

#[test]
fn what_was_taken_carries_nothing_of_others() {
    for seed in SEEDS {
        let summary = run(named("black-hole"), seed, 120);
        assert!(summary.losses().any(|(why, count)| why == "captured" && count > 10));
        assert!(summary.ratio() > 0.2, "seed {seed}: {summary}");
        assert_eq!(summary.loops(), 0, "seed {seed}: {summary}");
    }
}

#[test]
fn a_machine_that_falls_silent_is_gone_round_within_a_hello_and_five_probes() {
    // 1 and 2 lie between 0 and 3; whichever is used falls silent for good after 20 s.
    let mut lost_by_seed = [0_u64; SEEDS.len() + 1];
    for (seed, silent) in SEEDS.into_iter().flat_map(|seed| [(seed, "via-1"), (seed, "via-2")]) {
        let tables = format!(
            "[[medium]]\nname = \"m\"\nprofile = \"11p\"\nrange_m = 150\nfading = 0\n\
             [[node]]\nname = \"from\"\nkind = \"mesh\"\nmedia = [\"m\"]\n\
             [[node]]\nname = \"via\"\ncount = 2\nkind = \"mesh\"\nmedia = [\"m\"]\n\
             at = [100, -40]\nline = [0, 80]\n\
             [[node]]\nname = \"to\"\nkind = \"mesh\"\nmedia = [\"m\"]\nat = [200, 0]\n\
             [[flow]]\nfrom = \"from\"\nto = \"to\"\nevery_ms = 50\nbytes = 50\nfrom_s = 19\n\
             [[event]]\nat_s = 20\ndo = \"capture\"\nwho = [\"{silent}\"]\nas = \"silence\"\n"
        );
        let summary = run(crate::sketch(40, &tables), seed, 40);
        // Twenty messages a second: those of one hello and five gaps of probes, 1.25 s, are 25.
        let lost = summary.expected - summary.delivered;
        assert!(lost <= 30, "seed {seed}, {silent}: {summary}");
        lost_by_seed[seed as usize] += lost;
    }
    // One of the two was in use, and its silence costs something.
    assert!(lost_by_seed[1..].iter().all(|lost| *lost > 3), "{lost_by_seed:?}");
}

#[test]
fn every_scenario_that_is_shipped_is_read_and_listed() {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|e| e == "toml")).collect();
    assert!(files.len() >= 8, "{files:?}");
    let page = std::fs::read_to_string(folder().join("../spec/scenario.md")).unwrap();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(named(&name).name, name);
        assert!(page.contains(&format!("`{name}`")), "spec/scenario.md does not name {name}");
    }
}

#[test]
fn the_first_scenario_of_the_documentation_does_what_it_says() {
    let page = std::fs::read_to_string(folder().join("../docs/SIMULATOR.md")).unwrap();
    let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    for text in page.split("```toml\n").skip(1).filter_map(|text| text.split("```").next()) {
        sealane_sim::Scenario::parse(text).unwrap();
    }
    let summary = run(sealane_sim::Scenario::parse(text).unwrap(), 1, 60);
    assert_eq!(summary.messages, 60);
    assert!(summary.ratio() > 0.3, "{summary}");
}
