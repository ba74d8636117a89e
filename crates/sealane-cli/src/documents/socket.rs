//! The socket on which programs of this user ask for documents: a line of JSON each way.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use sealane::{Codec, Value};
use sealane_link::limits::MAX_STATUS_READERS;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::desk::WATCHED_MAX;
use super::{Task, ask, error, map};
use crate::Failure;

/// A line that is asked. A longer one ends the connection.
const ASKED_BYTES_MAX: u64 = 1 << 16;

/// Serves a socket that only this user can open. One that nobody serves any more is taken over.
pub(super) fn serve(path: &Path, tasks: SyncSender<Task>) -> Result<JoinHandle<()>, Failure> {
    let failed =
        |cause: std::io::Error| Failure::File { file: path.to_owned(), cause: cause.to_string() };
    if std::os::unix::net::UnixStream::connect(path).is_err() && path.exists() {
        std::fs::remove_file(path).map_err(failed)?;
    }
    // It is bound under another name, so that nobody opens it before it is private.
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(".new");
    let hidden = Path::new(&hidden);
    let _ = std::fs::remove_file(hidden);
    let listener = UnixListener::bind(hidden).map_err(failed)?;
    std::fs::set_permissions(hidden, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    std::fs::hard_link(hidden, path).map_err(failed)?;
    std::fs::remove_file(hidden).map_err(failed)?;
    Ok(tokio::spawn(accept(listener, tasks)))
}

async fn accept(listener: UnixListener, tasks: SyncSender<Task>) {
    let readers = Arc::new(Semaphore::new(MAX_STATUS_READERS));
    while let Ok(permit) = Arc::clone(&readers).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let tasks = tasks.clone();
        tokio::spawn(async move {
            // Who goes away reads nothing.
            let _ = answer(stream, &tasks).await;
            drop(permit);
        });
    }
}

async fn answer(stream: UnixStream, tasks: &SyncSender<Task>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = vec![];
        (&mut read).take(ASKED_BYTES_MAX).read_until(b'\n', &mut line).await?;
        if !line.ends_with(b"\n") {
            return Ok(());
        }
        let asked = sealane_codec::decode(Codec::Json, line.trim_ascii_end());
        let Ok(asked) = asked else {
            say(&mut write, &error("what is asked is no JSON")).await?;
            continue;
        };
        if asked.field("do").and_then(Value::as_text) == Some("watch") {
            let (watcher, mut new) = mpsc::channel(WATCHED_MAX);
            let said = match tasks.try_send(Task::Watch(watcher)) {
                Ok(()) => map(vec![("done", Value::Bool(true))]),
                Err(_) => error("there is too much to do: ask again"),
            };
            say(&mut write, &said).await?;
            while let Some(document) = new.recv().await {
                say(&mut write, &document).await?;
            }
            return Ok(());
        }
        say(&mut write, &ask(tasks, asked).await).await?;
    }
}

async fn say(to: &mut (impl AsyncWriteExt + Unpin), value: &Value) -> std::io::Result<()> {
    let mut line = vec![];
    sealane_codec::encode(Codec::Json, value, &mut line);
    line.push(b'\n');
    to.write_all(&line).await
}
