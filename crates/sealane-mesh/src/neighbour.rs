//! A neighbour on an interface: how well it is heard both ways, how long a round trip takes, and
//! whether it is there.

mod blame;
mod quality;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;

use sealane_frame::PeerTag;
use sealane_seal::Slot;

pub(crate) use blame::{BlameHistory, NeighbourBlame};
pub(crate) use quality::{COST_MIN, LinkQuality};
pub(crate) use watch::{NeighbourPresence, NeighbourWatch};

use crate::hop::HopReader;
use crate::limits::{MAX_KEPT_FRAMES, MAX_MESH_NEIGHBOURS};
use crate::slots::SlotSet;
use crate::{HelloMessage, InterfaceId, MeshAddress, MeshSpan, MeshTime, SendUrgency};

/// A neighbour by the interface that it is heard on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId {
    /// The interface.
    pub(crate) interface: InterfaceId,
    /// The member.
    pub(crate) slot: Slot,
}

/// One neighbour on one interface.
#[derive(Debug)]
pub(crate) struct MeshNeighbour {
    pub(crate) id: LinkId,
    pub(crate) tag: PeerTag,
    pub(crate) address: MeshAddress,
    pub(crate) hop: HopReader,
    pub(crate) hello: LastHello,
    pub(crate) watch: NeighbourWatch,
    pub(crate) quality: LinkQuality,
    pub(crate) proof: NeighbourProof,
    pub(crate) routes: RouteIntake,
    pub(crate) listing: HelloListing,
    pub(crate) blame: BlameHistory,
    pub(crate) kept: KeptFrames,
}

/// The last hello of a neighbour.
#[derive(Debug)]
pub(crate) struct LastHello {
    pub(crate) sequence: u16,
    pub(crate) interval: MeshSpan,
    pub(crate) sleeps: bool,
    /// The machines that it hears well, as its last hellos told.
    near: VecDeque<Slot>,
}

/// The proofs that a neighbour has given. A recorded hello gives none.
#[derive(Debug, Default)]
pub(crate) struct NeighbourProof {
    /// It has given back what nobody could know before this machine started: it is there now, at
    /// this address.
    pub(crate) is_proven: bool,
    /// It has opened a hello of this machine since that started and obeyed its last order.
    pub(crate) has_opened: bool,
}

/// The routes that a neighbour tells, and the requests for all of them.
#[derive(Debug, Default)]
pub(crate) struct RouteIntake {
    /// The sequence of its last route message.
    pub(crate) sequence: Option<u16>,
    /// It has told all routes since this machine takes them.
    pub(crate) has_told_all: bool,
    /// When it was asked for all routes, and how often.
    asked: Option<MeshTime>,
    asks: u8,
}

/// The place of a neighbour in the own hellos.
#[derive(Debug, Default)]
pub(crate) struct HelloListing {
    /// In which of the own hellos it was listed last, and given a time stamp.
    pub(crate) listed: u64,
    pub(crate) echoed: u64,
    /// The time stamp that it waits for.
    pub(crate) stamp: Option<HelloStamp>,
    /// How well it is heard, as it was told.
    heard_told: u8,
}

/// A time stamp that a neighbour waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HelloStamp {
    /// When its hello was sent, by its own clock.
    pub(crate) sent: u32,
    /// When it was heard, by the own one.
    pub(crate) heard: u32,
}

/// A frame for one neighbour.
#[derive(Debug, Clone)]
pub(crate) struct NeighbourFrame {
    pub(crate) frame: Arc<[u8]>,
    pub(crate) urgency: SendUrgency,
    /// The neighbour that brought it; nobody, if it was made on this machine.
    pub(crate) from: Option<LinkId>,
}

/// Frames for a neighbour that wait until it wakes up.
#[derive(Debug, Default)]
pub(crate) struct KeptFrames(VecDeque<NeighbourFrame>);

/// Where a hello came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeardAt {
    pub(crate) id: LinkId,
    pub(crate) tag: PeerTag,
    pub(crate) address: MeshAddress,
    pub(crate) now: MeshTime,
}

impl MeshNeighbour {
    pub(crate) fn new(at: HeardAt, hello: &HelloMessage, hop: HopReader) -> Self {
        Self {
            id: at.id,
            tag: at.tag,
            address: at.address,
            hop,
            hello: LastHello {
                sequence: hello.sequence.wrapping_sub(1),
                interval: hello.interval(),
                sleeps: hello.sleeps,
                near: VecDeque::new(),
            },
            watch: NeighbourWatch::new(at.now, hello.interval()),
            quality: LinkQuality::new(at.now),
            proof: NeighbourProof::default(),
            routes: RouteIntake::default(),
            listing: HelloListing::default(),
            blame: BlameHistory::default(),
            kept: KeptFrames::default(),
        }
    }

    /// Takes a hello that is later than the last one.
    pub(crate) fn hear(&mut self, at: HeardAt, hello: &HelloMessage) {
        self.quality.arrived(hello.sequence.wrapping_sub(self.hello.sequence).wrapping_sub(1));
        if self.address != at.address {
            // The echoes of before were of the other address: a hello may be recorded and played
            // from anywhere.
            self.address = at.address;
            self.proof.is_proven = false;
        }
        self.hello.take(hello);
        self.is_there(at.now);
    }

