//! `GET /v1/publish`: numbered messages in, what became of them out (spec/hub.md §11).

mod credit;
mod shared;
mod waiting;

use std::cell::RefCell;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::response::Response;
use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_protocol::limits::{MAX_ENVELOPE_BYTES, MAX_PUBLISH_FRAME_BYTES};
use sealane_protocol::{
    Error, Features, NotPlaced, NumberRange, PublishAsked, PublishFrame, PublishItem, PublishQuery,
    SessionPlace, StoredRange, read_publish,
};
use sealane_stream::{
    EnvelopeBuffer, PublishAnswered, PublishSession, SessionItem, StreamEnvelope,
};
use tokio::time::{Sleep, sleep_until};

use crate::access::{ConnectionGrant, RequestPass, TokenRight};
use crate::app::NodeApp;
use crate::clock::now_ms;
use crate::frames::{ConnectionEnd, SocketEvent, SocketFrames};
use crate::handshake::{SocketSizes, WebSocket};
use crate::refusal::HttpRefusal;
use crate::upgrade::{SocketOpening, SocketParameters};
use credit::PublishCredit;
use waiting::SessionBacklog;

/// Pipelined messages cost no more with it than with a larger one.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// Frames that are taken in before what they brought is handed to the hub.
const TURN: usize = 64;

/// The request of a client.
struct PublishRequest {
    codec: Codec,
    session: Option<String>,
    /// The stream of which the first frame tells.
    stream: Option<Topic>,
}

pub(crate) async fn publish(opening: SocketOpening) -> Response {
    let sizes = SocketSizes {
        read_buffer_bytes: READ_BUFFER_BYTES,
        max_frame_bytes: MAX_PUBLISH_FRAME_BYTES,
    };
    opening.open(sizes, ask, serve)
}

/// The request, where the client may publish anywhere.
fn ask(parameters: SocketParameters, pass: &RequestPass) -> Result<PublishRequest, HttpRefusal> {
    pass.need_to_enqueue()?;
    let SocketParameters { query, codec } = parameters;
    let PublishQuery { session, stream } = PublishQuery::read(query)?;
    if let Some(stream) = &stream {
        pass.need(TokenRight::Publish, stream)?;
    }
    Ok(PublishRequest { codec, session, stream })
}

async fn serve(app: Arc<NodeApp>, socket: WebSocket, pass: RequestPass, request: PublishRequest) {
    let frames = SocketFrames::new(socket, request.codec, MAX_PUBLISH_FRAME_BYTES);
    // A client that names no session gets one, so that it can go on with it on a new connection.
    let session = request.session.unwrap_or_else(|| app.hub.ids().next());
    let opened = open(&app, pass, &session, request.stream).await;
    let (publishing, grant, place) = match opened {
        Ok(opened) => opened,
        Err(refusal) => {
            app.refused.note(&refusal);
            return frames.end(ConnectionEnd::Refused(refusal)).await;
        }
    };
    let (codec, features) = (frames.agreed(), Features::ours());
    let mut connection =
        PublishConnection::new(app.clone(), frames, grant.pass().clone(), publishing);
    let first = PublishFrame::Session { session, codec, time_ms: now_ms(), features, place };
    // The session is named before the first credit. A client must know its name before it sends.
    connection.told.push(first);
    let (connection, end) = shared::run(connection, grant).await;
    if let ConnectionEnd::Refused(refusal) = &end {
        app.refused.note(refusal);
    }
    if let Some(connection) = connection {
        connection.frames.end(end).await;
    }
}

/// Opens a session, and finds its place in the stream that was asked for.
async fn open(
    app: &NodeApp,
    pass: RequestPass,
    session: &str,
    stream: Option<Topic>,
) -> Result<(PublishSession, ConnectionGrant, Option<SessionPlace>), HttpRefusal> {
    let grant = ConnectionGrant::publishing(app.access.clone(), pass)?;
    let publishing = app.hub.publishing(grant.pass().name(), session)?;
    let place = match stream {
        Some(stream) => {
            let next = publishing.next(&stream).await?;
            Some(SessionPlace { stream, next })
        }
        None => None,
    };
    Ok((publishing, grant, place))
}

