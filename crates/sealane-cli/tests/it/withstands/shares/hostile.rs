//! One token that takes all that it can.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sealane::{Codec, Value};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Door, secret};
use crate::withstands::node::Node;
use crate::withstands::socket::{Socket, connect};

/// Tasks that do it at once.
const TASKS: u64 = 4;
/// Streams below `h/c/`, each of which a consumer of a pattern is one of.
const STREAMS: u64 = 200;
/// Messages that wait to be in flight.
const MESSAGES: usize = 20_000;
/// A receive buffer of a client that reads nothing.
const BUFFER_BYTES: u32 = 4096;
/// Connections that one task keeps.
const KEPT: usize = 250;
/// The address of connections that say nothing: the others have their own.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostileWay {
    Streams,
    Delays,
    Keys,
    MessageKeys,
    Sessions,
    Consumers,
    InFlight,
    Pages,
    Lists,
    Metrics,
    Connections,
}

impl HostileWay {
    pub(super) const ALL: [HostileWay; 11] = [
        HostileWay::Streams,
        HostileWay::Delays,
        HostileWay::Keys,
        HostileWay::MessageKeys,
        HostileWay::Sessions,
        HostileWay::Consumers,
        HostileWay::InFlight,
        HostileWay::Pages,
        HostileWay::Lists,
        HostileWay::Metrics,
        HostileWay::Connections,
    ];
}

/// The outcome of one way.
#[derive(Debug, Default)]
pub(super) struct HostileDone {
    /// How often each status was the answer.
    answers: BTreeMap<u16, u64>,
    pub(super) connections: usize,
}

pub(super) struct Hostiles {
    node: Arc<Node>,
}

