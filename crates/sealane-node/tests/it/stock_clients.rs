//! Stock JavaScript clients, `ws` with JSON and with msgpackr, work unchanged, and so do clients
//! that stock generators make of the OpenAPI page.

use std::process::Command;

use sealane_testing::{repository, run_script, succeed};
use serde_json::json;

use crate::running::Running;

/// Runs a part of `tests/js/stock.mjs` against the hub.
async fn run(hub: &Running, part: &'static str) {
    let address = hub.address().to_string();
    let run = move || run_script("stock.mjs", "ws", &[part, &address]);
    let said = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(said.ends_with("done\n"), "{part} ended early");
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

#[tokio::test]
#[ignore = "lab: needs Node.js and npm packages"]
async fn what_openapi_typescript_makes_publishes_and_reads() {
    let hub = Running::start().await;
    let address = hub.address().to_string();
    let run = move || run_script("generated.mjs", "openapi-typescript", &[&address]);
    assert_eq!(tokio::task::spawn_blocking(run).await.unwrap(), "done\n");
    assert_eq!(hub.state("made").await["next"], 3);
}

#[tokio::test]
#[ignore = "lab: needs Python packages"]
async fn what_openapi_python_client_makes_publishes_and_reads() {
    let hub = Running::start().await;
    let program = repository("target/venv/bin/python");
    assert!(program.is_file(), "{} is missing; run: cargo xtask needs", program.display());
    let mut python = Command::new(program);
    python.arg(repository("tests/python/generated.py")).arg(hub.address().to_string());
    let run = move || succeed(&mut python);
    assert_eq!(tokio::task::spawn_blocking(run).await.unwrap(), "done\n");
    assert_eq!(hub.state("made").await["next"], 4);
}
