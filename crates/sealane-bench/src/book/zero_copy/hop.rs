//! The whole hop, of which the report measures the rewrite alone: received, rewritten, sent. A
//! relay of the product stands beside a loop that looks at nothing, over links in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealane_frame::RELAY_BYTES;
use sealane_link::{
    Config, LinkAddress, LinkConfig, LinkInbox, LinkReady, LinkRelay, LinkWire, MemoryNet,
    RelayCard, RelayLink,
};

use super::super::{BookRow, BookTable};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, FigureSpread, MeasurePlan, process_cpu_ns};
use crate::members;

/// Where a frame says who put it on the link: `spec/frame.md`.
const PREVIOUS_HOP: std::ops::Range<usize> = 8..16;
/// Frames that go together, and how many times that are on the way at once.
const BATCHES: [usize; 2] = [1, 32];
const IN_FLIGHT: usize = 8;
/// Ports of the car, the forwarder and the gateway.
const CAR: u32 = 1;
const OWN: u32 = 2;
const GATEWAY: u32 = 3;
/// A quota that no link of this machine comes near to.
const ANY_RATE: u32 = u32::MAX;
/// Wide enough for the largest frame here.
const MTU: u16 = 2000;
/// After so long without a frame the forwarder is broken.
const PATIENCE: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(20);

pub(super) fn table(plan: &MeasurePlan, payloads: &[usize]) -> Result<BookTable> {
    let mut rows = vec![];
    for payload in payloads {
        for batch in BATCHES {
            let [bare, ours] = compare(plan, &frame(*payload)?, batch)?;
            let together = if batch == 1 { "one by one" } else { "32 at once" };
            let row =
                BookRow::new(format!("{payload} B, {together}")).baseline(BenchFigure::ns(bare));
            rows.push(row.sealane(BenchFigure::ns(ours)));
        }
    }
    let note = "CPU time of all threads for each frame, over links in memory, with what brings and \
                takes them. Baseline: 17 bytes overwritten without a look. Sealane: its relay, \
                with checks, table and counters; none was dropped. What the report left open is \
                done in it: the rewrite is part of the relay, its buffers are made once, frames go \
                in batches, and none takes memory from the heap, however small (`cargo test \
                -p sealane-link --lib nothing_is_allocated`).";
    Ok(BookTable::new("The hop: received, rewritten, sent", note, rows))
}

/// A frame as the car sends it.
fn frame(payload: usize) -> Result<Vec<u8>> {
    let mut frame = super::sealed(&vec![8; payload])?;
    if let Some(previous) = frame.get_mut(PREVIOUS_HOP) {
        previous.copy_from_slice(&members::SENDER.to_bytes());
    }
    Ok(frame)
}

/// Nanoseconds of a frame over a loop that looks at nothing, and over a relay, in turns.
fn compare(plan: &MeasurePlan, frame: &[u8], batch: usize) -> Result<[f64; 2]> {
    let mut stands = [HopTestbed::bare()?, HopTestbed::relay()?];
    let mut costs = [vec![], vec![]];
    for round in 0..plan.warm_up + plan.rounds {
        for (stand, costs) in stands.iter_mut().zip(&mut costs) {
            let ns = stand.turn(frame, batch, plan.turn)?;
            if round >= plan.warm_up {
                costs.push(ns);
            }
        }
    }
    stands.into_iter().try_for_each(HopTestbed::end)?;
    Ok(costs.map(|mut all| FigureSpread::of(&mut all).median))
}

/// A forwarder between two links, which are ours.
struct HopTestbed {
    car: RelayLink,
    gateway: RelayLink,
    inbox: LinkInbox,
    forwarder: HopForwarder,
}

/// The program that passes frames on.
enum HopForwarder {
    Relay(LinkRelay),
    Bare { _thread: BareHopThread },
}

/// A thread that ends when this is dropped.
struct BareHopThread {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HopTestbed {
    fn of(net: &MemoryNet, forwarder: HopForwarder) -> Result<Self> {
        let [car, gateway] = [CAR, GATEWAY].map(|port| link(net, port));
        Ok(Self { car: car?, gateway: gateway?, inbox: LinkInbox::new(), forwarder })
    }

    fn bare() -> Result<Self> {
        let net = MemoryNet::new();
        let own = link(&net, OWN)?;
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stops);
        let thread = Some(std::thread::spawn(move || pass(&own, &stopped)));
        Self::of(&net, HopForwarder::Bare { _thread: BareHopThread { stops, thread } })
    }

    fn relay() -> Result<Self> {
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
        let card = RelayCard::parse(&members::relay_card())?;
        let mut config = Config::parse(&text)?;
        config.memory = Some(net.clone());
        let relay = LinkRelay::start(&config, &[card])?;
        Self::of(&net, HopForwarder::Relay(relay))
    }

    /// Nanoseconds of CPU that a frame took, of those of a while.
    fn turn(&mut self, frame: &[u8], batch: usize, length: Duration) -> Result<f64> {
        let together = frame.repeat(batch);
        let (began, before, mut frames) = (Instant::now(), process_cpu_ns(), 0);
        // At least once, however short a while is.
        while frames == 0 || began.elapsed() < length {
            for _ in 0..IN_FLIGHT {
                let sent = self.car.send(LinkAddress::Memory(OWN), &together, frame.len());
                if sent.bytes < together.len() {
                    return Err(BenchFailure::broken("a link in memory is full"));
                }
            }
            self.take(frame.len(), batch * IN_FLIGHT)?;
            frames += batch * IN_FLIGHT;
        }
        Ok((process_cpu_ns() - before) / frames as f64)
    }

    /// Ends it. A relay has dropped nothing.
    fn end(self) -> Result<()> {
        let dropped = match self.forwarder {
            HopForwarder::Relay(relay) => relay.stop().dropped_in_all(),
            HopForwarder::Bare { .. } => 0,
        };
        if dropped == 0 { Ok(()) } else { Err(BenchFailure::broken("relaying without a drop")) }
    }

    /// Takes so many frames, and has seen that they are the ones.
    fn take(&mut self, frame_bytes: usize, mut count: usize) -> Result<()> {
        let lost = || BenchFailure::broken("a frame that was to be relayed was lost");
        while count > 0 {
            if !self.gateway.wait(LinkReady::ToReceive, PATIENCE).unwrap_or(false) {
                return Err(lost());
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

impl Drop for BareHopThread {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        // One that panicked has said so.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn link(net: &MemoryNet, port: u32) -> Result<RelayLink> {
    let config = LinkConfig::new("own", LinkWire::Memory(port), MTU);
    Ok(RelayLink::open(&config, Some(net))?)
}

/// Receives, writes what a relay writes, and sends.
fn pass(own: &RelayLink, stops: &AtomicBool) {
    let mut inbox = LinkInbox::new();
    while !stops.load(Ordering::Relaxed) {
        if !own.wait(LinkReady::ToReceive, TURN).unwrap_or(false) {
            continue;
        }
        let Ok(count) = own.receive(&mut inbox) else { continue };
        for (arrived, segments) in inbox.batches(count) {
            for frame in segments.chunks_mut(arrived.segment_bytes) {
                if let Some(hop) = frame.get_mut(..RELAY_BYTES) {
                    hop.fill(0xb1);
                }
            }
            // A frame that is not sent is missed at the other end.
            let _ = own.send(LinkAddress::Memory(GATEWAY), segments, arrived.segment_bytes);
        }
    }
}
