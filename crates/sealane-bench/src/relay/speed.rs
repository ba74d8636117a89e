//! How fast the row is, beside the same row without seals and checks, and the kernel's forwarding.

use std::time::Duration;

use super::bare::BareRelayRow;
use super::net::{RowMachine, RowNamespaces, RowSide, RowWire};
use super::numbers::{NumberPace, NumberStream};
use super::programs::{IperfOptions, IperfPair, check, ping};
use super::row::{RelayRow, RowKeyFolders, RowRouting, RowSpec};
use super::works::reaches;
use super::{RelayBench, RelayFindingSink};
use crate::failure::Result;
use crate::measure::{FigureSpread, percentile};

const NEEDED: &[(&str, &str)] =
    &[("iperf3", "iperf3"), ("ping", "iputils-ping"), ("ethtool", "ethtool")];
/// The part of the bare row's speed that the sealed row keeps.
const OF_BARE: f64 = 0.5;
/// The part that a row that finds its routes itself keeps of the speed of a row with static routes.
/// It is all, as far as runs of the same row agree.
const OF_STATIC: f64 = 0.95;
/// The row under AES whose machines find each other.
const ROUTED: &str = "routed";
/// The speed that the row's origin published, without a known seal.
const GOAL_GBIT_S: f64 = 3.0;
/// The memory that a relay may have.
const RELAY_MIB: f64 = 32.0;
/// Pings of each way in each round.
const PINGS: u32 = 1000;
/// Numbered datagrams: 10,000 a second.
const STEADY: NumberPace = NumberPace { every: Duration::from_millis(1), at_once: 10, bytes: 200 };
const STEADY_PORT: u16 = 7778;

/// A way from the car to the server.
struct SpeedPath {
    name: &'static str,
    to: String,
    gbit_s: Vec<f64>,
    ping_ms: Vec<f64>,
}

impl SpeedPath {
    fn new(name: &'static str, to: String) -> SpeedPath {
        SpeedPath { name, to, gbit_s: Vec::new(), ping_ms: Vec::new() }
    }
}

/// All ways under each width of the wires, with and without offloads.
pub(super) fn run(bench: RelayBench<'_>, show: &mut RelayFindingSink<'_>) -> Result<()> {
    check(NEEDED)?;
    show.line(
        "kernel: without any program; bare: neither sealed nor checked; routed: AES, [routing]",
    );
    let head = ["wire", "mtu", "offload", "chain", "Gbit/s", "low", "high", "of bare"];
    show.line(&line(&head.map(str::to_owned)));
    for (mtu, offload) in [(1500, true), (1500, false), (9000, true), (9000, false)] {
        one(bench, mtu, offload, show)?;
    }
    [1500, 9000].into_iter().try_for_each(|mtu| over_ethernet(bench, mtu, show))
}

/// Over raw Ethernet, where two rows at once would hear each other.
fn over_ethernet(bench: RelayBench<'_>, mtu: u16, show: &mut RelayFindingSink<'_>) -> Result<()> {
    let net = RowNamespaces::make()?;
    net.set_mtu(mtu)?;
    let lane = RowSpec {
        number: 0,
        mtu,
        offload: true,
        wire: RowWire::Ethernet,
        ways: RowRouting::Static,
    };
    let row = RelayRow::start(&net, RowKeyFolders::new(bench.programs, "aes-256-gcm")?, lane)?;
    reaches(&net, lane)?;
    let mut ways = [
        SpeedPath::new("kernel", RowMachine::Server.address(RowSide::Left)),
        SpeedPath::new("AES", lane.inner(RowMachine::Server)),
    ];
    measure(&net, bench, &mut ways)?;
    rates(&mut ways, &lane, show);
    row.stop().map(drop)
}

/// Each way once in a round. The first round warms up.
fn measure(net: &RowNamespaces, bench: RelayBench<'_>, ways: &mut [SpeedPath]) -> Result<()> {
    for round in 0..=bench.rounds() {
        for way in &mut *ways {
            let how = IperfOptions {
                to: &way.to,
                seconds: if round == 0 { 1 } else { bench.options.each },
                udp: false,
                rate: None,
                backwards: false,
            };
            let measured = IperfPair::run(net, how)?;
            if round > 0 {
                way.gbit_s.push(measured.gbit_s);
            }
        }
    }
    Ok(())
}

