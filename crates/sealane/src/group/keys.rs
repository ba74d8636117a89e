//! What a process holds of a group: its member, sender and opener.

use bytes::Bytes;
use sealane_codec::{Codec, Kind as ValueKind, Transcoder};
use sealane_frame::{Compression, FrameBuf, FrameView, GroupTag, HEADER_BYTES, Kind, open_stored};
use sealane_group::{Change, EpochSource, Member, Notice, Sender};
use sealane_message::DataType;
use sealane_protocol::Sealed;
use sealane_protocol::limits::{MAX_ENVELOPE_BYTES, MAX_ENVELOPE_DEPTH, MAX_ENVELOPE_VALUES};
use sealane_seal::policy::{Conditions, Decision, Policy};
use sealane_seal::{Epoch, Error as SealError, Group, KeyId, Opened, Opener};

use super::SEALED_IN;
use crate::Error;
use crate::error::Unshown;
use crate::publish::too_large;

/// Own messages that were heard are compared with the counters on disk once for so many counters: a
/// copy of the folder begins at a multiple of it.
const HEARD_STEP: u64 = 256;

pub(crate) struct GroupKeys {
    member: Member,
    /// The member's group and its tag, which never change and are hashes of much.
    group: Group,
    tag: GroupTag,
    /// Made when something is sealed or heard for the first time: it reserves counters on disk.
    sender: Option<Sender>,
    opener: Opener,
    /// The last own message that was heard, in steps of [`HEARD_STEP`].
    heard: Option<(Epoch, u64)>,
    pub(super) policy: Policy,
    pub(super) conditions: Conditions,
    buf: FrameBuf,
    scratch: Transcoder,
}

/// A frame that was opened and may be shown.
pub(crate) struct Shown {
    pub(crate) opened: Opened,
    pub(crate) data_type: DataType,
    pub(crate) codec: Codec,
    pub(crate) sender: String,
    /// The first epoch that the sender is no part of, if it was removed.
    pub(crate) removed: Option<Epoch>,
    pub(crate) envelope: Bytes,
}

impl GroupKeys {
    pub(super) fn new(member: Member) -> Result<GroupKeys, Error> {
        let opener = member.opener()?;
        Ok(GroupKeys {
            group: member.group(),
            tag: member.tag(),
            member,
            sender: None,
            opener,
            heard: None,
            policy: Policy::default(),
            conditions: Conditions::default(),
            buf: FrameBuf::new(),
            scratch: Transcoder::new(),
        })
    }

    pub(super) fn decide(&self, data_type: DataType) -> Decision {
        self.policy.decide(data_type, &self.conditions)
    }

    /// All that this authority has ordered, in this process or another.
    pub(super) fn notices(&mut self) -> Result<Vec<Notice>, Error> {
        self.member.reload()?;
        Ok(self.member.notices(0)?)
    }

    pub(crate) fn newest(&self) -> Epoch {
        self.member.epochs().newest()
    }

    pub(super) fn passed(&mut self, epoch: Epoch) -> Result<(), Error> {
        self.member.passed(epoch)?;
        Ok(self.member.refresh(&mut self.opener)?)
    }

    /// Takes a notice, and goes on in the newest epoch. Another process of the folder may have
    /// taken it before.
    pub(super) fn obey(&mut self, notice: &Notice) -> Result<(Change, Epoch), Error> {
        let change = self.member.apply(notice)?;
        self.member.refresh(&mut self.opener)?;
        let newest = self.newest();
        let behind = self.sender.as_ref().is_some_and(|sender| sender.epoch() != newest);
        if behind || change == Change::Removed {
            // A sender that cannot follow would seal under keys that others have.
            self.sender = None;
        }
        Ok((change, newest))
    }

    /// Seals a checked envelope in the class that the policy decides.
    pub(super) fn seal(
        &mut self,
        data_type: DataType,
        codec: Codec,
        envelope: &[u8],
    ) -> Result<Vec<u8>, Error> {
        check(&mut self.scratch, codec, envelope)?;
        let decision = self.decide(data_type);
        let class = self.policy.class_in(&self.group, data_type, &decision)?;
        let sender = match &mut self.sender {
            Some(sender) => sender,
            none => none.insert(self.member.sender()?),
        };
        let mut fields = sender.fields(class, data_type.number());
        fields.codec = codec as u8;
        let frame = sender.seal(&fields, envelope, &mut self.buf)?;
        let mut sealed = Vec::with_capacity(frame.len() + 16);
        Sealed { id: None, frame: (&*frame).into() }.write(SEALED_IN, &mut sealed);
        if sealed.len() > MAX_ENVELOPE_BYTES {
            return Err(too_large(sealed.len()));
        }
        Ok(sealed)
    }

