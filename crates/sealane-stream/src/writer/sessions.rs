//! The stored state of the sessions that published last. With it a message of theirs is planned
//! without a look at the store. Outside a transaction the look takes and gives back a lock of the
//! file. That costs more than the rest of planning.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::MAX_SESSION_RUNS;
use crate::store::StoredSession;

/// The size of a session beside its runs.
const SESSION_SIZE: usize = 15;

/// A stream's number and a session's key.
type StreamSessionKey = (u32, Arc<[u8]>);

/// Two halves: when the one that is written is full, the other is forgotten and takes its place. A
/// session that publishes on is always found in one of them.
#[derive(Default)]
pub(super) struct RecentSessions {
    recent: HashMap<StreamSessionKey, StoredSession>,
    before: HashMap<StreamSessionKey, StoredSession>,
    /// The size of `recent`, in runs.
    size: usize,
}

impl RecentSessions {
    /// The stored state of a session. None: the store has to be asked.
    pub(super) fn find(&self, stream: u32, key: &Arc<[u8]>) -> Option<&StoredSession> {
        let place = (stream, key.clone());
        // A session that is found in the older half moves to the newer one with its next commit.
        self.recent.get(&place).or_else(|| self.before.get(&place))
    }

    /// Keeps what the store holds of a session, now that the commit stands.
    pub(super) fn keep(&mut self, stream: u32, key: Arc<[u8]>, session: StoredSession) {
        self.size += size(&session);
        if let Some(old) = self.recent.insert((stream, key), session) {
            // The session was counted when it was kept before.
            self.size -= size(&old);
        }
        if self.size > MAX_SESSION_RUNS {
            // Half is dropped at once. The store has every row, so that a forgotten session costs
            // one look-up.
            self.before = std::mem::take(&mut self.recent);
            self.size = 0;
        }
    }

    /// Forgets everything, since the store may hold something else.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn size(session: &StoredSession) -> usize {
    SESSION_SIZE + session.runs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Arc<[u8]> {
        number.to_le_bytes().as_slice().into()
    }

    #[test]
    fn what_is_kept_is_bounded_and_whoever_publishes_on_is_found() {
        let mut sessions = RecentSessions::default();
        let session = StoredSession::default();
        let half = (MAX_SESSION_RUNS / SESSION_SIZE) as u64;
        for number in 0..5 * half {
            sessions.keep(1, key(number), session.clone());
            sessions.keep(2, key(0), session.clone());
            assert!(sessions.find(2, &key(0)).is_some());
            assert!(sessions.find(1, &key(number)).is_some());
        }
        assert!((sessions.recent.len() + sessions.before.len()) as u64 <= 2 * half + 2);
        assert_eq!(sessions.find(1, &key(0)), None);
        assert_eq!(sessions.find(3, &key(0)), None);
        sessions.clear();
        assert_eq!(sessions.find(2, &key(0)), None);
    }
}
