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
    PolicyLink::ALL.into_iter().flat_map(|link| {
        ReaderTrust::ALL.into_iter().flat_map(move |trust| {
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
    let strange = [14, 15, 255, 256, 4711, 65_534, u16::MAX].map(DataType::from_number);
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
    assert_eq!(seen, 21 * 4 * 3 * 102 * 12);
}

#[test]
fn all_numbers_have_a_class_and_strange_ones_that_of_unknown() {
    let policy = Policy::default();
    for number in 0..=u16::MAX {
        let data_type = DataType::from_number(number);
        for link in PolicyLink::ALL {
            for trust in ReaderTrust::ALL {
                let conditions = Conditions { link, trust, ..Conditions::default() };
                let decision = policy.decide(data_type, &conditions);
                assert_eq!(decision, policy.decide(data_type.registered(), &conditions));
            }
        }
    }
}

/// The table of `spec/policy.md`: floor, group floor and ceiling.
#[test]
fn the_floors_and_ceilings_that_are_built_in() {
    let table = [
        ("unknown", "CCP"),
        ("counter", "AAC"),
        ("heartbeat", "AAC"),
        ("vitals", "CCP"),
        ("location", "CCP"),
        ("chat", "CSP"),
        ("receipt", "CCP"),
        ("emergency", "SSS"),
        ("acknowledgement", "SSS"),
        ("clear", "SSS"),
        ("control", "SSS"),
        ("command", "PPP"),
        ("sensitive-chat", "PPP"),
        ("packet", "CCP"),
    ];
    assert_eq!(table.len(), DataType::ALL.len());
    let policy = Policy::default();
    for (name, letters) in table {
        let bounds = policy.bounds(name.parse().unwrap());
        let classes = [bounds.floor, bounds.group_floor, bounds.ceiling];
        assert_eq!(classes.map(Class::letter).iter().collect::<String>(), letters, "{name}");
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
    let (mesh, member) = (PolicyLink::Mesh, ReaderTrust::Member);
    assert_eq!(decide("counter", mesh, member), (Authenticated, Rule::Floor, None));
    assert_eq!(
        decide("counter", PolicyLink::Hub, member),
        (Group, Rule::Link(PolicyLink::Hub), None)
    );
    assert_eq!(
        decide("counter", PolicyLink::Foreign, member),
        (Group, Rule::Link(PolicyLink::Foreign), None)
    );
    let stranger = Rule::Trust(ReaderTrust::Unknown);
    assert_eq!(decide("counter", mesh, ReaderTrust::Unknown), (Group, stranger, Some(Peer)));
    assert_eq!(decide("location", mesh, ReaderTrust::Unknown), (Peer, stranger, None));
    assert_eq!(decide("emergency", mesh, ReaderTrust::Unknown), (Signed, Rule::Floor, Some(Peer)));
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
    assert_eq!(pace(None, 10_000), (SendPace::Normal, false, false));
    assert_eq!(pace(Some(21), 10_001), (SendPace::Busy, false, true));
    assert_eq!(pace(Some(20), 10_001), (SendPace::Saving, true, true));
    assert_eq!(pace(Some(0), 0), (SendPace::Saving, true, true));
}

#[test]
fn messages_are_split_by_the_narrower_of_link_and_pace() {
    let file =
        "version = 1\n[link.mesh]\nfragment_bytes = 300\n[adapt.saving]\nfragment_bytes = 64";
    let policy = Policy::from_toml(file).unwrap();
    let bytes = |link, battery: u8| {
        let battery = Battery::new(battery);
        let conditions = Conditions { link, battery, ..Conditions::default() };
        [DataType::CHAT, DataType::EMERGENCY]
            .map(|data_type| policy.decide(data_type, &conditions).sending.fragment_bytes)
    };
    assert_eq!(bytes(PolicyLink::Mesh, 100), [300; 2]);
    assert_eq!(bytes(PolicyLink::Mesh, 5), [64; 2]);
    assert!(bytes(PolicyLink::Hub, 100).iter().all(|bytes| *bytes > 300));
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
    assert_eq!(class(&group, DataType::LOCATION), Ok(Class::Group));
    assert_eq!(class(&pair, DataType::LOCATION), Ok(Class::Peer));
    assert_eq!(class(&pair, DataType::COMMAND), Ok(Class::Peer));
    let refused = class(&group, DataType::COMMAND).unwrap_err();
    assert_eq!(refused, PolicyRefusal::NeedsPair { data_type: DataType::COMMAND });
    assert_eq!(refused.info().code, "SL-POLICY-09");
}

/// Every policy, group and condition at once: `group_keeps_its_floor` of the laws says the rest.
#[test]
fn chat_is_signed_in_a_group_of_people_and_is_for_two_in_a_pair() {
    let (group, pair) = (group(Suite::Aes256Gcm), pair(Suite::Aes256Gcm));
    let chat = DataType::CHAT;
    let policy = |lines: &str| Policy::from_toml(&format!("version = 1\n{lines}")).unwrap();
    let classes = |policy: &Policy, link, trust| {
        let decision = policy.decide(chat, &Conditions { link, trust, ..Conditions::default() });
        [&group, &pair].map(|group| policy.class_in(group, chat, &decision))
    };
    let built_in = Policy::default();
    for link in PolicyLink::ALL {
        for trust in [ReaderTrust::Verified, ReaderTrust::Member] {
            assert_eq!(classes(&built_in, link, trust), [Ok(Class::Signed), Ok(Class::Peer)]);
        }
        let needs_pair = Err(PolicyRefusal::NeedsPair { data_type: chat });
        assert_eq!(classes(&built_in, link, ReaderTrust::Unknown), [needs_pair, Ok(Class::Peer)]);
    }
    let usual = |lines: &str| classes(&policy(lines), PolicyLink::Hub, ReaderTrust::Member);
    let because = "type.chat.because = 'x'";
    // The group floor stays where a file lowers the floor, the ceiling or both.
    let signed = Ok(Class::Signed);
    let low = format!("type.chat.floor = 'A'\ntype.chat.ceiling = 'A'\n{because}");
    assert_eq!(usual(&low), [signed, Ok(Class::Authenticated)]);
    assert_eq!(usual("type.chat.ceiling = 'C'"), [signed, Ok(Class::Peer)]);
    assert_eq!(usual("type.chat.floor = 'S'"), [signed, signed]);
    // A file that asks for less says so, and a file that asks for P sends to pairs alone.
    let less = format!("type.chat.group_floor = 'C'\n{because}");
    assert_eq!(usual(&less), [Ok(Class::Group), Ok(Class::Peer)]);
    assert_eq!(
        usual("type.chat.floor = 'P'")[0],
        Err(PolicyRefusal::NeedsPair { data_type: chat })
    );
}

#[test]
fn chat_that_any_member_can_have_written_is_not_shown() {
    let (group, pair) = (group(Suite::Aes256Gcm), pair(Suite::Aes256Gcm));
    let admitted = |policy: &Policy, group: &Group, data_type| {
        let classes = Class::ALL.into_iter().filter(|class| group.allows(*class));
        let shown = classes.filter(|class| policy.admits(data_type, *class, group).is_ok());
        shown.map(Class::letter).collect::<String>()
    };
    let built_in = Policy::default();
    assert_eq!(admitted(&built_in, &group, DataType::CHAT), "S");
    assert_eq!(admitted(&built_in, &pair, DataType::CHAT), "SP");
    assert_eq!(admitted(&built_in, &group, DataType::LOCATION), "CS");
    assert_eq!(admitted(&built_in, &group, DataType::SENSITIVE_CHAT), "");
    let refused = built_in.admits(DataType::CHAT, Class::Group, &group).unwrap_err();
    assert_eq!(refused.info().name, "BelowFloor");
    assert_eq!(refused.to_string(), "a message of type `chat` came in class C, its floor is S");
    let two = Policy::from_toml("version = 1\ntype.chat.floor = 'P'").unwrap();
    assert_eq!(admitted(&two, &group, DataType::CHAT), "", "the floor P is not met by S");
    let text = "version = 1\ntype.chat = { group_floor = 'C', because = 'x' }";
    assert_eq!(admitted(&Policy::from_toml(text).unwrap(), &group, DataType::CHAT), "CS");
    let text = "version = 1\ntype.location.group_floor = 'S'";
    let stricter = Policy::from_toml(text).unwrap();
    assert_eq!(admitted(&stricter, &group, DataType::LOCATION), "S");
    assert_eq!(admitted(&stricter, &pair, DataType::LOCATION), "SP");
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
    let registered = (0..DataType::ALL.len()).prop_map(|index| DataType::ALL[index]);
    let applications = DataType::APPLICATIONS.prop_map(DataType::from_number);
    let types = prop_oneof![4 => registered, 1 => applications];
    let types_of_groups = types.clone();
    let because = prop_oneof![Just(", because = 'a reason'"), Just("")];
    prop_oneof![
        (types.clone(), class(), because.clone()).prop_map(|(name, class, because)| format!(
            "type.{name} = {{floor='{class}'{because}}}"
        )),
        (types, class(), class(), because.clone()).prop_map(|(name, floor, ceiling, because)| {
            format!("type.{name} = {{floor='{floor}', ceiling='{ceiling}'{because}}}")
        }),
        (types_of_groups, class(), because.clone()).prop_map(|(name, floor, because)| {
            format!("type.{name} = {{group_floor='{floor}'{because}}}")
        }),
        ((0..4_usize), class(), because.clone()).prop_map(|(link, class, because)| {
            format!("link.{} = {{raise='{class}'{because}}}", PolicyLink::ALL[link].name())
        }),
        ((0..3_usize), class(), because).prop_map(|(trust, class, because)| {
            format!("trust.{} = {{raise='{class}'{because}}}", ReaderTrust::ALL[trust].name())
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
        assert_eq!(pace(millihertz), SendPace::Normal, "{text}");
        assert_eq!(pace(millihertz + 1), SendPace::Busy, "{text}");
    }
    let text = "version = 1\nadapt.saving.rate_hz_max = 0.5";
    let conditions = Conditions { battery: Some(Battery::EMPTY), ..Conditions::default() };
    let decision = Policy::from_toml(text).unwrap().decide(DataType::CHAT, &conditions);
    assert_eq!(decision.sending.rate_max, Some(Rate::from_millihertz(500)));
    let hertz = Rate::from_hertz;
    assert_eq!(hertz(4_294_967.295), Some(Rate::MAX));
    assert_eq!([hertz(4_294_967.296), hertz(-0.001), hertz(f64::NAN)], [None; 3]);
}
