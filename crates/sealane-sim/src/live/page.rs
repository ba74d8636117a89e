//! The page of a live run, on loopback: its map, and the orders that `ctl` has.

use std::convert::Infallible;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN,
    REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::orders::LiveOrderSender;
use crate::SimError;
use crate::limits::{MAX_LIVE_ORDER_BYTES, MAX_LIVE_READERS, MAX_LIVE_WAIT_MS};
use crate::watch::with_map;

const PATIENCE: Duration = Duration::from_millis(MAX_LIVE_WAIT_MS);
/// How long nobody is let in after the system had no room for somebody.
const PAUSE: Duration = Duration::from_millis(100);
const PAGE: &str = include_str!("page.html");
/// Nothing is fetched but from here, and no page shows this one in a frame.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; frame-ancestors 'none'";

/// Where the page is, and what it needs to give orders.
struct LivePage {
    door: LiveOrderSender,
    page: String,
    /// Only who has it sees the run, or gives orders: others of this machine reach the port too.
    key: String,
}

/// Whether a page may be served there.
pub(super) fn check(address: SocketAddr) -> Result<(), SimError> {
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(SimError::Live(format!("the page at {address}: only on loopback"))),
    }
}

/// Serves the page, and gives its address with the key.
pub(super) fn serve(
    address: SocketAddr,
    title: &str,
    door: LiveOrderSender,
) -> Result<String, SimError> {
    check(address)?;
    let failed = |cause: io::Error| SimError::Live(format!("the page at {address}: {cause}"));
    let mut random = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .map_err(failed)?;
    let key: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
    let url = format!("http://{}/#{key}", listener.local_addr().map_err(failed)?);
    let page = with_map(PAGE).replace("@TITLE@", title);
    let desk = Arc::new(LivePage { door, page, key });
    std::thread::spawn(move || runtime.block_on(accept(listener, desk)));
    Ok(url)
}

async fn accept(listener: TcpListener, desk: Arc<LivePage>) {
    // A browser opens connections ahead of need: each is waited for by itself.
    let readers = Arc::new(Semaphore::new(MAX_LIVE_READERS));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let permit = Arc::clone(&readers).try_acquire_owned();
        let desk = permit.is_ok().then(|| Arc::clone(&desk));
        tokio::spawn(async move {
            // A reader that is too slow, or goes away, gets nothing.
            let _ = tokio::time::timeout(2 * PATIENCE, answer(socket, desk)).await;
            drop(permit);
        });
    }
}

/// Answers one request; without a desk there is no place for it.
async fn answer(socket: TcpStream, desk: Option<Arc<LivePage>>) -> hyper::Result<()> {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let desk = desk.clone();
        async move {
            Ok::<_, Infallible>(match desk {
                Some(desk) => desk.answer(request.map(Body::new)).await,
                None => reply(StatusCode::SERVICE_UNAVAILABLE, "text/plain", String::new()),
            })
        }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).max_buf_size(MAX_LIVE_ORDER_BYTES);
    server.serve_connection(TokioIo::new(socket), service).await
}

impl LivePage {
    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let fields = &head.headers;
        let bytes: usize =
            fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes + head.uri.to_string().len() > MAX_LIVE_ORDER_BYTES {
            let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return refuse(too_large, "the head of the request is too long");
        }
        // In one way or not at all: two hosts, or a length that is not told, may be read in others.
        if fields.get_all(HOST).iter().count() > 1 || fields.contains_key(TRANSFER_ENCODING) {
            return refuse(StatusCode::BAD_REQUEST, "no request of one host and a known length");
        }
        let host = fields.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !is_loopback(host) {
            return refuse(StatusCode::MISDIRECTED_REQUEST, "the host is not this machine");
        }
        let own = format!("http://{host}");
        if fields.get(ORIGIN).is_some_and(|origin| *origin != *own) {
            return refuse(StatusCode::FORBIDDEN, "a page of another site");
        }
        let asked = (head.method.as_str(), head.uri.path());
        if asked == ("GET", "/") {
            return reply(StatusCode::OK, "text/html; charset=utf-8", self.page.clone());
        }
        let key = format!("Bearer {}", self.key);
        if fields.get(AUTHORIZATION).is_none_or(|given| *given != *key) {
            let why = "the key behind the # of the address is missing or wrong";
            return refuse(StatusCode::UNAUTHORIZED, why);
        }
        match asked {
            ("GET", "/status") => self.ask(json!({ "do": "status" }).to_string()).await,
            ("POST", "/order") if body.size_hint().lower() > MAX_LIVE_ORDER_BYTES as u64 => {
                refuse(StatusCode::PAYLOAD_TOO_LARGE, "the order is too long")
            }
            ("POST", "/order") => match to_bytes(body, MAX_LIVE_ORDER_BYTES).await {
                Ok(order) => self.ask(String::from_utf8_lossy(&order).into_owned()).await,
                Err(_) => refuse(StatusCode::BAD_REQUEST, "the order is not whole"),
            },
            _ => refuse(StatusCode::NOT_FOUND, "there is the page, /status and /order"),
        }
    }

    async fn ask(&self, order: String) -> Response {
        let door = self.door.clone();
        let answer: Value =
            tokio::task::spawn_blocking(move || door.ask(order)).await.unwrap_or_default();
        let status = match answer.get("error") {
            Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
            None => StatusCode::OK,
        };
        reply(status, "application/json", answer.to_string())
    }
}

