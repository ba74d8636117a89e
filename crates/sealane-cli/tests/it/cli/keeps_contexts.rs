//! Contexts: which hub a command speaks to, by whose word, and what goes to no other hub.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::cli::{NodeProcess, json, sealane, text};
use sealane_testing::TestProcess;

fn run(home: &Path, args: &[&str]) -> Output {
    sealane(home).args(args).output().unwrap()
}

fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The setting `name` and where it comes from.
fn setting(home: &Path, name: &str, args: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = sealane(home);
    command.args(["config", "show", "--origin"]).args(args).envs(environment.iter().copied());
    let shown = done(command.output().unwrap());
    let line = shown.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
    line.unwrap_or_else(|| panic!("{shown}")).to_owned()
}

const SECRET: &str = "sealane_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Two contexts, of which none is in use.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("token"), format!("{SECRET}\n")).unwrap();
    let token = home.path().join("token").display().to_string();
    let field = ["context", "add", "field", "--server", "field:1", "--token-file", &token];
    done(run(home.path(), &[&field[..], &["--codec", "cbor"]].concat()));
    done(run(home.path(), &["context", "add", "ship", "--server", "ship:1"]));
    home
}

#[test]
fn the_nearest_word_says_which_hub_it_is() {
    let home = home();
    let server = |args: &[&str], environment: &[(&str, &str)]| {
        setting(home.path(), "server", args, environment)
    };
    assert_eq!(server(&[], &[]), "\"127.0.0.1:9087\"  # default");
    assert_eq!(done(run(home.path(), &["context", "use", "field"])), "field is in use\n");
    assert_eq!(server(&[], &[]), "\"field:1\"  # context field");
    assert_eq!(setting(home.path(), "codec", &[], &[]), "\"cbor\"  # context field");
    let environment = [("SEALANE_SERVER", "variable:1")];
    assert_eq!(server(&[], &environment), "\"variable:1\"  # environment SEALANE_SERVER");
    assert_eq!(server(&["--context", "ship"], &environment), "\"ship:1\"  # context ship");
    assert_eq!(server(&["--context", "ship", "-s", "flag:1"], &environment), "\"flag:1\"  # flag");
    let other = [("SEALANE_CONTEXT", "ship")];
    assert_eq!(server(&[], &other), "\"ship:1\"  # context ship");
    assert_eq!(server(&["--context", "field"], &other), "\"field:1\"  # context field");
    done(run(home.path(), &["context", "use", "--none"]));
    assert_eq!(server(&[], &[]), "\"127.0.0.1:9087\"  # default");
}

/// A token that is shown to another hub is lost.
#[test]
fn a_token_goes_to_the_hub_of_its_context_alone() {
    let home = home();
    let token = |args: &[&str]| setting(home.path(), "token", args, &[]);
    done(run(home.path(), &["context", "use", "field"]));
    assert_eq!(token(&[]), "\"(set)\"  # context field");
    assert_eq!(token(&["--server", "other:1"]), "\"\"  # default");
    assert_eq!(token(&["--context", "ship"]), "\"\"  # default");
    // Neither does that of the configuration file go to the hub of a context.
    let file = home.path().join("config.toml");
    std::fs::write(&file, format!("token = \"{SECRET}\"\nserver = \"file:1\"\n")).unwrap();
    let named = ["--config", file.to_str().unwrap()];
    assert_eq!(token(&[&named[..], &["--context", "ship"]].concat()), "\"\"  # default");
    done(run(home.path(), &["context", "use", "--none"]));
    assert_eq!(token(&named), format!("\"(set)\"  # file {}", file.display()));
    // It is shown nowhere.
    let shown = done(run(home.path(), &["context", "ls", "--json"]));
    assert!(!shown.contains(SECRET) && shown.contains("/token\""), "{shown}");
}

#[test]
fn contexts_are_listed_replaced_and_removed() {
    let home = home();
    let list = || done(run(home.path(), &["context", "ls"]));
    done(run(home.path(), &["context", "use", "ship"]));
    let lines: Vec<String> = list().lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("  CONTEXT") && lines[1].starts_with("  field"), "{lines:?}");
    assert!(lines[2].starts_with("* ship "), "{lines:?}");
    let again = ["context", "add", "ship", "--server", "ship:2", "--use"];
    assert_eq!(done(run(home.path(), &again)), "ship is replaced\n");
    let all = done(run(home.path(), &["context", "ls", "--json"]));
    let ship = json(all.lines().nth(1).unwrap());
    assert_eq!(
        (text(&ship, "server").as_str(), ship.field("used")),
        ("ship:2", Some(&true.into()))
    );
    assert_eq!(done(run(home.path(), &["context", "rm", "ship"])), "ship is removed\n");
    assert!(!list().contains("ship"), "{}", list());
    assert_eq!(run(home.path(), &["context", "rm", "ship"]).status.code(), Some(2));
    let path = home.path().join(".config/sealane/contexts.toml");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&path, "use = 3\n").unwrap();
    let broken = run(home.path(), &["context", "ls"]);
    let said = String::from_utf8(broken.stderr).unwrap();
    assert!(said.contains("contexts.toml: `use` is not text in quotes [SL-CLI-03]"), "{said}");
}

/// Nothing of what two commands add at once is lost.
#[test]
fn commands_at_once_add_all_their_contexts() {
    let home = home();
    let add = |n: usize| {
        let mut command = sealane(home.path());
        command.args(["context", "add", &format!("c{n}"), "--server", "a:1"]).spawn().unwrap()
    };
    let children: Vec<_> = (0..8).map(add).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(done(run(home.path(), &["context", "ls"])).lines().count(), 1 + 2 + 8);
}

/// The steps that `cert self-signed` names are done, and the hub is reached.
#[test]
fn a_self_signed_certificate_is_trusted_by_a_context() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let tls = home.join("tls").display().to_string();
    let made =
        json(&done(run(home, &["--json", "cert", "self-signed", "localhost", "--to", &tls])));
    let (certificate, key) = (text(&made, "certificate"), text(&made, "key"));
    assert_eq!(Path::new(&key).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut up = sealane(home);
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(home.join("data"));
    up.args(["--tls-cert", &certificate, "--tls-key", &key]);
    let (process, line) = TestProcess::started(&mut up);
    let address = text(&json(&line), "address");
    let port = address.rsplit(':').next().unwrap().to_owned();
    let node = NodeProcess { folder, process, address };
    let home = node.home();
    let server = format!("https://localhost:{port}");
    let add = ["context", "add", "own", "--server", &server, "--ca", &certificate, "--use"];
    done(run(&home, &add));
    assert!(done(run(&home, &["pub", "a", "{}"])).starts_with("a offset 0 "));
    // Without it, and by another name, it is said what is wrong.
    for (args, code) in
        [(["--server", &server], "SL-CLIENT-23"), (["--server", &node.address], "SL-NODE-18")]
    {
        let output = run(&home, &[&["pub", "a", "{}"], &args[..]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(code), "{said}");
    }
}
