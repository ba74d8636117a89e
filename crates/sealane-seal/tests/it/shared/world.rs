//! Groups, members and messages that the tests share.
#![allow(dead_code, reason = "each test uses its part")]

use sealane_seal::*;
pub(crate) use sealane_testing::hex;

pub(crate) const META: &[u8] = b"type 7, codec 3";
pub(crate) const BODY: &[u8] = b"unit 4 is 200 m north of the bridge";
/// The stream that messages are made for where a test does not say another place.
pub(crate) const TOPIC: &str = "fleet/7";
/// The start of every sender where a test does not say another one.
pub(crate) const CONTEXT: SenderContext = SenderContext(*b"start 01");

pub(crate) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

pub(crate) fn group(suite: Suite) -> Group {
    Group::new(GroupId([7; 32]), suite)
}

pub(crate) fn pair(suite: Suite) -> Group {
    Group::pair(GroupId([8; 32]), suite)
}

/// The group that a class belongs to.
pub(crate) fn group_of(suite: Suite, class: Class) -> Group {
    if class == Class::Peer { pair(suite) } else { group(suite) }
}

pub(crate) fn epochs(group: Group) -> Epochs {
    epochs_of(group, History::Kept)
}

pub(crate) fn epochs_of(group: Group, history: History) -> Epochs {
    Epochs::new(group.id(), history, Epoch(0), EpochSecret::new([1; 32]))
}

/// From epoch 0 to that one, as far as there is room.
pub(crate) fn epochs_at(group: Group, epoch: u64) -> Epochs {
    let mut epochs = epochs(group);
    (0..epoch).for_each(|_| drop(advance(&mut epochs)));
    epochs
}

/// Enters the next epoch; gives its secret to those who are to enter it, too.
pub(crate) fn advance(epochs: &mut Epochs) -> EpochSecret {
    let next = Epoch(epochs.newest().0 + 1);
    let secret = epochs.secret(epochs.newest()).unwrap().next(epochs.group(), next).unwrap();
    epochs.insert(next, secret.clone()).unwrap();
    secret
}

pub(crate) fn signing_key(slot: Slot) -> SigningKey {
    signing_key_of(slot, 9)
}

/// The key of one of several members that have a slot one after the other.
pub(crate) fn signing_key_of(slot: Slot, member: u8) -> SigningKey {
    let mut seed = [member; 32];
    seed[..2].copy_from_slice(&slot.number().to_be_bytes());
    SigningKey::from_seed(&seed).unwrap()
}

/// A member that has its slot from the first epoch on.
pub(crate) fn term(number: u16) -> Term {
    let verifying_key = signing_key(slot(number)).verifying_key();
    Term { slot: slot(number), since: Epoch(0), until: None, verifying_key }
}

/// A sender with a signing key, from counter 0 on.
pub(crate) fn sealer(group: Group, slot: Slot, epochs: &Epochs) -> Sealer {
    sealer_of(group, slot, epochs, CONTEXT, 0)
}

pub(crate) fn sealer_of(
    group: Group,
    slot: Slot,
    epochs: &Epochs,
    context: SenderContext,
    next: u64,
) -> Sealer {
    let mut sealer = Sealer::new(group, slot, context, epochs, next).unwrap();
    sealer.set_signing_key(signing_key(slot));
    sealer
}

/// A reader that knows the members of slots 0 to 3 and sends nothing.
pub(crate) fn opener(group: Group, epochs: &Epochs) -> Opener {
    let mut opener = Opener::new(group, None, epochs.clone()).unwrap();
    opener.set_terms((0..4).map(term)).unwrap();
    opener
}

/// A message and how to read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sealed {
    pub(crate) class: Class,
    pub(crate) form: Form,
    pub(crate) context: SenderContext,
    pub(crate) binding: Binding,
    pub(crate) meta: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) clear: usize,
}

