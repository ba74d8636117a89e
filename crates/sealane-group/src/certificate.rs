use sealane_seal::{Epoch, GroupId, Slot};

use crate::charter::GroupCharter;
use crate::crypto::AuthoritySigner;
use crate::limits::AUTHORITY_SIGNATURE_BYTES;
use crate::roster::RosterEntry;
use crate::wire::{GroupFieldReader, begin, put_name};
use crate::{Error, GroupDocument, IdentityCard};

const LABEL: &[u8] = b"Sealane 1.0 certificate ";
/// Stands for no slot.
const NO_SLOT: u16 = u16::MAX;

/// The authority's statement about a member, under both of its signatures. It travels once; orders
/// name it by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberCertificate {
    pub(crate) group: GroupId,
    pub(crate) slot: Slot,
    pub(crate) since: Epoch,
    pub(crate) verifying: [u8; 32],
    /// The hash of the card that was invited.
    pub(crate) card: [u8; 32],
    /// The slot of the same identity that this one takes the place of.
    pub(crate) replaces: Option<Slot>,
    pub(crate) name: String,
    /// The whole, as it travels.
    pub(crate) bytes: Vec<u8>,
}

/// The place that a member is given in a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberSeat {
    pub(crate) slot: Slot,
    /// The first epoch in which it is a member.
    pub(crate) since: Epoch,
    /// The slot of the same identity that is retired for it.
    pub(crate) replaces: Option<Slot>,
}

impl MemberCertificate {
    pub(crate) fn make(
        signer: &AuthoritySigner,
        group: GroupId,
        card: &IdentityCard,
        MemberSeat { slot, since, replaces }: MemberSeat,
    ) -> Result<MemberCertificate, Error> {
        let mut bytes = begin(GroupDocument::Certificate);
        bytes.extend(group.0);
        bytes.extend(slot.number().to_be_bytes());
        bytes.extend(since.0.to_be_bytes());
        bytes.extend(card.public().verifying_key());
        bytes.extend(card.hash());
        bytes.extend(slot_bytes(replaces));
        put_name(&mut bytes, card.name());
        signer.append(LABEL, &mut bytes)?;
        Ok(MemberCertificate {
            group,
            slot,
            since,
            verifying: *card.public().verifying_key(),
            card: card.hash(),
            replaces,
            name: card.name().to_owned(),
            bytes,
        })
    }

    /// Reads a certificate of the charter's group; both signatures must verify.
    pub(crate) fn from_bytes(
        charter: &GroupCharter,
        bytes: &[u8],
    ) -> Result<MemberCertificate, Error> {
        let mut reader = GroupFieldReader::open(GroupDocument::Certificate, bytes)?;
        let group = GroupId(reader.array()?);
        let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
        let since = Epoch(reader.u64()?);
        let verifying = reader.array()?;
        let card = reader.array()?;
        let replaces = read_slot(&mut reader)?;
        let name = reader.name()?;
        if reader.left() != AUTHORITY_SIGNATURE_BYTES {
            return Err(reader.malformed());
        }
        if group != charter.id() {
            return Err(Error::OtherGroup(GroupDocument::Certificate));
        }
        charter.authority.verify(LABEL, GroupDocument::Certificate, bytes)?;
        let bytes = bytes.to_vec();
        Ok(MemberCertificate { group, slot, since, verifying, card, replaces, name, bytes })
    }

    /// The name of the certificate in orders and rosters.
    pub(crate) fn hash(&self) -> [u8; 32] {
        *blake3::hash(&self.bytes).as_bytes()
    }

    pub(crate) fn entry(&self) -> RosterEntry {
        RosterEntry {
            slot: self.slot,
            verifying: self.verifying,
            certificate: self.hash(),
            since: self.since,
            removed: None,
            name: self.name.clone(),
        }
    }
}

/// A slot, or that there is none.
pub(crate) fn slot_bytes(slot: Option<Slot>) -> [u8; 2] {
    slot.map_or(NO_SLOT, Slot::number).to_be_bytes()
}

pub(crate) fn read_slot(reader: &mut GroupFieldReader<'_>) -> Result<Option<Slot>, Error> {
    match reader.u16()? {
        NO_SLOT => Ok(None),
        slot => Slot::new(slot).map(Some).ok_or_else(|| reader.malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::{authority, card, charter, identity};

    #[test]
    fn a_certificate_holds_for_its_group_and_as_it_is_only() {
        let signer = authority().authority().unwrap();
        let card = IdentityCard::from_bytes(&card()).unwrap();
        let slot = Slot::new(1).unwrap();
        let seat = MemberSeat { slot, since: Epoch(3), replaces: None };
        let charter = charter();
        let made = MemberCertificate::make(&signer, charter.id(), &card, seat).unwrap();
        let read = |bytes: &[u8]| MemberCertificate::from_bytes(&charter, bytes);
        assert_eq!(read(&made.bytes).unwrap(), made);
        for at in 0..made.bytes.len() {
            let mut changed = made.bytes.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(read(&changed).is_err(), "{at}");
            assert!(read(&made.bytes[..at]).is_err(), "{at}");
        }
        assert!(read(&[&made.bytes[..], &[0]].concat()).is_err());
        // Of another group of the same authority, and of another authority.
        let of_other = MemberCertificate::make(&signer, GroupId([1; 32]), &card, seat).unwrap();
        assert!(matches!(read(&of_other.bytes), Err(Error::OtherGroup(_))));
        let other = identity("base", 99).authority().unwrap();
        let by_other = MemberCertificate::make(&other, charter.id(), &card, seat).unwrap();
        assert!(matches!(read(&by_other.bytes), Err(Error::Signature(_))));
        for version in [1, 3] {
            let mut changed = made.bytes.clone();
            changed[4] = version;
            let error = read(&changed).unwrap_err();
            let is_named = matches!(
                error,
                Error::OlderVersion { version: 1, .. } | Error::NewerVersion { version: 3, .. }
            );
            assert!(is_named, "{error}");
        }
    }
}
