//! All of it, in order: steps, ways in memory, ways over a hub, advice.

use std::path::PathBuf;
use std::time::Duration;

use sealane_message::Value;

use super::hub::{self, HubEffort, HubWayCost};
use super::input::CostFileFormat;
use super::radio::RadioLink;
use super::report::{CostInput, CostReport, FigureSource, WayRow};
use super::step::{CostStep, StepCalls};
use super::trip::{ClockProbe, WayBytes, WayTrip};
use super::way::{CostLink, CostWay};
use super::{MessageSample, advice, link, radio, table};
use crate::args;
use crate::failure::Result;
use crate::measure::{self, BenchHost, MeasurePlan, VariantCost, percentile};
use crate::programs::BenchPrograms;

/// The measurements to make, and how long they take.
#[derive(Debug, clap::Args)]
pub(crate) struct CostOptions {
    /// Messages: JSON lines, sequences of MessagePack or CBOR, frames, a folder with one message in
    /// each file; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The kind of the files: json, msgpack, cbor or frames [default: told by name and content]
    #[arg(long = "as", value_name = "KIND", value_parser = holding)]
    pub(crate) holding: Option<CostFileFormat>,
    /// Less of everything: an answer in less than 20 seconds
    #[arg(long)]
    quick: bool,
    /// Leave out the ways over a hub, which is started for them
    #[arg(long)]
    pub(crate) no_hub: bool,
    /// Reckon units, air time and share of the duty cycle on a radio: ble-1m, lora-sf7 or 11p
    #[arg(long = "link", value_name = "RADIO", value_parser = radio_link)]
    links: Vec<RadioLink>,
    /// The folder on the disk that the hub keeps messages on [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write a page with charts into this file too; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn holding(name: &str) -> Result<CostFileFormat, &'static str> {
    CostFileFormat::from_name(name).ok_or("it is json, msgpack, cbor or frames")
}

fn radio_link(name: &str) -> Result<RadioLink, String> {
    args::named(&RadioLink::ALL, RadioLink::name, name)
}

/// Bytes and messages that times are of; counts are of the whole sample.
const TIMED_BYTES: u64 = 256 << 10;
const TIMED_MESSAGES: usize = 256;
/// Single messages that a percentile is of, at least.
const SINGLES: usize = 2000;

impl CostOptions {
    fn plan(&self) -> MeasurePlan {
        if self.quick { MeasurePlan::quick() } else { MeasurePlan::full() }
    }

    fn effort(&self) -> HubEffort {
        match self.quick {
            true => HubEffort { each: Duration::from_millis(400), singles: 50 },
            false => HubEffort { each: Duration::from_secs(2), singles: 400 },
        }
    }
}

