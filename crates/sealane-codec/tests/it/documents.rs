//! Documents: what decodes is what was encoded, in one form only, within the sizes of the page.

use std::borrow::Cow;

use crate::shared::document_vectors;
use proptest::option;
use proptest::prelude::*;
use sealane_codec::document::{DocumentError, ERRORS, decode, encode};
use sealane_message::DataType;
use sealane_message::document::{
    Activity, Count, Document, Emergency, EmergencyCall, EmergencyKind, Heartbeat, Incident,
    IncidentKind, Location, Position, Vitals,
};
use sealane_message::limits::{MAX_CALLSIGN_BYTES, MAX_COUNT, MAX_COUNTERS};

const TIME_MAX_MS: u64 = (1 << 48) - 1;

fn encoded(document: &Document<'_>) -> Vec<u8> {
    let mut body = b"before".to_vec();
    encode(document, &mut body).unwrap();
    body.split_off(6)
}

fn refused(document: &Document<'_>) -> DocumentError {
    let mut body = b"before".to_vec();
    let error = encode(document, &mut body).unwrap_err();
    assert_eq!(body, b"before", "a refused document leaves nothing behind");
    error
}

fn bare_vitals() -> Vitals<'static> {
    Vitals {
        time_ms: 1_795_370_000_000,
        activity: Activity::Moving,
        alerts: 0,
        battery_percent: None,
        heart_rate: None,
        last: None,
        callsign: None,
    }
}

fn here() -> Location {
    let position = Position::from_degrees(48.137_154, 11.576_124).unwrap();
    Location { time_ms: 1_795_370_000_000, position, altitude_dm: None, accuracy_dm: None }
}

fn position() -> impl Strategy<Value = Position> {
    (-900_000_000..=900_000_000, -1_800_000_000..=1_800_000_000)
        .prop_map(|(latitude, longitude)| Position::from_e7(latitude, longitude).unwrap())
}

fn counts() -> impl Strategy<Value = Document<'static>> {
    prop::collection::btree_map(any::<u8>(), 0..=MAX_COUNT, 1..=MAX_COUNTERS).prop_map(|counts| {
        Document::Counter(counts.into_iter().map(|(id, total)| Count { id, total }).collect())
    })
}

fn heartbeat() -> impl Strategy<Value = Document<'static>> {
    (option::of(1_u16..), any::<u32>())
        .prop_map(|(next_s, up_s)| Document::Heartbeat(Heartbeat { next_s, up_s }))
}

fn vitals() -> impl Strategy<Value = Document<'static>> {
    let last = (1_u8.., 0..=TIME_MAX_MS).prop_map(|(number, time_ms)| Incident {
        kind: IncidentKind::from_number(number),
        time_ms,
    });
    let optional = (
        option::of(0_u8..=100),
        option::of(20_u8..=250),
        option::of(last),
        option::of("[^\\p{C}]{1,3}"),
    );
    (0..=TIME_MAX_MS, any::<u8>(), any::<u8>(), optional).prop_map(
        |(time_ms, activity, alerts, (battery_percent, heart_rate, last, callsign))| {
            Document::Vitals(Vitals {
                time_ms,
                activity: Activity::from_number(activity),
                alerts,
                battery_percent,
                heart_rate,
                last,
                callsign: callsign.map(Cow::Owned),
            })
        },
    )
}

fn location() -> impl Strategy<Value = Document<'static>> {
    let optional = (option::of(-(1 << 23)..1 << 23), option::of(any::<u16>()));
    (0..=TIME_MAX_MS, position(), optional).prop_map(
        |(time_ms, position, (altitude_dm, accuracy_dm))| {
            Document::Location(Location { time_ms, position, altitude_dm, accuracy_dm })
        },
    )
}

fn emergency() -> impl Strategy<Value = Document<'static>> {
    (any::<u32>(), any::<u8>(), option::of(position()), option::of("[^\\p{C}]{1,16}")).prop_map(
        |(number, kind, position, text)| {
            let kind = EmergencyKind::from_number(kind);
            Document::Emergency(Emergency { number, kind, position, text: text.map(Cow::Owned) })
        },
    )
}

fn answer() -> impl Strategy<Value = Document<'static>> {
    (any::<bool>(), any::<u16>(), any::<u32>()).prop_map(|(is_clear, slot, number)| {
        let call = EmergencyCall { slot, number };
        if is_clear { Document::Clear(call) } else { Document::Acknowledgement(call) }
    })
}

fn document() -> impl Strategy<Value = Document<'static>> {
    prop_oneof![counts(), heartbeat(), vitals(), location(), emergency(), answer()]
}

