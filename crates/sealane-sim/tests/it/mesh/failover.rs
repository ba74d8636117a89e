//! A next hop that falls silent or swallows what it takes is left, and the faster way is taken.

use std::fmt::Write as _;

use super::{row, seconds, size, wish};
use crate::story::{Line, story};

/// When the next hop falls silent.
const SILENT_S: u64 = 30;
/// How often a message is offered.
const EVERY_MS: u64 = 20;
/// The same where a unit to one machine is not repeated, and what collides is lost.
const SLOW_EVERY_MS: u64 = 100;

/// So many seeds are drawn at most for each that is wanted.
const SEEDS_DRAWN: u64 = 20;

/// A medium of a test.
struct On {
    name: &'static str,
    keys: &'static str,
    is_placed: bool,
    every_ms: u64,
    hello_ms: u64,
}

/// Five gaps between probes, on all of these media.
const GAPS_MS: u64 = 250;

const MEDIA: [On; 4] = [
    On {
        name: "11p",
        keys: "profile = \"11p\"\nrange_m = 150\nfading = 0\n",
        is_placed: true,
        every_ms: EVERY_MS,
        hello_ms: 500,
    },
    On {
        name: "ble-advertising",
        keys: "profile = \"ble-advertising\"\nrange_m = 150\nfading = 0\n",
        is_placed: true,
        every_ms: SLOW_EVERY_MS,
        hello_ms: 1000,
    },
    On {
        name: "ble",
        keys: "profile = \"ble\"\nrange_m = 1000\nlinks = \"listed\"\nfading = 0\n",
        is_placed: false,
        every_ms: EVERY_MS,
        hello_ms: 1000,
    },
    On {
        name: "wire",
        keys: "profile = \"wire\"\nlinks = \"listed\"\n",
        is_placed: false,
        every_ms: EVERY_MS,
        hello_ms: 1000,
    },
];

/// Machines between `from` and `to`: `others` beside the one that is used, or a longer way.
fn scenario(on: &On, others: usize, silent: Option<&str>) -> String {
    let mut text = format!("version = 1\nduration_s = 50\n[[medium]]\nname = \"m\"\n{}", on.keys);
    let mut node = |name: &str, x: i64, y: i64| {
        let _ = write!(
            text,
            "[[node]]\nname = \"{name}\"\nkind = \"mesh\"\nmedia = [\"m\"]\nat = [{x}, {y}]\n"
        );
    };
    node("from", 0, 0);
    node("to", 200, 0);
    let mut links = vec![];
    for via in 0..=others {
        let name = format!("via-{via}");
        node(&name, 100, 30 * via as i64 - 40);
        links.extend([("from".to_owned(), name.clone()), (name, "to".to_owned())]);
    }
    if others == 0 {
        let long = [("long-1", 0, -120), ("long-2", 100, -190), ("long-3", 200, -120)];
        long.iter().for_each(|(name, x, y)| node(name, *x, *y));
        let way = ["from", "long-1", "long-2", "long-3", "to"];
        links.extend(way.windows(2).map(|two| (two[0].to_owned(), two[1].to_owned())));
    }
    for (one, other) in links.iter().filter(|_| !on.is_placed) {
        let _ = write!(text, "[[link]]\nmedium = \"m\"\nfrom = \"{one}\"\nto = \"{other}\"\n");
    }
    let _ = write!(
        text,
        "[[flow]]\nfrom = \"from\"\nto = \"to\"\nevery_ms = {}\nbytes = 40\nfrom_s = 15\n",
        on.every_ms
    );
    if let Some(silent) = silent {
        let _ =
            write!(text, "[[event]]\nat_s = {SILENT_S}\ndo = \"leave\"\nwho = [\"{silent}\"]\n");
    }
    text
}

/// The way from the first machine to the second, as the log tells it until then.
fn next_hop(lines: &[Line], until: u64) -> Option<usize> {
    let told = lines.iter().filter(|line| line.at < until && line.node == 0 && line.of == Some(1));
    told.filter(|line| line.is("mesh")).fold(None, |via, line| match line.what.as_str() {
        "route" => line.via,
        "route-lost" => None,
        _ => via,
    })
}

/// How long nothing came from the moment on at which the next hop fell silent, in microseconds;
/// and how many messages of the time before were lost. Nothing where the long way is in use, whose
/// machines stay.
fn outage(on: &On, others: usize, seed: u64) -> Option<(u64, usize)> {
    let silent = SILENT_S * 1_000_000;
    let calm = story(&scenario(on, others, None), seed);
    let via = next_hop(&calm, silent).expect("there is a way");
    let name = format!("via-{}", via.checked_sub(2).expect("it is no direct one"));
    if others == 0 && via != 2 {
        return None;
    }
    let lines = story(&scenario(on, others, Some(&name)), seed);
    let mut came = lines.iter().filter(|line| line.is("deliver") && line.at > silent);
    let first = came.find(|line| line.at - line.took > silent);
    let offered = lines.iter().filter(|line| line.is("offer") && line.at < silent - 1_000_000);
    let delivered: std::collections::BTreeSet<u64> =
        lines.iter().filter(|line| line.is("deliver")).map(|line| line.message).collect();
    let lost = offered.filter(|line| !delivered.contains(&line.message)).count();
    let until = first.map_or(u64::MAX, |line| line.at - line.took);
    // The last that was lost was offered just before.
    Some((until.saturating_sub(silent + on.every_ms * 1000), lost))
}

