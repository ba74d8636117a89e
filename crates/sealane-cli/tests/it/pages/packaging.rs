//! The programs that the files of `packaging/` start are started as the files say it, and end as
//! the files end them.

use std::path::Path;

use super::stage::{self, Stage};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The value of a setting in a unit of systemd.
fn setting(unit: &str, name: &str) -> String {
    let value = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("there is no {name}")).replace("%S", "state")
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn the_service_and_the_container_start_and_end() {
    stage::enter("pages::packaging::as_process_service_and_container");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_service_and_container() {
    let mut stage = Stage::new();
    let unit = file("sealane.service");
    let program = setting(&unit, "ExecStart").replace("/usr/local/bin/", "");
    let environment = setting(&unit, "Environment");
    let node = stage.up("sealane", &format!("env {environment} {program}"));
    assert!(setting(&unit, "ExecReload").starts_with("/bin/kill -HUP "));
    stage.signal(node, "HUP");
    stage.run("reader", "sealane pub a/b 1");
    stage.signal(node, "TERM");
    assert!(stage.end(node).success(), "a service that is stopped ends well");
    assert!(stage.work().join("state/sealane/streams.db").exists());

    let compose = file("compose.yaml");
    let part = |from: &str, to: &str| {
        let rest = compose.split_once(from).unwrap_or_else(|| panic!("there is no {from}")).1;
        rest.split_once(to).unwrap().0.trim().to_owned()
    };
    let verb = part("command: [\"", "\"]");
    let variable = |name: &str| format!("{name}={}", part(&format!("{name}:"), "\n"));
    let variables = [variable("SEALANE_DATA"), variable("SEALANE_LISTEN")].join(" ");
    // The volume is a folder here.
    let variables = variables.replace("=/data", "=volume");
    let made = compose.lines().find_map(|line| line.split_once(" run --rm node ")).unwrap().1;
    stage.run("sealane", &format!("env {variables} sealane {made}"));
    let node = stage.up("sealane", &format!("env {variables} sealane {verb}"));
    stage.signal(node, "TERM");
    assert!(stage.end(node).success());
}
