use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::pack::SpoolFile;
use crate::Error;
use crate::format::pack::{PackRecord, pack_key};
use crate::store::VaultStore;

/// Makes finished packs durable while the next is being filled.
pub(crate) struct PackUploader<'scope> {
    packs: SyncSender<(SpoolFile, PackRecord)>,
    thread: ScopedJoinHandle<'scope, Result<Vec<PackRecord>, Error>>,
}

impl<'scope> PackUploader<'scope> {
    pub(super) fn start<'env>(scope: &'scope Scope<'scope, 'env>, store: &'env VaultStore) -> Self {
        // One pack waits and one is being written: the rest of the pipeline waits for them.
        let (packs, finished) = sync_channel(1);
        Self { packs, thread: scope.spawn(move || run(store, &finished)) }
    }

    /// Hands over a finished pack. An error shows when all are awaited.
    pub(super) fn upload(&self, file: SpoolFile, pack: PackRecord) -> bool {
        self.packs.send((file, pack)).is_ok()
    }

    /// The packs, all durable, in order.
    pub(super) fn finish(self) -> Result<Vec<PackRecord>, Error> {
        drop(self.packs);
        self.thread.join().unwrap_or(Err(Error::Library("thread")))
    }
}

fn run(
    store: &VaultStore,
    finished: &Receiver<(SpoolFile, PackRecord)>,
) -> Result<Vec<PackRecord>, Error> {
    let mut durable = Vec::new();
    for (file, pack) in finished {
        store.put_hashed(&pack_key(&pack.hash), &file.0, &pack.hash)?;
        durable.push(pack);
    }
    Ok(durable)
}
