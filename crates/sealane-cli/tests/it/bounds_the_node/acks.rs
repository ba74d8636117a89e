//! Consumers with much in flight that acknowledge a little of it all the time.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::figures::{ids, metric, mib, written};
use super::stage::{PATIENCE, Stage};
use crate::durable::node::Node;
use crate::durable::random::{Random, seed};
use crate::durable::websocket::{Frame, WebSocket};

const STREAMS: usize = 4;
const CONSUMERS: usize = 40;

/// Acknowledgements that all consumers together send in a second.
const RATE: usize = 2000;

/// Until the measurement begins.
const WARM_UP: Duration = Duration::from_millis(500);

/// From so many in flight on, the bytes of a second have a bound.
const FULL_SCALE: usize = 65_536;
const SECOND_BYTES_MAX: f64 = 2e6;

/// At every scale the bytes of an acknowledgement have one.
const ACK_BYTES_MAX: u64 = 4096;

const ACKED: &str = "sealane_stream_acked_total";

pub(crate) fn run(in_flight: usize, seconds: usize) {
    // All of them together have `in_flight`, or a few more.
    let each = in_flight.div_ceil(CONSUMERS);
    let stage = Stage::set("disk");
    let node = &stage.node;
    let steady = Duration::from_secs(seconds as u64);
    let lasts = WARM_UP + steady + WARM_UP;
    let acked = RATE / CONSUMERS * (lasts.as_secs() as usize + 2);
    (0..STREAMS).for_each(|number| stage.fill(&topic(number), each + acked, 100));
    let seed = seed();
    let all_have_theirs = Barrier::new(CONSUMERS + 1);
    let (sent, bytes, acks) = std::thread::scope(|scope| {
        let all_have_theirs = &all_have_theirs;
        let consume = |number| {
            scope.spawn(move || {
                let mut consumer = Consumer::open(node, number, each);
                consumer.random = Random::new(seed.wrapping_add(number as u64));
                consumer.take(each);
                all_have_theirs.wait();
                consumer.acknowledge(lasts)
            })
        };
        let consuming: Vec<_> = (0..CONSUMERS).map(consume).collect();
        all_have_theirs.wait();
        std::thread::sleep(WARM_UP);
        let (bytes, acks) = (written(node), metric(node, ACKED));
        std::thread::sleep(steady);
        let (bytes, acks) = (written(node) - bytes, metric(node, ACKED) - acks);
        let sent: u64 = consuming.into_iter().map(|consuming| consuming.join().unwrap()).sum();
        (sent, bytes, acks)
    });
    let a_second = bytes as f64 / steady.as_secs_f64();
    println!("{CONSUMERS} consumers with {} in flight, {steady:?}:", each * CONSUMERS);
    println!("  {acks} acknowledgements, {} written", mib(bytes));
    println!("  {} bytes an acknowledgement, {:.2} MB/s", bytes / acks.max(1), a_second / 1e6);
    assert_eq!(metric(node, ACKED), sent, "acknowledgements that ended a delivery");
    assert_eq!(metric(node, "sealane_stream_acked_in_vain_total"), 0);
    assert!(acks > 0 && bytes > 0, "{acks} acknowledgements, {bytes} bytes");
    assert!(bytes / acks <= ACK_BYTES_MAX, "{} bytes an acknowledgement", bytes / acks);
    assert!(in_flight < FULL_SCALE || a_second <= SECOND_BYTES_MAX, "{a_second} bytes a second");
}

fn topic(number: usize) -> String {
    format!("work/{}", number % STREAMS)
}

/// The only member of its consumer.
struct Consumer {
    socket: WebSocket,
    /// The messages that it has and did not acknowledge.
    held: Vec<String>,
    random: Random,
}

impl Consumer {
    fn open(node: &Node, number: usize, in_flight: usize) -> Self {
        let query = format!(
            "stream={}&consumer=c{number}&max_in_flight={in_flight}&batch=256\
             &ack_wait_ms=3600000",
            topic(number)
        );
        let mut socket = WebSocket::open(&node.address, &query).unwrap();
        socket.send("{\"credit\":1000000}").unwrap();
        Self { socket, held: Vec::new(), random: Random::new(number as u64) }
    }

    /// Takes messages until it has so many.
    fn take(&mut self, count: usize) {
        while self.held.len() < count {
            let held = self.held.len();
            assert!(self.hear(PATIENCE).is_some(), "{held} of {count} messages, no more come");
        }
    }

    /// Takes the messages of the next frame; none where it does not come in time.
    fn hear(&mut self, patience: Duration) -> Option<()> {
        let Frame::Text(frame) = self.socket.next(patience).unwrap() else { return None };
        self.held.extend(ids(&frame).map(str::to_owned));
        Some(())
    }

    /// Acknowledges any of what it has, one at a time at its part of the rate, and says how many.
    fn acknowledge(mut self, lasts: Duration) -> u64 {
        let (began, every) = (Instant::now(), Duration::from_secs(CONSUMERS as u64) / RATE as u32);
        let mut acked = 0_u64;
        while began.elapsed() < lasts {
            let next = every * (acked as u32 + 1);
            while let Some(left) = next.checked_sub(began.elapsed()).filter(|left| !left.is_zero())
            {
                self.hear(left);
            }
            // Out of order, so that what is in flight has holes everywhere.
            let any = self.random.within(0..self.held.len() as u64) as usize;
            let id = self.held.swap_remove(any);
            self.socket.send(&format!("{{\"ack\":\"{id}\"}}")).unwrap();
            acked += 1;
        }
        self.socket.ping(acked).unwrap();
        loop {
            match self.socket.next(PATIENCE).unwrap() {
                Frame::Text(_) => {}
                Frame::Pong(number) => return number,
                Frame::Silence => panic!("the hub does not take {acked} acknowledgements"),
            }
        }
    }
}
