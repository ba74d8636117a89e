//! Frames put together from their parts, within bounds.

use crate::fragment::FragmentLayout;
use crate::limits::{
    MAX_PARTIAL_AGE_MS, MAX_PARTIAL_BYTES, MAX_PARTIAL_FRAMES, MAX_PARTIAL_PEERS,
    MAX_PARTIAL_TOTAL_BYTES,
};
use crate::{Fragment, FrameError, PeerTag};

/// Puts frames together from their parts, in whatever order they come.
///
/// Bounds hold per peer in frames and bytes, in peers, in bytes of all peers, and in age.
/// Everything that a bound pushes out is counted. A whole frame is not yet to be trusted: it
/// authenticates when it is opened. Buffers are used again, so that this type allocates nothing
/// once warm.
#[derive(Debug)]
pub struct Reassembly {
    peers: Vec<ReassemblyPeer>,
    spare: Spare,
    /// The frame that was completed last.
    whole: Vec<u8>,
    losses: Losses,
    room_bytes: usize,
    /// Bytes that the incomplete frames of all peers take, at most.
    held_bytes: usize,
}

/// The outcome for a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum ReassemblyProgress<'a> {
    /// More are needed.
    Waiting,
    /// The same part had come before.
    Repeated,
    /// It was the last one missing: the frame, until the next call.
    Whole(&'a mut [u8]),
}

/// Incomplete frames that were given up, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Parts were still missing after [`MAX_PARTIAL_AGE_MS`].
    pub expired: u64,
    /// The same peer began newer frames, beyond [`MAX_PARTIAL_FRAMES`] or [`MAX_PARTIAL_BYTES`],
    /// or all peers together did, and it had the most bytes.
    pub crowded_out: u64,
}

impl Reassembly {
    /// Without any frame, and with room for [`MAX_PARTIAL_TOTAL_BYTES`].
    pub fn new() -> Self {
        Self::within(MAX_PARTIAL_TOTAL_BYTES)
    }

    /// Without any frame, and with room for so many bytes of incomplete frames. Beside them it
    /// holds the frame that was completed last, and buffers of a quarter of that at most.
    pub fn within(room_bytes: usize) -> Self {
        let spare = Spare { partials: Vec::new(), bytes: 0, room_bytes: room_bytes / 4 };
        let (losses, whole) = (Losses::default(), Vec::new());
        Self { peers: Vec::new(), spare, whole, losses, room_bytes, held_bytes: 0 }
    }