struct PublishConnection {
    app: Arc<NodeApp>,
    frames: SocketFrames,
    /// As of the last change of the tokens.
    pass: RequestPass,
    /// The stream of the last message that came.
    topic: Option<Topic>,
    publishing: PublishSession,
    waiting: SessionBacklog,
    credit: PublishCredit,
    /// The hub's answers, on their way to `told`.
    answers: Vec<PublishAnswered>,
    /// Answers that the client is still to be sent. They are as many as it had credit for, since
    /// it is given more behind them.
    told: Vec<PublishFrame>,
    /// When the frames are to be looked after.
    wake: Pin<Box<Sleep>>,
    /// Set while a token is asked for nothing.
    again: Option<Pin<Box<Sleep>>>,
    /// Why it ends, where that was found outside of its task.
    ended: Option<ConnectionEnd>,
}

impl PublishConnection {
    fn new(
        app: Arc<NodeApp>,
        frames: SocketFrames,
        pass: RequestPass,
        publishing: PublishSession,
    ) -> Self {
        let wake = Box::pin(sleep_until(frames.wake_at()));
        let credit = PublishCredit::new(app.fair.asked.room());
        Self {
            app,
            frames,
            pass,
            topic: None,
            publishing,
            waiting: SessionBacklog::default(),
            credit,
            answers: Vec::new(),
            told: Vec::new(),
            wake,
            again: None,
            ended: None,
        }
    }

