//! HTTP as far as the proofs need it, over a socket of their own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One connection that is kept open.
pub(crate) struct Http(BufReader<TcpStream>);

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Http {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self(BufReader::new(socket)))
    }

    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> io::Result<Reply> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.get_mut().write_all((head + body).as_bytes())?;
        let lost = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|text| text.parse().ok()).ok_or_else(lost)?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                None => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().map_err(|_| lost())?;
                }
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Reply { status, body: String::from_utf8(body).expect("JSON is UTF-8") })
    }

    /// A line of the head; an ended connection is an error.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        match line.ends_with("\r\n") {
            true => Ok(line.trim_end().to_owned()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
