//! The shares of owners: which refusals are right, and what may be forgotten for them.

use std::collections::HashMap;
use std::time::Instant;

use crate::{Error, OwnShares, ShareKind, ShareRules, StreamHub};

/// The owners of the model. The empty one stands for clients without a token.
pub(super) const OWNERS: [&str; 3] = ["", "a", "b"];
/// The owner with small shares. Nothing of the others may be refused or forgotten for them.
const SMALL: &str = "a";
/// Its shares.
const LIMITS: [(ShareKind, u64); 6] = [
    (ShareKind::Streams, 2),
    (ShareKind::Delayed, 3),
    (ShareKind::Keys, 4),
    (ShareKind::Sessions, 3),
    (ShareKind::Consumers, 2),
    (ShareKind::InFlight, 4),
];
/// How far two looks at the time may be apart by rounding.
const ROUNDING_MS: u64 = 2;

/// The shares of all owners.
pub(super) fn rules() -> ShareRules {
    let own = LIMITS.iter().fold(OwnShares::default(), |own, (kind, n)| own.with(*kind, *n));
    ShareRules::new(2, HashMap::from([(SMALL.to_owned(), own)]))
}

fn limit(kind: ShareKind) -> Option<u64> {
    LIMITS.iter().find(|(of, _)| *of == kind).map(|(_, limit)| *limit)
}

/// How much an owner holds, as the hub counts.
pub(super) fn held(hub: &StreamHub, owner: &str, kind: ShareKind) -> u64 {
    let all = hub.shares();
    let found = all.iter().find(|share| share.owner == owner && share.kind == kind);
    found.map_or(0, |share| share.held)
}

/// The messages that came with an idempotency key.
#[derive(Debug, Clone)]
pub(super) struct ModelKey {
    pub(super) ids: Vec<String>,
    pub(super) offset: u64,
    /// The time within which it was stored, in milliseconds of the model.
    stored_ms: (u64, u64),
}

/// The holdings of the small owner, now and before.
pub(super) struct ModelShares {
    seed: u64,
    began: Instant,
    /// The most that it held before the batch, and all that it was given since.
    held: HashMap<ShareKind, u64>,
    /// Refusals since then.
    refusals: Vec<(ShareKind, u64)>,
    looked_ms: u64,
    /// When each of its keys was stored.
    keys_ms: Vec<(u64, u64)>,
    /// Sessions that it began, each in one stream.
    sessions: u64,
    /// The messages in flight when the hub was opened: acknowledgements may have been lost.
    in_flight: u64,
    /// The streams and consumers of each owner when the hub was closed well.
    left: Option<Vec<(String, ShareKind, u64)>>,
}

