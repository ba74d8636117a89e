//! Battery and rate decide how often a member's documents leave and how much goes at once, over
//! each medium; they never reach the class.

use std::collections::BTreeMap;

use sealane_document::limits::kept;
use sealane_document::{DocumentPacer, DueDocument, class_of, stream_name};
use sealane_frame::{FrameBuf, FrameView, HeaderFields, seal_frame};
use sealane_mesh::{MeshMedium, MeshSpan};
use sealane_message::DataType;
use sealane_seal::policy::{Battery, Conditions, Policy, PolicyLink as LinkKind, Rate, SendPace};
use sealane_seal::{Binding, Class};

use crate::field::net::{Link, Net};
use crate::team::{GROUP, group, peer};

/// All types that are documents: those of the registry, one of the applications and a log.
fn documents() -> Vec<DataType> {
    let applications = [64, 72].map(DataType::from_number);
    let all = DataType::ALL.iter().copied().chain(applications);
    all.filter(|of| kept(*of) > 0).collect()
}

fn body(of: DataType, round: u8) -> Vec<u8> {
    match of.number() {
        1 => vec![1, round % 100],
        2 => vec![0, 0, round, 0, 0, 0],
        3 => vec![0, round, 0, 0, 0, 0, 0, 1, 0],
        4 => vec![0, round, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1, 2, 3, 0],
        7 => vec![0, 0, 0, 0, 0, 0, 0, 0, 0, round, 0, 0, 0, 0],
        8 | 9 => vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, round, 0, 0, 0],
        _ => vec![round; 20],
    }
}

fn battery(percent: u8) -> Option<Battery> {
    Battery::new(percent)
}

/// The outcome of a run.
#[derive(Debug, Default)]
struct Came {
    /// Frames that the origin has sealed, by type.
    sealed: BTreeMap<DataType, u64>,
    /// Their classes.
    classes: BTreeMap<DataType, Class>,
    /// Messages about documents that its machine sent.
    messages: u64,
    /// The longest of them that it has asked the mesh to send.
    message_bytes: usize,
}

/// How often a member writes each type, five times a second: a radio that may send a hundredth of
/// the time has hours to do with little.
fn rounds(medium: MeshMedium) -> u64 {
    if medium.has_duty() { 5 } else { 50 }
}

/// A member writes each type five times a second, to one that is two hops away.
fn write_often(medium: MeshMedium, percent: u8, policy: &Policy) -> Came {
    let link = Link { medium, loss_percent: 0, repeat_percent: 0, late: MeshSpan(0) };
    let mut net = Net::new(1, &[0, 1, 2], &[1], link);
    let settles = if medium.has_duty() { 900 } else { 8 };
    net.run(MeshSpan::seconds(settles));
    let mut came = Came::default();
    let mut pacer = DocumentPacer::new(policy.clone());
    pacer.set_battery(battery(percent));
    net.nodes.iter_mut().for_each(|node| node.agent.set_sending(&pacer.sending()));
    let before = net.nodes[0].mesh.counters().documents;
    let start = net.now;
    let mut seal = |net: &mut Net, pacer: &mut DocumentPacer| {
        while let Some(DueDocument { data_type, body }) = pacer.next(net.now.since(start).0 / 1000)
        {
            let conditions = pacer.conditions(data_type);
            let class = class_of(policy, &group(), data_type, &conditions).unwrap();
            let fields =
                HeaderFields { class, ..HeaderFields::new(GROUP, peer(0), data_type.number()) };
            let binding = Binding::stream(&stream_name(GROUP, data_type));
            let sealer = net.nodes[0].sealer.as_mut().unwrap();
            let mut buf = FrameBuf::new();
            let frame = seal_frame(sealer, &fields, &binding, &body, &mut buf).unwrap();
            net.keep(0, frame);
            *came.sealed.entry(data_type).or_default() += 1;
            came.classes.insert(data_type, class);
        }
    };
    for round in 0..rounds(medium) as u8 {
        for of in documents() {
            let now_ms = net.now.since(start).0 / 1000;
            pacer.write(now_ms, of, body(of, round));
        }
        for _ in 0..4 {
            seal(&mut net, &mut pacer);
            net.run(MeshSpan::millis(50));
        }
    }
    while pacer.wake_ms().is_some() {
        net.run(MeshSpan::millis(50));
        seal(&mut net, &mut pacer);
    }
    let until = net.now + MeshSpan::seconds(if medium.has_duty() { 48 * 3600 } else { 60 });
    assert!(net.run_until(until, Net::is_same), "{medium:?}: {:#?}", net.differences());
    came.messages = net.nodes[0].mesh.counters().documents - before;
    came.message_bytes = net.longest_telling;
    check_classes(&mut net, policy);
    came
}

