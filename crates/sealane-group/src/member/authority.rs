//! The calls that only an authority makes. Each call stores the group's new state, and with it the
//! orders, before it gives the orders to be published.

use sealane_frame::{FrameBuf, FrameKind, HeaderFields, Priority};
use sealane_seal::{Binding, Class, Epoch, EpochSecret, Slot};

use super::apply;
use super::control_topic;
use crate::certificate::{MemberCertificate, MemberSeat};
use crate::crypto::random;
use crate::folder::KeyFolderLock;
use crate::invitation::{self, PastSecrets};
use crate::limits::{MAX_HEAL_CARDS, MAX_ORDER_MARKS};
use crate::marks::RemovalMark;
use crate::notice::GroupHeartbeat;
use crate::now_ms;
use crate::order::{GroupOrder, RekeyOrder, SecretWraps};
use crate::renewal::RenewalPlan;
use crate::roster::peer_tag;
use crate::state::GroupState;
use crate::{
    Error, GroupMember, GroupNotice, GroupSender, IdentityCard, MemberRemoval, RemovalNotice,
    renewal,
};

/// How far a renewal jumps at least, and to multiples of what: at most 127 epochs, so that the low
/// bits in key ids still tell which epoch is meant.
const RENEWAL_STEP: u64 = 64;
/// The same of the number of orders, which no key id names: more than anybody gives between two
/// backups.
const RENEWAL_ORDERS: u64 = 1 << 20;

/// An invitation, and what the others must be told.
#[derive(Debug, Clone)]
pub struct IssuedInvitation {
    /// For the holder of the card, and of no use to anybody else.
    pub invitation: Vec<u8>,
    /// For the members, in this order.
    pub notices: Vec<GroupNotice>,
    /// The slot that the new member has.
    pub slot: Slot,
    /// The slot of the same identity that is retired.
    pub replaces: Option<Slot>,
}

/// The outcome of healing a group.
#[derive(Debug, Clone)]
pub struct HealOutcome {
    /// For the members.
    pub notices: Vec<GroupNotice>,
    /// Members without a fresh card: they were told by their old keys, which may have been copied,
    /// or were dropped.
    pub silent: Vec<Slot>,
}

/// Orders that are being given: each is sealed under the state that those before it have led to.
struct OrderIssuer<'a> {
    member: &'a GroupMember,
    lock: &'a KeyFolderLock,
    state: GroupState,
    notices: Vec<GroupNotice>,
}

impl GroupMember {
    /// Invites the holder of a card. An identity that is a member already gets a new slot, and its
    /// old one is retired. That, and a newcomer who is to read nothing of the past, takes a fresh
    /// secret: the others are told of it first.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::RosterFull`], [`Error::NameTaken`],
    /// [`Error::UnknownCard`] for a card that was invited before; [`Error::Elsewhere`] if the
    /// authority's folder was copied or restored: [`GroupMember::renew`] first.
    pub fn invite(
        &mut self,
        card: &IdentityCard,
        past: PastSecrets,
    ) -> Result<IssuedInvitation, Error> {
        let lock = self.keys.lock()?;
        let state = self.load_for_orders(&lock)?;
        if state.spent.contains(&card.hash()) {
            return Err(Error::UnknownCard);
        }
        let key = card.public().verifying_key();
        if *key == state.charter.authority.curve {
            return Err(Error::Refused("the authority is a member already"));
        }
        let same = state.roster.members().find(|one| one.verifying == *key);
        let replaces = same.map(|one| one.slot);
        let taken = state.roster.alike(card.name()).filter(|one| Some(one.slot) != replaces);
        if let Some(taken) = taken {
            let (name, taken) = (card.name().to_owned(), taken.name.clone());
            return Err(Error::NameTaken { name, taken });
        }
        let slot = state.roster.free_slot(state.charter.is_pair)?;
        let signer = self.keys.identity().authority()?;
        let mut issue = self.issue(&lock, state);
        if replaces.is_some() || past == PastSecrets::None {
            issue.rekey(&replaces.into_iter().collect::<Vec<_>>())?;
        }
        let seat = MemberSeat { slot, since: issue.state.epochs.newest(), replaces };
        let certificate = MemberCertificate::make(&signer, issue.state.id(), card, seat)?;
        issue.admit(&certificate, card)?;
        let (invitation, key) = invitation::make(&signer, &issue.state, card, &certificate, past)?;
        issue.state.wraps.push((slot, key));
        let notices = issue.finish();
        self.publish(&lock, notices).map(|notices| IssuedInvitation {
            invitation,
            notices,
            slot,
            replaces,
        })
    }

