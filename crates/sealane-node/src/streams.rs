//! `/v1/streams` and `/v1/streams/{topic}`.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Extension;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealane_codec::{Codec, Writer};
use sealane_frame::GroupTag;
use sealane_message::limits::{MAX_LIST_LOOKS, MAX_RANGE_MESSAGES};
use sealane_message::{Pattern, Topic};
use sealane_stream::{Error, Event, From, Page, StreamInfo};

use crate::access::{Pass, Right};
use crate::body;
use crate::enqueue::unknown;
use crate::query;
use crate::readers::Shown;
use crate::refusal::Refusal;
use crate::reply::{Fill, accepted, answer};
use crate::routes::App;

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(pass): Extension<Pass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let wish = Wish::read(query)?;
        // What cannot be answered is not looked for.
        accepted(&headers)?;
        let (streams, is_cut) = wish.grant(&app, &pass).await;
        Ok((StatusCode::OK, write_list(streams, is_cut)))
    };
    answer(&headers, result.await)
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(pass): Extension<Pass>,
    Path(topic): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let topic: Topic = topic.parse().map_err(Error::from)?;
        pass.need(Right::Read, &topic)?;
        let parameters = query::read(query)?;
        if parameters.is_empty() {
            let info = app.hub.stream(&topic)?;
            let connections = app.readers.of(&topic, &app.hub.in_flight(&topic)?);
            let fill = move |writer: &mut Writer<'_>| write_state(writer, &info, &connections);
            return Ok(Box::new(fill) as Fill);
        }
        let (from, limit) = range(parameters)?;
        let codec = accepted(&headers)?;
        let page = app.hub.read(&topic, from, limit).await?;
        Ok(write_page(page, codec))
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}

