//! The questions of the race, and who answers each.

use std::path::Path;
use std::time::Duration;

use super::demand::Ask;
use super::nats::Sync;
use super::{Error, Peers, Side, fan_out, nats, ours, sqlite};
use crate::load::client::Acks;
use crate::load::publisher::Pipeline;
use crate::programs::Programs;

/// One question. Its contenders answer it in turn, round after round.
pub(super) struct Heat {
    pub(super) name: &'static str,
    pub(super) contenders: &'static [Contender],
    /// The demands on its rows.
    pub(super) asked: &'static [Ask],
}

/// A program that answers a question, with its settings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Contender {
    /// A plain file, synced after each group of records.
    Floor { group: usize },
    /// SQLite without a node around it, synced after each group of records.
    Sqlite { group: usize },
    /// Enqueues to a node: connections, and messages of each request.
    Append { level: &'static str, connections: usize, size: usize },
    /// Messages over publishing sockets of a node, fsynced before their answers.
    Publish { connections: usize, pipeline: Pipeline },
    /// `nats bench js pub VERB`.
    JetStream { sync: Sync, verb: &'static str, clients: usize },
    /// A backlog read by a consumer of a node, every message acknowledged.
    Deliver { acks: Acks, batch: usize },
    /// `nats bench js VERB`.
    JetRead { verb: &'static str },
    /// A node at level `memory`, one publisher, one reader.
    Live,
    /// Core NATS, one publisher, one reader.
    Core,
    /// Many readers of one stream of a node.
    Readers { batch: usize },
    /// Many subscribers of Centrifugo.
    Centrifugo,
}

use Contender::{
    Append, Centrifugo, Core, Deliver, Floor, JetRead, JetStream, Live, Publish, Readers, Sqlite,
};

/// The next message is sent once the last one is answered.
const ALONE: Pipeline = Pipeline { window: 1, frame: 1 };
/// As many messages as the hub gives credit for, a frame each.
const SINGLES: Pipeline = Pipeline { window: u64::MAX, frame: 1 };
/// As many messages as the hub gives credit for, up to so many in a frame.
const FRAMES: Pipeline = Pipeline { window: u64::MAX, frame: 500 };

pub(super) const HEATS: &[Heat] = &[
    Heat {
        name: "publish one at a time",
        contenders: &[
            Floor { group: 1 },
            Sqlite { group: 1 },
            Append { level: "disk", connections: 1, size: 1 },
            Append { level: "os", connections: 1, size: 1 },
            Append { level: "memory", connections: 1, size: 1 },
            Publish { connections: 1, pipeline: ALONE },
            JetStream { sync: Sync::Default, verb: "sync", clients: 1 },
            JetStream { sync: Sync::Always, verb: "sync", clients: 1 },
        ],
        asked: &[
            Ask::p50_above(Side::Socket, 120.0, Side::File),
            Ask::rate(Side::Socket, Some(1.3), Side::PeerSynced),
            Ask::rate(Side::Socket, None, Side::PeerUnsynced),
            Ask::rate(Side::Http, None, Side::PeerUnsynced),
            Ask::rate(Side::Http, None, Side::PeerSynced),
        ],
    },
    Heat {
        name: "publish 64 in flight",
        contenders: &[
            Floor { group: 64 },
            Sqlite { group: 64 },
            Append { level: "disk", connections: 64, size: 1 },
            Append { level: "os", connections: 64, size: 1 },
            Append { level: "memory", connections: 64, size: 1 },
            Publish { connections: 64, pipeline: ALONE },
            JetStream { sync: Sync::Default, verb: "sync", clients: 64 },
            JetStream { sync: Sync::Always, verb: "sync", clients: 64 },
        ],
        asked: &[
            Ask::rate(Side::Socket, Some(2.5), Side::Http),
            Ask::cpu(Side::Socket, 20.0),
            Ask::cpu(Side::Http, 40.0),
            Ask::rate(Side::Http, Some(1.0), Side::PeerUnsynced),
            Ask::rate(Side::Http, Some(10.0), Side::PeerSynced),
        ],
    },
    Heat {
        name: "publish batches of 500",
        contenders: &[
            Floor { group: 500 },
            Sqlite { group: 500 },
            Append { level: "disk", connections: 1, size: 500 },
            Append { level: "os", connections: 1, size: 500 },
            Append { level: "memory", connections: 1, size: 500 },
            Publish { connections: 1, pipeline: SINGLES },
            Publish { connections: 1, pipeline: FRAMES },
            JetStream { sync: Sync::Default, verb: "async", clients: 1 },
            JetStream { sync: Sync::Always, verb: "async", clients: 1 },
            JetStream { sync: Sync::Later, verb: "async", clients: 1 },
            JetStream { sync: Sync::Default, verb: "batch", clients: 1 },
            JetStream { sync: Sync::Always, verb: "batch", clients: 1 },
        ],
        asked: &[
            Ask::rate_per_core(Side::Socket, 0.8, Side::HttpBatches),
            Ask::rate(Side::Socket, Some(3.0), Side::PeerUnsynced),
            Ask::rate(Side::HttpBatches, Some(1.0), Side::PeerUnsynced),
            Ask::rate(Side::HttpBatches, Some(1.0), Side::PeerUnsyncedBatches),
            Ask::rate(Side::HttpBatches, Some(10.0), Side::PeerSynced),
        ],
    },
    Heat {
        name: "consume, acknowledged",
        contenders: &[
            Deliver { acks: Acks::Each, batch: 1 },
            Deliver { acks: Acks::Range, batch: 256 },
            JetRead { verb: "consume" },
            JetRead { verb: "fetch" },
        ],
        asked: &[Ask::rate(Side::OursAcked, Some(3.0), Side::PeerAcked)],
    },
    Heat {
        name: "one to one, live",
        contenders: &[Live, Core],
        asked: &[Ask::rate(Side::Ours, None, Side::Peer)],
    },
    Heat {
        name: "fan-out over WebSocket",
        contenders: &[Readers { batch: 1 }, Readers { batch: 64 }, Centrifugo],
        asked: &[
            Ask::rate(Side::Ours, Some(3.0), Side::Peer),
            // The clients, who cost both the same, are on the same cores.
            Ask::rate_per_core(Side::Ours, 3.0, Side::Peer),
        ],
    },
];

/// The environment of a lap.
pub(super) struct Track<'a> {
    pub(super) programs: &'a Programs,
    pub(super) peers: &'a Peers,
    pub(super) data: Option<&'a Path>,
    /// Bytes of a body.
    pub(super) body: usize,
    /// Connections that read in a fan-out.
    pub(super) subscribers: usize,
}

/// The time after a server's last answer in which its CPU still counts.
pub(super) const AFTER: Duration = Duration::from_millis(300);

/// How much a lap does: contenders that count get a number, those that look at the clock a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) count: u64,
    pub(super) each: Duration,
}

