//! Documents as the bodies of frames, `spec/document.md`.
//!
//! ```
//! use sealane_codec::document::{decode, encode};
//! use sealane_message::document::{EmergencyCall, Document};
//!
//! let seen = Document::Acknowledgement(EmergencyCall { slot: 7, number: 3 });
//! let mut body = Vec::new();
//! encode(&seen, &mut body)?;
//! assert_eq!(body, [7, 0, 3, 0, 0, 0]);
//! assert_eq!(decode(seen.data_type(), &body)?, seen);
//! # Ok::<(), sealane_codec::document::DocumentError>(())
//! ```

mod error;
mod read;
mod show;
mod write;

use std::borrow::Cow;

use sealane_message::document::{
    Activity, Count, Document, Emergency, EmergencyCall, EmergencyKind, Heartbeat, Incident,
    IncidentKind, Location, Position, Vitals,
};
use sealane_message::limits::{
    MAX_CALLSIGN_BYTES, MAX_COUNT, MAX_COUNTERS, MAX_EMERGENCY_TEXT_BYTES,
};
use sealane_message::{DataType, Value};

pub use error::{DocumentError, ERRORS};

use read::DocumentBodyReader;
use write::Out;

/// The bits by which a body says which of its fields are there.
mod flag {
    pub(super) mod vitals {
        pub(in super::super) const BATTERY: u8 = 1;
        pub(in super::super) const HEART_RATE: u8 = 1 << 1;
        pub(in super::super) const LAST: u8 = 1 << 2;
        pub(in super::super) const CALLSIGN: u8 = 1 << 3;
    }
    pub(super) mod location {
        pub(in super::super) const ALTITUDE: u8 = 1;
        pub(in super::super) const ACCURACY: u8 = 1 << 1;
    }
    pub(super) mod emergency {
        pub(in super::super) const POSITION: u8 = 1;
        pub(in super::super) const TEXT: u8 = 1 << 1;
    }
}

const BATTERY_MAX_PERCENT: u8 = 100;
const HEART_RATES: std::ops::RangeInclusive<u8> = 20..=250;

/// Appends the body of a document's frame to `out`; that of an urgent one stands behind the time
/// that whoever seals writes.
///
/// # Errors
/// [`DocumentError`] where a field is out of its range; `out` is then as it was.
pub fn encode(document: &Document<'_>, out: &mut Vec<u8>) -> Result<(), DocumentError> {
    let start = out.len();
    let written = write(document, &mut Out::new(out));
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Reads the body of a frame of that data type; that of an urgent one without its time. Text is
/// borrowed.
///
/// # Errors
/// [`DocumentError`] where the bytes are anything else than the one form of a document.
pub fn decode(data_type: DataType, body: &[u8]) -> Result<Document<'_>, DocumentError> {
    let mut reader = DocumentBodyReader::new(body);
    let document = match data_type {
        DataType::COUNTER => Document::Counter(read_counts(&mut reader)?),
        DataType::HEARTBEAT => Document::Heartbeat(read_heartbeat(&mut reader)?),
        DataType::VITALS => Document::Vitals(read_vitals(&mut reader)?),
        DataType::LOCATION => Document::Location(read_location(&mut reader)?),
        DataType::EMERGENCY => Document::Emergency(read_emergency(&mut reader)?),
        DataType::ACKNOWLEDGEMENT => Document::Acknowledgement(read_call(&mut reader)?),
        DataType::CLEAR => Document::Clear(read_call(&mut reader)?),
        other => return Err(DocumentError::NoDocument { data_type: other }),
    };
    reader.finish()?;
    Ok(document)
}

/// The document as programs and people are shown it: a map with the names of `spec/document.md`.
pub fn to_value(document: &Document<'_>) -> Value {
    show::to_value(document)
}

