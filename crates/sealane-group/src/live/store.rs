//! The sessions of a live reader on disk. One is written at a time: by whoever needs it, or ahead
//! of that by a thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use sealane_seal::{SessionState, Slot};

use crate::Error;
use crate::folder::IdentityKeys;

/// The stored sessions of all senders.
pub(super) struct SessionStore {
    keys: Arc<IdentityKeys>,
    name: String,
    /// As they are on disk. What failed to be written may be there too: it lies higher.
    stored: BTreeMap<Slot, SessionState>,
    ahead: Option<PrestoredSession>,
}

/// A session that is being stored before a message needs it.
struct PrestoredSession {
    state: SessionState,
    thread: JoinHandle<Result<(), Error>>,
}

impl SessionStore {
    pub(super) fn new(keys: Arc<IdentityKeys>, name: &str, stored: Vec<SessionState>) -> Self {
        let stored = stored.into_iter().map(|state| (state.slot(), state)).collect();
        Self { keys, name: name.to_owned(), stored, ahead: None }
    }

    /// Stores a session, behind whatever is being stored.
    #[cold]
    pub(super) fn save(&mut self, state: SessionState) -> Result<(), Error> {
        self.wait();
        write(&self.keys, &self.name, &self.with(state))?;
        self.stored.insert(state.slot(), state);
        Ok(())
    }

    /// Whether something is being stored, or was and is not taken yet.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.ahead.is_some()
    }

    /// Begins to store a session on a thread. Where there is none to be had, the session is stored
    /// once a message needs it.
    #[cold]
    pub(super) fn save_ahead(&mut self, state: SessionState) {
        debug_assert!(self.ahead.is_none(), "one is written at a time");
        let (keys, name, all) = (Arc::clone(&self.keys), self.name.clone(), self.with(state));
        let thread = std::thread::Builder::new().name("sessions".to_owned());
        let thread = thread.spawn(move || write(&keys, &name, &all));
        self.ahead = thread.ok().map(|thread| PrestoredSession { state, thread });
    }

    /// The session that was stored ahead, once it is.
    #[inline]
    pub(super) fn stored_ahead(&mut self) -> Option<SessionState> {
        let is_stored = self.ahead.as_ref().is_some_and(|ahead| ahead.thread.is_finished());
        if is_stored { self.wait() } else { None }
    }

    /// Waits for the session that is being stored ahead, if there is one, and gives it if it was.
    #[cold]
    pub(super) fn wait(&mut self) -> Option<SessionState> {
        let PrestoredSession { state, thread } = self.ahead.take()?;
        // A thread that has panicked has said so on standard error.
        thread.join().ok()?.ok()?;
        self.stored.insert(state.slot(), state);
        Some(state)
    }

    /// All sessions, with this one in the place of its slot.
    fn with(&self, state: SessionState) -> Vec<SessionState> {
        let others = self.stored.values().filter(|other| other.slot() != state.slot());
        others.copied().chain([state]).collect()
    }
}

fn write(keys: &IdentityKeys, name: &str, all: &[SessionState]) -> Result<(), Error> {
    keys.lock().and_then(|lock| keys.save_sessions(&lock, name, all))
}

impl Drop for SessionStore {
    /// The next reader of the sessions finds all that was written.
    fn drop(&mut self) {
        self.wait();
    }
}
