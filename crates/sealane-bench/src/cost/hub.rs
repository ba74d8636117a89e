//! Ways over a hub: real processes, real sockets, a real disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use sealane::{Client, Subscription};
use sealane_codec::Codec;
use sealane_frame::{FrameBuf, open_stored, seal_frame};
use sealane_message::Value;
use sealane_protocol::SealedEnvelope;
use sealane_seal::{Binding, Epoch, OpenedMessage, SenderContext, Slot};

use super::step::StepCoder;
use super::way::{CostLink, CostWay};
use crate::failure::{BenchFailure, Result};
use crate::measure::{percentile, process_cpu_ns};
use crate::members::{BenchMembers, GROUP};
use crate::process::BenchServer;
use crate::programs::BenchPrograms;

/// The cost of a way over a hub, for each message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HubWayCost {
    /// CPU of this process: both ends and their sockets.
    pub(super) own_ns: f64,
    /// CPU of the hub's process.
    pub(super) hub_ns: f64,
    /// From before a message was encoded until its reader had decoded it, one after the other, in
    /// wall time: median and 99th percentile.
    pub(super) latency_ns: (f64, f64),
    /// Bytes to the hub, and of the frames from it.
    pub(super) sent: f64,
    pub(super) received: f64,
    /// Bytes that the hub counts as kept.
    pub(super) rest: f64,
}

/// Messages of one request.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 1 << 20;
const TOPIC: &str = "cost/measured";

/// How long a way over a hub is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct HubEffort {
    pub(super) each: Duration,
    pub(super) singles: usize,
}

pub(super) async fn measure(
    programs: &BenchPrograms,
    data: Option<&Path>,
    way: CostWay,
    sample: &[Value],
    effort: HubEffort,
) -> Result<HubWayCost> {
    let CostLink::WebSocket(level) = way.link else { return Ok(HubWayCost::default()) };
    let node = BenchServer::hub(programs, data, level.name())?;
    let client = Client::connect(&node.address)?;
    let make = client.configure(TOPIC);
    if way.seal.is_some() { make.sealed(GROUP) } else { make }.await?;
    let readings = client.subscribe(TOPIC).codec(way.codec).batch(256).await?;
    let mut ends = HubWayEnds::new(way, client, readings)?;
    let bytes: usize = sample.iter().map(|value| ends.size(value)).sum();
    let batch = (BATCH_BYTES * sample.len() / bytes.max(1)).clamp(1, BATCH);
    let mut kept = ends.rate(&node, sample, batch, effort.each).await?;
    let mut times = vec![];
    for value in sample.iter().cycle().take(effort.singles) {
        let started = Instant::now();
        ends.round(std::slice::from_ref(value)).await?;
        times.push(started.elapsed().as_nanos() as f64);
    }
    kept.latency_ns = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    let info = ends.client.stream(TOPIC).await?;
    kept.rest = info.bytes as f64 / info.count.max(1) as f64;
    Ok(kept)
}

struct HubWayEnds {
    way: CostWay,
    client: Client,
    readings: Subscription,
    members: BenchMembers,
    shown: ShownCounters,
    buf: FrameBuf,
    writer: StepCoder,
    reader: StepCoder,
    body: Vec<u8>,
    sent: u64,
}

impl HubWayEnds {
    fn new(way: CostWay, client: Client, readings: Subscription) -> Result<Self> {
        let (class, suite) = way.seal.unwrap_or(CostWay::USUAL_SEAL);
        let members = BenchMembers::new(class, suite, way.codec as u8, Binding::stream(TOPIC))?;
        Ok(Self {
            way,
            client,
            readings,
            members,
            shown: ShownCounters::default(),
            buf: FrameBuf::new(),
            writer: StepCoder::new(way.codec),
            reader: StepCoder::new(way.codec),
            body: Vec::new(),
            sent: 0,
        })
    }

    fn size(&mut self, value: &Value) -> usize {
        self.envelope(value).map_or(0, |envelope| envelope.len())
    }

    /// Publishes batches and reads them, for a while.
    async fn rate(
        &mut self,
        node: &BenchServer,
        sample: &[Value],
        batch: usize,
        each: Duration,
    ) -> Result<HubWayCost> {
        let all: Vec<Value> = sample.iter().cycle().take(batch).cloned().collect();
        self.round(&all).await?;
        let (own, hub, received) =
            (process_cpu_ns(), node.process.cpu_s(), self.readings.received_bytes());
        let (sent, started, mut count) = (self.sent, Instant::now(), 0);
        let mut from = 0;
        while started.elapsed() < each {
            let until = (from + batch).min(sample.len());
            let part = sample.get(from..until).unwrap_or_default();
            from = if until == sample.len() { 0 } else { until };
            self.round(part).await?;
            count += part.len();
        }
        let count = count.max(1) as f64;
        Ok(HubWayCost {
            own_ns: (process_cpu_ns() - own) / count,
            hub_ns: (node.process.cpu_s() - hub) * 1e9 / count,
            sent: (self.sent - sent) as f64 / count,
            received: (self.readings.received_bytes() - received) as f64 / count,
            ..HubWayCost::default()
        })
    }