pub(crate) fn seal(
    sealer: &mut Sealer,
    class: Class,
    form: Form,
    meta: &[u8],
    body: &[u8],
) -> Sealed {
    seal_for(sealer, &Binding::stream(TOPIC), class, form, meta, body)
}

pub(crate) fn seal_for(
    sealer: &mut Sealer,
    binding: &Binding,
    class: Class,
    form: Form,
    meta: &[u8],
    body: &[u8],
) -> Sealed {
    let mut bytes = Vec::new();
    let place = sealer.append(class, form, binding, meta, body, &mut bytes).unwrap();
    assert_eq!(place, 0..bytes.len());
    let clear = if class == Class::Authenticated { body.len() } else { 0 };
    let (context, binding) = (sealer.context(), *binding);
    Sealed { class, form, context, binding, meta: meta.to_vec(), bytes, clear }
}

/// The announcement of a sender that started then.
pub(crate) fn announcement(sealer: &mut Sealer, start: u64) -> Sealed {
    let body = Announcement { start, orders: 0 }.to_bytes();
    seal_for(sealer, &Binding::link(), Class::Signed, Form::Full, META, &body)
}

/// Makes a sender known to a reader, by a message of the sender's.
pub(crate) fn introduce(sealer: &mut Sealer, opener: &mut Opener) {
    announcement(sealer, 1).announce(opener).unwrap();
}

/// Makes the sender of a message known to a reader without a message of it.
pub(crate) fn expect(opener: &mut Opener, number: u16, context: SenderContext) {
    let mut state = [0; SessionState::BYTES];
    state[0] = 1;
    state[1..3].copy_from_slice(&number.to_be_bytes());
    state[11..19].copy_from_slice(&context.0);
    opener.restore(&SessionState::from_bytes(&state).unwrap());
}

impl Sealed {
    pub(crate) fn attached(&self) -> Attached<'_> {
        Attached { context: self.context, binding: &self.binding, meta: &self.meta }
    }

    /// Opens it live and accepts it.
    pub(crate) fn live(&self, opener: &mut Opener) -> Result<(OpenedMessage, Vec<u8>), Error> {
        let mut bytes = self.bytes.clone();
        let pending = opener.open_live(self.form, &self.attached(), &mut bytes, self.clear)?;
        let opened = pending.accept();
        let body = bytes[opened.body()].to_vec();
        Ok((opened, body))
    }

    pub(crate) fn stored(
        &self,
        opener: &mut Opener,
        near: u64,
    ) -> Result<(OpenedMessage, Vec<u8>), Error> {
        let mut bytes = self.bytes.clone();
        let (near, attached) = (Epoch(near), self.attached());
        let opened = opener.open_stored(near, self.form, &attached, &mut bytes, self.clear)?;
        let body = bytes[opened.body()].to_vec();
        Ok((opened, body))
    }

    /// Opens it as an announcement and accepts it.
    pub(crate) fn announce(&self, opener: &mut Opener) -> Result<OpenedMessage, Error> {
        let mut bytes = self.bytes.clone();
        opener.open_announcement(&self.attached(), &mut bytes).map(PendingAnnouncement::accept)
    }

    /// The header, wherever it stands.
    pub(crate) fn header(&self) -> SframeHeader {
        SframeHeader::parse(&self.bytes[self.clear..], self.form, Epoch(0)).unwrap().0
    }

    /// The same message under another header.
    pub(crate) fn with_header(&self, header: SframeHeader, form: Form) -> Sealed {
        let mut changed = Sealed { form, ..self.clone() };
        let len = self.header().encode(self.form).len();
        let place = self.clear..self.clear + len;
        changed.bytes.splice(place, header.encode(form).iter().copied());
        changed
    }
}

/// The visible state of a reader, to see that it did not move.
pub(crate) fn state(opener: &Opener) -> (Epoch, usize, Vec<Option<SenderContext>>) {
    let sessions = (0..8).map(|number| opener.announced(slot(number)));
    (opener.epochs().newest(), opener.epochs().held().count(), sessions.collect())
}
