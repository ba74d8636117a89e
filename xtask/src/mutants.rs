//! `cargo xtask mutants`: how many small faults in a crate its own tests find.
//!
//! cargo-mutants breaks one function or operator at a time and runs the crate's tests. A sample is
//! every k-th of the mutants of the files that are named here, so that it is the same each time and
//! takes a bounded time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::process::{self, XtaskResult};
use crate::test::LAB;

/// The part of the viable mutants that has to be caught.
const CAUGHT_MIN: f64 = 0.9;
/// Mutants of a crate, at most; `SEALANE_MUTANTS` is another number.
const MUTANTS_MAX: usize = 25;
/// The time limit for the tests of one mutant: a multiple of their time without a mutant, and a
/// least number of seconds. If the tests take longer, they have noticed the mutant.
const TEST_TIMES_MAX: &str = "4";
const TEST_SECONDS_MIN: &str = "180";
const BUILD_SECONDS_MAX: &str = "600";
/// The hub's model takes fewer steps than the tests take otherwise: it runs once for each mutant.
const MODEL: [(&str, &str); 2] = [("SEALANE_SEEDS", "30"), ("SEALANE_STEPS", "30000")];
/// No crate is begun after so many minutes; `SEALANE_MINUTES` is another number.
const MINUTES_MAX: usize = 120;

/// The files of a package that are broken; the package's tests are run.
struct MutantSample {
    name: &'static str,
    package: &'static str,
    /// Below the package's sources.
    files: &'static [&'static str],
}

const SAMPLES: &[MutantSample] = &[
    MutantSample { name: "seal", package: "sealane-seal", files: &["**/*.rs"] },
    MutantSample { name: "frame", package: "sealane-frame", files: &["**/*.rs"] },
    MutantSample { name: "group", package: "sealane-group", files: &["**/*.rs"] },
    MutantSample {
        name: "hub",
        package: "sealane-stream",
        files: &[
            "consumer*.rs",
            "consumer/*.rs",
            "subscription*.rs",
            "subscription/*.rs",
            "writer*.rs",
            "writer/*.rs",
        ],
    },
];

/// Mutants that change nothing that a program can see, by a part of their name: what a debugger is
/// shown, room that is reserved, and what only debug assertions ask.
const EQUIVALENT: &str = "Debug for|::capacity ->|::holds_together -> bool with true";

/// How the mutants of a sample ended, by the files in which cargo-mutants lists them.
#[derive(Debug, Default, PartialEq)]
struct MutantScore {
    caught: usize,
    missed: Vec<String>,
    unviable: usize,
}

impl MutantScore {
    /// From the text of each list. A test that does not end has noticed its mutant.
    fn read(list: impl Fn(&str) -> String) -> MutantScore {
        let lines = |name: &str| -> Vec<String> {
            list(name).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        MutantScore {
            caught: lines("caught.txt").len() + lines("timeout.txt").len(),
            missed: lines("missed.txt"),
            unviable: lines("unviable.txt").len(),
        }
    }

    fn viable(&self) -> usize {
        self.caught + self.missed.len()
    }

    /// The part of the viable ones that was caught; nothing is shown where there are none.
    fn part(&self) -> f64 {
        if self.viable() == 0 { 0.0 } else { self.caught as f64 / self.viable() as f64 }
    }
}

/// `cargo xtask mutants [CRATE]`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let chosen = chosen(arguments)?;
    if process::output(process::cargo().args(["mutants", "--version"])).is_err() {
        let hint = "cargo install cargo-mutants --locked";
        return Err(format!("cargo-mutants is missing; run: {hint}"));
    }
    let (most, minutes) =
        (number("SEALANE_MUTANTS", MUTANTS_MAX)?, number("SEALANE_MINUTES", MINUTES_MAX)?);
    let (began, mut scores) = (Instant::now(), BTreeMap::new());
    let mut faults = vec![];
    for sample in chosen {
        if began.elapsed() > Duration::from_secs(minutes as u64 * 60) {
            faults.push(format!("{}: not begun after {minutes} minutes", sample.name));
            continue;
        }
        let score = sample.run(most)?;
        if score.part() < CAUGHT_MIN {
            faults.push(format!("{}: {:.1} % caught", sample.name, score.part() * 100.0));
        }
        scores.insert(sample.name, score);
    }
    print!("{}", table(&scores));
    let wanted = CAUGHT_MIN * 100.0;
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("of the viable mutants {wanted} % have to be caught: {}", faults.join(", ")))
}

fn chosen(arguments: &[String]) -> XtaskResult<Vec<&'static MutantSample>> {
    let is_named = |sample: &&MutantSample| arguments.iter().all(|name| name == sample.name);
    let found: Vec<_> = SAMPLES.iter().filter(is_named).collect();
    let names: Vec<_> = SAMPLES.iter().map(|sample| sample.name).collect();
    let refusal = || format!("one sample or none, please, of {}", names.join(", "));
    if found.is_empty() { Err(refusal()) } else { Ok(found) }
}

