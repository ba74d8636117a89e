//! The members' counters, and the machine's counts of documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sealane::Value;

use super::TeamMemberView;
use super::text::{escaped, note};

/// The counters of each member, and the sums over all.
pub(super) fn put_counters(
    people: &BTreeMap<u64, TeamMemberView<'_>>,
    sums: Option<&Value>,
    now: u64,
    out: &mut String,
) {
    let sums = fields(sums);
    let ids: BTreeSet<u8> = sums.iter().filter_map(|(id, _)| id.parse().ok()).collect();
    if ids.is_empty() {
        return;
    }
    let cells = |totals: &[(String, Value)]| -> String {
        let total = |id: &u8| totals.iter().find(|(of, _)| *of == id.to_string());
        let total = |id| total(id).and_then(|(_, total)| total.as_u64());
        ids.iter().map(|id| total(id).map_or("<td>".into(), |of| format!("<td>{of}"))).collect()
    };
    out.push_str("<h2>Counters</h2><div><table><tr><th>Member");
    for id in &ids {
        let _ = write!(out, "<th>{id}");
    }
    out.push_str("<th>How old</tr>");
    for person in people.values() {
        let Some(document) = person.values.get("counter") else { continue };
        let (name, totals) = (escaped(person.name), fields(person.field("counter", "counters")));
        let _ = write!(out, "<tr><td>{name}{}<td>{}</tr>", cells(totals), note(document, now));
    }
    let _ = write!(out, "<tr><th>All{}<td></tr></table></div>", cells(sums));
}

/// The counts of this machine since it started.
pub(super) fn put_machine(counts: &Value, out: &mut String) {
    let number = |key: &str| counts.field(key).and_then(Value::as_u64).unwrap_or(0);
    let _ = write!(
        out,
        "<h2>This machine</h2><p>Since it started: {} frames kept, {} taken, {} handed on, {} left \
         for want of room.",
        number("frames"),
        number("taken"),
        number("given"),
        number("evicted")
    );
    let conflicts = number("conflicts");
    if conflicts > 0 {
        let _ = write!(
            out,
            "<p class=bad>{conflicts} authentic frames were others than those with their stamp: a \
             member's keys are in two places, or another member has written in its name."
        );
    }
    let Some(Value::Array(refused)) = counts.field("refused") else { return };
    let refused = refused.iter().map(|one| {
        let frames = one.field("frames").and_then(Value::as_u64).unwrap_or(0);
        let reason = one.field("reason").and_then(Value::as_text).unwrap_or_default();
        format!("{} {frames}", escaped(reason))
    });
    let refused: Vec<_> = refused.collect();
    if !refused.is_empty() {
        let _ = write!(out, "<p>Refused: {}.", refused.join(", "));
    }
}

fn fields(of: Option<&Value>) -> &[(String, Value)] {
    match of {
        Some(Value::Map(fields)) => fields,
        _ => &[],
    }
}