    /// Takes a fragment that came from the neighbour `peer`.
    ///
    /// # Errors
    ///
    /// [`FrameError::MixedFragments`] when it belongs to another frame of the same id,
    /// [`FrameError::FragmentConflict`] when its part had come with other bytes,
    /// [`FrameError::TooManyPeers`], and [`FrameError::NoRoom`] for a frame that is longer than
    /// all the room. What was gathered stays as it was.
    pub fn push(
        &mut self,
        peer: PeerTag,
        now_ms: u64,
        fragment: &Fragment<'_>,
    ) -> Result<ReassemblyProgress<'_>, FrameError> {
        let layout = fragment.layout()?;
        if layout.frame_bytes > self.room_bytes {
            return Err(FrameError::NoRoom);
        }
        self.expire(now_ms, |_, _| ());
        let peer = self.place(peer)?;
        let index = match self.peers.get(peer).and_then(|own| own.find(fragment.id)) {
            Some(index) => index,
            None => self.begin(peer, now_ms, fragment.id, layout),
        };
        debug_assert!(self.is_bounded());
        let own = self.peers.get_mut(peer).ok_or(FrameError::TooManyPeers)?;
        let partial = own.partials.get_mut(index).ok_or(FrameError::BadFragment)?;
        if !partial.add(layout, fragment.part())? {
            return Ok(ReassemblyProgress::Repeated);
        }
        debug_assert!(partial.holds_together());
        if partial.missing > 0 {
            return Ok(ReassemblyProgress::Waiting);
        }
        debug_assert_eq!(partial.bytes.len(), partial.frame_bytes, "a whole frame has all bytes");
        std::mem::swap(&mut self.whole, &mut partial.bytes);
        self.give_up(peer, index);
        Ok(ReassemblyProgress::Whole(&mut self.whole))
    }

    /// The place of a peer: its own, one that nobody needs, or a new one.
    fn place(&mut self, tag: PeerTag) -> Result<usize, FrameError> {
        let peers = &mut self.peers;
        let own = peers.iter().position(|peer| peer.tag == tag);
        let free = own.or_else(|| peers.iter().position(|peer| peer.partials.is_empty()));
        let index = match free {
            Some(index) => index,
            None if peers.len() == MAX_PARTIAL_PEERS => return Err(FrameError::TooManyPeers),
            None => {
                peers
                    .push(ReassemblyPeer { tag, partials: Vec::with_capacity(MAX_PARTIAL_FRAMES) });
                peers.len() - 1
            }
        };
        peers.get_mut(index).ok_or(FrameError::TooManyPeers)?.tag = tag;
        Ok(index)
    }

    /// Makes room for another frame of a peer and begins it.
    fn begin(&mut self, peer: usize, now_ms: u64, id: u16, layout: FragmentLayout) -> usize {
        let crowded = |own: &ReassemblyPeer| own.is_crowded_by(layout.frame_bytes);
        while self.peers.get(peer).is_some_and(crowded) {
            self.crowd_out(peer);
        }
        let mut partial = self.spare.take();
        partial.begin(now_ms, id, layout);
        // The peer that holds the most makes room, so that no peer takes the room of those with
        // less.
        while self.held_bytes + partial.held_bytes > self.room_bytes && self.held_bytes > 0 {
            let greatest = (0..self.peers.len())
                .max_by_key(|&index| self.peers.get(index).map_or(0, ReassemblyPeer::held_bytes));
            self.crowd_out(greatest.unwrap_or(peer));
        }
        self.held_bytes += partial.held_bytes;
        let Some(own) = self.peers.get_mut(peer) else { return 0 };
        own.partials.push(partial);
        own.partials.len() - 1
    }

    fn crowd_out(&mut self, peer: usize) {
        self.give_up(peer, 0);
        self.losses.crowded_out += 1;
    }

    /// Removes a frame and keeps its buffers for a later one, if there are not enough of them.
    fn give_up(&mut self, peer: usize, index: usize) {
        let Some(own) = self.peers.get_mut(peer) else { return };
        if index < own.partials.len() {
            let partial = own.partials.remove(index);
            self.held_bytes -= partial.held_bytes;
            self.spare.keep(partial);
        }
    }

    /// Whether all frames are within their bounds.
    fn is_bounded(&self) -> bool {
        let held: usize = self.peers.iter().map(ReassemblyPeer::held_bytes).sum();
        let is_within = held == self.held_bytes && held <= self.room_bytes;
        is_within && self.peers.iter().all(ReassemblyPeer::is_bounded)
    }

    /// Gives up the frames that have been incomplete for [`MAX_PARTIAL_AGE_MS`]; `missing` hears
    /// the sender and id of each. [`Reassembly::push`] does so too, without a word.
    pub fn expire(&mut self, now_ms: u64, mut missing: impl FnMut(PeerTag, u16)) {
        for index in 0..self.peers.len() {
            let expired =
                |own: &ReassemblyPeer| own.oldest_if_expired(now_ms).map(|id| (own.tag, id));
            while let Some((tag, id)) = self.peers.get(index).and_then(expired) {
                missing(tag, id);
                self.give_up(index, 0);
                self.losses.expired += 1;
            }
        }
    }

    /// The counts of frames that were given up so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Incomplete frames of one peer, and the bytes they were announced with.
    pub fn held(&self, peer: PeerTag) -> (usize, usize) {
        let own = self.peers.iter().find(|other| other.tag == peer);
        own.map_or((0, 0), |peer| (peer.partials.len(), peer.frame_bytes()))
    }

    /// Bytes that the incomplete frames of all peers take, at most: as they were announced, or the
    /// buffers that they have.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

impl Default for Reassembly {
    fn default() -> Self {
        Self::new()
    }
}

/// Buffers to use again.
#[derive(Debug)]
struct Spare {
    partials: Vec<ReassemblyPartial>,
    bytes: usize,
    room_bytes: usize,
}

impl Spare {
    fn take(&mut self) -> ReassemblyPartial {
        let partial = self.partials.pop().unwrap_or_default();
        self.bytes -= partial.bytes.capacity();
        partial
    }

    fn keep(&mut self, partial: ReassemblyPartial) {
        let bytes = self.bytes + partial.bytes.capacity();
        if self.partials.len() < MAX_PARTIAL_FRAMES && bytes <= self.room_bytes {
            self.bytes = bytes;
            self.partials.push(partial);
        }
    }
}

