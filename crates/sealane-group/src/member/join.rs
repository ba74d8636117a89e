//! How a folder becomes a member: by founding a group, or by an invitation.

use std::sync::Arc;

use sealane_frame::notice::OrderChainHead;
use sealane_seal::{Epoch, EpochSecret, Epochs};
use zeroize::Zeroizing;

use super::{apply, authority};
use crate::card::PendingCard;
use crate::certificate::{MemberCertificate, MemberSeat};
use crate::charter::GroupCharter;
use crate::crypto::random;
use crate::folder::{IdentityKeys, KeyFolderLock, check_group_name};
use crate::invitation::{self, InvitationEnvelope};
use crate::marks::RemovalMarks;
use crate::state::{GroupState, NewestHeartbeat};
use crate::{Error, Fingerprint, GroupMember, GroupRoster, IdentityCard, NewGroup};

impl GroupMember {
    /// Makes a group: this identity is its authority and its first member.
    pub(crate) fn found(
        keys: &Arc<IdentityKeys>,
        name: &str,
        options: NewGroup,
    ) -> Result<GroupMember, Error> {
        check_group_name(name)?;
        let lock = keys.lock()?;
        let signer = keys.identity().authority()?;
        let NewGroup { history, is_pair, .. } = options;
        let charter = GroupCharter::new(name, options, signer.verifier()?)?;
        let card = IdentityCard::from_bytes(&IdentityCard::make(keys.identity(), None)?.0)?;
        let mut roster = GroupRoster::default();
        let slot = roster.free_slot(is_pair, 0)?;
        let seat = MemberSeat { slot, since: Epoch(0), replaces: None };
        let certificate = MemberCertificate::make(&signer, charter.id(), &card, seat)?;
        roster.admit(certificate.entry());
        let secret = EpochSecret::new(random()?);
        let state = GroupState {
            routing: Zeroizing::new(random()?),
            slot,
            is_removed: false,
            is_copied: false,
            is_forked: false,
            wrap_key: Box::new(Zeroizing::new(random()?)),
            signing: None,
            live_from: Epoch(0),
            roster,
            epochs: Epochs::new(charter.id(), history, Epoch(0), secret),
            wraps: Vec::new(),
            certificates: Vec::new(),
            orders: 0,
            head: OrderChainHead::of_group(charter.id()),
            began: OrderChainHead::of_group(charter.id()),
            floor: 0,
            known: 0,
            claimed: 0,
            awaited: Epoch(0),
            marks: RemovalMarks::default(),
            marked: Epoch(0),
            beater: None,
            beat: NewestHeartbeat::default(),
            spent: Vec::new(),
            given: 0,
            elsewhere: Epoch(0),
            charter,
        };
        keys.make_group(&lock, name)?;
        GroupMember::settle(keys, &lock, name, state)
    }

    /// Joins by an invitation; see [`crate::KeyFolder::join`].
    pub(crate) fn join(
        keys: &Arc<IdentityKeys>,
        invitation: &[u8],
        authority: Option<Fingerprint>,
        name: Option<&str>,
    ) -> Result<GroupMember, Error> {
        let lock = keys.lock()?;
        let (mut state, cards) = GroupMember::invited(keys, &lock, invitation)?;
        let fingerprint = state.charter.fingerprint();
        if authority.is_some_and(|expected| expected != fingerprint) {
            return Err(Error::OtherAuthority(fingerprint.to_string()));
        }
        let earlier = GroupMember::earlier(keys, &lock, &state)?;
        let name = match &earlier {
            Some((name, earlier)) => {
                keep_known(keys, name, &mut state, earlier)?;
                name.clone()
            }
            None => {
                let name = name.unwrap_or(&state.charter.name).to_owned();
                keys.make_group(&lock, &name)?;
                name
            }
        };
        // A card joins once, even if what follows fails.
        keys.save_cards(&lock, &cards)?;
        let mut member = GroupMember::settle(keys, &lock, &name, state)?;
        drop(lock);
        if let Some(slot) = member.authority_slot().filter(|_| authority.is_some()) {
            member.set_compared(slot)?;
        }
        Ok(member)
    }

    /// The fingerprint of the authority that has made an invitation. Nothing changes: the card
    /// still waits.
    pub(crate) fn inviter(
        keys: &Arc<IdentityKeys>,
        invitation: &[u8],
    ) -> Result<Fingerprint, Error> {
        let lock = keys.lock()?;
        Ok(GroupMember::invited(keys, &lock, invitation)?.0.charter.fingerprint())
    }

    /// The membership that an invitation gives, and the cards that wait beside its own.
    fn invited(
        keys: &IdentityKeys,
        lock: &KeyFolderLock,
        invitation: &[u8],
    ) -> Result<(GroupState, Vec<PendingCard>), Error> {
        let envelope = InvitationEnvelope::read(invitation)?;
        let cards = keys.cards(lock)?;
        let mut cards = cards.ok_or_else(|| Error::Elsewhere(keys.path().to_owned()))?;
        let found = cards.iter().position(|waiting| waiting.nonce == envelope.nonce);
        let waiting = cards.swap_remove(found.ok_or(Error::UnknownCard)?);
        let own = keys.identity().public().verifying_key();
        Ok((invitation::open(&envelope, &waiting, own)?, cards))
    }

    /// The membership that this folder has had in the same group.
    fn earlier(
        keys: &Arc<IdentityKeys>,
        lock: &KeyFolderLock,
        state: &GroupState,
    ) -> Result<Option<(String, GroupState)>, Error> {
        for name in keys.groups()? {
            let earlier = keys.load(lock, &name)?;
            if earlier.id() == state.id() {
                return Ok(Some((name, earlier)));
            }
        }
        Ok(None)
    }

    /// Keeps the state of a membership.
    fn settle(
        keys: &Arc<IdentityKeys>,
        lock: &KeyFolderLock,
        name: &str,
        state: GroupState,
    ) -> Result<GroupMember, Error> {
        keys.save(lock, name, &state)?;
        let (keys, name) = (Arc::clone(keys), name.to_owned());
        let (leavers, compared) = (keys.leavers(lock, &name)?, keys.compared(lock, &name)?);
        Ok(GroupMember { keys, name, state, leavers, compared })
    }
}

/// Takes over what may only grow. An authority that was put back to before a removal invites
/// members as if there had been none, and this folder may know better.
fn keep_known(
    keys: &IdentityKeys,
    name: &str,
    state: &mut GroupState,
    earlier: &GroupState,
) -> Result<(), Error> {
    apply::check_removals(earlier, keys, name, (state.orders, &state.roster))?;
    invitation::keep_past(&mut state.epochs, &earlier.epochs);
    let roster = std::mem::take(&mut state.roster);
    state.roster = roster.with_past(&earlier.roster, state.epochs.newest())?;
    state.marks.merge(&earlier.marks, &state.roster);
    state.live_from = state.live_from.max(earlier.live_from);
    state.floor = state.floor.max(earlier.floor);
    state.known = state.known.max(earlier.known);
    // Two logs become one only by a new beginning beyond both.
    let has_begun = authority::last_beginning(state.orders) >= earlier.known;
    state.is_forked = earlier.is_forked && !has_begun;
    Ok(())
}
