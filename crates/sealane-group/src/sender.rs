use std::sync::Arc;

use sealane_frame::{
    ANNOUNCEMENT_TYPE, FrameBuf, FrameDraft, FrameKind, FrameRoom, GroupTag, HeaderFields,
    LinkContext, PeerTag,
};
use sealane_seal::limits::MAX_COUNTER;
use sealane_seal::{
    Announcement, Binding, Class, Epoch, EpochSecret, Epochs, Group, History, Sealer,
    SenderContext, SigningKey, Slot,
};

use crate::Error;
use crate::crypto::random;
use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::MAX_COUNTER_BLOCK;
use crate::now_ms;
use crate::state::GroupState;

/// Counters of a sender's first block. Each further block has twice as many, so that a sender that
/// goes on waits for the disk less and less often, and one that ends soon wastes little.
const FIRST_BLOCK: u64 = 1 << 10;

/// A member that sends.
///
/// Each one, and each process that it finds itself in, seals under keys of its own: several
/// processes of one folder, copies of the folder and forks never meet. Counters on disk keep the
/// order of a slot's messages over restarts.
pub struct GroupSender {
    source: SenderSource,
    sealer: Sealer,
    tag: GroupTag,
    address: PeerTag,
    /// The counters below it are this sender's to use.
    until: u64,
    next_block: u64,
    /// Later than that of every sender before it in this folder.
    start: u64,
    orders: u64,
    /// The process that drew the context.
    process: u32,
}

/// Where a sender learns what it seals under.
#[derive(Clone)]
pub(crate) enum SenderSource {
    /// A key folder, and the group's name there.
    Folder { keys: Arc<IdentityKeys>, name: String },
    #[cfg(feature = "test-kind")]
    Agreed(Box<crate::AgreedMember>),
}

/// A member's place in its group at one moment.
pub(crate) struct MemberStanding {
    pub(crate) group: Group,
    pub(crate) history: History,
    pub(crate) slot: Slot,
    pub(crate) epoch: Epoch,
    pub(crate) secret: EpochSecret,
    pub(crate) tag: GroupTag,
    pub(crate) source: PeerTag,
    pub(crate) orders: u64,
    pub(crate) signing: SigningKey,
}

/// The counters that a folder keeps of the senders of a group. They keep the order of its messages;
/// no safety rests on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SenderCounters {
    pub(crate) slot: u16,
    pub(crate) epoch: Epoch,
    /// All counters below may be used up.
    pub(crate) bound: u64,
    /// The last start.
    pub(crate) start: u64,
}

/// Counters from one up to a bound.
pub(crate) struct CounterBlock {
    next: u64,
    until: u64,
    start: u64,
}

impl SenderSource {
    /// The standing to seal under now.
    fn standing(&self) -> Result<MemberStanding, Error> {
        match self {
            SenderSource::Folder { keys, name } => {
                let state = keys.load(&keys.lock()?, name)?;
                state.check_sealing()?;
                MemberStanding::of(keys, &state)
            }
            #[cfg(feature = "test-kind")]
            SenderSource::Agreed(agreed) => agreed.standing(),
        }
    }

    /// A block of counters behind all that were reserved, and a start behind the last.
    fn reserve(&self, slot: Slot, epoch: Epoch, count: u64) -> Result<CounterBlock, Error> {
        match self {
            SenderSource::Folder { keys, name } => {
                let lock = keys.lock()?;
                CounterBlock::reserve(keys, &lock, name, slot, epoch, count)
            }
            #[cfg(feature = "test-kind")]
            SenderSource::Agreed(_) => {
                Ok(CounterBlock { next: 0, until: u64::MAX, start: now_ms() })
            }
        }
    }
}

impl MemberStanding {
    pub(crate) fn of(keys: &IdentityKeys, state: &GroupState) -> Result<MemberStanding, Error> {
        let epoch = state.epochs.newest();
        Ok(MemberStanding {
            group: state.charter.group(),
            history: state.charter.history,
            slot: state.slot,
            epoch,
            secret: state.epochs.secret(epoch).ok_or(Error::Cipher)?.clone(),
            tag: state.tag(),
            source: state.peer_tag(state.slot).ok_or(Error::Removed)?,
            orders: state.orders,
            signing: keys.identity().signing_key()?,
        })
    }
}

