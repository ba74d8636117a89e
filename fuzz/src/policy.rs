//! Policy files from anyone: whatever is read keeps every floor.

use sealane_message::DataType;
use sealane_seal::Class;
use sealane_seal::policy::{Battery, Conditions, Link, Policy, Rate, Trust};

/// What is taken for a policy file. If it is one, all that must hold of it is checked.
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

/// What holds for every policy, in all conditions.
pub fn holds(policy: &Policy) {
    let built_in = Policy::default();
    let strange = [13, 4711, u16::MAX].map(DataType::from_number);
    for data_type in DataType::ALL.iter().copied().chain(strange) {
        let bounds = policy.bounds(data_type);
        assert!(bounds.ceiling.covers(bounds.floor), "{data_type}");
        assert_eq!(bounds.built_in_floor, built_in.bounds(data_type).floor);
        let lowered = !bounds.floor.covers(bounds.built_in_floor);
        if lowered {
            assert_eq!(bounds.built_in_floor, Class::Group, "{data_type}");
            assert_ne!(data_type.registered(), DataType::UNKNOWN);
            assert!(bounds.because.is_some(), "{data_type}");
        }
        for link in Link::ALL {
            for trust in Trust::ALL {
                class_is_one(policy, data_type, link, trust);
            }
        }
    }
}

/// Whatever battery and rate: one class, within floor and ceiling.
fn class_is_one(policy: &Policy, data_type: DataType, link: Link, trust: Trust) {
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
