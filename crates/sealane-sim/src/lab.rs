//! A laboratory of network namespaces on one machine, for simulator, benches and tests.
//!
//! The namespaces go with the value that made them, also when the process is killed: a shell of a
//! process group of its own waits for the end of its input.
//!
//! ```no_run
//! use sealane_sim::lab::{NetworkLab, succeed};
//!
//! let lab = NetworkLab::make(["test-car".to_owned(), "test-truck".to_owned()], None)?;
//! lab.join(["test-car", "road"], ["test-truck", "road"])?;
//! lab.ip("test-car", "address add 10.0.0.1/24 dev road")?;
//! lab.ip("test-car", "link set road up")?;
//! let shown = succeed(lab.command("test-car", "ip").args(["address"]))?;
//! let socket = lab.on("test-car", || std::net::UdpSocket::bind("0.0.0.0:0"))?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Waits for the end of its input, which is the end of the run, also when that is killed; then ends
/// what still runs in the namespaces, and removes them, and the folder that goes with them.
const REAPER: &str = "trap '' INT TERM HUP; read -r _; for name; do \
                      ip netns pids $name | xargs -r kill -9; ip netns delete $name; done; \
                      if [ -n \"$FOLDER\" ]; then rm -rf -- \"$FOLDER\"; fi";
/// Where the kernel shows namespaces by their names.
const SPACES: &str = "/run/netns";

/// Namespaces of one run.
#[derive(Debug)]
pub struct NetworkLab {
    reaper: Child,
}

impl NetworkLab {
    /// Makes namespaces of these names, each with a loopback. `folder` is removed with them.
    ///
    /// # Errors
    /// Where this user may not, `ip` is missing, or a namespace is there already: it would be
    /// somebody else's.
    pub fn make(
        names: impl IntoIterator<Item = String>,
        folder: Option<&Path>,
    ) -> io::Result<NetworkLab> {
        let names: Vec<String> = names.into_iter().collect();
        if !geteuid().is_root() {
            return Err(io::Error::other("network namespaces need root"));
        }
        if let Some(name) = names.iter().find(|name| Path::new(SPACES).join(name).exists()) {
            return Err(io::Error::other(format!("a network namespace `{name}` is there already")));
        }
        let mut reaper = Command::new("sh");
        reaper.args(["-c", REAPER, "reaper"]).args(&names);
        reaper.env("FOLDER", folder.map(Path::as_os_str).unwrap_or_default());
        // Of a group of its own, so that Ctrl-C does not end it together with the run.
        reaper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let lab = NetworkLab { reaper: reaper.spawn()? };
        for name in &names {
            succeed(Command::new("ip").args(["netns", "add", name]))?;
            lab.ip(name, "link set lo up")?;
        }
        Ok(lab)
    }

    /// Joins two namespaces by a wire; each end is a namespace, and its interface's name there.
    ///
    /// # Errors
    /// An error of `ip`, with its words.
    pub fn join(&self, one: [&str; 2], other: [&str; 2]) -> io::Result<()> {
        let ([space, name], [peer_space, peer]) = (one, other);
        self.ip(space, &format!("link add {name} type veth peer {peer} netns {peer_space}"))
    }

    /// A command of `ip` in a namespace.
    ///
    /// # Errors
    /// An error of `ip`, with its words.
    pub fn ip(&self, space: &str, words: &str) -> io::Result<()> {
        succeed(Command::new("ip").args(["-n", space]).args(words.split(' '))).map(drop)
    }

    /// Several commands of `ip` in a namespace, one in each line.
    ///
    /// # Errors
    /// An error of `ip`, with its words.
    pub fn batch(&self, space: &str, lines: &str) -> io::Result<()> {
        let mut command = Command::new("ip");
        command.args(["-n", space, "-batch", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(lines.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("ip {}: {}", lines.trim(), said.trim())))
    }

    /// A command within a namespace. `ip netns exec` becomes the program, so that to end one is to
    /// end the other.
    pub fn command(&self, space: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", space]).arg(program);
        command
    }

    /// Does something within a namespace that leaves a socket, which stays there.
    ///
    /// # Errors
    /// Those of the work, and where there is no such namespace.
    pub fn on<T: Send>(
        &self,
        space: &str,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let space = File::open(Path::new(SPACES).join(space))?;
        // Only this thread moves, and it ends here.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        })
    }

    /// Ends all that runs in a namespace.
    pub fn kill(&self, space: &str) {
        let pids = Command::new("ip").args(["netns", "pids", space]).output();
        let pids = pids.map(|pids| String::from_utf8_lossy(&pids.stdout).into_owned());
        for pid in pids.unwrap_or_default().split_whitespace() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                // It may have ended already.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for NetworkLab {
    fn drop(&mut self) {
        drop(self.reaper.stdin.take());
        // Where it was killed, namespaces stay, which nobody can help here.
        let _ = self.reaper.wait();
    }
}

/// Runs a command that has to succeed, without an input, and gives its output.
///
/// # Errors
/// Where it cannot be started or fails, with its words and what it said.
pub fn succeed(command: &mut Command) -> io::Result<Vec<u8>> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| io::Error::new(error.kind(), format!("{shown}: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let said = format!("{} {out} {err}", output.status);
    Err(io::Error::other(format!("{shown}: {}", said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_says_which_it_was_and_why() {
        let said = succeed(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(said.to_string().starts_with("sh -c echo why"), "{said}");
        assert!(said.to_string().ends_with("exit status: 3  why"), "{said}");
        assert_eq!(succeed(Command::new("echo").arg("well")).unwrap(), b"well\n");
        let missing = succeed(&mut Command::new("/nonexistent")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[ignore = "lab: needs root (network namespaces)"]
    fn namespaces_are_joined_and_go_with_the_laboratory() {
        let [one, other] = ["one", "other"].map(|name| format!("lab{}-{name}", std::process::id()));
        let lab = NetworkLab::make([one.clone(), other.clone()], None).unwrap();
        let again = NetworkLab::make([one.clone()], None).unwrap_err();
        assert!(again.to_string().contains("is there already"), "{again}");
        lab.join([&one, "wire"], [&other, "wire"]).unwrap();
        for (space, host) in [(&one, 1), (&other, 2)] {
            lab.ip(space, &format!("address add 10.79.0.{host}/24 dev wire")).unwrap();
            lab.batch(space, "link set wire up\n").unwrap();
        }
        let socket = lab.on(&one, || std::net::UdpSocket::bind("10.79.0.1:0")).unwrap();
        assert!(socket.send_to(b"x", "10.79.0.2:9").is_ok());
        let mut sleeper = lab.command(&other, "sleep").arg("60").spawn().unwrap();
        let pids = || succeed(Command::new("ip").args(["netns", "pids", &other])).unwrap();
        while pids().is_empty() {
            std::thread::yield_now();
        }
        lab.kill(&other);
        assert!(!sleeper.wait().unwrap().success());
        drop(lab);
        assert!(!Path::new(SPACES).join(&one).exists());
    }
}
