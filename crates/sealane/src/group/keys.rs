//! The state of a group in one process: its member, sender and opener.

use bytes::Bytes;
use sealane_codec::{Codec, DatumKind as ValueKind, Transcoder, body_value};
use sealane_frame::{
    FrameBuf, FrameCompression, FrameKind, FrameView, GroupTag, HEADER_BYTES, open_stored,
};
use sealane_group::{
    EpochSource, GroupChange, GroupMember, GroupMembership, GroupNotice, GroupSender, RemovalMark,
};
use sealane_message::{DataType, Topic};
use sealane_protocol::SealedEnvelope;
use sealane_protocol::limits::{MAX_ENVELOPE_BYTES, MAX_ENVELOPE_DEPTH, MAX_ENVELOPE_VALUES};
use sealane_seal::policy::{Conditions, Decision, Policy};
use sealane_seal::{Binding, Epoch, Error as SealError, Group, KeyId, OpenedMessage, Opener};

use super::SEALED_IN;
use crate::Error;
use crate::error::DeliveryRejection;
use crate::publish::too_large;
use crate::request::now_ms;

pub(crate) struct GroupKeyring {
    member: GroupMembership,
    /// The member's group and its tag, which never change and are hashes of much.
    group: Group,
    tag: GroupTag,
    /// Made when something is sealed for the first time: it reserves counters on disk.
    sender: Option<GroupSender>,
    opener: Opener,
    /// The orders that the control stream showed once and shows now, if it has lost some.
    pub(super) rolled_back: Option<RolledBack>,
    pub(super) policy: Policy,
    pub(super) conditions: Conditions,
    buf: FrameBuf,
    scratch: Transcoder,
    /// The body of an urgent message, behind its time.
    timed: Vec<u8>,
}

/// A control stream that has lost orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RolledBack {
    pub(super) shown: u64,
    pub(super) seen: u64,
}

/// Where a sealed message was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedMessageOrigin<'a> {
    /// The stream that it was sealed for.
    pub(crate) stream: &'a Topic,
    /// The stream that it stands in: another one for a dead letter.
    pub(crate) kept_in: &'a Topic,
    pub(crate) generation: u64,
    pub(crate) offset: u64,
}

/// A sealed envelope, and the epoch that it was sealed in.
pub(crate) struct SealedNow {
    pub(crate) bytes: Vec<u8>,
    pub(crate) epoch: Epoch,
}

/// A frame that was opened and may be shown.
pub(crate) struct OpenedDelivery {
    pub(crate) opened: OpenedMessage,
    pub(crate) data_type: DataType,
    pub(crate) codec: Codec,
    pub(crate) sender: String,
    /// When an urgent message was made.
    pub(crate) time_ms: Option<u64>,
    /// The low byte of how many orders the sender had obeyed.
    pub(crate) orders: u8,
    /// The first epoch behind the last removal.
    pub(crate) live_from: Epoch,
    pub(crate) envelope: Bytes,
}

impl GroupKeyring {
    pub(super) fn new(member: GroupMembership) -> Result<GroupKeyring, Error> {
        let opener = member.opener()?;
        Ok(GroupKeyring {
            group: member.group(),
            tag: member.tag(),
            member,
            sender: None,
            opener,
            rolled_back: None,
            policy: Policy::default(),
            conditions: Conditions::default(),
            buf: FrameBuf::new(),
            scratch: Transcoder::new(),
            timed: Vec::new(),
        })
    }

    pub(super) fn decide(&self, data_type: DataType) -> Decision {
        self.policy.decide(data_type, &self.conditions)
    }

    /// The member of a group with an authority, as its folder has it now: another process may have
    /// changed it.
    pub(super) fn provisioned(&mut self) -> Result<&mut GroupMember, Error> {
        self.member.reload()?;
        self.follow()?;
        Ok(self.member.provisioned()?)
    }

    /// Has opener and sender go on with what the member knows now. A sender that stayed would seal
    /// under keys that others have.
    fn follow(&mut self) -> Result<(), Error> {
        self.sender = None;
        Ok(self.member.refresh(&mut self.opener)?)
    }

    pub(super) fn mark_here(&mut self, marks: &[RemovalMark]) -> Result<(), Error> {
        Ok(self.member.mark_here(marks)?)
    }

    pub(super) fn known(&self) -> &GroupMembership {
        &self.member
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
    pub(super) fn obey(&mut self, notice: &GroupNotice) -> Result<Vec<GroupChange>, Error> {
        let stamp = |member: &GroupMembership| (member.epochs().newest(), member.orders());
        let before = stamp(&self.member);
        let outcome = self.member.apply(notice);
        if stamp(&self.member) != before || self.member.is_removed() {
            self.follow()?;
        }
        Ok(outcome?)
    }

    /// Whether this is a member that knows of all orders.
    pub(super) fn check_orders(&self) -> Result<(), Error> {
        self.member.check_sealing()?;
        if let Some(RolledBack { shown, seen }) = self.rolled_back {
            return Err(sealane_group::Error::RolledBack { shown, seen }.into());
        }
        Ok(())
    }

    /// Why nothing may be sealed now, if that is so.
    pub(super) fn check_sealing(&self, data_type: DataType, now_ms: u64) -> Result<(), Error> {
        self.check_orders()?;
        if self.member.is_strict() && !data_type.is_urgent() {
            self.member.check_heartbeat(now_ms)?;
        }
        Ok(())
    }

    /// Seals a checked envelope for a stream, in the class that the policy decides.
    pub(super) fn seal(
        &mut self,
        topic: &Topic,
        data_type: DataType,
        codec: Codec,
        envelope: &[u8],
    ) -> Result<SealedNow, Error> {
        check(&mut self.scratch, codec, envelope)?;
        let now_ms = now_ms();
        self.check_sealing(data_type, now_ms)?;
        let decision = self.decide(data_type);
        let class = self.policy.class_in(&self.group, data_type, &decision)?;
        let sender = match &mut self.sender {
            Some(sender) => sender,
            none => none.insert(self.member.sender()?),
        };
        debug_assert!(sender.epoch() >= self.member.epochs().newest(), "a sender that fell behind");
        let mut fields = sender.fields(class, data_type.number());
        fields.codec = codec as u8;
        let body = if data_type.is_urgent() {
            self.timed.clear();
            self.timed.extend(now_ms.to_le_bytes());
            self.timed.extend_from_slice(envelope);
            &self.timed
        } else {
            envelope
        };
        let binding = Binding::stream(topic.as_str());
        let frame = sender.seal(&fields, &binding, body, &mut self.buf)?;
        let mut bytes = Vec::with_capacity(frame.len() + 16);
        SealedEnvelope { id: None, frame: (&*frame).into() }.write(SEALED_IN, &mut bytes);
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(too_large(bytes.len()));
        }
        Ok(SealedNow { bytes, epoch: sender.epoch() })
    }

