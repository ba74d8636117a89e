use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use sealane_stream::Hub;
use tokio::sync::{mpsc, watch};

use crate::access::{Access, cross_site};
use crate::refusal::Refusal;
use crate::reply::{Fill, answer};
use crate::{console, enqueue, streams, subscribe};

/// What all requests share.
pub(crate) struct App {
    pub(crate) hub: Hub,
    /// Turns true when the node stops.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) connections: AtomicUsize,
    pub(crate) access: Arc<Access>,
    alive: Mutex<Option<Alive>>,
}

/// While one of these is held, the node waits before it closes its hub.
pub(crate) type Alive = mpsc::Sender<()>;

impl App {
    pub(crate) fn new(
        hub: Hub,
        access: Arc<Access>,
        stopping: watch::Receiver<bool>,
        alive: Alive,
    ) -> Self {
        let alive = Mutex::new(Some(alive));
        Self { hub, access, stopping, connections: AtomicUsize::new(0), alive }
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

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
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
        .route("/health", get(health).fallback(wrong_method))
        .route("/metrics", get(metrics).fallback(wrong_method))
        .route("/", get(console::index).fallback(wrong_method))
        .route("/console/{file}", get(console::asset).fallback(wrong_method))
        .fallback(not_found)
        .layer(from_fn_with_state(app.clone(), cross_site))
        .with_state(app)
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
async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    if let Err(refusal) = app.access.admit(&headers).and_then(|pass| pass.need_observe()) {
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
    ];
    let counters = app.hub.metrics().all().into_iter().map(|row| ("counter", row));
    for (kind, (name, help, value)) in gauges.into_iter().map(|row| ("gauge", row)).chain(counters)
    {
        let help = help.trim();
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
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
