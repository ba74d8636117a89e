//! `cargo xtask bench-guard`: bytes, allocations and instructions that may not grow.

use std::collections::BTreeMap;
use std::process::Command;

use crate::process::{self, SHIP, XtaskResult};

/// The counts of the commit that wrote them.
const FILE: &str = "results/bench-guard.txt";
/// Instructions may differ by so much between builds that differ in nothing that matters.
const INSTRUCTIONS_TOLERANCE: f64 = 0.03;
/// The ways of `sealane-bench counts WAY ROUNDS` whose instructions are counted, by their place.
const WAYS: [(usize, &str); 3] = [(0, "json, full"), (2, "cbor, full"), (5, "cbor, compact")];
const ROUNDS: u64 = 1000;

/// `cargo xtask bench-guard [--write] [--instructions]`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let mut command = process::cargo();
    command.args(["run", "--quiet", "-p", "sealane-bench", "--", "counts"]);
    compare(command, arguments)
}

/// The same, of the program that the tests of the workspace have built: for one package alone,
/// cargo chooses other features of what it depends on, and builds half of that again.
pub(crate) fn of_built() -> XtaskResult {
    let mut command = process::program(process::target().join("debug/sealane-bench"));
    command.arg("counts");
    compare(command, &[])
}

fn compare(mut counted: Command, arguments: &[String]) -> XtaskResult {
    let mut counts = parse(&process::output(&mut counted)?)?;
    let mut is_writing = false;
    for argument in arguments {
        match argument.as_str() {
            "--write" => is_writing = true,
            "--instructions" => counts.extend(instructions()?),
            other => return Err(format!("bench-guard has no argument `{other}`")),
        }
    }
    let path = process::root().join(FILE);
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let before = parse(&committed)?;
    if is_writing {
        // Counts that this run did not make stay as they were.
        let mut all = before;
        all.retain(|name, _| is_instructions(name));
        all.extend(counts);
        return std::fs::write(&path, page(&all)).map_err(|error| format!("{FILE}: {error}"));
    }
    let grown = grown(&before, &counts);
    if grown.is_empty() {
        println!("{} counts, none of which grew", counts.len());
        return Ok(());
    }
    grown.iter().for_each(|line| println!("{line}"));
    let remedy = "if it must be so, write them anew: cargo xtask bench-guard --write";
    Err(format!("bench-guard: {} counts grew, are new or are gone; {remedy}", grown.len()))
}

/// Instructions that one message takes more than none, in the shipped program under valgrind.
fn instructions() -> XtaskResult<BTreeMap<String, u64>> {
    let mut build = process::cargo();
    process::run(build.args(["build", "--quiet", "--profile", SHIP, "--bin", "sealane-bench"]))?;
    let program = process::target().join(SHIP).join("sealane-bench");
    let refs = |way: usize, rounds: u64| {
        let mut command = process::program("valgrind");
        command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
        command.arg(&program).args(["counts", &way.to_string(), &rounds.to_string()]);
        let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        read_refs(&said).ok_or_else(|| format!("valgrind counted nothing:\n{said}"))
    };
    let mut counts = BTreeMap::new();
    for (way, name) in WAYS {
        let (few, many) = (refs(way, ROUNDS)?, refs(way, 2 * ROUNDS)?);
        let each = many.saturating_sub(few) / ROUNDS;
        counts.insert(format!("{INSTRUCTIONS}{name}"), each);
    }
    Ok(counts)
}

const INSTRUCTIONS: &str = "instructions, small, ";

fn is_instructions(name: &str) -> bool {
    name.starts_with(INSTRUCTIONS)
}

/// The number in `I refs:        1,234,567`.
fn read_refs(said: &str) -> Option<u64> {
    let line =
        said.lines().find_map(|line| line.split_once("I refs:").or(line.split_once("I   refs:")));
    line?.1.trim().replace(',', "").parse().ok()
}

fn parse(text: &str) -> XtaskResult<BTreeMap<String, u64>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let (name, value) = line.rsplit_once(" = ").ok_or_else(|| format!("{line}: no count"))?;
        let value = value.parse().map_err(|_| format!("{line}: no number"))?;
        Ok((name.to_owned(), value))
    });
    pairs.collect()
}

fn page(counts: &BTreeMap<String, u64>) -> String {
    let mut page = String::from("# Counts that may not grow: cargo xtask bench-guard --write\n");
    counts.iter().for_each(|(name, value)| page += &format!("{name} = {value}\n"));
    page
}

/// A line for each count that grew, for each that nobody committed, and for each that is committed
/// and was not counted any more. Instructions are counted only where they are asked for.
fn grown(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<String> {
    let with_instructions = now.keys().any(|name| is_instructions(name));
    let is_gone =
        |name: &&String| !now.contains_key(*name) && (with_instructions || !is_instructions(name));
    let gone = before.keys().filter(is_gone).map(|name| format!("{name}: not counted any more"));
    let line = |(name, value): (&String, &u64)| match before.get(name) {
        None => Some(format!("{name}: {value}, and nothing is committed")),
        Some(old) => {
            let slack = if is_instructions(name) { INSTRUCTIONS_TOLERANCE } else { 0.0 };
            let grew = *value as f64 > *old as f64 * (1.0 + slack);
            grew.then(|| format!("{name}: {value}, and {old} is committed"))
        }
    };
    now.iter().filter_map(line).chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_or_is_new_is_named_and_what_shrinks_is_not() {
        let before = parse("# head\na, b = 3\nc = 5\ninstructions, small, x = 100\n").unwrap();
        let now = parse("a, b = 4\nc = 4\nd = 1\ninstructions, small, x = 102\n").unwrap();
        let lines = grown(&before, &now);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("a, b: 4") && lines[1].starts_with("d: 1"));
        assert_eq!(parse(&page(&now)).unwrap(), now);
        assert!(parse("a b c").is_err());
    }

    #[test]
    fn what_is_not_counted_any_more_is_named() {
        let before = parse("a = 3\nb = 5\ninstructions, small, x = 100\n").unwrap();
        let now = parse("a = 3\n").unwrap();
        assert_eq!(grown(&before, &now), ["b: not counted any more"]);
        let now = parse("a = 3\nb = 5\ninstructions, small, y = 1\n").unwrap();
        let lines = grown(&before, &now);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[1], "instructions, small, x: not counted any more");
    }

    #[test]
    fn what_valgrind_says_is_read() {
        assert_eq!(read_refs("==1== \n==1== I refs:        1,234,567\n"), Some(1_234_567));
        assert_eq!(read_refs("==1== nothing"), None);
    }
}
