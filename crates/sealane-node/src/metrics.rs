//! `GET /metrics`: what the node counts and times, as Prometheus reads it
//! (docs/reference/METRICS.md).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use sealane_protocol::Error;
use sealane_stream::limits::MAX_METRIC_SHARES;
use sealane_stream::{
    ConsumerFigures, HistogramSpread, SeriesFigures, ShareHeld, ShareKind, StreamFigures,
};

use crate::access::RequestPass;
use crate::app::NodeApp;
use crate::reply::{MadeReply, answer, answer_metered};

/// Caches must not hand one format to a client of the other.
const VARIES: HeaderValue = HeaderValue::from_static("accept");

/// The label of what has no series of its own: no topic holds a `*`.
const OTHER: &str = "*other*";

/// A format in which metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetricsFormat {
    /// OpenMetrics 1.0.
    Open,
    /// The text format of Prometheus, version 0.0.4.
    Text,
}

impl MetricsFormat {
    /// The format that a client asks for. Without a wish it is the text format, which every reader
    /// of metrics knows.
    fn accepted(headers: &HeaderMap) -> Self {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let of = |kind: &str| accept.split(',').filter_map(|one| wish(one, kind)).max();
        let (open, text) = (of("application/openmetrics-text"), of("text/plain"));
        if open.is_some_and(|open| open > 0) && open >= text { Self::Open } else { Self::Text }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// How much an element of `Accept` wishes for a kind, in thousandths; none: it names another one.
fn wish(element: &str, kind: &str) -> Option<u32> {
    let mut parts = element.split(';').map(str::trim);
    let is_named = parts.next()?.eq_ignore_ascii_case(kind);
    let weight = parts.find_map(|part| part.strip_prefix("q="));
    let weight = weight.map_or(Some(1.0), |text| text.trim().parse::<f64>().ok());
    is_named.then(|| (weight.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u32)
}

/// `GET /metrics`.
pub(crate) async fn show(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    headers: HeaderMap,
) -> Response {
    if let Err(refusal) = pass.need_observe() {
        return answer(&headers, Err(refusal));
    }
    let format = MetricsFormat::accepted(&headers);
    let make = || {
        let app = app.clone();
        async move {
            // It looks at every stream, and nobody who is served by this thread waits for that.
            match tokio::task::spawn_blocking(move || write(gather(&app), format)).await {
                Ok(Ok(text)) => {
                    let (status, kind) = (StatusCode::OK, format.content_type());
                    let mut body = text.into_bytes();
                    // It counts by its length, and is held by its capacity.
                    body.shrink_to_fit();
                    Ok(MadeReply { status, kind, body })
                }
                _ => Err(Error::Draining.into()),
            }
        }
    };
    let mut reply = answer_metered(&app, &pass, &headers, make).await;
    reply.headers_mut().insert(VARY, VARIES);
    reply
}

/// A metric with all its series.
#[derive(Debug)]
struct NodeMetric {
    name: &'static str,
    help: &'static str,
    values: MetricValues,
}

#[derive(Debug)]
enum MetricValues {
    /// The value now.
    Gauge(Vec<MetricPoint>),
    /// The sum so far; the name ends in `_total`.
    Counter(Vec<MetricPoint>),
    /// How long it took.
    Histogram(Vec<TimedSeries>),
}

/// One series at one time.
#[derive(Debug)]
struct MetricPoint {
    labels: MetricLabels,
    value: u64,
}

#[derive(Debug)]
struct TimedSeries {
    labels: MetricLabels,
    spread: HistogramSpread,
}

type MetricLabels = Vec<(&'static str, Cow<'static, str>)>;

/// All metrics at one time.
#[derive(Debug)]
struct GatheredMetrics(Vec<NodeMetric>);

fn write(gathered: GatheredMetrics, format: MetricsFormat) -> Result<String, fmt::Error> {
    let (mut registry, mut out) = (Registry::default(), String::new());
    registry.register_collector(Box::new(gathered));
    text::encode(&mut out, &registry)?;
    Ok(if format == MetricsFormat::Open { out } else { as_text(&out) })
}

/// OpenMetrics as the older format says the same: a counter is described by the name that its
/// samples have, and nothing stands behind the last of them. All else is alike in both.
fn as_text(open: &str) -> String {
    let kinds = open.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let counters: HashSet<&str> =
        kinds.filter(|(_, kind)| *kind == "counter").map(|(name, _)| name).collect();
    let mut out = String::with_capacity(open.len());
    for line in open.lines().filter(|line| *line != "# EOF") {
        let described = line.strip_prefix("# ").and_then(|rest| {
            let (word, rest) = rest.split_once(' ')?;
            let (name, said) = rest.split_once(' ')?;
            counters.contains(name).then(|| format!("# {word} {name}_total {said}"))
        });
        out.push_str(described.as_deref().unwrap_or(line));
        out.push('\n');
    }
    out
}

impl Collector for GatheredMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.iter().try_for_each(|metric| metric.encode(&mut encoder))
    }
}

impl NodeMetric {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (kind, name) = match &self.values {
            MetricValues::Gauge(_) => (MetricType::Gauge, self.name),
            MetricValues::Histogram(_) => (MetricType::Histogram, self.name),
            // The format adds the ending.
            MetricValues::Counter(_) => {
                (MetricType::Counter, self.name.strip_suffix("_total").unwrap_or(self.name))
            }
        };
        let mut metric = encoder.encode_descriptor(name, self.help, None, kind)?;
        match &self.values {
            MetricValues::Gauge(points) => {
                points.iter().try_for_each(|MetricPoint { labels, value }| {
                    with(&mut metric, labels, |metric| metric.encode_gauge(value))
                })
            }
            MetricValues::Counter(points) => {
                points.iter().try_for_each(|MetricPoint { labels, value }| {
                    with(&mut metric, labels, |metric| {
                        metric.encode_counter::<NoLabelSet, u64, f64>(value, None)
                    })
                })
            }
            MetricValues::Histogram(all) => {
                all.iter().try_for_each(|TimedSeries { labels, spread }| {
                    let pairs = spread.buckets.iter().map(|bucket| (bucket.upper, bucket.count));
                    let (buckets, count): (Vec<_>, _) = (pairs.collect(), spread.count());
                    with(&mut metric, labels, |metric| {
                        metric.encode_histogram::<NoLabelSet>(spread.sum, count, &buckets, None)
                    })
                })
            }
        }
    }
}

