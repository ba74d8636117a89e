//! Guides for operators: each shell line of a page is typed, from its top to its end, and each file
//! that it shows is written where its reader would write it.

use std::fs;
use std::time::{Duration, Instant};

use super::markdown::{Line, blocks, lines};
use super::stage::{self, Stage};

/// A reader types slower than a test: until then, machines of a mesh may not have met yet.
const MEETING: Duration = Duration::from_secs(120);
/// Questions that a machine of a mesh can answer only once it has met the others.
const ASKED_AGAIN: [&str; 2] = ["sealane mesh trace ", "sealane mesh status "];

/// A page that is typed.
struct Guide {
    stage: Stage,
    node: Option<usize>,
    going_on: Vec<usize>,
    run: usize,
    not_run: usize,
}

impl Guide {
    fn new() -> Guide {
        Guide { stage: Stage::new(), node: None, going_on: Vec::new(), run: 0, not_run: 0 }
    }

    /// Types all of a page, and demands that so many lines ran, and so many did not.
    fn type_page(&mut self, page: &str, run: usize, not_run: usize) {
        for block in blocks(page) {
            if let Some(file) = block.file() {
                fs::write(self.stage.work().join(file), &block.text).unwrap();
            }
            let typed = if block.language == "sh" { lines(&block.text) } else { Vec::new() };
            for line in typed {
                match block.not_run {
                    Some(reason) => {
                        println!("{} {reason}: {}", stage::NOT_RUN, line.typed);
                        self.not_run += 1;
                    }
                    None => self.type_line(&line),
                }
            }
        }
        for running in &self.going_on {
            self.stage.still_runs(*running);
        }
        assert_eq!((self.run, self.not_run), (run, not_run), "lines that ran, and that did not");
    }

    fn type_line(&mut self, line: &Line) {
        let Line { who, typed, goes_on } = line;
        self.run += 1;
        if typed.starts_with("sealane up") {
            if let Some(earlier) = self.node.take() {
                self.stage.interrupt(earlier);
            }
            self.node = Some(self.stage.up(who, typed));
        } else if *goes_on {
            let running = self.stage.start(who, typed);
            self.stage.wait_for_words(running);
            self.going_on.push(running);
        } else if ASKED_AGAIN.iter().any(|begin| typed.starts_with(begin)) {
            self.say_in_time(who, typed, "");
        } else {
            self.stage.run(who, typed);
        }
    }

    /// Types a line until it ends well and writes this.
    fn say_in_time(&self, who: &str, typed: &str, part: &str) {
        let begun = Instant::now();
        loop {
            let said = self.stage.ends(who, typed);
            if said.status.success() && said.output.contains(part) {
                return;
            }
            let late = begun.elapsed() > MEETING;
            assert!(!late, "`{typed}` says no `{part}`: {}{}", said.output, said.errors);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn operations() {
    stage::enter("pages::guides::as_process_a_node");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_a_node() {
    Guide::new().type_page(include_str!("../../../../../docs/OPERATIONS.md"), 37, 2);
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn groups() {
    stage::enter("pages::guides::as_process_a_group");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_a_group() {
    let mut guide = Guide::new();
    guide.type_page(include_str!("../../../../../docs/GROUPS.md"), 20, 0);
    let shown = guide.stage.run("ana", "sealane group show fleet");
    let bob = shown.lines().find(|line| line.starts_with("bob ")).unwrap();
    assert!(!bob.contains(" - "), "bob was not removed: {shown}");
}

/// Interfaces are made there, which takes the right to open `/dev/net/tun`.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn mesh() {
    stage::enter("pages::guides::as_process_a_mesh");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_a_mesh() {
    let mut guide = Guide::new();
    guide.type_page(include_str!("../../../../../docs/MESH.md"), 33, 0);
    for (typed, part) in [
        ("sealane doc ls base.toml", "Kilo"),
        ("sealane doc get base.toml chat", "the bridge is out"),
        ("sealane emergency ls base.toml", "medical"),
    ] {
        guide.say_in_time("base", typed, part);
    }
    let hub = guide.stage.run("hub", "cat ~/.local/share/sealane/streams.db*");
    assert!(!hub.contains("bridge"), "the hub can read it");
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn upgrading() {
    stage::enter("pages::guides::as_process_an_upgrade");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_an_upgrade() {
    let mut guide = Guide::new();
    guide.stage.up("reader", "sealane up");
    guide.stage.run("reader", "sealane pub a/b 1");
    guide.type_page(include_str!("../../../../../docs/UPGRADING.md"), 4, 3);
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn habits() {
    stage::enter("pages::guides::as_process_what_hands_type");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_what_hands_type() {
    let mut guide = Guide::new();
    let work = guide.stage.work();
    fs::create_dir(work.join("docs")).unwrap();
    fs::write(work.join("docs/letter.txt"), "dear reader").unwrap();
    fs::write(work.join("new"), "another passphrase\n").unwrap();
    for line in lines(include_str!("habits.sh")) {
        guide.type_line(&line);
    }
    assert_eq!(guide.run, 20, "lines of habits.sh");
}
