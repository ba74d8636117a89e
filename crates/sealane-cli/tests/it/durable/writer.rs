//! A writer: a connection that enqueues, and notes what it is told.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::http::{Http, Reply};
use super::json;
use super::ledger::{Id, Ledger, envelope};

/// Numbers writers, so that no two messages of a run have the same id.
static WRITERS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Writer<'a> {
    http: Http,
    ledger: &'a Ledger,
    seed: u64,
    number: u64,
    requests: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(http: Http, ledger: &'a Ledger, seed: u64) -> Self {
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        Self { http, ledger, seed, number, requests: 0 }
    }

    /// Enqueues `count` messages in one request; what is acknowledged goes to the ledger.
    pub(crate) fn enqueue(&mut self, topic: &str, count: u64) -> io::Result<Reply> {
        self.enqueue_then(topic, count, || {})
    }

    /// Does something the moment that the reply is there, before anything else.
    pub(crate) fn enqueue_then(
        &mut self,
        topic: &str,
        count: u64,
        then: impl FnOnce(),
    ) -> io::Result<Reply> {
        let (writer, request) = (self.number, self.requests);
        self.requests += 1;
        let id = |index| Id { writer, request, index, of: count };
        let ids: Vec<Id> = (0..count).map(id).collect();
        let envelopes: Vec<_> = ids.iter().map(|id| envelope(self.seed, *id)).collect();
        let envelopes = envelopes.join(",");
        let (path, body) = match count {
            1 => ("/v1/enqueue", format!(r#"{{"to":"{topic}","envelope":{envelopes}}}"#)),
            _ => ("/v1/enqueue/batch", format!(r#"{{"to":"{topic}","envelopes":[{envelopes}]}}"#)),
        };
        let reply = self.http.call("POST", path, &body)?;
        then();
        if reply.status == 200 {
            let generation = json::number(&reply.body, "generation");
            let place = (generation, json::number(&reply.body, "offset"));
            self.ledger.acknowledge(topic, place, &ids);
        }
        Ok(reply)
    }
}
