//! The bounds of scenarios and runs.

sealane_message::limits! {
    /// A scenario. A longer one is refused.
    MAX_SCENARIO_BYTES: usize = 1 << 20, "bytes";
    /// Machines of a scenario. A further one is refused.
    MAX_SIM_NODES: usize = 4096, "machines";
    /// Machines of a scenario that are members of its mesh: the slots of a group. A further one is
    /// refused.
    MAX_SIM_MEMBERS: usize = 1024, "machines";
    /// Machines of a scenario that keep documents: each knows the keys of all. With more in its
    /// mesh a flow of documents is refused.
    MAX_SIM_KEEPERS: usize = 256, "machines";
    /// The body of a document in a scenario. A longer one is refused: its frame would be none.
    MAX_SIM_DOCUMENT_BYTES: usize = 768, "bytes";
    /// Media of a scenario. A further one is refused.
    MAX_SIM_MEDIA: usize = 16, "media";
    /// Links of a scenario, after groups are unfolded. A further one is refused.
    MAX_SIM_LINKS: usize = 1 << 16, "links";
    /// Motions of a scenario. A further one is refused.
    MAX_SIM_MOTIONS: usize = 64, "motions";
    /// Points of one motion by way points. A further one is refused.
    MAX_WAY_POINTS: usize = 4096, "points";
    /// Crossings of one street grid. A larger grid is refused.
    MAX_CROSSINGS: usize = 1 << 16, "crossings";
    /// Flows of messages of a scenario. A further one is refused.
    MAX_SIM_FLOWS: usize = 1024, "flows";
    /// Events of a scenario. A further one is refused.
    MAX_SIM_EVENTS: usize = 1 << 16, "events";
    /// How long a run lasts in virtual time. A longer scenario is refused.
    MAX_SIM_S: u64 = 86_400, "seconds";
    /// Deliveries that the flows of a scenario ask for: each message, times its receivers. A
    /// scenario that asks for more is refused.
    MAX_SIM_DELIVERIES: u64 = 1 << 28, "deliveries";
    /// Steps that a run has yet to do. A run that comes to more ends with an error.
    MAX_SIM_PENDING: usize = 1 << 20, "steps";
    /// Pairs of machines in reach of each other whose distance is remembered while nobody moves, on
    /// one medium. Of more it is reckoned anew.
    MAX_SIM_NEARS: usize = 1 << 20, "pairs";
    /// Units that wait for one radio of one machine. A further one is dropped and counted.
    MAX_PORT_WAITING: usize = 64, "units";
    /// A unit that a machine sends, on whatever medium. The medium bounds it further.
    MAX_SIM_UNIT_BYTES: usize = 9000, "bytes";
    /// A trace of vehicles. A longer one is refused.
    MAX_TRACE_BYTES: usize = 64 << 20, "bytes";
    /// Places of all vehicles of a trace together. A trace with more is refused.
    MAX_TRACE_PLACES: usize = 1 << 22, "places";
    /// A name in a trace, and a tag of it. A longer one is refused.
    MAX_TRACE_TAG_BYTES: usize = 4096, "bytes";
    /// A line of a log that is replayed. A longer one is refused.
    MAX_LOG_LINE_BYTES: usize = 1 << 17, "bytes";
    /// The size of a run's capture on disk. If it is reached, the capture ends, and the units that
    /// it misses are counted.
    MAX_SIM_CAPTURE_BYTES: u64 = 1 << 30, "bytes";
    /// Machines of a live run that are processes. A scenario with more is refused there.
    MAX_LIVE_PROCESSES: usize = 128, "machines";
    /// An order to a live run, and the head of a request of its page. A longer one is refused.
    MAX_LIVE_ORDER_BYTES: usize = 1 << 16, "bytes";
    /// Orders that a live run takes at once. Further ones wait.
    MAX_LIVE_ORDERS: usize = 16, "orders";
    /// Requests that the page of a live run answers at once. A further one is refused.
    MAX_LIVE_READERS: usize = 16, "requests";
    /// How long a live run waits for the whole of an order, and somebody who gave one for its
    /// answer. Then the connection is closed.
    MAX_LIVE_WAIT_MS: u64 = 10_000, "milliseconds";
    /// Pictures of the map that a page holds. A longer run has them farther apart.
    MAX_PAGE_PICTURES: u64 = 600, "pictures";
    /// Places of machines that the pictures of a page hold, all together. With many machines the
    /// pictures are farther apart.
    MAX_PAGE_PLACES: u64 = 1 << 19, "places";
}
