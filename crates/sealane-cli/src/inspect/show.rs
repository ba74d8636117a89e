//! An account for people: tables within 100 columns.

use std::io::IsTerminal;

use super::account::{
    CaptureSource, InspectAccount, InspectOrigin, InspectRefusal, InspectRow, InspectedKind,
    SealCoverage,
};
use super::body::{InspectBody, printable};
use super::hex;
use super::keys::FrameOpening;
use super::words;
use crate::config;
use crate::limits::{MAX_INSPECT_BODY_LINES, MAX_INSPECT_HEX_LINES};

/// Columns that are filled at most.
const COLUMNS: usize = 100;
/// The columns before the meaning.
const BEFORE_MEANING: usize = 61;
/// Bytes in one line of a table.
const ROW_BYTES: usize = 8;

/// How text is set off.
#[derive(Debug, Clone, Copy)]
enum InspectStyle {
    Heading,
    Good,
    Changeable,
    Bad,
    Faint,
}

/// Writes accounts as text.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccountPrinter {
    colour: bool,
}

impl AccountPrinter {
    /// In colour if somebody watches standard output and has not asked for none.
    pub(super) fn standard() -> Self {
        let asks_for_none = config::environment("NO_COLOR").is_some()
            || config::environment("TERM").is_some_and(|terminal| terminal == "dumb");
        Self { colour: std::io::stdout().is_terminal() && !asks_for_none }
    }

    pub(super) fn account(self, account: &InspectAccount, number: u64) -> String {
        let mut lines = vec![self.headline(account, number), self.origin(&account.origin)];
        lines.retain(|line| !line.is_empty());
        self.table(&account.rows, &mut lines);
        if let Some(body) = &account.body {
            let title = "the body in clear; not to be trusted before the frame is opened";
            self.body(title, body, &mut lines);
        }
        self.opening(account, &mut lines);
        if let Some(refusal) = &account.refusal {
            self.refusal("refused", refusal, &mut lines);
        }
        if let Some(missing) = &account.missing {
            for line in wrap(&format!("missing: {missing}"), COLUMNS - 2) {
                lines.push(format!("  {}", self.paint(InspectStyle::Changeable, &line)));
            }
        }
        lines.push(String::new());
        lines.join("\n") + "\n"
    }

    /// The lines at the end.
    pub(super) fn end(self, lines: &[String]) -> String {
        let Some((first, rest)) = lines.split_first() else { return String::new() };
        let rest = rest.iter().flat_map(|line| wrap_at(line, COLUMNS, "          "));
        let first = self.paint(InspectStyle::Heading, first);
        std::iter::once(first).chain(rest).map(|line| line + "\n").collect()
    }

    fn headline(self, account: &InspectAccount, number: u64) -> String {
        let name = match account.what {
            InspectedKind::Frame => "frame",
            InspectedKind::Fragment => "fragment",
            InspectedKind::Batch => "batch",
        };
        let bytes = super::walk::count(account.bytes, "byte", "bytes");
        let title = format!("{name} {number}: {bytes}: {}", account.summary);
        let status = match account.refused() {
            Some(refusal) => {
                self.paint(InspectStyle::Bad, &format!("refused [{}]", refusal.info.code))
            }
            None if account.missing.is_some() => {
                self.paint(InspectStyle::Changeable, "explained in part")
            }
            None if matches!(account.opening, Some(FrameOpening::Opened { .. })) => {
                self.paint(InspectStyle::Good, "opened")
            }
            None => self.paint(InspectStyle::Good, "well-formed"),
        };
        let lines = wrap_at(&title, COLUMNS - 24, "  ");
        let lines: Vec<_> =
            lines.iter().map(|line| self.paint(InspectStyle::Heading, line)).collect();
        format!("{}: {status}", lines.join("\n"))
    }

