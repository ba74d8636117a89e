//! The machine's resources that a node takes, and how long its clients wait.

use std::time::Duration;

use crate::durable::node::Node;

/// A number of the environment, or what the daily tests take.
pub(crate) fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Prints a figure and what is demanded of it, which decides where `SEALANE_DEMANDS` is set.
pub(crate) fn demand(what: &str, measured: f64, most: f64) {
    println!("  {what}: {measured:.2} (demanded: at most {most:.2})");
    let decides = std::env::var_os("SEALANE_DEMANDS").is_some();
    assert!(!decides || measured <= most, "{what}: {measured:.3}, more than {most}");
}

/// The decimal number that stands directly behind `key`.
pub(crate) fn behind(text: &str, key: &str) -> u64 {
    let at = text.find(key).unwrap_or_else(|| panic!("no `{key}` in {text}")) + key.len();
    let digits = text[at..].bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// The ids of the messages in a frame whose envelopes begin with them.
pub(crate) fn ids(frame: &str) -> impl Iterator<Item = &str> {
    let pieces = frame.split("\"deliver\":{\"id\":\"").skip(1);
    pieces.map(|piece| piece.split('"').next().unwrap())
}

/// Memory of the node in bytes: `VmRSS:` now, `VmHWM:` at most.
pub(crate) fn memory(node: &Node, field: &str) -> u64 {
    behind(&process_file(node, "status").replace(['\t', ' '], ""), field) << 10
}

/// From here on `VmHWM:` is the most since now.
pub(crate) fn forget_peak(node: &Node) {
    let path = format!("/proc/{}/clear_refs", node.process.id());
    std::fs::write(path, "5").unwrap();
}

/// Bytes that the node has caused to be written to disks.
pub(crate) fn written(node: &Node) -> u64 {
    behind(&process_file(node, "io"), "\nwrite_bytes: ")
}

fn process_file(node: &Node, name: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{name}", node.process.id())).unwrap()
}

pub(crate) fn metric(node: &Node, name: &str) -> u64 {
    let reply = node.http().call("GET", "/metrics", "").unwrap();
    behind(&reply.body, &format!("\n{name} "))
}

/// Pages of memory that all TCP sockets of this machine have, and may have. At the limit the system
/// drops what comes, whatever the node does.
pub(crate) fn tcp_pages() -> (u64, u64) {
    let read = |path| std::fs::read_to_string(path).unwrap();
    let sockets = read("/proc/net/sockstat");
    let of_tcp = sockets.lines().find(|line| line.starts_with("TCP:")).unwrap();
    let limits = read("/proc/sys/net/ipv4/tcp_mem");
    let most = limits.split_whitespace().next_back().unwrap();
    (behind(of_tcp, "mem "), most.parse().unwrap())
}

/// Bytes, as people read them.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// How long each request took.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn new(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The duration that this part of them did not exceed.
    pub(crate) fn part(&self, part: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * part) as usize).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| self.part(part));
        write!(to, "p50 {p50:?}, p99 {p99:?}, p99.9 {p999:?} of {}", self.len())
    }
}
