//! The programs in `examples/` do what they show, against a node.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use sealane::Value;
use sealane_testing::{PATIENCE, until_told_async};

use crate::{node, numbered};

#[path = "../../../../examples/telemetry_logger.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod telemetry_logger;
#[path = "../../../../examples/worker.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod worker;

/// The lines of a file, when there are so many.
async fn lines(path: &Path, count: usize) -> Vec<String> {
    let read = async || std::fs::read_to_string(path).unwrap_or_default();
    let is_whole = |text: &String| text.lines().count() >= count && text.ends_with('\n');
    until_told_async(read, is_whole).await.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_logger_writes_each_message_and_goes_on_where_it_was() {
    let (folder, node, client) = node().await;
    let path = folder.path().join("places.jsonl");
    let address = node.address().to_string();
    for n in 0..2 {
        client.publish("fleet/7/location", &numbered(n)).await.unwrap();
    }
    let first = telemetry_logger::log(&address, path.to_str().unwrap());
    tokio::select! {
        ended = first => panic!("{ended:?}"),
        written = lines(&path, 2) => assert!(written[1].contains(r#""message":{"#), "{written:?}"),
    }
    client.publish("fleet/\"8\"/location", &numbered(2)).await.unwrap();
    let second = telemetry_logger::log(&address, path.to_str().unwrap());
    let written = tokio::select! {
        ended = second => panic!("{ended:?}"),
        written = lines(&path, 3) => written,
    };
    let last = sealane_codec::decode(sealane::Codec::Json, written.last().unwrap().as_bytes());
    let last = last.unwrap();
    assert_eq!(last.field("stream").and_then(Value::as_text), Some("fleet/\"8\"/location"));
    assert_eq!(last.field("message").and_then(|message| message.field("n")), Some(&2_u64.into()));
}

#[tokio::test]
async fn the_worker_tries_again_and_leaves_dead_letters() {
    let (folder, node, client) = node().await;
    let program = folder.path().join("program");
    let done = folder.path().join("done");
    // It fails twice with each job, and always with the one that says so.
    let script = format!(
        "#!/bin/sh\nread -r job\necho \"$job\" >> {done}\n\
         case $job in *never*) exit 1;; esac\n\
         [ \"$(grep -cF \"$job\" {done})\" -ge 3 ]\n",
        done = done.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    client.publish("jobs", &Value::Map(vec![("id".into(), "mended".into())])).await.unwrap();
    client.publish("jobs", &Value::Map(vec![("id".into(), "never".into())])).await.unwrap();
    let mut dead = client.subscribe("dead/jobs").inbox().await.unwrap();
    let address = node.address().to_string();
    let wait = Duration::from_millis(1);
    let work = worker::work(&address, "jobs", program.to_str().unwrap(), wait);
    let letter = tokio::select! {
        ended = work => panic!("{ended:?}"),
        letter = tokio::time::timeout(PATIENCE, dead.next()) => letter,
    };
    let letter = letter.expect("a dead letter").unwrap().unwrap();
    assert_eq!(letter.value().unwrap().field("attempts"), Some(&5_u64.into()));
    let runs = lines(&done, 8).await;
    let of = |id: &str| runs.iter().filter(|job| job.contains(id)).count();
    assert_eq!((of("mended"), of("never")), (3, 5), "{runs:?}");
}
