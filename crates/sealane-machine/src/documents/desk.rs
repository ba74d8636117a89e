//! The thread that holds documents: what it takes, tells neighbours and answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use sealane::{Codec, Value};
use sealane_document::agent::{
    DocumentGroupKeys, DocumentLeaver, DocumentNeighbour, OriginDuty, OutboxScope,
};
use sealane_document::limits::kept;
use sealane_document::{
    DocumentAgent, DocumentCursor, DueDocument, RegisterEntry, class_of, stream_name,
};
use sealane_frame::{FrameBuf, FrameView, GroupTag};
use sealane_group::{EpochSource, GroupMembership, GroupSender, now_ms};
use sealane_link::RoutingHandle;
use sealane_mesh::{MeshInput, MeshOutput, SendUrgency};
use sealane_message::DataType;
use sealane_message::document::EmergencyCall;
use sealane_seal::policy::Policy;
use sealane_seal::{Binding, Class, Group, Slot};
use tokio::sync::mpsc;
use tracing::warn;

use super::heard::{NeighbourBacklog, speaker};
use super::thrift::DocumentPace;
use super::told::told;
use super::{DocumentTask, SharedDocumentsStatus, StoreFollower};
use crate::json::map;
use crate::limits::{DOCUMENTS_TURN_MS, MAX_DOCUMENTS_UNWATCHED};
use crate::{AskRefusal, Result};

/// The time in front of the body of an urgent message: `spec/frame.md`.
const URGENT_TIME_BYTES: usize = 8;
/// A member, as the origin of its own documents.
pub(super) struct OwnOrigin {
    member: GroupMembership,
    sender: GroupSender,
    group: Group,
    tag: GroupTag,
    slot: Slot,
    orders: Option<u64>,
    leaving: Vec<DocumentLeaver>,
    policy: Policy,
}

impl OwnOrigin {
    pub(super) fn new(member: GroupMembership, policy: Policy) -> Result<OwnOrigin> {
        let (sender, group) = (member.sender()?, member.group());
        let (tag, slot) = (member.tag(), member.slot());
        let (orders, leaving) = (None, vec![]);
        Ok(OwnOrigin { member, sender, group, tag, slot, orders, leaving, policy })
    }
}

/// All that the thread holds.
pub(super) struct DocumentThreadState {
    agent: DocumentAgent,
    router: RoutingHandle,
    own: Option<OwnOrigin>,
    heard: Arc<NeighbourBacklog>,
    told: Option<Option<[u8; 8]>>,
    watchers: Vec<mpsc::Sender<Value>>,
    followers: Vec<StoreFollower>,
    seen: DocumentCursor,
    thrift: DocumentPace,
    counts: SharedDocumentsStatus,
    /// When a register was taken last, by this machine's clock, since it started.
    came: BTreeMap<(Slot, DataType), u64>,
}

impl DocumentThreadState {
    pub(super) fn new(
        agent: DocumentAgent,
        router: RoutingHandle,
        own: Option<OwnOrigin>,
        heard: Arc<NeighbourBacklog>,
        thrift: DocumentPace,
    ) -> DocumentThreadState {
        // Programs that watch get only later documents. They ask for the kept ones.
        let seen =
            agent.store().since(DocumentCursor::START, usize::MAX).last().map(|last| last.at);
        let seen = seen.unwrap_or(DocumentCursor::START);
        let (told, watchers, followers, counts) =
            (None, vec![], vec![], SharedDocumentsStatus::default());
        let came = BTreeMap::new();
        DocumentThreadState {
            agent,
            router,
            own,
            heard,
            told,
            watchers,
            followers,
            seen,
            thrift,
            counts,
            came,
        }
    }

    /// Has it say there what it counts.
    pub(super) fn tell_status_by(&mut self, counts: SharedDocumentsStatus) {
        self.counts = counts;
    }

    /// The counts, as programs are told.
    pub(super) fn told_counts(&self) -> Value {
        told(&self.counts.lock())
    }

