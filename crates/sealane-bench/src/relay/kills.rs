//! Relays and ends that are killed under load, again and again, while what they carried comes a
//! second time.

use std::path::Path;
use std::time::Duration;

use super::net::{self, RowMachine, RowNamespaces, RowSide, RowWire};
use super::numbers::{NumberPace, NumberStream, NumberTotals};
use super::programs::IperfPair;
use super::recorder::{WireRecorder, count, judge};
use super::row::{RelayRow, RowKeyFolders, RowRouting, RowSpec, script};
use super::{RelayBench, RelayFindingSink};
use crate::failure::{BenchFailure, Result};
use crate::measure::percentile;

/// The seconds that a kill may cost, from the start of the new process on.
const GOES_ON_S: f64 = 1.0;
/// Where numbered datagrams go to.
const PORT: u16 = 7777;
const PACE: NumberPace = NumberPace { every: Duration::from_millis(4), at_once: 1, bytes: 300 };
/// Frames that come a second time after each kill of an end.
const REPLAYED: &str = "500";
/// The rate of `iperf3` meanwhile, so that captures stay small.
const LOAD: &str = "4M";

/// The row of machines that is killed.
const LANE: RowSpec =
    RowSpec { number: 0, mtu: 1500, offload: true, wire: RowWire::Udp, ways: RowRouting::Static };

/// Kills machines in turn.
pub(super) fn run(bench: RelayBench<'_>, show: &mut RelayFindingSink<'_>) -> Result<()> {
    let net = RowNamespaces::make()?;
    let folder = tempfile::tempdir().map_err(BenchFailure::io("making a folder"))?;
    let mut recorders = [RowMachine::Car, RowMachine::Server]
        .map(|machine| WireRecorder::start(&net, machine, folder.path()).map(|one| (machine, one)))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let lane = LANE;
    let mut row = RelayRow::start(&net, RowKeyFolders::new(bench.programs, "aes-256-gcm")?, lane)?;
    let ways = ways(&net, lane)?;
    let load = match !bench.options.without_iperf {
        true => Some(IperfPair::endless(&net, &lane.inner(RowMachine::Server), LOAD)?),
        false => None,
    };
    let mut gaps = Vec::new();
    for kill in 0..bench.options.kills {
        let victim = victim(kill);
        // At another moment each time.
        std::thread::sleep(Duration::from_millis(20 + kill as u64 * 37 % 150));
        row.kill(victim);
        std::thread::sleep(Duration::from_millis(kill as u64 * 13 % 60));
        let since = row.restart(victim)?;
        for way in &ways {
            way.wait_since(since)?;
        }
        let mut gap = Duration::ZERO;
        for way in &ways {
            gap = gap.max(way.first_since(since).map_or(gap, |came| came - since));
        }
        gaps.push(gap.as_secs_f64());
        if let Some((_, recorder)) = recorders.iter().find(|(machine, _)| *machine == victim) {
            replay(&net, victim, lane, recorder)?;
        }
    }
    drop(load);
    let accounts = ways.map(NumberStream::stop);
    let said = row.stop()?;
    show.line(&format!(
        "{} kills of {} machines in turn",
        bench.options.kills,
        RowMachine::ALL.len()
    ));
    let most = gaps.iter().copied().fold(0.0, f64::max);
    let [p50, p90] = [0.5, 0.9].map(|part| percentile(&mut gaps, part));
    show.line(&format!("goes on after: p50 {p50:.3} s, p90 {p90:.3} s, at most {most:.3} s"));
    show.at_most("at most, s", most, GOES_ON_S);
    show_accounts(accounts, show);
    for (machine, said) in said {
        let dropped = said.get("dropped").map(ToString::to_string).unwrap_or_default();
        show.line(&format!("{} since its last start: dropped {dropped}", machine.name()));
    }
    for (machine, recorder) in &mut recorders {
        recorder.finish()?;
        judged(*machine, lane, recorder, bench.options.kills, show)?;
    }
    Ok(())
}

