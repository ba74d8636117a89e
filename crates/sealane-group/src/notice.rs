use sealane_frame::notice::{
    GroupHeartbeat, NOTICE_VERSION, NoticeFault, NoticeView, OrderChainHead, OrderView,
    RemovalNotice, RenewalView, chained_part, notice_label,
};
use sealane_seal::{EpochSecret, GroupId};

use crate::charter::GroupCharter;
use crate::crypto::MemberSigner;
use crate::renewal::VerifiedRenewal;
use crate::wire::{GroupFieldReader, begin, put_part};
use crate::{Error, GroupDocument};

/// One message of a group's control stream: an order, which is a sealed frame with its number and
/// the authority's signature in clear; a renewal, which needs no earlier secret; a heartbeat; or
/// that a member is about to be removed.
///
/// Orders are numbered from 0 without gaps, and each stands on a hash of those before it. Members
/// obey them in that order; again does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupNotice {
    bytes: Vec<u8>,
}

impl GroupNotice {
    /// A notice as it was published.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for bytes that are none, [`Error::OlderVersion`],
    /// [`Error::NewerVersion`].
    pub fn from_bytes(bytes: &[u8]) -> Result<GroupNotice, Error> {
        NoticeView::parse(bytes)?;
        Ok(GroupNotice { bytes: bytes.to_vec() })
    }

    /// Signs an order.
    pub(crate) fn order(
        signer: &MemberSigner,
        group: GroupId,
        order: OrderView<'_>,
    ) -> Result<GroupNotice, Error> {
        GroupNotice::signed(signer, group, order.to_bytes())
    }

    /// The notice of a renewal that was signed.
    pub(crate) fn from_renewal(renewal: &[u8]) -> GroupNotice {
        GroupNotice { bytes: RenewalView::notice(renewal) }
    }

    pub(crate) fn heartbeat(
        signer: &MemberSigner,
        group: GroupId,
        heartbeat: GroupHeartbeat,
    ) -> Result<GroupNotice, Error> {
        GroupNotice::signed(signer, group, heartbeat.to_bytes())
    }

    /// Says who is about to be removed. It is signed in the open, so that those can check it who
    /// hold no secret of the group, or not yet that of the present epoch.
    pub(crate) fn removal(
        signer: &MemberSigner,
        group: GroupId,
        removal: RemovalNotice,
    ) -> Result<GroupNotice, Error> {
        GroupNotice::signed(signer, group, removal.to_bytes())
    }

    fn signed(
        signer: &MemberSigner,
        group: GroupId,
        mut bytes: Vec<u8>,
    ) -> Result<GroupNotice, Error> {
        signer.append(&notice_label(&bytes, group), &mut bytes)?;
        Ok(GroupNotice { bytes })
    }

    /// The bytes to publish.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of an order. Whoever has not verified the notice has the writer's word for it.
    pub fn number(&self) -> Option<u64> {
        match self.view() {
            Ok(NoticeView::Order(order)) => Some(order.number),
            _ => None,
        }
    }

    /// The member that is about to be removed. If a caller has not verified the notice, it has only
    /// the writer's word for it.
    pub fn removes(&self) -> Option<RemovalNotice> {
        match self.view() {
            Ok(NoticeView::Removal(removal)) => Some(removal),
            _ => None,
        }
    }

    /// The frame of an order.
    pub fn frame(&self) -> Option<&[u8]> {
        match self.view() {
            Ok(NoticeView::Order(order)) => Some(order.frame),
            _ => None,
        }
    }

    /// The head of the chain behind an order or a renewal.
    pub fn head(&self) -> Option<OrderChainHead> {
        let part = chained_part(&self.bytes)?;
        Some(OrderChainHead(blake3::derive_key("Sealane 1.0 chain of orders", part)))
    }

    /// How many orders there are at least, if the authority has signed that.
    pub(crate) fn shown(&self, charter: &GroupCharter) -> Option<u64> {
        match self.verified(charter.id(), &charter.authority.curve).ok()? {
            NoticeView::Order(order) => order.number.checked_add(1),
            NoticeView::Renewal(_) => {
                VerifiedRenewal::read(charter, &self.bytes).ok()?.number.checked_add(1)
            }
            NoticeView::Heartbeat(_) | NoticeView::Removal(_) => None,
        }
    }

    /// The notice, if its signature by that key verifies. The second signature of a renewal is
    /// verified where the renewal is read.
    pub(crate) fn verified(&self, group: GroupId, key: &[u8; 32]) -> Result<NoticeView<'_>, Error> {
        Ok(NoticeView::verify(&self.bytes, group, key)?)
    }

    /// The notice, as its bytes say. Nothing is verified.
    pub(crate) fn view(&self) -> Result<NoticeView<'_>, Error> {
        Ok(NoticeView::parse(&self.bytes)?)
    }
}

impl From<NoticeFault> for Error {
    fn from(fault: NoticeFault) -> Error {
        let document = GroupDocument::Order;
        match fault {
            NoticeFault::Malformed => Error::Malformed(document),
            NoticeFault::Version(version) if version < NOTICE_VERSION => {
                Error::OlderVersion { document, version }
            }
            NoticeFault::Version(version) => Error::NewerVersion { document, version },
            NoticeFault::Signature => Error::Signature(document),
            NoticeFault::OtherGroup => Error::OtherGroup(GroupDocument::Renewal),
        }
    }
}

/// The secret of an epoch: what its order carries, bound to all orders up to that one. So those who
/// obeyed another log hold another secret.
pub(crate) fn chained_secret(carried: &EpochSecret, head: OrderChainHead) -> EpochSecret {
    let mut hasher = blake3::Hasher::new_keyed(carried.expose());
    hasher.update(b"Sealane 1.0 epoch of a chain ");
    hasher.update(&head.0);
    EpochSecret::new(*hasher.finalize().as_bytes())
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
