//! The real binary.

use std::path::Path;
use std::process::{Command, Output};

use crate::folder;

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sealane-sim")).args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_run_is_logged_captured_drawn_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let [log, pcap, page, again] =
        ["run.jsonl", "run.pcap", "run.html", "again.html"].map(|name| dir.path().join(name));
    let chain = folder().join("mixed.toml");
    let args = ["run", path(&chain), "--seconds", "60", "--seed", "9", "--json"];
    let files = ["--pcap", path(&pcap), "--html", path(&page)];
    let lines = said(&sim(&[&args[..], &files[..]].concat()));
    assert!(lines.lines().all(|line| line.starts_with("{\"v\":1,\"at\":") && line.ends_with('}')));
    std::fs::write(&log, &lines).unwrap();
    let units = lines.matches("\"kind\":\"send\"").count();
    let records = records(&std::fs::read(&pcap).unwrap());
    assert_eq!(records, units, "each transmission is captured once");
    let replayed = said(&sim(&["replay", path(&log), "--html", path(&again)]));
    assert!(replayed.contains(&format!("sent       {units} units")), "{replayed}");
    let [page, again] = [page, again].map(|page| std::fs::read_to_string(page).unwrap());
    let data = |page: &str| {
        page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap().to_owned()
    };
    assert_eq!(data(&page), data(&again), "a replay draws the same map");
    for word in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(word), "the page fetches something: {word}");
    }
}

/// How many records a capture has, each within it.
fn records(file: &[u8]) -> usize {
    let (mut rest, mut count) = (&file[24..], 0);
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        assert_eq!(rest[8..12], rest[12..16]);
        rest = &rest[16 + length..];
        count += 1;
    }
    count
}

#[test]
fn what_is_wrong_is_said_with_its_code_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    for (text, said) in [
        ("version = 1\nduration_s = 1\nsede = 4\n", "line 3: unknown field `sede`"),
        ("version = 1\nduration_s = 1\nsede = 4\n", "did you mean `seed`? [SL-SIM-02]"),
        ("version = 1\nduration_s = 1\n", "there is no [[node]] [SL-SIM-02]"),
    ] {
        std::fs::write(&file, text).unwrap();
        for verb in ["run", "check"] {
            let output = sim(&[verb, path(&file)]);
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2));
            assert!(error.contains(said), "{error}");
        }
    }
    let output = sim(&["--json", "check", "/nowhere.toml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("\"code\":\"SL-SIM-05\"") && error.starts_with("{"), "{error}");
}

#[test]
fn a_log_that_was_changed_is_refused_by_line() {
    let scenario = folder().join("chain.toml");
    let log = said(&sim(&["run", path(&scenario), "--seconds", "12", "--json"]));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log.jsonl");
    let last = log.lines().count();
    for (from, to, wrong) in [
        ("\"kind\":\"deliver\"", "\"kind\":\"drop\"", "line "),
        ("\"heard\":[1]", "\"heard\":[1,2]", "the summary says"),
        ("\"heard\":[1]", "\"heard\":[100]", "there is no machine 100"),
        ("{\"v\":1,", "{\"v\":2,", "line 1: version 2 is not 1"),
        ("\"kind\":\"run\"", "\"kind\":\"walk\"", "line 1: unknown variant `walk`"),
        ("\"seed\":1,", "\"seed\":1,\"more\":1,", "line 1: unknown field `more`"),
        ("\"chain\"", "\"</script>\"", "line 1: a name that is none"),
    ] {
        let changed = log.replacen(from, to, 1);
        assert_ne!(changed, log, "{from}");
        std::fs::write(&file, changed).unwrap();
        let output = sim(&["replay", path(&file)]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains(wrong) && error.contains("[SL-SIM-04]"), "{error}: {wrong}");
    }
    let cut: String = log.lines().take(last - 1).map(|line| format!("{line}\n")).collect();
    for (text, wrong) in [
        (cut, "it ends without a summary"),
        (format!("{log}{log}"), "something follows the summary"),
        (String::new(), "it ends without a summary"),
        ("x".repeat(200_000), "it is longer than"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = String::from_utf8(sim(&["replay", path(&file)]).stderr).unwrap();
        assert!(error.contains(wrong), "{error}: {wrong}");
    }
}

#[test]
fn a_trace_of_sumo_moves_machines_that_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let [file, trace] = ["trace.toml", "drive.xml"].map(|name| dir.path().join(name));
    let steps: String = (0..30)
        .map(|s| {
            let two = if s >= 10 {
                format!("<vehicle id=\"b\" x=\"{s}\" y=\"3\"/>")
            } else {
                String::new()
            };
            format!(
                "<timestep time=\"{s}.00\"><vehicle id=\"a\" x=\"{}\" y=\"0\"/>{two}</timestep>\n",
                10 * s
            )
        })
        .collect();
    std::fs::write(&trace, format!("<fcd-export>\n{steps}</fcd-export>\n")).unwrap();
    let text = "version = 1\nduration_s = 40\n\
                [[medium]]\nname = \"road\"\nprofile = \"11p\"\n\
                [[motion]]\nname = \"drive\"\nkind = \"trace\"\nfile = \"drive.xml\"\n\
                [[node]]\nname = \"car\"\ncount = 2\nkind = \"beacon\"\nmedia = [\"road\"]\n\
                motion = \"drive\"\n";
    std::fs::write(&file, text).unwrap();
    let log = said(&sim(&["run", path(&file), "--json"]));
    let at = |kind: &str, node: u32| {
        let begin = format!("\"kind\":\"{kind}\",\"node\":{node},");
        let line = log.lines().find(|line| line.contains(&begin)).expect(kind);
        let at = line.split("\"at\":").nth(1).unwrap().split(',').next().unwrap();
        at.parse::<u64>().unwrap()
    };
    assert_eq!((at("join", 0), at("join", 1)), (0, 10_000_000));
    assert_eq!((at("leave", 0), at("leave", 1)), (29_100_000, 29_100_000));
    assert!(log.matches("\"kind\":\"move\",\"node\":0").count() > 25);
    std::fs::write(&file, text.replace("count = 2", "count = 3")).unwrap();
    let error = String::from_utf8(sim(&["check", path(&file)]).stderr).unwrap();
    assert!(error.contains("2 vehicles are fewer than 3 machines [SL-SIM-03]"), "{error}");
}
