//! The intake: frames that the links of a machine have heard, on their way into the queue.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use sealane_message::DataType;
use tokio::sync::Notify;
use tracing::warn;

use crate::gateway::frame::{NotCarried, SealedFrame};
use crate::gateway::known::KnownFrames;
use crate::gateway::queue::GatewayQueue;
use crate::limits::{DISK_RETRY_MS, INTAKE_TURN_MS, MAX_FRAMES_WAITING, MAX_QUEUE_COMMIT};

/// Takes frames from the threads of the links. It never waits: the disk is another thread's.
#[derive(Debug)]
pub struct GatewayIntake {
    carried: HashSet<DataType>,
    known: Mutex<KnownFrames>,
    waiting: SyncSender<SealedFrame>,
    heard: IntakeCounts,
    unkept: Arc<AtomicU64>,
}

/// The counts of the frames that were heard, by outcome.
#[derive(Debug, Default)]
struct IntakeCounts {
    taken: AtomicU64,
    passed: AtomicU64,
    repeated: AtomicU64,
    malformed: AtomicU64,
    busy: AtomicU64,
}

/// The counts of the frames that this machine heard since it started, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeardStatus {
    /// Taken, for the queue.
    pub taken: u64,
    /// Of kinds or data types that this gateway does not carry.
    pub passed: u64,
    /// Here before: from the mesh, or from the hub.
    pub repeated: u64,
    /// No frames.
    pub malformed: u64,
    /// Dropped, because the queue's disk is slower than what comes.
    pub busy: u64,
    /// Taken, and lost: the disk failed when the machine stopped.
    pub unkept: u64,
}

/// Moves what was taken to the queue, as many frames in one commit as have come.
#[derive(Debug)]
pub(crate) struct IntakeKeeper {
    pub(crate) queue: Arc<GatewayQueue>,
    pub(crate) waiting: Receiver<SealedFrame>,
    /// Wakes who brings frames to the hub.
    pub(crate) kept: Arc<Notify>,
    /// Why the queue takes nothing at present.
    pub(crate) fault: Arc<Mutex<Option<String>>>,
    pub(crate) ends: Arc<AtomicBool>,
    /// The frames that were lost at the end, for the intake's status.
    pub(crate) unkept: Arc<AtomicU64>,
}

/// Frames that are for the queue, among others. None of them counts until the queue has taken them.
pub(crate) struct ChosenFrames<'i> {
    pub(crate) frames: Vec<SealedFrame>,
    counted: Vec<&'i AtomicU64>,
}

impl ChosenFrames<'_> {
    /// Counts all that were looked at, each by what became of it.
    pub(crate) fn count(&self) {
        for counted in &self.counted {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl GatewayIntake {
    /// An intake for frames of these types, and what it hands them to.
    pub(crate) fn new(carried: HashSet<DataType>) -> (GatewayIntake, Receiver<SealedFrame>) {
        // The channel has a bound, so that a slow disk costs frames that are counted and never
        // memory.
        let (waiting, taken) = sync_channel(MAX_FRAMES_WAITING);
        let (known, heard) = (Mutex::default(), IntakeCounts::default());
        let unkept = Arc::default();
        (GatewayIntake { carried, known, waiting, heard, unkept }, taken)
    }

    /// Takes a frame in the full form that came from the mesh. What this gateway does not carry is
    /// passed over, and what cannot be kept is counted.
    pub fn take(&self, frame: &[u8]) {
        let counted = match SealedFrame::read(frame) {
            Ok(frame) => self.keep(frame),
            Err(NotCarried::Malformed) => &self.heard.malformed,
            Err(NotCarried::Other) => &self.heard.passed,
        };
        counted.fetch_add(1, Ordering::Relaxed);
    }

    /// The count of frames that were lost at the end.
    pub(crate) fn unkept(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.unkept)
    }

    /// Those of these frames that are for the queue.
    pub(crate) fn choose<'f>(&self, frames: impl Iterator<Item = &'f [u8]>) -> ChosenFrames<'_> {
        let mut chosen = ChosenFrames { frames: vec![], counted: vec![] };
        for frame in frames {
            // A frame counts as known before it is on disk. `forget` takes that back, if the commit
            // fails.
            let counted = match SealedFrame::read(frame).map(|frame| self.check(frame)) {
                Ok(Ok(frame)) => {
                    chosen.frames.push(frame);
                    &self.heard.taken
                }
                Ok(Err(counted)) => counted,
                Err(NotCarried::Malformed) => &self.heard.malformed,
                Err(NotCarried::Other) => &self.heard.passed,
            };
            chosen.counted.push(counted);
        }
        chosen
    }

    /// These were not kept after all, and may come again.
    pub(crate) fn forget(&self, frames: &[SealedFrame]) {
        let mut known = self.known.lock();
        // A frame that stayed known would be refused as a repeat when its store hands it over
        // again.
        frames.iter().for_each(|frame| known.forget(frame.name));
    }

    /// The frame, if it is carried and was not here before; else where it counts.
    fn check(&self, frame: SealedFrame) -> Result<SealedFrame, &AtomicU64> {
        // The type is asked first. A frame that is not carried must not take a place among the
        // known ones.
        if !self.carried.contains(&frame.stream.data_type) {
            return Err(&self.heard.passed);
        }
        match self.known.lock().add(frame.name) {
            true => Ok(frame),
            false => Err(&self.heard.repeated),
        }
    }

    fn keep(&self, frame: SealedFrame) -> &AtomicU64 {
        let frame = match self.check(frame) {
            Ok(frame) => frame,
            Err(counted) => return counted,
        };
        // The name outlives the frame, which the channel takes even where it has no room.
        let name = frame.name;
        // The caller is the thread of a link. If it waited for the disk, the link would drop what
        // comes meanwhile.
        match self.waiting.try_send(frame) {
            Ok(()) => &self.heard.taken,
            Err(_) => {
                // It may come again when there is room.
                self.known.lock().forget(name);
                &self.heard.busy
            }
        }
    }

    /// Remembers a frame that came from the hub, so that its echo from the mesh is known. Says
    /// whether it was new.
    pub(crate) fn came_from_hub(&self, frame: &SealedFrame) -> bool {
        self.known.lock().add(frame.name)
    }

    /// The counts of heard frames so far.
    pub(crate) fn status(&self) -> HeardStatus {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let IntakeCounts { taken, passed, repeated, malformed, busy } = &self.heard;
        HeardStatus {
            taken: read(taken),
            passed: read(passed),
            repeated: read(repeated),
            malformed: read(malformed),
            busy: read(busy),
            unkept: read(&self.unkept),
        }
    }
}

