//! `GET /v1/events`: the messages of a reader as server-sent events (spec/hub.md §7).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::limits::{EVENT_COMMENT_MS, MAX_EVENT_STREAMS, MAX_REPLY_WAIT_MS};
use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use sealane_codec::Codec;
use sealane_message::{Pattern, Topic};
use sealane_protocol::{Error, Op, ReadStart, ServerFrame};
use sealane_stream::{StreamSubscription, SubscriptionOutput, SubscriptionReader, take_encoded};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::{ConnectionGrant, RequestPass};
use crate::app::{NodeAlive, NodeApp};
use crate::clock::{now_ms, stopped};
use crate::fair::{DeliveryShare, ReplyHold, ReplyOwner};
use crate::query::{self, unescape};
use crate::readers::EnteredReader;
use crate::refusal::HttpRefusal;
use crate::reply::answer;
use crate::served::ServedClient;
use crate::tickets;

/// The header by which a client says what it had last.
const LAST_EVENT_ID: &str = "last-event-id";

/// Messages that are taken at once: the client's connection holds back what comes after.
const TAKE: usize = 64;

pub(crate) async fn events(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let source = match open(app, pass, query, &headers).await {
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

async fn open(
    app: Arc<NodeApp>,
    pass: RequestPass,
    query: RawQuery,
    headers: &HeaderMap,
) -> Result<EventSource, HttpRefusal> {
    let EventsQuery { pattern, from, last_event_id } = read(query)?;
    let owner = pass.reply_owner();
    // The grant is taken before the subscription, so that a token revoked in between is noticed.
    let grant = ConnectionGrant::reading(app.access.clone(), pass, pattern.clone())?;
    let alive = app.alive().filter(|_| !app.is_stopping()).ok_or(Error::Draining)?;
    let served = app.serving.enter()?;
    // The header wins: a browser that comes back by itself repeats the query of its first request.
    let named = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or_default().to_owned());
    let (mut cursor, from) = begin(named.or(last_event_id).as_deref(), from)?;
    let who = SubscriptionReader::Reader { start: from, generation: None };
    let (mut subscription, joined) = app.hub.subscribe(pattern.clone(), who.clone()).await?;
    for (topic, (generation, next)) in &cursor.streams {
        let (stream, generation) = (Some(topic.clone()), Some(*generation));
        // The cursor's places are sought before credit is given. Nothing can be delivered from
        // another place.
        subscription.apply(Op::Seek { stream, offset: *next, generation })?;
    }
    if let Some(joined) = joined.filter(|joined| joined.generation > 0) {
        // A place that the client brought wins over the one where the hub would begin.
        cursor.streams.entry(joined.stream).or_insert((joined.generation, joined.offset));
    }
    subscription.apply(Op::Credit(TAKE as u64))?;
    // A client that is cut off before the first message comes back to where it began.
    let mut out = b"id: ".to_vec();
    cursor.write(&mut out);
    out.extend_from_slice(b"\n\n");
    let shown = app.readers.enter(&subscription, pattern, &who, Codec::Json.name());
    let stopping = app.stopping.clone();
    Ok(EventSource {
        app,
        grant,
        subscription,
        cursor,
        stopping,
        out,
        held: None,
        large: None,
        owner,
        ended: false,
        shown,
        _served: served,
        _alive: alive,
    })
}

/// The parameters of an event source.
struct EventsQuery {
    pattern: Pattern,
    from: ReadStart,
    /// The `id` of the last event that the client had, if the query says it. A page that opens a
    /// new source can set no header.
    last_event_id: Option<String>,
}

fn read(query: RawQuery) -> Result<EventsQuery, HttpRefusal> {
    let (mut pattern, mut from, mut last_event_id) = (None, ReadStart::New, None);
    for (name, value) in query::read(query)? {
        match name.as_str() {
            "stream" => pattern = Some(value.parse::<Pattern>().map_err(Error::from)?),
            "from" => from = value.parse()?,
            // A page may hand on the nothing that it had.
            "lastEventId" => last_event_id = Some(value).filter(|id| !id.is_empty()),
            // It was used where the sender was let in.
            tickets::PARAMETER => {}
            _ => return Err(Error::parameter(name, "is no parameter of an event source").into()),
        }
    }
    let pattern = pattern.ok_or_else(|| Error::parameter("stream", "is missing"))?;
    Ok(EventsQuery { pattern, from, last_event_id })
}

/// The cursor of a client, and from where it reads streams that the cursor does not name.
fn begin(id: Option<&str>, from: ReadStart) -> Result<(EventCursor, ReadStart), Error> {
    let Some(id) = id else {
        let since = match from {
            ReadStart::New => now_ms(),
            ReadStart::Time(time_ms) => time_ms,
            ReadStart::First | ReadStart::Offset(_) => 0,
        };
        return Ok((EventCursor { since, streams: BTreeMap::new() }, from));
    };
    let wrong = || Error::parameter("Last-Event-ID", "is none that this hub has given");
    let cursor = EventCursor::read(id).ok_or_else(wrong)?;
    // Of streams that it has had nothing of, it has missed what came since it began.
    let since = ReadStart::Time(cursor.since);
    Ok((cursor, since))
}

/// The position behind the last event that was sent: the `id` of the next event.
#[derive(Debug, Clone, PartialEq)]
struct EventCursor {
    /// Of streams that are not below, all from this time on is still to come.
    since: u64,
    /// Generation and next offset.
    streams: BTreeMap<Topic, (u64, u64)>,
}

impl EventCursor {
    /// `SINCE`, and for each stream `,GENERATION-NEXT-TOPIC`.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.since.to_string().as_bytes());
        for (topic, (generation, next)) in &self.streams {
            out.extend_from_slice(format!(",{generation}-{next}-").as_bytes());
            for byte in topic.as_str().bytes() {
                // A header carries ASCII, and a comma stands between two.
                match byte {
                    b',' | b'%' | 0..=0x20 | 0x7f.. => {
                        out.extend_from_slice(format!("%{byte:02X}").as_bytes());
                    }
                    byte => out.push(byte),
                }
            }
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let since = parts.next()?.parse().ok()?;
        let mut streams = BTreeMap::new();
        for part in parts {
            let (generation, rest) = part.split_once('-')?;
            let (next, topic) = rest.split_once('-')?;
            let position = (generation.parse().ok()?, next.parse().ok()?);
            streams.insert(unescape(topic)?.parse().ok()?, position);
            // The header comes from the client, and each stream in it costs memory here.
            if streams.len() > MAX_EVENT_STREAMS {
                return None;
            }
        }
        Some(Self { since, streams })
    }
}

/// The events of one client.
struct EventSource {
    app: Arc<NodeApp>,
    grant: ConnectionGrant,
    subscription: StreamSubscription,
    cursor: EventCursor,
    stopping: watch::Receiver<bool>,
    out: Vec<u8>,
    /// The share of the common memory that the last sent bytes hold.
    held: Option<DeliveryShare>,
    /// Events that are larger than a share, and leave in pieces.
    large: Option<ReplyHold>,
    owner: ReplyOwner,
    ended: bool,
    shown: EnteredReader,
    _served: ServedClient,
    _alive: NodeAlive,
}

impl EventSource {
    /// The bytes that are sent next, when the client has taken those before.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(piece) = self.next_of_large() {
            return piece;
        }
        let (mut events, mut before) = (Vec::new(), None);
        // The client has taken the last piece by now, and with it goes its share of memory.
        self.held = None;
        while self.out.is_empty() {
            if self.ended {
                return None;
            }
            let step = tokio::select! {
                // In this order: what is ready when a token is taken back is sent no more.
                biased;
                granted = self.grant.changed() => granted,
                () = stopped(&mut self.stopping) => Err(Error::Draining.into()),
                () = self.subscription.ready() => {
                    // The share is taken when something is there. Idle sources hold none.
                    let share = self.app.share();
                    let bytes = share.bytes();
                    self.held = Some(share);
                    let taken = self.subscription.take(TAKE, bytes, &mut events).await;
                    taken.map_err(HttpRefusal::from)
                }
                () = tokio::time::sleep(Duration::from_millis(EVENT_COMMENT_MS)) => {
                    self.out.extend_from_slice(b":\n\n");
                    Ok(())
                }
            };
            before = (!events.is_empty()).then(|| self.cursor.clone());
            if let Err(refusal) = step.and_then(|()| self.tell(&events)) {
                self.refuse(&refusal);
            }
        }
        if let Some(held) = &mut self.held {
            if held.is_large(self.out.len()) {
                let before = before.unwrap_or_else(|| self.cursor.clone());
                return self.begin_large(&events, before).await;
            }
            // The share was an upper bound. The part that was not needed goes back at once.
            held.keep(self.out.len());
        }
        Some(std::mem::take(&mut self.out).into())
    }

    /// Sends what no share allows in pieces, once there is room for it. If that takes too long the
    /// client is told so, and comes back to the same place.
    async fn begin_large(
        &mut self,
        events: &[SubscriptionOutput],
        before: EventCursor,
    ) -> Option<Bytes> {
        let bytes = std::mem::take(&mut self.out);
        let Some(hold) = self.app.large(&self.owner, bytes.len()) else {
            return self.wait_for_large(events, before, bytes).await;
        };
        self.held = None;
        hold.fill(bytes);
        self.large = Some(hold);
        self.next_of_large().flatten()
    }

    /// Waits for room as other replies do, and makes the events anew. Their text is not held
    /// meanwhile. The events are, and with them the JSON frames of their blocks.
    async fn wait_for_large(
        &mut self,
        events: &[SubscriptionOutput],
        before: EventCursor,
        bytes: Vec<u8>,
    ) -> Option<Bytes> {
        let (len, after) = (bytes.len(), std::mem::replace(&mut self.cursor, before));
        // The text is as large as the frames, and is made again from them.
        drop(bytes);
        let room = self.large_room(len).await;
        self.held = None;
        match room {
            Ok(hold) => {
                if let Err(refusal) = self.write(events) {
                    // It was noted the first time.
                    self.status(&ServerFrame::Error(refusal.wire()));
                }
                debug_assert_eq!(self.cursor, after, "the same events lead to the same place");
                hold.fill(std::mem::take(&mut self.out));
                self.large = Some(hold);
                self.next_of_large().flatten()
            }
            Err(refusal) => {
                self.refuse(&refusal);
                Some(std::mem::take(&mut self.out).into())
            }
        }
    }

    /// Room for so many bytes, as soon as there is some.
    async fn large_room(&mut self, bytes: usize) -> Result<ReplyHold, HttpRefusal> {
        // Nobody counts the frames that a source holds while it waits. Few may wait, so that they
        // are no more than the replies that are made at once.
        let place = self.app.fair.replies.wait_place(&self.owner, self.app.reply_parts());
        let _place = place.ok_or(HttpRefusal::RepliesUnread)?;
        let until = Instant::now() + Duration::from_millis(MAX_REPLY_WAIT_MS);
        loop {
            let has_time = tokio::select! {
                biased;
                // A token that is taken back waits for nothing.
                granted = self.grant.changed() => granted.map(|()| true),
                () = stopped(&mut self.stopping) => Err(Error::Draining.into()),
                has_time = self.app.fair.replies.wait(until) => Ok(has_time),
            }?;
            if let Some(hold) = self.app.large(&self.owner, bytes) {
                return Ok(hold);
            }
            if !has_time {
                return Err(HttpRefusal::RepliesUnread);
            }
        }
    }

    /// The next piece of what is sent in pieces, where something is: none, where it was cut off.
    fn next_of_large(&mut self) -> Option<Option<Bytes>> {
        let piece = self.large.as_ref()?.next_piece();
        match piece {
            Some(piece) if piece.is_empty() => {
                self.large = None;
                None
            }
            piece => Some(piece),
        }
    }

    fn tell(&mut self, events: &[SubscriptionOutput]) -> Result<(), HttpRefusal> {
        let delivered = self.write(events)?;
        self.app.hub.metrics().encoded.fetch_add(take_encoded(), Ordering::Relaxed);
        // Credit comes back once the piece is made. The body stream asks for the next piece only
        // after this one is sent.
        self.subscription.apply(Op::Credit(delivered))?;
        self.shown.note(delivered as usize, self.subscription.credit());
        Ok(())
    }

    /// Writes events behind what is to be sent; returns how many of them are messages.
    fn write(&mut self, events: &[SubscriptionOutput]) -> Result<u64, HttpRefusal> {
        let mut delivered = 0;
        for event in events {
            match event {
                SubscriptionOutput::Deliver(delivery) => {
                    delivered += 1;
                    let (topic, generation) = (delivery.stream(), delivery.generation());
                    let next = (generation, delivery.offset() + 1);
                    let known = self.cursor.streams.len();
                    if self.cursor.streams.insert(topic.clone(), next).is_none()
                        && known >= MAX_EVENT_STREAMS
                    {
                        let limit = MAX_EVENT_STREAMS as u64;
                        let what = "streams of one event source";
                        return Err(Error::TooMany { what, limit }.into());
                    }
                    self.out.extend_from_slice(b"id: ");
                    self.cursor.write(&mut self.out);
                    self.out.push(b'\n');
                    data(&delivery.frame(Codec::Json), &mut self.out);
                }
                SubscriptionOutput::Status(frame) => self.status(frame),
            }
        }
        Ok(delivered)
    }

    fn status(&mut self, frame: &ServerFrame) {
        let name: &[u8] = match frame {
            ServerFrame::Gap { .. } => b"event: gap\n",
            ServerFrame::Error(_) => b"event: refused\n",
            _ => b"event: joined\n",
        };
        self.out.extend_from_slice(name);
        let mut bytes = Vec::with_capacity(128);
        frame.write(Codec::Json, &mut bytes);
        data(&bytes, &mut self.out);
    }

    fn refuse(&mut self, refusal: &HttpRefusal) {
        self.app.refused.note(refusal);
        self.status(&ServerFrame::Error(refusal.wire()));
        // The reason is sent as a last event. Then the body ends, and the client comes back with
        // its cursor.
        self.ended = true;
    }
}

