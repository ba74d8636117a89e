//! A new beginning of a group whose authority has lost its counters: it needs no earlier secret to
//! be read and no counter to be made.

use sealane_seal::{Epoch, EpochSecret, GroupId, Slot};
use zeroize::Zeroizing;

use crate::charter::Charter;
use crate::crypto::{AuthoritySigner, NONCE_BYTES, open_box, random, seal_box};
use crate::limits::AUTHORITY_SIGNATURE_BYTES;
use crate::order::Wraps;
use crate::state::State;
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
    state: &State,
    roster: &Roster,
    (epoch, secret): (Epoch, &EpochSecret),
) -> Result<Vec<u8>, Error> {
    let is_member = |slot: &Slot| roster.entry(*slot).is_some_and(|one| one.removed().is_none());
    let keys: Vec<_> = state.wraps.iter().filter(|(slot, _)| is_member(slot)).cloned().collect();
    // One document for all: it is rare, and a member must see that it was left out.
    let parts = Wraps::make(secret, (state.id(), epoch), &keys, random()?)?;
    let mut bytes = begin(Document::Renewal);
    bytes.extend(state.id().0);
    bytes.extend(epoch.0.to_be_bytes());
    Wraps::join(parts).ok_or(Error::Cipher)?.put(&mut bytes);
    let mut entries = Vec::new();
    roster.put(&mut entries);
    let sealed = seal_box(&roster_key(secret), [0; NONCE_BYTES], &bytes, &entries)?;
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
        let Some(secret) = self.wraps.unwrap((self.group, self.epoch, slot), key) else {
            return Ok(None);
        };
        let mut head = begin(Document::Renewal);
        head.extend(self.group.0);
        head.extend(self.epoch.0.to_be_bytes());
        self.wraps.put(&mut head);
        let opened = open_box(&roster_key(&secret), [0; NONCE_BYTES], &head, self.roster);
        let opened = opened.ok_or(Error::NotForUs(Document::Renewal))?;
        let mut reader = Reader::new(Document::Renewal, &opened);
        let roster = Roster::read(&mut reader)?;
        reader.end()?;
        Ok(Some((secret, roster)))
    }
}

fn roster_key(secret: &EpochSecret) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key(ROSTER_KEY, secret.expose()))
}
