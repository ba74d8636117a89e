//! The inputs and outputs of a machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use sealane_frame::machine::DocumentAudience;
use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::Slot;

use crate::messages::RouteTrace;
use crate::{InterfaceId, KeptGroup, MeshAddress, MeshMedium, MeshSpan, RouteTable, SendUrgency};

/// An input of a machine. Its bytes are borrowed by a caller that owns the machine, and owned
/// (`MeshInput<'static>`) where the input waits in a queue for the thread that does.
#[derive(Debug, Clone)]
pub enum MeshInput<'a> {
    /// An interface is there, or is another one now.
    Up {
        /// Which one.
        interface: InterfaceId,
        /// Its properties.
        medium: MeshMedium,
    },
    /// An interface is gone.
    Down {
        /// Which one.
        interface: InterfaceId,
    },
    /// A unit came that was sent to everybody or to this machine.
    Heard {
        /// Where.
        interface: InterfaceId,
        /// The neighbour's address there.
        from: MeshAddress,
        /// The unit.
        unit: Cow<'a, [u8]>,
    },
    /// A frame in the full form that was made on this machine, or that has come to it by a data
    /// path of the driver's own.
    Data {
        /// The frame. Its hops are written here.
        frame: Cow<'a, [u8]>,
    },
    /// The orders of a group are kept from now on, and given to neighbours that lack them. Those of
    /// the mesh's own group are without being told. Told again with more orders, those are not
    /// lacking any more.
    Keep(KeptGroup),
    /// The orders of a group are kept no longer.
    Forget(GroupTag),
    /// A notice of a group whose orders are kept came by other ways: a hub, a file, or the
    /// authority that lives here.
    Notice {
        /// The group.
        group: GroupTag,
        /// The notice, as its authority has signed it.
        notice: Cow<'a, [u8]>,
    },
    /// Frames have come to this machine by a data path of the driver's own.
    Came {
        /// The address that sent them.
        source: PeerTag,
        /// How many.
        frames: u16,
    },
    /// Frames have gone to a neighbour by a data path of the driver's own. What goes to a gateway
    /// is counted, to be compared with its reports.
    Went {
        /// The frames' hop: sender, target and next hop.
        leg: RouteLeg,
        /// How many.
        frames: u16,
    },
    /// Somebody wants to know which way leads to a machine.
    Trace {
        /// The machine.
        to: Slot,
        /// The number that the answer gives back.
        number: u32,
    },
    /// How busy the radio finds its channel.
    Load {
        /// Where.
        interface: InterfaceId,
        /// The share of time, in millionths.
        busy_ppm: u32,
    },
    /// The digest that the machine's hellos carry of its documents.
    Digest {
        /// Nothing where it holds none at all.
        digest: Option<[u8; 8]>,
    },
    /// A message about documents for neighbours. It waits for air time, as far as there is room
    /// ([`crate::Mesh::documents_room`]).
    Documents {
        /// The neighbours that are to take it.
        to: DocumentAudience,
        /// In which share of the air time.
        urgency: SendUrgency,
        /// The message.
        message: Cow<'a, [u8]>,
    },
    /// Time has passed.
    Tick,
}

/// One hop of frames between two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteLeg {
    /// Where they left.
    pub interface: InterfaceId,
    /// The neighbour that they went to.
    pub next_hop: PeerTag,
    /// The address that sent them.
    pub source: PeerTag,
    /// The address that they are for.
    pub destination: PeerTag,
    /// How many hops they might still take when they came here.
    pub hop_limit: u8,
}

/// An output of a machine, for its driver.
#[derive(Debug, Clone, PartialEq)]
pub enum MeshOutput {
    /// A unit is to be sent.
    Send {
        /// Where.
        interface: InterfaceId,
        /// The receiver.
        to: UnitReceiver,
        /// The unit, no longer than the interface carries.
        unit: Arc<[u8]>,
        /// The rank where several units wait.
        urgency: SendUrgency,
    },
    /// A frame in the full form has come that is for this machine, or for everybody.
    Deliver {
        /// The frame.
        frame: Vec<u8>,
    },
    /// A notice has come that the authority of the group has signed: an order whose turn it is, or
    /// who is about to be removed. A member of the group obeys it.
    Notice {
        /// The group.
        group: GroupTag,
        /// The notice.
        notice: Arc<[u8]>,
    },
    /// A neighbour has said hello.
    Digest {
        /// The neighbour.
        by: Slot,
        /// The digest of its documents, if it gives one and is there now.
        digest: Option<[u8; 8]>,
    },
    /// A neighbour has sent a message about documents.
    Documents {
        /// The neighbour.
        by: Slot,
        /// Its address.
        tag: PeerTag,
        /// Whether it is known that it is there now: else somebody else may repeat what it has sent
        /// before this machine started.
        is_proven: bool,
        /// The message.
        message: Vec<u8>,
    },
    /// Other routes are in use.
    Table(Arc<RouteTable>),
    /// The way to a machine, which was asked for.
    Traced(RouteTrace),
    /// Something that people want to know.
    Event(MeshEvent),
}

/// The receiver of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitReceiver {
    /// All who hear it.
    Everybody,
    /// One neighbour.
    Neighbour(MeshAddress),
}

