use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt};
use sealane_codec::{Codec, records};
use sealane_protocol::{AckMark, Deliver, Op, ServerFrame};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::Choices;
use super::ledger::Ledger;

/// Deliveries that are read before they are answered.
const ROUND: usize = 512;
/// One in so many rounds ends with a disconnect.
const LEAVE_ONE_IN: u64 = 12;
/// One in so many messages is set back.
const NACK_ONE_IN: u64 = 97;
const CREDIT: u64 = 800;

/// A member of a consumer, over one connection after the other.
pub(crate) struct Member {
    address: SocketAddr,
    consumer: u64,
    ledger: Arc<Ledger>,
    choices: Choices,
}

struct Connection {
    socket: WebSocketStream<TcpStream>,
    codec: Codec,
    encoder: records::Encoder,
    decoder: records::Decoder,
    granted: u64,
    received: u64,
    /// The highest offset that came for the first time.
    highest: Option<u64>,
}

impl Member {
    pub(crate) fn new(
        address: SocketAddr,
        consumer: u64,
        ledger: Arc<Ledger>,
        choices: Choices,
    ) -> Member {
        Member { address, consumer, ledger, choices }
    }

    pub(crate) async fn work(mut self) {
        while !self.ledger.is_ended() {
            let codec = Codec::ALL[self.choices.below(4) as usize];
            let batch = [1, 1, 16, 256][self.choices.below(4) as usize];
            let query = format!(
                "stream=load&consumer=c{}&codec={}&batch={batch}&ack_wait_ms=3600000",
                self.consumer,
                codec.name()
            );
            let mut connection = Connection::open(self.address, codec, &query).await;
            self.serve(&mut connection).await;
            self.leave(connection).await;
        }
    }

    /// Works until it is time to leave.
    async fn serve(&mut self, connection: &mut Connection) {
        while !self.ledger.is_ended() {
            if connection.granted == connection.received || self.choices.below(8) == 0 {
                let credit = self.choices.below(CREDIT);
                connection.granted += credit;
                connection.send(&[Op::Credit(credit)]).await;
            }
            let round = self.round(connection).await;
            if self.choices.below(LEAVE_ONE_IN) == 0 && !round.is_empty() {
                return;
            }
            let ops = self.answer(&round);
            connection.send(&ops).await;
        }
    }

    /// The offsets that have come, noted in the ledger.
    async fn round(&mut self, connection: &mut Connection) -> Vec<u64> {
        let mut round = Vec::new();
        let first = tokio::time::timeout(Duration::from_millis(30), connection.socket.next());
        let Ok(mut message) = first.await else { return round };
        loop {
            for delivery in connection.read(message.unwrap().unwrap()) {
                let offset = self.note(connection, &delivery);
                self.ledger.expect_unfinished(offset);
                round.push(offset);
            }
            if round.len() >= ROUND {
                return round;
            }
            match connection.socket.next().now_or_never() {
                Some(next) => message = next,
                None => return round,
            }
        }
    }

    fn note(&self, connection: &mut Connection, delivery: &Deliver) -> u64 {
        let offset = delivery.offset;
        let fields = sealane_codec::fields(connection.plain(), &delivery.envelope).unwrap();
        let (key, id) = fields.iter().find(|(key, _)| key == "id").unwrap();
        let id = sealane_codec::read_text(connection.plain(), id).unwrap();
        assert_eq!((key.as_ref(), id.as_ref()), ("id", format!("m{offset}").as_str()));
        connection.received += 1;
        self.ledger.note_beyond(u64::from(connection.received > connection.granted));
        if delivery.attempt == 1 {
            if connection.highest.is_some_and(|highest| highest >= offset) {
                self.ledger.note_disorder();
            }
            connection.highest = Some(offset);
        }
        self.ledger.deliver(offset, delivery.attempt);
        offset
    }

