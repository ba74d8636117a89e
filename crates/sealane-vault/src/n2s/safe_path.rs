//! Where a blob's file goes: always below the folder that it is restored into.

use std::path::{Path, PathBuf};

use super::Error;

/// The path below the target folder. A leading `/` and `.` segments are left out, as tar does it.
///
/// # Errors
///
/// [`Error::Path`] for `..`, an empty path, and a zero byte.
pub fn safe_path(path: &str) -> Result<PathBuf, Error> {
    if path.contains('\0') {
        return Err(Error::Path);
    }
    let mut safe = PathBuf::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => return Err(Error::Path),
            name => safe.push(name),
        }
    }
    if safe.as_os_str().is_empty() { Err(Error::Path) } else { Ok(safe) }
}

/// Whether a file of a store can be a blob: its name is 64 lower-case hexadecimal digits.
pub fn is_blob_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_its_folder() {
        for path in ["..", "../a", "a/../../b", "a/..", "", "/", ".", "a\0b"] {
            assert_eq!(safe_path(path), Err(Error::Path), "{path:?}");
        }
        for (path, expected) in [("a/b", "a/b"), ("/etc/hosts", "etc/hosts"), ("./a//b/", "a/b")] {
            assert_eq!(safe_path(path).unwrap(), Path::new(expected));
        }
    }
}
