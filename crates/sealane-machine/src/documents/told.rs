//! The counts of documents, for programs: docs/reference/JSON.md, `mesh status`.

use sealane::Value;
use sealane_document::{DocumentsStatus, RegisterConflict};

use crate::json::map;

/// All of it.
pub(crate) fn told(status: &DocumentsStatus) -> Value {
    let refused = status.refused_by_name().into_iter().filter(|(_, frames)| *frames > 0);
    let refused =
        refused.map(|(why, frames)| map(vec![("reason", why.into()), ("frames", frames.into())]));
    let own = status.own_by_name().map(|(name, count)| (name, count.into()));
    let mut fields = vec![("frames", status.frames.into()), ("bytes", status.bytes.into())];
    fields.extend(status.counts_by_name().map(|(name, count)| (name, count.into())));
    fields.push(("refused", Value::Array(refused.collect())));
    fields.push(("conflicting", Value::Array(status.conflicting.iter().map(conflict).collect())));
    fields.push(("own", map(own.to_vec())));
    map(fields)
}

fn conflict(one: &RegisterConflict) -> Value {
    map(vec![
        ("group", one.register.group.to_string().into()),
        ("slot", u64::from(one.register.origin.number()).into()),
        ("type", one.register.data_type.to_string().into()),
        ("frames", one.frames.into()),
    ])
}
