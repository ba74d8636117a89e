//! The state that all requests share.

use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use parking_lot::Mutex;
use sealane_stream::Hub;
use tokio::sync::{mpsc, watch};

use crate::Config;
use crate::access::{self, Access, Pass};
use crate::fair::{Fair, Taken};
use crate::peer::{Peer, Permits};
use crate::probe::Probe;
use crate::readers::Readers;
use crate::refusal::{Refusal, Refused};
use crate::requests::Requests;
use crate::routes;
use crate::served::Serving;
use crate::spans::Spans;
use crate::upgrade::Telling;

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) hub: Hub,
    /// Turns true when the node stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// WebSockets and event sources that are served.
    pub(crate) serving: Serving,
    pub(crate) telling: Telling,
    pub(crate) permits: Arc<Permits>,
    pub(crate) access: Arc<Access>,
    pub(crate) fair: Fair,
    pub(crate) refused: Refused,
    pub(crate) requests: Requests,
    pub(crate) spans: Arc<Spans>,
    pub(crate) probe: Probe,
    pub(crate) readers: Arc<Readers>,
    alive: Mutex<Option<Alive>>,
}

/// While one of these is held, the node waits before it closes its hub.
pub(crate) type Alive = mpsc::Sender<()>;

impl App {
    pub(crate) fn new(
        hub: Hub,
        access: Arc<Access>,
        config: &Config,
        stopping: watch::Receiver<bool>,
        alive: Alive,
    ) -> Self {
        Self {
            hub,
            access,
            stopping,
            serving: Serving::default(),
            telling: Telling::default(),
            permits: Permits::new(config.limits.connections_per_address.max(1)),
            fair: Fair::new(config.limits),
            refused: Refused::new(),
            requests: Requests::new(routes::paths()),
            spans: Arc::default(),
            probe: Probe::new(&config.data),
            readers: Arc::default(),
            alive: Mutex::new(Some(alive)),
        }
    }

    /// Something to hold while a connection is served; none when the node stops.
    pub(crate) fn alive(&self) -> Option<Alive> {
        self.alive.lock().clone()
    }

    /// No further connection is served.
    pub(crate) fn let_go(&self) {
        self.alive.lock().take();
    }

    /// The pass of a request's sender. Unknown tokens are answered so often a minute. Valid tokens
    /// are always taken, since others may share their address.
    pub(crate) fn admit(&self, headers: &HeaderMap, peer: Option<Peer>) -> Result<Pass, Refusal> {
        let refusal = match self.access.admit(headers) {
            // A valid token passes before any rate is asked: others behind the same address may be
            // guessing.
            Ok(pass) => return Ok(pass),
            Err(refusal) => refusal,
        };
        let is_guess = matches!(refusal, Refusal::Unauthorized) && access::shows_token(headers);
        // A request without a token guesses nothing, and must not use up the guesses of its
        // address.
        let Some(peer) = peer.filter(|_| is_guess) else { return Err(refusal) };
        let now = Instant::now();
        if let Some(wait) = self.fair.guessed.wait(&peer, now) {
            return Err(Refusal::Guesses(wait));
        }
        self.fair.guessed.charge(&peer, 1, now);
        Err(refusal)
    }

    /// The share of one connection in the memory of deliveries.
    pub(crate) fn share(&self) -> Taken {
        self.fair.deliveries.share(self.serving.count())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