/// The result of one lap.
#[derive(Debug, Clone, Default)]
pub(super) struct Lap {
    /// Messages or deliveries.
    pub(super) count: u64,
    pub(super) seconds: f64,
    /// CPU that the server's process spent.
    pub(super) cpu_s: f64,
    /// Memory that it held at the end.
    pub(super) resident_bytes: u64,
    /// How long one answer took: half of them, and 99 of 100; none where nobody says it.
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    /// Messages of a commit.
    pub(super) group: Option<f64>,
    /// The output of a peer's tool.
    pub(super) raw: String,
}

impl Lap {
    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / self.seconds
    }
}

impl Contender {
    pub(super) async fn lap(self, track: &Track<'_>, effort: Effort) -> Result<Lap, Error> {
        match self {
            Floor { group } => ours::floor(track, group, effort),
            Sqlite { group } => sqlite::insert(track, group, effort),
            Append { level, connections, size } => {
                ours::append(track, level, connections, size, effort).await
            }
            Publish { connections, pipeline } => {
                ours::publish(track, connections, pipeline, effort).await
            }
            JetStream { sync, verb, clients } => {
                nats::publish(track, sync, verb, clients, effort).await
            }
            Deliver { acks, batch } => ours::deliver(track, acks, batch, effort).await,
            JetRead { verb } => nats::read(track, verb, effort).await,
            Live => ours::live(track, effort).await,
            Core => nats::core(track, effort).await,
            Readers { batch } => fan_out::sealane(track, batch, effort).await,
            Centrifugo => fan_out::centrifugo(track, effort).await,
        }
    }

