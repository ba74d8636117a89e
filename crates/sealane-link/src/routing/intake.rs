//! The queues of the machine that routes. Each has a bound, and they take turns.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use sealane_mesh::{MeshInput, Rekeyed};

use crate::address::LinkAddress;
use crate::counters::DropReason;
use crate::limits::MAX_MESH_WAITING;

/// A task of the thread that owns the machine.
///
/// Two variants are no [`MeshInput`]. The mesh knows a neighbour by a keyed hash of its address, so
/// that the thread keeps the address itself to answer it. And [`sealane_mesh::Mesh::rekey`] gives
/// back an error, which the status shows.
#[derive(Debug)]
pub(crate) enum RoutingTask {
    /// A unit came.
    Heard { link: usize, from: LinkAddress, unit: Box<[u8]> },
    /// All other inputs, as the mesh takes them.
    Mesh(MeshInput<'static>),
    /// The group's keys are others.
    Rekey(Box<Rekeyed>),
}

/// The queue that something waits in. None keeps another one waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntakeLane {
    /// Units of neighbours.
    Known,
    /// Units of others.
    Stranger,
    /// Frames that are to leave by a radio.
    Data,
    /// Inputs of local code.
    Local,
}

const LANES: usize = 4;

/// The next thing to do.
#[derive(Debug)]
pub(crate) enum IntakeNext {
    Task(RoutingTask),
    /// It was waited for long enough.
    Late,
    /// There is nothing left, and nothing follows.
    End,
}

/// All queues.
#[derive(Debug, Default)]
pub(crate) struct RoutingIntake {
    waiting: Mutex<IntakeQueues>,
    wakes: Condvar,
}

#[derive(Debug, Default)]
struct IntakeQueues {
    lanes: [VecDeque<RoutingTask>; LANES],
    /// The queue whose turn it is.
    turn: usize,
    ends: bool,
}

impl RoutingIntake {
    /// Has something wait.
    ///
    /// # Errors
    ///
    /// [`DropReason::MeshFull`].
    pub(crate) fn put(&self, lane: IntakeLane, task: RoutingTask) -> Result<(), DropReason> {
        let mut waiting = self.waiting.lock();
        let is_ending = waiting.ends;
        let queue = waiting.lanes.get_mut(lane as usize).ok_or(DropReason::MeshFull)?;
        // The newest is dropped, so that the others keep their order: a later hello must not come
        // before an earlier one.
        if queue.len() >= MAX_MESH_WAITING || is_ending {
            return Err(DropReason::MeshFull);
        }
        queue.push_back(task);
        // The lock is free before the machine's thread wakes up, or it would wait again at once.
        drop(waiting);
        self.wakes.notify_one();
        Ok(())
    }

    /// Takes what comes next, or waits for it.
    pub(crate) fn next(&self, patience: Duration) -> IntakeNext {
        let mut waiting = self.waiting.lock();
        if let Some(task) = waiting.take() {
            return IntakeNext::Task(task);
        }
        // The end is looked at after the queues, so that what came before it is still done.
        if waiting.ends {
            return IntakeNext::End;
        }
        self.wakes.wait_for(&mut waiting, patience);
        match waiting.take() {
            Some(task) => IntakeNext::Task(task),
            None if waiting.ends => IntakeNext::End,
            None => IntakeNext::Late,
        }
    }

    /// Takes nothing more.
    pub(crate) fn end(&self) {
        self.waiting.lock().ends = true;
        self.wakes.notify_one();
    }
}

impl IntakeQueues {
    fn take(&mut self) -> Option<RoutingTask> {
        // A neighbour that fills its queue delays each other queue by one task.
        for step in 0..LANES {
            let at = (self.turn + step) % LANES;
            if let Some(task) = self.lanes.get_mut(at).and_then(VecDeque::pop_front) {
                // The next look begins behind this lane: a lane that is always full cannot starve
                // the others.
                self.turn = at + 1;
                return Some(task);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(number: u8) -> RoutingTask {
        RoutingTask::Mesh(MeshInput::Data { frame: vec![number].into() })
    }

    fn number(next: IntakeNext) -> u8 {
        match next {
            IntakeNext::Task(RoutingTask::Mesh(MeshInput::Data { frame })) => frame[0],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_queue_grows_beyond_its_bound_or_keeps_another_waiting() {
        let intake = RoutingIntake::default();
        for _ in 0..MAX_MESH_WAITING {
            intake.put(IntakeLane::Stranger, data(1)).unwrap();
        }
        assert_eq!(intake.put(IntakeLane::Stranger, data(1)), Err(DropReason::MeshFull));
        intake.put(IntakeLane::Known, data(2)).unwrap();
        intake.put(IntakeLane::Data, data(3)).unwrap();
        let first = [(); 3].map(|()| number(intake.next(Duration::ZERO)));
        assert_eq!(first, [2, 1, 3]);
        intake.end();
        assert_eq!(intake.put(IntakeLane::Known, data(4)), Err(DropReason::MeshFull));
        for _ in 1..MAX_MESH_WAITING {
            assert_eq!(number(intake.next(Duration::ZERO)), 1);
        }
        assert!(matches!(intake.next(Duration::ZERO), IntakeNext::End));
    }
}
