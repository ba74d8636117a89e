//! The large scenarios: `cargo xtask prove city` and `prove radios` print rows of what is demanded
//! and what was measured. The daily tests run the same for a few virtual seconds.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Instant;

use sealane_sim::{
    LoraProfile, Scenario, SimFrameCounts, SimPlace, SimRun, SimSpan, SimSummary, SimWatch,
};
use serde::Deserialize;

use crate::named;

/// How many virtual seconds a long scenario runs: few, unless a proof asks for more.
fn seconds(usual: u64) -> u64 {
    std::env::var("SEALANE_SECONDS").map_or(usual, |seconds| seconds.parse().unwrap())
}

/// Prints a row of a proof. Nothing fails by it: what is missed is recorded.
fn row(what: &str, demanded: impl Display, measured: impl Display, is_met: bool) {
    if std::env::var_os("SEALANE_SECONDS").is_none() {
        return;
    }
    let verdict = if is_met { "met" } else { "MISSED" };
    // The first row of a test would stand behind its name.
    println!("\n{what:<44} | {demanded:<30} | {measured:<44} | {verdict}");
}

/// The result of a run, and its cost.
struct Timed {
    summary: SimSummary,
    /// Of the thread's own, which others on the machine disturb less than the clock.
    cpu_s: f64,
}

fn timed(name: &str, usual: u64, log: Option<&mut dyn Write>) -> Timed {
    timed_run(name, named(name).lasting(SimSpan::from_s(seconds(usual))), log)
}

fn timed_run(name: &str, scenario: Scenario, log: Option<&mut dyn Write>) -> Timed {
    let watch = SimWatch::new();
    let watch = match log {
        Some(log) => watch.with_log(log),
        None => watch,
    };
    let (started, cpu_s) = (Instant::now(), cpu());
    let summary = SimRun::new(scenario, 1, &[], watch).unwrap().finish().unwrap().summary;
    let took = started.elapsed().as_secs_f64();
    let cpu_s = cpu().zip(cpu_s).map_or(took, |(now, before)| now - before);
    println!("{name}: {took:.1} s, {cpu_s:.1} s of CPU\n{summary}\n");
    Timed { summary, cpu_s }
}

/// Seconds of CPU of this thread so far, in hundredths, where the system says it.
fn cpu() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // Behind the name, which is in brackets, user and system time are the 12th and 13th.
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// The most memory that this process has had, in MB.
fn memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0 / 1e6)
}

#[test]
fn a_city_begins_and_its_channel_is_not_full() {
    let Timed { summary, cpu_s } = timed("city", 1, None);
    assert!(summary.units() > 200 && summary.heard_ppm_most < 300_000, "{summary}");
    assert_eq!(summary.loops(), 0, "{summary}");
    let times = summary.seconds / cpu_s.max(0.01);
    row("how fast, on one core", "20 times real time", format!("{times:.1} times"), times >= 20.0);
    if let Some(memory) = memory_mb() {
        row("memory", "300 MB", format!("{memory:.0} MB"), memory < 300.0);
    }
    row("routes that lead in circles", 0, summary.loops(), summary.loops() == 0);
    let delivered = format!("{:.1} % of {}", 100.0 * summary.ratio(), summary.expected);
    println!("messages that came: {delivered}");
}

/// The lines of a log about messages for everybody, as they come.
#[derive(Default)]
struct Emergencies {
    line: Vec<u8>,
    places: Vec<Option<SimPlace>>,
    calls: Vec<Call>,
}

/// A message to everybody.
struct Call {
    message: u64,
    /// Those who were connected with its sender, and have not got it yet.
    waits: Vec<usize>,
    connected: usize,
    soon: usize,
    late: usize,
}

#[derive(Deserialize)]
struct Line {
    kind: String,
    #[serde(default)]
    node: usize,
    #[serde(default)]
    message: u64,
    #[serde(default)]
    took: u64,
    to: Option<usize>,
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
}

/// How far the radios of the scenario reach.
const RANGE_M: f64 = 2000.0;
const SOON_US: u64 = 60_000_000;

