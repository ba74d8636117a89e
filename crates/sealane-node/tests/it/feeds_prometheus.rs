//! The dashboard and the alert rules of `packaging/` ask for what a node tells: a Prometheus reads
//! a node, takes both, and answers each of their questions.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealane_stream::limits::MAX_METRIC_STREAMS;
use sealane_testing::{free_address, until_async};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::exposition::Exposition;
use crate::running::Running;
use crate::socket::Socket;

const DASHBOARD: &str = include_str!("../../../../packaging/grafana-dashboard.json");
const RULES: &str = include_str!("../../../../packaging/prometheus-rules.yml");
const PLAYED: &str = include_str!("../../../../tests/prometheus/rules.test.yml");

/// The questions of all panels.
fn questions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The names of metrics that stand in a text.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("sealane_")).collect()
}

/// A node in which something of every kind has happened, and a member that goes on reading.
async fn busy() -> (Running, Socket) {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 10).await;
    assert_eq!(hub.get("/v1/nothing").await.status, 404);
    let mut member = hub.subscribe("stream=a&consumer=c&from=first&max_attempts=1").await;
    member.credit(6).await;
    member.take(6).await;
    member.ack(json!({"from": 0, "to": 3})).await;
    member.send(json!({"nack": {"from": 4, "to": 4}})).await;
    let has_letters = async || hub.get("/v1/streams/dead/a").await.status == 200;
    until_async("there are dead letters", has_letters).await;
    (hub, member)
}

#[tokio::test]
async fn the_dashboard_and_the_rules_ask_for_what_a_node_tells() {
    let (hub, _member) = busy().await;
    let told = Exposition::of(&hub).await;
    let questions = questions();
    assert!(questions.len() > 30, "{questions:?}");
    let drawn: BTreeSet<&str> = questions.iter().flat_map(|text| named(text)).collect();
    for name in drawn.iter().chain(&named(RULES)) {
        assert!(told.names().contains(name), "nothing tells {name}");
    }
    // Each metric of a node is drawn, unless another panel shows it as well.
    let families = told.kinds.keys().map(String::as_str);
    let left: Vec<&str> = families
        .filter(|name| !drawn.iter().any(|drawn| drawn.starts_with(name)))
        .filter(|name| !SHOWN_OTHERWISE.contains(name))
        .collect();
    assert_eq!(left, Vec::<&str>::new());
}

#[tokio::test]
#[ignore = "lab: needs Prometheus"]
async fn a_prometheus_takes_the_rules_and_answers_the_dashboard() {
    let (hub, _member) = busy().await;
    answers(&hub, &questions()).await;
}

/// The metrics that no panel draws: they follow from others, or are told for single streams.
const SHOWN_OTHERWISE: &[&str] = &[
    "sealane_carry_spans_dropped_total",
    "sealane_carry_spans_total",
    "sealane_codec_encoded_total",
    "sealane_stream_consumer_acked_total",
    "sealane_stream_consumer_members",
    "sealane_stream_stored_sealed_total",
    "sealane_stream_topic_messages",
    "sealane_stream_topic_readers",
];

/// A program of Debian's package, or the system's own.
fn program(name: &str) -> Command {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/prometheus/usr/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(unpacked).chain(std::env::split_paths(&path));
    let found: Option<PathBuf> =
        folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    Command::new(found.unwrap_or_else(|| panic!("`{name}` is missing; run: cargo xtask needs")))
}

/// A Prometheus that ends with the test.
struct Prometheus {
    process: Child,
    address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    fn start(folder: &Path) -> Prometheus {
        let address = free_address();
        let process = program("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg(format!("--web.listen-address={address}"))
            .arg("--storage.tsdb.path=data")
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        Prometheus { process, address }
    }

    /// An answer in JSON. It is asked for by HTTP/1.0, so that it does not come in chunks.
    async fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// The value of an expression now; nothing before the server answers.
    async fn ask(&self, expression: &str) -> Option<Vec<Value>> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query?query={encoded}");
        let answer = self.get(&path).await?;
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        Some(answer["data"]["result"].as_array().unwrap().clone())
    }
}

/// Runs `promtool`, which says what is wrong.
fn promtool(folder: &Path, words: &[&str]) {
    let ran = program("promtool").args(words).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "promtool {words:?}: {said}");
}

/// Writes what a Prometheus of this hub reads, with these rules.
fn configure(folder: &Path, hub: &Running, rules: &str) {
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: [prometheus-rules.yml]\n\
         scrape_configs:\n  - job_name: sealane\n    static_configs: [{{targets: ['{}']}}]\n",
        hub.address()
    );
    for (name, text) in
        [("prometheus.yml", &*config), ("prometheus-rules.yml", rules), ("played.yml", PLAYED)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    promtool(folder, &["check", "config", "prometheus.yml"]);
}

/// Feeds the text of `/metrics` to the check of the format's own authors.
async fn check_text(hub: &Running) {
    let mut check = program("promtool");
    check.args(["check", "metrics"]).stdin(Stdio::piped());
    check.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ran = check.spawn().unwrap();
    let text = hub.get("/metrics").await.text();
    std::io::Write::write_all(&mut ran.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let ran = ran.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success() && said.trim().is_empty(), "promtool check metrics: {said}");
}

/// The rules, with minutes that are short enough for a test.
fn hurried() -> String {
    RULES
        .replace("[10m]", "[4s]")
        .replace("> 600", "> 3")
        .replace("> 500", "> 2")
        .replace("for: 10m", "for: 2s")
        .replace("for: 1m", "for: 1s")
}

#[tokio::test]
#[ignore = "lab: needs Prometheus"]
async fn a_prometheus_sounds_the_alert_when_a_worker_dies_behind_256_streams() {
    let hub = Running::start().await;
    for n in 0..MAX_METRIC_STREAMS {
        hub.enqueue(&format!("s/{n}"), json!({})).await;
    }
    hub.enqueue_numbered("jobs/mail", 0, 3).await;
    let mut worker = hub.subscribe("stream=jobs/mail&consumer=mailer&from=first").await;
    worker.credit(3).await;
    worker.take(3).await;
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), &hub, &hurried());
    let prometheus = Prometheus::start(folder.path());
    // The worker has all that there is, and dies without a word.
    drop(worker);
    for alert in ["SealaneConsumerStands", "SealaneConsumerLeft"] {
        let asked =
            format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\",consumer=\"mailer\"}}");
        let start = Instant::now();
        while prometheus.ask(&asked).await.is_none_or(|result| result.is_empty()) {
            assert!(start.elapsed() < Duration::from_secs(60), "{alert} does not sound");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn answers(hub: &Running, questions: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    configure(folder, hub, RULES);
    check_text(hub).await;
    promtool(folder, &["test", "rules", "played.yml"]);
    let prometheus = Prometheus::start(folder);
    let start = Instant::now();
    // Rates need two looks at least.
    let looked = "count_over_time(sealane_stream_streams[1m]) > 3";
    while prometheus.ask(looked).await.is_none_or(|result| result.is_empty()) {
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(start.elapsed() < Duration::from_secs(60), "{}", log());
        hub.enqueue("a", json!({})).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for question in questions {
        let asked = question.replace("$__rate_interval", "1m").replace("$instance", ".*");
        let result = prometheus.ask(&asked).await.unwrap();
        assert!(!result.is_empty(), "nothing answers {asked}");
    }
    let rules = prometheus.get("/api/v1/rules").await.unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    assert_eq!(rules.len(), RULES.matches("- alert:").count());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    println!("prometheus answered {} questions of the dashboard", questions.len());
}
