//! The README's lines and snippets do what it says, in the order in which it says them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::markdown::{Line, blocks, lines};
use super::stage::{self, Stage};

#[path = "../../../../../examples/follow.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod follow;

const PAGE: &str = include_str!("../../../../../README.md");
const FOLLOW: &str = include_str!("../../../../../examples/follow.rs");

/// The result of a line.
enum Then {
    /// It builds; `tests/newcomer.sh` runs it in a clean clone.
    Builds,
    /// It is the node.
    IsTheNode,
    /// It goes on, and shows this at some time.
    GoesOn(&'static str),
    /// It ends well, and has written this.
    Writes(&'static str),
}

use Then::{Builds, GoesOn, IsTheNode, Writes};

/// How each line begins that the README says is typed, in its order, and what comes of it.
const LINES: &[(&str, Then)] = &[
    ("cargo install --locked --path crates/sealane-cli", Builds),
    ("sealane up", IsTheNode),
    ("sealane sub 'fleet/**'", GoesOn("")),
    ("sealane pub fleet/7/location", Writes("fleet/7/location")),
    ("curl -H", Writes("\"offset\":1")),
    ("sealane sub fleet/7/location --from first -n 2", Writes("48.3")),
    ("curl -N", GoesOn("48.3")),
    ("sealane key new alice && sealane group new fleet", Writes("")),
    ("sealane key new bob && sealane key card > bob.card", Writes("")),
    ("sealane group invite fleet bob.card > bob.invite", Writes("")),
    ("sealane group join bob.invite", Writes("")),
    ("sealane pub fleet/7/orders '{\"go\": \"home\"}' --group fleet", Writes("fleet/7/orders")),
    ("sealane sub fleet/7/orders --from first --group fleet", GoesOn("home")),
    ("sealane stream leaks fleet/7/orders", Writes("")),
    ("sealane group revoke fleet bob", Writes("")),
    ("cargo install --locked --path crates/sealane-bench", Builds),
    ("sealane sub fleet/7/location --from first --until-end --raw >", Writes("")),
    ("sealane bench cost messages.jsonl --html", Writes("")),
    ("sealane vault init", Writes("")),
    ("sealane vault put", Writes("")),
    ("sealane vault drill", Writes("")),
];

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn what_it_says_is_typed_does_it() {
    stage::enter("pages::readme::as_process_lines_in_their_order");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_lines_in_their_order() {
    let mut stage = Stage::new();
    fs::create_dir(stage.work().join("docs")).unwrap();
    fs::write(stage.work().join("docs/page.md"), "a page\n").unwrap();
    let shell = blocks(PAGE).into_iter().filter(|block| block.language == "sh");
    let typed: Vec<Line> = shell.flat_map(|block| lines(&block.text)).collect();
    assert_eq!(typed.len(), LINES.len(), "LINES has another number of lines than the README");
    let mut follower = None;
    for (Line { who, typed, .. }, (begins, then)) in typed.iter().zip(LINES) {
        assert!(typed.starts_with(begins), "`{typed}` stands where LINES has `{begins}`");
        match then {
            Builds => builds(typed),
            IsTheNode => drop(stage.up(who, typed)),
            GoesOn(part) => {
                let running = stage.start(who, typed);
                stage.wait_for(running, part);
                if follower.is_none() {
                    stage.wait_for_readers(running, 1);
                    follower = Some(running);
                }
            }
            Writes(part) => {
                let written = stage.run(who, typed);
                assert!(written.contains(part), "`{typed}` wrote {written}");
            }
        }
    }
    let follower = follower.unwrap();
    stage.wait_for(follower, "48.2");
    stage.wait_for(follower, "48.3");
    what_follows_from_it(&stage);
}

/// The README's claims beside its lines.
fn what_follows_from_it(stage: &Stage) {
    let page = stage.run("reader", &format!("curl -s http://{}/", stage::HUB));
    assert!(page.contains("<html") && page.contains(".js"), "the console is no page: {page}");
    let leaks = stage.run("carol", "sealane stream leaks fleet/7/orders");
    assert!(leaks.contains("sequence") && !leaks.contains("home"), "{leaks}");
    stage.run("alice", "sealane pub fleet/7/orders '{\"go\": \"on\"}' --group fleet");
    let bob = "sealane sub fleet/7/orders --from first --until-end --group fleet --raw";
    let bob = stage.ends("bob", bob).output;
    assert!(!bob.contains("\"on\""), "who was removed reads {bob}");
    let cost = fs::read_to_string(stage.work().join("cost.html")).unwrap();
    assert!(cost.contains("<svg"), "cost.html has no chart");
}

/// A line that builds names a package that is there, and a profile. It takes the versions that were
/// tested: without `--locked` cargo takes the newest ones that there are.
fn builds(line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["cargo", "install", "--locked", "--path", path, "--profile", profile] = words[..] else {
        panic!("`{line}` is not understood");
    };
    assert!(root().join(path).join("Cargo.toml").is_file(), "{path} is no package");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains(&format!("[profile.{profile}]")), "there is no profile {profile}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The one snippet in this language.
fn snippet(language: &str) -> String {
    let mut found = blocks(PAGE).into_iter().filter(|block| block.language == language);
    let snippet = found.next().unwrap_or_else(|| panic!("there is no snippet in {language}"));
    assert!(found.next().is_none(), "there are two snippets in {language}");
    snippet.text
}

/// The words between backticks that begin so.
fn inline(begin: &str) -> &'static str {
    let mut found = PAGE.split('`').filter(|words| words.starts_with(begin));
    found.next().unwrap_or_else(|| panic!("the README does not say `{begin}…`"))
}

/// More messages than a snippet that tops up no credit would be given.
const MESSAGES: usize = 300;

/// A node with that many, the last of them with the latitude that a reader waits for.
fn with_messages(stage: &mut Stage, node: &str) {
    stage.up("reader", node);
    let all = (0..MESSAGES).map(|n| format!("{{\"lat\": {n}}}\n")).collect::<String>();
    fs::write(stage.work().join("places"), all).unwrap();
    stage.run("reader", "sealane pub fleet/7/location - < places");
}

fn last() -> String {
    format!("lat: {}", MESSAGES - 1)
}

/// A folder of the repository's npm packages, or the words that say how they come.
fn modules() -> PathBuf {
    let folder = root().join("tests/js/node_modules");
    assert!(folder.join("ws").exists(), "npm packages are missing; run: cargo xtask needs");
    folder
}

#[test]
#[ignore = "lab: needs unshare (a network of its own), Node.js and npm packages"]
fn its_javascript_runs_on_node_20_and_22() {
    stage::enter("pages::readme::as_process_javascript_on_node_20_and_22");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_javascript_on_node_20_and_22() {
    let mut stage = Stage::new();
    with_messages(&mut stage, "sealane up");
    let (modules, snippet) = (modules(), snippet("js"));
    std::os::unix::fs::symlink(&modules, stage.work().join("node_modules")).unwrap();
    let with_ws = format!("{}\n{snippet}", inline("import WebSocket"));
    fs::write(stage.work().join("ws.mjs"), with_ws).unwrap();
    fs::write(stage.work().join("built-in.mjs"), &snippet).unwrap();
    let running = stage.start("reader", "node ws.mjs");
    stage.wait_for(running, &last());
    assert!(!stage.output(running).contains("undefined"));
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let newer = modules.join(format!("node-linux-{architecture}/bin/node"));
    assert!(newer.exists(), "Node.js 22 is missing; run: cargo xtask needs");
    let running = stage.start("reader", &format!("{} built-in.mjs", newer.display()));
    stage.wait_for(running, &last());
}

#[test]
#[ignore = "lab: needs unshare (a network of its own), Chromium and npm packages"]
fn its_javascript_runs_in_a_page() {
    stage::enter("pages::readme::as_process_javascript_in_a_page");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_javascript_in_a_page() {
    let mut stage = Stage::new();
    let node = inline("sealane up --origin ");
    with_messages(&mut stage, node);
    modules();
    fs::write(stage.work().join("snippet.mjs"), snippet("js")).unwrap();
    let mut browser = Command::new("node");
    browser.arg(root().join("tests/js/snippet.mjs")).arg(stage.work().join("snippet.mjs"));
    browser.arg(node.split_whitespace().last().unwrap()).arg(last());
    let running = stage.follow("tests/js/snippet.mjs", browser);
    stage.wait_for(running, "the snippet runs in a page");
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn its_rust_is_an_example_that_runs() {
    stage::enter("pages::readme::as_process_rust_as_an_example");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_rust_as_an_example() {
    let mut stage = Stage::new();
    with_messages(&mut stage, "sealane up");
    let mut example = Command::new(std::env::current_exe().unwrap());
    example.args(["--exact", "pages::readme::as_process_follows", "--ignored", "--nocapture"]);
    let running = stage.follow("examples/follow.rs", example);
    stage.wait_for(running, &format!("{}", MESSAGES - 1));
}

#[tokio::test]
#[ignore = "a process of the test above, which ends it"]
async fn as_process_follows() {
    follow::follow().await.unwrap();
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let snippet = snippet("rust,no_run");
    assert!(FOLLOW.contains(&snippet), "examples/follow.rs has other lines than the README");
}
