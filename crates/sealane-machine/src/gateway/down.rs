//! From the hub into the mesh.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sealane::{Client, HubError, ReceivedMessage, StartPosition, Subscription};
use sealane_protocol::SealedEnvelope;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::gateway::frame::SealedFrame;
use crate::gateway::hub::{HubAccess, HubFault};
use crate::gateway::intake::GatewayIntake;
use crate::gateway::queue::{DownlinkPosition, GatewayQueue};
use crate::gateway::stream::MeshStream;
use crate::gateway::wait::HubBackoff;
use crate::limits::{MAX_DOWN_PER_SECOND, MAX_DOWN_QUIET_MS, MAX_DOWN_UNSAVED};

/// Puts a frame into the mesh.
pub type PutDown = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

/// The context that all readers of streams share.
#[derive(Clone)]
pub(crate) struct DownlinkContext {
    pub(crate) hub: HubAccess,
    pub(crate) queue: Arc<GatewayQueue>,
    pub(crate) intake: Arc<GatewayIntake>,
    pub(crate) put: PutDown,
    /// One frame at a time, however many streams there are.
    pub(crate) pace: Arc<Semaphore>,
    pub(crate) counts: Arc<DownCounts>,
    /// The obstacle of each stream; none for a stream that is followed.
    pub(crate) causes: Arc<Mutex<DownlinkCauses>>,
}

/// The obstacle of each stream that has been tried.
pub(crate) type DownlinkCauses = HashMap<MeshStream, Option<String>>;

/// The counts of the messages that were read, by outcome.
#[derive(Debug, Default)]
pub(crate) struct DownCounts {
    put: AtomicU64,
    known: AtomicU64,
    refused: AtomicU64,
}

/// The counts of the hub's messages since this machine started, by outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownStatus {
    /// Put into the mesh.
    pub put: u64,
    /// Passed over, because they came from this mesh.
    pub known: u64,
    /// No frames of their stream.
    pub refused: u64,
    /// Streams that are followed.
    pub followed: u64,
    /// The obstacle of each other stream.
    pub causes: Vec<(MeshStream, String)>,
}

/// The readers of streams; they end with this.
#[derive(Default)]
pub(crate) struct DownlinkReaders {
    tasks: HashMap<MeshStream, JoinHandle<()>>,
}

impl DownlinkReaders {
    /// Reads these streams from now on, and no others.
    pub(crate) fn read(&mut self, streams: &[MeshStream], down: &DownlinkContext) {
        self.tasks.retain(|stream, task| {
            let stays = streams.contains(stream);
            if !stays {
                // The place was stored a moment ago at most. Frames since then come again, and the
                // mesh drops repeats.
                task.abort();
                down.causes.lock().remove(stream);
            }
            stays
        });
        for stream in streams {
            self.tasks.entry(*stream).or_insert_with(|| tokio::spawn(down.clone().follow(*stream)));
        }
    }
}

impl Drop for DownlinkReaders {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

impl DownCounts {
    pub(crate) fn status(&self, all: &DownlinkCauses) -> DownStatus {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let followed = all.values().filter(|cause| cause.is_none()).count() as u64;
        let told = |(of, why): (&MeshStream, &Option<String>)| Some((*of, why.clone()?));
        let mut causes: Vec<_> = all.iter().filter_map(told).collect();
        causes.sort_by_key(|(of, _)| of.number());
        let (put, known, refused) = (read(&self.put), read(&self.known), read(&self.refused));
        DownStatus { put, known, refused, followed, causes }
    }
}

impl DownlinkContext {
    /// Follows one stream, from where it was left.
    async fn follow(self, stream: MeshStream) {
        let mut waits = HubBackoff::default();
        loop {
            let cause = match self.subscribe(stream).await {
                Ok(subscription) => {
                    // A stream without a cause counts as followed in the status.
                    self.causes.lock().insert(stream, None);
                    waits.succeeded();
                    self.read(stream, subscription).await
                }
                Err(cause) => cause,
            };
            self.causes.lock().insert(stream, Some(cause.to_string()));
            tokio::time::sleep(waits.failed()).await;
        }
    }

