//! Frames put together from their parts, within bounds.

use crate::fragment::Layout;
use crate::limits::{MAX_PARTIAL_AGE_MS, MAX_PARTIAL_BYTES, MAX_PARTIAL_FRAMES, MAX_PARTIAL_PEERS};
use crate::{Fragment, FrameError, PeerTag};

/// Puts frames together from their parts, in whatever order they come.
///
/// What it holds is bounded per peer in frames and bytes, in peers, and in age; what a bound
/// pushes out is counted. A whole frame is not yet to be trusted: it authenticates when it is
/// opened. Buffers are used again, so that it allocates nothing once warm.
#[derive(Debug, Default)]
pub struct Reassembly {
    peers: Vec<Peer>,
    /// Buffers to use again.
    spare: Vec<Partial>,
    /// The frame that was completed last.
    whole: Vec<u8>,
    losses: Losses,
}

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<'a> {
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
    /// The same peer began newer frames, beyond [`MAX_PARTIAL_FRAMES`] or [`MAX_PARTIAL_BYTES`].
    pub crowded_out: u64,
}

impl Reassembly {
    /// Without any frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a fragment that came from the neighbour `peer`.
    ///
    /// # Errors
    ///
    /// [`FrameError::MixedFragments`] when it belongs to another frame of the same id,
    /// [`FrameError::FragmentConflict`] when its part had come with other bytes, and
    /// [`FrameError::TooManyPeers`]. What was gathered stays as it was.
    pub fn push(
        &mut self,
        peer: PeerTag,
        now_ms: u64,
        fragment: &Fragment<'_>,
    ) -> Result<Progress<'_>, FrameError> {
        let layout = fragment.layout()?;
        self.expire(now_ms, |_, _| ());
        let Self { peers, spare, whole, losses } = self;
        let peer = Peer::of(peers, peer)?;
        let index = match peer.find(fragment.id) {
            Some(index) => index,
            None => peer.begin(now_ms, fragment.id, layout, spare, losses),
        };
        debug_assert!(peer.is_bounded());
        let partial = peer.partials.get_mut(index).ok_or(FrameError::BadFragment)?;
        if !partial.add(layout, fragment.part())? {
            return Ok(Progress::Repeated);
        }
        debug_assert!(partial.holds_together());
        if partial.missing > 0 {
            return Ok(Progress::Waiting);
        }
        debug_assert_eq!(partial.bytes.len(), partial.frame_bytes, "a whole frame has all bytes");
        std::mem::swap(whole, &mut partial.bytes);
        peer.give_up(index, spare);
        Ok(Progress::Whole(whole))
    }

    /// Gives up the frames that have been incomplete for [`MAX_PARTIAL_AGE_MS`]; `missing` hears
    /// the sender and id of each. [`Reassembly::push`] does so too, without a word.
    pub fn expire(&mut self, now_ms: u64, mut missing: impl FnMut(PeerTag, u16)) {
        for peer in &mut self.peers {
            while let Some(id) = peer.oldest_if_expired(now_ms) {
                missing(peer.tag, id);
                peer.give_up(0, &mut self.spare);
                self.losses.expired += 1;
            }
        }
    }

    /// What was given up so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Incomplete frames of one peer, and the bytes they were announced with.
    pub fn held(&self, peer: PeerTag) -> (usize, usize) {
        let own = self.peers.iter().find(|other| other.tag == peer);
        own.map_or((0, 0), |peer| (peer.partials.len(), peer.frame_bytes()))
    }
}

/// The incomplete frames of one neighbour, oldest first.
#[derive(Debug)]
struct Peer {
    tag: PeerTag,
    partials: Vec<Partial>,
}

impl Peer {
    /// The place of a peer: its own, one that nobody needs, or a new one.
    fn of(peers: &mut Vec<Peer>, tag: PeerTag) -> Result<&mut Peer, FrameError> {
        let own = peers.iter().position(|peer| peer.tag == tag);
        let index = own.or_else(|| peers.iter().position(|peer| peer.partials.is_empty()));
        let index = match index {
            Some(index) => index,
            None if peers.len() == MAX_PARTIAL_PEERS => return Err(FrameError::TooManyPeers),
            None => {
                peers.push(Peer { tag, partials: Vec::with_capacity(MAX_PARTIAL_FRAMES) });
                peers.len() - 1
            }
        };
        let peer = peers.get_mut(index).ok_or(FrameError::TooManyPeers)?;
        peer.tag = tag;
        Ok(peer)
    }

    fn find(&self, id: u16) -> Option<usize> {
        self.partials.iter().position(|partial| partial.id == id)
    }

    fn frame_bytes(&self) -> usize {
        self.partials.iter().map(|partial| partial.frame_bytes).sum()
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

    /// Makes room for another frame and begins it.
    fn begin(
        &mut self,
        now_ms: u64,
        id: u16,
        layout: Layout,
        spare: &mut Vec<Partial>,
        losses: &mut Losses,
    ) -> usize {
        while self.is_crowded_by(layout.frame_bytes) {
            self.give_up(0, spare);
            losses.crowded_out += 1;
        }
        let mut partial = spare.pop().unwrap_or_default();
        partial.begin(now_ms, id, layout);
        self.partials.push(partial);
        self.partials.len() - 1
    }

    /// One frame has room at any length.
    fn is_crowded_by(&self, frame_bytes: usize) -> bool {
        let is_over = self.frame_bytes() + frame_bytes > MAX_PARTIAL_BYTES;
        self.partials.len() == MAX_PARTIAL_FRAMES || !self.partials.is_empty() && is_over
    }

    /// Removes a frame and keeps its buffers for a later one, if there are not enough of them.
    fn give_up(&mut self, index: usize, spare: &mut Vec<Partial>) {
        let partial = self.partials.remove(index);
        if spare.len() < MAX_PARTIAL_FRAMES {
            spare.push(partial);
        }
    }
}

/// A frame of which parts are missing.
#[derive(Debug, Default)]
struct Partial {
    id: u16,
    begun_ms: u64,
    frame_bytes: usize,
    stride: usize,
    missing: usize,
    /// One bit per part: whether it has come.
    came: Vec<u64>,
    /// Grows with the parts that come, not with the length that was announced.
    bytes: Vec<u8>,
}

impl Partial {
    fn begin(&mut self, begun_ms: u64, id: u16, layout: Layout) {
        self.came.clear();
        self.came.resize(layout.count.div_ceil(64), 0);
        self.bytes.clear();
        let (came, bytes) = (std::mem::take(&mut self.came), std::mem::take(&mut self.bytes));
        let Layout { frame_bytes, stride, count: missing, .. } = layout;
        *self = Self { id, begun_ms, frame_bytes, stride, missing, came, bytes };
    }

    /// Whether what came and what is missing are all parts, and the bytes no more than the frame's.
    fn holds_together(&self) -> bool {
        let came: u32 = self.came.iter().map(|word| word.count_ones()).sum();
        let parts = self.frame_bytes.div_ceil(self.stride.max(1));
        came as usize + self.missing == parts && self.bytes.len() <= self.frame_bytes
    }

    /// Puts a part into its place; false when it had come before.
    fn add(&mut self, layout: Layout, part: &[u8]) -> Result<bool, FrameError> {
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
            self.bytes.resize(end, 0);
        }
        self.bytes.get_mut(layout.at..end).ok_or(FrameError::BadFragment)?.copy_from_slice(part);
        *word |= bit;
        self.missing -= 1;
        Ok(true)
    }
}
