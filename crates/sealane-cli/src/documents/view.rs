//! The page of the team, for browsers on this machine: who is well, where, who has acknowledged,
//! and how old each value is. It has no script and fetches nothing.

mod door;

use std::collections::BTreeMap;
use std::fmt::Write;

use sealane::Value;

pub(super) use door::{View, serve};

/// What is known of a member.
#[derive(Default)]
struct Person<'v> {
    name: &'v str,
    values: BTreeMap<&'v str, &'v Value>,
}

const STYLE: &str = "body{font:16px sans-serif;margin:1.5rem;max-width:60rem}table{border-collapse:\
collapse;width:100%}td,th{padding:.3rem .6rem;border-bottom:1px solid #bbb;text-align:left}.call{\
border-left:.4rem solid #b00;padding:.2rem .8rem;margin:.5rem 0}.over{border-color:#888;color:#555}\
svg{border:1px solid #bbb;width:100%;height:20rem}";

fn page(documents: &Value, calls: &Value, now: u64) -> String {
    let mut people: BTreeMap<u64, Person<'_>> = BTreeMap::new();
    for item in items(documents) {
        let slot = item.field("slot").and_then(Value::as_u64).unwrap_or(0);
        let person = people.entry(slot).or_default();
        person.name = item.field("name").and_then(Value::as_text).unwrap_or("?");
        if let Some(of) = item.field("type").and_then(Value::as_text) {
            person.values.insert(of, item);
        }
    }
    let mut out = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>\
         <title>Team</title><style>{STYLE}</style><h1>Team</h1>"
    );
    for call in items(calls) {
        put_call(call, &people, now, &mut out);
    }
    out.push_str("<table><tr><th>Member<th>How<th>Battery<th>Where<th>Heard of</tr>");
    for (slot, person) in &people {
        put_person(*slot, person, now, &mut out);
    }
    out.push_str("</table>");
    put_map(&people, &mut out);
    out.push_str("</html>\n");
    out
}

