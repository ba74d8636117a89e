//! Pages that are made from the code, `docs/LIMITS.md` and `docs/ERRORS.md`, and the figures that
//! others show.

use sealane_message::limits;

use crate::figures;
use crate::process::{self, Outcome};
use crate::rust::{Literal, Rust, closing};
use crate::tree::Tree;

/// Where the limits are listed.
pub(crate) const LIMITS: &str = "docs/LIMITS.md";
/// Where the error codes are listed.
pub(crate) const ERRORS: &str = "docs/ERRORS.md";

/// A row of an error table, as it stands in the source.
pub(crate) struct ErrorRow {
    /// The file and line of the row.
    pub(crate) path: String,
    pub(crate) line: usize,
    /// Code, name, cause and hint; none if one of them is not a string literal.
    pub(crate) texts: Option<[String; 4]>,
}

/// `cargo xtask docs`.
pub(crate) fn run(_: &[String]) -> Outcome {
    let tree = Tree::load()?;
    let folder = process::root().join("docs");
    std::fs::create_dir_all(&folder).map_err(|error| format!("docs/: {error}"))?;
    for (path, page) in pages(&tree) {
        let page = page.map_err(|error| format!("{path}: {error}"))?;
        if tree.get(&path) == Some(&page) {
            println!("{path} is up to date");
            continue;
        }
        std::fs::write(process::root().join(&path), page)
            .map_err(|error| format!("{path}: {error}"))?;
        println!("{path} written");
    }
    Ok(())
}

/// Each generated page and what it should say.
pub(crate) fn pages(tree: &Tree) -> Vec<(String, Outcome<String>)> {
    let mut pages = figures::pages(tree);
    pages.push((LIMITS.to_owned(), Ok(limits_page(limits::TABLE))));
    pages.push((ERRORS.to_owned(), Ok(errors_page(&error_rows(tree)))));
    pages
}

fn limits_page(table: &[limits::Limit]) -> String {
    let mut page = String::from(
        "# Limits\n\n\
         Every queue, name and message has a bound. `cargo xtask docs` makes this page from the \
         table in\n`crates/sealane-message/src/limits.rs`.\n\n\
         | limit | value | unit | what is bounded, and what happens beyond it |\n\
         |---|--:|---|---|\n",
    );
    for limit in table {
        let (name, unit) = (limit.name, limit.unit);
        let (value, meaning) = (shown(limit.value, unit), limit.meaning.trim());
        page += &format!("| `{name}` | {value} | {unit} | {} |\n", meaning.replace('|', "\\|"));
    }
    page
}

/// A number with its thousands apart, and in larger units where those are whole.
fn shown(value: u64, unit: &str) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let larger: &[(u64, &str)] = match unit {
        "bytes" => &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
        "milliseconds" => &[(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")],
        _ => &[],
    };
    match larger.iter().find(|(size, _)| value >= *size && value.is_multiple_of(*size)) {
        Some((size, name)) => format!("{grouped} ({} {name})", value / size),
        None => grouped,
    }
}

fn errors_page(rows: &[ErrorRow]) -> String {
    let mut rows: Vec<_> = rows.iter().filter_map(|row| row.texts.as_ref()).collect();
    rows.sort();
    let mut page = String::from(
        "# Error codes\n\n\
         A code is stable and never used again for something else. `sealane explain CODE` shows \
         its row,\nbut for those of `sealane-bench`. `cargo xtask docs` makes this page from the \
         `ERRORS` tables of the\ncrates.\n\n\
         | code | name on the wire | what happened | what to do |\n|---|---|---|---|\n",
    );
    for [code, name, cause, hint] in rows {
        let (cause, hint) = (cause.replace('|', "\\|"), hint.replace('|', "\\|"));
        page += &format!("| `{code}` | `{name}` | {cause} | {hint} |\n");
    }
    page
}

/// Every row that a crate declares with `ErrorInfo::new(…)`, tests left out.
pub(crate) fn error_rows(tree: &Tree) -> Vec<ErrorRow> {
    let mut rows = vec![];
    for (path, rust) in tree.library_sources() {
        let code = rust.code_without_tests();
        for (at, call) in code.match_indices("ErrorInfo::new(") {
            let open = at + call.len() - 1;
            let texts = arguments(&code, open)
                .iter()
                .map(|(start, end)| literal(rust, *start, *end))
                .collect::<Option<Vec<_>>>();
            rows.push(ErrorRow {
                path: path.to_owned(),
                line: rust.line(at),
                texts: texts.and_then(|texts| texts.try_into().ok()),
            });
        }
    }
    rows
}

/// Where the arguments of the call whose bracket opens at `open` start and end.
fn arguments(code: &str, open: usize) -> Vec<(usize, usize)> {
    let end = closing(code, open) - 1;
    let mut arguments = vec![];
    let (mut start, mut at) = (open + 1, open + 1);
    while at < end {
        match code.as_bytes()[at] {
            b'(' | b'[' | b'{' => at = closing(code, at),
            b',' => {
                arguments.push((start, at));
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    arguments.push((start, end));
    arguments.retain(|(start, end)| !code[*start..*end].trim().is_empty());
    arguments
}

/// The text of an argument that is a literal, or literals in `concat!`.
fn literal(rust: &Rust, start: usize, end: usize) -> Option<String> {
    let code = rust.code[start..end].trim();
    let inside = rust.literals.iter().filter(|literal| (start..end).contains(&literal.at));
    let texts: Vec<&Literal> = inside.collect();
    let is_literal = code.starts_with('"') || code.starts_with("concat!");
    (is_literal && !texts.is_empty()).then(|| texts.iter().map(|literal| &*literal.text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(shown(255, "bytes"), "255");
        assert_eq!(shown(1 << 20, "bytes"), "1,048,576 (1 MiB)");
        assert_eq!(shown(86_400_000, "milliseconds"), "86,400,000 (1 d)");
        assert_eq!(shown(10_000, "messages"), "10,000");
    }

    #[test]
    fn every_limit_has_a_row() {
        let page = limits_page(limits::TABLE);
        assert_eq!(page.matches("\n| `").count(), limits::TABLE.len());
        assert!(page.contains("| `MAX_TOPIC_BYTES` | 255 | bytes | A topic's length."), "{page}");
    }

    #[test]
    fn error_rows_are_read_over_several_lines_and_sorted() {
        let tree = Tree::sample(&[(
            "crates/a/src/error.rs",
            r#"const A: ErrorInfo = ErrorInfo::new(
    "SL-B-01",
    "B",
    "not a, b",
    "Use a|b; \
     or c.",
);
const B: ErrorInfo = ErrorInfo::new("SL-A-01", "A", concat!("x", "y"), "z");
const C: ErrorInfo = ErrorInfo::new(CODE, "A", "x", "z");
#[cfg(test)]
mod tests { const D: ErrorInfo = ErrorInfo::new("D", "", "", ""); }
"#,
        )]);
        let rows = error_rows(&tree);
        assert_eq!(rows.len(), 3);
        assert!(rows[2].texts.is_none() && rows[2].line == 9, "{}", rows[2].line);
        let page = errors_page(&rows);
        let table = "| `SL-A-01` | `A` | xy | z |\n\
                     | `SL-B-01` | `B` | not a, b | Use a\\|b; or c. |\n";
        assert!(page.ends_with(table), "{page}");
    }
}
