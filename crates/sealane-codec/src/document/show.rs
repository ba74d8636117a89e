use sealane_message::Value;
use sealane_message::document::{
    Document, Emergency, EmergencyCall, Location, Position, Vitals, alert,
};

/// A document as programs and people are shown it, `spec/document.md`, *As a value*.
pub(super) fn to_value(document: &Document<'_>) -> Value {
    match document {
        Document::Counter(counts) => {
            let totals = counts.iter().map(|count| (count.id.to_string(), count.total.into()));
            map([("counters", Some(Value::Map(totals.collect())))])
        }
        Document::Heartbeat(heartbeat) => map([
            ("nextS", heartbeat.next_s.map(u64::from).map(Value::from)),
            ("upS", Some(u64::from(heartbeat.up_s).into())),
        ]),
        Document::Vitals(vitals) => vitals_value(vitals),
        Document::Location(location) => location_value(location),
        Document::Emergency(emergency) => emergency_value(emergency),
        Document::Acknowledgement(call) | Document::Clear(call) => call_value(*call),
    }
}

fn vitals_value(vitals: &Vitals<'_>) -> Value {
    let last = vitals.last.map(|last| {
        map([
            ("event", Some(named(last.kind.name(), last.kind.number()))),
            ("timeMs", Some(last.time_ms.into())),
        ])
    });
    let named_alerts = alert::NAMES.iter().filter(|(bit, _)| vitals.alerts & bit != 0);
    let mut alerts: Vec<Value> = named_alerts.map(|(_, name)| (*name).into()).collect();
    // The user's own, by the number of their bit.
    let own = alert::OWN_BITS.filter(|bit| vitals.alerts >> bit & 1 != 0);
    alerts.extend(own.map(Value::from));
    map([
        ("timeMs", Some(vitals.time_ms.into())),
        ("activity", Some(named(vitals.activity.name(), vitals.activity.number()))),
        ("alerts", Some(Value::Array(alerts))),
        ("batteryPercent", vitals.battery_percent.map(u64::from).map(Value::from)),
        ("heartRate", vitals.heart_rate.map(u64::from).map(Value::from)),
        ("last", last),
        ("callsign", vitals.callsign.as_deref().map(Value::from)),
    ])
}

fn location_value(location: &Location) -> Value {
    let metres = |decimetres: f64| Value::F64(decimetres / 10.0);
    let (latitude, longitude) = degrees(location.position);
    map([
        ("timeMs", Some(location.time_ms.into())),
        ("latitude", Some(latitude)),
        ("longitude", Some(longitude)),
        ("altitudeM", location.altitude_dm.map(f64::from).map(metres)),
        ("accuracyM", location.accuracy_dm.map(f64::from).map(metres)),
    ])
}

fn emergency_value(emergency: &Emergency<'_>) -> Value {
    let position = emergency.position.map(degrees);
    let (latitude, longitude) = position.unzip();
    map([
        ("number", Some(u64::from(emergency.number).into())),
        ("kind", Some(named(emergency.kind.name(), emergency.kind.number()))),
        ("latitude", latitude),
        ("longitude", longitude),
        ("text", emergency.text.as_deref().map(Value::from)),
    ])
}

fn call_value(call: EmergencyCall) -> Value {
    map([
        ("slot", Some(u64::from(call.slot).into())),
        ("number", Some(u64::from(call.number).into())),
    ])
}

fn degrees(position: Position) -> (Value, Value) {
    let degrees = |e7: i32| Value::F64(f64::from(e7) / 1e7);
    (degrees(position.latitude_e7()), degrees(position.longitude_e7()))
}

/// A number by its name; one of a later version by itself.
fn named(name: Option<&'static str>, number: u8) -> Value {
    name.map_or_else(|| u64::from(number).into(), Value::from)
}

/// The fields that are there.
fn map<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Map(there.collect())
}
