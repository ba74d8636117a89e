//! The console: plain ES modules that are part of the program. No build step makes them, and they
//! ask for nothing but the hub's own routes.

use axum::extract::{Path, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};

use crate::refusal::HttpRefusal;
use crate::reply::answer;

/// A file of the console: its name, its type and its text.
type ConsoleFile = (&'static str, &'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($name:literal: $kind:expr,)+) => {
        &[$(($name, $kind, include_str!(concat!("../console/", $name))),)+]
    };
}

const INDEX: &str = include_str!("../console/index.html");
const FILES: &[ConsoleFile] = files! {
    "console.css": "text/css; charset=utf-8",
    "consumer.js": SCRIPT,
    "delayed.js": SCRIPT,
    "dom.js": SCRIPT,
    "frame.js": SCRIPT,
    "hub.js": SCRIPT,
    "json.js": SCRIPT,
    "main.js": SCRIPT,
    "messages.js": SCRIPT,
    "overview.js": SCRIPT,
    "pages.js": SCRIPT,
    "publish.js": SCRIPT,
    "readers.js": SCRIPT,
    "rows.js": SCRIPT,
    "sizes.js": SCRIPT,
    "stream.js": SCRIPT,
};

/// Nothing from anywhere else is loaded, asked or framed, and no script stands in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// `GET /`.
pub(crate) async fn index() -> Response {
    file("text/html; charset=utf-8", INDEX)
}

/// `GET /console/{file}`.
pub(crate) async fn asset(Path(name): Path<String>, request: Request) -> Response {
    match FILES.iter().find(|(known, _, _)| *known == name) {
        Some((_, kind, text)) => file(kind, text),
        None => answer(request.headers(), Err(HttpRefusal::NotFound)),
    }
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let mut headers = HeaderMap::new();
    let fields = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // Another version of the node has other files under the same names.
        (CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
    (headers, text).into_response()
}
