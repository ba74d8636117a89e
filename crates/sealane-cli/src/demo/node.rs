use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealane::{Codec, Value};

use crate::CliFailure;
use crate::limits::MAX_DEMO_STARTS;

/// A node as a process of its own. It is killed when this is dropped.
pub(super) struct DemoNodeProcess {
    program: PathBuf,
    folder: PathBuf,
    child: Child,
    address: String,
    version: String,
    began: Instant,
}

impl DemoNodeProcess {
    /// Starts a node over `folder`, on a free port where none is named.
    pub(super) async fn start(
        program: PathBuf,
        folder: PathBuf,
        address: Option<String>,
    ) -> Result<Self, CliFailure> {
        let started = tokio::task::spawn_blocking(move || Self::spawn(program, folder, address));
        started.await.map_err(|error| CliFailure::Demo(error.to_string()))?
    }

    fn spawn(
        program: PathBuf,
        folder: PathBuf,
        address: Option<String>,
    ) -> Result<Self, CliFailure> {
        let failed = |error: std::io::Error| CliFailure::Demo(format!("the node: {error}"));
        let log = folder.join("node.log");
        let mut child = Command::new(&program)
            .args(["up", "--json", "--level", "disk", "--data"])
            .arg(folder.join("data"))
            .args(["--listen", address.as_deref().unwrap_or("127.0.0.1:0")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        let text = |name: &str| {
            let value = sealane_codec::decode(Codec::Json, line.as_bytes()).ok()?;
            value.field(name).and_then(Value::as_text).map(str::to_owned)
        };
        let (Some(address), Some(version)) = (text("address"), text("version")) else {
            end(&mut child);
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(CliFailure::Demo(format!("the node did not start: {}", log.trim())));
        };
        Ok(Self { program, folder, child, address, version, began: Instant::now() })
    }

    /// Starts it again on the same data and port.
    pub(super) async fn restart(self) -> Result<Self, CliFailure> {
        let mut starts = 0;
        loop {
            starts += 1;
            let (program, folder) = (self.program.clone(), self.folder.clone());
            match Self::start(program, folder, Some(self.address.clone())).await {
                Err(_) if starts < MAX_DEMO_STARTS => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Ends it as a crash does: SIGKILL, which it cannot see coming.
    pub(super) fn kill(&mut self) -> Result<(), CliFailure> {
        self.child.kill().map_err(|error| CliFailure::Demo(error.to_string()))?;
        self.child.wait().map(drop).map_err(|error| CliFailure::Demo(error.to_string()))
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When it began to answer.
    pub(super) fn began(&self) -> Instant {
        self.began
    }
}

impl Drop for DemoNodeProcess {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// It may have ended already; there is nothing to do about it here.
pub(super) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
