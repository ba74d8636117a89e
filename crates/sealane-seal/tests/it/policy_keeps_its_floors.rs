//! No type, link, trust, battery or rate leads below a floor, and nobody lowers one unnoticed.

use std::cell::Cell;

use crate::shared::world::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sealane_message::DataType;
use sealane_seal::policy::*;
use sealane_seal::*;

/// 0 to 100 percent, and a node that does not know.
fn batteries() -> impl Iterator<Item = Option<Battery>> {
    std::iter::once(None).chain((0..=100).map(Battery::new))
}

/// From never to as fast as can be said, with both sides of every threshold.
const MILLIHERTZ: [u32; 12] =
    [0, 1, 100, 999, 1000, 1001, 9_999, 10_000, 10_001, 100_000, 1_000_000_000, u32::MAX];

fn every_condition() -> impl Iterator<Item = Conditions> {
    Link::ALL.into_iter().flat_map(|link| {
        Trust::ALL.into_iter().flat_map(move |trust| {
            batteries().flat_map(move |battery| {
                let rates = MILLIHERTZ.into_iter().map(Rate::from_millihertz);
                rates.map(move |rate| Conditions { link, trust, battery, rate })
            })
        })
    })
}

#[test]
fn every_combination_of_the_inputs() {
    let policy = Policy::default();
    let strange = [13, 14, 255, 256, 4711, 65_534, u16::MAX].map(DataType::from_number);
    let mut seen = 0_u64;
    for data_type in DataType::ALL.iter().copied().chain(strange) {
        let bounds = policy.bounds(data_type);
        for conditions in every_condition() {
            let decision = policy.decide(data_type, &conditions);
            assert!(decision.class.covers(bounds.floor), "{data_type} {conditions:?}");
            assert!(bounds.ceiling.covers(decision.class), "{data_type} {conditions:?}");
            let calm = Conditions { battery: None, rate: Rate::default(), ..conditions };
            assert_eq!(decision.class, policy.decide(data_type, &calm).class);
            assert_eq!(decision, policy.decide(data_type, &conditions));
            seen += 1;
        }
    }
    assert_eq!(seen, 20 * 4 * 3 * 102 * 12);
}

#[test]
fn all_numbers_have_a_class_and_strange_ones_that_of_unknown() {
    let policy = Policy::default();
    for number in 0..=u16::MAX {
        let data_type = DataType::from_number(number);
        for link in Link::ALL {
            for trust in Trust::ALL {
                let conditions = Conditions { link, trust, ..Conditions::default() };
                let decision = policy.decide(data_type, &conditions);
                assert_eq!(decision, policy.decide(data_type.registered(), &conditions));
            }
        }
    }
}

/// The table of `spec/policy.md`.
#[test]
fn the_floors_and_ceilings_that_are_built_in() {
    let table = [
        ("unknown", "C", "P"),
        ("counter", "A", "C"),
        ("heartbeat", "A", "C"),
        ("vitals", "C", "P"),
        ("location", "C", "P"),
        ("chat", "C", "P"),
        ("receipt", "C", "P"),
        ("emergency", "S", "S"),
        ("acknowledgement", "S", "S"),
        ("clear", "S", "S"),
        ("control", "S", "S"),
        ("command", "P", "P"),
        ("sensitive-chat", "P", "P"),
    ];
    assert_eq!(table.len(), DataType::ALL.len());
    let policy = Policy::default();
    for (name, floor, ceiling) in table {
        let bounds = policy.bounds(name.parse().unwrap());
        let letters = (bounds.floor.letter().to_string(), bounds.ceiling.letter().to_string());
        assert_eq!(letters, (floor.to_owned(), ceiling.to_owned()), "{name}");
    }
}

