//! Documents over a relay that holds no key of them: written at one end, read at the other, there
//! after a kill, and in no file of the relay.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use sealane::Value;
use sealane_testing::{succeed, until_told};

use super::field::Field;
use super::list;
use crate::cli::home::number;
use crate::cli::json;
use crate::cli::writes_json::StatusPage;

const BASE: usize = 0;
const RELAY: usize = 1;
const CAR: usize = 2;

/// The output of a verb on a machine.
fn printed(field: &Field, machine: usize, flags: &[&str], words: &[&str]) -> String {
    printed_of(field, ["base", "relay", "car"][machine], machine, flags, words)
}

/// The output of a verb on a machine, for programs: a value a line.
fn values(field: &Field, machine: usize, words: &[&str]) -> Vec<Value> {
    values_of(field, ["base", "relay", "car"][machine], machine, words)
}

/// The same of a machine of another name.
fn values_of(field: &Field, who: &str, machine: usize, words: &[&str]) -> Vec<Value> {
    printed_of(field, who, machine, &["--json"], words).lines().map(json).collect()
}

/// The output of a verb on a machine of this name.
fn printed_of(field: &Field, who: &str, machine: usize, flags: &[&str], words: &[&str]) -> String {
    let file = field.path(&format!("{who}.toml"));
    let mut command = field.command(machine);
    command.args(flags).args(&words[..2]).arg(file).args(&words[2..]);
    succeed(&mut command)
}

/// Its output, as soon as the condition holds.
#[track_caller]
fn once(
    field: &Field,
    machine: usize,
    words: &[&str],
    is_so: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    once_on(field, ["base", "relay", "car"][machine], machine, words, is_so)
}

/// The same of a machine of another name.
#[track_caller]
fn once_on(
    field: &Field,
    who: &str,
    machine: usize,
    words: &[&str],
    is_so: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    until_told(|| values_of(field, who, machine, words), |all| is_so(all))
}

fn numbers(of: &Value, key: &str) -> Vec<u64> {
    match of.field(key) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_u64).collect(),
        _ => vec![],
    }
}

