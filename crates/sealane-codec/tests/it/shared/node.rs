//! A codec of another language, in a Node.js process.

use std::path::Path;
use std::process::Command;

use sealane_testing::feed;

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
    let mut input = String::new();
    for line in lines {
        let (kind, bytes) = match line {
            Line::Read(bytes) => ("read", bytes),
            Line::Write(bytes) => ("write", bytes),
        };
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        input.push_str(&format!("{kind} {hex}\n"));
    }
    let mut node = Command::new("node");
    node.args(["-e", &format!("{script}{LOOP}")]).args(arguments);
    let output = feed(&mut node, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}