/// Writes a series. One without labels has no braces: whoever looks for its name finds it.
fn with(
    metric: &mut MetricEncoder<'_>,
    labels: &MetricLabels,
    write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() { write(metric) } else { write(&mut metric.encode_family(labels)?) }
}

/// The node's counts and timings now.
fn gather(app: &NodeApp) -> GatheredMetrics {
    let mut all = gauges(app);
    let counters = app.hub.metrics().all().into_iter();
    all.extend(counters.map(|counter| {
        let values =
            MetricValues::Counter(vec![MetricPoint { labels: vec![], value: counter.value }]);
        NodeMetric { name: counter.name, help: counter.help, values }
    }));
    let refused = app.refused.all().into_iter();
    let point = |(code, value): (&'static str, u64)| MetricPoint {
        labels: vec![("code", code.into())],
        value,
    };
    all.push(NodeMetric {
        name: "sealane_carry_refused_total",
        help: "Refusals, by name.",
        values: MetricValues::Counter(refused.map(point).collect()),
    });
    for (name, help, value) in [
        (
            "sealane_carry_replies_cut_total",
            "Large replies cut off, of which their clients took nothing while others lacked room.",
            app.fair.replies.cut(),
        ),
        ("sealane_carry_spans_total", "Spans that a collector has taken.", app.spans.sent()),
        ("sealane_carry_spans_dropped_total", "Spans that none took.", app.spans.dropped()),
    ] {
        let values = MetricValues::Counter(vec![MetricPoint { labels: vec![], value }]);
        all.push(NodeMetric { name, help, values });
    }
    let timings = app.hub.timings().all().into_iter();
    all.extend(timings.map(|timing| {
        let values =
            MetricValues::Histogram(vec![TimedSeries { labels: vec![], spread: timing.spread }]);
        NodeMetric { name: timing.name, help: timing.help, values }
    }));
    let timed = |route: &crate::requests::TimedRoute| TimedSeries {
        labels: vec![("route", route.path.into())],
        spread: route.took.read(),
    };
    all.push(NodeMetric {
        name: "sealane_carry_request_seconds",
        help: "Requests, from their head to the head of their reply, by route.",
        values: MetricValues::Histogram(app.requests.all().map(timed).collect()),
    });
    all.extend(by_share(app));
    let SeriesFigures { streams, consumers } = app.hub.figures();
    all.extend(by_stream(&streams));
    all.extend(by_consumer(&consumers));
    GatheredMetrics(all)
}