fn write(document: &Document<'_>, out: &mut Out<'_>) -> Result<(), DocumentError> {
    match document {
        Document::Counter(counts) => write_counts(counts, out),
        Document::Heartbeat(heartbeat) => {
            // Zero seconds say that nobody knows.
            if heartbeat.next_s == Some(0) {
                return Err(DocumentError::OutOfRange { field: "next" });
            }
            out.put(&heartbeat.next_s.unwrap_or(0).to_le_bytes());
            out.put(&heartbeat.up_s.to_le_bytes());
            Ok(())
        }
        Document::Vitals(vitals) => write_vitals(vitals, out),
        Document::Location(location) => write_location(location, out),
        Document::Emergency(emergency) => write_emergency(emergency, out),
        Document::Acknowledgement(call) | Document::Clear(call) => {
            out.put(&call.slot.to_le_bytes());
            out.put(&call.number.to_le_bytes());
            Ok(())
        }
    }
}

fn write_counts(counts: &[Count], out: &mut Out<'_>) -> Result<(), DocumentError> {
    check_number_of_counts(counts.len())?;
    let mut above = None;
    for count in counts {
        check_count(count, above)?;
        above = Some(count.id);
        out.put(&[count.id]);
        out.put_total(count.total);
    }
    Ok(())
}

fn read_counts(reader: &mut DocumentBodyReader<'_>) -> Result<Vec<Count>, DocumentError> {
    let mut counts: Vec<Count> = vec![];
    while counts.is_empty() || reader.left() > 0 {
        check_number_of_counts(counts.len() + 1)?;
        let count = Count { id: reader.byte()?, total: reader.total()? };
        check_count(&count, counts.last().map(|last| last.id))?;
        counts.push(count);
    }
    Ok(counts)
}

fn check_number_of_counts(number: usize) -> Result<(), DocumentError> {
    within("counters", (1..=MAX_COUNTERS).contains(&number))
}

fn check_count(count: &Count, above: Option<u8>) -> Result<(), DocumentError> {
    within("id", above.is_none_or(|above| count.id > above))?;
    within("total", count.total <= MAX_COUNT)
}

fn read_heartbeat(reader: &mut DocumentBodyReader<'_>) -> Result<Heartbeat, DocumentError> {
    let next_s = u16::from_le_bytes(reader.array()?);
    let up_s = u32::from_le_bytes(reader.array()?);
    Ok(Heartbeat { next_s: (next_s != 0).then_some(next_s), up_s })
}

fn write_vitals(vitals: &Vitals<'_>, out: &mut Out<'_>) -> Result<(), DocumentError> {
    use flag::vitals::{BATTERY, CALLSIGN, HEART_RATE, LAST};
    check_vitals(vitals)?;
    out.put_flags(&[
        (BATTERY, vitals.battery_percent.is_some()),
        (HEART_RATE, vitals.heart_rate.is_some()),
        (LAST, vitals.last.is_some()),
        (CALLSIGN, vitals.callsign.is_some()),
    ]);
    out.put_time(vitals.time_ms)?;
    out.put(&[vitals.activity.number(), vitals.alerts]);
    out.put(vitals.battery_percent.as_slice());
    out.put(vitals.heart_rate.as_slice());
    if let Some(last) = vitals.last {
        out.put(&[last.kind.number()]);
        out.put_time(last.time_ms)?;
    }
    match &vitals.callsign {
        Some(callsign) => out.put_text("callsign", callsign, MAX_CALLSIGN_BYTES),
        None => Ok(()),
    }
}

fn read_vitals<'a>(reader: &mut DocumentBodyReader<'a>) -> Result<Vitals<'a>, DocumentError> {
    use flag::vitals::{BATTERY, CALLSIGN, HEART_RATE, LAST};
    let flags = reader.flags(BATTERY | HEART_RATE | LAST | CALLSIGN)?;
    let mut vitals = Vitals {
        time_ms: reader.time()?,
        activity: Activity::from_number(reader.byte()?),
        alerts: reader.byte()?,
        battery_percent: None,
        heart_rate: None,
        last: None,
        callsign: None,
    };
    if flags & BATTERY != 0 {
        vitals.battery_percent = Some(reader.byte()?);
    }
    if flags & HEART_RATE != 0 {
        vitals.heart_rate = Some(reader.byte()?);
    }
    if flags & LAST != 0 {
        let kind = IncidentKind::from_number(reader.byte()?);
        vitals.last = Some(Incident { kind, time_ms: reader.time()? });
    }
    if flags & CALLSIGN != 0 {
        vitals.callsign = Some(Cow::Borrowed(reader.text("callsign", MAX_CALLSIGN_BYTES)?));
    }
    check_vitals(&vitals)?;
    Ok(vitals)
}

