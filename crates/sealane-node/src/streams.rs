//! `/v1/streams`, `/v1/streams/{topic}` and `/v1/purge/{topic}`.

use std::sync::Arc;

use crate::limits::{MAX_LIST_LOOKS, MAX_LISTED_CONSUMERS};
use axum::Extension;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealane_codec::{Codec, DatumWriter};
use sealane_message::{Pattern, System, Topic};
use sealane_protocol::limits::MAX_RANGE_MESSAGES;
use sealane_protocol::{
    Purge, RangeQuery, StreamChange, StreamJoined, StreamState, StreamsPage, StreamsQuery,
    write_removed,
};
use sealane_stream::{StreamPage, SubscriptionOutput};

use crate::access::{RequestPass, TokenRight};
use crate::app::NodeApp;
use crate::audit::{AuditDetail, detailed};
use crate::body;
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::{MadeReply, ReplyFill, accepted, answer, answer_in, answer_metered, place_for};

pub(crate) async fn list(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = || -> Result<_, HttpRefusal> {
        let wish = StreamsWish::new(StreamsQuery::read(query::read(query)?)?);
        // A list that cannot be answered is not looked for.
        accepted(&headers)?;
        Ok(wish)
    };
    let wish = match asked() {
        Ok(wish) => wish,
        Err(refusal) => return answer(&headers, Err(refusal)),
    };
    let (app, pass, headers, wish) = (&app, &pass, &headers, &wish);
    let make = move || async move {
        let (streams, is_cut) = wish.grant(app, pass).await;
        let next = streams.last().filter(|_| is_cut).map(|state| state.stream.clone());
        let streams = StreamsPage { streams, next };
        let fill = Box::new(move |writer: &mut DatumWriter<'_>| streams.write(writer));
        Ok(MadeReply::new(headers, StatusCode::OK, fill))
    };
    answer_metered(app, pass, headers, make).await
}

pub(crate) async fn show(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = || -> Result<_, HttpRefusal> {
        let topic = pass.topic(TokenRight::Read, &topic)?;
        let parameters = query::read(query)?;
        let is_state = parameters.is_empty();
        let range = if is_state { None } else { Some(RangeQuery::read(parameters)?) };
        Ok((topic, range, accepted(&headers)?))
    };
    let (topic, range, codec) = match asked() {
        Ok(asked) => asked,
        Err(refusal) => return answer(&headers, Err(refusal)),
    };
    let (app, headers, topic) = (&app, &headers, &topic);
    let make = move || async move {
        let fill: ReplyFill = match range {
            Some(range) => {
                let page = app.hub.read(topic, range.from, range.limit).await?;
                write_page(page, codec)
            }
            None => {
                let mut state = app.hub.stream(topic)?;
                // Only this answer names connections. In a list they would be a search for each
                // stream.
                state.connections = Some(app.readers.of(topic, None, &app.hub.in_flight(topic)?));
                Box::new(move |writer: &mut DatumWriter<'_>| state.write(writer))
            }
        };
        Ok(MadeReply::new(headers, StatusCode::OK, fill))
    };
    answer_metered(app, &pass, headers, make).await
}

/// Bytes of a stream's state without its consumers, and of each of them, in the longest codec.
const STATE_BYTES: usize = 4 << 10;
const CONSUMER_BYTES: usize = 512;

pub(crate) async fn configure(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let result = async {
        let topic = pass.topic(TokenRight::Manage, &topic)?;
        // The node makes its records' streams. Another's could be such that none is stored.
        if topic.system() == Some(System::Audit) && app.hub.stream(&topic).is_err() {
            let right = TokenRight::Manage.on(&topic).name();
            return Err(HttpRefusal::Forbidden { right, on: topic.to_string() });
        }
        accepted(&headers)?;
        let body = body::read(&app.fair, &pass, request).await?;
        let change = StreamChange::read(body.codec, &body.bytes)?;
        let size = STATE_BYTES + CONSUMER_BYTES * app.hub.count_consumers(&topic);
        let place = place_for(&app, &pass, size).await?;
        let (state, made) = app.hub.configure_for(pass.owner(), &topic, change).await?;
        let status = if made { StatusCode::CREATED } else { StatusCode::OK };
        let fill = Box::new(move |writer: &mut DatumWriter<'_>| state.write(writer)) as ReplyFill;
        Ok((place, (status, fill)))
    };
    match result.await {
        Ok((place, reply)) => answer_in(place, &headers, Ok(reply)),
        Err(refusal) => answer(&headers, Err(refusal)),
    }
}

pub(crate) async fn remove(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let topic = pass.topic(TokenRight::Manage, &topic)?;
        accepted(&headers)?;
        app.hub.remove(&topic).await?;
        Ok(Box::new(move |writer: &mut DatumWriter<'_>| write_removed(&topic, writer)) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}

/// `/v1/purge/{topic}`.
pub(crate) async fn purge(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let result = async {
        let topic = pass.topic(TokenRight::Manage, &topic)?;
        accepted(&headers)?;
        let body = body::read(&app.fair, &pass, request).await?;
        let Purge { before } = Purge::read(body.codec, &body.bytes)?;
        let purged = app.hub.purge(&topic, before).await?;
        let detail = AuditDetail(format!("{} of {}", purged.purged, purged.next));
        let fill = move |writer: &mut DatumWriter<'_>| purged.write(writer);
        Ok((detail, Box::new(fill) as ReplyFill))
    };
    let (detail, result) = match result.await {
        Ok((detail, fill)) => (Some(detail), Ok((StatusCode::OK, fill))),
        Err(refusal) => (None, Err(refusal)),
    };
    detailed(answer(&headers, result), detail)
}

/// The request for a list.
pub(crate) struct StreamsWish {
    pattern: Option<Pattern>,
    after: Option<Topic>,
    limit: usize,
    /// A part of the topic.
    part: Option<String>,
}

impl StreamsWish {
    pub(crate) fn new(list: StreamsQuery) -> Self {
        let StreamsQuery { pattern, after, limit } = list;
        Self { pattern, after, limit: limit.unwrap_or(MAX_RANGE_MESSAGES), part: None }
    }

    /// Only streams whose topics have this part.
    pub(crate) fn containing(mut self, part: Option<String>) -> Self {
        self.part = part;
        self
    }

    /// Goes on behind a stream that was granted.
    pub(crate) fn go_on(&mut self, after: Option<Topic>) {
        self.after = after;
    }

    /// The first streams, by their topics, that may be read, and whether there may be more. No
    /// other is described, and none is named to go on from: the walk past those that may not be
    /// read ends behind one that may, and lets others have their turn until it comes to one.
    pub(crate) async fn grant(
        &self,
        app: &NodeApp,
        pass: &RequestPass,
    ) -> (Vec<StreamState>, bool) {
        let wanted = |topic: &Topic| {
            let is_asked = self.pattern.as_ref().is_none_or(|pattern| pattern.matches(topic));
            let has_part = self.part.as_ref().is_none_or(|part| topic.as_str().contains(part));
            is_asked && has_part && pass.may(TokenRight::Read, topic)
        };
        let (mut found, mut looked, mut consumers) = (Vec::<StreamState>::new(), 0, 0);
        for beginning in self.beginnings(pass) {
            let mut after = self.after.clone();
            loop {
                // One more than asked shows whether there are more, without a second look.
                let limit = self.limit + 1 - found.len();
                let listed = app.hub.streams(beginning, after.as_ref(), limit, wanted);
                consumers +=
                    listed.streams.iter().map(|state| state.consumers.len()).sum::<usize>();
                found.extend(listed.streams);
                looked += listed.looked;
                if found.len() > self.limit {
                    found.truncate(self.limit);
                    return (found, true);
                }
                if listed.next.is_none() {
                    break;
                }
                // The walk stops only behind a stream that may be read. Its name is the place to go
                // on, and must be no secret.
                let is_enough = looked >= MAX_LIST_LOOKS || consumers >= MAX_LISTED_CONSUMERS;
                if is_enough && !found.is_empty() {
                    return (found, true);
                }
                after = listed.next;
                tokio::task::yield_now().await;
            }
        }
        (found, false)
    }

    /// The beginnings of the topics that are asked for and may be read: in order, and none within
    /// another. Streams that begin otherwise are not even looked at.
    fn beginnings<'a>(&'a self, pass: &'a RequestPass) -> Vec<&'a str> {
        let asked = self.pattern.as_ref().map_or("", Pattern::beginning);
        let Some(granted) = pass.readable() else { return vec![asked] };
        let narrower = |granted: &'a Pattern| {
            let granted = granted.beginning();
            let is_within = asked.starts_with(granted);
            if granted.starts_with(asked) { Some(granted) } else { is_within.then_some(asked) }
        };
        let mut all: Vec<&str> = granted.iter().filter_map(narrower).collect();
        all.sort_unstable();
        // Sorted, a beginning stands right before those within it. So no stream is listed twice.
        all.dedup_by(|later, kept| later.starts_with(*kept));
        all
    }
}

fn write_page(page: StreamPage, codec: Codec) -> ReplyFill {
    let (mut messages, mut gaps) = (Vec::new(), Vec::new());
    for event in page.events {
        match event {
            SubscriptionOutput::Deliver(delivery) => messages.push(delivery.frame(codec)),
            SubscriptionOutput::Status(frame) => {
                let mut bytes = Vec::new();
                frame.write(codec, &mut bytes);
                gaps.push(bytes.into());
            }
        }
    }
    let StreamJoined { stream, generation, .. } = page.joined;
    let (next, end) = (page.next, page.end);
    let page = sealane_protocol::RangePage { stream, generation, messages, gaps, next, end };
    Box::new(move |writer| page.write(writer))
}
