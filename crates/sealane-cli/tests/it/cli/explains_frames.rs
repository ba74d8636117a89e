use std::ffi::OsString;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use sealane::Value;
use sealane_cli::args::CliVerb;
use sealane_cli::{CliFailure, Terminal};
use sealane_frame::{Fragment, FrameBatch};
use sealane_message::DataType;
use sealane_seal::Class;

use crate::cli::{feed, json, on_terminal, sealane, text};

mod captures;
mod members;
mod places;
mod simulated;

use captures::{ethernet_ipv4, ipv4, ipv6, pcap, pcapng};
use members::{BYTE, ORDERS, SECRET, Sender, hex, write};

const BODY: &[u8] = br#"{"lat": 48.2, "text": "hello"}"#;
const WRONG: &str = "0000000000000000000000000000000000000000000000000000000000000001";

/// Runs `sealane inspect` with these bytes on its standard input.
fn inspect(input: &[u8], args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = sealane(home.path());
    let output = feed(command.args(["inspect", "-"]).args(args), input);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    output
}

/// Exit code, and standard output.
fn run(input: &[u8], args: &[&str]) -> (i32, String) {
    let output = inspect(input, args);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Runs the verb with these bytes in a file, in this process: hundreds of captures are explained in
/// the time of a process. Gives the lines of JSON as well.
fn explain(input: &[u8], args: &[&str]) -> (Result<(), CliFailure>, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), input).unwrap();
    let words = ["sealane", "--json", "inspect"].map(OsString::from).into_iter();
    let words = words.chain([file.path().into()]).chain(args.iter().map(OsString::from));
    let CliVerb::Inspect(args) = sealane_cli::parse(words).unwrap().command else { panic!() };
    let out = SharedBytes::default();
    let mut terminal = Terminal::to(out.clone(), true);
    let outcome = sealane_cli::inspect::run(&args, &mut terminal);
    drop(terminal);
    let bytes = std::mem::take(&mut *out.0.lock().unwrap());
    (outcome, String::from_utf8(bytes).unwrap())
}

/// The bytes that a terminal has written.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Exit code, the lines of JSON, and the last of them.
fn records(input: &[u8], args: &[&str]) -> (i32, Vec<Value>, Value) {
    let (outcome, out) = explain(input, args);
    let code = outcome.err().map_or(0, |failure| i32::from(failure.exit_code()));
    let mut lines: Vec<Value> = out.lines().map(json).collect();
    let summary = lines.pop().unwrap();
    assert_eq!(text(&summary, "what"), "summary");
    (code, lines, summary)
}

fn number(value: &Value, name: &str) -> u64 {
    value.field(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name} in {value:?}"))
}

fn rows(record: &Value) -> &[Value] {
    let Some(Value::Array(rows)) = record.field("fields") else { panic!("{record:?}") };
    rows
}

/// The row of a field.
fn row<'a>(record: &'a Value, field: &str) -> &'a Value {
    let found = rows(record).iter().find(|row| text(row, "field") == field);
    found.unwrap_or_else(|| panic!("no {field} in {record:?}"))
}

