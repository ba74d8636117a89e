//! Documents out of what programs and people write: the maps of `spec/document.md`.

use sealane::Value;
use sealane_codec::document::encode;
use sealane_document::limits::kept;
use sealane_message::DataType;
use sealane_message::document::{
    Activity, Count, Document, Emergency, EmergencyKind, Heartbeat, Location, Position, Vitals,
};

use super::now_ms;

/// The body of an own document of that type.
pub(super) fn body(of: DataType, value: &Value) -> Result<Vec<u8>, String> {
    let document = match of {
        DataType::COUNTER => counter(value)?,
        DataType::HEARTBEAT => Document::Heartbeat(Heartbeat {
            next_s: number(value, "nextS")?,
            up_s: number(value, "upS")?.unwrap_or(0),
        }),
        DataType::VITALS => vitals(value)?,
        DataType::LOCATION => location(value)?,
        other if other.number() >= 64 && kept(other) > 0 => return plain(value),
        other => return Err(format!("`{other}` is not set in this way")),
    };
    let mut body = vec![];
    encode(&document, &mut body).map_err(|error| error.to_string())?;
    Ok(body)
}

/// A call for help.
pub(super) fn emergency(number: u32, value: &Value) -> Result<Document<'static>, String> {
    let kind = match value.field("kind").and_then(Value::as_text) {
        Some(name) => {
            EmergencyKind::from_name(name).ok_or_else(|| format!("no kind is called `{name}`"))?
        }
        None => EmergencyKind::from_name("unsaid").ok_or("there is no kind")?,
    };
    let text = value.field("text").and_then(Value::as_text).map(|text| text.to_owned().into());
    let has_place = value.field("latitude").is_some();
    let position = has_place.then(|| position(value)).transpose()?;
    Ok(Document::Emergency(Emergency { number, kind, position, text }))
}

fn plain(value: &Value) -> Result<Vec<u8>, String> {
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

fn counter(value: &Value) -> Result<Document<'static>, String> {
    let Some(Value::Map(counters)) = value.field("counters") else {
        return Err("a map `counters` is missing".to_owned());
    };
    let mut counts = vec![];
    for (id, total) in counters {
        let id = id.parse().map_err(|_| format!("`{id}` is no counter: 0 to 255"))?;
        let total = total.as_u64().ok_or("a total is no number")?;
        counts.push(Count { id, total });
    }
    counts.sort_by_key(|count: &Count| count.id);
    Ok(Document::Counter(counts))
}

fn vitals(value: &Value) -> Result<Document<'static>, String> {
    let name = value.field("activity").and_then(Value::as_text).unwrap_or("unknown");
    let activity = Activity::from_name(name);
    let callsign = value.field("callsign").and_then(Value::as_text);
    Ok(Document::Vitals(Vitals {
        time_ms: number(value, "timeMs")?.unwrap_or_else(now_ms),
        activity: activity.ok_or_else(|| format!("no activity is called `{name}`"))?,
        alerts: 0,
        battery_percent: number(value, "batteryPercent")?,
        heart_rate: number(value, "heartRate")?,
        last: None,
        callsign: callsign.map(|callsign| callsign.to_owned().into()),
    }))
}

fn location(value: &Value) -> Result<Document<'static>, String> {
    let decimetres = |key: &str| degrees(value, key).map(|metres| metres * 10.0);
    let altitude = decimetres("altitudeM").map(|dm| dm.round() as i32);
    let accuracy = decimetres("accuracyM").map(|dm| dm.round().clamp(0.0, 65_535.0) as u16);
    Ok(Document::Location(Location {
        time_ms: number(value, "timeMs")?.unwrap_or_else(now_ms),
        position: position(value)?,
        altitude_dm: altitude,
        accuracy_dm: accuracy,
    }))
}

fn position(value: &Value) -> Result<Position, String> {
    let both = degrees(value, "latitude").zip(degrees(value, "longitude"));
    let (latitude, longitude) = both.ok_or("latitude and longitude are missing")?;
    let e7 = |degrees: f64| (degrees * 1e7).round();
    let is_near = |e7: f64| e7.abs() <= f64::from(i32::MAX);
    let (latitude, longitude) = (e7(latitude), e7(longitude));
    let position = (is_near(latitude) && is_near(longitude))
        .then(|| Position::from_e7(latitude as i32, longitude as i32));
    position.flatten().ok_or_else(|| "there is no such place on Earth".to_owned())
}

fn degrees(value: &Value, key: &str) -> Option<f64> {
    match value.field(key)? {
        Value::F64(number) => Some(*number),
        Value::I64(number) => Some(*number as f64),
        _ => None,
    }
}

fn number<N: TryFrom<u64>>(value: &Value, key: &str) -> Result<Option<N>, String> {
    let Some(found) = value.field(key) else { return Ok(None) };
    let number = found.as_u64().and_then(|number| N::try_from(number).ok());
    number.map(Some).ok_or_else(|| format!("`{key}` is out of its range"))
}
