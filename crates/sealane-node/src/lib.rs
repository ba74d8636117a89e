//! The daemon: the hub of `sealane-stream` over HTTP and WebSocket, on one port (spec/hub.md).
//!
//! ```text
//!  POST /v1/enqueue ─► Hub::enqueue ─► … ─► Subscription ─► GET /v1/subscribe (WebSocket)
//!  GET /v1/streams  ─► Hub::streams, Hub::read
//! ```
//!
//! ```
//! use sealane_node::{Config, HubNode};
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path().to_owned();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let listen = "127.0.0.1:0".parse()?;
//! let node = HubNode::start(Config { listen, data, ..Config::default() }).await?;
//! println!("listening on {}", node.address());
//! node.stop().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod access;
mod app;
mod audit;
mod body;
mod clock;
mod connection;
mod console;
mod consumers;
mod crowd;
mod delayed;
mod enqueue;
mod events;
mod fair;
mod followed;
mod frames;
mod handshake;
mod head;
pub mod limits;
mod metrics;
mod outlet;
mod overview;
mod peer;
mod probe;
mod publish;
mod query;
mod readers;
mod ready;
mod refusal;
mod replies;
mod reply;
mod requests;
mod routes;
mod rules;
mod served;
mod server;
mod socket;
mod spans;
mod streams;
mod subscribe;
mod tickets;
mod tls;
mod trace;
mod upgrade;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sealane_protocol::{Level, Retention};
use sealane_stream::{HubConfig, StreamHub};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use access::{AccessTokens, AllowedSites};
use app::{NodeApp, NodeDoors};
use audit::AuditTrail;
pub use fair::ClientLimits;
pub use refusal::ERRORS;
use server::NodeServer;
use spans::SpanCollector;
use tls::NodeTls;
pub use tls::{TlsError, TlsFiles};

use crate::limits::{MAX_DRAIN_MS, MAX_LAST_AUDIT_MS, MAX_LAST_SPANS_MS};

/// The configuration of a node; the default serves this machine alone.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The folder that the streams are kept in.
    pub data: PathBuf,
    /// The level of streams that are made by their first message.
    pub level: Level,
    /// The retention of streams that are made by their first message.
    pub retention: Retention,
    /// Other sites whose pages may use the hub, as browsers write them: `https://fleet.example`.
    pub origins: Vec<String>,
    /// The certificate with which TLS is spoken; none: it is not.
    pub tls: Option<TlsFiles>,
    /// The limits of one client.
    pub limits: ClientLimits,
    /// How long a stream below `reply/` may have nothing new and no reader before it is removed;
    /// none: it stays.
    pub reply_ttl: Option<Duration>,
    /// The collector of OpenTelemetry that is told of traced requests, `http://127.0.0.1:4318`;
    /// none: nobody is.
    pub otlp: Option<String>,
    /// Has the allocator of the process give back what nobody uses any more, which takes some
    /// milliseconds; none: it keeps that for the next crowd.
    pub give_back: Option<fn()>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 9087)),
            data: PathBuf::from("sealane-data"),
            level: Level::Disk,
            retention: Retention::default(),
            origins: Vec::new(),
            tls: None,
            limits: ClientLimits::default(),
            reply_ttl: None,
            otlp: None,
            give_back: None,
        }
    }
}

