//! `sealane backup` and `sealane restore`: a node's data folder, copied while the node runs, and
//! made anew from a copy.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::args::operate::{BackupArgs, RestoreArgs};
use crate::config::SettingsFile;
use crate::times::{count, show_bytes};
use crate::{CliFailure, Terminal, folder};

/// The files that hold a node's tokens, as hashes, and the mark that it ever had some.
const TOKENS: [&str; 2] = ["tokens.toml", "guarded"];

/// Copies a data folder.
///
/// # Errors
/// [`CliFailure::OtherNode`], [`CliFailure::Store`], [`CliFailure::File`].
pub async fn backup(
    args: &BackupArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let data = folder::of_node(file, args.data.as_ref(), args.hub.server.as_ref()).await?;
    let begun = Instant::now();
    // Tokens first: a copy that has streams is complete.
    let tokens = copy_tokens(&data, &args.to)?;
    let copied = tokens.unless_failed(sealane_stream::backup(&data, &args.to))?;
    said("backed up", &args.to, copied, begun, terminal)
}

/// Makes a data folder from a copy.
///
/// # Errors
/// [`CliFailure::OtherNode`], [`CliFailure::Store`], [`CliFailure::File`].
pub async fn restore(
    args: &RestoreArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let data = folder::of_new_node(file, args.data.as_ref(), args.hub.server.as_ref()).await?;
    let begun = Instant::now();
    // Without its tokens a node would refuse nobody: they come before the streams.
    let tokens = copy_tokens(&args.from, &data)?;
    let copied = tokens.unless_failed(sealane_stream::restore(&args.from, &data))?;
    said("restored", &data, copied, begun, terminal)?;
    if !terminal.json() {
        eprintln!("sealane: readers are told that a new generation began, and go on from there");
    }
    Ok(())
}

/// The files that were copied, if there were any to copy.
struct CopiedFiles(Vec<PathBuf>);

impl CopiedFiles {
    /// Takes them back where what they belong to did not come.
    fn unless_failed<T, E>(self, outcome: Result<T, E>) -> Result<T, E> {
        if outcome.is_err() {
            for copied in self.0 {
                let _ = fs::remove_file(copied);
            }
        }
        outcome
    }
}

fn copy_tokens(from: &Path, to: &Path) -> Result<CopiedFiles, CliFailure> {
    let mut copied = Vec::new();
    // A node that runs in `to` would follow them at once.
    if !to.join("streams.db").exists() {
        for name in TOKENS {
            let (file, kept) = (from.join(name), to.join(name));
            if file.is_file() && !kept.exists() {
                copy_private(&file, &kept, to)?;
                copied.push(kept);
            }
        }
    }
    Ok(CopiedFiles(copied))
}

fn copy_private(file: &Path, kept: &Path, to: &Path) -> Result<(), CliFailure> {
    let failed =
        |cause: io::Error| CliFailure::File { file: kept.to_owned(), cause: cause.to_string() };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(failed)?;
    // Readable for its owner only, whatever the copy was.
    let mut part = tempfile::NamedTempFile::new_in(to).map_err(failed)?;
    fs::File::open(file)
        .and_then(|mut from| io::copy(&mut from, part.as_file_mut()))
        .and_then(|_| part.as_file().sync_all())
        .map_err(failed)?;
    part.persist(kept).map_err(|error| failed(error.error))?;
    fs::File::open(to).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn said(
    done: &str,
    folder: &Path,
    copied: sealane_stream::StoreBackup,
    begun: Instant,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let took = begun.elapsed();
    if terminal.json() {
        return terminal.record(vec![
            ("folder", folder.display().to_string().into()),
            ("streams", copied.streams.into()),
            ("messages", copied.messages.into()),
            ("bytes", copied.bytes.into()),
            ("tookMs", (took.as_millis() as u64).into()),
        ]);
    }
    terminal.line(format_args!(
        "{done} {} of {}, {}, in {:.1} s: {}",
        count(copied.messages, "messages"),
        count(copied.streams, "streams"),
        show_bytes(copied.bytes),
        took.as_secs_f64(),
        folder.display()
    ))
}
