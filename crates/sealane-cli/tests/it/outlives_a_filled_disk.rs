//! A disk that another process fills, and keeps full while the node is killed and starts again:
//! what frees room works, what was acknowledged is there, and the node's log stays short.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::durable::disk::{self, Mounted};
use crate::durable::json;
use crate::durable::ledger::{Ledger, Reading};
use crate::durable::node::Node;
use crate::durable::random;
use crate::durable::writer::Writer;
use sealane_testing::{PATIENCE, until};

const IMAGE_BYTES: u64 = 128 << 20;
const LEVELS: [&str; 3] = ["memory", "os", "disk"];
/// The disk counts as full when so many requests in a row were refused.
const REFUSALS: usize = 10;
/// Lines that the node may say in a round: it starts twice.
const LOG_LINES_MAX: usize = 20;
/// Rounds of an ordinary run; `SEALANE_ROUNDS` asks for more.
const ROUNDS: usize = 4;
/// After so many rounds the streams go, so that their messages do not fill the disk themselves.
const CYCLE: usize = 8;

#[test]
#[ignore = "lab: needs root (loop mount)"]
fn a_disk_that_others_keep_full_stops_nothing_that_frees_room() {
    let _turn = crate::TURN.blocking_lock();
    disk::require();
    let rounds = std::env::var("SEALANE_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let (seed, folder) = (random::seed(), tempfile::tempdir().unwrap());
    let image = folder.path().join("image");
    disk::make(&image, IMAGE_BYTES);
    let mounted = Mounted::new(&image, folder.path().join("mounted"));
    let proof = Proof {
        seed,
        data: mounted.folder.join("data"),
        fill: mounted.folder.join("fill"),
        log: folder.path().join("node.log"),
        ledger: Ledger::default(),
    };
    let mut node = proof.start();
    for round in 0..rounds {
        let lines = proof.lines();
        node = proof.round(node, round);
        let said = proof.lines() - lines;
        assert!(said <= LOG_LINES_MAX, "round {round}: {said} lines in the node's log");
        println!("round {round}: {said} lines in the node's log");
    }
    let topics = (0..=rounds / CYCLE).flat_map(|cycle| LEVELS.map(|level| topic(level, cycle)));
    let kept: usize = topics.map(|topic| proof.ledger.of(&topic).len()).sum();
    println!("\n{rounds} rounds, {kept} messages acknowledged and none lost");
}

/// The stream of a level, of the rounds that share it.
fn topic(level: &str, cycle: usize) -> String {
    format!("{level}/{cycle}")
}

struct Proof {
    seed: u64,
    data: PathBuf,
    fill: PathBuf,
    log: PathBuf,
    ledger: Ledger,
}

impl Proof {
    fn start(&self) -> Node {
        Node::start(&self.data, "disk", &self.log)
    }

    fn lines(&self) -> usize {
        std::fs::read_to_string(&self.log).unwrap_or_default().lines().count()
    }

    /// Fills the disk, frees room through the node, kills it and starts it again while it is full,
    /// and looks for everything that was acknowledged.
    fn round(&self, node: Node, round: usize) -> Node {
        let cycle = round / CYCLE;
        for level in LEVELS.iter().filter(|_| round.is_multiple_of(CYCLE)) {
            node.make(&topic(level, cycle), level);
            let before = format!("/v1/streams/{}", topic(level, cycle.wrapping_sub(1)));
            let gone = node.http().call("DELETE", &before, "").unwrap();
            assert!([200, 404].contains(&gone.status), "{}", gone.body);
        }
        for topic in ["purged", "bounded", "removed", "removed/later"] {
            self.write(&node, topic, 20);
        }
        LEVELS.iter().for_each(|level| self.write(&node, &topic(level, cycle), 10));
        let filler = DiskFiller::start(&self.fill);
        self.write_until_refused(&node, cycle);
        let disk = topic("disk", cycle);
        free_room(&node, &format!("round {round}"), "removed", &disk);
        self.write_until_refused(&node, cycle);
        let is_killed_early = round % 2 == 1;
        if !is_killed_early {
            std::thread::sleep(Duration::from_millis(500));
        }
        drop(node);
        let node = self.start();
        let what = format!("round {round}, started again");
        let ready = node.http().call("GET", "/ready", "").unwrap();
        assert_eq!(ready.status, 503, "{what}: {}", ready.body);
        free_room(&node, &what, "removed/later", &disk);
        self.check(&node, cycle);
        drop(filler);
        let began = Instant::now();
        let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
        while writer.enqueue(&disk, 1).unwrap().status != 200 {
            assert!(began.elapsed() < PATIENCE, "{what}: still refused");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.check(&node, cycle);
        node
    }

    fn write(&self, node: &Node, topic: &str, requests: usize) {
        let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
        for _ in 0..requests {
            let reply = writer.enqueue(topic, 20).unwrap();
            assert_eq!(reply.status, 200, "{topic}: {}", reply.body);
        }
    }

    fn write_until_refused(&self, node: &Node, cycle: usize) {
        let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
        let (mut refused, began) = (0, Instant::now());
        while refused < REFUSALS {
            let level = LEVELS[refused % LEVELS.len()];
            let reply = writer.enqueue(&topic(level, cycle), 200).unwrap();
            assert!([200, 507].contains(&reply.status), "{level}: {}", reply.body);
            refused = if reply.status == 507 { refused + 1 } else { 0 };
            assert!(began.elapsed() < PATIENCE, "the disk does not fill");
        }
    }

    /// Everything is there that was acknowledged at a level that outlives a kill.
    fn check(&self, node: &Node, cycle: usize) {
        for level in ["os", "disk"] {
            let topic = topic(level, cycle);
            let reading = Reading::of(&mut node.http(), &topic, self.seed).unwrap();
            let acknowledged = self.ledger.of(&topic);
            assert_eq!(reading.conflict(&acknowledged), None, "{level}");
            assert_eq!(reading.missing(&acknowledged), [], "{level}: acknowledged and gone");
        }
    }
}

/// Everything that frees room works: a purge, a bound, a removal; and what is stored is read.
fn free_room(node: &Node, what: &str, removed: &str, kept: &str) {
    let call = |method, path: &str, body: &str| {
        let reply = node.http().call(method, path, body).unwrap();
        assert_eq!(reply.status, 200, "{what}: {method} {path}: {}", reply.body);
        reply.body
    };
    call("POST", "/v1/purge/purged", r#"{"before":"new"}"#);
    call("PUT", "/v1/streams/bounded", r#"{"maxCount":1}"#);
    call("PUT", "/v1/streams/bounded", r#"{"maxCount":0}"#);
    call("DELETE", &format!("/v1/streams/{removed}"), "");
    let page = call("GET", &format!("/v1/streams/{kept}?from=first&limit=1"), "");
    assert_eq!(json::elements(json::raw(&page, "messages")).count(), 1, "{what}");
}

/// A process that keeps the disk full. Dropping it makes room again.
struct DiskFiller {
    process: Child,
    folder: PathBuf,
}

impl DiskFiller {
    fn start(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        // Large pieces first, then all that is left; and again, for what others give back. It
        // pauses, so that the node has a core.
        let fill = "while :; do
             dd if=/dev/zero of=$0/large bs=256k oflag=append conv=notrunc
             dd if=/dev/zero of=$0/small bs=1k oflag=append conv=notrunc
             sleep 0.02
         done";
        let process = Command::new("sh")
            .args(["-c", fill])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { process, folder: folder.to_owned() }
    }
}

impl Drop for DiskFiller {
    fn drop(&mut self) {
        // The shell's program goes with it. One that went on would fill the room that was made.
        let group = Pid::from_child(&self.process);
        kill_process_group(group, Signal::KILL).unwrap();
        self.process.wait().unwrap();
        until("all of the filler has ended", || test_kill_process_group(group).is_err());
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
