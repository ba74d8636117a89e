//! Logs of runs, read again: the same figures and the same page, without a run.

mod line;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Read};

use line::{LogLine, RunLine, SendLine, SummaryLine};

use crate::limits::{MAX_LOG_LINE_BYTES, MAX_SIM_MEDIA, MAX_SIM_NODES, MAX_SIM_S};
use crate::watch::{LossReason, RunPage};
use crate::{SimError, SimSpan, SimTime};

/// A log that was read to its end, and that its last line agrees with.
#[derive(Debug)]
#[non_exhaustive]
pub struct LogReplay {
    /// The scenario that it is a log of.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
    /// How long the run was.
    pub lasts: SimSpan,
    /// Machines of the scenario.
    pub machines: usize,
    /// Lines of the log.
    pub lines: u64,
    /// Transmissions.
    pub units: u64,
    /// Units that were heard, each time by each machine.
    pub heard: u64,
    /// Messages that were sent.
    pub messages: u64,
    /// Deliveries that they asked for.
    pub expected: u64,
    /// Deliveries that came.
    pub delivered: u64,
    /// Changes of the way to a machine.
    pub routes: u64,
    /// Routes that led back to where they began.
    pub loops: u64,
    /// Why how many units were lost.
    pub lost: BTreeMap<&'static str, u64>,
    /// The map.
    pub page: RunPage,
}