    /// Does what there is to do, until that is nothing.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        if let Some(end) = self.ended.take() {
            return Poll::Ready(end);
        }
        loop {
            match self.step(cx) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => return Poll::Ready(end),
            }
        }
    }

    /// Looks once at all that it waits for, so that nothing of it keeps the rest waiting. Returns
    /// whether anything came.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionEnd> {
        let is_flushing = self.frames.is_flushing();
        // Answers wait while the socket takes nothing. Encoding more would only grow the buffer.
        if !is_flushing {
            self.tell()?;
        }
        let mut came = false;
        if let Poll::Ready(heard) = self.frames.poll_hear(cx) {
            self.after(heard?)?;
            came = true;
        }
        if let Poll::Ready(room) = self.waiting.poll_room(&self.publishing, cx) {
            room?;
            came = true;
        }
        // A single poll covers socket, room, answers and timers with one waker. One waker and less
        // parsing took a message from 30.1 to 25.3 µs (decision 12).
        if !is_flushing
            && let Poll::Ready(result) = self.publishing.poll_answers(cx, &mut self.answers)
        {
            result?;
            self.note();
            came = true;
        }
        if self.wake.as_mut().poll(cx).is_ready() {
            self.frames.tick()?;
            // It only moves to later, so that it is set again when it has come and not for each
            // frame.
            self.wake.as_mut().reset(self.frames.wake_at());
            came = true;
        }
        Ok(came | (!is_flushing && self.may_go_on(cx)))
    }

    /// Whether a token that was asked for nothing for a while is to be looked at again.
    fn may_go_on(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(at) = self.credit.wait_until() else {
            self.again = None;
            return false;
        };
        let again = self.again.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if again.deadline() != at {
            again.as_mut().reset(at);
        }
        again.as_mut().poll(cx).is_ready()
    }

    /// Sends what the hub has answered, on the thread that has it. Returns whether the task has
    /// nothing to do with it.
    fn answer_now(&mut self) -> bool {
        // The socket takes nothing. The writer must not wait, so that the task sends later.
        if self.frames.is_flushing() {
            return false;
        }
        self.publishing.take_answers(&mut self.answers);
        self.note();
        if let Err(end) = self.tell().and_then(|()| self.frames.flush_now()) {
            self.ended = Some(end);
            return false;
        }
        // A token beyond its rate needs a timer. Only the task can wait for one.
        !self.frames.is_flushing() && self.credit.wait_until().is_none()
    }

    /// Sends what is to be told, and asks for more behind it.
    fn tell(&mut self) -> Result<(), ConnectionEnd> {
        // Bytes come back when the hub has taken them, before it is decided what more is granted.
        self.credit.let_go(self.waiting.let_go());
        let wait = self.rate_wait();
        let connections = self.app.serving.count();
        if let Some((messages, bytes)) = self.credit.grant(connections, wait) {
            self.told.push(PublishFrame::Credit { messages, bytes });
        }
        let codec = self.frames.codec();
        for frame in self.told.drain(..) {
            self.frames.send(|out| frame.write(codec, out))?;
        }
        Ok(())
    }

    /// How long a token that has published too much lately is asked for nothing.
    fn rate_wait(&self) -> Option<std::time::Duration> {
        let pass = &self.pass;
        // Most calls have nothing to grant, and then need no look at the shared rates.
        if !pass.has_token() || !self.credit.has_more() {
            return None;
        }
        self.app.fair.enqueued.wait(&pass.name().to_owned(), Instant::now())
    }

    /// Takes in what the socket did, and every further frame that is already there.
    fn after(&mut self, heard: SocketEvent) -> Result<(), ConnectionEnd> {
        match heard {
            SocketEvent::Frame(frame) => self.accept(&frame)?,
            SocketEvent::Flushed | SocketEvent::Nothing => return Ok(()),
        }
        // Frames that are there already go to the hub together. A bound lets other connections have
        // their turn.
        for _ in 1..TURN {
            match self.frames.hear_more().transpose()? {
                Some(SocketEvent::Frame(frame)) => self.accept(&frame)?,
                Some(SocketEvent::Flushed | SocketEvent::Nothing) => {}
                None => break,
            }
        }
        Ok(self.waiting.hand_over(&self.publishing)?)
    }

    fn accept(&mut self, frame: &[u8]) -> Result<(), ConnectionEnd> {
        let asked = read_publish(self.frames.codec(), frame, self.topic.as_ref())?;
        // Credit is taken for the whole frame first. A client that exceeds it is cut off before
        // anything is stored.
        asked.iter().try_for_each(|one| self.credit.take(one.bytes))?;
        let pass = &self.pass;
        if pass.has_token() {
            let count = asked.len();
            self.app.fair.enqueued.charge(&pass.name().to_owned(), count, Instant::now());
        }
        let twice = find_twice(&asked);
        let (mut buffer, mut added) = (buffer_for(&asked), 0);
        for (index, PublishAsked { to, n, bytes, item }) in asked.into_iter().enumerate() {
            let bytes = bytes as u64;
            let item = if twice.contains(&index) { Err(numbered_twice()) } else { item };
            match item.map_err(HttpRefusal::from).and_then(|item| self.read(item, &mut buffer)) {
                Ok(item) => {
                    self.waiting.add(item, bytes, self.credit.window());
                    added += 1;
                }
                Err(refusal) => {
                    self.app.refused.note(&refusal);
                    // One bad message refuses itself. The connection and its other messages go on.
                    let numbers = NumberRange { from: n, to: n };
                    let (stream, error) = (to.into_owned(), refusal.wire());
                    self.credit.let_go(bytes);
                    self.refuse(NotPlaced { stream, numbers, error });
                }
            }
        }
        if buffer.is_loose() {
            // One small message would keep what was meant for those that were refused.
            self.waiting.own_last(added);
        }
        Ok(())
    }

    /// The message as the hub takes it.
    fn read(
        &mut self,
        asked: PublishItem<'_>,
        buffer: &mut EnvelopeBuffer,
    ) -> Result<SessionItem, HttpRefusal> {
        let PublishItem { to, n, envelope, delay_ms, expect } = asked;
        // The right is asked for each message, since the topic is the client's choice each time.
        self.pass.need(TokenRight::Publish, &to)?;
        if envelope.len() > MAX_ENVELOPE_BYTES {
            return Err(Error::TooLarge { what: "envelope", limit: MAX_ENVELOPE_BYTES }.into());
        }
        let codec = self.frames.codec();
        let digest = SessionItem::digest_of(envelope);
        let envelope = SCRATCH.with_borrow_mut(|scratch| {
            StreamEnvelope::read_into(buffer, scratch, self.app.hub.ids(), codec, envelope)
        })?;
        // Messages of one stream share the topic that was parsed for the first.
        if self.topic.as_ref() != Some(&to) {
            self.topic = Some(to.clone());
        }
        Ok(SessionItem { topic: to, n, envelope, expect, delay_ms, digest })
    }

    /// Notes what the hub answered.
    fn note(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        for PublishAnswered { stream, from, to, result } in answers.drain(..) {
            let numbers = NumberRange { from, to };
            match result {
                Ok(placed) => {
                    self.credit.answered(numbers);
                    let (outcome, level) = (placed.first, placed.level.into());
                    let replayed = placed.replayed;
                    let placed = StoredRange { stream, numbers, outcome, level, replayed };
                    self.told.push(PublishFrame::Published(placed));
                }
                Err(error) => {
                    let refusal = HttpRefusal::from(error);
                    self.app.refused.note(&refusal);
                    let (stream, error) = (stream.to_string(), refusal.wire());
                    self.refuse(NotPlaced { stream, numbers, error });
                }
            }
        }
        // The list goes back with its allocation, as it is filled again at the next commit.
        self.answers = answers;
    }

    fn refuse(&mut self, refused: NotPlaced) {
        self.credit.answered(refused.numbers);
        self.told.push(PublishFrame::Refused(refused));
    }
}

