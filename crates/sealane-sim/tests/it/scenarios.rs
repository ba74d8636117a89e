//! The scenarios that are shipped: three seeds each, together five simulated minutes and more.

use crate::{folder, named, run};

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn a_chain_carries_every_message_over_five_hops_and_back() {
    for seed in SEEDS {
        let summary = run(named("chain"), seed, 300);
        assert_eq!((summary.messages, summary.delivered), (600, 600), "seed {seed}");
        assert_eq!((summary.again, summary.astray, summary.held), (0, 0, 0));
    }
}

#[test]
fn a_star_of_sleepers_reaches_its_gateway() {
    for seed in SEEDS {
        let summary = run(named("star"), seed, 300);
        assert!(summary.messages > 200 && summary.ratio() > 0.97, "seed {seed}: {summary}");
    }
}

#[test]
fn a_partition_stops_what_crosses_it_and_only_that() {
    for seed in SEEDS {
        let summary = run(named("mixed"), seed, 300);
        assert!((0.3..0.95).contains(&summary.ratio()), "seed {seed}: {summary}");
    }
}

#[test]
fn a_city_is_carried_and_its_channel_is_not_full() {
    for seed in SEEDS {
        let summary = run(named("city"), seed, 3);
        assert!(summary.units() > 1000 && summary.heard_ppm_most < 200_000, "{summary}");
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
fn a_thousand_radios_stay_within_their_share() {
    let summary = run(named("radios"), 1, 20);
    assert!(summary.units() > 500, "{summary}");
    assert!(summary.losses().any(|(why, count)| why == "collision" && count > 0));
}

#[test]
fn a_storm_of_answers_is_lost_to_collisions_and_ends() {
    for seed in SEEDS {
        let summary = run(named("ack-storm"), seed, 300);
        assert!(summary.ratio() > 0.45, "seed {seed}: {summary}");
        assert!(summary.losses().any(|(why, count)| why == "collision" && count > 100));
        assert!(summary.held <= 200, "{summary}");
    }
}

#[test]
fn what_was_taken_carries_nothing_of_others() {
    for seed in SEEDS {
        let summary = run(named("black-hole"), seed, 120);
        assert!(summary.losses().any(|(why, count)| why == "captured" && count > 10));
        assert!(summary.ratio() > 0.9, "a flood goes the other way: {summary}");
    }
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
    let summary = run(sealane_sim::Scenario::parse(text).unwrap(), 1, 60);
    assert_eq!(summary.messages, 60);
    assert!(summary.ratio() > 0.7, "{summary}");
}
