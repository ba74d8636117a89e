//! How much each owner may hold.

use std::collections::HashMap;

use sealane_message::{System, Topic};

use crate::limits::{
    MAX_DELAYED, MAX_GROUP_STREAMS, MAX_HUB_CONSUMERS, MAX_HUB_IN_FLIGHT, MAX_IDEMPOTENCY_KEYS,
    MAX_MESSAGE_KEYS, MAX_RULES, MAX_SESSIONS, MAX_STREAMS, MIN_OWNER_CONSUMERS, MIN_OWNER_DELAYED,
    MIN_OWNER_GROUP_STREAMS, MIN_OWNER_IN_FLIGHT, MIN_OWNER_STREAMS, SHARE_PARTS,
};

/// The kinds of things that an owner has a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShareKind {
    /// Streams, but for those of systems.
    Streams,
    /// Control streams of groups.
    GroupStreams,
    /// Delayed messages.
    Delayed,
    /// Idempotency keys that clients named.
    Keys,
    /// Idempotency keys that the hub made of messages.
    MessageKeys,
    /// Publishing sessions, each counted for every stream.
    Sessions,
    /// Consumers.
    Consumers,
    /// Messages that consumers were given and have not finished.
    InFlight,
}

impl ShareKind {
    /// All of them.
    pub const ALL: [ShareKind; 8] = [
        ShareKind::Streams,
        ShareKind::GroupStreams,
        ShareKind::Delayed,
        ShareKind::Keys,
        ShareKind::MessageKeys,
        ShareKind::Sessions,
        ShareKind::Consumers,
        ShareKind::InFlight,
    ];

    /// The share that a stream counts for. Dead letters and the audit are the hub's
    /// own.
    pub(crate) fn of_stream(topic: &Topic) -> Option<ShareKind> {
        match topic.system() {
            None => Some(ShareKind::Streams),
            Some(System::Groups) => Some(ShareKind::GroupStreams),
            Some(System::Dead | System::Audit) => None,
        }
    }

    /// Its name in files, on the command line and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            ShareKind::Streams => "streams",
            ShareKind::GroupStreams => "group_streams",
            ShareKind::Delayed => "delayed",
            ShareKind::Keys => "keys",
            ShareKind::MessageKeys => "message_keys",
            ShareKind::Sessions => "sessions",
            ShareKind::Consumers => "consumers",
            ShareKind::InFlight => "in_flight",
        }
    }

    /// Its name in refusals.
    pub fn what(self) -> &'static str {
        match self {
            ShareKind::Streams => "streams",
            ShareKind::GroupStreams => "streams below `groups/`",
            ShareKind::Delayed => "delayed messages",
            ShareKind::Keys => "idempotency keys",
            ShareKind::MessageKeys => "idempotency keys of messages",
            ShareKind::Sessions => "publishing sessions",
            ShareKind::Consumers => "consumers",
            ShareKind::InFlight => "messages in flight",
        }
    }

    /// How many a hub has.
    pub fn limit(self) -> u64 {
        let limit = match self {
            ShareKind::Streams => MAX_STREAMS,
            ShareKind::GroupStreams => MAX_GROUP_STREAMS,
            ShareKind::Delayed => MAX_DELAYED,
            ShareKind::Keys => MAX_IDEMPOTENCY_KEYS,
            ShareKind::MessageKeys => MAX_MESSAGE_KEYS,
            ShareKind::Sessions => MAX_SESSIONS,
            ShareKind::Consumers => MAX_HUB_CONSUMERS,
            ShareKind::InFlight => MAX_HUB_IN_FLIGHT,
        };
        limit as u64
    }
}

impl ShareKind {
    /// How many each owner may have, whatever others have. Of keys and sessions the oldest go
    /// instead, so that they need none.
    pub(crate) fn floor(self) -> u64 {
        match self {
            ShareKind::Streams => MIN_OWNER_STREAMS,
            ShareKind::GroupStreams => MIN_OWNER_GROUP_STREAMS,
            ShareKind::Delayed => MIN_OWNER_DELAYED,
            ShareKind::Consumers => MIN_OWNER_CONSUMERS,
            ShareKind::InFlight => MIN_OWNER_IN_FLIGHT,
            ShareKind::Keys | ShareKind::MessageKeys | ShareKind::Sessions => 0,
        }
    }
}

/// The shares that were chosen for one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnShares(Vec<(ShareKind, u64)>);

impl OwnShares {
    /// The same with this one.
    #[must_use]
    pub fn with(mut self, kind: ShareKind, limit: u64) -> Self {
        self.0.retain(|(other, _)| *other != kind);
        self.0.push((kind, limit));
        self.0.sort_unstable();
        self
    }

    /// The one of a kind, if it was chosen.
    pub fn of(&self, kind: ShareKind) -> Option<u64> {
        self.0.iter().find(|(other, _)| *other == kind).map(|(_, limit)| *limit)
    }

    /// All that were chosen.
    pub fn iter(&self) -> impl Iterator<Item = (ShareKind, u64)> {
        self.0.iter().copied()
    }
}

/// How much each owner may hold.
#[derive(Debug, Clone, Default)]
pub struct ShareRules {
    tokens: usize,
    own: HashMap<String, OwnShares>,
}

impl ShareRules {
    /// The rules of a hub with so many tokens, some of which have shares of their own choice.
    pub fn new(tokens: usize, own: HashMap<String, OwnShares>) -> Self {
        Self { tokens, own }
    }

    /// Whether there are tokens.
    pub(crate) fn has_tokens(&self) -> bool {
        self.tokens > 0
    }

    /// How much an owner may hold.
    pub fn limit(&self, owner: &str, kind: ShareKind) -> u64 {
        let own = self.own.get(owner).and_then(|own| own.of(kind));
        own.unwrap_or_else(|| Self::default_limit(self.tokens, kind))
    }

    /// The rules of retention that one maker may make: an only one has all.
    pub(crate) fn rules_of_a_maker(&self) -> usize {
        if self.tokens > 1 { MAX_RULES / SHARE_PARTS as usize } else { MAX_RULES }
    }

    /// The share of an owner for which none was chosen, where there are so many tokens: an only
    /// one has all.
    pub fn default_limit(tokens: usize, kind: ShareKind) -> u64 {
        if tokens > 1 { kind.limit() / SHARE_PARTS } else { kind.limit() }
    }
}
