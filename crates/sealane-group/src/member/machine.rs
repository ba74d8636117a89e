//! A member of a mesh's group, as the machine that routes needs it.

use std::sync::Arc;

use sealane_frame::machine::{self, KeptGroup, Keys, Rekeyed};
use sealane_seal::{SenderContext, SigningKey};

use super::GroupMember;
use crate::Error;
use crate::crypto::random;
use crate::sender::CounterBlock;

impl GroupMember {
    /// All that a machine of the mesh holds of this group, for one start: under a context of its
    /// own, and later than every start before it.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`], [`Error::Behind`], [`Error::Io`].
    pub fn mesh_keys(&self) -> Result<Keys, Error> {
        let lock = self.keys.lock()?;
        let state = self.keys.load(&lock, &self.name)?;
        state.check_sealing()?;
        let (slot, epoch) = (state.slot, state.epochs.newest());
        // It counts from nothing in its own context: only the time of its start is reserved.
        let block = CounterBlock::reserve(&self.keys, &lock, &self.name, slot, epoch, 1)?;
        drop(lock);
        Ok(Keys {
            group: state.charter.group(),
            tag: state.tag(),
            slot,
            context: SenderContext(random()?),
            start_ms: block.start(),
            orders: state.orders,
            epochs: state.epochs.clone(),
            members: self.machines(),
            signing: self.mesh_signing()?,
        })
    }

    /// The changes for a running machine of the mesh, after [`GroupMember::reload`].
    ///
    /// # Errors
    ///
    /// [`Error::Removed`], [`Error::Behind`].
    pub fn mesh_rekeyed(&self) -> Result<Rekeyed, Error> {
        self.state.check_sealing()?;
        Ok(Rekeyed {
            epochs: self.state.epochs.clone(),
            members: self.machines(),
            orders: self.state.orders,
            signing: self.mesh_signing()?,
        })
    }

    /// The group as a machine of a mesh keeps its orders for this member, and for neighbours.
    pub fn kept_group(&self) -> KeptGroup {
        let (tag, id) = (self.state.tag(), self.state.id());
        let authority = self.state.charter.authority.curve;
        KeptGroup { tag, id, authority, orders: self.state.orders, has_member: true }
    }

    /// All members of now and before, as machines of a mesh.
    fn machines(&self) -> Arc<[machine::Member]> {
        let entries = self.state.roster.entries().iter();
        let as_machine = |entry: &crate::RosterEntry| {
            let tag = self.state.peer_tag(entry.slot())?;
            Some(machine::Member { tag, term: entry.term() })
        };
        entries.filter_map(as_machine).collect()
    }

    fn mesh_signing(&self) -> Result<SigningKey, Error> {
        self.keys.identity().signing_key()
    }
}
