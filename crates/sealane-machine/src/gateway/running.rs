//! A gateway: its threads and tasks, and what they share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use sealane_frame::GroupTag;
use sealane_mesh::KeptGroup;
use sealane_message::DataType;
use tokio::sync::{Notify, Semaphore};

use crate::GatewayError;
use crate::gateway::down::{DownCounts, DownlinkCauses, DownlinkContext, DownlinkReaders, PutDown};
use crate::gateway::hub::HubAccess;
use crate::gateway::intake::{GatewayIntake, IntakeKeeper};
use crate::gateway::orders::{OrderReaders, PutOrders};
use crate::gateway::queue::{FollowedStore, GatewayQueue};
use crate::gateway::status::GatewayStatus;
use crate::gateway::stream::MeshStream;
use crate::gateway::upload::{GatewayUploader, UploadTold};

/// The settings of a gateway when it starts.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Its hub.
    pub hub: HubAccess,
    /// The file of its queue.
    pub queue: PathBuf,
    /// The bytes that the frames in it may count together.
    pub queue_bytes: u64,
    /// The data types that it brings to the hub.
    pub up: Vec<DataType>,
    /// The data types that it reads from the hub.
    pub down: Vec<DataType>,
}

/// A gateway that runs: a thread that keeps frames, and tasks that speak to the hub. It holds no
/// key and opens nothing.
pub struct Gateway {
    hub: String,
    queue: Arc<GatewayQueue>,
    intake: Arc<GatewayIntake>,
    kept: Arc<Notify>,
    told: Arc<Mutex<UploadTold>>,
    disk_fault: Arc<Mutex<Option<String>>>,
    late: AtomicU64,
    down_types: Vec<DataType>,
    down: DownlinkContext,
    readers: Mutex<DownlinkReaders>,
    order_readers: Mutex<OrderReaders>,
    ends: Arc<AtomicBool>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    uploader: tokio::task::JoinHandle<()>,
}

impl Gateway {
    /// Opens the queue and begins to bring frames to the hub. It is called within a runtime of
    /// tokio. `put` puts frames of the hub into the mesh, once [`Gateway::serve`] names groups.
    ///
    /// # Errors
    ///
    /// Those of the queue's file, and [`GatewayError::Thread`]. A hub that is not there is none.
    pub fn start(settings: &GatewaySettings, put: PutDown) -> Result<Gateway, GatewayError> {
        // The queue opens first. A gateway that cannot keep frames must not begin to take them.
        let queue = Arc::new(GatewayQueue::open(&settings.queue, settings.queue_bytes)?);
        let (intake, waiting) = GatewayIntake::new(settings.up.iter().copied().collect());
        let (intake, kept) = (Arc::new(intake), Arc::new(Notify::new()));
        let (told, disk_fault) = (Arc::<Mutex<UploadTold>>::default(), Arc::default());
        let ends = Arc::new(AtomicBool::new(false));
        let keeper = IntakeKeeper {
            queue: Arc::clone(&queue),
            waiting,
            kept: Arc::clone(&kept),
            fault: Arc::clone(&disk_fault),
            ends: Arc::clone(&ends),
            unkept: intake.unkept(),
        };
        let thread = std::thread::Builder::new().name("gateway-queue".to_owned());
        let keeper = thread.spawn(|| keeper.run()).map_err(GatewayError::Thread)?;
        let hub = settings.hub.clone();
        let uploader = GatewayUploader::new(
            Arc::clone(&queue),
            hub.clone(),
            Arc::clone(&kept),
            Arc::clone(&told),
        );
        let uploader = uploader.run();
        let down = DownlinkContext {
            hub,
            queue: Arc::clone(&queue),
            intake: Arc::clone(&intake),
            put,
            // One permit for all streams makes the pace that of the gateway, not of each stream.
            pace: Arc::new(Semaphore::new(1)),
            counts: Arc::<DownCounts>::default(),
            causes: Arc::<Mutex<DownlinkCauses>>::default(),
        };
        Ok(Gateway {
            hub: settings.hub.address.clone(),
            queue,
            intake,
            kept,
            told,
            disk_fault,
            late: AtomicU64::new(0),
            down_types: settings.down.clone(),
            down,
            readers: Mutex::default(),
            order_readers: Mutex::default(),
            ends,
            keeper: Mutex::new(Some(keeper)),
            uploader: tokio::spawn(uploader),
        })
    }

    /// The intake that takes the frames which this machine hears.
    pub fn intake(&self) -> Arc<GatewayIntake> {
        Arc::clone(&self.intake)
    }

    /// How far a store of documents was followed: 0 if it never was.
    ///
    /// # Errors
    ///
    /// [`GatewayError`]
    pub fn followed(&self, store: [u8; 16]) -> Result<u64, GatewayError> {
        self.queue.followed(store)
    }

