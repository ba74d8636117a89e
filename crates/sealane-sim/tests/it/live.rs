//! Live runs: real processes in network namespaces, over the simulator's radio. Needs root.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use sealane_testing::{require_namespaces, run_script, until};
use serde_json::Value;

/// Answers every datagram that comes to port 9 with the same bytes.
const ECHO: &str = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                    s.bind((\"\", 9)); \
                    [s.sendto(*s.recvfrom(2000)) for _ in iter(int, 1)]";
/// Sends one, and says whether it came back within half a second.
const ASK: &str = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                   s.settimeout(0.5); s.sendto(b\"x\" * 200, (sys.argv[1], 9)); s.recv(2000)";

/// Three processes 200 m apart, and a beacon beside. The radio reaches 300 m.
fn scenario(prefix: &str) -> String {
    format!(
        "version = 1\nname = \"{prefix}\"\nduration_s = 300\n\
         [[medium]]\nname = \"road\"\nprofile = \"11p\"\nrange_m = 300\nfading = 0\n\
         [[node]]\nname = \"car\"\ncount = 3\nkind = \"process\"\nmedia = [\"road\"]\n\
         line = [200, 0]\n\
         command = [\"sh\", \"-c\", '''ip address add 10.44.0.$SEALANE_SIM_NUMBER/24 dev road; \
         exec python3 -c '{ECHO}' ''']\n\
         [[node]]\nname = \"post\"\nkind = \"beacon\"\nmedia = [\"road\"]\nat = [200, 50]\n"
    )
}

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sealane-sim")).args(args).output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A live run that ends with this.
struct Live {
    dir: tempfile::TempDir,
    prefix: String,
    child: Child,
    page: String,
}

impl Live {
    fn start(prefix: &str) -> Self {
        require_namespaces();
        let prefix = format!("{prefix}{}", std::process::id());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("live.toml");
        std::fs::write(&file, scenario(&prefix)).unwrap();
        let log = std::fs::File::create(dir.path().join("log.jsonl")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sealane-sim"));
        command.args(["live", "--json", "--prefix", &prefix, "--page", "127.0.0.1:0"]).arg(&file);
        let mut child = command.stdout(log).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let page =
            said.find_map(|line| line.unwrap().split_once("page: ").map(|two| two.1.to_owned()));
        // The rest of its output is read, so that it never waits for a reader.
        std::thread::spawn(move || said.for_each(drop));
        let live = Self { dir, prefix, child, page: page.unwrap() };
        until("it takes orders", || live.ctl(&["status"]).is_some());
        live
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("live.toml")
    }

    /// The answer to an order, unless it is refused.
    fn ctl(&self, order: &[&str]) -> Option<Value> {
        let file = self.file();
        let output = sim(&[&["--json", "ctl", file.to_str().unwrap()], order].concat());
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    fn namespace(&self, machine: &str) -> String {
        format!("{}-{machine}", self.prefix)
    }

    /// Whether a process of the one machine reaches that of the other.
    fn reaches(&self, from: &str, to: u32) -> bool {
        let mut ask = Command::new("ip");
        ask.args(["netns", "exec", &self.namespace(from), "python3", "-c", ASK]);
        ask.arg(format!("10.44.0.{to}")).stderr(Stdio::null()).status().unwrap().success()
    }

    fn runs(&self, machine: &str) -> bool {
        let namespace = self.namespace(machine);
        let pids = Command::new("ip").args(["netns", "pids", &namespace]).output().unwrap();
        !words(&pids.stdout).trim().is_empty()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn processes_meet_over_the_radio_as_their_places_and_orders_have_it() {
    let mut live = Live::start("a");
    until("neighbours hear each other", || live.reaches("car-1", 1));
    assert!(!live.reaches("car-1", 2), "400 m are too far");
    live.ctl(&["move", "car-3", "100", "-5"]).unwrap();
    until("a machine that came near is heard", || live.reaches("car-1", 2));
    live.ctl(&["cut", "car-1", "car-3"]).unwrap();
    assert!(!live.reaches("car-1", 2), "they were cut apart");
    until("others were not cut apart", || live.reaches("car-2", 2));
    live.ctl(&["mend", "car-3", "car-1"]).unwrap();
    until("they hear each other again", || live.reaches("car-1", 2));
    assert!(live.runs("car-2"));
    live.ctl(&["kill", "car-2"]).unwrap();
    until("its program has ended", || !live.runs("car-2"));
    assert!(!live.reaches("car-1", 1));
    live.ctl(&["join", "car-2"]).unwrap();
    until("it is back", || live.reaches("car-1", 1));

    let status = live.ctl(&["status"]).unwrap();
    let machines = status["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 4);
    assert_eq!((&machines[2]["name"], machines[2]["x"].as_f64()), (&"car-3".into(), Some(100.0)));
    assert!(machines[0]["sent"].as_u64() > Some(0) && machines[3]["heard"].as_u64() > Some(0));
    assert!(status["late"]["now"].as_u64() < Some(30_000_000), "it falls behind: {status}");

    live.ctl(&["stop"]).unwrap();
    assert!(live.child.wait().unwrap().success());
    let log = live.dir.path().join("log.jsonl");
    let replay = sim(&["replay", log.to_str().unwrap()]);
    assert!(replay.status.success(), "{}", words(&replay.stderr));
    let lines = std::fs::read_to_string(log).unwrap();
    for kind in ["\"what\":\"cut\"", "\"what\":\"mend\"", "\"kind\":\"leave\",\"node\":1,"] {
        assert!(lines.contains(kind), "{kind}");
    }
    assert!(!Path::new("/run/netns").join(live.namespace("car-1")).exists());
    assert!(!live.dir.path().join("live.ctl").exists());
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn orders_and_runs_that_cannot_be_are_refused_by_name() {
    let mut live = Live::start("b");
    let file = live.file();
    let file = file.to_str().unwrap();
    for (order, said) in [
        (&["kill", "nobody"][..], "no machine or group is called `nobody`"),
        (&["move", "car-1", "1e9", "0"], "to = 1000000000 is not from"),
        (&["loss", "road", "2"], "loss = 2 is not from 0 to 1"),
        (&["loss", "rode", "0"], "no medium is called `rode`; did you mean `road`?"),
    ] {
        let output = sim(&[&["ctl", file], order].concat());
        let error = words(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said) && error.contains("[SL-SIM-09]"), "{error}");
    }
    // A second run of the same scenario would have the same namespaces.
    let second = sim(&["live", file, "--prefix", &live.prefix]);
    let error = words(&second.stderr);
    assert!(!second.status.success() && error.contains("is there already"), "{error}");
    assert!(error.contains("[SL-SIM-08]"), "{error}");
    let other = format!("{}x", live.prefix);
    let second = sim(&["live", file, "--prefix", &other]);
    let error = words(&second.stderr);
    assert!(error.contains("another live run of this scenario answers there"), "{error}");
    assert!(!Path::new("/run/netns").join(format!("{other}-car-1")).exists());
    let virtual_run = sim(&["run", file]);
    assert!(words(&virtual_run.stderr).contains("`car-1` is a process"), "{virtual_run:?}");

    // However it ends, nothing is left of it, and another run takes its place.
    live.child.kill().unwrap();
    live.child.wait().unwrap();
    let namespace = Path::new("/run/netns").join(live.namespace("car-3"));
    until("its namespaces are gone", || !namespace.exists());
    let output = sim(&["ctl", file, "status"]);
    assert!(words(&output.stderr).contains("[SL-SIM-10]"), "{output:?}");
    let again = sim(&["live", file, "--prefix", &live.prefix, "--seconds", "1"]);
    assert!(again.status.success(), "{}", words(&again.stderr));
    assert!(words(&again.stderr).contains("late by"), "{}", words(&again.stderr));
}

/// Its folder of keys is there, and has none for a machine: nothing is made in its place.
#[test]
fn keys_that_are_not_there_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keyed.toml");
    let mesh = "[mesh]\ngroup = \"roads\"\nkeys = \"keys\"\n[[medium]]";
    std::fs::write(&file, scenario("k").replacen("[[medium]]", mesh, 1)).unwrap();
    std::fs::create_dir(dir.path().join("keys")).unwrap();
    let output = sim(&["live", file.to_str().unwrap()]);
    let error = words(&output.stderr);
    assert!(error.contains("keys of `car-1`: ") && error.contains("[SL-SIM-11]"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path().join("keys")).unwrap().count(), 0);
}

#[test]
#[ignore = "lab: needs root (network namespaces), Chromium and npm packages"]
fn the_page_of_a_live_run_shows_it_and_obeys_whoever_has_its_key() {
    let live = Live::start("c");
    run_script("live.mjs", "playwright-core", &[&live.page, "4"]);
    let (host, key) = live.page.trim_start_matches("http://").split_once("/#").unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        // It may answer before it has read all.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let with = |line: &str, fields: &str| ask(&format!("{line} HTTP/1.1\r\n{fields}\r\n"));
    let (own, key) = (format!("host: {host}\r\n"), format!("authorization: Bearer {key}\r\n"));
    let order = "content-length: 13\r\n\r\n{\"do\":\"stop\"}";
    for (status, line, fields) in [
        ("200", "GET /status", format!("{own}{key}")),
        ("401", "GET /status", own.clone()),
        ("401", "POST /order", format!("{own}{order}")),
        ("421", "GET /status", format!("host: evil.example\r\n{key}")),
        ("421", "GET /", "host: evil.example\r\n".to_owned()),
        ("403", "POST /order", format!("{own}origin: http://evil.example\r\n{key}{order}")),
        ("413", "POST /order", format!("{own}{key}content-length: 99999999\r\n")),
        ("400", "POST /order", format!("{own}{key}transfer-encoding: chunked\r\n")),
        ("404", "GET /more", format!("{own}{key}")),
        ("422", "POST /order", format!("{own}{key}content-length: 2\r\n\r\n{{}}")),
    ] {
        assert_eq!(with(line, &fields), status, "{line} {fields}");
    }
    assert!(live.ctl(&["status"]).is_some(), "none of that has ended it");
    let elsewhere = sim(&["live", live.file().to_str().unwrap(), "--page", "0.0.0.0:0"]);
    let error = words(&elsewhere.stderr);
    assert!(error.contains("only on loopback [SL-SIM-08]"), "{error}");
}