impl CounterBlock {
    /// When its sender started: later than every start before it.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn reserve(
        keys: &IdentityKeys,
        lock: &KeyFolderLock,
        name: &str,
        slot: Slot,
        epoch: Epoch,
        count: u64,
    ) -> Result<CounterBlock, Error> {
        let before = keys.counters(lock, name)?;
        let next = before.next(slot, epoch);
        let until = next.saturating_add(count).min(MAX_COUNTER + 1);
        let start = now_ms().max(before.start.saturating_add(1));
        let after = SenderCounters { slot: slot.number(), epoch, bound: until, start };
        keys.save_counters(lock, name, &after)?;
        Ok(CounterBlock { next, until, start })
    }
}

impl GroupSender {
    pub(crate) fn open(source: SenderSource) -> Result<GroupSender, Error> {
        let standing = source.standing()?;
        let block = source.reserve(standing.slot, standing.epoch, FIRST_BLOCK)?;
        GroupSender::with(source, standing, &block)
    }

    /// A sender of an authority that holds the lock of its folder, for one order.
    pub(crate) fn of_order(
        keys: &Arc<IdentityKeys>,
        name: &str,
        lock: &KeyFolderLock,
        state: &GroupState,
    ) -> Result<GroupSender, Error> {
        let standing = MemberStanding::of(keys, state)?;
        let block = CounterBlock::reserve(keys, lock, name, standing.slot, standing.epoch, 1)?;
        let source = SenderSource::Folder { keys: Arc::clone(keys), name: name.to_owned() };
        GroupSender::with(source, standing, &block)
    }

    /// A sender under a context of its own.
    fn with(
        source: SenderSource,
        standing: MemberStanding,
        block: &CounterBlock,
    ) -> Result<GroupSender, Error> {
        let MemberStanding { group, history, slot, epoch, secret, tag, orders, signing, .. } =
            standing;
        let epochs = Epochs::new(group.id(), history, epoch, secret);
        let context = SenderContext(random()?);
        let mut sealer = Sealer::new(group, slot, context, &epochs, block.next)?;
        sealer.set_signing_key(signing);
        Ok(GroupSender {
            source,
            sealer,
            tag,
            address: standing.source,
            until: block.until,
            next_block: 2 * FIRST_BLOCK,
            start: block.start,
            orders,
            process: std::process::id(),
        })
    }

    /// The own slot.
    pub fn slot(&self) -> Slot {
        self.sealer.slot()
    }

    /// The epoch that it seals in.
    pub fn epoch(&self) -> Epoch {
        self.sealer.epoch()
    }

    /// The context that its keys are of.
    pub fn context(&self) -> SenderContext {
        self.sealer.context()
    }

    /// How many orders it had obeyed when it started.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// The counter that the next message gets at least.
    ///
    /// # Errors
    ///
    /// [`Error::Frame`] once all counters are used up.
    pub fn next_counter(&self) -> Result<u64, Error> {
        self.sealer.next_counter().map_err(|error| sealane_frame::FrameError::from(error).into())
    }

    /// A header of that class to all of the group, from this member.
    pub fn fields(&self, class: Class, data_type: u16) -> HeaderFields {
        let [orders, ..] = self.orders.to_le_bytes();
        HeaderFields { class, orders, ..HeaderFields::new(self.tag, self.address, data_type) }
    }

