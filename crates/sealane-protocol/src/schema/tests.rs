use std::fs;
use std::path::Path;

use sealane_codec::{Codec, DatumWriter, typed};
use serde::de::DeserializeOwned;

use super::*;
use crate::{EnqueueOutcome, HubLevel, NumberRange, StreamPosition, write_batch, write_publish};

/// Set by `cargo xtask docs`, which has the files written instead of compared.
const WRITE: &str = "SEALANE_WRITE_SCHEMAS";

/// Compares a file with what the types say.
fn hold(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} is stale: run `cargo xtask docs`", path.display());
}

#[test]
fn the_generated_schema_is_that_of_the_types() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The hub protocol, version 1",
        "$comment": "Made by `cargo xtask docs` from the types of crates/sealane-protocol.",
        "$defs": definitions(),
    });
    let mut text = String::new();
    pretty(&schema, 0, &mut text);
    hold("spec/hub.schema.json", &(text + "\n"));
}

#[test]
fn the_generated_types_of_typescript_are_those_of_the_schema() {
    hold("sdk/js/types/protocol.d.ts", &typescript::types(&definitions()));
}

#[test]
fn the_generated_description_has_the_schemas() {
    const PAGE: &str = "crates/sealane-node/openapi.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = fs::read_to_string(path).unwrap();
    // The schemas are the last part of the page, which is written by hand but for them.
    let (rest, _) = page.split_once("    \"schemas\": {").unwrap();
    let mut schemas = String::new();
    pretty(&Value::Object(definitions()), 4, &mut schemas);
    let schemas = schemas.replace("#/$defs/", "#/components/schemas/");
    hold(PAGE, &format!("{rest}    \"schemas\": {schemas}\n  }}\n}}\n"));
}

#[test]
fn every_reference_of_the_description_leads_somewhere() {
    let page = include_str!("../../../sealane-node/openapi.json");
    let all = definitions();
    for (_, rest) in page.match_indices("#/components/schemas/").map(|(at, _)| page.split_at(at)) {
        let name = rest.trim_start_matches("#/components/schemas/").split('"').next().unwrap();
        assert!(all.contains_key(name), "{name}");
    }
}

/// Checks that the twin reads handwritten output, in every codec.
fn twin<T: DeserializeOwned>(write: impl Fn(Codec, &[u8], &mut Vec<u8>)) {
    for codec in Codec::AT_REST {
        let mut envelope = Vec::new();
        let value = sealane_message::Value::Map(vec![("id".into(), "m1".into())]);
        sealane_codec::encode(codec, &value, &mut envelope);
        let mut out = Vec::new();
        write(codec, &envelope, &mut out);
        let read = typed::read_request::<T>(codec, &out);
        assert!(read.is_ok(), "{:?}", read.err());
    }
}

#[test]
fn what_is_written_by_hand_is_what_its_schema_says() {
    let to: sealane_message::Topic = "a/b".parse().unwrap();
    let at = EnqueueOutcome::At(StreamPosition { generation: 3, offset: 4 });
    let level = HubLevel::from(crate::Level::Disk);
    for (expect, delay_ms) in [(None, None), (Some(1), Some(2))] {
        twin::<Enqueue>(|codec, envelope, out| {
            let (to, envelopes) = (to.clone(), vec![envelope]);
            crate::Enqueue { to, envelopes, is_batch: false, expect, delay_ms }.write(codec, out);
        });
        twin::<EnqueueBatch>(|codec, envelope, out| {
            let (to, envelopes) = (to.clone(), vec![envelope, envelope]);
            crate::Enqueue { to, envelopes, is_batch: true, expect, delay_ms }.write(codec, out);
        });
        twin::<PublishRequest>(|codec, envelope, out| {
            let mut item = Vec::new();
            let to = to.clone();
            crate::PublishItem { to, n: 1, envelope, delay_ms, expect }.write(codec, &mut item);
            write_publish(codec, [item.as_slice(), &item].into_iter(), out);
        });
    }
    for (outcome, replayed) in [(at, true), (EnqueueOutcome::Due(5), false)] {
        let (stream, level, ids) = (to.clone(), level.clone(), vec!["m".into()]);
        let enqueued = crate::Enqueued { ids, stream, outcome, level, replayed };
        twin::<Enqueued>(|codec, _, out| enqueued.write(false, &mut DatumWriter::new(codec, out)));
        if outcome == at {
            twin::<EnqueuedBatch>(|codec, _, out| {
                enqueued.write(true, &mut DatumWriter::new(codec, out));
            });
        }
        for to in [1, 9] {
            let numbers = NumberRange { from: 1, to };
            let (stream, level) = (enqueued.stream.clone(), enqueued.level.clone());
            let placed = crate::StoredRange { stream, numbers, outcome, level, replayed };
            twin::<Published>(|codec, _, out| {
                crate::PublishFrame::Published(placed.clone()).write(codec, out);
            });
        }
    }
    let position = StreamPosition { generation: 3, offset: 4 };
    let head = crate::DeliverHead { stream: &to, position, attempt: 1, stored_ms: 5 };
    let deliver = |codec, envelope: &[u8]| {
        let mut frame = Vec::new();
        crate::write_deliver(codec, envelope, &head, &mut frame);
        frame
    };
    twin::<Deliver>(|codec, envelope, out| out.extend(deliver(codec, envelope)));
    twin::<Batch>(|codec, envelope, out| {
        write_batch(codec, [deliver(codec, envelope).as_slice()].into_iter(), out);
    });
    twin::<Page>(|codec, envelope, out| {
        let (messages, gaps) = (vec![deliver(codec, envelope).into()], vec![]);
        let stream = to.clone();
        let page = crate::RangePage { stream, generation: 3, messages, gaps, next: 5, end: true };
        page.write(&mut DatumWriter::new(codec, out));
    });
}
