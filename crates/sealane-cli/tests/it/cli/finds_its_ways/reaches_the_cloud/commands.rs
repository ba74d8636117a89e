//! A command that is given at the hub reaches whoever watches in the field, past machines that
//! cannot read it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use sealane::Value;
use sealane_testing::{PATIENCE, until};

use super::scene::{GATEWAY, RELAY, Scene};
use crate::cli::home::number;
use crate::cli::{json, text};

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_command_from_the_hub_is_handed_to_those_who_watch_in_the_field() {
    let _turn = crate::TURN.beside();
    let mut scene = Scene::prepare_with(&["--pair"], &[], &[]);
    for machine in [scene.car, RELAY, GATEWAY] {
        scene.start_machine(machine);
    }
    scene.field.told(GATEWAY, |told| {
        let down = told.field("gateway").and_then(|gateway| gateway.field("down"));
        let routes = told.field("routing").map(|routing| super::super::list(routing, "routes"));
        down.is_some_and(|down| number(down, "followed") == 3)
            && routes.is_some_and(|routes| !routes.is_empty())
    });
    let mut watch = scene.field.command(scene.car);
    watch.args(["--json", "doc", "watch"]).arg(scene.path("car.toml")).stdout(Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let (shown, came) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| shown.send(line)));
    // A measurement is shown once the car's program watches.
    let measured = loop {
        scene.measure(1);
        if let Ok(line) = came.recv_timeout(Duration::from_millis(500)) {
            break json(&line);
        }
    };
    assert_eq!(text(&measured, "type"), "72", "{measured:?}");

    let topic = format!("mesh/{}/11", scene.tag());
    let go = ["pub", &topic, "{\"go\": \"home\"}", "--group", "fleet", "--type", "command"];
    scene.at_base(&go);
    let is_command = |line: &Value| text(line, "type") == "command";
    let command = loop {
        let line = json(&came.recv_timeout(PATIENCE).unwrap());
        if is_command(&line) {
            break line;
        }
    };
    assert_eq!((number(&command, "slot"), text(&command, "name")), (0, "base".to_owned()));
    assert_eq!(command.field("value").and_then(|value| value.field("go")), Some(&"home".into()));
    assert_eq!(command.field("isOld"), Some(&Value::Bool(false)), "{command:?}");
    watch.kill().unwrap();
    watch.wait().unwrap();
    a_line_of_chat_is_read_at_the_hub(&scene);
}

fn a_line_of_chat_is_read_at_the_hub(scene: &Scene) {
    scene.document(scene.car, "car", &["say", "the bridge is out"]);
    let topic = format!("mesh/{}/5", scene.tag());
    until("the line is stored", || scene.stored_in(&topic) == 1);
    let read = ["sub", &topic, "--group", "fleet", "--from", "first", "--json", "-n", "1"];
    let said = json(scene.at_base(&read).trim());
    let envelope = said.field("envelope").unwrap();
    assert_eq!(text(envelope, "text"), "the bridge is out", "{said:?}");
}
