//! The page on loopback where a machine that carries frames tells how it is: `/metrics` for
//! Prometheus, `/status` for `sealane mesh status`.
//!
//! It reads one request from each connection and closes it. Nothing can be changed by it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sealane_link::limits::{MAX_STATUS_HEAD_BYTES, MAX_STATUS_MS, MAX_STATUS_READERS};
use sealane_link::{Config, LinkError, METRICS_KIND, Router};
use sealane_seal::Slot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::mesh_told;
use super::told::Told;

const JSON: &str = "application/json";
/// How long the answer to a trace is waited for.
const TRACE_PATIENCE: Duration = Duration::from_secs(3);

/// What gives the status whenever it is asked for.
pub(crate) type Tell = Arc<dyn Fn() -> Told + Send + Sync>;

/// What answers on the page.
#[derive(Clone)]
pub(crate) struct Teller {
    /// The status.
    pub(crate) tell: Tell,
    /// The machine that routes, which traces ways.
    pub(crate) router: Option<Router>,
}

/// The page while it is served; it goes with this.
pub(crate) struct Page {
    serving: Option<JoinHandle<()>>,
}

impl Page {
    /// Serves the page where a configuration says, if it does.
    ///
    /// # Errors
    /// [`LinkError::Open`].
    pub(crate) async fn serve(config: &Config, teller: Teller) -> Result<Page, LinkError> {
        let Some(address) = config.status else { return Ok(Page { serving: None }) };
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.map_err(|cause| LinkError::Open { link: "status".to_owned(), cause })?;
        Ok(Page { serving: Some(tokio::spawn(serve(listener, teller))) })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

async fn serve(listener: TcpListener, teller: Teller) {
    let readers = Arc::new(Semaphore::new(MAX_STATUS_READERS));
    while let Ok(permit) = Arc::clone(&readers).acquire_owned().await {
        let Ok((socket, _)) = listener.accept().await else {
            // Too many files are open: others may close some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let teller = teller.clone();
        tokio::spawn(async move {
            let patience = Duration::from_millis(MAX_STATUS_MS);
            // Who is too slow, or goes away, reads nothing.
            let _ = tokio::time::timeout(patience, answer(socket, teller)).await;
            drop(permit);
        });
    }
}

async fn answer(mut socket: TcpStream, teller: Teller) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !ends_head(&head) && head.len() <= MAX_STATUS_HEAD_BYTES {
        let mut part = [0; 1024];
        match socket.read(&mut part).await? {
            0 => return Ok(()),
            read => head.extend(part.iter().take(read)),
        }
    }
    let reply = match head.len() <= MAX_STATUS_HEAD_BYTES {
        true => {
            let head = String::from_utf8_lossy(&head).into_owned();
            // A trace is waited for.
            let reply = tokio::task::spawn_blocking(move || reply(&head, &teller));
            reply.await.map_err(std::io::Error::other)?
        }
        false => refusal("431 Request Header Fields Too Large"),
    };
    socket.write_all(reply.as_bytes()).await?;
    socket.shutdown().await
}

pub(crate) fn ends_head(head: &[u8]) -> bool {
    head.windows(4).any(|window| window == b"\r\n\r\n")
}

fn reply(head: &str, teller: &Teller) -> String {
    let mut words = head.split("\r\n").next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // A page of another site reaches loopback under a name of its own.
    if !host_of(head).is_some_and(is_this_machine) {
        return refusal("421 Misdirected Request");
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match (method, path) {
        ("GET", "/metrics") => page("200 OK", METRICS_KIND, &(teller.tell)().metrics()),
        ("GET", "/status") => page("200 OK", JSON, &(teller.tell)().json()),
        ("GET", "/trace") => trace(query, teller),
        (_, "/metrics" | "/status" | "/trace") => refusal("405 Method Not Allowed"),
        _ => refusal("404 Not Found"),
    }
}

/// The host that the head of a request names.
pub(crate) fn host_of(head: &str) -> Option<&str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    })
}

/// Asks the mesh for the way to a machine.
fn trace(query: &str, teller: &Teller) -> String {
    let Some(router) = &teller.router else { return refusal("404 Not Found") };
    let slot = query.strip_prefix("to=").and_then(|slot| slot.parse().ok()).and_then(Slot::new);
    let Some(slot) = slot else { return refusal("400 Bad Request") };
    match router.trace(slot, TRACE_PATIENCE) {
        Ok(traced) => page("200 OK", JSON, &mesh_told::traced(slot, traced.as_ref())),
        Err(_) => refusal("503 Service Unavailable"),
    }
}

/// Whether a host, with or without a port, is this machine whoever resolves it.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| host.trim_matches(['[', ']']).parse::<IpAddr>());
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    address.map_or(name.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

fn refusal(status: &str) -> String {
    page(status, "text/plain; charset=utf-8", &format!("{status}\n"))
}

fn page(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n\
         {body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_is_no_request_is_refused() {
        let tell: Tell = Arc::new(|| unreachable!("nothing is told"));
        let teller = Teller { tell, router: None };
        for (head, status) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", "421"),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
            ("POST /status HTTP/1.1\r\nhost: 127.0.0.1:1\r\n\r\n", "405"),
            ("GET /trace?to=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "404"),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "404"),
            ("", "421"),
        ] {
            let reply = reply(head, &teller);
            assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {reply}");
        }
    }
}
