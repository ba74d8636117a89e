//! A node over an empty folder, and streams with messages.

use std::time::Duration;

use crate::durable::http::Reply;
use crate::durable::node::Node;

/// A hub that does nothing for so long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Messages of one request have about so many bytes.
const REQUEST_BYTES: usize = 1 << 20;

pub(crate) struct Stage {
    pub(crate) node: Node,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn set(level: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        Self { node: Node::start(&data, level, &folder.path().join("log")), _folder: folder }
    }

    /// Enqueues so many messages with the ids `m0`, `m1` and so on, a request's worth at a time.
    pub(crate) fn fill(&self, topic: &str, count: usize, bytes: usize) {
        let (mut http, filling) = (self.node.http(), "x".repeat(bytes));
        let at_once = (REQUEST_BYTES / (bytes + 40)).max(1);
        for from in (0..count).step_by(at_once) {
            let some = (from..count.min(from + at_once))
                .map(|number| format!("{{\"id\":\"m{number}\",\"text\":\"{filling}\"}}"))
                .collect::<Vec<_>>()
                .join(",");
            let body = format!("{{\"to\":\"{topic}\",\"envelopes\":[{some}]}}");
            let Reply { status, body } = http.call("POST", "/v1/enqueue/batch", &body).unwrap();
            assert_eq!(status, 200, "{body}");
        }
    }
}
