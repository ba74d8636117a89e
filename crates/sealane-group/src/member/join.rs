//! How a folder becomes a member: by founding a group, or by an invitation.

use std::collections::BTreeMap;
use std::sync::Arc;

use sealane_seal::{Epoch, EpochSecret, Epochs};
use zeroize::Zeroizing;

use crate::certificate::{MemberCertificate, MemberSeat};
use crate::charter::GroupCharter;
use crate::crypto::random;
use crate::folder::{IdentityKeys, KeyFolderLock, check_group_name};
use crate::invitation::{self, InvitationEnvelope};
use crate::marks::RemovalMarks;
use crate::removal::AnnouncedRemovals;
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
        let slot = roster.free_slot(is_pair)?;
        let seat = MemberSeat { slot, since: Epoch(0), replaces: None };
        let certificate = MemberCertificate::make(&signer, charter.id(), &card, seat)?;
        roster.admit(certificate.entry());
        let secret = EpochSecret::new(random()?);
        let state = GroupState {
            routing: Zeroizing::new(random()?),
            slot,
            is_removed: false,
            is_copied: false,
            wrap_key: Zeroizing::new(random()?),
            live_from: Epoch(0),
            roster,
            epochs: Epochs::new(charter.id(), history, Epoch(0), secret),
            wraps: Vec::new(),
            certificates: Vec::new(),
            orders: 0,
            known: 0,
            claimed: 0,
            awaited: Epoch(0),
            marks: RemovalMarks::default(),
            marked: Epoch(0),
            beater: None,
            beat: NewestHeartbeat::default(),
            spent: Vec::new(),
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
        let envelope = InvitationEnvelope::read(invitation)?;
        let lock = keys.lock()?;
        let cards = keys.cards(&lock)?;
        let mut cards = cards.ok_or_else(|| Error::Elsewhere(keys.path().to_owned()))?;
        let found = cards.iter().position(|waiting| waiting.nonce == envelope.nonce);
        let waiting = cards.swap_remove(found.ok_or(Error::UnknownCard)?);
        let own = keys.identity().public().verifying_key();
        let mut state = invitation::open(&envelope, &waiting, own)?;
        let fingerprint = state.charter.fingerprint();
        if authority.is_some_and(|expected| expected != fingerprint) {
            return Err(Error::OtherAuthority(fingerprint.to_string()));
        }
        let earlier = GroupMember::earlier(keys, &lock, &state)?;
        let name = match &earlier {
            Some((name, earlier)) => {
                invitation::keep_past(&mut state.epochs, &earlier.epochs);
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
        GroupMember::settle(keys, &lock, &name, state)
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
        let (held, leavers) = (BTreeMap::new(), AnnouncedRemovals::default());
        Ok(GroupMember { keys, name, state, held, leavers })
    }
}
