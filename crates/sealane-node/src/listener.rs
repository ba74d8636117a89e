//! The places that connections take: so many of one node, and so many of one address.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use sealane_message::limits::{MAX_CONNECTIONS, MAX_SILENCE_MS};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;

/// Whom a limit is for: an IPv4 address, or the 64 bits of an IPv6 address that name a network,
/// since whoever has one address there has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Self(Ipv6Addr::from(network).into())
            }
        }
    }
}

/// The connections that there may be.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    of_peers: Mutex<HashMap<Peer, usize>>,
    max_of_peer: usize,
}

impl Places {
    pub(crate) fn new(max_of_peer: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Arc::new(Self { all, of_peers: Mutex::default(), max_of_peer })
    }

    /// How many there are.
    pub(crate) fn taken(&self) -> usize {
        MAX_CONNECTIONS - self.all.available_permits()
    }

    /// A place of the node, when one is free.
    pub(crate) async fn one(&self) -> Option<OwnedSemaphorePermit> {
        self.all.clone().acquire_owned().await.ok()
    }

    /// Gives it to a peer, who may have enough of them.
    pub(crate) fn give(
        self: &Arc<Self>,
        peer: Peer,
        one: Option<OwnedSemaphorePermit>,
    ) -> Option<Place> {
        let mut of_peers = self.of_peers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = of_peers.entry(peer).or_default();
        if *count >= self.max_of_peer {
            return None;
        }
        *count += 1;
        Some(Place { places: self.clone(), peer, _one: one })
    }
}

/// One connection's place, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    peer: Peer,
    _one: Option<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of_peers = self.places.of_peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = of_peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                of_peers.remove(&self.peer);
            }
        }
    }
}

/// A connection, with TLS or without, that keeps its place.
pub(crate) struct Connection {
    wire: Wire,
    /// Whether the client has said something since it was last answered.
    speaks: Arc<AtomicBool>,
    /// How long the client may take nothing of what it is sent.
    patience: Duration,
    /// Set while it takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    pub(crate) fn new(wire: Wire, place: Place) -> Self {
        let patience = Duration::from_millis(MAX_SILENCE_MS);
        Self { wire, speaks: Arc::default(), patience, stalled: None, _place: place }
    }

    pub(crate) fn speaks(&self) -> Arc<AtomicBool> {
        self.speaks.clone()
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
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// The same call on either kind of wire.
macro_rules! on_wire {
    ($this:expr, $call:ident $(, $argument:expr)*) => {
        match &mut $this.wire {
            Wire::Plain(stream) => Pin::new(stream).$call($($argument),*),
            Wire::Tls(stream) => Pin::new(stream).$call($($argument),*),
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = on_wire!(self, poll_read, cx, buf);
        if buf.filled().len() > before {
            self.speaks.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.speaks.store(false, Ordering::Relaxed);
        let outcome = on_wire!(self, poll_write, cx, bytes);
        self.in_time(outcome, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = on_wire!(self, poll_flush, cx);
        self.in_time(outcome, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_wire!(self, poll_shutdown, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.speaks.store(false, Ordering::Relaxed);
        let outcome = on_wire!(self, poll_write_vectored, cx, parts);
        self.in_time(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain(stream) => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_takes_nothing_is_not_waited_for_and_who_takes_little_is() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let place = Places::new(1).give(peer("127.0.0.1"), None).unwrap();
        let mut connection = Connection::new(Wire::Plain(stream), place);
        connection.patience = Duration::from_millis(300);
        let mut buffer = vec![0; 1 << 20];
        let began = std::time::Instant::now();
        let writing = async {
            let piece = vec![7; 1 << 20];
            loop {
                if let Err(error) = connection.write_all(&piece).await {
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

    fn peer(text: &str) -> Peer {
        Peer::new(text.parse().unwrap())
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    }

    #[test]
    fn a_place_comes_back_when_its_connection_has_gone() {
        let places = Places::new(2);
        let (ours, other) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let first = places.give(ours, None).unwrap();
        let second = places.give(ours, None).unwrap();
        assert!(places.give(ours, None).is_none());
        assert!(places.give(other, None).is_some());
        drop(first);
        let third = places.give(ours, None).unwrap();
        drop((second, third));
        assert!(places.of_peers.lock().unwrap().is_empty());
    }
}