impl Write for Emergencies {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if self.line.ends_with(b"\n") {
            let line = std::mem::take(&mut self.line);
            // Transmissions are most lines, and the longest.
            let is_told = [&b"\"offer\""[..], b"\"deliver\"", b"\"join\""]
                .iter()
                .any(|kind| line.windows(kind.len()).take(64).any(|part| part == *kind));
            if is_told {
                self.take(&serde_json::from_slice(&line).unwrap());
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Emergencies {
    fn take(&mut self, line: &Line) {
        match line.kind.as_str() {
            "join" => {
                let place = SimPlace { x: line.x, y: line.y };
                self.places.resize(self.places.len().max(line.node + 1), None);
                self.places[line.node] = Some(place);
            }
            "offer" if line.to.is_none() => {
                let waits = self.connected(line.node);
                let (message, connected) = (line.message, waits.len());
                self.calls.push(Call { message, waits, connected, soon: 0, late: 0 });
            }
            "deliver" => {
                let call = self.calls.iter_mut().find(|call| call.message == line.message);
                let Some(call) = call else { return };
                let at = call.waits.iter().position(|node| *node == line.node);
                let Some(at) = at else { return };
                call.waits.swap_remove(at);
                *(if line.took <= SOON_US { &mut call.soon } else { &mut call.late }) += 1;
            }
            _ => {}
        }
    }

    /// Those who are reached from a machine by hops within the range.
    fn connected(&self, from: usize) -> Vec<usize> {
        let near = |one: usize, other: usize| {
            let places = self.places[one].zip(self.places[other]);
            places.is_some_and(|(one, other)| one.metres_to(other) <= RANGE_M)
        };
        let mut rest: Vec<usize> = (0..self.places.len()).filter(|node| *node != from).collect();
        let (mut found, mut at) = (vec![from], 0);
        while let Some(&node) = found.get(at) {
            at += 1;
            let (reached, left): (Vec<_>, _) = rest.into_iter().partition(|one| near(node, *one));
            found.extend(reached);
            rest = left;
        }
        found.split_off(1)
    }

    /// How many times the channel is offered what it carries, around a machine on average.
    fn offered(&self, messages: u64, seconds: f64, bytes: usize) -> f64 {
        let all: Vec<SimPlace> = self.places.iter().copied().flatten().collect();
        let near = |one: &SimPlace| all.iter().filter(|it| one.metres_to(**it) <= RANGE_M).count();
        let around = all.iter().map(near).sum::<usize>() as f64 / all.len() as f64;
        let each = messages as f64 / all.len() as f64 / seconds;
        around * each * LoraProfile::eu868(7).air_time(bytes).as_s()
    }
}

/// A message of the scenario: 40 bytes, 27 of a compact frame, 10 of a hop seal.
const MESSAGE_BYTES: usize = 40 + 27 + 10;
/// When the scenario begins to send.
const SILENT_S: f64 = 300.0;

/// A thousand radios that are offered so many times what their channel carries.
fn radios(times: f64) -> Scenario {
    let text = std::fs::read_to_string(crate::folder().join("radios.toml")).unwrap();
    let every = format!("every_ms = {:.0}", 21_000.0 / times);
    Scenario::parse(&text.replace("every_ms = 7000", &every)).unwrap()
}

/// A run of them, and how many of the messages for one machine came.
fn run_radios(times: f64, usual: u64) -> (Timed, Emergencies, u64) {
    let mut emergencies = Emergencies::default();
    let scenario = radios(times).lasting(SimSpan::from_s(seconds(usual)));
    let name = format!("radios, {times} times");
    let timed = timed_run(&name, scenario, Some(&mut emergencies));
    let told = emergencies.calls.iter().map(|call| (call.connected - call.waits.len()) as u64);
    let came = timed.summary.delivered - told.sum::<u64>();
    tell_fates(&timed.summary, came);
    (timed, emergencies, came)
}

/// Says what has become of all frames: none is missing.
fn tell_fates(summary: &SimSummary, came: u64) {
    let SimFrameCounts { made, left, refused_at_source, without_way, waiting, .. } = summary.frames;
    assert_eq!(left + refused_at_source + without_way + waiting, made, "{:?}", summary.frames);
    let SimFrameCounts { refused_on_way, without_way_on_way, waiting_on_way, told_again, .. } =
        summary.frames;
    println!(
        "  of {made} frames: {refused_at_source} refused at their source, {without_way} without a \
         way, {waiting} wait there, {left} left it; of these {came} came, {refused_on_way} were \
         refused on their way, {without_way_on_way} lost it, {waiting_on_way} wait; the air lost \
         the others. {told_again} urgent ones were told again"
    );
}

#[test]
fn a_thousand_radios_begin_within_their_share() {
    let (Timed { summary, cpu_s }, emergencies, came) = run_radios(3.0, 20);
    assert!(summary.units() > 0 && summary.machines == 1000, "{summary}");
    let duty = summary.losses().find(|(why, _)| *why == "duty").unwrap().1;
    let hourly_s = summary.sent_ppm_most as f64 / 1e6 * summary.seconds;
    assert!(duty == 0 && hourly_s <= 36.0, "somebody is beyond its share: {summary}");
    let hour = 3600.0 / summary.seconds * cpu_s;
    row("an hour, on one core", "120 s", format!("{hour:.0} s"), hour <= 120.0);
    let measured = format!("{hourly_s:.1} s, {duty} units refused");
    row("who sends most, in an hour", "36 s", measured, hourly_s <= 36.0);
    let since_s = (summary.seconds - SILENT_S).max(0.0);
    if since_s == 0.0 {
        return;
    }
    let offered = emergencies.offered(summary.messages, since_s, MESSAGE_BYTES);
    let measured = format!("{offered:.1} times what it carries");
    row("what the channel is offered", "3 times", measured, offered >= 3.0);
    tell_emergencies(&emergencies);
    let (_, _, at_once) = run_radios(1.0, 20);
    let (_, _, below) = run_radios(0.3, 20);
    let measured = format!("{came}; {at_once} at 1 time, {below} at 0.3 times");
    row("data that comes at 3 times", "as much as at 1 time", measured, came >= at_once);
}

fn tell_emergencies(emergencies: &Emergencies) {
    for (number, call) in (1..).zip(&emergencies.calls) {
        let Call { connected, soon, late, ref waits, .. } = *call;
        let percent = 100.0 * soon as f64 / connected as f64;
        let measured =
            format!("{percent:.1} % of {connected}, {late} later, {} never", waits.len());
        let name = format!("emergency {number}: within 60 s");
        row(&name, "95 % of the connected", measured, percent >= 95.0);
    }
}
