//! WebSockets by hand: what a library would not let one send, and readers that stand still.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use sealane_node::access::TokenSecret;

pub(crate) const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A connection from an address of this machine, with a receive buffer of this size.
pub(crate) async fn connect(
    to: SocketAddr,
    from: Ipv4Addr,
    buffer: Option<u32>,
) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(SocketAddr::from((from, 0)))?;
    socket.connect(to).await
}

pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
}

impl Socket {
    /// Subscribes; `query` is what stands behind the question mark.
    pub(crate) async fn open(
        stream: TcpStream,
        query: &str,
        token: &TokenSecret,
    ) -> io::Result<Self> {
        Self::upgrade(stream, &format!("/v1/subscribe?{query}"), token).await
    }

    /// Opens the socket that is at `target`.
    pub(crate) async fn upgrade(
        mut stream: TcpStream,
        target: &str,
        token: &TokenSecret,
    ) -> io::Result<Self> {
        let head = format!(
            "GET {target} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            token.reveal()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut said = Vec::new();
        while !said.ends_with(b"\r\n\r\n") {
            said.push(stream.read_u8().await?);
        }
        if !said.starts_with(b"HTTP/1.1 101 ") {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(Self { stream })
    }

    /// Sends a frame, masked with zeros (RFC 6455 §5.3), of a length that may be a lie.
    pub(crate) async fn send(&mut self, kind: u8, declared: u64, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![0x80 | kind, 0xff];
        frame.extend_from_slice(&declared.to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await
    }

    pub(crate) async fn text(&mut self, text: &str) -> io::Result<()> {
        self.send(TEXT, text.len() as u64, text.as_bytes()).await
    }

    /// The next frame of data; pings are answered.
    pub(crate) async fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let (kind, short) = (self.stream.read_u8().await?, self.stream.read_u8().await?);
            let length = match short {
                126 => u64::from(self.stream.read_u16().await?),
                127 => self.stream.read_u64().await?,
                short => u64::from(short),
            };
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await?;
            match kind & 0xf {
                PING => self.send(PONG, length, &payload).await?,
                CLOSE => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => return Ok(payload),
            }
        }
    }

    /// Reads until the node ends the connection.
    pub(crate) async fn drain(mut self) {
        let mut buffer = [0; 4096];
        while matches!(self.stream.read(&mut buffer).await, Ok(1..)) {}
    }
}