/// Every byte of the frame stands in exactly one row, or in two of the same place.
fn covers(record: &Value, frame: &[u8]) {
    let mut at = 0;
    for row in rows(record) {
        let (Some(offset), length) =
            (row.field("offset").and_then(Value::as_u64), number(row, "length"))
        else {
            continue;
        };
        let (start, end) = (offset as usize, (offset + length) as usize);
        assert_eq!(text(row, "hex"), hex(&frame[start..end]));
        assert!(end <= at || start == at, "a gap before {start}: {record:?}");
        at = at.max(end);
    }
    assert_eq!(at, frame.len(), "{record:?}");
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_full_frame_of_every_class_is_explained_byte_by_byte() {
    for (class, letter) in Class::ALL.into_iter().zip(["A", "C", "S", "P"]) {
        let frame = Sender::new(class).full(BODY);
        let (code, lines, summary) = records(&frame, &[]);
        assert_eq!((code, lines.len(), number(&summary, "explained")), (0, 1, 1));
        let record = &lines[0];
        covers(record, &frame);
        assert_eq!(text(record, "form"), "full");
        for (field, at, length, part) in [
            ("next hop", 0, 8, "relay"),
            ("previous hop", 8, 8, "relay"),
            ("hop limit", 16, 1, "relay"),
            ("version", 17, 1, "authenticated"),
            ("flags", 19, 1, "authenticated"),
            ("group tag", 23, 4, "authenticated"),
            ("body length", 43, 4, "authenticated"),
            ("sequence", 47, 8, "authenticated"),
            ("context", 55, 8, "authenticated"),
            ("orders", 63, 1, "authenticated"),
            ("tag", frame.len() as u64 - 16, 16, "tag"),
        ] {
            let row = row(record, field);
            let is = (number(row, "offset"), number(row, "length"), text(row, "part"));
            assert_eq!(is, (at, length, part.to_owned()), "{field}");
        }
        assert_eq!(number(row(record, "orders"), "value"), u64::from(ORDERS));
        let flags = row(record, "flags").field("value").unwrap();
        assert_eq!(text(flags, "class"), letter);
        let key = row(record, "key id").field("value").unwrap();
        assert_eq!((text(key, "class"), number(key, "epochLow")), (letter.to_owned(), 300 % 256));
        assert_eq!(record.field("body").is_some(), class == Class::Authenticated);
        let signature = rows(record).iter().find(|row| text(row, "field") == "signature");
        assert_eq!(signature.map(|row| number(row, "length")), (letter == "S").then_some(64));
    }
}

#[test]
fn the_text_names_what_a_relay_could_change_and_fits_its_columns() {
    let mut sender = Sender::new(Class::Authenticated);
    sender.fields.data_type = DataType::EMERGENCY.number();
    let timed = [&u64::MAX.to_le_bytes(), BODY].concat();
    let (code, out) = run(&sender.full(&timed), &[]);
    assert_eq!(code, 0);
    let at = |what: &str| out.find(what).unwrap_or_else(|| panic!("no {what} in {out}"));
    assert!(at("a relay could change") < at("next hop"), "{out}");
    assert!(at("hop limit") < at("authenticated: a change is noticed"), "{out}");
    assert!(at("authenticated: a change") < at("SFrame header"), "{out}");
    for part in [
        r#"{"lat":48.2,"text":"hello"}"#,
        "slot 700, class A (authenticated),",
        "epoch 44 mod 256",
        "18446744073709551615 ms: after the",
        "not to be trusted before the frame is opened",
        "1 frame: 1 explained, 0 in part; 0 refused\n",
    ] {
        at(part);
    }
    assert!(!out.contains('\u{1b}'), "no colour in a pipe");
    for line in out.lines() {
        assert!(line.chars().count() <= 100 && line.trim_end() == line, "{line:?}");
    }
}

#[test]
#[ignore = "lab: needs script"]
fn a_terminal_has_colour_unless_it_asks_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let frame = write(folder.path(), "frame", &Sender::new(Class::Group).full(BODY));
    let shown = |variable: (&str, &str)| {
        let mut script = on_terminal(&format!("inspect {}", frame.display()));
        script.env_remove("NO_COLOR").env("TERM", "xterm");
        let output = script.env(variable.0, variable.1).stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(shown(("NO_COLOR", "")).contains("\u{1b}[32m"));
    assert!(!shown(("NO_COLOR", "1")).contains('\u{1b}'));
    assert!(!shown(("TERM", "dumb")).contains('\u{1b}'));
}

#[test]
fn a_frame_that_was_damaged_is_explained_as_far_as_it_goes() {
    for class in Class::ALL {
        let frame = Sender::new(class).full(BODY);
        for len in 0..frame.len() {
            let (code, lines, _) = records(&frame[..len], &["--as", "full"]);
            assert_eq!((code, lines.len()), (1, 1), "{len}");
            covers(&lines[0], &frame[..len]);
            let code = text(lines[0].field("error").unwrap(), "code");
            assert!(code.starts_with("SL-FRAME-0"), "{code}");
        }
    }
    let frame = Sender::new(Class::Group).full(BODY);
    for (at, value, code, name) in [
        (17, 3, "SL-FRAME-02", "UnknownFrameVersion"),
        (18, 9, "SL-FRAME-03", "UnknownFrameKind"),
        (19, 0xc1, "SL-FRAME-04", "ReservedBits"),
        (43, 0xff, "SL-FRAME-05", "FrameLengthMismatch"),
        (47, 9, "SL-FRAME-08", "HeadersDisagree"),
    ] {
        let mut wrong = frame.clone();
        wrong[at] = value;
        let output = inspect(&wrong, &[]);
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(out.contains(&format!("refused: {name} [{code}]")), "{at}: {out}");
        assert!(out.contains("hint: ") && out.contains("SFrame header"), "{out}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("1 of 1 frames, fragments and batches") && said.contains("SL-CLI-14")
        );
    }
}

#[test]
fn compact_frames_need_the_dictionary_of_their_link() {
    let folder = tempfile::tempdir().unwrap();
    for class in Class::ALL {
        let mut sender = Sender::new(class);
        let frame = sender.compact(BODY);
        let (code, lines, summary) = records(&frame, &[]);
        assert_eq!((code, text(&lines[0], "status").as_str()), (0, "partial"));
        assert!(text(&lines[0], "missing").contains(&format!("dictionary byte {BYTE}")));
        assert_eq!((number(&summary, "partial"), number(&summary, "explained")), (1, 0));
        covers(&lines[0], &frame);
        let dictionary = sender.dictionary(folder.path());
        let keys = sender.keys(folder.path(), SECRET);
        let known = ["--dictionary", path(&dictionary), "--keys", path(&keys)];
        let (code, lines, _) = records(&frame, &known);
        assert_eq!((code, text(&lines[0], "form").as_str()), (0, "compact"), "{lines:?}");
        covers(&lines[0], &frame);
        assert_eq!(text(row(&lines[0], "source"), "value"), "5151515151515151");
        assert_eq!(text(lines[0].field("opening").unwrap(), "result"), "opened", "{lines:?}");
        assert_eq!(number(lines[0].field("opening").unwrap(), "epoch"), 300);
        assert_eq!(lines[0].field("body"), Some(&json(std::str::from_utf8(BODY).unwrap())));
        for len in 1..frame.len() {
            let (code, lines, _) = records(&frame[..len], &known[..2]);
            assert_eq!(code, i32::from(len < frame.len() - BODY.len()), "{len}: {lines:?}");
            covers(&lines[0], &frame[..len]);
        }
        let other = write(folder.path(), "other", b"09 00000000 ffffffffffffffff 01 05\n");
        let (code, lines, _) = records(&frame, &["--dictionary", path(&other)]);
        assert_eq!(code, 1);
        assert_eq!(text(lines[0].field("error").unwrap(), "code"), "SL-FRAME-12");
    }
}

#[test]
fn what_the_roster_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(Class::Group);
    let frame = sender.compact(BODY);
    let dictionary = std::fs::read_to_string(sender.dictionary(folder.path())).unwrap();
    let without = |words: &[&str]| -> String {
        let kept = dictionary.lines().filter(|line| !words.iter().any(|word| line.contains(word)));
        kept.map(|line| format!("{line}\n")).collect()
    };
    for (words, missing) in [
        (&["slot", "context"][..], "`slot 700 GROUP TAG`"),
        (&["context"], "`context 700 GROUP CONTEXT ORDERS`"),
    ] {
        let entries = write(folder.path(), "entries", without(words).as_bytes());
        let (code, lines, _) = records(&frame, &["--dictionary", path(&entries)]);
        assert_eq!((code, text(&lines[0], "status").as_str()), (0, "partial"));
        assert!(text(&lines[0], "missing").contains(missing), "{lines:?}");
    }
}

