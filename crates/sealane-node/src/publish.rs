//! `GET /v1/publish`: numbered messages in, what became of them out (spec/hub.md §11).

mod credit;
mod waiting;

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::WebSocket;
use axum::response::Response;
use sealane_codec::{Codec, Transcoder};
use sealane_protocol::limits::{MAX_ENVELOPE_BYTES, MAX_PUBLISH_FRAME_BYTES};
use sealane_protocol::{
    Error, Features, NotPlaced, Numbers, Placed, PublishAsked, PublishFrame, PublishItem,
    PublishQuery, read_publish,
};
use sealane_stream::{Answered, Envelope, Item, Publishing};
use tokio::time::sleep_until;

use crate::access::{Grant, Pass, Right};
use crate::app::App;
use crate::clock::{now_ms, stopped};
use crate::frames::{End, Frames, Heard};
use crate::refusal::Refusal;
use crate::upgrade::{Opening, Parameters, Sizes};
use credit::Credit;
use waiting::Waiting;

/// Pipelined messages cost no more with it than with a larger one.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// Frames that are taken in before what they brought is handed to the hub.
const TURN: usize = 64;

/// What a client asks for.
struct Request {
    codec: Codec,
    session: Option<String>,
}

pub(crate) async fn publish(opening: Opening) -> Response {
    let sizes =
        Sizes { read_buffer_bytes: READ_BUFFER_BYTES, max_frame_bytes: MAX_PUBLISH_FRAME_BYTES };
    opening.open(sizes, ask, serve)
}

/// What is asked for, where the client may publish anywhere.
fn ask(parameters: Parameters, pass: &Pass) -> Result<Request, Refusal> {
    pass.need_to_enqueue()?;
    let Parameters { query, codec } = parameters;
    let PublishQuery { session } = PublishQuery::read(query)?;
    Ok(Request { codec, session })
}

async fn serve(app: Arc<App>, socket: WebSocket, pass: Pass, request: Request) {
    let frames = Frames::new(socket, request.codec, MAX_PUBLISH_FRAME_BYTES);
    let session = request.session.unwrap_or_else(|| app.hub.ids().next());
    let (publishing, grant) = match open(&app, pass, &session) {
        Ok(opened) => opened,
        Err(refusal) => {
            app.refused.note(&refusal);
            return frames.end(End::Refused(refusal)).await;
        }
    };
    let (waiting, credit, told) =
        (Waiting::default(), Credit::new(app.fair.asked.room()), Vec::new());
    let mut connection = Connection { app, frames, grant, publishing, waiting, credit, told };
    let end = connection.run(session).await;
    if let End::Refused(refusal) = &end {
        connection.app.refused.note(refusal);
    }
    connection.frames.end(end).await;
}

fn open(app: &App, pass: Pass, session: &str) -> Result<(Publishing, Grant), Refusal> {
    let grant = Grant::publishing(app.access.clone(), pass)?;
    let publishing = app.hub.publishing(grant.pass().name(), session)?;
    Ok((publishing, grant))
}

struct Connection {
    app: Arc<App>,
    frames: Frames,
    grant: Grant,
    publishing: Publishing,
    waiting: Waiting,
    credit: Credit,
    /// Answers that the client is still to be sent. They are as many as it had credit for, since
    /// it is given more behind them.
    told: Vec<PublishFrame>,
}