impl Hostiles {
    /// Streams that the token needs to be hostile with.
    pub(super) async fn prepare(node: &Arc<Node>) -> Self {
        let mut door = Door::open(node, 0).await.unwrap();
        for n in 0..STREAMS {
            let body = format!(r#"{{"to":"t0/c/{n}","envelope":{{}}}}"#);
            let done = door.call("POST", "/v1/enqueue", "", body.as_bytes()).await.unwrap();
            assert_eq!(done.0, 200);
        }
        for _ in 0..MESSAGES / 1000 {
            let body = format!(r#"{{"to":"t0/many","envelopes":[{}]}}"#, ["{}"; 1000].join(","));
            let done = door.call("POST", "/v1/enqueue/batch", "", body.as_bytes()).await.unwrap();
            assert_eq!(done.0, 200);
        }
        let text = Value::from("\u{1}".repeat((1 << 20) - 100).as_str());
        let envelope = Value::Map(vec![("x".into(), text)]);
        let wide = Value::Map(vec![("to".into(), "t0/wide".into()), ("envelope".into(), envelope)]);
        let mut body = Vec::new();
        sealane_codec::encode(Codec::MsgPack, &wide, &mut body);
        let kind = format!("content-type: {}\r\n", Codec::MsgPack.content_type());
        assert_eq!(door.call("POST", "/v1/enqueue", &kind, &body).await.unwrap().0, 200);
        Self { node: node.clone() }
    }

    /// Does one thing as often as it can.
    pub(super) async fn attack(&self, way: HostileWay, time: Duration) -> HostileDone {
        let until = Instant::now() + time;
        let done = Arc::new(Mutex::new(HostileDone::default()));
        let task = |task| {
            let (node, done) = (self.node.clone(), done.clone());
            tokio::spawn(async move {
                let mut hostile =
                    Hostile { node, door: None, kept: Vec::new(), sockets: Vec::new() };
                let mut n = task;
                while Instant::now() < until {
                    let status = hostile.act(way, n).await.unwrap_or_default();
                    *done.lock().unwrap().answers.entry(status).or_default() += 1;
                    n += TASKS;
                    if hostile.kept.len() >= KEPT {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                done.lock().unwrap().connections += hostile.kept.len() + hostile.sockets.len();
            })
        };
        for task in (0..TASKS).map(task).collect::<Vec<_>>() {
            task.await.unwrap();
        }
        Arc::try_unwrap(done).unwrap().into_inner().unwrap()
    }
}

struct Hostile {
    node: Arc<Node>,
    door: Option<Door>,
    kept: Vec<TcpStream>,
    sockets: Vec<Socket>,
}

impl Hostile {
    async fn act(&mut self, way: HostileWay, n: u64) -> io::Result<u16> {
        match way {
            HostileWay::Streams => {
                let body = format!(r#"{{"to":"t0/s/{n}","envelope":{{}}}}"#);
                self.ask("/v1/enqueue", "", body).await
            }
            HostileWay::Delays => {
                let body = r#"{"to":"t0/d","envelope":{},"delayMs":2500000000}"#.to_owned();
                self.ask("/v1/enqueue", "", body).await
            }
            HostileWay::Keys => {
                let key = format!("idempotency-key: k{n}\r\n");
                self.ask("/v1/enqueue", &key, r#"{"to":"t0/k","envelope":{}}"#.to_owned()).await
            }
            HostileWay::MessageKeys => {
                let one = |at: u64| format!(r#"{{"n":{}}}"#, n * 500 + at);
                let all = (0..500).map(one).collect::<Vec<_>>().join(",");
                let body = format!(r#"{{"to":"t0/m","envelopes":[{all}]}}"#);
                self.ask("/v1/enqueue/batch", "idempotency-scope: message\r\n", body).await
            }
            HostileWay::Sessions => self.publish(n).await,
            HostileWay::Consumers => {
                let query = format!("stream=t0/c/*&consumer=c{n}");
                self.subscribe(&query).await.map(|_| 101)
            }
            HostileWay::InFlight => self.hold(n).await,
            HostileWay::Pages => self.leave_unread("/v1/streams/t0/wide?from=first").await,
            HostileWay::Lists => self.leave_unread("/v1/streams?limit=1000").await,
            HostileWay::Metrics => self.leave_unread("/metrics").await,
            HostileWay::Connections => {
                if self.kept.len() < KEPT {
                    self.kept.push(connect(self.node.address, ELSEWHERE, None).await?);
                }
                Ok(0)
            }
        }
    }

    async fn ask(&mut self, path: &str, headers: &str, body: String) -> io::Result<u16> {
        if self.door.is_none() {
            self.door = Some(Door::open(&self.node, 0).await?);
        }
        let Some(door) = &mut self.door else { return Ok(0) };
        Ok(door.call("POST", path, headers, body.as_bytes()).await?.0)
    }

    async fn subscribe(&self, query: &str) -> io::Result<Socket> {
        let stream = connect(self.node.address, Ipv4Addr::LOCALHOST, None).await?;
        let mut socket = Socket::open(stream, query, &secret(0)).await?;
        // The first frame says that it has joined all streams.
        socket.next().await?;
        Ok(socket)
    }

    async fn publish(&self, n: u64) -> io::Result<u16> {
        let stream = connect(self.node.address, Ipv4Addr::LOCALHOST, None).await?;
        let target = format!("/v1/publish?session=s{n}");
        let mut socket = Socket::upgrade(stream, &target, &secret(0)).await?;
        socket.text(r#"{"publish":{"to":"t0/p","n":1,"envelope":{}}}"#).await?;
        loop {
            let frame = String::from_utf8_lossy(&socket.next().await?).into_owned();
            if frame.contains("published") || frame.contains("refused") {
                return Ok(101);
            }
        }
    }

    /// Takes all that a consumer gives, and acknowledges none of it.
    async fn hold(&mut self, n: u64) -> io::Result<u16> {
        let query = format!("stream=t0/many&consumer=f{n}&batch=512");
        let mut socket = self.subscribe(&query).await?;
        socket.text(r#"{"credit":1048576}"#).await?;
        let taking = async { while socket.next().await.is_ok() {} };
        let _ = tokio::time::timeout(Duration::from_millis(300), taking).await;
        self.sockets.push(socket);
        Ok(101)
    }

    async fn leave_unread(&mut self, path: &str) -> io::Result<u16> {
        if self.kept.len() >= KEPT {
            return Ok(0);
        }
        let address: SocketAddr = self.node.address;
        let mut stream = connect(address, Ipv4Addr::LOCALHOST, Some(BUFFER_BYTES)).await?;
        let token = secret(0);
        let token = token.reveal();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        self.kept.push(stream);
        Ok(0)
    }
}