    /// Opens a frame from a stream. `near` is the epoch that the reader's cursor stands in.
    pub(crate) fn open(
        &mut self,
        near: Epoch,
        place: SealedMessageOrigin<'_>,
        mut frame: Vec<u8>,
    ) -> Result<OpenedDelivery, DeliveryRejection> {
        let binding = Binding::stream(place.stream.as_str());
        let view = FrameView::parse(&frame)?;
        if view.header().group() != self.tag {
            return Err(DeliveryRejection::OtherGroup);
        }
        if view.header().kind() != FrameKind::Message {
            return Err(DeliveryRejection::NoEnvelope);
        }
        let key = view.seal_header().key;
        let mut trials = trials(&self.opener, key, near);
        let last = trials.pop().ok_or_else(|| self.without_secret(key))?;
        // Opening is in place, and an epoch that is the wrong one leaves nothing behind.
        let earlier = trials.into_iter().find(|epoch| {
            open_stored(&mut self.opener, *epoch, &binding, &mut frame.clone()).is_ok()
        });
        let epoch = earlier.unwrap_or(last);
        let stored = open_stored(&mut self.opener, epoch, &binding, &mut frame)?;
        let (header, opened) = (stored.header, stored.opened);
        if epoch < self.first_epoch(&binding, place) {
            return Err(DeliveryRejection::Posthumous);
        }
        let body = opened.body();
        let mut body = HEADER_BYTES + body.start..HEADER_BYTES + body.end;
        let data_type = DataType::from_number(header.data_type());
        self.policy.admits(data_type, opened.class(), &self.group)?;
        if header.compression() != FrameCompression::None {
            return Err(DeliveryRejection::NoEnvelope);
        }
        let mut time_ms = None;
        if data_type.is_urgent() {
            let bytes = frame.get(body.clone()).and_then(<[u8]>::first_chunk);
            time_ms = Some(u64::from_le_bytes(*bytes.ok_or(DeliveryRejection::NoEnvelope)?));
            body.start += TIME_BYTES;
        }
        let body = Bytes::from(frame).slice(body);
        let (codec, envelope) = self.envelope(header.codec(), data_type, body)?;
        let sender =
            self.member.name_of(opened.slot(), opened.epoch()).unwrap_or_default().to_owned();
        let (orders, live_from) = (header.orders(), self.member.live_from());
        Ok(OpenedDelivery {
            opened,
            data_type,
            codec,
            sender,
            time_ms,
            orders,
            live_from,
            envelope,
        })
    }

    /// A body as an envelope: a datum of its codec. Without a codec it is a document or an event,
    /// as its value in JSON.
    fn envelope(
        &mut self,
        codec: u8,
        data_type: DataType,
        body: Bytes,
    ) -> Result<(Codec, Bytes), DeliveryRejection> {
        if codec == NO_CODEC {
            let value = body_value(data_type, &body).ok_or(DeliveryRejection::NoEnvelope)?;
            let mut json = Vec::new();
            sealane_codec::encode(Codec::Json, &value, &mut json);
            return Ok((Codec::Json, json.into()));
        }
        let codec = Codec::from_id(codec).filter(|codec| *codec != Codec::MsgPackRecords);
        let codec = codec.ok_or(DeliveryRejection::NoEnvelope)?;
        check(&mut self.scratch, codec, &body).map_err(|_| DeliveryRejection::NoEnvelope)?;
        Ok((codec, body))
    }

    /// The first epoch that may be read at a place: of a dead letter, also in the stream of
    /// letters.
    fn first_epoch(&self, binding: &Binding, place: SealedMessageOrigin<'_>) -> Epoch {
        let SealedMessageOrigin { stream, kept_in, generation, offset } = place;
        if stream == kept_in {
            return self.member.first_epoch(binding, generation, offset);
        }
        self.member.first_epoch(&Binding::stream(kept_in.as_str()), generation, offset)
    }

    /// Why no secret is held for a frame. What lies ahead may come with the next orders, unless
    /// they are not meant for this member any more.
    fn without_secret(&self, key: KeyId) -> DeliveryRejection {
        let newest = self.newest();
        if key.epoch(newest) > newest && !self.member.is_removed() {
            return DeliveryRejection::Early(SealError::EpochUnknown);
        }
        DeliveryRejection::Frame(SealError::EpochUnknown.into())
    }
}

/// Bytes of the time before the body of an urgent message.
const TIME_BYTES: usize = size_of::<u64>();
/// The codec of bodies that have none.
const NO_CODEC: u8 = 0;

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