impl IntakeKeeper {
    /// Keeps what comes until it is to end and nothing is left.
    pub(crate) fn run(self) {
        let mut batch = Vec::new();
        loop {
            match self.waiting.recv_timeout(Duration::from_millis(INTAKE_TURN_MS)) {
                Ok(first) => batch.push(first),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if self.ends.load(Ordering::Relaxed) => return,
                Err(RecvTimeoutError::Timeout) => continue,
            }
            // A commit costs one fsync, however many frames it has. Frames that came during the
            // last one share the next.
            while batch.len() < MAX_QUEUE_COMMIT {
                let Ok(next) = self.waiting.try_recv() else { break };
                batch.push(next);
            }
            if !self.keep(&batch) {
                return self.lose(batch.len());
            }
            batch.clear();
        }
    }

    /// Counts what is lost with the end: a batch that the disk refuses, and all behind it.
    fn lose(&self, batch: usize) {
        let frames = (batch + self.waiting.try_iter().count()) as u64;
        self.unkept.fetch_add(frames, Ordering::Relaxed);
        let fault = self.fault.lock().clone().unwrap_or_default();
        warn!(frames, fault, "the queue's disk failed at the end: these frames are lost");
    }

    /// Keeps a batch, and tries again until the disk takes it. What comes meanwhile waits, and is
    /// counted where it has no room. Says whether it was kept before the end.
    fn keep(&self, batch: &[SealedFrame]) -> bool {
        loop {
            match self.queue.put(batch) {
                Ok(()) => {
                    // The fault is cleared before the uploader wakes, so that the status is right
                    // when frames move again.
                    *self.fault.lock() = None;
                    self.kept.notify_one();
                    return true;
                }
                Err(error) => *self.fault.lock() = Some(error.to_string()),
            }
            // A disk that stays full must not keep the process from ending.
            if self.ends.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(DISK_RETRY_MS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::frame::tests::frame;

    #[test]
    fn what_is_heard_is_taken_once_and_the_rest_is_counted() {
        let (intake, taken) = GatewayIntake::new(HashSet::from([DataType::from_number(72)]));
        intake.take(&frame(1, 2, 72, 1));
        let mut relayed = frame(1, 2, 72, 1);
        relayed[16] = 3;
        intake.take(&relayed);
        intake.take(&frame(1, 2, 13, 2));
        intake.take(&[2; 70]);
        assert_eq!(taken.try_recv().unwrap().bytes, frame(1, 2, 72, 1));
        assert!(taken.try_recv().is_err());
        let expected =
            HeardStatus { taken: 1, passed: 1, repeated: 1, malformed: 1, ..Default::default() };
        assert_eq!(intake.status(), expected);
    }

    #[test]
    fn a_frame_without_room_is_counted_and_may_come_again() {
        let (intake, taken) = GatewayIntake::new(HashSet::from([DataType::from_number(72)]));
        let count = MAX_FRAMES_WAITING as u64;
        (0..count + 3).for_each(|sequence| intake.take(&frame(1, 2, 72, sequence)));
        assert_eq!((intake.status().taken, intake.status().busy), (count, 3));
        taken.try_recv().unwrap();
        intake.take(&frame(1, 2, 72, count + 1));
        assert_eq!((intake.status().taken, intake.status().repeated), (count + 1, 0));
    }

    #[test]
    fn an_echo_of_the_hub_is_known() {
        let (intake, taken) = GatewayIntake::new(HashSet::from([DataType::CHAT]));
        let from_hub = SealedFrame::read(&frame(1, 2, 5, 1)).unwrap();
        assert!(intake.came_from_hub(&from_hub) && !intake.came_from_hub(&from_hub));
        intake.take(&from_hub.bytes);
        assert!(taken.try_recv().is_err());
        assert_eq!(intake.status().repeated, 1);
    }
}
