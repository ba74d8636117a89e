//! The counts of carried frames, and of drops by reason.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why something was not sent on. Every drop has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum DropReason {
    /// It came from an address that is no neighbour's.
    Stranger,
    /// Its neighbour sends more than its quota.
    Quota,
    /// It is no unit of this link, or no frame.
    Malformed,
    /// Another hop was to take it.
    NotForUs,
    /// It says that it came from another hop than the neighbour that sent it.
    FalseHop,
    /// Its group is on no card.
    UnknownGroup,
    /// Its source is no member of its group.
    UnknownSource,
    /// The machine made it itself.
    Own,
    /// No route leads to its destination.
    NoRoute,
    /// It has made all its hops.
    HopLimit,
    /// Its route leads back to where it came from.
    Backwards,
    /// It is for everybody and was here before.
    Repeat,
    /// It is for this machine, which takes nothing.
    NoEnd,
    /// It did not open: it is no packet or announcement, or not authentic, or was here before.
    Unopened,
    /// Its packet comes from an address that is not behind its sender.
    FalseAddress,
    /// A packet of a program here is for an address that is behind no member.
    NoMember,
    /// The group's state does not allow to seal a packet of a program here.
    Unsealed,
    /// A part of a frame whose other parts did not come, or did not fit it.
    Fragment,
    /// It is for the machine that routes, which has as much to do as it takes.
    MeshFull,
    /// The link was full for longer than it is waited for.
    LinkFull,
    /// The system refused to send it.
    LinkFault,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [DropReason; 21] = [
        DropReason::Stranger,
        DropReason::Quota,
        DropReason::Malformed,
        DropReason::NotForUs,
        DropReason::FalseHop,
        DropReason::UnknownGroup,
        DropReason::UnknownSource,
        DropReason::Own,
        DropReason::NoRoute,
        DropReason::HopLimit,
        DropReason::Backwards,
        DropReason::Repeat,
        DropReason::NoEnd,
        DropReason::Unopened,
        DropReason::FalseAddress,
        DropReason::NoMember,
        DropReason::Unsealed,
        DropReason::Fragment,
        DropReason::MeshFull,
        DropReason::LinkFull,
        DropReason::LinkFault,
    ];

    /// Its name in metrics and status.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Stranger => "stranger",
            DropReason::Quota => "quota",
            DropReason::Malformed => "malformed",
            DropReason::NotForUs => "not_for_us",
            DropReason::FalseHop => "false_hop",
            DropReason::UnknownGroup => "unknown_group",
            DropReason::UnknownSource => "unknown_source",
            DropReason::Own => "own",
            DropReason::NoRoute => "no_route",
            DropReason::HopLimit => "hop_limit",
            DropReason::Backwards => "backwards",
            DropReason::Repeat => "repeat",
            DropReason::NoEnd => "no_end",
            DropReason::Unopened => "unopened",
            DropReason::FalseAddress => "false_address",
            DropReason::NoMember => "no_member",
            DropReason::Unsealed => "unsealed",
            DropReason::Fragment => "fragment",
            DropReason::MeshFull => "mesh_full",
            DropReason::LinkFull => "link_full",
            DropReason::LinkFault => "link_fault",
        }
    }
}

/// Numbers and bytes of units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnitVolume {
    /// How many.
    pub units: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The counts of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameTally {
    /// The units of all kinds that links have received.
    pub received: UnitVolume,
    /// Frames that are to go on, once for each neighbour that they go to.
    pub forwarded: UnitVolume,
    /// Frames that were for this machine, and were taken.
    pub delivered: UnitVolume,
    /// Units that links have taken; a frame for a narrow link goes in several.
    pub sent: UnitVolume,
    dropped: [u64; DropReason::ALL.len()],
}

impl FrameTally {
    /// How many were dropped for that reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.dropped.get(why as usize).copied().unwrap_or(0)
    }

    /// How many were dropped, for whatever reason.
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.iter().sum()
    }

    #[inline]
    pub(crate) fn drop(&mut self, why: DropReason, count: u64) {
        if let Some(dropped) = self.dropped.get_mut(why as usize) {
            *dropped += count;
        }
    }

    /// All numbers, in one order.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let volumes = [self.received, self.forwarded, self.delivered, self.sent];
        volumes.into_iter().flat_map(|volume| [volume.units, volume.bytes]).chain(self.dropped)
    }
}

impl UnitVolume {
    #[inline]
    pub(crate) fn add(&mut self, units: usize, bytes: usize) {
        self.units += units as u64;
        self.bytes += bytes as u64;
    }
}

/// The sum of all threads' tallies.
#[derive(Debug, Default)]
pub(crate) struct RelayCounters {
    numbers: [AtomicU64; VOLUMES + DropReason::ALL.len()],
}

/// Numbers of the volumes of a tally.
const VOLUMES: usize = 8;

impl RelayCounters {
    /// Adds a tally and empties it.
    pub(crate) fn take(&self, tally: &mut FrameTally) {
        for (sum, number) in self.numbers.iter().zip(tally.numbers()) {
            // Most numbers of a turn are zero. Skipping them avoids writing a cache line that all
            // threads share.
            if number > 0 {
                sum.fetch_add(number, Ordering::Relaxed);
            }
        }
        // The thread's own numbers begin again, so that the next call adds only what is new.
        *tally = FrameTally::default();
    }

    /// The counts so far.
    pub(crate) fn tally(&self) -> FrameTally {
        let mut numbers = self.numbers.iter().map(|number| number.load(Ordering::Relaxed));
        let mut next = || numbers.next().unwrap_or(0);
        let mut volume = || UnitVolume { units: next(), bytes: next() };
        let [received, forwarded, delivered, sent] = std::array::from_fn(|_| volume());
        FrameTally {
            received,
            forwarded,
            delivered,
            sent,
            dropped: std::array::from_fn(|_| next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_counted_in_its_place() {
        let counters = RelayCounters::default();
        let mut tally = FrameTally::default();
        for (index, why) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, index);
            tally.drop(why, index as u64 + 1);
        }
        tally.received.add(1, 2);
        tally.forwarded.add(3, 4);
        tally.sent.add(5, 6);
        tally.delivered.add(7, 8);
        let told = tally;
        counters.take(&mut tally);
        assert_eq!((tally, counters.tally()), (FrameTally::default(), told));
        counters.take(&mut tally);
        assert_eq!(counters.tally(), told);
        let names: std::collections::HashSet<_> =
            DropReason::ALL.iter().map(|why| why.name()).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
    }
}
