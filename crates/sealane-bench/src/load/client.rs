//! A reader that does as little as it can: what is measured is the hub.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use sealane::{Client, Value};
use sealane_codec::Codec;
use sealane_protocol::{AckMark, Op, ServerFrame};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite::Message;

use super::worker::{BenchSocket, open_socket};
use crate::failure::{BenchFailure, Result};

/// How deliveries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AckMode {
    /// Not at all: a reader.
    None,
    /// One frame with its id for each.
    Each,
    /// One frame with a range of offsets for what came together.
    Range,
}

/// The deliveries that one connection saw.
#[derive(Debug, Default)]
pub(crate) struct ReaderTally {
    pub(crate) count: u64,
    /// Bytes of the frames that came, without what the connection puts around them.
    pub(crate) bytes: u64,
    pub(crate) latencies_us: Vec<u32>,
}

impl ReaderTally {
    /// Adds the deliveries that another connection saw.
    pub(crate) fn add(&mut self, other: ReaderTally) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.latencies_us.extend(other.latencies_us);
    }
}

pub(crate) struct LoadReader {
    socket: BenchSocket,
    codec: Codec,
    acks: AckMode,
}

/// Credit that a reader keeps open.
const WINDOW: u64 = 8192;

impl LoadReader {
    /// Opens `/v1/subscribe` with `query`.
    pub(crate) async fn open(
        address: &str,
        query: &str,
        codec: Codec,
        acks: AckMode,
    ) -> Result<Self> {
        let url = format!("ws://{address}/v1/subscribe?codec={}&{query}", codec.name());
        let socket = open_socket(url, 64 << 10).await?;
        Ok(Self { socket, codec, acks })
    }

    /// Reads until `count` deliveries came, or until `end`.
    pub(crate) async fn read(&mut self, count: u64, end: Instant) -> Result<ReaderTally> {
        let mut seen = ReaderTally::default();
        let mut granted = 0;
        self.grant(WINDOW * 2, &mut granted).await?;
        let deadline = tokio::time::Instant::from_std(end);
        while seen.count < count {
            let Ok(frame) = tokio::time::timeout_at(deadline, self.socket.next()).await else {
                break;
            };
            let mut frame = frame;
            // Frames that have come already are taken before anything is sent.
            loop {
                let message = frame.ok_or_else(|| BenchFailure::broken("a reader"))?;
                let message = message.map_err(|_| BenchFailure::broken("a reader"))?;
                self.take(message, &mut seen).await?;
                match self.socket.next().now_or_never() {
                    Some(next) => frame = next,
                    None => break,
                }
            }
            if granted - seen.count.min(granted) < WINDOW {
                self.grant(WINDOW, &mut granted).await?;
            }
            self.socket.flush().await.map_err(|_| BenchFailure::broken("a reader"))?;
        }
        Ok(seen)
    }

    async fn grant(&mut self, credit: u64, granted: &mut u64) -> Result<()> {
        *granted += credit;
        self.feed(&Op::Credit(credit)).await?;
        self.socket.flush().await.map_err(|_| BenchFailure::broken("a reader"))
    }

    async fn take(&mut self, message: Message, seen: &mut ReaderTally) -> Result<()> {
        let bytes = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Close(_) => return Err(BenchFailure::broken("a reader")),
            _ => return Ok(()),
        };
        seen.bytes += bytes.len() as u64;
        if let Some(id) = first_id(self.codec, &bytes) {
            seen.count += 1;
            note_latency(id, seen);
            match self.acks {
                AckMode::None => return Ok(()),
                AckMode::Each => {
                    let id = String::from_utf8_lossy(id).into_owned();
                    return self.feed(&Op::Ack(vec![AckMark::Id(id)])).await;
                }
                AckMode::Range => {}
            }
        }
        let frame =
            ServerFrame::read(self.codec, &bytes).map_err(|_| BenchFailure::broken("a reader"))?;
        let (first, last, count) = match &frame {
            ServerFrame::Deliver(one) => (one.offset, one.offset, 0),
            ServerFrame::Batch(all) => match (all.first(), all.last()) {
                (Some(first), Some(last)) => (first.offset, last.offset, all.len() as u64),
                _ => return Ok(()),
            },
            ServerFrame::Error(_) => return Err(BenchFailure::broken("a reader")),
            _ => return Ok(()),
        };
        seen.count += count;
        if self.acks == AckMode::Range {
            let range = AckMark::Range { stream: None, from: first, to: last };
            self.feed(&Op::Ack(vec![range])).await?;
        }
        Ok(())
    }

    async fn feed(&mut self, op: &Op) -> Result<()> {
        let mut frame = Vec::with_capacity(48);
        op.write(self.codec, &mut frame);
        let message = match String::from_utf8(frame) {
            Ok(text) if self.codec == Codec::Json => Message::text(text),
            Ok(text) => Message::binary(text.into_bytes()),
            Err(error) => Message::binary(error.into_bytes()),
        };
        self.socket.feed(message).await.map_err(|_| BenchFailure::broken("a reader"))
    }
}

