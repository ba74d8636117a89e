use std::fs;

use sealane::Value;

use crate::CliFailure;
use crate::times::now_ms;

/// The measured kinds, each in a stream of its own.
pub(super) const KINDS: [&str; 5] = ["load", "cpu", "memory", "disk", "network"];

/// This machine, as Linux shows it under `/proc`.
pub(super) struct DemoMachine {
    host: String,
}

impl DemoMachine {
    pub(super) fn find() -> Result<Self, CliFailure> {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").map_err(|_| {
            CliFailure::Demo("this machine has no /proc to read its telemetry from".into())
        })?;
        let usable = |c: char| !c.is_control() && c != '/' && c != '*';
        let host: String = name.trim().chars().filter(|&c| usable(c)).take(64).collect();
        Ok(Self { host: if host.is_empty() { "localhost".into() } else { host } })
    }

    pub(super) fn topic(&self, kind: &str) -> String {
        format!("host/{}/{kind}", self.host)
    }

    /// One measurement, and its id, which ends in `number`.
    pub(super) fn sample(&self, kind: &str, number: usize) -> Result<(String, Value), CliFailure> {
        let data = match kind {
            "load" => read("loadavg").map(|text| load(&text)),
            "cpu" => read("stat").map(|text| cpu(&text)),
            "memory" => read("meminfo").map(|text| memory(&text)),
            "disk" => read("diskstats").map(|text| disk(&text)),
            _ => read("net/dev").map(|text| network(&text)),
        }?;
        let id = format!("{kind}-{number}");
        let envelope = map([
            ("id", id.as_str().into()),
            ("type", "telemetry".into()),
            ("host", self.host.as_str().into()),
            ("timeMs", now_ms().into()),
            (kind, data),
        ]);
        Ok((id, envelope))
    }
}

fn read(name: &str) -> Result<String, CliFailure> {
    let path = format!("/proc/{name}");
    fs::read_to_string(&path).map_err(|error| CliFailure::Demo(format!("{path}: {error}")))
}

fn map<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The numbers of a line, under these names; what is no number is left out.
fn numbers<'a>(names: &[&'static str], words: impl Iterator<Item = &'a str>) -> Value {
    let pairs = names.iter().zip(words);
    map(pairs.filter_map(|(name, word)| Some((*name, Value::from(word.parse::<u64>().ok()?)))))
}

fn load(text: &str) -> Value {
    let names = ["one", "five", "fifteen"];
    let pairs = names.iter().zip(text.split_whitespace());
    map(pairs.filter_map(|(name, word)| Some((*name, Value::F64(word.parse().ok()?)))))
}

/// Clock ticks by what they went to, of all cores together.
fn cpu(text: &str) -> Value {
    let names = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let line = text.lines().next().unwrap_or("");
    numbers(&names, line.split_whitespace().skip(1))
}

fn memory(text: &str) -> Value {
    let names = [
        ("MemTotal:", "totalKb"),
        ("MemFree:", "freeKb"),
        ("MemAvailable:", "availableKb"),
        ("Cached:", "cachedKb"),
        ("SwapFree:", "swapFreeKb"),
    ];
    map(text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let label = words.next()?;
        let (_, name) = names.iter().find(|(known, _)| *known == label)?;
        Some((*name, Value::from(words.next()?.parse::<u64>().ok()?)))
    }))
}

/// Counters of each disk that has done anything.
fn disk(text: &str) -> Value {
    const NAMES: [&str; 8] = [
        "reads",
        "readsMerged",
        "sectorsRead",
        "readMs",
        "writes",
        "writesMerged",
        "sectorsWritten",
        "writeMs",
    ];
    map(text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(2);
        let name = words.next()?;
        let virtual_disk = name.starts_with("loop") || name.starts_with("ram");
        let counters = numbers(&NAMES, words);
        (!virtual_disk && counters.field("reads")?.as_u64()? > 0).then_some((name, counters))
    }))
}

/// Counters of each network interface.
fn network(text: &str) -> Value {
    map(text.lines().skip(2).filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let words: Vec<&str> = counters.split_whitespace().collect();
        let used = [words.first()?, words.get(1)?, words.get(8)?, words.get(9)?];
        let names = ["receivedBytes", "receivedPackets", "sentBytes", "sentPackets"];
        Some((name.trim(), numbers(&names, used.into_iter().copied())))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read() {
        let one = |value: &Value, name: &str| value.field(name).cloned();
        assert_eq!(one(&load("0.52 0.58 0.59 1/833 12"), "five"), Some(Value::F64(0.58)));
        let ticks = cpu("cpu  10 2 3 4000 5 0 7 0 0 0\ncpu0 1 1 1 1");
        assert_eq!(one(&ticks, "idle"), Some(4000_u64.into()));
        let kib = memory("MemTotal:  100 kB\nHugePages: 0\nCached:  7 kB\n");
        assert_eq!(one(&kib, "cachedKb"), Some(7_u64.into()));
        let disks = disk(" 7 0 loop0 9 9 9 9 9 9 9 9\n 8 0 sda 5 0 40 1 6 0 48 2 0 1 3\n");
        let sda = one(&disks, "sda").unwrap();
        assert_eq!(one(&sda, "sectorsWritten"), Some(48_u64.into()));
        assert_eq!(disks.field("loop0"), None);
        let head = "Inter-|   Receive\n face |bytes\n";
        let net = network(&format!("{head}  lo: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n"));
        let lo = one(&net, "lo").unwrap();
        assert_eq!(one(&lo, "sentBytes"), Some(300_u64.into()));
    }
}