    /// Opens a frame from a stream. `near` is the epoch that the reader's cursor stands in.
    pub(crate) fn open(&mut self, near: Epoch, mut frame: Vec<u8>) -> Result<Shown, Unshown> {
        let view = FrameView::parse(&frame)?;
        if view.header().group() != self.tag {
            return Err(Unshown::OtherGroup);
        }
        if view.header().kind() != Kind::Message {
            return Err(Unshown::NoEnvelope);
        }
        let key = view.seal_header().key;
        let mut trials = trials(&self.opener, key, near);
        let last = trials.pop().ok_or_else(|| self.without_secret(key))?;
        // Opening is in place, and an epoch that is the wrong one leaves nothing behind.
        let earlier = trials
            .into_iter()
            .find(|epoch| open_stored(&mut self.opener, *epoch, &mut frame.clone()).is_ok());
        let epoch = earlier.unwrap_or(last);
        let stored = open_stored(&mut self.opener, epoch, &mut frame)?;
        let (header, opened) = (stored.header, stored.opened);
        let body = opened.body();
        let body = HEADER_BYTES + body.start..HEADER_BYTES + body.end;
        let data_type = DataType::from_number(header.data_type());
        self.policy.admits(data_type, opened.class(), &self.group)?;
        let codec = Codec::from_id(header.codec()).filter(|codec| *codec != Codec::MsgPackRecords);
        let codec = codec.ok_or(Unshown::NoEnvelope)?;
        if header.compression() != Compression::None {
            return Err(Unshown::NoEnvelope);
        }
        let envelope = Bytes::from(frame).slice(body);
        check(&mut self.scratch, codec, &envelope).map_err(|_| Unshown::NoEnvelope)?;
        let entry = self.member.roster().entry(opened.slot());
        let sender = entry.map(|entry| entry.name().to_owned()).unwrap_or_default();
        let removed = entry.and_then(|entry| entry.removed());
        self.hear(&opened)?;
        Ok(Shown { opened, data_type, codec, sender, removed, envelope })
    }

    /// Why no secret is held for a frame. What lies ahead may come with the next orders, unless
    /// they are not meant for this member any more.
    fn without_secret(&self, key: KeyId) -> Unshown {
        let newest = self.newest();
        if key.epoch(newest) > newest && !self.member.is_removed() {
            return Unshown::Early(SealError::EpochUnknown);
        }
        Unshown::Frame(SealError::EpochUnknown.into())
    }

    /// A message of the own slot that nobody here has sealed shows that a copy of the folder is at
    /// work.
    fn hear(&mut self, opened: &Opened) -> Result<(), Unshown> {
        let interval = (opened.epoch(), opened.counter() / HEARD_STEP);
        if opened.slot() != self.member.slot() || self.heard >= Some(interval) {
            return Ok(());
        }
        if self.sender.is_none() && !self.member.is_removed() {
            self.sender = self.member.sender().ok();
        }
        if let Some(sender) = &mut self.sender {
            sender.heard(opened).map_err(Error::from)?;
        }
        self.heard = Some(interval);
        Ok(())
    }
}

/// The epochs that a key id may mean, of those whose secrets are held: that nearest to the cursor
/// first, then the newer before the older.
fn trials(opener: &Opener, key: KeyId, near: Epoch) -> Vec<Epoch> {
    let held = opener.epochs().held().map(|(epoch, _)| epoch);
    let mut trials: Vec<Epoch> = held.filter(|epoch| key.epoch(*epoch) == *epoch).collect();
    trials.sort_by_key(|epoch| (*epoch != key.epoch(near), std::cmp::Reverse(*epoch)));
    trials
}

/// Checks what the hub checks of an open message: a map, within the limits, of that codec.
fn check(scratch: &mut Transcoder, codec: Codec, envelope: &[u8]) -> Result<(), Error> {
    if envelope.len() > MAX_ENVELOPE_BYTES {
        return Err(too_large(envelope.len()));
    }
    scratch.validate(codec, envelope)?;
    let (values, depth) = scratch.size();
    let is_map = sealane_codec::kind(codec, envelope) == Some(ValueKind::Map);
    if is_map && values <= MAX_ENVELOPE_VALUES && depth <= MAX_ENVELOPE_DEPTH {
        return Ok(());
    }
    Err(Error::NoEnvelope)
}