/// The id of a single delivery, found without decoding: it is the envelope's first field.
fn first_id(codec: Codec, frame: &[u8]) -> Option<&[u8]> {
    match codec {
        Codec::Json => {
            let rest = frame.strip_prefix(br#"{"deliver":{"id":""#)?;
            rest.split(|byte| *byte == b'"').next()
        }
        Codec::MsgPack => {
            // The head of the map says how many fields there are, which grow in number.
            let rest = frame.get(1..)?.strip_prefix(b"\xa7deliver")?;
            let rest = rest.get(1..)?.strip_prefix(b"\xa2id")?;
            let size = usize::from(rest.first()? & 0x1f);
            rest.get(1..1 + size)
        }
        _ => {
            let rest = frame.get(1..)?.strip_prefix(b"\x67deliver")?;
            let rest = rest.get(1..)?.strip_prefix(b"\x62id")?;
            let (head, rest) = rest.split_first()?;
            match head {
                0x78 => rest.get(1..1 + usize::from(*rest.first()?)),
                head => rest.get(..usize::from(head & 0x1f)),
            }
        }
    }
}

/// An id is the time at which its message was sent, in microseconds, where latency is measured.
fn note_latency(id: &[u8], seen: &mut ReaderTally) {
    let sent = id.strip_prefix(b"t").and_then(|digits| std::str::from_utf8(digits).ok());
    let sent = sent.and_then(|digits| digits.split('-').next()?.parse::<u64>().ok());
    if let Some(sent) = sent {
        let late = now_us().saturating_sub(sent);
        seen.latencies_us.push(u32::try_from(late).unwrap_or(u32::MAX));
    }
}

/// Unix microseconds.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// An envelope of `bytes` bytes in `codec`, as near as its fields allow.
pub(crate) fn envelope(codec: Codec, id: String, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    let base = Value::Map(vec![("id".into(), id.into()), ("data".into(), "".into())]);
    sealane_codec::encode(codec, &base, &mut out);
    let filler = "x".repeat(bytes.saturating_sub(out.len()));
    let Value::Map(mut fields) = base else { return out };
    if let Some((_, data)) = fields.last_mut() {
        *data = Value::Text(filler);
    }
    out.clear();
    sealane_codec::encode(codec, &Value::Map(fields), &mut out);
    out
}

/// Publishes batches of `size` until `count` are stored or `end` comes; returns how many.
pub(crate) async fn publish(
    client: &Client,
    topic: &str,
    count: u64,
    size: usize,
    envelope_bytes: usize,
    end: Instant,
) -> Result<u64> {
    let mut sent = 0;
    while sent < count && Instant::now() < end {
        let wanted = (count - sent).min(size as u64);
        let batch: Vec<Vec<u8>> = (sent..sent + wanted)
            .map(|n| envelope(Codec::Json, format!("m{n:015}"), envelope_bytes))
            .collect();
        let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        client.publish_batch(topic, Codec::Json, &batch).await?;
        sent += wanted;
    }
    Ok(sent)
}

/// The value at `share` of the sorted `values`.
pub(crate) fn percentile(values: &mut [u32], share: f64) -> f64 {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    values.get(index).map_or(0.0, |value| f64::from(*value))
}

/// A point in time that is far away.
pub(crate) fn never() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

#[cfg(test)]
mod tests {
    use sealane_protocol::{DeliverHead, StreamPosition, write_deliver};

    use super::*;

    #[test]
    fn a_message_is_counted_in_every_codec() {
        for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
            for id in ["t1", "an id of twenty-seven bytes"] {
                let body = envelope(codec, id.to_owned(), 100);
                let (stream, position) =
                    ("a".parse().unwrap(), StreamPosition { generation: 1, offset: 2 });
                let head = DeliverHead { stream: &stream, position, attempt: 1, stored_ms: 3 };
                let mut frame = Vec::new();
                write_deliver(codec, &body, &head, &mut frame);
                assert_eq!(first_id(codec, &frame), Some(id.as_bytes()), "{codec:?}");
            }
        }
    }
}
