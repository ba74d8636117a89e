use sealane_seal::{Epoch, GroupId};

use crate::charter::GroupCharter;
use crate::crypto::{MemberSigner, verify_member};
use crate::removal::RemovalNotice;
use crate::renewal::VerifiedRenewal;
use crate::wire::{GroupFieldReader, begin, put_part};
use crate::{Error, GroupDocument};

const ORDER: u8 = 1;
const RENEWAL: u8 = 2;
const HEARTBEAT: u8 = 3;
const REMOVAL: u8 = 4;
const ORDER_LABEL: &[u8] = b"Sealane 1.0 order ";
const HEARTBEAT_LABEL: &[u8] = b"Sealane 1.0 heartbeat ";
const REMOVAL_LABEL: &[u8] = b"Sealane 1.0 removal ";

/// One message of a group's control stream: an order, which is a sealed frame with its number and
/// the authority's signature in clear; a renewal, which needs no earlier secret; a heartbeat; or
/// that a member is about to be removed.
///
/// Orders are numbered from 0 without gaps. Members obey them in that order; again does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupNotice {
    bytes: Vec<u8>,
}

/// A notice, as its bytes say. Nothing is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParsedNotice<'a> {
    Order { number: u64, frame: &'a [u8] },
    Renewal(&'a [u8]),
    Heartbeat(GroupHeartbeat),
    Removal(RemovalNotice),
}

/// That the authority, or a beater in its place, has seen so many orders at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupHeartbeat {
    /// How many orders were given.
    pub orders: u64,
    /// The group's newest epoch, or 0 from a beater, which does not know it.
    pub epoch: Epoch,
    /// Milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
}

