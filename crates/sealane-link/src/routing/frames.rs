//! Small steps between the frames of the mesh and the links that carry them.

use std::io;

use sealane_mesh::InterfaceId;

/// The interface that a link is to the machine.
pub(super) fn interface(link: usize) -> InterfaceId {
    InterfaceId(u8::try_from(link).unwrap_or(u8::MAX))
}

pub(super) fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
