use super::*;

/// A scenario with one of everything.
const ALL: &str = r#"version = 1
name = "all"
seed = 3
duration_s = 60

[[medium]]
name = "road"
profile = "11p"
range_m = 250
loss = 0.1

[[medium]]
name = "back"
profile = "wire"
delay_ms = 5

[[motion]]
name = "streets"
kind = "streets"
columns = 4
rows = 4

[[node]]
name = "car"
count = 3
kind = "flood"
media = ["road"]
motion = "streets"

[[node]]
name = "gate"
kind = "flood"
media = ["road", "back"]
at = [100, 50]

[[node]]
name = "hub"
kind = "flood"
media = ["back"]

[[link]]
medium = "back"
from = "gate"
to = "hub"
loss = 0.5

[[flow]]
from = "car"
to = "hub"
every_ms = 500
bytes = 100

[[event]]
at_s = 30
do = "partition"
sides = [["car"], ["gate", "hub"]]
"#;

#[test]
fn a_scenario_is_unfolded() {
    let scenario = Scenario::parse(ALL).unwrap();
    let names: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["car-1", "car-2", "car-3", "gate", "hub"]);
    assert_eq!(
        (scenario.seed, scenario.duration, scenario.links.len()),
        (3, SimSpan::from_s(60), 2)
    );
    let seats: Vec<_> = scenario.nodes.iter().filter_map(|node| node.motion).collect();
    assert_eq!(seats.iter().map(|rider| rider.seat).collect::<Vec<_>>(), [0, 1, 2]);
    let ScenarioAction::Partition(sides) = &scenario.events[0].act else { panic!() };
    assert_eq!(*sides, [vec![0, 1, 2], vec![3, 4]]);
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_was_meant() {
    for (from, to, said) in [
        ("range_m = 250", "rang_m = 250", "line 9: unknown field `rang_m`"),
        ("range_m = 250", "rang_m = 250", "did you mean `range_m`?"),
        ("[[flow]]", "[[flows]]", "did you mean `flow`?"),
        ("version = 1", "version = 2", "version = 2 is not 1"),
        ("duration_s = 60", "duration_s = 1e9", "duration_s = 1000000000 is not from"),
        ("duration_s = 60", "duration_s = nan", "duration_s = NaN is not from"),
        ("loss = 0.1", "loss = 1.5", "line 6: [[medium]] `road`: loss = 1.5 is not from 0 to 1"),
        ("loss = 0.1", "loss = nan", "loss = NaN is not from 0 to 1"),
        ("\"11p\"", "\"10p\"", "did you mean `11p`?"),
        ("range_m = 250", "mtu = 250", "mtu does not go with `11p`"),
        ("name = \"back\"", "name = \"road\"", "another one has this name"),
        ("name = \"back\"", "name = \"Back\"", "a name is 1 to 32 of"),
        ("columns = 4\n", "", "columns is missing"),
        ("count = 3", "count = 0", "count: 1 to 4096 machines"),
        ("count = 3", "count = 9999999", "count: 1 to 4096 machines"),
        (
            "media = [\"back\"]",
            "media = [\"bak\"]",
            "no medium is called `bak`; did you mean `back`?",
        ),
        ("motion = \"streets\"", "motion = \"street\"", "did you mean `streets`?"),
        ("name = \"hub\"", "name = \"car-1\"", "called `car-1`"),
        ("from = \"gate\"", "from = \"car\"", "`car-1` is not on `back`"),
        ("medium = \"back\"", "medium = \"road\"", "is one air for all"),
        ("every_ms = 500", "every_ms = 0", "every_ms = 0 is not from 0.1"),
        ("bytes = 100", "bytes = 100000", "bytes = 100000 is not from 8 to"),
        ("do = \"partition\"", "do = \"partitoin\"", "did you mean `partition`?"),
        ("[\"gate\", \"hub\"]", "[\"gate\", \"hud\"]", "did you mean `hub`?"),
        (
            "kind = \"flood\"",
            "kind = \"flod\"",
            "kind `flod` is none of beacon, flood, mesh, process; did you mean `flood`?",
        ),
        (
            "\"hub\"\nkind = \"flood\"",
            "\"hub\"\nkind = \"mesh\"",
            "`car-1` and `hub` run different programs",
        ),
        (
            "count = 3\nkind = \"flood\"",
            "count = 1025\nkind = \"mesh\"",
            "a mesh has 1024 members at most",
        ),
        ("at_s = 30", "at_s = \"x\"", "line "),
    ] {
        let text = ALL.replacen(from, to, 1);
        assert_ne!(text, ALL, "{from}");
        let error = Scenario::parse(&text).unwrap_err();
        assert_eq!(error.info().code, "SL-SIM-02");
        assert!(error.to_string().contains(said), "{error}\n{said}");
    }
    let long = "#".repeat(MAX_SCENARIO_BYTES + 1);
    assert!(Scenario::parse(&long).is_err());
}

