//! Programs that run beside the bench, and what they take of the machine.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::failure::{BenchFailure, Result};
use crate::programs::BenchPrograms;

/// A program. It is killed when this is dropped: what it writes is temporary.
#[derive(Debug)]
pub(crate) struct BenchProcess {
    child: Child,
    said: Option<BufReader<ChildStdout>>,
    pub(crate) spawned: Instant,
    /// The line that it printed when it had started.
    started: String,
}

impl BenchProcess {
    /// Starts a program of which nothing is read.
    pub(crate) fn silent(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self::spawn(command)
    }

    fn spawn(command: &mut Command) -> Result<Self> {
        let spawned = Instant::now();
        let program = command.get_program().display().to_string();
        let mut child = command.spawn().map_err(BenchFailure::io(format!("starting {program}")))?;
        let said = child.stdout.take().map(BufReader::new);
        Ok(Self { child, said, spawned, started: String::new() })
    }

    /// Starts a program that says in a line that it runs. What it complains of goes to the end of
    /// `log`.
    pub(crate) fn start(command: &mut Command, log: Option<&Path>) -> Result<Self> {
        Self::talking(command.stdin(Stdio::null()), log)
    }

    /// The same, with the input that the command says.
    pub(crate) fn talking(command: &mut Command, log: Option<&Path>) -> Result<Self> {
        let errors = match log {
            Some(log) => File::options().create(true).append(true).open(log).map(Stdio::from),
            None => Ok(Stdio::null()),
        };
        command.stderr(errors.map_err(BenchFailure::io("writing a log"))?).stdout(Stdio::piped());
        let mut process = Self::spawn(command)?;
        process.started = process.line()?;
        if process.started.is_empty() {
            return Err(BenchFailure::said("it did not start", last_words(log)));
        }
        Ok(process)
    }