/// The answer to a browser of the host there.
fn page(address: &str, target: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The page as its reader sees it, and as nobody else does.
fn team(url: &str) -> String {
    let (address, target) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (target, (_, key)) = (format!("/{target}"), target.split_once("?key=").unwrap());
    let wrong = format!("/?key={}", key.chars().rev().collect::<String>());
    for (target, host, status) in [
        ("/", address, "401 Unauthorized"),
        (&wrong, address, "401 Unauthorized"),
        (&target, "evil.example:9088", "421 Misdirected Request"),
        (&target.replace("/?", "/more?"), address, "404 Not Found"),
    ] {
        let shown = page(address, target, host);
        assert!(shown.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{target}: {shown}");
        assert!(!shown.contains("base") && !shown.contains("fell"), "{target}: {shown}");
    }
    page(address, &target, address)
}

/// The texts that the page of the team shows of the base.
const SHOWN: [&str; 10] = [
    "base",
    "calls for help",
    "medical",
    "fell",
    "52.50000, 13.40000",
    "need-assist",
    "Kilo",
    "the bridge is out",
    "<th>All<td>12<td>",
    "This machine",
];

fn hold(who: &str, links: &str) -> String {
    let socket = match who {
        "relay" => String::new(),
        who => format!("socket = \"{who}.sock\"\n"),
    };
    format!("{links}[documents]\nstore = \"{who}.documents\"\n{socket}")
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn documents_and_calls_for_help_cross_a_relay_that_cannot_read_them() {
    let _turn = crate::TURN.beside();
    let field = Field::new(&["base", "relay", "car"], &[(BASE, RELAY), (RELAY, CAR)]);
    field.end("base", "10.9.0.1", &hold("base", &field.links(BASE, &["udp"])));
    field.relay("relay", &hold("relay", &field.links(RELAY, &["udp", "udp"])));
    field.end("car", "10.9.0.2", &hold("car", &field.links(CAR, &["udp"])));
    let base = field.start(BASE);
    let others = [field.start(RELAY), field.start_with(CAR, &["--view", "127.0.0.1:0"])];

    let place = r#"{"latitude":52.5,"longitude":13.4}"#;
    values(&field, BASE, &["doc", "set", "location", place]);
    values(&field, BASE, &["doc", "add", "1", "5"]);
    values(&field, BASE, &["doc", "add", "1", "7"]);
    let written = values(&field, BASE, &["doc", "set", "72", "the first sample"]);
    assert_eq!(written[0].field("done"), Some(&Value::Bool(true)), "{written:?}");
    let seen = once(&field, CAR, &["doc", "get", "location"], |all| all.len() == 1);
    let value = seen[0].field("value").unwrap();
    assert_eq!(value.field("latitude"), Some(&Value::F64(52.5)), "{value:?}");
    shows_how_it_is_and_what_it_says(&field);
    tells_what_it_counts(&field);

    let raised =
        values(&field, BASE, &["emergency", "raise", "--kind", "medical", "--text", "fell"]);
    let call = number(&raised[0], "number").to_string();
    once(&field, CAR, &["emergency", "ls"], |all| all.len() == 1);
    values(&field, CAR, &["emergency", "ack", "0", &call]);
    once(&field, BASE, &["emergency", "ls"], |all| numbers(&all[0], "acknowledgedBy") == [1]);
    let url = others[1].started.field("view").and_then(Value::as_text).unwrap().to_owned();
    let shown = field.on(CAR, move || team(&url));
    for word in SHOWN {
        assert!(shown.contains(word), "{word} in {shown}");
    }
    values(&field, CAR, &["emergency", "clear", "0", &call]);
    once(&field, BASE, &["emergency", "ls"], |all| {
        all[0].field("isOver") == Some(&Value::Bool(true))
    });

    for private in ["base.sock", "car.documents", "relay.documents"] {
        let mode = std::fs::metadata(field.path(private)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{private}");
    }
    drop(base);
    let base = field.start(BASE);
    assert_eq!(values(&field, BASE, &["doc", "get", "location"]).len(), 1, "it was kept");
    values(&field, BASE, &["doc", "set", "72", "the second sample"]);
    once(&field, CAR, &["doc", "get", "72"], |all| all.len() == 2);
    // The member that cleared the call is removed, and the call stays over.
    field.home.run("base", &["group", "revoke", "fleet", "car"]);
    let is_gone = |all: &[Value]| numbers(&all[0], "clearedBy").is_empty();
    let calls = once(&field, BASE, &["emergency", "ls"], is_gone);
    assert_eq!(calls[0].field("isOver"), Some(&Value::Bool(true)), "{calls:?}");
    drop((base, others));
    let mut kept = vec![];
    for suffix in ["", "-wal"] {
        kept.extend(
            std::fs::read(field.path(&format!("relay.documents{suffix}"))).unwrap_or_default(),
        );
    }
    for body in [&b"the first sample"[..], b"the second sample", b"fell"] {
        assert!(!kept.windows(body.len()).any(|part| part == body), "a body in the relay's files");
    }
    assert!(kept.windows(4).any(|part| part == b"SLDO") && kept.len() > 4096, "it kept frames");
}

/// At a low battery documents wait. Nobody is told that they are stored before they are, and who
/// tells the machine to end loses none.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn what_waits_for_its_turn_is_said_so_and_is_stored_when_the_machine_is_told_to_end() {
    let _turn = crate::TURN.beside();
    let field = Field::new(&["base", "relay", "car"], &[(BASE, RELAY), (RELAY, CAR)]);
    let held = hold("base", &field.links(BASE, &["udp"]));
    field.end("base", "10.9.0.1", &format!("{held}battery_percent = 5\n"));
    let mut base = field.start(BASE);
    let page = StatusPage::read();
    values(&field, BASE, &["doc", "add", "1", "5"]);
    for number in 0..3 {
        let words = ["doc", "set", "72", &format!("sample {number}")];
        let said = printed(&field, BASE, &["--json"], &words);
        page.compare("doc set CONFIG TYPE VALUE", &said);
        let answer = json(&said);
        assert_eq!(answer.field("done"), Some(&Value::Bool(false)), "{answer:?}");
        assert!(answer.field("waitMs").and_then(Value::as_u64) > Some(0), "{answer:?}");
    }
    let said = printed(&field, BASE, &[], &["doc", "set", "72", "sample 3"]);
    assert!(said.starts_with("not stored yet: it waits for its turn, "), "{said}");
    values(&field, BASE, &["doc", "add", "1", "7"]);
    assert!(base.process.stop().success());
    let base = field.start(BASE);
    let kept = values(&field, BASE, &["doc", "get", "72"]);
    let texts: Vec<_> = kept.iter().filter_map(|one| one.field("value")?.as_text()).collect();
    assert_eq!(texts, ["sample 0", "sample 1", "sample 2", "sample 3"]);
    let counted = values(&field, BASE, &["doc", "get", "counter"]);
    let counters = counted[0].field("value").and_then(|value| value.field("counters"));
    assert_eq!(number(counters.unwrap(), "1"), 12);
    drop(base);
}

/// The base's counters, vitals and chat, as the car is shown them.
fn shows_how_it_is_and_what_it_says(field: &Field) {
    once(field, CAR, &["doc", "get", "counter"], |all| {
        let counters = all.first().and_then(|one| one.field("value")?.field("counters"));
        counters.is_some_and(|counters| number(counters, "1") == 12)
    });
    let sums = values(field, CAR, &["doc", "get", "counter"]).pop().unwrap();
    assert_eq!(number(sums.field("sums").unwrap(), "1"), 12, "{sums:?}");

    let vitals = r#"{"alerts":["fall"],"last":{"event":"need-assist"},"callsign":"Kilo"}"#;
    values(field, BASE, &["doc", "set", "vitals", vitals]);
    values(field, BASE, &["doc", "say", "the bridge is out"]);
    let said = once(field, CAR, &["doc", "get", "chat"], |all| all.len() == 1);
    let said = said[0].field("value").unwrap();
    assert_eq!(said.field("text"), Some(&"the bridge is out".into()), "{said:?}");
    once(field, CAR, &["doc", "get", "vitals"], |all| {
        let last = all.first().and_then(|one| one.field("value")?.field("last"));
        last.is_some_and(|last| last.field("event") == Some(&"need-assist".into()))
    });
    // The longest line that may be said is a document, too.
    values(field, BASE, &["doc", "say", &"x".repeat(768)]);
    once(field, CAR, &["doc", "get", "chat"], |all| all.len() == 2);
}

/// The status and the metrics of the car have what it has counted of documents.
fn tells_what_it_counts(field: &Field) {
    let told = field.told(CAR, |told| {
        told.field("documents").is_some_and(|documents| number(documents, "taken") >= 5)
    });
    let documents = told.field("documents").unwrap();
    assert!(number(documents, "opened") >= number(documents, "taken"), "{documents:?}");
    let mut line = Vec::new();
    sealane_codec::encode(sealane::Codec::Json, &told, &mut line);
    StatusPage::read().compare("mesh status CONFIG", &String::from_utf8(line).unwrap());
    let metrics = field.on(CAR, || page("127.0.0.1:9191", "/metrics", "127.0.0.1:9191"));
    for name in ["taken_total", "refused_total{reason=\"forged\"} 0", "conflicts_total 0"] {
        assert!(metrics.contains(&format!("sealane_document_{name}")), "{name}: {metrics}");
    }
    let file = field.path("car.toml");
    let shown = succeed(field.command(CAR).args(["mesh", "status"]).arg(file));
    assert!(shown.contains("documents   ") && shown.contains(", handed on "), "{shown}");
}

/// Two machines with one key folder, of which one was restored: both seal under one counter. Who
/// hears both says so beside the value.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_conflict_of_two_authentic_documents_is_shown_beside_the_value() {
    let _turn = crate::TURN.beside();
    let field = Field::new(&["base", "car"], &[(0, 1)]);
    let (own, other) = (0, 1);
    field.end("base", "10.9.0.1", &hold("base", &field.links(own, &["udp"])));
    field.end("car", "10.9.0.2", &hold("car", &field.links(other, &["udp"])));
    field.home.copy("base", "before");
    let set = |latitude: &str| {
        let place = format!("{{\"latitude\":{latitude},\"longitude\":13}}");
        values(&field, own, &["doc", "set", "location", &place]);
    };
    let machines = [field.start(own), field.start(other)];
    set("52.5");
    once_on(&field, "car", other, &["doc", "get", "location"], |all| all.len() == 1);
    drop(machines);
    // The folder is restored, and what the machine kept is lost.
    std::fs::remove_dir_all(field.path("base")).unwrap();
    field.home.copy("before", "base");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(field.path(&format!("base.documents{suffix}")));
    }
    let restored = field.start(own);
    set("48.1");
    let heard = field.start_with(other, &["--view", "127.0.0.1:0"]);
    let conflicts =
        |all: &[Value]| all.first().is_some_and(|one| number_or_0(one, "conflicts") > 0);
    once_on(&field, "car", other, &["doc", "get", "location"], conflicts);
    let told = field.told(other, |told| told.field("documents").is_some());
    let documents = told.field("documents").unwrap();
    let conflicting = list(documents, "conflicting");
    assert_eq!(conflicting[0].field("type"), Some(&"location".into()), "{documents:?}");
    let url = heard.started.field("view").and_then(Value::as_text).unwrap().to_owned();
    let shown = field.on(other, move || team(&url));
    // The two machines exchange again and again, so that one conflict may be counted each time.
    assert!(differing(&shown).is_some_and(|count| count > 0), "{shown}");
    drop((restored, heard));
}

/// The count of differing frames that the page shows.
fn differing(page: &str) -> Option<u64> {
    let (_, behind) = page.split_once("authentic frames that differ: ")?;
    behind.split_once('<')?.0.parse().ok()
}

fn number_or_0(of: &Value, key: &str) -> u64 {
    of.field(key).and_then(Value::as_u64).unwrap_or(0)
}
