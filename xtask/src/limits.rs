//! The limits of the crates, read from their `limits!` blocks.

use std::collections::BTreeMap;

use crate::process::XtaskResult;
use crate::rust::is_word;
use crate::tree::SourceTree;

/// One row of a `limits!` block.
#[derive(Debug, PartialEq)]
pub(crate) struct LimitRow {
    /// The file and line of its name.
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) value: u64,
    pub(crate) unit: String,
    /// The quantity that is bounded, and what happens beyond the bound.
    pub(crate) meaning: String,
}

impl LimitRow {
    /// The crate that it is of.
    pub(crate) fn of(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }
}

/// The limits of all crates, in the order of their files.
pub(crate) fn read(tree: &SourceTree) -> XtaskResult<Vec<LimitRow>> {
    let mut limits = Vec::new();
    let mut values = BTreeMap::new();
    let is_limits = |path: &str| path.starts_with("crates/") && path.ends_with("/src/limits.rs");
    let mut files: Vec<_> = tree.files().filter(|(path, _)| is_limits(path)).collect();
    // A limit may be named by those of crates above.
    files.sort_by_key(|(path, _)| crate::tidy::layer_of(path));
    for (path, text) in files {
        let Some((before, block)) = text.split_once("limits! {\n    ///") else { continue };
        let first = before.matches('\n').count() + 2;
        read_block(path, first, &format!("    ///{block}"), &mut values, &mut limits)?;
    }
    Ok(limits)
}

fn read_block(
    path: &str,
    first: usize,
    block: &str,
    values: &mut BTreeMap<String, u64>,
    limits: &mut Vec<LimitRow>,
) -> XtaskResult {
    let mut meaning = String::new();
    for (index, line) in block.lines().enumerate() {
        let line = line.trim();
        if let Some(doc) = line.strip_prefix("///") {
            meaning += doc;
        } else if line == "}" {
            return Ok(());
        } else {
            let line_number = first + index;
            let row = parse(line).ok_or(format!("{path}:{line_number}: no row of `limits!`"))?;
            let [name, expression, unit] = row.map(str::to_owned);
            let value = value(&expression, values)
                .ok_or(format!("{path}:{line_number}: what is `{expression}`?"))?;
            values.insert(name.clone(), value);
            let meaning = std::mem::take(&mut meaning).trim().to_owned();
            let path = path.to_owned();
            limits.push(LimitRow { path, line: line_number, name, value, unit, meaning });
        }
    }
    Err(format!("{path}: the block of limits has no end"))
}

/// Name, expression and unit of `NAME: type = EXPRESSION, "unit";`.
fn parse(row: &str) -> Option<[&str; 3]> {
    let (name, rest) = row.split_once(": ")?;
    let (_, rest) = rest.split_once(" = ")?;
    let (expression, unit) = rest.rsplit_once(", ")?;
    Some([name, expression, unit.strip_prefix('"')?.strip_suffix("\";")?])
}

/// The value of an expression of numbers, names, brackets and `<<`, `+`, `-`, `*`, `/`. It is read
/// as far as limits need it: from the weakest operator down, and from the right.
fn value(expression: &str, known: &BTreeMap<String, u64>) -> Option<u64> {
    let expression = expression.trim();
    for operators in [&["<<"][..], &["+", "-"], &["*", "/"]] {
        let Some((at, operator)) = last_of(expression, operators) else { continue };
        let left = value(&expression[..at], known)?;
        let right = value(&expression[at + operator.len()..], known)?;
        return match operator {
            "<<" => left.checked_shl(u32::try_from(right).ok()?),
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            _ => left.checked_div(right),
        };
    }
    if let Some(inner) = expression.strip_prefix('(') {
        return value(inner.strip_suffix(')')?, known);
    }
    let is_name = expression.bytes().all(is_word) && !expression.starts_with(char::is_numeric);
    match is_name {
        true => known.get(expression).copied(),
        false => {
            let digits = expression.replace('_', "");
            match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => digits.parse().ok(),
            }
        }
    }
}

/// The last of these operators that stands in no brackets.
fn last_of<'a>(expression: &str, operators: &[&'a str]) -> Option<(usize, &'a str)> {
    let mut depth = 0;
    let mut found = None;
    for (at, c) in expression.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let here = operators.iter().find(|operator| expression[at..].starts_with(**operator));
        if let Some(operator) = here.filter(|_| depth == 0 && at > 0) {
            found = Some((at, *operator));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_their_values() {
        let tree = SourceTree::sample(&[
            (
                "crates/sealane-message/src/limits.rs",
                "macro_rules! limits {}\n\nlimits! {\n    /// A | b.\n    \
                 A: u64 = (1 << 4) - 1, \"a\";\n}\n",
            ),
            (
                "crates/sealane-codec/src/limits.rs",
                "sealane_message::limits! {\n    /// One\n    /// two.\n    \
                 B: usize = A * 2 + 0x10, \"b\";\n}\n",
            ),
        ]);
        let limits = read(&tree).unwrap();
        let rows: Vec<_> = limits.iter().map(|l| (l.name.as_str(), l.value, l.line)).collect();
        assert_eq!(rows, [("A", 15, 5), ("B", 46, 4)]);
        assert_eq!((limits[1].meaning.as_str(), limits[1].of()), ("One two.", "sealane-codec"));
    }

    #[test]
    fn what_is_no_number_is_none() {
        let known = BTreeMap::from([("A".to_owned(), 7)]);
        for (text, expected) in [
            ("24 * 3600 * 1000", Some(86_400_000)),
            ("A / 2", Some(3)),
            ("B", None),
            ("1 - 2", None),
            ("", None),
            ("(1", None),
        ] {
            assert_eq!(value(text, &known), expected, "{text}");
        }
    }
}
