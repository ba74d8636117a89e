use std::io::Read;
use std::path::{Path, PathBuf};

use super::{PutOptions, PutReport, PutSource, now_ns, put};
use crate::Error;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind, is_path};
use crate::vault::VaultPlace;

/// The right to keep files in a vault, which its owner and its writers have.
pub trait PutAccess {
    /// The vault.
    #[doc(hidden)]
    fn place(&self) -> &VaultPlace;

    /// Brings the manifest up to date with the store, as far as the key reads.
    #[doc(hidden)]
    fn catch_up(&self) -> Result<(), Error>;

    /// Keeps files and folders as the next snapshot, each under its last component.
    ///
    /// Paths that cannot be read are named in [`PutReport::skipped`]; the rest is kept.
    ///
    /// # Errors
    /// Errors of the store. Data that was kept before need not be kept again.
    fn put_paths(&self, roots: &[PathBuf], options: &PutOptions) -> Result<PutReport, Error> {
        put(self.place(), &|| self.catch_up(), PutSource::Paths(roots), options)
    }

    /// Keeps what `source` gives as the next snapshot: one file of that name.
    ///
    /// # Errors
    /// As [`PutAccess::put_paths`]; and [`Error::File`] when `source` fails, and then nothing is
    /// kept.
    fn put_reader(
        &self,
        name: &str,
        source: &mut dyn Read,
        options: &PutOptions,
    ) -> Result<PutReport, Error> {
        if !is_path(name.as_bytes()) {
            return Err(Error::Escapes(name.to_owned()));
        }
        let entry = SnapshotEntry {
            path: name.as_bytes().to_vec(),
            mode: 0o600,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            mtime_ns: now_ns(),
            node: SnapshotEntryKind::Folder,
            hard_link: None,
            attributes: Vec::new(),
        };
        put(self.place(), &|| self.catch_up(), PutSource::Reader(entry, source), options)
    }

    /// Keeps what the blobs below a folder hold as the next snapshot, each compared with its name
    /// and hashes, one in memory at a time.
    ///
    /// A file lies at its blob's path, or at the blob's name if it has no path. Of several blobs
    /// with one path the newest lies there; the others beside it, with `.n2s-` and the first digits
    /// of their names behind. Blobs that fail are named in [`PutReport::skipped`] with a code; the
    /// rest is kept. The format knows no modes, so that files have 0644.
    ///
    /// # Errors
    /// As [`PutAccess::put_paths`].
    fn import_n2s(
        &self,
        store: &Path,
        passphrase: Option<&[u8]>,
        options: &PutOptions,
    ) -> Result<PutReport, Error> {
        crate::n2s::import(store, passphrase, &mut |next| {
            let source = PutSource::Each { from: store, next };
            put(self.place(), &|| self.catch_up(), source, options)
        })
    }
}