/// Shows how many numbered datagrams of each direction came, were lost, or came twice.
fn show_accounts(accounts: [NumberTotals; 2], show: &mut RelayFindingSink<'_>) {
    for (machine, account) in [RowMachine::Server, RowMachine::Car].into_iter().zip(accounts) {
        let NumberTotals { sent, lost, twice } = account;
        let name = machine.name();
        show.line(&format!(
            "numbered datagrams to {name}: {sent} sent, {lost} lost while machines were away, \
             {twice} came twice"
        ));
        show.must(twice == 0, "a datagram came twice");
    }
}

/// Both directions, each of which has come through once.
fn ways(net: &RowNamespaces, lane: RowSpec) -> Result<[NumberStream; 2]> {
    let begun = std::time::Instant::now();
    let (car, server) = (lane.inner(RowMachine::Car), lane.inner(RowMachine::Server));
    let ways = [
        NumberStream::start(net, RowMachine::Car, (RowMachine::Server, &server, PORT), PACE)?,
        NumberStream::start(net, RowMachine::Server, (RowMachine::Car, &car, PORT), PACE)?,
    ];
    for way in &ways {
        way.wait_since(begun)?;
    }
    Ok(ways)
}

fn victim(kill: usize) -> RowMachine {
    let [car, truck, gateway, server] = RowMachine::ALL;
    match kill % RowMachine::ALL.len() {
        0 => car,
        1 => gateway,
        2 => server,
        _ => truck,
    }
}

/// The neighbour of an end, and its side towards the end.
fn neighbour(end: RowMachine) -> (RowMachine, RowSide) {
    if end == RowMachine::Car {
        (RowMachine::Truck, RowSide::Left)
    } else {
        (RowMachine::Gateway, RowSide::Right)
    }
}

fn address_of(end: RowMachine) -> String {
    end.address(if end == RowMachine::Car { RowSide::Right } else { RowSide::Left })
}

/// Sends what an end has had before to it once more, as its neighbour would.
fn replay(
    net: &RowNamespaces,
    end: RowMachine,
    lane: RowSpec,
    recorder: &WireRecorder,
) -> Result<()> {
    let (machine, _) = neighbour(end);
    let port = lane.port().to_string();
    let mut command = net.within(machine, Path::new("python3"));
    command.arg(script("python/wires.py")).arg("replay").arg(recorder.outer());
    net::run(command.args([&port, &address_of(end), &port, REPLAYED]))
}

/// The findings of the captures of an end.
fn judged(
    end: RowMachine,
    lane: RowSpec,
    recorder: &WireRecorder,
    kills: usize,
    show: &mut RelayFindingSink<'_>,
) -> Result<()> {
    let [outer, inner] =
        [recorder.outer(), recorder.inner()].map(|path| path.display().to_string());
    let (port, inner_port) = (lane.port().to_string(), PORT.to_string());
    let (own, inner_own) = (address_of(end), lane.inner(end));
    let found = judge(&["once", &outer, &inner, &own, &port, &inner_own, &inner_port])?;
    let number = |name| count(&found, name);
    let name = end.name();
    show.line(&format!(
        "the captures of {name}: {} frames sealed under {} contexts, {} of them twice; {} frames \
         came, {} of them again; {} datagrams taken, {} of them twice",
        number("sealed")?,
        number("contexts")?,
        number("sealedTwice")?,
        number("came")?,
        number("repeated")?,
        number("taken")?,
        number("takenTwice")?,
    ));
    show.must(number("sealed")? > 0 && number("taken")? > 0, "nothing was recorded");
    show.must(number("sealedTwice")? == 0, "a counter was sealed under twice");
    show.must(number("takenTwice")? == 0, "a datagram was taken twice");
    let restarts = (0..kills).filter(|kill| victim(*kill) == end).count() as u64;
    show.must(number("contexts")? == restarts + 1, "a start has a context of its own");
    show.must(restarts == 0 || number("repeated")? > 0, "no frame came a second time");
    Ok(())
}