/// The documents that came at the other end meet the floor of their types.
fn check_classes(net: &mut Net, policy: &Policy) {
    let held = net.held(2);
    let mut types: Vec<DataType> = vec![];
    for frame in &held {
        let header = *FrameView::parse(frame).unwrap().header();
        let of = DataType::from_number(header.data_type());
        policy.admits(of, header.class(), &group()).unwrap();
        types.push(of);
    }
    types.dedup();
    assert_eq!(types.len(), documents().len(), "each type has come");
    assert_eq!(net.nodes[2].agent.counters().below_floor, 0);
}

/// Each medium that a link can be.
fn media() -> [(&'static str, MeshMedium); 6] {
    [
        ("wire", MeshMedium::wire(1500)),
        ("802.11p", MeshMedium::dot11p()),
        ("BLE, MTU 23", MeshMedium::ble(23)),
        ("BLE, MTU 247", MeshMedium::ble(247)),
        ("LoRa SF7, 51 bytes", MeshMedium { mtu: 51, ..MeshMedium::lora_sf7() }),
        ("LoRa SF7, 222 bytes", MeshMedium::lora_sf7()),
    ]
}

#[test]
fn every_type_over_every_medium_leaves_less_often_at_5_percent_and_never_below_its_floor() {
    // A duty cycle makes hours pass: those media belong to the long run.
    let is_long = std::env::var("SEALANE_MEDIUM").is_ok_and(|named| named == "all");
    for (name, medium) in media().into_iter().filter(|one| is_long || !one.1.has_duty()) {
        let policy = Policy::default();
        let [full, low] = [100, 5].map(|percent| write_often(medium, percent, &policy));
        let (all, few) = (rounds(medium), rounds(medium) / 5 + 2);
        assert_eq!(full.classes, low.classes, "{name}: the battery does not reach the class");
        for of in documents() {
            let (full, low) = (full.sealed[&of], low.sealed[&of]);
            match of.is_urgent() {
                true => assert_eq!((full, low), (all, all), "{name}: {of} never waits"),
                false if kept(of) == 1 => assert!(low <= few && full == all, "{name}: {of}: {low}"),
                false => assert!(low <= all && full == all, "{name}: {of}: {low}"),
            }
        }
        let frames = |came: &Came| came.sealed.values().sum::<u64>();
        println!(
            "{name}: {} frames and {} messages at 100 %, {} and {} at 5 %",
            frames(&full),
            full.messages,
            frames(&low),
            low.messages
        );
        assert!(frames(&low) < frames(&full), "{name}");
        assert!(low.message_bytes <= 200, "{name}: {}", low.message_bytes);
    }
}

/// A policy in which one link asks for a signature, which no ceiling forbids.
fn raised_by(link: LinkKind) -> Policy {
    let mut text = format!("version = 1\nlink.{}.raise = 'S'\n", link.name());
    for of in all_documents() {
        text.push_str(&format!("type.{of}.ceiling = 'S'\n"));
    }
    Policy::from_toml(&text).unwrap()
}

/// All types that are documents, with each number of applications.
fn all_documents() -> Vec<DataType> {
    let applications = DataType::APPLICATIONS.map(DataType::from_number);
    let all = DataType::ALL.iter().copied().chain(applications);
    all.filter(|of| kept(*of) > 0).collect()
}

#[test]
fn what_any_link_of_a_document_asks_for_is_met_at_5_and_100_percent_and_no_floor_is_left() {
    let built_in = Policy::default();
    let conditions = [5, 100].into_iter().flat_map(|percent| {
        let rates = [0, 50_000].map(Rate::from_millihertz).into_iter();
        rates.map(move |rate| Conditions {
            battery: battery(percent),
            rate,
            ..Conditions::default()
        })
    });
    for conditions in conditions {
        for of in all_documents() {
            let class = |policy: &Policy| {
                let class = class_of(policy, &group(), of, &conditions).unwrap();
                policy.admits(of, class, &group()).unwrap();
                class
            };
            let usual = class(&built_in);
            for link in LinkKind::ALL {
                // Nothing that a member seals for others stays within its device.
                let expected = if link == LinkKind::Local { usual } else { Class::Signed };
                assert_eq!(class(&raised_by(link)), expected, "{of} by {link:?}, {conditions:?}");
            }
        }
    }
}

#[test]
fn a_hub_for_which_less_is_asked_does_not_lower_what_the_mesh_asks_for() {
    let class = |lines: &str| {
        let policy = Policy::from_toml(&format!("version = 1\n{lines}")).unwrap();
        class_of(&policy, &group(), DataType::COUNTER, &Conditions::default()).unwrap()
    };
    let hub = "link.hub = { raise = 'A', because = 'all may count' }";
    assert_eq!(class(hub), Class::Authenticated);
    assert_eq!(class(&format!("{hub}\nlink.mesh.raise = 'C'")), Class::Group);
    assert_eq!(class(&format!("{hub}\nlink.foreign.raise = 'C'")), Class::Group);
}

#[test]
fn what_the_mesh_asks_for_is_sealed_and_taken_over_a_mesh() {
    let came = write_often(MeshMedium::wire(1500), 5, &raised_by(LinkKind::Mesh));
    assert!(came.classes.values().all(|class| *class == Class::Signed), "{:?}", came.classes);
}

#[test]
fn what_waits_when_nothing_follows_is_given_in_order_and_counted() {
    let mut pacer = DocumentPacer::new(Policy::default());
    pacer.set_battery(battery(5));
    for round in 0..3 {
        pacer.write(0, DataType::LOCATION, vec![round]);
        pacer.write(0, DataType::from_number(72), vec![round]);
    }
    assert_eq!((pacer.wait_ms(0, DataType::LOCATION), pacer.wake_ms()), (2_000, Some(2_000)));
    assert_eq!(pacer.wait_ms(0, DataType::from_number(72)), 4_000, "two before it leave first");
    let left: Vec<_> = pacer.drain().into_iter().map(|due| (due.data_type, due.body)).collect();
    let log = |round: u8| (DataType::from_number(72), vec![round]);
    assert_eq!(left, [(DataType::LOCATION, vec![2]), log(0), log(1), log(2)]);
    let counters = pacer.counters();
    assert_eq!((counters.written, counters.left, counters.overtaken), (6, 4, 2));
    assert_eq!((pacer.wake_ms(), pacer.drain().len()), (None, 0));
}

#[test]
fn a_register_that_waits_leaves_as_its_newest_and_a_log_leaves_in_order() {
    let mut pacer = DocumentPacer::new(Policy::default());
    pacer.set_battery(battery(20));
    for round in 0..5 {
        pacer.write(100 * u64::from(round), DataType::LOCATION, vec![round]);
        pacer.write(100 * u64::from(round), DataType::CHAT, vec![round]);
    }
    assert_eq!((pacer.next(1_999), pacer.wake_ms()), (None, Some(2_000)));
    assert_eq!(pacer.waiting(DataType::LOCATION), Some(&[4][..]));
    let mut left = vec![];
    for now_ms in 2_000..8_000 {
        left.extend(pacer.next(now_ms).map(|due| (now_ms, due.data_type, due.body)));
        left.extend(pacer.next(now_ms).map(|due| (now_ms, due.data_type, due.body)));
    }
    let chat = |at: u64, round: u8| (at, DataType::CHAT, vec![round]);
    let location = (2_000, DataType::LOCATION, vec![4]);
    let lines = [chat(2_000, 0), chat(3_000, 1), chat(4_000, 2), chat(5_000, 3), chat(6_000, 4)];
    let mut expected = vec![location];
    expected.extend(lines);
    assert_eq!(left, expected);
    let counters = pacer.counters();
    assert_eq!((counters.written, counters.left), (10, 6));
    assert_eq!((counters.overtaken, counters.dropped), (4, 0));
}

#[test]
fn a_log_that_is_longer_than_what_is_kept_loses_its_oldest_and_counts_them() {
    let mut pacer = DocumentPacer::new(Policy::default());
    pacer.set_battery(battery(5));
    let log = DataType::from_number(72);
    for round in 0..100 {
        pacer.write(0, log, vec![round]);
    }
    assert_eq!(pacer.counters().dropped, 100 - kept(log) as u64);
    assert_eq!(pacer.next(2_000).unwrap().body, [100 - kept(log) as u8]);
}

#[test]
fn what_is_urgent_leaves_at_once_at_every_pace() {
    for percent in [5, 100] {
        let mut pacer = DocumentPacer::new(Policy::default());
        pacer.set_battery(battery(percent));
        for round in 0..100 {
            pacer.write(u64::from(round), DataType::ACKNOWLEDGEMENT, vec![round]);
            assert_eq!(pacer.next(u64::from(round)).unwrap().body, [round]);
        }
    }
}

#[test]
fn a_rate_above_its_threshold_has_messages_gathered() {
    let mut pacer = DocumentPacer::new(Policy::default());
    for round in 0..60 {
        pacer.write(round * 50, DataType::LOCATION, vec![0]);
        while pacer.next(round * 50).is_some() {}
    }
    assert_eq!(pacer.pace(DataType::LOCATION), SendPace::Busy);
    assert_eq!(pacer.pace(DataType::VITALS), SendPace::Normal);
    assert!(pacer.counters().overtaken > 5, "{:?}", pacer.counters());
    pacer.write(60_000, DataType::LOCATION, vec![0]);
    assert_eq!(pacer.pace(DataType::LOCATION), SendPace::Normal, "it was quiet for long");
    assert!(pacer.next(60_000).is_some());
}