fn number(variable: &str, default: usize) -> XtaskResult<usize> {
    let Ok(text) = std::env::var(variable) else { return Ok(default) };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{variable} is `{text}`, which is no number from 1"))
}

impl MutantSample {
    fn command(&self) -> std::process::Command {
        let mut command = process::cargo();
        command.args(["mutants", "--package", self.package, "--exclude-re", EQUIVALENT]);
        for file in self.files {
            command.args(["--file", &format!("crates/{}/src/{file}", self.package)]);
        }
        // Tests beside the code are no code to break, and `agreed.rs` is a kind of groups for the
        // tests of `sealane`, behind a feature.
        for file in ["**/tests.rs", "**/model/**", "**/agreed.rs"] {
            command.args(["--exclude", file]);
        }
        command
    }

    fn run(&self, most: usize) -> XtaskResult<MutantScore> {
        let all = process::output(self.command().arg("--list"))?.lines().count();
        let shards = all.div_ceil(most).max(1);
        println!("\n{}: one in {shards} of {all} mutants", self.name);
        let folder = process::target().join("mutants").join(self.name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut command = self.command();
        command.args(["--shard", &format!("0/{shards}"), "--sharding", "round-robin"]);
        command.args(["--timeout-multiplier", TEST_TIMES_MAX]);
        command.args(["--minimum-test-timeout", TEST_SECONDS_MIN]);
        command.args(["--build-timeout", BUILD_SECONDS_MAX]).envs(MODEL);
        command.args(["--colors", "never", "--output"]).arg(&folder);
        // The laboratory's tests notice mutants that no other test does.
        command.args(["--", "--"]).args(LAB);
        // Dependencies are built once for all samples.
        command.env("CARGO_TARGET_DIR", process::target().join("mutants/build"));
        eprintln!("$ {}", process::shown(&command));
        let status = command.status().map_err(|error| format!("cargo mutants: {error}"))?;
        // 2 says that some were missed, 3 that tests did not end; all else is a fault.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("{}: cargo mutants: {status}", self.name));
        }
        let list = |name: &str| std::fs::read_to_string(lists(&folder).join(name));
        Ok(MutantScore::read(|name| list(name).unwrap_or_default()))
    }
}

fn lists(folder: &std::path::Path) -> PathBuf {
    folder.join("mutants.out")
}

fn table(scores: &BTreeMap<&str, MutantScore>) -> String {
    let mut table = String::from("\nsample  viable  caught  missed  unviable   caught\n");
    for (name, score) in scores {
        let MutantScore { caught, missed, unviable } = score;
        let (viable, missed, percent) = (score.viable(), missed.len(), score.part() * 100.0);
        table += &format!(
            "{name:6}  {viable:6}  {caught:6}  {missed:6}  {unviable:8}  {percent:5.1} %\n"
        );
    }
    for (name, score) in scores {
        score.missed.iter().for_each(|line| table += &format!("missed in {name}: {line}\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_the_part_of_the_viable_ones() {
        let score = MutantScore::read(|name| {
            let text = match name {
                "caught.txt" => "a\nb\nc\nd\ne\nf\ng\nh\n",
                "timeout.txt" => "i\n",
                "missed.txt" => "a.rs:1:2: replace + with -\n",
                "unviable.txt" => "k\nl\n",
                other => panic!("{other}"),
            };
            text.to_owned()
        });
        assert_eq!((score.viable(), score.unviable), (10, 2));
        assert!((score.part() - 0.9).abs() < f64::EPSILON && score.part() >= CAUGHT_MIN);
        let table = table(&BTreeMap::from([("seal", score)]));
        assert!(table.contains("90.0 %\n"), "{table}");
        assert!(table.ends_with("missed in seal: a.rs:1:2: replace + with -\n"), "{table}");
        let none = MutantScore::default();
        assert!(none.part() < CAUGHT_MIN, "where nothing ran, nothing is shown");
    }

    #[test]
    fn samples_are_chosen_by_name_and_their_files_are_there() {
        assert_eq!(chosen(&[]).unwrap().len(), SAMPLES.len());
        assert_eq!(chosen(&["hub".to_owned()]).unwrap()[0].package, "sealane-stream");
        assert!(chosen(&["hug".to_owned()]).err().unwrap().contains("seal, frame, group, hub"));
        let tree = crate::tree::SourceTree::load().unwrap();
        for MutantSample { package, files, .. } in SAMPLES {
            for file in *files {
                let begin = format!("crates/{package}/src/{}", file.split('*').next().unwrap());
                assert!(tree.rust().any(|(path, _)| path.starts_with(&begin)), "{begin}");
            }
        }
    }
}
