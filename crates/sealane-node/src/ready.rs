//! `GET /ready`: whether this node takes messages now.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::app::NodeApp;
use crate::reply::{ReplyFill, answer};

/// 200, or 503 with the reason: nothing more is to be sent here.
pub(crate) async fn ready(State(app): State<Arc<NodeApp>>, headers: HeaderMap) -> Response {
    let status = if app.is_stopping() {
        "draining"
    // A known fault answers without touching the disk. Otherwise a real write decides, since a full
    // disk shows no other sign.
    } else if app.hub.trouble().is_none() && app.probe.is_writable().await {
        "ready"
    } else {
        "storage"
    };
    let is_ready = status == "ready";
    let fill: ReplyFill = Box::new(move |writer| {
        writer.map(2);
        writer.key("ready");
        writer.bool(is_ready);
        writer.key("status");
        writer.text(status);
        writer.end();
    });
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer(&headers, Ok((code, fill)))
}
