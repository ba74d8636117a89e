//! The bounds of a machine of the mesh.

sealane_message::limits! {
    /// Interfaces of one machine. A further one is refused.
    MAX_MESH_INTERFACES: usize = 16, "interfaces";
    /// Neighbours of one machine, on all its interfaces. A further one is not heard.
    MAX_MESH_NEIGHBOURS: usize = 128, "neighbours";
    /// Neighbours that one hello lists. A hello that lists more is refused.
    MAX_HELLO_NEIGHBOURS: usize = 32, "neighbours";
    /// Time stamps that one hello gives back. A hello with more is refused.
    MAX_HELLO_ECHOES: usize = 8, "echoes";
    /// Gateways that one hello names. A hello with more is refused.
    MAX_HELLO_GATEWAYS: usize = 2, "gateways";
    /// Ways to one destination that are kept. A worse one is forgotten.
    MAX_CANDIDATES: usize = 3, "candidates";
    /// Addresses of other groups that live on one machine. A message with more is refused.
    MAX_ATTACHED: usize = 8, "addresses";
    /// Addresses of other groups on all machines. Further ones are not known.
    MAX_ATTACHED_TOTAL: usize = 4096, "addresses";
    /// Entries of one route message or request. A longer one is refused.
    MAX_MESSAGE_ROUTES: usize = 256, "entries";
    /// Requests for a later sequence that are remembered. The oldest is forgotten.
    MAX_REQUESTS_KNOWN: usize = 256, "requests";
    /// Machines whose frames one report counts. A report of more is refused.
    MAX_REPORTED: usize = 32, "machines";
    /// Machines and gateways, in pairs, between which frames are counted. Others are not.
    MAX_CARRIED_COUNTS: usize = 512, "pairs";
    /// Frames that neighbours brought and that wait to be sent on. A further one is dropped, or a
    /// less urgent one for it.
    MAX_FLOODS_WAITING: usize = 64, "frames";
    /// Of those, frames that one neighbour brought; and beside those, frames that were made here. A
    /// further one is dropped, or a less urgent one for it.
    MAX_FLOODS_OF_ONE: usize = 16, "frames";
    /// How often an urgent frame to everybody is sent where there is a duty cycle, if nobody is
    /// heard sending it on.
    MAX_URGENT_TELLS: u8 = 3, "times";
    /// Those who are heard and not understood, of whom an interface remembers how often it has
    /// asked them to announce themselves. The one asked longest ago is forgotten.
    MAX_STRANGERS: usize = 32, "slots";
    /// Messages about documents that wait. A further one is dropped.
    MAX_DOCUMENTS_WAITING: usize = 8, "messages";
    /// Frames to everybody that are remembered, twice. The oldest are forgotten.
    MAX_FLOODS_KNOWN: usize = 4096, "frames";
    /// Frames that wait for one neighbour that sleeps. Of the least urgent the oldest is dropped.
    MAX_KEPT_FRAMES: usize = 8, "frames";
    /// Frames in parts that a machine can send parts of again. The oldest is forgotten.
    MAX_SENT_PARTS: usize = 16, "frames";
    /// Frames of which parts are asked for again. The oldest is forgotten.
    MAX_WANTED_PARTS: usize = 32, "frames";
    /// Machines on the way to another one that a trace lists.
    MAX_TRACE_HOPS: usize = 15, "machines";
    /// Questions of traces that one machine takes from neighbours in a second, and as many answers.
    /// A further one is dropped.
    MAX_TRACES_PER_SECOND: u32 = 10, "traces a second";
    /// How often missing parts of one frame are asked for.
    MAX_PART_ROUNDS: u8 = 8, "times";
    /// How often each part of a frame is sent again, on average, whoever asks for it.
    MAX_PARTS_AGAIN: usize = 16, "times";
    /// Bytes of frames in parts that an interface holds.
    MAX_MESH_PARTIAL_BYTES: usize = 1 << 18, "bytes";
    /// Bytes of frames in parts that an interface holds of those who are not known as neighbours.
    MAX_STRANGER_PARTIAL_BYTES: usize = 1 << 14, "bytes";
    /// Signatures that a member may bring in a second that do not verify. Then no others that it
    /// brings are looked at in that second.
    MAX_BAD_SIGNATURES: u8 = 16, "signatures";
    /// Probes that a neighbour has to leave unanswered before its routes are left.
    MESH_PROBES: u8 = 5, "probes";
    /// The shortest time between two probes.
    MIN_PROBE_GAP_MS: u64 = 50, "milliseconds";
    /// The shortest hello interval. A hello that says a shorter one is refused.
    MIN_HELLO_MS: u64 = 100, "milliseconds";
    /// How long a next hop behind which frames vanish is avoided, at first. It doubles.
    MIN_BLAME_MS: u64 = 240_000, "milliseconds";
    /// How long it is avoided at most.
    MAX_BLAME_MS: u64 = 3_840_000, "milliseconds";
    /// How long a frame to everybody waits for air time. Then it is dropped; an urgent one twelve
    /// times as long.
    MAX_FLOOD_WAIT_MS: u64 = 5000, "milliseconds";
    /// Groups whose orders a machine keeps: those of 16 relay cards, and the mesh's own. A further
    /// one is refused.
    MAX_KEPT_GROUPS: usize = 17, "groups";
    /// Orders of one group that a machine keeps for others. The oldest leave.
    MAX_KEPT_ORDERS: usize = 64, "orders";
    /// Bytes of them. The oldest leave.
    MAX_KEPT_ORDER_BYTES: usize = 1 << 17, "bytes";
    /// Bytes of the orders of all groups that a machine keeps. The oldest of the group that has the
    /// most leave.
    MAX_KEPT_ORDER_BYTES_TOTAL: usize = 1 << 20, "bytes";
    /// Orders of one group that came before others that they follow.
    MAX_EARLY_ORDERS: usize = 8, "orders";
    /// Notices of removal of one group that a machine keeps. Those of the oldest orders leave.
    MAX_KEPT_REMOVALS: usize = 16, "notices";
    /// A notice of a group that travels in a mesh. A longer one is refused.
    MAX_NOTICE_BYTES: usize = 65_535, "bytes";
    /// Orders that a machine puts together out of pieces at once. What was left longest ago leaves.
    MAX_ORDER_COLLECTIONS: usize = 8, "orders";
    /// Of those, orders that one neighbour gives.
    MAX_ORDER_COLLECTIONS_OF_ONE: usize = 2, "orders";
    /// Neighbours that may be asked for orders of one group.
    MAX_ORDER_GIVERS: usize = 8, "neighbours";
    /// Pieces of orders that wait for air time on one interface. Further ones are asked for again.
    MAX_PIECES_WAITING: usize = 512, "pieces";
    /// How often a notice of removal is told on an interface where a neighbour has not shown it.
    MAX_REMOVAL_REPEATS: u8 = 8, "times";
    /// The least that an interface of compact frames carries at once. A narrower one is refused.
    MIN_COMPACT_MTU_BYTES: usize = 20, "bytes";
    /// The least that an interface of full frames carries at once. A narrower one is refused.
    MIN_FULL_MTU_BYTES: usize = 256, "bytes";
    /// A message about documents on a medium that carries longer ones. More goes into another
    /// message.
    MAX_DOCUMENTS_MESSAGE_BYTES: usize = 1000, "bytes";
    /// The shortest time within which machines choose a moment to send a frame on.
    MIN_SEND_WINDOW_MS: u64 = 5, "milliseconds";
    /// The shortest time between two reports of a gateway.
    MIN_REPORT_PAUSE_MS: u64 = 1500, "milliseconds";
    /// The cost of loss on a link. A worse link costs no more.
    MAX_LOSS_COST: u32 = 1024, "cost";
    /// A round trip that is measured. A longer one does not count.
    MAX_ROUND_TRIP_MS: u64 = 600_000, "milliseconds";
    /// Probes of one neighbour that may be answered late. The oldest is forgotten.
    MAX_LATE_PROBES: usize = 8, "probes";
    /// Reports in a row in which a pair has no frames. Then the pair is forgotten.
    MAX_IDLE_REPORTS: u8 = 8, "reports";
    /// How far a sequence may be ahead of the known one. A later one is not taken. With a few
    /// larger steps a false sequence would come around and lead in a circle.
    MAX_SEQUENCE_AHEAD: u16 = 1 << 13, "sequences";
    /// Slots that a machine tells to its opener. A frame of a further one is not opened.
    MAX_TOLD_SLOTS_PER_SECOND: u32 = 32, "slots a second";
    /// Frames of earlier epochs that a machine looks at. A further one is not opened.
    MAX_BEHIND_FRAMES_PER_SECOND: u32 = 8, "frames a second";
}
