//! Those who have missed orders hold an earlier epoch, and those who leave are members no more.

use sealane_frame::{FrameKind, HeaderFields, LongFrame, PeerTag, open_stored, seal_frame};
use sealane_seal::{
    Announcement, Binding, Class, Epoch, Epochs, Form, OpenedMessage, Sealer, Slot,
};

use super::{HopMessage, MemberLeaves, MeshVoice, said, set_key_of};
use crate::MeshError;
use crate::hop::HopSender;
use crate::keys::member_at;
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
        let body = Announcement::new(self.start_ms, self.orders).to_bytes();
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
        if let Some(own) = member_at(&self.members, self.slot, epoch) {
            set_key_of(own, &self.signing, &mut sealer);
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sealane_frame::FrameError;
    use sealane_seal::{EpochSecret, SigningKey, Term};

    use super::*;
    use crate::{Keys, Member, MeshProvision};

    /// A heal began epoch 1: the slot has another key from then on.
    fn healed(mut keys: Keys, fresh: &SigningKey) -> Keys {
        keys.epochs.insert(Epoch(1), EpochSecret::new([9; 32])).unwrap();
        let slot = keys.slot;
        let terms = keys.members.iter().flat_map(|member| {
            let is_healed = member.term.slot == slot;
            let until = is_healed.then_some(Epoch(1));
            let before = Member { term: Term { until, ..member.term }, ..*member };
            let verifying_key = fresh.verifying_key();
            let term = Term { since: Epoch(1), until: None, verifying_key, ..member.term };
            [Some(before), is_healed.then_some(Member { term, ..*member })]
        });
        keys.members = terms.flatten().collect::<Arc<[_]>>();
        keys.signing.insert(0, fresh.clone());
        keys.orders = 1;
        keys
    }

    #[test]
    fn a_healed_machine_is_heard_by_a_neighbour_that_is_behind() {
        let provision = MeshProvision::new([7; 32], 3).unwrap();
        let fresh = SigningKey::from_seed(&[3; 32]).unwrap();
        // It starts after the heal, which its neighbour has slept through.
        let bob = healed(provision.keys(1, [1; 8], 1000).unwrap(), &fresh);
        let mut bob = MeshVoice::new(bob).unwrap();
        let mut car = MeshVoice::new(provision.keys(2, [2; 8], 1000).unwrap()).unwrap();
        let before = bob.announcement_in(Epoch(0), Form::Full).unwrap();
        assert_eq!(car.hear_announcement(&before), Ok(true));
        assert!(car.hear_announcement(&bob.announcement().unwrap()).is_err(), "it is behind");
        let mut van = provision.keys(0, [3; 8], 1000).unwrap();
        let members = healed(provision.keys(1, [1; 8], 1000).unwrap(), &fresh);
        (van.epochs, van.members) = (members.epochs, members.members);
        let mut van = MeshVoice::new(van).unwrap();
        assert_eq!(van.hear_announcement(&bob.announcement().unwrap()), Ok(true));
    }

    /// A thief of a folder holds the secret and the key from before a heal.
    #[test]
    fn what_is_said_in_an_ended_epoch_moves_no_more_than_orders() {
        let provision = MeshProvision::new([7; 32], 3).unwrap();
        let fresh = SigningKey::from_seed(&[3; 32]).unwrap();
        let mut thief = MeshVoice::new(provision.keys(1, [1; 8], 1000).unwrap()).unwrap();
        let bob = healed(provision.keys(1, [4; 8], 1000).unwrap(), &fresh);
        let mut van = provision.keys(0, [3; 8], 1000).unwrap();
        (van.epochs, van.members, van.live_from) = (bob.epochs, bob.members, Epoch(1));
        let mut van = MeshVoice::new(van).unwrap();
        let past = Err(MeshError::Frame(FrameError::Seal(sealane_seal::Error::EpochPast)));
        let announced = thief.announcement().unwrap();
        assert_eq!(van.hear_announcement(&announced), past);
        let hello = thief.say(Form::Full, MessageType::Hello, b"hello").unwrap();
        assert_eq!(van.hear(Form::Full, &hello).map(|_| false), past);
        // A member that is behind says the same, and is to be given the order.
        let behind = van.hear_behind(&announced).unwrap();
        assert_eq!(
            (behind.slot.number(), behind.epoch, behind.said.is_none()),
            (1, Epoch(0), true)
        );
    }
}
