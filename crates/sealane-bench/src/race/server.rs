//! A peer's server in a process of its own, with a data folder that goes with it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Error;
use crate::load::node;

/// How long a server may take to answer.
const START: Duration = Duration::from_secs(20);

pub(super) struct RaceServer {
    child: Child,
    pub(super) address: String,
    folder: TempDir,
}

impl RaceServer {
    /// Starts `program` with the configuration that `write` gives for an address and a folder, and
    /// waits until it takes connections.
    pub(super) fn start(
        program: &Path,
        data: Option<&Path>,
        write: impl FnOnce(u16, &Path) -> (&'static str, String),
    ) -> Result<Self, Error> {
        let folder = folder(data)?;
        let port = free_port().map_err(Error::io("looking for a free port"))?;
        let (name, text) = write(port, folder.path());
        let file = folder.path().join(name);
        std::fs::write(&file, text).map_err(Error::io("writing a configuration"))?;
        let log = std::fs::File::create(folder.path().join("log"));
        let log = log.map_err(Error::io("writing a log"))?;
        let child = Command::new(program)
            .arg("--config")
            .arg(&file)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(Error::io("starting a peer"))?;
        let server = Self { child, address: format!("127.0.0.1:{port}"), folder };
        server.wait(program)?;
        Ok(server)
    }

    fn wait(&self, program: &Path) -> Result<(), Error> {
        let start = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            if start.elapsed() > START {
                let log = std::fs::read_to_string(self.folder.path().join("log"));
                let log = log.unwrap_or_default();
                let last = log.lines().last().unwrap_or("it says nothing").to_owned();
                return Err(Error::Peer { peer: name(program), said: last });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn cpu_s(&self) -> f64 {
        node::cpu_s(self.child.id())
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        node::resident_bytes(self.child.id())
    }
}

impl Drop for RaceServer {
    fn drop(&mut self) {
        // The data is temporary: nothing is lost with the process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder on the disk that is measured, removed with its value.
pub(super) fn folder(data: Option<&Path>) -> Result<TempDir, Error> {
    match data {
        Some(data) => tempfile::tempdir_in(data),
        None => tempfile::tempdir(),
    }
    .map_err(Error::io("making a data folder"))
}

/// The name of a program.
pub(super) fn name(program: &Path) -> String {
    let name = program.file_name().unwrap_or(program.as_os_str());
    PathBuf::from(name).display().to_string()
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
