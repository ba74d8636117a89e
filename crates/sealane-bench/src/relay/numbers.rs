//! A stream of numbered datagrams from one end to the other: which of them came, when, and whether
//! one came twice.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::net::{RowMachine, RowNamespaces};
use crate::failure::{BenchFailure, Result};

/// How the numbers are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberPace {
    pub(super) every: Duration,
    /// So many at once, each time.
    pub(super) at_once: u32,
    pub(super) bytes: usize,
}

/// One direction.
#[derive(Debug)]
pub(super) struct NumberStream {
    shared: Arc<NumberStreamState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct NumberStreamState {
    stops_sending: AtomicBool,
    stops: AtomicBool,
    seen: Mutex<NumberRecord>,
}

#[derive(Debug, Default)]
struct NumberRecord {
    sent: Vec<Instant>,
    /// By number: when it came, and how often.
    came: Vec<Option<Instant>>,
    twice: u64,
}

/// The result of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberTotals {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) twice: u64,
}

impl NumberStream {
    /// Sends from one machine to an address of another, until it is told to stop.
    pub(super) fn start(
        net: &RowNamespaces,
        from: RowMachine,
        to: (RowMachine, &str, u16),
        pace: NumberPace,
    ) -> Result<NumberStream> {
        let (receiver, address, port) = to;
        // To any address, since that of an end goes and comes with its process.
        let bind = |port: u16| {
            move || {
                let socket = UdpSocket::bind(("0.0.0.0", port))?;
                socket.set_read_timeout(Some(TURN))?;
                // A datagram that is missed is counted as lost.
                let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, QUEUE);
                Ok(socket)
            }
        };
        let (source, sink) = (net.on(from, bind(0))?, net.on(receiver, bind(port))?);
        let shared = Arc::new(NumberStreamState::default());
        let target = format!("{address}:{port}");
        let (sending, receiving) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            std::thread::spawn(move || sending.send(&source, &target, pace)),
            std::thread::spawn(move || receiving.receive(&sink)),
        ];
        Ok(NumberStream { shared, threads })
    }

    /// When the first datagram came that was sent at `moment` or later.
    pub(super) fn first_since(&self, moment: Instant) -> Option<Instant> {
        let seen = self.shared.seen();
        let since = seen.sent.partition_point(|sent| *sent < moment);
        seen.came.get(since..)?.iter().flatten().min().copied()
    }

    /// Waits until something comes that is sent from `moment` on, and says when it did.
    pub(super) fn wait_since(&self, moment: Instant) -> Result<Instant> {
        let begun = Instant::now();
        loop {
            if let Some(came) = self.first_since(moment) {
                return Ok(came);
            }
            if begun.elapsed() > PATIENCE {
                let said = format!("nothing came for {PATIENCE:?}");
                return Err(BenchFailure::said("numbered datagrams", said));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends it once nothing more comes.
    pub(super) fn stop(self) -> NumberTotals {
        self.shared.stops_sending.store(true, Ordering::SeqCst);
        let mut came = usize::MAX;
        loop {
            let now = self.shared.seen().came.iter().flatten().count();
            if now == came {
                break;
            }
            came = now;
            std::thread::sleep(LULL);
        }
        self.shared.stops.store(true, Ordering::SeqCst);
        for thread in self.threads {
            // One that panicked has said so.
            let _ = thread.join();
        }
        let seen = self.shared.seen();
        let (sent, came) = (seen.sent.len() as u64, seen.came.iter().flatten().count() as u64);
        NumberTotals { sent, lost: sent - came, twice: seen.twice }
    }
}

impl NumberStreamState {
    fn seen(&self) -> MutexGuard<'_, NumberRecord> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, socket: &UdpSocket, target: &str, pace: NumberPace) {
        let (begun, mut turn) = (Instant::now(), 0);
        let mut datagram = vec![0; pace.bytes.max(8)];
        let mut number = 0_u64;
        while !self.stops_sending.load(Ordering::SeqCst) {
            for _ in 0..pace.at_once {
                self.seen().sent.push(Instant::now());
                if let Some(head) = datagram.first_chunk_mut() {
                    *head = number.to_le_bytes();
                }
                // While an end is away there is no way to go, and the number is lost.
                let _ = socket.send_to(&datagram, target);
                number += 1;
            }
            turn += 1;
            let next = begun + pace.every * turn;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn receive(&self, socket: &UdpSocket) {
        let mut datagram = vec![0; 1 << 16];
        while !self.stops.load(Ordering::SeqCst) {
            let Ok(length) = socket.recv(&mut datagram) else { continue };
            let Some(head) = datagram.get(..length).and_then(<[u8]>::first_chunk) else { continue };
            let number = usize::try_from(u64::from_le_bytes(*head)).unwrap_or(usize::MAX);
            let mut seen = self.seen();
            // A number that was never sent is somebody else's.
            if number >= seen.sent.len() {
                continue;
            }
            if seen.came.len() <= number {
                seen.came.resize(number + 1, None);
            }
            match seen.came.get_mut(number) {
                Some(Some(_)) => seen.twice += 1,
                Some(came) => *came = Some(Instant::now()),
                None => {}
            }
        }
    }
}

/// How long a receiver waits until it looks whether it is to end.
const TURN: Duration = Duration::from_millis(50);
/// After so long without anything, nothing more comes.
const LULL: Duration = Duration::from_millis(500);
/// How long a row may take to carry again, on the slowest of machines.
const PATIENCE: Duration = Duration::from_secs(60);
/// The bytes that may wait at a receiver.
const QUEUE: usize = 32 << 20;