/// The lines of an event. An envelope is sent as it was written, and JSON may have line ends.
pub(crate) fn data(bytes: &[u8], out: &mut Vec<u8>) {
    for line in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use axum::http::header::AUTHORIZATION;
    use sealane_codec::Transcoder;
    use sealane_stream::{StreamEnqueue, StreamEnvelope};

    use super::*;
    use crate::access::{TokenFile, TokenRights, TokenSecret};
    use crate::limits::{MAX_REPLIES_BYTES, MAX_REPLIES_MADE, REPLY_PIECE_BYTES};
    use crate::{Config, HubNode};

    /// A node with a message, and a token that reads everything.
    async fn guarded(folder: &std::path::Path) -> (HubNode, RequestPass) {
        let secret = TokenSecret::new([1; 32]);
        let rights = TokenRights { read: vec!["**".parse().unwrap()], ..TokenRights::default() };
        TokenFile::add(folder, "reader", &secret, rights, None).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = Config { listen, data: folder.to_owned(), ..Config::default() };
        let node = HubNode::start(config).await.unwrap();
        store(&node, Codec::Json, br#"{"secret": 1}"#).await;
        let bearer = format!("Bearer {}", secret.reveal());
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer.parse().unwrap())]);
        let pass = node.app.access.admit(&headers).ok().unwrap();
        (node, pass)
    }

    async fn store(node: &HubNode, codec: Codec, raw: &[u8]) {
        let envelope = StreamEnvelope::read(&mut Transcoder::new(), node.hub().ids(), codec, raw);
        let (topic, envelopes) = ("a".parse().unwrap(), vec![envelope.unwrap()]);
        let (expect, delay_ms, key, owner) = (None, None, None, "".into());
        let one = StreamEnqueue { topic, envelopes, expect, delay_ms, key, owner };
        node.hub().enqueue(one).await.unwrap();
    }

    /// Stores a message whose event no share allows: in JSON it is six times as long.
    async fn store_wide(node: &HubNode) {
        let json = format!(r#"{{"id": "wide", "x": "{}"}}"#, "\\u0001".repeat(1_000_000));
        let value = sealane_codec::decode(Codec::Json, json.as_bytes()).unwrap();
        let mut raw = Vec::new();
        sealane_codec::encode(Codec::MsgPack, &value, &mut raw);
        store(node, Codec::MsgPack, &raw).await;
    }

    /// Reads everything from the first message on.
    async fn reading(node: &HubNode, pass: &RequestPass) -> Result<EventSource, HttpRefusal> {
        let query = RawQuery(Some("stream=**&from=first".to_owned()));
        open(node.app.clone(), pass.clone(), query, &HeaderMap::new()).await
    }

    fn revoke(node: &HubNode) {
        TokenFile::revoke(&node.folder, "reader").unwrap();
        node.reload().unwrap();
    }

    #[tokio::test]
    async fn a_token_that_went_between_admission_and_subscription_reads_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (node, pass) = guarded(folder.path()).await;
        assert!(reading(&node, &pass).await.is_ok());
        revoke(&node);
        assert!(matches!(reading(&node, &pass).await, Err(HttpRefusal::Unauthorized)));
    }

    #[tokio::test]
    async fn what_is_ready_when_a_token_is_taken_back_is_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        let (node, pass) = guarded(folder.path()).await;
        // Many, since a choice between two that are ready would be right every other time.
        let mut sources = Vec::new();
        for _ in 0..16 {
            let mut source = reading(&node, &pass).await.ok().unwrap();
            assert!(source.next().await.unwrap().starts_with(b"id: "));
            sources.push(source);
        }
        revoke(&node);
        for mut source in sources {
            let said = source.next().await.unwrap();
            assert!(said.starts_with(b"event: refused\n"), "{said:?}");
            assert!(source.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn what_lacks_room_waits_for_it_as_other_replies_do() {
        let folder = tempfile::tempdir().unwrap();
        let (node, pass) = guarded(folder.path()).await;
        store_wide(&node).await;
        let all = MAX_REPLIES_BYTES - REPLY_PIECE_BYTES;
        let fill = || node.app.large(&ReplyOwner::Unknown, all).expect("all room is free");
        let soon = Duration::from_millis(200);
        let mut source = reading(&node, &pass).await.ok().unwrap();
        let (full, mut text) = (fill(), Vec::new());
        assert!(source.next().await.unwrap().starts_with(b"id: "));
        {
            let mut next = std::pin::pin!(source.next());
            let early = tokio::time::timeout(soon, &mut next).await;
            assert!(early.is_err(), "there is no room for {:?}", early.unwrap().map(|p| p.len()));
            drop(full);
            text.extend_from_slice(&next.await.unwrap());
            assert_eq!(text.len(), REPLY_PIECE_BYTES, "{}", String::from_utf8_lossy(&text));
        }
        // All events are whole, and each stands once.
        while !text.ends_with(b"\n\n") {
            text.extend_from_slice(&source.next().await.unwrap());
        }
        let text = String::from_utf8(text).unwrap();
        for once in [r#""secret""#, r#""wide""#, "event: joined\n"] {
            assert_eq!(text.matches(once).count(), 1, "{once}");
        }
        assert!(text.len() > 6_000_000, "{}", text.len());
        drop(source);
        // A token that is taken back while its source waits ends the wait.
        let mut source = reading(&node, &pass).await.ok().unwrap();
        let _full = fill();
        source.next().await.unwrap();
        let mut next = std::pin::pin!(source.next());
        assert!(tokio::time::timeout(soon, &mut next).await.is_err());
        revoke(&node);
        let said = next.await.unwrap();
        assert!(said.starts_with(b"event: refused\n"), "{:?}", &said[..said.len().min(100)]);
    }

    #[tokio::test]
    async fn where_as_many_wait_for_room_as_may_a_further_source_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (node, pass) = guarded(folder.path()).await;
        store_wide(&node).await;
        let all = MAX_REPLIES_BYTES - REPLY_PIECE_BYTES;
        let _full = node.app.large(&ReplyOwner::Unknown, all).expect("all room is free");
        let mut source = reading(&node, &pass).await.ok().unwrap();
        source.next().await.unwrap();
        let place = || node.app.fair.replies.wait_place(&source.owner, node.app.reply_parts());
        let places: Vec<_> = std::iter::from_fn(place).collect();
        assert_eq!(places.len(), MAX_REPLIES_MADE);
        let said = tokio::time::timeout(Duration::from_secs(5), source.next()).await;
        let said = said.expect("it does not wait").unwrap();
        assert!(said.starts_with(b"event: refused\n"), "{:?}", &said[..said.len().min(100)]);
        drop(places);
        let mut source = reading(&node, &pass).await.ok().unwrap();
        source.next().await.unwrap();
        let soon = Duration::from_millis(200);
        assert!(tokio::time::timeout(soon, source.next()).await.is_err(), "it waits");
    }

    #[test]
    fn an_id_reads_back_and_nothing_else_does() {
        let mut streams = BTreeMap::new();
        streams.insert("fleet/7".parse().unwrap(), (1_700_000_000, 17));
        streams.insert("a-b/ü, %41".parse().unwrap(), (0, u64::MAX));
        let cursor = EventCursor { since: 12, streams };
        let mut text = Vec::new();
        cursor.write(&mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(text.is_ascii() && HeaderValue::from_str(&text).is_ok(), "{text}");
        assert_eq!(EventCursor::read(&text), Some(cursor));
        for wrong in ["", "x", "1,", "1,2-3", "1,2-x-a", "1,2-3-a%", "1,2-3-a%ZZ", "1,2-3-", "-1"] {
            assert_eq!(EventCursor::read(wrong), None, "{wrong}");
        }
        let many: Vec<String> = (0..=MAX_EVENT_STREAMS).map(|n| format!(",1-1-s{n}")).collect();
        assert_eq!(EventCursor::read(&format!("1{}", many.concat())), None);
    }

    #[test]
    fn line_ends_within_json_make_lines() {
        let mut out = Vec::new();
        data(b"{\n\"a\":\r1}", &mut out);
        assert_eq!(out, b"data: {\ndata: \"a\":\ndata: 1}\n\n");
    }
}