fn check_vitals(vitals: &Vitals<'_>) -> Result<(), DocumentError> {
    within("battery", vitals.battery_percent.is_none_or(|battery| battery <= BATTERY_MAX_PERCENT))?;
    within("heart rate", vitals.heart_rate.is_none_or(|rate| HEART_RATES.contains(&rate)))?;
    within("event", vitals.last.is_none_or(|last| last.kind.number() != 0))
}

fn write_location(location: &Location, out: &mut Out<'_>) -> Result<(), DocumentError> {
    use flag::location::{ACCURACY, ALTITUDE};
    out.put_flags(&[
        (ALTITUDE, location.altitude_dm.is_some()),
        (ACCURACY, location.accuracy_dm.is_some()),
    ]);
    out.put_time(location.time_ms)?;
    out.put_position(location.position);
    if let Some(altitude) = location.altitude_dm {
        out.put_signed_24("altitude", altitude)?;
    }
    if let Some(accuracy) = location.accuracy_dm {
        out.put(&accuracy.to_le_bytes());
    }
    Ok(())
}

fn read_location(reader: &mut DocumentBodyReader<'_>) -> Result<Location, DocumentError> {
    use flag::location::{ACCURACY, ALTITUDE};
    let flags = reader.flags(ALTITUDE | ACCURACY)?;
    let mut location = Location {
        time_ms: reader.time()?,
        position: read_position(reader)?,
        altitude_dm: None,
        accuracy_dm: None,
    };
    if flags & ALTITUDE != 0 {
        location.altitude_dm = Some(reader.signed_24()?);
    }
    if flags & ACCURACY != 0 {
        location.accuracy_dm = Some(u16::from_le_bytes(reader.array()?));
    }
    Ok(location)
}

fn read_position(reader: &mut DocumentBodyReader<'_>) -> Result<Position, DocumentError> {
    let latitude = i32::from_le_bytes(reader.array()?);
    let longitude = i32::from_le_bytes(reader.array()?);
    Position::from_e7(latitude, longitude).ok_or(DocumentError::OutOfRange { field: "position" })
}

fn write_emergency(emergency: &Emergency<'_>, out: &mut Out<'_>) -> Result<(), DocumentError> {
    use flag::emergency::{POSITION, TEXT};
    out.put_flags(&[(POSITION, emergency.position.is_some()), (TEXT, emergency.text.is_some())]);
    out.put(&emergency.number.to_le_bytes());
    out.put(&[emergency.kind.number()]);
    if let Some(position) = emergency.position {
        out.put_position(position);
    }
    match &emergency.text {
        Some(text) => out.put_text("text", text, MAX_EMERGENCY_TEXT_BYTES),
        None => Ok(()),
    }
}

fn read_emergency<'a>(reader: &mut DocumentBodyReader<'a>) -> Result<Emergency<'a>, DocumentError> {
    use flag::emergency::{POSITION, TEXT};
    let flags = reader.flags(POSITION | TEXT)?;
    let mut emergency = Emergency {
        number: u32::from_le_bytes(reader.array()?),
        kind: EmergencyKind::from_number(reader.byte()?),
        position: None,
        text: None,
    };
    if flags & POSITION != 0 {
        emergency.position = Some(read_position(reader)?);
    }
    if flags & TEXT != 0 {
        emergency.text = Some(Cow::Borrowed(reader.text("text", MAX_EMERGENCY_TEXT_BYTES)?));
    }
    Ok(emergency)
}

fn read_call(reader: &mut DocumentBodyReader<'_>) -> Result<EmergencyCall, DocumentError> {
    let slot = u16::from_le_bytes(reader.array()?);
    Ok(EmergencyCall { slot, number: u32::from_le_bytes(reader.array()?) })
}

fn within(field: &'static str, holds: bool) -> Result<(), DocumentError> {
    if holds { Ok(()) } else { Err(DocumentError::OutOfRange { field }) }
}
