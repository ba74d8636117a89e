//! Records of changes, removals and refusals by token and address: a line of the log for each, and
//! a message of the topic `audit/node` (spec/access.md, *Audit*).
//!
//! A node without tokens keeps the lines alone. All its clients are the same one, and a stream of
//! the node's own would be one more than its owner made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{RawQuery, Request};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use sealane_codec::{Codec, DatumWriter, Transcoder};
use sealane_message::Topic;
use sealane_protocol::{Error, StreamChange};
use sealane_stream::{StreamEnqueue, StreamEnvelope};
use tokio::sync::{mpsc, watch};

use crate::app::NodeApp;
use crate::clock::stopped;
use crate::fair::ClientRates;
use crate::limits::{
    AUDIT_LOOK_MS, AUDITED_PER_SECOND, AUDITED_REMOVALS_PER_SECOND, MAX_ALL_REFUSALS_PER_MINUTE,
    MAX_AUDIT_AGE_MS, MAX_AUDIT_BYTES, MAX_AUDITED_AT_ONCE, MAX_AUDITED_BYTES, MAX_RATE_KEYS,
    MAX_REFUSALS_PER_MINUTE, MAX_WAITING_AUDIT,
};
use crate::peer::ClientPeer;
use crate::query;
use crate::reply::RefusalName;

/// The topic of the node's own records.
const TOPIC: &str = "audit/node";

/// The topic of refusals. Clients without a token cause them, and must not push out what was done.
const REFUSED_TOPIC: &str = "audit/refused";

/// The refusals that an operator wants to know the sender of.
const REFUSALS: [&str; 5] =
    ["Unauthorized", "Forbidden", "TooManyGuesses", "OriginRefused", "TicketSpent"];

/// The deeds after which messages or places are gone.
const REMOVALS: [&str; 4] =
    ["removed a stream", "removed a consumer", "cancelled a delayed message", "purged a stream"];

/// The parameters of a query that a record names.
const TOLD_PARAMETERS: [&str; 4] = ["pattern", "consumer", "id", "stream"];

/// A detail of what a request did, beside what its path says: a part of the response.
#[derive(Debug, Clone)]
pub(crate) struct AuditDetail(pub(crate) String);

/// The response with what the audit is to know beside it.
pub(crate) fn detailed(mut response: Response, detail: Option<AuditDetail>) -> Response {
    if let Some(detail) = detail {
        response.extensions_mut().insert(detail);
    }
    response
}

/// One record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuditRecord {
    is_refusal: bool,
    deed: &'static str,
    /// The name of the token; empty: there was none.
    token: String,
    address: String,
    /// The topic, and the consumer of it.
    on: String,
    detail: String,
    /// Records that were left out before this one, since they came too fast.
    omitted: u64,
}

impl AuditRecord {
    fn write(&self) -> Vec<u8> {
        let Self { is_refusal: _, deed, token, address, on, detail, omitted } = self;
        let fields = [("deed", *deed), ("token", token), ("address", address), ("on", on)];
        let mut body = Vec::new();
        let mut writer = DatumWriter::new(Codec::Json, &mut body);
        writer.map(fields.len() + 2);
        for (name, text) in fields.into_iter().chain([("detail", detail.as_str())]) {
            writer.key(name);
            writer.text(text);
        }
        writer.key("omitted");
        writer.u64(*omitted);
        writer.end();
        body
    }
}

/// The parts of a request that a record needs, kept while it is served.
pub(crate) struct AuditedRequest {
    method: Method,
    uri: Uri,
    route: &'static str,
    address: Option<ClientPeer>,
}

impl AuditedRequest {
    pub(crate) fn of(request: &Request, route: &'static str) -> Self {
        let address = request.extensions().get::<ClientPeer>().copied();
        Self { method: request.method().clone(), uri: request.uri().clone(), route, address }
    }

