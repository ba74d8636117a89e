//! How much of what neighbours say waits for the thread that holds documents.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use sealane_mesh::MeshOutput;
use sealane_seal::Slot;

use crate::limits::{MAX_DOCUMENTS_HEARD, MAX_DOCUMENTS_HEARD_OF_ONE};

/// The outputs that wait, by neighbour.
#[derive(Debug, Default)]
pub(super) struct NeighbourBacklog {
    waiting: Mutex<BTreeMap<Slot, usize>>,
}

impl NeighbourBacklog {
    /// Counts what a neighbour has said, if there is room for it.
    pub(super) fn enter(&self, by: Slot) -> bool {
        let mut waiting = self.waiting.lock();
        let all: usize = waiting.values().sum();
        let of_one = waiting.get(&by).copied().unwrap_or(0);
        let has_room = all < MAX_DOCUMENTS_HEARD && of_one < MAX_DOCUMENTS_HEARD_OF_ONE;
        if has_room {
            waiting.insert(by, of_one + 1);
        }
        has_room
    }

    /// It waits no more.
    pub(super) fn leave(&self, by: Slot) {
        let mut waiting = self.waiting.lock();
        if let Some(count) = waiting.get_mut(&by) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&by);
            }
        }
    }
}

/// The neighbour that has said it, if it is about documents.
pub(super) fn speaker(output: &MeshOutput) -> Option<Slot> {
    match output {
        MeshOutput::Digest { by, .. } | MeshOutput::Documents { by, .. } => Some(*by),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_DOCUMENT_TASKS;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    #[test]
    fn a_neighbour_that_talks_without_end_takes_nobodys_room() {
        let heard = NeighbourBacklog::default();
        let entered = (0..1000).filter(|_| heard.enter(slot(1))).count();
        assert_eq!(entered, MAX_DOCUMENTS_HEARD_OF_ONE);
        assert!(heard.enter(slot(2)), "another one has room");
        heard.leave(slot(1));
        assert!(heard.enter(slot(1)) && !heard.enter(slot(1)));
        let others = (3..1000).filter(|number| heard.enter(slot(*number))).count();
        assert_eq!(others, MAX_DOCUMENTS_HEARD - MAX_DOCUMENTS_HEARD_OF_ONE - 1);
        const {
            assert!(
                MAX_DOCUMENTS_HEARD < MAX_DOCUMENT_TASKS,
                "programs of this user always have room"
            )
        };
    }
}
