//! Access to the page of the team: every program on this machine that has its key.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use sealane::Value;
use sealane::documents::{DocumentAnswer, DocumentQuestion, DocumentValue};
use sealane_group::now_ms;
use sealane_link::LinkError;

use super::super::{DocumentTask, ask};
use super::TeamPageState;
use crate::json::map;
use crate::page::{self, PageKey, PageServer, refusal};
use crate::{MachineError, Result};

/// The state that all requests share.
struct TeamDoor {
    key: PageKey,
    tasks: SyncSender<DocumentTask>,
}

/// Serves the page on loopback, under a key of its own. Gives its address with that key, too.
pub(in crate::documents) async fn serve(
    address: SocketAddr,
    tasks: SyncSender<DocumentTask>,
) -> Result<(PageServer, String)> {
    if !address.ip().is_loopback() {
        return Err(MachineError::View(": other machines reach that address; take 127.0.0.1"));
    }
    let door = Arc::new(TeamDoor { key: PageKey::draw()?, tasks });
    let served = PageServer::serve(address, pages(Arc::clone(&door))).await;
    let served = served.map_err(|cause| {
        MachineError::link("--view".as_ref(), LinkError::Open { link: address.to_string(), cause })
    })?;
    let url = door.key.url(served.address());
    Ok((served, url))
}

fn pages(door: Arc<TeamDoor>) -> Router {
    Router::new().route("/", get(team)).with_state(door)
}

async fn team(State(door): State<Arc<TeamDoor>>, RawQuery(query): RawQuery) -> Response {
    if !door.key.opens(query.as_deref()) {
        return refusal(StatusCode::UNAUTHORIZED);
    }
    let documents = door.value(DocumentQuestion::Ls).await;
    let calls = door.value(DocumentQuestion::Emergencies).await;
    let shown =
        TeamPageState { documents, calls, counts: door.value(DocumentQuestion::Counts).await };
    page::page(StatusCode::OK, "text/html; charset=utf-8", super::page(&shown, now_ms()))
}

impl TeamDoor {
    /// The thread's answer; nothing if it has too much to do.
    async fn value(&self, asked: DocumentQuestion) -> Value {
        match ask(&self.tasks, asked).await {
            Ok(DocumentAnswer::Items { items, sums }) => {
                let sums = sums.into_iter().map(|(id, sum)| (id.to_string(), sum.into()));
                let items = items.into_iter().map(|DocumentValue(item)| item);
                map(vec![
                    ("items", Value::Array(items.collect())),
                    ("sums", Value::Map(sums.collect())),
                ])
            }
            Ok(DocumentAnswer::Counts(DocumentValue(counts))) => counts,
            Ok(_) | Err(_) => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{guarded, tests::asked};

    #[tokio::test]
    async fn each_request_without_the_key_or_from_elsewhere_is_refused_by_its_status() {
        let key = PageKey::draw().unwrap();
        let right = key.url("127.0.0.1:9088".parse().unwrap());
        let right = right.strip_prefix("http://127.0.0.1:9088").unwrap().to_owned();
        let (tasks, _waiting) = std::sync::mpsc::sync_channel(0);
        let pages = guarded(pages(Arc::new(TeamDoor { key, tasks })));
        let own = "127.0.0.1:9088";
        for (method, target, host, status) in [
            ("GET", right.clone(), own, 200),
            ("GET", right.clone(), "localhost:1", 200),
            ("GET", right.clone(), "[::1]:9088", 200),
            ("GET", right.replace("key=", "key=0"), own, 401),
            ("GET", right[..right.len() - 1].to_owned(), own, 401),
            ("GET", format!("{right}0"), own, 401),
            ("GET", right.replace("?key", "?other=1&key"), own, 401),
            ("GET", "/?key=".to_owned(), own, 401),
            ("GET", "/".to_owned(), own, 401),
            ("GET", right.clone(), "evil.example:9088", 421),
            ("GET", right.clone(), "127.0.0.1.evil.example", 421),
            ("GET", right.clone(), "10.0.0.1", 421),
            ("POST", right.clone(), own, 405),
            ("GET", right.replace("/?", "/status?"), own, 404),
        ] {
            let answered = asked(&pages, method, &target, Some(host)).await;
            assert_eq!(answered.0, status, "{method} {target} of {host}");
        }
    }

    #[tokio::test]
    async fn the_page_is_served_to_no_other_machine() {
        let (tasks, _waiting) = std::sync::mpsc::sync_channel(0);
        let refused = serve("0.0.0.0:0".parse().unwrap(), tasks).await.err().unwrap();
        assert_eq!(refused.info().code, "SL-MACHINE-03");
    }
}