pub(crate) async fn configure(
    State(app): State<Arc<App>>,
    Extension(pass): Extension<Pass>,
    Path(topic): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let result = async {
        let topic: Topic = topic.parse().map_err(Error::from)?;
        pass.need(Right::Manage, &topic)?;
        accepted(&headers)?;
        let body = body::read(&app.fair, &pass, request).await?;
        let change = Change::read(body.codec, &body.bytes)?;
        let (info, made) = app.hub.configure(&topic, change.sealed, change.settings).await?;
        let status = if made { StatusCode::CREATED } else { StatusCode::OK };
        Ok((status, Box::new(move |writer: &mut Writer<'_>| write_info(writer, &info)) as Fill))
    };
    answer(&headers, result.await)
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(pass): Extension<Pass>,
    Path(topic): Path<String>,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let topic: Topic = topic.parse().map_err(Error::from)?;
        pass.need(Right::Manage, &topic)?;
        accepted(&headers)?;
        app.hub.remove(&topic).await?;
        Ok(Box::new(move |writer: &mut Writer<'_>| {
            writer.map(2);
            writer.key("stream");
            writer.text(topic.as_str());
            writer.key("removed");
            writer.bool(true);
            writer.end();
        }) as Fill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}

/// The body of a `PUT`, as it is shown to whoever sent another one.
const CHANGE: &str = concat!(
    r#"any of {"level": "memory", "os" or "disk", "maxAgeMs": N, "maxCount": N, "#,
    r#""maxBytes": N, "sealed": GROUP}"#
);

/// What a `PUT` changes; what it leaves out stays.
#[derive(Default)]
struct Change {
    settings: sealane_stream::Change,
    sealed: Option<GroupTag>,
}

impl Change {
    fn read(codec: Codec, body: &[u8]) -> Result<Self, Refusal> {
        let mut change = Change::default();
        if body.is_empty() {
            return Ok(change);
        }
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        for (key, raw) in sealane_codec::fields(codec, body).map_err(decode)? {
            let number = |name: &'static str| {
                let cause = "is not an integer from 0";
                sealane_codec::read_u64(codec, raw).map_err(|_| Error::parameter(name, cause))
            };
            match key.as_ref() {
                "level" => {
                    let name = sealane_codec::read_text(codec, raw).map_err(decode)?;
                    let cause = "is memory, os or disk";
                    let level = name.parse().map_err(|_| Error::parameter("level", cause))?;
                    change.settings.level = Some(level);
                }
                "maxAgeMs" => change.settings.max_age_ms = Some(number("maxAgeMs")?),
                "maxCount" => change.settings.max_count = Some(number("maxCount")?),
                "maxBytes" => change.settings.max_bytes = Some(number("maxBytes")?),
                "sealed" => {
                    let name = sealane_codec::read_text(codec, raw).unwrap_or_default();
                    let cause = "is not a group tag: 8 lower-case hexadecimal digits";
                    let group = GroupTag::from_hex(&name);
                    let wrong = || Error::parameter("sealed", cause);
                    change.sealed = Some(group.ok_or_else(wrong)?);
                }
                other => return Err(unknown(other, CHANGE).into()),
            }
        }
        Ok(change)
    }
}

/// Where reading begins, as it stands in a query: `first`, `new`, an offset, an RFC 3339 time, or
/// `@` and Unix milliseconds.
pub(crate) fn read_from(text: &str) -> Result<From, Error> {
    let wrong = || {
        let cause = "is first, new, an offset, an RFC 3339 time, or @ and Unix milliseconds";
        Error::parameter("from", cause)
    };
    if let Some(time_ms) = text.strip_prefix('@') {
        return time_ms.parse().map(From::Time).map_err(|_| wrong());
    }
    match text {
        "first" => Ok(From::First),
        "new" => Ok(From::New),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map(From::Offset).map_err(|_| wrong())
        }
        time => {
            let time = humantime::parse_rfc3339(time).map_err(|_| wrong())?;
            let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
            Ok(From::Time(u64::try_from(since.as_millis()).map_err(|_| wrong())?))
        }
    }
}

/// What a list is asked for.
struct Wish {
    pattern: Option<Pattern>,
    after: Option<Topic>,
    limit: usize,
}

impl Wish {
    fn read(query: RawQuery) -> Result<Self, Refusal> {
        let mut wish = Wish { pattern: None, after: None, limit: MAX_RANGE_MESSAGES };
        for (name, value) in query::read(query)? {
            match name.as_str() {
                "pattern" => wish.pattern = Some(value.parse().map_err(Error::from)?),
                "after" => wish.after = Some(value.parse().map_err(Error::from)?),
                "limit" => wish.limit = read_limit(&value)?,
                _ => return Err(Error::parameter(name, "is no parameter of this request").into()),
            }
        }
        Ok(wish)
    }

    /// The first streams, by their topics, that may be read, and whether there may be more. No
    /// other is described, and none is named to go on from: the walk past those that may not be
    /// read ends behind one that may, and lets others have their turn until it comes to one.
    async fn grant(&self, app: &App, pass: &Pass) -> (Vec<StreamInfo>, bool) {
        let wanted = |topic: &Topic| {
            let is_asked = self.pattern.as_ref().is_none_or(|pattern| pattern.matches(topic));
            is_asked && pass.may(Right::Read, topic)
        };
        let (mut found, mut looked) = (Vec::new(), 0);
        for beginning in self.beginnings(pass) {
            let mut after = self.after.clone();
            loop {
                let limit = self.limit + 1 - found.len();
                let listed = app.hub.streams(beginning, after.as_ref(), limit, wanted);
                found.extend(listed.streams);
                looked += listed.looked;
                if found.len() > self.limit {
                    found.truncate(self.limit);
                    return (found, true);
                }
                if listed.next.is_none() {
                    break;
                }
                if looked >= MAX_LIST_LOOKS && !found.is_empty() {
                    return (found, true);
                }
                after = listed.next;
                tokio::task::yield_now().await;
            }
        }
        (found, false)
    }

    /// What the topics begin with that are asked for and may be read: in order, and none within
    /// another. Streams that begin otherwise are not even looked at.
    fn beginnings<'a>(&'a self, pass: &'a Pass) -> Vec<&'a str> {
        let asked = self.pattern.as_ref().map_or("", Pattern::beginning);
        let Some(granted) = pass.granted(Right::Read) else { return vec![asked] };
        let narrower = |granted: &'a Pattern| {
            let granted = granted.beginning();
            let is_within = asked.starts_with(granted);
            if granted.starts_with(asked) { Some(granted) } else { is_within.then_some(asked) }
        };
        let mut all: Vec<&str> = granted.iter().filter_map(narrower).collect();
        all.sort_unstable();
        all.dedup_by(|later, kept| later.starts_with(*kept));
        all
    }
}

fn write_list(streams: Vec<StreamInfo>, is_cut: bool) -> Fill {
    Box::new(move |writer| {
        let next = streams.last().filter(|_| is_cut);
        writer.map(1 + usize::from(next.is_some()));
        writer.key("streams");
        writer.array(streams.len());
        streams.iter().for_each(|info| write_info(writer, info));
        writer.end();
        if let Some(next) = next {
            writer.key("next");
            writer.text(next.stream.as_str());
        }
        writer.end();
    })
}