#[test]
fn keys_open_every_class_and_wrong_keys_say_why_not() {
    let folder = tempfile::tempdir().unwrap();
    for class in Class::ALL {
        let mut sender = Sender::new(class);
        let frame = sender.full(BODY);
        let keys = sender.keys(folder.path(), SECRET);
        let (code, out) = run(&frame, &["--group-keys", path(&keys)]);
        assert_eq!(code, 0, "{out}");
        assert!(out.contains("opened: authentic, epoch 300") && out.contains("\"text\":\"hello\""));
        let (_, lines, summary) = records(&frame, &["--keys", path(&keys)]);
        assert_eq!(number(&summary, "opened"), 1);
        assert_eq!(lines[0].field("body"), Some(&json(std::str::from_utf8(BODY).unwrap())));
        let wrong = sender.keys(folder.path(), WRONG);
        let output = inspect(&frame, &["--keys", path(&wrong)]);
        let (out, said) = (output.stdout.clone(), output.stderr.clone());
        let [out, said] = [out, said].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(1));
        assert!(out.contains("did not open: the tag does not verify [SL-SEAL-03]"), "{out}");
        assert!(!out.contains(WRONG) && !said.contains(WRONG));
        let mut changed = frame.clone();
        *changed.last_mut().unwrap() ^= 1;
        let keys = sender.keys(folder.path(), SECRET);
        let (code, lines, _) = records(&changed, &["--keys", path(&keys)]);
        let opening = lines[0].field("opening").unwrap();
        assert_eq!((code, text(opening, "result").as_str()), (1, "refused"));
        assert_eq!(text(opening.field("error").unwrap(), "name"), "NotAuthentic");
    }
    let mut stranger = Sender::new(Class::Group);
    let keys = stranger.keys(folder.path(), SECRET);
    stranger.fields.group = sealane_frame::GroupTag::from_bytes([9; 4]);
    let (code, lines, summary) = records(&stranger.full(BODY), &["--keys", path(&keys)]);
    assert_eq!((code, number(&summary, "noKeys")), (0, 1));
    assert_eq!(text(lines[0].field("opening").unwrap(), "result"), "noKeys");
}

