//! The parts of a node's CPU time, by samples of `perf`.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The parts, as the table's columns name them.
pub(super) const PARTS: [&str; 6] = ["receive", "check", "plan", "SQLite", "answer", "rest"];

const RECEIVE: usize = 0;
const CHECK: usize = 1;
const PLAN: usize = 2;
const SQLITE: usize = 3;
const ANSWER: usize = 4;
const REST: usize = 5;

/// Parts of a function's name, and the part of the way that it belongs to. The innermost function
/// with a rule decides, and of its rules the first.
const RULES: [(&str, usize); 33] = [
    ("sys_recv", RECEIVE),
    ("sys_read", RECEIVE),
    ("sys_send", ANSWER),
    ("sys_write", ANSWER),
    ("sys_pwrite", SQLITE),
    ("sys_pread", SQLITE),
    ("sync", SQLITE),
    ("fallocate", SQLITE),
    ("truncate", SQLITE),
    ("sys_fcntl", SQLITE),
    ("sys_epoll", REST),
    ("sys_futex", REST),
    ("sealane_stream::store", SQLITE),
    ("sealane_stream::block", SQLITE),
    ("sealane_stream::checkpoint", SQLITE),
    ("rusqlite", SQLITE),
    ("sqlite3", SQLITE),
    ("sealane_codec::writer", ANSWER),
    ("sealane_node::reply", ANSWER),
    ("sealane_node::outlet", ANSWER),
    ("PublishFrame", ANSWER),
    ("Enqueued", ANSWER),
    ("tungstenite", RECEIVE),
    ("apply_mask", RECEIVE),
    ("sealane_node::frames", RECEIVE),
    ("sealane_node::body", RECEIVE),
    ("hyper", RECEIVE),
    ("sealane_stream::writer", PLAN),
    ("sealane_stream::stream", PLAN),
    ("sealane", CHECK),
    ("serde_json", CHECK),
    ("simdutf8", CHECK),
    ("memchr", CHECK),
];

/// A profiler that looks at a process as long as this lives.
pub(super) struct PartSampler {
    perf: Child,
    folder: TempDir,
}

impl PartSampler {
    /// None: this machine has no profiler, and no parts are told.
    pub(super) fn start(process: u32) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mut command = Command::new("perf");
        // Virtual machines have no counter of cycles. The clock of the CPU is everywhere.
        command.args(["record", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-p"]);
        command.arg(process.to_string()).arg("-o").arg(folder.path().join("perf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let perf = command.spawn().ok()?;
        // It takes a moment until it looks. What comes before is missing in all parts alike.
        std::thread::sleep(std::time::Duration::from_millis(300));
        Some(Self { perf, folder })
    }

    /// The shares of the parts, together 1.
    pub(super) fn finish(mut self) -> Option<[f64; PARTS.len()]> {
        let perf = rustix::process::Pid::from_child(&self.perf);
        rustix::process::kill_process(perf, rustix::process::Signal::INT).ok()?;
        self.perf.wait().ok()?;
        let mut command = Command::new("perf");
        command.args(["script", "--no-inline", "-F", "comm,ip,sym", "-i"]);
        let output = command.arg(self.folder.path().join("perf")).output().ok()?;
        shares(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Of a script: samples with an empty line behind each, the thread's name before its functions.
fn shares(script: &str) -> Option<[f64; PARTS.len()]> {
    let mut counts = [0.0; PARTS.len()];
    for sample in script.split("\n\n") {
        let mut lines = sample.trim_start_matches('\n').lines();
        let Some(thread) = lines.next() else { continue };
        let part = part_of(thread, lines.filter_map(|line| line.trim().split_once(' ')));
        if let Some(count) = counts.get_mut(part) {
            *count += 1.0;
        }
    }
    let all: f64 = counts.iter().sum();
    (all > 0.0).then(|| counts.map(|count| count / all))
}

fn part_of<'a>(thread: &str, frames: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    let mut first = None;
    for (_, function) in frames {
        first = first.or(Some(function));
        let rule = RULES.iter().find(|(word, _)| function.contains(word));
        if let Some((_, part)) = rule {
            return *part;
        }
    }
    let function = first.unwrap_or_default();
    // Functions without a rule are of libraries: memory is taken and given back, and copied.
    let is_memory = ["alloc", "free", "mem", "int_"].iter().any(|word| function.contains(word));
    match thread.trim() {
        "sealane-copier" => SQLITE,
        // The functions of SQLite itself have names of C.
        "sealane-writer" if !is_memory && !function.contains("::") => SQLITE,
        "sealane-writer" => PLAN,
        _ if is_memory => CHECK,
        _ => REST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_belong_to_the_part_of_their_innermost_known_function() {
        let script = "\
tokio-rt-worker \n\tffff copy_to_user\n\tfffe __x64_sys_recvfrom\n\t1 unknown\n\n\
sealane-writer \n\t1 walWriteOneFrame\n\n\
sealane-writer \n\t1 malloc\n\n\
tokio-rt-worker \n\t1 simdutf8::basic::from_utf8\n\n";
        let shares = shares(script).unwrap();
        assert_eq!(shares, [0.25, 0.25, 0.25, 0.25, 0.0, 0.0]);
        assert_eq!(super::shares(""), None);
    }
}
