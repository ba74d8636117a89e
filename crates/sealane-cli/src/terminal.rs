use std::borrow::Cow;
use std::fmt;
use std::io::{BufWriter, IsTerminal, Write};

use sealane::{Codec, Value};

use crate::CliFailure;
use crate::colour::{ColourTone, OutputColours};

/// The version of the schema of every JSON line.
const SCHEMA: u64 = 1;

/// Where a verb writes: data to standard output, messages to standard error.
pub struct Terminal {
    out: BufWriter<Box<dyn Write + Send>>,
    json: bool,
    interactive: bool,
    /// Whether only data and faults are written.
    quiet: bool,
    /// Whether a terminal shows what is written, and does what control characters tell it.
    screen: bool,
    colours: OutputColours,
}

/// How much a terminal shows at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Terminal {
    /// The terminal of this process.
    pub fn standard(json: bool) -> Self {
        let interactive = std::io::stderr().is_terminal();
        let screen = std::io::stdout().is_terminal();
        let colours = OutputColours::of(&std::io::stdout());
        Self {
            out: BufWriter::new(Box::new(std::io::stdout())),
            json,
            interactive,
            quiet: false,
            screen,
            colours,
        }
    }

    /// One that writes data elsewhere and shows no progress.
    pub fn to(out: impl Write + Send + 'static, json: bool) -> Self {
        let (out, colours) = (BufWriter::new(Box::new(out) as Box<_>), OutputColours::none());
        Self { out, json, interactive: false, quiet: false, screen: false, colours }
    }

    /// Whether data is to be JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// From now on only data and faults are written.
    pub(crate) fn silence(&mut self) {
        self.quiet = true;
    }

    /// Whether only data and faults are written.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a terminal shows the data that is written.
    pub fn screen(&self) -> bool {
        self.screen
    }

    /// The size of the terminal that shows the data, if one does and tells it.
    pub(crate) fn size(&self) -> Option<TerminalSize> {
        let told = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let size = told.filter(|told| self.screen && told.ws_col > 0 && told.ws_row > 0)?;
        Some(TerminalSize { columns: usize::from(size.ws_col), rows: usize::from(size.ws_row) })
    }

    /// The text as it is shown to people: in the colour of its tone where there are colours, and
    /// with nothing in it that a terminal obeys.
    pub(crate) fn painted(&self, tone: ColourTone, text: &str) -> String {
        if self.screen { self.colours.paint(tone, harmless(text)) } else { text.to_owned() }
    }

    /// Whether somebody can be asked before something is removed.
    pub fn asks(&self) -> bool {
        self.interactive && std::io::stdin().is_terminal()
    }

    /// Whether somebody watches standard error.
    pub fn interactive(&self) -> bool {
        self.interactive
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CliFailure> {
        self.out.write_all(bytes).map_err(CliFailure::Output)
    }

    /// Writes a line for people.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub fn line(&mut self, line: impl fmt::Display) -> Result<(), CliFailure> {
        self.text(&format!("{line}\n"))
    }

    /// Writes a line for people that says what was done, unless they want none.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub(crate) fn outcome(&mut self, line: impl fmt::Display) -> Result<(), CliFailure> {
        if self.quiet { Ok(()) } else { self.line(line) }
    }

    /// Writes lines for people. Names, ids and bodies come from others, who may have put there
    /// what a terminal obeys: on a terminal it is shown instead.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub fn text(&mut self, text: &str) -> Result<(), CliFailure> {
        if self.screen {
            self.write(harmless(text).as_bytes())
        } else {
            self.write(text.as_bytes())
        }
    }

    /// Writes a message's body, which is JSON in one line.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub(crate) fn body(&mut self, json: &[u8]) -> Result<(), CliFailure> {
        if self.screen {
            let text = String::from_utf8_lossy(json);
            // Between two values a line's end is a blank, and a text has none but as an escape.
            let line = text.replace(|c: char| c < ' ', " ");
            self.write(harmless(&line).as_bytes())?;
        } else {
            self.write(json)?;
        }
        self.write(b"\n")
    }

    /// Writes a line for programs: a map that begins with the schema's version.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub fn record(&mut self, fields: Vec<(&str, Value)>) -> Result<(), CliFailure> {
        self.text(&record(fields))
    }

    /// Writes a value for programs that names the schema's version itself.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub fn datum(&mut self, value: &Value) -> Result<(), CliFailure> {
        let mut line = Vec::new();
        sealane_codec::encode(Codec::Json, value, &mut line);
        line.push(b'\n');
        self.text(&String::from_utf8_lossy(&line))
    }

    /// Hands on what was written.
    ///
    /// # Errors
    /// [`CliFailure::Output`].
    pub fn flush(&mut self) -> Result<(), CliFailure> {
        self.out.flush().map_err(CliFailure::Output)
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("json", &self.json).finish_non_exhaustive()
    }
}

