//! Documents out of what programs and people write: the maps of `spec/document.md`.

use sealane::{EmergencyRequest, Value};
use sealane_codec::{document::encode, event};
use sealane_document::limits::{MAX_SAID_BYTES, kept};
use sealane_group::now_ms;
use sealane_message::DataType;
use sealane_message::document::{
    Activity, Count, Document, Emergency, EmergencyKind, Heartbeat, Incident, IncidentKind,
    Location, Position, Vitals, alert,
};
use sealane_message::event::{Action, Content, Event, EventId};

use crate::{AskRefusal, Result};

/// The body of an own document of that type.
pub(super) fn body(of: DataType, value: &Value) -> Result<Vec<u8>, AskRefusal> {
    let document = match of {
        DataType::COUNTER => counter(value)?,
        DataType::HEARTBEAT => heartbeat(value)?,
        DataType::VITALS => vitals(value)?,
        DataType::LOCATION => location(value)?,
        // Types from 64 on belong to applications. Their bodies have no form that could be checked
        // here.
        other if other.number() >= 64 && kept(other) > 0 => return plain(value),
        DataType::CHAT => return Err("a line of chat is said: sealane doc say".into()),
        other => return Err(format!("`{other}` is not set in this way").into()),
    };
    let mut body = vec![];
    encode(&document, &mut body)?;
    Ok(body)
}

/// The body of a line of chat: an event of `spec/event.md`.
pub(super) fn line(id: EventId, text: &str) -> Result<Vec<u8>, AskRefusal> {
    match text.len() {
        0 => return Err("nothing is said".into()),
        1..=MAX_SAID_BYTES => {}
        bytes => {
            return Err(format!("{bytes} bytes are too much: at most {MAX_SAID_BYTES}").into());
        }
    }
    let said = Action::Message(Content::Text(text.into()).into());
    let mut body = vec![];
    event::encode(&Event::new(id, now_ms(), said), &mut body)?;
    Ok(body)
}

/// A call for help.
pub(super) fn emergency(
    number: u32,
    raise: &EmergencyRequest,
) -> Result<Document<'static>, AskRefusal> {
    let name = raise.kind.as_deref().unwrap_or("unsaid");
    let kind = EmergencyKind::from_name(name);
    let kind = kind.ok_or_else(|| AskRefusal::from(format!("no kind is called `{name}`")))?;
    let text = raise.text.clone().map(Into::into);
    let position = raise.position.map(|[latitude, longitude]| place(latitude, longitude));
    Ok(Document::Emergency(Emergency { number, kind, position: position.transpose()?, text }))
}

fn plain(value: &Value) -> Result<Vec<u8>, AskRefusal> {
    match value {
        Value::Text(text) => Ok(text.clone().into_bytes()),
        Value::Bytes(bytes) => Ok(bytes.clone()),
        other => {
            let mut text = vec![];
            sealane_codec::encode(sealane::Codec::Json, other, &mut text);
            Ok(text)
        }
    }
}

/// Refuses what is no map, and fields that a document does not have.
fn only(value: &Value, of: &str, fields: &[&str]) -> Result<(), AskRefusal> {
    let Value::Map(given) = value else {
        return Err(format!("{of} is a map of: {}", fields.join(", ")).into());
    };
    match given.iter().find(|(key, _)| !fields.contains(&key.as_str())) {
        Some((key, _)) => Err(format!("`{key}` is no field of {of}: {}", fields.join(", ")).into()),
        None => Ok(()),
    }
}

fn heartbeat(value: &Value) -> Result<Document<'static>, AskRefusal> {
    only(value, "heartbeat", &["nextS", "upS"])?;
    Ok(Document::Heartbeat(Heartbeat {
        next_s: number(value, "nextS")?,
        up_s: number(value, "upS")?.unwrap_or(0),
    }))
}

fn counter(value: &Value) -> Result<Document<'static>, AskRefusal> {
    only(value, "counter", &["counters"])?;
    let Some(Value::Map(counters)) = value.field("counters") else {
        return Err("a map `counters` is missing".into());
    };
    let mut counts = vec![];
    for (id, total) in counters {
        let id = id.parse().map_err(|_| format!("`{id}` is no counter: 0 to 255"))?;
        let total = total.as_u64().ok_or("a total is no number")?;
        counts.push(Count { id, total });
    }
    // `spec/document.md` has counters by ascending id. A map of JSON may have any order.
    counts.sort_by_key(|count: &Count| count.id);
    Ok(Document::Counter(counts))
}

