//! The blobs of n2s: its own form written and read byte for byte, its later ones read.
//!
//! ```text
//!  file ─► LZ4 frame ─► ChaCha20-Poly1305 or AES-256-GCM ─► base64 ─► JSON with readable metadata
//!          key = PBKDF2(passphrase, id[..16])   nonce = id[20..]   id = BLAKE3(path ":" hash)
//! ```
//!
//! | form | name of the blob | content | read | written |
//! |---|---|---|---|---|
//! | 2 | BLAKE3 of path and content hash | sealed, path beside it | yes | yes |
//! | 3 | BLAKE3 of the content | LZ4 in base64, no path, **not encrypted** | yes | no |
//! | 4 | BLAKE3 of the content | as 3, with a path | yes | no |
//!
//! Form 2 has weaknesses that this module cannot repair. Path, size, time and content hash are
//! readable by anyone. The time is not authenticated. One guess of the passphrase costs an attacker
//! one derivation. Nothing ties blobs together, so that an older blob is not noticed. Symbolic
//! links are not sealed at all. Key and nonce follow from path and content, while the sealed bytes
//! are the compressed ones. So if a second LZ4 encoder compresses the same file differently, it
//! uses the nonce twice. Blobs are written here only to prove the format and to measure it. Keep
//! files in a vault, where [`Vault::import_n2s`](crate::Vault::import_n2s) brings those of a store.
//! Never write into a store that another program wrote.
//!
//! Whole files are held in memory, up to [`MAX_N2S_FILE_BYTES`] of them.
//!
//! ```
//! use sealane_vault::n2s::{self, N2sCipher, N2sContent};
//!
//! let blob = n2s::seal("a/b.txt", b"hello", 1.5, b"passphrase", N2sCipher::ChaCha20Poly1305)?;
//! let entry = n2s::open(&blob.name, &blob.bytes, Some(b"passphrase"))?;
//! assert_eq!(entry.path.as_deref(), Some("a/b.txt"));
//! assert_eq!(entry.content, N2sContent::File(b"hello".to_vec()));
//! # Ok::<(), n2s::Error>(())
//! ```

mod compression;
mod crypto;
mod error;
mod import;
mod parse;
mod safe_path;
mod write;

use crate::limits::{MAX_N2S_BLOB_BYTES, MAX_N2S_FILE_BYTES};

pub use crypto::{N2sCipher, file_hash, name};
pub use error::{ERRORS, Error};
pub use safe_path::{is_blob_name, safe_path};
pub use write::{seal, symlink};

/// One blob as it lies in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct N2sBlob {
    /// Its id in 64 hexadecimal digits, which is its file name.
    pub name: String,
    /// Its file: JSON.
    pub bytes: Vec<u8>,
}

/// The content of a blob, compared with its name and hashes.
#[derive(Debug, Clone, PartialEq)]
pub struct N2sEntry {
    /// The form, 2 to 4.
    pub form: u8,
    /// The path as it was given; form 3 has none. [`safe_path`] makes it safe.
    pub path: Option<String>,
    /// The bytes of the file, or the target of the link.
    pub content: N2sContent,
    /// The time of the last change, in seconds since 1970. Not authenticated.
    pub modified_s: f64,
    /// The JSON was invalid and one unescaped description in it was repaired.
    pub repaired: bool,
}

/// The content of an [`N2sEntry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum N2sContent {
    /// A regular file's bytes.
    File(Vec<u8>),
    /// A symbolic link's target, as it was written.
    Symlink(String),
}

impl N2sEntry {
    /// The time in nanoseconds since 1970, as precisely as the format keeps it.
    pub fn modified_ns(&self) -> Result<i64, Error> {
        let seconds = self.modified_s.floor();
        let ns = ((self.modified_s - seconds) * 1e9).round();
        // Within these bounds the casts are exact, and so is the sum.
        match seconds.abs() < 9.2e9 {
            true => Ok(seconds as i64 * 1_000_000_000 + ns as i64),
            false => Err(Error::Time),
        }
    }
}

/// Reads a blob of any form and compares what it says with what it holds.
///
/// `name` is the blob's file name. `passphrase` is needed for sealed content alone.
pub fn open(name: &str, bytes: &[u8], passphrase: Option<&[u8]>) -> Result<N2sEntry, Error> {
    if bytes.len() as u64 > MAX_N2S_BLOB_BYTES {
        return Err(Error::TooLarge);
    }
    let (parsed, repaired) = parse::parse(bytes)?;
    let form = parsed.form;
    let modified_s = parsed.modified_s;
    let (path, content) = match parsed.body {
        parse::N2sBody::Sealed { path, hash, content } => {
            check_name(name, &path, &hash)?;
            let passphrase = passphrase.ok_or(Error::NoPassphrase)?;
            let compressed = crypto::open(name, passphrase, &content)?;
            let file = compression::decompress(&compressed, parsed.size)?;
            compare(&file, parsed.size, &hash)?;
            (Some(path), N2sContent::File(file))
        }
        parse::N2sBody::Symlink { path, hash, target } => {
            check_name(name, &path, &hash)?;
            compare(target.as_bytes(), parsed.size, &hash)?;
            (Some(path), N2sContent::Symlink(target))
        }
        parse::N2sBody::Open { path, frames } => {
            let file = compression::decompress(&frames, parsed.size)?;
            compare(&file, parsed.size, name)?;
            (path, N2sContent::File(file))
        }
    };
    Ok(N2sEntry { form, path, content, modified_s, repaired })
}

fn check_name(name: &str, path: &str, hash: &str) -> Result<(), Error> {
    if crypto::name(path, hash) == name { Ok(()) } else { Err(Error::WrongName) }
}

fn compare(content: &[u8], size: u64, hash: &str) -> Result<(), Error> {
    let same = content.len() as u64 == size && crypto::file_hash(content) == hash;
    if same { Ok(()) } else { Err(Error::WrongContent) }
}

fn check_size(content: &[u8]) -> Result<(), Error> {
    if content.len() as u64 > MAX_N2S_FILE_BYTES { Err(Error::TooLarge) } else { Ok(()) }
}
