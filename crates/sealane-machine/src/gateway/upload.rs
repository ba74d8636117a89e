//! From the queue to the hub.

mod lane;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use sealane::Client;
use tokio::sync::Notify;

use crate::GatewayError;
use crate::gateway::hub::{HubAccess, HubObstacle};
use crate::gateway::queue::{GatewayQueue, GatewayQueuedFrame};
use crate::gateway::stream::MeshStream;
use crate::gateway::wait::{HubBackoff, shortened};
use crate::limits::{
    DISK_RETRY_MS, MAX_STREAM_HOLD_MS, MAX_UNCLEAR_ANSWERS, MAX_UNCLEAR_FRAMES, MAX_UPLOAD_LANES,
};
use lane::{LaneEnd, UploadBatching};

/// Brings what is kept to the hub: the most urgent first, and of each origin in the order in which
/// it came. A frame leaves the queue once the hub has stored it.
#[derive(Debug)]
pub(crate) struct GatewayUploader {
    queue: Arc<GatewayQueue>,
    hub: HubAccess,
    client: Option<Client>,
    kept: Arc<Notify>,
    told: Arc<Mutex<UploadTold>>,
    held: HashMap<MeshStream, Instant>,
    /// How often a frame was answered by what nobody understands.
    unclear: BTreeMap<i64, u32>,
    waits: HubBackoff,
    /// As far as is known of this connection's hub.
    requests: UploadBatching,
}

/// How the way to the hub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubStatus {
    /// The hub's state when the gateway last spoke to it.
    pub state: HubState,
    /// Since when it is so.
    pub since: SystemTime,
    /// The obstacle, in the words of the hub or the system.
    pub cause: Option<String>,
}

/// The state of the hub when the gateway last spoke to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubState {
    /// Nobody has spoken to it yet.
    Untried,
    /// It answers.
    Up,
    /// It does not answer, is full or busy.
    Away,
    /// It refuses this gateway: its token, or its own certificate.
    Refused,
}

/// A stream that the hub does not take frames for at present. Its frames stay in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldStream {
    /// The stream.
    pub stream: MeshStream,
    /// The hub's refusal.
    pub cause: String,
}

/// The status of an uploader.
#[derive(Debug)]
pub(crate) struct UploadTold {
    pub(crate) hub: HubStatus,
    pub(crate) stored: u64,
    pub(crate) replayed: u64,
    pub(crate) held: Vec<HeldStream>,
    /// Why the queue cannot be read or changed at present.
    pub(crate) fault: Option<String>,
}

impl HubState {
    /// All.
    pub const ALL: [HubState; 4] =
        [HubState::Untried, HubState::Up, HubState::Away, HubState::Refused];

    /// Its name in metrics and status.
    pub fn name(self) -> &'static str {
        match self {
            HubState::Untried => "untried",
            HubState::Up => "up",
            HubState::Away => "away",
            HubState::Refused => "refused",
        }
    }
}

impl Default for UploadTold {
    fn default() -> Self {
        let (state, since) = (HubState::Untried, SystemTime::now());
        let hub = HubStatus { state, since, cause: None };
        Self { hub, stored: 0, replayed: 0, held: Vec::new(), fault: None }
    }
}

impl UploadTold {
    fn is(&mut self, state: HubState, cause: Option<String>) {
        let since = match self.hub.state == state {
            true => self.hub.since,
            false => SystemTime::now(),
        };
        self.hub = HubStatus { state, since, cause };
    }
}

impl GatewayUploader {
    pub(crate) fn new(
        queue: Arc<GatewayQueue>,
        hub: HubAccess,
        kept: Arc<Notify>,
        told: Arc<Mutex<UploadTold>>,
    ) -> Self {
        let (held, waits) = (HashMap::new(), HubBackoff::default());
        let (unclear, requests) = (BTreeMap::new(), UploadBatching::Batches);
        Self { queue, hub, client: None, kept, told, held, unclear, waits, requests }
    }

    /// Brings frames until nobody wants it any more.
    pub(crate) async fn run(mut self) {
        loop {
            self.release();
            // Streams that the hub refuses are left out of the window. Otherwise their frames would
            // fill it and stop all others.
            let held: HashSet<_> = self.held.keys().copied().collect();
            let window = self.on_disk(move |queue| queue.window(&held)).await;
            match window {
                Some(frames) if !frames.is_empty() => self.bring(frames).await,
                Some(_) => self.idle().await,
                // The queue could not be read. Asking again at once would only keep a failing disk
                // busy.
                None => tokio::time::sleep(Duration::from_millis(DISK_RETRY_MS)).await,
            }
        }
    }

    /// Waits for the next frame, or for the time when a stream is tried again.
    async fn idle(&self) {
        let next = self.held.values().min().map(|until| until.duration_since(Instant::now()));
        // A wake that was missed would leave frames lying. One look a minute bounds that.
        let patience = next.unwrap_or(Duration::from_secs(60));
        let _ = tokio::time::timeout(patience, self.kept.notified()).await;
    }

    /// Tries streams again whose time has come.
    fn release(&mut self) {
        let now = Instant::now();
        self.held.retain(|_, until| *until > now);
        let held = &self.held;
        self.told.lock().held.retain(|one| held.contains_key(&one.stream));
    }

