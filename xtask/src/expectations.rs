//! What users of other programs expect, and what is there: `docs/expectations.txt`, which
//! `cargo xtask docs` makes a page of.

use crate::process::Outcome;
use crate::tree::Tree;

/// Where the page is.
pub(crate) const PAGE: &str = "docs/EXPECTATIONS.md";
/// Where it is made from.
const DATA: &str = "docs/expectations.txt";
/// Where it stands what is not there.
const ROADMAP: &str = "docs/ROADMAP.md";
const README: &str = "README.md";
const WHEN_NOT: &str = "## When not to use it";

/// How much of an expectation is there.
#[derive(Debug, PartialEq, Clone, Copy)]
enum There {
    Yes,
    Partly,
    No,
}

/// One expectation.
#[derive(Debug)]
struct Row<'a> {
    there: There,
    what: &'a str,
    /// The command that shows it.
    typed: Option<&'a str>,
    /// The command that runs the test of it.
    test: Option<&'a str>,
    note: Option<&'a str>,
    /// The words by which a page says that it is not there.
    said: Option<&'a str>,
}

/// The page, if there is its data.
pub(crate) fn page(tree: &Tree) -> Option<(String, Outcome<String>)> {
    let data = tree.get(DATA)?;
    let page = rows(data).and_then(|rows| {
        rows.iter().try_for_each(|row| check(tree, row)).map(|()| shown(tree, &rows))
    });
    Some((PAGE.to_owned(), page))
}

/// Blocks of lines, the first of them the expectation, the others its fields.
fn rows(data: &str) -> Outcome<Vec<Row<'_>>> {
    let mut rows: Vec<Row<'_>> = vec![];
    for line in data.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let unknown = || format!("{DATA}: `{line}` is not understood");
        let (word, rest) = line.trim_start().split_once(' ').ok_or_else(unknown)?;
        if line.starts_with(' ') {
            let row = rows.last_mut().ok_or_else(unknown)?;
            let field = match word {
                "typed" => &mut row.typed,
                "test" => &mut row.test,
                "note" => &mut row.note,
                "said" => &mut row.said,
                _ => return Err(unknown()),
            };
            *field = Some(rest);
            continue;
        }
        let there = match word {
            "yes" => There::Yes,
            "partly" => There::Partly,
            "no" => There::No,
            _ => return Err(unknown()),
        };
        rows.push(Row { there, what: rest, typed: None, test: None, note: None, said: None });
    }
    Ok(rows)
}

/// What is there has a command and its test, and what is not stands where a reader looks for it.
fn check(tree: &Tree, row: &Row<'_>) -> Outcome {
    let fault = |what: &str| Err(format!("{DATA}: `{}` {what}", row.what));
    match row.there {
        There::Yes if row.typed.is_none() || row.test.is_none() => {
            fault("is there and names no command, or no test")
        }
        There::Partly if row.note.is_none() => fault("is partly there and does not say how far"),
        There::No if row.said.and_then(|said| place(tree, said)).is_none() => {
            fault("is not there, and neither README.md nor docs/ROADMAP.md says so")
        }
        _ => Ok(()),
    }
}

/// The page that says these words, as it is linked from `docs`.
fn place(tree: &Tree, said: &str) -> Option<&'static str> {
    let readme = tree.get(README).and_then(|readme| readme.split(WHEN_NOT).nth(1));
    let when_not = readme.and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    if when_not.contains(said) {
        return Some("[README](../README.md#when-not-to-use-it)");
    }
    tree.get(ROADMAP)?.contains(said).then_some("[ROADMAP](ROADMAP.md)")
}

fn shown(tree: &Tree, rows: &[Row<'_>]) -> String {
    let count = |there| rows.iter().filter(|row| row.there == there).count();
    let mut page = format!(
        "# What users of other programs expect\n\n\
         What users of NATS, Centrifugo, restic, age, ripgrep and Tailscale look for, and whether \
         it is\nhere: {} of {} are, {} are in part, {} are not. What is here has a command, and a \
         test that runs it.\nWhat is not here stands in the README or in the roadmap. `cargo xtask \
         docs` makes this page from\n`{DATA}`.\n\n\
         | # | expectation (whose) | here | what you type, or where it is said | \
         test |\n|--:|---|---|---|---|\n",
        count(There::Yes),
        rows.len(),
        count(There::Partly),
        count(There::No),
    );
    for (index, row) in rows.iter().enumerate() {
        let there = match row.there {
            There::Yes => "yes",
            There::Partly => "partly",
            There::No => "no",
        };
        let typed = row.typed.map(|typed| format!("`{}`", typed.replace('|', "\\|")));
        let said = row.said.and_then(|said| place(tree, said)).map(str::to_owned);
        let note = row.note.map(str::to_owned);
        let cell: Vec<String> = [typed, note, said].into_iter().flatten().collect();
        let test = row.test.map(|test| format!("`{test}`")).unwrap_or_default();
        let (number, what) = (index + 1, row.what);
        page += &format!("| {number} | {what} | {there} | {} | {test} |\n", cell.join("; "));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 2] = [
        (README, "# A\n\n## When not to use it\n\n- **More servers.** None.\n\n## Z\n\nLater.\n"),
        (ROADMAP, "# R\n\n- **Clients.**\n"),
    ];

    fn made(data: &str) -> Outcome<String> {
        page(&Tree::sample(&[FILES[0], FILES[1], (DATA, data)])).unwrap().1
    }

    #[test]
    fn a_row_shows_its_command_its_test_and_where_it_is_said() {
        let page = made(
            "# a comment\n\nyes A (b)\n  typed x a | b\n  test cargo test -p a\n  note c\n\n\
             partly D (e)\n  note f\n\nno G (h)\n  said More servers.\n\n\
             no I (j)\n  said Clients.\n",
        );
        let page = page.unwrap();
        assert!(page.contains("1 of 4 are, 1 are in part, 2 are not"), "{page}");
        assert!(page.contains("| 1 | A (b) | yes | `x a \\| b`; c | `cargo test -p a` |\n"));
        assert!(page.contains("| 2 | D (e) | partly | f |  |\n"), "{page}");
        assert!(page.contains("| 3 | G (h) | no | [README](../README.md#when-not"), "{page}");
        assert!(page.ends_with("| 4 | I (j) | no | [ROADMAP](ROADMAP.md) |  |\n"), "{page}");
    }

    #[test]
    fn what_is_claimed_without_a_test_or_missing_without_a_word_is_refused() {
        for data in [
            "yes A (b)\n  typed x\n",
            "yes A (b)\n  test cargo test -p a\n",
            "partly A (b)\n",
            "no A (b)\n",
            "no A (b)\n  said Later.\n",
            "maybe A (b)\n",
            "yes A (b)\n  tested x\n",
            "  typed x\n",
        ] {
            assert!(made(data).is_err(), "{data}");
        }
    }
}