#[test]
fn an_unknown_peer_or_a_foreign_link_raises_and_the_rule_is_named() {
    let policy = Policy::default();
    let decide = |name: &str, link, trust| {
        let conditions = Conditions { link, trust, ..Conditions::default() };
        let decision = policy.decide(name.parse().unwrap(), &conditions);
        (decision.class, decision.rule, decision.capped)
    };
    use Class::*;
    let (mesh, member) = (Link::Mesh, Trust::Member);
    assert_eq!(decide("counter", mesh, member), (Authenticated, Rule::Floor, None));
    assert_eq!(decide("counter", Link::Hub, member), (Group, Rule::Link(Link::Hub), None));
    assert_eq!(decide("counter", Link::Foreign, member), (Group, Rule::Link(Link::Foreign), None));
    let stranger = Rule::Trust(Trust::Unknown);
    assert_eq!(decide("counter", mesh, Trust::Unknown), (Group, stranger, Some(Peer)));
    assert_eq!(decide("location", mesh, Trust::Unknown), (Peer, stranger, None));
    assert_eq!(decide("emergency", mesh, Trust::Unknown), (Signed, Rule::Floor, Some(Peer)));
}

#[test]
fn battery_and_rate_change_the_pace_and_nothing_urgent() {
    let policy = Policy::default();
    let pace = |battery: Option<u8>, rate| {
        let battery = battery.and_then(Battery::new);
        let rate = Rate::from_millihertz(rate);
        let conditions = Conditions { battery, rate, ..Conditions::default() };
        let chat = policy.decide(DataType::CHAT, &conditions);
        let emergency = policy.decide(DataType::EMERGENCY, &conditions).sending;
        assert_eq!((emergency.rate_max, emergency.batch_ms), (None, 0));
        (chat.pace, chat.sending.rate_max.is_some(), chat.sending.batch_ms > 0)
    };
    assert_eq!(pace(None, 10_000), (Pace::Normal, false, false));
    assert_eq!(pace(Some(21), 10_001), (Pace::Busy, false, true));
    assert_eq!(pace(Some(20), 10_001), (Pace::Saving, true, true));
    assert_eq!(pace(Some(0), 0), (Pace::Saving, true, true));
}

/// In a pair C is P, and S meets the floor P as well: only the two hold the keys.
#[test]
fn what_meets_a_floor() {
    let (group, pair) = (group(Suite::Aes256Gcm), pair(Suite::Aes256Gcm));
    let met = |group: &Group, floor: Class| {
        let classes = Class::ALL.into_iter().filter(|class| group.allows(*class));
        classes.filter(|class| group.meets(*class, floor)).map(Class::letter).collect::<String>()
    };
    assert_eq!(Class::ALL.map(|floor| met(&group, floor)), ["ACS", "CS", "S", ""]);
    assert_eq!(Class::ALL.map(|floor| met(&pair, floor)), ["ASP", "SP", "S", "SP"]);
    assert_eq!(group.class_for(Class::Peer), None);
    assert_eq!(pair.class_for(Class::Group), Some(Class::Peer));
    for class in Class::ALL {
        for other in Class::ALL {
            let meet = class.meet(other);
            assert!(class.covers(meet) && other.covers(meet));
            let both = |low: &Class| class.covers(*low) && other.covers(*low);
            assert!(Class::ALL.into_iter().filter(both).all(|low| meet.covers(low)));
        }
    }
}

#[test]
fn a_message_that_needs_a_pair_is_not_sent_to_more() {
    let policy = Policy::default();
    let (group, pair) = (group(Suite::Aes256Gcm), pair(Suite::Aes256Gcm));
    let class = |group, data_type| {
        let decision = policy.decide(data_type, &Conditions::default());
        policy.class_in(group, data_type, &decision)
    };
    assert_eq!(class(&group, DataType::CHAT), Ok(Class::Group));
    assert_eq!(class(&pair, DataType::CHAT), Ok(Class::Peer));
    assert_eq!(class(&pair, DataType::COMMAND), Ok(Class::Peer));
    let refused = class(&group, DataType::COMMAND).unwrap_err();
    assert_eq!(refused, Refusal::NeedsPair { data_type: DataType::COMMAND });
    assert_eq!(refused.info().code, "SL-POLICY-09");
}