sealane_message::errors! {
    /// The error codes of a start.
    pub const START_ERRORS;

    /// Why a node did not start, or did not stop cleanly.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum StartError {
        /// The streams could not be opened or closed.
        #[error("{}", store_failure(folder, cause))]
        #[inner(cause)]
        Store {
            /// The data folder.
            folder: PathBuf,
            /// Why.
            cause: sealane_protocol::Error,
        },
        /// The address could not be listened on.
        #[error("cannot listen on {address}: {cause}")]
        #[code("SL-CLI-12", "Listen")]
        #[cause("the node cannot listen on its address")]
        #[hint("Another node may hold the port; choose another with --listen, or 127.0.0.1:0 for a \
                free one.")]
        Listen {
            /// The address.
            address: SocketAddr,
            /// Why.
            cause: std::io::Error,
        },
        /// The tokens could not be read.
        #[error(transparent)]
        #[code("SL-CLI-17", "Tokens", exit = Usage)]
        #[cause("the node's tokens cannot be read or changed as asked")]
        #[hint("`sealane token ls` lists them; the file is tokens.toml in the data folder, mode \
                0600.")]
        Tokens(#[from] access::FileError),
        /// Others could reach the address, and there is no token.
        #[error("{address} can be reached by others, and the node has no token")]
        #[code("SL-CLI-18", "Unguarded", exit = Usage)]
        #[cause("the node would listen where others can reach it, and has no token")]
        #[hint("Make one with `sealane token new NAME --read '**' --publish '**'`, or listen on \
                127.0.0.1.")]
        Unguarded {
            /// The address.
            address: SocketAddr,
        },
        /// The collector is not named by an address to which traces can be sent.
        #[error("`{endpoint}` is no collector that can be told of traces")]
        #[code("SL-CLI-23", "Collector", exit = Usage)]
        #[cause("the address of the collector of traces cannot be used")]
        #[hint("Name a collector that speaks OTLP over HTTP, without TLS: http://127.0.0.1:4318.")]
        Collector {
            /// The given endpoint.
            endpoint: String,
        },
        /// The certificate could not be used.
        #[error(transparent)]
        #[code("SL-CLI-19", "Certificate", exit = Usage)]
        #[cause("the node's certificate or its key cannot be used")]
        #[hint("Name PEM files that belong together with --tls-cert (the whole chain) and \
                --tls-key.")]
        Tls(#[from] TlsError),
    }
}

/// The cause with the folder, which most causes name themselves.
fn store_failure(folder: &Path, cause: &sealane_protocol::Error) -> String {
    let (folder, cause) = (folder.display().to_string(), cause.to_string());
    let is_named = [":", "/"].iter().any(|end| cause.contains(&format!("{folder}{end}")));
    if is_named { cause } else { format!("{folder}: {cause}") }
}

fn collector(endpoint: Option<&str>) -> Result<Option<SpanCollector>, StartError> {
    let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.is_empty()) else { return Ok(None) };
    let named = || StartError::Collector { endpoint: endpoint.to_owned() };
    SpanCollector::read(endpoint).map(Some).ok_or_else(named)
}

/// A running node. Dropped without [`HubNode::stop`], it serves until its runtime ends.
pub struct HubNode {
    app: Arc<NodeApp>,
    folder: PathBuf,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    /// Ends when the last connection has gone.
    connections: mpsc::Receiver<()>,
    /// Turns true when the last request has been served.
    served: watch::Sender<bool>,
    /// Ends when the records of all requests are stored.
    audit: JoinHandle<()>,
    tls: Option<Arc<NodeTls>>,
    /// Ends when the collector has been told of everything.
    spans: Option<JoinHandle<()>>,
    /// The door is open while this runs.
    server: JoinHandle<()>,
}

