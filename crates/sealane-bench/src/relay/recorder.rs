//! The traffic on an end's wires and interface, recorded and judged by scripts. The scripts share
//! no code with the programs that they judge.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Error;
use super::net::{self, RowMachine, RowNamespaces};
use super::row::script;

/// A recorder at work.
#[derive(Debug)]
pub(super) struct WireRecorder {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    folder: PathBuf,
}

impl WireRecorder {
    /// Records every interface of a machine from now on.
    pub(super) fn start(
        net: &RowNamespaces,
        machine: RowMachine,
        folder: &Path,
    ) -> Result<WireRecorder, Error> {
        let folder = folder.join(machine.name());
        let mut command = net.within(machine, Path::new("python3"));
        command.arg(script("python/wires.py")).arg("record").arg(&folder);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(Error::io("starting python3"))?;
        let Some(out) = child.stdout.take() else { return Err(nothing()) };
        let mut recorder = WireRecorder { child, said: BufReader::new(out), folder };
        recorder.line()?;
        Ok(recorder)
    }

    fn line(&mut self) -> Result<Value, Error> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(Error::io("reading what a recorder says"))?;
        serde_json::from_str(&line).map_err(|_| nothing())
    }

    /// The capture of the wires.
    pub(super) fn outer(&self) -> PathBuf {
        self.folder.join("outer.pcap")
    }

    /// The capture of the interface that is sealed.
    pub(super) fn inner(&self) -> PathBuf {
        self.folder.join("inner.pcap")
    }

    /// Ends once the wires are silent; nothing may have been missed.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        let said = self.line()?;
        let _ = self.child.wait();
        match said.get("missed").and_then(Value::as_u64) {
            Some(0) => Ok(()),
            _ => Err(Error::Said { what: "the recorder".to_owned(), said: said.to_string() }),
        }
    }
}

impl Drop for WireRecorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nothing() -> Error {
    Error::Said { what: "wires.py record".to_owned(), said: "did not start".to_owned() }
}

/// The findings of a script of `tests/python`.
pub(super) fn judge(words: &[&str]) -> Result<Value, Error> {
    let mut command = Command::new("python3");
    let said = net::output(command.arg(script("python/captures.py")).args(words))?;
    let what = "captures.py".to_owned();
    serde_json::from_str(&said).map_err(|error| Error::Said { what, said: error.to_string() })
}

/// A count of what a script found.
pub(super) fn count(found: &Value, name: &str) -> Result<u64, Error> {
    let missing = || Error::Said { what: name.to_owned(), said: format!("is missing: {found}") };
    found.get(name).and_then(Value::as_u64).ok_or_else(missing)
}
