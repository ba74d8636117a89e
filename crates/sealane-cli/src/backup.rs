//! `sealane backup` and `sealane restore`: a node's data folder, copied while the node runs, and
//! made anew from a copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sealane::Value;

use crate::args::operate::{Backup, Restore};
use crate::config::{File, Key};
use crate::times::show_bytes;
use crate::{Failure, Terminal};

/// What a node knows of tokens, as hashes.
const TOKENS: &str = "tokens.toml";

/// Copies a data folder.
///
/// # Errors
/// [`Failure::Store`], [`Failure::File`].
pub fn backup(args: &Backup, file: &File, terminal: &mut Terminal) -> Result<(), Failure> {
    let data = PathBuf::from(file.setting(Key::Data, args.data.as_ref()).value);
    let begun = Instant::now();
    let copied = sealane_stream::backup(&data, &args.to)?;
    copy_tokens(&data, &args.to)?;
    said("backed up", &args.to, copied, begun, terminal)
}

/// Makes a data folder from a copy.
///
/// # Errors
/// [`Failure::Store`], [`Failure::File`].
pub fn restore(args: &Restore, file: &File, terminal: &mut Terminal) -> Result<(), Failure> {
    let data = PathBuf::from(file.setting(Key::Data, args.data.as_ref()).value);
    let begun = Instant::now();
    // Without its tokens a node would refuse nobody: they come before the streams.
    copy_tokens(&args.from, &data)?;
    let copied = sealane_stream::restore(&args.from, &data)?;
    said("restored", &data, copied, begun, terminal)?;
    if !terminal.json() {
        eprintln!("sealane: readers are told that a new generation began, and go on from there");
    }
    Ok(())
}

fn copy_tokens(from: &Path, to: &Path) -> Result<(), Failure> {
    let (from, to) = (from.join(TOKENS), to.join(TOKENS));
    let failed = |cause: io::Error| Failure::File { file: to.clone(), cause: cause.to_string() };
    if !from.is_file() || to.exists() {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // With the mode of the first: readable for its owner only.
    fs::copy(&from, &to).and_then(|_| fs::File::open(&to)?.sync_all()).map_err(failed)
}

fn said(
    done: &str,
    folder: &Path,
    copied: sealane_stream::Backup,
    begun: Instant,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let seconds = begun.elapsed().as_secs_f64();
    if terminal.json() {
        return terminal.record(vec![
            ("folder", folder.display().to_string().into()),
            ("streams", copied.streams.into()),
            ("messages", copied.messages.into()),
            ("bytes", copied.bytes.into()),
            ("seconds", Value::F64(seconds)),
        ]);
    }
    terminal.line(format_args!(
        "{done} {} messages of {} streams, {}, in {seconds:.1} s: {}",
        copied.messages,
        copied.streams,
        show_bytes(copied.bytes),
        folder.display()
    ))
}
