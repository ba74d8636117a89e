//! Where a machine tells how it is: `/metrics` for Prometheus, `/status` and `/trace` for
//! `sealane mesh`.

use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use sealane_link::{LinkError, METRICS_KIND};
use sealane_seal::Slot;

use crate::Result;
use crate::config::MachineConfig;
use crate::limits::MAX_TRACE_WAIT_MS;
use crate::page::{PageServer, page, refusal};
use crate::status::{MachineWatch, mesh};

const JSON: &str = "application/json";

/// Serves the status where a configuration says, if it does.
///
/// # Errors
/// [`LinkError::Open`].
pub(crate) async fn serve(
    config: &MachineConfig,
    watch: &MachineWatch,
) -> Result<Option<PageServer>> {
    let Some(address) = config.links.status else { return Ok(None) };
    let served = PageServer::serve(address, pages(watch.clone())).await;
    let failed = |cause| config.refused(LinkError::Open { link: "status".to_owned(), cause });
    served.map(Some).map_err(failed)
}

fn pages(watch: MachineWatch) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/status", get(status))
        .route("/trace", get(trace))
        .with_state(watch)
}

async fn metrics(State(watch): State<MachineWatch>) -> Response {
    told(METRICS_KIND, move || watch.status().metrics()).await
}

async fn status(State(watch): State<MachineWatch>) -> Response {
    told(JSON, move || watch.status().json()).await
}

/// A page of the status. It is made on a thread that may wait: the locks of a gateway's queue are
/// held for as long as a commit takes, and the runtime's threads carry frames meanwhile.
async fn told(kind: &'static str, body: impl FnOnce() -> String + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(body).await {
        Ok(body) => page(StatusCode::OK, kind, body),
        Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Asks the mesh for the way to a machine.
async fn trace(State(watch): State<MachineWatch>, RawQuery(query): RawQuery) -> Response {
    let Some(router) = watch.router() else { return refusal(StatusCode::NOT_FOUND) };
    let slot = query.as_deref().and_then(|query| query.strip_prefix("to="));
    let slot = slot.and_then(|slot| slot.parse().ok()).and_then(Slot::new);
    let Some(slot) = slot else { return refusal(StatusCode::BAD_REQUEST) };
    // The answer of other machines is waited for.
    let patience = Duration::from_millis(MAX_TRACE_WAIT_MS);
    let asked = tokio::task::spawn_blocking(move || router.trace(slot, patience));
    match asked.await {
        Ok(Ok(traced)) => page(StatusCode::OK, JSON, mesh::traced(slot, traced.as_ref())),
        Ok(Err(_)) | Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{guarded, tests::asked};

    #[tokio::test]
    async fn a_machine_without_a_mesh_traces_nothing() {
        let config =
            "version = 1\ntag = \"a100000000000001\"\n[[link]]\nname = \"l\"\nmemory = 1\n";
        let mut config = sealane_link::Config::parse(config).unwrap();
        config.memory = Some(sealane_link::MemoryNet::default());
        let relay = sealane_link::LinkRelay::start(&config, &[]).unwrap();
        let pages = guarded(pages(MachineWatch::of(&relay)));
        for (target, status) in [("/status", 200), ("/metrics", 200), ("/trace?to=1", 404)] {
            for method in ["GET", "HEAD"] {
                let answered = asked(&pages, method, target, Some("localhost")).await.0;
                assert_eq!(answered, status, "{method} {target}");
            }
        }
    }

    #[tokio::test]
    async fn a_page_that_waits_for_a_lock_stops_no_other_task() {
        let (lock, locked) = std::sync::mpsc::channel::<()>();
        // The runtime of this test has one thread. A page that waited on it would wait in vain.
        let waits = tokio::spawn(told(JSON, move || {
            locked.recv_timeout(Duration::from_secs(20)).unwrap();
            "{}".to_owned()
        }));
        tokio::task::yield_now().await;
        lock.send(()).unwrap();
        assert_eq!(waits.await.unwrap().status(), StatusCode::OK);
    }
}