/// Asks on the terminal, and fails unless the answer is yes.
///
/// # Errors
/// [`CliFailure::Declined`] for any other answer, [`CliFailure::Input`],
/// [`CliFailure::Output`].
pub(crate) fn confirm(question: &str) -> Result<(), CliFailure> {
    eprint!("{} [y/N] ", harmless(question));
    std::io::stderr().flush().map_err(CliFailure::Output)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(CliFailure::Input)?;
    if !answer.trim().eq_ignore_ascii_case("y") {
        return Err(CliFailure::Declined("nothing was removed"));
    }
    Ok(())
}

/// A map of these fields.
pub(crate) fn map(fields: Vec<(&str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
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

/// The same text without what a terminal obeys but for the ends of lines: all else is shown as
/// `\u001b`, which within JSON stands for the character.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    shown(text, |c| is_obeyed(c) && c != '\n')
}

/// The same for text that is a part of one line: an end of a line is shown, too.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    shown(text, is_obeyed)
}

/// Whether a terminal does something else with a character than to show it: controls, ends of lines
/// and paragraphs, and what turns the direction of the text around it.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The same text with the characters that are hidden escaped.
fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The line, or as much of it as fits into so many columns.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    line.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// Columns, each as wide as its widest cell; numbers to the right.
/// A name that others gave to something stands in one cell, whatever characters it has.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| -> Vec<String> {
        row.iter().map(|cell| one_line(cell).into_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(&rows) {
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

/// How a table becomes narrow.
pub(crate) struct NarrowTable<'a> {
    /// The greatest width, in columns.
    pub(crate) columns: usize,
    /// The heads of what it goes without first, as many as it takes.
    pub(crate) spared: &'a [&'a str],
    /// If that does not do, the cells of its first column are cut, but none below this.
    pub(crate) least: usize,
}

/// The table as narrow as it has to be.
pub(crate) fn narrowed(
    head: &[&str],
    mut rows: Vec<Vec<String>>,
    narrow: &NarrowTable<'_>,
) -> String {
    let NarrowTable { columns, spared, least } = *narrow;
    let mut head = head.to_vec();
    let width = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut text = table(&head, &rows);
    for name in spared {
        let Some(at) = head.iter().position(|column| column == name) else { continue };
        if width(&text) <= columns {
            return text;
        }
        head.remove(at);
        rows.iter_mut().for_each(|row| drop(row.remove(at)));
        text = table(&head, &rows);
    }
    let over = width(&text).saturating_sub(columns);
    let first = rows.iter().filter_map(|row| row.first());
    let widest = first.map(|cell| cell.chars().count()).max().unwrap_or(0);
    let most = widest.saturating_sub(over).max(least);
    for cell in rows.iter_mut().filter_map(|row| row.first_mut()) {
        *cell = cut(cell, most);
    }
    table(&head, &rows)
}