/// An event for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeshEvent {
    /// A neighbour was heard for the first time.
    NeighbourFound {
        /// The neighbour.
        slot: Slot,
        /// Where.
        interface: InterfaceId,
    },
    /// A neighbour was not heard for long.
    NeighbourLost {
        /// The neighbour.
        slot: Slot,
        /// Where.
        interface: InterfaceId,
    },
    /// A next hop did not answer.
    NextHopSilent {
        /// The next hop.
        slot: Slot,
        /// Where.
        interface: InterfaceId,
    },
    /// A machine is reached in another way.
    RouteChanged {
        /// The machine.
        to: Slot,
        /// The neighbour that takes frames for it.
        via: Slot,
        /// How far it is.
        metric: u16,
    },
    /// A machine is not reached any more.
    RouteLost {
        /// The machine.
        to: Slot,
    },
    /// Frames for a gateway vanish behind a next hop.
    BlackHole {
        /// The next hop.
        via: Slot,
        /// The gateway.
        gateway: Slot,
    },
    /// A neighbour that holds the mesh's keys sends what no machine sends.
    Faulty {
        /// The neighbour.
        slot: Slot,
    },
    /// A member of the mesh is about to be removed: it is no neighbour any more.
    Leaving {
        /// The member.
        slot: Slot,
        /// The order that removes it. Until it comes, that is all that is known.
        order: u64,
    },
    /// A removal was announced for an order that has not removed the member.
    Stays {
        /// The member.
        slot: Slot,
        /// The order.
        order: u64,
    },
    /// Another machine sends in the own slot, or the own frames come back.
    OwnSlotHeard,
}

/// The counts of a machine since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeshCounters {
    /// Hellos sent.
    pub hellos: u64,
    /// Hellos of them that said what is held of documents.
    pub digests: u64,
    /// Route messages sent.
    pub route_messages: u64,
    /// Requests sent or passed on.
    pub requests: u64,
    /// Probes sent.
    pub probes: u64,
    /// Announcements sent.
    pub announcements: u64,
    /// Reports sent.
    pub reports: u64,
    /// Units of hellos, routes, probes and announcements.
    pub control_bytes: u64,
    /// Frames sent on to one neighbour, the own ones too.
    pub carried: u64,
    /// Frames to everybody that were sent on, the own ones too.
    pub flooded: u64,
    /// Those of both that were made here.
    pub own_sent: u64,
    /// Urgent frames to everybody that were told again, since no neighbour was heard sending them.
    pub told_again: u64,
    /// Messages about documents that were sent.
    pub documents: u64,
    /// The bytes of them, without those of the link.
    pub documents_bytes: u64,
    /// Frames to everybody that were not sent on since others had done so.
    pub suppressed: u64,
    /// Frames given to this machine.
    pub delivered: u64,
    /// Parts of frames that were asked for again.
    pub parts_asked: u64,
    /// Parts of frames that were sent again.
    pub parts_again: u64,
    /// Notices of groups that came: orders, and removals that were announced.
    pub notices: u64,
    /// Pieces of orders that were given to neighbours.
    pub pieces: u64,
    /// Dropped: notices that their group's authority has not signed.
    pub unsigned: u64,
    /// Dropped: no unit, frame or message.
    pub malformed: u64,
    /// Dropped: of no neighbour.
    pub stranger: u64,
    /// Dropped: a seal, or a hop seal, that does not verify, of no member or of another epoch.
    pub unopened: u64,
    /// Dropped: of a source of which no relay card tells.
    pub unknown_source: u64,
    /// Dropped: here before.
    pub repeats: u64,
    /// Dropped: of the own slot or address.
    pub reflected: u64,
    /// Dropped: the previous hop is not who sent it, or the next hop is somebody else.
    pub false_hop: u64,
    /// Dropped: there is no route, or of an own frame to everybody no neighbour.
    pub no_route: u64,
    /// Those of them that were made here.
    pub own_no_route: u64,
    /// Dropped: the next hop has brought it.
    pub backwards: u64,
    /// Dropped: it may not travel further.
    pub hop_limit: u64,
    /// Dropped: there was no air time, or no room to wait for it.
    pub no_air_time: u64,
    /// Those of them that were made here.
    pub own_no_air_time: u64,
    /// Dropped: incomplete, or more than is put together at once.
    pub fragments: u64,
    /// Dropped: more neighbours or destinations than are known at once.
    pub no_room: u64,
    /// Time stamps that came back and cannot be.
    pub bad_echoes: u64,
    /// Times that the way to a machine changed while it was reached.
    pub flaps: u64,
}

/// A neighbour as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshNeighbourStatus {
    /// Its address in the mesh.
    pub tag: PeerTag,
    /// Its slot.
    pub slot: Slot,
    /// Where it is heard.
    pub interface: InterfaceId,
    /// Its address there.
    pub address: MeshAddress,
    /// How many of its hellos are heard, of 15.
    pub heard: u8,
    /// How many of the own hellos it hears, of 15.
    pub told: u8,
    /// How long a round trip takes.
    pub round_trip: Option<MeshSpan>,
    /// The cost of a hop to it, if frames may go by it.
    pub cost: Option<u16>,
    /// Whether it is avoided, since frames vanish behind it.
    pub is_avoided: bool,
}

/// A way to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayStatus {
    /// The neighbour that told of it.
    pub via: Slot,
    /// The interface that it is on.
    pub interface: InterfaceId,
    /// How far the machine is from that neighbour.
    pub told: u16,
    /// The cost of the hop to the neighbour, if frames may go by it.
    pub cost: Option<u16>,
    /// Whether it is the way in use.
    pub is_used: bool,
    /// Whether it is avoided, since frames vanish behind the neighbour.
    pub is_avoided: bool,
}

impl WayStatus {
    /// How far the machine is from here, if frames may go that way.
    pub fn metric(&self) -> Option<u16> {
        self.told.checked_add(self.cost?)
    }
}

/// The sources that a machine carries frames of: addresses of members, each with the tag of its
/// group.
pub type CarriedSources = BTreeMap<PeerTag, GroupTag>;
