use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Error;
use crate::programs::BenchPrograms;

/// A node in a process of its own.
pub(crate) struct BenchNodeProcess {
    child: Child,
    pub(crate) address: String,
}

impl BenchNodeProcess {
    /// Starts a node on `data` at any free port.
    pub(crate) fn start(programs: &BenchPrograms, data: &Path, level: &str) -> Result<Self, Error> {
        let mut child = Command::new(&programs.sealane)
            .args(["--json", "up", "--listen", "127.0.0.1:0", "--level", level, "--data"])
            .arg(data)
            // All the clients of a bench have one address.
            .args(["--connections-per-address", "100000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io("starting the node"))?;
        let stdout = child.stdout.take().ok_or(Error::Process("node"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(Error::io("reading from the node"))?;
        let address = sealane_codec::decode(sealane_codec::Codec::Json, line.trim().as_bytes())
            .ok()
            .and_then(|value| value.field("address")?.as_text().map(str::to_owned));
        let address = address.ok_or(Error::Process("node"))?;
        Ok(Self { child, address })
    }

    /// Seconds of CPU that the node has spent, in user and system mode.
    pub(crate) fn cpu_s(&self) -> f64 {
        cpu_s(self.child.id())
    }

    /// One of the node's counters, as it stands now.
    pub(crate) async fn metric(&self, name: &str) -> Result<u64, Error> {
        let address = &self.address;
        let connected = TcpStream::connect(address).await;
        let mut socket = connected.map_err(Error::io("connecting"))?;
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.map_err(Error::io("sending"))?;
        let mut text = String::new();
        socket.read_to_string(&mut text).await.map_err(Error::io("receiving"))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|n| n.trim().parse().ok()).ok_or(Error::Process("node"))
    }

    /// Memory that the node holds, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id())
    }
}

/// Seconds of CPU that a process has spent, in user and system mode.
pub(crate) fn cpu_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold spaces; what follows it does not.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|t| t.parse::<f64>().ok());
    // utime and stime, in ticks of 10 ms (proc(5), USER_HZ).
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

/// Memory that a process holds, in bytes.
pub(crate) fn resident_bytes(process: u32) -> u64 {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

impl Drop for BenchNodeProcess {
    fn drop(&mut self) {
        // The data is temporary: nothing is lost with the process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
