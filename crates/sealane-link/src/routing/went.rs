//! The frames that have gone on to gateways by wires, past the machine that routes, until it is
//! told.

use std::collections::HashMap;

use sealane_frame::{Header, PeerTag};
use sealane_mesh::{InterfaceId, MeshInput, RouteLeg};

use super::{IntakeLane, RoutingShared, RoutingTask};

/// After so many frames the machine is told, though there is no pause.
const TOGETHER: u32 = 256;

/// The hop of a frame to a neighbour on that link, before it is passed on.
pub(crate) fn leg(link: usize, next_hop: PeerTag, header: &Header) -> RouteLeg {
    RouteLeg {
        interface: InterfaceId(u8::try_from(link).unwrap_or(u8::MAX)),
        next_hop,
        source: header.source(),
        destination: header.destination(),
        hop_limit: header.hop_limit(),
    }
}

/// Frames by their leg. Most come one after the other on the same leg: they cost one comparison.
#[derive(Debug, Default)]
pub(crate) struct LegCounts {
    last: Option<(RouteLeg, u16)>,
    others: HashMap<RouteLeg, u16>,
    frames: u32,
}

impl LegCounts {
    /// A frame goes.
    #[inline]
    pub(crate) fn add(&mut self, leg: RouteLeg) {
        self.frames = self.frames.saturating_add(1);
        match &mut self.last {
            Some((last, frames)) if *last == leg => *frames = frames.saturating_add(1),
            _ => self.begin(leg),
        }
    }

    fn begin(&mut self, leg: RouteLeg) {
        if let Some((leg, frames)) = self.last.replace((leg, 1)) {
            // A run that ends is folded into the map, because the same leg may have begun and ended
            // before.
            let before = self.others.entry(leg).or_default();
            *before = before.saturating_add(frames);
        }
    }

    /// Whether so many have gone that the machine is to be told before there is a pause.
    pub(crate) fn is_much(&self) -> bool {
        self.frames >= TOGETHER
    }

    /// Tells the machine. Where it has too much to do it counts too few, and so blames nobody.
    pub(crate) fn tell(&mut self, routing: &RoutingShared) {
        // A leg that finds no room is lost, and too few frames are counted. Too many would blame a
        // next hop that has done its work.
        self.frames = 0;
        for (leg, frames) in self.others.drain().chain(self.last.take()) {
            let _ = routing
                .intake
                .put(IntakeLane::Data, RoutingTask::Mesh(MeshInput::Went { leg, frames }));
        }
    }
}
