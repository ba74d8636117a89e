use std::fs;
use std::path::Path;
use std::process::Output;

use sealane::Value;

use crate::cli::{json, sealane, text};

fn run(home: &Path, args: &[&str]) -> Output {
    sealane(home).args(args).output().unwrap()
}

fn stdout(home: &Path, args: &[&str]) -> String {
    let output = run(home, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_code_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let all = stdout(home.path(), &["explain", "--json"]);
    let texts = |row: &Value| ["code", "name", "cause", "hint", "retry"].map(|key| text(row, key));
    let mut shown: Vec<_> = all.lines().map(|line| texts(&json(line))).collect();
    shown.sort();
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/errors.json");
    let Value::Array(rows) = json(&fs::read_to_string(list).unwrap()) else { panic!("no list") };
    assert_eq!(shown.len(), rows.len());
    for (shown, row) in shown.iter().zip(&rows) {
        assert_eq!(shown, &texts(row));
    }
    for name in ["sl-hub-09", "offsetmismatch"] {
        assert!(stdout(home.path(), &["explain", name]).starts_with("SL-HUB-09 OffsetMismatch\n"));
    }
    let busy = stdout(home.path(), &["explain", "StorageBusy"]);
    assert!(busy.ends_with("names that process.\n  it may succeed later\n"), "{busy}");
    let unknown = run(home.path(), &["explain", "SL-NONE-01"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("[SL-CLI-09]"));
}

#[test]
fn completions_and_man_pages_are_made() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(stdout(home.path(), &["completions", shell]).contains("sealane"), "{shell}");
    }
    assert!(stdout(home.path(), &["man"]).contains(".TH sealane"));
    let folder = home.path().join("man");
    stdout(home.path(), &["man", "--to", folder.to_str().unwrap()]);
    for page in ["sealane.1", "sealane-pub.1", "sealane-stream-set.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
}

#[test]
fn the_page_of_the_documentation_is_not_stale() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/CLI.md");
    let is = fs::read_to_string(page).unwrap();
    assert!(
        is == sealane_cli::pages::markdown(),
        "write it anew: cargo run -- man --markdown > docs/reference/CLI.md"
    );
}

#[test]
fn settings_come_from_the_nearest_source() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/sealane");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config.toml");
    fs::write(&file, "server = \"file:1\"\nlevel = \"os\"\n").unwrap();
    let show = |extra: &[&str]| {
        let mut command = sealane(home.path());
        command.env("SEALANE_LEVEL", "memory").args(["config", "show", "--origin"]).args(extra);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let shown = show(&[]);
    let in_file = format!("server = \"file:1\"  # file {}\n", file.display());
    assert!(shown.contains(&in_file), "{shown}");
    assert!(shown.contains("level = \"memory\"  # environment SEALANE_LEVEL\n"), "{shown}");
    assert!(shown.contains("listen = \"127.0.0.1:9087\"  # default\n"), "{shown}");
    assert!(show(&["--server", "flag:1"]).contains("server = \"flag:1\"  # flag\n"));
    let other = home.path().join("other.toml");
    fs::write(&other, "codec = \"cbor\"\n").unwrap();
    assert!(show(&["--config", other.to_str().unwrap()]).contains("codec = \"cbor\"  # file"));
    let line = stdout(home.path(), &["config", "show", "--json"]);
    assert_eq!(text(&json(line.lines().next().unwrap()), "origin").split(' ').next(), Some("file"));
}

#[test]
fn a_wrong_setting_names_itself_and_its_origin() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("c.toml");
    fs::write(&file, "sever = \"x\"\n").unwrap();
    let output = run(home.path(), &["config", "show", "--config", file.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("`sever`") && said.contains("server, data, listen"), "{said}");
    let mut up = sealane(home.path());
    let output = up.env("SEALANE_LEVEL", "ram").arg("up").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("`level` (environment SEALANE_LEVEL) is `ram`"), "{said}");
    let missing = run(home.path(), &["config", "show", "--config", "/nonexistent/c.toml"]);
    assert_eq!(missing.status.code(), Some(2));
}
