use super::*;

#[test]
fn the_list_names_every_proof_and_its_size() {
    assert!(list().contains("  kill\n") && list().contains("SEALANE_KILLS=50"), "{}", list());
    assert!(run(&["sleep".to_owned()]).unwrap_err().contains("no proof `sleep`"));
}

#[test]
fn the_instrument_is_built_with_what_it_measures_and_records_name_the_profile() {
    let find = |name: &str| PROOFS.iter().find(|proof| proof.name == name).unwrap();
    let load = find("load");
    let first = preparation(load).map(|command| process::shown(&command)).unwrap();
    assert!(first.ends_with(" build --profile ship"), "{first}");
    let second = process::shown(&command(load, &[]));
    assert!(second.ends_with(" run --profile ship --bin sealane-bench -- load"), "{second}");
    let state = WorktreeState { commit: "c".to_owned(), changed: String::new() };
    assert!(head(load, &state).unwrap().contains("\nprofile: ship\n"));
    assert!(head(find("upgrade"), &state).unwrap().contains("\nprofile: dev\n"));
    // Scripts and the race beside Babel build what they drive.
    let of_cargo = |proof: &&ProofSpec| {
        !matches!(proof.runs, ProofCommand::Script(_) | ProofCommand::Xtask([BABEL]))
    };
    let shipped = PROOFS.iter().filter(of_cargo).filter(|proof| proof.runs.profile() == SHIP);
    for ProofSpec { runs, .. } in shipped {
        assert!(runs.arguments().join(" ").contains("--profile ship"));
    }
}

#[test]
fn proofs_say_to_their_programs_what_they_show() {
    let find = |name: &str| PROOFS.iter().find(|proof| proof.name == name).unwrap();
    let said = |name: &str| process::shown(&command(find(name), &[]));
    assert!(said("cost").ends_with(" --link ble-1m --link lora-sf7 --link 11p"));
    let fuzz = "-- fuzz document hello exchange --inputs 100000000";
    assert!(said("fuzz").ends_with(fuzz), "{}", said("fuzz"));
}

#[test]
fn arguments_replace_the_environment_or_go_to_the_test() {
    let words = ["SEALANE_KILLS=3".to_owned(), "--exact=x".to_owned()];
    let kill = PROOFS.iter().find(|proof| proof.name == "kill").unwrap();
    let command = command(kill, &words.iter().collect::<Vec<_>>());
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
