//! A fresh secret that needs no earlier one to be read: for a new beginning of a group whose
//! authority has lost its place, and for members who bring fresh keys.

use sealane_seal::{Epoch, EpochSecret, GroupId, Slot};
use zeroize::Zeroizing;

use crate::card::{IdentityCard, PendingCard};
use crate::charter::GroupCharter;
use crate::crypto::{AuthoritySigner, NONCE_BYTES, open_box, random, seal_box, wrap};
use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::{AUTHORITY_SIGNATURE_BYTES, MAX_HEAL_CARDS};
use crate::order::{SecretWraps, WrapId};
use crate::state::{GroupState, WrapKeys};
use crate::wire::{GroupFieldReader, begin, put_part};
use crate::{Error, GroupDocument, GroupRoster};

const LABEL: &[u8] = b"Sealane 1.0 renewal ";
const FRESH_LABEL: &[u8] = b"Sealane 1.0 fresh key ";
const ROSTER_KEY: &str = "Sealane 1.0 roster of a renewal";
const ANEW: u8 = 1;

/// A renewal whose signatures verify.
pub(crate) struct VerifiedRenewal<'a> {
    group: GroupId,
    pub(crate) number: u64,
    pub(crate) epoch: Epoch,
    /// Whether the authority has lost its place: nothing of earlier epochs is taken live then.
    pub(crate) is_anew: bool,
    wraps: SecretWraps,
    fresh: Vec<RenewalFreshSecret<'a>>,
    /// All that stands before the roster.
    head: &'a [u8],
    roster: &'a [u8],
}

/// The secret for a member who brought a fresh card.
struct RenewalFreshSecret<'a> {
    slot: Slot,
    /// The nonce of the card that it is encrypted to.
    nonce: [u8; 32],
    sealed: &'a [u8],
}

/// The content of a renewal for a member that brought a fresh card.
pub(crate) struct ByCard {
    pub(crate) secret: EpochSecret,
    /// The new pairwise key.
    pub(crate) key: Zeroizing<[u8; 32]>,
}

/// The content of a renewal for a member.
pub(crate) struct OpenedRenewal {
    pub(crate) secret: EpochSecret,
    pub(crate) roster: GroupRoster,
    /// The new pairwise key, if this member brought a fresh card.
    pub(crate) wrap_key: Option<Zeroizing<[u8; 32]>>,
}

/// The content of a renewal that is to be made.
pub(crate) struct RenewalPlan<'a> {
    pub(crate) number: u64,
    pub(crate) epoch: Epoch,
    pub(crate) is_anew: bool,
    pub(crate) secret: &'a EpochSecret,
    pub(crate) roster: &'a GroupRoster,
    /// Members who brought fresh cards; all others are told by their pairwise keys.
    pub(crate) cards: &'a [(Slot, &'a IdentityCard)],
}

/// Makes a renewal, and gives the pairwise keys of all members behind it.
pub(crate) fn make(
    signer: &AuthoritySigner,
    state: &GroupState,
    plan: &RenewalPlan<'_>,
) -> Result<(Vec<u8>, WrapKeys), Error> {
    let is_member = |slot: &Slot| plan.roster.entry(*slot).is_some_and(|e| e.removed().is_none());
    let is_fresh = |slot: &Slot| plan.cards.iter().any(|(fresh, _)| fresh == slot);
    let stay = state.wraps.iter().filter(|(slot, _)| is_member(slot) && !is_fresh(slot));
    let mut keys: WrapKeys = stay.cloned().collect();
    // One document for all: it is rare, and a member must see that it was left out.
    let parts = SecretWraps::make(plan.secret, state.id(), plan.epoch, &keys, random()?)?;
    let mut bytes = begin(GroupDocument::Renewal);
    bytes.extend(state.id().0);
    bytes.extend(plan.number.to_be_bytes());
    bytes.extend(plan.epoch.0.to_be_bytes());
    bytes.push(if plan.is_anew { ANEW } else { 0 });
    SecretWraps::join(parts).ok_or(Error::Cipher)?.put(&mut bytes);
    bytes.extend((plan.cards.len() as u16).to_be_bytes());
    for (slot, card) in plan.cards {
        let info = fresh_info(state.id(), plan.epoch, *slot, &card.nonce);
        let (sealed, key) = wrap(card.once(), &info, &[], plan.secret.expose())?;
        bytes.extend(slot.number().to_be_bytes());
        bytes.extend(card.nonce);
        put_part(&mut bytes, &sealed);
        keys.push((*slot, key));
    }
    keys.sort_by_key(|(slot, _)| *slot);
    let sealed = seal_roster(plan.secret, &bytes, plan.roster)?;
    put_part(&mut bytes, &sealed);
    signer.append(LABEL, &mut bytes)?;
    Ok((bytes, keys))
}

