//! A small HTTP/1.1 client: one request per connection, nothing done behind the test's back.

use std::net::SocketAddr;
use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No request takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A header, named in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The body, whatever its codec.
    pub(crate) fn value(&self, codec: Codec) -> Value {
        to_json(codec, &self.body)
    }

    /// The name of the error that the body tells of, in JSON.
    pub(crate) fn error(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn to_json(codec: Codec, bytes: &[u8]) -> Value {
    serde_json::from_slice(&transcoded(codec, bytes, Codec::Json)).unwrap()
}

/// JSON in another codec.
pub(crate) fn from_json(value: &Value, codec: Codec) -> Vec<u8> {
    transcoded(Codec::Json, value.to_string().as_bytes(), codec)
}

fn transcoded(from: Codec, bytes: &[u8], to: Codec) -> Vec<u8> {
    let mut out = Vec::new();
    Transcoder::new().transcode(from, bytes, to, &mut out).unwrap();
    out
}

pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut head = head(method, path, headers);
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    exchange(address, &bytes).await
}

/// The same, in chunks of 64 KiB and without a declared length.
pub(crate) async fn request_in_chunks(address: SocketAddr, path: &str, body: &[u8]) -> Reply {
    let mut bytes = head("POST", path, &[]).into_bytes();
    bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
    for chunk in body.chunks(64 << 10) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    exchange(address, &bytes).await
}

/// Declares more than is sent, and ends its side of the connection; a reply may come or not.
pub(crate) async fn request_cut_off(address: SocketAddr, path: &str, body: &[u8]) -> Option<Reply> {
    let mut bytes = head("POST", path, &[]).into_bytes();
    bytes.extend_from_slice(b"content-length: 1000\r\n\r\n");
    bytes.extend_from_slice(body);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut received = Vec::new();
    let reading = stream.read_to_end(&mut received);
    // A connection that is reset has nothing to say either.
    let _ = tokio::time::timeout(PATIENCE, reading).await.expect("an end in time");
    whole(&received)
}

/// Sends bytes as they are and reads the reply that comes, even before all is sent.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> Reply {
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let bytes = bytes.to_vec();
    let writing = tokio::spawn(async move {
        // A refused body need not be read to its end.
        let _ = writer.write_all(&bytes).await;
        writer
    });
    let mut received = Vec::new();
    let reading = async {
        let mut buffer = vec![0; 64 << 10];
        while whole(&received).is_none() {
            match reader.read(&mut buffer).await {
                Ok(n) if n > 0 => received.extend_from_slice(&buffer[..n]),
                _ => break,
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("a reply in time");
    writing.abort();
    whole(&received).expect("a whole reply")
}

fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

/// The reply, once it is there to its end. The hub declares every length.
fn whole(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let declared = headers.iter().find(|(name, _)| name == "content-length");
    let length = match declared {
        Some((_, length)) => length.parse().ok()?,
        // RFC 9110 §15.3.5: it has none.
        None if status == 204 => 0,
        None => return None,
    };
    let body = bytes[end..].to_vec();
    (body.len() >= length).then_some(Reply { status, headers, body })
}
