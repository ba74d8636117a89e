//! The questions of the race, and who answers each.

use std::path::Path;
use std::time::Duration;

use super::demand::DemandRule;
use super::nats::JetStreamSync;
use super::{RacePeers, RaceSide, fan_out, nats, ours, sqlite};
use crate::failure::{BenchFailure, Result};
use crate::load::client::AckMode;
use crate::load::publisher::PublishPipeline;
use crate::load::worker::WorkerOutcome;
use crate::programs::BenchPrograms;

/// One question. Its contenders answer it in turn, round after round.
pub(super) struct RaceHeat {
    pub(super) name: &'static str,
    pub(super) contenders: &'static [RaceContender],
    /// The demands on its rows.
    pub(super) asked: &'static [DemandRule],
}

/// A program that answers a question, with its settings.
#[derive(Debug, Clone, Copy)]
pub(super) enum RaceContender {
    /// A plain file, synced after each group of records.
    Floor { group: usize },
    /// SQLite without a node around it, synced after each group of records.
    Sqlite { group: usize },
    /// Enqueues to a node: connections, and messages of each request.
    Append { level: &'static str, connections: usize, size: usize },
    /// Messages over publishing sockets of a node, fsynced before their answers.
    Publish { connections: usize, pipeline: PublishPipeline },
    /// `nats bench js pub VERB`.
    JetStream { sync: JetStreamSync, verb: &'static str, clients: usize },
    /// A backlog read by a consumer of a node, every message acknowledged.
    Deliver { acks: AckMode, batch: usize },
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
    /// Apache Iggy in batches of 500, with its own settings or with those under which an
    /// acknowledged message survives a kill.
    Iggy { durable: bool },
}

use RaceContender::{
    Append, Centrifugo, Core, Deliver, Floor, Iggy, JetRead, JetStream, Live, Publish, Readers,
    Sqlite,
};

/// The crates registry has clients of Iggy only.
const NO_IGGY: &str = "the server is in no registry of packages, which are all that is reached";

/// The next message is sent once the last one is answered.
const ALONE: PublishPipeline = PublishPipeline { window: 1, frame: 1 };
/// As many messages as the hub gives credit for, a frame each.
const SINGLES: PublishPipeline = PublishPipeline { window: u64::MAX, frame: 1 };
/// As many messages as the hub gives credit for, up to so many in a frame.
const FRAMES: PublishPipeline = PublishPipeline { window: u64::MAX, frame: 500 };

pub(super) const HEATS: &[RaceHeat] = &[
    RaceHeat {
        name: "publish one at a time",
        contenders: &[
            Floor { group: 1 },
            Sqlite { group: 1 },
            Append { level: "disk", connections: 1, size: 1 },
            Append { level: "os", connections: 1, size: 1 },
            Append { level: "memory", connections: 1, size: 1 },
            Publish { connections: 1, pipeline: ALONE },
            JetStream { sync: JetStreamSync::Default, verb: "sync", clients: 1 },
            JetStream { sync: JetStreamSync::Always, verb: "sync", clients: 1 },
        ],
        asked: &[
            DemandRule::p50_above(RaceSide::Socket, 120.0, RaceSide::File),
            DemandRule::rate(RaceSide::Socket, Some(1.3), RaceSide::PeerSynced),
            DemandRule::rate(RaceSide::Socket, None, RaceSide::PeerUnsynced),
            DemandRule::rate(RaceSide::Http, None, RaceSide::PeerUnsynced),
            DemandRule::rate(RaceSide::Http, None, RaceSide::PeerSynced),
        ],
    },
    RaceHeat {
        name: "publish 64 in flight",
        contenders: &[
            Floor { group: 64 },
            Sqlite { group: 64 },
            Append { level: "disk", connections: 64, size: 1 },
            Append { level: "os", connections: 64, size: 1 },
            Append { level: "memory", connections: 64, size: 1 },
            Publish { connections: 64, pipeline: ALONE },
            JetStream { sync: JetStreamSync::Default, verb: "sync", clients: 64 },
            JetStream { sync: JetStreamSync::Always, verb: "sync", clients: 64 },
        ],
        asked: &[
            DemandRule::rate(RaceSide::Socket, Some(2.5), RaceSide::Http),
            DemandRule::cpu(RaceSide::Socket, 20.0),
            DemandRule::cpu(RaceSide::Http, 40.0),
            DemandRule::rate(RaceSide::Http, Some(1.0), RaceSide::PeerUnsynced),
            DemandRule::rate(RaceSide::Http, Some(10.0), RaceSide::PeerSynced),
        ],
    },
    RaceHeat {
        name: "publish batches of 500",
        contenders: &[
            Floor { group: 500 },
            Sqlite { group: 500 },
            Append { level: "disk", connections: 1, size: 500 },
            Append { level: "os", connections: 1, size: 500 },
            Append { level: "memory", connections: 1, size: 500 },
            Publish { connections: 1, pipeline: SINGLES },
            Publish { connections: 1, pipeline: FRAMES },
            JetStream { sync: JetStreamSync::Default, verb: "async", clients: 1 },
            JetStream { sync: JetStreamSync::Always, verb: "async", clients: 1 },
            JetStream { sync: JetStreamSync::Later, verb: "async", clients: 1 },
            JetStream { sync: JetStreamSync::Default, verb: "batch", clients: 1 },
            JetStream { sync: JetStreamSync::Always, verb: "batch", clients: 1 },
            Iggy { durable: false },
            Iggy { durable: true },
        ],
        asked: &[
            DemandRule::rate_per_core(RaceSide::Socket, 0.8, RaceSide::HttpBatches),
            DemandRule::rate(RaceSide::Socket, Some(3.0), RaceSide::PeerUnsynced),
            DemandRule::rate(RaceSide::HttpBatches, Some(1.0), RaceSide::PeerUnsynced),
            DemandRule::rate(RaceSide::HttpBatches, Some(1.0), RaceSide::PeerUnsyncedBatches),
            DemandRule::rate(RaceSide::HttpBatches, Some(10.0), RaceSide::PeerSynced),
        ],
    },
    RaceHeat {
        name: "consume, acknowledged",
        contenders: &[
            Deliver { acks: AckMode::Each, batch: 1 },
            Deliver { acks: AckMode::Range, batch: 256 },
            JetRead { verb: "consume" },
            JetRead { verb: "fetch" },
        ],
        asked: &[DemandRule::rate(RaceSide::OursAcked, Some(3.0), RaceSide::PeerAcked)],
    },
    RaceHeat {
        name: "one to one, live",
        contenders: &[Live, Core],
        asked: &[DemandRule::rate(RaceSide::Ours, None, RaceSide::Peer)],
    },
    RaceHeat {
        name: "fan-out over WebSocket",
        contenders: &[Readers { batch: 1 }, Readers { batch: 64 }, Centrifugo],
        asked: &[
            DemandRule::rate(RaceSide::Ours, Some(3.0), RaceSide::Peer),
            // The clients, who cost both the same, are on the same cores.
            DemandRule::rate_per_core(RaceSide::Ours, 3.0, RaceSide::Peer),
        ],
    },
];

/// The environment of a lap.
pub(super) struct LapSetup<'a> {
    pub(super) programs: &'a BenchPrograms,
    pub(super) peers: &'a RacePeers,
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
pub(super) struct LapEffort {
    pub(super) count: u64,
    pub(super) each: Duration,
}

/// The result of one lap.
#[derive(Debug, Clone, Default)]
pub(super) struct RaceLap {
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

impl RaceLap {
    /// Of a floor, which has no process of its own and commits groups of one size.
    pub(super) fn of_groups(seen: WorkerOutcome, group: usize) -> Self {
        let WorkerOutcome { count, seconds, p50_us, p99_us, .. } = seen;
        let (p50_us, p99_us, group) = (Some(p50_us), Some(p99_us), Some(group as f64));
        RaceLap { count, seconds, p50_us, p99_us, group, ..RaceLap::default() }
    }

    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / self.seconds
    }
}

impl RaceContender {
    pub(super) async fn lap(self, track: &LapSetup<'_>, effort: LapEffort) -> Result<RaceLap> {
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
            Iggy { .. } => Err(BenchFailure::of(self.not_measured().unwrap_or_default())),
        }
    }

    /// Why it has a row and no figures.
    pub(super) fn not_measured(self) -> Option<&'static str> {
        matches!(self, Iggy { .. }).then_some(NO_IGGY)
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
            Iggy { .. } => "Iggy, TCP batches of 500".into(),
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
            JetRead { .. } => JetStreamSync::Default.durability(),
            Live | Readers { .. } => "memory",
            Core | Centrifugo | Iggy { durable: false } => "none",
            // `messages_required_to_save = 1`: its fsync alone left nothing on the disk.
            Iggy { durable: true } => "fsync, 1",
        }
    }

    pub(super) fn connections(self, track: &LapSetup<'_>) -> usize {
        match self {
            Floor { .. } | Sqlite { .. } => 0,
            Append { connections, .. } | Publish { connections, .. } => connections,
            JetStream { clients, .. } => clients,
            Deliver { .. } | JetRead { .. } | Iggy { .. } => 1,
            Live | Core => 2,
            Readers { .. } | Centrifugo => track.subscribers,
        }
    }

    /// On which side of a demand it stands.
    pub(super) fn side(self) -> RaceSide {
        match self {
            Floor { .. } => RaceSide::File,
            Append { level: "disk", size: 1, .. } => RaceSide::Http,
            Append { level: "disk", .. } => RaceSide::HttpBatches,
            Publish { pipeline: ALONE | SINGLES, .. } => RaceSide::Socket,
            Deliver { .. } => RaceSide::OursAcked,
            JetStream { sync: JetStreamSync::Default, verb: "batch", .. } => {
                RaceSide::PeerUnsyncedBatches
            }
            JetStream { sync: JetStreamSync::Default, .. } => RaceSide::PeerUnsynced,
            JetStream { sync: JetStreamSync::Always, .. } => RaceSide::PeerSynced,
            JetRead { .. } => RaceSide::PeerAcked,
            Live | Readers { .. } => RaceSide::Ours,
            Core | Centrifugo => RaceSide::Peer,
            Sqlite { .. }
            | Iggy { .. }
            | Append { .. }
            | Publish { .. }
            | JetStream { sync: JetStreamSync::Later, .. } => RaceSide::Beside,
        }
    }

    /// The count of the first lap, whose rate is not known yet.
    pub(super) fn first_count(self) -> u64 {
        match self {
            JetStream { verb: "sync", .. } | JetStream { sync: JetStreamSync::Always, .. } => 1_000,
            JetStream { .. } => 10_000,
            _ => 50_000,
        }
    }
}
