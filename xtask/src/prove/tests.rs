use super::*;

fn find(name: &str) -> ProofSpec {
    proofs().unwrap().into_iter().find(|proof| proof.name == name).unwrap()
}

fn said(name: &str) -> String {
    process::shown(&find(name).command(&[]))
}

#[test]
fn the_list_names_every_proof_and_its_size() {
    let list = list(&proofs().unwrap());
    assert!(list.contains("  kill\n") && list.contains("SEALANE_KILLS=50"), "{list}");
    assert!(run(&["sleep".to_owned()]).unwrap_err().contains("no proof `sleep`"));
    let scripts = proofs().unwrap().into_iter().filter(|proof| proof.kind == ProofKind::Script);
    scripts.for_each(|proof| assert!(needs::exists(proof.first_word()), "{}", proof.name));
}

#[test]
fn the_instrument_is_built_with_what_it_measures_and_records_name_the_profile() {
    let load = find("load");
    let first = load.preparation().map(|command| process::shown(&command)).unwrap();
    assert!(first.ends_with(" build --profile ship"), "{first}");
    assert!(said("load").ends_with(" run --profile ship --bin sealane-bench -- load"));
    let state = WorktreeState { commit: "c".to_owned(), changed: String::new() };
    assert!(head(&load, &state).unwrap().contains("\nprofile: ship\n"));
    assert!(head(&find("upgrade"), &state).unwrap().contains("\nprofile: dev\n"));
    // Scripts build what they drive.
    for proof in proofs().unwrap() {
        if proof.kind != ProofKind::Script && proof.profile == SHIP {
            assert!(said(&proof.name).contains("--profile ship"), "{}", proof.name);
        }
    }
}

#[test]
fn proofs_say_to_their_programs_what_they_show() {
    assert!(said("cost").ends_with(" --link ble-1m --link lora-sf7 --link 11p"));
    let fuzz = "-- fuzz document hello exchange --inputs 100000000";
    assert!(said("fuzz").ends_with(fuzz), "{}", said("fuzz"));
    assert_eq!(said("sumo"), "python3 tests/python/sumo.py");
}

#[test]
fn a_run_needs_a_test_that_ran_and_none_that_was_skipped() {
    const CLOSING: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; finished in 3s";
    let of = |lines: &[&str], tests| {
        let mut record = ProofRecord::into(File::open("/dev/null").unwrap());
        lines.iter().for_each(|line| record.hear(line));
        record.fault(tests)
    };
    assert_eq!(of(&["running 2 tests", CLOSING], true), None);
    let none = CLOSING.replace("2 passed", "0 passed");
    assert_eq!(of(&["running 0 tests", &none], true).as_deref(), Some("no test ran"));
    assert_eq!(of(&[], true).as_deref(), Some("no test ran"));
    for skip in ["NOT SHOWN: no root", "not tested: no library", "skipped 1: needs root"] {
        assert_eq!(of(&[skip, CLOSING], true), Some(format!("a test was skipped: {skip}")));
    }
    assert_eq!(of(&[], false), None, "a bench has no tests");
}

#[test]
fn arguments_replace_the_environment_or_go_to_the_test() {
    let words = ["SEALANE_KILLS=3".to_owned(), "--exact=x".to_owned()];
    let command = find("kill").command(&words.iter().collect::<Vec<_>>());
    let kills = command.get_envs().find(|(key, _)| *key == "SEALANE_KILLS");
    assert_eq!(kills.and_then(|(_, value)| value), Some("3".as_ref()));
    let shown = process::shown(&command);
    let words = "--test it survives_kill -- --include-ignored --skip as_process_ --nocapture";
    assert!(shown.ends_with(&format!("{words} --exact=x")), "{shown}");
}

#[test]
fn a_record_holds_head_output_and_result_and_no_folder() {
    let path = std::env::temp_dir().join(format!("sealane-prove-{}", std::process::id()));
    let mut command = process::program("sh");
    command.args(["-c", "pwd; echo oops >&2; exit 3"]);
    let run = RecordedRun { preparation: None, command, tests: false };
    let file = File::create(&path).unwrap();
    let failure = record(run, "machine\n", file, None).unwrap_err();
    assert!(failure.contains("exit status: 3"), "{failure}");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("machine\ncommand: sh -c"), "{text}");
    assert!(text.contains("\n.\n") && text.contains("\noops\n"), "{text}");
    assert!(text.contains("result: FAILED, exit status: 3"), "{text}");
}

#[test]
fn a_run_without_a_test_and_one_of_uncommitted_changes_fail() {
    let path = std::env::temp_dir().join(format!("sealane-prove-none-{}", std::process::id()));
    let recorded = |state: Option<&WorktreeState>| {
        let mut command = process::program("sh");
        command.args(["-c", "echo ran; echo 'test result: ok. 0 passed; 0 failed'"]);
        let run = RecordedRun { preparation: None, command, tests: true };
        let failure = record(run, "", File::create(&path).unwrap(), state).unwrap_err();
        (failure, std::fs::read_to_string(&path).unwrap())
    };
    let (failure, text) = recorded(None);
    assert!(failure.ends_with("no test ran"), "{failure}");
    assert!(text.contains("\nran\n") && text.contains("result: FAILED, no test ran"), "{text}");
    let changed = WorktreeState { commit: "c".to_owned(), changed: " M a.rs\n".to_owned() };
    let (failure, text) = recorded(Some(&changed));
    assert!(failure.contains("uncommitted changes: commit them, or give --dirty"), "{failure}");
    assert!(!text.contains("\nran\n") && text.contains("result: FAILED, there are"), "{text}");
    std::fs::remove_file(&path).unwrap();
}