    /// Works until nothing follows, and stores then what still waits for its turn.
    pub(super) fn run(mut self, waiting: &Receiver<DocumentTask>) {
        loop {
            match waiting.recv_timeout(Duration::from_millis(DOCUMENTS_TURN_MS)) {
                Ok(DocumentTask::End) | Err(RecvTimeoutError::Disconnected) => {
                    // Documents that wait for their turn are sealed at the end, since their writers
                    // were told that they are taken.
                    let last = self.thrift.pacer.drain();
                    return self.seal_all(last);
                }
                Ok(task) => self.take(task),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.leave();
            self.tell();
            self.counts.lock().update(&self.agent, self.thrift.pacer.counters());
            let store = self.agent.store();
            self.followers.iter_mut().for_each(|follower| follower(store));
        }
    }

    fn take(&mut self, task: DocumentTask) {
        if let DocumentTask::Heard(output) = &task
            && let Some(by) = speaker(output)
        {
            // The place is free as soon as the task is taken, whatever becomes of its message.
            self.heard.leave(by);
        }
        match task {
            DocumentTask::Heard(MeshOutput::Digest { by, digest }) => {
                self.agent.hear_digest(by, digest)
            }
            DocumentTask::Heard(MeshOutput::Documents { by, tag, is_proven, message }) => {
                let by = DocumentNeighbour { slot: by, tag, is_proven };
                if let Err(error) = self.agent.hear(by, &message) {
                    warn!("documents: {error}");
                }
            }
            DocumentTask::Heard(_) | DocumentTask::End => {}
            DocumentTask::Ask { asked, answer } => {
                // A program that has gone away reads nothing.
                let _ = answer.send(self.answer(asked));
            }
            DocumentTask::Watch(watcher) => {
                // Watchers that have gone leave here too. In a quiet team nothing else would be
                // given to them.
                self.watchers.retain(|watcher| !watcher.is_closed());
                self.watchers.push(watcher);
            }
            DocumentTask::Tell(value) => {
                self.give_watchers(&value);
                // A command that nobody hears is an operator's fault to see. It is not kept, since
                // late commands must trigger nothing.
                if self.watchers.is_empty() {
                    warn!("a command came, and nobody watches: sealane doc watch");
                }
            }
            DocumentTask::FollowStore(follower) => self.followers.push(follower),
            DocumentTask::Keep { frame, own } => {
                if let Err(error) = self.agent.write(&frame, own) {
                    warn!("documents: {error}");
                }
            }
            DocumentTask::Know(groups) => self.agent.set_strangers(groups),
            DocumentTask::Follow => {
                if let Err(error) = self.follow() {
                    warn!("documents: {error}; they go on as they were");
                }
            }
        }
        self.obey();
        self.show_new();
    }

    /// Goes on with what is known of the group now.
    pub(super) fn follow(&mut self) -> Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        own.member.reload()?;
        let leaving = own.member.leaving().iter().map(|one| one.removal);
        let leaving: Vec<_> = leaving
            .map(|one| DocumentLeaver { slot: one.slot, epoch: one.epoch, mark: one.mark })
            .collect();
        // Removals announced in the open take effect before the order that seals them does.
        if own.leaving != leaving {
            self.agent.set_leaving(own.tag, leaving.clone());
            own.leaving = leaving;
        }
        // Deriving all epochs and terms is costly, and this is called once a second.
        if own.orders == Some(own.member.orders()) {
            return Ok(());
        }
        own.sender.follow()?;
        own.member.check_sealing()?;
        own.slot = own.member.slot();
        let keys = DocumentGroupKeys {
            group: own.group,
            tag: own.tag,
            own: own.slot,
            epochs: own.member.epochs().clone(),
            terms: own.member.terms(),
        };
        self.agent.set_group(keys)?;
        // The count is kept last. If a step above fails, the next call tries again.
        own.orders = Some(own.member.orders());
        Ok(())
    }

    /// Does what the origin on this machine has to.
    fn obey(&mut self) {
        while let Some(duty) = self.agent.next_duty() {
            let done = match duty {
                OriginDuty::GoOn { counter, .. } => self.go_on(counter),
                OriginDuty::Reseal { group, entry } => self.reseal(group, &entry),
            };
            if let Err(error) = done {
                warn!("documents: {error}");
            }
        }
    }

