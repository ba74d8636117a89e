//! How a machine speaks to its neighbours and understands them: the mesh's group, sealed and
//! opened.

mod behind;

use std::collections::BTreeMap;
use std::sync::Arc;

use sealane_frame::limits::MAX_HOP_LIMIT;
use sealane_frame::{
    ANNOUNCEMENT_TYPE, CompactUnit, CompactView, FrameAnnouncement, FrameBuf, FrameDictionary,
    FrameKind, FrameRoster, FrameView, GroupTag, Header, HeaderFields, LinkContext, LongFrame,
    PeerTag, open_announcement, open_compact, open_frame, open_stored, seal_compact, seal_frame,
};
use sealane_seal::{
    Announcement, Binding, Class, Epoch, Epochs, Form, Group, KeyId, OpenedMessage, Opener, Sealer,
    SenderContext, SigningKey, Slot,
};

use crate::hop::{HopSender, HopWriter};
use crate::keys::member_at;
use crate::limits::{MAX_BEHIND_FRAMES_PER_SECOND, MAX_TOLD_SLOTS_PER_SECOND};
use crate::messages::MessageType;
use crate::slots::{BySlot, SlotSet};
use crate::{KeptGroup, Keys, Member, MeshError, Rekeyed};

/// The mesh's group at work.
pub(crate) struct MeshVoice {
    group: GroupTag,
    sealing: Group,
    slot: Slot,
    tag: PeerTag,
    start_ms: u64,
    orders: u64,
    members: Arc<[Member]>,
    /// The addresses of those who are members now.
    tags: BySlot<PeerTag>,
    epochs: Epochs,
    sealer: Sealer,
    /// For neighbours that have not come to the newest epoch.
    past: BTreeMap<Epoch, Sealer>,
    signing: SigningKey,
    /// The members that are about to be removed, each with its order.
    leaving: BTreeMap<Slot, u64>,
    opener: Opener,
    /// The latest epoch in which each slot was heard live.
    heard: BTreeMap<Slot, Epoch>,
    /// The slots whose terms the opener was told: those of whom anything came.
    told: SlotSet,
    /// Slots that may still be told to it, until more are allowed.
    tries: u32,
    /// Frames of earlier epochs that may still be looked at, until more are allowed.
    behind_tries: u32,
    roster: FrameRoster,
    dictionary: FrameDictionary,
    hop: HopWriter,
    buf: FrameBuf,
    /// Where what was heard is opened; kept for its room.
    heard_frame: Vec<u8>,
}

/// A message that a neighbour, or a gateway, has sent.
#[derive(Debug)]
pub(crate) struct HopMessage {
    pub(crate) by: HopSender,
    pub(crate) tag: PeerTag,
    pub(crate) what: MessageType,
    pub(crate) body: Vec<u8>,
}

/// A member whose removal was announced, and the order that it was announced for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberLeaves {
    pub(crate) slot: Slot,
    pub(crate) order: u64,
}

