use std::fmt;
use std::io::{BufWriter, IsTerminal, Write};

use sealane::{Codec, Value};

use crate::Failure;

/// The version of the schema of every JSON line.
const SCHEMA: u64 = 1;

/// Where a verb writes: data to standard output, messages to standard error.
pub struct Terminal {
    out: BufWriter<Box<dyn Write + Send>>,
    json: bool,
    interactive: bool,
}

impl Terminal {
    /// The terminal of this process.
    pub fn standard(json: bool) -> Self {
        let interactive = std::io::stderr().is_terminal();
        Self { out: BufWriter::new(Box::new(std::io::stdout())), json, interactive }
    }

    /// One that writes data elsewhere and shows no progress.
    pub fn to(out: impl Write + Send + 'static, json: bool) -> Self {
        Self { out: BufWriter::new(Box::new(out)), json, interactive: false }
    }

    /// Whether data is to be JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether somebody watches standard error.
    pub fn interactive(&self) -> bool {
        self.interactive
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::Output)
    }

    /// Writes a line for people.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn line(&mut self, line: impl fmt::Display) -> Result<(), Failure> {
        writeln!(self.out, "{line}").map_err(Failure::Output)
    }

    /// Writes a line for programs: a map that begins with the schema's version.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn record(&mut self, fields: Vec<(&str, Value)>) -> Result<(), Failure> {
        self.write(record(fields).as_bytes())
    }

    /// Writes a value for programs that names the schema's version itself.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn datum(&mut self, value: &Value) -> Result<(), Failure> {
        let mut line = Vec::new();
        sealane_codec::encode(Codec::Json, value, &mut line);
        line.push(b'\n');
        self.write(&line)
    }

    /// Hands on what was written.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::Output)
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("json", &self.json).finish_non_exhaustive()
    }
}

/// A line of JSON with the schema's version.
pub(crate) fn record(fields: Vec<(&str, Value)>) -> String {
    let version = ("v".to_owned(), Value::from(SCHEMA));
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut line = Vec::new();
    let map = Value::Map(std::iter::once(version).chain(fields).collect());
    sealane_codec::encode(Codec::Json, &map, &mut line);
    line.push(b'\n');
    String::from_utf8_lossy(&line).into_owned()
}

/// Columns, each as wide as its widest cell; numbers to the right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            if at == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("{gap}{cell:>width$}"));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align_and_records_have_a_version() {
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["bcd".to_owned(), "7".to_owned()]];
        assert_eq!(table(&["x", "n"], &rows), "x     n\na    10\nbcd   7\n");
        assert_eq!(record(vec![("a", Value::Null)]), "{\"v\":1,\"a\":null}\n");
    }
}
