//! Buffers that links fill: each a batch of segments of one sender.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr};

use crate::address::LinkAddress;

/// Room for several batches. It allocates when it is made and never again.
#[derive(Debug)]
pub struct LinkInbox {
    pub(crate) buffers: [Box<[u8]>; BATCHES],
    pub(crate) batches: [ArrivedBatch; BATCHES],
}

/// Where the segments of a batch lie, and who sent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivedBatch {
    /// The sender's address.
    pub from: LinkAddress,
    /// The bytes of all segments.
    pub bytes: usize,
    /// The bytes of each segment but the last, which may be shorter. At least 1.
    pub segment_bytes: usize,
}

/// How many batches are taken by one call.
pub(crate) const BATCHES: usize = 8;
/// Bytes of a batch, at most: what the kernel gives at once.
pub(crate) const BATCH_BYTES: usize = 1 << 16;

impl LinkInbox {
    /// An empty one.
    pub fn new() -> Self {
        let nobody = LinkAddress::Udp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        let nothing = ArrivedBatch { from: nobody, bytes: 0, segment_bytes: 1 };
        Self {
            // The buffers are made once for the life of a thread. The data path then allocates
            // nothing.
            buffers: std::array::from_fn(|_| vec![0; BATCH_BYTES].into_boxed_slice()),
            batches: [nothing; BATCHES],
        }
    }

    /// The buffers to fill.
    pub(crate) fn slices(&mut self) -> [IoSliceMut<'_>; BATCHES] {
        self.buffers.each_mut().map(|buffer| IoSliceMut::new(buffer))
    }

    /// Says what was filled.
    pub(crate) fn fill(&mut self, index: usize, arrived: ArrivedBatch) {
        if let Some(batch) = self.batches.get_mut(index) {
            *batch = arrived;
        }
    }

    /// The first `count` batches, each with its segments where they came.
    pub fn batches(&mut self, count: usize) -> impl Iterator<Item = (ArrivedBatch, &mut [u8])> {
        let filled = self.batches.iter().zip(&mut self.buffers).take(count);
        filled.map(|(arrived, buffer)| {
            (*arrived, buffer.get_mut(..arrived.bytes).unwrap_or_default())
        })
    }
}

impl Default for LinkInbox {
    fn default() -> Self {
        Self::new()
    }
}