/// Whether a `Host` names this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn refuse(status: StatusCode, why: &str) -> Response {
    let body = json!({ "v": 1, "error": { "message": why } }).to_string();
    reply(status, "application/json", body)
}

fn reply(status: StatusCode, kind: &'static str, body: String) -> Response {
    let fields = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (status, fields, body).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::orders::LiveOrderInbox;
    use super::*;

    /// The status of the answer to what is written to the page.
    fn asked(host: &str, request: &str) -> String {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        // It may answer before it has read all.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    #[test]
    fn requests_are_read_in_one_way_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (inbox, door) = LiveOrderInbox::open(&folder.path().join("run.toml")).unwrap();
        std::thread::spawn(move || {
            loop {
                match inbox.next() {
                    Some(order) if order.order.contains("status") => order.answer(json!({"v": 1})),
                    Some(order) => order.answer(json!({"error": {}})),
                    None => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        let page = serve("127.0.0.1:0".parse().unwrap(), "a run", door).unwrap();
        let (host, key) = page.trim_start_matches("http://").split_once("/#").unwrap();
        let (own, key) = (format!("host: {host}\r\n"), format!("authorization: Bearer {key}\r\n"));
        let order = "content-length: 13\r\n\r\n{\"do\":\"stop\"}";
        let long = "x".repeat(MAX_LIVE_ORDER_BYTES);
        for (status, line, fields) in [
            ("200", "GET /", own.clone()),
            ("200", "GET /status", format!("{own}{key}")),
            ("200", "GET /status", format!("{own}origin: http://{host}\r\n{key}")),
            ("401", "GET /status", own.clone()),
            ("401", "GET /status", format!("{own}authorization: Bearer 0\r\n")),
            ("401", "POST /order", format!("{own}{order}")),
            ("421", "GET /status", format!("host: evil.example\r\n{key}")),
            ("421", "GET /", String::new()),
            ("403", "POST /order", format!("{own}origin: null\r\n{key}{order}")),
            ("413", "POST /order", format!("{own}{key}content-length: 99999999\r\n")),
            ("400", "POST /order", format!("{own}{key}transfer-encoding: chunked\r\n")),
            ("400", "POST /order", format!("{own}{key}content-length: -1\r\n")),
            ("400", "GET /", format!("{own}host: localhost\r\n")),
            ("400", "GET /", "no field\r\n".to_owned()),
            ("431", "GET /", format!("{own}a: {long}\r\n")),
            ("404", "GET /more", format!("{own}{key}")),
            ("422", "POST /order", format!("{own}{key}content-length: 2\r\n\r\n{{}}")),
        ] {
            let request = format!("{line} HTTP/1.1\r\n{fields}\r\n");
            assert_eq!(asked(host, &request), status, "{line} {fields:.80}");
        }
        assert!(check("0.0.0.0:0".parse().unwrap()).is_err());
    }

    #[test]
    fn only_this_machine_is_this_machine() {
        for host in ["localhost", "127.0.0.1:1", "[::1]:9087"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example:1", "10.0.0.1", ":1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
