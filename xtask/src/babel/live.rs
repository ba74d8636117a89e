//! `babeld` in network namespaces, over the simulator's radio in real time.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::log::{number, read, sent};
use super::{
    DIAMOND, Figures, KILL_AFTER_S, KILLS, MOST_S, PROBE_MS, PROBES, Settings, Topology, WINDOW_S,
    Work, keep,
};
use crate::process::{self, Outcome};

/// What the namespaces' names begin with.
const PREFIX: &str = "babel";
/// After a kill, the relay that is back is known again.
const BACK: Duration = Duration::from_secs(20);
/// A run that is late by more has measured something else.
const LATE_US: u64 = 50_000;

/// A live run of one topology.
pub(super) struct Live<'w> {
    work: &'w Work,
    child: Child,
    scenario: PathBuf,
    log: PathBuf,
}

impl<'w> Live<'w> {
    pub(super) fn start(work: &'w Work, topology: &Topology, settings: &Settings) -> Outcome<Self> {
        let [scenario, log, said] =
            ["live.toml", "live.jsonl", "live.err"].map(|name| work.folder.join(name));
        let file = |path: &PathBuf| {
            std::fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let more = match settings.line {
            "" => String::new(),
            line => format!("-C '{line}' "),
        };
        let runs = format!(
            "kind = \"process\"\ncommand = [\"sh\", \"-c\", \"\"\"\
             ip address add fd83::$SEALANE_SIM_NUMBER/128 dev lo; \
             sysctl -qw net.ipv6.conf.all.forwarding=1; \
             rm -f $SEALANE_SIM_NAME.state; \
             exec babeld -I '' -S $SEALANE_SIM_NAME.state {more}road\"\"\"]"
        );
        keep(&scenario, &topology.scenario(3600, &runs, ""))?;
        let mut sim = process::program(&work.sim);
        sim.args(["live", "--json", "--prefix", PREFIX]).arg(&scenario);
        sim.stdin(Stdio::null()).stdout(file(&log)?).stderr(file(&said)?);
        let child = sim.spawn().map_err(|error| format!("sealane-sim: {error}"))?;
        let mut live = Self { work, child, scenario, log };
        let end = Instant::now() + Duration::from_secs(MOST_S);
        while live.ctl(&["status"]).is_err() {
            let has_ended = live.child.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || Instant::now() > end {
                return Err(read(&said)?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(live)
    }

    fn ctl(&self, order: &[&str]) -> Outcome<String> {
        let mut sim = process::program(&self.work.sim);
        process::output(sim.args(["--json", "ctl"]).arg(&self.scenario).args(order))
    }

    /// The run's own time, in microseconds.
    fn now_us(&self) -> Outcome<u64> {
        let status = self.ctl(&["status"])?;
        number(&status, "at").ok_or_else(|| format!("no time: {status}"))
    }

    /// Waits until all have routes to all.
    fn routes(&self, names: &[String]) -> Outcome<Option<u64>> {
        let mut without: Vec<&String> = names.iter().collect();
        loop {
            without.retain(|name| self.known(name) < names.len() - 1);
            let now = self.now_us()?;
            if without.is_empty() {
                return Ok(Some(now));
            }
            if now > MOST_S * 1_000_000 {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// How many others a machine has a route to.
    fn known(&self, name: &str) -> usize {
        let namespace = format!("{PREFIX}-{name}");
        let mut ip = process::program("ip");
        let routes = process::output(ip.args(["-n", &namespace, "-6", "route", "show"]));
        let is_found = |line: &&str| line.starts_with("fd83::") && line.contains("proto babel");
        routes.unwrap_or_default().lines().filter(is_found).count()
    }

    pub(super) fn figures(self, topology: &Topology) -> Outcome<Figures> {
        let names: Vec<String> = (1..=topology.machines).map(|n| format!("n-{n}")).collect();
        let routes_us = self.routes(&names)?;
        // Control is counted at the same age of the mesh, whenever routes were found.
        let since = MOST_S * 1_000_000;
        while self.now_us()? < since + WINDOW_S * 1_000_000 {
            std::thread::sleep(Duration::from_millis(500));
        }
        let log = self.stop()?;
        let sent = sent(&log, since);
        Ok(Figures {
            routes_s: routes_us.map(|us| us as f64 / 1e6),
            bytes: sent.bytes_per_second / topology.machines as f64,
            air: sent.air,
        })
    }

    /// How many probes are lost when the relay in use is killed, each time anew.
    pub(super) fn lost(self) -> Outcome<Vec<Option<u64>>> {
        let ends = ["from", "to"].map(str::to_owned);
        let wanted = DIAMOND.machines - 1;
        let mut lost = vec![];
        for _ in 0..KILLS {
            let end = Instant::now() + Duration::from_secs(MOST_S);
            while ends.iter().any(|name| self.known(name) < wanted) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(200));
            }
            lost.push(self.kill_relay_in_use()?);
            std::thread::sleep(BACK);
        }
        self.stop()?;
        Ok(lost)
    }

    /// Nothing if no relay is in use.
    fn kill_relay_in_use(&self) -> Outcome<Option<u64>> {
        let target = format!("fd83::{}", DIAMOND.machines - 1);
        let mut ping = process::program("ip");
        let interval = format!("{}.{:03}", PROBE_MS / 1000, PROBE_MS % 1000);
        ping.args(["netns", "exec", &format!("{PREFIX}-from"), "ping", "-6", "-q", "-W", "1"]);
        ping.args(["-i", &interval, "-c", &PROBES.to_string(), &target]);
        let ping = ping.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let ping = ping.map_err(|error| format!("ping: {error}"))?;
        std::thread::sleep(Duration::from_secs(KILL_AFTER_S));
        let mut route = process::program("ip");
        route.args(["-n", &format!("{PREFIX}-from"), "-6", "route", "get", &target]);
        let route = process::output(&mut route).unwrap_or_default();
        // The address of a card ends with the machine's number: 1 and 2 are the relays.
        let via = ["1", "2"].into_iter().find(|n| route.contains(&format!("4cff:fe00:{n} ")));
        if let Some(via) = via {
            self.ctl(&["kill", &format!("via-{via}")])?;
        }
        let said = ping.wait_with_output().map_err(|error| format!("ping: {error}"))?;
        let Some(via) = via else { return Ok(None) };
        self.ctl(&["join", &format!("via-{via}")])?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let received = said.split(" received").next().and_then(|head| head.rsplit(' ').next());
        let received: Option<u64> = received.and_then(|count| count.parse().ok());
        received.map(|count| Some(PROBES - count)).ok_or(said)
    }

    /// Ends the run, which must not have been late, and gives its log.
    fn stop(mut self) -> Outcome<String> {
        let status = self.ctl(&["status"])?;
        let late = number(&status, "most").unwrap_or(u64::MAX);
        if late > LATE_US {
            println!("(the run was late by up to {late} us for 99 % of the time)");
        }
        self.ctl(&["stop"])?;
        self.child.wait().map_err(|error| format!("sealane-sim: {error}"))?;
        read(&self.log)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
