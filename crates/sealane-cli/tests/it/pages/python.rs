//! The Python client publishes and follows as its page says, and goes on when the node was killed.

use std::fs;
use std::path::Path;

use super::stage::{self, Stage};

const IMPORT: &str = "import sys; sys.path.insert(0, sys.argv[1]); import sealane";

const PUBLISHES: &str = r#"
from sealane.refusals import InvalidTopic, OffsetMismatch
with sealane.Client("127.0.0.1:9087") as client:
    assert client.publish("a/1", {"n": 0}).offset == 0
    assert client.publish("a/1", {"n": 1}, key="k").offset == 1
    assert client.publish("a/1", {"n": 1}, key="k").replayed is True
    assert client.publish_batch("a/2", [{"n": 2}, {"n": 3}])["count"] == 2
    page = client.page("a/1")
    assert [message.body["n"] for message in page.messages] == [0, 1], page.messages
    assert page.end is True
    for refused in (
        lambda: client.publish("a//1", {}),
        lambda: next(client.subscribe("a//1", start="new")),
    ):
        try:
            refused()
        except InvalidTopic as error:
            assert error.code == "InvalidTopic" and error.hint, error
        else:
            raise AssertionError("a topic that is none")
    try:
        client.publish("a/1", {"n": 9}, expect=7)
    except OffsetMismatch as error:
        assert error.next == 2, error
    else:
        raise AssertionError("an offset that is not the next")
"#;

const FOLLOWS: &str = r#"
for message in sealane.Client().subscribe("a/**", start="first"):
    print(message.stream, message.body["n"], flush=True)
"#;

#[test]
#[ignore = "lab: needs unshare (a network of its own), Python packages"]
fn a_python_client() {
    stage::enter("pages::python::as_process_python_on_its_own_network");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_python_on_its_own_network() {
    let mut stage = Stage::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (python, package) = (root.join("target/venv/bin/python"), root.join("sdk/python"));
    assert!(python.is_file(), "{} is missing; run: cargo xtask needs", python.display());
    for (name, script) in [("publishes.py", PUBLISHES), ("follows.py", FOLLOWS)] {
        fs::write(stage.work().join(name), format!("{IMPORT}\n{script}")).unwrap();
    }
    let line = |name: &str| format!("{} {name} {}", python.display(), package.display());
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
