//! Blocks of code and lines to be typed, as they stand in a page.

/// Before a block whose lines no test types: the reason follows, then `-->`.
const NOT_RUN: &str = "<!-- not run: ";

/// A block of code, and the language that the page says it is in.
pub(super) struct Block<'a> {
    pub(super) language: &'a str,
    pub(super) text: String,
    /// Why no test types its lines.
    pub(super) not_run: Option<&'a str>,
}

impl Block<'_> {
    /// The name of the file that the block shows, which stands in its first line: `# NAME.toml`.
    pub(super) fn file(&self) -> Option<&str> {
        let name = self.text.lines().next()?.strip_prefix("# ")?;
        (self.language == "toml" && name.ends_with(".toml")).then_some(name)
    }
}

/// A line to be typed, and the person at the keyboard, where the page has a prompt like `alice$ `.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) who: String,
    pub(super) typed: String,
    /// Whether the reader sends it to the background.
    pub(super) goes_on: bool,
}

pub(super) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            let text = inside.map(|line| format!("{line}\n")).collect();
            let not_run = before.strip_prefix(NOT_RUN).and_then(|rest| rest.strip_suffix(" -->"));
            blocks.push(Block { language, text, not_run });
        }
        before = line;
    }
    blocks
}

/// The lines of a block of shell. A backslash at the end joins two, as in a shell.
pub(super) fn lines(block: &str) -> Vec<Line> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let line = |line: &str| {
        let (who, typed) = match line.split_once("$ ") {
            Some((who, typed)) if who.bytes().all(|b| b.is_ascii_lowercase()) => (who, typed),
            _ => ("reader", line),
        };
        let typed = typed.split(" #").next().unwrap_or_default().trim();
        let in_background = typed.strip_suffix('&').map(str::trim);
        let (who, typed) = (who.to_owned(), in_background.unwrap_or(typed).to_owned());
        Line { who, typed, goes_on: in_background.is_some() }
    };
    lines.map(line).collect()
}

#[test]
fn lines_are_read_as_a_shell_reads_them() {
    let page = "a\n```sh\nalice$ one 'x y'   # first\ntwo & # goes on\nthree \\\n  -d a$ b\n\
                ```\n```js\n1\n```\n";
    let found = blocks(page);
    assert_eq!(found.len(), 2);
    assert_eq!((found[1].language, found[1].text.as_str()), ("js", "1\n"));
    let line = |who: &str, typed: &str, goes_on| Line {
        who: who.to_owned(),
        typed: typed.to_owned(),
        goes_on,
    };
    let all = [
        line("alice", "one 'x y'", false),
        line("reader", "two", true),
        line("reader", "three    -d a$ b", false),
    ];
    assert_eq!(lines(&found[0].text), all);
}

#[test]
fn blocks_say_why_they_are_not_run_and_which_file_they_show() {
    let page = "<!-- not run: root -->\n```sh\na\n```\n\n```toml\n# a.toml\nb = 1\n```\n\
                ```sh\n# b.toml\n```\n";
    let found = blocks(page);
    assert_eq!(
        found.iter().map(|block| block.not_run).collect::<Vec<_>>(),
        [Some("root"), None, None]
    );
    let files: Vec<_> = found.iter().map(Block::file).collect();
    assert_eq!(files, [None, Some("a.toml"), None]);
}
