//! Programs that a test starts: their output, and their end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use crate::{until, until_told};

/// A program that runs beside a test, and is killed with it.
pub struct TestProcess {
    /// The process itself. `ip netns exec` becomes the program that it starts, and is it.
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

impl TestProcess {
    /// Starts it without input. Its output is read by [`TestProcess::line`]; where its errors go is
    /// the command's business.
    pub fn start(command: &mut Command) -> TestProcess {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let lines = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        TestProcess { child, lines }
    }

    /// The same, and the line by which it says that it has started.
    pub fn started(command: &mut Command) -> (TestProcess, String) {
        let mut process = TestProcess::start(command);
        let line = process.line();
        assert!(!line.is_empty(), "it did not start: {command:?}");
        (process, line)
    }

    /// The next line of its output, with its end; empty once there is none.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("its output is text");
        line
    }

    /// The rest of its output, after it has succeeded by itself.
    pub fn rest(mut self) -> String {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("its output is text");
        assert!(self.child.wait().expect("it can be waited for").success());
        rest
    }

    /// Its number, as the system has it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by its short name, as `HUP`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Tells it to end, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("it can be waited for")
    }

    /// Tells it to end, and gives the line that it says last, after it has succeeded.
    pub fn stopped(mut self) -> String {
        self.signal("TERM");
        let line = self.line();
        assert!(self.child.wait().expect("it can be waited for").success());
        line
    }

    /// Ends it as a power cut would. Another one may take its place after this.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Waits until it ends by itself.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("it ends by itself", || {
            status = self.child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        // A process that has ended has nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a process a signal by its short name.
pub fn signal(process: u32, name: &str) {
    run("kill", &["-s", name, &process.to_string()]);
}

/// The output of a program that succeeds.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).expect("its output is text")
}

/// Runs a program again and again until it succeeds with the output that it should have, and gives
/// that output. On a busy machine a program may give up before it is answered.
#[track_caller]
pub fn until_says(command: &mut Command, is_so: impl Fn(&str) -> bool) -> String {
    let run = || {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let [said, wrong] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8(bytes).expect("its output is text"));
        if output.status.success() { Ok(said) } else { Err(wrong) }
    };
    let said = until_told(run, |said| said.as_ref().is_ok_and(|said| is_so(said)));
    said.expect("it has succeeded")
}

/// The output of a program that is given this input, whether it succeeds or not.
pub fn feed(command: &mut Command, input: impl AsRef<[u8]>) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap_or_else(|error| panic!("{piped:?}: {error}"));
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    let input = input.as_ref().to_vec();
    // Output may fill its pipe before all of the input is read. A program may also end before that.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it can be waited for");
    writer.join().expect("the input was written, or not taken");
    output
}

/// The output of a program with these words, which succeeds.
pub fn run(program: &str, arguments: &[&str]) -> String {
    succeed(Command::new(program).args(arguments))
}

/// A text of a line of JSON.
pub fn json_text(line: &str, name: &str) -> String {
    let value: serde_json::Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {line}")).to_owned()
}