    async fn bring(&mut self, frames: Vec<GatewayQueuedFrame>) {
        let client = match self.client.clone().map_or_else(|| self.hub.client(), Ok) {
            Ok(client) => client,
            Err(cause) => return self.wait(HubState::Refused, cause.to_string()).await,
        };
        self.client = Some(client.clone());
        let mut waiting = lane::split(frames).into_iter();
        // One tries alone whether a hub is back that was away.
        let requests = self.requests;
        // A hub that comes back is not met by all lanes of all gateways at once.
        let first = if self.waits.is_failing() { 1 } else { MAX_UPLOAD_LANES };
        let mut under_way: FuturesUnordered<_> =
            waiting.by_ref().take(first).map(|lane| lane.bring(&client, requests)).collect();
        let mut trouble = None;
        while let Some(end) = under_way.next().await {
            let stopped = self.ended(end).await;
            // The first trouble decides. Lanes that are under way end by themselves, and their
            // frames are noted.
            trouble = trouble.or(stopped);
            let room = MAX_UPLOAD_LANES.saturating_sub(under_way.len());
            // After trouble with the whole hub no further lane begins, since it would meet the
            // same.
            if trouble.is_none() {
                under_way
                    .extend(waiting.by_ref().take(room).map(|lane| lane.bring(&client, requests)));
            }
        }
        // The lanes borrow the client, which the wait below replaces.
        drop(under_way);
        match trouble {
            Some(HubObstacle::Shut(cause)) => self.wait(HubState::Refused, cause).await,
            Some(HubObstacle::Away(cause)) => self.wait(HubState::Away, cause).await,
            _ => {}
        }
    }

    /// Takes note of what a lane has brought, and gives what concerns the whole hub.
    async fn ended(&mut self, end: LaneEnd) -> Option<HubObstacle> {
        let LaneEnd { stream, stored, replayed, stopped, is_one_by_one } = end;
        if is_one_by_one {
            self.requests = UploadBatching::OneByOne;
        }
        let count = stored.len() as u64;
        if count > 0 {
            self.waits.succeeded();
            let mut told = self.told.lock();
            told.is(HubState::Up, None);
            // Replayed frames were counted when they were stored, perhaps by another gateway.
            told.stored += count - replayed;
            told.replayed += replayed;
        }
        // If the disk does not take this, the frames are brought again, and the hub knows them.
        self.on_disk(move |queue| queue.stored(&stored)).await;
        match stopped {
            Some((number, HubObstacle::Frame(_))) => {
                // The hub will never take this very frame. Kept, it would block its origin's lane
                // for good.
                self.on_disk(move |queue| queue.refused(number)).await;
                None
            }
            Some((_, HubObstacle::Stream(cause))) => {
                // The hub has answered, if only to refuse.
                self.told.lock().is(HubState::Up, None);
                self.hold(stream, cause);
                None
            }
            Some((number, HubObstacle::Unclear(cause))) => self.is_unclear(stream, number, cause),
            Some((_, trouble)) => Some(trouble),
            None => None,
        }
    }

    fn hold(&mut self, stream: MeshStream, cause: String) {
        self.held.insert(stream, Instant::now() + shortened(MAX_STREAM_HOLD_MS));
        let mut told = self.told.lock();
        told.held.retain(|one| one.stream != stream);
        told.held.push(HeldStream { stream, cause });
    }

    /// Takes the hub for away; but if it is the same frame again and again, others are to go on
    /// without those of its stream.
    fn is_unclear(
        &mut self,
        stream: MeshStream,
        number: i64,
        cause: String,
    ) -> Option<HubObstacle> {
        let tries = self.unclear.entry(number).or_default();
        *tries = tries.saturating_add(1);
        // One strange answer is taken for a proxy or a hub that restarts. Only the same frame again
        // and again is suspect.
        let is_often = *tries >= MAX_UNCLEAR_ANSWERS;
        // The oldest number goes. Frames leave the queue roughly in order, so that it hardly comes
        // again.
        if self.unclear.len() > MAX_UNCLEAR_FRAMES {
            self.unclear.pop_first();
        }
        if !is_often {
            return Some(HubObstacle::Away(cause));
        }
        self.hold(stream, cause);
        None
    }

    /// Waits before the hub is tried again, with connections, token and certificates anew.
    async fn wait(&mut self, state: HubState, cause: String) {
        // The hub may have been replaced meanwhile, by one with other certificates and newer
        // abilities.
        (self.client, self.requests) = (None, UploadBatching::Batches);
        self.told.lock().is(state, Some(cause));
        tokio::time::sleep(self.waits.failed()).await;
    }

    /// Does something with the queue where waiting for the disk holds nobody up.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&GatewayQueue) -> Result<T, GatewayError> + Send + 'static,
    ) -> Option<T> {
        let queue = Arc::clone(&self.queue);
        // SQLite waits for the disk. On a worker of the runtime that wait would stop other tasks.
        let done = tokio::task::spawn_blocking(move || work(&queue)).await;
        let done = done.map_err(|error| error.to_string());
        let done = done.and_then(|done| done.map_err(|error| error.to_string()));
        self.told.lock().fault = done.as_ref().err().cloned();
        done.ok()
    }
}