    /// Its name, and how it is used.
    pub(super) fn name(self) -> String {
        match self {
            Floor { group } => format!("a plain file, groups of {group}"),
            Sqlite { group } => format!("plain SQLite, groups of {group}"),
            Append { size: 1, .. } => "Sealane, HTTP enqueue".into(),
            Append { size, .. } => format!("Sealane, HTTP batches of {size}"),
            Publish { pipeline: ALONE, .. } => "Sealane, socket".into(),
            Publish { pipeline: SINGLES, .. } => "Sealane, socket, pipelined".into(),
            Publish { pipeline, .. } => format!("Sealane, socket, frames to {}", pipeline.frame),
            JetStream { verb: "sync", .. } => "JetStream, js pub sync".into(),
            JetStream { verb, .. } => format!("JetStream, js pub {verb} of 500"),
            Deliver { batch: 1, .. } => "Sealane consumer, each by id".into(),
            Deliver { batch, .. } => format!("Sealane consumer, ranges to {batch}"),
            JetRead { verb } => format!("JetStream, js {verb}, acks explicit"),
            Live => "Sealane, batches of 500, a reader".into(),
            Core => "Core NATS, pub and sub".into(),
            Readers { batch: 1 } => "Sealane readers, a frame each".into(),
            Readers { batch } => format!("Sealane readers, frames to {batch}"),
            Centrifugo => "Centrifugo, JSON protocol".into(),
        }
    }

    /// The durability of a message that is acknowledged, in the contender's own word.
    pub(super) fn durability(self) -> &'static str {
        match self {
            Floor { .. } => "fdatasync",
            Sqlite { .. } => "FULL",
            Append { level, .. } => level,
            JetStream { sync, .. } => sync.durability(),
            Publish { .. } | Deliver { .. } => "disk",
            JetRead { .. } => Sync::Default.durability(),
            Live | Readers { .. } => "memory",
            Core | Centrifugo => "none",
        }
    }

    pub(super) fn connections(self, track: &Track<'_>) -> usize {
        match self {
            Floor { .. } | Sqlite { .. } => 0,
            Append { connections, .. } | Publish { connections, .. } => connections,
            JetStream { clients, .. } => clients,
            Deliver { .. } | JetRead { .. } => 1,
            Live | Core => 2,
            Readers { .. } | Centrifugo => track.subscribers,
        }
    }

    /// On which side of a demand it stands.
    pub(super) fn side(self) -> Side {
        match self {
            Floor { .. } => Side::File,
            Append { level: "disk", size: 1, .. } => Side::Http,
            Append { level: "disk", .. } => Side::HttpBatches,
            Publish { pipeline: ALONE | SINGLES, .. } => Side::Socket,
            Deliver { .. } => Side::OursAcked,
            JetStream { sync: Sync::Default, verb: "batch", .. } => Side::PeerUnsyncedBatches,
            JetStream { sync: Sync::Default, .. } => Side::PeerUnsynced,
            JetStream { sync: Sync::Always, .. } => Side::PeerSynced,
            JetRead { .. } => Side::PeerAcked,
            Live | Readers { .. } => Side::Ours,
            Core | Centrifugo => Side::Peer,
            Sqlite { .. }
            | Append { .. }
            | Publish { .. }
            | JetStream { sync: Sync::Later, .. } => Side::Beside,
        }
    }

    /// The count of the first lap, whose rate is not known yet.
    pub(super) fn first_count(self) -> u64 {
        match self {
            JetStream { verb: "sync", .. } | JetStream { sync: Sync::Always, .. } => 1_000,
            JetStream { .. } => 10_000,
            _ => 50_000,
        }
    }
}