    /// The deed of a request that was done; none: it only looked, or stored messages.
    fn deed(&self, status: StatusCode) -> Option<&'static str> {
        if !status.is_success() {
            return None;
        }
        let is_made = status == StatusCode::CREATED;
        Some(match (self.route, self.method.as_str()) {
            ("/v1/streams/{*topic}", "PUT") if is_made => "made a stream",
            ("/v1/streams/{*topic}", "PUT") => "changed a stream",
            ("/v1/streams/{*topic}", "DELETE") => "removed a stream",
            ("/v1/consumers/{*topic}", "POST") => "steered a consumer",
            ("/v1/consumers/{*topic}", "DELETE") => "removed a consumer",
            ("/v1/delayed/{*topic}", "DELETE") => "cancelled a delayed message",
            ("/v1/purge/{*topic}", "POST") => "purged a stream",
            ("/v1/rules", "PUT") => "set a rule",
            ("/v1/rules", "DELETE") => "removed a rule",
            _ => return None,
        })
    }

    /// Whether a request of this kind leaves a record where it is done.
    pub(crate) fn may_do(&self) -> bool {
        self.deed(StatusCode::OK).is_some()
    }

    /// The topic of the path, with what the query names beside it.
    fn on(&self) -> String {
        let path = self.uri.path();
        let fixed = self.route.split('{').next().unwrap_or_default();
        let topic = path.strip_prefix(fixed).filter(|topic| !topic.is_empty()).unwrap_or(path);
        let topic = query::unescape(topic).unwrap_or_else(|| topic.to_owned());
        // A query may bring a secret, by whatever name. So only names without one are told.
        let asked = query::read(RawQuery(self.uri.query().map(str::to_owned))).unwrap_or_default();
        let told = asked.iter().filter(|(name, _)| TOLD_PARAMETERS.contains(&name.as_str()));
        let told: Vec<String> = told.map(|(name, value)| format!("{name}={value}")).collect();
        let told = told.join("&");
        brief(&match told.as_str() {
            "" => topic,
            told if topic == fixed => told.to_owned(),
            told => format!("{topic} {told}"),
        })
    }
}

/// A text of a client as it may stand in a line of a log.
fn brief(text: &str) -> String {
    let mut brief: String = text.escape_debug().take(MAX_AUDITED_BYTES).collect();
    while brief.len() > MAX_AUDITED_BYTES {
        brief.pop();
    }
    brief
}

/// The records of a node.
pub(crate) struct AuditTrail {
    sender: mpsc::Sender<AuditRecord>,
    /// Deeds, by the token that did them and the deed.
    done: ClientRates<String>,
    /// The same of deeds after which messages are gone. Nothing cheap may hide them.
    removed: ClientRates<String>,
    /// Refusals, by token, address and name.
    refused: ClientRates<String>,
    /// Refusals of all clients: an address costs them nothing.
    all_refused: ClientRates<()>,
    omitted: AtomicU64,
    omitted_refusals: AtomicU64,
    /// The stream has failed to take a record, and the log has said so.
    is_lossy: AtomicBool,
}

impl AuditTrail {
    /// The trail, and where its records come out for [`keep`].
    pub(crate) fn new() -> (Self, mpsc::Receiver<AuditRecord>) {
        let (sender, records) = mpsc::channel(MAX_WAITING_AUDIT);
        let deeds = AUDITED_PER_SECOND as f64;
        let removals = AUDITED_REMOVALS_PER_SECOND as f64;
        let refusals = MAX_REFUSALS_PER_MINUTE as f64;
        let all_refusals = MAX_ALL_REFUSALS_PER_MINUTE as f64;
        let trail = Self {
            sender,
            done: ClientRates::new(deeds, deeds * 10.0, MAX_RATE_KEYS),
            removed: ClientRates::new(removals, removals * 10.0, MAX_RATE_KEYS),
            refused: ClientRates::new(refusals / 60.0, refusals, MAX_RATE_KEYS),
            all_refused: ClientRates::new(all_refusals / 60.0, all_refusals, 1),
            omitted: AtomicU64::new(0),
            omitted_refusals: AtomicU64::new(0),
            is_lossy: AtomicBool::new(false),
        };
        (trail, records)
    }

    /// Records what a request did, or why it was refused, if that is to be known.
    pub(crate) fn note(&self, asked: &AuditedRequest, token: &str, response: &Response) {
        let name = response.extensions().get::<RefusalName>().map(|RefusalName(name)| *name);
        let refused = name.filter(|name| REFUSALS.contains(name));
        let deed = asked.deed(response.status());
        if deed.is_none() && refused.is_none() {
            return;
        }
        let detail = response.extensions().get::<AuditDetail>();
        let record = AuditRecord {
            is_refusal: refused.is_some(),
            deed: deed.unwrap_or("was refused"),
            token: token.to_owned(),
            address: asked.address.map(|address| address.to_string()).unwrap_or_default(),
            on: asked.on(),
            detail: refused.map_or_else(
                || detail.map(|AuditDetail(text)| text.clone()).unwrap_or_default(),
                |name| format!("{name}: {} {}", asked.method, asked.route),
            ),
            omitted: 0,
        };
        // A client in a loop must fill neither the log nor the stream. Each has a share of its own,
        // so that it hides nobody else either.
        let (rates, key) = match (refused, record.deed) {
            (Some(name), _) => (&self.refused, format!("{token} {} {name}", record.address)),
            (None, deed) if REMOVALS.contains(&deed) => (&self.removed, format!("{token} {deed}")),
            (None, deed) => (&self.done, format!("{token} {deed}")),
        };
        let now = Instant::now();
        // The sum of all is asked last, so that a client beyond its own share takes none of it.
        let is_refused = refused.is_some();
        let is_full = || is_refused && self.all_refused.wait(&(), now).is_some();
        if rates.wait(&key, now).is_some() || is_full() {
            self.omitted_of(is_refused).fetch_add(1, Ordering::Relaxed);
            return;
        }
        rates.charge(&key, 1, now);
        if is_refused {
            self.all_refused.charge(&(), 1, now);
        }
        self.tell(record);
    }

