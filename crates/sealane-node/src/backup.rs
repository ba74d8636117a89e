//! `GET /v1/backup/{file}`: the files of a backup (spec/hub.md §3).
//!
//! The copy of the store is made beside it, checked, opened, and its name taken away. So the disk
//! has its room again when the last reader of the copy has gone, be that by a kill.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{self, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use sealane_protocol::Error;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::timeout;

use crate::access::{RequestPass, TokenFile};
use crate::app::NodeApp;
use crate::clock::stopped;
use crate::limits::{MAX_BACKUPS, MAX_SILENCE_MS};
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::answer;

/// The folder in which a copy is made.
const PART: &str = "backup.part";

/// The type of both files.
const FILE_TYPE: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Bytes of the copy that are read at once. Two of these wait for a client at most.
const PIECE_BYTES: usize = 64 << 10;

/// The file of that name.
pub(crate) async fn show(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    extract::Path(file): extract::Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        pass.need_admin()?;
        if let Some((name, _)) = query::read(query)?.first() {
            return Err(Error::parameter(name.clone(), "is no parameter of this request").into());
        }
        match file.as_str() {
            "streams.db" => streams(&app).await,
            "tokens.toml" => tokens(&app).await,
            _ => Err(HttpRefusal::NotFound),
        }
    };
    result.await.unwrap_or_else(|refusal| answer(&headers, Err(refusal)))
}

/// The tokens with their hashes; 204 where there never were any.
async fn tokens(app: &Arc<NodeApp>) -> Result<Response, HttpRefusal> {
    let access = app.access.clone();
    let read = tokio::task::spawn_blocking(move || {
        let file = access.file();
        match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                TokenFile::read(file).map(|tokens| tokens.guards().then(|| tokens.to_text()))
            }
            Ok(text) => TokenFile::read(file).map(|_| Some(text)),
            // The file cannot be read, and its reader says why.
            Err(_) => TokenFile::read(file).map(|tokens| Some(tokens.to_text())),
        }
    });
    let read = read.await.map_err(|_| Error::Draining)?;
    let text = read.map_err(|error| Error::StorageFailed(error.to_string()))?;
    let Some(text) = text else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    Ok(([(CONTENT_TYPE, FILE_TYPE)], text).into_response())
}

/// The streams, as of now.
async fn streams(app: &Arc<NodeApp>) -> Result<Response, HttpRefusal> {
    let permit = app.backups.clone().try_acquire_owned();
    let permit = permit
        .map_err(|_| Error::TooMany { what: "backups at once", limit: MAX_BACKUPS as u64 })?;
    let folder = app.folder.clone();
    // The permit goes with the work: a client that hangs up leaves it running.
    let copied = tokio::task::spawn_blocking(move || copy(&folder).map(|copy| (copy, permit)));
    let ((file, bytes), permit) = copied.await.map_err(|_| Error::Draining)??;
    tracing::info!(bytes, "a backup is sent");
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(send(file, sender, app.stopping.clone(), permit));
    let body = Body::new(BackupBody { pieces, left: bytes });
    Ok(([(CONTENT_TYPE, FILE_TYPE)], body).into_response())
}

/// Removes what a kill has left of a copy.
pub(crate) fn tidy(folder: &Path) {
    CopyFolder(folder.join(PART)).remove();
}

/// A checked copy of the store, which has no name any more, and its size.
fn copy(folder: &Path) -> Result<(File, u64), Error> {
    let part = CopyFolder(folder.join(PART));
    part.remove();
    sealane_stream::check_room(folder)?;
    let copied = sealane_stream::backup(folder, &part.0)?;
    let failed = |cause: io::Error| Error::StorageFailed(format!("{}: {cause}", part.0.display()));
    let file = File::open(part.0.join("streams.db")).map_err(failed)?;
    Ok((file, copied.bytes))
}

/// The folder of a copy, for as long as it is made.
struct CopyFolder(PathBuf);

impl CopyFolder {
    fn remove(&self) {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(%error, folder = %self.0.display(), "a copy of the store stays");
            }
            _ => {}
        }
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Sends a file piece by piece, as its reader takes them. It ends early where the file cannot be
/// read, nobody takes a piece for long, or the node stops; the reply is then cut off.
async fn send(
    mut file: File,
    sender: mpsc::Sender<Bytes>,
    mut stopping: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            (&file).take(PIECE_BYTES as u64).read_to_end(&mut piece).map(|_| (file, piece))
        });
        let piece = match read.await {
            Ok(Ok((same, piece))) => {
                file = same;
                piece
            }
            Ok(Err(error)) => return tracing::error!(%error, "a backup cannot be read"),
            Err(_) => return,
        };
        if piece.is_empty() {
            return;
        }
        let sent = timeout(Duration::from_millis(MAX_SILENCE_MS), sender.send(piece.into()));
        let is_sent = tokio::select! {
            sent = sent => matches!(sent, Ok(Ok(()))),
            () = stopped(&mut stopping) => false,
        };
        if !is_sent {
            return tracing::warn!("a backup was cut off: nobody took it, or the node stops");
        }
    }
}

/// The body of a reply, whose length is known before.
struct BackupBody {
    pieces: mpsc::Receiver<Bytes>,
    left: u64,
}

/// The rest of a backup does not come.
#[derive(Debug, thiserror::Error)]
#[error("the backup was cut off")]
struct BackupCut;

impl hyper::body::Body for BackupBody {
    type Data = Bytes;
    type Error = BackupCut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BackupCut>>> {
        Poll::Ready(match ready!(self.pieces.poll_recv(cx)) {
            Some(piece) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                Some(Ok(Frame::data(piece)))
            }
            None if self.left == 0 => None,
            // An end that looks whole would be kept as a backup.
            None => Some(Err(BackupCut)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_reply_that_ends_early_is_an_error_and_frees_the_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy");
        fs::write(&path, vec![7; 3 * PIECE_BYTES + 5]).unwrap();
        let turns = Arc::new(Semaphore::new(1));
        for (said, is_whole) in [(3 * PIECE_BYTES + 5, true), (3 * PIECE_BYTES + 6, false)] {
            let (sender, pieces) = mpsc::channel(1);
            let permit = turns.clone().try_acquire_owned().unwrap();
            let (_stop, stopping) = watch::channel(false);
            let sent = tokio::spawn(send(File::open(&path).unwrap(), sender, stopping, permit));
            let body = BackupBody { pieces, left: said as u64 };
            assert_eq!(body.collect().await.is_ok(), is_whole);
            sent.await.unwrap();
            assert_eq!(turns.available_permits(), 1);
        }
        // Nobody takes it any more, or the node stops.
        for stops in [false, true] {
            let (sender, pieces) = mpsc::channel(1);
            let permit = turns.clone().try_acquire_owned().unwrap();
            let (stop, stopping) = watch::channel(false);
            let sent = tokio::spawn(send(File::open(&path).unwrap(), sender, stopping, permit));
            let pieces = if stops {
                stop.send_replace(true);
                Some(pieces)
            } else {
                drop(pieces);
                None
            };
            sent.await.unwrap();
            assert_eq!(turns.available_permits(), 1);
            drop(pieces);
        }
    }
}
