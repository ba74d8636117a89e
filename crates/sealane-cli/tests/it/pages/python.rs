//! The Python client publishes and follows as its page says, and goes on when the node was killed.

use std::fs;
use std::path::Path;

use super::stage::{self, Stage};

/// Imports the module alone, without the packages that the rest of the SDK needs.
const IMPORT: &str = "import sys; sys.path.insert(0, sys.argv[1]); from hub import Hub, HubError";

const PUBLISHES: &str = r#"
hub = Hub("127.0.0.1:9087")
assert hub.publish("a/1", {"n": 0})["offset"] == 0
assert hub.publish("a/1", {"n": 1}, key="k")["offset"] == 1
assert hub.publish("a/1", {"n": 1}, key="k")["replayed"] is True
assert hub.publish_batch("a/2", [{"n": 2}, {"n": 3}])["count"] == 2
page = hub.read("a/1")
assert [message["deliver"]["n"] for message in page["messages"]] == [0, 1], page
assert page["end"] is True
for refused in (lambda: hub.publish("a//1", {}), lambda: next(hub.follow("a//1"))):
    try:
        refused()
    except HubError as error:
        assert error.code == "InvalidTopic" and error.hint, error
    else:
        raise AssertionError("a topic that is none")
try:
    hub.publish("a/1", {"n": 9}, expect=7)
except HubError as error:
    assert error.status == 409 and error.code == "OffsetMismatch", error
"#;

const FOLLOWS: &str = r#"
for message in Hub("127.0.0.1:9087").follow("a/**", start="first"):
    print(message["stream"], message["deliver"]["n"], flush=True)
"#;

#[test]
#[ignore = "lab: needs unshare (a network of its own), Python 3"]
fn a_python_client() {
    stage::enter("pages::python::as_process_python_on_its_own_network");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_python_on_its_own_network() {
    let mut stage = Stage::new();
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python/sealane");
    for (name, script) in [("publishes.py", PUBLISHES), ("follows.py", FOLLOWS)] {
        fs::write(stage.work().join(name), format!("{IMPORT}\n{script}")).unwrap();
    }
    let line = |name: &str| format!("python3 {name} {}", module.display());
    let node = stage.up("reader", "sealane up");
    stage.run("reader", &line("publishes.py"));
    let follower = stage.start("reader", &line("follows.py"));
    stage.wait_for(follower, "a/2 3");
    stage.signal(node, "KILL");
    stage.end(node);
    stage.up("reader", "sealane up");
    stage.run("reader", "sealane pub a/3 '{\"n\": 4}'");
    stage.wait_for(follower, "a/3 4");
    let mut read: Vec<String> = stage.output(follower).lines().map(str::to_owned).collect();
    read.sort();
    assert_eq!(read, ["a/1 0", "a/1 1", "a/2 2", "a/2 3", "a/3 4"], "each came once");
}
