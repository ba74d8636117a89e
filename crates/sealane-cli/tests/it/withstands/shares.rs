//! A hundred tokens, one of which takes all that it can, in one way after the other: the others are
//! refused nothing, and memory stays within what the shares allow.

mod hostile;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sealane_node::access::TokenSecret;
use sealane_node::limits::{
    MAX_HEAD_BYTES, MAX_REPLIES_BYTES, MAX_REPLIES_MADE, REPLY_PIECE_BYTES,
};
use sealane_stream::ShareKind;
use sealane_stream::limits::{MAX_TAIL_BYTES, SHARE_PARTS};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::demand;
use super::node::Node;
use super::socket::connect;
use hostile::{HostileWay, Hostiles};

/// Tokens that behave, each below a topic of its own, and one that does not.
pub(crate) const TOKENS: u8 = 100;
/// Of those that behave so many ask at once.
const ASKING: u8 = 12;
/// A client that behaves waits so long between two requests.
const PAUSE: Duration = Duration::from_millis(10);

/// How much longer than those of an idle twin the others may wait.
const P99_RATIO_MAX: f64 = 1.5;
const P50_RATIO_MAX: f64 = 4.0;

/// The store's cache, threads, and what the allocator keeps.
const SLACK_BYTES: usize = 96 << 20;
/// The largest reply, while it is made: the messages, their frames, and the reply.
const MADE_BYTES: usize = 24 << 20;
/// A connection that is kept, with what the system's buffers leave to the node.
const CONNECTION_BYTES: usize = 2 * MAX_HEAD_BYTES + REPLY_PIECE_BYTES;

/// The secret of a token, by its number.
pub(crate) fn secret(number: u8) -> TokenSecret {
    TokenSecret::new([100 + number; 32])
}

/// One connection that is kept open, of a token.
pub(crate) struct Door {
    stream: BufReader<TcpStream>,
    bearer: String,
}

impl Door {
    pub(crate) async fn open(node: &Node, number: u8) -> io::Result<Self> {
        let stream = connect(node.address, Ipv4Addr::LOCALHOST, None).await?;
        stream.set_nodelay(true)?;
        let bearer = format!("authorization: Bearer {}\r\n", secret(number).reveal());
        Ok(Self { stream: BufReader::new(stream), bearer })
    }

    /// The status and the body of an answer.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        let (bearer, length) = (&self.bearer, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{bearer}{headers}\
             content-length: {length}\r\n\r\n"
        );
        self.stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(said) = line.strip_prefix("http/1.1 ") {
                status = said[..3].parse().unwrap();
            } else if let Some(said) = line.strip_prefix("content-length: ") {
                length = said.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((status, body))
    }
}

/// The waits of those who behave, at the node that is attacked and at its idle twin.
#[derive(Default)]
struct Waits([Vec<Duration>; 2]);

impl Waits {
    fn ratio(&mut self, part: f64) -> f64 {
        let [attacked, idle] = self.0.each_mut().map(|all| {
            all.sort_unstable();
            let at = ((all.len() - 1) as f64 * part) as usize;
            all[at].as_secs_f64()
        });
        attacked / idle
    }
}

pub(crate) async fn run(time: Duration) {
    let nodes = [Node::start_among(TOKENS), Node::start_among(TOKENS)].map(Arc::new);
    let hostiles = Hostiles::prepare(&nodes[0]).await;
    for way in HostileWay::ALL {
        let before_kib = nodes[0].memory_kib("VmRSS:");
        let stop = Arc::new(AtomicBool::new(false));
        let behaving: Vec<_> = (0..ASKING)
            .map(|first| tokio::spawn(behave(nodes.clone(), first, stop.clone())))
            .collect();
        let done = hostiles.attack(way, time).await;
        stop.store(true, Ordering::Relaxed);
        let mut waits = Waits::default();
        for one in behaving {
            let one = one.await.unwrap();
            waits.0.iter_mut().zip(one.0).for_each(|(all, one)| all.extend(one));
        }
        let peak_kib = nodes[0].memory_kib("VmRSS:");
        let growth_kib = peak_kib.saturating_sub(before_kib);
        let bound_kib = (budget(way, done.connections) >> 10) as u64;
        println!("{way:?}: {done:?}, others asked {} times", waits.0[0].len());
        println!("  memory: {peak_kib} KiB, {growth_kib} KiB more, of {bound_kib} KiB");
        assert!(growth_kib <= bound_kib, "{way:?}: {growth_kib} KiB of {bound_kib} KiB");
        demand("p99, attacked / idle", waits.ratio(0.99), P99_RATIO_MAX);
        demand("p50, attacked / idle", waits.ratio(0.5), P50_RATIO_MAX);
    }
}

/// Bytes that one way may take of memory.
fn budget(way: HostileWay, connections: usize) -> usize {
    let share = |kind: ShareKind, bytes: usize| (kind.limit() / SHARE_PARTS) as usize * bytes;
    let own = match way {
        HostileWay::Streams => share(ShareKind::Streams, 2048),
        HostileWay::Consumers => share(ShareKind::Consumers, 1200),
        HostileWay::InFlight => share(ShareKind::InFlight, 160),
        HostileWay::Pages | HostileWay::Lists | HostileWay::Metrics => {
            MAX_REPLIES_BYTES + MAX_REPLIES_MADE * MADE_BYTES
        }
        _ => 0,
    };
    own + connections * CONNECTION_BYTES + MAX_TAIL_BYTES + SLACK_BYTES
}

/// Tokens that use what every token may, in turn at both nodes. None of them is refused anything.
async fn behave(nodes: [Arc<Node>; 2], first: u8, stop: Arc<AtomicBool>) -> Waits {
    let mut waits = Waits::default();
    let mut turn = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        for number in (1 + first..TOKENS).step_by(usize::from(ASKING)) {
            for (node, waits) in nodes.iter().zip(&mut waits.0) {
                let mut door = Door::open(node, number).await.unwrap();
                ask(&mut door, number, turn, waits).await;
            }
            turn += 1;
            tokio::time::sleep(PAUSE).await;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    waits
}

async fn ask(door: &mut Door, number: u8, turn: u64, waits: &mut Vec<Duration>) {
    let topic = format!("t{number}/{}", turn % 20);
    let key = format!("idempotency-key: {turn}\r\n");
    let body = format!(r#"{{"to":"{topic}","envelope":{{"n":{turn}}}}}"#);
    let delayed = format!(r#"{{"to":"{topic}","envelope":{{"n":1}},"delayMs":{}}}"#, turn + 1);
    let requests = [
        ("POST", "/v1/enqueue".to_owned(), key.as_str(), body.as_str()),
        // The same once more is answered as it was first.
        ("POST", "/v1/enqueue".to_owned(), key.as_str(), body.as_str()),
        ("POST", "/v1/enqueue".to_owned(), "", delayed.as_str()),
        ("GET", format!("/v1/streams/{topic}?from=first&limit=20"), "", ""),
        ("GET", "/v1/streams?limit=50".to_owned(), "", ""),
    ];
    for (place, (method, path, headers, body)) in requests.into_iter().enumerate() {
        let began = Instant::now();
        let (status, said) = door.call(method, &path, headers, body.as_bytes()).await.unwrap();
        waits.push(began.elapsed());
        let said = String::from_utf8_lossy(&said);
        assert_eq!(status, 200, "token {number}, {method} {path}: {said}");
        assert!(place != 1 || said.contains("\"replayed\":true"), "stored twice: {said}");
    }
}
