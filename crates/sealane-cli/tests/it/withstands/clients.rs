//! Clients that behave: each publishes to a stream of its own, and reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sealane::{Client, Subscription, Value};
use tokio::task::JoinHandle;

use super::node::Node;

/// A client publishes so often.
const EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Clients {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Samples>>,
}

impl Clients {
    /// Starts so many, and waits until all of them read.
    pub(crate) async fn start(node: &Node, count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for number in 0..count {
            let (client, topic) = (node.client(), format!("good/{number}"));
            let reading = client.subscribe(&topic).await.unwrap();
            let turn = EVERY * number as u32 / count as u32;
            tasks.push(tokio::spawn(behave(client, topic, reading, turn, stop.clone())));
        }
        Self { stop, tasks }
    }

    /// Stops them; what each of them has measured.
    pub(crate) async fn finish(self) -> Vec<Samples> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for task in self.tasks {
            all.push(task.await.unwrap());
        }
        all
    }
}

/// Publishes, and waits until it is delivered, which every message must be, once and in order.
async fn behave(
    client: Client,
    topic: String,
    mut reading: Subscription,
    turn: Duration,
    stop: Arc<AtomicBool>,
) -> Samples {
    let mut samples = Vec::new();
    let mut every = tokio::time::interval_at(tokio::time::Instant::now() + turn, EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for n in 0_u64.. {
        every.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        client.publish(&topic, &Value::Map(vec![("n".into(), n.into())])).await.unwrap();
        let message = reading.next().await.unwrap().unwrap();
        assert_eq!(message.value().unwrap().field("n").and_then(Value::as_u64), Some(n));
        samples.push((began, began.elapsed()));
    }
    Samples(samples)
}

/// When something began, and how long it took.
#[derive(Default)]
pub(crate) struct Samples(pub(crate) Vec<(Instant, Duration)>);

impl Samples {
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Samples {
        let mut some: Vec<_> =
            self.0.iter().copied().filter(|(at, _)| (from..to).contains(at)).collect();
        some.sort_by_key(|(_, took)| *took);
        Samples(some)
    }

    /// Those of all.
    pub(crate) fn join(each: &[Samples]) -> Samples {
        Samples(each.iter().flat_map(|samples| samples.0.iter().copied()).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The duration that this part of them did not exceed, of what `between` gave.
    pub(crate) fn part(&self, part: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0[(last as f64 * part) as usize].1
    }
}
