//! The port: connections are accepted, given a permit, and served HTTP/1.1, with TLS or without.
//!
//! ```text
//!  accept ─► a permit of the node, of the address ─► first byte ─► TLS ─► head ─► router
//!  └───────────────────── the door's thread ──────────────────────┘   └─ the runtime ──┘
//! ```
//!
//! Each arrow has a limit in time, so that whoever stays behind gives its permit back. Whoever
//! comes is the work of one thread until it has said something that may be a request: a crowd at
//! the door keeps others from coming in quickly, not those who are in from being served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::limits::{
    MAX_ACCEPT_RATE, MAX_HANDSHAKE_MS, MAX_HEAD_BYTES, MAX_HEAD_MS, MAX_REFUSAL_MS,
    MAX_REFUSED_HELLO_BYTES, MAX_UNSENT_BYTES, MAX_WAITING_MS,
};
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sealane_codec::Codec;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Handle};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::app::NodeApp;
use crate::peer::ClientPeer;
use crate::refusal::HttpRefusal;
use crate::socket::{ClientWire, HubSocket};
use crate::tls::NodeTls;

/// The first byte of TLS: a handshake record (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 22;

/// Connections that are accepted one after the other, without a look at the time.
const ACCEPTED: u64 = 32;

pub(crate) struct NodeServer {
    app: Arc<NodeApp>,
    router: Router,
    tls: Option<Arc<NodeTls>>,
    /// The runtime in which requests are served.
    inside: Handle,
}

