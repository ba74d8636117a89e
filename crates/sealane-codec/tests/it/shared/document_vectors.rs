//! The vectors of documents: made here, written by an example, compared by a test.

use sealane_codec::document::{decode, encode, to_value};
use sealane_codec::{Codec, encode as encode_value};
use sealane_message::DataType;
use sealane_message::document::{
    Activity, Count, Document, Emergency, EmergencyCall, EmergencyKind, Heartbeat, Incident,
    IncidentKind, Location, Position, Vitals, alert,
};
use sealane_message::limits::MAX_COUNT;
use serde::Serialize;

const TIME_MS: u64 = 1_795_370_000_000;

/// A body, and what it says or why it is refused.
#[derive(Serialize)]
struct Case {
    name: &'static str,
    data_type: u16,
    body: String,
    /// The document as JSON; none if the body is refused.
    document: Option<serde_json::Value>,
    error: Option<&'static str>,
}

/// The file's text.
pub(crate) fn text() -> String {
    let read = documents().into_iter().map(|(name, document)| {
        let mut body = vec![];
        encode(&document, &mut body).unwrap();
        case(name, document.data_type(), &body)
    });
    let refused = refused().into_iter().map(|(name, of, body)| case(name, of, &body));
    let cases: Vec<Case> = read.chain(refused).collect();
    format!("{}\n", serde_json::to_string_pretty(&cases).unwrap())
}

fn case(name: &'static str, data_type: DataType, body: &[u8]) -> Case {
    let read = decode(data_type, body);
    let shown = read.as_ref().ok().map(|document| {
        let mut json = vec![];
        encode_value(Codec::Json, &to_value(document), &mut json);
        serde_json::from_slice(&json).unwrap()
    });
    let body = body.iter().map(|byte| format!("{byte:02x}")).collect();
    let error = read.err().map(|error| error.info().code);
    Case { name, data_type: data_type.number(), body, document: shown, error }
}

fn documents() -> Vec<(&'static str, Document<'static>)> {
    let position = Position::from_e7(481_371_540, 115_761_240).unwrap();
    let corner = Position::from_e7(-900_000_000, -1_800_000_000).unwrap();
    let vitals = Vitals {
        time_ms: TIME_MS,
        activity: Activity::Unknown,
        alerts: 0,
        battery_percent: None,
        heart_rate: None,
        last: None,
        callsign: None,
    };
    let full = Vitals {
        activity: Activity::Exertion,
        alerts: alert::BATTERY | alert::FALL | 1 << 7,
        battery_percent: Some(9),
        heart_rate: Some(171),
        last: Some(Incident { kind: IncidentKind::NeedAssist, time_ms: TIME_MS - 1 }),
        callsign: Some("Zoë 7".into()),
        ..vitals.clone()
    };
    let later = Vitals {
        activity: Activity::Other(200),
        last: Some(Incident { kind: IncidentKind::Other(99), time_ms: 0 }),
        ..vitals.clone()
    };
    let place = Location { time_ms: TIME_MS, position, altitude_dm: None, accuracy_dm: None };
    let exact = Location { altitude_dm: Some(5190), accuracy_dm: Some(35), ..place };
    let deep = Location { position: corner, altitude_dm: Some(-4), accuracy_dm: Some(0), ..place };
    let help = Emergency { number: 1, kind: EmergencyKind::Unsaid, position: None, text: None };
    let fire = Emergency {
        number: u32::MAX,
        kind: EmergencyKind::Fire,
        position: Some(position),
        text: Some("two in the hut".into()),
    };
    let call = EmergencyCall { slot: 1023, number: u32::MAX };
    let totals = [(0, 0), (1, 127), (2, 128), (255, MAX_COUNT)];
    vec![
        ("a counter that counted nothing", Document::Counter(vec![Count { id: 7, total: 0 }])),
        ("counters", Document::Counter(totals.map(|(id, total)| Count { id, total }).to_vec())),
        ("a heartbeat", Document::Heartbeat(Heartbeat { next_s: Some(60), up_s: 86_400 })),
        ("a last heartbeat", Document::Heartbeat(Heartbeat { next_s: None, up_s: u32::MAX })),
        ("bare vitals", Document::Vitals(vitals)),
        ("vitals with all fields", Document::Vitals(full)),
        ("vitals of a later version", Document::Vitals(later)),
        ("a place", Document::Location(place)),
        ("a place with altitude and accuracy", Document::Location(exact)),
        ("the corner of the map, below the ellipsoid", Document::Location(deep)),
        ("a bare call for help", Document::Emergency(help)),
        ("a call for help with all fields", Document::Emergency(fire)),
        ("an acknowledgement", Document::Acknowledgement(call)),
        ("a clear", Document::Clear(EmergencyCall { slot: 0, number: 1 })),
    ]
}

fn refused() -> Vec<(&'static str, DataType, Vec<u8>)> {
    let vitals = |flags: u8, rest: &[u8]| [&[flags][..], &[0; 8], rest].concat();
    vec![
        ("no counter", DataType::COUNTER, vec![]),
        ("a total that ends early", DataType::COUNTER, vec![1, 0x80]),
        ("a total in a longer form", DataType::COUNTER, vec![1, 0x80, 0]),
        (
            "a total of 2^53",
            DataType::COUNTER,
            vec![1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10],
        ),
        ("one counter twice", DataType::COUNTER, vec![1, 0, 1, 0]),
        ("17 counters", DataType::COUNTER, (0..17).flat_map(|id| [id, 0]).collect()),
        ("a short heartbeat", DataType::HEARTBEAT, vec![0; 5]),
        ("a long heartbeat", DataType::HEARTBEAT, vec![0; 7]),
        ("an unknown flag", DataType::VITALS, vitals(16, &[])),
        ("a battery of 101 percent", DataType::VITALS, vitals(1, &[101])),
        ("a heart that beats 19 times a minute", DataType::VITALS, vitals(2, &[19])),
        ("an event that is none", DataType::VITALS, vitals(4, &[0; 7])),
        ("a callsign that is not there", DataType::VITALS, vitals(8, &[])),
        ("a callsign of 13 bytes", DataType::VITALS, vitals(8, &[b'x'; 13])),
        ("a callsign that is not UTF-8", DataType::VITALS, vitals(8, &[0xff])),
        ("a callsign with an escape", DataType::VITALS, vitals(8, b"\x1b[2J")),
        (
            "a place beyond the pole",
            DataType::LOCATION,
            [&[0; 7][..], &900_000_001_i32.to_le_bytes(), &[0; 4]].concat(),
        ),
        ("a text of 65 bytes", DataType::EMERGENCY, [&[2; 6][..], &[b'x'; 65]].concat()),
        ("half an acknowledgement", DataType::ACKNOWLEDGEMENT, vec![0; 3]),
        ("a packet", DataType::PACKET, vec![]),
    ]
}
