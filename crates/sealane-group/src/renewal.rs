//! A new beginning of a group whose authority has lost its counters: it needs no earlier secret to
//! be read and no counter to be made.

use sealane_seal::{Epoch, EpochSecret, GroupId, Slot};
use zeroize::Zeroizing;

use crate::charter::Charter;
use crate::crypto::{AuthoritySigner, NONCE_BYTES, open_box, random, seal_box};
use crate::limits::AUTHORITY_SIGNATURE_BYTES;
use crate::order::{WrapId, Wraps};
use crate::state::GroupState;
use crate::wire::{Reader, begin, put_part};
use crate::{Document, Error, Roster};

const LABEL: &[u8] = b"Sealane 1.0 renewal ";
const ROSTER_KEY: &str = "Sealane 1.0 roster of a renewal";

/// A renewal whose signatures verify.
pub(crate) struct Renewal<'a> {
    group: GroupId,
    pub(crate) epoch: Epoch,
    wraps: Wraps,
    roster: &'a [u8],
}

/// Makes a renewal that goes to an epoch with a secret, and gives the roster that it announces.
pub(crate) fn make(
    signer: &AuthoritySigner,
    state: &GroupState,
    roster: &Roster,
    epoch: Epoch,
    secret: &EpochSecret,
) -> Result<Vec<u8>, Error> {
    let is_member = |slot: &Slot| roster.entry(*slot).is_some_and(|one| one.removed().is_none());
    let keys: Vec<_> = state.wraps.iter().filter(|(slot, _)| is_member(slot)).cloned().collect();
    // One document for all: it is rare, and a member must see that it was left out.
    let parts = Wraps::make(secret, state.id(), epoch, &keys, random()?)?;
    let mut bytes = begin(Document::Renewal);
    bytes.extend(state.id().0);
    bytes.extend(epoch.0.to_be_bytes());
    Wraps::join(parts).ok_or(Error::Cipher)?.put(&mut bytes);
    let sealed = seal_roster(secret, &bytes, roster)?;
    put_part(&mut bytes, &sealed);
    signer.append(LABEL, &mut bytes)?;
    Ok(bytes)
}

impl<'a> Renewal<'a> {
    /// Reads a renewal of the charter's group; both signatures must verify.
    pub(crate) fn read(charter: &Charter, bytes: &'a [u8]) -> Result<Renewal<'a>, Error> {
        let mut reader = Reader::open(Document::Renewal, bytes)?;
        let group = GroupId(reader.array()?);
        let epoch = Epoch(reader.u64()?);
        let wraps = Wraps::read(&mut reader)?;
        let roster = reader.part()?;
        if reader.left() != AUTHORITY_SIGNATURE_BYTES {
            return Err(reader.malformed());
        }
        if group != charter.id() {
            return Err(Error::OtherGroup(Document::Renewal));
        }
        charter.authority.verify(LABEL, Document::Renewal, bytes)?;
        Ok(Renewal { group, epoch, wraps, roster })
    }

    /// The secret and the roster, if they are meant for that slot too.
    pub(crate) fn open(
        &self,
        slot: Slot,
        key: &[u8; 32],
    ) -> Result<Option<(EpochSecret, Roster)>, Error> {
        let whose = WrapId { group: self.group, epoch: self.epoch, slot };
        let Some(secret) = self.wraps.unwrap(whose, key) else {
            return Ok(None);
        };
        let mut head = begin(Document::Renewal);
        head.extend(self.group.0);
        head.extend(self.epoch.0.to_be_bytes());
        self.wraps.put(&mut head);
        let roster = open_roster(&secret, &head, self.roster)?;
        Ok(Some((secret, roster)))
    }
}

/// The roster for those who have the renewal's secret, bound to all that stands before it.
fn seal_roster(secret: &EpochSecret, head: &[u8], roster: &Roster) -> Result<Vec<u8>, Error> {
    let mut entries = Vec::new();
    roster.put(&mut entries);
    seal_box(&roster_key(secret), [0; NONCE_BYTES], head, &entries)
}

fn open_roster(secret: &EpochSecret, head: &[u8], sealed: &[u8]) -> Result<Roster, Error> {
    let opened = open_box(&roster_key(secret), [0; NONCE_BYTES], head, sealed);
    let opened = opened.ok_or(Error::NotForUs(Document::Renewal))?;
    let mut reader = Reader::new(Document::Renewal, &opened);
    let roster = Roster::read(&mut reader)?;
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
    pub(crate) fn sealed_roster(secret: [u8; 32], head: &[u8]) -> (Roster, Vec<u8>) {
        let sealed = seal_roster(&EpochSecret::new(secret), head, &roster()).unwrap();
        (roster(), sealed)
    }

    pub(crate) fn opened_roster(secret: [u8; 32], head: &[u8], sealed: &[u8]) -> Option<Roster> {
        open_roster(&EpochSecret::new(secret), head, sealed).ok()
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