/// The node's gauges.
fn gauges(app: &NodeApp) -> Vec<NodeMetric> {
    let gauge = |name, help, value: usize| {
        let point = MetricPoint { labels: vec![], value: value as u64 };
        NodeMetric { name, help, values: MetricValues::Gauge(vec![point]) }
    };
    vec![
        gauge("sealane_stream_streams", "Streams.", app.hub.count()),
        gauge(
            "sealane_stream_sealed_streams",
            "Streams whose messages the hub cannot read.",
            app.hub.count_sealed(),
        ),
        gauge(
            "sealane_stream_trouble",
            "1 while the store takes nothing.",
            usize::from(app.hub.trouble().is_some()),
        ),
        gauge(
            "sealane_read_connections",
            "WebSockets and event sources that are served.",
            app.serving.count(),
        ),
        gauge(
            "sealane_carry_connections",
            "Connections of all kinds, those that have said nothing yet included.",
            app.permits.taken(),
        ),
        gauge(
            "sealane_carry_body_bytes",
            "Bytes of request bodies that are held.",
            app.fair.bodies.held(),
        ),
        gauge(
            "sealane_carry_asked_bytes",
            "Bytes reserved for what publishers are asked for beyond their first credit.",
            app.fair.asked.held() as usize,
        ),
        gauge(
            "sealane_read_held_bytes",
            "Bytes of deliveries and replies that clients have not taken yet.",
            app.fair.deliveries.held() + app.fair.replies.held(),
        ),
        gauge(
            "sealane_carry_reply_bytes",
            "Bytes of them that are large replies.",
            app.fair.replies.held(),
        ),
        gauge(
            "sealane_read_followed_streams",
            "Streams that subscriptions follow, each as often as it is followed.",
            app.hub.followed(),
        ),
    ]
}

fn by_stream(streams: &[StreamFigures]) -> Vec<NodeMetric> {
    let points = |value: fn(&StreamFigures) -> u64| -> Vec<MetricPoint> {
        let point = |of: &StreamFigures| MetricPoint {
            labels: vec![("stream", topic(of.stream.as_ref()))],
            value: value(of),
        };
        streams.iter().map(point).collect()
    };
    let gauge =
        |name, help, value| NodeMetric { name, help, values: MetricValues::Gauge(points(value)) };
    let total =
        |name, help, value| NodeMetric { name, help, values: MetricValues::Counter(points(value)) };
    vec![
        gauge("sealane_stream_topic_messages", "Messages that can be read.", |of| of.messages),
        gauge("sealane_stream_topic_bytes", "Bytes of them at rest.", |of| of.bytes),
        gauge("sealane_stream_topic_readers", "Connections that read for themselves.", |of| {
            of.readers
        }),
        total("sealane_stream_topic_stored_total", "Messages stored.", |of| of.stored),
        total("sealane_stream_topic_delivered_total", "Deliveries.", |of| of.delivered),
    ]
}

/// The shares of all owners together, and those of owners that are fullest.
fn by_share(app: &NodeApp) -> Vec<NodeMetric> {
    let kind_label = |kind: ShareKind| ("kind", Cow::Borrowed(kind.name()));
    let mut shares = app.hub.shares();
    let of_kind = |value: &dyn Fn(ShareKind) -> u64| -> Vec<MetricPoint> {
        let point = |kind| MetricPoint { labels: vec![kind_label(kind)], value: value(kind) };
        ShareKind::ALL.into_iter().map(point).collect()
    };
    let sums = of_kind(&|kind| app.hub.share_sum(kind));
    let refused = of_kind(&|kind| {
        shares.iter().filter(|share| share.kind == kind).map(|share| share.refused).sum()
    });
    let percent = |share: &ShareHeld| share.held.saturating_mul(100) / share.limit.max(1);
    // There may be thousands of tokens, and nobody looks at shares that are nearly empty.
    shares.sort_by_cached_key(|share| (Reverse(percent(share)), share.owner.clone(), share.kind));
    shares.truncate(MAX_METRIC_SHARES);
    let points = |value: fn(&ShareHeld) -> u64| -> Vec<MetricPoint> {
        let labels =
            |share: &ShareHeld| vec![("token", share.owner.clone().into()), kind_label(share.kind)];
        let point = |share: &ShareHeld| MetricPoint { labels: labels(share), value: value(share) };
        shares.iter().map(point).collect()
    };
    vec![
        NodeMetric {
            name: "sealane_stream_share_all",
            help: "What all tokens hold together, by kind of share.",
            values: MetricValues::Gauge(sums),
        },
        NodeMetric {
            name: "sealane_stream_share_refused_total",
            help: "Requests refused for want of a share, by its kind.",
            values: MetricValues::Counter(refused),
        },
        NodeMetric {
            name: "sealane_stream_share_held",
            help: "What a token holds, of the fullest shares.",
            values: MetricValues::Gauge(points(|share| share.held)),
        },
        NodeMetric {
            name: "sealane_stream_share_limit",
            help: "What it may hold.",
            values: MetricValues::Gauge(points(|share| share.limit)),
        },
    ]
}

