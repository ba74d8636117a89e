//! The behaviour of radios themselves: they acknowledge and repeat, or say nothing, and each has
//! its own chance.

use sealane_sim::{SimRun, SimSummary, SimWatch};

use crate::{run, sketch};

fn lost(summary: &SimSummary, named: &str) -> u64 {
    summary.losses().find(|(why, _)| *why == named).unwrap().1
}

fn log(tables: &str, seconds: u64) -> String {
    let mut log = vec![];
    let watch = SimWatch::new().with_log(&mut log);
    SimRun::new(sketch(seconds, tables), 1, &[], watch).unwrap().finish().unwrap();
    String::from_utf8(log).unwrap()
}

/// Two machines of the mesh that hear each other, but for a part of all units, and messages from
/// the one to the other.
fn two(profile: &str, loss: f64) -> String {
    format!(
        "[[medium]]\nname = \"m\"\nprofile = \"{profile}\"\nfading = 0\nloss = {loss}\n\
         [[node]]\nname = \"one\"\ncount = 2\nkind = \"mesh\"\nmedia = [\"m\"]\n\
         line = [20, 0]\n\
         [[flow]]\nfrom = \"one-1\"\nto = \"one-2\"\nevery_ms = 100\nbytes = 100\n\
         from_s = 30\nuntil_s = 78\n"
    )
}

#[test]
fn a_radio_of_802_11p_repeats_until_it_is_acknowledged_and_gives_up_after_seven_times() {
    let summary = run(sketch(80, &two("11p", 0.3)), 1, 80);
    // One try in two has its acknowledgement; seven in a row fail once in 128.
    assert!(summary.delivered * 100 >= summary.expected * 99, "{summary}");
    assert!(summary.acknowledged() > summary.delivered, "{summary}");
    let given_up = lost(&summary, "unanswered") as f64 / summary.messages as f64;
    assert!((0.001..0.03).contains(&given_up), "{given_up}: {summary}");
    // A unit whose acknowledgement was lost comes again, and the program does not get it again.
    assert!(summary.arrived() < summary.heard() - summary.messages / 10, "{summary}");
    let sound = run(sketch(80, &two("11p", 0.0)), 1, 80);
    assert_eq!((sound.delivered, lost(&sound, "unanswered")), (sound.expected, 0), "{sound}");
    assert_eq!(sound.arrived(), sound.heard(), "{sound}");
}

#[test]
fn a_connection_of_bluetooth_repeats_what_its_medium_loses() {
    let summary = run(sketch(80, &two("ble", 0.4)), 1, 80);
    assert_eq!((summary.delivered, summary.astray), (summary.expected, 0), "{summary}");
    let air = |loss| run(sketch(80, &two("ble", loss)), 1, 80).air().0 as f64;
    let times = air(0.4) / air(0.0);
    assert!((1.5..1.9).contains(&times), "each packet is sent 1.67 times: {times}");
}

#[test]
fn nobody_acknowledges_what_is_for_everybody_or_on_lora() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"11p\"\nloss = 0.3\n\
                [[node]]\nname = \"one\"\ncount = 3\nkind = \"beacon\"\nmedia = [\"m\"]\n\
                ring_m = 20\nbeacon_ms = 100\n";
    let summary = run(sketch(100, text), 1, 100);
    assert_eq!((summary.units(), summary.acknowledged()), (3000, 0), "{summary}");
    let summary = run(sketch(80, &two("lora", 0.3)), 1, 80);
    assert_eq!((summary.acknowledged(), lost(&summary, "unanswered")), (0, 0), "{summary}");
}

#[test]
fn a_machine_that_is_silent_sends_nothing_and_acknowledges_nothing() {
    let capture = "[[event]]\nat_s = 40\ndo = \"capture\"\nwho = [\"one-2\"]\n\
                   as = \"silence\"\n";
    let log = log(&(two("11p", 0.0) + capture), 80);
    let sends = |node: u32, from_us: u64| {
        let lines = log.lines().filter(|line| line.contains(&format!("\"send\",\"node\":{node},")));
        let at = |line: &str| {
            let at = line.split("\"at\":").nth(1).unwrap().split(',').next().unwrap();
            at.parse::<u64>().unwrap()
        };
        // A unit that is in the air at that moment ends.
        lines.filter(|line| at(line) > from_us + 5_000).count()
    };
    assert!(sends(1, 0) > 10 && sends(0, 40_000_000) > 10);
    assert_eq!(sends(1, 40_000_000), 0, "what is silent sends");
    assert!(log.contains("\"why\":\"captured\""), "its program goes on");
    assert!(log.contains("\"why\":\"unanswered\""), "nobody acknowledges in its place");
}

