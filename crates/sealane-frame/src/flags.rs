//! The bytes of the header that are numbers of a closed set.

/// The purpose of a frame. Relays treat kinds alike; ends hand each to another part of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A message of an application.
    Message = 0,
    /// Groups and keys: a signed advance of the epoch, a revocation.
    Control = 1,
    /// Beacons and answers of the mesh.
    Routing = 2,
    /// Documents on their way from neighbour to neighbour.
    Gossip = 3,
}

impl FrameKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [FrameKind; 4] =
        [FrameKind::Message, FrameKind::Control, FrameKind::Routing, FrameKind::Gossip];

    /// The kind of that number.
    pub fn from_id(id: u8) -> Option<FrameKind> {
        FrameKind::ALL.get(usize::from(id)).copied()
    }
}

/// The order of frames where a link is slower than its senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Priority {
    /// Messages that may wait: history, large documents.
    Low = 0,
    /// The rest.
    Normal = 1,
    /// Messages that people wait for.
    High = 2,
    /// Emergencies.
    Critical = 3,
}

impl Priority {
    /// All priorities, in the order of their numbers.
    pub const ALL: [Priority; 4] =
        [Priority::Low, Priority::Normal, Priority::High, Priority::Critical];
}

/// How the body was compressed before it was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameCompression {
    /// Not at all.
    None = 0,
    /// An LZ4 block.
    Lz4 = 1,
    /// A Zstandard frame.
    Zstd = 2,
}

impl FrameCompression {
    /// All compressions, in the order of their numbers.
    pub const ALL: [FrameCompression; 3] =
        [FrameCompression::None, FrameCompression::Lz4, FrameCompression::Zstd];
}
