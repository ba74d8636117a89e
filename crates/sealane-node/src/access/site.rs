//! The requests that a page of another site may not make a browser send here.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::NodeApp;
use crate::refusal::HttpRefusal;

/// The headers that pages of listed sites may send beside those that every page may.
const ALLOWED: &str = "authorization, content-type, accept, idempotency-key, idempotency-scope, \
                       last-event-id, traceparent";

/// The other sites whose pages may use this hub.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedSites {
    /// As browsers write them: `https://fleet.example`.
    pub(crate) origins: Vec<String>,
}

impl AllowedSites {
    /// Whether the request is meant for this node, and not by a page that is none of ours.
    pub(super) fn check(&self, headers: &HeaderMap, guarded: bool) -> Result<(), HttpRefusal> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        // Without tokens the host name is the only guard against DNS rebinding by a page of the
        // web.
        if !guarded && !is_loopback(host) {
            return Err(HttpRefusal::Site(format!("`Host: {}` is not this machine", brief(host))));
        }
        match headers.get(ORIGIN) {
            None => Ok(()),
            Some(origin) if self.allows(origin, host) => Ok(()),
            Some(origin) => {
                let origin = origin.to_str().unwrap_or_default();
                Err(HttpRefusal::Site(format!(
                    "a page of `{}` may not use this hub",
                    brief(origin)
                )))
            }
        }
    }

    fn allows(&self, origin: &HeaderValue, host: &str) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        // The scheme is not compared. A proxy in front of the node may speak TLS, which the node
        // does not see.
        let own = origin.split_once("://").is_some_and(|(_, named)| named == host);
        own || self.is_listed(origin)
    }

    fn is_listed(&self, origin: &str) -> bool {
        self.origins.iter().any(|listed| listed == origin)
    }
}

fn brief(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Whether a `Host` names this machine, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Answers preflight requests of listed sites, and says in other answers that they may be read.
pub(crate) async fn cross_site(
    State(app): State<Arc<NodeApp>>,
    request: Request,
    next: Next,
) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let site = &app.access.site;
    let listed = origin.filter(|origin| origin.to_str().is_ok_and(|text| site.is_listed(text)));
    let Some(origin) = listed else { return next.run(request).await };
    // A preflight carries no token (Fetch, CORS-preflight), so that it is answered before tokens
    // are asked.
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    let fields = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "retry-after"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
        (VARY, "origin"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // The origin is named and no `*`, since only listed pages may read answers.
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_this_machine() {
        for host in ["localhost", "LOCALHOST:9087", "127.0.0.1:1", "127.1.2.3", "[::1]:9087"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example:9087", "10.0.0.1", "[::2]", ":1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_page_is_of_this_host_or_listed() {
        let site = AllowedSites { origins: vec!["https://fleet.example".to_owned()] };
        let allows =
            |origin: &'static str, host| site.allows(&HeaderValue::from_static(origin), host);
        assert!(allows("http://127.0.0.1:9087", "127.0.0.1:9087"));
        assert!(allows("https://fleet.example", "hub.example"));
        for origin in
            ["null", "http://evil.example", "https://fleet.example.evil", "http://127.0.0.1"]
        {
            assert!(!allows(origin, "127.0.0.1:9087"), "{origin}");
        }
    }
}
