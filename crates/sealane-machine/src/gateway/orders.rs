//! The orders of groups, from the hub into the mesh.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sealane::{
    Client, ControlPage, ControlPlace, ControlReader, ReceivedMessage, StartPosition, Subscription,
};
use sealane_frame::GroupTag;
use sealane_mesh::limits::{MAX_KEPT_ORDER_BYTES, MAX_KEPT_ORDERS, MAX_KEPT_REMOVALS};
use sealane_mesh::{KeptGroup, MeshInput, NoticeContent, is_heartbeat};
use tokio::task::JoinHandle;

use crate::gateway::hub::{HubAccess, HubFault};
use crate::gateway::wait::HubBackoff;
use crate::limits::ORDER_RETRY_MS;

/// Hands something to the machine of the mesh, and says whether it had room.
pub type PutOrders = Arc<dyn Fn(MeshInput<'static>) -> bool + Send + Sync>;

/// The counts of the messages that were read, by outcome.
#[derive(Debug, Default)]
pub(crate) struct OrderCounts {
    given: AtomicU64,
    passed: AtomicU64,
    unsigned: AtomicU64,
}

/// The obstacle of each group's stream that has been tried.
type OrderCauses = Arc<Mutex<HashMap<GroupTag, Option<String>>>>;

/// The counts of the messages of control streams since this machine started, by outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrdersStatus {
    /// Orders and notices of removal that were handed to the mesh's machine.
    pub given: u64,
    /// Heartbeats, which are no orders.
    pub passed: u64,
    /// Messages that the authority of their group has not signed.
    pub unsigned: u64,
    /// Groups whose streams are followed.
    pub followed: u64,
    /// The obstacle of each other stream.
    pub causes: Vec<(GroupTag, String)>,
}

/// The readers of control streams; they end with this.
#[derive(Debug, Default)]
pub(crate) struct OrderReaders {
    tasks: HashMap<GroupTag, (KeptGroup, JoinHandle<()>)>,
    counts: Arc<OrderCounts>,
    causes: OrderCauses,
}

/// The reader of one group's stream.
struct OrderReader {
    hub: HubAccess,
    of: KeptGroup,
    put: PutOrders,
    counts: Arc<OrderCounts>,
    causes: OrderCauses,
    reader: ControlReader,
}

/// The last orders of a stream, and the last notices of removal.
#[derive(Debug, Default)]
struct LastOrders {
    orders: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    removals: Vec<Vec<u8>>,
}

impl OrderReaders {
    /// Reads the streams of these groups from now on, and of no others.
    pub(crate) fn read(&mut self, groups: &[KeptGroup], hub: &HubAccess, put: &PutOrders) {
        self.tasks.retain(|tag, (known, task)| {
            // A card may be written anew for the same group. Its reader goes on, and need not read
            // all again.
            let stays = groups.iter().any(|of| of.is_same_group(known));
            if !stays {
                task.abort();
                self.causes.lock().remove(tag);
            }
            stays
        });
        for of in groups {
            let (hub, put) = (hub.clone(), Arc::clone(put));
            let reader = ControlReader::new(of.tag, None);
            let (counts, causes) = (Arc::clone(&self.counts), Arc::clone(&self.causes));
            let follower = OrderReader { hub, of: *of, put, counts, causes, reader };
            let begin = || (*of, tokio::spawn(follower.follow()));
            self.tasks.entry(of.tag).or_insert_with(begin);
        }
    }

    /// Reads nothing more.
    pub(crate) fn stop(&mut self) {
        self.tasks.drain().for_each(|(_, (_, task))| task.abort());
    }

    pub(crate) fn status(&self) -> OrdersStatus {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let OrderCounts { given, passed, unsigned } = &*self.counts;
        let all = self.causes.lock();
        let followed = all.values().filter(|cause| cause.is_none()).count() as u64;
        let told = |(of, why): (&GroupTag, &Option<String>)| Some((*of, why.clone()?));
        let mut causes: Vec<_> = all.iter().filter_map(told).collect();
        causes.sort_by_key(|(of, _)| of.to_bytes());
        let (given, passed, unsigned) = (read(given), read(passed), read(unsigned));
        OrdersStatus { given, passed, unsigned, followed, causes }
    }
}

impl Drop for OrderReaders {
    fn drop(&mut self) {
        self.stop();
    }
}

impl OrderReader {
    /// Follows the stream for as long as the group is served.
    async fn follow(mut self) {
        let mut waits = HubBackoff::default();
        loop {
            let cause = match self.subscribe().await {
                Ok(subscription) => {
                    self.causes.lock().insert(self.of.tag, None);
                    waits.succeeded();
                    self.read(subscription).await
                }
                Err(cause) => cause,
            };
            self.causes.lock().insert(self.of.tag, Some(cause.to_string()));
            tokio::time::sleep(waits.failed()).await;
        }
    }

