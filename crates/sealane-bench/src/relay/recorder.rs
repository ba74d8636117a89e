//! The traffic on an end's wires and interface, recorded and judged by scripts. The scripts share
//! no code with the programs that they judge.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::net::{self, RowMachine, RowNamespaces};
use super::row::script;
use crate::failure::{BenchFailure, Result};
use crate::process::BenchProcess;

/// A recorder at work.
#[derive(Debug)]
pub(super) struct WireRecorder {
    process: BenchProcess,
    folder: PathBuf,
}

impl WireRecorder {
    /// Records every interface of a machine from now on.
    pub(super) fn start(
        net: &RowNamespaces,
        machine: RowMachine,
        folder: &Path,
    ) -> Result<WireRecorder> {
        let folder = folder.join(machine.name());
        let mut command = net.within(machine, Path::new("python3"));
        command.arg(script("python/wires.py")).arg("record").arg(&folder).stdin(Stdio::piped());
        Ok(WireRecorder { process: BenchProcess::talking(&mut command, None)?, folder })
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
    pub(super) fn finish(&mut self) -> Result<()> {
        drop(self.process.input());
        let said = self.process.last_line()?;
        match said.get("missed").and_then(Value::as_u64) {
            Some(0) => Ok(()),
            _ => Err(BenchFailure::said("the recorder", said)),
        }
    }
}

/// The findings of a script of `tests/python`.
pub(super) fn judge(words: &[&str]) -> Result<Value> {
    let mut command = Command::new("python3");
    let said = net::output(command.arg(script("python/captures.py")).args(words))?;
    serde_json::from_str(&said).map_err(|error| BenchFailure::said("captures.py", error))
}

/// A count of what a script found.
pub(super) fn count(found: &Value, name: &str) -> Result<u64> {
    let missing = || BenchFailure::said(name, format!("is missing: {found}"));
    found.get(name).and_then(Value::as_u64).ok_or_else(missing)
}
