//! Processes of the row, and what they take of the machine.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::Error;

/// A process that says in a line of JSON that it has started, and in another what it did. It is
/// killed when this is dropped.
#[derive(Debug)]
pub(super) struct BenchProcess {
    child: Child,
    said: BufReader<ChildStdout>,
    pub(super) spawned: Instant,
    /// The line that it printed when it had started.
    started: String,
}

impl BenchProcess {
    /// Starts it, and waits until it says so. What it complains of goes to the end of `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<BenchProcess, Error> {
        let log_file = File::options().create(true).append(true).open(log);
        let log_file = log_file.map_err(Error::io("writing a log"))?;
        let spawned = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file).spawn();
        let mut child = child.map_err(Error::io("starting a process"))?;
        let Some(out) = child.stdout.take() else { return Err(refused("it has no output", log)) };
        let said = BufReader::new(out);
        let mut process = BenchProcess { child, said, spawned, started: String::new() };
        process.started = process.line()?;
        if process.started.is_empty() {
            return Err(refused("it did not start", log));
        }
        Ok(process)
    }

    /// A text of what it said when it had started.
    pub(super) fn started(&self, name: &str) -> Option<String> {
        let started: Value = serde_json::from_str(&self.started).ok()?;
        Some(started.get(name)?.as_str()?.to_owned())
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(Error::io("reading what a process says"))?;
        Ok(line)
    }

    /// SIGKILL.
    pub(super) fn kill(mut self) {
        self.end();
    }

    /// SIGTERM; gives what it says in the end.
    pub(super) fn stop(mut self) -> Result<Value, Error> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)
            .map_err(|cause| Error::io("ending a process")(cause.into()))?;
        let line = self.line()?;
        let _ = self.child.wait();
        let what = "what a process says in the end".to_owned();
        serde_json::from_str(&line)
            .map_err(|error| Error::Said { what, said: format!("{error}: {line}") })
    }

    /// Nanoseconds of CPU that its threads have taken.
    pub(super) fn cpu_ns(&self) -> Result<u64, Error> {
        let failed = || Error::io("reading what a process took");
        let folder = format!("/proc/{}/task", self.child.id());
        let mut sum = 0;
        for thread in std::fs::read_dir(folder).map_err(failed())? {
            let file = thread.map_err(failed())?.path().join("schedstat");
            let text = std::fs::read_to_string(file).map_err(failed())?;
            sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// The most memory that it had, in bytes.
    pub(super) fn memory_bytes(&self) -> Result<u64, Error> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .map_err(Error::io("reading what a process took"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        Ok(kib.unwrap_or(0) << 10)
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn refused(what: &str, log: &Path) -> Error {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let last = log.lines().last().unwrap_or("it says nothing");
    Error::Said { what: what.to_owned(), said: last.to_owned() }
}
