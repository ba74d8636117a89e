//! `sealane gateway` beside a hub: what the field sends is there once and in order, whoever is
//! killed, and nobody on the way holds a body.

use std::net::UdpSocket;

use sealane::{Codec, Value};
use sealane_frame::{FrameBuf, FrameView, HEADER_BYTES, open_stored};
use sealane_group::{EpochSource, GroupMember, GroupSender, KeyFolder};
use sealane_seal::{Binding, Class};
use sealane_testing::{
    PATIENCE, TestProcess, free_address, holds, now_ms, process_memory, until_told,
};

use super::fleet::{fails, file, fleet_with, keys, lines, run};
use super::relays_without_keys::host;
use super::writes_json::StatusPage;
use crate::cli::home::number;
use crate::cli::{NodeProcess, json, text};

const TELEMETRY: u16 = 72;
const FRAMES: usize = 60;
/// The text in each body, which the test looks for.
const WORD: &str = "the bridge at the old mill";

/// A hub, a gateway before it, and somebody in the field who sends by UDP.
struct Scene {
    node: NodeProcess,
    gateway: Option<TestProcess>,
    field: UdpSocket,
    sender: GroupSender,
    topic: String,
    link: String,
    sent: u64,
}

impl Scene {
    /// Each on an own host of the loopback network, since they run at the same time.
    fn start(own: u8) -> Scene {
        Scene::start_with(own, &[])
    }

    /// The same, where the group is made with these options.
    fn start_with(own: u8, options: &[&str]) -> Scene {
        let link = format!("{}:9190", host(own));
        let node = fleet_with(options, &["car"]);
        file(&node, "base", "fleet.card", &["group", "relay-card", "fleet"]);
        let member = KeyFolder::open(&keys(&node, "car"), None).unwrap().group("fleet").unwrap();
        let field = UdpSocket::bind((host(own + 1), 0)).unwrap();
        field.set_read_timeout(Some(PATIENCE)).unwrap();
        let page = free_address();
        let config = format!(
            "version = 1\ntag = \"b1000000000000a1\"\nstatus = \"{page}\"\n\
             cards = [\"fleet.card\"]\n[[link]]\nname = \"road\"\nudp = \"{}\"\n\
             [[neighbour]]\nname = \"car\"\ntag = \"slot 1\"\nlink = \"road\"\n\
             address = \"{}\"\n[gateway]\nhub = \"{}\"\nqueue = \"gateway.queue\"\n",
            link,
            field.local_addr().unwrap(),
            node.address
        );
        std::fs::write(node.home().join("gateway.toml"), config).unwrap();
        let topic = format!("mesh/{}/{TELEMETRY}", member.tag());
        let sender = member.sender().unwrap();
        let mut scene = Scene { node, gateway: None, field, sender, topic, link, sent: 0 };
        scene.gateway = Some(scene.gateway());
        scene
    }

    fn gateway(&self) -> TestProcess {
        let mut gateway = self.node.follow(&["--json", "gateway", &self.config()]);
        let started = json(&gateway.line());
        assert_eq!(text(&started, "hub"), self.node.address);
        gateway
    }

    fn config(&self) -> String {
        self.node.home().join("gateway.toml").display().to_string()
    }

    /// The next frames of the field, one after the other.
    fn send(&mut self, count: usize) {
        let fields = self.sender.fields(Class::Group, TELEMETRY);
        let (binding, mut buf) = (Binding::stream(&self.topic), FrameBuf::new());
        for _ in 0..count {
            let body = vec![("n".to_owned(), self.sent.into()), ("note".to_owned(), WORD.into())];
            let mut bytes = Vec::new();
            sealane_codec::encode(Codec::Cbor, &Value::Map(body), &mut bytes);
            let frame = self.sender.seal(&fields, &binding, &bytes, &mut buf).unwrap();
            self.field.send_to(frame, &self.link).unwrap();
            self.sent += 1;
        }
    }

    fn status(&self, args: &[&str]) -> String {
        self.node.run(&[&["mesh", "status", &self.config()], args].concat())
    }

    #[track_caller]
    fn until(&self, is_so: impl Fn(&Value) -> bool) {
        let status = || json(&self.status(&["--json"]));
        until_told(status, |status| status.field("gateway").is_some_and(&is_so));
    }

    /// The next frame that comes to the field.
    fn heard(&self) -> Vec<u8> {
        let mut unit = vec![0; 1 << 16];
        loop {
            let bytes = self.field.recv(&mut unit).unwrap();
            // Notes of the relay begin with 1, as one of 256 tags of a next hop does.
            if bytes >= HEADER_BYTES || unit[0] != 1 {
                return unit[..bytes].to_vec();
            }
        }
    }

    fn car(&self) -> GroupMember {
        let folder = KeyFolder::open(&keys(&self.node, "car"), None).unwrap();
        folder.group("fleet").unwrap()
    }

    fn kill_gateway(&mut self) {
        self.gateway.take().unwrap().kill();
    }

    fn kill_hub(&mut self) {
        self.node.process.kill();
    }
}

fn waiting(gateway: &Value) -> u64 {
    number(gateway.field("queue").unwrap(), "frames")
}

