use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use sealane_protocol::{Error, Health};
use tracing::Instrument;

use crate::access::{RequestPass, cross_site};
use crate::app::NodeApp;
use crate::audit::AuditedRequest;
use crate::peer::ClientPeer;
use crate::ready::ready;
use crate::refusal::HttpRefusal;
use crate::reply::{RefusalName, ReplyFill, answer};
use crate::trace::TracedRequest;
use crate::{
    console, consumers, delayed, enqueue, events, head, metrics, overview, publish, query, rules,
    streams, subscribe, tickets, upgrade,
};

/// The description of the routes for other programs.
const OPENAPI: &str = include_str!("../openapi.json");

/// The service at a path.
struct HttpRoute {
    path: &'static str,
    methods: &'static str,
    kind: RouteKind,
    serve: MethodRouter<Arc<NodeApp>>,
}

/// A route that asks for a token.
#[derive(Debug, Clone, Copy)]
struct GuardedRoute {
    kind: RouteKind,
    path: &'static str,
}

/// The clients that may ask, and the way in which a refusal is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RouteKind {
    /// Anybody: there is nothing of anybody in the answer.
    Open,
    /// Clients that bring a token, where there are any.
    Guarded,
    /// The same, for a WebSocket.
    Socket,
    /// Clients that bring a token, or a ticket in its place.
    Ticketed,
}

fn routes() -> Vec<HttpRoute> {
    let guarded =
        |path, methods, serve| HttpRoute { path, methods, kind: RouteKind::Guarded, serve };
    let socket = |path, serve| HttpRoute { path, methods: "get", kind: RouteKind::Socket, serve };
    let open = |path, serve| HttpRoute { path, methods: "get", kind: RouteKind::Open, serve };
    let topic = get(streams::show).put(streams::configure).delete(streams::remove);
    let consumer = get(consumers::show).post(consumers::steer).delete(consumers::remove);
    let held_back = get(delayed::list).delete(delayed::cancel);
    vec![
        guarded("/v1/enqueue", "post", post(enqueue::one)),
        guarded("/v1/enqueue/batch", "post", post(enqueue::batch)),
        guarded("/v1/streams", "get", get(streams::list)),
        guarded("/v1/streams/{*topic}", "get put delete", topic),
        guarded("/v1/consumers", "get", get(consumers::list)),
        guarded("/v1/consumers/{*topic}", "get post delete", consumer),
        guarded("/v1/delayed/{*topic}", "get delete", held_back),
        guarded(
            "/v1/rules",
            "get put delete",
            get(rules::list).put(rules::set).delete(rules::remove),
        ),
        guarded("/v1/purge/{*topic}", "post", post(streams::purge)),
        socket("/v1/subscribe", get(subscribe::subscribe)),
        socket("/v1/publish", get(publish::publish)),
        HttpRoute {
            path: "/v1/events",
            methods: "get",
            kind: RouteKind::Ticketed,
            serve: get(events::events),
        },
        HttpRoute {
            path: "/v1/overview",
            methods: "get",
            kind: RouteKind::Ticketed,
            serve: get(overview::overview),
        },
        guarded("/v1/ticket", "post", post(tickets::make)),
        guarded("/metrics", "get", get(metrics::show)),
        open("/v1/openapi.json", get(openapi)),
        open("/health", get(health)),
        open("/ready", get(ready)),
        open("/", get(console::index)),
        open("/console/{file}", get(console::asset)),
    ]
}

pub(crate) fn router(app: Arc<NodeApp>) -> Router {
    let mut router = Router::new();
    for HttpRoute { path, methods, kind, serve } in routes() {
        // axum's own answer to a wrong method is no refusal of the hub, and is not in the client's
        // codec.
        let serve = serve.fallback(move |request| wrong_method(request, methods));
        let admit = from_fn_with_state((app.clone(), GuardedRoute { kind, path }), admit);
        router =
            router.route(path, if kind == RouteKind::Open { serve } else { serve.layer(admit) });
    }
    // The last layer is the outermost one. It counts refusals of all layers within.
    router
        .fallback(not_found)
        .layer(from_fn_with_state(app.clone(), cross_site))
        .layer(from_fn(head::check))
        .layer(from_fn_with_state(app.clone(), count))
        .with_state(app)
}

/// `GET /v1/openapi.json`.
async fn openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], OPENAPI).into_response()
}

/// Lets those through who may be here; what they may do is for the route to ask.
async fn admit(
    State((app, route)): State<(Arc<NodeApp>, GuardedRoute)>,
    mut request: Request,
    next: Next,
) -> Response {
    let audited = AuditedRequest::of(&request, route.path);
    let (pass, response) = match pass(&app, route.kind, &request) {
        Ok(pass) => {
            request.extensions_mut().insert(pass.clone());
            if audited.may_do() {
                return run_to_its_end(app, audited, pass, request, next).await;
            }
            (pass, next.run(request).await)
        }
        // A browser shows a page nothing of a refused upgrade. The reason has to come on an opened
        // socket.
        Err(refusal) if route.kind == RouteKind::Socket => {
            (RequestPass::default(), upgrade::refuse(&app, request, refusal).await)
        }
        Err(refusal) => (RequestPass::default(), answer(request.headers(), Err(refusal))),
    };
    app.audit.note(&audited, pass.name(), &response);
    response
}