    /// Records what the node itself did, or what became of it.
    pub(crate) fn note_own(&self, deed: &'static str, detail: String) {
        self.tell(AuditRecord { deed, detail, ..AuditRecord::default() });
    }

    /// The count of records that were left out, of refusals or of all others.
    fn omitted_of(&self, is_refusal: bool) -> &AtomicU64 {
        if is_refusal { &self.omitted_refusals } else { &self.omitted }
    }

    fn tell(&self, mut record: AuditRecord) {
        record.omitted = self.omitted_of(record.is_refusal).swap(0, Ordering::Relaxed);
        let AuditRecord { is_refusal: _, deed, token, address, on, detail, omitted } = &record;
        tracing::info!(target: "sealane_node::audit", deed, token, address, on, detail, omitted);
        if let Err(error) = self.sender.try_send(record) {
            // It stands in the log all the same. What the stream lacks, its next record counts.
            let (mpsc::error::TrySendError::Full(record)
            | mpsc::error::TrySendError::Closed(record)) = error;
            let omitted = self.omitted_of(record.is_refusal);
            omitted.fetch_add(record.omitted + 1, Ordering::Relaxed);
        }
    }
}

/// Stores the records of a node that has tokens, and tells of its storage, until `ended` says that
/// no request is served any more.
pub(crate) async fn keep(
    app: Arc<NodeApp>,
    mut records: mpsc::Receiver<AuditRecord>,
    mut ended: watch::Receiver<bool>,
) {
    let mut trouble = None;
    let mut look = tokio::time::interval(Duration::from_millis(AUDIT_LOOK_MS));
    loop {
        let mut waiting = Vec::new();
        tokio::select! {
            // Records that wait are stored before the node's end is looked at.
            biased;
            _ = records.recv_many(&mut waiting, MAX_AUDITED_AT_ONCE) => {}
            _ = look.tick() => {
                let now = app.hub.trouble().map(|trouble| trouble.to_string());
                match &now {
                    Some(cause) if trouble.is_none() => {
                        app.audit.note_own("takes no messages", cause.clone());
                    }
                    None if trouble.is_some() => {
                        app.audit.note_own("takes messages again", String::new());
                    }
                    _ => {}
                }
                trouble = now;
            }
            () = stopped(&mut ended) => return,
        }
        if !waiting.is_empty() && app.access.has_tokens() {
            let (refused, done): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|record| record.is_refusal);
            store(&app, TOPIC, &done).await;
            store(&app, REFUSED_TOPIC, &refused).await;
        }
    }
}

async fn store(app: &NodeApp, topic: &str, records: &[AuditRecord]) {
    let Some(first) = records.first() else { return };
    let Err(error) = append(app, topic, records).await else { return };
    let lost = records.iter().map(|record| record.omitted + 1).sum();
    app.audit.omitted_of(first.is_refusal).fetch_add(lost, Ordering::Relaxed);
    // A warning for each record would fill the log of a full disk.
    if app.audit.is_lossy.swap(true, Ordering::Relaxed) {
        tracing::debug!(%error, topic, "the audit was not stored; the log has it");
    } else {
        tracing::warn!(%error, topic, "the audit was not stored; the log alone has it");
    }
}