const VITALS: [&str; 7] =
    ["timeMs", "activity", "alerts", "batteryPercent", "heartRate", "last", "callsign"];

fn vitals(value: &Value) -> Result<Document<'static>, AskRefusal> {
    only(value, "vitals", &VITALS)?;
    let activity = match value.field("activity") {
        Some(given) => named(given, Activity::from_name, Activity::from_number),
        None => Some(Activity::Unknown),
    };
    let callsign = value.field("callsign").map(|callsign| callsign.as_text());
    let callsign = callsign.map(|text| text.ok_or("`callsign` is no text")).transpose()?;
    Ok(Document::Vitals(Vitals {
        time_ms: number(value, "timeMs")?.unwrap_or_else(now_ms),
        activity: activity.ok_or("`activity` is not known by that name")?,
        alerts: alerts(value)?,
        battery_percent: number(value, "batteryPercent")?,
        heart_rate: number(value, "heartRate")?,
        last: value.field("last").map(incident).transpose()?,
        callsign: callsign.map(|callsign| callsign.to_owned().into()),
    }))
}

/// The warnings of a member, by names, and by numbers for the user's own.
fn alerts(value: &Value) -> Result<u8, AskRefusal> {
    let all = match value.field("alerts") {
        Some(Value::Array(all)) => all.as_slice(),
        None => &[],
        Some(_) => return Err("`alerts` is no list".into()),
    };
    let mut bits = 0;
    for one in all {
        let name = one.as_text();
        let named = alert::NAMES.iter().find(|(_, of)| name == Some(*of)).map(|(bit, _)| *bit);
        let own = one.as_u64().filter(|bit| alert::OWN_BITS.contains(bit)).map(|bit| 1 << bit);
        let names = alert::NAMES.map(|(_, name)| name).join(", ");
        bits |= named.or(own).ok_or_else(|| format!("an alert is one of {names}, or 4 to 7"))?;
    }
    Ok(bits)
}

/// The last incident, and its time: now, unless a time is given.
fn incident(value: &Value) -> Result<Incident, AskRefusal> {
    only(value, "last", &["event", "timeMs"])?;
    let event = value.field("event").ok_or("`last` has no `event`")?;
    let kind = named(event, IncidentKind::from_name, IncidentKind::from_number);
    Ok(Incident {
        kind: kind.ok_or("`event` is not known by that name")?,
        time_ms: number(value, "timeMs")?.unwrap_or_else(now_ms),
    })
}

/// Something by its name, or one of a later version by its number.
fn named<T>(value: &Value, name: fn(&str) -> Option<T>, number: fn(u8) -> T) -> Option<T> {
    let by_name = value.as_text().and_then(name);
    by_name.or_else(|| value.as_u64().and_then(|of| u8::try_from(of).ok()).map(number))
}

fn location(value: &Value) -> Result<Document<'static>, AskRefusal> {
    only(value, "location", &["timeMs", "latitude", "longitude", "altitudeM", "accuracyM"])?;
    let decimetres = |key: &str| match (value.field(key), degrees(value, key)) {
        (None, _) => Ok(None),
        (Some(_), Some(metres)) => Ok(Some(metres * 10.0)),
        (Some(_), None) => Err(AskRefusal::from(format!("`{key}` is no number"))),
    };
    let altitude = decimetres("altitudeM")?.map(|dm| dm.round() as i32);
    let accuracy = decimetres("accuracyM")?.map(|dm| dm.round().clamp(0.0, 65_535.0) as u16);
    Ok(Document::Location(Location {
        time_ms: number(value, "timeMs")?.unwrap_or_else(now_ms),
        position: position(value)?,
        altitude_dm: altitude,
        accuracy_dm: accuracy,
    }))
}

fn position(value: &Value) -> Result<Position, AskRefusal> {
    let both = degrees(value, "latitude").zip(degrees(value, "longitude"));
    let (latitude, longitude) = both.ok_or("latitude and longitude are missing")?;
    place(latitude, longitude)
}

