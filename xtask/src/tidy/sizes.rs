//! Sizes of files and lines, and the white space at their ends; clippy has those of functions.

use super::TidyFindings;
use crate::rust::{RustSource, closing, words};
use crate::tree::SourceTree;

const MAX_FILE_LINES: usize = 600;
const MAX_LINE_COLUMNS: usize = 100;
/// The length of a README that a newcomer reads in one sitting.
const MAX_README_LINES: usize = 150;
/// A `const` or `static` of more lines than this is a table, and its lines do not count.
const MAX_CONST_LINES: usize = 10;

/// Texts that we write by hand, by the end of their name.
const TEXTS: &[&str] = &[".rs", ".toml", ".md"];

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    for (path, text) in tree.files().filter(|(path, _)| TEXTS.iter().any(|end| path.ends_with(end)))
    {
        lines(path, text, findings);
    }
    let readme = tree.get("README.md").map_or(0, |text| text.lines().count());
    if readme > MAX_README_LINES {
        let what = format!("{readme} lines, {MAX_README_LINES} are allowed");
        findings.add("README.md", 1, what, "move a part of it to docs");
    }
    for (path, rust) in tree.rust() {
        let tables = tables(rust);
        file(path, rust, &tables, findings);
    }
}

fn lines(path: &str, text: &str, findings: &mut TidyFindings) {
    for (index, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            findings.add(path, index + 1, "white space ends the line", "remove it");
        }
        let columns = line.chars().count();
        if columns > MAX_LINE_COLUMNS && !may_be_long(path, line) {
            findings.add(
                path,
                index + 1,
                format!("{columns} columns, {MAX_LINE_COLUMNS} are allowed"),
                "break the line",
            );
        }
    }
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        let last = text.lines().count();
        findings.add(path, last, "the file's end", "end it with one line break");
    }
}

/// Links cannot be broken, and neither can the rows of a Markdown table.
fn may_be_long(path: &str, line: &str) -> bool {
    let is_markdown = path.ends_with(".md");
    line.contains("://")
        || is_markdown && (line.contains("](") || line.trim_start().starts_with('|'))
}

/// For each line (from 0) whether it belongs to a table of constants.
fn tables(rust: &RustSource) -> Vec<bool> {
    let mut tables = vec![false; rust.code.lines().count() + 1];
    for keyword in ["const", "static"] {
        for at in words(&rust.code, keyword) {
            let rest = rust.code[at + keyword.len()..].trim_start();
            if rest.starts_with("fn ") || !rest.starts_with(|c: char| c.is_ascii_uppercase()) {
                continue;
            }
            let (first, last) = (rust.line(at), rust.line(end_of_const(&rust.code, at)));
            if last - first >= MAX_CONST_LINES {
                tables[first - 1..last].fill(true);
            }
        }
    }
    tables
}

fn end_of_const(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b'(' | b'[' | b'{' => at = closing(code, at),
            b';' | b'}' => return at,
            _ => at += 1,
        }
    }
    code.len()
}

fn counted(tables: &[bool], first: usize, last: usize) -> usize {
    tables[first - 1..last].iter().filter(|table| !**table).count()
}

fn file(path: &str, rust: &RustSource, tables: &[bool], findings: &mut TidyFindings) {
    let lines = counted(tables, 1, rust.code.lines().count().max(1));
    if lines > MAX_FILE_LINES {
        findings.add(
            path,
            1,
            format!("{lines} lines, {MAX_FILE_LINES} are allowed"),
            "split the file by its nouns",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    fn rust_file(text: &str) -> Vec<String> {
        said(check, &SourceTree::sample(&[("crates/a/src/lib.rs", text)]))
    }

    #[test]
    fn long_files_are_found_but_tables_do_not_count() {
        assert!(rust_file(&"// x\n".repeat(601))[0].contains("601 lines"));
        assert_eq!(rust_file(&"// x\n".repeat(600)), Vec::<String>::new());
        let table = format!("const T: &[u8] = &[\n{}];\n", "    1,\n".repeat(700));
        assert_eq!(rust_file(&table), Vec::<String>::new());
    }

    #[test]
    fn long_lines_and_loose_ends_are_found() {
        let found = rust_file(&format!("// {}\nfn a() {{}} \n", "x".repeat(98)));
        assert!(found[0].contains(":1: 101 columns"), "{found:?}");
        assert!(found[1].contains(":2: white space"), "{found:?}");
        assert!(rust_file("fn a() {}")[0].contains("one line break"));
        assert!(rust_file("fn a() {}\n\n")[0].contains("one line break"));
    }

    #[test]
    fn a_long_readme_is_found() {
        let found =
            |lines| said(check, &SourceTree::sample(&[("README.md", &"x\n".repeat(lines))]));
        assert_eq!(found(150), Vec::<String>::new());
        assert!(found(151)[0].contains("151 lines, 150 are allowed"));
    }

    #[test]
    fn tables_and_links_of_markdown_may_be_long() {
        let long = "x".repeat(100);
        let page = |text: String| said(check, &SourceTree::sample(&[("docs/A.md", &text)])).len();
        assert_eq!(page(format!("| {long} |\n")), 0);
        assert_eq!(page(format!("[a](b) {long}\n")), 0);
        assert_eq!(page(format!("{long}x\n")), 1);
    }
}
