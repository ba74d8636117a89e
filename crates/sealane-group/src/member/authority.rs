//! What only a group's authority does. Each call seals its orders, writes them and the new state
//! to the folder, and gives the orders to be published.

use sealane_frame::{FrameBuf, HeaderFields, Kind, Priority};
use sealane_seal::{Advance, Class, Epoch, EpochSecret, Slot};

use super::apply::{self, CERTIFICATE_TYPE, ORDER_TYPE};
use crate::certificate::{Certificate, Seat};
use crate::crypto::random;
use crate::folder::Lock;
use crate::invitation::{self, Past};
use crate::order::{Order, Rekey, Wraps};
use crate::roster::peer_tag;
use crate::state::GroupState;
use crate::{Card, Error, Member, Notice, Sender, renewal};

/// How far a renewal jumps at least, and to multiples of what: at most 127 epochs, so that the low
/// bits in key ids still tell which epoch is meant.
const RENEWAL_STEP: u64 = 64;

/// An invitation, and what the others must be told.
#[derive(Debug, Clone)]
pub struct Invited {
    /// For the holder of the card, and of no use to anybody else.
    pub invitation: Vec<u8>,
    /// For the members, in this order.
    pub notices: Vec<Notice>,
    /// The slot that the new member has.
    pub slot: Slot,
    /// The slot of the same identity that is retired.
    pub replaces: Option<Slot>,
}

