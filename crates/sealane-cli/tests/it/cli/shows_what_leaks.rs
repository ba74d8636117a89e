//! The test reads all that the hub can see of a stream. Everything that the hub cannot see is
//! absent.

use sealane::{Codec, GroupTag, Value};
use sealane_frame::{FrameBuf, HeaderFields, PeerTag, seal_frame};
use sealane_protocol::SealedEnvelope;
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext,
    Slot, Suite,
};

use crate::cli::{NodeProcess, json, text};

const TAG: &str = "0a1b2c3d";
const SECRET: &str = "the way to the treasure";

/// Seals three messages, the last of them in class A, and publishes them as JSON.
fn publish(node: &NodeProcess, topic: &str) {
    let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
    let secret = EpochSecret::new([1; 32]);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
    let slot = Slot::new(5).unwrap();
    let context = SenderContext([9; 8]);
    let mut sealer = Sealer::new(group, slot, context, &epochs, 0).unwrap();
    let binding = Binding::stream(topic);
    let (tag, source) = (GroupTag::from_hex(TAG).unwrap(), PeerTag::from_hash([3; 8]));
    for (n, class) in [Class::Group, Class::Group, Class::Authenticated].into_iter().enumerate() {
        let codec = Codec::MsgPack as u8;
        let fields = HeaderFields { class, codec, orders: 3, ..HeaderFields::new(tag, source, 7) };
        let mut buf = FrameBuf::new();
        let frame =
            seal_frame(&mut sealer, &fields, &binding, SECRET.as_bytes(), &mut buf).unwrap();
        let id = Some(format!("m{n}").into());
        let mut envelope = Vec::new();
        SealedEnvelope { id, frame: (&*frame).into() }.write(Codec::Json, &mut envelope);
        node.run(&["pub", topic, std::str::from_utf8(&envelope).unwrap()]);
    }
}

fn field(rows: &[Value], name: &str) -> Value {
    let is_it = |row: &&Value| row.field("field") == Some(&name.into());
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{name}")).clone()
}

fn examples(row: &Value) -> Vec<String> {
    let Some(Value::Array(all)) = row.field("examples") else { panic!("{row:?}") };
    all.iter().map(|value| value.as_text().unwrap().to_owned()).collect()
}

