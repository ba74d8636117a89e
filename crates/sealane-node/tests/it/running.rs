//! A node over a folder of its own.

use std::net::SocketAddr;
use std::path::Path;

use sealane_node::{Config, HubNode};
use sealane_stream::{Level, Retention};
use serde_json::{Value, json};

use crate::http::{self, Reply};
use crate::socket::Socket;

/// A node and the folder that it keeps its streams in.
pub(crate) struct Running {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) node: HubNode,
}

impl Running {
    /// A fresh node; its streams answer at `os`, so that tests do not wait for the disk.
    pub(crate) async fn start() -> Running {
        Running::over(tempfile::tempdir().unwrap(), Level::Os).await
    }

    pub(crate) async fn over(folder: tempfile::TempDir, level: Level) -> Running {
        let config = config(folder.path(), level);
        Running::with(folder, config).await
    }

    pub(crate) async fn with(folder: tempfile::TempDir, config: Config) -> Running {
        let node = HubNode::start(config).await.unwrap();
        Running { folder, node }
    }

    /// Stops the node cleanly; its folder stays.
    pub(crate) async fn stop(self) -> tempfile::TempDir {
        self.node.stop().await.unwrap();
        self.folder
    }

    /// Stops the node cleanly and starts another one over the same folder.
    pub(crate) async fn restart(self) -> Running {
        Running::over(self.stop().await, Level::Os).await
    }

    /// The files that a crash at this moment leaves behind, opened by another node.
    pub(crate) async fn crashed(&self) -> Running {
        let folder = tempfile::tempdir().unwrap();
        // The log first: pages that move from it to the database in between are then in both.
        for name in ["streams.db-wal", "streams.db"] {
            let from = self.folder.path().join(name);
            if from.exists() {
                std::fs::copy(from, folder.path().join(name)).unwrap();
            }
        }
        Running::over(folder, Level::Os).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.node.address()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        http::request(self.address(), "GET", path, &[], b"").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Reply {
        http::request(self.address(), "GET", path, &[("accept", accept)], b"").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        http::request(self.address(), "DELETE", path, &[], b"").await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        let body = body.to_string();
        http::request(self.address(), "PUT", path, &[], body.as_bytes()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Reply {
        let body = body.to_string();
        http::request(self.address(), "POST", path, headers, body.as_bytes()).await
    }

    /// Enqueues one message; its reply.
    pub(crate) async fn enqueue(&self, to: &str, envelope: Value) -> Value {
        let reply = self.post("/v1/enqueue", json!({"to": to, "envelope": envelope})).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// Enqueues `{id: "m0", n: 0}` and so on up to `count`, in one commit, numbered from `first`.
    pub(crate) async fn enqueue_numbered(&self, to: &str, first: u64, count: u64) {
        let numbered = |n| json!({"id": format!("m{n}"), "n": n});
        let envelopes: Vec<Value> = (first..first + count).map(numbered).collect();
        let body = json!({"to": to, "envelopes": envelopes});
        let reply = self.post("/v1/enqueue/batch", body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    /// The state of a stream.
    pub(crate) async fn state(&self, topic: &str) -> Value {
        let reply = self.get(&format!("/v1/streams/{topic}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// The state of one consumer of a stream; null where there is none.
    pub(crate) async fn consumer(&self, topic: &str, name: &str) -> Value {
        let state = self.state(topic).await;
        let all = state["consumers"].as_array().unwrap().clone();
        all.into_iter().find(|consumer| consumer["consumer"] == name).unwrap_or_default()
    }

    /// A metric without labels.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.text();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// A subscription; `query` is what stands behind the question mark.
    pub(crate) async fn subscribe(&self, query: &str) -> Socket {
        Socket::open(self.address(), query, &[]).await
    }
}

pub(crate) fn config(data: &Path, level: Level) -> Config {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        listen,
        data: data.to_owned(),
        level,
        retention: Retention::default(),
        ..Config::default()
    }
}
