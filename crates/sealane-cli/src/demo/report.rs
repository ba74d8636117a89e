use std::time::Duration;

use sealane::{Codec, Value};

use super::archive::DemoVaultReport;
use super::field::FieldToCloud;
use super::ledger::PublishedLedger;
use super::reader::DemoReaderTally;
use super::relayed::DemoRelayReport;
use super::sealed::DemoSealedReport;
use super::show::{DemoClaim, DemoOutput, count};
use crate::terminal::table;
use crate::times::show_bytes;
use crate::{CliFailure, Terminal};

/// The commands to type next.
const NEXT: &str = "
Try it yourself:
   sealane up                              # then open http://127.0.0.1:9087/
   sealane sub '**'                        # in another terminal: what comes
   sealane pub fleet/7/location '{\"lat\": 48.2}'";

/// The result of the demo.
pub(super) struct DemoReport {
    pub(super) acknowledged: u64,
    pub(super) down: Duration,
    pub(super) rows: Vec<DemoCodecRow>,
    pub(super) hidden: DemoSecrecyReport,
}

/// The sealed parts of the demo, and in how many of the node's files a word of them was found.
pub(super) struct DemoSecrecyReport {
    pub(super) sealed: DemoSealedReport,
    pub(super) relayed: DemoRelayReport,
    pub(super) field: FieldToCloud,
    /// Files with a word that was published in the open: what shows that the search can find.
    pub(super) open_found: u64,
    /// Files with a word that was sealed.
    pub(super) sealed_found: u64,
    pub(super) archive: DemoVaultReport,
}

/// The messages that one codec's reader received.
pub(super) struct DemoCodecRow {
    codec: Codec,
    messages: u64,
    bytes: u64,
    bytes_per_message: f64,
    us_per_message: f64,
    redelivered: u64,
    lost: u64,
}

impl DemoCodecRow {
    pub(super) fn new(codec: Codec, tally: DemoReaderTally, ledger: &PublishedLedger) -> Self {
        let deliveries = tally.deliveries.max(1) as f64;
        Self {
            codec,
            messages: u64::try_from(tally.received.len()).unwrap_or(u64::MAX),
            bytes: tally.bytes,
            bytes_per_message: tally.bytes as f64 / deliveries,
            us_per_message: tally.codec_time.as_secs_f64() * 1e6 / deliveries,
            redelivered: tally.redelivered,
            lost: ledger.missing(&tally.received),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.codec.name().to_owned(),
            self.messages.to_string(),
            show_bytes(self.bytes),
            format!("{:.0}", self.bytes_per_message),
            format!("{:.1} us", self.us_per_message),
            self.redelivered.to_string(),
            self.lost.to_string(),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("codec", self.codec.name().into()),
            ("messages", self.messages.into()),
            ("bytes", self.bytes.into()),
            ("bytesPerMessage", Value::F64(self.bytes_per_message)),
            ("usPerMessage", Value::F64(self.us_per_message)),
            ("redelivered", self.redelivered.into()),
            ("lost", self.lost.into()),
        ]
    }
}

impl DemoReport {
    pub(super) fn lost(&self) -> u64 {
        let open: u64 = self.rows.iter().map(|row| row.lost).sum();
        let DemoSecrecyReport { sealed, relayed, field, archive, .. } = &self.hidden;
        open + sealed.lost + relayed.lost + field.lost + archive.failed
    }

    /// Whether what was to be hidden was found, or the search found nothing at all.
    pub(super) fn shows(&self) -> bool {
        let DemoSecrecyReport { open_found, sealed_found, archive, relayed, field, .. } =
            &self.hidden;
        let found = sealed_found + archive.found + relayed.found + field.found;
        // Where the search finds nothing, it shows nothing.
        found > 0 || [*open_found, relayed.open_found, field.open_found].contains(&0)
    }

    pub(super) fn show(&self, terminal: &mut Terminal) -> Result<(), CliFailure> {
        if terminal.json() {
            self.rows.iter().try_for_each(|row| terminal.record(row.fields()))?;
            return terminal.record(vec![
                ("acknowledged", self.acknowledged.into()),
                ("downMs", Value::F64(self.down.as_secs_f64() * 1e3)),
                ("sealed", self.hidden.sealed.messages.into()),
                ("sealedFound", self.hidden.sealed_found.into()),
                ("openFound", self.hidden.open_found.into()),
                ("relayed", self.hidden.relayed.messages.into()),
                ("relayedFound", self.hidden.relayed.found.into()),
                ("fieldToCloud", self.hidden.field.documents.into()),
                ("fieldToCloudFound", self.hidden.field.found.into()),
                ("vaultFiles", self.hidden.archive.proven.into()),
                ("vaultFound", self.hidden.archive.found.into()),
                ("lost", self.lost().into()),
            ]);
        }
        let head =
            ["CODEC", "MESSAGES", "BYTES", "BYTES/MSG", "DECODE+ENCODE", "REDELIVERED", "LOST"];
        let rows: Vec<_> = self.rows.iter().map(DemoCodecRow::cells).collect();
        let mut show = DemoOutput::new(terminal);
        show.tell(&format!("\n{}", table(&head, &rows).trim_end()))?;
        show.claims(&self.claims())?;
        show.tell(NEXT)
    }

    /// The claims that a newcomer may doubt, and their measurements of this moment.
    fn claims(&self) -> [DemoClaim; 5] {
        let DemoSecrecyReport { sealed, relayed, field, open_found, sealed_found, archive } =
            &self.hidden;
        [
            DemoClaim {
                claim: "A message that is acknowledged is kept.",
                measured: format!(
                    "{} messages acknowledged, 1 kill -9, {:.0} ms without a node: {} lost.",
                    count(self.acknowledged),
                    self.down.as_secs_f64() * 1e3,
                    self.lost()
                ),
            },
            DemoClaim {
                claim: "The hub cannot read what members seal.",
                measured: format!(
                    "{} messages sealed, stored, read and opened, {:.0} us each. A word that was \
                     sealed stands in {sealed_found} of the node's files, one that was published \
                     in the open in {open_found}.",
                    count(sealed.messages),
                    sealed.us_per_message
                ),
            },
            DemoClaim {
                claim: "A relay carries what members seal, and holds no key.",
                measured: format!(
                    "{} messages sealed, relayed and opened, {:.0} us each. A word that was sealed \
                     in each of them stands in {} of the frames that left the relay, and in {} of \
                     the messages that came out of them.",
                    count(relayed.messages),
                    relayed.us_per_message,
                    relayed.found,
                    count(relayed.open_found)
                ),
            },
            DemoClaim {
                claim: "Field to cloud: what a member writes far from the hub is read elsewhere, \
                        over machines that find their ways.",
                measured: format!(
                    "{} documents over a relay and a gateway without their keys: the first after \
                     {:.1} s, in which they found each other and the gateway waited for earlier \
                     ones, the others in {:.2} s more, {} lost. Their word stands in {} files of \
                     relay and gateway.",
                    field.documents,
                    field.ways.as_secs_f64(),
                    field.rest.as_secs_f64(),
                    field.lost,
                    field.found
                ),
            },
            DemoClaim {
                claim: "The vault gives back what it took, and its store cannot read it.",
                measured: format!(
                    "{} of {} files came back as they were, in {:.1} s. The word that was \
                     published in the open stands in {} of its objects.",
                    archive.proven, archive.files, archive.seconds, archive.found
                ),
            },
        ]
    }
}
