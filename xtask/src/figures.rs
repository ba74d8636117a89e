//! Figures in pages for readers, taken from the records in `results/`.
//!
//! A page says which lines of which record it shows, and `cargo xtask docs` writes them below:
//!
//! ```text
//! <!-- figures load 90
//! append single disk
//! replay from disk
//! -->
//! <!-- end of figures -->
//! ```
//!
//! shows those lines of the newest `results/prove-load-DATE.txt` that begin with one of these, cut
//! after 90 columns, with the record's machine and commit. Runs of blanks count as one.

use crate::process::Outcome;
use crate::tree::Tree;

const BEGIN: &str = "<!-- figures ";
const ASKED: &str = "\n-->\n";
const END: &str = "<!-- end of figures -->";

/// Each page with figures, and what it should say.
pub(crate) fn pages(tree: &Tree) -> Vec<(String, Outcome<String>)> {
    let shows = |(path, text): &(&str, &str)| path.ends_with(".md") && text.contains(BEGIN);
    let page = |(path, text): (&str, &str)| (path.to_owned(), filled(tree, path, text));
    tree.files().filter(shows).map(page).collect()
}

fn filled(tree: &Tree, place: &str, page: &str) -> Outcome<String> {
    let up = "../".repeat(place.matches('/').count());
    let mut parts = page.split(BEGIN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let unclosed = || format!("`{BEGIN}{}` has no end", part.lines().next().unwrap_or(""));
        let (asked, rest) = part.split_once(ASKED).ok_or_else(unclosed)?;
        let (_, rest) = rest.split_once(END).ok_or_else(unclosed)?;
        text += &format!("{BEGIN}{asked}{ASKED}{}{END}{rest}", shown(tree, asked, &up)?);
    }
    Ok(text)
}

/// The lines that are asked for, with where they come from, `up` being the way to the root.
fn shown(tree: &Tree, asked: &str, up: &str) -> Outcome<String> {
    let (head, begins) = asked.split_once('\n').unwrap_or((asked, ""));
    let (name, width) = head.split_once(' ').unwrap_or((head, ""));
    let width =
        width.trim().parse().map_err(|_| format!("figures {head}: no number of columns"))?;
    let prefix = format!("results/prove-{name}-");
    let records = tree.files().filter(|(path, _)| path.starts_with(&prefix));
    // Dates sort as texts do.
    let (path, record) = records.max().ok_or_else(|| format!("there is no {prefix}DATE.txt"))?;
    let mut lines = String::new();
    for begin in begins.lines().map(single_spaced) {
        let wanted = |line: &&str| single_spaced(line).starts_with(&begin);
        let mut found = record.lines().filter(wanted).peekable();
        if found.peek().is_none() {
            return Err(format!("no line of {path} begins with `{begin}`"));
        }
        for line in found {
            let cut: String = line.chars().take(width).collect();
            lines += &format!("{}\n", cut.trim_end());
        }
    }
    let field = |name: &str| {
        let value = record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.ok_or_else(|| format!("{path} names no {name}"))
    };
    let commit: String = field("commit")?.chars().take(7).collect();
    let processor = field("processor")?;
    Ok(format!("```text\n{lines}```\n\n[{path}]({up}{path}): {processor}, commit {commit}.\n"))
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "load: x\ncommit: 0123456789\nprocessor: A, 2 cores\n\n\
                          append  one     12\nappend  two    345  note\nreplay 7\n";

    fn page(asked: &str) -> Outcome<String> {
        let text = format!("# A\n\n<!-- figures {asked}\n-->\nold\n<!-- end of figures -->\nend\n");
        let tree = Tree::sample(&[
            ("results/prove-load-2026-01-02.txt", RECORD),
            ("results/prove-load-2025-12-31.txt", "load: older\n"),
            ("README.md", &text),
            ("docs/B.md", "none\n"),
        ]);
        let mut pages = pages(&tree);
        assert_eq!(pages.len(), 1);
        pages.pop().unwrap().1
    }

    #[test]
    fn a_page_shows_lines_of_the_newest_record() {
        let shown = page("load 18\nreplay\nappend one\nappend two").unwrap();
        let lines = "-->\n```text\nreplay 7\nappend  one     12\nappend  two    345\n```\n\n\
                     [results/prove-load-2026-01-02.txt](results/prove-load-2026-01-02.txt): \
                     A, 2 cores, commit 0123456.\n<!-- end of figures -->\nend\n";
        assert!(shown.ends_with(lines), "{shown}");
    }

    #[test]
    fn what_no_record_has_is_an_error() {
        assert!(page("load 18\nnothing").unwrap_err().contains("begins with `nothing`"));
        assert!(page("vault 18\nappend").unwrap_err().contains("no results/prove-vault-DATE"));
        assert!(page("load\nappend").unwrap_err().contains("no number of columns"));
    }
}
