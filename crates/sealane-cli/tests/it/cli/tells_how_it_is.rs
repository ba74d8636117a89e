//! A relay tells what it does: to `sealane mesh status`, to Prometheus, and into a capture.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::Stdio;

use sealane::Value;
use sealane_testing::{PATIENCE, TestProcess, free_address, succeed};

use super::relays_without_keys::{config, host, start_relay};
use super::writes_json::StatusPage;
use crate::cli::home::{Home, number};
use crate::cli::{Machine, json, sealane, text, until_status};

/// A relay with a page, and its home.
struct RelayStatusReport {
    home: Home,
    relay: Machine,
    config: String,
    page: String,
}

impl RelayStatusReport {
    fn start() -> RelayStatusReport {
        let home = Home::fleet(&[], &["base", "car"]);
        home.file("fleet.card", "base", &["group", "relay-card", "fleet"]);
        let page = free_address().to_string();
        let address = format!("{}:9", host(5));
        let config = config(4, ("slot 1", &address), ("slot 0", "127.0.0.1:2"));
        let config = format!("status = \"{page}\"\n{config}");
        std::fs::write(home.path("relay.toml"), &config).unwrap();
        let capture = home.path("relay.pcap").display().to_string();
        let relay = start_relay(&home, "relay.toml", &["--capture", &capture]);
        RelayStatusReport { home, relay, config, page }
    }

    fn status(&self, args: &[&str]) -> String {
        let mut status = sealane(self.home.folder());
        succeed(status.args(["mesh", "status"]).arg(self.home.path("relay.toml")).args(args))
    }

    #[track_caller]
    fn wait_until(&self, is_so: impl Fn(&Value) -> bool) {
        let mut status = sealane(self.home.folder());
        status.args(["--json", "mesh", "status"]).arg(self.home.path("relay.toml"));
        until_status(&mut status, is_so);
    }

    /// The answer of the page to a request.
    fn ask(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(&self.page).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // One whose head is too long is not read to its end, and may lose the answer by that.
        let _ = socket.read_to_string(&mut answer);
        answer
    }
}

#[test]
fn a_relay_tells_what_it_carries_and_what_became_of_its_configuration() {
    let told = RelayStatusReport::start();
    let stranger = UdpSocket::bind((host(6), 0)).unwrap();
    stranger.send_to(b"junk", format!("{}:9190", host(4))).unwrap();
    told.wait_until(|status| {
        let dropped = status.field("dropped").cloned();
        matches!(dropped, Some(Value::Array(all)) if all.len() == 1)
    });
    let lines = told.status(&[]);
    for line in ["stranger", "slot 1", "never", "b100000000000004", "members 2"] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    StatusPage::read().compare("mesh status CONFIG", &told.status(&["--json"]));

    let metrics = told.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, page) = metrics.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("openmetrics-text"), "{head}");
    assert!(page.contains("\nsealane_relay_dropped_total{reason=\"stranger\"} 1\n"), "{page}");
    assert!(page.ends_with("# EOF\n"));
    let foreign = told.ask("GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 421 "), "{foreign}");
    told.ask(&format!("GET /status HTTP/1.1\r\nX: {}", "x".repeat(5000)));

    // A configuration that is wrong is told, and the one before goes on.
    let of = |status: &Value, name: &str| number(status.field("reloads").unwrap(), name);
    std::fs::write(told.home.path("relay.toml"), told.config.replace("via = \"b\"", "via = \"c\""))
        .unwrap();
    told.relay.process.signal("HUP");
    told.wait_until(|status| of(status, "refused") == 1);
    let said = json(&told.status(&["--json"]));
    let last = said.field("reloads").and_then(|all| all.field("last")).unwrap();
    assert!(text(last, "refusal").contains("`c`"), "{last:?}");
    StatusPage::read().compare("mesh status CONFIG", &told.status(&["--json"]));
    std::fs::write(told.home.path("relay.toml"), &told.config).unwrap();
    told.relay.process.signal("HUP");
    told.wait_until(|status| of(status, "taken") == 1);

    // The sent and received units are in the capture.
    let RelayStatusReport { home, relay, .. } = told;
    relay.stop();
    let mut inspect = sealane(home.folder());
    // It fails, since the words of the stranger are no frame.
    let inspected = inspect.args(["--json", "inspect"]).arg(home.path("relay.pcap")).output();
    let inspected = String::from_utf8(inspected.unwrap().stdout).unwrap();
    assert!(inspected.contains(&format!("{}:9190", host(4))), "{inspected}");
}

#[test]
fn a_status_that_nobody_tells_is_named() {
    let home = Home::fleet(&[], &["base", "car"]);
    let config = config(7, ("slot 1", "127.0.0.1:1"), ("slot 0", "127.0.0.1:2"));
    let file = home.path("relay.toml").display().to_string();
    std::fs::write(home.path("relay.toml"), &config).unwrap();
    assert_eq!(home.fails("base", &["mesh", "status", &file]), (2, "SL-LINK-02".to_owned()));
    let free = free_address();
    std::fs::write(home.path("relay.toml"), format!("status = \"{free}\"\n{config}")).unwrap();
    assert_eq!(home.fails("base", &["mesh", "status", &file]), (3, "SL-LINK-08".to_owned()));
    std::fs::write(home.path("relay.toml"), format!("status = \"0.0.0.0:1\"\n{config}")).unwrap();
    assert_eq!(home.fails("base", &["relay", &file]), (2, "SL-LINK-02".to_owned()));
}

/// The log of a relay is chosen as that of a node: by a level, and as lines of JSON.
#[test]
fn a_relay_logs_what_was_asked_for_in_the_form_that_was_asked_for() {
    let home = Home::fleet(&[], &["base", "car"]);
    home.file("fleet.card", "base", &["group", "relay-card", "fleet"]);
    let config = config(8, ("slot 1", "127.0.0.1:1"), ("slot 0", "127.0.0.1:2"));
    std::fs::write(home.path("relay.toml"), &config).unwrap();
    for (level, is_told) in [("debug", true), ("error", false)] {
        let mut relay = sealane(home.folder());
        relay.args(["--json", "relay"]).arg(home.path("relay.toml"));
        relay.env("SEALANE_LOG", level).env("SEALANE_LOG_FORMAT", "json");
        let (mut relay, _) = TestProcess::started(relay.stderr(Stdio::piped()));
        assert!(relay.stop().success());
        let mut said = String::new();
        relay.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let told = said.lines().find(|line| line.contains("links are open"));
        assert_eq!(told.is_some(), is_told, "{level}: {said}");
        let target = told.map(|line| text(&json(line), "target"));
        assert_eq!(target.as_deref(), is_told.then_some("sealane_link::relay"));
    }
}
