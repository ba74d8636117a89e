//! Idempotency keys: a request that comes again is answered as it was first.

use bytes::Bytes;

use super::command::{AppendedMessages, CommandRefusal};
use crate::store::KeyRow;
use crate::stream::StreamEntry;

/// Answers a repeated key as it was answered first.
pub(super) fn replay(
    stream: &StreamEntry,
    row: KeyRow,
    body: &[u8],
) -> Result<AppendedMessages, CommandRefusal> {
    // The same key with another body is a client's mistake. Answering it as before would hide a
    // lost request.
    if row.body != body {
        return Err(CommandRefusal::KeyReused);
    }
    Ok(AppendedMessages {
        stream: stream.topic.clone(),
        ids: read_ids(&row.ids.into()),
        offset: row.offset,
        generation: row.generation,
        due_ms: (row.due_ms > 0).then_some(row.due_ms),
        level: stream.settings().level,
        replayed: true,
    })
}

pub(super) fn write_ids(ids: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ids.iter().map(|id| id.len() + 1).sum());
    for id in ids {
        out.push(id.len() as u8);
        out.extend_from_slice(id);
    }
    out
}

fn read_ids(blob: &Bytes) -> Vec<Bytes> {
    let (mut ids, mut at) = (Vec::new(), 0);
    while let Some(size) = blob.get(at)
        && let end = at + 1 + usize::from(*size)
        && end <= blob.len()
    {
        ids.push(blob.slice(at + 1..end));
        at = end;
    }
    ids
}
