use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells that a file is another one than it was: which one it is, its length, and when it or
/// its mode was last changed, which nobody can set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(u64, u64, u64, i64, i64)>);

impl Stamp {
    /// Of a file as it is now, which may not be there.
    pub(crate) fn of(file: &Path) -> Self {
        let of = std::fs::metadata(file).ok();
        Self(of.map(|of| (of.dev(), of.ino(), of.size(), of.ctime(), of.ctime_nsec())))
    }
}
