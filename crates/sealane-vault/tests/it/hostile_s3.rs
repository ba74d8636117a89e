//! A small S3 server on loopback that says yes and does something else, when it is told to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The behaviour of the server on a request to create an object.
#[allow(dead_code, reason = "each test file uses a part of it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It keeps the object if none is there, as it should.
    Honest,
    /// It writes over what is there.
    Overwrites,
    /// It says yes and keeps nothing.
    Forgets,
    /// It says yes and keeps other bytes.
    Replaces,
    /// It keeps the object, and answers after so long.
    AnswersLate(Duration),
    /// It waits so long, and keeps the object then if none is there.
    KeepsLate(Duration),
}

/// Which way a key is dealt with.
type Rule = dyn Fn(&str) -> Way + Send + Sync;

/// Something that happens before a request is served.
struct Event {
    /// Requests until then.
    left: u64,
    act: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct Bucket {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    rule: Mutex<Option<Arc<Rule>>>,
    /// Whether objects can be removed.
    appends: Mutex<bool>,
    event: Mutex<Option<Event>>,
    /// The requests, each with its method, key and query.
    seen: Mutex<Vec<String>>,
    /// How many requests are still refused, and with which status.
    refusals: Mutex<(usize, u16)>,
    /// The bytes given in the place of objects whose tags stay.
    rotten: Mutex<BTreeMap<String, Vec<u8>>>,
    gate: Gate,
}

/// Holds readers of links until so many of them wait.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    moved: Condvar,
}

#[derive(Default)]
struct GateState {
    wanted: usize,
    waiting: usize,
    most: usize,
}

/// How long a reader waits for the others.
const GATE: Duration = Duration::from_secs(60);

impl Gate {
    fn pass<T>(&self, serve: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        state.most = state.most.max(state.waiting);
        self.moved.notify_all();
        let closed = |state: &mut GateState| state.most < state.wanted;
        let (mut state, waited) = self.moved.wait_timeout_while(state, GATE, closed).unwrap();
        assert!(!waited.timed_out(), "{} of {} readers came", state.most, state.wanted);
        drop(state);
        let served = serve();
        state = self.state.lock().unwrap();
        state.waiting -= 1;
        served
    }
}

/// The server, with one bucket of any name.
pub(crate) struct HostileS3 {
    pub(crate) port: u16,
    bucket: Arc<Bucket>,
}

#[allow(dead_code, reason = "each test file uses a part of it")]
impl HostileS3 {
    pub(crate) fn start() -> HostileS3 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let bucket = Arc::new(Bucket::default());
        let server = HostileS3 { port, bucket: bucket.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let bucket = bucket.clone();
                std::thread::spawn(move || serve(client, &bucket));
            }
        });
        server
    }

    /// Sets what happens to keys from now on. They are whole: `some/vault/config`.
    pub(crate) fn rule(&self, rule: impl Fn(&str) -> Way + Send + Sync + 'static) {
        *self.bucket.rule.lock().unwrap() = Some(Arc::new(rule));
    }

    /// Refuses to remove anything from now on, as credentials do that only add.
    pub(crate) fn only_append(&self) {
        *self.bucket.appends.lock().unwrap() = true;
    }

    /// Acts once before the request is served that comes after so many others.
    pub(crate) fn after(&self, requests: u64, act: impl FnOnce() + Send + 'static) {
        let event = Event { left: requests, act: Box::new(act) };
        *self.bucket.event.lock().unwrap() = Some(event);
    }

    /// Forgets what was to happen; gives whether it was still to come.
    pub(crate) fn nothing_more(&self) -> bool {
        self.bucket.event.lock().unwrap().take().is_some()
    }

    /// The requests since it was asked last.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.bucket.seen.lock().unwrap())
    }

    /// Answers so many requests with this status from now on, and serves the rest.
    pub(crate) fn refuse(&self, requests: usize, status: u16) {
        *self.bucket.refusals.lock().unwrap() = (requests, status);
    }

    /// Gives other bytes for a key, and says nothing of it in its listings.
    pub(crate) fn rot(&self, key: &str, bytes: Vec<u8>) {
        self.bucket.rotten.lock().unwrap().insert(key.to_owned(), bytes);
    }

    /// Serves no link until so many are asked for at once.
    pub(crate) fn hold_links(&self, readers: usize) {
        *self.bucket.gate.state.lock().unwrap() =
            GateState { wanted: readers, ..GateState::default() };
    }

    /// How many links were asked for at once since then, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.bucket.gate.state.lock().unwrap().most
    }

    /// All objects.
    pub(crate) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.bucket.objects.lock().unwrap().clone()
    }

    /// Has these objects and no others from now on.
    pub(crate) fn set(&self, objects: BTreeMap<String, Vec<u8>>) {
        *self.bucket.objects.lock().unwrap() = objects;
    }

    /// All keys that have `part` in them.
    pub(crate) fn keys(&self, part: &str) -> Vec<String> {
        let objects = self.bucket.objects.lock().unwrap();
        objects.keys().filter(|key| key.contains(part)).cloned().collect()
    }
}

struct Request {
    method: String,
    key: String,
    query: String,
    head: String,
    body: Vec<u8>,
}

