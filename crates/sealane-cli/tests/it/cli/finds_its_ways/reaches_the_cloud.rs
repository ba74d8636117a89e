//! Field to cloud, for real: a machine in the field, a relay without keys, a gateway and a hub,
//! each on a network of its own. What the field measures is read by a member in a fifth place,
//! whoever is killed on the way and while the hub is down: once each, in order, and nobody on the
//! way holds a body.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use sealane::Value;

use super::super::brings_the_field_to_the_hub::{holds, memory};
use super::field::{Field, Machine};
use crate::cli::home::number;
use crate::cli::json;

const BASE: usize = 0;
const CLOUD: usize = 1;
const GATEWAY: usize = 2;
const RELAY: usize = 3;
const CAR: usize = 4;
const PATIENCE: Duration = Duration::from_secs(120);
/// What stands in each body, and is looked for.
const WORD: &str = "the bridge at the old mill";
/// What the field measures in each round: less than its log keeps.
const EACH_ROUND: usize = 6;
/// What may be on its way at once: three quarters of what the log of an origin keeps.
const MAX_UNDER_WAY: u64 = 48;
const TELEMETRY: u16 = 72;

/// A number of the environment, for long runs.
fn asked(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

struct Scene {
    hub: Option<Child>,
    machines: [Option<Machine>; 5],
    sent: u64,
    /// It goes last, with all files.
    field: Field,
}

impl Scene {
    fn start() -> Scene {
        let names = ["base", "cloud", "gateway", "relay", "car"];
        let field = Field::new(&names, &[(0, 1), (1, 2), (2, 3), (3, 4)]);
        let mut scene = Scene { field, hub: None, machines: Default::default(), sent: 0 };
        scene.write_tokens();
        scene.write_files();
        scene.start_hub();
        for machine in [CAR, RELAY, GATEWAY] {
            scene.start_machine(machine);
        }
        scene
    }

    fn write_tokens(&self) {
        let data = self.path("hub").display().to_string();
        for (name, rights) in [
            ("gateway", &["--publish", "mesh/**", "--read", "mesh/**"][..]),
            ("base", &["--read", "mesh/**", "--read", "groups/*", "--orders", "groups/*"]),
        ] {
            let new = [&["token", "new", name, "--data", &data], rights].concat();
            self.field.home.file(&format!("{name}.token"), "base", &new);
        }
    }

    fn write_files(&self) {
        let link = |wire: u8, host: u8| {
            format!(
                "[[link]]\nname = \"wire{wire}\"\nudp = \"10.77.{wire}.{host}:9190\"\n\
                 discover = true\n"
            )
        };
        let head = "version = 1\nstatus = \"127.0.0.1:9191\"\n";
        let cards = "cards = [\"fleet.card\"]\n";
        let routing = |who: &str| format!("[routing]\nkeys = \"{who}\"\ngroup = \"roads\"\n");
        let documents = |who: &str| format!("[documents]\nstore = \"{who}.documents\"\n");
        let links = [link(2, 2), link(3, 1)].concat();
        let relay = [head, cards, &links, &routing("relay"), &documents("relay")].concat();
        self.field.write("relay", &relay);
        let to_hub = "[gateway]\nhub = \"10.77.1.1:9087\"\ntoken = \"gateway.token\"\n\
                      queue = \"gateway.queue\"\n";
        let routed = format!("{}role = \"gateway\"\n", routing("gateway"));
        let parts = [head, cards, &link(2, 1), &routed, &documents("gateway"), to_hub];
        self.field.write("gateway", &parts.concat());
        let mesh = "[mesh]\naddresses = [\"10.9.0.2/24\"]\n[[mesh.member]]\nslot = 1\n\
                    prefixes = [\"10.9.0.2/32\"]\n";
        let own = format!("{}socket = \"car.socket\"\n", documents("car"));
        let parts = [head, &link(3, 2), "[routing]\ngroup = \"roads\"\n", &own, mesh];
        self.field.write("car", &parts.concat());
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.field.home.path(name)
    }

    fn start_hub(&mut self) {
        let mut command = self.field.command(CLOUD);
        command.args(["--json", "up", "--listen", "0.0.0.0:9087", "--data"]);
        let mut hub = command.arg(self.path("hub")).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(hub.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the hub did not start");
        self.hub = Some(hub);
    }

    fn kill_hub(&mut self) {
        let mut hub = self.hub.take().unwrap();
        hub.kill().unwrap();
        hub.wait().unwrap();
    }

    fn start_machine(&mut self, machine: usize) {
        self.machines[machine] = Some(self.field.start(machine));
    }

    /// SIGKILL, and the same again.
    fn kill(&mut self, machine: usize) {
        self.machines[machine].take().unwrap().kill();
        self.start_machine(machine);
    }

    /// The field measures: the load of this machine.
    fn measure(&mut self, count: usize) {
        for _ in 0..count {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap();
            let (n, load) = (self.sent, load.trim());
            let value = format!("{{\"n\": {n}, \"load\": \"{load}\", \"note\": \"{WORD}\"}}");
            let file = self.path("car.toml");
            let mut set = self.field.command(CAR);
            set.args(["doc", "set"]).arg(file).args([&TELEMETRY.to_string(), &value]);
            let output = set.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            self.sent += 1;
        }
    }

    /// What a member reads at the hub, over the network of the fifth place.
    fn at_base(&self, args: &[&str]) -> String {
        let mut command = self.field.command(BASE);
        let token = std::fs::read_to_string(self.path("base.token")).unwrap();
        command.env("SEALANE_SERVER", "10.77.0.2:9087").env("SEALANE_TOKEN", token.trim());
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn topic(&self) -> String {
        let card = std::fs::read_to_string(self.path("fleet.card")).unwrap();
        let tag = card.split('"').nth(1).unwrap();
        format!("mesh/{tag}/{TELEMETRY}")
    }

    /// How many frames the hub has.
    fn stored(&self) -> u64 {
        let listed = self.at_base(&["--json", "stream", "ls"]);
        let rows = listed
            .lines()
            .map(json)
            .filter(|row| row.field("stream").and_then(Value::as_text) == Some(&self.topic()));
        rows.map(|row| number(&row, "next")).sum()
    }

    fn waiting(&self) -> u64 {
        let told = self.field.told(GATEWAY, |told| told.field("gateway").is_some());
        number(told.field("gateway").unwrap().field("queue").unwrap(), "frames")
    }

    /// Waits until no more is under way than the log of the field keeps.
    fn until_near(&self, count: impl Fn() -> u64, what: &str) {
        let began = Instant::now();
        loop {
            let known = count();
            if known + MAX_UNDER_WAY >= self.sent {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {known} of {}", self.sent);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(hub) = &mut self.hub {
            let _ = hub.kill();
            let _ = hub.wait();
        }
    }
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn what_the_field_measures_is_read_in_a_fifth_place_whoever_is_killed() {
    let _turn = crate::TURN.blocking_lock();
    let (kills, seconds) = (asked("SEALANE_KILLS", 10), asked("SEALANE_SECONDS", 3));
    let mut scene = Scene::start();
    scene.measure(EACH_ROUND);
    scene.until_near(|| scene.stored(), "the first ones are stored");
    for kill in 0..kills {
        scene.measure(EACH_ROUND);
        scene.kill([GATEWAY, RELAY][kill % 2]);
        scene.measure(EACH_ROUND);
        scene.until_near(|| scene.stored(), "what was measured is stored");
    }
    // The hub is down; the gateway keeps what comes, and is killed as well.
    let before = scene.stored();
    scene.kill_hub();
    let down = Instant::now();
    scene.measure(MAX_UNDER_WAY as usize);
    scene.until_near(|| before + scene.waiting(), "what was measured is kept");
    scene.kill(GATEWAY);
    scene.measure(EACH_ROUND);
    scene.until_near(|| before + scene.waiting(), "what was measured is kept");
    std::thread::sleep(Duration::from_secs(seconds as u64).saturating_sub(down.elapsed()));
    scene.start_hub();
    let began = Instant::now();
    while scene.stored() < scene.sent {
        assert!(began.elapsed() < PATIENCE, "{} of {}", scene.stored(), scene.sent);
        std::thread::sleep(Duration::from_millis(100));
    }
    println!(
        "{} frames, {kills} kills: all stored {:?} after the hub",
        scene.sent,
        began.elapsed()
    );

    let (topic, count) = (scene.topic(), scene.sent.to_string());
    let read = ["sub", &topic, "--group", "fleet", "--from", "first", "--json", "-n", &count];
    let read = scene.at_base(&read);
    assert!(holds(read.as_bytes(), WORD), "what is looked for can be found");
    let numbers: Vec<u64> =
        read.lines().map(|line| number(json(line).field("envelope").unwrap(), "n")).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len() as u64, scene.sent, "each once: {numbers:?}");
    assert_eq!(scene.stored(), scene.sent, "nothing twice");
    // How long a machine takes to find its neighbours again decides whether a gateway waits for it.
    let behind = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
    println!("frames that stand behind a later one: {behind}");
    if std::env::var_os("SEALANE_DEMANDS").is_some() {
        assert_eq!(behind, 0, "in order: {numbers:?}");
    }
    nobody_on_the_way_holds_a_body(&scene);
}

fn nobody_on_the_way_holds_a_body(scene: &Scene) {
    let hub = scene.hub.as_ref().unwrap().id();
    let others = [GATEWAY, RELAY].map(|one| scene.machines[one].as_ref().unwrap().process());
    for process in [hub].into_iter().chain(others) {
        assert!(!holds(&memory(process), WORD), "the memory of process {process} holds a body");
    }
    let mut found = Vec::new();
    files(scene.field.home.folder(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    for file in found {
        assert!(!holds(&std::fs::read(&file).unwrap_or_default(), WORD), "{}", file.display());
    }
}
