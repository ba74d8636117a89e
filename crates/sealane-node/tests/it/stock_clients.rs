//! Stock JavaScript clients, `ws` with JSON and with msgpackr, work unchanged.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::running::Running;

/// Runs a part of `tests/js/stock.mjs` against the hub.
async fn run(hub: &Running, part: &'static str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/js");
    assert!(
        folder.join("node_modules/ws").exists(),
        "npm packages are missing; run: cargo xtask needs"
    );
    let address = hub.address().to_string();
    let done = tokio::task::spawn_blocking(move || {
        let mut node = Command::new("node");
        node.arg(folder.join("stock.mjs")).args([part, &address]).output()
    });
    let output = done.await.unwrap().expect("Node.js 18 or later must be installed as `node`");
    let (out, err) = (output.stdout, output.stderr);
    print!("{}", String::from_utf8_lossy(&out));
    assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&err));
    assert!(out.ends_with(b"done\n"), "{part} ended early");
}

#[tokio::test]
#[ignore = "lab: needs Node.js and npm packages"]
async fn ws_speaks_json() {
    let hub = Running::start().await;
    run(&hub, "json").await;
    // The client's work arrived: all but nothing is in flight, and one message came twice.
    let inbox = hub.consumer("orders", "").await;
    assert_eq!((&inbox["inFlight"], &inbox["redelivered"]), (&json!(0), &json!(1)));
}

#[tokio::test]
#[ignore = "lab: needs Node.js and npm packages"]
async fn msgpackr_speaks_msgpack() {
    let hub = Running::start().await;
    run(&hub, "msgpack").await;
    assert_eq!(hub.consumer("orders", "").await["inFlight"], 0);
}

#[tokio::test]
#[ignore = "lab: needs Node.js and npm packages"]
async fn msgpackr_speaks_records() {
    let hub = Running::start().await;
    run(&hub, "records").await;
    assert_eq!(hub.consumer("orders", "workers").await["inFlight"], 0);
}