    /// Writes all of them, and reads them.
    async fn round(&mut self, values: &[Value]) -> Result<()> {
        let envelopes = values.iter().map(|value| self.envelope(value));
        let envelopes: Vec<Vec<u8>> = envelopes.collect::<Result<_>>()?;
        self.sent += envelopes.iter().map(|envelope| envelope.len() as u64).sum::<u64>();
        self.client.publish_batch(TOPIC, self.way.codec, &envelopes).await?;
        for _ in values {
            let ended = || BenchFailure::broken("a reader");
            let message = self.readings.next().await.ok_or_else(ended)?;
            self.read(&message?.envelope)?;
        }
        Ok(())
    }

    /// The envelope that is published: a map around the value, or a frame that its body is sealed
    /// in.
    fn envelope(&mut self, value: &Value) -> Result<Vec<u8>> {
        if self.way.seal.is_none() {
            let mut out = Vec::new();
            let mut writer = sealane_codec::DatumWriter::new(self.way.codec, &mut out);
            writer.map(1);
            writer.key("data");
            writer.value(value);
            writer.end();
            return Ok(out);
        }
        self.body.clear();
        self.writer.encode(value, &mut self.body);
        self.members.ready()?;
        let BenchMembers { sealer, fields, binding, .. } = &mut self.members;
        let frame = seal_frame(sealer, fields, binding, &self.body, &mut self.buf)?;
        let mut out = Vec::with_capacity(frame.len() + 64);
        SealedEnvelope { id: None, frame: (&*frame).into() }.write(self.way.codec, &mut out);
        Ok(out)
    }

    fn read(&mut self, envelope: &[u8]) -> Result<()> {
        let failed = || BenchFailure::broken("a reader");
        let codec: Codec = self.way.codec;
        if self.way.seal.is_none() {
            let value = self.reader.decode(envelope).map_err(|_| failed())?;
            return value.field("data").map(|_| ()).ok_or_else(failed);
        }
        let sealed = SealedEnvelope::read(codec, envelope).ok().flatten().ok_or_else(failed)?;
        let mut frame = sealed.frame.into_owned();
        let BenchMembers { opener, binding, .. } = &mut self.members;
        let stored = open_stored(opener, Epoch(0), binding, &mut frame)?;
        if !self.shown.is_new(&stored.opened) {
            return Err(failed());
        }
        self.reader.decode(stored.body).map_err(|_| failed())?;
        Ok(())
    }
}

/// The counters of each start of a sender that a reader of a stream has shown, as ranges: its
/// client remembers them, since a stored message opens as often as it comes.
#[derive(Default)]
struct ShownCounters(BTreeMap<(Epoch, Slot, SenderContext), BTreeMap<u64, u64>>);

impl ShownCounters {
    /// Whether the message was not shown before.
    fn is_new(&mut self, opened: &OpenedMessage) -> bool {
        let sender = (opened.epoch(), opened.slot(), opened.context());
        let (ranges, counter) = (self.0.entry(sender).or_default(), opened.counter());
        match ranges.range_mut(..=counter).next_back() {
            Some((_, last)) if counter <= *last => return false,
            Some((_, last)) if *last + 1 == counter => *last = counter,
            _ => drop(ranges.insert(counter, counter)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use sealane_seal::{Class, Suite};

    use super::*;

    #[test]
    fn what_comes_again_is_not_shown_again() {
        let (mut shown, mut buf, binding) =
            (ShownCounters::default(), FrameBuf::new(), Binding::stream(TOPIC));
        for _ in 0..2 {
            let ends = BenchMembers::new(Class::Group, Suite::Aes256Gcm, 3, binding).unwrap();
            let BenchMembers { mut sealer, mut opener, fields, .. } = ends;
            let mut next = || {
                let frame = seal_frame(&mut sealer, &fields, &binding, b"x", &mut buf).unwrap();
                open_stored(&mut opener, Epoch(0), &binding, frame).unwrap().opened
            };
            // The same counters in both rounds, of another start of the sender.
            let [first, second, third] = [next(), next(), next()];
            for opened in [&first, &third, &second] {
                assert!(shown.is_new(opened));
            }
            for opened in [&first, &second, &third] {
                assert!(!shown.is_new(opened));
            }
        }
    }
}
