//! A file that is wrong, old or weaker is refused by name and line, and changes nothing.

use sealane_message::DataType;
use sealane_seal::Class;
use sealane_seal::limits::MAX_POLICY_BYTES;
use sealane_seal::policy::{Conditions, ERRORS, Policy};

/// A file, and the line and name of what is wrong with it.
const BAD: &[(&str, usize, &str)] = &[
    ("", 1, "PolicyVersion"),
    ("version = 0\n[type.location]\nfloor = 'A'", 1, "PolicyVersion"),
    ("\nversion = 2", 2, "PolicyVersion"),
    ("version = '1'", 1, "PolicyVersion"),
    ("version = 1.0", 1, "PolicyVersion"),
    ("[type.location]\nversion = 1", 1, "PolicyVersion"),
    ("version = 1\n[type.location\n", 2, "PolicySyntax"),
    ("version = 1\nversion = 1", 2, "PolicySyntax"),
    ("version = 1\n[type.chat]\nfloor = 'C'\n[type.chat]\nfloor = 'A'", 4, "PolicySyntax"),
    ("version = 1\nfloor = 'A'", 2, "PolicyUnknownKey"),
    ("version = 1\n[types.location]\nfloor = 'C'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.Location]\nfloor = 'C'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.4]\nfloor = 'C'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.63]\nfloor = 'S'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.80]\nfloor = 'S'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.072]\nfloor = 'S'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.'+72']\nfloor = 'S'", 2, "PolicyUnknownKey"),
    ("version = 1\n[type.72]\nflor = 'S'", 3, "PolicyUnknownKey"),
    ("version = 1\n[type.72]\nfloor = 'A'", 3, "NoReason"),
    ("version = 1\n[type.72]\ngroup_floor = 'A'\nbecause = 'x'", 3, "PolicyValue"),
    ("version = 1\n[type.72]\nfloor = 'S'\nceiling = 'P'", 4, "CeilingBelowFloor"),
    ("version = 1\n[type.location]\nflor = 'C'", 3, "PolicyUnknownKey"),
    ("version = 1\n[link.wifi]\nraise = 'C'", 2, "PolicyUnknownKey"),
    ("version = 1\n[trust.friend]\nraise = 'C'", 2, "PolicyUnknownKey"),
    ("version = 1\n[adapt]\nclass = 'A'", 3, "PolicyUnknownKey"),
    ("version = 1\n[adapt.saving]\nfloor = 'A'", 3, "PolicyUnknownKey"),
    ("version = 1\n[type.location]\nfloor = 'none'", 3, "PolicyValue"),
    ("version = 1\n[type.location]\nfloor = ''", 3, "PolicyValue"),
    ("version = 1\n[type.location]\nfloor = 'CC'", 3, "PolicyValue"),
    ("version = 1\n[type.location]\nfloor = 0", 3, "PolicyValue"),
    ("version = 1\n[type]\nlocation = 'A'", 3, "PolicyValue"),
    ("version = 1\ntype = 'A'", 2, "PolicyValue"),
    ("version = 1\n[adapt]\nbattery_percent = 101", 3, "PolicyValue"),
    ("version = 1\n[adapt]\nrate_hz = -1", 3, "PolicyValue"),
    ("version = 1\n[adapt]\nrate_hz = nan", 3, "PolicyValue"),
    ("version = 1\n[adapt]\nrate_hz = inf", 3, "PolicyValue"),
    ("version = 1\n[adapt.saving]\nrate_hz_max = 0", 3, "PolicyValue"),
    ("version = 1\n[adapt.saving]\nbatch_ms = 60001", 3, "PolicyValue"),
    ("version = 1\n[adapt.saving]\nfragment_bytes = 31", 3, "PolicyValue"),
    ("version = 1\n[adapt.saving]\ndelta = 1", 3, "PolicyValue"),
    ("version = 1\n[adapt.saving]\nsuite = 'NULL'", 3, "PolicyValue"),
    ("version = 1\n[type.chat]\nfloor = 'A'\nbecause = ' '", 4, "PolicyValue"),
    ("version = 1\n[type.chat]\nfloor = 'A'\nbecause = \"a\\u001b[2J\"", 4, "PolicyValue"),
    ("version = 1\n[type.location]\nfloor = 'A'", 3, "NoReason"),
    ("version = 1\ntype = { location = { floor = 'A' } }", 2, "NoReason"),
    ("version = 1\n\"type\".\"loc\\u0061tion\".'floor' = 'A'", 2, "NoReason"),
    ("version = 1\n[type.chat]\ngroup_floor = 'C'", 3, "NoReason"),
    ("version = 1\n[type.chat]\nfloor = 'S'\ngroup_floor = 'P'", 4, "NoReason"),
    ("version = 1\n[type.counter]\nfloor = 'C'\ngroup_floor = 'A'", 4, "PolicyValue"),
    ("version = 1\n[type.chat]\ngroup_floor = 'A'\nbecause = 'x'", 3, "PolicyValue"),
    ("version = 1\n[type.chat]\ngroup_floor = 'none'\nbecause = 'x'", 3, "PolicyValue"),
    ("version = 1\n[type.chat]\ngroup-floor = 'S'", 3, "PolicyUnknownKey"),
    ("version = 1\n[link.hub]\ngroup_floor = 'S'", 3, "PolicyUnknownKey"),
    ("version = 1\n[type.emergency]\ngroup_floor = 'C'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.command]\ngroup_floor = 'S'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.unknown]\ngroup_floor = 'A'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[link.foreign]\nraise = 'A'", 3, "NoReason"),
    ("version = 1\n[link.hub]\nraise = 'A'", 3, "NoReason"),
    ("version = 1\n[trust.unknown]\nraise = 'S'", 3, "NoReason"),
    ("version = 1\n[type.emergency]\nfloor = 'C'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.emergency]\nfloor = 'P'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.command]\nfloor = 'S'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.sensitive-chat]\nfloor = 'C'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.control]\nfloor = 'A'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.unknown]\nfloor = 'A'\nbecause = 'x'", 3, "LowersFloor"),
    ("version = 1\n[type.location]\nceiling = 'A'", 3, "CeilingBelowFloor"),
    ("version = 1\n[type.location]\nfloor = 'S'\nceiling = 'P'", 4, "CeilingBelowFloor"),
    ("version = 1\n[type.emergency]\nceiling = 'P'", 3, "CeilingBelowFloor"),
];

