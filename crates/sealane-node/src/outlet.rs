//! The bytes that leave on a WebSocket: our own messages as they are, and those that its library
//! adds.
//!
//! ```text
//!  a burst that all are sent ──────────┐
//!  a message of this connection alone ─┼─► what waits ─► the connection, in one write
//!  the library's answers to ping, close┘
//! ```
//!
//! The library copies each message into its own buffer and looks at its state for it. It also
//! checks text that we have written. For a message to a thousand readers it would do that a
//! thousand times. So the library only reads, and answers by itself as the protocol wants. Our own
//! messages go past it. Both give whole messages, each of which waits as a whole, so that none
//! comes within another.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::MAX_BEFORE_ANSWERS_BYTES;

/// Pieces of one write.
const PIECES: usize = 16;
/// Memory that is kept for the next message, where nothing waits.
const KEPT_BYTES: usize = 1024;
/// Bytes that are read at once of a client that sends much. The library reads 4 KiB at once.
const AHEAD_BYTES: usize = 64 << 10;

/// A connection, and what waits to be written to it.
pub(crate) struct SocketOutlet<S> {
    connection: S,
    /// Messages that others are sent too.
    shared: VecDeque<Bytes>,
    shared_bytes: usize,
    /// Messages behind those, of this connection alone.
    own: Vec<u8>,
    /// The bytes of them that are written.
    own_written: usize,
    /// Bytes that the connection has taken.
    taken_bytes: u64,
    ahead: ReadAhead,
}

/// Bytes that were read before the library asks for them. They have memory only as long as more
/// comes than the library takes at once, so that a quiet connection holds none.
#[derive(Default)]
struct ReadAhead {
    bytes: Vec<u8>,
    /// Those that the library has not got.
    from: usize,
    to: usize,
    /// Whether the last read filled all that it was given.
    is_much: bool,
}

impl<S> SocketOutlet<S> {
    pub(crate) fn new(connection: S) -> Self {
        let (shared, own) = (VecDeque::new(), Vec::new());
        let ahead = ReadAhead::default();
        Self { connection, shared, shared_bytes: 0, own, own_written: 0, taken_bytes: 0, ahead }
    }

    /// Whether bytes were read that the library has not got.
    pub(crate) fn has_ahead(&self) -> bool {
        self.ahead.from < self.ahead.to
    }

    pub(crate) fn connection(&self) -> &S {
        &self.connection
    }

    /// Adds whole messages that others are sent too.
    pub(crate) fn share(&mut self, messages: Bytes) {
        if self.own_written < self.own.len() {
            // The order of messages is that of the calls, whichever of the two kinds they are.
            let mut own = Bytes::from(std::mem::take(&mut self.own));
            own = own.split_off(std::mem::take(&mut self.own_written));
            self.shared_bytes += own.len();
            self.shared.push_back(own);
        }
        self.shared_bytes += messages.len();
        self.shared.push_back(messages);
    }

    /// Where whole messages of this connection alone are added.
    pub(crate) fn own(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Copies what is left of what others are sent too: who takes nothing does not keep whole
    /// blocks in memory of which it is sent a part.
    pub(crate) fn keep_own(&mut self) {
        if self.shared.is_empty() {
            return;
        }
        let mut own = Vec::with_capacity(self.waiting_bytes());
        self.shared.drain(..).for_each(|piece| own.extend_from_slice(&piece));
        own.extend_from_slice(self.own.get(self.own_written..).unwrap_or_default());
        (self.own, self.own_written, self.shared_bytes) = (own, 0, 0);
    }

    /// Bytes that the connection has taken, ever.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Bytes that it has not taken.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.shared_bytes + self.own.len().saturating_sub(self.own_written)
    }

    /// Takes off what was written.
    fn note_written(&mut self, mut bytes: usize) {
        self.taken_bytes += bytes as u64;
        while let Some(first) = self.shared.front_mut() {
            let of_first = bytes.min(first.len());
            bytes -= of_first;
            self.shared_bytes -= of_first;
            if of_first < first.len() {
                drop(first.split_to(of_first));
                return;
            }
            self.shared.pop_front();
        }
        self.own_written += bytes;
        debug_assert!(self.own_written <= self.own.len(), "more was written than waited");
        if self.own_written >= self.own.len() {
            self.own.clear();
            // A hundred thousand quiet connections would keep the largest message that each ever
            // had.
            self.own.shrink_to(KEPT_BYTES);
            self.own_written = 0;
        }
    }
}

impl<S: AsyncWrite + Unpin> SocketOutlet<S> {
    /// Writes all that waits.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.waiting_bytes() > 0 {
            let written = ready!(self.poll_some(cx))?;
            // A connection that takes nothing and does not say so would be asked for ever.
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.note_written(written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_some(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let own = self.own.get(self.own_written..).unwrap_or_default();
        let connection = Pin::new(&mut self.connection);
        let Some(first) = self.shared.front() else { return connection.poll_write(cx, own) };
        // One piece needs no vector: a plain write is cheaper in the kernel, and what fan-out does.
        let is_all = self.shared.len() == 1 && own.is_empty();
        if is_all || !connection.is_write_vectored() {
            return connection.poll_write(cx, first);
        }
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let all = self.shared.iter().map(Bytes::as_ref).chain([own]);
        let mut count = 0;
        for (piece, bytes) in pieces.iter_mut().zip(all) {
            *piece = IoSlice::new(bytes);
            count += 1;
        }
        connection.poll_write_vectored(cx, pieces.get(..count).unwrap_or_default())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SocketOutlet<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { connection, ahead, .. } = &mut *self;
        if ahead.from == ahead.to {
            if !ahead.is_much {
                ready!(Pin::new(connection).poll_read(cx, buf))?;
                ahead.is_much = buf.remaining() == 0;
                return Poll::Ready(Ok(()));
            }
            // At 4 KiB each, a frame of 500 messages of 256 B would take 37 system calls.
            let come = ahead.poll_fill(Pin::new(connection), cx);
            if come.is_pending() {
                *ahead = ReadAhead::default();
            }
            ready!(come)?;
        }
        ahead.give(buf);
        Poll::Ready(Ok(()))
    }
}

impl ReadAhead {
    fn poll_fill<S: AsyncRead>(
        &mut self,
        connection: Pin<&mut S>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.bytes.resize(AHEAD_BYTES, 0);
        let mut into = ReadBuf::new(&mut self.bytes);
        ready!(connection.poll_read(cx, &mut into))?;
        (self.from, self.to) = (0, into.filled().len());
        Poll::Ready(Ok(()))
    }

