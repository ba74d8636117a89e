//! Frames of another version, and those that open in one place only.

use sealane_frame::FrameKind;
use sealane_message::DataType;
use sealane_seal::{Binding, Class};

use super::members::{SECRET, Sender};
use super::{BODY, covers, number, path, records, row, run};
use crate::cli::{json, text};

#[test]
fn a_frame_of_version_1_is_explained_so_far_and_refused_by_its_version() {
    let mut frame = Sender::new(Class::Group).full(BODY);
    frame[17] = 1;
    let (code, out) = run(&frame, &[]);
    assert_eq!(code, 1);
    assert!(out.contains("unknown: not 2"), "{out}");
    assert!(out.contains("refused: UnknownFrameVersion [SL-FRAME-02]"), "{out}");
    assert!(out.contains("hint: "), "{out}");
    let (_, lines, _) = records(&frame, &[]);
    covers(&lines[0], &frame);
    assert_eq!(number(row(&lines[0], "version"), "value"), 1);
    let error = lines[0].field("error").unwrap();
    assert_eq!(text(error, "code"), "SL-FRAME-02");
}

#[test]
fn a_frame_opens_for_the_place_that_it_was_made_for_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(Class::Group);
    let keys = sender.keys(folder.path(), SECRET);
    let keys = ["--keys", path(&keys)];
    let opens = |frame: &[u8], topic: &[&str]| {
        let (code, lines, _) = records(frame, &[&keys, topic].concat());
        let opening = lines[0].field("opening").unwrap();
        let is_open = text(opening, "result") == "opened";
        assert_eq!(code, i32::from(!is_open));
        is_open
    };
    let of_link = sender.full(BODY);
    assert!(opens(&of_link, &[]));
    assert!(!opens(&of_link, &["--topic", "fleet/7"]));
    sender.binding = Binding::stream("fleet/7");
    let of_stream = sender.full(BODY);
    assert!(opens(&of_stream, &["--topic", "fleet/7"]));
    assert!(!opens(&of_stream, &["--topic", "fleet/8"]));
    assert!(!opens(&of_stream, &[]));
    // An order is made for its control stream, however it travels.
    sender.fields.kind = FrameKind::Control;
    sender.binding = Binding::stream("groups/a1a2a3a4");
    let order = sender.full(BODY);
    assert!(opens(&order, &[]) && opens(&order, &["--topic", "groups/a1a2a3a4"]));
    sender.binding = Binding::link();
    assert!(opens(&sender.full(BODY), &[]), "what neighbours tell each other is control too");
}

#[test]
fn the_time_of_an_urgent_message_is_told_apart_from_its_body() {
    let folder = tempfile::tempdir().unwrap();
    let mut sender = Sender::new(Class::Signed);
    sender.fields.data_type = DataType::EMERGENCY.number();
    let keys = sender.keys(folder.path(), SECRET);
    let made_ms: u64 = 1_700_000_000_250;
    let frame = sender.full(&[&made_ms.to_le_bytes(), BODY].concat());
    let (code, lines, _) = records(&frame, &["--keys", path(&keys)]);
    assert_eq!(code, 0);
    assert_eq!(number(&lines[0], "bodyTimeMs"), made_ms);
    assert_eq!(lines[0].field("body"), Some(&json(std::str::from_utf8(BODY).unwrap())));
    let (_, out) = run(&frame, &["--keys", path(&keys)]);
    assert!(out.contains("made 2023-11-14T22:13:20.250Z by its sender's clock"), "{out}");
    assert!(out.contains(r#"{"lat":48.2,"text":"hello"}"#), "{out}");
    let (_, lines, _) = records(&sender.full(b"short"), &["--keys", path(&keys)]);
    assert!(text(&lines[0], "bodyNote").contains("without the time"), "{lines:?}");
    // Control frames number their bodies themselves.
    sender.fields.kind = FrameKind::Control;
    let (_, lines, _) = records(&sender.full(BODY), &["--keys", path(&keys)]);
    assert_eq!(lines[0].field("bodyTimeMs"), None);
}