#[test]
fn what_waits_when_a_machine_is_silenced_is_not_sent_either() {
    // 222 bytes take a third of a second, so that ten beacons a second wait.
    let text = "[[medium]]\nname = \"m\"\nprofile = \"lora\"\nduty_percent = 100\n\
                [[node]]\nname = \"one\"\nkind = \"beacon\"\nmedia = [\"m\"]\n\
                beacon_ms = 100\nbeacon_bytes = 222\n\
                [[event]]\nat_s = 5\ndo = \"capture\"\nwho = [\"one\"]\nas = \"silence\"\n";
    let summary = run(sketch(60, text), 1, 60);
    assert!((14..=16).contains(&summary.units()), "{summary}");
    assert_eq!(summary.held, 0, "{summary}");
}

#[test]
fn a_machine_more_in_reach_changes_nothing_for_the_others() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"11p\"\nloss = 0.1\n\
                [[node]]\nname = \"one\"\nkind = \"beacon\"\nmedia = [\"m\"]\nbeacon_ms = 50\n\
                [[node]]\nname = \"two\"\nkind = \"flood\"\nmedia = [\"m\"]\nat = [250, 0]\n";
    let more = "[[node]]\nname = \"three\"\nkind = \"flood\"\nmedia = [\"m\"]\nat = [0, 200]\n";
    let heard = |tables: &str| -> Vec<bool> {
        let log = log(tables, 60);
        let sends = log.lines().filter(|line| line.contains("\"kind\":\"send\""));
        sends.map(|line| line.contains("\"heard\":[1]") || line.contains("\"heard\":[1,")).collect()
    };
    let (alone, beside) = (heard(text), heard(&format!("{text}{more}")));
    assert!(alone.iter().any(|heard| *heard) && alone.iter().any(|heard| !heard));
    assert_eq!(alone, beside);
}

#[test]
fn those_who_sleep_by_turns_say_so_and_get_what_was_kept_for_them() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"ble\"\n\
                [[node]]\nname = \"gate\"\nkind = \"mesh\"\nmedia = [\"m\"]\n\
                [[node]]\nname = \"sensor\"\nkind = \"mesh\"\nmedia = [\"m\"]\nat = [10, 0]\n\
                awake_s = 5\nasleep_s = 5\n\
                [[flow]]\nfrom = \"gate\"\nto = \"sensor\"\nevery_ms = 2000\nbytes = 40\n\
                from_s = 20\nuntil_s = 280\n";
    let summary = run(sketch(300, text), 1, 300);
    // It is asleep half of the time, and says hello once in ten seconds: until then five wait.
    assert!(summary.ratio() > 0.9, "{summary}");
}

#[test]
fn a_radio_of_lora_that_listens_does_not_talk_over_those_whom_it_hears() {
    // Five that are in reach of each other fill half of the channel.
    let crowd = |listens: bool| {
        let text = format!(
            "[[medium]]\nname = \"m\"\nprofile = \"lora\"\nlistens = {listens}\n\
             range_m = 1000\nfading = 0\nduty_percent = 100\n\
             [[node]]\nname = \"one\"\ncount = 5\nkind = \"beacon\"\nmedia = [\"m\"]\n\
             ring_m = 400\nbeacon_ms = 600\nbeacon_bytes = 20\n"
        );
        run(sketch(1000, &text), 1, 1000)
    };
    let (listen, blind) = (crowd(true), crowd(false));
    let talked_over =
        |run: &SimSummary| (lost(run, "collision") + lost(run, "deaf")) * 100 / (4 * run.units());
    assert!(talked_over(&blind) > 30, "{blind}");
    assert!(talked_over(&listen) < 8, "{listen}");
    assert!(listen.units() * 100 >= blind.units() * 99, "they wait, and send: {listen}");
}

#[test]
fn who_does_not_hear_another_talks_over_it_though_it_listens() {
    let text = "[[medium]]\nname = \"m\"\nprofile = \"lora\"\nrange_m = 1000\nfading = 0\n\
                duty_percent = 100\n\
                [[node]]\nname = \"one\"\ncount = 3\nkind = \"beacon\"\nmedia = [\"m\"]\n\
                line = [900, 0]\nbeacon_ms = 300\nbeacon_bytes = 20\n";
    let summary = run(sketch(1000, text), 1, 1000);
    assert!(lost(&summary, "collision") * 10 > summary.units(), "{summary}");
}
