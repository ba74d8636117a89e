//! The library against a node, over real sockets.

mod answers_requests;
mod drops_what_does_not_open;
mod follows_orders;
mod holds_against_insiders;
mod keeps_to_its_credit;
mod members;
mod names_refusals;
mod passes_over_strangers;
mod publishes_in_the_background;
mod resumes_where_it_was;
mod runs_examples;
mod scripted;
mod seals_streams;
mod served;
mod serves_another_kind_of_group;
mod shares_work_among_members;
mod speaks_the_protocol;
mod speaks_tls;
mod stores_once;
mod waits_for_a_busy_store;
mod wire;

use std::time::Duration;

use sealane::{Client, ReceivedMessage, Subscription, Value};
use served::Served;

/// A node over a fresh folder, and a client of it.
async fn node() -> (tempfile::TempDir, Served, Client) {
    let folder = tempfile::tempdir().unwrap();
    let node = Served::over(folder.path()).await;
    let client = Client::connect(&node.address().to_string()).unwrap();
    (folder, node, client)
}

/// `{"n": n}`.
fn numbered(n: u64) -> Value {
    Value::Map(vec![("n".into(), n.into())])
}

fn number(message: &ReceivedMessage) -> u64 {
    message.value().unwrap().field("n").and_then(Value::as_u64).unwrap()
}

async fn next(subscription: &mut Subscription) -> ReceivedMessage {
    let next = tokio::time::timeout(Duration::from_secs(60), subscription.next());
    next.await.expect("a message within 10 s").expect("no end").unwrap()
}

/// The numbers of the next messages, as they came.
async fn numbers(subscription: &mut Subscription, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let message = next(subscription).await;
        message.ack();
        numbers.push(number(&message));
    }
    numbers
}

/// Whether nothing comes for a while.
async fn is_silent(subscription: &mut Subscription) -> bool {
    tokio::time::timeout(Duration::from_millis(200), subscription.next()).await.is_err()
}