/// The text in lines of at most so many columns, parted between words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = |line: &String| line.chars().count() + 1 + word.chars().count() <= columns;
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if fits(line) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_the_direction_of_a_text_is_shown() {
        let turned = "fine \u{202e}!pleh\u{2066} \u{9b}2J\u{2028}";
        let shown = "fine \\u202e!pleh\\u2066 \\u009b2J\\u2028";
        assert_eq!((harmless(turned), one_line(turned)), (shown.into(), shown.into()));
        let written = "\u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629}\u{200f}";
        assert_eq!(harmless(written), written, "what is written from the right is no harm");
    }

    #[test]
    fn a_narrow_terminal_breaks_no_line_of_a_table() {
        const LEAST: usize = 12;
        let head = ["STREAM", "MSG/S", "COUNT", "SIZE", "READERS", "LAG"];
        let row = |topic: &str| {
            let cells = [topic, "12", "345678", "12.3 MiB", "4", "5"];
            cells.map(str::to_owned).to_vec()
        };
        let shown = |rows: &[Vec<String>], columns| {
            let spared = &["SIZE", "COUNT", "READERS"];
            narrowed(&head, rows.to_vec(), &NarrowTable { columns, spared, least: LEAST })
        };
        let short = shown(&[row("fleet/7")], 40);
        assert!(short.starts_with("STREAM   MSG/S   COUNT  READERS  LAG\n"), "{short}");
        let rows = [row("fleet/7/location"), row(&"x".repeat(200))];
        for (columns, columns_left) in [(300, 6), (60, 3), (20, 3)] {
            let text = shown(&rows, columns);
            let names = text.lines().next().unwrap().split_whitespace().count();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns.max(LEAST + 14), "{columns}: {text}");
            assert_eq!(names, columns_left, "{columns}: {text}");
        }
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("immeasurable a", 5), ["immeasurable", "a"]);
    }

    #[test]
    fn tables_align_and_records_have_a_version() {
        let rows = [vec!["a".to_owned(), "10".to_owned()], vec!["bcd".to_owned(), "7".to_owned()]];
        assert_eq!(table(&["x", "n"], &rows), "x     n\na    10\nbcd   7\n");
        assert_eq!(record(vec![("a", Value::Null)]), "{\"v\":1,\"a\":null}\n");
    }

    #[test]
    fn lines_are_cut_to_their_columns() {
        assert_eq!((cut("short", 5), cut("", 0)), ("short".to_owned(), String::new()));
        assert_eq!(cut(&"ü".repeat(9), 4), "üüü…");
    }

    #[test]
    fn a_cell_does_nothing_to_a_terminal() {
        let rows = [vec!["a\x1b[2J\n\u{9b}ü".to_owned(), "7".to_owned()]];
        let text = table(&["x", "n"], &rows);
        assert_eq!(text.lines().nth(1), Some("a\\u001b[2J\\u000a\\u009bü  7"));
    }

    /// The text that a terminal or a file receives.
    fn written(screen: bool, write: impl FnOnce(&mut Terminal)) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut terminal = Terminal::to(file.reopen().unwrap(), false);
        terminal.screen = screen;
        write(&mut terminal);
        terminal.flush().unwrap();
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn what_others_wrote_is_shown_on_a_terminal_and_untouched_elsewhere() {
        let line = "id \x07\x1b]0;x\u{9c}\u{7f}";
        assert_eq!(written(false, |t| t.line(line).unwrap()), format!("{line}\n"));
        let shown = "id \\u0007\\u001b]0;x\\u009c\\u007f\n";
        assert_eq!(written(true, |t| t.line(line).unwrap()), shown);
        let body = "{\"a\":\r\n\"\u{9b}2J\"}";
        assert_eq!(written(false, |t| t.body(body.as_bytes()).unwrap()), format!("{body}\n"));
        let shown = written(true, |t| t.body(body.as_bytes()).unwrap());
        assert_eq!(shown, "{\"a\":  \"\\u009b2J\"}\n");
        let read = |text: &str| sealane_codec::decode(Codec::Json, text.as_bytes()).unwrap();
        assert_eq!(read(&shown), read(body));
    }
}
