//! The state that all requests share.

use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use parking_lot::Mutex;
use sealane_stream::StreamHub;
use tokio::sync::{mpsc, watch};

use crate::Config;
use crate::access::{self, AccessTokens, RequestPass};
use crate::audit::AuditTrail;
use crate::fair::{DeliveryShare, FairLimits, ReplyHold, ReplyOwner};
use crate::peer::{ClientPeer, ConnectionPermits};
use crate::probe::FolderProbe;
use crate::readers::ConnectedReaders;
use crate::refusal::{HttpRefusal, RefusalCounts};
use crate::requests::RequestTimings;
use crate::routes;
use crate::served::ServedCount;
use crate::spans::SpanQueue;
use crate::tickets::GivenTickets;
use crate::upgrade::RefusalSlots;

/// The parts of all memory for large replies of which a token has one, where there are several.
const REPLY_PARTS: usize = 4;

/// The state that all requests share.
pub(crate) struct NodeApp {
    pub(crate) hub: StreamHub,
    /// Turns true when the node stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// WebSockets and event sources that are served.
    pub(crate) serving: ServedCount,
    pub(crate) telling: RefusalSlots,
    pub(crate) permits: Arc<ConnectionPermits>,
    pub(crate) access: Arc<AccessTokens>,
    pub(crate) fair: FairLimits,
    pub(crate) refused: RefusalCounts,
    pub(crate) requests: RequestTimings,
    pub(crate) spans: Arc<SpanQueue>,
    pub(crate) probe: FolderProbe,
    pub(crate) readers: Arc<ConnectedReaders>,
    pub(crate) audit: AuditTrail,
    pub(crate) tickets: GivenTickets,
    alive: Mutex<Option<NodeAlive>>,
}

/// The channels by which a node is told, and tells.
pub(crate) struct NodeDoors {
    /// Turns true when the node stops.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) alive: NodeAlive,
    pub(crate) audit: AuditTrail,
}

/// While one of these is held, the node waits before it closes its hub.
pub(crate) type NodeAlive = mpsc::Sender<()>;

impl NodeApp {
    pub(crate) fn new(
        hub: StreamHub,
        access: Arc<AccessTokens>,
        config: &Config,
        doors: NodeDoors,
    ) -> Self {
        let NodeDoors { stopping, alive, audit } = doors;
        Self {
            hub,
            access,
            stopping,
            serving: ServedCount::default(),
            telling: RefusalSlots::default(),
            permits: ConnectionPermits::new(config.limits.connections_per_address.max(1)),
            fair: FairLimits::new(config.limits),
            refused: RefusalCounts::new(),
            requests: RequestTimings::new(routes::paths()),
            spans: Arc::default(),
            probe: FolderProbe::new(&config.data),
            readers: Arc::default(),
            audit,
            tickets: GivenTickets::default(),
            alive: Mutex::new(Some(alive)),
        }
    }

    /// Something to hold while a connection is served; none when the node stops.
    pub(crate) fn alive(&self) -> Option<NodeAlive> {
        self.alive.lock().clone()
    }

    /// No further connection is served.
    pub(crate) fn let_go(&self) {
        self.alive.lock().take();
    }

    /// The pass of whoever brings a ticket, as its token is now.
    pub(crate) fn admit_ticket(
        &self,
        headers: &HeaderMap,
        ticket: &str,
    ) -> Result<RequestPass, HttpRefusal> {
        // The site comes first. A page of the web must not use up tickets either.
        self.access.check_site(headers)?;
        let pass = self.tickets.take(ticket, Instant::now())?;
        // The token may have been revoked since.
        self.access.renew(pass)
    }

    /// The pass of a request's sender. Unknown tokens are answered so often a minute. Valid tokens
    /// are always taken, since others may share their address.
    pub(crate) fn admit(
        &self,
        headers: &HeaderMap,
        peer: Option<ClientPeer>,
    ) -> Result<RequestPass, HttpRefusal> {
        let refusal = match self.access.admit(headers) {
            // A valid token passes before any rate is asked: others behind the same address may be
            // guessing.
            Ok(pass) => return Ok(pass.at(peer)),
            Err(refusal) => refusal,
        };
        let is_guess = matches!(refusal, HttpRefusal::Unauthorized) && access::shows_token(headers);
        // A request without a token guesses nothing, and must not use up the guesses of its
        // address.
        let Some(peer) = peer.filter(|_| is_guess) else { return Err(refusal) };
        let now = Instant::now();
        if let Some(wait) = self.fair.guessed.wait(&peer, now) {
            return Err(HttpRefusal::Guesses(wait));
        }
        self.fair.guessed.charge(&peer, 1, now);
        Err(refusal)
    }

    /// The share of one connection in the memory of deliveries.
    pub(crate) fn share(&self) -> DeliveryShare {
        self.fair.deliveries.share(self.serving.count() + self.fair.replies.count())
    }

    /// Room for something larger than that share, if there is some now.
    pub(crate) fn large(&self, owner: &ReplyOwner, bytes: usize) -> Option<ReplyHold> {
        let now = tokio::time::Instant::now();
        self.fair.replies.reserve(owner, self.reply_parts(), bytes, now)
    }

    /// The parts of all room for replies of which each owner has one.
    pub(crate) fn reply_parts(&self) -> usize {
        if self.access.count() > 1 { REPLY_PARTS } else { 1 }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
