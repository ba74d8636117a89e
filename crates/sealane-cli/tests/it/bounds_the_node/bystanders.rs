//! Clients that want nothing of what happens beside them: each enqueues to a stream of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::figures::Latencies;
use crate::durable::http::Http;
use crate::durable::node::Node;

pub(crate) const BYSTANDERS: usize = 8;

/// A bystander waits so long between two requests.
const PAUSE: Duration = Duration::from_millis(5);

/// Bystanders that turn to the next node every second, so that all nodes are measured on the same
/// machine and disk, in the same state.
pub(crate) struct Bystanders {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Waits>>>,
    nodes: usize,
}

/// The waits of one bystander at one node.
#[derive(Default, Clone)]
struct Waits {
    took: Vec<Duration>,
    refused: Vec<String>,
}

impl Bystanders {
    pub(crate) fn start(nodes: &[&Node], level: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let mut threads = Vec::new();
        for number in 0..BYSTANDERS {
            nodes.iter().for_each(|node| node.make(&format!("own/{number}"), level));
            let doors: Vec<Http> = nodes.iter().map(|node| node.http()).collect();
            let stop = stop.clone();
            threads.push(std::thread::spawn(move || stand(doors, number, began, &stop)));
        }
        Self { stop, threads, nodes: nodes.len() }
    }

    /// How long they waited at each node. None of them may have been refused anything.
    pub(crate) fn finish(self) -> Vec<Latencies> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = vec![Waits::default(); self.nodes];
        for thread in self.threads {
            for (all, one) in all.iter_mut().zip(thread.join().unwrap()) {
                all.took.extend(one.took);
                all.refused.extend(one.refused);
            }
        }
        for Waits { refused, .. } in &all {
            assert!(refused.is_empty(), "{} were refused: {}", refused.len(), refused[0]);
        }
        all.into_iter().map(|waits| Latencies::new(waits.took)).collect()
    }
}

fn stand(mut doors: Vec<Http>, number: usize, began: Instant, stop: &AtomicBool) -> Vec<Waits> {
    let body = format!(r#"{{"to":"own/{number}","envelope":{{"text":"{}"}}}}"#, "x".repeat(200));
    let mut waits = vec![Waits::default(); doors.len()];
    while !stop.load(Ordering::Relaxed) {
        let turn = began.elapsed().as_secs() as usize % doors.len();
        let asked = Instant::now();
        let reply = doors[turn].call("POST", "/v1/enqueue", &body);
        waits[turn].took.push(asked.elapsed());
        match reply {
            Ok(reply) if reply.status == 200 => {}
            Ok(reply) => waits[turn].refused.push(format!("{} {}", reply.status, reply.body)),
            Err(error) => {
                waits[turn].refused.push(error.to_string());
                return waits;
            }
        }
        std::thread::sleep(PAUSE);
    }
    waits
}
