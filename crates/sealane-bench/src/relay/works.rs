//! The programs that people run over a network run over the row. Its relays' wires show none of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::net::{self, RowMachine, RowNamespaces, RowSide, RowWire};
use super::numbers::{NumberPace, NumberStream};
use super::programs::{IperfOptions, IperfPair, check, ping};
use super::recorder::{count, judge};
use super::row::{GROUP, NAMES, RelayRow, RowKeyFolders, RowRouting, RowSpec, script};
use super::{RelayBench, RelayFindingSink};
use crate::failure::{BenchFailure, Result};
use crate::measure::percentile;
use crate::process::BenchProcess;

/// Programs, and the packages of Debian that bring them.
const NEEDED: &[(&str, &str)] = &[
    ("iperf3", "iperf3"),
    ("ping", "iputils-ping"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
    ("curl", "curl"),
    ("node", "nodejs"),
    ("python3", "python3"),
];
/// Where the hub listens on the server.
const HUB_PORT: u16 = 9087;
/// The rate of `iperf3` while wires are recorded, so that captures stay small.
const RATE: &str = "8M";
const PINGS: u32 = 500;
/// Letters of the body that `curl` brings to the hub and back.
const BODY_LETTERS: usize = 16 << 10;

/// Runs everything once over each kind of wire.
pub(super) fn run(bench: RelayBench<'_>, show: &mut RelayFindingSink<'_>) -> Result<()> {
    check(NEEDED)?;
    RowWire::ALL.into_iter().try_for_each(|wire| over(wire, bench, show))
}

fn over(wire: RowWire, bench: RelayBench<'_>, show: &mut RelayFindingSink<'_>) -> Result<()> {
    show.line(&format!("over {}:", wire.name()));
    let net = RowNamespaces::make()?;
    let lane = RowSpec { number: 0, mtu: 1500, offload: true, wire, ways: RowRouting::Static };
    let crew = RowKeyFolders::new(bench.programs, "aes-256-gcm")?;
    let mut row = RelayRow::capturing(&net, crew, lane, true)?;
    reaches(&net, lane)?;
    let wires = WireRecordings::record(&net, lane, &row)?;
    let server = lane.inner(RowMachine::Server);
    let mut times = ping(&net, &server, PINGS)?;
    show.must(times.len() == PINGS as usize, "an answer to `ping` was lost");
    let [p50, p99] = [0.5, 0.99].map(|part| percentile(&mut times, part));
    show.line(&format!("ping: {PINGS} of {PINGS} answers, p50 {p50:.3} ms, p99 {p99:.3} ms"));
    for (udp, backwards) in [(false, false), (false, true), (true, false), (true, true)] {
        let how = IperfOptions { to: &server, seconds: 1, udp, rate: Some(RATE), backwards };
        let measured = IperfPair::run(&net, how)?;
        let protocol = if udp { "UDP" } else { "TCP" };
        let way = if backwards { "to the car" } else { "to the server" };
        let (mbit, lost) = (measured.gbit_s * 1e3, measured.lost_percent);
        show.line(&format!("iperf3, {protocol} {way}: {mbit:.1} Mbit/s, lost {lost} %"));
        show.must(mbit > 1.0, "iperf3 measured nothing");
    }
    let body = row.crew().write("body", letters()?)?;
    let hub = RowHub::start(&net, bench, &row)?;
    hub.brings_back(&net, &body)?;
    show.line(&format!("curl: a message of {BODY_LETTERS} letters went to the hub and came back"));
    hub.is_shown(&net)?;
    show.line("a browser shows the hub's console, over HTTP and WebSocket");
    drop(hub);
    wires.search(row.crew(), &body, show)?;
    for (machine, said) in row.end()? {
        let dropped = said.get("dropped").map(ToString::to_string).unwrap_or_default();
        let of = |name: &str| said.get(name).and_then(|of| count(of, "units").ok()).unwrap_or(0);
        let (name, forwarded, delivered) = (machine.name(), of("forwarded"), of("delivered"));
        show.line(&format!(
            "{name}: forwarded {forwarded}, delivered {delivered}, dropped {dropped}"
        ));
    }
    RowMachine::ALL.into_iter().try_for_each(|machine| is_read(&row, machine, show))
}

/// `tshark` and `sealane inspect` read the capture of a machine's own links.
fn is_read(row: &RelayRow<'_>, machine: RowMachine, show: &mut RelayFindingSink<'_>) -> Result<()> {
    let path = row.capture(machine).display().to_string();
    let malformed = malformed(&path)?;
    let packets = captured(&path)?;
    let explained = row.said(&["--json", "inspect", &path])?;
    let last = explained.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(last).unwrap_or_default();
    let of = |name: &str| summary.get(name).and_then(Value::as_u64).unwrap_or(0);
    let frames = of("explained");
    let refused = summary.get("refused").map(ToString::to_string).unwrap_or_default();
    show.line(&format!(
        "{}'s own capture: {packets} packets, malformed for tshark: {malformed}; sealane inspect: \
         {frames} frames explained, refused {refused}",
        machine.name()
    ));
    show.must(malformed == 0, "tshark calls a packet of a capture malformed");
    show.must(packets > 1000 && frames > 1000, "next to nothing was captured");
    show.must(refused == "{}" && of("partial") == 0, "inspect refuses frames of a capture");
    Ok(())
}

/// Waits until the row carries, both ways.
pub(super) fn reaches(net: &RowNamespaces, lane: RowSpec) -> Result<()> {
    let begun = Instant::now();
    let pace = NumberPace { every: Duration::from_millis(20), at_once: 1, bytes: 64 };
    for (from, to) in [(RowMachine::Car, RowMachine::Server), (RowMachine::Server, RowMachine::Car)]
    {
        let numbers = NumberStream::start(net, from, (to, &lane.inner(to), 7776), pace)?;
        numbers.wait_since(begun)?;
        numbers.stop();
    }
    Ok(())
}

/// A text that nobody could guess.
fn letters() -> Result<String> {
    let mut random = vec![0; BODY_LETTERS];
    let failed = |error: getrandom::Error| std::io::Error::other(error.to_string());
    getrandom::fill(&mut random).map_err(failed).map_err(BenchFailure::io("drawing letters"))?;
    Ok(random.into_iter().map(|byte| char::from(b'a' + byte % 26)).collect())
}

/// The records of `tcpdump` of the wires of both relays, and of the server's sealed interface.
struct WireRecordings {
    recorders: Vec<TcpdumpProcess>,
}

struct TcpdumpProcess {
    process: BenchProcess,
    name: String,
    file: PathBuf,
}

impl WireRecordings {
    fn record(net: &RowNamespaces, lane: RowSpec, row: &RelayRow<'_>) -> Result<WireRecordings> {
        let inner = lane.interface();
        let places = [
            (RowMachine::Truck, RowSide::Left.name()),
            (RowMachine::Truck, RowSide::Right.name()),
            (RowMachine::Gateway, RowSide::Right.name()),
            // The last one sees everything in the open: what is looked for is found there.
            (RowMachine::Server, &inner),
        ];
        let start = |(machine, interface): (RowMachine, &str)| {
            let name = format!("{} {interface}", machine.name());
            let file = row.crew().path(&format!("{}.pcap", name.replace(' ', "-")));
            let mut command = net.within(machine, Path::new("tcpdump"));
            command.args(["-i", interface, "-U", "-s", "0", "-B", "65536", "-Z", "root", "-w"]);
            let process = BenchProcess::silent(command.arg(&file))?;
            Ok(TcpdumpProcess { process, name, file })
        };
        let recorders = places.into_iter().map(start).collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        // Its file has a head once it records.
        let is_recording =
            |one: &TcpdumpProcess| std::fs::metadata(&one.file).is_ok_and(|file| file.len() > 0);
        while !recorders.iter().all(is_recording) {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err(BenchFailure::said("tcpdump", "records nothing"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(WireRecordings { recorders })
    }

    fn search(
        mut self,
        crew: &RowKeyFolders,
        body: &str,
        show: &mut RelayFindingSink<'_>,
    ) -> Result<()> {
        for recorder in &mut self.recorders {
            // One that has ended already has recorded too little, which is told below.
            recorder.process.signal(rustix::process::Signal::INT);
            recorder.process.wait();
        }
        let keys = [RowMachine::Car, RowMachine::Server].map(|end| crew.keys(end).join("identity"));
        let keys = keys.map(|path| path.display().to_string());
        let mut words = vec!["--secret", body];
        words.extend(keys.iter().flat_map(|key| ["--secret", key]));
        words.extend(NAMES.iter().chain([&GROUP]).flat_map(|name| ["--word", name]));
        let Some((inner, wires)) = self.recorders.split_last() else { return Ok(()) };
        for recorder in wires {
            let path = recorder.file.display().to_string();
            let found = judge(&[&["search", &path], &*words].concat())?;
            let (bytes, pieces) = (count(&found, "bytes")?, count(&found, "pieces")?);
            let secrets = found.get("found").map(ToString::to_string).unwrap_or_default();
            let malformed = malformed(&path)?;
            show.line(&format!(
                "{}: {bytes} bytes, of {pieces} pieces of secrets found {secrets}; malformed for \
                 tshark: {malformed}",
                recorder.name
            ));
            show.must(secrets == "[]", "a secret is on a relay's wire");
            show.must(malformed == 0, "tshark calls a packet malformed");
            show.must(bytes > 1 << 20, "next to nothing was recorded");
        }
        let path = inner.file.display().to_string();
        let found = judge(&["search", &path, "--secret", body])?;
        let names = found.get("found").and_then(Value::as_array);
        let is_found = names.is_some_and(|names| !names.is_empty());
        show.must(is_found, "the same search finds nothing where all is open");
        Ok(())
    }
}

/// How many packets of a capture `tshark` calls malformed.
fn malformed(path: &str) -> Result<usize> {
    packets(path, &["-Y", "_ws.malformed"])
}

/// How many packets `tshark` finds in a capture.
fn captured(path: &str) -> Result<usize> {
    packets(path, &[])
}

fn packets(path: &str, filter: &[&str]) -> Result<usize> {
    let mut command = Command::new("tshark");
    command.args(["-r", path, "-T", "fields", "-e", "frame.number"]).args(filter);
    Ok(net::output(&mut command)?.lines().count())
}

/// A hub on the server, which only the sealed network reaches.
struct RowHub {
    _process: BenchProcess,
    address: String,
    token: String,
    reader: String,
}

impl RowHub {
    fn start(net: &RowNamespaces, bench: RelayBench<'_>, row: &RelayRow<'_>) -> Result<RowHub> {
        let data = row.crew().path("hub");
        let token = |words: &[&str]| {
            let mut command = Command::new(&bench.programs.sealane);
            command.args(["token", "new", "--data"]).arg(&data).args(words).env_clear();
            command.env("HOME", row.crew().path(""));
            net::output(&mut command).map(|said| said.trim().to_owned())
        };
        let all = ["**", "--publish", "**", "--manage", "**"];
        let token_of_all = token(&[&["all", "--read"], &all[..]].concat())?;
        let reader = token(&["reader", "--read", "orders"])?;
        let address = format!("{}:{HUB_PORT}", row.lane.inner(RowMachine::Server));
        let mut command = net.within(RowMachine::Server, &bench.programs.sealane);
        command.args(["--json", "up", "--listen", &address, "--data"]).arg(&data);
        command.env("HOME", row.crew().path(""));
        let process = BenchProcess::start(&mut command, Some(&row.crew().path("hub.log")))?;
        Ok(RowHub { _process: process, address, token: token_of_all, reader })
    }

    fn call(&self, net: &RowNamespaces, words: &[&str], path: &str) -> Result<String> {
        let mut command = net.within(RowMachine::Car, Path::new("curl"));
        let authorization = format!("authorization: Bearer {}", self.token);
        command.args(["--silent", "--show-error", "--fail", "--header", &authorization]);
        command.args(["--header", "content-type: application/json"]).args(words);
        net::output(command.arg(format!("http://{}{path}", self.address)))
    }

    /// A message from a file, stored and read again.
    fn brings_back(&self, net: &RowNamespaces, file: &str) -> Result<()> {
        let read = |file: &str| std::fs::read_to_string(file);
        let text = read(file).map_err(BenchFailure::io("reading a file"))?;
        let message = format!("{{\"to\":\"secret\",\"envelopes\":[{{\"text\":\"{text}\"}}]}}");
        let path = format!("{file}.json");
        std::fs::write(&path, message).map_err(BenchFailure::io("writing a file"))?;
        self.call(net, &["--data-binary", &format!("@{path}")], "/v1/enqueue/batch")?;
        let came = self.call(net, &[], "/v1/streams/secret?from=first")?;
        if came.contains(&text) {
            return Ok(());
        }
        Err(BenchFailure::said("curl", "another message came back"))
    }

    /// The console in a browser of the car.
    fn is_shown(&self, net: &RowNamespaces) -> Result<()> {
        for topic in ["orders", "secret"] {
            let envelopes = "{\"n\":0},{\"n\":1},{\"n\":2}";
            let message = format!("{{\"to\":\"{topic}\",\"envelopes\":[{envelopes}]}}");
            self.call(net, &["--data-binary", &message], "/v1/enqueue/batch")?;
        }
        let mut browser = net.within(RowMachine::Car, Path::new("node"));
        browser.arg(script("js/faults.mjs")).args(["guarded", &self.address, &self.reader]);
        net::run(&mut browser)
    }
}
