//! The sums over a whole capture.

use std::collections::BTreeMap;

use sealane::Value;

use super::account::{InspectAccount, InspectedKind};
use super::keys::FrameOpening;
use super::walk::count;

/// Counts by outcome and reason.
#[derive(Debug, Default)]
pub(super) struct InspectTally {
    frames: u64,
    fragments: u64,
    batches: u64,
    explained: u64,
    partial: u64,
    opened: u64,
    no_keys: u64,
    /// By code, with its name.
    refused: BTreeMap<&'static str, (&'static str, u64)>,
    skipped: BTreeMap<&'static str, u64>,
    incomplete: Vec<String>,
    crowded_out: u64,
}

impl InspectTally {
    /// Counts an account, and gives its number among those of its sort.
    pub(super) fn add(&mut self, account: &InspectAccount) -> u64 {
        let number = match account.what {
            InspectedKind::Frame => &mut self.frames,
            InspectedKind::Fragment => &mut self.fragments,
            InspectedKind::Batch => &mut self.batches,
        };
        *number += 1;
        let number = *number;
        if let Some(refusal) = account.refused() {
            let row = (refusal.info.name, 0);
            self.refused.entry(refusal.info.code).or_insert(row).1 += 1;
        } else if account.what == InspectedKind::Frame {
            let is_partial = account.missing.is_some();
            *(if is_partial { &mut self.partial } else { &mut self.explained }) += 1;
        }
        match account.opening {
            Some(FrameOpening::Opened { .. }) => self.opened += 1,
            Some(FrameOpening::NoKeys) => self.no_keys += 1,
            Some(FrameOpening::Refused(_)) | None => {}
        }
        number
    }

    pub(super) fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    pub(super) fn lose(&mut self, incomplete: Vec<String>, crowded_out: u64) {
        (self.incomplete, self.crowded_out) = (incomplete, crowded_out);
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.values().map(|(_, number)| number).sum()
    }

    pub(super) fn seen(&self) -> u64 {
        self.frames + self.fragments + self.batches
    }

    /// The lines at the end.
    pub(super) fn lines(&self, has_keys: bool) -> Vec<String> {
        let of = |n: u64, one, many| count(usize::try_from(n).unwrap_or(usize::MAX), one, many);
        let refused = self.refused();
        let mut lines = vec![format!(
            "{}: {} explained, {} in part; {} refused",
            of(self.frames, "frame", "frames"),
            self.explained,
            self.partial,
            refused,
        )];
        for (code, (name, number)) in &self.refused {
            lines.push(format!("  {number:>6}  refused: {name} [{code}]"));
        }
        if has_keys {
            lines.push(format!("  {:>6}  opened", self.opened));
            lines.push(format!("  {:>6}  of groups without keys", self.no_keys));
        }
        for (number, one, many) in
            [(self.fragments, "fragment", "fragments"), (self.batches, "batch", "batches")]
        {
            if number > 0 {
                let word = if number == 1 { one } else { many };
                lines.push(format!("  {number:>6}  {word}"));
            }
        }
        for name in &self.incomplete {
            lines.push(format!("  {:>6}  parts are missing: {name}", 1));
        }
        if self.crowded_out > 0 {
            lines.push(format!("  {:>6}  incomplete, pushed out by newer ones", self.crowded_out));
        }
        for (reason, number) in &self.skipped {
            let word = if *number == 1 { "packet" } else { "packets" };
            lines.push(format!("  {number:>6}  {word} skipped: {reason}"));
        }
        lines
    }

    /// The line at the end, for programs.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value)> {
        let map = |counts: Vec<(&'static str, u64)>| {
            let counts = counts.into_iter();
            Value::Map(counts.map(|(name, n)| (name.to_owned(), n.into())).collect())
        };
        let refused = self.refused.iter().map(|(code, (_, number))| (*code, *number)).collect();
        let skipped = self.skipped.iter().map(|(reason, number)| (*reason, *number)).collect();
        vec![
            ("what", "summary".into()),
            ("frames", self.frames.into()),
            ("fragments", self.fragments.into()),
            ("batches", self.batches.into()),
            ("explained", self.explained.into()),
            ("partial", self.partial.into()),
            ("refused", map(refused)),
            ("opened", self.opened.into()),
            ("noKeys", self.no_keys.into()),
            ("incomplete", (self.incomplete.len() as u64 + self.crowded_out).into()),
            ("skipped", map(skipped)),
        ]
    }
}
