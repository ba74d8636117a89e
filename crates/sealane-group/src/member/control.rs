use crate::Error;
use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::MAX_CONTROL_STREAMS;
use crate::wire::GroupFieldReader;
use crate::{GroupDocument, GroupMember, GroupNotice};

/// How far a group's control stream was read at one hub, so that what was read once is not read
/// again, and a stream that has lost orders is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlCursor {
    /// Which hub: a hash of its address.
    pub hub: [u8; 16],
    /// The stream's generation.
    pub generation: u64,
    /// The offset that is read next.
    pub next: u64,
    /// How many orders the stream has shown, by the signatures of the authority.
    pub shown: u64,
}

const CURSOR_BYTES: usize = 16 + 3 * 8;

impl ControlCursor {
    /// Nothing was read of the control stream at that hub.
    pub fn new(hub_address: &str) -> ControlCursor {
        let mut hub = [0; 16];
        let mut hasher = blake3::Hasher::new_derive_key("Sealane 1.0 hub of a control stream");
        hasher.update(hub_address.as_bytes()).finalize_xof().fill(&mut hub);
        ControlCursor { hub, generation: 0, next: 0, shown: 0 }
    }
}

impl GroupMember {
    /// How far the control stream of that hub was read.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn control_cursor(&self, hub: &[u8; 16]) -> Result<Option<ControlCursor>, Error> {
        let lock = self.keys.lock()?;
        let all = self.keys.control_cursors(&lock, self.name())?;
        Ok(all.into_iter().find(|cursor| cursor.hub == *hub))
    }

    /// Remembers it, and forgets the hub that was read longest ago beyond the bound.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn save_control_cursor(&self, cursor: ControlCursor) -> Result<(), Error> {
        let lock = self.keys.lock()?;
        let mut all = self.keys.control_cursors(&lock, self.name())?;
        all.retain(|known| known.hub != cursor.hub);
        all.insert(0, cursor);
        all.truncate(MAX_CONTROL_STREAMS);
        self.keys.save_control_cursors(&lock, self.name(), &all)
    }

    /// How many orders there are at least, by a notice that the authority has signed; nothing for
    /// one that anybody may have written.
    pub fn shown_by(&self, notice: &GroupNotice) -> Option<u64> {
        notice.shown(&self.state.charter)
    }
}

impl IdentityKeys {
    fn control_cursors(&self, _: &KeyFolderLock, name: &str) -> Result<Vec<ControlCursor>, Error> {
        let payload = self.read_plain(name, "control", GroupDocument::ControlFile)?;
        let mut reader = GroupFieldReader::new(GroupDocument::ControlFile, &payload);
        let mut all = Vec::new();
        while reader.left() >= CURSOR_BYTES && all.len() < MAX_CONTROL_STREAMS {
            let hub = reader.array()?;
            let (generation, next, shown) = (reader.u64()?, reader.u64()?, reader.u64()?);
            all.push(ControlCursor { hub, generation, next, shown });
        }
        Ok(all)
    }

    fn save_control_cursors(
        &self,
        _: &KeyFolderLock,
        name: &str,
        all: &[ControlCursor],
    ) -> Result<(), Error> {
        let mut payload = Vec::with_capacity(all.len() * CURSOR_BYTES);
        for cursor in all {
            payload.extend(cursor.hub);
            let words = [cursor.generation, cursor.next, cursor.shown];
            payload.extend(words.into_iter().flat_map(u64::to_be_bytes));
        }
        self.write_plain(name, "control", GroupDocument::ControlFile, &payload)
    }
}