    /// Removes members: the others get a fresh secret.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::UnknownMember`], [`Error::Refused`] for the authority
    /// itself; [`Error::Elsewhere`] as in [`GroupMember::invite`].
    pub fn revoke(&mut self, slots: &[Slot]) -> Result<Vec<GroupNotice>, Error> {
        let leavers: Vec<_> =
            slots.iter().map(|slot| MemberRemoval { slot: *slot, mark: 0 }).collect();
        self.revoke_at(&leavers)
    }

    /// Removes members, and says which of their latest frames were sent before. What goes ahead of
    /// the orders is kept beside them: [`GroupMember::removals`].
    ///
    /// # Errors
    ///
    /// As [`GroupMember::revoke`].
    pub fn revoke_at(&mut self, leavers: &[MemberRemoval]) -> Result<Vec<GroupNotice>, Error> {
        let lock = self.keys.lock()?;
        let state = self.load_for_orders(&lock)?;
        let mut slots: Vec<_> = leavers.iter().map(|one| one.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        for slot in &slots {
            let entry = state.roster.entry(*slot).filter(|entry| entry.removed.is_none());
            entry.ok_or_else(|| Error::UnknownMember(slot.number().to_string()))?;
        }
        if slots.contains(&state.slot) {
            return Err(Error::Refused("the authority cannot remove itself"));
        }
        self.announce_removals(&lock, &state, leavers)?;
        let mut issue = self.issue(&lock, state);
        issue.rekey(&slots)?;
        let issued = issue.finish();
        self.publish(&lock, issued)
    }

    /// Signs and keeps what goes ahead of a re-key: one notice for each member that it removes.
    fn announce_removals(
        &self,
        lock: &KeyFolderLock,
        state: &GroupState,
        leavers: &[MemberRemoval],
    ) -> Result<(), Error> {
        let (signer, epoch) = (self.keys.identity().signer()?, state.epochs.newest());
        for MemberRemoval { slot, mark } in leavers.iter().copied() {
            let removal = RemovalNotice { order: state.orders, epoch, slot, mark };
            let notice = GroupNotice::removal(&signer, state.id(), removal)?;
            self.keys.save_removal(lock, &self.name, removal, &notice)?;
        }
        Ok(())
    }

    /// The notices of removal that go ahead of the orders from that number on. They are short, and
    /// are to be told before those.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::Io`].
    pub fn removals(&self, from: u64) -> Result<Vec<GroupNotice>, Error> {
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        let lock = self.keys.lock()?;
        let state = self.keys.load(&lock, &self.name)?;
        let mut notices = self.keys.removals(&self.name, from..state.orders)?;
        // One that was cut off halfway had no order behind it.
        let has_gone = |removal: RemovalNotice| {
            let entry = state.roster.entry(removal.slot);
            entry.and_then(|entry| entry.removed) == Some(Epoch(removal.epoch.0 + 1))
        };
        notices.retain(|notice| notice.removes().is_some_and(has_gone));
        Ok(notices)
    }

    /// Gives all members a fresh secret under the keys that they have. It closes the group to
    /// whoever has old epochs' secrets alone; whoever has a copy of a member's folder follows it:
    /// against that, [`GroupMember::heal`].
    ///
    /// # Errors
    ///
    /// As [`GroupMember::revoke`].
    pub fn rotate(&mut self) -> Result<Vec<GroupNotice>, Error> {
        self.revoke(&[])
    }

    /// Goes to the next epoch, whose secret follows from the present one: in a forward-secret
    /// group what was read before is closed to a later thief, at the price of one short order.
    ///
    /// # Errors
    ///
    /// As [`GroupMember::revoke`].
    pub fn advance(&mut self) -> Result<Vec<GroupNotice>, Error> {
        let lock = self.keys.lock()?;
        let state = self.load_for_orders(&lock)?;
        let mut issue = self.issue(&lock, state);
        let to = Epoch(issue.state.epochs.newest().0 + 1);
        issue.give(&GroupOrder::Advance(to))?;
        apply::advance(&mut issue.state, to)?;
        let issued = issue.finish();
        self.publish(&lock, issued)
    }

    /// Tells the members how far the group's streams had come at the last removal, so that nobody
    /// reads behind it what a removed member writes there. At most [`MAX_ORDER_MARKS`] are told.
    ///
    /// # Errors
    ///
    /// As [`GroupMember::revoke`].
    pub fn mark(&mut self, marks: &[RemovalMark]) -> Result<Vec<GroupNotice>, Error> {
        let lock = self.keys.lock()?;
        let state = self.load_for_orders(&lock)?;
        let epoch = state.live_from;
        let marks: Vec<RemovalMark> = marks.iter().take(MAX_ORDER_MARKS).copied().collect();
        let mut issue = self.issue(&lock, state);
        issue.state.marks.add(epoch, &marks);
        issue.state.marked = epoch;
        if !marks.is_empty() {
            issue.give(&GroupOrder::Mark { epoch, marks })?;
        }
        let issued = issue.finish();
        self.publish(&lock, issued)
    }

    /// Whether the members were not told marks of the last removal yet.
    pub fn owes_marks(&self) -> bool {
        self.is_authority() && self.state.marked < self.state.live_from
    }

    /// Says whose heartbeats count beside the authority's own, or that nobody's do.
    ///
    /// # Errors
    ///
    /// As [`GroupMember::revoke`].
    pub fn set_beater(&mut self, key: Option<&[u8; 32]>) -> Result<Vec<GroupNotice>, Error> {
        let lock = self.keys.lock()?;
        let state = self.load_for_orders(&lock)?;
        let mut issue = self.issue(&lock, state);
        issue.state.beater = key.copied();
        issue.give(&GroupOrder::Beater(key.copied()))?;
        let issued = issue.finish();
        self.publish(&lock, issued)
    }

    /// A heartbeat: so many orders were given. It is kept nowhere.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`]; [`Error::Elsewhere`] as in [`GroupMember::invite`].
    pub fn heartbeat(&self) -> Result<GroupNotice, Error> {
        let lock = self.keys.lock()?;
        let state = self.load_for_orders(&lock)?;
        let (orders, epoch) = (state.orders, state.epochs.newest());
        let heartbeat = GroupHeartbeat { orders, epoch, time_ms: now_ms() };
        GroupNotice::heartbeat(&self.keys.identity().signer()?, state.id(), heartbeat)
    }

    /// Gives a fresh secret to members who brought fresh cards, under the keys of those cards: a
    /// copy of a folder that was made before does not follow. Members without one are told by
    /// their old keys, or dropped.
    ///
    /// # Errors
    ///
    /// As [`GroupMember::revoke`]; [`Error::Refused`] for two cards of one member, more than
    /// [`MAX_HEAL_CARDS`] or none; [`Error::UnknownMember`] for a card of somebody else;
    /// [`Error::UnknownCard`] for one that was used before.
    pub fn heal(
        &mut self,
        cards: &[IdentityCard],
        drops_silent: bool,
    ) -> Result<HealOutcome, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.load_for_orders(&lock)?;
        let cards = fresh_cards(&state, cards)?;
        let is_fresh = |slot: Slot| cards.iter().any(|(fresh, _)| *fresh == slot);
        let others = state.roster.members().map(|one| one.slot).filter(|slot| *slot != state.slot);
        let silent: Vec<Slot> = others.filter(|slot| !is_fresh(*slot)).collect();
        let epoch = Epoch(state.epochs.newest().0 + 1);
        if drops_silent && !silent.is_empty() {
            silent.iter().for_each(|slot| state.roster.remove(*slot, epoch));
            state.live_from = epoch;
        }
        let number = state.orders;
        let notice = self.fresh_start(&mut state, &cards, number, epoch, false)?;
        cards.iter().for_each(|(_, card)| state.spend(card.hash()));
        let notices = self.publish(&lock, (state, vec![notice]))?;
        Ok(HealOutcome { notices, silent })
    }

