//! Routers in network namespaces, over the simulator's radio in real time.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::log::{number, read, sent};
use super::routers::{BabelRouter, PREFIX};
use super::{
    BabelFigures, BabelTopology, BabelWorkspace, DIAMOND, IPERF_S, KILL_AFTER_S, KILLS, PROBE_MS,
    PROBES, ROW, STEADY_PROBES, WINDOW_S, keep,
};
use crate::process::{self, XtaskResult};

/// After a kill, the relay that is back is known again.
const BACK: Duration = Duration::from_secs(5);
/// A run that is late by more has measured something else.
const LATE_US: u64 = 50_000;

/// After so long a server listens.
const LISTENS: Duration = Duration::from_secs(1);
/// Bytes of the file that a script of the page fetches, beside the page.
const PAGE_BYTES: usize = 100_000;
const PAGE: &str = "<!doctype html><p>nothing</p><script>\
    fetch('more').then(reply => reply.arrayBuffer()).then(more => {\
    document.querySelector('p').textContent = `read ${more.byteLength} bytes` })</script>";

/// A live run of one topology.
pub(super) struct BabelLiveRun<'w> {
    work: &'w BabelWorkspace,
    router: &'w BabelRouter<'w>,
    child: Child,
    scenario: PathBuf,
    log: PathBuf,
}