fn data_type() -> impl Strategy<Value = DataType> {
    prop::sample::select(DataType::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn decoding_undoes_encoding(document in document()) {
        let body = encoded(&document);
        prop_assert_eq!(decode(document.data_type(), &body).unwrap(), document);
    }

    #[test]
    fn whatever_decodes_has_one_form(
        data_type in data_type(),
        body in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        if let Ok(document) = decode(data_type, &body) {
            prop_assert_eq!(document.data_type(), data_type);
            prop_assert_eq!(encoded(&document), body);
        }
    }

    #[test]
    fn a_body_that_is_cut_is_another_or_none(document in document(), part in 0.0..1.0) {
        let body = encoded(&document);
        let cut = &body[..(body.len() as f64 * part) as usize];
        prop_assert_ne!(decode(document.data_type(), cut).ok(), Some(document));
    }
}

#[test]
fn bodies_have_the_sizes_of_the_page() {
    let counts =
        |total, number| Document::Counter((0..number).map(|id| Count { id, total }).collect());
    assert_eq!(encoded(&counts(0, 1)).len(), 2);
    assert_eq!(encoded(&counts(MAX_COUNT, MAX_COUNTERS as u8)).len(), MAX_COUNTERS * 9);
    let heartbeat = Heartbeat { next_s: Some(60), up_s: u32::MAX };
    assert_eq!(encoded(&Document::Heartbeat(heartbeat)).len(), 6);
    assert_eq!(encoded(&Document::Vitals(bare_vitals())).len(), 9);
    let vitals = Vitals {
        battery_percent: Some(100),
        heart_rate: Some(250),
        last: Some(Incident { kind: IncidentKind::NeedAssist, time_ms: TIME_MAX_MS }),
        callsign: Some("x".repeat(MAX_CALLSIGN_BYTES).into()),
        ..bare_vitals()
    };
    assert_eq!(encoded(&Document::Vitals(vitals)).len(), 30);
    assert_eq!(encoded(&Document::Location(here())).len(), 15);
    let exact = Location { altitude_dm: Some(5190), accuracy_dm: Some(35), ..here() };
    assert_eq!(encoded(&Document::Location(exact)).len(), 20);
    let call = Emergency {
        number: u32::MAX,
        kind: EmergencyKind::Medical,
        position: Some(here().position),
        text: Some("x".repeat(64).into()),
    };
    let bare = Emergency { position: None, text: None, ..call.clone() };
    assert_eq!(encoded(&Document::Emergency(bare)).len(), 6);
    assert_eq!(encoded(&Document::Emergency(call)).len(), 78);
    assert_eq!(encoded(&Document::Clear(EmergencyCall { slot: 0, number: 0 })).len(), 6);
}

#[test]
fn what_is_out_of_range_is_neither_written_nor_read() {
    let out = |field| DocumentError::OutOfRange { field };
    let count = |id, total| Count { id, total };
    for (document, error) in [
        (Document::Counter(vec![]), out("counters")),
        (Document::Counter(vec![count(1, 0); MAX_COUNTERS + 1]), out("counters")),
        (Document::Counter(vec![count(1, 0), count(1, 0)]), out("id")),
        (Document::Counter(vec![count(2, 0), count(1, 0)]), out("id")),
        (Document::Counter(vec![count(1, MAX_COUNT + 1)]), out("total")),
        (Document::Heartbeat(Heartbeat { next_s: Some(0), up_s: 0 }), out("next")),
        (Document::Vitals(Vitals { time_ms: 1 << 48, ..bare_vitals() }), out("time")),
        (Document::Vitals(Vitals { battery_percent: Some(101), ..bare_vitals() }), out("battery")),
        (Document::Vitals(Vitals { heart_rate: Some(19), ..bare_vitals() }), out("heart rate")),
        (Document::Vitals(Vitals { heart_rate: Some(251), ..bare_vitals() }), out("heart rate")),
        (Document::Vitals(Vitals { callsign: Some("".into()), ..bare_vitals() }), out("callsign")),
        (Document::Location(Location { altitude_dm: Some(1 << 23), ..here() }), out("altitude")),
    ] {
        assert_eq!(refused(&document), error, "{document:?}");
    }
    let nothing = Incident { kind: IncidentKind::Other(0), time_ms: 0 };
    let vitals = Vitals { last: Some(nothing), ..bare_vitals() };
    assert_eq!(refused(&Document::Vitals(vitals)), out("event"));
    let bell = Vitals { callsign: Some("a\u{7}".into()), ..bare_vitals() };
    let error = DocumentError::Text { field: "callsign" };
    assert_eq!(refused(&Document::Vitals(bell)), error);
    assert_eq!(Position::from_e7(900_000_001, 0), None);
    assert_eq!(Position::from_e7(0, i32::MIN), None);
    for wrong in [f64::NAN, f64::INFINITY, -90.000_001, 91.0] {
        assert_eq!(Position::from_degrees(wrong, 0.0), None, "{wrong}");
    }
}

#[test]
fn bytes_that_no_encoder_writes_are_refused_by_name() {
    let out = |field| DocumentError::OutOfRange { field };
    let text = |field| DocumentError::Text { field };
    let vitals = |flags: u8, rest: &[u8]| [&[flags][..], &[0; 8], rest].concat();
    let located = |latitude: i32, longitude: i32| {
        [&[0; 7][..], &latitude.to_le_bytes(), &longitude.to_le_bytes()].concat()
    };
    for (data_type, body, error) in [
        (DataType::COUNTER, vec![], DocumentError::TooShort),
        (DataType::COUNTER, vec![1], DocumentError::TooShort),
        (DataType::COUNTER, vec![1, 0x80], DocumentError::TooShort),
        (DataType::COUNTER, vec![1, 0x80, 0], out("total")),
        (DataType::COUNTER, [&[1][..], &[0xff; 7], &[0x1f]].concat(), out("total")),
        (DataType::COUNTER, [&[1][..], &[0xff; 9]].concat(), out("total")),
        (DataType::COUNTER, vec![1, 0, 1, 0], out("id")),
        (DataType::COUNTER, (0..=16).flat_map(|id| [id, 0]).collect(), out("counters")),
        (DataType::HEARTBEAT, vec![0; 5], DocumentError::TooShort),
        (DataType::HEARTBEAT, vec![0; 7], DocumentError::TooLong),
        (DataType::VITALS, vitals(16, &[]), DocumentError::ReservedBits),
        (DataType::VITALS, vitals(0, &[0]), DocumentError::TooLong),
        (DataType::VITALS, vitals(1, &[101]), out("battery")),
        (DataType::VITALS, vitals(2, &[19]), out("heart rate")),
        (DataType::VITALS, vitals(4, &[0; 7]), out("event")),
        (DataType::VITALS, vitals(8, &[]), DocumentError::TooShort),
        (DataType::VITALS, vitals(8, &[b'x'; 13]), DocumentError::TooLong),
        (DataType::VITALS, vitals(8, &[0xff]), text("callsign")),
        (DataType::VITALS, vitals(8, b"a\n"), text("callsign")),
        (DataType::LOCATION, located(900_000_001, 0), out("position")),
        (DataType::LOCATION, located(0, i32::MIN), out("position")),
        (DataType::LOCATION, located(0, 0)[..14].to_vec(), DocumentError::TooShort),
        (DataType::EMERGENCY, vec![4, 0, 0, 0, 0, 0], DocumentError::ReservedBits),
        (DataType::EMERGENCY, [&[2; 6][..], &[b'x'; 65]].concat(), DocumentError::TooLong),
        (DataType::CLEAR, vec![0; 7], DocumentError::TooLong),
        (DataType::CHAT, vec![], DocumentError::NoDocument { data_type: DataType::CHAT }),
    ] {
        assert_eq!(decode(data_type, &body).unwrap_err(), error, "{data_type} {body:02x?}");
    }
}

#[test]
fn numbers_of_a_later_version_are_kept() {
    let later = Vitals {
        activity: Activity::from_number(200),
        last: Some(Incident { kind: IncidentKind::from_number(99), time_ms: 1 }),
        ..bare_vitals()
    };
    assert_eq!(later.activity.name(), None);
    let body = encoded(&Document::Vitals(later.clone()));
    assert_eq!(decode(DataType::VITALS, &body).unwrap(), Document::Vitals(later));
    let named = [Activity::Unknown, Activity::Rest, Activity::Moving, Activity::Exertion];
    for activity in named {
        assert_eq!(activity.name().and_then(Activity::from_name), Some(activity));
    }
}

#[test]
fn each_code_is_on_the_page() {
    let page = include_str!("../../../../spec/document.md");
    for error in ERRORS {
        assert!(page.contains(&format!("| {} | `{}` |", error.code, error.name)), "{}", error.code);
    }
}

#[test]
fn the_vectors_are_what_the_code_makes() {
    let kept = include_str!("../../../../vectors/document/bodies.json");
    assert!(
        kept == document_vectors::text(),
        "write them anew: cargo run -p sealane-codec --example document_vectors"
    );
}