    /// Seals a body, bound to where it is to be read, into a frame of the full form. Nothing is
    /// allocated once `buf` is warm, but when a block of counters is used up.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`], [`Error::Behind`], and what [`sealane_frame::seal_frame`] refuses.
    pub fn seal<'a>(
        &mut self,
        fields: &HeaderFields,
        binding: &Binding,
        body: &[u8],
        buf: &'a mut FrameBuf,
    ) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        Ok(sealane_frame::seal_frame(&mut self.sealer, fields, binding, body, buf)?)
    }

    /// Seals a body where it was written: [`GroupSender::seal`] without a copy.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn seal_draft<'a>(
        &mut self,
        fields: &HeaderFields,
        binding: &Binding,
        draft: FrameDraft<'a>,
    ) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        Ok(draft.seal(&mut self.sealer, fields, binding)?)
    }

    /// Seals a body into a frame of the compact form of a link, on which this sender has announced
    /// itself.
    ///
    /// # Errors
    ///
    /// As [`GroupSender::seal`], and what [`sealane_frame::seal_compact`] refuses.
    pub fn seal_compact<'a>(
        &mut self,
        fields: &HeaderFields,
        binding: &Binding,
        body: &[u8],
        link: &LinkContext<'_>,
        buf: &'a mut FrameBuf,
    ) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        Ok(sealane_frame::seal_compact(&mut self.sealer, fields, binding, body, link, buf)?)
    }

    /// The frame by which it makes itself known on a live link: at its start, to new neighbours,
    /// and whenever one asks. After [`GroupSender::follow`] or in another process it is another
    /// start.
    ///
    /// # Errors
    ///
    /// As [`GroupSender::seal`].
    pub fn announce<'a>(&mut self, buf: &'a mut FrameBuf) -> Result<&'a mut [u8], Error> {
        self.ready()?;
        let fields = HeaderFields {
            kind: FrameKind::Control,
            codec: 0,
            ..self.fields(Class::Signed, ANNOUNCEMENT_TYPE)
        };
        let body = Announcement { start: self.start, orders: self.orders }.to_bytes();
        self.seal(&fields, &Binding::link(), &body, buf)
    }

    /// Leaves counters out. A reader that crashed refuses those that it may have accepted before:
    /// [`MAX_CEILING_BLOCK`](sealane_seal::limits::MAX_CEILING_BLOCK) at most.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; nothing is left out then.
    pub fn skip(&mut self, counters: u64) -> Result<(), Error> {
        self.ready()?;
        let mut next = self.sealer.next_counter()?.saturating_add(counters);
        if next >= self.until {
            let block =
                self.source.reserve(self.slot(), self.epoch(), counters.max(FIRST_BLOCK))?;
            next = next.max(block.next).min(block.until);
            self.until = block.until;
        }
        self.sealer.go_on_at(next);
        Ok(())
    }

    /// Goes on with what is known of the group now: another call or process may have obeyed orders.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`], [`Error::Behind`], [`Error::Io`].
    pub fn follow(&mut self) -> Result<(), Error> {
        let now = self.source.standing()?;
        if (now.epoch, now.slot, now.orders) == (self.epoch(), self.slot(), self.orders) {
            return Ok(());
        }
        let block = self.source.reserve(now.slot, now.epoch, FIRST_BLOCK)?;
        *self = GroupSender::with(self.source.clone(), now, &block)?;
        Ok(())
    }

    /// Begins a run of messages, each of which is sealed where its frame lies.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`], [`Error::Behind`], [`Error::Io`].
    pub fn run(&mut self) -> Result<SealRun<'_>, Error> {
        self.own()?;
        Ok(SealRun { sender: self })
    }

    /// Sees to it that the process is the one that drew the context, and that a counter is left.
    #[inline]
    fn ready(&mut self) -> Result<(), Error> {
        self.own()?;
        self.count()
    }

    /// Sees to it that the process is the one that drew the context.
    #[inline]
    fn own(&mut self) -> Result<(), Error> {
        if std::process::id() != self.process {
            // A fork has copied the keys: both would go on with the same counters.
            *self = GroupSender::open(self.source.clone())?;
        }
        Ok(())
    }

    /// Sees to it that a counter is left.
    #[inline]
    fn count(&mut self) -> Result<(), Error> {
        match self.sealer.next_counter() {
            Ok(next) if next < self.until => Ok(()),
            Ok(_) => self.refill(),
            Err(_) => {
                *self = GroupSender::open(self.source.clone())?;
                Ok(())
            }
        }
    }

    /// Reserves the next block, behind those that other processes have taken meanwhile.
    #[cold]
    fn refill(&mut self) -> Result<(), Error> {
        self.follow()?;
        if self.sealer.next_counter()? < self.until {
            return Ok(());
        }
        let block = self.source.reserve(self.slot(), self.epoch(), self.next_block)?;
        self.sealer.go_on_at(block.next);
        self.until = block.until;
        self.next_block = self.next_block.saturating_mul(2).min(MAX_COUNTER_BLOCK);
        // At the end of an epoch's counters there is none left.
        self.sealer.next_counter().map(|_| ()).map_err(Error::from)
    }
}

/// Messages that a [`GroupSender`] seals one after the other, without a look at the process before
/// each: a fork within one call leaves no other thread in the copy.
#[derive(Debug)]
pub struct SealRun<'s> {
    sender: &'s mut GroupSender,
}

