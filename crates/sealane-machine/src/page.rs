//! Pages for programs and browsers of this machine: one server, and one rule for hosts and keys.
//!
//! It answers one request of each connection and closes it. Nothing can be changed by a page.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tower_service::Service;

use crate::limits::{ACCEPT_PAUSE_MS, MAX_STATUS_HEAD_BYTES, MAX_STATUS_MS, MAX_STATUS_READERS};
use crate::{MachineError, Result};

/// The least that hyper reads of a head before it refuses it. The guard refuses shorter ones.
const HEAD_BUFFER_BYTES: usize = 2 * MAX_STATUS_HEAD_BYTES;

/// Pages that are served until this is dropped.
pub(crate) struct PageServer {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl PageServer {
    /// Serves these pages at an address.
    ///
    /// # Errors
    /// The system's error for the address.
    pub(crate) async fn serve(address: SocketAddr, pages: Router) -> std::io::Result<PageServer> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(PageServer { address, serving: tokio::spawn(accept(listener, guarded(pages))) })
    }

    /// Where they are served.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The pages behind the rules for all of them.
pub(crate) fn guarded(pages: Router) -> Router {
    pages
        .fallback(|| async { refusal(StatusCode::NOT_FOUND) })
        .method_not_allowed_fallback(|| async { refusal(StatusCode::METHOD_NOT_ALLOWED) })
        .layer(from_fn(guard))
}

async fn accept(listener: TcpListener, pages: Router) {
    let readers = Arc::new(Semaphore::new(MAX_STATUS_READERS));
    while let Ok(permit) = Arc::clone(&readers).acquire_owned().await {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            continue;
        };
        let answered = answer(socket, pages.clone());
        tokio::spawn(async move {
            // A reader that is too slow, or goes away, gets nothing.
            let _ = tokio::time::timeout(Duration::from_millis(MAX_STATUS_MS), answered).await;
            drop(permit);
        });
    }
}

fn answer(socket: TcpStream, pages: Router) -> impl Future<Output = hyper::Result<()>> {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut pages = pages.clone();
        async move { pages.call(request.map(Body::new)).await }
    });
    let mut server = http1::Builder::new();
    // A browser that keeps its connection would hold one of the few places of all readers.
    server.keep_alive(false).title_case_headers(true).max_buf_size(HEAD_BUFFER_BYTES);
    server.serve_connection(TokioIo::new(socket), service)
}

