use std::collections::BTreeMap;
use std::fs;

use sealane::{Codec, Value};

use crate::CliFailure;
use crate::times::now_ms;

/// The measured kinds, each in a stream of its own, and their files under `/proc`.
pub(super) const KINDS: [(&str, &str); 5] = [
    ("load", "loadavg"),
    ("cpu", "stat"),
    ("memory", "meminfo"),
    ("disk", "diskstats"),
    ("network", "net/dev"),
];
/// Lines of a file that a measurement has, and numbers of each.
const LINES: usize = 5;
const NUMBERS: usize = 10;

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

    /// The measurement of this number; the kinds take turns.
    pub(super) fn sample(&self, number: usize) -> Result<Value, CliFailure> {
        let (kind, file) = KINDS.get(number % KINDS.len()).unwrap_or(&KINDS[0]);
        let path = format!("/proc/{file}");
        let text = fs::read_to_string(&path)
            .map_err(|error| CliFailure::Demo(format!("{path}: {error}")))?;
        Ok(map([
            ("id", format!("{kind}-{number}").into()),
            ("type", "telemetry".into()),
            ("host", self.host.as_str().into()),
            ("timeMs", now_ms().into()),
            (kind, numbers(&text)),
        ]))
    }

    /// The same with a word that is looked for.
    pub(super) fn sample_with(&self, number: usize, word: &str) -> Result<Value, CliFailure> {
        let mut envelope = self.sample(number)?;
        if let Value::Map(fields) = &mut envelope {
            fields.push(("note".to_owned(), word.into()));
        }
        Ok(envelope)
    }

    pub(super) fn note(word: &str) -> Value {
        map([("note", word.into())])
    }
}

fn map<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The numbers of the first lines that have any but zeros, behind the word that they stand behind.
fn numbers(text: &str) -> Value {
    let line = |line: &str| {
        let words = line.split([' ', '\t', ':']).filter(|word| !word.is_empty());
        let is_label = |word: &&str| word.parse::<f64>().is_err() && !word.contains('/');
        let label = words.clone().find(is_label).filter(|word| *word != "kB");
        let behind = words.skip_while(|word| label.is_some_and(|label| label != *word));
        let numbers: Vec<Value> = behind.filter_map(number).take(NUMBERS).collect();
        let has_any = numbers.iter().any(|number| *number != Value::from(0_u64));
        has_any.then(|| (label.unwrap_or("all").to_owned(), Value::Array(numbers)))
    };
    Value::Map(text.lines().filter_map(line).take(LINES).collect())
}

fn number(word: &str) -> Option<Value> {
    let whole = word.parse::<u64>().map(Value::from);
    whole.or_else(|_| word.parse().map(Value::F64)).ok()
}

/// Messages that were sent or came: their CBOR form, which is deterministic, under their ids.
#[derive(Debug, Default)]
pub(super) struct DemoLedger(BTreeMap<String, Vec<u8>>);

impl DemoLedger {
    /// Of the lines that a reader prints, each of which is a message.
    pub(super) fn of_lines(lines: &str) -> Self {
        let mut ledger = Self::default();
        let read = |line: &str| sealane_codec::decode(Codec::Json, line.as_bytes()).ok();
        lines.lines().filter_map(read).for_each(|envelope| ledger.add(&envelope));
        ledger
    }

    pub(super) fn add(&mut self, envelope: &Value) {
        let Some(id) = envelope.field("id").and_then(Value::as_text) else { return };
        let mut bytes = Vec::new();
        sealane_codec::encode(Codec::Cbor, envelope, &mut bytes);
        self.0.insert(id.to_owned(), bytes);
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Messages that are not in `received`, or are there with another content.
    pub(super) fn missing(&self, received: &DemoLedger) -> u64 {
        self.0.iter().filter(|(id, bytes)| received.0.get(*id) != Some(*bytes)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read() {
        let of = |text: &str, label: &str| match numbers(text).field(label) {
            Some(Value::Array(numbers)) => numbers.clone(),
            _ => vec![],
        };
        let all = |numbers: &[u64]| numbers.iter().map(|n| Value::from(*n)).collect::<Vec<_>>();
        assert_eq!(of("0.52 0.59 1/833 12", "all")[..2], [Value::F64(0.52), Value::F64(0.59)]);
        assert_eq!(of("cpu  10 2 3 4000\ncpu0 1 1 1 1", "cpu"), all(&[10, 2, 3, 4000]));
        assert_eq!(of("HugePages: 0\nCached:  7 kB\n", "Cached"), all(&[7]));
        let disks = " 7 0 loop0 0 0\n 8 0 sda 5 0 40\n";
        assert_eq!(of(disks, "sda"), all(&[5, 0, 40]));
        assert_eq!(of(disks, "loop0"), []);
        let net = "Inter-|   Receive\n face |bytes\n  lo: 100 2 0\n";
        assert_eq!(of(net, "lo"), all(&[100, 2, 0]));
    }

    #[test]
    fn what_is_missing_or_differs_is_lost() {
        let value = |id: u64, n: u64| map([("id", id.to_string().into()), ("n", n.into())]);
        let (mut sent, mut received) = (DemoLedger::default(), DemoLedger::default());
        (0..4).for_each(|n| sent.add(&value(n, n)));
        (0..4).for_each(|n| received.add(&value(n, n)));
        assert_eq!(sent.missing(&received), 0);
        received.0.remove("1");
        received.add(&value(2, 9));
        assert_eq!(sent.missing(&received), 2);
    }
}