    /// It was heard: whatever was thought of it, it is there.
    pub(crate) fn is_there(&mut self, now: MeshTime) {
        let interval = self.hello.interval;
        let way = self.quality.round_trip().unwrap_or_default().part(2);
        self.watch.is_there(now, way.min(interval.part(LAG_PART)), interval);
    }

    /// Whether it is to be told something: it has had no time stamp, or is heard much better or
    /// worse than it was told.
    pub(crate) fn has_news(&self) -> bool {
        let HelloListing { echoed, heard_told, .. } = self.listing;
        echoed == 0 || self.quality.heard().abs_diff(heard_told) >= MUCH
    }

    /// How many of its hellos are heard, of 15, which it is told now.
    pub(crate) fn tell_heard(&mut self) -> u8 {
        self.listing.heard_told = self.quality.heard();
        self.listing.heard_told
    }

    /// Whether all its routes are to be asked for: none of its messages has come, or none that told
    /// them all where they are awaited. Where air time is scarce, one message is enough.
    pub(crate) fn lacks_routes(&self, is_awaited: bool) -> bool {
        self.cost().is_some() && self.routes.lacks(is_awaited)
    }

    /// Whether it needs no announcement of this machine: it has opened what followed the last one,
    /// and still lists this machine.
    pub(crate) fn knows_this(&self, now: MeshTime) -> bool {
        let is_old = self.quality.is_told_old(now, self.hello.interval);
        self.proof.has_opened && self.quality.told() > 0 && !is_old
    }

    /// Follows what loss and delay are now.
    pub(crate) fn settle(&mut self, now: MeshTime) {
        self.quality.settle(now, self.hello.interval);
    }

    /// The cost of a hop to it, if frames may go by it.
    pub(crate) fn cost(&self) -> Option<u16> {
        let is_usable = self.proof.is_proven && !self.watch.is_silent();
        self.quality.cost().filter(|_| is_usable)
    }
}

impl LastHello {
    fn take(&mut self, hello: &HelloMessage) {
        self.sequence = hello.sequence;
        self.interval = hello.interval();
        self.sleeps = hello.sleeps;
        self.note_near(hello);
    }

    fn note_near(&mut self, hello: &HelloMessage) {
        let mut named = SlotSet::default();
        hello.neighbours.iter().for_each(|listed| named.insert(listed.slot));
        self.near.retain(|slot| !named.contains(*slot));
        for listed in &hello.neighbours {
            let is_first = named.remove(listed.slot);
            if !is_first {
                // The last that is said of a slot counts.
                self.near.retain(|slot| *slot != listed.slot);
            }
            if listed.heard >= WELL && listed.told >= WELL {
                self.near.push_back(listed.slot);
            }
        }
        let over = self.near.len().saturating_sub(MAX_MESH_NEIGHBOURS);
        self.near.drain(..over);
    }

    /// Whether it hears so many that some other one tells it what all are told.
    pub(crate) fn is_in_crowd(&self) -> bool {
        self.near.len() >= CROWD
    }

    /// Whether another machine hears it, as far as it told.
    pub(crate) fn is_near(&self, slot: Slot) -> bool {
        self.near.contains(&slot)
    }
}

impl RouteIntake {
    fn lacks(&self, is_awaited: bool) -> bool {
        let is_missed = is_awaited && !self.has_told_all && self.asks < ASKS_SOON;
        self.sequence.is_none() || is_missed
    }

    /// Whether the neighbour, whose hellos come at that interval, was not asked for all routes just
    /// before; notes that it is now.
    pub(crate) fn may_ask_all(
        &mut self,
        now: MeshTime,
        interval: MeshSpan,
        pause: MeshSpan,
    ) -> bool {
        let is_seldom = self.asks >= ASKS_SOON;
        let pause = if is_seldom { interval.times(ASK_INTERVALS) } else { pause };
        let may = self.asked.is_none_or(|asked| now.since(asked) >= pause);
        if may {
            self.asked = Some(now);
            self.asks = self.asks.saturating_add(1);
        }
        may
    }
}

impl KeptFrames {
    /// Keeps a frame. Gives the one that there is no room for: the oldest of the least urgent.
    pub(crate) fn keep(&mut self, kept: NeighbourFrame) -> Option<NeighbourFrame> {
        self.0.push_back(kept);
        if self.0.len() <= MAX_KEPT_FRAMES {
            return None;
        }
        let least = self.0.iter().map(|kept| kept.urgency).max()?;
        let oldest = self.0.iter().position(|kept| kept.urgency == least)?;
        self.0.remove(oldest)
    }

    pub(crate) fn take(&mut self) -> VecDeque<NeighbourFrame> {
        std::mem::take(&mut self.0)
    }
}

/// A hello comes earlier than it was told by one part of so many of the interval, at least.
pub(crate) const LAG_PART: u64 = 40;
/// A quality that has changed by so much of 15 has changed much.
const MUCH: u8 = 3;
/// A machine that hears so many well is in a crowd.
const CROWD: usize = 16;
/// So often a neighbour is asked for all routes soon after the last time, and then seldom.
const ASKS_SOON: u8 = 5;
/// Hello intervals between two requests for all routes then.
const ASK_INTERVALS: u64 = 2;
/// From here on, of 15, something is heard well.
const WELL: u8 = 8;
