//! A real S3 server on loopback, and a proxy before it that misbehaves when told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// moto of the tests' Python environment.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts it with an empty bucket named `bucket`.
    pub(crate) fn start() -> Server {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/moto_server");
        assert!(program.is_file(), "{} is missing; run: cargo xtask needs", program.display());
        let mut process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let port = lines
            .by_ref()
            .find_map(|line| line.unwrap().split_once("127.0.0.1:")?.1.trim().parse().ok());
        // The rest is read, lest the server waits for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Server { process, port: port.expect("moto names its port") };
        let answer = request(server.port, "PUT /bucket");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        server
    }

    /// The environment variables that a client of `port` needs.
    pub(crate) fn environment(port: u16, home: &Path) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{port}");
        let home = home.to_str().unwrap();
        [
            ("AWS_ENDPOINT_URL", &*endpoint),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("HOME", home),
            ("XDG_CACHE_HOME", home),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request without a body and gives the whole answer. The server checks no signatures.
pub(crate) fn request(port: u16, what: &str) -> String {
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!(
        "{what} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\nconnection: close\r\n\
         authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
         SignedHeaders=host, Signature=0\r\n\r\n"
    );
    server.write_all(head.as_bytes()).unwrap();
    let mut answer = vec![];
    server.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The behaviour of the proxy on a request.
#[allow(dead_code, reason = "each test file uses a part of it")]
pub(crate) enum Answer {
    /// The server answers.
    Pass,
    /// The server answers after so many milliseconds.
    Late(u64),
    /// The proxy answers with this status, and the server hears nothing.
    Status(u16),
    /// The server does it, and its answer is lost with the connection.
    Lost,
    /// The server hears nothing of `If-None-Match`, and writes over what is there.
    Unconditional,
}

/// Decides by method and target, such as `PUT /bucket/a/config?partNumber=2`.
type Rule = dyn FnMut(&str) -> Answer + Send;

/// A server between a client and the real one.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    rule: Arc<Mutex<Box<Rule>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Passes everything on to `server` until a rule is set.
    pub(crate) fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let rule: Arc<Mutex<Box<Rule>>> = Arc::new(Mutex::new(Box::new(|_| Answer::Pass)));
        let seen = Arc::new(Mutex::new(vec![]));
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            rule: rule.clone(),
            seen: seen.clone(),
        };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (rule, seen) = (rule.clone(), seen.clone());
                std::thread::spawn(move || serve(client, server, &rule, &seen));
            }
        });
        proxy
    }

    /// Sets what happens from now on, and forgets what was seen.
    pub(crate) fn rule(&self, rule: impl FnMut(&str) -> Answer + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
        self.seen.lock().unwrap().clear();
    }

    /// The requests since then.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// One connection, which its first reply ends: the simplest way to say where a reply ends.
fn serve(client: TcpStream, server: u16, rule: &Mutex<Box<Rule>>, seen: &Mutex<Vec<String>>) {
    let mut client = BufReader::new(client);
    let Some((head, what, body)) = read_request(&mut client) else { return };
    seen.lock().unwrap().push(what.clone());
    let answer = (rule.lock().unwrap())(&what);
    let lost = matches!(answer, Answer::Lost);
    if let Answer::Late(ms) = answer {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }
    let reply = match answer {
        Answer::Status(status) => {
            format!("HTTP/1.1 {status} Fault\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .into_bytes()
        }
        Answer::Unconditional => forward(server, &without_condition(&head), &body),
        Answer::Pass | Answer::Late(_) | Answer::Lost => forward(server, &head, &body),
    };
    if !lost {
        let _ = client.get_mut().write_all(&reply);
    }
}

fn read_request(client: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let what = head.lines().next()?.rsplit_once(' ')?.0.to_owned();
    let mut body = vec![0; length];
    client.read_exact(&mut body).ok()?;
    Some((head, what, body))
}

fn without_condition(head: &str) -> String {
    let condition = |line: &&str| !line.to_ascii_lowercase().starts_with("if-none-match:");
    head.split_inclusive('\n').filter(condition).collect()
}

/// One request at a time: moto looks whether a key is free and takes it in two steps.
fn forward(server: u16, head: &str, body: &[u8]) -> Vec<u8> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap();
    let mut reply = vec![];
    let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
    let sent = server
        .write_all(format!("{head}connection: close\r\n\r\n").as_bytes())
        .and_then(|()| server.write_all(body))
        .and_then(|()| server.read_to_end(&mut reply));
    sent.unwrap();
    reply
}
