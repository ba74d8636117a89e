//! Links within a process: for tests, simulations and the demo.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::address::LinkAddress;
use crate::inbox::{ArrivedBatch, BATCH_BYTES, BATCHES, LinkInbox};
use crate::limits::MAX_MEMORY_BATCHES;
use crate::link::{LinkReady, SentBytes};

/// Links of one process that reach each other by the numbers of their ports.
#[derive(Debug, Clone, Default)]
pub struct MemoryNet {
    ports: Arc<Mutex<HashMap<u32, Arc<MemoryPort>>>>,
}

/// One end of a link in memory. Its number is free again when it is dropped.
#[derive(Debug)]
pub struct MemoryLink {
    net: MemoryNet,
    number: u32,
    port: Arc<MemoryPort>,
    unit_bytes: usize,
}

/// The batches that wait for a link.
#[derive(Debug)]
struct MemoryPort {
    waiting: Mutex<MemoryQueue>,
    came: Condvar,
}

/// Batches in the order in which they came. Their buffers are made once and change places with
/// those of an inbox, so that nothing is copied on the way in.
#[derive(Debug)]
struct MemoryQueue {
    batches: Box<[MemoryBatch]>,
    first: usize,
    count: usize,
}

#[derive(Debug)]
struct MemoryBatch {
    arrived: ArrivedBatch,
    buffer: Box<[u8]>,
}

/// Ports that a unit for everybody reaches: those of one number without its last two digits.
const EVERYBODY: u32 = 100;

impl MemoryNet {
    /// One without links.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn open(&self, number: u32, unit_bytes: usize) -> io::Result<MemoryLink> {
        let nothing =
            ArrivedBatch { from: LinkAddress::Memory(number), bytes: 0, segment_bytes: 1 };
        let batch = |_| MemoryBatch { arrived: nothing, buffer: vec![0; BATCH_BYTES].into() };
        let batches = (0..MAX_MEMORY_BATCHES).map(batch).collect();
        let waiting = Mutex::new(MemoryQueue { batches, first: 0, count: 0 });
        let port = Arc::new(MemoryPort { waiting, came: Condvar::new() });
        let mut ports = self.ports.lock();
        if ports.contains_key(&number) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        ports.insert(number, Arc::clone(&port));
        drop(ports);
        Ok(MemoryLink { net: self.clone(), number, port, unit_bytes })
    }
}

