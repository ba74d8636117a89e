//! The help of every verb: it fits a terminal, shows what belongs together, and has examples that
//! work.

use std::path::Path;
use std::process::{Command, Stdio};

use sealane_cli::args;

use crate::cli::{NodeProcess, PROGRAM, sealane};

const MAX_COLUMNS: usize = 80;

/// A verb, by its whole name.
struct Verb {
    path: String,
    command: clap::Command,
}

impl Verb {
    fn is_group(&self) -> bool {
        self.command.has_subcommands()
    }

    fn helps(&self) -> [String; 2] {
        let mut command = self.command.clone();
        [command.render_help().to_string(), command.render_long_help().to_string()]
    }
}

/// All verbs and groups of verbs that the help shows, and the program itself.
fn verbs() -> Vec<Verb> {
    let mut program = args::command();
    program.build();
    let mut all = vec![Verb { path: "sealane".to_owned(), command: program }];
    let mut next = 0;
    while next < all.len() {
        let Verb { path, command } = &all[next];
        let below: Vec<Verb> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(|verb| Verb { path: format!("{path} {}", verb.get_name()), command: verb.clone() })
            .collect();
        all.extend(below);
        next += 1;
    }
    assert!(all.len() > 90, "{} verbs", all.len());
    all
}

/// The words of an example as the shell would hand them on: of the last command of a pipe, without
/// what is redirected.
pub(super) fn words(line: &str) -> Vec<String> {
    let line = &line[line.find("sealane ").unwrap_or_else(|| panic!("{line}"))..];
    let (mut words, mut word, mut quote) = (vec![], String::new(), None);
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('<' | '>', None) => break,
            (' ', None) => words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty())),
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[test]
fn every_help_fits_a_terminal() {
    for verb in verbs() {
        for help in verb.helps() {
            for line in help.lines() {
                assert!(line.chars().count() <= MAX_COLUMNS, "{}: {line}", verb.path);
            }
        }
        // Text with columns of its own is not to be broken by the parser.
        let own = verb.command.get_after_long_help().or(verb.command.get_after_help());
        let own = own.map(ToString::to_string).unwrap_or_default();
        for line in own.lines() {
            assert!(line.chars().count() <= MAX_COLUMNS, "{}: {line}", verb.path);
        }
    }
}

#[test]
fn every_verb_has_two_examples_that_parse() {
    for verb in verbs() {
        let least = if verb.is_group() { 1 } else { 2 };
        let [short, long] = verb.helps();
        for help in [&short, &long] {
            let (_, shown) = help.rsplit_once("Examples:\n").unwrap_or_else(|| {
                panic!("`{}` has no examples", verb.path);
            });
            let shown: Vec<&str> = shown.lines().take_while(|line| !line.is_empty()).collect();
            assert!(shown.len() >= least, "{}: {shown:?}", verb.path);
            for line in shown {
                let parsed = sealane_cli::parse(words(line).into_iter().map(Into::into));
                if let Err(error) = parsed {
                    assert!(!error.use_stderr(), "{line}: {error}");
                }
            }
        }
    }
}

/// The shared options stand below the same headings, in the same order, behind the verb's own
/// options.
#[test]
fn shared_options_stand_together_in_one_order() {
    const HEADINGS: [&str; 6] =
        ["Arguments:", "Options:", "Vault:", "Keys:", "Connection:", "For every verb:"];
    let is_other = |path: &str| path.ends_with(" bench") || path.ends_with(" sim");
    for verb in verbs().iter().filter(|verb| !is_other(&verb.path)) {
        let [help, _] = verb.helps();
        let is_heading = |line: &&str| HEADINGS.contains(line);
        let shown: Vec<&str> = help.lines().filter(is_heading).collect();
        let place = |line: &&str| HEADINGS.iter().position(|heading| heading == line);
        assert!(shown.iter().map(place).is_sorted(), "{}: {shown:?}", verb.path);
        let (own, shared) = help.split_once("For every verb:").unwrap_or((&help, ""));
        for option in ["--json", "--config"] {
            assert!(!own.contains(&format!("  {option} ")), "{}: {option}", verb.path);
            assert!(shared.contains(&format!("  {option} ")), "{}: {option}", verb.path);
        }
    }
}

#[test]
fn what_others_call_a_verb_is_understood() {
    let home = tempfile::tempdir().unwrap();
    for (typed, meant) in [
        ("publish a", "sealane pub "),
        ("subscribe a", "sealane sub "),
        ("server", "sealane up "),
        ("stream list", "sealane stream ls "),
        ("stream add a", "sealane stream new "),
        ("stream create a", "sealane stream new "),
        ("stream delete a", "sealane stream rm "),
        ("stream purge a", "sealane stream purge "),
        ("consumer delete a b", "sealane consumer rm "),
        ("token delete a", "sealane token revoke "),
        ("group show a", "sealane group show "),
        ("vault backup a", "sealane vault put "),
        ("vault restore", "sealane vault get "),
        ("vault snapshots", "sealane vault ls "),
        ("vault list", "sealane vault ls "),
        ("vault delete 1", "sealane vault forget "),
        ("vault check", "sealane vault verify "),
    ] {
        let words = typed.split(' ').chain(["--help"]);
        let output = sealane(home.path()).args(words).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let usage = help.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
        assert!(format!("{usage} ").starts_with(&format!("Usage: {meant}")), "{typed}: {usage}");
    }
}

