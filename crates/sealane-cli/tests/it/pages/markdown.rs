//! Blocks of code and lines to be typed, as they stand in a page.

/// A block of code, and the language that the page says it is in.
pub(super) struct Block<'a> {
    pub(super) language: &'a str,
    pub(super) text: String,
}

/// A line to be typed, and who types it, where the page has a prompt like `alice$ `.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) who: String,
    pub(super) typed: String,
}

pub(super) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            let text = inside.map(|line| format!("{line}\n")).collect();
            blocks.push(Block { language, text });
        }
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
        // Sent to the background by its reader, it is a line that goes on.
        let typed = typed.split(" #").next().unwrap_or_default().trim();
        let typed = typed.strip_suffix('&').unwrap_or(typed).trim();
        Line { who: who.to_owned(), typed: typed.to_owned() }
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
    let line = |who: &str, typed: &str| Line { who: who.to_owned(), typed: typed.to_owned() };
    let all =
        [line("alice", "one 'x y'"), line("reader", "two"), line("reader", "three    -d a$ b")];
    assert_eq!(lines(&found[0].text), all);
}
