//! Policy files from anyone: whatever is read keeps every floor.

use sealane_message::DataType;
use sealane_seal::policy::{
    Battery, Conditions, Policy, PolicyLink, PolicyRefusal, Rate, ReaderTrust,
};
use sealane_seal::{Class, Group, GroupId, Suite};

/// An input taken for a policy file. If it is a policy, all laws of policies are checked.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut before = Policy::default();
    match Policy::from_toml(text) {
        Ok(policy) => {
            holds(&policy);
            before.reload(text).expect("the same text reads again");
            assert_eq!(before, policy);
        }
        Err(error) => {
            let lines = text.matches('\n').count() + 1;
            assert!((1..=lines).contains(&error.line), "line {} of {lines}", error.line);
            assert!(error.info().code.starts_with("SL-POLICY-"));
            assert_eq!(before.reload(text), Err(error));
            assert_eq!(before, Policy::default());
        }
    }
}

/// The laws of every policy, in all conditions.
pub fn holds(policy: &Policy) {
    let built_in = Policy::default();
    let strange = [64, 72, 79, 4711, u16::MAX].map(DataType::from_number);
    for data_type in DataType::ALL.iter().copied().chain(strange) {
        let bounds = policy.bounds(data_type);
        assert!(bounds.ceiling.covers(bounds.floor), "{data_type}");
        assert!(bounds.group_floor.covers(bounds.floor), "{data_type}");
        assert_eq!(bounds.built_in_floor, built_in.bounds(data_type).floor);
        assert_eq!(bounds.built_in_group_floor, built_in.bounds(data_type).group_floor);
        let lowered = !bounds.floor.covers(bounds.built_in_floor);
        // Class P, which nothing meets in a group of more than two, lowers nothing there.
        let lowered_in_groups = !bounds.group_floor.covers(bounds.built_in_group_floor)
            && bounds.group_floor != Class::Peer;
        if lowered || lowered_in_groups {
            assert_eq!(bounds.built_in_floor, Class::Group, "{data_type}");
            assert!(data_type.is_application() || data_type.registered() != DataType::UNKNOWN);
            assert!(bounds.because.is_some(), "{data_type}");
        }
        for link in PolicyLink::ALL {
            for trust in ReaderTrust::ALL {
                class_is_one(policy, data_type, link, trust);
                group_keeps_its_floor(policy, data_type, link, trust);
            }
        }
    }
}

/// In a pair and in a larger group: what is sealed is admitted, and nothing is less than decided.
fn group_keeps_its_floor(
    policy: &Policy,
    data_type: DataType,
    link: PolicyLink,
    trust: ReaderTrust,
) {
    let bounds = policy.bounds(data_type);
    let decision = policy.decide(data_type, &Conditions { link, trust, ..Conditions::default() });
    let (id, suite) = (GroupId([7; 32]), Suite::Aes256Gcm);
    let (group, pair) = (Group::new(id, suite), Group::pair(id, suite));
    match policy.class_in(&group, data_type, &decision) {
        Ok(class) => {
            assert!(class.covers(bounds.group_floor), "{data_type} {link:?} {trust:?}: {class:?}");
            assert!(class.covers(decision.class), "{data_type} {link:?} {trust:?}: {class:?}");
            assert_eq!(policy.admits(data_type, class, &group), Ok(()));
        }
        Err(refused) => {
            assert_eq!(refused, PolicyRefusal::NeedsPair { data_type });
            assert!([decision.class, bounds.group_floor].contains(&Class::Peer), "{data_type}");
        }
    }
    let class = policy.class_in(&pair, data_type, &decision).expect("a pair takes every class");
    assert!(pair.meets(class, bounds.floor), "{data_type} {link:?} {trust:?}: {class:?}");
    assert_eq!(policy.admits(data_type, class, &pair), Ok(()));
}

/// Whatever battery and rate: one class, within floor and ceiling.
fn class_is_one(policy: &Policy, data_type: DataType, link: PolicyLink, trust: ReaderTrust) {
    let bounds = policy.bounds(data_type);
    let decide = |battery, rate| {
        let rate = Rate::from_millihertz(rate);
        policy.decide(data_type, &Conditions { link, trust, battery, rate })
    };
    let first = decide(None, 0);
    assert!(first.class.covers(bounds.floor), "{data_type} {link:?} {trust:?}: {first:?}");
    assert!(bounds.ceiling.covers(first.class), "{data_type} {link:?} {trust:?}: {first:?}");
    for battery in [None, Battery::new(0), Battery::new(20), Battery::new(100)] {
        for rate in [0, 1, 10_000, 10_001, u32::MAX] {
            let decision = decide(battery, rate);
            assert_eq!(decision, decide(battery, rate));
            let by_class = (decision.class, decision.rule, decision.capped);
            assert_eq!(by_class, (first.class, first.rule, first.capped));
        }
    }
}
