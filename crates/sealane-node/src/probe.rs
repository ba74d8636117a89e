//! Whether the data folder takes what is written to it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::limits::MAX_PROBE_AGE_MS;

/// The bytes written to see whether writing succeeds: a page of most file systems.
const PROBE_BYTES: usize = 4096;

/// Tries the data folder.
pub(crate) struct FolderProbe {
    file: PathBuf,
    last: Mutex<Option<(Instant, bool)>>,
}

impl FolderProbe {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { file: folder.join(".ready"), last: Mutex::new(None) }
    }

    /// Whether the data folder takes what is written to it.
    pub(crate) async fn is_writable(&self) -> bool {
        // The lock is held over the write, so that a crowd of health checks shares one probe.
        let mut last = self.last.lock().await;
        if let Some((at, writable)) = *last
            && at.elapsed() < Duration::from_millis(MAX_PROBE_AGE_MS)
        {
            return writable;
        }
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || write(&file)).await;
        let writable = match written {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::error!(%error, file = %self.file.display(), "the disk takes nothing");
                false
            }
            Err(_) => false,
        };
        *last = Some((Instant::now(), writable));
        writable
    }
}

fn write(file: &Path) -> std::io::Result<()> {
    let mut out = File::create(file)?;
    // Without the sync a full disk may show only later, when the system writes back.
    let written = out.write_all(&[0; PROBE_BYTES]).and_then(|()| out.sync_data());
    drop(out);
    std::fs::remove_file(file).and(written)
}