impl NodeServer {
    /// Begins to serve. The port is closed when the returned task is aborted, or when the runtime
    /// ends. While the node drains, everybody who comes is told so.
    ///
    /// # Errors
    /// Where the system gives no thread, or takes the socket back.
    pub(crate) fn start(
        app: Arc<NodeApp>,
        router: Router,
        tls: Option<Arc<NodeTls>>,
        listener: std::net::TcpListener,
    ) -> std::io::Result<JoinHandle<()>> {
        let server = Arc::new(Self { app, router, tls, inside: Handle::current() });
        // In one runtime, a crowd at the door made clients wait: p99 rose from 5 to 97 ms (decision
        // 7).
        let door = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = door.enter();
            TcpListener::from_std(listener)?
        };
        let (open, closed) = oneshot::channel::<()>();
        std::thread::Builder::new().name("door".to_owned()).spawn(move || {
            door.block_on(async {
                tokio::select! {
                    () = server.welcome(listener) => {}
                    _ = closed => {}
                }
            });
        })?;
        Ok(tokio::spawn(async move {
            let _open = open;
            std::future::pending().await
        }))
    }

    async fn welcome(self: Arc<Self>, listener: TcpListener) {
        let least = Duration::from_micros(1_000_000 * ACCEPTED / MAX_ACCEPT_RATE);
        let (mut taken, mut since) = (0, Instant::now());
        loop {
            // The permit comes before the accept. Connections beyond the bound wait in the system's
            // queue and cost no memory here.
            let permit = self.app.permits.acquire().await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    self.take(stream, address, permit);
                    taken += 1;
                    if taken == ACCEPTED {
                        // The pace is held over 32 connections, since timers cannot space single
                        // ones finely enough.
                        tokio::time::sleep_until(since + least).await;
                        (taken, since) = (0, Instant::now());
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    // Too many open files fail at once. Without the pause this loop would only
                    // spin.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn take(
        self: &Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let peer = ClientPeer::new(address.ip());
        let Some(permit) = self.app.permits.grant(peer, permit) else {
            self.app.refused.note(&HttpRefusal::Connections);
            // A refusal in plain text means nothing to a client that speaks TLS.
            if self.tls.is_none() {
                say_at_once(&stream, &HttpRefusal::Connections);
            }
            return;
        };
        let server = self.clone();
        tokio::spawn(async move {
            let mut stopping = server.app.stopping.clone();
            let ready = server.first_byte(stream, &mut stopping);
            let Some((stream, first)) = ready.await else { return };
            let Some(wire) = server.secure(stream, first).await else { return drop(permit) };
            let inside = server.inside.clone();
            // Only now does the connection enter the runtime that serves. Until here the door's
            // thread carried it.
            inside.spawn(async move { server.serve(HubSocket::new(wire, permit), peer).await });
        });
    }

    /// Waits for the first byte, without any memory for the request that it begins.
    async fn first_byte(
        &self,
        stream: TcpStream,
        stopping: &mut watch::Receiver<bool>,
    ) -> Option<(TcpStream, u8)> {
        let mut first = [0];
        let was_stopping = *stopping.borrow();
        let peeked = tokio::select! {
            // A peek needs no buffer, so that a half-open connection costs a socket and a task.
            peeked = timeout(Duration::from_millis(MAX_WAITING_MS), stream.peek(&mut first)) => {
                peeked
            }
            // The node does not wait for a connection that has said nothing yet.
            _ = stopping.wait_for(|stop| *stop), if !was_stopping => return None,
        };
        match peeked {
            Ok(Ok(1..)) => {
                let stream = self.let_in(stream);
                let stream = stream.inspect_err(|error| tracing::debug!(%error, "not let in"));
                Some((stream.ok()?, first.first().copied().unwrap_or_default()))
            }
            Ok(_) => None,
            Err(_) => {
                self.app.refused.note(&HttpRefusal::SilentConnection);
                None
            }
        }
    }

    /// The same connection, watched by the runtime in which it will be served.
    fn let_in(&self, stream: TcpStream) -> std::io::Result<TcpStream> {
        // Small frames are to leave at once; batches are made before they are sent.
        stream.set_nodelay(true)?;
        // Bytes that a client does not read stay with the node, which counts them. They do not stay
        // with the system, whose memory is for all connections.
        socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES)?;
        // A socket is registered with one runtime. It leaves the door's and enters the one that
        // serves.
        let stream = stream.into_std()?;
        let _entered = self.inside.enter();
        TcpStream::from_std(stream)
    }

    async fn secure(&self, mut stream: TcpStream, first: u8) -> Option<ClientWire> {
        let refusal = match (&self.tls, first == TLS_HANDSHAKE) {
            (None, false) => return Some(ClientWire::Left(stream)),
            (Some(tls), true) => {
                let shaking = tls.acceptor.accept(stream);
                let shaken = timeout(Duration::from_millis(MAX_HANDSHAKE_MS), shaking).await;
                match shaken {
                    Ok(Ok(stream)) => return Some(ClientWire::Right(Box::new(stream))),
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client"),
                    Err(_) => tracing::debug!("a client's handshake took too long"),
                }
                self.app.refused.note(&HttpRefusal::Handshake);
                return None;
            }
            (None, true) => HttpRefusal::TlsNotServed,
            (Some(_), false) => HttpRefusal::TlsRequired,
        };
        self.app.refused.note(&refusal);
        // A client that begins TLS sees by it that none is spoken here. What it has sent is taken
        // first: a connection that is closed with something unread may lose the answer.
        let _ = stream.try_read(&mut [0; MAX_REFUSED_HELLO_BYTES]);
        // A client that reads nothing must not hold its place for the answer to its own mistake.
        let patience = Duration::from_millis(MAX_REFUSAL_MS);
        let _ = timeout(patience, stream.write_all(&plain_answer(&refusal))).await;
        None
    }

    async fn serve(&self, socket: HubSocket, peer: ClientPeer) {
        // Held until it ends, so that a draining node waits for what is being answered.
        let _alive = self.app.alive();
        let mut stopping = self.app.stopping.clone();
        let speaks = socket.speaks();
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            self.router.clone().call(request)
        });
        let mut is_stopping = *stopping.borrow();
        // A head that trickles would otherwise hold a permit for ever (slowloris).
        let mut builder = http1::Builder::new();
        // A node that drains answers once, that it does.
        builder
            .keep_alive(!is_stopping)
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_millis(MAX_HEAD_MS))
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_HEAD_BYTES);
        let serving = builder.serve_connection(TokioIo::new(socket), service).with_upgrades();
        tokio::pin!(serving);
        let ended = loop {
            tokio::select! {
                ended = &mut serving => break ended,
                _ = stopping.wait_for(|stop| *stop), if !is_stopping => {
                    is_stopping = true;
                    // The request under way is answered. Only further ones on this connection are
                    // not.
                    serving.as_mut().graceful_shutdown();
                }
            }
        };
        if let Err(error) = ended {
            self.note(&error, &speaks);
        }
    }

    /// Counts what a client did wrong. One that was silent between two requests did nothing wrong.
    fn note(&self, error: &hyper::Error, speaks: &AtomicBool) {
        let refusal = if error.is_timeout() {
            // hyper reports both as a timeout. A keep-alive connection that ends idle is no fault
            // of its client.
            if !speaks.load(Ordering::Relaxed) {
                return;
            }
            HttpRefusal::SlowHead
        } else if error.is_parse_too_large() {
            HttpRefusal::HeadTooLarge
        } else if error.is_parse() {
            HttpRefusal::NotHttp
        } else {
            return;
        };
        self.app.refused.note(&refusal);
    }
}

/// An answer to whoever gets no connection, in the bytes of HTTP.
fn plain_answer(refusal: &HttpRefusal) -> Vec<u8> {
    let mut body = Vec::with_capacity(256);
    refusal.wire().write(Codec::Json, &mut body);
    let wait = refusal.retry_after().map(|wait| format!("retry-after: {wait}\r\n"));
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         {}connection: close\r\n\r\n",
        refusal.status(),
        body.len(),
        wait.unwrap_or_default()
    );
    [head.as_bytes(), &body].concat()
}

/// Writes an answer if the system takes it without waiting; nothing is kept for who is refused.
fn say_at_once(stream: &TcpStream, refusal: &HttpRefusal) {
    let _ = stream.try_write(&plain_answer(refusal));
}