fn fresh_info(group: GroupId, epoch: Epoch, slot: Slot, nonce: &[u8; 32]) -> Vec<u8> {
    let (epoch, slot) = (epoch.0.to_be_bytes(), slot.number().to_be_bytes());
    [FRESH_LABEL, &group.0, &epoch, &slot, nonce].concat()
}

impl<'a> VerifiedRenewal<'a> {
    /// Reads a renewal of the charter's group; both signatures must verify.
    pub(crate) fn read(
        charter: &GroupCharter,
        bytes: &'a [u8],
    ) -> Result<VerifiedRenewal<'a>, Error> {
        let mut reader = GroupFieldReader::open(GroupDocument::Renewal, bytes)?;
        let group = GroupId(reader.array()?);
        let (number, epoch) = (reader.u64()?, Epoch(reader.u64()?));
        let is_anew = match reader.u8()? {
            0 => false,
            ANEW => true,
            _ => return Err(reader.malformed()),
        };
        let wraps = SecretWraps::read(&mut reader)?;
        let fresh = RenewalFreshSecret::read_all(&mut reader)?;
        let head = bytes.get(..bytes.len() - reader.left()).unwrap_or_default();
        let roster = reader.part()?;
        if reader.left() != AUTHORITY_SIGNATURE_BYTES || number == u64::MAX {
            return Err(reader.malformed());
        }
        if group != charter.id() {
            return Err(Error::OtherGroup(GroupDocument::Renewal));
        }
        charter.authority.verify(LABEL, GroupDocument::Renewal, bytes)?;
        Ok(VerifiedRenewal { group, number, epoch, is_anew, wraps, fresh, head, roster })
    }

    /// The content for this member; none if the renewal is not meant for it any more. A card that
    /// it answers is used up.
    pub(crate) fn open(
        &self,
        state: &GroupState,
        keys: &IdentityKeys,
        lock: &KeyFolderLock,
    ) -> Result<Option<OpenedRenewal>, Error> {
        let (secret, wrap_key) = match self.fresh.iter().find(|fresh| fresh.slot == state.slot) {
            Some(fresh) => match self.open_fresh(fresh, keys, lock)? {
                Some(ByCard { secret, key }) => (secret, Some(key)),
                None => return Ok(None),
            },
            None => {
                let whose = WrapId { group: self.group, epoch: self.epoch, slot: state.slot };
                match self.wraps.unwrap(whose, &state.wrap_key) {
                    Some(secret) => (secret, None),
                    None => return Ok(None),
                }
            }
        };
        let roster = open_roster(&secret, self.head, self.roster)?;
        Ok(Some(OpenedRenewal { secret, roster, wrap_key }))
    }

    /// Opens what was encrypted to a card that waits here.
    fn open_fresh(
        &self,
        fresh: &RenewalFreshSecret<'_>,
        keys: &IdentityKeys,
        lock: &KeyFolderLock,
    ) -> Result<Option<ByCard>, Error> {
        let mut cards = keys.cards(lock)?.unwrap_or_default();
        let Some(found) = cards.iter().position(|waiting| waiting.nonce == fresh.nonce) else {
            return Ok(None);
        };
        self.open_with(fresh, &cards.swap_remove(found)).map(Some)
    }

    /// The bytes that were encrypted to a card.
    fn open_with(
        &self,
        fresh: &RenewalFreshSecret<'_>,
        waiting: &PendingCard,
    ) -> Result<ByCard, Error> {
        let info = fresh_info(self.group, self.epoch, fresh.slot, &fresh.nonce);
        let opened = waiting.wrapping()?.open(&info, &[], fresh.sealed);
        let opened = opened.ok_or(Error::NotForUs(GroupDocument::Renewal))?;
        let secret = opened.plaintext.as_slice().try_into();
        let secret = secret.map_err(|_| Error::Malformed(GroupDocument::Renewal))?;
        Ok(ByCard { secret: EpochSecret::new(secret), key: opened.exported })
    }

    /// The card of this folder that it answers, if any: it is used up once the state is kept.
    pub(crate) fn card(&self, slot: Slot) -> Option<[u8; 32]> {
        self.fresh.iter().find(|fresh| fresh.slot == slot).map(|fresh| fresh.nonce)
    }
}

