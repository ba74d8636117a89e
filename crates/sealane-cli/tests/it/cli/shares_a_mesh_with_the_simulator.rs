//! `sealane sim live` with `[mesh]`: processes and machines of the simulator are members of one
//! mesh, so that what two processes say to each other crosses simulated relays, and a gateway with
//! a radio brings what it hears to its hub.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread::JoinHandle;

use sealane::Value;
use sealane_testing::require_namespaces;

use super::finds_its_ways::list;
use crate::cli::home::number;
use crate::cli::{json, text};

const BINARY: &str = env!("CARGO_BIN_EXE_sealane");

/// A machine that finds its ways over the simulated road.
const ROAD: &str = "version = 1\nstatus = \"127.0.0.1:9191\"\n[[link]]\nname = \"road\"\n\
                    ethernet = \"road\"\nmedium = \"11p\"\nmtu = 1502\n[routing]\n\
                    group = \"roads\"\n";

/// An echo request (RFC 792), and its answer within a second.
const PING: &str = "import socket, struct, sys; \
                    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); \
                    s.settimeout(1); rest = struct.pack(\"!HH\", 0x534c, 1); \
                    s.sendto(struct.pack(\"!BBH\", 8, 0, 0xffff & ~(0x0800 + 0x534c + 1)) + rest, \
                    (sys.argv[1], 0)); \
                    all(s.recv(99)[20:21] != bytes(1) for _ in iter(int, 1))";

/// 600 m between two processes, and two machines of the simulator between them. The radio reaches
/// 250 m. The gateway hears the base alone.
fn scenario() -> String {
    let process = |name: &str, at: [u32; 2], command: &str| {
        let [x, y] = at;
        format!(
            "[[node]]\nname = \"{name}\"\nkind = \"process\"\nmedia = [\"road\"]\n\
             at = [{x}, {y}]\ncommand = [\"sh\", \"-c\", '''{command}''']\n"
        )
    };
    let up = |name: &str| format!("exec {BINARY} mesh up fleet {name}.toml");
    let gateway = format!(
        "{BINARY} group relay-card fleet > fleet.card; \
         {BINARY} up --listen 127.0.0.1:9087 --data hub & \
         exec {BINARY} gateway gateway.toml"
    );
    [
        "version = 1\nduration_s = 300\n[mesh]\ngroup = \"roads\"\nends = \"fleet\"\n\
         keys = \"keys\"\n[[medium]]\nname = \"road\"\nprofile = \"11p\"\nrange_m = 250\n\
         fading = 0\n",
        &process("car", [0, 0], &up("car")),
        "[[node]]\nname = \"relay\"\ncount = 2\nkind = \"mesh\"\nmedia = [\"road\"]\n\
         at = [200, 0]\nline = [200, 0]\n",
        &process("base", [600, 0], &up("base")),
        &process("gateway", [600, 200], &gateway),
    ]
    .concat()
}

/// The file of an end: the car is the first process, the base the second.
fn end(name: &str, host: u32) -> String {
    let members = [1, 2].map(|host| {
        let slot = host - 1;
        format!("[[mesh.member]]\nslot = {slot}\nprefixes = [\"10.9.0.{host}/32\"]\n")
    });
    let documents =
        format!("[documents]\nstore = \"{name}.documents\"\nsocket = \"{name}.sock\"\n");
    format!("{ROAD}{documents}[mesh]\naddresses = [\"10.9.0.{host}/24\"]\n{}", members.concat())
}

/// A live run that ends with this.
struct Live {
    folder: tempfile::TempDir,
    prefix: String,
    run: Option<JoinHandle<()>>,
}

