//! Figures in pages for readers, taken from the records in `results/`.
//!
//! A page says which lines of which record it shows, and `cargo xtask docs` writes them below:
//!
//! ```text
//! <!-- figures load 1-50 77-120
//! append single disk
//! replay from disk
//! -->
//! <!-- end of figures -->
//! ```
//!
//! shows these columns of those lines of the newest `results/prove-load-DATE.txt` that begin with
//! one of these, with the record's machine, commit and profile. Runs of blanks count as one. A line
//! `under HEADING` shows that line of the record, and has those below it looked for up to the next
//! empty line only.

use std::ops::RangeInclusive;

use crate::process::XtaskResult;
use crate::tree::SourceTree;

const BEGIN: &str = "<!-- figures ";
const ASKED: &str = "\n-->\n";
const UNDER: &str = "under ";
const END: &str = "<!-- end of figures -->";

/// Each page with figures, and what it should say.
pub(crate) fn pages(tree: &SourceTree) -> Vec<(String, XtaskResult<String>)> {
    let shows = |(path, text): &(&str, &str)| path.ends_with(".md") && text.contains(BEGIN);
    let page = |(path, text): (&str, &str)| (path.to_owned(), filled(tree, path, text));
    tree.files().filter(shows).map(page).collect()
}

fn filled(tree: &SourceTree, path: &str, page: &str) -> XtaskResult<String> {
    let up = "../".repeat(path.matches('/').count());
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
fn shown(tree: &SourceTree, asked: &str, up: &str) -> XtaskResult<String> {
    let (head, begins) = asked.split_once('\n').unwrap_or((asked, ""));
    let (name, columns) = head.split_once(' ').unwrap_or((head, ""));
    let columns: Vec<_> = columns.split_whitespace().filter_map(range).collect();
    if columns.is_empty() {
        return Err(format!("figures {head}: no columns, as 1-80"));
    }
    let prefix = format!("results/prove-{name}-");
    let records = tree.files().filter(|(path, _)| path.starts_with(&prefix));
    // Dates sort as texts do.
    let (path, record) = records.max().ok_or_else(|| format!("there is no {prefix}DATE.txt"))?;
    let (mut lines, mut part) = (String::new(), record);
    for asked in begins.lines().map(single_spaced) {
        let (begin, is_heading) =
            asked.strip_prefix(UNDER).map_or((&*asked, false), |heading| (heading, true));
        if is_heading {
            part = section(record, begin);
        }
        let wanted = |line: &&str| single_spaced(line).starts_with(begin);
        let most = if is_heading { 1 } else { usize::MAX };
        let found: Vec<&str> = part.lines().filter(wanted).take(most).collect();
        if found.is_empty() {
            return Err(format!("no line of {path} begins with `{begin}`"));
        }
        for line in found {
            lines += &format!("{}\n", cut(line, &columns).trim_end());
        }
    }
    let field = |name: &str| {
        let value = record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.ok_or_else(|| format!("{path} names no {name}"))
    };
    let commit: String = field("commit")?.chars().take(7).collect();
    let processor = field("processor")?;
    // Earlier records have none.
    let profile = field("profile").map_or_else(|_| String::new(), |name| format!(", {name} build"));
    let source = format!("{processor}, commit {commit}{profile}:\n[{path}]({up}{path}).");
    Ok(format!("```text\n{lines}```\n\n{source}\n"))
}

/// `1-80`, counted from 1, both included.
fn range(text: &str) -> Option<RangeInclusive<usize>> {
    let (from, to) = text.split_once('-')?;
    Some(from.parse().ok()?..=to.parse().ok()?)
}

fn cut(line: &str, columns: &[RangeInclusive<usize>]) -> String {
    let of = |range: &RangeInclusive<usize>| {
        let kept = (1..).zip(line.chars()).filter(|(at, _)| range.contains(at));
        kept.map(|(_, char)| char).collect::<String>()
    };
    columns.iter().map(of).collect()
}

/// From the line that begins like this to the next empty one.
fn section<'r>(record: &'r str, heading: &str) -> &'r str {
    let mut at = 0;
    for line in record.split_inclusive('\n') {
        if single_spaced(line).starts_with(heading) {
            let rest = record.get(at..).unwrap_or_default();
            return rest.split_once("\n\n").map_or(rest, |(section, _)| section);
        }
        at += line.len();
    }
    ""
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "load: x\ncommit: 0123456789\nprocessor: A, 2 cores\n\n\
                          append  one     12\nappend  two    345  note\nreplay 7\n\n\
                          late heat\nappend  one  77\n";

    fn page(asked: &str) -> XtaskResult<String> {
        let text = format!("# A\n\n<!-- figures {asked}\n-->\nold\n<!-- end of figures -->\nend\n");
        let tree = SourceTree::sample(&[
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
        let shown = page("load 1-18\nreplay\nappend one 1\nappend two").unwrap();
        let lines = "-->\n```text\nreplay 7\nappend  one     12\nappend  two    345\n```\n\n\
                     A, 2 cores, commit 0123456:\n\
                     [results/prove-load-2026-01-02.txt](results/prove-load-2026-01-02.txt).\n\
                     <!-- end of figures -->\nend\n";
        assert!(shown.ends_with(lines), "{shown}");
    }

    #[test]
    fn a_record_that_names_its_profile_is_shown_with_it() {
        let page = "<!-- figures load 1-18\nreplay\n-->\n<!-- end of figures -->\n";
        let record = RECORD.replace("\nprocessor", "\nprofile: ship\nprocessor");
        let path = "results/prove-load-2026-01-02.txt";
        let tree = SourceTree::sample(&[(path, &record), ("README.md", page)]);
        let shown = pages(&tree).pop().unwrap().1.unwrap();
        assert!(shown.contains("A, 2 cores, commit 0123456, ship build:\n"), "{shown}");
    }

    #[test]
    fn columns_may_be_left_out() {
        let shown = page("load 1-6 12-18\nappend two").unwrap();
        assert!(shown.contains("\nappend    345\n"), "{shown}");
    }

    #[test]
    fn the_same_line_is_found_under_its_heading() {
        let shown = page("load 1-18\nunder late heat\nappend one").unwrap();
        assert!(shown.contains("```text\nlate heat\nappend  one  77\n```"), "{shown}");
        assert!(page("load 1-18\nunder late heat\nreplay").is_err());
    }

    #[test]
    fn what_no_record_has_is_an_error() {
        assert!(page("load 1-18\nnothing").unwrap_err().contains("begins with `nothing`"));
        assert!(page("vault 1-18\nappend").unwrap_err().contains("no results/prove-vault-DATE"));
        assert!(page("load\nappend").unwrap_err().contains("no columns"));
    }
}