fn one(
    bench: RelayBench<'_>,
    mtu: u16,
    offload: bool,
    show: &mut RelayFindingSink<'_>,
) -> Result<()> {
    let net = RowNamespaces::make()?;
    net.set_mtu(mtu)?;
    net.set_offload(offload)?;
    let lane =
        |number| RowSpec { number, mtu, offload, wire: RowWire::Udp, ways: RowRouting::Static };
    let found = RowSpec { ways: RowRouting::Found, ..lane(3) };
    let crew = |suite| RowKeyFolders::new(bench.programs, suite);
    let mut aes = RelayRow::start(&net, crew("aes-256-gcm")?, lane(0))?;
    let chacha = RelayRow::start(&net, crew("chacha20-poly1305")?, lane(1))?;
    let routed = RelayRow::start(&net, crew("aes-256-gcm")?.with_mesh()?, found)?;
    let log = aes.crew().path("bare.log");
    let _bare = BareRelayRow::start(&net, bench.programs, lane(2), &log)?;
    let mut ways = [
        SpeedPath::new("kernel", RowMachine::Server.address(RowSide::Left)),
        SpeedPath::new("bare", lane(2).inner(RowMachine::Server)),
        SpeedPath::new("AES", lane(0).inner(RowMachine::Server)),
        SpeedPath::new(ROUTED, found.inner(RowMachine::Server)),
        SpeedPath::new("ChaCha20", lane(1).inner(RowMachine::Server)),
    ];
    (0..4).try_for_each(|number| reaches(&net, lane(number)))?;
    let is_first = mtu == 1500 && offload;
    measure(&net, bench, &mut ways)?;
    rates(&mut ways, &lane(0), show);
    if is_first {
        latencies(&net, bench, &mut ways, show)?;
        steady(&net, bench, lane(0), show)?;
        let mib = aes.process(RowMachine::Truck)?.peak_bytes() as f64 / f64::from(1 << 20);
        show.at_most("memory of a relay, at most, MiB", mib, RELAY_MIB);
    }
    for row in [aes, chacha, routed] {
        row.stop()?;
    }
    Ok(())
}

fn line(words: &[String; 8]) -> String {
    let [wire, mtu, offload, chain, rest @ ..] = words;
    let rest: String = rest.iter().map(|word| format!("{word:>9}")).collect();
    format!("{wire:<9}{mtu:>5}  {offload:<8} {chain:<9}{rest}")
}

fn rates(ways: &mut [SpeedPath], lane: &RowSpec, show: &mut RelayFindingSink<'_>) {
    let spreads: Vec<_> =
        ways.iter_mut().map(|way| (way.name, FigureSpread::of(&mut way.gbit_s))).collect();
    let of = |name: &str| spreads.iter().find(|(other, _)| *other == name).map(|(_, of)| of.median);
    let bare = of("bare");
    let offload = if lane.offload { "on" } else { "off" };
    for (name, FigureSpread { low, median, high }) in &spreads {
        let part = bare.map_or("-".to_owned(), |bare| format!("{:.3}", median / bare));
        let [median, low, high] = [median, low, high].map(|number| format!("{number:.3}"));
        let words = [
            lane.wire.name().to_owned(),
            lane.mtu.to_string(),
            offload.to_owned(),
            (*name).to_owned(),
            median,
            low,
            high,
            part,
        ];
        show.line(&line(&words));
    }
    let (Some(aes), Some(bare), true) = (of("AES"), bare, lane.offload) else { return };
    let what = format!("AES of bare, mtu {}", lane.mtu);
    match lane.mtu {
        1500 => show.at_least(&what, aes / bare, OF_BARE),
        _ => show.figure(&what, aes / bare, "x"),
    }
    show.at_least(&format!("AES, mtu {}, Gbit/s: a goal", lane.mtu), aes, GOAL_GBIT_S);
    if let Some(routed) = of(ROUTED) {
        let what = format!("AES with [routing] of AES without, mtu {}", lane.mtu);
        show.at_least(&what, routed / aes, OF_STATIC);
    }
}

fn latencies(
    net: &RowNamespaces,
    bench: RelayBench<'_>,
    ways: &mut [SpeedPath],
    show: &mut RelayFindingSink<'_>,
) -> Result<()> {
    for _ in 0..bench.rounds() {
        for way in ways.iter_mut() {
            way.ping_ms.extend(ping(net, &way.to, PINGS)?);
        }
    }
    for way in ways {
        let asked = PINGS as usize * bench.rounds();
        let lost = asked - way.ping_ms.len();
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| percentile(&mut way.ping_ms, part));
        let name = way.name;
        show.line(&format!(
            "ping -i 0.001, {name:<9} p50 {p50:>7.3} ms  p99 {p99:>7.3} ms  p99.9 {p999:>7.3} ms  \
             lost {lost} of {asked}"
        ));
    }
    Ok(())
}

/// Ten thousand datagrams a second, sealed, over two relays, opened: none is lost.
fn steady(
    net: &RowNamespaces,
    bench: RelayBench<'_>,
    lane: RowSpec,
    show: &mut RelayFindingSink<'_>,
) -> Result<()> {
    let server = lane.inner(RowMachine::Server);
    let target = (RowMachine::Server, &*server, STEADY_PORT);
    let numbers = NumberStream::start(net, RowMachine::Car, target, STEADY)?;
    std::thread::sleep(Duration::from_secs(bench.options.steady));
    let account = numbers.stop();
    show.figure(
        "steady stream, 200 bytes",
        account.sent as f64 / bench.options.steady as f64,
        "/s",
    );
    let what = format!("lost of {} in {} s", account.sent, bench.options.steady);
    show.at_most(&what, account.lost as f64, 0.0);
    Ok(())
}