impl Live {
    fn start() -> Live {
        require_namespaces();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("live.toml", &scenario()).unwrap();
        write("car.toml", &end("car", 1)).unwrap();
        write("base.toml", &end("base", 2)).unwrap();
        let gateway = "role = \"gateway\"\n[documents]\nstore = \"gateway.documents\"\n\
                       [gateway]\nhub = \"127.0.0.1:9087\"\nqueue = \"gateway.queue\"\n";
        let cards = "cards = [\"fleet.card\"]\n";
        write("gateway.toml", &format!("{cards}{ROAD}{gateway}")).unwrap();
        let prefix = format!("shared{}", std::process::id());
        let words =
            ["sealane-sim", "live", "--prefix", prefix.as_str(), "--logs"].map(str::to_owned);
        let folders = [folder.path().to_owned(), folder.path().join("live.toml")];
        let words = words.into_iter().map(Into::into).chain(folders.map(PathBuf::into_os_string));
        let words: Vec<_> = words.collect();
        // It is in this process: what it says stands in the output of the tests.
        let run = std::thread::spawn(move || {
            let _ = sealane_sim::main(words);
        });
        Live { folder, prefix, run: Some(run) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a program in the namespace of a machine, with its keys.
    fn on(&self, machine: &str, words: &[&str]) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-{machine}", self.prefix)]).args(words);
        let keys = self.path("keys").join(machine);
        command.env("SEALANE_KEYS", keys).current_dir(self.folder.path()).output().unwrap()
    }

    /// The output of `sealane` on a machine, unless it fails.
    fn says(&self, machine: &str, words: &[&str]) -> Option<Vec<Value>> {
        let output = self.on(machine, &[&[BINARY, "--json"], words].concat());
        let out = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| out.lines().map(json).collect())
    }

    fn waits<T>(&self, what: &str, mut until: impl FnMut() -> Option<T>) -> T {
        let mut found = None;
        sealane_testing::until(what, || {
            let is_over = self.run.as_ref().is_some_and(JoinHandle::is_finished);
            assert!(!is_over, "{what}: not so; {}", self.logs());
            found = until();
            found.is_some()
        });
        found.unwrap()
    }

    fn logs(&self) -> String {
        let log = |name: &str| std::fs::read_to_string(self.path(name)).unwrap_or_default();
        ["car.log", "base.log", "gateway.log"].map(log).concat()
    }

    /// The newest epoch of the mesh that a machine holds.
    fn epoch(&self, machine: &str) -> Option<u64> {
        let told = self.says(machine, &["mesh", "status", &format!("{machine}.toml")])?;
        Some(number(told.first()?.field("routing")?, "epoch"))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Ok(mut orders) = UnixStream::connect(self.path("live.ctl")) {
            let _ = writeln!(orders, "{{\"do\":\"stop\"}}");
            let _ = BufReader::new(orders).read_line(&mut String::new());
        }
        let _ = self.run.take().map(JoinHandle::join);
    }
}

#[test]
#[ignore = "lab: needs root (network namespaces) and Python 3"]
fn what_processes_say_crosses_simulated_relays_and_a_gateway_hears_a_radio() {
    let _turn = crate::TURN.beside();
    let live = Live::start();
    let ping = ["python3", "-c", PING, "10.9.0.2"];
    live.waits("the base answers the car", || live.on("car", &ping).status.success().then_some(()));

    let traced = live.says("car", &["mesh", "trace", "car.toml", "base"]).unwrap();
    let hops = list(&traced[0], "hops");
    let names: Vec<_> = hops.iter().map(|hop| text(hop, "name")).collect();
    assert_eq!(names, ["car", "relay-1", "relay-2", "base"], "{traced:?}");

    // The authority of the mesh is the car: its order crosses the simulated machines, who obey it.
    live.says("car", &["group", "rotate", "roads"]).unwrap();
    live.waits("the base was re-keyed", || live.epoch("base").filter(|epoch| *epoch > 0));
    live.waits("it still answers", || live.on("car", &ping).status.success().then_some(()));

    let set = ["doc", "set", "base.toml", "72", "{\"note\": \"heard by radio\"}"];
    live.waits("the base writes", || live.says("base", &set));
    let card = live.says("base", &["group", "show", "fleet"]).unwrap();
    let stream = format!("mesh/{}/72", text(&card[0], "tag"));
    let read = ["sub", &stream, "--group", "fleet", "--from", "first", "--until-end"];
    let read = [&read[..], &["--server", "127.0.0.1:9087"]].concat();
    let authority = format!("SEALANE_KEYS={}", live.path("keys/car").display());
    let heard = live.waits("the hub has it", || {
        let heard = live.on("gateway", &[&["env", &authority, BINARY], &read[..]].concat());
        let out = String::from_utf8(heard.stdout).unwrap();
        out.contains("heard by radio").then_some(out)
    });
    assert_eq!(heard.matches("heard by radio").count(), 1, "{heard}");

    let prefix = live.prefix.clone();
    drop(live);
    let left = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    assert!(left.into_iter().all(|space| !space.file_name().to_string_lossy().contains(&prefix)));
}
