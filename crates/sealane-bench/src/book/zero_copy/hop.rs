//! The whole hop, of which the report measures the rewrite alone: received, rewritten, sent. A
//! relay of the product stands beside a loop that looks at nothing, over links in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealane_frame::RELAY_BYTES;
use sealane_link::{
    Address, Config, Inbox, Link, LinkConfig, LinkError, MemoryNet, Ready, Relay, RelayCard, Wire,
};

use super::super::{Error, Row, Table};
use crate::measure::{Figure, Plan, Spread, process_cpu_ns};
use crate::members;

/// Frames of a batch, and batches of a turn that are on the way at once.
const BATCH: usize = 32;
const IN_FLIGHT: usize = 8;
/// Ports of the car, the forwarder and the gateway.
const CAR: u32 = 1;
const OWN: u32 = 2;
const GATEWAY: u32 = 3;
/// A quota that no link of this machine comes near to.
const ANY_RATE: u32 = u32::MAX;
/// After so long without a frame the forwarder is broken.
const PATIENCE: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(20);

pub(super) fn table(plan: &Plan, payloads: &[usize]) -> Result<Table, Error> {
    let mut rows = vec![];
    for payload in payloads {
        let frame = super::sealed(&vec![8; *payload])?;
        let stands = [Stand::bare(), Stand::relay()];
        let mut stands = stands.into_iter().collect::<Result<Vec<_>, _>>().map_err(broken)?;
        let mut costs = [vec![], vec![]];
        for round in 0..plan.warm_up + plan.rounds {
            for (stand, costs) in stands.iter_mut().zip(&mut costs) {
                let ns = stand.turn(&frame, plan.turn)?;
                if round >= plan.warm_up {
                    costs.push(ns);
                }
            }
        }
        let [bare, ours] = costs.map(|mut all| Spread::of(&mut all).median);
        let row = Row::new(format!("{payload} B")).baseline(Figure::ns(bare));
        rows.push(row.sealane(Figure::ns(ours)));
    }
    let note = format!(
        "CPU time of all threads for each frame, in batches of {BATCH} over links in memory, with \
         what brings and takes them. Baseline: 17 bytes overwritten without a look. Sealane: its \
         relay, with checks, table and counters. What the report left open is done in it: the \
         relay is integrated, its buffers are made once, frames go in batches, and no frame takes \
         memory from the heap."
    );
    Ok(Table { title: "The hop: received, rewritten, sent".into(), note, rows })
}

fn broken(_: LinkError) -> Error {
    Error::Broken("a relay in memory")
}

/// A forwarder between two links, which are ours.
struct Stand {
    car: Link,
    gateway: Link,
    inbox: Inbox,
    _forwarder: Forwarder,
}

/// It ends when it is dropped.
enum Forwarder {
    Relay { _relay: Relay },
    Bare { stops: Arc<AtomicBool>, thread: Option<JoinHandle<()>> },
}

impl Stand {
    fn of(net: &MemoryNet, forwarder: Forwarder) -> Result<Self, LinkError> {
        let [car, gateway] = [CAR, GATEWAY].map(|port| link(net, port));
        Ok(Self { car: car?, gateway: gateway?, inbox: Inbox::new(), _forwarder: forwarder })
    }

    fn bare() -> Result<Self, LinkError> {
        let net = MemoryNet::new();
        let own = link(&net, OWN)?;
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stops);
        let thread = Some(std::thread::spawn(move || pass(&own, &stopped)));
        Self::of(&net, Forwarder::Bare { stops, thread })
    }

    fn relay() -> Result<Self, LinkError> {
        let net = MemoryNet::new();
        let neighbour = |slot: u8, port: u32| {
            format!(
                "[[neighbour]]\nname = \"{slot}\"\ntag = \"slot {slot}\"\nlink = \"l\"\n\
                 address = \"memory {port}\"\nframes_per_second = {ANY_RATE}\n\
                 [[route]]\nto = \"slot {slot}\"\nvia = \"{slot}\"\n"
            )
        };
        let text = format!(
            "version = 1\ntag = \"{}\"\n[[link]]\nname = \"l\"\nmemory = {OWN}\n\
             mtu = {MTU}\n{}{}",
            members::RELAY,
            neighbour(1, CAR),
            neighbour(0, GATEWAY)
        );
        let card = RelayCard::parse(&format!(
            "version = 1\ngroup = \"{}\"\nepoch = 0\n[members]\n0 = \"{}\"\n1 = \"{}\"\n",
            members::GROUP,
            members::READER,
            members::SENDER
        ))?;
        let mut config = Config::parse(&text)?;
        config.memory = Some(net.clone());
        let relay = Relay::start(&config, &[card])?;
        Self::of(&net, Forwarder::Relay { _relay: relay })
    }

    /// Nanoseconds of CPU that a frame took, of those of a while.
    fn turn(&mut self, frame: &[u8], length: Duration) -> Result<f64, Error> {
        let batch = frame.repeat(BATCH);
        let (began, before, mut frames) = (Instant::now(), process_cpu_ns(), 0);
        while began.elapsed() < length {
            for _ in 0..IN_FLIGHT {
                let sent = self.car.send(Address::Memory(OWN), &batch, frame.len());
                if sent.bytes < batch.len() {
                    return Err(Error::Broken("a link in memory is full"));
                }
            }
            self.take(frame.len(), BATCH * IN_FLIGHT)?;
            frames += BATCH * IN_FLIGHT;
        }
        Ok((process_cpu_ns() - before) / frames as f64)
    }

    /// Takes so many frames, and has seen that they are the ones.
    fn take(&mut self, frame_bytes: usize, mut count: usize) -> Result<(), Error> {
        let lost = Error::Broken("a frame that was to be relayed was lost");
        while count > 0 {
            if !self.gateway.wait(Ready::ToReceive, PATIENCE).unwrap_or(false) {
                return Err(lost);
            }
            let Ok(batches) = self.gateway.receive(&mut self.inbox) else { continue };
            for (arrived, segments) in self.inbox.batches(batches) {
                // The relay's notes are shorter.
                if arrived.segment_bytes == frame_bytes {
                    count = count.saturating_sub(segments.len() / frame_bytes);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        if let Forwarder::Bare { stops, thread } = self {
            stops.store(true, Ordering::Relaxed);
            // One that panicked has said so.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

fn link(net: &MemoryNet, port: u32) -> Result<Link, LinkError> {
    let config = LinkConfig { name: "own".to_owned(), wire: Wire::Memory(port), mtu: MTU };
    Link::open(&config, Some(net))
}

/// Receives, writes what a relay writes, and sends.
fn pass(own: &Link, stops: &AtomicBool) {
    let mut inbox = Inbox::new();
    while !stops.load(Ordering::Relaxed) {
        if !own.wait(Ready::ToReceive, TURN).unwrap_or(false) {
            continue;
        }
        let Ok(count) = own.receive(&mut inbox) else { continue };
        for (arrived, segments) in inbox.batches(count) {
            for frame in segments.chunks_mut(arrived.segment_bytes) {
                if let Some(hop) = frame.get_mut(..RELAY_BYTES) {
                    hop.fill(0xb1);
                }
            }
            // What does not go is missed at the other end.
            let _ = own.send(Address::Memory(GATEWAY), segments, arrived.segment_bytes);
        }
    }
}

/// Wide enough for the largest frame here, with a UDP header, which does not count in memory.
const MTU: u16 = 2000;
