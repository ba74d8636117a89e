use sealane_frame::GroupTag;
use sealane_seal::Epoch;

use crate::charter::GroupCharter;
use crate::member::control_topic;
use crate::notice::GroupHeartbeat;
use crate::wire::{GroupFieldReader, begin, put_part};
use crate::{Error, GroupDocument, GroupMember, GroupNotice, Identity};

/// A beater's description of a group: the charter of the group whose orders it counts, and where
/// they are. A beater holds no secret of the group, and opens nothing.
#[derive(Clone)]
pub struct BeaterView {
    charter: GroupCharter,
    tag: GroupTag,
}

impl GroupMember {
    /// The description of this group, to be handed to a beater.
    pub fn beater_file(&self) -> Vec<u8> {
        let mut bytes = begin(GroupDocument::Beater);
        put_part(&mut bytes, &self.state.charter.to_bytes());
        bytes.extend(self.tag().to_bytes());
        bytes
    }
}

impl BeaterView {
    /// Reads what [`GroupMember::beater_file`] wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`], [`Error::NewerVersion`], [`Error::OlderVersion`].
    pub fn from_bytes(bytes: &[u8]) -> Result<BeaterView, Error> {
        let mut reader = GroupFieldReader::open(GroupDocument::Beater, bytes)?;
        let charter = GroupCharter::from_bytes(GroupDocument::Beater, reader.part()?)?;
        let tag = GroupTag::from_bytes(reader.array()?);
        reader.end()?;
        Ok(BeaterView { charter, tag })
    }

    /// The stream of the group's orders, to which it publishes.
    pub fn control_topic(&self) -> String {
        control_topic(self.tag)
    }

    /// The name that the group's authority gives it.
    pub fn group_name(&self) -> &str {
        &self.charter.name
    }

    /// How many orders there are at least, by a notice that the authority has signed.
    pub fn shown_by(&self, notice: &GroupNotice) -> Option<u64> {
        notice.shown(&self.charter)
    }

    /// A heartbeat: so many orders were seen at that time.
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] when the library refuses.
    pub fn beat(
        &self,
        identity: &Identity,
        orders: u64,
        time_ms: u64,
    ) -> Result<GroupNotice, Error> {
        let heartbeat = GroupHeartbeat { orders, epoch: Epoch(0), time_ms };
        GroupNotice::heartbeat(&identity.signer()?, self.charter.id(), heartbeat)
    }
}

impl std::fmt::Debug for BeaterView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beater").field("group", &self.charter.name).finish_non_exhaustive()
    }
}
