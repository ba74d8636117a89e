//! `sealane-bench cost` on a user's own messages: figures, a page, and what was no message.

use std::fs;
use std::path::Path;

use sealane_codec::{Codec, encode};
use sealane_message::Value;

use crate::{bench, draws, every_field_is_documented, feed, json, number, rows, said, text};

fn lines() -> String {
    let line = |n| format!("{{\"id\":\"m-{n}\",\"lat\":48.25,\"ok\":true,\"n\":{n}}}\n");
    let mut text: String = (0..40).map(line).collect();
    text.push_str("{\"broken\":\n");
    text
}

fn cost(home: &Path, args: &[&str], input: &str) -> Value {
    let mut command = bench(home);
    let output = feed(command.args(["--json", "cost", "--quick"]).args(args), input);
    json(&said(&output))
}

#[test]
#[ignore = "lab: needs Chromium and npm packages"]
fn the_report_has_every_way_and_its_page_draws_them() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("cost.html");
    let report = cost(home.path(), &["-", "--html", page.to_str().unwrap()], &lines());
    let input = report.field("input").unwrap();
    assert_eq!((number(input, "messages"), number(input, "broken")), (40.0, 1.0));
    let Some(Value::Array(refusals)) = input.field("refusals") else { panic!() };
    assert!(refusals[0].as_text().unwrap().starts_with("-:41: "), "{refusals:?}");
    let ways = rows(&report, "ways");
    assert_eq!(ways.len(), 24);
    let composed = ways.iter().filter(|way| way.field("composedWith") != Some(&Value::Null));
    assert_eq!(composed.count(), 3);
    for way in &ways {
        let name = text(way, "name");
        assert!(number(way, "cpuSPerMillion") > 0.0, "{name}");
        assert!(number(way, "bytesWire") > number(way, "bytesCompressed"), "{name}");
        assert!(number(way, "bytesRest") > 0.0, "{name}");
    }
    every_field_is_documented(&report);
    draws(&page, 5);
}

#[test]
fn radios_are_reckoned_where_they_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let links = ["--no-hub", "--link", "lora-sf7", "--link", "11p"];
    let report = cost(home.path(), &[&["-"], &links[..]].concat(), &lines());
    every_field_is_documented(&report);
    let radios = rows(&report, "radios");
    assert_eq!(radios.len(), 8, "four kinds of message on each");
    let cbor = |link: &str| {
        let is_it = |row: &&Value| {
            (text(row, "name"), text(row, "codec"), text(row, "class"))
                == (link.to_owned(), "cbor".to_owned(), "C".to_owned())
        };
        radios.iter().find(is_it).unwrap()
    };
    let [lora, car] = ["lora-sf7", "11p"].map(cbor);
    assert_eq!(number(lora, "bytesAir"), number(car, "bytesAir"), "the same one unit");
    assert_eq!((number(lora, "units"), number(lora, "duty")), (1.0, 0.01));
    // Some 70 bytes at spreading factor 7: an eighth of a second, and 36 s of each hour.
    assert!((0.1..0.16).contains(&number(lora, "airS")), "{lora:?}");
    let hourly = 36.0 / number(lora, "airS");
    assert!((number(lora, "messagesPerHour") - hourly).abs() < 1e-6);
    assert!(number(car, "airS") < 400e-6 && number(car, "duty") == 1.0, "{car:?}");
    let Some(Value::Array(advice)) = report.field("advice") else { panic!() };
    let radio = advice.iter().filter(|line| line.as_text().unwrap().starts_with("Radio "));
    assert_eq!(radio.count(), 2, "{advice:?}");
}

#[test]
fn the_same_messages_have_the_same_bytes_and_allocations() {
    let home = tempfile::tempdir().unwrap();
    let counts = || {
        let report = cost(home.path(), &["-", "--no-hub"], &lines());
        let names = ["bytesBody", "bytesWire", "bytesRest", "allocations"];
        let of = |row: &Value| names.map(|name| number(row, name));
        let steps = rows(&report, "steps");
        let steps = steps.iter().map(|row| number(row, "allocations")).collect::<Vec<_>>();
        (rows(&report, "ways").iter().map(of).collect::<Vec<_>>(), steps)
    };
    assert_eq!(counts(), counts());
}

#[test]
fn all_kinds_of_files_are_read() {
    let home = tempfile::tempdir().unwrap();
    let value = json(r#"{"a":[1,2.5,"three"]}"#);
    for (codec, name) in [(Codec::MsgPack, "in.msgpack"), (Codec::Cbor, "in.cbor")] {
        let mut bytes = vec![];
        (0..7).for_each(|_| encode(codec, &value, &mut bytes));
        fs::write(home.path().join(name), bytes).unwrap();
    }
    let folder = home.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("one.json"), r#"{"a":1}"#).unwrap();
    fs::write(folder.join("two.bin"), [7; 100]).unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let files = [path("in.msgpack"), path("in.cbor"), path("folder")];
    let files: Vec<&str> = files.iter().map(String::as_str).chain(["--no-hub"]).collect();
    let input = cost(home.path(), &files, "").field("input").unwrap().clone();
    assert_eq!((number(&input, "messages"), number(&input, "opaque")), (16.0, 1.0));
    assert_eq!(number(&input, "broken"), 0.0);
}

#[test]
fn an_input_without_messages_is_refused_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    let nothing = home.path().join("empty.json");
    fs::write(&nothing, "\n").unwrap();
    let mut command = bench(home.path());
    let output = command.args(["cost", nothing.to_str().unwrap()]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("[SL-BENCH-02]"));
    assert_eq!(output.status.code(), Some(1));
}
