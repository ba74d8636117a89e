//! A WebSocket client as far as the proofs need it: text frames, pings and pongs.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

pub(crate) struct WebSocket {
    socket: TcpStream,
    buffer: VecDeque<u8>,
}

/// A received frame.
pub(crate) enum Frame {
    Text(String),
    /// The hub has taken in everything that was sent before the ping of this number.
    Pong(u64),
    /// Nothing within the patience.
    Silence,
}

impl WebSocket {
    /// Subscribes; `query` as in spec/hub.md §4.
    pub(crate) fn open(address: &str, query: &str) -> io::Result<Self> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let head = format!(
            "GET /v1/subscribe?{query} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.write_all(head.as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Ok(Self { socket, buffer: VecDeque::new() })
    }

    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.write(TEXT, text.as_bytes())
    }

    pub(crate) fn ping(&mut self, number: u64) -> io::Result<()> {
        self.write(PING, &number.to_be_bytes())
    }

    /// The next frame; an ended connection is an error.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Frame> {
        let until = Instant::now() + patience;
        loop {
            match self.take() {
                Some((TEXT, body)) => return Ok(Frame::Text(String::from_utf8(body).unwrap())),
                Some((PONG, body)) => {
                    let number = body.try_into().expect("the ping's number");
                    return Ok(Frame::Pong(u64::from_be_bytes(number)));
                }
                Some((PING, body)) => self.write(PONG, &body)?,
                Some((CLOSE, _)) => return Err(io::ErrorKind::ConnectionAborted.into()),
                Some((code, _)) => panic!("a frame with code {code}"),
                None if self.fill(until)? => {}
                None => return Ok(Frame::Silence),
            }
        }
    }

    /// Reads what is there; whether anything came before `until`.
    fn fill(&mut self, until: Instant) -> io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        self.socket.set_read_timeout(Some(left))?;
        let mut bytes = [0; 16 << 10];
        match self.socket.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(size) => {
                self.buffer.extend(&bytes[..size]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A whole frame of the buffer: its code and body.
    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = *self.buffer.front()? & 0x0f;
        let extended = match self.buffer.get(1)? {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if self.buffer.len() < 2 + extended {
            return None;
        }
        let size = match extended {
            0 => usize::from(self.buffer[1]),
            _ => (0..extended).fold(0, |size, at| size << 8 | usize::from(self.buffer[2 + at])),
        };
        if self.buffer.len() < 2 + extended + size {
            return None;
        }
        self.buffer.drain(..2 + extended);
        Some((head, self.buffer.drain(..size).collect()))
    }

    /// Clients mask; a mask of zeros leaves the body as it is.
    fn write(&mut self, code: u8, body: &[u8]) -> io::Result<()> {
        let mut frame = vec![0x80 | code];
        match body.len() {
            size @ 0..126 => frame.push(0x80 | size as u8),
            size @ 126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend((size as u16).to_be_bytes());
            }
            size => {
                frame.push(0x80 | 127);
                frame.extend((size as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(body);
        self.socket.write_all(&frame)
    }
}
