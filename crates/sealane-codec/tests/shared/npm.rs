//! Test data and peers that come from npm.

use std::path::PathBuf;

/// A file or folder of an installed package.
pub(crate) fn package(path: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/js/node_modules");
    let path = root.join(path);
    assert!(path.exists(), "{} is missing; run: npm ci --prefix tests/js", path.display());
    path
}
