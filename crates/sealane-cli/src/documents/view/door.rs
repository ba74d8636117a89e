//! Who reads the page of the team: whoever has its key, on this machine.

use std::fmt::Write;
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use sealane_link::LinkError;
use sealane_link::limits::{MAX_STATUS_HEAD_BYTES, MAX_STATUS_MS, MAX_STATUS_READERS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::super::{Task, ask, map, now_ms};
use super::{Shown, page};
use crate::Failure;
use crate::relay::page::{ends_head, host_of, is_this_machine};

/// The page while it is served.
pub(in crate::documents) struct View {
    /// Its address, with the key that opens it.
    pub(in crate::documents) url: String,
    pub(in crate::documents) serving: JoinHandle<()>,
}

/// What the address of the page has to end with. Other users of this machine reach the port, too,
/// and so do pages of the web that a browser on it shows; none of them can guess 128 bits.
struct Key(String);

/// Serves the page on loopback, under a key of its own.
pub(in crate::documents) async fn serve(
    address: SocketAddr,
    tasks: SyncSender<Task>,
) -> Result<View, Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::Usage("--view: other machines reach that address; take 127.0.0.1"));
    }
    let failed = |cause| Failure::Link {
        file: "--view".into(),
        cause: Box::new(LinkError::Open { link: address.to_string(), cause }),
    };
    let key = Key::draw()?;
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let url = format!("http://{}/?key={}", listener.local_addr().map_err(failed)?, key.0);
    let door = Arc::new(Door { key, tasks });
    Ok(View { url, serving: tokio::spawn(accept(listener, door)) })
}

/// What all requests share.
struct Door {
    key: Key,
    tasks: SyncSender<Task>,
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    let readers = Arc::new(Semaphore::new(MAX_STATUS_READERS));
    while let Ok(permit) = Arc::clone(&readers).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let door = Arc::clone(&door);
        tokio::spawn(async move {
            let patience = Duration::from_millis(MAX_STATUS_MS);
            // Who is too slow, or goes away, reads nothing.
            let _ = tokio::time::timeout(patience, door.answer(stream)).await;
            drop(permit);
        });
    }
}

impl Door {
    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !ends_head(&head) && head.len() <= MAX_STATUS_HEAD_BYTES {
            let mut part = [0; 1024];
            match stream.read(&mut part).await? {
                0 => return Ok(()),
                read => head.extend(part.iter().take(read)),
            }
        }
        let reply = match refusal(&String::from_utf8_lossy(&head), &self.key) {
            Some(status) => reply(status, &format!("{status}\n")),
            None => {
                let items = |what: &str| ask(&self.tasks, map(vec![("do", what.into())]));
                let (documents, calls) = (items("ls").await, items("emergencies").await);
                let shown = Shown { documents, calls, counts: items("counts").await };
                reply("200 OK", &page(&shown, now_ms()))
            }
        };
        stream.write_all(reply.as_bytes()).await?;
        stream.shutdown().await
    }
}

/// Why a request is not answered, if it is not.
fn refusal(head: &str, key: &Key) -> Option<&'static str> {
    if head.len() > MAX_STATUS_HEAD_BYTES {
        return Some("431 Request Header Fields Too Large");
    }
    // A page of the web reaches loopback under a name of its own.
    if !host_of(head).is_some_and(is_this_machine) {
        return Some("421 Misdirected Request");
    }
    let mut words = head.split("\r\n").next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (method, path) {
        ("GET", "/") => {}
        (_, "/") => return Some("405 Method Not Allowed"),
        _ => return Some("404 Not Found"),
    }
    match query.strip_prefix("key=").is_some_and(|given| key.is(given)) {
        true => None,
        false => Some("401 Unauthorized"),
    }
}

/// The address of the page has the key in it: no link or picture tells it to another site, and no
/// cache keeps the page.
fn reply(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: \
         nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: \
         default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\nConnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

impl Key {
    fn draw() -> Result<Key, Failure> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| Failure::Runtime(std::io::Error::other(e)))?;
        let mut key = String::new();
        for byte in random {
            let _ = write!(key, "{byte:02x}");
        }
        Ok(Key(key))
    }

    /// Compares all bytes, whichever differs: the time tells nothing of the key.
    fn is(&self, given: &str) -> bool {
        let both = self.0.bytes().zip(given.bytes());
        let difference = both.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
        given.len() == self.0.len() && difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "Host: 127.0.0.1:9088";

    fn key() -> Key {
        Key("0123456789abcdef0123456789abcdef".to_owned())
    }

    fn refused(line: &str, fields: &str) -> Option<&'static str> {
        refusal(&format!("{line} HTTP/1.1\r\n{fields}\r\n\r\n"), &key())
    }

    #[test]
    fn each_request_without_the_key_or_from_elsewhere_is_refused_by_its_status() {
        let right = format!("GET /?key={}", key().0);
        assert_eq!(refused(&right, OWN), None);
        assert_eq!(refused(&right, "host: localhost:1"), None);
        assert_eq!(refused(&right, "Host: [::1]:9088"), None);
        let wrong = [
            right.replace("key=0", "key=1"),
            right.replace("cdef", "cde"),
            format!("{right}0"),
            right.replace("?key", "?other=1&key"),
            "GET /?key=".to_owned(),
            "GET /?".to_owned(),
            "GET /".to_owned(),
        ];
        for line in &wrong {
            assert_eq!(refused(line, OWN), Some("401 Unauthorized"), "{line}");
        }
        let rebound = "Host: evil.example:9088";
        for fields in [rebound, "Host: 127.0.0.1.evil.example", "Host: 10.0.0.1", "Origin: x"] {
            assert_eq!(refused(&right, fields), Some("421 Misdirected Request"), "{fields}");
        }
        let other = right.replace("GET", "POST");
        assert_eq!(refused(&other, OWN), Some("405 Method Not Allowed"));
        let elsewhere = right.replace("/?", "/status?");
        assert_eq!(refused(&elsewhere, OWN), Some("404 Not Found"));
        let long = format!("{OWN}\r\na: {}", "x".repeat(MAX_STATUS_HEAD_BYTES));
        assert_eq!(refused(&right, &long), Some("431 Request Header Fields Too Large"));
    }

    #[test]
    fn each_start_has_a_key_of_its_own_and_the_page_tells_it_to_nobody() {
        let (one, other) = (Key::draw().unwrap(), Key::draw().unwrap());
        assert!(one.0.len() == 32 && one.0 != other.0 && !one.is(&other.0));
        let reply = reply("200 OK", "");
        for field in ["Referrer-Policy: no-referrer", "Cache-Control: no-store", "'none'"] {
            assert!(reply.contains(field), "{field}");
        }
    }
}
