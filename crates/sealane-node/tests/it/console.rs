//! The console works in a real browser, asks nothing of anybody else, and counts sizes as the
//! codecs write them.

use std::fmt::Write;

use sealane_codec::{Codec, decode, encode};
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_testing::{repository, run_script};
use serde_json::json;

use crate::running::Running;
use crate::seals::{Members, TAG, in_json};

/// Envelopes on both sides of every step of the codecs' lengths.
fn envelopes() -> Vec<String> {
    let mut texts: Vec<String> = [
        "{}",
        r#"{"a":null,"b":[true,false],"c":{"d":[]}}"#,
        r#"{"text":"Grüße \u20ac \"quoted\" \n","more":"\u0001"}"#,
        r#"{"f":[0.0,-0.0,1.5,0.1,65504.0,65520.0,1e300,5.9604644775390625e-8,1.1754943508e-38]}"#,
    ]
    .map(str::to_owned)
    .into();
    for power in [5, 7, 8, 15, 16, 31, 32, 53, 63] {
        let edge = 1_i128 << power;
        for n in [edge - 1, edge, edge + 1, -edge + 1, -edge, -edge - 1, 23, 24, -24, -25, -32] {
            if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n) {
                texts.push(format!(r#"{{"n":{n}}}"#));
            }
        }
    }
    for length in [15, 16, 23, 24, 31, 32, 255, 256, 65_535, 65_536] {
        texts.push(format!(r#"{{"t":"{}"}}"#, "x".repeat(length)));
        texts.push(format!(r#"{{"l":[0{}]}}"#, ",0".repeat(length - 1)));
    }
    for entries in [15, 16, 23, 24, 255, 256] {
        let entries: Vec<String> = (0..entries).map(|n| format!(r#""{n}":0"#)).collect();
        texts.push(format!("{{{}}}", entries.join(",")));
    }
    texts
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn it_counts_sizes_as_the_codecs_write_them() {
    let mut lines = String::new();
    for text in envelopes() {
        let value = decode(Codec::Json, text.as_bytes()).unwrap();
        let [json, msgpack, cbor] = [Codec::Json, Codec::MsgPack, Codec::Cbor].map(|codec| {
            let mut bytes = Vec::new();
            encode(codec, &value, &mut bytes);
            (bytes.len(), bytes)
        });
        // The codec's own text, which the hub would send.
        let text = String::from_utf8(json.1).unwrap();
        let line =
            json!({"text": text, "json": json.0, "msgpack": msgpack.0, "cbor": cbor.0}).to_string();
        writeln!(lines, "{line}").unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    run_script("console.mjs", "playwright-core", &["sizes", file.path().to_str().unwrap()]);
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn it_reads_frames_as_the_vectors_say() {
    let vectors = repository("vectors/frame");
    run_script("frames.mjs", "playwright-core", &[vectors.to_str().unwrap()]);
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn it_passes_over_what_only_a_newer_hub_says() {
    run_script("strangers.mjs", "playwright-core", &[]);
}

#[tokio::test]
#[ignore = "lab: needs Chromium and npm packages"]
async fn a_browser_works_with_it() {
    let hub = Running::over(tempfile::tempdir().unwrap(), sealane_stream::Level::Disk).await;
    let address = hub.address().to_string();
    let work = move || run_script("console.mjs", "playwright-core", &["browser", &address]);
    tokio::task::spawn_blocking(work).await.unwrap();
}

/// Where the header of a frame has its sender context (spec/frame.md).
const CONTEXT_AT: std::ops::Range<usize> = 55..63;

#[tokio::test]
#[ignore = "lab: needs Chromium and npm packages"]
async fn its_faults_do_not_come_back() {
    let hub = Running::start().await;
    let mut members = Members::of(TAG, "sealed/strange");
    for n in 0..6 {
        let mut frame = members.seal(b"body");
        if n == 3 {
            frame[CONTEXT_AT].fill(0xff);
        }
        hub.enqueue("sealed/strange", in_json(None, &frame)).await;
    }
    let address = hub.address().to_string();
    let work = move || run_script("faults.mjs", "playwright-core", &["open", &address]);
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[tokio::test]
#[ignore = "lab: needs Chromium and npm packages"]
async fn it_steers_consumers_and_cancels_what_is_held_back() {
    let hub = Running::start().await;
    let address = hub.address().to_string();
    let work = move || run_script("consumers.mjs", "playwright-core", &[&address]);
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[tokio::test]
#[ignore = "lab: needs Chromium and npm packages"]
async fn a_token_that_only_reads_sees_in_it_all_that_it_may_read() {
    let hub = Running::start().await;
    hub.enqueue_numbered("orders", 0, 3).await;
    hub.enqueue_numbered("secret", 0, 3).await;
    let token = TokenSecret::new([1; 32]);
    let rights = TokenRights { read: vec!["orders".parse().unwrap()], ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "reader", &token, rights, None).unwrap();
    hub.node.reload().unwrap();
    let address = hub.address().to_string();
    let work =
        move || run_script("faults.mjs", "playwright-core", &["guarded", &address, token.reveal()]);
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[tokio::test]
async fn its_pages_load_nothing_from_elsewhere() {
    let hub = Running::start().await;
    let page = crate::http::request(hub.address(), "GET", "/", &[], b"").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let gone = crate::http::request(hub.address(), "GET", "/console/nothing.js", &[], b"").await;
    assert_eq!(gone.status, 404);
}