impl SealRun<'_> {
    /// The room around the body of the next frame. It holds until the next call of
    /// [`SealRun::seal`].
    ///
    /// # Errors
    ///
    /// As [`GroupSender::run`].
    #[inline]
    pub fn room(&mut self, class: Class) -> Result<FrameRoom, Error> {
        self.sender.count()?;
        Ok(FrameRoom::of_next(&self.sender.sealer, class)?)
    }

    /// Seals the body that stands within its room: [`sealane_frame::seal_in_room`].
    ///
    /// # Errors
    ///
    /// As there, and as [`GroupSender::run`].
    #[inline]
    pub fn seal(
        &mut self,
        fields: &HeaderFields,
        binding: &Binding,
        frame: &mut [u8],
    ) -> Result<(), Error> {
        self.sender.count()?;
        Ok(sealane_frame::seal_in_room(&mut self.sender.sealer, fields, binding, frame)?)
    }
}

impl SenderCounters {
    /// The first counter that nobody has reserved.
    fn next(&self, slot: Slot, epoch: Epoch) -> u64 {
        if (self.slot, self.epoch) == (slot.number(), epoch) { self.bound } else { 0 }
    }
}

impl std::fmt::Debug for GroupSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("sealer", &self.sealer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use sealane_frame::FrameView;

    use super::*;
    use crate::{KeyFolder, NewGroup};

    /// The situation after a fork: a sender that another process has made. `tests/it` forks in
    /// earnest.
    #[test]
    fn a_sender_of_another_process_draws_keys_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
        let base = keys.new_group("fleet", NewGroup::default()).unwrap();
        let mut sender = base.sender().unwrap();
        let (before, start) = (sender.context(), sender.start);
        let (fields, log) = (sender.fields(Class::Group, 1), Binding::stream("log"));
        let mut buf = FrameBuf::new();
        let mut sealed_by = |sender: &mut GroupSender, is_draft: bool| {
            let frame = if is_draft {
                let draft = buf.draft();
                sender.seal_draft(&fields, &log, draft).unwrap()
            } else {
                sender.seal(&fields, &log, b"x", &mut buf).unwrap()
            };
            FrameView::parse(frame).unwrap().header().context()
        };
        assert_eq!(sealed_by(&mut sender, false), before);
        let mut drawn = vec![before];
        for is_draft in [false, true] {
            sender.process ^= 1;
            drawn.push(sealed_by(&mut sender, is_draft));
            assert_eq!(sender.process, std::process::id());
            assert_eq!(sealed_by(&mut sender, is_draft), drawn[drawn.len() - 1], "drawn once");
        }
        // To announce itself is to seal, too, and each start is later than all before it.
        sender.process ^= 1;
        sender.announce(&mut buf).unwrap();
        drawn.push(sender.context());
        let distinct: std::collections::HashSet<_> = drawn.iter().collect();
        assert_eq!(distinct.len(), 4, "{drawn:?}");
        assert!(sender.start >= start + 3);
    }

    #[test]
    fn counters_that_are_left_out_are_reserved_like_others() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
        let base = keys.new_group("fleet", NewGroup::default()).unwrap();
        let mut sender = base.sender().unwrap();
        let (fields, link) = (sender.fields(Class::Group, 1), Binding::link());
        let mut buf = FrameBuf::new();
        let mut least = 0;
        for counters in [1, 500, 1024, 5000, 1024] {
            sender.skip(counters).unwrap();
            least += counters;
            let frame = sender.seal(&fields, &link, b"x", &mut buf).unwrap();
            let sequence = FrameView::parse(frame).unwrap().header().sequence();
            assert!(sequence >= least && sequence < sender.until, "{sequence}");
            least = sequence + 1;
            // Another sender of the folder goes on behind all of them.
            assert!(base.sender().unwrap().sealer.next_counter().unwrap() >= sender.until);
        }
    }

    #[test]
    fn a_context_that_is_used_up_is_followed_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
        let base = keys.new_group("fleet", NewGroup::default()).unwrap();
        let mut sender = base.sender().unwrap();
        let before = sender.context();
        // As a sealer says after 2^32 messages.
        sender.sealer.go_on_at(u64::MAX);
        assert!(sender.sealer.next_counter().is_err());
        let (fields, log) = (sender.fields(Class::Group, 1), Binding::stream("log"));
        sender.seal(&fields, &log, b"x", &mut FrameBuf::new()).unwrap();
        assert_ne!(sender.context(), before);
    }
}