    /// Begins anew after the authority's folder was copied or restored: with a fresh secret, in an
    /// epoch far ahead (the next multiple of 64 that is at least 64 away, or `beyond` that), with a
    /// number of orders far ahead, and with the roster that this folder knows. Members that were
    /// admitted after a restored backup was made need a new invitation.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::Io`].
    pub fn renew(&mut self, beyond: Option<Epoch>) -> Result<Vec<GroupNotice>, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.keys.load(&lock, &self.name)?;
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        let far =
            |from: u64, step: u64| from.saturating_add(step).div_ceil(step).saturating_mul(step);
        let newest = state.epochs.newest().max(beyond.unwrap_or_default());
        let epoch = Epoch(far(newest.0, RENEWAL_STEP));
        let number = far(state.orders.max(newest.0), RENEWAL_ORDERS);
        state.live_from = epoch;
        state.is_copied = false;
        let notice = self.fresh_start(&mut state, &[], number, epoch, true)?;
        self.publish(&lock, (state, vec![notice]))
    }

    /// A renewal, and the state behind it.
    fn fresh_start(
        &self,
        state: &mut GroupState,
        cards: &[(Slot, &IdentityCard)],
        number: u64,
        epoch: Epoch,
        is_anew: bool,
    ) -> Result<GroupNotice, Error> {
        let secret = EpochSecret::new(random()?);
        let signer = self.keys.identity().authority()?;
        let roster = &state.roster;
        let plan = RenewalPlan { number, epoch, is_anew, secret: &secret, roster, cards };
        let (bytes, wraps) = renewal::make(&signer, state, &plan)?;
        state.wraps = wraps;
        state.epochs.insert(epoch, secret)?;
        state.awaited = epoch;
        state.orders = number + 1;
        state.known = state.orders;
        Ok(GroupNotice::from_renewal(&bytes))
    }

    /// The notices that this authority has given, from the one with that number on, for members
    /// that have missed some. Numbers that a renewal stepped over are left out.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::Damaged`].
    pub fn notices(&self, from: u64) -> Result<Vec<GroupNotice>, Error> {
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        let lock = self.keys.lock()?;
        // Behind those stands at most what was cut off halfway: it was never given.
        let given = self.keys.load(&lock, &self.name)?.orders;
        self.keys.notices(&self.name, from..given)
    }

    fn load_for_orders(&self, lock: &KeyFolderLock) -> Result<GroupState, Error> {
        let state = self.keys.load(lock, &self.name)?;
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        if state.is_copied {
            return Err(Error::Elsewhere(self.keys.path().to_owned()));
        }
        Ok(state)
    }

    fn issue<'a>(&'a self, lock: &'a KeyFolderLock, state: GroupState) -> OrderIssuer<'a> {
        OrderIssuer { member: self, lock, state, notices: Vec::new() }
    }

    /// One order by itself, whatever the rules ask for before it.
    #[cfg(test)]
    pub(super) fn order_alone(
        &self,
        lock: &KeyFolderLock,
        order: &GroupOrder,
    ) -> Result<GroupNotice, Error> {
        let mut issue = self.issue(lock, self.load_for_orders(lock)?);
        issue.give(order)?;
        issue.notices.pop().ok_or(Error::Cipher)
    }

    /// Keeps the notices, then the state that follows from them.
    fn publish(
        &mut self,
        lock: &KeyFolderLock,
        (state, notices): (GroupState, Vec<GroupNotice>),
    ) -> Result<Vec<GroupNotice>, Error> {
        let first = state.orders - notices.len() as u64;
        for (number, notice) in (first..).zip(&notices) {
            self.keys.save_notice(lock, &self.name, number, notice)?;
        }
        self.keys.save(lock, &self.name, &state)?;
        self.state = state;
        Ok(notices)
    }
}

