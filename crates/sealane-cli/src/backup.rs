//! `sealane backup` and `sealane restore`: a node's data folder, copied while the node runs, and
//! made anew from a copy. A hub of another machine sends the copy.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sealane::Client;
use sealane_stream::StoreBackup;

use crate::args::operate::{BackupArgs, RestoreArgs};
use crate::config::SettingsFile;
use crate::folder::{self, NodeReach};
use crate::times::{count, show_bytes};
use crate::{CliFailure, Terminal};

/// The files that hold a node's tokens, as hashes, and the mark that it ever had some.
const TOKENS: [&str; 2] = ["tokens.toml", "guarded"];

/// The file that holds the streams.
const STREAMS: &str = "streams.db";

/// Copies a data folder, or has the hub in use send a copy.
///
/// # Errors
/// [`CliFailure::OtherNode`], [`CliFailure::Store`], [`CliFailure::File`], [`CliFailure::Client`].
pub async fn backup(
    args: &BackupArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let node = folder::reach(file, args.data.as_ref(), args.hub.server.as_ref()).await?;
    let begun = Instant::now();
    // Tokens first: a copy that has streams is complete.
    let copied = match node {
        NodeReach::Folder(data) => {
            let tokens = copy_tokens(&data, &args.to)?;
            tokens.unless_failed(sealane_stream::backup(&data, &args.to))?
        }
        NodeReach::Hub(client) => receive(&client, &args.to).await?,
    };
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

/// Makes a copy of what a hub sends. A file that is not whole never gets its name.
async fn receive(client: &Client, to: &Path) -> Result<StoreBackup, CliFailure> {
    if to.join(STREAMS).exists() {
        return Err(sealane_stream::Error::TargetExists(to.display().to_string()).into());
    }
    make_private(to)?;
    let (name, kept) = (TOKENS[0], to.join(TOKENS[0]));
    let mut tokens = CopiedFiles(Vec::new());
    let part = receive_file(client, name, to).await?;
    if let Some(part) = part.filter(|_| !kept.exists()) {
        part.persist(&kept).map_err(|error| CliFailure::file(&kept, error.error))?;
        tokens.0.push(kept);
    }
    let received = receive_file(client, STREAMS, to).await;
    let stored = received.and_then(|part| {
        let part = part.ok_or_else(|| sealane::Error::Protocol("the hub sent nothing".into()))?;
        Ok(sealane_stream::receive(part.path(), to)?)
    });
    tokens.unless_failed(stored)
}

/// A file that a hub sends, durable and without a name; nothing where the hub has none.
async fn receive_file(
    client: &Client,
    name: &str,
    to: &Path,
) -> Result<Option<tempfile::NamedTempFile>, CliFailure> {
    let failed = |cause: io::Error| CliFailure::file(&to.join(name), cause);
    let mut part = tempfile::NamedTempFile::new_in(to).map_err(failed)?;
    let length = client.back_up(name, |piece| part.write_all(&piece).map_err(failed)).await?;
    part.as_file().sync_all().map_err(failed)?;
    Ok(length.map(|_| part))
}

fn make_private(folder: &Path) -> Result<(), CliFailure> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|cause| CliFailure::file(folder, cause))
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
    if !to.join(STREAMS).exists() {
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
    make_private(to)?;
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
    copied: StoreBackup,
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
