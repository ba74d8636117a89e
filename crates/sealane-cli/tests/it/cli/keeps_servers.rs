//! `sealane vault` on a server: streams and programs, places of any name, and what is said of what
//! is no loss.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::{Output, Stdio};

use super::keeps_vaults::{Home, failed};
use crate::cli::json;
use sealane::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a verb with standard input.
fn fed(home: &Home, args: &[&str], input: &[u8]) -> Output {
    let mut command = home.vault(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn a_stream_is_one_file() {
    let home = Home::new().init();
    let output = fed(&home, &["put", "--stdin", "--name", "db.sql"], b"CREATE TABLE a;\n");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(home.run(&["dump", "latest", "db.sql"]), "CREATE TABLE a;\n");
    home.run(&["put", "--stdin-command", "--name", "log", "--", "printf", "%s", "of a program"]);
    assert_eq!(home.run(&["dump", "latest", "log"]), "of a program");
    let both = ["put", "--stdin", "--passphrase-file", "-"];
    let (code, said) = failed(fed(&home, &both, b"secret\n"));
    assert!(code == 2 && said.contains("at once"), "{said}");
    let (code, _) = failed(home.vault(&["put"]).output().unwrap());
    assert_eq!(code, 2);
}

#[test]
fn a_program_that_fails_leaves_no_snapshot() {
    let home = Home::new().init();
    // It has written a part, as a dump of a database that breaks off.
    let script = "printf half; exit 3";
    for command in [&["sh", "-c", script][..], &["no such program"]] {
        let args = [&["put", "--stdin-command", "--name", "db.sql", "--"][..], command].concat();
        let (code, said) = failed(home.vault(&args).output().unwrap());
        assert!(code == 1 && said.contains("SL-CLI-34"), "{said}");
        assert!(said.contains(command[0]) && said.contains("nothing was kept"), "{said}");
    }
    assert!(home.run(&["ls", "--json"]).is_empty());
}

#[test]
fn what_is_no_loss_is_said_and_no_failure() {
    let home = Home::new().init();
    let _socket = UnixListener::bind(home.path().join("docs/S.agent")).unwrap();
    let output = home.vault(&["put", ".", "--exclude", "/.*"]).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("S.agent`: a socket"), "{said}");
    assert!(said.contains("store`: the vault itself"), "{said}");
    let told = json(&home.run(&["put", "docs", "--json"]));
    let Some(Value::Array(passed)) = told.field("passed") else { panic!("{told:?}") };
    assert_eq!(passed.len(), 1);
    let quiet = home.vault(&["put", "docs", "--quiet"]).output().unwrap();
    assert!(quiet.status.success());
    assert_eq!((quiet.stdout, text(&quiet.stderr)), (vec![], String::new()));
    // Data is still given, and a fault is still named.
    assert!(!home.run(&["ls", "-q"]).is_empty());
    let (_, said) = failed(home.vault(&["get", "7", "--to", "back", "-q"]).output().unwrap());
    assert!(said.contains("SL-VAULT-26"), "{said}");
}

#[test]
fn paths_of_the_host_and_two_of_one_name() {
    let home = Home::new().init();
    fs::create_dir_all(home.path().join("other/docs")).unwrap();
    fs::write(home.path().join("other/docs/letter.txt"), "another").unwrap();
    let on_host = home.path().canonicalize().unwrap().join("docs/letter.txt");
    let on_host = on_host.to_str().unwrap();
    home.run(&["put", "docs"]);
    assert_eq!(home.run(&["dump", "1", on_host]), "dear reader");
    assert!(home.run(&["ls", "1", on_host]).ends_with(" docs/letter.txt\n"));
    assert_eq!(home.run(&["get", "1", on_host, "--range", "5+6"]), "reader");
    home.run(&["put", "docs", "other/docs"]);
    assert_eq!(home.run(&["dump", "latest", on_host]), "dear reader");
    home.run(&["get", "2", on_host, "--to", "back"]);
    let restored = home.path().join("back").join(&on_host[1..]);
    assert_eq!(fs::read_to_string(restored).unwrap(), "dear reader");
}

#[test]
fn a_bound_on_what_is_sent_is_for_buckets() {
    let home = Home::new().init();
    for (rate, why) in [("1MiB", "bucket"), ("0", "nothing at all"), ("fast", "10kB or 64MiB")] {
        let args = ["put", "docs", "--limit-upload", rate];
        let (code, said) = failed(home.vault(&args).output().unwrap());
        assert!(code == 2 && said.contains(why), "{said}");
    }
}
