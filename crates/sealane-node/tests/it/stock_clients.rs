//! Stock JavaScript clients, `ws` with JSON and with msgpackr, work unchanged.

use sealane_testing::run_script;
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