/// A member seals a location so that all can read it: it opens, and is dropped by its class.
#[test]
fn a_peer_that_seals_below_the_floor_is_refused_by_name() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut sender = sealer(group, slot(1), &epochs);
    let mut reader = opener(group, &epochs);
    let policy = Policy::default();
    for (class, admitted) in [(Class::Authenticated, false), (Class::Group, true)] {
        let message = seal(&mut sender, class, Form::Full, META, BODY);
        let (opened, _) = message.stored(&mut reader, 0).unwrap();
        let outcome = policy.admits(DataType::LOCATION, opened.class(), &group);
        assert_eq!(outcome.is_ok(), admitted);
        if let Err(refused) = outcome {
            assert_eq!(refused.info().name, "BelowFloor");
            let said = "a message of type `location` came in class A, its floor is C";
            assert_eq!(refused.to_string(), said);
        }
    }
}

fn class() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("A"), Just("C"), Just("S"), Just("P")]
}

/// Lines of a policy file: often valid, sometimes not.
fn line() -> impl Strategy<Value = String> {
    let types = (0..DataType::ALL.len()).prop_map(|index| DataType::ALL[index]);
    let because = prop_oneof![Just(", because = 'a reason'"), Just("")];
    prop_oneof![
        (types.clone(), class(), because.clone()).prop_map(|(name, class, because)| format!(
            "type.{name} = {{floor='{class}'{because}}}"
        )),
        (types, class(), class(), because.clone()).prop_map(|(name, floor, ceiling, because)| {
            format!("type.{name} = {{floor='{floor}', ceiling='{ceiling}'{because}}}")
        }),
        ((0..4_usize), class(), because.clone()).prop_map(|(link, class, because)| {
            format!("link.{} = {{raise='{class}'{because}}}", Link::ALL[link].name())
        }),
        ((0..3_usize), class(), because).prop_map(|(trust, class, because)| {
            format!("trust.{} = {{raise='{class}'{because}}}", Trust::ALL[trust].name())
        }),
        (0..=100_u8).prop_map(|percent| format!("adapt.battery_percent = {percent}")),
        (1..100_u32).prop_map(|rate| format!("adapt.saving.rate_hz_max = {rate}")),
        (1..100_u32).prop_map(|rate| format!("adapt.rate_hz = {rate}.5")),
    ]
}

/// Files of which many are read: a law of what is read says nothing where all are refused.
#[test]
fn every_policy_that_is_read_keeps_its_floors() {
    let (read, refused) = (Cell::new(0), Cell::new(0));
    let lines = prop::collection::vec(line(), 0..4);
    let law = |lines: Vec<String>| {
        let text = format!("version = 1\n{}\n", lines.join("\n"));
        crate::policy_laws::policy(text.as_bytes());
        let count = if Policy::from_toml(&text).is_ok() { &read } else { &refused };
        count.set(count.get() + 1);
        Ok(())
    };
    TestRunner::default().run(&lines, law).unwrap();
    let (read, refused) = (read.get(), refused.get());
    assert!(read > 64 && refused > 32, "{read} were read and {refused} were refused");
}

/// On both sides of the pace's threshold, and at the ends of what can be said.
#[test]
fn a_rate_of_a_file_is_obeyed() {
    for (text, millihertz) in
        [("12.5", 12_500), ("3", 3000), ("0.001", 1), ("4000000", 4_000_000_000)]
    {
        let policy = Policy::from_toml(&format!("version = 1\nadapt.rate_hz = {text}")).unwrap();
        let pace = |rate| {
            let rate = Rate::from_millihertz(rate);
            policy.decide(DataType::CHAT, &Conditions { rate, ..Conditions::default() }).pace
        };
        assert_eq!(pace(millihertz), Pace::Normal, "{text}");
        assert_eq!(pace(millihertz + 1), Pace::Busy, "{text}");
    }
    let text = "version = 1\nadapt.saving.rate_hz_max = 0.5";
    let conditions = Conditions { battery: Some(Battery::EMPTY), ..Conditions::default() };
    let decision = Policy::from_toml(text).unwrap().decide(DataType::CHAT, &conditions);
    assert_eq!(decision.sending.rate_max, Some(Rate::from_millihertz(500)));
    let hertz = Rate::from_hertz;
    assert_eq!(hertz(4_294_967.295), Some(Rate::MAX));
    assert_eq!([hertz(4_294_967.296), hertz(-0.001), hertz(f64::NAN)], [None; 3]);
}
