//! `iperf3`, `ping`, `curl`, a browser: what people run over a network, and what they say.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::net::{self, RowMachine, RowNamespaces};
use crate::failure::{BenchFailure, Result};
use crate::process::BenchProcess;

/// `iperf3` at both ends.
#[derive(Debug)]
pub(super) struct IperfPair {
    _ends: [BenchProcess; 2],
}

/// The measurements of one run of `iperf3`.
#[derive(Debug, Clone, Copy)]
pub(super) struct IperfFigures {
    pub(super) gbit_s: f64,
    pub(super) lost_percent: f64,
}

/// How a run of `iperf3` goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct IperfOptions<'a> {
    /// The address of the server's end.
    pub(super) to: &'a str,
    pub(super) seconds: u64,
    /// Datagrams, and not TCP.
    pub(super) udp: bool,
    /// So many bits a second, as `iperf3` has them: `100M`. None: as many as TCP can.
    pub(super) rate: Option<&'a str>,
    /// From the server to the car.
    pub(super) backwards: bool,
}

impl IperfPair {
    /// Sends by TCP at this rate until it is dropped; each end is started again when it gives up.
    pub(super) fn endless(net: &RowNamespaces, to: &str, rate: &str) -> Result<IperfPair> {
        let client = format!("while :; do iperf3 -c {to} -b {rate} -t 3600; sleep 0.2; done");
        let server = "while :; do iperf3 -s -1; done";
        let start = |machine, words: &str| {
            BenchProcess::silent(net.within(machine, Path::new("sh")).args(["-c", words]))
        };
        // A process that a shell has started ends with the namespaces.
        let ends = [start(RowMachine::Server, server)?, start(RowMachine::Car, &client)?];
        Ok(IperfPair { _ends: ends })
    }

    /// One run.
    pub(super) fn run(net: &RowNamespaces, how: IperfOptions<'_>) -> Result<IperfFigures> {
        let mut server = net.within(RowMachine::Server, Path::new("iperf3"));
        let _server = BenchProcess::silent(server.args(["-s", "-1"]))?;
        let seconds = how.seconds.to_string();
        let mut words = vec!["-J", "-c", how.to, "-t", &seconds];
        words.extend(how.rate.into_iter().flat_map(|rate| ["-b", rate]));
        words.extend(how.udp.then_some("-u"));
        words.extend(how.backwards.then_some("-R"));
        let value = connected(net, &words)?;
        let said = || value.to_string();
        let end = value.get("end").ok_or_else(|| wrong(&said()))?;
        let sum = end.get("sum_received").filter(|_| !how.udp).or_else(|| end.get("sum"));
        let number = |name: &str| sum.and_then(|sum| sum.get(name)).and_then(Value::as_f64);
        let bits = number("bits_per_second").ok_or_else(|| wrong(&said()))?;
        let lost_percent = number("lost_percent").unwrap_or(0.0);
        Ok(IperfFigures { gbit_s: bits * (1.0 - lost_percent / 100.0) / 1e9, lost_percent })
    }
}

/// The output of a client whose server may not listen yet.
fn connected(net: &RowNamespaces, words: &[&str]) -> Result<Value> {
    let mut tries = 0;
    loop {
        tries += 1;
        let said = net::output(net.within(RowMachine::Car, Path::new("iperf3")).args(words));
        let value = said.and_then(|said| {
            let value = serde_json::from_str::<Value>(&said);
            value.map_err(|error| wrong(&error.to_string()))
        });
        // It fails with an exit code, or with a field.
        let failed = match value {
            Ok(value) => match value.get("error").map(ToString::to_string) {
                None => return Ok(value),
                Some(error) => wrong(&error),
            },
            Err(error) => error,
        };
        if tries == TRIES {
            return Err(failed);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// How often a client asks a server that does not listen yet.
const TRIES: u32 = 50;

fn wrong(said: &str) -> BenchFailure {
    BenchFailure::said("iperf3", said)
}

/// Whether the programs are there that are run over the row.
pub(super) fn check(names: &[(&str, &str)]) -> Result<()> {
    let is_missing = |name: &str| {
        Command::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .stdout(Stdio::null())
            .status()
            .map_or(true, |status| !status.success())
    };
    let missing: Vec<_> = names.iter().filter(|(name, _)| is_missing(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    Err(BenchFailure::of(format!(
        "this needs programs: run `apt-get install {}`",
        packages.join(" ")
    )))
}

/// How long `count` answers took that were asked for each millisecond, in milliseconds.
pub(super) fn ping(net: &RowNamespaces, to: &str, count: u32) -> Result<Vec<f64>> {
    let mut command = net.within(RowMachine::Car, Path::new("ping"));
    let said = net::output(command.args(["-i", "0.001", "-W", "5", "-c", &count.to_string(), to]))?;
    let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
    Ok(said.lines().filter_map(time).collect())
}