/// Measures; `progress` is told what is being done and the part of it that is. Without `programs`
/// there are no ways over a hub.
pub(crate) async fn run(
    sample: MessageSample,
    options: &CostOptions,
    programs: Option<&BenchPrograms>,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<CostReport> {
    let timed = timed(&sample.messages);
    let steps = table::measure(&options.plan(), timed, &mut |part| progress("steps", part));
    let mut ways = in_memory(&sample, timed, options, progress)?;
    if let Some(programs) = programs {
        let all = CostWay::over_hub();
        for (index, way) in all.iter().enumerate() {
            progress("ways over a hub", index as f64 / all.len() as f64);
            let data = options.data.as_deref();
            let one = hub::measure(programs, data, *way, timed, options.effort()).await?;
            ways.push(over_hub(*way, &one, &ways, timed));
        }
        for (ends, hub) in CostWay::composed() {
            ways.extend(compose(ends, hub, &ways));
        }
        progress("ways over a hub", 1.0);
    }
    let input = CostInput {
        seen: sample.seen,
        bytes: sample.bytes,
        broken: sample.broken,
        sampled: sample.messages.len(),
        opaque: sample.opaque,
        timed: timed.len(),
        refusals: sample.refusals,
    };
    let radios = radio::rows(&options.links, &sample.messages);
    let mut advice = advice::of(&ways);
    advice.extend(radio::advice(&radios));
    let links = link::rows(&table::lengths(&sample.messages));
    Ok(CostReport { machine: BenchHost::here(), input, steps, links, radios, ways, advice })
}

/// As many of the messages as fit the caches that a sender's do. Their order is a random one.
fn timed(messages: &[Value]) -> &[Value] {
    let mut bytes = 0;
    let fits = |message: &&Value| {
        let mut out = Vec::new();
        sealane_codec::encode(sealane_codec::Codec::MsgPack, message, &mut out);
        bytes += out.len() as u64;
        bytes <= TIMED_BYTES
    };
    let count = messages.iter().take_while(fits).count().clamp(1, TIMED_MESSAGES);
    messages.get(..count).unwrap_or(messages)
}

fn in_memory(
    sample: &MessageSample,
    timed: &[Value],
    options: &CostOptions,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<Vec<WayRow>> {
    let mut bytes = vec![];
    for way in CostWay::in_memory() {
        let mut all = WayTrip::new(StepCalls::PRODUCT, way, &sample.messages)?;
        bytes.push(all.verify()?);
    }
    let trips =
        CostWay::in_memory().into_iter().map(|way| WayTrip::new(StepCalls::PRODUCT, way, timed));
    let mut trips: Vec<WayTrip<'_>> = trips.collect::<Result<_, _>>()?;
    let mut variants = vec![];
    for trip in &mut trips {
        trip.verify()?;
        let count = trip.len();
        variants.push(measure::BenchVariant::new("", count, || trip.all()));
    }
    let costs = measure::in_turns(&options.plan(), variants, &mut |part| progress("ways", part));
    let count = sample.messages.len();
    let mut rows = vec![];
    for (((way, trip), cost), bytes) in
        CostWay::in_memory().into_iter().zip(&mut trips).zip(costs).zip(bytes)
    {
        rows.push(row(way, trip, &cost, bytes, count));
    }
    Ok(rows)
}

fn row(
    way: CostWay,
    trip: &mut WayTrip<'_>,
    cost: &VariantCost,
    bytes: WayBytes,
    count: usize,
) -> WayRow {
    let mean = |bytes: u64| bytes as f64 / count.max(1) as f64;
    let mut times = vec![];
    while times.len() < SINGLES {
        trip.each(&mut times);
    }
    let latency_ns = Some((percentile(&mut times, 0.5), percentile(&mut times, 0.99)));
    let shares = shares(trip);
    let all: f64 = shares.iter().sum();
    WayRow {
        way,
        source: FigureSource::Measured,
        body: mean(bytes.body),
        pressed: mean(bytes.pressed),
        wire: mean(bytes.wire),
        rest: mean(bytes.rest),
        latency_ns,
        cpu_ns: cost.ns,
        allocations: Some(cost.allocations),
        // To look at a clock takes time as well: the parts are of what was measured without.
        steps: shares.map(|part| part / all.max(1.0) * cost.ns.median),
    }
}

/// The time of each step, over as many messages as it takes to see it, less that of the clock.
fn shares(trip: &mut WayTrip<'_>) -> [f64; CostStep::ALL.len()] {
    let mut watch = ClockProbe::new();
    trip.watched(&mut watch);
    let mut passes = vec![];
    while passes.len() * trip.len() < SINGLES {
        let mut watch = ClockProbe::new();
        trip.watched(&mut watch);
        passes.push(watch.ns.map(|ns| ns / trip.len() as f64));
    }
    // By the median of the passes, so that one that was disturbed gives no step a large part.
    let clock = ClockProbe::clock_ns();
    CostStep::ALL.map(|step| {
        let mut one: Vec<f64> = passes.iter().map(|ns| ns[step as usize]).collect();
        (percentile(&mut one, 0.5) - clock).max(0.0)
    })
}

/// The measurements over a hub. The work of the ends is known from the same way in memory. Carrying
/// is the rest of the sender's and reader's process. Keeping is the hub's process.
fn over_hub(way: CostWay, kept: &HubWayCost, ways: &[WayRow], timed: &[Value]) -> WayRow {
    let ends = ways.iter().find(|row| {
        let seal = way.seal.unwrap_or(CostWay::USUAL_SEAL);
        row.way == CostWay { link: CostLink::Memory, seal: Some(seal), ..way }
    });
    let mut steps = [0.0; CostStep::ALL.len()];
    let is_sealed = |step: CostStep| matches!(step, CostStep::Seal | CostStep::Open);
    for step in [CostStep::Encode, CostStep::Seal, CostStep::Open, CostStep::Decode] {
        if way.seal.is_some() || !is_sealed(step) {
            steps[step as usize] = ends.map_or(0.0, |row| row.steps[step as usize]);
        }
    }
    let own: f64 = steps.iter().sum();
    steps[CostStep::Carry as usize] = (kept.own_ns - own).max(0.0);
    steps[CostStep::Keep as usize] = kept.hub_ns;
    let cpu = kept.own_ns + kept.hub_ns;
    let body = mean_body(way, timed);
    WayRow {
        way,
        source: FigureSource::Measured,
        body,
        pressed: body,
        wire: kept.sent + kept.received,
        rest: kept.rest,
        latency_ns: Some(kept.latency_ns),
        cpu_ns: measure::FigureSpread::single(cpu),
        allocations: None,
        steps,
    }
}

fn mean_body(way: CostWay, timed: &[Value]) -> f64 {
    let mut out = Vec::new();
    timed.iter().for_each(|value| sealane_codec::encode(way.codec, value, &mut out));
    out.len() as f64 / timed.len().max(1) as f64
}

/// The ends of `ends`, and carrying and keeping as on `hub`, by the byte.
fn compose(ends: CostWay, hub: CostWay, ways: &[WayRow]) -> Option<WayRow> {
    let own = ways.iter().find(|row| row.way == ends)?;
    let usual = ways.iter().find(|row| row.way == CostWay::USUAL)?;
    let rest = ways.iter().find(|row| row.way == hub)?;
    let mut steps = own.steps;
    for step in [CostStep::Carry, CostStep::Relay, CostStep::Keep] {
        steps[step as usize] = rest.steps[step as usize];
    }
    let cpu: f64 = steps.iter().sum();
    // Envelope and delivery add as much as they do to the frame that was measured.
    let smaller = usual.wire - own.wire;
    Some(WayRow {
        way: CostWay { link: hub.link, ..ends },
        source: FigureSource::Composed { rest: hub.to_string() },
        wire: rest.wire - 2.0 * smaller,
        rest: rest.rest - smaller,
        latency_ns: None,
        cpu_ns: measure::FigureSpread::single(cpu),
        allocations: None,
        steps,
        ..own.clone()
    })
}
