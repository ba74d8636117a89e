//! Batches of which each message is stored once by itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::{AppendAsked, AppendedMessages, CommitPlan, CommitPlanner};
use crate::envelope::StreamEnvelope;
use crate::shares::{ShareKind, stored_key_owner};
use crate::store::{KeyRow, StoreFault, StoredRequestKey};
use crate::stream::StreamEntry;
use crate::writer::keys::write_ids;

impl CommitPlan {
    /// The answer that the key of a request got when it came before. If the messages of a batch
    /// have keys of their own, those that the stream has are left out. Of two equal keys in the
    /// batch the second is left out too. The result is then the earlier answer to the first message
    /// that the stream had.
    pub(super) fn seen(
        &self,
        planner: &CommitPlanner,
        stream: Option<&StreamEntry>,
        asked: &mut AppendAsked,
    ) -> Result<Option<KeyRow>, StoreFault> {
        let find = |key: &StoredRequestKey| match stream {
            Some(stream) => self.find_key(planner, stream, &key.key),
            None => Ok(None),
        };
        if let Some(key) = &asked.key {
            return find(key);
        }
        let envelopes = std::mem::take(&mut asked.envelopes).into_iter();
        if asked.each.is_empty() {
            asked.envelopes = envelopes.collect();
            return Ok(None);
        }
        let (mut first, mut known) = (None, HashSet::new());
        let count = envelopes.len();
        for (envelope, key) in envelopes.zip(std::mem::take(&mut asked.each)) {
            match find(&key)? {
                Some(row) => first = first.or(Some(row)),
                None if known.insert(key.key.clone()) => {
                    asked.envelopes.push(envelope);
                    asked.each.push(key);
                }
                None => {}
            }
        }
        if asked.envelopes.len() < count {
            // Their memory is that of the whole batch. Those that were left out would stay in it.
            asked.envelopes.iter_mut().for_each(StreamEnvelope::own);
        }
        Ok(first)
    }

    /// Answers a batch of which the stream has every message: the first stands there.
    pub(super) fn all_seen(stream: &StreamEntry, row: &KeyRow) -> AppendedMessages {
        AppendedMessages {
            stream: stream.topic.clone(),
            ids: Vec::new(),
            offset: row.offset,
            generation: row.generation,
            due_ms: None,
            level: stream.settings().level,
            replayed: true,
        }
    }
}

/// The keys of messages that stand at `first` and behind it, each with what its message alone is
/// answered.
pub(super) fn rows(
    each: Vec<StoredRequestKey>,
    first: &AppendedMessages,
    owner: &Arc<str>,
) -> Vec<(Vec<u8>, KeyRow)> {
    if each.is_empty() {
        return Vec::new();
    }
    let stored_owner = stored_key_owner(owner, ShareKind::MessageKeys);
    let row = |((key, id), at): ((StoredRequestKey, &bytes::Bytes), u64)| {
        let ids = write_ids(std::slice::from_ref(id));
        let (offset, generation) = (first.offset + at, first.generation);
        let (body, owner) = (key.body.to_vec(), stored_owner.clone());
        (key.key, KeyRow { body, generation, offset, due_ms: 0, ids, owner })
    };
    each.into_iter().zip(&first.ids).zip(0..).map(row).collect()
}
