//! The page of a live run, on loopback: its map, and the orders that `ctl` has.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::orders::LiveOrderSender;
use crate::SimError;
use crate::limits::{MAX_LIVE_ORDER_BYTES, MAX_LIVE_READERS, MAX_LIVE_WAIT_MS};
use crate::watch::with_map;

const PATIENCE: Duration = Duration::from_millis(MAX_LIVE_WAIT_MS);
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
    readers: AtomicUsize,
}

/// A request to the page's server.
#[derive(Debug, Default)]
struct LivePageRequest {
    line: String,
    host: String,
    origin: Option<String>,
    authorization: String,
    length: usize,
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
    let listener = TcpListener::bind(address).map_err(failed)?;
    let url = format!("http://{}/#{key}", listener.local_addr().map_err(failed)?);
    let page = with_map(PAGE).replace("@TITLE@", title);
    let desk = Arc::new(LivePage { door, page, key, readers: AtomicUsize::new(0) });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser opens connections ahead of need: each is waited for by itself.
            let is_full = desk.readers.fetch_add(1, Ordering::SeqCst) >= MAX_LIVE_READERS;
            let desk = Arc::clone(&desk);
            let read = move || {
                let _ = if is_full { reply(&stream, 503, "", "") } else { desk.answer(&stream) };
                desk.readers.fetch_sub(1, Ordering::SeqCst);
            };
            if is_full { read() } else { drop(std::thread::spawn(read)) }
        }
    });
    Ok(url)
}

impl LivePage {
    fn answer(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.take(2 * MAX_LIVE_ORDER_BYTES as u64));
        let Some(request) = LivePageRequest::read(&mut reader)? else {
            return refuse(stream, 400, "no request of HTTP");
        };
        if !is_loopback(&request.host) {
            return refuse(stream, 421, "the host is not this machine");
        }
        let own = format!("http://{}", request.host);
        if request.origin.as_ref().is_some_and(|origin| *origin != own) {
            return refuse(stream, 403, "a page of another site");
        }
        let mut words = request.line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if (method, path) == ("GET", "/") {
            return reply(stream, 200, "text/html; charset=utf-8", &self.page);
        }
        if request.authorization != format!("Bearer {}", self.key) {
            return refuse(stream, 401, "the key behind the # of the address is missing or wrong");
        }
        match (method, path) {
            ("GET", "/status") => self.ask(stream, json!({ "do": "status" }).to_string()),
            ("POST", "/order") if request.length > MAX_LIVE_ORDER_BYTES => {
                refuse(stream, 413, "the order is too long")
            }
            ("POST", "/order") => {
                let mut order = vec![0; request.length];
                reader.read_exact(&mut order)?;
                self.ask(stream, String::from_utf8_lossy(&order).into_owned())
            }
            _ => refuse(stream, 404, "there is the page, /status and /order"),
        }
    }

    fn ask(&self, stream: &TcpStream, order: String) -> io::Result<()> {
        let answer: Value = self.door.ask(order);
        let status = if answer.get("error").is_some() { 422 } else { 200 };
        reply(stream, status, "application/json", &answer.to_string())
    }
}

impl LivePageRequest {
    /// Nothing where it is none, or has a field twice.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut request = Self::default();
        let mut head = 0;
        loop {
            let mut line = String::new();
            let bytes = reader.read_line(&mut line)?;
            head += bytes;
            let line = line.trim_end();
            if bytes == 0 || head > MAX_LIVE_ORDER_BYTES {
                return Ok(None);
            }
            if request.line.is_empty() {
                line.clone_into(&mut request.line);
                if line.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            if line.is_empty() {
                return Ok(Some(request));
            }
            let Some((name, value)) = line.split_once(':') else { return Ok(None) };
            let value = value.trim().to_owned();
            match name.to_ascii_lowercase().as_str() {
                "host" if request.host.is_empty() => request.host = value,
                "host" | "transfer-encoding" => return Ok(None),
                "origin" => request.origin = Some(value),
                "authorization" => request.authorization = value,
                "content-length" => match value.parse() {
                    Ok(length) => request.length = length,
                    Err(_) => return Ok(None),
                },
                _ => {}
            }
        }
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

fn refuse(stream: &TcpStream, status: u16, why: &str) -> io::Result<()> {
    let body = json!({ "v": 1, "error": { "message": why } }).to_string();
    reply(stream, status, "application/json", &body)
}

fn reply(mut stream: &TcpStream, status: u16, kind: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} \r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         content-security-policy: {POLICY}\r\nx-content-type-options: nosniff\r\n\
         referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<LivePageRequest> {
        LivePageRequest::read(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_read_in_one_way_or_not_at_all() {
        let read_one =
            read("GET /status HTTP/1.1\r\nHost: [::1]:80\r\norigin: null\r\n\r\n").unwrap();
        assert_eq!(read_one.line, "GET /status HTTP/1.1");
        assert_eq!(
            (read_one.host.as_str(), read_one.origin.as_deref()),
            ("[::1]:80", Some("null"))
        );
        let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(MAX_LIVE_ORDER_BYTES));
        for text in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "GET / HTTP/1.1\r\nno field\r\n\r\n",
            long.as_str(),
        ] {
            assert!(read(text).is_none(), "{text:.60}");
        }
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
