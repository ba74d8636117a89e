use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use sealane_message::limits::MAX_BODIES_BYTES;
use sealane_stream::Hub;
use tokio::sync::{mpsc, watch};

use crate::access::{Access, Pass, cross_site};
use crate::fair::Fair;
use crate::listener::{Peer, Places};
use crate::ready::{Probe, ready};
use crate::refusal::{Refusal, Refused};
use crate::reply::{Fill, Reason, answer};
use crate::{Config, access, console, enqueue, streams, subscribe};

/// What all requests share.
pub(crate) struct App {
    pub(crate) hub: Hub,
    /// Turns true when the node stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// WebSockets that are served.
    pub(crate) connections: AtomicUsize,
    pub(crate) places: Arc<Places>,
    pub(crate) access: Arc<Access>,
    pub(crate) fair: Fair,
    pub(crate) refused: Refused,
    pub(crate) probe: Probe,
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
            connections: AtomicUsize::new(0),
            places: Places::new(config.limits.connections_per_address.max(1)),
            fair: Fair::new(config.limits),
            refused: Refused::new(),
            probe: Probe::new(&config.data),
            alive: Mutex::new(Some(alive)),
        }
    }

    /// Something to hold while a connection is served; none when the node stops.
    pub(crate) fn alive(&self) -> Option<Alive> {
        self.alive.lock().ok()?.clone()
    }

    /// No further connection is served.
    pub(crate) fn let_go(&self) {
        if let Ok(mut alive) = self.alive.lock() {
            alive.take();
        }
    }

    /// Who sends a request. Tokens that are not known are answered so often a minute; those that
    /// hold are always taken, since others may share their address.
    fn admit(&self, headers: &HeaderMap, peer: Option<Peer>) -> Result<Pass, Refusal> {
        let refusal = match self.access.admit(headers) {
            Ok(pass) => return Ok(pass),
            Err(refusal) => refusal,
        };
        let is_guess = matches!(refusal, Refusal::Unauthorized) && access::shows_token(headers);
        let Some(peer) = peer.filter(|_| is_guess) else { return Err(refusal) };
        let now = Instant::now();
        if let Some(wait) = self.fair.guessed.wait(&peer, now) {
            return Err(Refusal::Guesses(wait));
        }
        self.fair.guessed.charge(&peer, 1, now);
        Err(refusal)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    let guarded = Router::new()
        .route("/v1/enqueue", post(enqueue::one).fallback(wrong_method))
        .route("/v1/enqueue/batch", post(enqueue::batch).fallback(wrong_method))
        .route("/v1/streams", get(streams::list).fallback(wrong_method))
        .route(
            "/v1/streams/{*topic}",
            get(streams::show)
                .put(streams::configure)
                .delete(streams::remove)
                .fallback(wrong_method),
        )
        .route("/v1/subscribe", any(subscribe::subscribe))
        .route("/metrics", get(metrics).fallback(wrong_method))
        .route_layer(from_fn_with_state(app.clone(), admit));
    guarded
        .route("/health", get(health).fallback(wrong_method))
        .route("/ready", get(ready).fallback(wrong_method))
        .route("/", get(console::index).fallback(wrong_method))
        .route("/console/{file}", get(console::asset).fallback(wrong_method))
        .fallback(not_found)
        .layer(from_fn_with_state(app.clone(), cross_site))
        .layer(from_fn_with_state(app.clone(), count))
        .with_state(app)
}

/// Lets those through who may be here; what they may do is for the route to ask.
async fn admit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    match app.admit(request.headers(), peer) {
        Ok(pass) => {
            request.extensions_mut().insert(pass);
            next.run(request).await
        }
        Err(refusal) => answer(request.headers(), Err(refusal)),
    }
}

async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if let Some(Reason(name)) = response.extensions().get() {
        app.refused.count(name);
    }
    response
}

async fn health(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let stopping = app.is_stopping();
    let status = if stopping { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let fill: Fill = Box::new(move |writer| {
        writer.map(5);
        writer.key("ok");
        writer.bool(!stopping);
        writer.key("version");
        writer.text(env!("CARGO_PKG_VERSION"));
        writer.key("status");
        writer.text(if stopping { "draining" } else { "healthy" });
        writer.key("level");
        writer.text(app.hub.level().name());
        writer.key("streams");
        writer.u64(app.hub.count() as u64);
        writer.end();
    });
    answer(&headers, Ok((status, fill)))
}

/// Prometheus' text format; docs/METRICS.md lists the metrics.
async fn metrics(
    State(app): State<Arc<App>>,
    Extension(pass): Extension<Pass>,
    headers: HeaderMap,
) -> Response {
    if let Err(refusal) = pass.need_observe() {
        return answer(&headers, Err(refusal));
    }
    let mut text = String::new();
    let gauges = [
        ("sealane_stream_streams", "Streams.", app.hub.count() as u64),
        (
            "sealane_stream_sealed_streams",
            "Streams whose messages the hub cannot read.",
            app.hub.count_sealed() as u64,
        ),
        (
            "sealane_read_connections",
            "WebSocket connections that are served.",
            app.connections.load(Ordering::Relaxed) as u64,
        ),
        (
            "sealane_carry_connections",
            "Connections of all kinds, those that have said nothing yet included.",
            app.places.taken() as u64,
        ),
        (
            "sealane_carry_body_bytes",
            "Bytes of request bodies that are held.",
            (MAX_BODIES_BYTES - app.fair.bodies.available_permits()) as u64,
        ),
    ];
    let counters = app.hub.metrics().all().into_iter().map(|row| ("counter", row));
    for (kind, (name, help, value)) in gauges.into_iter().map(|row| ("gauge", row)).chain(counters)
    {
        let help = help.trim();
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    let name = "sealane_carry_refused_total";
    let _ = write!(text, "# HELP {name} Refusals, by name.\n# TYPE {name} counter\n");
    for (code, value) in app.refused.all() {
        let _ = writeln!(text, "{name}{{code=\"{code}\"}} {value}");
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(CONTENT_TYPE, kind)], text).into_response()
}

async fn not_found(request: Request) -> Response {
    answer(request.headers(), Err(Refusal::NotFound))
}

async fn wrong_method(request: Request) -> Response {
    answer(request.headers(), Err(Refusal::MethodNotAllowed))
}
