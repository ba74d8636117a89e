//! The results of the configurations that were read while a relay ran.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::SystemTime;

use sealane_message::InputError;

use crate::table::RelayTable;

/// How often a configuration was read again, and what came of the last time.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReloadTally {
    /// How many have taken over.
    pub taken: u64,
    /// How many were refused. The one before each went on.
    pub refused: u64,
    /// The last one.
    pub last: Option<ConfigReload>,
}

/// One configuration that was read while a relay ran.
#[derive(Debug, Clone)]
pub struct ConfigReload {
    /// When.
    pub at: SystemTime,
    /// The changes, or the reason why it was refused.
    pub outcome: Result<ConfigChange, InputError>,
}

/// The differences between one configuration and the one before, both ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfigChange {
    /// Neighbours. One whose address or quota differs is another one.
    pub neighbours: ChangeCount,
    /// Routes.
    pub routes: ChangeCount,
    /// Members of all groups.
    pub members: ChangeCount,
}

/// How many have come and gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangeCount {
    /// Come.
    pub added: usize,
    /// Gone.
    pub removed: usize,
}

impl ReloadTally {
    pub(crate) fn take(&mut self, outcome: Result<ConfigChange, InputError>) {
        match outcome {
            Ok(_) => self.taken += 1,
            // A refusal is counted and kept, since an operator who sends SIGHUP sees no answer
            // there.
            Err(_) => self.refused += 1,
        }
        self.last = Some(ConfigReload { at: SystemTime::now(), outcome });
    }
}

impl ConfigChange {
    pub(crate) fn between(before: &RelayTable, after: &RelayTable) -> Self {
        let neighbours = |table: &RelayTable| {
            let all = table.neighbours().iter();
            all.map(|one| (one.name.clone(), one.tag, one.link, one.address, one.frames_per_second))
                .collect()
        };
        let members =
            |table: &RelayTable| table.members().map(|one| (one.group, one.tag)).collect();
        Self {
            neighbours: ChangeCount::between(&neighbours(before), &neighbours(after)),
            routes: ChangeCount::between(
                &before.routes().iter().collect(),
                &after.routes().iter().collect(),
            ),
            members: ChangeCount::between(&members(before), &members(after)),
        }
    }

    /// Whether nothing differs.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl ChangeCount {
    fn between<T: Eq + Hash>(before: &HashSet<T>, after: &HashSet<T>) -> Self {
        let added = after.difference(before).count();
        Self { added, removed: before.difference(after).count() }
    }
}