#[test]
fn traffic_goes_on_after_a_hello_and_five_gaps_or_three_hellos_without_another_way() {
    for on in &MEDIA {
        for others in [0, 1, 3] {
            let demanded_ms = if others == 0 { 3 * on.hello_ms } else { on.hello_ms + GAPS_MS };
            let demanded = demanded_ms * 1000;
            let count = size("SEALANE_SEEDS", 1);
            let drawn = (0..SEEDS_DRAWN * count).filter_map(|seed| outage(on, others, seed));
            let mut outages: Vec<_> = drawn.take(count as usize).collect();
            assert_eq!(outages.len() as u64, count, "{}: the long way is in use", on.name);
            let lost: usize = outages.iter().map(|(_, lost)| lost).sum();
            outages.sort_unstable();
            let worst = outages.last().map_or(0, |(outage, _)| *outage);
            let half = outages.get(outages.len() / 2).map_or(0, |(outage, _)| *outage);
            let late = outages.iter().filter(|(outage, _)| *outage > demanded).count();
            let name = format!("{}, {others} candidates: silent next hop", on.name);
            let measured = format!(
                "{:.2} s worst, {:.2} s half; {late} late; {lost} lost before",
                seconds(worst),
                seconds(half)
            );
            // Where no unit is repeated, one that meets another one is missing for longer.
            let show = if on.every_ms == SLOW_EVERY_MS { wish } else { row };
            show(&name, format!("{:.2} s", seconds(demanded)), measured, late == 0);
        }
    }
}

#[test]
fn a_black_hole_is_left_and_not_taken_again_soon() {
    let text = std::fs::read_to_string(crate::folder().join("black-hole.toml")).unwrap();
    let (mut worst, mut lost_later, mut later) = (0, 0, 0);
    for seed in 0..size("SEALANE_SEEDS", 1) {
        let lines = story(&text, seed);
        let taken = 60_000_000;
        let delivered: std::collections::BTreeSet<u64> =
            lines.iter().filter(|line| line.is("deliver")).map(|line| line.message).collect();
        let offers: Vec<_> =
            lines.iter().filter(|line| line.is("offer") && line.at > taken).collect();
        let came = |line: &&&Line| delivered.contains(&line.message);
        // If the other way was in use already, nothing was lost.
        let first_lost = offers.iter().find(|line| !came(line)).map_or(taken, |line| line.at);
        let back = offers.iter().find(|line| line.at > first_lost && came(line));
        let back = back.map_or(u64::MAX, |line| line.at);
        worst = worst.max(back.saturating_sub(first_lost.min(taken + 2_000_000)));
        later += offers.iter().filter(|line| line.at > back).count();
        lost_later += offers.iter().filter(|line| line.at > back && !came(line)).count();
    }
    let measured = format!("{:.1} s worst", seconds(worst));
    row("a black hole that keeps reports too", "left within 10 s", measured, worst <= 10_000_000);
    let share = 100.0 * lost_later as f64 / later.max(1) as f64;
    let measured = format!("{share:.2} % of {later} messages are lost");
    row("the same, in the four minutes after", "not taken again soon", measured, share <= 5.0);
}

#[test]
fn of_two_ways_of_equal_hops_the_faster_is_taken() {
    let text = "version = 1\nduration_s = 60\n\
        [[medium]]\nname = \"m\"\nprofile = \"wire\"\nlinks = \"listed\"\n\
        [[node]]\nname = \"car\"\nkind = \"mesh\"\nmedia = [\"m\"]\n\
        [[node]]\nname = \"slow\"\nkind = \"mesh\"\nrole = \"gateway\"\nmedia = [\"m\"]\n\
        [[node]]\nname = \"fast\"\nkind = \"mesh\"\nrole = \"gateway\"\nmedia = [\"m\"]\n\
        joins_s = 20\n\
        [[node]]\nname = \"hub\"\nkind = \"mesh\"\nmedia = [\"m\"]\n\
        [[link]]\nmedium = \"m\"\nfrom = \"car\"\nto = \"slow\"\ndelay_ms = 50\n\
        [[link]]\nmedium = \"m\"\nfrom = \"car\"\nto = \"fast\"\ndelay_ms = 10\n\
        [[link]]\nmedium = \"m\"\nfrom = \"slow\"\nto = \"hub\"\n\
        [[link]]\nmedium = \"m\"\nfrom = \"fast\"\nto = \"hub\"\n\
        [[flow]]\nfrom = \"car\"\nto = \"hub\"\nevery_ms = 100\nbytes = 40\nfrom_s = 15\n";
    for seed in 0..size("SEALANE_SEEDS", 1) {
        let lines = story(text, seed);
        let took = |line: &&Line| (line.took as f64 / 1e4).round() as u64;
        let came: Vec<_> = lines.iter().filter(|line| line.is("deliver")).collect();
        assert_eq!(came.first().map(took), Some(5), "50 ms at first");
        assert_eq!(came.last().map(took), Some(1), "then 10 ms");
        let since = came.iter().find(|line| took(line) == 1).unwrap().at;
        if seed == 0 {
            let measured = format!("{:.1} s after it came", seconds(since) - 20.0);
            row("10 ms beat 50 ms at equal hops", "the faster is taken", measured, true);
        }
    }
}