/// Serves a request that may change something, and records it even if its client hangs up: the
/// writer may have been told already.
async fn run_to_its_end(
    app: Arc<NodeApp>,
    audited: AuditedRequest,
    pass: RequestPass,
    request: Request,
    next: Next,
) -> Response {
    // The node waits for this task as for a connection.
    let alive = app.alive();
    let served = async move {
        let response = next.run(request).await;
        app.audit.note(&audited, pass.name(), &response);
        drop(alive);
        response
    };
    match tokio::spawn(served.in_current_span()).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
    }
}

/// The pass of a request's sender; a node that stops takes none.
fn pass(app: &NodeApp, kind: RouteKind, request: &Request) -> Result<RequestPass, HttpRefusal> {
    let peer = request.extensions().get::<ClientPeer>().copied();
    let ticket = || ticket(request.uri().query()?);
    let pass = match (kind == RouteKind::Ticketed).then(ticket).flatten() {
        Some(ticket) => app.admit_ticket(request.headers(), &ticket)?,
        None => app.admit(request.headers(), peer)?,
    };
    // The token is asked first, so that a bad one is refused alike before and while the node
    // drains.
    if app.is_stopping() { Err(Error::Draining.into()) } else { Ok(pass) }
}

/// The ticket in a query. What is wrong with a query says the route that reads it.
fn ticket(query: &str) -> Option<String> {
    let all = query::read(RawQuery(Some(query.to_owned()))).ok()?;
    all.into_iter().find_map(|(name, value)| (name == tickets::PARAMETER).then_some(value))
}

/// The paths of all routes.
pub(crate) fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|route| route.path).collect()
}

async fn count(State(app): State<Arc<NodeApp>>, request: Request, next: Next) -> Response {
    let (route, began) = (app.requests.of(request.uri().path()), Instant::now());
    let response = match TracedRequest::begin(&request, route.path) {
        None => next.run(request).await,
        Some(traced) => {
            let response = next.run(request).instrument(traced.logged()).await;
            traced.end(&response).into_iter().for_each(|span| app.spans.note(span));
            response
        }
    };
    // A WebSocket counts until its upgrade is answered, and not for its lifetime.
    route.took.note(began.elapsed());
    if let Some(RefusalName(name)) = response.extensions().get() {
        app.refused.count(name);
    }
    response
}

async fn health(State(app): State<Arc<NodeApp>>, headers: HeaderMap) -> Response {
    let health = health_of(&app);
    // A node whose disk is full lives: it reads, and takes messages again when there is room.
    let is_draining = health.status == DRAINING;
    let code = if is_draining { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let fill: ReplyFill = Box::new(move |writer| health.write(writer));
    answer(&headers, Ok((code, fill)))
}

/// The status of a node that stops.
const DRAINING: &str = "draining";

/// How the node is now.
pub(crate) fn health_of(app: &NodeApp) -> Health {
    let (stopping, trouble) = (app.is_stopping(), app.hub.trouble());
    let status = match (&trouble, stopping) {
        (_, true) => DRAINING,
        (Some(_), _) => "storage",
        (None, _) => "healthy",
    };
    Health {
        ok: status == "healthy",
        version: env!("CARGO_PKG_VERSION").to_owned(),
        status: status.to_owned(),
        cause: trouble.map(|trouble| trouble.to_string()),
        level: app.hub.level().into(),
        streams: app.hub.count() as u64,
        store: Some(app.hub.store_id().to_string()),
    }
}

async fn not_found(request: Request) -> Response {
    answer(request.headers(), Err(HttpRefusal::NotFound))
}

/// 405 with the methods that there are (RFC 9110 §15.5.6).
async fn wrong_method(request: Request, methods: &'static str) -> Response {
    let mut response = answer(request.headers(), Err(HttpRefusal::MethodNotAllowed));
    let allowed = methods.to_ascii_uppercase().replace(' ', ", ");
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Path and method of everything that the description has.
    fn described(document: &Value) -> BTreeSet<(String, String)> {
        let paths = document["paths"].as_object().unwrap();
        let methods = |item: &Value| -> Vec<String> {
            let keys = item.as_object().unwrap().keys();
            keys.filter(|key| *key != "parameters").cloned().collect()
        };
        let each = paths.iter().flat_map(|(path, item)| {
            methods(item).into_iter().map(move |method| (path.clone(), method))
        });
        each.collect()
    }

    #[test]
    fn the_description_has_every_route_and_method_and_no_other() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let served = routes().into_iter().flat_map(|route| {
            let path = route.path.replace("{*", "{");
            route.methods.split(' ').map(move |method| (path.clone(), method.to_owned()))
        });
        assert_eq!(described(&document), served.collect());
    }

    #[test]
    fn the_description_says_who_is_asked_for_a_token() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        let mut names = BTreeSet::new();
        for route in routes() {
            for method in route.methods.split(' ') {
                let operation = &document["paths"][route.path.replace("{*", "{")][method];
                let what = format!("{method} {}", route.path);
                assert!(names.insert(operation["operationId"].as_str().unwrap()), "{what}");
                let needs_none = operation["security"].as_array().is_some_and(Vec::is_empty);
                assert_eq!(needs_none, route.kind == RouteKind::Open, "{what}");
                let codes = operation["responses"].as_object().unwrap();
                assert_eq!(codes.contains_key("401"), !needs_none, "{what}");
                assert!(codes.keys().any(|code| code.starts_with(['1', '2'])), "{what}");
            }
        }
    }
}