    fn origin(self, origin: &InspectOrigin) -> String {
        let mut parts = Vec::new();
        match &origin.captured {
            CaptureSource::Whole => {}
            CaptureSource::Line(line) => parts.push(format!("line {line}")),
            CaptureSource::Packet(packet) => {
                parts.push(format!("packet {} at byte {}", packet.number, packet.offset));
                parts.extend(packet.time_ms.filter(|ms| *ms > 0).map(words::moment));
                parts.push(format!("{} to {}", packet.source, packet.destination));
            }
        }
        parts.extend(origin.item.map(|item| format!("item {item} of its batch")));
        let put_together = |(id, parts)| format!("put together from {parts} fragments of id {id}");
        parts.extend(origin.parts.map(put_together));
        let cut = |whole| format!("cut by the capture: it had {whole} bytes");
        parts.extend(origin.whole_bytes.map(cut));
        let lines = wrap_at(&parts.join(", "), COLUMNS - 2, "  ");
        let lines = lines.iter().filter(|line| !line.is_empty());
        let lines: Vec<_> =
            lines.map(|line| self.paint(InspectStyle::Faint, &format!("  {line}"))).collect();
        lines.join("\n")
    }

    fn table(self, rows: &[InspectRow], lines: &mut Vec<String>) {
        if rows.is_empty() {
            return;
        }
        let head =
            format!("  {:>7} {:>7}  {:<23}  {:<15}  meaning", "offset", "length", "hex", "field");
        lines.push(self.paint(InspectStyle::Faint, &head));
        // Each part once, in the order in which it begins.
        let mut parts: Vec<SealCoverage> = Vec::new();
        for row in rows {
            if !parts.contains(&row.part) {
                parts.push(row.part);
            }
        }
        for part in parts {
            let style = match part {
                SealCoverage::Relay | SealCoverage::Unit => InspectStyle::Changeable,
                SealCoverage::Unknown => InspectStyle::Bad,
                _ => InspectStyle::Good,
            };
            lines.push(format!("  {}", self.paint(style, part.heading())));
            rows.iter().filter(|row| row.part == part).for_each(|row| self.row(row, lines));
        }
    }

    fn row(self, row: &InspectRow, lines: &mut Vec<String>) {
        let mut bytes: Vec<String> = row.bytes.chunks(ROW_BYTES).map(hex::spaced).collect();
        if bytes.len() > MAX_INSPECT_HEX_LINES {
            bytes.truncate(MAX_INSPECT_HEX_LINES);
            let last = bytes.last_mut().into_iter();
            last.for_each(|line| line.replace_range(line.len() - 2.., "…"));
        }
        let meaning = wrap(&printable(&row.meaning), COLUMNS - BEFORE_MEANING);
        let text = |list: &[String], at: usize| list.get(at).cloned().unwrap_or_default();
        for at in 0..bytes.len().max(meaning.len()).max(1) {
            let (offset, length, field) = match (at, row.at) {
                (0, Some(offset)) => (offset.to_string(), row.bytes.len().to_string(), row.field),
                (0, None) => ("-".to_owned(), "-".to_owned(), row.field),
                _ => (String::new(), String::new(), ""),
            };
            let (hex, meaning) = (text(&bytes, at), text(&meaning, at));
            let line = format!("  {offset:>7} {length:>7}  {hex:<23}  {field:<15}  {meaning}");
            lines.push(line.trim_end().to_owned());
        }
    }

    fn body(self, title: &str, body: &InspectBody, lines: &mut Vec<String>) {
        lines.push(format!("  {}", self.paint(InspectStyle::Heading, title)));
        if let Some(time_ms) = body.time_ms {
            lines.push(format!("    made {} by its sender's clock", words::moment(time_ms)));
        }
        if let Some(note) = &body.note {
            let note = wrap(&printable(note), COLUMNS - 4);
            lines.extend(
                note.iter().map(|line| format!("    {}", self.paint(InspectStyle::Bad, line))),
            );
        }
        let shown = body.lines(COLUMNS - 4);
        lines.extend(shown.iter().take(MAX_INSPECT_BODY_LINES).map(|line| format!("    {line}")));
        if let Some(more) = shown.len().checked_sub(MAX_INSPECT_BODY_LINES + 1) {
            let more = format!("    … and {} lines; --json has all of it", more + 1);
            lines.push(self.paint(InspectStyle::Faint, &more));
        }
    }