impl LogReplay {
    /// Reads a log.
    ///
    /// # Errors
    ///
    /// [`SimError::Log`], with the line.
    pub fn read(mut log: impl BufRead) -> Result<Self, SimError> {
        let mut line = Vec::new();
        let mut replay: Option<Self> = None;
        let (mut number, mut at, mut is_over) = (0, SimTime(0), false);
        loop {
            number += 1;
            let wrong = |what: String| SimError::Log(format!("line {number}: {what}"));
            line.clear();
            let most = MAX_LOG_LINE_BYTES as u64 + 1;
            let read = log.by_ref().take(most).read_until(b'\n', &mut line);
            if read.map_err(|error| wrong(error.to_string()))? == 0 {
                break;
            }
            if line.len() > MAX_LOG_LINE_BYTES {
                return Err(wrong(format!("it is longer than {MAX_LOG_LINE_BYTES} bytes")));
            }
            if is_over {
                return Err(wrong("something follows the summary".to_owned()));
            }
            let parsed: LogLine =
                serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))?;
            let now = parsed.at();
            let last = replay.as_ref().map_or(SimTime(0), |replay| SimTime(0) + replay.lasts);
            if now < at || now > last {
                return Err(wrong(format!("{now} s comes before {at} s, or after the end")));
            }
            at = now;
            is_over = matches!(parsed, LogLine::Summary(_));
            match (&mut replay, parsed) {
                (None, LogLine::Run(run)) => replay = Some(Self::begin(run).map_err(wrong)?),
                (None, _) => return Err(wrong("it does not begin with the run".to_owned())),
                (Some(replay), parsed) => replay.take(now, parsed).map_err(wrong)?,
            }
        }
        match replay.filter(|_| is_over) {
            Some(replay) => Ok(Self { lines: number - 1, ..replay }),
            None => Err(SimError::Log(format!("line {number}: it ends without a summary"))),
        }
    }

    fn begin(run: RunLine) -> Result<Self, String> {
        let RunLine { scenario, seed, lasts, media, nodes, .. } = run;
        if nodes.len() > MAX_SIM_NODES || media.len() > MAX_SIM_MEDIA {
            return Err("too many machines or media".to_owned());
        }
        if lasts > MAX_SIM_S * 1_000_000 {
            return Err("the run is too long".to_owned());
        }
        // They stand in the page.
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let is_name = |name: &String| name.len() <= 64 && name.bytes().all(is_plain);
        if !nodes.iter().chain(&media).chain([&scenario]).all(is_name) {
            return Err("a name that is none".to_owned());
        }
        let machines = nodes.len();
        Ok(Self {
            page: RunPage::new(&scenario, seed, SimSpan(lasts), nodes),
            scenario,
            seed,
            lasts: SimSpan(lasts),
            machines,
            lines: 0,
            units: 0,
            heard: 0,
            messages: 0,
            expected: 0,
            delivered: 0,
            routes: 0,
            loops: 0,
            lost: LossReason::ALL.into_iter().map(|loss| (loss.name(), 0)).collect(),
        })
    }

    fn take(&mut self, now: SimTime, line: LogLine) -> Result<(), String> {
        match line {
            LogLine::Run(_) => Err("a second run".to_owned()),
            LogLine::Send(send) => self.send(now, &send),
            LogLine::Drop(drop) => {
                self.machine(drop.node)?;
                self.loses(&drop.why, 1)
            }
            LogLine::Offer(offer) => {
                self.machine(offer.node)?;
                offer.to.map_or(Ok(()), |to| self.machine(to))?;
                if offer.message != self.messages {
                    return Err(format!("message {} is not {}", offer.message, self.messages));
                }
                self.messages += 1;
                Ok(())
            }
            LogLine::Deliver(deliver) => {
                self.machine(deliver.node)?;
                if deliver.message >= self.messages || deliver.took > now.0 {
                    return Err(format!("message {} was not sent then", deliver.message));
                }
                self.delivered += 1;
                self.page.delivers(now);
                Ok(())
            }
            LogLine::Note(_) => Ok(()),
            LogLine::Mesh(told) => {
                self.routes += u64::from(told.what == "route");
                self.machine(told.node)
            }
            LogLine::Loop(told) => {
                self.loops += 1;
                self.machine(told.node)
            }
            LogLine::Summary(summary) => self.compare(&summary),
            // All others tell of a machine.
            line => self.happens(now, &line),
        }
    }

    fn happens(&mut self, now: SimTime, line: &LogLine) -> Result<(), String> {
        let Some((what, line)) = line.happening() else { return Ok(()) };
        self.machine(line.node)?;
        if !line.is_somewhere() {
            return Err("a place that is none".to_owned());
        }
        self.page.happens(now, what, line.node, line.place());
        Ok(())
    }

    fn send(&mut self, now: SimTime, send: &SendLine) -> Result<(), String> {
        self.machine(send.node)?;
        send.heard.iter().try_for_each(|node| self.machine(*node))?;
        self.units += 1;
        self.heard += send.heard.len() as u64;
        send.lost.iter().try_for_each(|(why, count)| self.loses(why, *count))?;
        self.page.sends(now, send.node);
        Ok(())
    }

    fn machine(&self, node: u32) -> Result<(), String> {
        match (node as usize) < self.machines {
            true => Ok(()),
            false => Err(format!("there is no machine {node}")),
        }
    }

    fn loses(&mut self, why: &str, count: u64) -> Result<(), String> {
        let lost = self.lost.get_mut(why).ok_or_else(|| format!("lost for {why:?}"))?;
        *lost = lost.saturating_add(count);
        Ok(())
    }

    /// The last line says what the others come to.
    fn compare(&mut self, summary: &SummaryLine) -> Result<(), String> {
        let machines = self.machines as u64;
        let counts = [
            ("machines", summary.machines, machines),
            ("units", summary.units, self.units),
            ("heard", summary.heard, self.heard),
            ("messages", summary.messages, self.messages),
            ("delivered", summary.delivered, self.delivered),
            ("routes", summary.routes, self.routes),
            ("loops", summary.loops, self.loops),
        ];
        let named = |why: &str| self.lost.get(why).copied().unwrap_or(0);
        let lost = summary.lost.iter().map(|(why, count)| (why.as_str(), *count, named(why)));
        match counts.into_iter().chain(lost).find(|(_, said, found)| said != found) {
            Some((what, said, found)) => {
                Err(format!("the summary says {said} {what}, and its lines {found}"))
            }
            None => {
                self.expected = summary.expected;
                Ok(())
            }
        }
    }
}

impl LogReplay {
    pub(crate) fn to_json(&self) -> String {
        let seconds = self.lasts.as_s();
        serde_json::json!({
            "v": 1,
            "scenario": self.scenario,
            "seed": self.seed,
            "seconds": seconds,
            "machines": self.machines,
            "lines": self.lines,
            "units": self.units,
            "heard": self.heard,
            "messages": self.messages,
            "expected": self.expected,
            "delivered": self.delivered,
            "routes": self.routes,
            "loops": self.loops,
            "lost": self.lost,
        })
        .to_string()
    }
}

impl fmt::Display for LogReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, seed, seconds) = (&self.scenario, self.seed, self.lasts.as_s());
        writeln!(f, "{name}, seed {seed}: {} machines, {seconds} s", self.machines)?;
        writeln!(f, "  log        {} lines, and the last agrees with the others", self.lines)?;
        writeln!(f, "  sent       {} units, heard {} times", self.units, self.heard)?;
        for (why, count) in self.lost.iter().filter(|(_, count)| **count > 0) {
            writeln!(f, "    {why:<10} {count} lost")?;
        }
        let (messages, delivered, expected) = (self.messages, self.delivered, self.expected);
        write!(f, "  messages   {messages}: {delivered} of {expected} deliveries")
    }
}
