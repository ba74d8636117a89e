//! The report's pipeline as it is written there: one key derivation, one blob and one file each.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use sealane_vault::n2s::{self, N2sCipher};

use crate::failure::{BenchFailure, Result};

/// The same steps in Python, over the libraries that the report names.
pub(super) const PYTHON: &str = include_str!("n2s.py");
const PASSPHRASE: &[u8] = b"123456";

/// Writes a blob into `target` for each file below `source`.
pub(crate) fn work(source: &Path, target: &Path) -> Result<()> {
    let failed = |path: &Path| BenchFailure::io(path.display().to_string());
    for entry in fs::read_dir(source).map_err(failed(source))? {
        let path = entry.map_err(failed(source))?.path();
        if path.is_dir() {
            work(&path, target)?;
            continue;
        }
        let content = fs::read(&path).map_err(failed(&path))?;
        let time = fs::metadata(&path).and_then(|meta| meta.modified()).map_err(failed(&path))?;
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let refused = |said: String| BenchFailure::said(path.display(), said);
        // The format cannot hold another name.
        let name = path.to_str().ok_or_else(|| refused("the name is not UTF-8".to_owned()))?;
        let blob = n2s::seal(name, &content, seconds, PASSPHRASE, N2sCipher::ChaCha20Poly1305)
            .map_err(|error| refused(error.to_string()))?;
        fs::write(target.join(blob.name), blob.bytes).map_err(failed(target))?;
    }
    Ok(())
}