impl Member {
    /// Invites the holder of a card. An identity that is a member already gets a new slot, and its
    /// old one is retired.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::RosterFull`]; [`Error::Elsewhere`] if the authority's
    /// folder was copied or restored: [`Member::renew`] first.
    pub fn invite(&mut self, card: &Card, past: Past) -> Result<Invited, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.load_for_orders(&lock)?;
        if state.roster.entries().iter().any(|one| one.certificate == card.hash()) {
            return Err(Error::UnknownCard);
        }
        let key = card.public().verifying_key();
        if *key == state.charter.authority.curve {
            return Err(Error::Refused("the authority is a member already"));
        }
        let slot = state.roster.free_slot(state.charter.is_pair)?;
        let replaces = state.roster.members().find(|one| one.verifying == *key);
        let replaces = replaces.map(|one| one.slot);
        let signer = self.keys.identity().authority()?;
        let newest = state.epochs.newest();
        let seat = Seat { slot, since: newest, replaces };
        let certificate = Certificate::make(&signer, state.id(), card, seat)?;
        let tag = peer_tag(&state.routing, &certificate.entry());
        if state.roster.entries().iter().any(|one| peer_tag(&state.routing, one) == tag) {
            return Err(Error::Refused("the member's address is taken: invite it with a new card"));
        }
        let (number, hash) = (state.roster.number() + 1, certificate.hash());
        let order = Order::Admit { number, slot, certificate: hash, replaces };
        let bodies =
            [(CERTIFICATE_TYPE, certificate.bytes.clone()), (ORDER_TYPE, order.to_bytes())];
        let frames = self.seal_orders(&lock, &state, &bodies)?;
        if let Some(old) = replaces {
            state.roster.remove(old, newest);
            state.wraps.retain(|(slot, _)| *slot != old);
        }
        state.roster.admit(number, certificate.entry());
        let (invitation, key) = invitation::make(&signer, &state, card, &certificate, past)?;
        state.wraps.push((slot, key));
        let notices = self.publish(&lock, state, frames)?;
        Ok(Invited { invitation, notices, slot, replaces })
    }

    /// Removes members: the others get a fresh secret.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::UnknownMember`], [`Error::Refused`] for the authority
    /// itself; [`Error::Elsewhere`] as in [`Member::invite`].
    pub fn revoke(&mut self, slots: &[Slot]) -> Result<Vec<Notice>, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.load_for_orders(&lock)?;
        let mut slots = slots.to_vec();
        slots.sort_unstable();
        slots.dedup();
        for slot in &slots {
            let entry = state.roster.entry(*slot).filter(|entry| entry.removed.is_none());
            entry.ok_or_else(|| Error::UnknownMember(slot.number().to_string()))?;
        }
        if slots.contains(&state.slot) {
            return Err(Error::Refused("the authority cannot remove itself"));
        }
        let secret = EpochSecret::new(random()?);
        let epoch = Epoch(state.epochs.newest().0 + 1);
        let number = state.roster.number() + 1;
        state.wraps.retain(|(slot, _)| !slots.contains(slot));
        let parts = Wraps::make(&secret, state.id(), epoch, &state.wraps, random()?)?;
        let bodies: Vec<_> = parts
            .into_iter()
            .map(|wraps| {
                let order = Rekey { number, epoch, removed: slots.clone(), wraps };
                (ORDER_TYPE, Order::Rekey(order).to_bytes())
            })
            .collect();
        let frames = self.seal_orders(&lock, &state, &bodies)?;
        slots.iter().for_each(|slot| state.roster.remove(*slot, epoch));
        if !slots.is_empty() {
            state.live_from = epoch;
        }
        state.roster.set_number(number);
        state.epochs.insert(epoch, secret)?;
        self.publish(&lock, state, frames)
    }

    /// Gives all members a fresh secret, for times when one may have leaked.
    ///
    /// # Errors
    ///
    /// As [`Member::revoke`].
    pub fn rotate(&mut self) -> Result<Vec<Notice>, Error> {
        self.revoke(&[])
    }

    /// Goes to the next epoch, whose secret follows from the present one: in a forward-secret
    /// group what was read before is closed to a later thief, at the price of one short order.
    ///
    /// # Errors
    ///
    /// As [`Member::revoke`].
    pub fn advance(&mut self) -> Result<Vec<Notice>, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.load_for_orders(&lock)?;
        let to = Epoch(state.epochs.newest().0 + 1);
        let order = Order::Advance(Advance { to });
        let frames = self.seal_orders(&lock, &state, &[(ORDER_TYPE, order.to_bytes())])?;
        apply::advance(&mut state, to)?;
        self.publish(&lock, state, frames)
    }

    /// Begins anew after the authority's folder was copied or restored: with a fresh secret, in an
    /// epoch far ahead (the next multiple of 64 that is at least 64 away, or `beyond` that), and
    /// with the roster that this folder knows. Members that were admitted after a restored backup
    /// was made need a new invitation.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::Io`].
    pub fn renew(&mut self, beyond: Option<Epoch>) -> Result<Vec<Notice>, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.keys.load(&lock, &self.name)?;
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        let newest = state.epochs.newest().max(beyond.unwrap_or_default());
        let far = |from: u64| {
            from.saturating_add(RENEWAL_STEP).div_ceil(RENEWAL_STEP).saturating_mul(RENEWAL_STEP)
        };
        let epoch = Epoch(far(newest.0));
        let secret = EpochSecret::new(random()?);
        state.roster.set_number(far(state.roster.number().max(epoch.0)));
        let signer = self.keys.identity().authority()?;
        let bytes = renewal::make(&signer, &state, &state.roster, epoch, &secret)?;
        state.epochs.insert(epoch, secret)?;
        state.live_from = epoch;
        state.is_copied = false;
        // Under the fresh secret the same slot has keys that nobody has ever used.
        Member::create_counters(&self.keys, &lock, &self.name, &state, false)?;
        self.publish(&lock, state, vec![Notice::from_renewal(&bytes)])
    }

    /// The notices that this authority has given, from the one with that number on, for members
    /// that have missed some.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`], [`Error::Damaged`].
    pub fn notices(&self, from: u64) -> Result<Vec<Notice>, Error> {
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        let _lock = self.keys.lock()?;
        (from..self.state.notices).map(|number| self.keys.notice(&self.name, number)).collect()
    }

    fn load_for_orders(&self, lock: &Lock) -> Result<GroupState, Error> {
        let state = self.keys.load(lock, &self.name)?;
        if !self.is_authority() {
            return Err(Error::NotAuthority);
        }
        if state.is_copied {
            return Err(Error::Elsewhere(self.keys.path().to_owned()));
        }
        Ok(state)
    }

    /// Seals orders in the present epoch, each call with counters that are reserved for it: so the
    /// counters' file is newer than any earlier state of the group.
    fn seal_orders(
        &self,
        lock: &Lock,
        state: &GroupState,
        bodies: &[(u16, Vec<u8>)],
    ) -> Result<Vec<Notice>, Error> {
        let count = bodies.len() as u64;
        let mut sender = Sender::reserve(&self.keys, &self.name, lock, state, count)?;
        let mut buf = FrameBuf::new();
        let mut notices = Vec::with_capacity(bodies.len());
        for (data_type, body) in bodies {
            let fields = HeaderFields {
                kind: Kind::Control,
                priority: Priority::High,
                codec: 0,
                ..sender.fields(Class::Signed, *data_type)
            };
            notices.push(Notice::from_frame(sender.seal(&fields, body, &mut buf)?));
        }
        Ok(notices)
    }

    /// Keeps the notices, then the state that follows from them.
    fn publish(
        &mut self,
        lock: &Lock,
        mut state: GroupState,
        notices: Vec<Notice>,
    ) -> Result<Vec<Notice>, Error> {
        for notice in &notices {
            self.keys.save_notice(lock, &self.name, state.notices, notice)?;
            state.notices += 1;
        }
        self.keys.save(lock, &self.name, &state)?;
        self.state = state;
        Ok(notices)
    }
}