/// Memory for the bodies of a frame's items. Bodies of several streams share none: one that stays
/// in memory would keep those of streams that have let theirs go.
fn buffer_for(asked: &[PublishAsked<'_>]) -> EnvelopeBuffer {
    let is_one = asked.windows(2).all(|pair| matches!(pair, [a, b] if a.to == b.to));
    if !is_one {
        return EnvelopeBuffer::default();
    }
    let envelopes = asked.iter().filter_map(|one| Some(one.item.as_ref().ok()?.envelope.len()));
    EnvelopeBuffer::expecting(envelopes)
}

/// The places of items in a frame whose stream and number an earlier item of the frame has. What
/// is repeated for want of an answer comes on a new connection, and never twice in a frame.
fn find_twice(asked: &[PublishAsked<'_>]) -> Vec<usize> {
    // Most frames are of one stream, whose numbers ascend. Of several streams each one is looked
    // at, since items of another may stand between two that are the same.
    let ascends = |pair: &[PublishAsked<'_>]| match pair {
        [first, next] => first.to == next.to && first.n < next.n,
        _ => false,
    };
    if asked.windows(2).all(ascends) {
        return Vec::new();
    }
    let mut known = HashSet::new();
    let items = asked.iter().enumerate();
    items.filter(|(_, one)| !known.insert((&*one.to, one.n))).map(|(index, _)| index).collect()
}

fn numbered_twice() -> Error {
    Error::parameter("n", "came twice for its stream in this frame")
}

thread_local! {
    static SCRATCH: RefCell<Transcoder> = RefCell::new(Transcoder::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_twice_is_found_where_another_stream_stands_between() {
        let twice = |items: &[(&'static str, u64)]| {
            let asked = |(to, n): &(&'static str, u64)| {
                let (to, item) = ((*to).into(), Err(Error::Draining));
                PublishAsked { to, n: *n, bytes: 0, item }
            };
            find_twice(&items.iter().map(asked).collect::<Vec<_>>())
        };
        assert_eq!(twice(&[("a", 1), ("b", 1), ("a", 1)]), [2]);
        assert_eq!(twice(&[("a", 1), ("a", 1), ("a", 2)]), [1]);
        assert_eq!(twice(&[("a", 1), ("a", 2), ("b", 2), ("a", 3)]), [0_usize; 0]);
    }
}