#[test]
fn every_fault_is_named_with_its_line() {
    for (text, line, name) in BAD {
        let error = Policy::from_toml(text).unwrap_err();
        assert_eq!((error.line, error.info().name), (*line, *name), "{text:?} gave: {error}");
    }
    let named: Vec<_> = BAD.iter().map(|(_, _, name)| *name).collect();
    let in_files = ERRORS.iter().filter(|error| !["BelowFloor", "NeedsPair"].contains(&error.name));
    for error in in_files {
        assert!(named.contains(&error.name), "no case of {}", error.name);
    }
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let text = format!("version = 1\n#{}", "x".repeat(MAX_POLICY_BYTES));
    assert_eq!(Policy::from_toml(&text).unwrap_err().info().name, "PolicySyntax");
    let deep = format!("version = 1\na = {}", "[".repeat(30_000));
    assert_eq!(Policy::from_toml(&deep).unwrap_err().info().name, "PolicySyntax");
}

#[test]
fn a_failing_reload_keeps_the_rules() {
    let mut policy = Policy::from_toml("version = 1\ntype.location.floor = 'S'").unwrap();
    let before = policy.clone();
    for (text, _, _) in BAD {
        // A rule before the fault in the file must not have been taken either.
        let text = text.replace("version = 1\n", "version = 1\ntype.vitals.floor = 'S'\n");
        policy.reload(&text).unwrap_err();
        assert_eq!(policy, before, "{text:?}");
    }
    policy.reload("version = 1").unwrap();
    assert_eq!(policy, Policy::default());
}

#[test]
fn types_of_applications_have_floors_of_their_own() {
    let classes = |policy: &Policy, number: u16| {
        let bounds = policy.bounds(DataType::from_number(number));
        let all = [bounds.floor, bounds.group_floor, bounds.ceiling];
        all.map(Class::letter).iter().collect::<String>()
    };
    let built_in = Policy::default();
    assert!((64..80).all(|number| classes(&built_in, number) == "CCP"), "as unknown is");
    assert!(built_in.applications().is_empty());
    let text = "version = 1
        [type.72]
        floor = 'S'
        [type.64]
        floor = 'A'
        because = 'the weather is for all'
        [type.79]
        group_floor = 'S'";
    let policy = Policy::from_toml(text).unwrap();
    assert_eq!([72, 64, 79].map(|number| classes(&policy, number)), ["SSS", "AAP", "CSP"]);
    assert_eq!(policy.applications().len(), 3);
    let others = (65..=71).chain(73..=78).chain([0, 14, 63, 80, u16::MAX]);
    assert!(others.into_iter().all(|number| classes(&policy, number) == "CCP"));
    // A key that it leaves out is as the file has it of `unknown`, wherever that stands.
    let text = "version = 1\ntype.72.ceiling = 'S'\ntype.unknown = { floor = 'S' }";
    let policy = Policy::from_toml(text).unwrap();
    assert_eq!([0, 71, 72].map(|number| classes(&policy, number)), ["SSS"; 3]);
}

#[test]
fn a_file_changes_what_it_says_and_nothing_else() {
    let text = "version = 1
        [type.location]
        floor = 'A'
        because = 'the map of buses is public'
        [type.counter]
        floor = 'S'
        [type.vitals]
        group_floor = 'S'
        [adapt]
        battery_percent = 50
        [adapt.saving]
        suite = 'CHACHA20_POLY1305_SHA512_128'";
    let policy = Policy::from_toml(text).unwrap();
    let location = policy.bounds(DataType::LOCATION);
    assert_eq!((location.floor, location.ceiling), (Class::Authenticated, Class::Peer));
    assert_eq!(location.because.as_deref(), Some("the map of buses is public"));
    let counter = policy.bounds(DataType::COUNTER);
    assert_eq!((counter.floor, counter.ceiling), (Class::Signed, Class::Signed));
    // The floor in groups goes with the floor, up and down.
    assert_eq!(location.group_floor, Class::Authenticated);
    assert_eq!(counter.group_floor, Class::Signed);
    let vitals = policy.bounds(DataType::VITALS);
    assert_eq!((vitals.floor, vitals.group_floor), (Class::Group, Class::Signed));
    let built_in = Policy::default();
    for data_type in DataType::ALL {
        if ![DataType::LOCATION, DataType::COUNTER, DataType::VITALS].contains(data_type) {
            assert_eq!(policy.bounds(*data_type), built_in.bounds(*data_type));
            let calm = Conditions::default();
            assert_eq!(policy.decide(*data_type, &calm), built_in.decide(*data_type, &calm));
        }
    }
}

#[test]
fn the_corpus_still_passes() {
    sealane_testing::replay_corpus(&[("policy", crate::policy_laws::policy)]);
}
