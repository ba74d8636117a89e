//! The page of the team, for browsers on this machine: who is well, where, what they count and say,
//! who has acknowledged, and how old each value is. It has no script and fetches nothing.

mod chart;
mod counts;
mod door;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write;

use sealane::Value;

use crate::limits::MAX_CHAT_LINES_SHOWN;
use chart::put_map;
use counts::{put_counters, put_machine};
pub(super) use door::serve;
use text::{age, escaped, note};

/// The content of the page, as the thread that holds it has said.
struct TeamPageState {
    documents: Value,
    calls: Value,
    counts: Value,
}

/// The known facts of a member.
#[derive(Default)]
struct TeamMemberView<'v> {
    name: &'v str,
    values: BTreeMap<&'v str, &'v Value>,
}

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#bbb;--quiet:#555;--bad:#b00}\
@media (prefers-color-scheme:dark){:root{--line:#555;--quiet:#aaa;--bad:#f77}}\
body{font:16px sans-serif;margin:1.5rem;max-width:72rem}div{overflow-x:auto}\
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;\
border-bottom:1px solid var(--line);text-align:left;vertical-align:top}small{display:block;\
color:var(--quiet)}.bad{color:var(--bad)}.conflict{display:block}\
.call{border-left:.4rem solid var(--bad);padding:.2rem .8rem;margin:.5rem 0}\
.over{border-color:var(--line);color:var(--quiet)}.said{margin:.3rem 0}\
.said small{display:inline}svg{border:1px solid var(--line);width:100%;height:20rem;\
fill:currentColor}";

fn page(shown: &TeamPageState, now: u64) -> String {
    let mut people: BTreeMap<u64, TeamMemberView<'_>> = BTreeMap::new();
    for item in items(&shown.documents) {
        let slot = item.field("slot").and_then(Value::as_u64).unwrap_or(0);
        let person = people.entry(slot).or_default();
        person.name = item.field("name").and_then(Value::as_text).unwrap_or("?");
        if let Some(of) = item.field("type").and_then(Value::as_text) {
            person.values.insert(of, item);
        }
    }
    let mut out = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>\
         <meta name=viewport content=\"width=device-width\"><title>Team</title>\
         <style>{STYLE}</style><h1>Team</h1>"
    );
    for call in items(&shown.calls) {
        put_call(call, &people, now, &mut out);
    }
    out.push_str(
        "<div><table><tr><th>Member<th>How<th>Last event<th>Battery<th>Heart rate<th>Where\
         <th>Sign of life</tr>",
    );
    for (slot, person) in &people {
        put_person(*slot, person, now, &mut out);
    }
    out.push_str("</table></div>");
    put_counters(&people, shown.documents.field("sums"), now, &mut out);
    put_lines(items(&shown.documents), now, &mut out);
    put_map(&people, &mut out);
    put_machine(&shown.counts, &mut out);
    out.push_str("</html>\n");
    out
}