#[test]
fn a_relay_changes_its_bytes_and_the_frame_still_opens() {
    let folder = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(Class::Signed);
    let keys = sender.keys(folder.path(), SECRET);
    let frame = sender.full(BODY);
    for at in 0..64 {
        let mut changed = frame.clone();
        changed[at] ^= 0x20;
        let (_, lines, _) = records(&changed, &["--keys", path(&keys), "--as", "full"]);
        let opens = lines[0].field("opening").is_some_and(|o| text(o, "result") == "opened");
        let field = rows(&lines[0]).iter().find(|row| {
            (number(row, "offset")..number(row, "offset") + number(row, "length"))
                .contains(&(at as u64))
        });
        assert_eq!(opens, text(field.unwrap(), "part") == "relay", "byte {at}");
    }
}

#[test]
fn hexadecimal_text_has_one_unit_per_line() {
    let mut sender = Sender::new(Class::Group);
    let [first, second] = [sender.full(BODY), sender.full(b"2")];
    let spaced = hex(&second)
        .as_bytes()
        .chunks(2)
        .fold(String::new(), |text, byte| text + std::str::from_utf8(byte).unwrap() + " ");
    let input = format!("# two frames\n{} # one\r\n\n{}", hex(&first), spaced.to_uppercase());
    let (code, lines, _) = records(input.as_bytes(), &[]);
    assert_eq!((code, lines.len()), (0, 2));
    assert_eq!([2, 4], [0, 1].map(|at| number(&lines[at], "line")));
    covers(&lines[1], &second);
    let input = format!("{}\n{}0\n", hex(&first), hex(&second));
    let output = inspect(input.as_bytes(), &["--json"]);
    let said = json(&String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 2);
    let error = said.field("error").unwrap();
    assert_eq!(text(error, "code"), "SL-CLI-15");
    assert!(text(error, "message").contains("line 2: half a byte"), "{error:?}");
}

#[test]
fn batches_are_explained_item_by_item() {
    let mut sender = Sender::new(Class::Group);
    let frames = [sender.full(BODY), sender.full(&[b' '; 200]), sender.full(b"3")];
    let mut unit = vec![];
    for frame in &frames {
        FrameBatch::append(&mut unit, frame).unwrap();
    }
    let (code, lines, summary) = records(&unit, &[]);
    assert_eq!((code, lines.len(), number(&summary, "batches")), (0, 4, 1));
    covers(&lines[0], &unit);
    for (index, frame) in frames.iter().enumerate() {
        covers(&lines[index + 1], frame);
        assert_eq!(number(&lines[index + 1], "item"), index as u64 + 1);
    }
    for len in 1..unit.len() {
        let (_, lines, _) = records(&unit[..len], &[]);
        covers(&lines[0], &unit[..len]);
    }
    let (code, out) = run(&unit[..unit.len() - 1], &[]);
    assert!(code == 1 && out.contains("BadBatch [SL-FRAME-20]"), "{out}");
}

