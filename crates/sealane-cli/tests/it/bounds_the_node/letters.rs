//! Sixteen consumers that give up all of a stream at once.

use std::time::{Duration, Instant};

use sealane_node::limits::MAX_CONNECTION_DELIVERIES_BYTES;
use sealane_stream::limits::MAX_TAIL_BYTES;

use super::bystanders::Bystanders;
use super::figures::{behind, demand, forget_peak, memory, mib};
use super::stage::{PATIENCE, Stage};
use crate::durable::json;
use crate::durable::node::Node;
use crate::durable::websocket::{Frame, WebSocket};

const CONSUMERS: usize = 16;

const MESSAGE_BYTES: usize = 1000;

/// The memory that making dead letters may take.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// How long all but one in a thousand of the others' requests may take.
const BYSTANDERS_WAIT_MS_MAX: f64 = 50.0;

/// The bytes that a message in flight may take, beside the documented bytes of its stream and
/// connection.
const IN_FLIGHT_BYTES_MAX: u64 = 192;

pub(crate) fn run(letters: usize) {
    let each = letters / CONSUMERS;
    let letters = each * CONSUMERS;
    let stage = Stage::set("os");
    let node = &stage.node;
    stage.fill("work", each, MESSAGE_BYTES);
    let bystanders = Bystanders::start(&[node], "os");
    std::thread::sleep(Duration::from_millis(500));
    forget_peak(node);
    let quiet = memory(node, "VmRSS:");
    let members: Vec<WebSocket> = std::thread::scope(|scope| {
        let take = |number| scope.spawn(move || take_all(node, number, each));
        let taking: Vec<_> = (0..CONSUMERS).map(take).collect();
        taking.into_iter().map(|taking| taking.join().unwrap()).collect()
    });
    let taken = memory(node, "VmRSS:");
    let began = Instant::now();
    let still_there = give_up(members, each);
    wait_for(node, letters);
    let took = began.elapsed();
    let peak = memory(node, "VmHWM:");
    let waits = bystanders.finish();
    println!("{letters} dead letters of {CONSUMERS} consumers in {took:?}");
    println!("bystanders: {}", waits[0]);
    println!("memory: quiet {}, all in flight {}, at most {}", mib(quiet), mib(taken), mib(peak));
    // Two causes, told apart: what is in flight, and the letters that are made of it.
    let each_bytes = taken.saturating_sub(quiet) / letters as u64;
    let more = mib(peak.saturating_sub(taken));
    println!("  {each_bytes} bytes of a message in flight; {more} for the letters");
    let growth = peak.saturating_sub(taken);
    // The tails of the stream and of its dead letters, and what the members' connections hold.
    let documented = 2 * MAX_TAIL_BYTES + CONSUMERS * MAX_CONNECTION_DELIVERIES_BYTES;
    let in_flight = taken.saturating_sub(quiet);
    let bound = documented as u64 + IN_FLIGHT_BYTES_MAX * letters as u64;
    println!(
        "  in flight {} of {}, {} of it documented",
        mib(in_flight),
        mib(bound),
        mib(documented as u64)
    );
    check_each(node, each);
    assert_eq!(count(node), letters as u64, "there are dead letters that nobody's message became");
    check_consumers(node, each);
    drop(still_there);
    assert!(in_flight <= bound, "{} of {}", mib(in_flight), mib(bound));
    assert!(growth <= GROWTH_BYTES_MAX, "{}", mib(growth));
    let wait_ms = waits[0].part(0.999).as_secs_f64() * 1e3;
    demand("p99.9 of bystanders in ms", wait_ms, BYSTANDERS_WAIT_MS_MAX);
}

/// A member that has all messages in flight.
fn take_all(node: &Node, number: usize, each: usize) -> WebSocket {
    let query = format!(
        "stream=work&consumer=c{number}&max_attempts=1&max_in_flight={each}&batch=1024\
         &ack_wait_ms=3600000"
    );
    let mut socket = WebSocket::open(&node.address, &query).unwrap();
    socket.send(&format!("{{\"credit\":{each}}}")).unwrap();
    let mut taken = 0;
    while taken < each {
        let Frame::Text(frame) = socket.next(PATIENCE).unwrap() else {
            panic!("consumer {number} has {taken} of {each} messages, and no more come");
        };
        taken += frame.matches("{\"deliver\":").count();
    }
    assert_eq!(taken, each);
    socket
}

/// Every second member hangs up, the others say that they cannot do any of it. Those are returned.
fn give_up(members: Vec<WebSocket>, each: usize) -> Vec<WebSocket> {
    let mut still_there = Vec::new();
    for (number, mut member) in members.into_iter().enumerate() {
        if number % 2 == 0 {
            member.send(&format!("{{\"nack\":{{\"from\":0,\"to\":{}}}}}", each - 1)).unwrap();
            still_there.push(member);
        }
    }
    still_there
}

/// How many dead letters there are.
fn count(node: &Node) -> u64 {
    let reply = node.http().call("GET", "/v1/streams/dead/work", "").unwrap();
    if reply.status == 404 { 0 } else { json::number(&reply.body, "count") }
}

/// Waits until there are so many; a hub that makes none for `PATIENCE` hangs.
fn wait_for(node: &Node, letters: usize) {
    let (mut last, mut moved) = (0, Instant::now());
    while last < letters as u64 {
        std::thread::sleep(Duration::from_millis(50));
        let now = count(node);
        if now > last {
            (last, moved) = (now, Instant::now());
        }
        assert!(moved.elapsed() < PATIENCE, "{last} of {letters} letters, and no more come");
    }
}

/// The consumers are done with everything, by dead letters.
fn check_consumers(node: &Node, each: usize) {
    let reply = node.http().call("GET", "/v1/streams/work", "").unwrap();
    let mut done = 0;
    for consumer in json::elements(json::raw(&reply.body, "consumers")) {
        assert_eq!(json::number(consumer, "inFlight"), 0, "{consumer}");
        assert_eq!(json::number(consumer, "deadLettered"), each as u64, "{consumer}");
        done += 1;
    }
    assert_eq!(done, CONSUMERS);
}

/// Every message has one dead letter of each consumer.
fn check_each(node: &Node, each: usize) {
    let query = "stream=dead/work&from=first&batch=1024";
    let mut socket = WebSocket::open(&node.address, query).unwrap();
    socket.send("{\"credit\":4294967296}").unwrap();
    let mut seen = vec![vec![false; each]; CONSUMERS];
    let mut read = 0;
    while read < each * CONSUMERS {
        let Frame::Text(frame) = socket.next(PATIENCE).unwrap() else {
            panic!("{read} of {} letters could be read", each * CONSUMERS);
        };
        for letter in frame.split("\"type\":\"dead-letter\"").skip(1) {
            let consumer = behind(letter, "\"consumer\":\"c") as usize;
            let offset = behind(letter, "\"offset\":") as usize;
            let before = std::mem::replace(&mut seen[consumer][offset], true);
            assert!(!before, "c{consumer} has two dead letters of offset {offset}");
            read += 1;
        }
    }
}