    /// Takes frames of a store of documents, in their order, and remembers with them how far the
    /// store was followed, and how many came late. It waits for the disk: they are kept then.
    ///
    /// # Errors
    ///
    /// [`GatewayError`]; nothing of it was kept, and it is to be handed over again.
    pub fn follow<'f>(
        &self,
        frames: impl Iterator<Item = &'f [u8]>,
        followed: FollowedStore,
        late: u64,
    ) -> Result<(), GatewayError> {
        let chosen = self.intake.choose(frames);
        let kept = self.queue.put_followed(&chosen.frames, followed);
        *self.disk_fault.lock() = kept.as_ref().err().map(ToString::to_string);
        match kept {
            // Only what was kept counts. The store hands over again what was not, and a total that
            // was lowered then would look like a restart.
            Ok(()) => {
                chosen.count();
                self.late.store(late, Ordering::Relaxed);
                self.kept.notify_one();
            }
            Err(_) => self.intake.forget(&chosen.frames),
        }
        kept
    }

    /// Reads what the hub has for these groups from now on, and for no others. It is called within
    /// a runtime of tokio.
    pub fn serve(&self, groups: &[GroupTag]) {
        let of = |group: &GroupTag| {
            let group = *group;
            self.down_types.iter().map(move |&data_type| MeshStream { group, data_type })
        };
        let streams: Vec<_> = groups.iter().flat_map(of).collect();
        self.readers.lock().read(&streams, &self.down);
    }

    /// Brings the orders of these groups into the mesh from now on, and of no others. It is called
    /// within a runtime of tokio.
    pub fn serve_orders(&self, groups: &[KeptGroup], put: &PutOrders) {
        self.order_readers.lock().read(groups, &self.down.hub, put);
    }

    /// How it is now.
    pub fn status(&self) -> GatewayStatus {
        let told = self.told.lock();
        let disk = self.disk_fault.lock().clone();
        GatewayStatus {
            address: self.hub.clone(),
            hub: told.hub.clone(),
            queue: self.queue.status(),
            queue_fault: disk.or_else(|| told.fault.clone()),
            heard: self.intake.status(),
            late: self.late.load(Ordering::Relaxed),
            stored: told.stored,
            replayed: told.replayed,
            held: told.held.clone(),
            down: self.down.counts.status(&self.down.causes.lock()),
            orders: self.order_readers.lock().status(),
        }
    }

    /// Keeps what has been heard, and ends. What the hub does not have yet stays in the queue. It
    /// waits for the disk.
    pub fn stop(&self) {
        // The readers stop before the keeper, so that nothing more goes down while frames are still
        // kept.
        self.readers.lock().read(&[], &self.down);
        // Order readers have no place on disk to store. A restarted gateway reads their streams
        // from the beginning.
        self.order_readers.lock().stop();
        self.uploader.abort();
        self.ends.store(true, Ordering::Relaxed);
        if let Some(keeper) = self.keeper.lock().take() {
            // A thread that has panicked has said so on standard error.
            let _ = keeper.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.uploader.abort();
        self.ends.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use sealane_message::DataType;

    use super::*;
    use crate::gateway::frame::tests::frame;
    use crate::limits::MAX_QUEUE_COMMIT;

    impl Gateway {
        /// Has the queue's disk take nothing more, or take it again.
        pub(crate) fn fail_disk(&self, fails: bool) {
            self.queue.fail(fails);
        }
    }

    /// A gateway whose hub is not there.
    pub(crate) fn gateway_without_a_hub(folder: &Path, up: &HashSet<DataType>) -> Gateway {
        let settings = GatewaySettings {
            hub: HubAccess { address: "http://127.0.0.1:9".to_owned(), token: None, ca: None },
            queue: folder.join("queue"),
            queue_bytes: 1 << 20,
            up: up.iter().copied().collect(),
            down: vec![],
        };
        Gateway::start(&settings, Arc::new(|_| unreachable!("nothing comes down"))).unwrap()
    }

    #[tokio::test]
    async fn frames_that_a_failing_disk_loses_at_the_end_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let gateway = gateway_without_a_hub(folder.path(), &HashSet::from([DataType::CHAT]));
        gateway.fail_disk(true);
        for counter in 0..MAX_QUEUE_COMMIT as u64 + 7 {
            gateway.intake().take(&frame(1, 2, DataType::CHAT.number(), counter));
        }
        gateway.stop();
        let heard = gateway.status().heard;
        assert_eq!((heard.taken, heard.unkept), (MAX_QUEUE_COMMIT as u64 + 7, heard.taken));
    }
}
