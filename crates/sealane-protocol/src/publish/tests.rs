use super::*;
use crate::Level;

fn json(frame: &str) -> Result<Vec<PublishAsked<'_>>, Error> {
    read_publish(Codec::Json, frame.as_bytes(), None)
}

#[test]
fn what_a_client_writes_the_hub_reads() {
    for codec in Codec::AT_REST {
        let mut envelope = Vec::new();
        sealane_codec::encode(codec, &sealane_message::Value::Map(vec![]), &mut envelope);
        let to: Topic = "a/b".parse().unwrap();
        let (delay_ms, expect) = (None, None);
        let plain = PublishItem { to, n: 1, envelope: &envelope, delay_ms, expect };
        let late = PublishItem { n: 2, delay_ms: Some(7), ..plain.clone() };
        let placed = PublishItem { n: 3, expect: Some(9), ..plain.clone() };
        let items = [plain, late, placed];
        let written = items.iter().map(|item| {
            let mut out = Vec::new();
            item.write(codec, &mut out);
            out
        });
        let written: Vec<_> = written.collect();
        let mut frame = Vec::new();
        write_publish(codec, written.iter().map(Vec::as_slice), &mut frame);
        let read = read_publish(codec, &frame, None).unwrap();
        assert_eq!(read.len(), items.len());
        for ((asked, item), written) in read.into_iter().zip(items).zip(&written) {
            assert_eq!((asked.n, asked.bytes), (item.n, written.len()));
            assert_eq!(asked.item, Ok(item));
        }
    }
}

#[test]
fn what_the_hub_writes_the_client_reads() {
    let stream: Topic = "a".parse().unwrap();
    let at = EnqueueOutcome::At(StreamPosition { generation: 3, offset: 9 });
    let (one, many) = (NumberRange { from: 4, to: 4 }, NumberRange { from: 4, to: 8 });
    let level = HubLevel::from(Level::Disk);
    let placed = |numbers, outcome| {
        let (stream, level) = (stream.clone(), level.clone());
        let replayed = numbers == many;
        PublishFrame::Published(StoredRange { stream, numbers, outcome, level, replayed })
    };
    let error = WireError::from(&Error::NumberSkipped { next: 2 });
    let refused = NotPlaced { stream: "a//b".into(), numbers: many, error: error.clone() };
    for codec in Codec::AT_REST {
        let (session, features) = ("s".to_owned(), Features::ours());
        let place = Some(SessionPlace { stream: stream.clone(), next: 9 });
        let named = PublishFrame::Session { session, codec, time_ms: 5, features, place };
        let PublishFrame::Session { session, features, .. } = named.clone() else { panic!() };
        for frame in [
            named,
            PublishFrame::Session { session, codec, time_ms: 5, features, place: None },
            PublishFrame::Credit { messages: 7, bytes: 8 },
            placed(one, at),
            placed(many, at),
            placed(one, EnqueueOutcome::Due(77)),
            PublishFrame::Refused(refused.clone()),
            PublishFrame::Error(error.clone()),
            PublishFrame::Unknown,
        ] {
            let mut bytes = Vec::new();
            frame.write(codec, &mut bytes);
            assert_eq!(PublishFrame::read(codec, &bytes.into()), Ok(frame));
        }
    }
}

