//! A codec of another language, in a Node.js process.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// An order to the peer.
pub(crate) enum Line {
    /// Decode these bytes and answer in JSON.
    Read(Vec<u8>),
    /// Encode this JSON and answer in hexadecimal.
    Write(Vec<u8>),
}

/// Calls the script's `answer(kind, bytes)` for each line and answers with what it returns.
const LOOP: &str = r"
for (const line of require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
    const [kind, hex] = line.split(' ');
    console.log(answer(kind, Buffer.from(hex ?? '', 'hex')));
}
";

pub(crate) fn converse(script: &str, arguments: &[&Path], lines: &[Line]) -> Vec<String> {
    let mut node = Command::new("node")
        .args(["-e", &format!("{script}{LOOP}")])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node.js 18 or later must be installed as `node`");
    let mut input = String::new();
    for line in lines {
        let (kind, bytes) = match line {
            Line::Read(bytes) => ("read", bytes),
            Line::Write(bytes) => ("write", bytes),
        };
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        input.push_str(&format!("{kind} {hex}\n"));
    }
    let mut stdin = node.stdin.take().unwrap();
    // The answers may fill the pipe before all lines are written.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    writer.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
