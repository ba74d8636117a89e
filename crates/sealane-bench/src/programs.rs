//! The programs that a measurement starts: nodes and vaults are `sealane`, clients this program.

use std::env::consts::EXE_SUFFIX;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::VERSION;

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct BenchPrograms {
    /// The program `sealane`: the node, and the vault.
    pub sealane: PathBuf,
    /// The program `sealane-bench`: every client of a node.
    pub bench: PathBuf,
}

/// There is no program to measure.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", program.display())]
pub struct NoSealane {
    program: PathBuf,
    why: String,
}

impl BenchPrograms {
    /// This program, and the `sealane` in the same folder.
    ///
    /// # Errors
    /// Where the system does not say which program this is.
    pub fn here() -> io::Result<Self> {
        let bench = std::env::current_exe()?;
        Ok(Self { sealane: bench.with_file_name(format!("sealane{EXE_SUFFIX}")), bench })
    }

    /// Makes sure that the figures will be those of the commit that stands beside them.
    ///
    /// # Errors
    /// [`NoSealane`] where `sealane` is not there, or is of another commit or target than this.
    pub fn check(&self) -> Result<(), NoSealane> {
        let failed = |why: String| NoSealane { program: self.sealane.clone(), why };
        let output = Command::new(&self.sealane).arg("--version").output();
        let output = output.map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => failed("it is not there".to_owned()),
            _ => failed(cause.to_string()),
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        if said.trim() == format!("sealane {VERSION}") {
            return Ok(());
        }
        Err(failed(format!("it is `{}`, and this is `sealane-bench {VERSION}`", said.trim())))
    }
}
