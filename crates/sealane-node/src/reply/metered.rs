//! Replies that are held within the memory for deliveries until their clients take them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use sealane_codec::{Codec, DatumWriter};
use tokio::time::Instant;

use super::{ReplyFill, accepted, answer};
use crate::access::RequestPass;
use crate::app::NodeApp;
use crate::fair::{DeliveryShare, ReplyCounted, ReplyHold, ReplyPlace};
use crate::limits::MAX_REPLY_WAIT_MS;
use crate::refusal::HttpRefusal;

/// A reply that is made and not sent yet.
pub(crate) struct MadeReply {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
}

impl MadeReply {
    /// One in the codec that the request accepts.
    pub(crate) fn new(headers: &HeaderMap, status: StatusCode, fill: ReplyFill) -> Self {
        let codec = accepted(headers).unwrap_or(Codec::Json);
        let mut body = Vec::with_capacity(256);
        fill(&mut DatumWriter::new(codec, &mut body));
        // It counts by its length, and is held by its capacity.
        body.shrink_to_fit();
        Self { status, kind: codec.content_type(), body }
    }
}

/// Answers with what `make` makes once there is room for it. Making a reply changes nothing, so
/// that one without room is made again when there is some.
pub(crate) async fn answer_metered<M, F>(
    app: &Arc<NodeApp>,
    pass: &RequestPass,
    headers: &HeaderMap,
    make: M,
) -> Response
where
    M: Fn() -> F,
    F: Future<Output = Result<MadeReply, HttpRefusal>>,
{
    let (owner, until) = (pass.reply_owner(), wait_until());
    let mut place = None;
    loop {
        // Nobody knows yet how large the reply is. A crowd that is made at once would be memory
        // that nobody counts.
        let Some(turn) = app.fair.replies.turn(&owner, app.reply_parts(), until).await else {
            return answer(headers, Err(HttpRefusal::RepliesUnread));
        };
        let made = match make().await {
            Ok(made) => made,
            Err(refusal) => return answer(headers, Err(refusal)),
        };
        let size = made.body.len();
        let fitting = place.take().filter(|place: &ReplyPlace| place.room() >= size);
        if let Some(place) = fitting.or_else(|| try_place(app, pass, size)) {
            return send(made, place);
        }
        // A reply that waits for room holds none meanwhile.
        drop((made, turn));
        place = match wait_for_place(app, pass, size, until).await {
            Some(place) => Some(place),
            None => return answer(headers, Err(HttpRefusal::RepliesUnread)),
        };
    }
}

/// Room for the reply to a command, of about so many bytes at most. It is asked for before the
/// command is obeyed, since what was done cannot be refused.
pub(crate) async fn place_for(
    app: &Arc<NodeApp>,
    pass: &RequestPass,
    bytes: usize,
) -> Result<ReplyPlace, HttpRefusal> {
    if let Some(place) = try_place(app, pass, bytes) {
        return Ok(place);
    }
    let place = wait_for_place(app, pass, bytes, wait_until()).await;
    place.ok_or(HttpRefusal::RepliesUnread)
}

/// A reply, or why there is none, in the room that was asked for.
pub(crate) fn answer_in(
    place: ReplyPlace,
    headers: &HeaderMap,
    result: Result<(StatusCode, ReplyFill), HttpRefusal>,
) -> Response {
    match result {
        Ok((status, fill)) => send(MadeReply::new(headers, status, fill), place),
        Err(refusal) => answer(headers, Err(refusal)),
    }
}

fn wait_until() -> Instant {
    Instant::now() + Duration::from_millis(MAX_REPLY_WAIT_MS)
}

/// Room for so many bytes, if there is some now.
fn try_place(app: &NodeApp, pass: &RequestPass, bytes: usize) -> Option<ReplyPlace> {
    let replies = &app.fair.replies;
    let mut share = app.share();
    if bytes <= share.bytes() {
        share.keep(bytes);
        return Some(ReplyPlace::Share(share, replies.counted()));
    }
    drop(share);
    app.large(&pass.reply_owner(), bytes).map(ReplyPlace::Hold)
}

async fn wait_for_place(
    app: &NodeApp,
    pass: &RequestPass,
    bytes: usize,
    until: Instant,
) -> Option<ReplyPlace> {
    while app.fair.replies.wait(until).await {
        if let Some(place) = try_place(app, pass, bytes) {
            return Some(place);
        }
    }
    None
}

fn send(made: MadeReply, place: ReplyPlace) -> Response {
    let MadeReply { status, kind, body } = made;
    let mut response = Response::default();
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    *response.body_mut() = match place {
        ReplyPlace::Share(mut share, counted) => {
            share.keep(body.len());
            let held = SharedReply { body, _share: share, _counted: counted };
            Body::from(Bytes::from_owner(held))
        }
        ReplyPlace::Hold(hold) => {
            let left = body.len();
            hold.fill(body);
            Body::new(ReplyPieces { hold, left, out: Arc::default() })
        }
    };
    response
}

/// A reply of the size that its connection may hold.
struct SharedReply {
    body: Vec<u8>,
    _share: DeliveryShare,
    _counted: ReplyCounted,
}

impl AsRef<[u8]> for SharedReply {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// A larger reply, of which one piece at a time is on its way.
struct ReplyPieces {
    hold: ReplyHold,
    left: usize,
    out: Arc<Mutex<PieceOut>>,
}

/// Whether a piece is on its way, and who waits until it is not.
#[derive(Default)]
struct PieceOut {
    is_out: bool,
    waker: Option<Waker>,
}

/// A piece on its way.
struct ReplyPiece {
    bytes: Bytes,
    out: Arc<Mutex<PieceOut>>,
}

impl AsRef<[u8]> for ReplyPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ReplyPiece {
    fn drop(&mut self) {
        let waker = {
            let mut out = self.out.lock();
            out.is_out = false;
            out.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The rest of a reply was cut off, since its client took nothing of it and others lacked room.
#[derive(Debug, thiserror::Error)]
#[error("the reply was cut off: its client took nothing of it, and others lacked room")]
struct ReplyCut;

impl hyper::body::Body for ReplyPieces {
    type Data = Bytes;
    type Error = ReplyCut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReplyCut>>> {
        {
            let mut out = self.out.lock();
            // The connection would otherwise take piece after piece, and hold them uncounted.
            if out.is_out {
                out.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if self.left == 0 {
                return Poll::Ready(None);
            }
            out.is_out = true;
        }
        let Some(bytes) = self.hold.next_piece() else {
            return Poll::Ready(Some(Err(ReplyCut)));
        };
        self.left = self.left.saturating_sub(bytes.len());
        let piece = ReplyPiece { bytes, out: self.out.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