fn by_consumer(consumers: &[ConsumerFigures]) -> Vec<NodeMetric> {
    type Value = fn(&ConsumerFigures) -> u64;
    let points = |value: Value, is_told: fn(&ConsumerFigures) -> bool| -> Vec<MetricPoint> {
        let point = |of: &ConsumerFigures| {
            let name = if of.stream.is_some() { &of.consumer } else { OTHER };
            let stream = ("stream", topic(of.stream.as_ref()));
            MetricPoint {
                labels: vec![stream, ("consumer", name.to_owned().into())],
                value: value(of),
            }
        };
        consumers.iter().filter(|of| is_told(of)).map(point).collect()
    };
    let gauge = |name, help, value| {
        let values = MetricValues::Gauge(points(value, |_| true));
        NodeMetric { name, help, values }
    };
    let total = |name, help, value| {
        let values = MetricValues::Counter(points(value, |of| of.is_counted));
        NodeMetric { name, help, values }
    };
    let oldest = points(|of| of.oldest_ms / 1000, |of| of.stream.is_some());
    vec![
        NodeMetric {
            name: "sealane_stream_consumer_oldest_seconds",
            help: "How long the oldest message that is not done for it has been stored.",
            values: MetricValues::Gauge(oldest),
        },
        gauge(
            "sealane_stream_consumer_unfinished",
            "Messages that are not done for it: not given yet, or given and not done.",
            |of| of.unfinished(),
        ),
        gauge("sealane_stream_consumer_lag", "Messages that it was not given yet.", |of| of.lag),
        gauge("sealane_stream_consumer_in_flight", "Messages given and not done.", |of| {
            of.in_flight
        }),
        gauge("sealane_stream_consumer_members", "Connections that share it.", |of| of.members),
        total("sealane_stream_consumer_redelivered_total", "Redeliveries.", |of| of.redelivered),
        total("sealane_stream_consumer_acked_total", "Acknowledgements.", |of| of.acked),
        total("sealane_stream_consumer_dead_lettered_total", "Dead letters.", |of| {
            of.dead_lettered
        }),
    ]
}

fn topic(stream: Option<&String>) -> Cow<'static, str> {
    stream.map_or(OTHER.into(), |topic| topic.clone().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        let format = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            MetricsFormat::accepted(&headers)
        };
        assert_eq!(MetricsFormat::accepted(&HeaderMap::new()), MetricsFormat::Text);
        for (accept, expected) in [
            ("*/*", MetricsFormat::Text),
            ("text/plain", MetricsFormat::Text),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", MetricsFormat::Text),
            ("application/openmetrics-text", MetricsFormat::Open),
            ("application/openmetrics-text;q=0", MetricsFormat::Text),
            ("application/openmetrics-text;q=x", MetricsFormat::Text),
            ("application/openmetrics-text;q=0.3, text/plain;q=0.4", MetricsFormat::Text),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
                MetricsFormat::Open,
            ),
        ] {
            assert_eq!(format(accept), expected, "{accept}");
        }
    }

    #[test]
    fn the_text_format_describes_a_counter_by_the_name_of_its_samples() {
        let open = "# HELP a Things.\n# TYPE a counter\na_total{b=\"# EOF\"} 1\n\
                    # HELP ab More.\n# TYPE ab gauge\nab 2\n# EOF\n";
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{b=\"# EOF\"} 1\n\
                    # HELP ab More.\n# TYPE ab gauge\nab 2\n";
        assert_eq!(as_text(open), text);
    }
}
