//! Lines of the README, run as its reader runs them, and processes that go on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealane::{Codec, Value};
use tokio::io::AsyncWriteExt;

use super::failed;
use crate::CliFailure;
use crate::limits::MAX_DEMO_STARTS;

/// Runs `sealane` in a folder of its own, with nothing of its user's settings.
#[derive(Clone)]
pub(super) struct DemoScript {
    program: PathBuf,
    folder: PathBuf,
    /// The address of the hub, once one runs.
    pub(super) hub: String,
}

impl DemoScript {
    pub(super) fn new(folder: PathBuf) -> Result<Self, CliFailure> {
        Ok(Self { program: std::env::current_exe().map_err(failed)?, folder, hub: String::new() })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `sealane` with these words and the keys of a machine.
    fn command(&self, who: &str, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words.split(' ')).current_dir(&self.folder).env_clear();
        command.env("HOME", &self.folder).env("TMPDIR", &self.folder);
        command.env("SEALANE_KEYS", self.folder.join("keys").join(who));
        command.env("SEALANE_SERVER", &self.hub).env("SEALANE_VAULT", self.path("vault"));
        command.env("SEALANE_PASSPHRASE", "a passphrase");
        command
    }

    /// Runs a line to its end, over this input; gives what it prints.
    pub(super) async fn run(
        &self,
        who: &str,
        words: &str,
        input: &[u8],
    ) -> Result<Vec<u8>, CliFailure> {
        let mut command = tokio::process::Command::from(self.command(who, words));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input).await.map_err(failed)?;
        }
        let output = child.wait_with_output().await.map_err(failed)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(CliFailure::Demo(format!("sealane {words}: {}", said.trim())))
    }
}

/// A process that says in a line of JSON that it runs. It is killed when this is dropped.
pub(super) struct DemoProcess {
    child: Child,
    /// The line that it said.
    pub(super) said: Value,
    /// When it said so.
    pub(super) began: Instant,
}

impl DemoProcess {
    /// Starts `sealane --json` with these words, and waits until it runs. What it complains of goes
    /// to the end of `log`.
    pub(super) async fn start(
        script: &DemoScript,
        words: &str,
        log: PathBuf,
    ) -> Result<Self, CliFailure> {
        let command = script.command("", &format!("--json {words}"));
        let started = tokio::task::spawn_blocking(move || Self::spawn(command, &log));
        started.await.map_err(failed)?
    }

    fn spawn(mut command: Command, log: &Path) -> Result<Self, CliFailure> {
        let errors = File::options().create(true).append(true).open(log).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let child = command.spawn().map_err(failed)?;
        let mut process = Self { child, said: Value::Null, began: Instant::now() };
        let mut line = String::new();
        if let Some(out) = process.child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        process.began = Instant::now();
        let Ok(said) = sealane_codec::decode(Codec::Json, line.as_bytes()) else {
            let log = fs::read_to_string(log).unwrap_or_default();
            return Err(failed(format!("a process did not start: {}", log.trim())));
        };
        process.said = said;
        Ok(process)
    }

    /// Starts the hub on an address; the script speaks to it from then on.
    pub(super) async fn start_hub(
        script: &mut DemoScript,
        address: &str,
    ) -> Result<Self, CliFailure> {
        let words = format!("up --level disk --data data --listen {address}");
        let hub = Self::start(script, &words, script.path("hub.log")).await?;
        script.hub = hub.text("address").to_owned();
        Ok(hub)
    }

    /// Starts the hub on the same data and port, which the process before may still hold.
    pub(super) async fn restart_hub(mut script: DemoScript) -> Result<Self, CliFailure> {
        let address = script.hub.clone();
        let mut starts = 1;
        loop {
            match Self::start_hub(&mut script, &address).await {
                Err(_) if starts < MAX_DEMO_STARTS => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    starts += 1;
                }
                outcome => return outcome,
            }
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.said.field(name).and_then(Value::as_text).unwrap_or_default()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash does: SIGKILL, which it cannot see coming.
    pub(super) fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for DemoProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// How many files below a folder hold a text.
pub(super) fn holding(folder: &Path, text: &str) -> Result<u64, CliFailure> {
    let mut found = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            found += holding(&path, text)?;
        } else if path.is_file() {
            found += u64::from(holds(&fs::read(&path).map_err(failed)?, text));
        }
    }
    Ok(found)
}

/// Whether a text stands in bytes.
pub(super) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