#[test]
fn fragments_are_put_together_where_all_parts_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(Class::Group);
    let frame = sender.full(&[b"\"", &[b'x'; 500][..], b"\""].concat());
    let mut units: Vec<Vec<u8>> = Fragment::split(&frame, 7, 100)
        .unwrap()
        .map(|fragment| {
            let mut unit = vec![];
            fragment.write(&mut unit);
            unit
        })
        .collect();
    units.reverse();
    let text_of = |units: &[Vec<u8>]| units.iter().map(|unit| hex(unit) + "\n").collect::<String>();
    let keys = sender.keys(folder.path(), SECRET);
    let (code, lines, summary) = records(text_of(&units).as_bytes(), &["--keys", path(&keys)]);
    assert_eq!((code, number(&summary, "fragments")), (0, units.len() as u64));
    let whole = lines.last().unwrap();
    assert_eq!((text(whole, "what").as_str(), number(whole, "fragments")), ("frame", 7));
    assert_eq!(text(whole.field("opening").unwrap(), "result"), "opened");
    covers(whole, &frame);
    covers(&lines[0], &units[0]);
    let (code, out) = run(text_of(&units[1..]).as_bytes(), &[]);
    assert!(code == 0 && out.contains("parts are missing: frame id 7 from the input"), "{out}");
    let mut other = units[1].clone();
    *other.last_mut().unwrap() ^= 1;
    units.insert(2, other);
    let (code, out) = run(text_of(&units).as_bytes(), &[]);
    assert!(code == 1 && out.contains("FragmentConflict [SL-FRAME-18]"), "{out}");
}

#[test]
fn captures_of_every_link_type_give_their_payloads() {
    let frame = Sender::new(Class::Group).full(BODY);
    let cooked = [&[0; 14][..], &[0x08, 0], &ipv4(&frame)].concat();
    let cooked_2 = [&[0x86, 0xdd][..], &[0; 18], &ipv6(&frame)].concat();
    let tagged = [&[0; 12][..], &[0x81, 0, 0, 7, 0x08, 0], &ipv4(&frame)].concat();
    for (link_type, packet) in [
        (1, ethernet_ipv4(&frame)),
        (1, tagged),
        (113, cooked),
        (276, cooked_2),
        (101, ipv4(&frame)),
        (101, ipv6(&frame)),
        (0, [&[2, 0, 0, 0], &ipv4(&frame)[..]].concat()),
        (108, [&[0, 0, 0, 30], &ipv6(&frame)[..]].concat()),
    ] {
        let packets = [packet.clone(), packet];
        for capture in [
            pcap(link_type, &packets, u32::to_le_bytes),
            pcap(link_type, &packets, u32::to_be_bytes),
            pcapng(link_type as u16, &packets),
        ] {
            let (code, lines, _) = records(&capture, &[]);
            assert_eq!((code, lines.len()), (0, 2), "{link_type}");
            assert_eq!(number(&lines[0], "timeMs"), 1_700_000_000_250);
            assert!(text(&lines[0], "from").ends_with(":5001"));
            assert_eq!(number(&lines[1], "packet"), 2);
            covers(&lines[1], &frame);
        }
    }
}

#[test]
fn units_of_raw_ethernet_are_read_with_the_addresses_of_their_cards() {
    let frame = Sender::new(Class::Group).full(BODY);
    let head = [&[2, 0, 0, 0, 0, 2][..], &[2, 0, 0, 0, 0, 1], &[0x88, 0xb5]].concat();
    let packets = [[head.as_slice(), &frame].concat()];
    let (code, lines, _) = records(&pcap(1, &packets, u32::to_le_bytes), &[]);
    assert_eq!((code, lines.len()), (0, 1));
    let ends = ["from", "to"].map(|name| text(&lines[0], name));
    assert_eq!(ends, ["02:00:00:00:00:01", "02:00:00:00:00:02"]);
    covers(&lines[0], &frame);
}

#[test]
fn what_is_no_unit_is_counted_and_what_was_cut_is_named() {
    let frame = Sender::new(Class::Group).full(BODY);
    let mut tcp = ethernet_ipv4(&frame);
    tcp[23] = 6;
    let mut arp = ethernet_ipv4(&frame);
    arp[13] = 6;
    let mut cut = ethernet_ipv4(&frame);
    cut.truncate(100);
    let packets = [tcp, arp, cut, ethernet_ipv4(b"hello there"), vec![]];
    let (code, lines, summary) = records(&pcap(1, &packets, u32::to_le_bytes), &[]);
    let skipped = summary.field("skipped").unwrap();
    for reason in ["not UDP", "neither IP nor a unit of Ethernet", "cut off before its data"] {
        assert_eq!(number(skipped, reason), 1);
    }
    assert_eq!((code, lines.len()), (1, 2));
    assert_eq!(number(&lines[0], "wholeBytes"), frame.len() as u64);
    let (_, out) = run(&pcap(1, &packets, u32::to_le_bytes), &[]);
    assert!(out.contains("2023-11-14T22:13:20.250Z, 10.0.0.1:5001 to 10.0.0.2:5002"), "{out}");
    assert!(out.contains("packet skipped: not UDP"), "{out}");
}

