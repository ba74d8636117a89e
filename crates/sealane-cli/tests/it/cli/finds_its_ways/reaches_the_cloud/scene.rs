//! A hub, a gateway, a relay without keys and somebody in the field, each on a network of its own.

use sealane::Value;
use sealane_testing::{TestProcess, succeed, until_told};

use super::super::field::Field;
use crate::cli::home::number;
use crate::cli::{Machine, json};

pub(super) const BASE: usize = 0;
pub(super) const CLOUD: usize = 1;
pub(super) const GATEWAY: usize = 2;
pub(super) const RELAY: usize = 3;
/// The text in each body, which the test looks for.
pub(super) const WORD: &str = "the bridge at the old mill";
/// The messages that may be on their way at once: three quarters of the log of an origin.
pub(super) const MAX_UNDER_WAY: u64 = 48;
pub(super) const TELEMETRY: u16 = 72;

/// The authority's place, the hub, the gateway and the relay; behind the relay whoever else is
/// there, and last the car.
pub(super) struct Scene {
    pub(super) hub: Option<TestProcess>,
    pub(super) machines: Vec<Option<Machine>>,
    pub(super) sent: u64,
    pub(super) car: usize,
    /// It goes last, with all files.
    pub(super) field: Field,
}

impl Scene {
    /// All machines are there, and none of them runs but the hub. `between` are those beside the
    /// car, and `wires` theirs; each wire of the relay beyond the first two is a link of it.
    pub(super) fn prepare(between: &[&'static str], wires: &[(usize, usize)]) -> Scene {
        Scene::prepare_with(&[], between, wires)
    }

    /// The same, where the group is made with these options.
    pub(super) fn prepare_with(
        options: &[&str],
        between: &[&'static str],
        wires: &[(usize, usize)],
    ) -> Scene {
        let names = [&["base", "cloud", "gateway", "relay"][..], between, &["car"]].concat();
        let car = names.len() - 1;
        let usual = [(BASE, CLOUD), (CLOUD, GATEWAY), (GATEWAY, RELAY), (RELAY, car)];
        let wires = [&usual[..], wires].concat();
        let field = Field::new_with(options, &names, &wires);
        let machines = names.iter().map(|_| None).collect();
        let mut scene = Scene { field, hub: None, machines, sent: 0, car };
        scene.write_tokens();
        let of_relay = wires.iter().enumerate().skip(4).filter(|(_, (one, _))| *one == RELAY);
        let more: Vec<u8> = of_relay.map(|(number, _)| number as u8).collect();
        scene.write_files(&more);
        scene.start_hub();
        scene
    }

    /// The same, and they run.
    pub(super) fn start(between: &[&'static str], wires: &[(usize, usize)]) -> Scene {
        let mut scene = Scene::prepare(between, wires);
        for machine in [scene.car, RELAY, GATEWAY] {
            scene.start_machine(machine);
        }
        scene
    }

    pub(super) fn write_tokens(&self) {
        let data = self.path("hub").display().to_string();
        for (name, rights) in [
            ("gateway", &["--publish", "mesh/**", "--read", "mesh/**", "--read", "groups/*"][..]),
            (
                "base",
                &[
                    &["--read", "mesh/**", "--publish", "mesh/**"][..],
                    &["--read", "groups/*", "--orders", "groups/*"],
                ]
                .concat(),
            ),
        ] {
            let new = [&["token", "new", name, "--data", &data], rights].concat();
            self.field.home.file(&format!("{name}.token"), "base", &new);
        }
    }

    pub(super) fn write_files(&self, more: &[u8]) {
        let more: String = more.iter().map(|wire| link(*wire, 1)).collect();
        self.write_relay("relay", &[link(2, 2), link(3, 1), more].concat());
        self.write_gateway("gateway", &link(2, 1), "10.77.1.1:9087");
        self.write_end("car", &link(3, 2), 1);
    }

    pub(super) fn write_relay(&self, who: &str, links: &str) {
        let parts = [HEAD, CARDS, links, &routing(who), &documents(who)];
        self.field.write(who, &parts.concat());
    }

    pub(super) fn write_gateway(&self, who: &str, links: &str, hub: &str) {
        let to_hub = format!(
            "[gateway]\nhub = \"{hub}\"\ntoken = \"gateway.token\"\nqueue = \"{who}.queue\"\n"
        );
        let routed = format!("{}role = \"gateway\"\n", routing(who));
        let parts = [HEAD, CARDS, links, &routed, &documents(who), &to_hub];
        self.field.write(who, &parts.concat());
    }

    /// A member of the slot in `fleet`.
    pub(super) fn write_end(&self, who: &str, links: &str, slot: u8) {
        let host = slot + 1;
        let mesh = format!(
            "[mesh]\naddresses = [\"10.9.0.{host}/24\"]\n[[mesh.member]]\nslot = {slot}\n\
             prefixes = [\"10.9.0.{host}/32\"]\n"
        );
        let own = format!("{}socket = \"{who}.socket\"\n", documents(who));
        let parts = [HEAD, links, "[routing]\ngroup = \"roads\"\n", &own, &mesh];
        self.field.write(who, &parts.concat());
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.field.home.path(name)
    }

    pub(super) fn start_hub(&mut self) {
        let mut command = self.field.command(CLOUD);
        command.args(["--json", "up", "--listen", "0.0.0.0:9087", "--data"]);
        self.hub = Some(TestProcess::started(command.arg(self.path("hub"))).0);
    }

    pub(super) fn kill_hub(&mut self) {
        self.hub.take().unwrap().kill();
    }

    pub(super) fn start_machine(&mut self, machine: usize) {
        self.machines[machine] = Some(self.field.start(machine));
    }

    /// SIGKILL, and the same again.
    pub(super) fn kill(&mut self, machine: usize) {
        self.machines[machine].take().unwrap().process.kill();
        self.start_machine(machine);
    }

    /// The field measures: the load of this machine.
    pub(super) fn measure(&mut self, count: usize) {
        for _ in 0..count {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap();
            let (n, load) = (self.sent, load.trim());
            let value = format!("{{\"n\": {n}, \"load\": \"{load}\", \"note\": \"{WORD}\"}}");
            self.document(self.car, "car", &["set", &TELEMETRY.to_string(), &value]);
            self.sent += 1;
        }
    }

    /// The output of `sealane doc` on a machine.
    pub(super) fn document(&self, machine: usize, who: &str, args: &[&str]) -> String {
        let file = self.path(&format!("{who}.toml"));
        let mut command = self.field.command(machine);
        command.args(["--json", "doc", args[0]]).arg(file).args(&args[1..]);
        succeed(&mut command)
    }

    /// The output of a member at the hub, over the network of the fifth place.
    pub(super) fn at_base(&self, args: &[&str]) -> String {
        let mut command = self.field.command(BASE);
        let token = std::fs::read_to_string(self.path("base.token")).unwrap();
        command.env("SEALANE_SERVER", "10.77.0.2:9087").env("SEALANE_TOKEN", token.trim());
        succeed(command.args(args))
    }

    /// The tag of the group.
    pub(super) fn tag(&self) -> String {
        let card = std::fs::read_to_string(self.path("fleet.card")).unwrap();
        card.split('"').nth(1).unwrap().to_owned()
    }

    pub(super) fn topic(&self) -> String {
        format!("mesh/{}/{TELEMETRY}", self.tag())
    }

    /// How many frames of telemetry the hub has.
    pub(super) fn stored(&self) -> u64 {
        self.stored_in(&self.topic())
    }

    pub(super) fn stored_in(&self, topic: &str) -> u64 {
        let listed = self.at_base(&["--json", "stream", "ls"]);
        let rows = listed
            .lines()
            .map(json)
            .filter(|row| row.field("stream").and_then(Value::as_text) == Some(topic));
        rows.map(|row| number(&row, "next")).sum()
    }

    pub(super) fn waiting(&self) -> u64 {
        let told = self.field.told(GATEWAY, |told| told.field("gateway").is_some());
        number(told.field("gateway").unwrap().field("queue").unwrap(), "frames")
    }

    /// Waits until no more is under way than the log of the field keeps.
    #[track_caller]
    pub(super) fn until_near(&self, count: impl Fn() -> u64) {
        until_told(count, |known| known + MAX_UNDER_WAY >= self.sent);
    }
}

const HEAD: &str = "version = 1\nstatus = \"127.0.0.1:9191\"\n";
const CARDS: &str = "cards = [\"fleet.card\"]\n";

/// A machine's end of a wire.
pub(super) fn link(wire: u8, host: u8) -> String {
    format!(
        "[[link]]\nname = \"wire{wire}\"\nudp = \"10.77.{wire}.{host}:9190\"\ndiscover = true\n"
    )
}

fn routing(who: &str) -> String {
    format!("[routing]\nkeys = \"{who}\"\ngroup = \"roads\"\n")
}

fn documents(who: &str) -> String {
    format!("[documents]\nstore = \"{who}.documents\"\n")
}