impl<'a> RenewalFreshSecret<'a> {
    fn read_all(reader: &mut GroupFieldReader<'a>) -> Result<Vec<RenewalFreshSecret<'a>>, Error> {
        let count = reader.count(MAX_HEAL_CARDS, 2 + 32 + 4)?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
            all.push(RenewalFreshSecret { slot, nonce: reader.array()?, sealed: reader.part()? });
        }
        Ok(all)
    }
}

/// The roster for those who have the renewal's secret, bound to all that stands before it.
fn seal_roster(secret: &EpochSecret, head: &[u8], roster: &GroupRoster) -> Result<Vec<u8>, Error> {
    let mut entries = Vec::new();
    roster.put(&mut entries);
    seal_box(&roster_key(secret), [0; NONCE_BYTES], head, &entries)
}

fn open_roster(secret: &EpochSecret, head: &[u8], sealed: &[u8]) -> Result<GroupRoster, Error> {
    let opened = open_box(&roster_key(secret), [0; NONCE_BYTES], head, sealed);
    let opened = opened.ok_or(Error::NotForUs(GroupDocument::Renewal))?;
    let mut reader = GroupFieldReader::new(GroupDocument::Renewal, &opened);
    let roster = GroupRoster::read(&mut reader)?;
    reader.end()?;
    Ok(roster)
}

fn roster_key(secret: &EpochSecret) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key(ROSTER_KEY, secret.expose()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::roster::tests::roster;

    const HEAD: &[u8] = b"all that stands before the roster";

    /// The roster of a renewal as the vectors have it: sealed under this secret and head.
    pub(crate) fn sealed_roster(secret: [u8; 32], head: &[u8]) -> (GroupRoster, Vec<u8>) {
        let sealed = seal_roster(&EpochSecret::new(secret), head, &roster()).unwrap();
        (roster(), sealed)
    }

    pub(crate) fn opened_roster(
        secret: [u8; 32],
        head: &[u8],
        sealed: &[u8],
    ) -> Option<GroupRoster> {
        open_roster(&EpochSecret::new(secret), head, sealed).ok()
    }

    /// A renewal, as whoever holds any key of it finds it.
    pub(crate) struct FoundRenewal {
        renewal: Vec<u8>,
        charter: GroupCharter,
    }

    impl FoundRenewal {
        /// Both signatures must verify.
        pub(crate) fn read(charter: &GroupCharter, renewal: &[u8]) -> FoundRenewal {
            VerifiedRenewal::read(charter, renewal).unwrap();
            FoundRenewal { renewal: renewal.to_vec(), charter: charter.clone() }
        }

        fn inside(&self) -> VerifiedRenewal<'_> {
            VerifiedRenewal::read(&self.charter, &self.renewal).unwrap()
        }

        /// Slots that have a wrap, and slots that brought fresh cards.
        pub(crate) fn slots(&self) -> [Vec<u16>; 2] {
            let renewal = self.inside();
            let wraps = renewal.wraps.wraps.iter().map(|(slot, _)| slot.number());
            let fresh = renewal.fresh.iter().map(|fresh| fresh.slot.number());
            [wraps.collect(), fresh.collect()]
        }

        /// The secret of whoever has that pairwise key.
        pub(crate) fn by_key(&self, slot: Slot, key: &[u8; 32]) -> Option<EpochSecret> {
            let renewal = self.inside();
            let whose = WrapId { group: renewal.group, epoch: renewal.epoch, slot };
            renewal.wraps.unwrap(whose, key)
        }

        /// The content for the holder of that card.
        pub(crate) fn by_card(&self, waiting: &PendingCard) -> Option<ByCard> {
            let renewal = self.inside();
            renewal.fresh.iter().find_map(|fresh| renewal.open_with(fresh, waiting).ok())
        }

        pub(crate) fn roster(&self, secret: &EpochSecret) -> Option<GroupRoster> {
            let renewal = self.inside();
            open_roster(secret, renewal.head, renewal.roster).ok()
        }
    }

    #[test]
    fn a_roster_opens_by_its_secret_and_behind_its_head_only() {
        let (roster, sealed) = sealed_roster([1; 32], HEAD);
        assert_eq!(opened_roster([1; 32], HEAD, &sealed), Some(roster));
        assert_eq!(opened_roster([2; 32], HEAD, &sealed), None, "another secret");
        assert_eq!(opened_roster([1; 32], &HEAD[1..], &sealed), None, "another head");
        assert_ne!(sealed_roster([2; 32], HEAD).1, sealed);
        // No name stands there in clear.
        let name = b"car 1";
        assert!(!sealed.windows(name.len()).any(|part| part == name));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(opened_roster([1; 32], HEAD, &changed), None, "{at}");
        }
    }
}