fn range(parameters: Vec<(String, String)>) -> Result<(From, usize), Refusal> {
    let (mut from, mut limit) = (None, MAX_RANGE_MESSAGES);
    for (name, value) in parameters {
        match name.as_str() {
            "from" => from = Some(read_from(&value)?),
            "limit" => limit = read_limit(&value)?,
            _ => return Err(Error::parameter(name, "is no parameter of this request").into()),
        }
    }
    Ok((from.ok_or_else(|| Error::parameter("from", "is missing"))?, limit))
}

fn read_limit(text: &str) -> Result<usize, Error> {
    let limit = text.parse().ok().filter(|n| (1..=MAX_RANGE_MESSAGES).contains(n));
    limit.ok_or_else(|| Error::parameter("limit", "is not an integer from 1 to 1000"))
}

fn write_page(page: Page, codec: Codec) -> Fill {
    Box::new(move |writer| {
        let mut messages = Vec::new();
        let mut gaps = Vec::new();
        for event in page.events {
            match event {
                Event::Deliver(delivery) => messages.push(delivery),
                Event::Status(frame) => {
                    let mut bytes = Vec::new();
                    frame.write(codec, &mut bytes);
                    gaps.push(bytes);
                }
            }
        }
        writer.map(6);
        writer.key("stream");
        writer.text(page.joined.stream.as_str());
        writer.key("generation");
        writer.u64(page.joined.generation);
        writer.key("messages");
        writer.array(messages.len());
        messages.iter().for_each(|delivery| writer.raw(&delivery.frame(codec)));
        writer.end();
        writer.key("gaps");
        writer.array(gaps.len());
        gaps.iter().for_each(|gap| writer.raw(gap));
        writer.end();
        writer.key("next");
        writer.u64(page.next);
        writer.key("end");
        writer.bool(page.end);
        writer.end();
    })
}

/// A stream's state, with those who read it.
fn write_state(writer: &mut Writer<'_>, info: &StreamInfo, connections: &[Shown]) {
    writer.map(INFO_FIELDS + 1);
    write_fields(writer, info);
    writer.key("connections");
    writer.array(connections.len());
    connections.iter().for_each(|shown| shown.write(writer));
    writer.end();
    writer.end();
}

fn write_info(writer: &mut Writer<'_>, info: &StreamInfo) {
    writer.map(INFO_FIELDS);
    write_fields(writer, info);
    writer.end();
}

/// What `write_fields` writes.
const INFO_FIELDS: usize = 16;

fn write_fields(writer: &mut Writer<'_>, info: &StreamInfo) {
    let numbers = [
        ("generation", info.generation),
        ("first", info.first),
        ("next", info.next),
        ("count", info.next - info.first),
        ("bytes", info.bytes),
        ("maxAgeMs", info.retention.max_age_ms),
        ("maxCount", info.retention.max_count),
        ("maxBytes", info.retention.max_bytes),
        ("createdMs", info.created_ms),
        ("lastMs", info.last_ms),
        ("readers", info.readers as u64),
    ];
    writer.key("stream");
    writer.text(info.stream.as_str());
    writer.key("level");
    writer.text(info.level.name());
    writer.key("sealed");
    match info.sealed {
        Some(group) => writer.text(&group.to_string()),
        None => writer.null(),
    }
    write_numbers(writer, &numbers);
    writer.key("consumers");
    writer.array(info.consumers.len());
    for consumer in &info.consumers {
        writer.map(7);
        writer.key("consumer");
        writer.text(&consumer.consumer);
        let numbers = [
            ("next", consumer.next),
            ("inFlight", consumer.in_flight as u64),
            ("members", consumer.members as u64),
            ("redelivered", consumer.redelivered),
            ("deadLettered", consumer.dead_lettered),
            ("deadDropped", consumer.dead_dropped),
        ];
        write_numbers(writer, &numbers);
        writer.end();
    }
    writer.end();
    writer.key("damaged");
    writer.array(info.damaged.len());
    for (from, to) in &info.damaged {
        writer.map(2);
        write_numbers(writer, &[("from", *from), ("to", *to)]);
        writer.end();
    }
    writer.end();
}

fn write_numbers(writer: &mut Writer<'_>, numbers: &[(&str, u64)]) {
    for (key, number) in numbers {
        writer.key(key);
        writer.u64(*number);
    }
}
