//! How thrifty this machine is with its documents: what the policy makes of its battery.

use std::time::{Duration, Instant};

use sealane_codec::document::decode;
use sealane_document::{DocumentPacer, DueDocument};
use sealane_message::DataType;
use sealane_message::document::Document;
use sealane_message::time::whole_ms;
use sealane_seal::policy::{Battery, Policy};

use crate::limits::BATTERY_LOOK_MS;

/// Where Linux says how full batteries are.
const SUPPLIES: &str = "/sys/class/power_supply";

/// The pace of the own documents, and the battery that it follows.
pub(super) struct DocumentPace {
    pub(super) pacer: DocumentPacer,
    /// The battery by the configuration.
    given: Option<Battery>,
    /// The battery by the own vitals of last time.
    said: Option<Battery>,
    begun: Instant,
    looked: Option<Instant>,
}

impl DocumentPace {
    pub(super) fn new(policy: Policy, given: Option<Battery>) -> DocumentPace {
        let mut pacer = DocumentPacer::new(policy);
        pacer.set_battery(given);
        DocumentPace { pacer, given, said: None, begun: Instant::now(), looked: None }
    }

    /// Milliseconds since the start.
    pub(super) fn now_ms(&self) -> u64 {
        whole_ms(self.begun.elapsed())
    }

    /// Takes a document. Puts the documents of its type that leave now into `due`, the oldest
    /// first, and gives for how long the written one waits, or others before it do. At 0 it is the
    /// last one of `due`.
    pub(super) fn write(
        &mut self,
        data_type: DataType,
        body: &[u8],
        due: &mut Vec<DueDocument>,
    ) -> u64 {
        if let Ok(Document::Vitals(vitals)) = decode(data_type, body) {
            self.said = vitals.battery_percent.and_then(Battery::new).or(self.said);
            // Fresh vitals are asked at once, so that a battery that has just sunk slows the very
            // next document.
            self.looked = None;
        }
        self.look();
        let now_ms = self.now_ms();
        self.pacer.write(now_ms, data_type, body.to_vec());
        // Both look-ups take the same time. A document could otherwise be neither due nor waiting.
        due.extend(std::iter::from_fn(|| self.pacer.next_of(now_ms, data_type)));
        self.pacer.wait_ms(now_ms, data_type)
    }

    /// The next document whose turn has come.
    pub(super) fn next(&mut self) -> Option<DueDocument> {
        self.look();
        self.pacer.next(self.now_ms())
    }

    /// Looks how full the battery is: what the configuration says counts before what the own vitals
    /// said, and that before what the system says.
    fn look(&mut self) {
        let soonest = Duration::from_millis(BATTERY_LOOK_MS);
        if self.looked.is_some_and(|looked| looked.elapsed() < soonest) {
            return;
        }
        self.looked = Some(Instant::now());
        self.pacer.set_battery(self.given.or(self.said).or_else(of_system));
    }
}

/// The least full battery that runs this machine, and not a device beside it.
fn of_system() -> Option<Battery> {
    let supplies = std::fs::read_dir(SUPPLIES).ok()?.flatten();
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let batteries = supplies.map(|supply| supply.path()).filter(|path| {
        // Linux lists the batteries of mice and headsets too. An empty mouse must not silence a
        // machine.
        let is_beside = read(path.join("scope")).trim() == "Device";
        read(path.join("type")).trim() == "Battery" && !is_beside
    });
    let percents = batteries.filter_map(|path| read(path.join("capacity")).trim().parse().ok());
    // Of several batteries the emptiest decides. A machine that sends less loses less than one that
    // dies.
    percents.filter_map(Battery::new).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_a_log_leaves_now_only_if_none_before_it_waits() {
        let mut thrift = DocumentPace::new(Policy::default(), Battery::new(5));
        let log = DataType::from_number(72);
        for (number, waits_ms) in [(0, 2_000), (1, 3_000), (2, 4_000)] {
            let mut due = vec![];
            let wait_ms = thrift.write(log, &[number], &mut due);
            assert!(due.is_empty(), "{number}");
            assert!(wait_ms > waits_ms - 1_000 && wait_ms <= waits_ms, "{number}");
        }
        // The first one is due when another one is written: that one is not stored yet.
        thrift.begun = Instant::now().checked_sub(Duration::from_millis(2_500)).unwrap();
        let mut due = vec![];
        let wait_ms = thrift.write(log, &[3], &mut due);
        assert_eq!(due.iter().map(|due| &due.body[..]).collect::<Vec<_>>(), [[0]]);
        assert!(wait_ms > 2_000, "{wait_ms}");
    }
}