#[test]
fn processes_and_cuts_are_of_their_own_kind() {
    for (from, to, said) in [
        (
            "count = 3\nkind = \"flood\"",
            "count = 3\nkind = \"process\"",
            "`car-1` is none that messages are made for",
        ),
        ("kind = \"flood\"", "kind = \"flood\"\ncommand = [\"ls\"]", "command does not go with"),
        ("do = \"partition\"", "do = \"cut\"\nwho = [\"hub\"]", "who does not go with `cut`"),
    ] {
        let error = Scenario::parse(&ALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}\n{said}");
    }
    let three =
        ALL.replacen("\"partition\"", "\"cut\"", 1).replacen("sides = [", "sides = [[], ", 1);
    assert!(Scenario::parse(&three).unwrap_err().to_string().contains("two lists of machines"));
}

#[test]
fn the_groups_of_a_live_run_are_read_and_refused_by_name() {
    let with = |mesh: &str| Scenario::parse(&ALL.replacen("seed = 3", mesh, 1));
    let read = with("[mesh]\ngroup = \"roads\"\nends = \"fleet\"\n");
    // A table that stands before other keys of the file takes them for its own.
    assert!(read.unwrap_err().to_string().contains("unknown field `duration_s`"));
    let with = |mesh: &str| Scenario::parse(&format!("{ALL}\n[mesh]\n{mesh}"));
    let read =
        with("group = \"roads\"\nends = \"fleet\"\nkeys = \"keys\"\n").unwrap().mesh.unwrap();
    assert_eq!((read.group.as_str(), read.ends.as_deref()), ("roads", Some("fleet")));
    assert_eq!(read.keys.as_deref(), Some("keys"));
    for (mesh, said) in [
        ("", "missing field `group`"),
        ("group = \"Roads\"", "[mesh] `Roads`: a name is 1 to 32 of"),
        ("group = \"roads\"\nends = \"\"", "a name is 1 to 32 of"),
        ("group = \"roads\"\nends = \"roads\"", "a group of its own"),
        ("group = \"roads\"\nend = \"fleet\"", "did you mean `ends`?"),
    ] {
        let error = with(mesh).unwrap_err().to_string();
        assert!(error.contains(said), "{error}\n{said}");
    }
}

#[test]
fn documents_are_of_a_type_for_applications_and_all_in_the_mesh_keep_them() {
    let text = |flow: &str, kind: &str, count: usize| {
        format!(
            "version = 1\nname = \"x\"\nduration_s = 9\n[[medium]]\nname = \"air\"\n\
             profile = \"11p\"\n[[node]]\nname = \"car\"\ncount = {count}\nkind = \"{kind}\"\n\
             media = [\"air\"]\n[[flow]]\nfrom = \"car\"\nevery_ms = 500\n{flow}\n"
        )
    };
    let flow = "to = \"*\"\nbytes = 40\ndocument = 72";
    let scenario = Scenario::parse(&text(flow, "mesh", 2)).unwrap();
    assert_eq!(scenario.flows[0].document.map(|of| of.number()), Some(72));
    for (flow, kind, count, said) in [
        ("to = \"*\"\nbytes = 40\ndocument = 7", "mesh", 2, "document = 7 is not from 64 to 79"),
        ("to = \"car-1\"\nbytes = 40\ndocument = 72", "mesh", 2, "a receiver does not go with"),
        (&format!("{flow}\nurgent = true"), "mesh", 2, "urgent does not go with `document`"),
        (&format!("{flow}\nanswered_ms = 5"), "mesh", 2, "answered_ms does not go with"),
        ("to = \"*\"\nbytes = 800\ndocument = 72", "mesh", 2, "bytes: a document has at most 768"),
        (flow, "flood", 2, "`car-1` is not of kind `mesh`"),
        (flow, "mesh", 257, "more than 256 machines would keep documents"),
    ] {
        let error = Scenario::parse(&text(flow, kind, count)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}\n{said}");
    }
}

#[test]
fn what_flows_ask_for_is_bounded() {
    let many = ALL.replace("to = \"hub\"\nevery_ms = 500", "to = \"*\"\nevery_ms = 0.1");
    let many =
        many.replace("count = 3", "count = 3000").replace("duration_s = 60", "duration_s = 86400");
    let error = Scenario::parse(&many).unwrap_err().to_string();
    assert!(error.contains("[[flow]]: all flows: more than"), "{error}");
}