impl HubNode {
    /// Opens the streams and begins to listen.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(config: Config) -> Result<HubNode, StartError> {
        let folder = config.data.clone();
        let is_exposed = !config.listen.ip().is_loopback();
        let site = AllowedSites { origins: config.origins.clone() };
        let access = Arc::new(AccessTokens::open(&folder, site, is_exposed)?);
        // Only loopback may go without tokens. The start fails, since a warning would be
        // overlooked.
        if is_exposed && !access.has_tokens() {
            return Err(StartError::Unguarded { address: config.listen });
        }
        let tls = config.tls.clone().map(NodeTls::open).transpose()?.map(Arc::new);
        if is_exposed && tls.is_none() {
            tracing::warn!("tokens and messages travel in clear: there is no --tls-cert");
        }
        let collector = collector(config.otlp.as_deref())?;
        let hub =
            HubConfig { folder: folder.clone(), level: config.level, retention: config.retention };
        let store = |cause| StartError::Store { folder: folder.clone(), cause };
        // Opening reads the whole index and may migrate it. The runtime must not stand still
        // meanwhile.
        let opened = tokio::task::spawn_blocking(move || StreamHub::open(hub)).await;
        let hub = opened.unwrap_or(Err(sealane_protocol::Error::Draining)).map_err(store)?;
        let listen = |cause| StartError::Listen { address: config.listen, cause };
        // The port opens after the store. A client that connects can be served.
        let listener = tokio::net::TcpListener::bind(config.listen).await.map_err(listen)?;
        let listener = listener.into_std().map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stop, stopping) = watch::channel(false);
        let (alive, connections) = mpsc::channel(1);
        let (audit, records) = AuditTrail::new();
        let doors = NodeDoors { stopping: stopping.clone(), alive, audit };
        let app = Arc::new(NodeApp::new(hub, access.clone(), &config, doors));
        let (served, ended) = watch::channel(false);
        let audit = tokio::spawn(audit::keep(app.clone(), records, ended));
        let sharer = Arc::downgrade(&app);
        access.share_by(move |rules| {
            // The tokens may outlive the node by a moment.
            sharer.upgrade().into_iter().for_each(|app| app.hub.set_shares(rules.clone()));
        });
        tokio::spawn(access.follow(stopping.clone()));
        if let Some(ttl) = config.reply_ttl {
            tokio::spawn(replies::tidy(app.clone(), ttl, stopping.clone()));
        }
        if let Some(give_back) = config.give_back {
            tokio::spawn(crowd::follow(app.permits.clone(), give_back, stopping.clone()));
        }
        if let Some(tls) = tls.clone() {
            tokio::spawn(tls.follow(stopping));
        }
        let spans = collector.map(|collector| app.spans.begin(collector));
        let router = routes::router(app.clone());
        let server =
            NodeServer::start(app.clone(), router, tls.clone(), listener).map_err(listen)?;
        let streams = app.hub.count();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), %address, streams, "serves");
        Ok(HubNode { app, folder, address, stop, connections, served, audit, tls, spans, server })
    }

    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The hub that is served.
    pub fn hub(&self) -> &StreamHub {
        &self.app.hub
    }

    /// Reads the tokens and the certificate again, which the node else does by itself within a
    /// second.
    ///
    /// # Errors
    /// [`StartError::Tokens`], [`StartError::Tls`]; what cannot be used is then as it was.
    pub fn reload(&self) -> Result<(), StartError> {
        let tokens = self.app.access.reload();
        // Both are tried before either fault is returned. A bad certificate must not keep a revoked
        // token alive.
        let tls = self.tls.as_ref().map_or(Ok(()), |tls| tls.reload());
        tokens?;
        Ok(tls?)
    }

    /// Tells the clients to go, stores everything, and ends.
    ///
    /// # Errors
    /// [`StartError::Store`] where what was acknowledged at the level `memory` may be lost.
    pub async fn stop(mut self) -> Result<(), StartError> {
        self.stop.send_replace(true);
        // The node's own hold goes, so that the channel ends with the last connection's.
        self.app.let_go();
        let gone = async { while self.connections.recv().await.is_some() {} };
        if tokio::time::timeout(Duration::from_millis(MAX_DRAIN_MS), gone).await.is_err() {
            tracing::warn!("some clients did not go in time");
        }
        // The door closes only now. Until here newcomers are told that the node drains.
        self.server.abort();
        // Requests under way were served until here, and leave records.
        self.served.send_replace(true);
        let stored = tokio::time::timeout(Duration::from_millis(MAX_LAST_AUDIT_MS), self.audit);
        if stored.await.is_err() {
            tracing::warn!("the last records of the audit were not stored; the log has them");
        }
        self.app.spans.end();
        if let Some(spans) = self.spans
            && tokio::time::timeout(Duration::from_millis(MAX_LAST_SPANS_MS), spans).await.is_err()
        {
            tracing::warn!("the collector was not told of the last requests in time");
        }
        let app = self.app.clone();
        let closed = tokio::task::spawn_blocking(move || app.hub.close()).await;
        let result = closed.unwrap_or(Err(sealane_protocol::Error::Draining));
        result.map_err(|cause| StartError::Store { folder: self.folder, cause })
    }
}