#[test]
fn a_stream_is_made_sealed_and_stays_so() {
    let node = NodeProcess::start();
    let made = node.run(&["stream", "new", "s", "--sealed", TAG, "--max-count", "9"]);
    assert!(made.contains(&format!("sealed        {TAG}\n")), "{made}");
    assert!(made.contains("max count     9\n"), "{made}");
    node.run(&["stream", "new", "s", "--sealed", TAG]);
    assert!(node.run(&["stream", "new", "o"]).contains("sealed        open\n"));
    let list = node.run(&["--json", "stream", "ls"]);
    let sealed: Vec<_> =
        list.lines().map(|line| json(line).field("sealed").unwrap().clone()).collect();
    assert_eq!(sealed, [Value::Null, TAG.into()]);
    for (args, code, word) in [
        (&["stream", "new", "s", "--sealed", "ffffffff"][..], 4, "SL-HUB-18"),
        (&["stream", "new", "o", "--sealed", TAG], 4, "SL-HUB-18"),
        (&["stream", "new", "s"], 2, "sealed"),
        (&["stream", "new", "n", "--sealed", "nobody"], 2, "sealane key new"),
        (&["pub", "s", "in the open"], 4, "SL-HUB-17"),
        (&["pub", "s", r#"{"sealed":"AAAA"}"#], 4, "SL-HUB-19"),
    ] {
        let output = node.command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
}

#[test]
fn a_group_has_a_tag_and_a_name() {
    let node = NodeProcess::start();
    node.run(&["key", "new", "anna"]);
    node.run(&["group", "new", "ops"]);
    let shown = json(&node.run(&["--json", "group", "show", "ops"]));
    let made = json(&node.run(&["--json", "stream", "new", "s", "--sealed", "ops"]));
    assert_eq!(text(&made, "sealed"), text(&shown, "tag"));
    node.run(&["pub", "s", "hello", "--group", "ops"]);
    let leaks = node.run(&["--json", "stream", "leaks", "s"]);
    let rows: Vec<Value> = leaks.lines().map(json).collect();
    assert_eq!(examples(&field(&rows, "group tag")), [text(&shown, "tag")]);
}

#[test]
fn leaks_are_what_headers_say_and_what_lies_in_clear() {
    let node = NodeProcess::start();
    publish(&node, "s");
    node.run(&["sub", "s", "--consumer", "billing", "-n", "3"]);
    let out = node.run(&["--json", "stream", "leaks", "s"]);
    assert!(!out.contains(SECRET));
    let rows: Vec<Value> = out.lines().map(json).collect();
    let head = &rows[0];
    assert_eq!((text(head, "stream"), text(head, "sealed")), ("s".into(), TAG.into()));
    let numbers = ["messages", "looked", "hiddenBodies", "hiddenBytes", "clearBodies"];
    let numbers = numbers.map(|name| head.field(name).and_then(Value::as_u64).unwrap());
    assert_eq!(numbers, [3, 3, 2, 2 * SECRET.len() as u64, 1]);
    for (name, distinct, expected) in [
        ("id", 3, &["m0", "m1", "m2"][..]),
        ("class", 2, &["C", "A"]),
        ("codec", 1, &["msgpack"]),
        ("data type", 1, &["7"]),
        ("source tag", 1, &["0303030303030303"]),
        ("destination tag", 1, &["everybody"]),
        ("slot", 1, &["5"]),
        ("sequence", 3, &["0", "1", "2"]),
        ("sender context", 1, &["0909090909090909"]),
        ("orders obeyed, low 8 bits", 1, &["3"]),
    ] {
        let row = field(&rows, name);
        assert_eq!(row.field("distinct").and_then(Value::as_u64), Some(distinct), "{name}");
        assert_eq!(examples(&row), expected, "{name}");
    }
    assert!(examples(&field(&rows, "consumers"))[0].starts_with("billing at 3"));
    let last = node.run(&["--json", "stream", "leaks", "s", "-n", "1"]);
    let last: Vec<Value> = last.lines().map(json).collect();
    assert_eq!(examples(&field(&last, "id")), ["m2"]);
    let shown = node.run(&["stream", "leaks", "s"]);
    for words in ["source tag", "the bodies of 2 messages", "1 message of class A"] {
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn of_an_open_stream_everything_leaks() {
    let node = NodeProcess::start();
    node.run(&["pub", "o", "hello"]);
    assert!(node.run(&["stream", "leaks", "o"]).contains("o is open: the hub sees everything"));
    let row = json(&node.run(&["--json", "stream", "leaks", "o"]));
    assert_eq!(row.field("sealed"), Some(&Value::Null));
    assert_eq!(text(&row, "field"), "everything");
}

#[test]
fn who_reads_without_keys_is_shown_the_header() {
    let node = NodeProcess::start();
    publish(&node, "s");
    let args = ["sub", "s", "--from", "first", "-n", "3"];
    let output = node.command(&args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("s is sealed").count(), 1, "{said}");
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(!out.contains(SECRET), "{out}");
    let line = json(out.lines().next().unwrap());
    assert_eq!(text(&line, "id"), "m0");
    let frame = line.field("sealed").unwrap();
    let shown = ["group", "class", "codec", "source"].map(|name| text(frame, name));
    assert_eq!(shown, [TAG, "C", "msgpack", "0303030303030303"]);
    assert_eq!(frame.field("bodyBytes").and_then(Value::as_u64), Some(SECRET.len() as u64));
    let line = node.run(&["sub", "s", "--from", "first", "-n", "1", "--json"]);
    let line = json(&line);
    assert_eq!(text(line.field("frame").unwrap(), "class"), "C");
    assert!(text(line.field("envelope").unwrap(), "sealed").len() > 100);
}
