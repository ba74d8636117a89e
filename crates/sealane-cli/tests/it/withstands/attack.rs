//! The crowd: many clients at once, each of which does one thing that is not done.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use sealane_node::access::TokenSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::node::stolen;
use super::socket::{Socket, TEXT, connect};

/// The pause between two tries of one kind. The crowd shares the machine with those it attacks:
/// it is to take their node's places, not their processor.
const PAUSE: Duration = Duration::from_millis(25);

#[derive(Clone, Copy)]
struct Crowd {
    node: SocketAddr,
    until: Instant,
}

/// `NODE CROWD ADDRESSES SECONDS`: how many half-open connections, from how many addresses.
pub(crate) async fn run(work: &str) {
    let parts: Vec<&str> = work.split(' ').collect();
    let [node, size, addresses, seconds] = parts[..] else { panic!("{work}") };
    open_many();
    let (size, seconds): (usize, u64) = (size.parse().unwrap(), seconds.parse().unwrap());
    let addresses: usize = addresses.parse().unwrap();
    let until = Instant::now() + Duration::from_secs(seconds);
    let crowd = Crowd { node: node.parse().unwrap(), until };
    let mut tasks = Vec::new();
    // Half as many again as there are places.
    for number in 0..size * 3 / 2 {
        let from = Ipv4Addr::new(127, 0, 1, (number % addresses) as u8 + 1);
        tasks.push(tokio::spawn(crowd.half_open(from)));
        if number % 50 == 49 {
            sleep(Duration::from_millis(5)).await;
        }
    }
    for number in 0..size / 50 {
        tasks.push(tokio::spawn(crowd.never_read(number)));
    }
    let kinds = [
        tokio::spawn(crowd.again(move |n| crowd.bad_frame(n))),
        tokio::spawn(crowd.again(move |n| crowd.bad_body(n))),
        tokio::spawn(crowd.again(move |n| crowd.guess(n))),
        tokio::spawn(crowd.again(move |n| crowd.no_http(n))),
        tokio::spawn(crowd.again(move |_| crowd.flood())),
    ];
    tasks.extend(kinds);
    for _ in 0..size / 20 {
        tasks.push(tokio::spawn(crowd.drip("GET /health HTTP/1.1\r\nx-slow: ")));
        tasks.push(tokio::spawn(
            crowd.drip(
                "POST /v1/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n",
            ),
        ));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// As many connections as the system allows.
pub(crate) fn open_many() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

impl Crowd {
    /// Tries again and again.
    async fn again<F: Future<Output = io::Result<()>>>(self, attempt: impl Fn(u64) -> F) {
        for n in 0.. {
            if Instant::now() >= self.until {
                return;
            }
            // To be refused is what it is for.
            let _ = timeout(Duration::from_secs(5), attempt(n)).await;
            sleep(PAUSE).await;
        }
    }

    /// Connects, says nothing, and comes again when it is sent away.
    async fn half_open(self, from: Ipv4Addr) {
        while Instant::now() < self.until {
            if let Ok(mut stream) = connect(self.node, from, None).await {
                let mut answer = [0; 512];
                let _ = tokio::time::timeout_at(self.until, stream.read(&mut answer)).await;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Asks for all that there is, and takes none of it.
    async fn never_read(self, number: usize) {
        let from = Ipv4Addr::new(127, 0, 2, (number % 200) as u8 + 1);
        while Instant::now() < self.until {
            if let Ok(stream) = connect(self.node, from, Some(4096)).await {
                let query = "stream=hostile/flood&from=first&batch=1024";
                if let Ok(mut socket) = Socket::open(stream, query, &stolen()).await {
                    let _ = socket.text("{\"credit\":1000000}").await;
                    tokio::time::sleep_until(self.until).await;
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Fills a stream, faster than the token may.
    async fn flood(self) -> io::Result<()> {
        let envelope = format!("{{\"text\":\"{}\"}}", "x".repeat(100));
        let all = vec![envelope; 1000].join(",");
        let body = format!("{{\"to\":\"hostile/flood\",\"envelopes\":[{all}]}}");
        self.post("/v1/enqueue/batch", "application/json", body.as_bytes()).await
    }

    async fn bad_frame(self, n: u64) -> io::Result<()> {
        let stream = connect(self.node, Ipv4Addr::new(127, 0, 3, 1), None).await?;
        let mut socket = Socket::open(stream, "stream=hostile/a&from=new", &stolen()).await?;
        match n % 6 {
            // Credit beyond what a connection may hold.
            0 => {
                for _ in 0..3 {
                    socket.text("{\"credit\":4294967296}").await?;
                }
            }
            1 => socket.send(TEXT, 2 << 20, &[b' '; 4096]).await?,
            2 => socket.send(TEXT, u64::MAX >> 1, b"{").await?,
            3 => socket.send(TEXT, 4, b"\xff\xfe\xff\xfe").await?,
            4 => socket.text(&"[".repeat(100_000)).await?,
            _ => socket.text("{\"credit\":-1}").await?,
        }
        socket.drain().await;
        Ok(())
    }

    async fn bad_body(self, n: u64) -> io::Result<()> {
        let deep = "{\"a\":".repeat(100_000);
        let too_deep = format!(
            "{{\"to\":\"hostile/a\",\"envelope\":{}1{}}}",
            "{\"a\":".repeat(40),
            "}".repeat(40)
        );
        let (kind, body): (&str, &[u8]) = match n % 6 {
            0 => ("application/json", deep.as_bytes()),
            1 => ("application/json", b"{\"to\":\"hostile/a\",\"envelope\":{\"t\":\"\xff\xfe\"}}"),
            // Four thousand million elements, and none.
            2 => ("application/msgpack", b"\xdd\xff\xff\xff\xff"),
            3 => ("application/cbor", b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"),
            4 => ("application/json", too_deep.as_bytes()),
            _ => ("application/json", b"{\"to\":\"hostile/a\",\"envelope\":7}"),
        };
        self.post("/v1/enqueue", kind, body).await
    }

    async fn post(self, path: &str, kind: &str, body: &[u8]) -> io::Result<()> {
        let mut stream = connect(self.node, Ipv4Addr::new(127, 0, 4, 1), None).await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            stolen().reveal(),
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await?;
        Ok(())
    }

    async fn guess(self, n: u64) -> io::Result<()> {
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        let mut stream = connect(self.node, Ipv4Addr::new(127, 0, 5, 1), None).await?;
        let head = format!(
            "GET /v1/streams HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             connection: close\r\n\r\n",
            TokenSecret::new(bytes).reveal()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await?;
        Ok(())
    }

    async fn no_http(self, n: u64) -> io::Result<()> {
        let mut stream = connect(self.node, Ipv4Addr::new(127, 0, 6, 1), None).await?;
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(100_000));
        let said: &[u8] = match n % 3 {
            0 => b"EHLO hub\r\n\r\n",
            1 => b"\x16\x03\x01\x02\x00",
            _ => long.as_bytes(),
        };
        stream.write_all(said).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(())
    }

    /// A request that never comes to its end, a byte a second.
    async fn drip(self, head: &'static str) {
        while Instant::now() < self.until {
            if let Ok(stream) = connect(self.node, Ipv4Addr::new(127, 0, 7, 1), None).await {
                let (mut reader, mut writer) = stream.into_split();
                let token = stolen();
                let rest = format!("authorization: Bearer {}\r\n\r\n", token.reveal());
                let whole = if head.contains("length") { rest } else { String::new() };
                let _ = writer.write_all(format!("{head}{whole}").as_bytes()).await;
                let dripping = async {
                    while writer.write_all(b"x").await.is_ok() {
                        sleep(Duration::from_secs(1)).await;
                    }
                };
                let mut said = Vec::new();
                tokio::select! {
                    () = dripping => {}
                    _ = reader.read_to_end(&mut said) => {}
                    () = tokio::time::sleep_until(self.until) => {}
                }
            }
            sleep(PAUSE).await;
        }
    }
}
