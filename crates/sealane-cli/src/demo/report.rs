use sealane::Value;

use super::show::DemoOutput;
use super::streams::DemoCodecRow;
use crate::terminal::table;
use crate::{CliFailure, Terminal};

/// The commands to type next.
const NEXT: &str = "
Try it yourself:
   sealane up                              # then open http://127.0.0.1:9087/
   sealane sub '**'                        # in another terminal: what comes
   sealane pub fleet/7/location '{\"lat\": 48.2}'";

/// The result of the demo, to which each part adds its figures and what they bear out.
#[derive(Default)]
pub(super) struct DemoReport {
    pub(super) rows: Vec<DemoCodecRow>,
    pub(super) figures: Vec<(&'static str, Value)>,
    pub(super) claims: Vec<DemoClaim>,
    /// Messages and files that did not come back as they were.
    pub(super) lost: u64,
    /// Places with a word that they should hide.
    pub(super) shown: u64,
    /// Whether a search found nothing where there is something: then it proves nothing.
    is_blind: bool,
}

/// A claim that a newcomer may doubt, and its measurement of this moment.
pub(super) struct DemoClaim {
    pub(super) claim: &'static str,
    pub(super) measured: String,
}

impl DemoReport {
    /// Adds a search: in how many places that should hide a word it stands, and in how many others.
    pub(super) fn searched(&mut self, hidden: u64, open: u64) {
        self.shown += hidden;
        self.is_blind |= open == 0;
    }

    /// Whether what was to be hidden was found, or a search proves nothing.
    pub(super) fn is_readable(&self) -> bool {
        self.shown > 0 || self.is_blind
    }

    pub(super) fn show(&self, terminal: &mut Terminal) -> Result<(), CliFailure> {
        if terminal.json() {
            self.rows.iter().try_for_each(|row| terminal.record(row.fields()))?;
            let lost = ("lost", self.lost.into());
            return terminal.record(self.figures.iter().cloned().chain([lost]).collect());
        }
        let rows: Vec<_> = self.rows.iter().map(DemoCodecRow::cells).collect();
        let mut show = DemoOutput::new(terminal);
        show.tell(&format!("\n{}", table(&DemoCodecRow::HEAD, &rows).trim_end()))?;
        show.claims(&self.claims)?;
        show.tell(NEXT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_finds_nothing_anywhere_proves_nothing() {
        for (hidden, open, is_readable) in [(0, 3, false), (1, 3, true), (0, 0, true)] {
            let mut report = DemoReport::default();
            report.searched(0, 1);
            report.searched(hidden, open);
            assert_eq!(report.is_readable(), is_readable, "{hidden} {open}");
        }
    }
}