fn items(list: &Value) -> &[Value] {
    match list.field("items") {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn put_call(call: &Value, people: &BTreeMap<u64, TeamMemberView<'_>>, now: u64, out: &mut String) {
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

impl<'v> TeamMemberView<'v> {
    /// A field of what the member says of itself.
    fn field(&self, of: &str, key: &str) -> Option<&'v Value> {
        self.values.get(of)?.field("value")?.field(key)
    }

    /// A value with its age beside it; nothing where it is not known.
    fn cell(&self, of: &str, shown: Option<String>, now: u64) -> String {
        match (shown, self.values.get(of)) {
            (Some(shown), Some(document)) => format!("<td>{shown}{}", note(document, now)),
            _ => "<td>".to_owned(),
        }
    }
}

fn put_person(slot: u64, person: &TeamMemberView<'_>, now: u64, out: &mut String) {
    let word = |of: &str, key: &str| person.field(of, key).map(said);
    let number = |of: &str, key: &str| person.field(of, key).and_then(Value::as_u64);
    let callsign =
        word("vitals", "callsign").map(|callsign| format!(" \u{201c}{callsign}\u{201d}"));
    let place = person.place().map(|[latitude, longitude]| {
        let radius =
            person.field("location", "accuracyM").map(|metres| format!(" ± {} m", said(metres)));
        format!("{latitude:.5}, {longitude:.5}{}", radius.unwrap_or_default())
    });
    let up = number("heartbeat", "upS").map(|up| format!("up {}", text::span(up * 1000)));
    let cells = [
        person.cell("vitals", how(person), now),
        last_event(person, now),
        person.cell("vitals", number("vitals", "batteryPercent").map(|of| format!("{of} %")), now),
        person.cell(
            "vitals",
            number("vitals", "heartRate").map(|of| format!("{of} a minute")),
            now,
        ),
        person.cell("location", place, now),
        person.cell("heartbeat", up, now),
    ];
    let _ = write!(
        out,
        "<tr><td>{}{}<small>slot {slot}</small>{}</tr>",
        escaped(person.name),
        callsign.unwrap_or_default(),
        cells.concat()
    );
}

/// The activity of a member, and its warnings.
fn how(person: &TeamMemberView<'_>) -> Option<String> {
    let mut how = said(person.field("vitals", "activity")?);
    if let Some(Value::Array(alerts)) = person.field("vitals", "alerts") {
        for alert in alerts {
            let _ = write!(how, " <b class=bad>{}</b>", said(alert));
        }
    }
    Some(how)
}

/// The last incident of a member, with an age of its own.
fn last_event(person: &TeamMemberView<'_>, now: u64) -> String {
    let Some(last) = person.field("vitals", "last") else { return "<td>".to_owned() };
    let time = last.field("timeMs").and_then(Value::as_u64).unwrap_or(0);
    let event = last.field("event").map(said).unwrap_or_default();
    let class =
        if ["need-assist", "emergency"].contains(&event.as_str()) { " class=bad" } else { "" };
    format!("<td><b{class}>{event}</b><small>{}</small>", age(time, now))
}

/// A text or a number, of whoever wrote it.
fn said(value: &Value) -> String {
    match value {
        Value::Text(text) => escaped(text),
        Value::F64(number) => number.to_string(),
        other => other.as_u64().map(|number| number.to_string()).unwrap_or_default(),
    }
}

/// The chat, the newest line last.
fn put_lines(documents: &[Value], now: u64, out: &mut String) {
    let is_chat = |item: &&Value| item.field("type").and_then(Value::as_text) == Some("chat");
    let mut lines: Vec<&Value> = documents.iter().filter(is_chat).collect();
    let time = |line: &&Value| line.field("timeMs").and_then(Value::as_u64).unwrap_or(0);
    lines.sort_by_key(time);
    if lines.is_empty() {
        return;
    }
    out.push_str("<h2>Chat</h2>");
    for line in lines.iter().skip(lines.len().saturating_sub(MAX_CHAT_LINES_SHOWN)) {
        let name = line.field("name").and_then(Value::as_text).unwrap_or("?");
        let value = line.field("value");
        let words = value.and_then(|value| value.field("text").or(Some(value))).map(said);
        let _ = write!(
            out,
            "<p class=said><b>{}</b> {} {}</p>",
            escaped(name),
            words.unwrap_or_default(),
            note(line, now)
        );
    }
}

impl TeamMemberView<'_> {
    fn place(&self) -> Option<[f64; 2]> {
        let degrees = |key: &str| match self.field("location", key)? {
            Value::F64(number) => Some(*number),
            Value::I64(number) => Some(*number as f64),
            _ => None,
        };
        Some([degrees("latitude")?, degrees("longitude")?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::map;

    fn nothing() -> TeamPageState {
        TeamPageState { documents: Value::Null, calls: Value::Null, counts: Value::Null }
    }

    #[test]
    fn who_says_that_a_call_is_over_is_told() {
        let item = map(vec![
            ("slot", 3_u64.into()),
            ("isOver", Value::Bool(true)),
            ("clearedBy", Value::Array(vec![9_u64.into()])),
        ]);
        let calls = map(vec![("items", Value::Array(vec![item]))]);
        let page = page(&TeamPageState { calls, ..nothing() }, 1000);
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
        let line = map(vec![
            ("slot", 3_u64.into()),
            ("name", name.into()),
            ("type", "chat".into()),
            ("timeMs", 21_000_u64.into()),
            ("value", map(vec![("text", name.into())])),
        ]);
        let documents = map(vec![("items", Value::Array(vec![item, line]))]);
        let shown = TeamPageState { documents, calls: list(call), ..nothing() };
        let page = page(&shown, 61_000);
        for word in ["<script", "<img", "http:", "https:", "url(", "@import"] {
            assert!(!page.contains(word), "{word} in {page}");
        }
        assert!(page.contains("60 s ago") && page.contains("slot 7"), "{page}");
        assert!(page.contains("52.50000, 13.40000"), "{page}");
    }

    fn document(slot: u64, of: &str, more: Vec<(&str, Value)>) -> Value {
        let head = vec![("slot", slot.into()), ("name", "base".into()), ("type", of.into())];
        map(head.into_iter().chain(more).collect())
    }

    #[test]
    fn each_value_has_its_own_age_beside_it() {
        let last = map(vec![("event", "need-assist".into()), ("timeMs", 570_000_u64.into())]);
        let vitals = map(vec![
            ("activity", "moving".into()),
            ("alerts", Value::Array(vec!["fall".into(), 5_u64.into()])),
            ("heartRate", 90_u64.into()),
            ("last", last),
            ("callsign", "Kilo".into()),
        ]);
        let place = map(vec![("latitude", Value::F64(52.5)), ("longitude", Value::F64(13.4))]);
        let items = vec![
            document(3, "vitals", vec![("timeMs", 590_000_u64.into()), ("value", vitals)]),
            document(3, "location", vec![("timeMs", 0_u64.into()), ("value", place)]),
        ];
        let documents = map(vec![("items", Value::Array(items))]);
        let page = page(&TeamPageState { documents, ..nothing() }, 600_000);
        for cell in [
            "<td>90 a minute<small>10 s ago</small>",
            "<td>52.50000, 13.40000<small>10 min ago</small>",
            "<td><b class=bad>need-assist</b><small>30 s ago</small>",
            "moving <b class=bad>fall</b> <b class=bad>5</b><small>10 s ago</small>",
            "base \u{201c}Kilo\u{201d}",
        ] {
            assert!(page.contains(cell), "{cell}: {page}");
        }
    }

    #[test]
    fn counters_stand_with_their_sums_and_conflicts_beside_the_value() {
        let count = |total: u64| map(vec![("counters", map(vec![("1", total.into())]))]);
        let items = vec![
            document(3, "counter", vec![("value", count(5)), ("conflicts", 2_u64.into())]),
            document(4, "counter", vec![("value", count(7)), ("heardMs", 1000_u64.into())]),
        ];
        let sums = map(vec![("1", 12_u64.into())]);
        let documents = map(vec![("items", Value::Array(items)), ("sums", sums)]);
        let refused = map(vec![("reason", "forged".into()), ("frames", 4_u64.into())]);
        let counts =
            map(vec![("conflicts", 2_u64.into()), ("refused", Value::Array(vec![refused]))]);
        let page = page(&TeamPageState { documents, counts, ..nothing() }, 11_000);
        for part in [
            "<th>All<td>12<td>",
            "<td>base<td>5<td>",
            "authentic frames that differ: 2<",
            "came 10 s ago",
            "Refused: forged 4.",
            "<p class=bad>2 authentic frames",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
