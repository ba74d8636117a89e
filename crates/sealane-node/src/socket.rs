//! The byte stream of a connection of the hub's port.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::limits::MAX_SILENCE_MS;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::peer::ConnectionPermit;

/// A stream without TLS, or with it.
pub(crate) type ClientWire = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A connection of the hub's port that holds its permit.
pub(crate) struct HubSocket {
    wire: ClientWire,
    /// Whether the client has said something since it was last answered.
    speaks: Arc<AtomicBool>,
    /// How long the client may take nothing of what it is sent.
    patience: Duration,
    /// Set while it takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    _permit: ConnectionPermit,
}

impl HubSocket {
    pub(crate) fn new(wire: ClientWire, permit: ConnectionPermit) -> Self {
        let patience = Duration::from_millis(MAX_SILENCE_MS);
        Self { wire, speaks: Arc::default(), patience, stalled: None, _permit: permit }
    }

    pub(crate) fn speaks(&self) -> Arc<AtomicBool> {
        self.speaks.clone()
    }

    /// Resolves when a read may give something. Pending: it gives nothing until then.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.wire {
            ClientWire::Left(stream) => stream.poll_read_ready(cx).map(drop),
            // TLS may have read more than it has given.
            ClientWire::Right(_) => Poll::Ready(()),
        }
    }

    /// The same outcome, or an error when the client has taken nothing for too long.
    fn in_time<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        // The timer exists only while the client takes nothing. Most connections never make one.
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for HubSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.wire).poll_read(cx, buf);
        // Bytes since the last answer tell a slow head from a client that is merely silent between
        // requests.
        if buf.filled().len() > before {
            self.speaks.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl AsyncWrite for HubSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.speaks.store(false, Ordering::Relaxed);
        // An answer has begun, so that silence from here on is the pause between two requests.
        let outcome = Pin::new(&mut self.wire).poll_write(cx, bytes);
        self.in_time(outcome, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.wire).poll_flush(cx);
        self.in_time(outcome, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.speaks.store(false, Ordering::Relaxed);
        let outcome = Pin::new(&mut self.wire).poll_write_vectored(cx, parts);
        self.in_time(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{ClientPeer, ConnectionPermits};

    #[tokio::test]
    async fn who_takes_nothing_is_not_waited_for_and_who_takes_little_is() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let peer = ClientPeer::new("127.0.0.1".parse().unwrap());
        let permit = ConnectionPermits::new(1).grant(peer, None).unwrap();
        let mut socket = HubSocket::new(ClientWire::Left(stream), permit);
        socket.patience = Duration::from_millis(300);
        let mut buffer = vec![0; 1 << 20];
        let began = std::time::Instant::now();
        let writing = async {
            let piece = vec![7; 1 << 20];
            loop {
                if let Err(error) = socket.write_all(&piece).await {
                    return error.kind();
                }
            }
        };
        let reading = async {
            // Much slower than the writer, but never silent for so long.
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                client.read_exact(&mut buffer).await.unwrap();
            }
            std::future::pending().await
        };
        let kind = tokio::select! { kind = writing => kind, () = reading => unreachable!() };
        assert_eq!(kind, io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= Duration::from_millis(1000), "{:?}", began.elapsed());
    }
}
