//! A publisher over `/v1/publish` that does as little as it can: what is measured is the hub.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use sealane_codec::Codec;
use sealane_message::Topic;
use sealane_protocol::{NumberRange, PublishFrame, PublishItem, write_publish};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite::Message;

use super::client::ReaderTally;
use super::worker::{BenchSocket, open_socket};
use crate::failure::{BenchFailure, Result};

/// How a publisher sends its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishPipeline {
    /// Messages that may be unanswered, if the hub gives credit for as many.
    pub(crate) window: u64,
    /// Messages of a frame, at most.
    pub(crate) frame: u64,
}

pub(crate) struct LoadPublisher {
    socket: BenchSocket,
    topic: Topic,
    envelope: Vec<u8>,
    /// The credit that the hub gives now.
    credit: u64,
    credit_bytes: i64,
    /// Messages sent so far, and when those were that have no answer yet.
    sent: u64,
    unanswered: VecDeque<Instant>,
    seen: ReaderTally,
}

impl LoadPublisher {
    pub(crate) async fn open(address: &str, topic: &str, envelope: Vec<u8>) -> Result<Self> {
        let topic = topic.parse().map_err(|_| BenchFailure::broken("a publisher"))?;
        let url = format!("ws://{address}/v1/publish?codec=json");
        let socket = open_socket(url, 64 << 10).await?;
        let (unanswered, seen) = (VecDeque::new(), ReaderTally::default());
        Ok(Self { socket, topic, envelope, credit: 0, credit_bytes: 0, sent: 0, unanswered, seen })
    }

    /// Publishes until `end`, and waits for the answers of what it has sent.
    pub(crate) async fn run(
        mut self,
        pipeline: PublishPipeline,
        end: Instant,
    ) -> Result<ReaderTally> {
        loop {
            let now = Instant::now();
            while now < end && self.room(pipeline) > 0 {
                self.send(self.room(pipeline)).await?;
            }
            if now >= end && self.unanswered.is_empty() {
                return Ok(self.seen);
            }
            self.socket.flush().await.map_err(|_| BenchFailure::broken("a publisher"))?;
            let mut frame = self.socket.next().await;
            // Frames that have come already are taken before anything is sent.
            loop {
                let message = frame.ok_or_else(|| BenchFailure::broken("a publisher"))?;
                self.take(message.map_err(|_| BenchFailure::broken("a publisher"))?)?;
                match self.socket.next().now_or_never() {
                    Some(next) => frame = next,
                    None => break,
                }
            }
        }
    }

    /// Messages of the next frame.
    fn room(&self, PublishPipeline { window, frame }: PublishPipeline) -> u64 {
        let is_open = self.credit_bytes > 0;
        let window = window.saturating_sub(self.unanswered.len() as u64);
        if is_open { window.min(self.credit).min(frame) } else { 0 }
    }

    /// Sends a frame of at most so many messages, as far as the credit goes.
    async fn send(&mut self, count: u64) -> Result<()> {
        let (mut items, mut size) = (Vec::new(), 0);
        let now = Instant::now();
        while (items.len() as u64) < count && self.credit_bytes > 0 {
            self.sent += 1;
            let item = self.item(self.sent);
            self.credit -= 1;
            self.credit_bytes -= item.len() as i64;
            self.unanswered.push_back(now);
            size += item.len() + 1;
            items.push(item);
        }
        let mut frame = Vec::with_capacity(size + 32);
        write_publish(Codec::Json, items.iter().map(Vec::as_slice), &mut frame);
        let text = String::from_utf8(frame).map_err(|_| BenchFailure::broken("a publisher"))?;
        self.socket.feed(Message::text(text)).await.map_err(|_| BenchFailure::broken("a publisher"))
    }

    fn item(&self, n: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.envelope.len() + 64);
        let (to, envelope) = (self.topic.clone(), self.envelope.as_slice());
        PublishItem { to, n, envelope, delay_ms: None, expect: None }.write(Codec::Json, &mut out);
        out
    }

    fn take(&mut self, message: Message) -> Result<()> {
        let frame = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            _ => return Err(BenchFailure::broken("a publisher")),
        };
        let frame = PublishFrame::read(Codec::Json, &frame);
        match frame.map_err(|_| BenchFailure::broken("a publisher"))? {
            PublishFrame::Credit { messages, bytes } => {
                self.credit += messages;
                self.credit_bytes += bytes as i64;
            }
            PublishFrame::Published(placed) => self.answered(placed.numbers),
            PublishFrame::Refused(_) | PublishFrame::Error(_) => {
                return Err(BenchFailure::broken("a publisher"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Answers come in the order of the numbers.
    fn answered(&mut self, NumberRange { from, to }: NumberRange) {
        for sent in (from..=to).filter_map(|_| self.unanswered.pop_front()) {
            let late = sent.elapsed().as_micros();
            self.seen.count += 1;
            self.seen.latencies_us.push(u32::try_from(late).unwrap_or(u32::MAX));
        }
    }
}
