//! A bucket that is far away: what a verb costs where each request takes its time.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::data::BenchFileSet;
use super::measure::VaultBench;
use super::small::{VaultBenchInput, demanded, discard, folder};
use super::tool::{FarVerb, VaultBenchTool};
use super::{VaultBenchOptions, VaultBenchRow};
use crate::failure::{BenchFailure, Result};
use crate::process::BenchProcess;

/// How long a request and a connection take.
const DELAYS_MS: [u64; 3] = [0, 50, 200];
const BLOCK_BYTES: usize = 64 << 10;

/// Ours and restic with many snapshots of one small file, on one server, in turns. Gives why
/// nothing was measured.
pub(super) fn run(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    options: &VaultBenchOptions,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<Option<String>> {
    let port = free_port()?;
    let mut command = Command::new(&options.s3);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    let (address, log) = (format!("127.0.0.1:{port}"), bench.folder.join("s3.log"));
    let _server = match BenchProcess::serve(&mut command, &address, &log) {
        Ok(server) => server,
        Err(failure) => return Ok(Some(format!("no far bucket is measured: {failure}"))),
    };
    ask(port, "PUT /bucket")?;
    let far = FarServer::start(port)?;
    let source = folder(bench, "far")?;
    let tools: Vec<VaultBenchTool> = tools.iter().filter(|tool| tool.is_far()).cloned().collect();
    let set = BenchFileSet { files: 1, bytes: 0 };
    let work = VaultBenchInput { bench, source, set, name: "far", cores: 1 };
    for tool in &tools {
        let stage = FarStage { tool, port: far.port, source: &work.source };
        bench.run(&stage.command(bench, FarVerb::Init)?, 1)?;
        for number in 0..options.snapshots {
            stage.change(&format!("snapshot {number}"))?;
            bench.run(&stage.command(bench, FarVerb::Put)?, 1)?;
        }
    }
    for delay_ms in DELAYS_MS {
        far.delay_ms.store(delay_ms, Ordering::Relaxed);
        for verb in [FarVerb::List, FarVerb::Put, FarVerb::Prune] {
            let what = format!("{} ms, {} of {}", delay_ms, verb.name(), options.snapshots);
            let mut round = |number, tool: &VaultBenchTool| {
                let stage = FarStage { tool, port: far.port, source: &work.source };
                stage.change(&format!("{what}, round {number}"))?;
                Ok((bench.run(&stage.command(bench, verb)?, 1)?, None))
            };
            let note = demanded("demanded: no slower than restic");
            work.rounds(&tools, &what, &note, &mut round, add)?;
        }
    }
    discard(bench).map(|()| None)
}

/// A tool with its part of the bucket.
struct FarStage<'a> {
    tool: &'a VaultBenchTool,
    port: u16,
    source: &'a Path,
}

impl FarStage<'_> {
    fn change(&self, text: &str) -> Result<()> {
        std::fs::write(self.source.join("file"), text).map_err(BenchFailure::io("making data"))
    }

    fn command(&self, bench: &VaultBench, verb: FarVerb) -> Result<Command> {
        let home: PathBuf = bench.folder.join(format!("far-{}", self.tool.place()));
        std::fs::create_dir_all(&home).map_err(BenchFailure::io("making a folder"))?;
        Ok(self.tool.far(verb, self.port, &home, self.source))
    }
}

/// A way to a server on which each request arrives late.
struct FarServer {
    port: u16,
    delay_ms: Arc<AtomicU64>,
}

impl FarServer {
    fn start(server: u16) -> Result<FarServer> {
        let failed = BenchFailure::io("listening");
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(BenchFailure::io("listening"))?.port();
        let delay_ms = Arc::new(AtomicU64::new(0));
        let delay = Arc::clone(&delay_ms);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let delay = Arc::clone(&delay);
                // A connection that breaks is the client's to try again.
                std::thread::spawn(move || drop(carry(client, server, &delay)));
            }
        });
        Ok(FarServer { port, delay_ms })
    }
}

/// Carries a connection. It takes its time to come about, and so does each request, whose first
/// bytes come after an answer.
fn carry(client: TcpStream, server: u16, delay_ms: &Arc<AtomicU64>) -> std::io::Result<()> {
    let wait = |delay: &AtomicU64| {
        let delay = delay.load(Ordering::Relaxed);
        if delay > 0 {
            std::thread::sleep(Duration::from_millis(delay));
        }
    };
    wait(delay_ms);
    let server = TcpStream::connect(("127.0.0.1", server))?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let asks = Arc::new(AtomicBool::new(true));
    let up = {
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        let (asks, delay) = (Arc::clone(&asks), Arc::clone(delay_ms));
        std::thread::spawn(move || -> std::io::Result<()> {
            let mut block = vec![0; BLOCK_BYTES];
            loop {
                let read = from.read(&mut block)?;
                if read == 0 {
                    return to.shutdown(Shutdown::Write);
                }
                if asks.swap(false, Ordering::Relaxed) {
                    wait(&delay);
                }
                to.write_all(block.get(..read).unwrap_or_default())?;
            }
        })
    };
    let (mut from, mut to, mut block) = (server, client, vec![0; BLOCK_BYTES]);
    loop {
        let read = from.read(&mut block)?;
        if read == 0 {
            break;
        }
        asks.store(true, Ordering::Relaxed);
        to.write_all(block.get(..read).unwrap_or_default())?;
    }
    to.shutdown(Shutdown::Both)?;
    drop(up.join());
    Ok(())
}

/// A port that nobody listens at now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(BenchFailure::io("a free port"))?;
    Ok(listener.local_addr().map_err(BenchFailure::io("a free port"))?.port())
}

/// Sends a request without a body. The server checks no signatures.
fn ask(port: u16, what: &str) -> Result<()> {
    let asked = || {
        let mut server = TcpStream::connect(("127.0.0.1", port))?;
        let head = format!(
            "{what} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\nconnection: close\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n"
        );
        server.write_all(head.as_bytes())?;
        std::io::copy(&mut server, &mut std::io::sink())
    };
    asked().map(drop).map_err(BenchFailure::io(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn each_request_arrives_late_and_whole() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let far = FarServer::start(listener.local_addr().unwrap().port()).unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut asked = [0; 4];
            while client.read_exact(&mut asked).is_ok() {
                client.write_all(&asked).unwrap();
            }
        });
        far.delay_ms.store(20, Ordering::Relaxed);
        let begun = Instant::now();
        let mut client = TcpStream::connect(("127.0.0.1", far.port)).unwrap();
        for _ in 0..3 {
            client.write_all(b"ask?").unwrap();
            let mut answer = [0; 4];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ask?");
        }
        // The connection and three requests.
        assert!(begun.elapsed() >= Duration::from_millis(4 * 20));
    }
}
