//! `GET /v1/overview`: the figures of the node and its streams as server-sent events, whenever
//! they have changed (spec/hub.md §7).
//!
//! A page that asked each second would pay a request for nothing most of the time. The node looks
//! instead, and is silent while nothing changes.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use sealane_codec::{Codec, DatumWriter};
use sealane_protocol::{
    Error, NodeOverview, OverviewCounters, ServerFrame, StreamsPage, StreamsQuery,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::access::RequestPass;
use crate::app::{NodeAlive, NodeApp};
use crate::clock::stopped;
use crate::events::data;
use crate::fair::ReplyHold;
use crate::limits::{
    EVENT_COMMENT_MS, MAX_REPLY_WAIT_MS, MAX_SEARCH_BYTES, OVERVIEW_LOOK_MS, OVERVIEW_REST,
};
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::answer;
use crate::routes::health_of;
use crate::served::ServedClient;
use crate::streams::StreamsWish;
use crate::tickets;

pub(crate) async fn overview(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let source = match OverviewSource::open(app, pass, query) {
        Ok(source) => source,
        Err(refusal) => return answer(&headers, Err(refusal)),
    };
    let pieces = stream::unfold(source, |mut source| async move {
        let piece = source.next().await?;
        Some((Ok::<_, Infallible>(piece), source))
    });
    let fields = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (fields, Body::from_stream(pieces)).into_response()
}

/// The streams that are asked for: as a list is, and by a part of their topics.
fn read(query: RawQuery) -> Result<StreamsWish, HttpRefusal> {
    let (mut of_list, mut part) = (Vec::new(), None);
    for (name, value) in query::read(query)? {
        match name.as_str() {
            "contains" if value.len() > MAX_SEARCH_BYTES => {
                return Err(Error::parameter("contains", "is longer than a topic").into());
            }
            "contains" => part = Some(value).filter(|part| !part.is_empty()),
            // It was used where the sender was let in.
            tickets::PARAMETER => {}
            _ => of_list.push((name, value)),
        }
    }
    Ok(StreamsWish::new(StreamsQuery::read(of_list)?).containing(part))
}

/// The overview of one client.
struct OverviewSource {
    app: Arc<NodeApp>,
    pass: RequestPass,
    wish: StreamsWish,
    stopping: watch::Receiver<bool>,
    /// The hash of what the client was told last.
    told: Option<u64>,
    /// The event that is being sent, in pieces.
    sent: Option<ReplyHold>,
    /// When the node looks next, and when a client that hears nothing is shown that it is served.
    look: Instant,
    comment: Instant,
    ended: bool,
    _served: ServedClient,
    _alive: NodeAlive,
}

impl OverviewSource {
    fn open(app: Arc<NodeApp>, pass: RequestPass, query: RawQuery) -> Result<Self, HttpRefusal> {
        let wish = read(query)?;
        let _alive = app.alive().filter(|_| !app.is_stopping()).ok_or(Error::Draining)?;
        let _served = app.serving.enter()?;
        let (stopping, now) = (app.stopping.clone(), Instant::now());
        let (told, sent, look, comment, ended) = (None, None, now, now, false);
        Ok(Self { app, pass, wish, stopping, told, sent, look, comment, ended, _served, _alive })
    }

    /// The bytes that are sent next, when the client has taken those before.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.sent.as_ref().map(ReplyHold::next_piece) {
                // Others lacked room, and this client took nothing. It comes back.
                Some(None) => return None,
                Some(Some(piece)) if !piece.is_empty() => return Some(piece),
                _ => self.sent = None,
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => {
                    return Some(self.refuse(&Error::Draining.into()));
                }
                () = sleep_until(self.look) => {}
            }
            match self.tell().await {
                Err(refusal) => return Some(self.refuse(&refusal)),
                Ok(Some(hold)) => self.sent = Some(hold),
                Ok(None) if Instant::now() >= self.comment => {
                    self.rest();
                    return Some(Bytes::from_static(b":\n\n"));
                }
                Ok(None) => {}
            }
        }
    }

    /// Looks, and makes the event if something has changed.
    async fn tell(&mut self) -> Result<Option<ReplyHold>, HttpRefusal> {
        let began = Instant::now();
        // The token may have been taken back or changed since the last look.
        self.pass = self.app.access.renew(self.pass.clone())?;
        let (owner, parts) = (self.pass.reply_owner(), self.app.reply_parts());
        let until = began + Duration::from_millis(MAX_REPLY_WAIT_MS);
        let turn = self.app.fair.replies.turn(&owner, parts, until).await;
        let turn = turn.ok_or(HttpRefusal::RepliesUnread)?;
        let looked = Instant::now();
        let event = self.event().await;
        // A search through very many streams must not take a processor for each page that is open.
        let rest = looked.elapsed().saturating_mul(OVERVIEW_REST);
        self.look = Instant::now() + rest.max(Duration::from_millis(OVERVIEW_LOOK_MS));
        let mut hasher = DefaultHasher::new();
        event.hash(&mut hasher);
        let told = Some(hasher.finish());
        if told == self.told {
            return Ok(None);
        }
        // Where there is no room now, it is told at the next look.
        let Some(hold) = self.app.large(&owner, event.len()) else { return Ok(None) };
        drop(turn);
        hold.fill(event);
        self.told = told;
        self.rest();
        Ok(Some(hold))
    }

    /// The client hears something now.
    fn rest(&mut self) {
        self.comment = Instant::now() + Duration::from_millis(EVENT_COMMENT_MS);
    }

    async fn event(&self) -> Vec<u8> {
        let (streams, is_cut) = self.wish.grant(&self.app, &self.pass).await;
        let next = streams.last().filter(|_| is_cut).map(|state| state.stream.clone());
        let counters = self.pass.need_observe().is_ok().then(|| self.counters());
        let page = StreamsPage { streams, next };
        let overview = NodeOverview { node: health_of(&self.app), counters, page };
        let mut text = Vec::with_capacity(256);
        overview.write(&mut DatumWriter::new(Codec::Json, &mut text));
        let mut event = Vec::with_capacity(text.len() + 16);
        data(&text, &mut event);
        event
    }

    fn counters(&self) -> OverviewCounters {
        let all = self.app.hub.metrics().all();
        let of = |name: &str| {
            let counter = all.iter().find(|counter| counter.name == name);
            counter.map_or(0, |counter| counter.value)
        };
        OverviewCounters {
            stored: of("sealane_stream_stored_total"),
            delivered: of("sealane_stream_delivered_total"),
            acked: of("sealane_stream_acked_total"),
            redelivered: of("sealane_stream_redelivered_total"),
        }
    }

    /// The reason is sent as a last event. Then the body ends.
    fn refuse(&mut self, refusal: &HttpRefusal) -> Bytes {
        self.app.refused.note(refusal);
        self.ended = true;
        let (mut frame, mut event) = (Vec::new(), b"event: refused\n".to_vec());
        ServerFrame::Error(refusal.wire()).write(Codec::Json, &mut frame);
        data(&frame, &mut event);
        event.into()
    }
}
