//! `/v1/consumers/{topic}`: consumers as those see and steer them who run them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealane_codec::DatumWriter;
use sealane_message::Topic;
use sealane_protocol::limits::MAX_RANGE_MESSAGES;
use sealane_protocol::{
    ConsumerInfo, ConsumerVerb, ConsumersPage, Error, StreamsQuery, read_consumer_query,
    write_consumer_removed,
};
use sealane_stream::limits::MAX_SHOWN_PENDING;

use crate::access::{RequestPass, TokenRight};
use crate::app::NodeApp;
use crate::audit::{AuditDetail, detailed};
use crate::body;
use crate::limits::MAX_SHOWN_CONNECTIONS;
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::{MadeReply, ReplyFill, accepted, answer, answer_in, answer_metered, place_for};
use crate::streams::StreamsWish;

/// The consumers of all streams that are asked for and may be read, in the order of topics. A page
/// ends behind a whole stream, so that it may have more of them than `limit`.
pub(crate) async fn list(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = || -> Result<_, HttpRefusal> {
        let query = StreamsQuery::read(query::read(query)?)?;
        accepted(&headers)?;
        Ok(query)
    };
    let query = match asked() {
        Ok(query) => query,
        Err(refusal) => return answer(&headers, Err(refusal)),
    };
    let (app, pass, headers, query) = (&app, &pass, &headers, &query);
    let make = async || {
        let page = page_of(app, pass, query.clone()).await?;
        let fill = Box::new(move |writer: &mut DatumWriter<'_>| page.write(writer));
        Ok(MadeReply::new(headers, StatusCode::OK, fill))
    };
    answer_metered(app, pass, headers, make).await
}

async fn page_of(
    app: &NodeApp,
    pass: &RequestPass,
    mut query: StreamsQuery,
) -> Result<ConsumersPage, HttpRefusal> {
    let limit = query.limit.take().unwrap_or(MAX_RANGE_MESSAGES);
    let mut wish = StreamsWish::new(query);
    let mut page = ConsumersPage { consumers: Vec::new(), next: None };
    loop {
        let (streams, is_cut) = wish.grant(app, pass).await;
        let last = streams.last().map(|state| state.stream.clone());
        for state in streams.into_iter().filter(|state| !state.consumers.is_empty()) {
            if page.consumers.len() >= limit {
                return Ok(page);
            }
            match app.hub.consumers(&state.stream).await {
                Ok(found) => page.consumers.extend(found.consumers),
                // It was removed since it was found.
                Err(Error::UnknownStream(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            page.next = Some(state.stream);
        }
        if !is_cut || last.is_none() {
            page.next = None;
            return Ok(page);
        }
        wish.go_on(last);
    }
}

/// All consumers of a stream, or the one that the query names.
pub(crate) async fn show(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = || -> Result<_, HttpRefusal> {
        let topic = pass.topic(TokenRight::Read, &topic)?;
        let consumer = read_consumer_query(query::read(query)?)?;
        accepted(&headers)?;
        Ok((topic, consumer))
    };
    let (topic, consumer) = match asked() {
        Ok(asked) => asked,
        Err(refusal) => return answer(&headers, Err(refusal)),
    };
    let (app, headers, topic, consumer) = (&app, &headers, &topic, consumer.as_deref());
    let make = move || async move {
        let fill: ReplyFill = match consumer {
            Some(consumer) => {
                let info = inform(app, topic, consumer).await?;
                Box::new(move |writer: &mut DatumWriter<'_>| info.write(writer))
            }
            None => {
                let consumers = app.hub.consumers(topic).await?;
                Box::new(move |writer: &mut DatumWriter<'_>| consumers.write(writer))
            }
        };
        Ok(MadeReply::new(headers, StatusCode::OK, fill))
    };
    answer_metered(app, &pass, headers, make).await
}

/// Bytes of a consumer with what it shows of messages and connections, in the longest codec.
const STEERED_BYTES: usize = 192 * (MAX_SHOWN_PENDING + MAX_SHOWN_CONNECTIONS);

/// Steers a consumer; the reply is how it is afterwards.
pub(crate) async fn steer(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    query: RawQuery,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let result = async {
        let topic = pass.topic(TokenRight::Manage, &topic)?;
        let consumer = named(query)?;
        accepted(&headers)?;
        // Right and codec were checked before. A client without the right cannot make the node read
        // its body.
        let body = body::read(&app.fair, &pass, request).await?;
        let verb = ConsumerVerb::read(body.codec, &body.bytes)?;
        let detail = AuditDetail(verb.to_string());
        let place = place_for(&app, &pass, STEERED_BYTES).await?;
        app.hub.steer(&topic, &consumer, verb).await?;
        let info = inform(&app, &topic, &consumer).await?;
        let fill = Box::new(move |writer: &mut DatumWriter<'_>| info.write(writer)) as ReplyFill;
        Ok((detail, place, fill))
    };
    match result.await {
        Ok((detail, place, fill)) => {
            let reply = answer_in(place, &headers, Ok((StatusCode::OK, fill)));
            detailed(reply, Some(detail))
        }
        Err(refusal) => answer(&headers, Err(refusal)),
    }
}

/// Removes a consumer.
pub(crate) async fn remove(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let topic = pass.topic(TokenRight::Manage, &topic)?;
        let consumer = named(query)?;
        accepted(&headers)?;
        app.hub.remove_consumer(&topic, &consumer).await?;
        let fill =
            move |writer: &mut DatumWriter<'_>| write_consumer_removed(&topic, &consumer, writer);
        Ok(Box::new(fill) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}

/// One consumer, with those who share its work.
async fn inform(app: &NodeApp, topic: &Topic, consumer: &str) -> Result<ConsumerInfo, HttpRefusal> {
    let mut info = app.hub.consumer(topic, consumer).await?;
    let in_flight = app.hub.in_flight(topic)?;
    info.connections = Some(app.readers.of(topic, Some(consumer), &in_flight));
    Ok(info)
}

/// The consumer that something is done to. It is never meant by saying nothing: the inbox is named
/// by `consumer=`.
fn named(query: RawQuery) -> Result<String, Error> {
    let consumer = read_consumer_query(query::read(query)?)?;
    consumer.ok_or_else(|| Error::parameter("consumer", "is missing; the inbox is `consumer=`"))
}