    fn give(&mut self, buf: &mut ReadBuf<'_>) {
        let to = self.to.min(self.from + buf.remaining());
        buf.put_slice(self.bytes.get(self.from..to).unwrap_or_default());
        self.from = to;
    }
}

/// How the library writes: whole messages, which wait behind what does already.
impl<S: AsyncWrite + Unpin> AsyncWrite for SocketOutlet<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.waiting_bytes() >= MAX_BEFORE_ANSWERS_BYTES {
            ready!(self.poll_out(cx))?;
        }
        self.own.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Flushes as far as it goes at once.
    fn flush(outlet: &mut SocketOutlet<tokio::io::DuplexStream>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(outlet).poll_flush(&mut cx).map(Result::unwrap).is_ready()
    }

    #[tokio::test]
    async fn what_is_added_leaves_in_order_however_little_is_taken() {
        for taken in [1, 3, 7, 1000] {
            let (ours, mut theirs) = tokio::io::duplex(taken);
            let mut outlet = SocketOutlet::new(ours);
            outlet.own().extend_from_slice(b"first ");
            outlet.share(Bytes::from_static(b"second "));
            outlet.share(Bytes::from_static(b"third "));
            outlet.own().extend_from_slice(b"fourth ");
            let is_done = flush(&mut outlet);
            assert_eq!(is_done, taken == 1000);
            outlet.share(Bytes::from_static(b"fifth "));
            outlet.keep_own();
            outlet.write_all(b"pong").await.unwrap();
            let seen = tokio::spawn(async move {
                let mut seen = String::new();
                theirs.read_to_string(&mut seen).await.unwrap();
                seen
            });
            outlet.flush().await.unwrap();
            assert_eq!(outlet.waiting_bytes(), 0);
            drop(outlet);
            assert_eq!(seen.await.unwrap(), "first second third fourth fifth pong", "{taken}");
        }
    }

    #[tokio::test]
    async fn who_takes_nothing_keeps_no_block_that_others_read() {
        let (ours, _theirs) = tokio::io::duplex(10);
        let mut outlet = SocketOutlet::new(ours);
        let block = Bytes::from(vec![7; 1 << 20]);
        outlet.share(block.slice(100..200));
        assert!(!flush(&mut outlet) && !block.is_unique());
        outlet.keep_own();
        assert!(block.is_unique());
        assert_eq!((outlet.waiting_bytes(), outlet.own.len()), (90, 90));
    }

    #[tokio::test]
    async fn answers_wait_with_the_library_where_enough_waits_here() {
        let (ours, _theirs) = tokio::io::duplex(10);
        let mut outlet = SocketOutlet::new(ours);
        let mut cx = Context::from_waker(Waker::noop());
        let mut added = 0;
        while Pin::new(&mut outlet).poll_write(&mut cx, &[7; 100]).is_ready() {
            added += 100;
            assert!(added < 2 * MAX_BEFORE_ANSWERS_BYTES, "nothing holds them back");
        }
        assert!(added >= MAX_BEFORE_ANSWERS_BYTES);
        assert_eq!(outlet.waiting_bytes(), added - 10);
    }

    #[tokio::test]
    async fn what_comes_is_read_in_order_and_a_quiet_connection_holds_none_of_it() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut outlet = SocketOutlet::new(ours);
        let sent: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        theirs.write_all(&sent).await.unwrap();
        let (mut seen, mut piece, mut ahead) = (Vec::new(), [0; 4096], 0);
        while seen.len() < sent.len() {
            let count = outlet.read(&mut piece).await.unwrap();
            seen.extend_from_slice(&piece[..count]);
            ahead = ahead.max(outlet.ahead.to);
        }
        assert_eq!((seen == sent, ahead), (true, AHEAD_BYTES));
        let mut cx = Context::from_waker(Waker::noop());
        let mut buf = ReadBuf::new(&mut piece);
        assert!(Pin::new(&mut outlet).poll_read(&mut cx, &mut buf).is_pending());
        assert_eq!((outlet.ahead.bytes.capacity(), outlet.has_ahead()), (0, false));
        theirs.write_all(b"more").await.unwrap();
        assert_eq!(outlet.read(&mut piece).await.unwrap(), 4);
        drop(theirs);
        assert_eq!(outlet.read(&mut piece).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_quiet_connection_keeps_little_memory() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut outlet = SocketOutlet::new(ours);
        outlet.own().resize(100_000, 7);
        assert!(flush(&mut outlet));
        assert!(outlet.own.capacity() <= KEPT_BYTES, "{}", outlet.own.capacity());
        theirs.read_exact(&mut vec![0; 100_000]).await.unwrap();
    }
}