#[test]
fn help_and_version_are_verbs_too() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| sealane(home.path()).args(args).output().unwrap();
    let said = |args: &[&str]| {
        let output = run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&["help"]), said(&["--help"]));
    assert_eq!(said(&["help", "stream", "set"]), said(&["stream", "set", "--help"]));
    assert_eq!(said(&["version"]), said(&["--version"]));
    assert!(said(&["version", "--json"]).contains("\"commit\":"));
    let wrong = run(&["help", "strem"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("'stream'"), "{wrong:?}");
}

/// Examples that a test cannot run to their end, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("sealane up", "goes on"),
    ("sealane demo", "takes its time, and has a test of its own"),
    ("sealane bench", "is another program"),
    ("sealane sim", "is another program"),
    ("sealane sub 'fleet/**' --from first", "goes on"),
    ("sealane reply 'lamps/*'", "goes on"),
    ("sealane reply lamps/3 --command", "is run beside the request"),
    ("sealane group beat --beater", "goes on"),
    ("sealane key new alice --passphrase", "asks on a terminal"),
    ("sealane vault key passphrase", "asks on a terminal"),
    ("sealane key passphrase", "asks on a terminal"),
    ("sealane mesh", "needs an interface"),
    ("sealane doc", "needs a `sealane mesh up`"),
    ("sealane emergency", "needs a `sealane mesh up`"),
    ("sealane relay", "needs links"),
    ("sealane gateway", "needs links and a hub"),
    ("sealane vault init --vault s3:", "needs a bucket"),
    ("sealane vault import", "needs a store of another program"),
    ("sealane vault key identity sealane1qyqszq", "is no whole key"),
    ("sealane vault key rm", "needs the id of a slot"),
    ("sealane top", "goes on"),
    ("tcpdump", "needs rights"),
];

/// The content of the folder before an example, as lines of a shell.
const BEFORE: &[(&str, &str)] = &[
    ("sealane pub orders - <", "printf '1\\n2\\n3\\n4\\n5\\n' > orders.jsonl"),
    (
        "sealane delayed cancel orders bill-18",
        "sealane pub orders '{\"id\":\"bill-18\"}' --delay 1h",
    ),
    ("sealane request", "sealane reply lamps/3 on --consumer lamp -n 1 > /dev/null &"),
    ("sealane consumer info orders --inbox", "sealane sub orders --inbox -n 1"),
    ("sealane stream rm orders --yes", "sealane stream new orders"),
    ("sealane key restore", "rm -rf keys; export SEALANE_KEYS=./keys"),
    ("sealane key backup --keys", "cp -a .config/sealane/keys keys"),
    (
        "sealane group invite fleet bob",
        "for who in bob carol clock fresh; do
        sealane key new $who --keys $who; sealane key card --keys $who > $who.card; done
        sealane key show --public --keys bob | sed -n 's/^public key  //p' > bob.public",
    ),
    ("sealane group join bob", "export SEALANE_KEYS=bob"),
    ("sealane group join carol", "export SEALANE_KEYS=carol"),
    ("sealane group relay-card fleet --keys", "rm -rf keys; cp -a .config/sealane/keys keys"),
    ("sealane group heal", "sealane key card --keys bob > fresh.card"),
    ("sealane group apply", "export SEALANE_KEYS=bob"),
    ("sealane policy check policy.toml", "echo 'version = 1' > policy.toml"),
    ("sealane restore /backup", "export SEALANE_DATA=./elsewhere"),
    ("sealane vault init", "mkdir documents; echo hello > documents/letter.txt"),
    (
        "sealane inspect frame.bin",
        "printf '\\000\\001\\000\\005\\200\\006\\000\\000\\377' > frame.bin",
    ),
    ("sealane vault key passphrase --new", "echo second > second"),
    ("sealane key passphrase --new", "echo second > new-passphrase"),
];

#[test]
fn every_example_works() {
    let node = NodeProcess::start();
    let programs = node.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(PROGRAM, programs.join("sealane")).unwrap();
    let of = |list: &[(&str, &'static str)], line: &str| {
        list.iter().find(|(start, _)| line.starts_with(start)).map(|(_, text)| *text)
    };
    let (mut count, mut failed) = (0, String::new());
    for line in args::every_example().filter(|line| of(NOT_RUN, line).is_none()) {
        let before = of(BEFORE, line).unwrap_or_default();
        failed.extend(run(&node, &programs, &format!("{before}\n{line}")));
        count += 1;
    }
    assert!(failed.is_empty(), "{failed}");
    assert!(count > 150, "{count} examples");
}

/// Runs an example, and gives what is wrong with it.
fn run(node: &NodeProcess, programs: &Path, script: &str) -> Option<String> {
    let backup = node.home().join("outside");
    let script = script.replace("127.0.0.1:9087", &node.address);
    let script = script.replace("/backup", &backup.display().to_string());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(node.home()).env_clear().stdin(Stdio::null());
    shell.env("PATH", format!("{}:/usr/bin:/bin", programs.display())).env("HOME", node.home());
    shell.env("SEALANE_SERVER", &node.address).env("SEALANE_DATA", node.home().join("data"));
    shell.env("SEALANE_VAULT", backup.join("vault")).env("SEALANE_PASSPHRASE", "correct horse");
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| format!("{script}: {said}\n"))
}
