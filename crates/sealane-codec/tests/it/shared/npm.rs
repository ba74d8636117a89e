//! Test data and peers that come from npm.

use std::path::PathBuf;

/// A file or folder of an installed package.
pub(crate) fn package(path: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/js/node_modules");
    let path = root.join(path);
    assert!(path.exists(), "{} is missing; run: cargo xtask needs", path.display());
    path
}