    /// Starts a peer's server, and waits until it takes connections.
    fn serve(command: &mut Command, address: &str, log: &Path) -> Result<Self> {
        const PATIENCE: Duration = Duration::from_secs(20);
        let errors = File::create(log).map_err(BenchFailure::io("writing a log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let server = Self::spawn(command)?;
        while TcpStream::connect(address).is_err() {
            if server.spawned.elapsed() > PATIENCE {
                let program = Path::new(command.get_program()).file_name().unwrap_or_default();
                return Err(BenchFailure::said(program.display(), last_words(Some(log))));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// A text of what it said when it had started.
    pub(crate) fn started(&self, name: &str) -> Option<String> {
        let started: Value = serde_json::from_str(&self.started).ok()?;
        Some(started.get(name)?.as_str()?.to_owned())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let Some(said) = &mut self.said else { return Ok(line) };
        said.read_line(&mut line).map_err(BenchFailure::io("reading what a process says"))?;
        Ok(line)
    }

    /// Its input, whose end may be the end of its work.
    pub(crate) fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for its last line of JSON.
    pub(crate) fn last_line(&mut self) -> Result<Value> {
        let line = self.line()?;
        let _ = self.child.wait();
        let failed = |error| BenchFailure::said(format!("a process said {line:?}"), error);
        serde_json::from_str(&line).map_err(failed)
    }

    /// Sends a signal. A process that has ended already takes none.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(id, signal);
    }

    /// SIGTERM; gives what it says in the end.
    pub(crate) fn stop(mut self) -> Result<Value> {
        self.signal(rustix::process::Signal::TERM);
        self.last_line()
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) {
        let _ = self.child.wait();
    }

    /// Seconds of CPU that it has spent, in user and system mode, to a hundredth.
    pub(crate) fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(self.account("stat")).unwrap_or_default();
        // The name, in parentheses, may hold spaces; what follows it does not.
        let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
        let fields: Vec<f64> = rest.split_whitespace().map(|n| n.parse().unwrap_or(0.0)).collect();
        // utime and stime, in ticks of 10 ms (proc(5), USER_HZ).
        fields.get(11..13).map_or(0.0, |ticks| ticks.iter().sum::<f64>() / 100.0)
    }

    /// Nanoseconds of CPU that its threads have taken.
    pub(crate) fn cpu_ns(&self) -> Result<u64> {
        let failed = || BenchFailure::io("reading what a process took");
        let mut sum = 0;
        for thread in fs::read_dir(self.account("task")).map_err(failed())? {
            let file = thread.map_err(failed())?.path().join("schedstat");
            let text = fs::read_to_string(file).map_err(failed())?;
            sum += text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// Its number, for others that look at it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Memory that it holds, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        memory_kib(self.child.id(), "VmRSS:") << 10
    }

    /// The most memory that it has held, in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        memory_kib(self.child.id(), "VmHWM:") << 10
    }

    fn account(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.child.id())
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A figure of a process's memory, by the name that Linux gives it.
pub(crate) fn memory_kib(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Bytes that a process has had written to disks; 0 where the system does not tell.
pub(crate) fn written_bytes(process: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
}

fn last_words(log: Option<&Path>) -> String {
    let log = log.and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
    log.lines().last().unwrap_or("it says nothing").to_owned()
}

/// A server with a data folder that goes with it: a hub, or a peer.
#[derive(Debug)]
pub(crate) struct BenchServer {
    pub(crate) process: BenchProcess,
    pub(crate) address: String,
    pub(crate) folder: TempDir,
}

impl BenchServer {
    /// Starts a hub at any free port, on a new folder of the disk that is measured.
    pub(crate) fn hub(programs: &BenchPrograms, data: Option<&Path>, level: &str) -> Result<Self> {
        let folder = folder(data)?;
        let mut command = Command::new(&programs.sealane);
        command.args(["--json", "up", "--listen", "127.0.0.1:0", "--level", level, "--data"]);
        // All the clients of a bench have one address.
        command.arg(folder.path()).args(["--connections-per-address", "100000"]);
        let process = BenchProcess::start(&mut command, None)?;
        let address = process.started("address").ok_or_else(|| BenchFailure::broken("the hub"))?;
        Ok(Self { process, address, folder })
    }

    /// Starts a peer with the configuration that `write` gives for a port and a folder.
    pub(crate) fn peer(
        program: &Path,
        data: Option<&Path>,
        write: impl FnOnce(u16, &Path) -> (&'static str, String),
    ) -> Result<Self> {
        let folder = folder(data)?;
        // A port that was free a moment ago.
        let bound = TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr());
        let address = bound.map_err(BenchFailure::io("looking for a free port"))?;
        let (name, text) = write(address.port(), folder.path());
        let file = folder.path().join(name);
        fs::write(&file, text).map_err(BenchFailure::io("writing a configuration"))?;
        let mut command = Command::new(program);
        command.arg("--config").arg(&file).current_dir(folder.path());
        let address = address.to_string();
        let process = BenchProcess::serve(&mut command, &address, &folder.path().join("log"))?;
        Ok(Self { process, address, folder })
    }

    /// One of the hub's counters, as it stands now.
    pub(crate) async fn metric(&self, name: &str) -> Result<u64> {
        let (address, failed) = (&self.address, || BenchFailure::io("asking the hub"));
        let mut socket = tokio::net::TcpStream::connect(address).await.map_err(failed())?;
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.map_err(failed())?;
        let mut text = String::new();
        socket.read_to_string(&mut text).await.map_err(failed())?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let number = line.and_then(|n| n.trim().parse().ok());
        number.ok_or_else(|| BenchFailure::broken("a counter of the hub"))
    }
}

/// A folder on the disk that is measured, removed with its value.
pub(crate) fn folder(data: Option<&Path>) -> Result<TempDir> {
    let folder = data.map_or_else(tempfile::tempdir, tempfile::tempdir_in);
    folder.map_err(BenchFailure::io("making a data folder"))
}

/// A process of this program that does a part of the work, and prints its result in the last line;
/// so that no client shares the process of a server, nor its memory.
pub(crate) struct BenchClientProcess(tokio::process::Child);

impl BenchClientProcess {
    pub(crate) fn start(programs: &BenchPrograms, words: &[&str]) -> Result<Self> {
        let mut command = tokio::process::Command::new(&programs.bench);
        command.args(words).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Self(command.spawn().map_err(BenchFailure::io("starting a client"))?))
    }

    /// Waits until the client says that its connections stand.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let mut line = [0; 6];
        let Some(stdout) = &mut self.0.stdout else { return Err(BenchFailure::broken("a client")) };
        let failed = BenchFailure::io("waiting for a client");
        stdout.read_exact(&mut line).await.map_err(failed)?;
        if &line == b"ready\n" { Ok(()) } else { Err(BenchFailure::broken("a client")) }
    }

    /// Waits for what the client saw; lets it go first where it holds connections.
    pub(crate) async fn finish<T: DeserializeOwned>(self) -> Result<T> {
        let line = self.last_line().await?;
        serde_json::from_str(&line).map_err(|error| BenchFailure::said("a client", error))
    }

    /// The same, as it was printed.
    pub(crate) async fn last_line(self) -> Result<String> {
        let output = self.0.wait_with_output().await;
        let output = output.map_err(BenchFailure::io("reading a client"))?;
        let [said, errors] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        if output.status.success() {
            return Ok(said.lines().last().unwrap_or_default().to_owned());
        }
        Err(BenchFailure::said("a client", errors.lines().next().unwrap_or("it ended early")))
    }
}