impl Connection {
    async fn run(&mut self, session: String) -> End {
        let (codec, features) = (self.frames.agreed(), Features::ours());
        self.told.push(PublishFrame::Session { session, codec, time_ms: now_ms(), features });
        let mut stopping = self.app.stopping.clone();
        let mut answers = Vec::new();
        // It only moves to later, so that it is set again when it has come and not for each frame.
        let mut wake = pin!(sleep_until(self.frames.wake_at()));
        loop {
            let is_flushing = self.frames.is_flushing();
            if !is_flushing && let Err(end) = self.tell() {
                return end;
            }
            let again = self.credit.wait_until();
            let step = tokio::select! {
                heard = self.frames.hear() => self.after(heard),
                room = self.waiting.room(&self.publishing) => room.map_err(End::from),
                came = self.publishing.answers(&mut answers), if !is_flushing => {
                    self.note(&mut answers);
                    came.map_err(End::from)
                }
                () = wake.as_mut() => {
                    let ticked = self.frames.tick();
                    wake.as_mut().reset(self.frames.wake_at());
                    ticked
                }
                () = sleep_until(again.unwrap_or_else(tokio::time::Instant::now)),
                    if again.is_some() && !is_flushing => Ok(()),
                granted = self.grant.changed() => granted.map_err(End::Refused),
                () = stopped(&mut stopping) => Err(Error::Draining.into()),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Sends what is to be told, and asks for more behind it.
    fn tell(&mut self) -> Result<(), End> {
        self.credit.let_go(self.waiting.let_go());
        let wait = self.rate_wait();
        let connections = self.app.serving.count();
        if let Some((messages, bytes)) = self.credit.grant(connections, wait) {
            self.told.push(PublishFrame::Credit { messages, bytes });
        }
        let codec = self.frames.codec();
        for frame in self.told.drain(..) {
            let mut bytes = Vec::with_capacity(128);
            frame.write(codec, &mut bytes);
            self.frames.send(bytes.into())?;
        }
        Ok(())
    }

    /// How long a token that has published too much lately is asked for nothing.
    fn rate_wait(&self) -> Option<std::time::Duration> {
        let pass = self.grant.pass();
        if !pass.has_token() || !self.credit.has_more() {
            return None;
        }
        self.app.fair.enqueued.wait(&pass.name().to_owned(), Instant::now())
    }

    /// Takes in what the socket did, and every further frame that is already there.
    fn after(&mut self, heard: Result<Heard, End>) -> Result<(), End> {
        match heard? {
            Heard::Frame(frame) => self.accept(&frame)?,
            Heard::Flushed | Heard::Nothing => return Ok(()),
        }
        for _ in 1..TURN {
            match self.frames.hear_more().transpose()? {
                Some(Heard::Frame(frame)) => self.accept(&frame)?,
                Some(Heard::Flushed | Heard::Nothing) => {}
                None => break,
            }
        }
        Ok(self.waiting.hand_over(&self.publishing)?)
    }

    fn accept(&mut self, frame: &[u8]) -> Result<(), End> {
        let asked = read_publish(self.frames.codec(), frame)?;
        asked.iter().try_for_each(|one| self.credit.take(one.bytes))?;
        let pass = self.grant.pass();
        if pass.has_token() {
            let count = asked.len();
            self.app.fair.enqueued.charge(&pass.name().to_owned(), count, Instant::now());
        }
        for one in asked {
            let bytes = one.bytes as u64;
            match self.read(&one) {
                Ok(item) => self.waiting.add(item, bytes, self.credit.window()),
                Err(refusal) => {
                    self.app.refused.note(&refusal);
                    let numbers = Numbers { from: one.n, to: one.n };
                    let (stream, error) = (one.to.into_owned(), refusal.wire());
                    self.credit.let_go(bytes);
                    self.refuse(NotPlaced { stream, numbers, error });
                }
            }
        }
        Ok(())
    }

    /// The message as the hub takes it.
    fn read(&self, asked: &PublishAsked<'_>) -> Result<Item, Refusal> {
        let PublishItem { to, n, envelope, delay_ms, expect } = asked.item.clone()?;
        self.grant.pass().need(Right::Publish, &to)?;
        if envelope.len() > MAX_ENVELOPE_BYTES {
            return Err(Error::TooLarge { what: "envelope", limit: MAX_ENVELOPE_BYTES }.into());
        }
        let codec = self.frames.codec();
        let envelope = SCRATCH.with_borrow_mut(|scratch| {
            Envelope::read(scratch, self.app.hub.ids(), codec, envelope)
        })?;
        Ok(Item { topic: to, n, envelope, expect, delay_ms })
    }

    /// Notes what the hub answered.
    fn note(&mut self, answers: &mut Vec<Answered>) {
        for Answered { stream, from, to, result } in answers.drain(..) {
            let numbers = Numbers { from, to };
            match result {
                Ok(placed) => {
                    self.credit.answered(numbers);
                    let (outcome, level) = (placed.first, placed.level.into());
                    let placed = Placed { stream, numbers, outcome, level };
                    self.told.push(PublishFrame::Published(placed));
                }
                Err(error) => {
                    let refusal = Refusal::from(error);
                    self.app.refused.note(&refusal);
                    let (stream, error) = (stream.to_string(), refusal.wire());
                    self.refuse(NotPlaced { stream, numbers, error });
                }
            }
        }
    }

    fn refuse(&mut self, refused: NotPlaced) {
        self.credit.answered(refused.numbers);
        self.told.push(PublishFrame::Refused(refused));
    }
}

thread_local! {
    static SCRATCH: RefCell<Transcoder> = RefCell::new(Transcoder::new());
}