impl<'w> BabelLiveRun<'w> {
    pub(super) fn start(
        work: &'w BabelWorkspace,
        topology: &BabelTopology,
        router: &'w BabelRouter<'w>,
    ) -> XtaskResult<Self> {
        let [scenario, log, said] =
            ["live.toml", "live.jsonl", "live.err"].map(|name| work.folder.join(name));
        let file = |path: &PathBuf| {
            std::fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        keep(&scenario, topology.scenario(3600, &router.runs(), ""))?;
        let mut sim = process::program(&work.sim);
        sim.args(["live", "--json", "--prefix", PREFIX]).arg(&scenario);
        sim.stdin(Stdio::null()).stdout(file(&log)?).stderr(file(&said)?);
        let child = sim.spawn().map_err(|error| format!("sealane-sim: {error}"))?;
        let mut live = Self { work, router, child, scenario, log };
        let end = Instant::now() + Duration::from_secs(topology.most_s);
        while live.ctl(&["status"]).is_err() {
            let has_ended = live.child.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || Instant::now() > end {
                return Err(read(&said)?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(live)
    }

    fn ctl(&self, order: &[&str]) -> XtaskResult<String> {
        let mut sim = process::program(&self.work.sim);
        process::output(sim.args(["--json", "ctl"]).arg(&self.scenario).args(order))
    }

    /// The run's own time, in microseconds.
    fn now_us(&self) -> XtaskResult<u64> {
        let status = self.ctl(&["status"])?;
        number(&status, "at").ok_or_else(|| format!("no time: {status}"))
    }

    /// Waits until all have routes to all.
    fn routes(&self, topology: &BabelTopology) -> XtaskResult<Option<u64>> {
        let names = topology.names();
        let mut without: Vec<&String> = names.iter().collect();
        loop {
            without.retain(|name| self.router.known(name) < names.len() - 1);
            let now = self.now_us()?;
            if without.is_empty() {
                return Ok(Some(now));
            }
            if now > topology.most_s * 1_000_000 {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(super) fn figures(self, topology: &BabelTopology) -> XtaskResult<BabelFigures> {
        let routes_us = self.routes(topology)?;
        // Control is counted at the same age of the mesh, whenever routes were found.
        let since = topology.most_s * 1_000_000;
        while self.now_us()? < since + WINDOW_S * 1_000_000 {
            std::thread::sleep(Duration::from_millis(500));
        }
        let lost = unanswered(self.ping(topology, STEADY_PROBES)?, STEADY_PROBES)?;
        let log = self.stop()?;
        let sent = sent(&log, since);
        Ok(BabelFigures {
            routes_s: routes_us.map(|us| us as f64 / 1e6),
            bytes: sent.bytes_per_second / topology.machines as f64,
            air: sent.air,
            lost,
        })
    }

    /// Probes from the first machine to the last.
    fn ping(&self, topology: &BabelTopology, probes: u64) -> XtaskResult<Child> {
        let names = topology.names();
        let first = names.first().ok_or("no machines")?;
        let mut ping = process::program("ip");
        let interval = format!("{}.{:03}", PROBE_MS / 1000, PROBE_MS % 1000);
        ping.args(["netns", "exec", &format!("{PREFIX}-{first}"), "ping", "-q", "-W", "1"]);
        ping.args(["-i", &interval, "-c", &probes.to_string()]);
        ping.arg(self.router.address(topology.machines - 1));
        let ping = ping.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        ping.map_err(|error| format!("ping: {error}"))
    }

    /// How many probes are lost when the relay in use is killed, each time anew.
    pub(super) fn lost(self) -> XtaskResult<Vec<Option<u64>>> {
        let ends = ["from", "to"].map(str::to_owned);
        let wanted = DIAMOND.machines - 1;
        let mut lost = vec![];
        for _ in 0..KILLS {
            let end = Instant::now() + Duration::from_secs(DIAMOND.most_s);
            while ends.iter().any(|name| self.router.known(name) < wanted) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(200));
            }
            lost.push(self.kill_relay_in_use()?);
            std::thread::sleep(BACK);
        }
        self.stop()?;
        Ok(lost)
    }

    /// Nothing if no relay is in use.
    fn kill_relay_in_use(&self) -> XtaskResult<Option<u64>> {
        let ping = self.ping(&DIAMOND, PROBES)?;
        std::thread::sleep(Duration::from_secs(KILL_AFTER_S));
        let via = self.router.relay_in_use(DIAMOND.machines - 1);
        if let Some(via) = via {
            self.ctl(&["kill", via])?;
        }
        let lost = unanswered(ping, PROBES)?;
        if let Some(via) = via {
            self.ctl(&["join", via])?;
        }
        Ok(via.and(lost))
    }

    /// Has programs talk from end to end over all hops, and demands that the run is not late.
    pub(super) fn talk(self) -> XtaskResult {
        self.routes(&ROW)?.ok_or("the row has found no routes")?;
        let target = self.router.address(ROW.machines - 1);
        let ping = ["ping", "-q", "-i", "0.2", "-c", "20", &target];
        print!("{}", process::output(&mut on("n-1", &ping))?);
        let seconds = IPERF_S.to_string();
        let talk =
            ["iperf3", "-c", &target, "-t", &seconds, "--connect-timeout", "10000", "-i", "0"];
        print!("{}", served(&["iperf3", "-s", "-1"], &talk)?);
        self.browse(&target)?;
        let status = self.ctl(&["status"])?;
        let late = |key| number(&status, key).unwrap_or(u64::MAX);
        let (half, most, all) = (late("half"), late("most"), late("all"));
        println!("late, us: {half} half of the time, {most} 99 % of it, {all} at most");
        self.stop()?;
        match most <= LATE_US {
            true => Ok(()),
            false => Err(format!("the run falls behind: {LATE_US} us are demanded for 99 %")),
        }
    }

    /// Has a browser read a page from the other end, whose script reads more bytes from there.
    fn browse(&self, target: &str) -> XtaskResult {
        let folder = self.work.folder.join("page");
        std::fs::create_dir_all(&folder).map_err(|error| format!("page: {error}"))?;
        keep(&folder.join("index.html"), PAGE)?;
        keep(&folder.join("more"), vec![b'x'; PAGE_BYTES])?;
        let shown = folder.display().to_string();
        let serve =
            ["python3", "-m", "http.server", "8080", "--bind", target, "--directory", &shown];
        let page = format!("http://{target}:8080/");
        let browser = ["chromium-headless-shell", "--no-sandbox", "--disable-gpu"];
        let browse = [&browser[..], &["--virtual-time-budget=60000", "--dump-dom", &page]].concat();
        let read = served(&serve, &browse)?;
        let wanted = format!("read {PAGE_BYTES} bytes");
        match read.contains(&wanted) {
            true => println!("a browser has shown the page of the other end: {wanted}"),
            false => return Err(format!("the browser has shown: {read}")),
        }
        Ok(())
    }

    /// Ends the run, which must not have been late, and gives its log.
    fn stop(mut self) -> XtaskResult<String> {
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

/// A command in the namespace of a machine.
fn on(name: &str, words: &[&str]) -> std::process::Command {
    let mut command = process::program("ip");
    command.args(["netns", "exec", &format!("{PREFIX}-{name}")]).args(words);
    command
}

/// The output of a program at the first machine, while another program serves it at the last.
fn served(serve: &[&str], ask: &[&str]) -> XtaskResult<String> {
    let mut server = on(&format!("n-{}", ROW.machines), serve);
    let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut server = server.map_err(|error| format!("{serve:?}: {error}"))?;
    std::thread::sleep(LISTENS);
    let said = process::output(&mut on("n-1", ask));
    let _ = server.kill();
    let _ = server.wait();
    said
}

/// How many of so many probes were lost; nothing if the system has no route for them.
fn unanswered(ping: Child, probes: u64) -> XtaskResult<Option<u64>> {
    let said = ping.wait_with_output().map_err(|error| format!("ping: {error}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    if said.is_empty() {
        return Ok(None);
    }
    let received = said.split(" received").next().and_then(|head| head.rsplit(' ').next());
    let received: Option<u64> = received.and_then(|count| count.parse().ok());
    received.map(|count| Some(probes - count)).ok_or(said)
}

impl Drop for BabelLiveRun<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
