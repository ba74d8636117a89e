//! A node under all that clients may ask of it at once: what it takes of memory and of the disk has
//! a bound, and who has nothing to do with it is not refused and does not wait.
//!
//! The numbers of each test stand in the environment. What decides is what was answered, and how
//! many bytes it took. Latencies are printed, and decide where `SEALANE_DEMANDS` is set: in the
//! proofs.

mod acks;
mod bystanders;
mod figures;
mod followers;
mod hammer;
mod letters;
mod stage;

use std::time::Duration;

use bystanders::Bystanders;
use figures::{demand, metric, number};
use hammer::Hammer;
use stage::Stage;

/// How much longer than those of an idle node the bystanders of a hammered one may wait.
const HAMMERED_RATIO_MAX: f64 = 2.0;

/// Sixteen consumers give up a whole stream: `SEALANE_LETTERS` dead letters are made, one for each
/// message and consumer, and memory does not grow with them.
#[test]
fn dead_letters() {
    let _turn = crate::TURN.blocking_lock();
    letters::run(number("SEALANE_LETTERS", 20_000));
}

/// Consumers with `SEALANE_IN_FLIGHT` messages acknowledge some for `SEALANE_SECONDS`: what is
/// written grows with the acknowledgements, not with what is in flight.
#[test]
fn acknowledgements() {
    let _turn = crate::TURN.blocking_lock();
    acks::run(number("SEALANE_IN_FLIGHT", 8192), number("SEALANE_SECONDS", 3));
}

/// Subscriptions to `SEALANE_STREAMS` streams, and `SEALANE_STUCK` clients that ask for everything
/// and read nothing: memory stays within its budget, and others get what they read.
#[test]
fn followers_and_stuck_clients() {
    let _turn = crate::TURN.blocking_lock();
    followers::run(number("SEALANE_STREAMS", 2000), number("SEALANE_STUCK", 100));
}

/// While a node is hammered for `SEALANE_SECONDS`, nobody else is refused; how long they wait is
/// shown beside a node that is not, on the same disk and in the same run.
#[test]
fn bystanders_of_a_hammered_node() {
    let _turn = crate::TURN.blocking_lock();
    let seconds = number("SEALANE_SECONDS", 4) as u64;
    let (mut hammered, mut idle) = (Stage::set("disk"), Stage::set("disk"));
    let bystanders = Bystanders::start(&[&hammered.node, &idle.node], "disk");
    let hammer = Hammer::start(&hammered.node);
    std::thread::sleep(Duration::from_secs(seconds));
    let waits = bystanders.finish();
    let answers = hammer.finish();
    let node = &hammered.node;
    let did = ["acked", "nacked", "delivered"].map(|what| {
        let count = metric(node, &format!("sealane_stream_{what}_total"));
        println!("  {count:>8} {what}");
        count
    });
    for ((what, status), count) in &answers {
        println!("  {count:>8} x {what}: {status}");
    }
    let ratio = waits[0].part(0.99).as_secs_f64() / waits[1].part(0.99).as_secs_f64();
    println!("bystanders of the hammered node: {}", waits[0]);
    println!("the same of an idle node: {}", waits[1]);
    for stage in [&mut hammered, &mut idle] {
        assert!(stage.node.process.child.try_wait().unwrap().is_none(), "a node has ended");
    }
    assert!(waits.iter().all(|waits| waits.len() > 0), "nobody asked anything");
    assert!(did.iter().all(|count| *count > 0), "nothing was consumed: {did:?}");
    let failed: Vec<_> = answers.keys().filter(|(_, status)| !is_answer(*status)).collect();
    assert!(failed.is_empty(), "those who hammer were told: {failed:?}");
    demand("p99, hammered / idle", ratio, HAMMERED_RATIO_MAX);
}

/// Whether an answer is legal for clients that undo each other's requests: it is done, or there is
/// nothing there.
fn is_answer(status: u16) -> bool {
    (200..500).contains(&status)
}