impl MeshVoice {
    pub(crate) fn new(keys: Keys) -> Result<Self, MeshError> {
        let Keys { group, tag, slot, context, start_ms, orders, epochs, members, signing } = keys;
        let own = member_at(&members, slot, epochs.newest());
        let own = own.ok_or(MeshError::Config("the own slot is no member's"))?.tag;
        let mut sealer = Sealer::new(group, slot, context, &epochs, 0)?;
        sealer.set_signing_key(signing.clone());
        let hop = hop_writer(&epochs, &sealer, 0)?;
        let mut opener = Opener::new(group, Some(slot), epochs.clone())?;
        opener.set_terms([])?;
        let mut voice = Self {
            group: tag,
            sealing: group,
            slot,
            tag: own,
            start_ms,
            orders,
            tags: tags(&members, &epochs),
            members,
            epochs,
            sealer,
            past: BTreeMap::new(),
            signing,
            leaving: BTreeMap::new(),
            opener,
            heard: BTreeMap::new(),
            told: SlotSet::default(),
            tries: MAX_TOLD_SLOTS_PER_SECOND,
            behind_tries: MAX_BEHIND_FRAMES_PER_SECOND,
            roster: FrameRoster::new(),
            dictionary: FrameDictionary::fixed(&[tag]),
            hop,
            buf: FrameBuf::new(),
            heard_frame: Vec::new(),
        };
        voice.announce_in_roster(slot, own, context, orders)?;
        voice.roster.set_epoch(tag, voice.epochs.newest());
        Ok(voice)
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// The tag of the mesh's group.
    pub(crate) fn group(&self) -> GroupTag {
        self.group
    }

    /// The group itself, and who gives its orders: whoever has founded it.
    pub(crate) fn kept_group(&self) -> Option<KeptGroup> {
        let founder = self.members.iter().find(|member| member.term.slot.number() == 0)?;
        let (tag, id) = (self.group, self.sealing.id());
        let authority = founder.term.verifying_key;
        Some(KeptGroup { tag, id, authority, orders: self.orders, has_member: true })
    }

    pub(crate) fn tag(&self) -> PeerTag {
        self.tag
    }

    pub(crate) fn start_ms(&self) -> u64 {
        self.start_ms
    }

    pub(crate) fn members(&self) -> &Arc<[Member]> {
        &self.members
    }

    /// The members, with their addresses.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (Slot, PeerTag)> {
        self.tags.iter().map(|(slot, tag)| (slot, *tag))
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    pub(crate) fn hop(&mut self) -> &mut HopWriter {
        &mut self.hop
    }

    /// Whether somebody is a member now.
    pub(crate) fn is_member(&self, slot: Slot) -> bool {
        self.tags.get(slot).is_some()
    }

    /// Whether a full frame is one of the mesh's own, which its seal alone protects: it is not
    /// relayed, and has no hop seal. A report has one, at the end of its way too.
    pub(crate) fn is_own(&self, frame: &[u8]) -> bool {
        FrameView::peek(frame).is_some_and(|header| is_own(self.group, header))
    }

    /// Takes over what an order has changed, and gives those whose announced removal it has not
    /// made true.
    pub(crate) fn rekey(&mut self, rekeyed: Rekeyed) -> Result<Vec<MemberLeaves>, MeshError> {
        let Rekeyed { epochs, members, orders, signing } = rekeyed;
        for (epoch, secret) in epochs.held() {
            self.opener.insert(epoch, secret.clone())?;
        }
        let (context, next) = (self.sealer.context(), self.sealer.next_counter()?);
        let mut sealer = Sealer::new(self.sealing, self.slot, context, &epochs, next)?;
        sealer.set_signing_key(signing.clone());
        let before = std::mem::replace(&mut self.sealer, sealer);
        if before.epoch() != self.sealer.epoch() {
            // Its counters go on: nothing is ever sealed twice under one.
            self.past.insert(before.epoch(), before);
        }
        self.signing = signing;
        self.hop = hop_writer(&epochs, &self.sealer, self.hop.next())?;
        self.tags = tags(&members, &epochs);
        let stays = self.end_leaving(orders);
        (self.epochs, self.members, self.orders) = (epochs, members, orders);
        self.tell_terms()?;
        self.announce_in_roster(self.slot, self.tag, context, orders)?;
        self.roster.set_epoch(self.group, self.epochs.newest());
        Ok(stays)
    }

    /// Allows what strangers may cost in one second again.
    pub(crate) fn allow_trials(&mut self) {
        self.tries = MAX_TOLD_SLOTS_PER_SECOND;
        self.allow_behind();
        self.opener.allow_trials();
    }

    /// The frame in which the machine announces itself.
    pub(crate) fn announcement(&mut self) -> Result<Vec<u8>, MeshError> {
        let body = Announcement { start: self.start_ms, orders: self.orders }.to_bytes();
        let fields = HeaderFields {
            kind: FrameKind::Control,
            class: Class::Signed,
            ..self.fields(ANNOUNCEMENT_TYPE)
        };
        let link = Binding::link();
        Ok(seal_frame(&mut self.sealer, &fields, &link, &body, &mut self.buf)?.to_vec())
    }

    /// A unit that tells all neighbours of an interface something.
    pub(crate) fn say(
        &mut self,
        form: Form,
        what: MessageType,
        body: &[u8],
    ) -> Result<Vec<u8>, MeshError> {
        let fields = self.fields(what as u16);
        let link = Binding::link();
        if form == Form::Compact {
            let context = LinkContext {
                dictionary: &self.dictionary,
                roster: &self.roster,
                next_hop: PeerTag::BROADCAST,
                previous_hop: self.tag,
            };
            let (sealer, buf) = (&mut self.sealer, &mut self.buf);
            if let Ok(unit) = seal_compact(sealer, &fields, &link, body, &context, buf) {
                return Ok(unit.to_vec());
            }
        }
        let frame = seal_frame(&mut self.sealer, &fields, &link, body, &mut self.buf)?;
        let mut unit = Vec::new();
        match form {
            Form::Full => unit.extend_from_slice(frame),
            Form::Compact => LongFrame::of(frame)?.write(&mut unit),
        }
        Ok(unit)
    }

    /// A frame of a report, which travels as far as there are machines.
    pub(crate) fn report(&mut self, body: &[u8]) -> Result<Vec<u8>, MeshError> {
        let fields = HeaderFields {
            class: Class::Signed,
            hop_limit: MAX_HOP_LIMIT,
            ..self.fields(MessageType::Report as u16)
        };
        let link = Binding::link();
        Ok(seal_frame(&mut self.sealer, &fields, &link, body, &mut self.buf)?.to_vec())
    }

    fn fields(&self, data_type: u16) -> HeaderFields {
        let [orders, ..] = self.orders.to_le_bytes();
        HeaderFields {
            hop_limit: 0,
            kind: FrameKind::Routing,
            class: Class::Authenticated,
            codec: 0,
            orders,
            ..HeaderFields::new(self.group, self.tag, data_type)
        }
    }

    /// Opens a neighbour's announcement. Whether it is of a start that was not known.
    pub(crate) fn hear_announcement(&mut self, frame: &[u8]) -> Result<bool, MeshError> {
        let slot = self.slot_of(frame)?;
        let header = *FrameView::parse(frame)?.header();
        let announced = FrameAnnouncement { context: header.context(), orders: header.orders() };
        let key = FrameView::parse(frame)?.seal_header().key;
        let is_newest = key == KeyId::new(slot, key.class, self.epochs.newest());
        if is_newest && self.roster.announced(self.group, slot) == Some(announced) {
            // It says nothing new, whoever sent it: no signature has to be verified for that.
            return Ok(false);
        }
        let known = self.opener.announced(slot);
        let mut frame = frame.to_vec();
        if !self.is_member(slot) {
            return Err(sealane_seal::Error::NotMember.into());
        }
        let announced = open_announcement(&mut self.opener, &mut frame)?;
        let orders = announced.announcement().orders;
        let opened = announced.accept();
        let tag = member_at(&self.members, slot, opened.epoch()).map(|member| member.tag);
        self.announce_in_roster(slot, tag.ok_or(MeshError::Range)?, opened.context(), orders)?;
        Ok(known != Some(opened.context()))
    }

    /// Opens what a neighbour says, in a unit of either form.
    pub(crate) fn hear(&mut self, form: Form, unit: &[u8]) -> Result<HopMessage, MeshError> {
        let frame = &mut self.heard_frame;
        frame.clear();
        frame.extend_from_slice(unit);
        if form == Form::Compact && matches!(CompactUnit::parse(unit), Ok(CompactUnit::Frame(_))) {
            let context = LinkContext {
                dictionary: &self.dictionary,
                roster: &self.roster,
                next_hop: PeerTag::BROADCAST,
                previous_hop: PeerTag::NOBODY,
            };
            let link = Binding::link();
            let received = open_compact(&mut self.opener, &link, frame, &context)?;
            let (fields, body) = (received.header.fields(), received.body.to_vec());
            let by = received.accept();
            self.note_heard(&by);
            return said(self.group, &fields, &by, body, Class::Authenticated);
        }
        self.slot_of(unit)?;
        let received = open_frame(&mut self.opener, &Binding::link(), &mut self.heard_frame)?;
        let (fields, body) = (received.header.fields(), received.body.to_vec());
        let by = received.accept();
        self.note_heard(&by);
        let said = said(self.group, &fields, &by, body, Class::Authenticated)?;
        let member = member_at(&self.members, said.by.slot, said.by.epoch);
        let is_its = member.is_some_and(|member| member.tag == said.tag);
        if is_its { Ok(said) } else { Err(MeshError::NotOurs) }
    }

    /// The slot that a full frame says it is of, which nothing has proved yet.
    pub(crate) fn claimed(&self, frame: &[u8]) -> Option<Slot> {
        Some(FrameView::parse(frame).ok()?.seal_header().key.slot)
    }

    /// The slot that a unit says it is of, if it says one.
    pub(crate) fn claimed_by_unit(&self, form: Form, unit: &[u8]) -> Option<Slot> {
        if form == Form::Full {
            return self.claimed(unit);
        }
        let CompactUnit::Frame(frame) = CompactUnit::parse(unit).ok()? else { return None };
        let context = LinkContext {
            dictionary: &self.dictionary,
            roster: &self.roster,
            next_hop: PeerTag::BROADCAST,
            previous_hop: PeerTag::NOBODY,
        };
        Some(CompactView::parse(frame, &context).ok()?.seal_header().key.slot)
    }

    /// Opens a gateway's report. Nothing is remembered: a report says itself which is later.
    pub(crate) fn hear_report(&mut self, frame: &[u8]) -> Result<HopMessage, MeshError> {
        self.slot_of(frame)?;
        let newest = self.epochs.newest();
        let mut frame = frame.to_vec();
        let stored = open_stored(&mut self.opener, newest, &Binding::link(), &mut frame)?;
        let (fields, body) = (stored.header.fields(), stored.body.to_vec());
        if stored.opened.epoch().0.saturating_add(1) < newest.0 {
            return Err(MeshError::NotOurs);
        }
        let said = said(self.group, &fields, &stored.opened, body, Class::Signed)?;
        if self.is_member(said.by.slot) { Ok(said) } else { Err(MeshError::NotOurs) }
    }

    /// The slot that a full frame says it is of, whose term the opener is told.
    fn slot_of(&mut self, frame: &[u8]) -> Result<Slot, MeshError> {
        let slot = FrameView::parse(frame)?.seal_header().key.slot;
        if self.told.contains(slot) || slot == self.slot {
            return Ok(slot);
        }
        if !self.members.iter().any(|member| member.term.slot == slot) {
            return Err(sealane_seal::Error::NotMember.into());
        }
        self.tries = self.tries.checked_sub(1).ok_or(sealane_seal::Error::TooManyTrials)?;
        self.told.insert(slot);
        self.tell_terms().map(|()| slot)
    }

    fn tell_terms(&mut self) -> Result<(), MeshError> {
        let terms = self.members.iter().map(|member| member.term);
        let told = terms.filter(|term| self.told.contains(term.slot));
        Ok(self.opener.set_terms(told)?)
    }

    fn announce_in_roster(
        &mut self,
        slot: Slot,
        tag: PeerTag,
        context: SenderContext,
        orders: u64,
    ) -> Result<(), MeshError> {
        let [orders, ..] = orders.to_le_bytes();
        self.roster.insert(self.group, slot, tag)?;
        self.roster.announce(self.group, slot, FrameAnnouncement { context, orders })?;
        Ok(())
    }
}

/// The addresses of those who are members in the newest epoch.
fn tags(members: &[Member], epochs: &Epochs) -> BySlot<PeerTag> {
    let now = members.iter().filter(|member| member.term.holds(epochs.newest()));
    let mut tags = BySlot::default();
    for member in now {
        tags.insert(member.term.slot, member.tag);
    }
    tags
}

fn hop_writer(epochs: &Epochs, sealer: &Sealer, next: u64) -> Result<HopWriter, MeshError> {
    let epoch = sealer.epoch();
    let secret = epochs.secret(epoch).ok_or(sealane_seal::Error::EpochUnknown)?;
    let sender = HopSender { slot: sealer.slot(), context: sealer.context(), epoch };
    Ok(HopWriter::new(secret, sender, next))
}

/// The content of an opened frame, if it is a message of the mesh.
fn said(
    group: GroupTag,
    fields: &HeaderFields,
    by: &OpenedMessage,
    body: Vec<u8>,
    class: Class,
) -> Result<HopMessage, MeshError> {
    let what = message_type(group, fields, class)?;
    let by = HopSender { slot: by.slot(), context: by.context(), epoch: by.epoch() };
    Ok(HopMessage { by, tag: fields.source, what, body })
}

/// Whether a frame of that header is one of the mesh's own, which its seal alone protects.
fn is_own(group: GroupTag, header: &Header) -> bool {
    // The hop limit keeps a frame of the mesh that was made to be sent on out of here: such a frame
    // needs the hop seal, so that no machine outside brings it in.
    if header.group() != group || header.hop_limit() != 0 {
        return false;
    }
    let is_report = header.data_type() == MessageType::Report as u16;
    header.kind() == FrameKind::Control || header.kind() == FrameKind::Routing && !is_report
}

/// Which message of the mesh a frame carries, by its header.
fn message_type(
    group: GroupTag,
    fields: &HeaderFields,
    class: Class,
) -> Result<MessageType, MeshError> {
    let is_ours =
        fields.kind == FrameKind::Routing && fields.group == group && fields.class == class;
    let is_signed = class == Class::Signed;
    // Reports alone are sent on.
    let is_ours = is_ours && (is_signed || fields.hop_limit == 0);
    let what = MessageType::from_number(fields.data_type).filter(|_| is_ours);
    let what = what.ok_or(MeshError::NotOurs)?;
    if (what == MessageType::Report) == is_signed { Ok(what) } else { Err(MeshError::NotOurs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_between_neighbours_go_without_a_hop_seal() {
        let group = GroupTag::from_bytes([1; 4]);
        let header =
            |fields: &HeaderFields| Header::new(fields, 0, 0, SenderContext([0xff; 8])).unwrap();
        let hello = HeaderFields {
            kind: FrameKind::Routing,
            hop_limit: 0,
            ..HeaderFields::new(group, PeerTag::from_hash([2; 8]), MessageType::Hello as u16)
        };
        let announcement =
            HeaderFields { kind: FrameKind::Control, data_type: ANNOUNCEMENT_TYPE, ..hello };
        for own in [hello, announcement] {
            assert!(is_own(group, &header(&own)));
            for other in [
                HeaderFields { kind: FrameKind::Message, ..own },
                HeaderFields { kind: FrameKind::Gossip, ..own },
                HeaderFields { hop_limit: 1, ..own },
                HeaderFields { group: GroupTag::from_bytes([3; 4]), ..own },
            ] {
                assert!(!is_own(group, &header(&other)), "{other:?}");
            }
        }
        let report = HeaderFields { data_type: MessageType::Report as u16, ..hello };
        assert!(!is_own(group, &header(&report)));
    }

    #[test]
    fn what_is_no_message_of_the_mesh_is_named() {
        let (group, class) = (GroupTag::from_bytes([1; 4]), Class::Authenticated);
        let hello = MessageType::Hello as u16;
        let fields = HeaderFields::new(group, PeerTag::from_hash([2; 8]), hello);
        let ours = HeaderFields { kind: FrameKind::Routing, class, hop_limit: 0, ..fields };
        assert!(message_type(group, &ours, class).is_ok());
        for other in [
            HeaderFields { kind: FrameKind::Message, ..ours },
            HeaderFields { hop_limit: 15, ..ours },
            HeaderFields { group: GroupTag::from_bytes([3; 4]), ..ours },
            HeaderFields { class: Class::Group, ..ours },
            HeaderFields { data_type: u16::MAX, ..ours },
        ] {
            let refused = message_type(group, &other, class).unwrap_err();
            assert_eq!((refused.info().code, &refused), ("SL-MESH-05", &MeshError::NotOurs));
        }
        // A report is signed, and nothing else is.
        let signed = HeaderFields { class: Class::Signed, ..ours };
        assert_eq!(message_type(group, &signed, Class::Signed), Err(MeshError::NotOurs));
    }
}