    fn opening(self, account: &InspectAccount, lines: &mut Vec<String>) {
        match &account.opening {
            None => {}
            Some(FrameOpening::Opened { epoch, slot, counter, body }) => {
                let title =
                    format!("opened: authentic, epoch {epoch}, slot {slot}, counter {counter}");
                self.body(&title, body, lines);
            }
            Some(FrameOpening::NoKeys) => {
                let said = "not opened: the file of keys has none of this group tag";
                lines.push(format!("  {}", self.paint(InspectStyle::Changeable, said)));
            }
            Some(FrameOpening::Refused(refusal)) => self.refusal("did not open", refusal, lines),
        }
    }

    fn refusal(self, title: &str, refusal: &InspectRefusal, lines: &mut Vec<String>) {
        let said = format!("{title}: {} [{}]", refusal.message, refusal.info.code);
        let said = wrap(&said, COLUMNS - 2);
        lines.extend(said.iter().map(|line| format!("  {}", self.paint(InspectStyle::Bad, line))));
        let hint = wrap(&format!("hint: {}", refusal.info.hint), COLUMNS - 4);
        lines.extend(hint.iter().map(|line| format!("    {line}")));
    }

    fn paint(self, style: InspectStyle, text: &str) -> String {
        let code = match style {
            InspectStyle::Heading => "1",
            InspectStyle::Good => "32",
            InspectStyle::Changeable => "33",
            InspectStyle::Bad => "31",
            InspectStyle::Faint => "2",
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Lines of at most so many columns, broken at blanks where there are any.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_at(text, columns, "")
}

/// The same, with the lines behind the first moved in.
fn wrap_at(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > columns {
        let blank = rest.iter().take(columns + 1).rposition(|c| *c == ' ');
        let at = blank.filter(|at| *at > indent.len()).unwrap_or(columns);
        lines.push(rest.iter().take(at).collect::<String>().trim_end().to_owned());
        let behind = rest.iter().skip(at).skip_while(|c| **c == ' ');
        rest = indent.chars().chain(behind.copied()).collect();
    }
    lines.push(rest.into_iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::super::input::origin;
    use super::super::walk::FrameWalk;
    use super::*;

    fn account() -> InspectAccount {
        let mut account =
            InspectAccount::new(InspectedKind::Frame, &origin(CaptureSource::Whole), 40);
        let mut walk = FrameWalk::new(&[0xab; 40]);
        let long = "a meaning that is longer than its column and has to be broken into lines";
        walk.remainder(SealCoverage::Body, "body", long.into());
        account.rows = walk.rows;
        account.summary = "x".repeat(150);
        account
    }

    #[test]
    fn colour_is_there_or_not_at_all() {
        let plain = AccountPrinter { colour: false }.account(&account(), 1);
        assert!(!plain.contains('\u{1b}'));
        let painted = AccountPrinter { colour: true }.account(&account(), 1);
        assert!(painted.contains("\u{1b}[32m"), "{painted:?}");
        let mut stripped = painted;
        for code in ["1", "2", "31", "32", "33", "0"] {
            stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn lines_fit() {
        let shown = AccountPrinter { colour: false }.account(&account(), 1);
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(COLUMNS), "{shown}");
        assert!(shown.contains("ab …") && shown.contains("to be broken"), "{shown}");
        assert_eq!(wrap("aaa bb c", 6), ["aaa bb", "c"]);
        assert_eq!(wrap("aaaaaaa", 3), ["aaa", "aaa", "a"]);
        assert_eq!(wrap_at("aa bb cc dd", 5, "  "), ["aa bb", "  cc", "  dd"]);
    }
}