impl OrderIssuer<'_> {
    /// Seals one order in the present epoch and numbers it.
    fn give(&mut self, order: &GroupOrder) -> Result<(), Error> {
        let keys = &self.member.keys;
        let number = self.state.orders;
        let mut sender = GroupSender::of_order(keys, &self.member.name, self.lock, &self.state)?;
        let fields = HeaderFields {
            kind: FrameKind::Control,
            priority: Priority::High,
            codec: 0,
            ..sender.fields(Class::Signed, order.data_type())
        };
        let binding = Binding::stream(&control_topic(self.state.tag()));
        let mut buf = FrameBuf::new();
        let frame = sender.seal(&fields, &binding, &order.to_bytes(number), &mut buf)?;
        let signer = keys.identity().signer()?;
        self.notices.push(GroupNotice::order(&signer, self.state.id(), number, frame)?);
        self.state.orders = number + 1;
        self.state.known = self.state.orders;
        Ok(())
    }

    /// A fresh secret for all but those slots.
    fn rekey(&mut self, removed: &[Slot]) -> Result<(), Error> {
        let secret = EpochSecret::new(random()?);
        let epoch = Epoch(self.state.epochs.newest().0 + 1);
        self.state.wraps.retain(|(slot, _)| !removed.contains(slot));
        let parts =
            SecretWraps::make(&secret, self.state.id(), epoch, &self.state.wraps, random()?)?;
        for wraps in parts {
            self.give(&GroupOrder::Rekey(RekeyOrder { epoch, removed: removed.to_vec(), wraps }))?;
        }
        removed.iter().for_each(|slot| self.state.roster.remove(*slot, epoch));
        if !removed.is_empty() {
            self.state.live_from = epoch;
        }
        self.state.epochs.insert(epoch, secret)?;
        self.state.awaited = epoch;
        Ok(())
    }

    fn admit(&mut self, certificate: &MemberCertificate, card: &IdentityCard) -> Result<(), Error> {
        let (routing, entry) = (&self.state.routing, certificate.entry());
        let tag = peer_tag(routing, &entry);
        if self.state.roster.entries().iter().any(|one| peer_tag(routing, one) == tag) {
            return Err(Error::Refused("the member's address is taken: invite it with a new card"));
        }
        self.give(&GroupOrder::Certify(certificate.bytes.clone()))?;
        let (slot, replaces) = (certificate.slot, certificate.replaces);
        self.give(&GroupOrder::Admit { slot, certificate: certificate.hash(), replaces })?;
        self.state.roster.admit(entry);
        self.state.spend(card.hash());
        Ok(())
    }

    fn finish(self) -> (GroupState, Vec<GroupNotice>) {
        (self.state, self.notices)
    }
}

/// The slots of those who brought the cards.
fn fresh_cards<'a>(
    state: &GroupState,
    cards: &'a [IdentityCard],
) -> Result<Vec<(Slot, &'a IdentityCard)>, Error> {
    if cards.is_empty() || cards.len() > MAX_HEAL_CARDS {
        return Err(Error::Refused("healing takes 1 to 256 fresh cards at a time"));
    }
    let mut fresh: Vec<(Slot, &IdentityCard)> = Vec::with_capacity(cards.len());
    for card in cards {
        if state.spent.contains(&card.hash()) {
            return Err(Error::UnknownCard);
        }
        let key = card.public().verifying_key();
        let member = state.roster.members().find(|one| one.verifying == *key);
        let slot = member.map(|one| one.slot).filter(|slot| *slot != state.slot);
        let slot = slot.ok_or_else(|| Error::UnknownMember(card.name().to_owned()))?;
        if fresh.iter().any(|(known, _)| *known == slot) {
            return Err(Error::Refused("two cards are of one member: ask it which one is its own"));
        }
        fresh.push((slot, card));
    }
    fresh.sort_by_key(|(slot, _)| *slot);
    Ok(fresh)
}