    /// Hands over what there is, and goes on behind it.
    async fn subscribe(&mut self) -> Result<Subscription, HubFault> {
        let client = self.hub.client()?;
        let is_whole = self.reader.place().is_none();
        // All that is read here is handed over before the subscription begins, so that orders keep
        // their turn.
        let last = self.catch_up(&client).await?;
        if is_whole {
            self.begin(&last).await;
        }
        self.hand_over(last).await;
        let start = match self.reader.place() {
            Some(ControlPlace { generation, next }) => {
                StartPosition::Resume { offset: next, generation }
            }
            None => StartPosition::First,
        };
        let asked = client.subscribe(self.reader.topic()).from(start);
        Ok(asked.await?)
    }

    /// Reads the stream to its end. One that is another than before is read from its beginning the
    /// next time.
    async fn catch_up(&mut self, client: &Client) -> Result<LastOrders, HubFault> {
        let mut last = LastOrders::default();
        loop {
            match self.reader.page(client).await? {
                ControlPage::Nothing => return Ok(last),
                ControlPage::Anew => return Err(HubFault::BeginsAnew),
                ControlPage::Messages { messages, is_last } => {
                    messages.iter().for_each(|message| self.take(message, &mut last));
                    if is_last {
                        return Ok(last);
                    }
                }
            }
        }
    }

    /// Hands over each notice as it comes, until the subscription ends, and says why it did.
    async fn read(&mut self, mut subscription: Subscription) -> HubFault {
        loop {
            match subscription.next().await {
                Some(Ok(message)) => {
                    let mut last = LastOrders::default();
                    self.take(&message, &mut last);
                    self.hand_over(last).await;
                    self.reader.pass(&message);
                }
                Some(Err(error)) => return error.into(),
                None => return HubFault::Ended,
            }
        }
    }

    /// Takes what the authority has signed.
    fn take(&self, message: &ReceivedMessage, last: &mut LastOrders) {
        // The signature is checked first, since a hub gone bad must fill neither memory nor air.
        let notice = ControlReader::notice(message).ok();
        let counted =
            match notice.as_deref().map(|notice| (NoticeContent::verify(&self.of, notice), notice))
            {
                // It is counted when it is handed over.
                Some((Ok(told), notice)) => return last.keep(told, notice),
                // A heartbeat fails `verify`, since it is no order. It is counted apart, or it
                // would look like an attack.
                Some((Err(_), notice)) if is_heartbeat(notice) => &self.counts.passed,
                _ => &self.counts.unsigned,
            };
        counted.fetch_add(1, Ordering::Relaxed);
    }

    /// Has the machine begin with the first order that there is, if the card is older.
    async fn begin(&self, last: &LastOrders) {
        let first = last.orders.first_key_value().map_or(0, |(first, _)| *first);
        if first > self.of.orders {
            // The orders before that are gone from the hub. A machine that waited for them would
            // take none at all.
            let later = KeptGroup { orders: first, ..self.of };
            self.hand(|| MeshInput::Keep(later)).await;
        }
    }

    /// Hands over notices of removal, then the orders that the card does not count, in their turn,
    /// then those before, the last first: each has the place before those that are there.
    async fn hand_over(&self, last: LastOrders) {
        let KeptGroup { tag: group, orders: counted, .. } = self.of;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (number, notice) in last.orders {
            if number < counted { before.push(notice) } else { after.push(notice) }
        }
        // The machine puts an older order in front of those that it has. So the newest of these
        // comes first.
        before.reverse();
        for notice in last.removals.into_iter().chain(after).chain(before) {
            self.hand(|| MeshInput::Notice { group, notice: notice.clone().into() }).await;
            self.counts.given.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits while the machine has as much to do as it takes.
    async fn hand(&self, what: impl Fn() -> MeshInput<'static>) {
        // The wait holds up this group's reader alone. A dropped order would be missed until the
        // next start.
        while !(self.put)(what()) {
            tokio::time::sleep(Duration::from_millis(ORDER_RETRY_MS)).await;
        }
    }
}

impl LastOrders {
    /// Keeps a notice. The oldest leave.
    fn keep(&mut self, told: NoticeContent, notice: &[u8]) {
        match told {
            NoticeContent::Removal { .. } => {
                self.removals.push(notice.to_vec());
                if self.removals.len() > MAX_KEPT_REMOVALS {
                    self.removals.remove(0);
                }
            }
            NoticeContent::Order { number, .. } => {
                let before = self.orders.insert(number, notice.to_vec());
                self.bytes += notice.len();
                // A repeated order replaces itself, and must not count twice.
                self.bytes -= before.map_or(0, |before| before.len());
                while self.orders.len() > MAX_KEPT_ORDERS || self.bytes > MAX_KEPT_ORDER_BYTES {
                    let Some((_, oldest)) = self.orders.pop_first() else { break };
                    self.bytes -= oldest.len();
                }
            }
        }
    }
}
