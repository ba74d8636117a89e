//! The part of a group's notices that a machine needs to keep them and to pass them on: their
//! signers and numbers. No machine needs the rest of their content.

use sealane_frame::machine::KeptGroup;
use sealane_frame::notice::{NoticeFault, NoticeView};
use sealane_seal::Slot;

use crate::MeshError;
use crate::limits::MAX_NOTICE_BYTES;

/// The content of a notice, once the authority's signature verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeContent {
    /// An order, or one that does not begin anew.
    Order {
        /// Its number.
        number: u64,
        /// The orders below it that did not come were never given, or are of no use any more.
        is_anew: bool,
    },
    /// Somebody is about to be removed.
    Removal {
        /// By which order.
        order: u64,
        /// The member.
        slot: Slot,
    },
}

/// Whether a message of a group's control stream is a heartbeat, which is no order.
pub fn is_heartbeat(notice: &[u8]) -> bool {
    matches!(NoticeView::parse(notice), Ok(NoticeView::Heartbeat(_)))
}

impl NoticeContent {
    /// The content of a notice, if the authority of that group has signed it.
    ///
    /// # Errors
    ///
    /// [`MeshError::TooLong`], [`MeshError::UnknownVersion`], [`MeshError::Range`],
    /// [`MeshError::NotOurs`] for the renewal of another group, and the seal's errors for the
    /// signature.
    pub fn verify(of: &KeptGroup, notice: &[u8]) -> Result<Self, MeshError> {
        if notice.len() > MAX_NOTICE_BYTES {
            return Err(MeshError::TooLong);
        }
        match NoticeView::verify(notice, of.id, &of.authority)? {
            NoticeView::Order(order) => Ok(Self::Order { number: order.number, is_anew: false }),
            NoticeView::Renewal(renewal) => {
                Ok(Self::Order { number: renewal.number, is_anew: renewal.is_anew })
            }
            NoticeView::Removal(removal) => {
                Ok(Self::Removal { order: removal.order, slot: removal.slot })
            }
            NoticeView::Heartbeat(_) => Err(MeshError::Range),
        }
    }
}

impl From<NoticeFault> for MeshError {
    fn from(fault: NoticeFault) -> Self {
        match fault {
            NoticeFault::Malformed => Self::Range,
            NoticeFault::Version(_) => Self::UnknownVersion,
            NoticeFault::Signature => sealane_seal::Error::Signature.into(),
            NoticeFault::OtherGroup => Self::NotOurs,
        }
    }
}