impl GroupNotice {
    /// A notice as it was published.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for bytes that are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<GroupNotice, Error> {
        let notice = GroupNotice { bytes: bytes.to_vec() };
        notice.parse().map(|_| ())?;
        Ok(notice)
    }

    /// Numbers a frame and signs both.
    pub(crate) fn order(
        signer: &MemberSigner,
        group: GroupId,
        number: u64,
        frame: &[u8],
    ) -> Result<GroupNotice, Error> {
        let mut bytes = vec![ORDER];
        bytes.extend(number.to_be_bytes());
        bytes.extend_from_slice(frame);
        signer.append(&label(ORDER_LABEL, group), &mut bytes)?;
        Ok(GroupNotice { bytes })
    }

    pub(crate) fn from_renewal(renewal: &[u8]) -> GroupNotice {
        GroupNotice { bytes: [&[RENEWAL], renewal].concat() }
    }

    pub(crate) fn heartbeat(
        signer: &MemberSigner,
        group: GroupId,
        heartbeat: GroupHeartbeat,
    ) -> Result<GroupNotice, Error> {
        let mut bytes = vec![HEARTBEAT];
        let words = [heartbeat.orders, heartbeat.epoch.0, heartbeat.time_ms];
        bytes.extend(words.into_iter().flat_map(u64::to_be_bytes));
        signer.append(&label(HEARTBEAT_LABEL, group), &mut bytes)?;
        Ok(GroupNotice { bytes })
    }

    /// Says who is about to be removed. It is signed in the open, so that those can check it who
    /// hold no secret of the group, or not yet that of the present epoch.
    pub(crate) fn removal(
        signer: &MemberSigner,
        group: GroupId,
        removal: RemovalNotice,
    ) -> Result<GroupNotice, Error> {
        let mut bytes = vec![REMOVAL];
        removal.put(&mut bytes);
        signer.append(&label(REMOVAL_LABEL, group), &mut bytes)?;
        Ok(GroupNotice { bytes })
    }

    /// The bytes to publish.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of an order. Whoever has not verified the notice has the writer's word for it.
    pub fn number(&self) -> Option<u64> {
        match self.parse() {
            Ok(ParsedNotice::Order { number, .. }) => Some(number),
            _ => None,
        }
    }

    /// The member that is about to be removed. If a caller has not verified the notice, it has only
    /// the writer's word for it.
    pub fn removes(&self) -> Option<RemovalNotice> {
        match self.parse() {
            Ok(ParsedNotice::Removal(removal)) => Some(removal),
            _ => None,
        }
    }

    /// The frame of an order.
    pub fn frame(&self) -> Option<&[u8]> {
        match self.parse() {
            Ok(ParsedNotice::Order { frame, .. }) => Some(frame),
            _ => None,
        }
    }

    /// How many orders there are at least, if the authority has signed that.
    pub(crate) fn shown(&self, charter: &GroupCharter) -> Option<u64> {
        match self.verified(charter.id(), &charter.authority.curve).ok()? {
            ParsedNotice::Order { number, .. } => number.checked_add(1),
            ParsedNotice::Renewal(bytes) => {
                VerifiedRenewal::read(charter, bytes).ok()?.number.checked_add(1)
            }
            ParsedNotice::Heartbeat(_) | ParsedNotice::Removal(_) => None,
        }
    }

    /// The parsed notice, if its signature by that key verifies. A renewal is verified where it is
    /// read.
    pub(crate) fn verified(
        &self,
        group: GroupId,
        key: &[u8; 32],
    ) -> Result<ParsedNotice<'_>, Error> {
        let parsed = self.parse()?;
        let label = match parsed {
            ParsedNotice::Order { .. } => label(ORDER_LABEL, group),
            ParsedNotice::Heartbeat(_) => label(HEARTBEAT_LABEL, group),
            ParsedNotice::Removal(_) => label(REMOVAL_LABEL, group),
            ParsedNotice::Renewal(_) => return Ok(parsed),
        };
        verify_member(key, &label, GroupDocument::Order, &self.bytes)?;
        Ok(parsed)
    }

    pub(crate) fn parse(&self) -> Result<ParsedNotice<'_>, Error> {
        let mut reader = GroupFieldReader::new(GroupDocument::Order, &self.bytes);
        match reader.u8()? {
            ORDER => {
                let number = reader.u64()?;
                let frame = reader.rest().split_last_chunk::<64>().map(|(frame, _)| frame);
                let frame = frame.filter(|frame| !frame.is_empty());
                let frame = frame.ok_or(Error::Malformed(GroupDocument::Order))?;
                Ok(ParsedNotice::Order { number, frame })
            }
            RENEWAL => Ok(ParsedNotice::Renewal(reader.rest())),
            HEARTBEAT => {
                let (orders, epoch) = (reader.u64()?, Epoch(reader.u64()?));
                let time_ms = reader.u64()?;
                reader.bytes(64)?;
                reader.end()?;
                Ok(ParsedNotice::Heartbeat(GroupHeartbeat { orders, epoch, time_ms }))
            }
            REMOVAL => {
                let removal = RemovalNotice::read(&mut reader)?;
                reader.bytes(64)?;
                reader.end()?;
                Ok(ParsedNotice::Removal(removal))
            }
            _ => Err(reader.malformed()),
        }
    }
}

/// The bytes that a signature is made over: a notice of one group is none of another.
fn label(kind: &[u8], group: GroupId) -> Vec<u8> {
    [kind, &group.0].concat()
}

/// Joins notices into one order file, to be handed on where no hub carries them.
pub fn write_orders(notices: &[GroupNotice]) -> Vec<u8> {
    let mut bytes = begin(GroupDocument::Order);
    notices.iter().for_each(|notice| put_part(&mut bytes, &notice.bytes));
    bytes
}

/// Reads an order file.
///
/// # Errors
///
/// [`Error::Malformed`], [`Error::NewerVersion`], [`Error::OlderVersion`].
pub fn read_orders(bytes: &[u8]) -> Result<Vec<GroupNotice>, Error> {
    let mut reader = GroupFieldReader::open(GroupDocument::Order, bytes)?;
    let mut notices = Vec::new();
    while reader.left() > 0 {
        notices.push(GroupNotice::from_bytes(reader.part()?)?);
    }
    if notices.is_empty() { Err(reader.malformed()) } else { Ok(notices) }
}