impl ModelShares {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            began: Instant::now(),
            held: HashMap::new(),
            refusals: Vec::new(),
            looked_ms: 0,
            keys_ms: Vec::new(),
            sessions: 0,
            in_flight: 0,
            left: None,
        }
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Looks at what is held, before something is asked for. From then on the hub gives back by
    /// itself, and takes nothing.
    pub(super) fn look(&mut self, hub: &StreamHub) {
        let seed = self.seed;
        // A request that waits for a stream to go comes behind later ones of its batch, so that
        // what those were given counts too.
        for (kind, limit) in std::mem::take(&mut self.refusals) {
            let held = self.held.get(&kind).copied().unwrap_or_default();
            assert!(held >= limit, "seed {seed}: {kind:?} is refused, and {held} are held");
        }
        self.looked_ms = self.now_ms();
        self.held.clear();
        for share in hub.shares() {
            let (owner, kind) = (share.owner.as_str(), share.kind);
            assert!(owner == SMALL || share.refused == 0, "seed {seed}: {share:?}");
            if owner == SMALL {
                self.held.insert(kind, share.held);
                // Keys and sessions go when there are too many, and those of now later.
                let goes = matches!(kind, ShareKind::Keys | ShareKind::Sessions);
                let most = |limit| match kind {
                    ShareKind::InFlight => self.in_flight.max(limit),
                    _ => limit,
                };
                let is_within = limit(kind).is_none_or(|limit| share.held <= most(limit));
                assert!(goes || is_within, "seed {seed}: {share:?}");
            }
        }
    }

    /// An owner was given something.
    pub(super) fn gained(&mut self, owner: &str, kind: ShareKind, count: u64) {
        if owner == SMALL {
            *self.held.entry(kind).or_default() += count;
        }
    }

    /// An owner was refused something: it is the small one, and its share is taken.
    pub(super) fn refused(&mut self, asks: &str, error: &Error) {
        let seed = self.seed;
        let Error::ShareTaken { owner, what, limit: said } = error else {
            panic!("seed {seed}: `{asks}`: {error}")
        };
        let kind = ShareKind::ALL.into_iter().find(|kind| kind.what() == *what).unwrap();
        assert_eq!((asks, owner.as_str()), (SMALL, SMALL), "seed {seed}: {error}");
        assert_eq!(limit(kind), Some(*said), "seed {seed}: {error}");
        self.refusals.push((kind, *said));
    }

    /// A key of an owner was stored just now; `is_stored`: or is stored some time later.
    pub(super) fn key(
        &mut self,
        owner: &str,
        ids: Vec<String>,
        offset: u64,
        is_stored: bool,
    ) -> ModelKey {
        // A message of a `memory` stream is stored after it was answered.
        let stored_ms = (self.looked_ms, if is_stored { self.now_ms() } else { u64::MAX });
        if owner == SMALL {
            self.keys_ms.push(stored_ms);
        }
        ModelKey { ids, offset, stored_ms }
    }

    /// A key was forgotten: as many others of its owner are not older as it has a share of.
    pub(super) fn must_have_lost(&self, owner: &str, key: &ModelKey, what: &str) {
        assert_eq!(owner, SMALL, "{what}: {key:?} was forgotten");
        let is_younger =
            |(_, until): &&(u64, u64)| until.saturating_add(ROUNDING_MS) >= key.stored_ms.0;
        let younger = self.keys_ms.iter().filter(is_younger).count() as u64;
        // The key itself is one of them.
        let is_beyond = Some(younger) > limit(ShareKind::Keys);
        assert!(is_beyond, "{what}: {key:?} was forgotten, and {younger} are no older");
    }

    /// A session of an owner began in a stream.
    pub(super) fn session(&mut self, owner: &str) {
        self.sessions += u64::from(owner == SMALL);
    }

    /// A session was forgotten: its owner has begun more than its share. They have the same hour.
    pub(super) fn must_have_lost_session(&self, owner: &str, what: &str) {
        let is_beyond = Some(self.sessions) > limit(ShareKind::Sessions);
        assert!(owner == SMALL && is_beyond, "{what}: the session was forgotten");
    }

    /// The hub is going to be closed well.
    pub(super) fn left(&mut self, hub: &StreamHub) {
        self.left = Some(Self::lasting(hub));
    }

    /// The hub was opened again: it counts as it did before.
    pub(super) fn opened(&mut self, hub: &StreamHub) {
        self.in_flight = held(hub, SMALL, ShareKind::InFlight);
        if let Some(left) = self.left.take() {
            assert_eq!(Self::lasting(hub), left, "seed {}: counts of a closed hub", self.seed);
        }
    }

    /// The counts that stay as they are while nobody asks for anything.
    fn lasting(hub: &StreamHub) -> Vec<(String, ShareKind, u64)> {
        let lasts = |kind| matches!(kind, ShareKind::Streams | ShareKind::Consumers);
        let shares = hub.shares().into_iter().filter(|share| share.held > 0 && lasts(share.kind));
        let mut all: Vec<_> = shares.map(|share| (share.owner, share.kind, share.held)).collect();
        all.sort();
        all
    }
}
