//! The socket on which programs of this user ask for documents: a line of JSON each way.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use sealane::documents::{DocumentAnswer, DocumentQuestion, from_line, to_line};
use sealane::{Codec, DocumentRefusal, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::{Answered, DocumentTask, ask};
use crate::limits::{
    ACCEPT_PAUSE_MS, MAX_DOCUMENT_PROGRAMS, MAX_DOCUMENT_QUESTION_BYTES, MAX_DOCUMENT_WATCHERS,
    MAX_DOCUMENTS_UNWATCHED,
};
use crate::{AskRefusal, MachineError, Result};

/// Serves a socket that only this user can open. One that nobody serves any more is taken over.
pub(super) fn serve(path: &Path, tasks: SyncSender<DocumentTask>) -> Result<JoinHandle<()>> {
    let failed = |cause| MachineError::file(path, cause);
    // A socket outlives a killed process. Only a connection shows whether somebody still serves it.
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
    // A link fails where the name is taken. A rename would replace the socket of another process in
    // silence.
    std::fs::hard_link(hidden, path).map_err(failed)?;
    std::fs::remove_file(hidden).map_err(failed)?;
    Ok(tokio::spawn(accept(listener, tasks)))
}

async fn accept(listener: UnixListener, tasks: SyncSender<DocumentTask>) {
    let readers = Arc::new(Semaphore::new(MAX_DOCUMENT_PROGRAMS));
    let watchers = Arc::new(Semaphore::new(MAX_DOCUMENT_WATCHERS));
    while let Ok(permit) = Arc::clone(&readers).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // While no descriptor is free, each attempt fails at once.
            tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            continue;
        };
        let (tasks, watchers) = (tasks.clone(), Arc::clone(&watchers));
        tokio::spawn(async move {
            // A program that goes away reads nothing.
            let _ = answer(stream, &tasks, &watchers).await;
            drop(permit);
        });
    }
}

async fn answer(
    stream: UnixStream,
    tasks: &SyncSender<DocumentTask>,
    watchers: &Semaphore,
) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = vec![];
        (&mut read).take(MAX_DOCUMENT_QUESTION_BYTES).read_until(b'\n', &mut line).await?;
        // A line without its end is cut off or too long. Half a question is not answered.
        if !line.ends_with(b"\n") {
            return Ok(());
        }
        let Ok(asked) = from_line(&line) else {
            say(&mut write, Err("what is asked is not known here".into())).await?;
            continue;
        };
        if asked == DocumentQuestion::Watch {
            let Ok(_place) = watchers.try_acquire() else {
                say(&mut write, Err(AskRefusal::Watched)).await?;
                continue;
            };
            let (watcher, mut new) = mpsc::channel(MAX_DOCUMENTS_UNWATCHED);
            let said = match tasks.try_send(DocumentTask::Watch(watcher)) {
                Ok(()) => Ok(DocumentAnswer::Done { wait_ms: 0 }),
                Err(_) => Err(AskRefusal::Busy),
            };
            say(&mut write, said).await?;
            loop {
                tokio::select! {
                    document = new.recv() => match document {
                        Some(document) => show(&mut write, &document).await?,
                        None => return Ok(()),
                    },
                    // A watcher that has gone, or says more, watches no longer: its place is for
                    // others.
                    _ = read.read_u8() => return Ok(()),
                }
            }
        }
        say(&mut write, ask(tasks, asked).await).await?;
    }
}

/// Answers a program. A refusal has its code, so that the program tells it apart.
async fn say(to: &mut (impl AsyncWriteExt + Unpin), answered: Answered) -> std::io::Result<()> {
    let answer = answered.unwrap_or_else(|refusal| {
        let info = refusal.info();
        let (code, hint) = (info.code.to_owned(), info.hint.to_owned());
        DocumentAnswer::Refused(DocumentRefusal { message: refusal.to_string(), code, hint })
    });
    to.write_all(&to_line(&answer)?).await
}

/// Shows a program that watches what is new.
async fn show(to: &mut (impl AsyncWriteExt + Unpin), value: &Value) -> std::io::Result<()> {
    let mut line = vec![];
    sealane_codec::encode(Codec::Json, value, &mut line);
    line.push(b'\n');
    to.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Serves a desk that says yes to everything, and keeps who watches.
    fn desk(folder: &Path) -> (std::path::PathBuf, JoinHandle<()>) {
        let (tasks, waiting) = std::sync::mpsc::sync_channel(16);
        std::thread::spawn(move || {
            let mut watchers = vec![];
            while let Ok(task) = waiting.recv() {
                match task {
                    DocumentTask::Ask { answer, .. } => {
                        drop(answer.send(Ok(DocumentAnswer::Raised { number: 7 })))
                    }
                    DocumentTask::Watch(watcher) => watchers.push(watcher),
                    _ => {}
                }
            }
        });
        let path = folder.join("documents.sock");
        let serving = serve(&path, tasks).unwrap();
        (path, serving)
    }

    async fn ask_at(path: &Path, asked: &[u8]) -> (BufReader<UnixStream>, String) {
        let mut stream = BufReader::new(UnixStream::connect(path).await.unwrap());
        stream.write_all(asked).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        (stream, line)
    }

    /// Watches, as soon as the place of somebody who has gone away is free.
    async fn watch_at(path: &Path) -> BufReader<UnixStream> {
        let watched = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let (stream, said) = ask_at(path, WATCH).await;
                if said.contains("\"done\"") {
                    return stream;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        watched.await.expect("there is a place")
    }

    const WATCH: &[u8] = b"{\"do\":\"watch\"}\n";
    const RAISE: &[u8] = b"{\"do\":\"raise\",\"with\":{}}\n";

    #[tokio::test]
    async fn who_watches_and_goes_away_keeps_nobody_from_calling_for_help() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _serving) = desk(folder.path());
        for _ in 0..2 * MAX_DOCUMENT_PROGRAMS {
            drop(watch_at(&path).await);
        }
        let mut watching = vec![];
        for _ in 0..MAX_DOCUMENT_WATCHERS {
            watching.push(watch_at(&path).await);
        }
        let (_, said) = ask_at(&path, WATCH).await;
        assert!(said.contains("as many watch") && said.contains("SL-MACHINE-04"), "{said}");
        let raised = tokio::time::timeout(Duration::from_secs(9), ask_at(&path, RAISE));
        assert!(raised.await.is_ok_and(|(_, said)| said.contains("\"raised\"")));
    }
}