/// Refuses what no program of this machine sends.
async fn guard(request: Request, next: Next) -> Response {
    let head = request.headers();
    // hyper takes no bound below its own least buffer, which is larger than a head here needs.
    let fields: usize =
        head.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if fields + request.uri().to_string().len() > MAX_STATUS_HEAD_BYTES {
        return refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    // A page of the web reaches loopback under a name of its own.
    if !host_of(head).is_some_and(is_this_machine) {
        return refusal(StatusCode::MISDIRECTED_REQUEST);
    }
    next.run(request).await
}

fn host_of(head: &HeaderMap) -> Option<&str> {
    head.get(HOST)?.to_str().ok()
}

/// Whether a host, with or without a port, is this machine however it is resolved.
fn is_this_machine(host: &str) -> bool {
    // A name would be resolved by an attacker's server. Only literal addresses and `localhost` are
    // believed.
    let address = host.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| host.trim_matches(['[', ']']).parse::<IpAddr>());
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    address.map_or(name.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// A page. The address of some has a key in it: no link or picture tells it to another site, and no
/// cache keeps the page.
pub(crate) fn page(status: StatusCode, kind: &'static str, body: String) -> Response {
    const SAME_SITE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
    let fields = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (SAME_SITE, "same-origin"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    ];
    (status, fields, body).into_response()
}

/// A refusal says its status, and nothing else.
pub(crate) fn refusal(status: StatusCode) -> Response {
    page(status, "text/plain; charset=utf-8", format!("{status}\n"))
}

/// The required end of a page's address. Other users of this machine reach the port, too. So do web
/// pages that a browser on it shows. None of them can guess 128 bits.
pub(crate) struct PageKey(String);

impl PageKey {
    pub(crate) fn draw() -> Result<PageKey> {
        let random: [u8; 16] = random()?;
        Ok(PageKey(sealane_message::hex::encode(&random)))
    }

    /// The page's address with the key.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        format!("http://{address}/?key={}", self.0)
    }

    /// Whether a query has the key. The comparison takes as long whichever byte differs.
    pub(crate) fn opens(&self, query: Option<&str>) -> bool {
        let given = query.and_then(|query| query.strip_prefix("key="));
        given.is_some_and(|given| self.0.as_bytes().ct_eq(given.as_bytes()).into())
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut random = [0; N];
    let drawn = getrandom::fill(&mut random);
    drawn.map_err(|error| MachineError::NoResource(std::io::Error::other(error)))?;
    Ok(random)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;

    use axum::routing::get;

    use super::*;

    /// The answer of pages to a request of that host.
    pub(crate) async fn asked(
        pages: &Router,
        method: &str,
        target: &str,
        host: Option<&str>,
    ) -> (u16, HeaderMap) {
        let mut request = Request::builder().method(method).uri(target);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        let mut pages = pages.clone();
        let answered: Result<Response, Infallible> =
            pages.call(request.body(Body::empty()).unwrap()).await;
        let answered = answered.unwrap();
        (answered.status().as_u16(), answered.headers().clone())
    }

    #[test]
    fn only_this_machine_is_answered() {
        for host in ["127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:9191", "localhost", "Localhost:1"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["10.0.0.1", "evil.example", "evil.example:9191", "127.0.0.1.evil.example", ""]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[tokio::test]
    async fn what_is_no_request_of_this_machine_is_refused() {
        let pages = guarded(Router::new().route("/status", get(|| async { "fine" })));
        for (method, target, host, status) in [
            ("GET", "/status", Some("127.0.0.1:1"), 200),
            ("HEAD", "/status", Some("127.0.0.1:1"), 200),
            ("GET", "/status", None, 421),
            ("GET", "/status", Some("evil.example"), 421),
            ("POST", "/status", Some("127.0.0.1:1"), 405),
            ("GET", "/", Some("localhost"), 404),
            ("GET", &format!("/{}", "x".repeat(MAX_STATUS_HEAD_BYTES)), Some("localhost"), 431),
        ] {
            assert_eq!(asked(&pages, method, target, host).await.0, status, "{method} {target}");
        }
    }

    #[tokio::test]
    async fn a_head_is_that_of_the_page_without_a_body() {
        let pages = guarded(Router::new().route("/status", get(|| async { "fine" })));
        let length = "content-length";
        let mut found = vec![];
        for method in ["GET", "HEAD"] {
            let request = Request::builder().method(method).uri("/status").header(HOST, "[::1]");
            let answered: Result<Response, Infallible> =
                pages.clone().call(request.body(Body::empty()).unwrap()).await;
            let (head, body) = answered.unwrap().into_parts();
            let body = axum::body::to_bytes(body, 100).await.unwrap();
            found.push((head.headers[length].clone(), body.len()));
        }
        assert_eq!(found, [("4".parse().unwrap(), 4), ("4".parse().unwrap(), 0)]);
    }

    #[test]
    fn each_start_has_a_key_of_its_own_and_the_page_tells_it_to_nobody() {
        let (one, other) = (PageKey::draw().unwrap(), PageKey::draw().unwrap());
        let query = |key: &PageKey| format!("key={}", key.0);
        assert!(one.0.len() == 32 && one.opens(Some(&query(&one))));
        let short = query(&one).replace(&one.0[28..], "");
        for wrong in [&query(&other), &short, &format!("{}0", query(&one)), "key=", ""] {
            assert!(!one.opens(Some(wrong)), "{wrong}");
        }
        assert!(!one.opens(None));
        let answered = page(StatusCode::OK, "text/html", String::new());
        let field = |name: HeaderName| answered.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!((field(REFERRER_POLICY), field(CACHE_CONTROL)), ("no-referrer", "no-store"));
        assert!(field(CONTENT_SECURITY_POLICY).starts_with("default-src 'none'"));
    }
}