fn items(list: &Value) -> &[Value] {
    match list.field("items") {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn put_call(call: &Value, people: &BTreeMap<u64, Person<'_>>, now: u64, out: &mut String) {
    let text = |key: &str| call.field(key).and_then(Value::as_text).unwrap_or_default();
    let number = |key: &str| call.field(key).and_then(Value::as_u64).unwrap_or(0);
    let is_over = call.field("isOver") == Some(&Value::Bool(true));
    let who = |key: &str| {
        let Some(Value::Array(all)) = call.field(key) else { return String::new() };
        let names = all.iter().filter_map(Value::as_u64).map(|slot| {
            let person = people.get(&slot).filter(|person| !person.name.is_empty());
            person.map_or(format!("slot {slot}"), |person| escaped(person.name))
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let (class, state) =
        if is_over { ("call over", "is over") } else { ("call", "calls for help") };
    let _ = write!(
        out,
        "<p class=\"{class}\"><b>{} {state}</b> ({}, {}): {}<br>acknowledged by: {}",
        escaped(text("name")),
        escaped(text("kind")),
        age(number("timeMs"), now),
        escaped(text("text")),
        who("acknowledgedBy"),
    );
    if is_over {
        // Any member may say so: it is told who did.
        let _ = write!(out, "<br>said to be over by: {}", who("clearedBy"));
    }
    out.push_str("</p>");
}

fn put_person(slot: u64, person: &Person<'_>, now: u64, out: &mut String) {
    let field = |of: &str, key: &str| person.values.get(of)?.field("value")?.field(key);
    let word = |of: &str, key: &str| field(of, key).and_then(Value::as_text).unwrap_or("");
    let battery = field("vitals", "batteryPercent").and_then(Value::as_u64);
    let place = place(person).map(|[latitude, longitude]| format!("{latitude:.5}, {longitude:.5}"));
    let times = person.values.values().filter_map(|one| one.field("timeMs"));
    let newest = times.filter_map(Value::as_u64).max();
    let _ = write!(
        out,
        "<tr><td>{} <small>slot {slot}</small><td>{}<td>{}<td>{}<td>{}</tr>",
        escaped(person.name),
        escaped(word("vitals", "activity")),
        battery.map(|percent| format!("{percent} %")).unwrap_or_default(),
        place.unwrap_or_default(),
        newest.map(|time| age(time, now)).unwrap_or_default(),
    );
}

fn place(person: &Person<'_>) -> Option<[f64; 2]> {
    let value = person.values.get("location")?.field("value")?;
    let degrees = |key: &str| match value.field(key)? {
        Value::F64(number) => Some(*number),
        Value::I64(number) => Some(*number as f64),
        _ => None,
    };
    Some([degrees("latitude")?, degrees("longitude")?])
}

/// Where all are, seen from above: nothing but the points and their names.
fn put_map(people: &BTreeMap<u64, Person<'_>>, out: &mut String) {
    let places: Vec<_> =
        people.values().filter_map(|person| Some((person.name, place(person)?))).collect();
    let Some((_, first)) = places.first() else { return };
    let (mut low, mut high) = (*first, *first);
    for (_, at) in &places {
        for ((low, high), at) in low.iter_mut().zip(&mut high).zip(at) {
            (*low, *high) = (low.min(*at), high.max(*at));
        }
    }
    let [south, west] = low;
    let [north, east] = high;
    // A degree of longitude is shorter than one of latitude.
    let narrow = ((south + north) / 2.0).to_radians().cos().max(0.01);
    let wide = ((east - west) * narrow).max(north - south).max(1e-5);
    out.push_str("<h2>Where</h2><svg viewBox=\"-60 -40 720 480\" role=img aria-label=\"Map\">");
    for (name, [latitude, longitude]) in places {
        let x = (longitude - west) * narrow / wide * 600.0;
        let y = (north - latitude) / wide * 400.0;
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=5 /><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + 9.0,
            escaped(name)
        );
    }
    let _ = write!(out, "</svg><p>{:.0} m across.</p>", wide * 111_195.0);
}

/// How long ago something was, by the clock of who said it. One that is ahead tells nothing: what
/// comes from it would look new for as long.
fn age(then: u64, now: u64) -> String {
    let words = |ms: u64| match ms / 1000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    };
    let ahead = then.saturating_sub(now);
    match ahead > CLOCK_AHEAD_MS {
        true => format!("unknown when: a clock is {} ahead", words(ahead)),
        false => format!("{} ago", words(now.saturating_sub(then))),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// A clock that is ahead by more is told.
const CLOCK_AHEAD_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::super::map;
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_makes_nothing_look_new() {
        const YEAR_MS: u64 = 365 * 24 * 3_600_000;
        let now = 60 * YEAR_MS;
        assert_eq!(age(now - 5_000, now), "5 s ago");
        assert_eq!(age(now + 30_000, now), "0 s ago");
        assert_eq!(age(now + 300_000, now), "unknown when: a clock is 5 min ahead");
        assert_eq!(age(now + 10 * YEAR_MS, now), "unknown when: a clock is 87600 h ahead");
        assert_eq!(age(now - 10 * YEAR_MS, now), "87600 h ago");
    }

    #[test]
    fn who_says_that_a_call_is_over_is_told() {
        let item = map(vec![
            ("slot", 3_u64.into()),
            ("isOver", Value::Bool(true)),
            ("clearedBy", Value::Array(vec![9_u64.into()])),
        ]);
        let calls = map(vec![("items", Value::Array(vec![item]))]);
        let page = page(&map(vec![]), &calls, 1000);
        assert!(page.contains("said to be over by: slot 9"), "{page}");
    }

    #[test]
    fn what_members_write_is_text_and_nothing_is_fetched() {
        let name = "<script src=//evil.example>";
        let item = map(vec![
            ("slot", 3_u64.into()),
            ("name", name.into()),
            ("type", "location".into()),
            ("timeMs", 1000_u64.into()),
            ("value", map(vec![("latitude", Value::F64(52.5)), ("longitude", Value::F64(13.4))])),
        ]);
        let call = map(vec![
            ("slot", 3_u64.into()),
            ("name", name.into()),
            ("text", "\"><img src=x>".into()),
            ("acknowledgedBy", Value::Array(vec![3_u64.into(), 7_u64.into()])),
        ]);
        let list = |item: Value| map(vec![("items", Value::Array(vec![item]))]);
        let page = page(&list(item), &list(call), 61_000);
        for word in ["<script", "<img", "http:", "https:", "url(", "@import"] {
            assert!(!page.contains(word), "{word} in {page}");
        }
        assert!(page.contains("60 s ago") && page.contains("slot 7"), "{page}");
        assert!(page.contains("52.50000, 13.40000"), "{page}");
    }
}
