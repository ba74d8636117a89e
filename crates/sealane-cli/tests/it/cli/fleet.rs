//! A node, and key folders of a group beside its data.

use std::path::PathBuf;
use std::process::Output;

use sealane::{Codec, DataType};
use sealane_frame::FrameBuf;
use sealane_group::KeyFolder;
use sealane_protocol::SealedEnvelope;
use sealane_seal::{Binding, Class};
use sealane_testing::copy_folder;

use crate::cli::NodeProcess;

/// The key folder of somebody, beside the node's data.
pub(crate) fn keys(node: &NodeProcess, who: &str) -> PathBuf {
    node.home().join(who)
}

pub(crate) fn output(node: &NodeProcess, who: &str, args: &[&str]) -> Output {
    node.command(args).env("SEALANE_KEYS", keys(node, who)).output().unwrap()
}

pub(crate) fn run(node: &NodeProcess, who: &str, args: &[&str]) -> Vec<u8> {
    let output = output(node, who, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn said(node: &NodeProcess, who: &str, args: &[&str]) -> String {
    String::from_utf8(run(node, who, args)).unwrap()
}

/// Runs a verb that writes bytes, into a file.
pub(crate) fn file(node: &NodeProcess, who: &str, name: &str, args: &[&str]) -> String {
    let path = node.home().join(name);
    std::fs::write(&path, run(node, who, args)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A base that is the authority of `fleet`, and members who have joined.
pub(crate) fn fleet(members: &[&str]) -> NodeProcess {
    fleet_with(&[], members)
}

/// The same, where the group is made with these options.
pub(crate) fn fleet_with(options: &[&str], members: &[&str]) -> NodeProcess {
    let node = NodeProcess::start();
    run(&node, "base", &["key", "new", "base"]);
    run(&node, "base", &[&["group", "new", "fleet"], options].concat());
    for who in members {
        run(&node, who, &["key", "new", who]);
        let card = file(&node, who, "card", &["key", "card"]);
        let invite = ["group", "invite", "fleet", &card, "--server", &node.address];
        let invitation = file(&node, "base", "invitation", &invite);
        run(&node, who, &["group", "join", &invitation]);
    }
    node
}

pub(crate) fn lines(node: &NodeProcess, who: &str, topic: &str, count: &str) -> String {
    let args = ["sub", topic, "--group", "fleet", "--from", "first", "--json", "-n", count];
    said(node, who, &args)
}

/// The errors of a verb that fails with this exit code and writes nothing.
pub(crate) fn fails(node: &NodeProcess, who: &str, args: &[&str], code: i32) -> String {
    let output = output(node, who, args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(output.stdout.is_empty() && said.contains("\n  hint: "), "{args:?}: {said}");
    said
}

/// Has the folder of somebody copied, as a thief would.
pub(crate) fn copy(node: &NodeProcess, from: &str, to: &str) {
    copy_folder(&keys(node, from), &keys(node, to));
}

/// Has a member seal a body as it is, past all that the program checks, and publish it.
pub(crate) fn seal_by_hand(
    node: &NodeProcess,
    who: &str,
    topic: &str,
    (class, data_type): (Class, DataType),
    body: &[u8],
) {
    let folder = KeyFolder::open(&keys(node, who), None).unwrap();
    let mut sender = folder.group("fleet").unwrap().sender().unwrap();
    let mut fields = sender.fields(class, data_type.number());
    fields.codec = Codec::Json as u8;
    let mut buf = FrameBuf::new();
    let frame = sender.seal(&fields, &Binding::stream(topic), body, &mut buf).unwrap();
    let mut envelope = Vec::new();
    SealedEnvelope { id: None, frame: (&*frame).into() }.write(Codec::Json, &mut envelope);
    node.run(&["pub", topic, std::str::from_utf8(&envelope).unwrap()]);
}

/// Runs a verb until it says this on standard error.
pub(crate) fn first_line_of_errors(command: &mut std::process::Command, part: &str) -> String {
    use std::io::BufRead;
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find(|line| line.contains(part));
    child.kill().unwrap();
    child.wait().unwrap();
    found.unwrap_or_else(|| panic!("nothing said: {part}"))
}
