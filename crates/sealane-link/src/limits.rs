//! The bounds of links and relays.

sealane_message::limits! {
    /// A configuration of links. A longer one is refused.
    MAX_LINK_CONFIG_BYTES: usize = 1 << 20, "bytes";
    /// A relay card. A longer one is refused.
    MAX_RELAY_CARD_BYTES: usize = 1 << 18, "bytes";
    /// Groups that one machine relays for. A further card is refused.
    MAX_RELAY_GROUPS: usize = 16, "groups";
    /// Links of one machine. A further one is refused.
    MAX_RELAY_LINKS: usize = 16, "links";
    /// Neighbours of one machine. A further one is refused.
    MAX_NEIGHBOURS: usize = 256, "neighbours";
    /// Routes of one machine. A further one is refused.
    MAX_ROUTES: usize = 4096, "routes";
    /// Prefixes of addresses that are behind members. A further one is refused.
    MAX_PREFIXES: usize = 1024, "prefixes";
    /// The most that a link carries at once: a UDP datagram over IPv4.
    MAX_UNIT_BYTES: usize = 65_507, "bytes";
    /// The least that a link carries at once: a frame's header and seal, and a few bytes.
    MIN_UNIT_BYTES: usize = 128, "bytes";
    /// Frames of one neighbour in a second, where the configuration says nothing else. More are
    /// dropped and counted.
    NEIGHBOUR_FRAMES_PER_SECOND: u32 = 1_000_000, "frames a second";
    /// Frames to everybody that are remembered, so that none is sent on twice. The oldest half is
    /// forgotten at once.
    MAX_REPEATS_KNOWN: usize = 1 << 15, "frames";
    /// Announcements of senders that a relay holds for those who ask. A further sender's is not
    /// held.
    MAX_ANNOUNCEMENTS_HELD: usize = 4096, "announcements";
    /// How soon a neighbour that asked for announcements is answered again.
    MIN_ASK_INTERVAL_MS: u64 = 500, "milliseconds";
    /// Bytes of frames whose other parts have not come, all links of a machine together: each link
    /// has its share. A frame that is longer than the share of its link is dropped and counted.
    MAX_RELAY_PARTIAL_BYTES: usize = 4 << 20, "bytes";
    /// The bytes that a capture takes on disk. Then it ends, and all that it misses is counted.
    MAX_CAPTURE_BYTES: u64 = 1 << 30, "bytes";
    /// The bytes that wait for the file of a capture. More is missed and counted, so that links
    /// wait for no disk.
    MAX_CAPTURE_WAITING_BYTES: usize = 2 << 20, "bytes";
    /// How long a link that is full is waited for. Then what was to be sent is dropped and counted.
    MAX_SEND_WAIT_MS: u64 = 5, "milliseconds";
    /// How long a neighbour's wire that was found to be narrower than its link says is taken for
    /// that. Then it is tried again.
    MAX_NARROW_MS: u64 = 600_000, "milliseconds";
    /// Units of one neighbour for the machine that routes, in a second, over a wire. More are
    /// dropped and counted.
    MAX_CONTROL_UNITS_PER_SECOND: u32 = 1000, "units a second";
    /// The same of all together who are no neighbours, on one link.
    MAX_STRANGER_UNITS_PER_SECOND: u32 = 500, "units a second";
    /// Units that wait for the machine that routes: of neighbours, of others, and what is to leave
    /// by a radio, each. A further one is dropped and counted.
    MAX_MESH_WAITING: usize = 512, "units";
    /// Traces for whose answers somebody on this machine waits. A further one is refused.
    MAX_TRACES_WAITING: usize = 8, "traces";
    /// Batches that wait for a link in memory. A further one is not taken.
    MAX_MEMORY_BATCHES: usize = 32, "batches";
    /// Machines beside an end with an interface of frames whose addresses it knows. A further one
    /// is not remembered.
    MAX_TAP_HOSTS: usize = 1024, "machines";
    /// Questions of such machines that are answered in a second, and questions of the end to them.
    /// Of further ones nothing is heard.
    MAX_TAP_ANSWERS_PER_SECOND: u32 = 1000, "answers a second";
    /// How often a relay that ends still takes what has come on a link, and an end what programs
    /// have sent, so that an end under load is one.
    MAX_LAST_BATCHES: u32 = 4096, "calls";
    /// UDP segments that an end hands to the kernel at once. Every kernel with this offload takes
    /// as many. More go in another call.
    MAX_UDP_SEGMENTS: usize = 64, "segments";
    /// How long a captured unit waits for its file, if the file takes all that comes.
    MAX_CAPTURE_WAIT_MS: u64 = 50, "milliseconds";
    /// How long a receiver of multicast hears nothing before it looks whether the relay ends.
    MULTICAST_TURN_MS: u64 = 100, "milliseconds";
    /// The name of a network interface, as the kernel takes it. A longer one is refused.
    MAX_INTERFACE_NAME_BYTES: usize = 15, "bytes";
    /// A packet of IP that an end hands to the kernel or takes from it. A longer one is dropped.
    MAX_PACKET_BYTES: usize = 65_535, "bytes";
    /// How long nothing happens before the thread that routes looks around.
    ROUTING_TURN_MS: u64 = 500, "milliseconds";
    /// How often a link joins its multicast group again, in case the interface was gone.
    MULTICAST_REJOIN_MS: u64 = 1000, "milliseconds";
    /// How long a receiver of multicast rests after a fault of its socket.
    MULTICAST_FAULT_PAUSE_MS: u64 = 100, "milliseconds";
    /// How long the thread of a link has nothing to do before it looks whether the relay ends. It
    /// rests as long after a fault.
    LINK_TURN_MS: u64 = 100, "milliseconds";
    /// Bytes of a socket that may wait in the kernel, each way. The kernel drops more.
    MAX_SOCKET_QUEUE_BYTES: usize = 8 << 20, "bytes";
    /// Units of Ethernet that one call takes, so that a flood keeps nobody waiting. More wait for
    /// the next call.
    MAX_ETHERNET_UNITS: usize = 256, "units";
}
