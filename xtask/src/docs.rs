//! Pages and lists that are made from the code, of limits and of errors, schemas of the protocol,
//! and the figures that other pages show.

use crate::figures;
use crate::limits::{self, LimitRow};
use crate::process::{self, XtaskResult};
use crate::rust::closing;
use crate::threats;
use crate::tree::SourceTree;

/// Where the limits are listed.
pub(crate) const LIMITS: &str = "docs/reference/LIMITS.md";
/// Where the error codes are listed.
pub(crate) const ERRORS: &str = "docs/reference/ERRORS.md";

/// Where other programs read the error codes.
const ERROR_LIST: &str = "spec/errors.json";
/// Crates that are not shipped. No program meets their errors.
const INSTRUMENTS: [&str; 2] = ["crates/sealane-bench/", "crates/sealane-sim/"];
/// Where the client library has the errors of a hub.
const HUB_ERRORS: &str = "crates/sealane/src/hub_error/list.rs";
/// The steps of the codes that a hub answers.
const STEPS_OF_A_HUB: [&str; 3] = ["SL-HUB-", "SL-NODE-", "SL-TOPIC-"];

/// A row of an error table, as it stands in the source.
pub(crate) struct ErrorRow {
    /// The file and line of the row.
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) cause: String,
    pub(crate) hint: String,
    /// The name of a `Retry`.
    retry: String,
}

/// `cargo xtask docs`.
pub(crate) fn run(_: &[String]) -> XtaskResult {
    let tree = SourceTree::load()?;
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
    schemas()
}

/// The schema of the hub's protocol and its kin are made from types, so that a program makes them:
/// the tests that compare them otherwise.
fn schemas() -> XtaskResult {
    let mut cargo = process::cargo();
    cargo.current_dir(process::root()).env("SEALANE_WRITE_SCHEMAS", "1");
    process::run(cargo.args([
        "test",
        "--quiet",
        "--package",
        "sealane-protocol",
        "--lib",
        "generated",
    ]))
}

/// Each generated page and what it should say.
pub(crate) fn pages(tree: &SourceTree) -> Vec<(String, XtaskResult<String>)> {
    let mut pages = figures::pages(tree);
    pages.push((LIMITS.to_owned(), limits::read(tree).map(|all| limits_page(&all))));
    let mut rows = error_rows(tree);
    rows.sort_by(|one, other| one.code.cmp(&other.code));
    pages.push((ERRORS.to_owned(), Ok(errors_page(&rows))));
    pages.push((ERROR_LIST.to_owned(), Ok(error_list(&rows))));
    pages.push((HUB_ERRORS.to_owned(), Ok(hub_errors(&rows))));
    pages.extend(threats::page(tree));
    pages
}