#[test]
fn a_frame_of_one_item_is_read_alike_in_each_form() {
    let item = r#"{"to":"a","n":1,"envelope":{"x":[{}]}}"#;
    let alone = json(item).unwrap_err();
    assert_eq!(alone, Error::UnknownOp("to".into()));
    let single = format!(r#"{{"publish":{item}}}"#);
    let list = format!(r#"{{"publish":[{item}]}}"#);
    let spaced = format!(r#"{{"publish":[ {item} ]}}"#);
    let expected = json(&single).unwrap();
    assert_eq!(expected[0].bytes, item.len());
    assert_eq!(json(&list).unwrap(), expected);
    assert_eq!(json(&spaced).unwrap(), expected);
    // These frames only look as if one item stood between the brackets.
    for frame in [
        format!(r#"{{"publish":[{item}],"publish":[{item}]}}"#),
        format!(r#"{{"publish":[{item}],"x":[]}}"#),
        format!(r#"{{"publish":[{item},]}}"#),
        format!(r#"{{"publish":[[{item}]]}}"#),
        format!(r#"{{"publish":[{item}]]}}"#),
        format!(r#"{{"publish":[{item}}}]}}"#),
    ] {
        assert!(json(&frame).is_err(), "{frame}");
    }
    assert_eq!(json(&format!(r#"{{"publish":[{item},{item}]}}"#)).unwrap().len(), 2);
}

#[test]
fn a_name_is_shared_with_the_message_before_and_never_taken_for_it() {
    let item = |to: &str| format!(r#"{{"to":"{to}","n":1,"envelope":{{}}}}"#);
    let all = ["a", "a", "b", "b//", "b", "a"].map(item).join(",");
    let frame = format!(r#"{{"publish":[{all}]}}"#);
    let before: Topic = "a".parse().unwrap();
    for before in [None, Some(&before)] {
        let read = read_publish(Codec::Json, frame.as_bytes(), before).unwrap();
        let name = |asked: &PublishAsked<'_>| asked.item.as_ref().ok().map(|i| i.to.to_string());
        let names: Vec<_> = read.iter().map(name).collect();
        let expected = ["a", "a", "b", "", "b", "a"].map(|to| Some(to.to_owned()));
        let expected = expected.map(|to| to.filter(|to| !to.is_empty()));
        assert_eq!(names, expected);
    }
}

#[test]
fn what_can_be_answered_is_refused_and_the_rest_ends_the_socket() {
    let item = |rest: &str| format!(r#"{{"publish":{{"to":"a","n":1{rest}}}}}"#);
    let refused = |rest: &str| json(&item(rest)).unwrap().remove(0).item.unwrap_err();
    let unknown = refused(r#","envelope":{},"condition":{"expect":1,"mood":2}"#);
    assert_eq!(unknown, Error::UnknownCondition("mood".into()));
    assert_eq!(refused(""), Error::parameter("envelope", "is missing"));
    for (rest, name) in [
        (r#","envelope":{},"condition":7"#, "condition"),
        (r#","envelope":{},"condition":{"expect":-1}"#, "expect"),
        (r#","envelope":{},"delayMs":"soon""#, "delayMs"),
    ] {
        let error = refused(rest);
        assert!(matches!(&error, Error::InvalidParameter { name: n, .. } if n == name));
    }
    assert!(matches!(refused(r#","envelopes":[]"#), Error::UnknownField { .. }));
    let topic = json(r#"{"publish":{"to":"a//b","n":1,"envelope":{}}}"#).unwrap().remove(0);
    assert_eq!((topic.to.as_ref(), topic.item.is_err()), ("a//b", true));
    for (frame, name) in [
        ("{}", "publish"),
        ("7", "frame"),
        (r#"{"publish":[]}"#, "publish"),
        (r#"{"publish":[7]}"#, "publish"),
        (r#"{"publish":{"to":"a","envelope":{}}}"#, "publish"),
        (r#"{"publish":{"to":"a","n":-1,"envelope":{}}}"#, "publish"),
        (r#"{"publish":{"n":1,"envelope":{}}}"#, "publish"),
        (r#"{"credit":1}"#, "credit"),
    ] {
        assert_eq!(json(frame), Err(Error::UnknownOp(name.into())), "{frame}");
    }
    assert!(matches!(json("{"), Err(Error::Decode { .. })));
}

#[test]
fn a_session_is_named_as_a_consumer_is() {
    let read =
        |name: &str, value: &str| PublishQuery::read(vec![(name.to_owned(), value.to_owned())]);
    let named = read("session", "s 1").unwrap();
    assert_eq!(named.parameters(), [("session", "s 1".to_owned())]);
    assert_eq!(read("codec", "json").unwrap(), PublishQuery::default());
    let long = "x".repeat(MAX_SESSION_NAME_BYTES + 1);
    for (name, value) in
        [("session", ""), ("session", "\u{1b}"), ("topic", "a"), ("session", &long)]
    {
        assert!(matches!(read(name, value), Err(Error::InvalidParameter { .. })), "{name}");
    }
}

#[test]
fn many_items_are_read_alike_in_one_pass_and_layer_by_layer() {
    // A line's end behind the frame is not what clients write, and has it read layer by layer.
    let both = |items: &str| {
        let frame = format!(r#"{{"publish":{items}}}"#);
        let layered = format!("{frame}\n");
        let read = json(&frame);
        assert_eq!(read, json(&layered), "{items}");
        read.map(|read| read.iter().map(|one| one.bytes).collect::<Vec<_>>())
    };
    let items = [
        r#"{"to":"a","n":1,"envelope":{"x":[{}, "}"]}}"#,
        r#"{ "n": 2 , "to":"a" , "envelope":{} }"#,
        r#"{"to":"b","n":1,"envelope":{},"delayMs":3}"#,
        r#"{"to":"b","n":2,"unknown":{},"envelope":{}}"#,
    ];
    let lengths = items.map(str::len).to_vec();
    assert_eq!(both(&format!("[{}]", items.join(","))), Ok(lengths.clone()));
    assert_eq!(both(&format!(" [ {} ] ", items.join(" , "))), Ok(lengths));
    for wrong in ["[]", "[{}]", r#"[{"to":"a"}]"#, "[1]", r#"[{"n":1}]"#] {
        assert!(both(wrong).is_err(), "{wrong}");
    }
}
