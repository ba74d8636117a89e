//! A machine for those who try what a page says: a network with nothing but loopback, so that the
//! hub's usual port is free, an empty home folder for each person, and `sealane` on the path.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sealane_testing::until;

/// The program that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_sealane");

/// Where a node listens to which nothing else was said.
pub(super) const HUB: &str = "127.0.0.1:9087";

/// How a line begins that says why a line of a page was not typed.
pub(super) const NOT_RUN: &str = "not run,";

/// The time within which each program that ends has ended, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(900);

/// Runs an ignored test of this program within a network of its own.
pub(super) fn enter(test: &str) {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.arg("--net").arg(std::env::current_exe().unwrap());
    unshare.args(["--exact", test, "--ignored", "--nocapture"]);
    let output = unshare.output().expect("`unshare` is missing; run: cargo xtask needs");
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    // Written past the capture of tests: what was left out is seen in a run that is well, too.
    for left_out in said.lines().filter(|line| line.starts_with(NOT_RUN)) {
        let _ = writeln!(std::io::stderr(), "{left_out}");
    }
    let is_well = output.status.success() && said.contains(" 1 passed;");
    assert!(is_well, "{}", String::from_utf8_lossy(&output.stderr));
}

/// The output of a typed command.
pub(super) struct Said {
    pub(super) status: ExitStatus,
    pub(super) output: String,
    pub(super) errors: String,
}

/// The machine. What still runs ends with it.
pub(super) struct Stage {
    folder: tempfile::TempDir,
    running: Vec<RunningEnd>,
}

impl Stage {
    /// To be called within the network that [`enter`] makes.
    pub(super) fn new() -> Stage {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.expect("`ip` is missing; run: cargo xtask needs").success());
        let folder = tempfile::tempdir().unwrap();
        for name in ["programs", "work", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let program = Path::new(PROGRAM);
        for name in ["sealane", "sealane-bench"] {
            // The bench is another package's; a line that needs it fails where it is not built.
            let link = folder.path().join("programs").join(name);
            std::os::unix::fs::symlink(program.with_file_name(name), link).unwrap();
        }
        Stage { folder, running: Vec::new() }
    }

    /// Where all of them work.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A shell line of somebody with a home folder of their own.
    pub(super) fn shell(&self, who: &str, line: &str) -> Command {
        let home = self.folder.path().join("home").join(who);
        fs::create_dir_all(&home).unwrap();
        let programs = self.folder.path().join("programs");
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.work()).env_clear();
        shell.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        shell.env("HOME", home).env("SEALANE_VAULT", self.work().join("vault"));
        shell.env("SEALANE_PASSPHRASE", "a passphrase of the tests");
        shell.stdin(Stdio::null());
        shell
    }

    /// Runs a line that ends.
    pub(super) fn ends(&self, who: &str, line: &str) -> Said {
        let mut running = RunningEnd::start(line, self.shell(who, line), self.folder.path());
        let status = running.end();
        let (output, errors) = (running.output(), running.errors());
        Said { status, output, errors }
    }

    /// Runs a line that ends well, and gives what it wrote.
    pub(super) fn run(&self, who: &str, line: &str) -> String {
        let said = self.ends(who, line);
        assert!(said.status.success(), "`{line}`: {}\n{}", said.status, said.errors);
        said.output
    }

    /// Starts a line that goes on until it is ended; the number by which it is known.
    pub(super) fn start(&mut self, who: &str, line: &str) -> usize {
        // The shell becomes the program, so that a signal meets it.
        let command = self.shell(who, &format!("exec {line}"));
        self.follow(line, command)
    }

    /// Starts a command that goes on until it is ended.
    pub(super) fn follow(&mut self, line: &str, command: Command) -> usize {
        self.running.push(RunningEnd::start(line, command, self.folder.path()));
        self.running.len() - 1
    }

    /// Starts a node, and waits until it takes connections.
    pub(super) fn up(&mut self, who: &str, line: &str) -> usize {
        let node = self.start(who, line);
        self.wait(node, "takes connections", |_| TcpStream::connect(HUB).is_ok());
        node
    }

    /// Waits until what goes on has written this.
    pub(super) fn wait_for(&mut self, running: usize, part: &str) {
        self.wait(running, part, |running| running.output().contains(part));
    }

    /// Waits until what goes on has said something, as daemons do once they have started.
    pub(super) fn wait_for_words(&mut self, running: usize) {
        self.wait(running, "says something", |running| {
            !running.output().is_empty() || !running.errors().is_empty()
        });
    }

    /// Demands that what goes on has not ended.
    pub(super) fn still_runs(&mut self, running: usize) {
        let running = &mut self.running[running];
        let ended = running.child.try_wait().unwrap();
        assert!(ended.is_none(), "`{}` ended: {}", running.line, running.errors());
    }

    /// Waits until so many connections are read by.
    pub(super) fn wait_for_readers(&mut self, running: usize, count: usize) {
        let metric = format!("sealane_read_connections {count}\n");
        let ask = || self.run("operator", &format!("curl -s http://{HUB}/metrics"));
        until(&self.running[running].line, || ask().contains(&metric));
    }

    fn wait(&mut self, running: usize, what: &str, is_so: impl Fn(&RunningEnd) -> bool) {
        let running = &mut self.running[running];
        until(&format!("`{}`, {what}", running.line), || {
            let ended = running.child.try_wait().unwrap();
            let said = || format!("{}\n{}", running.output(), running.errors());
            // It may have been so just before the end.
            assert!(ended.is_none() || is_so(running), "`{}` ended: {}", running.line, said());
            is_so(running)
        });
    }

    /// The output so far.
    pub(super) fn output(&self, running: usize) -> String {
        self.running[running].output()
    }

    /// Sends a signal.
    pub(super) fn signal(&self, running: usize, name: &str) {
        sealane_testing::signal(self.running[running].child.id(), name);
    }

    /// Waits for the end.
    pub(super) fn end(&mut self, running: usize) -> ExitStatus {
        self.running[running].end()
    }

    /// Presses Ctrl-C where it still runs, and waits for the end.
    pub(super) fn interrupt(&mut self, running: usize) {
        if self.running[running].child.try_wait().unwrap().is_none() {
            self.signal(running, "INT");
            self.end(running);
        }
    }
}

/// A started command.
struct RunningEnd {
    line: String,
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

impl RunningEnd {
    fn start(line: &str, mut command: Command, folder: &Path) -> RunningEnd {
        let open = |name: &str| {
            let files = 0..;
            let path =
                files.map(|n| folder.join(format!("{name}.{n}"))).find(|path| !path.exists());
            let path = path.unwrap();
            (File::create_new(&path).unwrap(), path)
        };
        let ((output, output_path), (errors, errors_path)) = (open("output"), open("errors"));
        let child = command.stdout(output).stderr(errors).spawn().unwrap();
        RunningEnd { line: line.to_owned(), child, output: output_path, errors: errors_path }
    }

    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "`{}` does not end: {}", self.line, self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap()).into_owned()
    }

    fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.errors).unwrap()).into_owned()
    }
}

impl Drop for RunningEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