impl MemoryLink {
    pub(crate) fn receive(&self, inbox: &mut LinkInbox) -> io::Result<usize> {
        let mut waiting = self.port.waiting.lock();
        let mut count = 0;
        while count < BATCHES {
            let Some(batch) = waiting.take() else { break };
            if let Some(buffer) = inbox.buffers.get_mut(count) {
                // The buffers change places: a link in memory copies once, as a kernel does, and
                // not twice.
                std::mem::swap(buffer, &mut batch.buffer);
            }
            inbox.fill(count, batch.arrived);
            count += 1;
        }
        if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    /// A batch for a port that no link has is lost, as on any wire.
    pub(crate) fn send(&self, to: u32, segments: &[u8], segment_bytes: usize) -> SentBytes {
        // The lock of all ports is held for the look-up alone, or one busy port would slow all
        // others.
        let port = self.net.ports.lock().get(&to).map(Arc::clone);
        let Some(port) = port else { return SentBytes { bytes: segments.len(), stopped: None } };
        let segment_bytes = segment_bytes.max(1);
        let at_once = (BATCH_BYTES / segment_bytes).max(1) * segment_bytes;
        let mut bytes = 0;
        let mut waiting = port.waiting.lock();
        // If the port fills up in between, the caller learns how much has gone: no unit goes twice.
        for part in segments.chunks(at_once) {
            let from = LinkAddress::Memory(self.number);
            if !waiting.put(ArrivedBatch { from, bytes: part.len(), segment_bytes }, part) {
                return SentBytes { bytes, stopped: Some(io::ErrorKind::WouldBlock.into()) };
            }
            bytes += part.len();
        }
        drop(waiting);
        port.came.notify_one();
        SentBytes { bytes, stopped: None }
    }

    /// Sends a unit to all other ports of its hundred.
    pub(crate) fn send_all(&self, unit: &[u8]) -> SentBytes {
        let is_near =
            |port: &u32| *port != self.number && port / EVERYBODY == self.number / EVERYBODY;
        let ports = self.net.ports.lock();
        let others: Vec<u32> = ports.keys().copied().filter(is_near).collect();
        drop(ports);
        // The ports are unlocked before anything is sent, because `send` locks them again.
        others.into_iter().for_each(|port| drop(self.send(port, unit, unit.len())));
        SentBytes { bytes: unit.len(), stopped: None }
    }

    pub(crate) fn unit_bytes(&self) -> usize {
        self.unit_bytes
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// A port that is full is not waited for: whoever empties it may be the same thread.
    pub(crate) fn wait(&self, ready: LinkReady, patience: Duration) -> bool {
        let mut waiting = self.port.waiting.lock();
        if ready == LinkReady::ToReceive {
            // Another thread may have taken the announced batch by then.
            let is_empty = |waiting: &mut MemoryQueue| waiting.count == 0;
            self.port.came.wait_while_for(&mut waiting, is_empty, patience);
        }
        ready == LinkReady::ToReceive && waiting.count > 0
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        self.net.ports.lock().remove(&self.number);
    }
}

impl MemoryQueue {
    /// The oldest batch, of which the place is free from now on.
    fn take(&mut self) -> Option<&mut MemoryBatch> {
        self.count = self.count.checked_sub(1)?;
        let at = self.first;
        self.first = (self.first + 1) % self.batches.len().max(1);
        self.batches.get_mut(at)
    }

    /// Takes a batch at the end, if there is room.
    fn put(&mut self, arrived: ArrivedBatch, segments: &[u8]) -> bool {
        let at = (self.first + self.count) % self.batches.len().max(1);
        let free = self.batches.get_mut(at).filter(|_| self.count < MAX_MEMORY_BATCHES);
        let Some(batch) = free else { return false };
        let Some(room) = batch.buffer.get_mut(..segments.len()) else { return false };
        room.copy_from_slice(segments);
        batch.arrived = arrived;
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_is_not_ended_by_word_of_what_is_taken_already() {
        let net = MemoryNet::new();
        let (one, two) = (net.open(1, 1500).unwrap(), net.open(2, 1500).unwrap());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| two.wait(LinkReady::ToReceive, Duration::from_secs(60)));
            // Word of a batch that is gone, once it waits, and once it waits again.
            for _ in 0..2 {
                while !two.port.came.notify_one() && !waits.is_finished() {
                    std::thread::yield_now();
                }
            }
            assert!(one.send(2, &[1], 1).stopped.is_none());
            assert!(waits.join().unwrap());
        });
    }

    #[test]
    fn batches_come_in_order_and_a_full_port_takes_no_more() {
        let net = MemoryNet::new();
        let (one, two) = (net.open(1, 1500).unwrap(), net.open(2, 1500).unwrap());
        assert_eq!(net.open(1, 1500).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let mut inbox = LinkInbox::new();
        let empty = two.receive(&mut inbox).unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        assert!(!two.wait(LinkReady::ToReceive, Duration::ZERO));
        let (mut sent, mut got) = (0_u8, 0_u8);
        for _ in 0..3 {
            while one.send(2, &[sent; 10], 4).stopped.is_none() {
                sent += 1;
            }
            assert_eq!(usize::from(sent - got), MAX_MEMORY_BATCHES);
            assert!(two.wait(LinkReady::ToReceive, Duration::ZERO));
            let count = two.receive(&mut inbox).unwrap();
            assert_eq!(count, BATCHES);
            for (arrived, segments) in inbox.batches(count) {
                let from = LinkAddress::Memory(1);
                assert_eq!(arrived, ArrivedBatch { from, bytes: 10, segment_bytes: 4 });
                assert_eq!(segments, [got; 10]);
                got += 1;
            }
        }
    }

    #[test]
    fn more_than_a_batch_goes_in_several_and_only_whole_segments() {
        let net = MemoryNet::new();
        let (one, two) = (net.open(1, 1500).unwrap(), net.open(2, 1500).unwrap());
        let segments: Vec<u8> = (0..150_000_u32).map(|n| (n / 1000) as u8).collect();
        assert!(one.send(2, &segments, 1000).stopped.is_none());
        let mut inbox = LinkInbox::new();
        let count = two.receive(&mut inbox).unwrap();
        let got: Vec<usize> = inbox.batches(count).map(|(arrived, _)| arrived.bytes).collect();
        assert_eq!(got, [65_000, 65_000, 20_000]);
        drop(two);
        assert_eq!(one.send(2, &segments, 1000).bytes, segments.len(), "nobody is there");
        assert!(net.open(2, 1500).is_ok());
    }
}