#[test]
fn what_the_field_sends_is_in_the_hub_once_whoever_is_killed() {
    let mut scene = Scene::start(30);
    scene.send(FRAMES);
    scene.until(|gateway| number(gateway, "stored") == FRAMES as u64 && waiting(gateway) == 0);
    StatusPage::read().compare("mesh status CONFIG", &scene.status(&["--json"]));
    for line in ["gateway to", ": up since", "waiting     0 ("] {
        assert!(scene.status(&[]).contains(line), "{line}: {}", scene.status(&[]));
    }

    // The hub goes, and while frames wait for it the gateway goes, again and again.
    scene.kill_hub();
    for round in 1..=3 {
        scene.send(FRAMES);
        scene.until(|gateway| waiting(gateway) == round * FRAMES as u64);
        scene.until(|gateway| text(gateway.field("hub").unwrap(), "state") == "away");
        StatusPage::read().compare("mesh status CONFIG", &scene.status(&["--json"]));
        scene.kill_gateway();
        scene.gateway = Some(scene.gateway());
    }
    let gateway = scene.gateway.as_ref().unwrap().id();
    assert!(!holds(&process_memory(gateway), WORD), "the gateway's memory holds a body");
    scene.node.restart();
    scene.until(|gateway| waiting(gateway) == 0);
    let count = 4 * FRAMES;
    let read = lines(&scene.node, "base", &scene.topic, &count.to_string());
    assert!(holds(read.as_bytes(), WORD), "what is looked for can be found");
    let envelope = |line: &str| json(line).field("envelope").cloned().unwrap();
    let numbers = read.lines().map(|line| number(&envelope(line), "n"));
    assert!(numbers.eq(0..count as u64), "each once, in order");
    let info = json(&scene.node.run(&["--json", "stream", "info", &scene.topic]));
    assert_eq!(number(&info, "next"), count as u64);
    for name in ["gateway.queue", "gateway.queue-wal", "data/streams.db", "data/streams.db-wal"] {
        let file = std::fs::read(scene.node.home().join(name)).unwrap_or_default();
        assert!(!holds(&file, WORD), "{name} holds a body");
    }
    assert!(
        !holds(&process_memory(scene.node.process.id()), WORD),
        "the hub's memory holds a body"
    );
}

#[test]
fn what_is_said_at_the_hub_reaches_the_field() {
    let scene = Scene::start(32);
    scene.until(|gateway| number(gateway.field("down").unwrap(), "followed") == 3);
    let topic = scene.topic.replace("/72", "/5");
    let said = ["pub", &topic, "{\"text\": \"come home\"}", "--group", "fleet", "--type", "chat"];
    run(&scene.node, "base", &said);
    let frame = scene.heard();
    let member = scene.car();
    let header = *FrameView::parse(&frame).unwrap().header();
    assert_eq!((header.group(), header.data_type()), (member.tag(), 5));
    assert!(!holds(&frame, "come home"));
}

/// Class P: the two of a pair, and nobody on the way.
#[test]
fn a_command_to_a_machine_comes_down_as_it_was_sealed_and_opens_there() {
    let scene = Scene::start_with(36, &["--pair"]);
    scene.until(|gateway| number(gateway.field("down").unwrap(), "followed") == 3);
    let topic = scene.topic.replace("/72", "/11");
    let command = ["pub", &topic, "{\"go\": \"home\"}", "--group", "fleet", "--type", "command"];
    run(&scene.node, "base", &command);
    let mut frame = scene.heard();
    let header = *FrameView::parse(&frame).unwrap().header();
    assert_eq!((header.class(), header.data_type()), (Class::Peer, 11));
    assert!(!holds(&frame, "home"));
    let car = scene.car();
    let (mut opener, newest) = (car.opener().unwrap(), car.epochs().newest());
    let message = open_stored(&mut opener, newest, &Binding::stream(&topic), &mut frame).unwrap();
    // A command begins with the time at which it was given.
    let (time, body) = message.body.split_first_chunk().unwrap();
    assert!(now_ms().abs_diff(u64::from_le_bytes(*time)) < PATIENCE.as_millis() as u64);
    assert_eq!(text(&json(std::str::from_utf8(body).unwrap()), "go"), "home");
    scene.until(|gateway| number(gateway.field("down").unwrap(), "put") == 1);
}

#[test]
fn what_a_gateway_cannot_start_with_is_named() {
    let scene = Scene::start(34);
    let folder = scene.node.home();
    let good = std::fs::read_to_string(scene.config()).unwrap();
    let other = folder.join("other.toml").display().to_string();
    let port = |text: &str| text.replace(":9190", ":9191").replace("status = ", "#");
    for (from, to, code, what) in [
        ("[gateway]", "[gatway]", 2, "gatway"),
        ("tag = \"b1000000000000a1\"", "tag = \"slot 0\"", 2, "a gateway needs an own address"),
        ("queue = \"gateway.queue\"", "queue = \"no/where\"", 5, "no/where"),
        ("queue = \"gateway.queue\"", "queue = \"gateway.queue\"\nup = [13]", 2, "packets"),
        ("queue = \"gateway.queue\"", "queue = \"gateway.queue\"\ntoken = \"none\"", 2, "none"),
    ] {
        assert!(good.contains(from), "{from}");
        std::fs::write(&other, port(&good.replacen(from, to, 1))).unwrap();
        let said = fails(&scene.node, "base", &["gateway", &other], code);
        assert!(said.contains(what), "{what}: {said}");
    }
    std::fs::write(&other, port(&good[..good.find("[gateway]").unwrap()])).unwrap();
    let said = fails(&scene.node, "base", &["gateway", &other], 2);
    assert!(said.contains("SL-GATEWAY-05") && said.contains("[gateway] is missing"), "{said}");
    // The queue has an owner.
    std::fs::write(&other, port(&good)).unwrap();
    let said = fails(&scene.node, "base", &["gateway", &other], 5);
    assert!(said.contains("SL-GATEWAY-01"), "{said}");
}
