//! Those who have missed orders hold an earlier epoch, and those who leave are members no more.

use sealane_frame::{FrameKind, HeaderFields, LongFrame, PeerTag, open_stored, seal_frame};
use sealane_seal::{
    Announcement, Binding, Class, Epoch, Epochs, Form, OpenedMessage, Sealer, Slot,
};

use super::{HopMessage, MemberLeaves, MeshVoice, said};
use crate::MeshError;
use crate::hop::HopSender;
use crate::limits::MAX_BEHIND_FRAMES_PER_SECOND;
use crate::messages::MessageType;

impl MeshVoice {
    /// Takes nothing more of a member that is about to be removed. Whether that is news.
    pub(crate) fn leave(&mut self, leaves: MemberLeaves) -> bool {
        let MemberLeaves { slot, order } = leaves;
        let is_late = order < self.orders || !self.is_member(slot);
        if is_late || slot == self.slot {
            return false;
        }
        self.leaving.insert(slot, order);
        self.tags.remove(slot).is_some()
    }

    /// Whether an address is that of a member which is about to be removed.
    pub(crate) fn has_left(&self, tag: PeerTag) -> bool {
        let mut leaving =
            self.members.iter().filter(|one| self.leaving.contains_key(&one.term.slot));
        !self.leaving.is_empty() && leaving.any(|member| member.tag == tag)
    }

    /// The members that are about to be removed.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = MemberLeaves> + '_ {
        self.leaving.iter().map(|(slot, order)| MemberLeaves { slot: *slot, order: *order })
    }

    /// So many orders were obeyed: gives those who were to be removed by them, and are still
    /// members.
    pub(super) fn end_leaving(&mut self, orders: u64) -> Vec<MemberLeaves> {
        let ended: Vec<_> = self.leaving().filter(|one| one.order < orders).collect();
        self.leaving.retain(|_, order| *order >= orders);
        for slot in self.leaving.keys() {
            self.tags.remove(*slot);
        }
        ended.into_iter().filter(|one| self.is_member(one.slot)).collect()
    }

    /// A unit in the full form that tells those something who hold that epoch.
    pub(crate) fn say_in(
        &mut self,
        epoch: Epoch,
        form: Form,
        what: MessageType,
        body: &[u8],
    ) -> Result<Vec<u8>, MeshError> {
        let fields = self.fields(what as u16);
        self.seal_in(epoch, form, &fields, body)
    }

    /// The announcement of this machine to those who hold that epoch.
    pub(crate) fn announcement_in(
        &mut self,
        epoch: Epoch,
        form: Form,
    ) -> Result<Vec<u8>, MeshError> {
        let body = Announcement { start: self.start_ms, orders: self.orders }.to_bytes();
        let fields = HeaderFields {
            kind: FrameKind::Control,
            class: Class::Signed,
            ..self.fields(sealane_frame::ANNOUNCEMENT_TYPE)
        };
        self.seal_in(epoch, form, &fields, &body)
    }

    fn seal_in(
        &mut self,
        epoch: Epoch,
        form: Form,
        fields: &HeaderFields,
        body: &[u8],
    ) -> Result<Vec<u8>, MeshError> {
        let link = Binding::link();
        if epoch != self.sealer.epoch() && !self.past.contains_key(&epoch) {
            let sealer = self.sealer_of(epoch)?;
            self.past.insert(epoch, sealer);
        }
        let sealer = match self.past.get_mut(&epoch) {
            Some(past) if epoch != self.sealer.epoch() => past,
            _ => &mut self.sealer,
        };
        let frame = seal_frame(sealer, fields, &link, body, &mut self.buf)?;
        let mut unit = Vec::with_capacity(frame.len());
        match form {
            Form::Full => unit.extend_from_slice(frame),
            Form::Compact => LongFrame::of(frame)?.write(&mut unit),
        }
        Ok(unit)
    }

    /// A sealer of an epoch that was past when this machine started, so that it has sealed nothing
    /// under this context there. Those that it was in itself are kept.
    fn sealer_of(&self, epoch: Epoch) -> Result<Sealer, MeshError> {
        let secret = self.epochs.secret(epoch).ok_or(sealane_seal::Error::EpochUnknown)?;
        let history = self.epochs.history();
        let epochs = Epochs::new(self.sealing.id(), history, epoch, secret.clone());
        let mut sealer = Sealer::new(self.sealing, self.slot, self.sealer.context(), &epochs, 0)?;
        sealer.set_signing_key(self.signing.clone());
        Ok(sealer)
    }

    /// Notes in which epoch a member has spoken: from then on it is not behind that.
    pub(super) fn note_heard(&mut self, by: &OpenedMessage) {
        let latest = self.heard.entry(by.slot()).or_insert(by.epoch());
        *latest = by.epoch().max(*latest);
    }

    /// Opens what a member says that holds an epoch before the last one: that it is there, or what
    /// it asks for. Nothing is remembered, so that it may be a recording: what follows from it is
    /// bounded by air time alone.
    pub(crate) fn hear_behind(&mut self, frame: &[u8]) -> Result<MemberBehind, MeshError> {
        let view = sealane_frame::FrameView::parse(frame)?;
        let (kind, what, class) =
            (view.header().kind(), view.header().data_type(), view.seal_header().key.class);
        let is_announcement = (kind, what, class)
            == (FrameKind::Control, sealane_frame::ANNOUNCEMENT_TYPE, Class::Signed);
        self.behind_tries =
            self.behind_tries.checked_sub(1).ok_or(sealane_seal::Error::TooManyTrials)?;
        self.slot_of(frame)?;
        let (newest, mut frame) = (self.epochs.newest(), frame.to_vec());
        let stored = open_stored(&mut self.opener, newest, &Binding::link(), &mut frame)?;
        let opened = &stored.opened;
        let (slot, epoch) = (opened.slot(), opened.epoch());
        let is_old = self.heard.get(&slot).is_some_and(|latest| *latest > epoch);
        if is_old {
            // It was here since then: this is a recording.
            return Err(sealane_seal::Error::Replayed.into());
        }
        if !self.is_member(slot) || slot == self.slot || epoch >= newest {
            return Err(MeshError::NotOurs);
        }
        if is_announcement {
            return Ok(MemberBehind { slot, epoch, said: None });
        }
        let (fields, body) = (stored.header.fields(), stored.body.to_vec());
        let said = said(self.group, &fields, opened, body, Class::Authenticated)?;
        match said.what {
            MessageType::Asked => Ok(MemberBehind { slot, epoch, said: Some(said) }),
            _ => Err(MeshError::NotOurs),
        }
    }

    /// Allows what those who are behind may cost in one second again.
    pub(super) fn allow_behind(&mut self) {
        self.behind_tries = MAX_BEHIND_FRAMES_PER_SECOND;
    }
}

/// A message of a member that holds an epoch before the last one.
#[derive(Debug)]
pub(crate) struct MemberBehind {
    pub(crate) slot: Slot,
    pub(crate) epoch: Epoch,
    /// The request; nothing where it has announced itself.
    pub(crate) said: Option<HopMessage>,
}

impl HopMessage {
    /// Whether it was said in an epoch before that one.
    pub(crate) fn is_before(&self, epoch: Epoch) -> bool {
        let HopSender { epoch: said_in, .. } = self.by;
        said_in < epoch
    }
}
