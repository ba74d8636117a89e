//! Verbs that open a data folder act on the node in use, or refuse by name. They do not take the
//! default folder while a flag, a variable or a context names another hub. `backup` and `token` ask
//! that hub.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;

use sealane::Value;
use sealane_testing::until;

use crate::cli::{NodeProcess, json, sealane, text};

/// The default data folder of a user.
fn default_folder(home: &Path) -> PathBuf {
    home.join(".local/share/sealane")
}

/// A user who has tried a node in the default folder, and uses another hub by a context.
fn used() -> (NodeProcess, tempfile::TempDir) {
    let (production, home) = (NodeProcess::start(), tempfile::tempdir().unwrap());
    production.run(&["pub", "fleet/7", "hello"]);
    let folder = default_folder(home.path());
    let (mut child, _) = NodeProcess::spawn_on(home.path(), &folder, "127.0.0.1:0");
    child.kill();
    let add = ["context", "add", "prod", "--server", &production.address, "--use"];
    assert!(run(home.path(), &add).status.success());
    (production, home)
}

fn run(home: &Path, args: &[&str]) -> Output {
    sealane(home).args(args).output().unwrap()
}

fn refused(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("[SL-CLI-30]") && said.contains("--data"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_verb_refuses_a_folder_that_is_not_the_hubs_in_use() {
    let (production, home) = used();
    let copy = home.path().join("copy").display().to_string();
    let other = default_folder(home.path()).display().to_string();
    for args in [
        &["restore", &copy][..],
        &["explain", "access", "app", "fleet/7"],
        // A folder and a hub that are named alike, and are two nodes.
        &["backup", &copy, "--data", &other, "--server", &production.address],
        &["token", "ls", "--data", &other, "--server", &production.address],
    ] {
        refused(&run(home.path(), args));
    }
    assert!(!Path::new(&copy).exists(), "nothing was made");
}

#[test]
fn a_copy_and_a_token_are_of_the_hub_in_use_on_whatever_machine() {
    let (production, home) = used();
    let data = production.home().join("data").display().to_string();
    let here = |args: &[&str]| {
        let made = run(home.path(), &[&["--json", "token", "--data", &data], args].concat());
        assert!(made.status.success(), "{made:?}");
        text(&json(&String::from_utf8(made.stdout).unwrap()), "token")
    };
    // The first token is made on the node's machine.
    let first = run(home.path(), &["token", "new", "app", "--publish", "**"]);
    assert_eq!(first.status.code(), Some(4), "{first:?}");
    let root = here(&["new", "root", "--admin"]);
    let reader = here(&["new", "reader", "--read", "**", "--observe"]);
    let by = |token: &str, args: &[&str]| {
        sealane(home.path()).env("SEALANE_TOKEN", token).args(args).output().unwrap()
    };
    until("the node has seen its tokens", || {
        run(home.path(), &["token", "ls"]).status.code() == Some(4)
    });
    let copy = home.path().join("copy").display().to_string();
    for args in [&["token", "ls"][..], &["token", "revoke", "root"], &["backup", &copy]] {
        let refused = by(&reader, args);
        assert_eq!(refused.status.code(), Some(4), "{args:?}: {refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("admin on the node"));
    }
    let made = by(
        &root,
        &["--json", "token", "new", "app", "--publish", "fleet/**", "--share", "streams=7"],
    );
    let app = text(&json(&String::from_utf8(made.stdout).unwrap()), "token");
    assert!(by(&app, &["pub", "fleet/7", "again"]).status.success(), "it holds at once");
    let listed = String::from_utf8(by(&root, &["token", "ls"]).stdout).unwrap();
    assert!(listed.contains("  publish  fleet/**\n"), "{listed}");
    assert!(listed.contains("  share    streams: 0 of 7\n") && listed.contains("  admin\n"));
    assert!(!listed.contains(&app));
    let copied = by(&root, &["--json", "backup", &copy]);
    let said = json(&String::from_utf8(copied.stdout).unwrap());
    // Beside the two of the stream there are those of the node's audit.
    assert!(said.field("messages").and_then(Value::as_u64) >= Some(2), "{said:?}");
    // The copy has the tokens of that node, as the copy of a folder has.
    let tokens = std::fs::read(Path::new(&copy).join("tokens.toml")).unwrap();
    assert_eq!(tokens, std::fs::read(Path::new(&data).join("tokens.toml")).unwrap());
    let again = by(&root, &["backup", &copy]);
    assert!(!again.status.success(), "a copy is never replaced");
    assert!(by(&root, &["token", "revoke", "app"]).status.success());
    assert_eq!(by(&app, &["pub", "fleet/7", "again"]).status.code(), Some(4));
    // Nothing was made or read in the default folder.
    assert!(!default_folder(home.path()).join("tokens.toml").exists());
    let other = home.path().join("other").display().to_string();
    let away = by(&root, &["backup", &other, "--server", "127.0.0.1:1"]);
    assert_eq!(away.status.code(), Some(3), "{away:?}");
    let restored = home.path().join("restored").display().to_string();
    assert!(run(home.path(), &["restore", &copy, "--data", &restored]).status.success());
}

/// A hub, or a proxy before it, that ends the transfer of a copy where it wants.
#[test]
fn a_copy_that_is_cut_off_is_an_error_and_leaves_no_file() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heads = [
        // Less than was promised, and an end that nobody promised.
        "HTTP/1.1 200 OK\r\ncontent-length: 40960\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
    ];
    let serving = std::thread::spawn(move || {
        for head in heads {
            loop {
                let mut socket = BufReader::new(listener.accept().unwrap().0);
                let mut asked = String::new();
                socket.read_line(&mut asked).unwrap();
                let mut line = String::new();
                while socket.read_line(&mut line).unwrap() > 2 {
                    line.clear();
                }
                let is_copy = asked.contains("streams.db");
                let reply = match (is_copy, asked.contains("tokens.toml")) {
                    (true, _) => format!("{head}SQLite format 3 and no more"),
                    (_, true) => {
                        "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nversion = 1\n".to_owned()
                    }
                    _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
                };
                let _ = socket.get_mut().write_all(reply.as_bytes());
                if is_copy {
                    break;
                }
            }
        }
    });
    for _ in heads {
        let home = tempfile::tempdir().unwrap();
        let copy = home.path().join("copy");
        let to = copy.display().to_string();
        let output = run(home.path(), &["backup", &to, "--server", &address]);
        assert!(!output.status.success(), "{output:?}");
        let left: Vec<_> = std::fs::read_dir(&copy).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
    serving.join().unwrap();
}

#[test]
fn a_verb_acts_on_the_folder_that_is_named_or_is_the_hubs() {
    let (production, home) = used();
    let (data, copy) = (production.home().join("data"), home.path().join("copy"));
    let (data, copy) = (data.display().to_string(), copy.display().to_string());
    let said = run(home.path(), &["--json", "backup", &copy, "--data", &data]);
    let said = json(&String::from_utf8(said.stdout).unwrap());
    assert_eq!(said.field("messages").and_then(Value::as_u64), Some(1));
    // The folder and the hub may both be named, if they are one node.
    let both = ["token", "ls", "--data", &data, "--server", &production.address];
    assert!(run(home.path(), &both).status.success());
    let other = default_folder(home.path()).display().to_string();
    refused(&run(home.path(), &["token", "ls", "--data", &other, "-s", &production.address]));
    // Without a context the folder and the hub of one user belong together.
    assert!(run(home.path(), &["context", "use", "--none"]).status.success());
    assert!(run(home.path(), &["token", "ls"]).status.success());
    // So do a hub that is named and the folder on which it runs.
    let folder = default_folder(home.path());
    let (mut child, address) = NodeProcess::spawn_on(home.path(), &folder, "127.0.0.1:0");
    let listed = run(home.path(), &["token", "ls", "--server", &address]);
    child.kill();
    assert!(listed.status.success(), "{listed:?}");
}

/// A variable that names one node's folder and one that names another's hub are two nodes, and so
/// is a folder on which no node has run.
#[test]
fn only_a_flag_goes_unasked() {
    let (production, home) = used();
    let (folder, address) = (default_folder(home.path()), production.address.clone());
    let empty = home.path().join("empty");
    let by_variable = |data: &Path, args: &[&str]| {
        let mut verb = sealane(home.path());
        verb.env("SEALANE_SERVER", &address).env("SEALANE_DATA", data);
        verb.args(args).output().unwrap()
    };
    assert!(run(home.path(), &["context", "use", "--none"]).status.success());
    refused(&by_variable(&folder, &["token", "ls"]));
    refused(&by_variable(&empty, &["token", "ls"]));
    // The variable outranks the context, and is asked all the same.
    assert!(run(home.path(), &["context", "use", "prod"]).status.success());
    let listed = sealane(home.path()).env("SEALANE_DATA", &folder).args(["token", "ls"]).output();
    refused(&listed.unwrap());
    let folder = folder.display().to_string();
    assert!(run(home.path(), &["token", "ls", "--data", &folder]).status.success());
    // A store may be made anew beside the hub that runs.
    let copy = home.path().join("copy").display().to_string();
    let data = production.home().join("data").display().to_string();
    assert!(run(home.path(), &["backup", &copy, "--data", &data]).status.success());
    assert!(by_variable(&empty, &["restore", &copy]).status.success());
}

#[test]
fn the_doctor_is_bad_when_hub_and_folder_are_two_nodes() {
    let (production, home) = used();
    let verdict = |args: &[&str]| {
        let output = run(home.path(), &[&["--json", "doctor"], args].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        let found = said.lines().map(json).find(|found| text(found, "check") == "node");
        let found = found.map(|found| (text(&found, "verdict"), text(&found, "said")));
        (output.status.success(), found)
    };
    let (is_well, found) = verdict(&[]);
    assert!(!is_well);
    let (verdict_of, said) = found.unwrap();
    assert_eq!(verdict_of, "bad");
    assert!(said.contains(&production.address) && said.contains("two nodes"), "{said}");
    let data = production.home().join("data").display().to_string();
    let (_, found) = verdict(&["--data", &data]);
    let (verdict_of, said) = found.unwrap();
    assert_eq!(verdict_of, "ok", "{said}");
    // Both say the same id.
    let status = json(&production.run(&["--json", "status"]));
    assert!(said.contains(&text(&status, "store")), "{said}");
    let (is_well, found) = verdict(&["--remote"]);
    assert!(is_well && found.is_none());
}