fn limits_page(limits: &[LimitRow]) -> String {
    let mut page = String::from(
        "# Limits\n\n\
         Every queue, name and message has a bound, which stands in the crate that enforces it. \
         `cargo xtask\ndocs` makes this page from `src/limits.rs` of the crates.\n",
    );
    let mut of = "";
    for limit in limits {
        if limit.of() != of {
            of = limit.of();
            page += &format!(
                "\n## {of}\n\n\
                 | limit | value | unit | what is bounded, and what happens beyond it |\n\
                 |---|--:|---|---|\n"
            );
        }
        let (name, unit, meaning) = (&limit.name, &limit.unit, &limit.meaning);
        let value = shown(limit.value, unit);
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
    let mut page = String::from(
        "# Error codes\n\n\
         A code is stable and never used again for something else. `sealane explain CODE` shows \
         its row,\nbut for those of `sealane-bench` and `sealane-sim`. `cargo xtask docs` makes \
         this page from the\n`errors!` tables of the crates, and `spec/errors.json` for programs. \
         A hub answers those of HUB,\nNODE and TOPIC.\n\n\
         *Again* says whether a program may try the same again without a person: `never`; \
         `later`, and where\na hub says `Retry-After`, not before; or `reconnect`, on a new \
         connection, with growing waits.\n\n\
         | code | name on the wire | what happened | what to do | again |\n|---|---|---|---|---|\n",
    );
    for ErrorRow { code, name, cause, hint, retry, .. } in rows {
        let (cause, hint) = (cause.replace('|', "\\|"), hint.replace('|', "\\|"));
        let retry = retry.to_lowercase();
        page += &format!("| `{code}` | `{name}` | {cause} | {hint} | {retry} |\n");
    }
    page
}

/// The rows as JSON, one a line.
fn error_list(rows: &[ErrorRow]) -> String {
    let text = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let row = |row: &ErrorRow| {
        let (code, name) = (text(&row.code), text(&row.name));
        let (cause, hint) = (text(&row.cause), text(&row.hint));
        let retry = text(&row.retry.to_lowercase());
        format!(
            "  {{\"code\": {code}, \"name\": {name}, \"cause\": {cause}, \"hint\": {hint}, \
             \"retry\": {retry}}}"
        )
    };
    let is_product = |row: &&ErrorRow| !INSTRUMENTS.iter().any(|dir| row.path.starts_with(dir));
    let rows = rows.iter().filter(is_product).map(row);
    format!("[\n{}\n]\n", rows.collect::<Vec<_>>().join(",\n"))
}

/// The errors that a hub answers, for the client library. Some stand in the table of
/// `sealane-node`, on which the library does not depend.
fn hub_errors(rows: &[ErrorRow]) -> String {
    let mut list = String::from(
        "// `cargo xtask docs` makes this list: each error that a hub answers, from the tables of \
         `errors!`.\n\nhub_errors! {\n",
    );
    let of_a_hub = |row: &&ErrorRow| STEPS_OF_A_HUB.iter().any(|step| row.code.starts_with(step));
    for ErrorRow { code, name, cause, retry, .. } in rows.iter().filter(of_a_hub) {
        let mut meaning = format!("    /// `{code}`: {cause}.");
        if let Some(end) = meaning.get(..100).and_then(|line| line.rfind(' ')) {
            meaning.replace_range(end..=end, "\n    /// ");
        }
        list += &format!("{meaning}\n    {name}: {retry},\n");
    }
    list + "}\n"
}

/// Every row that a crate declares in a table of `errors!`, tests left out. Its texts stand in the
/// order that the macro demands.
pub(crate) fn error_rows(tree: &SourceTree) -> Vec<ErrorRow> {
    let mut rows = vec![];
    for (path, rust) in tree.library_sources() {
        let code = rust.code_without_tests();
        for (at, attribute) in code.match_indices("#[code(\"") {
            let end = closing(&code, at + "#[code".len());
            let retry = code[at..end].split_once("retry = ").map(|(_, rest)| rest);
            let retry = retry.and_then(|rest| rest.split([',', ')']).next()).unwrap_or("Never");
            let from = at + attribute.len() - 1;
            let texts = rust.literals.iter().skip_while(|literal| literal.at < from);
            let mut texts = texts.map(|literal| literal.text.clone());
            let mut text = || texts.next().unwrap_or_default();
            rows.push(ErrorRow {
                path: path.to_owned(),
                line: rust.line(at),
                code: text(),
                name: text(),
                cause: text(),
                hint: text(),
                retry: retry.to_owned(),
            });
        }
    }
    rows
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
    fn every_limit_has_a_row_below_its_crate() {
        let limit = |path: &str, name: &str| LimitRow {
            path: path.to_owned(),
            line: 1,
            name: name.to_owned(),
            value: 1 << 20,
            unit: "bytes".to_owned(),
            meaning: "One | two.".to_owned(),
        };
        let page = limits_page(&[
            limit("crates/a/src/limits.rs", "A"),
            limit("crates/a/src/limits.rs", "B"),
            limit("crates/b/src/limits.rs", "C"),
        ]);
        let row = |name| format!("\n| `{name}` | 1,048,576 (1 MiB) | bytes | One \\| two. |\n");
        let at = |text: &str| page.find(text).unwrap();
        assert!(at("\n## a\n") < at(&row("A")) && at(&row("B")) < at("\n## b\n"), "{page}");
        assert!(page.ends_with(&row("C")), "{page}");
    }

    #[test]
    fn error_rows_are_read_from_their_tables() {
        let tree = SourceTree::sample(&[(
            "crates/a/src/error.rs",
            r#"errors! { pub enum Error {
    /// One.
    #[error("b {0}", "c")]
    #[code("SL-HUB-01", "B", retry = Later, exit = Storage)]
    #[cause("not a, b")]
    #[hint("Use a|b; \
            or c.")]
    B(&'static str),
    #[code("SL-A-01", "A")]
    #[cause("a \"x\"")]
    #[hint("Z.")]
    A,
} }
#[cfg(test)]
mod tests { errors! { enum E { #[code("D", "")] #[cause("")] #[hint("")] D } } }
"#,
        )]);
        let mut rows = error_rows(&tree);
        assert_eq!((rows.len(), rows[0].line, rows[1].line), (2, 4, 9));
        rows.reverse();
        let page = errors_page(&rows);
        let table = "| `SL-A-01` | `A` | a \"x\" | Z. | never |\n\
                     | `SL-HUB-01` | `B` | not a, b | Use a\\|b; or c. | later |\n";
        assert!(page.ends_with(table), "{page}");
        let list = error_list(&rows);
        assert!(list.contains(r#""cause": "a \"x\"", "hint": "Z.", "retry": "never"},"#), "{list}");
        assert!(list.ends_with("\"retry\": \"later\"}\n]\n"), "{list}");
        let hub = hub_errors(&rows);
        assert!(hub.ends_with("! {\n    /// `SL-HUB-01`: not a, b.\n    B: Later,\n}\n"), "{hub}");
    }
}