    /// Acknowledges what came, in one of five ways, but for the few messages that are set back.
    fn answer(&mut self, round: &[u64]) -> Vec<Op> {
        let (mut done, mut ops) = (Vec::new(), Vec::new());
        for &offset in round {
            if self.choices.below(NACK_ONE_IN) == 0 {
                let delay_ms = self.choices.below(40);
                ops.push(Op::Nack(vec![AckMark::Id(format!("m{offset}"))], delay_ms));
            } else {
                self.ledger.ack(offset);
                done.push(offset);
            }
        }
        let id = |offset: &u64| AckMark::Id(format!("m{offset}"));
        let ids = |offsets: &[u64]| offsets.iter().map(id).collect::<Vec<_>>();
        let range = |from, to| vec![AckMark::Range { stream: None, from, to }];
        match self.choices.below(8) {
            0 => ops.extend(done.iter().map(|offset| Op::Ack(ids(&[*offset])))),
            1 => ops.extend(done.iter().map(|offset| Op::Ack(range(*offset, *offset)))),
            2 | 3 if !done.is_empty() => ops.push(Op::Ack(ids(&done))),
            4 if !done.is_empty() => {
                let ranges = runs(&mut done).into_iter();
                ops.push(Op::Ack(ranges.flat_map(|(from, to)| range(from, to)).collect()));
            }
            _ => ops.extend(runs(&mut done).into_iter().map(|(a, b)| Op::Ack(range(a, b)))),
        }
        ops
    }

    /// Leaves: with a close, or without a word. What was acknowledged has been read by then.
    async fn leave(&mut self, mut connection: Connection) {
        if !self.ledger.is_ended() {
            self.ledger.note_disconnect();
        }
        if self.choices.below(2) == 0 {
            connection.socket.close(None).await.unwrap();
        } else {
            connection.socket.send(Message::Ping(Bytes::new())).await.unwrap();
        }
        // Nothing of what comes now is acknowledged: all of it must come again, and behind a close
        // may have come to another member before it is read here.
        while let Some(Ok(message)) = connection.socket.next().await {
            if matches!(message, Message::Pong(_)) {
                return;
            }
            for delivery in connection.read(message) {
                self.note(&mut connection, &delivery);
            }
        }
    }
}

impl Connection {
    async fn open(address: SocketAddr, codec: Codec, query: &str) -> Connection {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{address}/v1/subscribe?{query}");
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        Connection {
            socket,
            codec,
            encoder: records::Encoder::new(),
            decoder: records::Decoder::new(),
            granted: 0,
            received: 0,
            highest: None,
        }
    }

    /// The codec of the frames once records are unpacked.
    fn plain(&self) -> Codec {
        self.codec.at_rest()
    }

    async fn send(&mut self, ops: &[Op]) {
        for op in ops {
            let mut frame = Vec::new();
            op.write(self.plain(), &mut frame);
            let message = match self.codec {
                Codec::Json => Message::text(String::from_utf8(frame).unwrap()),
                Codec::MsgPackRecords => {
                    let mut packed = Vec::new();
                    self.encoder.transcode(Codec::MsgPack, &frame, &mut packed).unwrap();
                    Message::binary(packed)
                }
                _ => Message::binary(frame),
            };
            self.socket.feed(message).await.unwrap();
        }
        self.socket.flush().await.unwrap();
    }

    fn read(&mut self, message: Message) -> Vec<Deliver> {
        if !message.is_text() && !message.is_binary() {
            return Vec::new();
        }
        let mut bytes = message.into_data();
        if self.codec == Codec::MsgPackRecords {
            let mut plain = Vec::new();
            self.decoder.to_plain(&bytes, &mut plain).unwrap();
            bytes = plain.into();
        }
        match ServerFrame::read(self.plain(), &bytes).unwrap() {
            ServerFrame::Deliver(delivery) => vec![delivery],
            ServerFrame::Batch(all) => all,
            ServerFrame::Error(error) => panic!("{error:?}"),
            _ => Vec::new(),
        }
    }
}

/// Runs of offsets without holes, each as its first and last.
fn runs(offsets: &mut [u64]) -> Vec<(u64, u64)> {
    offsets.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &offset in offsets.iter() {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == offset => *last = offset,
            _ => runs.push((offset, offset)),
        }
    }
    runs
}
