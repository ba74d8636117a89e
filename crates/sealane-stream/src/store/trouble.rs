//! A store that fails when a test says so: at one statement, at all of them, or for want of room.

use std::sync::Arc;

use parking_lot::Mutex;

use super::StoreFault;
use crate::commit::StoreCommit;

/// The planned faults. Every statement of the writer asks here first.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlannedTrouble(Arc<Mutex<TroublePlan>>);

#[derive(Debug, Default)]
struct TroublePlan {
    /// Statements until one fails; 0: none does.
    statements: u64,
    /// How it fails, and each one after it too, where that is said.
    fault: Option<StoreFault>,
    lasts: bool,
    /// Whether there is no room for anything more.
    is_full: bool,
    /// Whether no message can be stored, and everything else can.
    refuses_blocks: bool,
    /// The pages that SQLite may use, to be told to it.
    pages: Option<i64>,
    failed: u64,
    /// Commits that were on the disk before anybody was told.
    synced: u64,
    /// Commits that stand, where a test wants them.
    commits: Option<Vec<StoreCommit>>,
}

impl PlannedTrouble {
    /// Lets the `statements`th statement from now on fail; `lasts`: and all that follow.
    pub(crate) fn fail_at(&self, statements: u64, fault: StoreFault, lasts: bool) {
        let mut state = self.0.lock();
        (state.statements, state.fault, state.lasts) = (statements, Some(fault), lasts);
    }

    /// Says whether there is room for what is added.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.0.lock().is_full = is_full;
    }

    /// Says whether there is no room for messages, found out only when they are written.
    pub(crate) fn refuse_blocks(&self, refuses_blocks: bool) {
        self.0.lock().refuses_blocks = refuses_blocks;
    }

    pub(crate) fn block(&self) -> Result<(), StoreFault> {
        let mut state = self.0.lock();
        state.failed += u64::from(state.refuses_blocks);
        if state.refuses_blocks { Err(StoreFault::Full) } else { Ok(()) }
    }

    /// Says how many pages the database may have: SQLite itself says that it is full then.
    pub(crate) fn set_pages(&self, pages: i64) {
        self.0.lock().pages = Some(pages);
    }

    pub(crate) fn take_pages(&self) -> Option<i64> {
        self.0.lock().pages.take()
    }

    /// Lets nothing fail any more.
    pub(crate) fn end(&self) {
        let mut state = self.0.lock();
        let (failed, synced) = (state.failed, state.synced);
        let pages = Some(i64::from(u32::MAX) - 1);
        *state = TroublePlan { failed, synced, pages, ..TroublePlan::default() };
    }

    /// Notes a commit.
    pub(crate) fn committed(&self, is_synced: bool) {
        self.0.lock().synced += u64::from(is_synced);
    }

    /// Commits that were on the disk before anybody was told.
    pub(crate) fn synced(&self) -> u64 {
        self.0.lock().synced
    }

    /// Keeps the commits that stand from now on.
    pub(crate) fn record_commits(&self) {
        self.0.lock().commits = Some(Vec::new());
    }

    /// Notes what a commit was that stands.
    pub(crate) fn note_commit(&self, commit: &StoreCommit) {
        if let Some(commits) = &mut self.0.lock().commits {
            commits.push(commit.clone());
        }
    }

    pub(crate) fn take_commits(&self) -> Vec<StoreCommit> {
        self.0.lock().commits.take().unwrap_or_default()
    }

    /// Statements that have failed.
    pub(crate) fn failed(&self) -> u64 {
        self.0.lock().failed
    }

    pub(crate) fn statement(&self) -> Result<(), StoreFault> {
        let mut state = self.0.lock();
        match state.statements {
            0 => Ok(()),
            1 => {
                state.failed += 1;
                let fault = state.fault.clone().unwrap_or(StoreFault::Full);
                if !state.lasts {
                    state.statements = 0;
                }
                Err(fault)
            }
            _ => {
                state.statements -= 1;
                Ok(())
            }
        }
    }

    pub(crate) fn room(&self) -> Result<(), StoreFault> {
        if self.0.lock().is_full { Err(StoreFault::Full) } else { Ok(()) }
    }
}