    async fn subscribe(&self, stream: MeshStream) -> Result<Subscription, HubFault> {
        let client = self.hub.client()?;
        let queue = Arc::clone(&self.queue);
        let place = tokio::task::spawn_blocking(move || queue.place(stream)).await;
        let place = match place?? {
            Some(place) => place,
            None => self.first_place(stream, &client).await?,
        };
        let start = match place {
            // A stream that did not exist has no generation to resume. Its first message is to come
            // down.
            DownlinkPosition { next: 0, .. } => StartPosition::First,
            DownlinkPosition { generation, next } => {
                StartPosition::Resume { offset: next, generation }
            }
        };
        let asked = client.subscribe(&stream.to_string()).from(start);
        Ok(asked.await?)
    }

    /// Where a gateway begins that has never read a stream: with what is new. What was said before
    /// it came is no command for now; all that is said from then on comes down, whatever happens.
    async fn first_place(
        &self,
        stream: MeshStream,
        client: &Client,
    ) -> Result<DownlinkPosition, HubFault> {
        let place = match client.stream(&stream.to_string()).await {
            Ok(state) => DownlinkPosition { generation: state.generation, next: state.next },
            // A stream that is made later begins after this gateway, so that all of it is new.
            Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {
                DownlinkPosition { generation: 0, next: 0 }
            }
            Err(error) => return Err(error.into()),
        };
        // The first place is stored before anything is read. A restart would otherwise skip what
        // came in between.
        self.save(stream, place).await.map(|()| place)
    }

    /// Puts what comes into the mesh until the subscription ends, and says why it did.
    async fn read(&self, stream: MeshStream, mut subscription: Subscription) -> HubFault {
        let mut unsaved: Option<DownlinkPosition> = None;
        let mut count = 0;
        loop {
            let next = match unsaved {
                // With nothing unsaved there is nothing to do in a pause, and no timer runs.
                None => Some(subscription.next().await),
                Some(_) => {
                    let quiet = Duration::from_millis(MAX_DOWN_QUIET_MS);
                    tokio::time::timeout(quiet, subscription.next()).await.ok()
                }
            };
            match next {
                Some(Some(Ok(message))) => {
                    self.take(stream, &message).await;
                    let (generation, next) = (message.generation, message.offset.saturating_add(1));
                    // The place moves after the frame went. A kill in between brings it again,
                    // which is better than to lose it.
                    unsaved = Some(DownlinkPosition { generation, next });
                    count += 1;
                }
                Some(Some(Err(error))) => return error.into(),
                Some(None) => return HubFault::Ended,
                None => count = MAX_DOWN_UNSAVED,
            }
            // Each stored place is an fsync. Many frames share one, and the bound says how many can
            // come twice.
            if count >= MAX_DOWN_UNSAVED
                && let Some(place) = unsaved.take()
            {
                if let Err(cause) = self.save(stream, place).await {
                    return cause;
                }
                count = 0;
            }
        }
    }

    async fn save(&self, stream: MeshStream, place: DownlinkPosition) -> Result<(), HubFault> {
        let queue = Arc::clone(&self.queue);
        let saved = tokio::task::spawn_blocking(move || queue.set_place(stream, place)).await;
        Ok(saved??)
    }

    /// Puts one message into the mesh, unless it came from there.
    async fn take(&self, stream: MeshStream, message: &ReceivedMessage) {
        let sealed = SealedEnvelope::read(message.codec, &message.envelope).ok().flatten();
        // The hub is not trusted: it could put any bytes into the stream, and air time is scarce.
        let frame = sealed.and_then(|sealed| SealedFrame::read(&sealed.frame).ok());
        let Some(frame) = frame.filter(|frame| frame.stream == stream) else {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        // A frame that went up from this mesh comes back by the subscription. Sent again it would
        // only use air.
        if !self.intake.came_from_hub(&frame) {
            self.counts.known.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // All streams share the pace: a hub that goes bad fills no radio.
        if let Ok(_turn) = self.pace.acquire().await {
            (self.put)(frame.bytes);
            self.counts.put.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1) / MAX_DOWN_PER_SECOND).await;
        }
    }
}