/// The incomplete frames of one neighbour, oldest first.
#[derive(Debug)]
struct ReassemblyPeer {
    tag: PeerTag,
    partials: Vec<ReassemblyPartial>,
}

impl ReassemblyPeer {
    fn find(&self, id: u16) -> Option<usize> {
        self.partials.iter().position(|partial| partial.id == id)
    }

    fn frame_bytes(&self) -> usize {
        self.partials.iter().map(|partial| partial.frame_bytes).sum()
    }

    fn held_bytes(&self) -> usize {
        self.partials.iter().map(|partial| partial.held_bytes).sum()
    }

    /// Whether its frames are within their bounds.
    fn is_bounded(&self) -> bool {
        let is_within = self.frame_bytes() <= MAX_PARTIAL_BYTES || self.partials.len() == 1;
        is_within && self.partials.len() <= MAX_PARTIAL_FRAMES
    }

    fn oldest_if_expired(&self, now_ms: u64) -> Option<u16> {
        let oldest = self.partials.first()?;
        (now_ms.saturating_sub(oldest.begun_ms) >= MAX_PARTIAL_AGE_MS).then_some(oldest.id)
    }

    /// One frame has room at any length.
    fn is_crowded_by(&self, frame_bytes: usize) -> bool {
        let is_over = self.frame_bytes() + frame_bytes > MAX_PARTIAL_BYTES;
        self.partials.len() == MAX_PARTIAL_FRAMES || !self.partials.is_empty() && is_over
    }
}

/// A frame of which parts are missing.
#[derive(Debug, Default)]
struct ReassemblyPartial {
    id: u16,
    begun_ms: u64,
    frame_bytes: usize,
    stride: usize,
    missing: usize,
    /// Bytes that its buffer takes, at most.
    held_bytes: usize,
    /// One bit per part: whether it has come.
    came: Vec<u64>,
    /// Grows with the parts that come, not with the length that was announced.
    bytes: Vec<u8>,
}

impl ReassemblyPartial {
    fn begin(&mut self, begun_ms: u64, id: u16, layout: FragmentLayout) {
        let FragmentLayout { frame_bytes, stride, count: missing, .. } = layout;
        self.came.clear();
        self.came.resize(layout.count.div_ceil(64), 0);
        self.bytes.clear();
        if self.bytes.capacity() > SMALL_BYTES.max(8 * frame_bytes) {
            self.bytes.shrink_to(frame_bytes);
        }
        let held_bytes = frame_bytes.max(self.bytes.capacity());
        let (came, bytes) = (std::mem::take(&mut self.came), std::mem::take(&mut self.bytes));
        *self = Self { id, begun_ms, frame_bytes, stride, missing, held_bytes, came, bytes };
    }

    /// Whether what came and what is missing are all parts, and the bytes no more than the frame's.
    fn holds_together(&self) -> bool {
        let came: u32 = self.came.iter().map(|word| word.count_ones()).sum();
        let parts = self.frame_bytes.div_ceil(self.stride.max(1));
        came as usize + self.missing == parts && self.bytes.len() <= self.frame_bytes
    }

    /// Puts a part into its place; false when it had come before.
    fn add(&mut self, layout: FragmentLayout, part: &[u8]) -> Result<bool, FrameError> {
        if (layout.frame_bytes, layout.stride) != (self.frame_bytes, self.stride) {
            return Err(FrameError::MixedFragments);
        }
        let end = layout.at + part.len();
        let word = self.came.get_mut(layout.index / 64).ok_or(FrameError::BadFragment)?;
        let bit = 1_u64 << (layout.index % 64);
        if *word & bit != 0 {
            let same = self.bytes.get(layout.at..end) == Some(part);
            return if same { Ok(false) } else { Err(FrameError::FragmentConflict) };
        }
        if self.bytes.len() < end {
            // It grows by doubling, but never beyond its frame.
            let wanted = end.max(2 * self.bytes.capacity()).min(self.frame_bytes);
            self.bytes.reserve_exact(wanted.saturating_sub(self.bytes.len()));
            self.bytes.resize(end, 0);
        }
        self.bytes.get_mut(layout.at..end).ok_or(FrameError::BadFragment)?.copy_from_slice(part);
        *word |= bit;
        self.missing -= 1;
        Ok(true)
    }
}

/// A buffer that is kept whatever its next frame needs.
const SMALL_BYTES: usize = 16 << 10;
