//! An account for programs: the fields of one line of JSON.

use sealane::Value;

use super::account::{CaptureSource, InspectAccount, InspectOrigin, InspectRefusal, InspectRow};
use super::body::{InspectBody, ShownBody};
use super::hex;
use super::keys::FrameOpening;

/// The fields behind `"v"`.
pub(super) fn fields(account: &InspectAccount, number: u64) -> Vec<(&'static str, Value)> {
    let mut fields = vec![("what", account.what.name().into()), ("number", number.into())];
    origin(&account.origin, &mut fields);
    if let Some(form) = account.form {
        fields.push(("form", form.name().into()));
    }
    fields.push(("bytes", length(account.bytes)));
    fields.push(("status", account.status().into()));
    if let Some(refusal) = &account.refusal {
        fields.push(("error", error(refusal)));
    }
    if let Some(missing) = &account.missing {
        fields.push(("missing", missing.as_str().into()));
    }
    fields.push(("fields", Value::Array(account.rows.iter().map(row).collect())));
    if let Some(opening) = &account.opening {
        fields.push(("opening", opened(opening)));
    }
    let opened = match &account.opening {
        Some(FrameOpening::Opened { body, .. }) => Some(body),
        _ => None,
    };
    if let Some(shown) = opened.or(account.body.as_ref()) {
        body(shown, &mut fields);
    }
    fields
}

fn origin(origin: &InspectOrigin, fields: &mut Vec<(&'static str, Value)>) {
    match &origin.captured {
        CaptureSource::Whole => {}
        CaptureSource::Line(line) => fields.push(("line", (*line).into())),
        CaptureSource::Packet(packet) => {
            fields.push(("packet", packet.number.into()));
            fields.push(("captureOffset", packet.offset.into()));
            if let Some(time_ms) = packet.time_ms {
                fields.push(("timeMs", time_ms.into()));
            }
            fields.push(("from", packet.source.to_string().into()));
            fields.push(("to", packet.destination.to_string().into()));
        }
    }
    if let Some(item) = origin.item {
        fields.push(("item", length(item)));
    }
    if let Some((id, parts)) = origin.parts {
        fields.push(("fragmentId", u64::from(id).into()));
        fields.push(("fragments", length(parts)));
    }
    if let Some(whole) = origin.whole_bytes {
        fields.push(("wholeBytes", length(whole)));
    }
}

fn row(row: &InspectRow) -> Value {
    let at = row.at.map_or(Value::Null, length);
    map(vec![
        ("part", row.part.name().into()),
        ("offset", at),
        ("length", length(row.bytes.len())),
        ("hex", hex::encode(&row.bytes).into()),
        ("field", row.field.into()),
        ("value", row.value.clone()),
        ("meaning", row.meaning.as_str().into()),
    ])
}

fn opened(opening: &FrameOpening) -> Value {
    match opening {
        FrameOpening::Opened { epoch, slot, counter, .. } => map(vec![
            ("result", "opened".into()),
            ("epoch", (*epoch).into()),
            ("slot", u64::from(*slot).into()),
            ("counter", (*counter).into()),
        ]),
        FrameOpening::NoKeys => map(vec![("result", "noKeys".into())]),
        FrameOpening::Refused(refusal) => {
            map(vec![("result", "refused".into()), ("error", error(refusal))])
        }
    }
}

fn body(body: &InspectBody, fields: &mut Vec<(&'static str, Value)>) {
    if let Some(time_ms) = body.time_ms {
        fields.push(("bodyTimeMs", time_ms.into()));
    }
    fields.push(match &body.shown {
        ShownBody::Value(value) => ("body", value.clone()),
        ShownBody::Text(text) => ("bodyText", text.as_str().into()),
        ShownBody::Bytes(bytes) => ("bodyHex", hex::encode(bytes).into()),
    });
    if let Some(note) = &body.note {
        fields.push(("bodyNote", note.as_str().into()));
    }
}

fn error(refusal: &InspectRefusal) -> Value {
    map(vec![
        ("code", refusal.info.code.into()),
        ("name", refusal.info.name.into()),
        ("message", refusal.message.as_str().into()),
        ("hint", refusal.info.hint.into()),
    ])
}

fn map(fields: Vec<(&str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn length(n: usize) -> Value {
    Value::from(n as u64)
}