/// A place by its degrees.
fn place(latitude: f64, longitude: f64) -> Result<Position, AskRefusal> {
    let e7 = |degrees: f64| (degrees * 1e7).round();
    let is_near = |e7: f64| e7.abs() <= f64::from(i32::MAX);
    let (latitude, longitude) = (e7(latitude), e7(longitude));
    let position = (is_near(latitude) && is_near(longitude))
        .then(|| Position::from_e7(latitude as i32, longitude as i32));
    position.flatten().ok_or_else(|| "there is no such place on Earth".into())
}

fn degrees(value: &Value, key: &str) -> Option<f64> {
    match value.field(key)? {
        Value::F64(number) => Some(*number),
        Value::I64(number) => Some(*number as f64),
        _ => None,
    }
}

fn number<N: TryFrom<u64>>(value: &Value, key: &str) -> Result<Option<N>, AskRefusal> {
    let Some(found) = value.field(key) else { return Ok(None) };
    let number = found.as_u64().and_then(|number| N::try_from(number).ok());
    number.map(Some).ok_or_else(|| format!("`{key}` is out of its range").into())
}

#[cfg(test)]
mod tests {
    use sealane::Codec;
    use sealane_codec::document::{decode, to_value};

    use super::*;

    fn json(text: &str) -> Value {
        sealane_codec::decode(Codec::Json, text.as_bytes()).unwrap()
    }

    #[test]
    fn alerts_and_the_last_event_are_written_as_they_are_shown() {
        let given = json(
            r#"{"timeMs":9,"activity":"moving","alerts":["battery","fall",5],"batteryPercent":40,
            "heartRate":90,"last":{"event":"need-assist","timeMs":7},"callsign":"Kilo"}"#,
        );
        let body = body(DataType::VITALS, &given).unwrap();
        let document = decode(DataType::VITALS, &body).unwrap();
        assert_eq!(to_value(&document), given);
    }

    #[test]
    fn what_is_no_field_is_refused_by_its_name() {
        let place = r#""latitude":1.5,"longitude":2"#;
        for (of, text, what) in [
            (DataType::VITALS, r#"{"lasst":{"event":"ping"}}"#.to_owned(), "`lasst`"),
            (DataType::VITALS, r#"{"last":{"event":"ping","at":1}}"#.to_owned(), "`at`"),
            (DataType::VITALS, r#"{"last":{"event":"pong"}}"#.to_owned(), "`event`"),
            (DataType::VITALS, r#"{"alerts":["feet"]}"#.to_owned(), "heart-rate"),
            (DataType::VITALS, r#"{"alerts":[3]}"#.to_owned(), "4 to 7"),
            (DataType::VITALS, r#"{"alerts":"fall"}"#.to_owned(), "`alerts`"),
            (DataType::VITALS, r#"{"activity":"asleep"}"#.to_owned(), "`activity`"),
            (DataType::VITALS, r#"{"callsign":7}"#.to_owned(), "`callsign`"),
            (DataType::VITALS, r#""well""#.to_owned(), "vitals is a map"),
            (DataType::HEARTBEAT, r#"{"next":1}"#.to_owned(), "`next`"),
            (DataType::COUNTER, r#"{"counters":{"1":2},"1":3}"#.to_owned(), "`1`"),
            (DataType::LOCATION, format!("{{{place},\"altitude\":3}}"), "`altitude`"),
            (DataType::LOCATION, format!("{{{place},\"altitudeM\":\"high\"}}"), "`altitudeM`"),
            (DataType::CHAT, r#"{"text":"hello"}"#.to_owned(), "doc say"),
        ] {
            let refused = body(of, &json(&text)).unwrap_err().to_string();
            assert!(refused.contains(what), "{text}: {refused}");
        }
    }

    #[test]
    fn a_line_of_chat_is_an_event_that_fits_a_document() {
        let id = EventId([7; 8]);
        let body = line(id, "the bridge is out").unwrap();
        let event = event::decode(&body).unwrap();
        let said = event::to_value(&event);
        assert_eq!(said.field("text"), Some(&"the bridge is out".into()));
        assert_eq!(event.id, id);
        assert!(line(id, &"x".repeat(MAX_SAID_BYTES)).is_ok());
        for text in [String::new(), "x".repeat(MAX_SAID_BYTES + 1)] {
            assert!(line(id, &text).is_err());
        }
    }
}