async fn append(app: &NodeApp, topic: &str, records: &[AuditRecord]) -> Result<(), Error> {
    let topic: Topic = topic.parse()?;
    // Its owner may choose other bounds, but not that it fills the disk.
    if app.hub.stream(&topic).map_or(true, |state| state.retention.keeps_all()) {
        let change = StreamChange {
            max_age_ms: Some(MAX_AUDIT_AGE_MS),
            max_bytes: Some(MAX_AUDIT_BYTES),
            ..StreamChange::default()
        };
        app.hub.configure(&topic, change).await?;
    }
    let mut scratch = Transcoder::new();
    let mut envelopes = Vec::with_capacity(records.len());
    for record in records {
        let body = record.write();
        envelopes.push(StreamEnvelope::read(&mut scratch, app.hub.ids(), Codec::Json, &body)?);
    }
    let owner = Arc::default();
    let append = StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner };
    app.hub.enqueue(append).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, uri: &str, route: &'static str) -> AuditedRequest {
        let request = Request::builder().method(method).uri(uri);
        AuditedRequest::of(&request.body(axum::body::Body::empty()).unwrap(), route)
    }

    #[test]
    fn a_line_names_the_topic_and_no_secret_and_cannot_be_forged() {
        let topic = |uri: &str| asked("DELETE", uri, "/v1/streams/{*topic}").on();
        assert_eq!(topic("/v1/streams/fleet/7"), "fleet/7");
        assert_eq!(topic("/v1/streams/a%0Ab"), "a\\nb");
        for secret in ["ticket=s", "t%69cket=s", "token=sealane_s", "access_token=s", "%74oken=s"] {
            assert_eq!(topic(&format!("/v1/streams/a?{secret}")), "a", "{secret}");
            let beside = topic(&format!("/v1/streams/a?{secret}&id=7"));
            assert_eq!(beside, "a id=7", "{secret}");
        }
        assert!(topic(&format!("/v1/streams/{}", "x".repeat(9000))).len() <= MAX_AUDITED_BYTES);
        assert_eq!(asked("POST", "/v1/enqueue", "/v1/enqueue").on(), "/v1/enqueue");
        let rule = asked("PUT", "/v1/rules?pattern=a%2F%2A%2A", "/v1/rules");
        assert_eq!(rule.on(), "pattern=a/**");
        let consumer = asked("POST", "/v1/consumers/a?consumer=b", "/v1/consumers/{*topic}");
        assert_eq!(consumer.on(), "a consumer=b");
    }

    #[test]
    fn who_is_refused_in_a_loop_is_counted_and_hides_nobody() {
        let (trail, mut records) = AuditTrail::new();
        let refused = |name| {
            let mut response = Response::new(axum::body::Body::empty());
            *response.status_mut() = StatusCode::FORBIDDEN;
            response.extensions_mut().insert(RefusalName(name));
            response
        };
        let asked = asked("DELETE", "/v1/streams/a", "/v1/streams/{*topic}");
        for _ in 0..MAX_REFUSALS_PER_MINUTE + 1000 {
            trail.note(&asked, "loop", &refused("Forbidden"));
        }
        trail.note(&asked, "other", &refused("Forbidden"));
        trail.note(&asked, "other", &refused("UnknownStream"));
        let mut all = Vec::new();
        while let Ok(record) = records.try_recv() {
            all.push((record.token, record.omitted));
        }
        let mut expected = vec![("loop".to_owned(), 0); MAX_REFUSALS_PER_MINUTE as usize];
        expected.push(("other".to_owned(), 1000));
        assert_eq!(all, expected);
    }

    #[test]
    fn strangers_have_one_share_of_all_and_hide_no_deed() {
        let (trail, mut records) = AuditTrail::new();
        let asked = asked("DELETE", "/v1/streams/a", "/v1/streams/{*topic}");
        let mut refused = Response::new(axum::body::Body::empty());
        *refused.status_mut() = StatusCode::UNAUTHORIZED;
        refused.extensions_mut().insert(RefusalName("Unauthorized"));
        for stranger in 0..500 {
            trail.note(&asked, &format!("stranger {stranger}"), &refused);
        }
        trail.note(&asked, "ops", &Response::new(axum::body::Body::empty()));
        let mut all = Vec::new();
        while let Ok(record) = records.try_recv() {
            all.push(record);
        }
        assert_eq!(all.len() as u64, MAX_ALL_REFUSALS_PER_MINUTE + 1);
        let last = all.last().unwrap();
        assert_eq!((last.deed, last.omitted, last.is_refusal), ("removed a stream", 0, false));
    }

    #[test]
    fn cheap_deeds_hide_no_removal() {
        let (trail, mut records) = AuditTrail::new();
        let done = Response::new(axum::body::Body::empty());
        let set = asked("PUT", "/v1/streams/a", "/v1/streams/{*topic}");
        for _ in 0..AUDITED_PER_SECOND * 20 {
            trail.note(&set, "ops", &done);
        }
        trail.note(&asked("DELETE", "/v1/streams/a", "/v1/streams/{*topic}"), "ops", &done);
        let mut last = None;
        while let Ok(record) = records.try_recv() {
            last = Some(record);
        }
        let last = last.unwrap();
        assert_eq!((last.deed, last.omitted > 0), ("removed a stream", true));
    }

    #[test]
    fn only_what_was_done_is_a_deed() {
        let put = asked("PUT", "/v1/streams/a", "/v1/streams/{*topic}");
        assert_eq!(put.deed(StatusCode::CREATED), Some("made a stream"));
        assert_eq!(put.deed(StatusCode::OK), Some("changed a stream"));
        assert_eq!(put.deed(StatusCode::NOT_FOUND), None);
        let get = asked("GET", "/v1/streams/a", "/v1/streams/{*topic}");
        assert_eq!(get.deed(StatusCode::OK), None);
        assert_eq!(asked("POST", "/v1/enqueue", "/v1/enqueue").deed(StatusCode::OK), None);
    }
}
