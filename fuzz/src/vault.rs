//! Objects of a vault and blobs of n2s, from any store.

use std::path::Component;

use sealane_vault::n2s::{self, N2sCipher, N2sContent};

/// The first byte names the part of a vault that the rest is read as.
pub fn vault(bytes: &[u8]) {
    sealane_vault::hostile::part(bytes);
}

/// The bytes as a blob, as a path, and as what a blob is made of. No passphrase is given where one
/// would be derived from: that costs more than everything else.
pub fn n2s(bytes: &[u8]) {
    let name = n2s::file_hash(b"");
    if let Ok(entry) = n2s::open(&name, bytes, None) {
        assert!(matches!(&entry.content, N2sContent::File(file) if file.is_empty()));
        let _ = entry.modified_ns();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(path) = n2s::safe_path(text) {
        assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
    }
    let (path, target) = text.split_at(text.floor_char_boundary(text.len() / 2));
    if let Ok(blob) = n2s::symlink(path, target, text.len() as f64 / 3.0) {
        let read = n2s::open(&blob.name, &blob.bytes, None).expect("what we write we read");
        assert_eq!(read.path.as_deref(), Some(path));
        assert_eq!(read.content, N2sContent::Symlink(target.to_owned()));
        assert_eq!(read.modified_s, text.len() as f64 / 3.0);
    }
    if bytes.first() == Some(&0) {
        let sealed = n2s::seal(path, bytes, 0.0, b"passphrase", N2sCipher::Aes256Gcm);
        let blob = sealed.expect("it is not too large");
        let read = n2s::open(&blob.name, &blob.bytes, Some(b"passphrase"));
        assert_eq!(read.map(|read| read.content), Ok(N2sContent::File(bytes.to_vec())));
    }
}