fn read(client: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.lines().next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = decoded(path.trim_start_matches('/'));
    let key = path.split_once('/').map_or("", |(_, key)| key).to_owned();
    let length = header(&head, "content-length").and_then(|text| text.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body).ok()?;
    Some(Request { method, key, query: decoded(query), head, body })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap().to_owned();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn serve(client: TcpStream, bucket: &Bucket) {
    let mut client = BufReader::new(client);
    let Some(request) = read(&mut client) else { return };
    if let Some(act) = due(bucket) {
        act();
    }
    let Request { method, key, query, .. } = &request;
    bucket.seen.lock().unwrap().push(format!("{method} {key}?{query}"));
    let refused = {
        let mut refusals = bucket.refusals.lock().unwrap();
        let (left, status) = *refusals;
        refusals.0 = left.saturating_sub(1);
        (left > 0).then_some(status)
    };
    let (status, body) = match &*request.method {
        _ if refused.is_some() => (refused.unwrap(), Vec::new()),
        "GET" if request.key.contains("/snapshots/") => bucket.gate.pass(|| get(bucket, &request)),
        "PUT" => (put(bucket, &request), Vec::new()),
        "GET" if request.key.is_empty() => (200, list(bucket, &request)),
        "GET" | "HEAD" => get(bucket, &request),
        "DELETE" => (remove(bucket, std::slice::from_ref(&request.key)), Vec::new()),
        _ => {
            let text = String::from_utf8(request.body.clone()).unwrap();
            let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
            let keys: Vec<String> = keys.map(|(key, _)| key.to_owned()).collect();
            let gone = keys.iter().map(|key| format!("<Deleted><Key>{key}</Key></Deleted>"));
            let gone = format!("<DeleteResult>{}</DeleteResult>", gone.collect::<String>());
            (remove(bucket, &keys), gone.into_bytes())
        }
    };
    let length = body.len();
    let tag = bucket
        .objects
        .lock()
        .unwrap()
        .get(&request.key)
        .map_or_else(String::new, |bytes| tag(bytes));
    let mut head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\nconnection: close\r\n\
         etag: {tag}\r\nlast-modified: Sun, 22 Nov 2026 00:00:00 GMT\r\n"
    );
    if status == 206 {
        let range = header(&request.head, "range").unwrap().replace("bytes=", "bytes ");
        let size = bucket.objects.lock().unwrap().get(&request.key).map_or(0, Vec::len);
        head.push_str(&format!("content-range: {range}/{size}\r\n"));
    }
    let body = if request.method == "HEAD" { Vec::new() } else { body };
    let reply = [head.as_bytes(), b"\r\n", &body].concat();
    let _ = client.get_mut().write_all(&reply);
}

/// The event that is due now.
fn due(bucket: &Bucket) -> Option<Box<dyn FnOnce() + Send>> {
    let mut event = bucket.event.lock().unwrap();
    match event.as_mut()?.left.checked_sub(1) {
        Some(left) => {
            event.as_mut()?.left = left;
            None
        }
        None => event.take().map(|event| event.act),
    }
}

fn put(bucket: &Bucket, request: &Request) -> u16 {
    let rule = bucket.rule.lock().unwrap().clone();
    let way = rule.map_or(Way::Honest, |rule| rule(&request.key));
    if let Way::KeepsLate(wait) = way {
        std::thread::sleep(wait);
    }
    let status = {
        let mut objects = bucket.objects.lock().unwrap();
        let condition = header(&request.head, "if-none-match").is_some();
        match way {
            Way::Forgets => 200,
            Way::Replaces => {
                objects.insert(request.key.clone(), vec![0; request.body.len()]);
                200
            }
            Way::Overwrites => {
                objects.insert(request.key.clone(), request.body.clone());
                200
            }
            _ if condition && objects.contains_key(&request.key) => 412,
            _ => {
                objects.insert(request.key.clone(), request.body.clone());
                200
            }
        }
    };
    if let Way::AnswersLate(wait) = way {
        std::thread::sleep(wait);
    }
    status
}

fn get(bucket: &Bucket, request: &Request) -> (u16, Vec<u8>) {
    let objects = bucket.objects.lock().unwrap();
    let Some(object) = objects.get(&request.key) else { return (404, Vec::new()) };
    let rotten = bucket.rotten.lock().unwrap();
    let object = rotten.get(&request.key).unwrap_or(object);
    let Some(range) = header(&request.head, "range") else { return (200, object.clone()) };
    let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let (from, to) = (from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap() + 1);
    match object.get(from..to.min(object.len())) {
        Some(part) => (206, part.to_vec()),
        None => (416, Vec::new()),
    }
}

/// Another one for other bytes, as a real server has it.
fn tag(object: &[u8]) -> String {
    format!("\"{}\"", &blake3::hash(object).to_hex()[..32])
}

fn list(bucket: &Bucket, request: &Request) -> Vec<u8> {
    let prefix = request.query.split('&').find_map(|pair| pair.strip_prefix("prefix="));
    let prefix = prefix.unwrap_or_default();
    let after = request.query.split('&').find_map(|pair| pair.strip_prefix("start-after="));
    let after = after.unwrap_or_default();
    let mut xml = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
    for (key, object) in bucket.objects.lock().unwrap().iter() {
        if key.starts_with(prefix) && key.as_str() > after {
            xml.push_str(&format!(
                "<Contents><Key>{key}</Key><Size>{}</Size><ETag>{}</ETag>\
                 <LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>",
                object.len(),
                tag(object)
            ));
        }
    }
    xml.push_str("</ListBucketResult>");
    xml.into_bytes()
}

fn remove(bucket: &Bucket, keys: &[String]) -> u16 {
    if *bucket.appends.lock().unwrap() {
        return 403;
    }
    let mut objects = bucket.objects.lock().unwrap();
    keys.iter().for_each(|key| drop(objects.remove(key)));
    200
}
