use std::borrow::Cow;
use std::fmt;
use std::io::{BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;

use crate::BenchFailure;

/// The version of the schema of every JSON line.
const SCHEMA: u64 = 1;

/// Where figures go: to standard output, as lines for people or as JSON for programs.
pub(crate) struct BenchOutput {
    out: BufWriter<Stdout>,
    json: bool,
    /// Whether a terminal shows what is written, and does what control characters tell it.
    is_screen: bool,
}

impl BenchOutput {
    pub(crate) fn new(json: bool) -> Self {
        let out = std::io::stdout();
        let is_screen = out.is_terminal();
        Self { out: BufWriter::new(out), json, is_screen }
    }

    /// Whether figures are to be JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// A line for people. On a terminal, control characters are shown and not obeyed: names of
    /// files, and what is wrong with their lines, are others' words.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Result<(), BenchFailure> {
        let line = format!("{line}\n");
        let shown = if self.is_screen { harmless(&line) } else { Cow::Borrowed(&*line) };
        self.out.write_all(shown.as_bytes()).map_err(BenchFailure::Output)
    }

    /// The same, at once: a measurement of minutes shows each row as it comes.
    pub(crate) fn line_now(&mut self, line: impl fmt::Display) -> Result<(), BenchFailure> {
        self.line(line)?;
        self.flush()
    }

    /// Takes rows of a measurement.
    pub(crate) fn rows(&mut self) -> RowPrinter<'_> {
        RowPrinter { output: self, shown: Ok(()) }
    }

    /// A line for programs: a map that begins with the schema's version.
    pub(crate) fn record(&mut self, fields: &impl Serialize) -> Result<(), BenchFailure> {
        self.out.write_all(record(fields).as_bytes()).map_err(BenchFailure::Output)
    }

    pub(crate) fn flush(&mut self) -> Result<(), BenchFailure> {
        self.out.flush().map_err(BenchFailure::Output)
    }
}

/// Rows for people, shown as they come. Whoever measures goes on if one cannot be written, and is
/// told so in the end.
pub(crate) struct RowPrinter<'a> {
    output: &'a mut BenchOutput,
    shown: Result<(), BenchFailure>,
}

impl RowPrinter<'_> {
    /// Shows a row, unless figures are to be JSON.
    pub(crate) fn show(&mut self, row: impl fmt::Display) {
        if !self.output.json && self.shown.is_ok() {
            self.shown = self.output.line_now(row);
        }
    }

    /// Whether all could be written.
    pub(crate) fn done(self) -> Result<(), BenchFailure> {
        self.shown
    }
}

/// A map with the schema's version in front.
#[derive(Serialize)]
struct VersionedRecord<'a, T> {
    v: u64,
    #[serde(flatten)]
    fields: &'a T,
}

/// A line of JSON with the schema's version.
pub(crate) fn record(fields: &impl Serialize) -> String {
    // A record is a map with names of text: there is nothing that JSON cannot carry.
    let line = serde_json::to_string(&VersionedRecord { v: SCHEMA, fields });
    line.unwrap_or_default() + "\n"
}

/// The same text with control characters, but for the ends of lines, shown as `\u001b`.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match is_hidden(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_a_version_and_a_terminal_is_told_nothing() {
        assert_eq!(record(&serde_json::json!({"a": null})), "{\"v\":1,\"a\":null}\n");
        assert_eq!(harmless("a\x1b[2J\u{9b}\nü"), "a\\u001b[2J\\u009b\nü");
        assert!(matches!(harmless("plain\n"), Cow::Borrowed(_)));
    }
}
