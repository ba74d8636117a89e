//! File systems in a file, mounted by the loop device. Needs root.

use std::path::Path;

pub(crate) use sealane_testing::{MountedDisk as Mounted, require_mounts as require, run};

/// Makes an ext4 file system in a sparse file.
pub(crate) fn make(image: &Path, bytes: u64) {
    Mounted::make_image(image, bytes);
}