#[test]
fn a_capture_that_ends_anywhere_is_read_so_far_and_says_where() {
    let frame = Sender::new(Class::Group).full(b"1");
    let packets = [ethernet_ipv4(&frame), ethernet_ipv4(&frame)];
    for capture in [pcap(1, &packets, u32::to_le_bytes), pcapng(1, &packets)] {
        let mut clean_ends = 0;
        for len in 4..capture.len() {
            let (Err(failure), _) = explain(&capture[..len], &[]) else {
                clean_ends += 1;
                continue;
            };
            assert_eq!((failure.exit_code(), failure.code()), (1, "SL-CLI-15"), "{failure}");
            let said = failure.to_string();
            assert!(said.contains(&format!("byte {len}: the capture ends within")), "{said}");
        }
        // Behind the header, or blocks without packets, and behind the first packet.
        assert!((2..=4).contains(&clean_ends), "{clean_ends}");
    }
}

#[test]
fn every_damaged_byte_of_a_capture_is_taken_without_a_panic() {
    let frame = Sender::new(Class::Authenticated).full(b"1");
    let packets = [ethernet_ipv4(&frame)];
    for capture in [pcap(1, &packets, u32::to_le_bytes), pcapng(1, &packets)] {
        let head = capture.len() - frame.len() + 20;
        for at in 0..head {
            for value in [0xff, capture[at] ^ 0x10] {
                let mut damaged = capture.clone();
                damaged[at] = value;
                let code = explain(&damaged, &["--as", "pcap"]).0.err().map(|f| f.exit_code());
                assert!(matches!(code, None | Some(1)), "{at}: {code:?}");
            }
        }
    }
}

#[test]
fn lines_of_json_have_all_fields_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(Class::Group);
    let keys = sender.keys(folder.path(), SECRET);
    let capture = pcap(1, &[ethernet_ipv4(&sender.full(BODY))], u32::to_le_bytes);
    let (_, lines, summary) = records(&capture, &["--keys", path(&keys)]);
    let names = |value: &Value| -> Vec<String> {
        let Value::Map(fields) = value else { panic!("{value:?}") };
        fields.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(
        names(&lines[0]).join(" "),
        "v what number packet captureOffset timeMs from to form bytes status fields opening body"
    );
    let row = names(&rows(&lines[0])[0]).join(" ");
    assert_eq!(row, "part offset length hex field value meaning");
    assert_eq!(
        names(&summary).join(" "),
        "v what frames fragments batches explained partial refused opened noKeys incomplete skipped"
    );
    assert_eq!(number(&lines[0], "v"), 1);
}

#[test]
fn wrong_usage_is_told_apart_from_refused_frames() {
    let folder = tempfile::tempdir().unwrap();
    let keys = write(folder.path(), "keys", format!("[[group]]\nsecret = {SECRET}\n").as_bytes());
    let dictionary = write(folder.path(), "link", b"04 00\n");
    for (args, cause) in [
        (&["--keys", path(&keys)][..], "line 2: this is no TOML"),
        (&["--dictionary", path(&dictionary)], "line 1: an entry has 14 bytes"),
        (&["--keys", "missing.toml"], "missing.toml"),
        (&["--as", "xml"], "xml"),
    ] {
        let output = inspect(b"00", args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said.contains(cause) && !said.contains(SECRET), "{said}");
        assert!(output.stdout.is_empty());
    }
    let home = tempfile::tempdir().unwrap();
    let output = sealane(home.path()).args(["inspect", "missing.pcap"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(inspect(b"", &["--as", "hex"]).status.success(), "nothing was refused");
    assert_eq!(inspect(b"", &[]).status.code(), Some(1));
    let help = sealane(home.path()).args(["inspect", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for part in ["[[group]]", "dictionary byte; then group tag", "captureOffset", "Exit codes"] {
        assert!(help.contains(part), "{part}");
    }
}