    fn go_on(&mut self, counter: u64) -> Result<(), AskRefusal> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let next = own.sender.next_counter()?;
        match (counter + 1).checked_sub(next) {
            None | Some(0) => Ok(()),
            Some(skipped) => Ok(own.sender.skip(skipped)?),
        }
    }

    fn reseal(&mut self, group: GroupTag, entry: &RegisterEntry) -> Result<(), AskRefusal> {
        let body = self.agent.body(group, entry)?;
        self.seal(entry.data_type, &body)?;
        Ok(self.agent.resealed(group, entry)?)
    }

    /// Tells neighbours as much as the mesh has room for.
    fn tell(&mut self) {
        let digest = self.agent.told_digest();
        // The digest counts as told only once the machine took it. Otherwise hellos would keep the
        // old one.
        if self.told != Some(digest) && self.router.push(MeshInput::Digest { digest }).is_ok() {
            self.told = Some(digest);
        }
        self.agent.set_sending(&self.thrift.pacer.sending());
        // The mesh's room is asked for each message, since an unsent one can still be replaced by a
        // newer one.
        while let Some(lot) = self.room() {
            let Some(telling) = self.agent.next_telling(self.thrift.now_ms(), lot) else { return };
            let urgency = if telling.is_urgent { SendUrgency::Urgent } else { SendUrgency::Normal };
            // A lost message is asked for again.
            let (to, message) = (telling.to, telling.message.into());
            let _ = self.router.push(MeshInput::Documents { to, urgency, message });
        }
    }

    /// The messages for which the mesh has room.
    fn room(&self) -> Option<OutboxScope> {
        // When only urgent room is left, calls for help still go.
        if self.router.has_documents_room(SendUrgency::Normal) {
            return Some(OutboxScope::All);
        }
        self.router.has_documents_room(SendUrgency::Urgent).then_some(OutboxScope::Urgent)
    }

    /// Seals the own documents whose turn has come.
    fn leave(&mut self) {
        while let Some(due) = self.thrift.next() {
            self.seal_all([due]);
        }
    }

    /// Seals documents for which nobody waits. One that cannot be is counted and told.
    fn seal_all(&mut self, all: impl IntoIterator<Item = DueDocument>) {
        for DueDocument { data_type, body } in all {
            if let Err(error) = self.seal(data_type, &body) {
                self.thrift.pacer.count_failed();
                warn!("documents: {data_type}: {error}");
            }
        }
    }

    /// Gives those who watch what is new.
    fn show_new(&mut self) {
        let new = self.agent.store().since(self.seen, MAX_DOCUMENTS_UNWATCHED);
        let Some(last) = new.last() else { return };
        self.seen = last.at;
        for fresh in new {
            let entry = &fresh.entry;
            // Only registers need the time: of a log each entry has a time of its own.
            if kept(entry.data_type) == 1 {
                self.came.insert((entry.origin, entry.data_type), now_ms());
            }
            if let Some(shown) = self.shown(entry) {
                self.give_watchers(&shown);
            }
        }
    }

    fn give_watchers(&mut self, shown: &Value) {
        self.watchers.retain(|watcher| {
            let sent = watcher.try_send(shown.clone());
            // A watcher that is slow misses documents and stays. It can ask for what it missed.
            !matches!(sent, Err(mpsc::error::TrySendError::Closed(_)))
        });
    }

    /// All that is kept, of one type or of all.
    pub(super) fn entries(&self, of: Option<DataType>) -> Vec<RegisterEntry> {
        let Some(own) = &self.own else { return vec![] };
        let registers = self.agent.store().registers(own.tag).into_iter();
        let all = registers.flat_map(|registers| registers.iter());
        all.filter(|entry| of.is_none_or(|of| entry.data_type == of)).cloned().collect()
    }

    /// The body of a document without the time of an urgent one, and that time.
    pub(super) fn body(&mut self, entry: &RegisterEntry) -> Option<(Option<u64>, Vec<u8>)> {
        let tag = self.own.as_ref()?.tag;
        let mut body = self.agent.body(tag, entry).ok()?;
        if !entry.data_type.is_urgent() {
            return Some((None, body));
        }
        // The time stands within the seal, so that no relay can make an old call look new.
        let time = u64::from_le_bytes(*body.first_chunk::<URGENT_TIME_BYTES>()?);
        body.drain(..URGENT_TIME_BYTES);
        Some((Some(time), body))
    }

    /// A document as programs and people are shown it.
    pub(super) fn shown(&mut self, entry: &RegisterEntry) -> Option<Value> {
        let (time, body) = self.body(entry)?;
        let value = value_of(entry, body);
        let time = time.or_else(|| value.field("timeMs").and_then(Value::as_u64));
        let mut fields = vec![
            ("slot", Value::from(u64::from(entry.origin.number()))),
            ("name", self.name(entry.origin)),
            ("type", entry.data_type.to_string().into()),
            ("epoch", entry.stamp.epoch.0.into()),
            ("counter", entry.stamp.counter.into()),
        ];
        fields.extend(time.map(|time| ("timeMs", time.into())));
        let came = self.came.get(&(entry.origin, entry.data_type));
        fields.extend(came.map(|came| ("heardMs", (*came).into())));
        let conflicts = self.conflicts(entry);
        fields.extend((conflicts > 0).then(|| ("conflicts", conflicts.into())));
        fields.push(("value", value));
        Some(map(fields))
    }

    /// How many authentic frames had the stamp of another one of that register.
    fn conflicts(&self, entry: &RegisterEntry) -> u64 {
        let own = self.own.as_ref();
        let registers = own.and_then(|own| self.agent.store().registers(own.tag));
        registers.map_or(0, |all| all.conflicts_of(entry.origin, entry.data_type))
    }

    pub(super) fn name(&self, slot: Slot) -> Value {
        let own = self.own.as_ref();
        let name = own.and_then(|own| own.member.name_of(slot, own.member.epochs().newest()));
        name.map_or(Value::Null, Value::from)
    }

    /// Whether a call is over though what cleared it is not kept any more.
    pub(super) fn stays_over(&self, call: EmergencyCall) -> bool {
        self.own.as_ref().is_some_and(|own| self.agent.stays_over(own.tag, call))
    }

    /// The member's own slot.
    pub(super) fn own_slot(&self) -> Option<Slot> {
        self.own.as_ref().map(|own| own.slot)
    }

    /// Writes an own document; an urgent one begins with the time. Gives for how long it waits, as
    /// the policy's pace has it: then it is sealed and stored.
    pub(super) fn write(&mut self, data_type: DataType, body: &[u8]) -> Result<u64, AskRefusal> {
        // A call for help is sealed at once: the pace of the policy is for what can wait. The mesh
        // keeps room for it apart.
        if data_type.is_urgent() {
            let body = [&now_ms().to_le_bytes()[..], body].concat();
            return self.seal(data_type, &body).map(|()| 0);
        }
        // If the document cannot be sealed at all, its writer is told now, and not that it waits.
        self.class(data_type)?;
        let mut due = vec![];
        let wait_ms = self.thrift.write(data_type, body, &mut due);
        // The writer gets the outcome of its own document. Older ones that leave with it have been
        // promised already.
        let own = if wait_ms == 0 { due.pop() } else { None };
        self.seal_all(due);
        own.map_or(Ok(()), |own| self.seal(data_type, &own.body)).map(|()| wait_ms)
    }

    /// The body of the own document of a type that was written last: one that waits, or is kept.
    pub(super) fn own_body(&mut self, data_type: DataType) -> Option<Vec<u8>> {
        if let Some(waiting) = self.thrift.pacer.waiting(data_type) {
            return Some(waiting.to_vec());
        }
        let own = self.own_slot();
        let kept = self.entries(Some(data_type)).into_iter().find(|one| Some(one.origin) == own);
        kept.and_then(|entry| self.body(&entry)).map(|(_, body)| body)
    }

    /// The class that an own document of a type is sealed in now.
    fn class(&self, data_type: DataType) -> Result<Class, AskRefusal> {
        let own = self.own.as_ref().ok_or("this machine has no keys")?;
        let conditions = self.thrift.pacer.conditions(data_type);
        Ok(class_of(&own.policy, &own.group, data_type, &conditions)?)
    }

    fn seal(&mut self, data_type: DataType, body: &[u8]) -> Result<(), AskRefusal> {
        // The class is asked at each seal, since battery and policy change between two documents.
        let class = self.class(data_type)?;
        let own = self.own.as_mut().ok_or("this machine has no keys")?;
        let mut fields = own.sender.fields(class, data_type.number());
        fields.codec = codec_of(data_type, body);
        let binding = Binding::stream(&stream_name(own.tag, data_type));
        let mut buf = FrameBuf::new();
        let frame = own.sender.seal(&fields, &binding, body, &mut buf)?;
        let taken = self.agent.write(frame, fields.source)?;
        match taken.is_news() {
            true => Ok(()),
            false => Err(format!("it was not kept: {taken:?}").into()),
        }
    }
}

/// A map of an application is an envelope, which readers of the stream are shown. Nothing else that
/// is kept has a codec.
fn codec_of(data_type: DataType, body: &[u8]) -> u8 {
    let is_map = sealane_codec::kind(Codec::Json, body) == Some(sealane_codec::DatumKind::Map);
    let is_application = data_type.number() >= 64;
    if is_application && is_map && sealane_codec::decode(Codec::Json, body).is_ok() {
        Codec::Json as u8
    } else {
        0
    }
}

/// The value of a body: a document, an event, an application's value in the codec of its frame,
/// text, or bytes.
fn value_of(entry: &RegisterEntry, body: Vec<u8>) -> Value {
    let view = FrameView::parse(entry.frame()).ok();
    let codec = view.map_or(0, |view| view.header().codec());
    let read = match Codec::from_id(codec).filter(|_| entry.data_type == DataType::CHAT) {
        Some(codec) => sealane_codec::decode(codec, &body).ok(),
        None => sealane_codec::body_value(entry.data_type, &body),
    };
    read.unwrap_or_else(|| match String::from_utf8(body) {
        Ok(text) => Value::Text(text),
        Err(bytes) => Value::Bytes(bytes.into_bytes()),
    })
}
