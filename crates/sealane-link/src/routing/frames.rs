//! Small steps between the frames of the mesh and the links that carry them.

use std::io;

use sealane_frame::PeerTag;
use sealane_mesh::InterfaceId;

/// The interface that a link is to the machine.
pub(super) fn interface(link: usize) -> InterfaceId {
    InterfaceId(u8::try_from(link).unwrap_or(u8::MAX))
}

pub(super) fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// A frame of this machine, as one that it brings itself.
pub(super) fn own_frame(frame: &[u8], own: PeerTag) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Some(next_hop) = frame.get_mut(..8) {
        next_hop.copy_from_slice(&own.to_bytes());
    }
    frame
}
