//! The store on disk: one SQLite file, whose transactions are whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use sealane_frame::{FrameView, GroupTag, PeerTag};
use sealane_message::DataType;
use sealane_message::document::EmergencyCall;
use sealane_seal::{Epoch, Slot};

use crate::StoreError;
use crate::entry::{DocumentStamp, FrameDigest, RegisterEntry};
use crate::exchange::KEPT_HOPS;
use crate::limits::MAX_DOCUMENT_STORE_WAIT_MS;
use crate::registers::{RegisterSet, TakeOutcome};
use crate::shelf::{
    DocumentCursor, DocumentQuota, DocumentShelf, RegisterName, ShelfChange, ShelfFrame,
    ShelfKeeper, StoreCounters,
};

/// The frames that a machine keeps, in memory and in one file.
///
/// Once [`DocumentStore::take`] has returned for a frame, the frame is on disk. It is there after a
/// restart, a killed process and a power cut. A frame may evict others, and frames may not be taken
/// again. Both are written in the transaction of the frame that caused them. One process has a
/// store open at a time.
#[derive(Debug)]
pub struct DocumentStore {
    database: Connection,
    keeper: ShelfKeeper,
    quota: DocumentQuota,
    shelf: DocumentShelf,
    id: [u8; 16],
    /// The newest epoch of each group, as far as it is known here.
    newest: BTreeMap<GroupTag, Epoch>,
    /// Memory may be ahead of the disk: a transaction has failed.
    is_ahead: bool,
}

/// A frame, and the neighbour that brought it.
#[derive(Debug, Clone, Copy)]
pub struct DocumentDelivery<'a> {
    /// The frame, in the full form.
    pub frame: &'a [u8],
    /// The neighbour's address in the mesh; for a frame that was made here, the own one.
    pub from: PeerTag,
}

/// The version of the file's format.
const VERSION: i64 = 1;
/// The number that tells the file from other SQLite files: "SLDO".
const APPLICATION: i64 = 0x534c_444f;
/// Pages of the file at most: four times what the frames take, and as much as an empty one does.
const PAGE_BYTES: u64 = 4096;
const SPARE_PAGES: u64 = 256;

const SCHEMA: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE frame (
    at      INTEGER PRIMARY KEY AUTOINCREMENT,
    bringer BLOB NOT NULL CHECK (length(bringer) = 8),
    epoch   BLOB NOT NULL CHECK (length(epoch) = 8),
    data    BLOB NOT NULL
) STRICT;
CREATE TABLE floor (
    grp     BLOB NOT NULL,
    origin  INTEGER NOT NULL,
    type    INTEGER NOT NULL,
    epoch   BLOB NOT NULL CHECK (length(epoch) = 8),
    counter BLOB NOT NULL CHECK (length(counter) = 8),
    PRIMARY KEY (grp, origin, type)
) STRICT, WITHOUT ROWID;
";
/// A table that files of earlier programs lack.
const OVER: &str = "
CREATE TABLE IF NOT EXISTS ended (
    grp     BLOB NOT NULL,
    origin  INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (grp, origin)
) STRICT, WITHOUT ROWID;
";

impl DocumentStore {
    /// Opens a store, or makes one. Only its owner can read the file.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub fn open(
        path: &Path,
        keeper: ShelfKeeper,
        quota: DocumentQuota,
    ) -> Result<Self, StoreError> {
        make_private(path)?;
        Self::on(Connection::open(path)?, keeper, quota)
    }

    /// A store that lives as long as this value: for simulations and tests.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub fn in_memory(keeper: ShelfKeeper, quota: DocumentQuota) -> Result<Self, StoreError> {
        Self::on(Connection::open_in_memory()?, keeper, quota)
    }

    fn on(
        database: Connection,
        keeper: ShelfKeeper,
        quota: DocumentQuota,
    ) -> Result<Self, StoreError> {
        database.busy_timeout(Duration::from_millis(MAX_DOCUMENT_STORE_WAIT_MS))?;
        database.pragma_update(None, "page_size", PAGE_BYTES)?;
        database.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        // A file of another program is not even brought into another mode.
        let is_new = is_new(&database)?;
        database.pragma_update(None, "journal_mode", "WAL")?;
        database.pragma_update(None, "synchronous", "FULL")?;
        let pages = SPARE_PAGES + quota.total_bytes.saturating_mul(4) / PAGE_BYTES;
        prepare(&database, is_new)?;
        database.pragma_update(None, "max_page_count", pages)?;
        let id: Vec<u8> =
            database.query_row("SELECT value FROM meta WHERE name = 'id'", [], |row| row.get(0))?;
        let id = id.try_into().map_err(|_| StoreError::Damaged("it has no name".to_owned()))?;
        let shelf = load(&database, keeper, quota)?;
        let mut store =
            Self { database, keeper, quota, shelf, id, newest: BTreeMap::new(), is_ahead: false };
        store.commit()?;
        Ok(store)
    }

    /// Takes a frame as it came, and returns when it is on disk. The bytes that relays write are
    /// not kept: two machines that hear one frame keep the same bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; nothing has changed then.
    pub fn take(&mut self, frame: &[u8], from: PeerTag) -> Result<TakeOutcome, StoreError> {
        let mut taken = self.take_all(&[DocumentDelivery { frame, from }])?;
        taken.pop().unwrap_or(Ok(TakeOutcome::Refused))
    }

    /// Takes frames in one transaction. What is no frame is refused alone.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; nothing has changed then.
    pub fn take_all(
        &mut self,
        all: &[DocumentDelivery<'_>],
    ) -> Result<Vec<Result<TakeOutcome, StoreError>>, StoreError> {
        self.take_with(all, |_, _, _| None)
    }

    /// Takes frames as [`DocumentStore::take_all`] does. `ended_by` says which call was over by a
    /// clear that leaves for them: it stays over, and that is written down in the same transaction.
    pub(crate) fn take_with(
        &mut self,
        all: &[DocumentDelivery<'_>],
        ended_by: impl FnMut(&DocumentShelf, GroupTag, &RegisterEntry) -> Option<EmergencyCall>,
    ) -> Result<Vec<Result<TakeOutcome, StoreError>>, StoreError> {
        self.catch_up()?;
        let taken = all
            .iter()
            .map(|one| {
                let (group, entry) = self.entry_of(one.frame)?;
                Ok(self.shelf.take(group, entry, one.from))
            })
            .collect();
        self.note_over(ended_by);
        self.commit()?;
        Ok(taken)
    }

    /// Whether a call is over though what cleared it has left.
    pub(crate) fn is_over(&self, group: GroupTag, call: EmergencyCall) -> bool {
        let over = Slot::new(call.slot).and_then(|origin| self.shelf.over(group, origin));
        over == Some(call.number)
    }

    /// Forgets of all but these members of a group which of their calls are over.
    pub(crate) fn keep_over(
        &mut self,
        group: GroupTag,
        is_member: impl Fn(Slot) -> bool,
    ) -> Result<(), StoreError> {
        self.catch_up()?;
        self.shelf.keep_over(group, is_member);
        self.commit()
    }

    fn note_over(
        &mut self,
        mut ended_by: impl FnMut(&DocumentShelf, GroupTag, &RegisterEntry) -> Option<EmergencyCall>,
    ) {
        for (group, clear) in std::mem::take(&mut self.shelf.left) {
            if let Some(call) = ended_by(&self.shelf, group, &clear) {
                self.shelf.set_over(group, call);
            }
        }
    }

    /// Says which epoch of a group is the newest: frames say the lowest byte of theirs alone.
    pub fn set_epoch(&mut self, group: GroupTag, newest: Epoch) {
        self.newest.insert(group, newest);
    }

    pub(crate) fn entry_of(&self, frame: &[u8]) -> Result<(GroupTag, RegisterEntry), StoreError> {
        let group = FrameView::parse(frame)?.header().group();
        let newest = self.newest.get(&group).copied().unwrap_or(Epoch(0));
        Ok((group, entry_of(frame, newest)?))
    }

    /// The frames taken after a cursor, in the order in which they were taken, each frame once.
    pub fn since(&self, after: DocumentCursor, most: usize) -> Vec<ShelfFrame> {
        self.shelf.since(after, most)
    }

    /// Tells this store from every other, also from one that is made anew at its place: cursors of
    /// another one mean nothing.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// The registers of a group, which count.
    pub fn registers(&self, group: GroupTag) -> Option<&RegisterSet> {
        self.shelf.registers(group)
    }

    /// The groups of which something is kept.
    pub fn groups(&self) -> impl Iterator<Item = GroupTag> {
        self.shelf.groups()
    }

    /// The frames that are kept beside the registers of an origin, since this machine cannot tell
    /// which is true.
    pub fn beside(&self, group: GroupTag, origin: Slot) -> impl Iterator<Item = &RegisterEntry> {
        self.shelf.beside(group, origin)
    }

    /// A neighbour says which frames of a register it has opened. They are kept before others.
    pub fn vouch(&mut self, of: RegisterName, stamps: &[DocumentStamp], by: PeerTag) {
        self.shelf.vouch(of, stamps, by);
    }

    /// Whether a neighbour says that it has opened a frame.
    pub(crate) fn is_vouched(&self, group: GroupTag, mark: FrameDigest) -> bool {
        self.shelf.is_vouched(group, mark)
    }

    /// Lets frames go: of who is no member any more. What `ended_by` says is as for
    /// [`DocumentStore::take_with`].
    pub(crate) fn drop_all(
        &mut self,
        group: GroupTag,
        marks: &[FrameDigest],
        ended_by: impl FnMut(&DocumentShelf, GroupTag, &RegisterEntry) -> Option<EmergencyCall>,
    ) -> Result<(), StoreError> {
        self.catch_up()?;
        self.shelf.drop_all(group, marks);
        self.note_over(ended_by);
        self.commit()
    }

    /// The place of a frame that is kept.
    pub(crate) fn place(&self, group: GroupTag, mark: FrameDigest) -> Option<DocumentCursor> {
        self.shelf.place(group, mark)
    }

    /// The place of a frame that is kept, by its bytes.
    pub(crate) fn place_of(&self, frame: &[u8]) -> Result<DocumentCursor, StoreError> {
        let (group, entry) = self.entry_of(frame)?;
        let place = self.place(group, entry.mark());
        place.ok_or_else(|| StoreError::Failed("the frame has left".to_owned()))
    }

    /// The frame at a place.
    pub(crate) fn frame_at(&self, at: DocumentCursor) -> Option<&[u8]> {
        self.shelf.row(at).map(|fresh| &**fresh.entry.frame())
    }

    /// The group of the frame at a place.
    pub(crate) fn group_at(&self, at: DocumentCursor) -> Option<GroupTag> {
        self.shelf.row(at).map(|fresh| fresh.group)
    }

    /// Whether the frame at a place is urgent.
    pub(crate) fn is_urgent(&self, at: DocumentCursor) -> bool {
        self.shelf.row(at).is_some_and(|fresh| fresh.entry.data_type.is_urgent())
    }

    /// Forgets a member of a group.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; nothing has changed then.
    pub fn forget(&mut self, group: GroupTag, origin: Slot) -> Result<(), StoreError> {
        self.catch_up()?;
        self.shelf.forget(group, origin);
        self.commit()
    }

    /// The kind of machine that keeps the frames.
    pub fn keeper(&self) -> ShelfKeeper {
        self.keeper
    }

    /// The counts since the store was opened.
    pub fn counters(&self) -> StoreCounters {
        self.shelf.counters
    }

    /// The bytes of all frames.
    pub fn total_bytes(&self) -> u64 {
        self.shelf.total_bytes()
    }

    /// How many frames are kept.
    pub fn len(&self) -> usize {
        self.shelf.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes down what has changed. If that fails, memory is read from the disk again before
    /// anything else happens.
    fn commit(&mut self) -> Result<(), StoreError> {
        if self.shelf.changes.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.shelf.changes);
        let written = self.write(&changes);
        if written.is_err() {
            self.is_ahead = true;
            self.catch_up()?;
        }
        written
    }

    fn write(&mut self, changes: &[ShelfChange]) -> Result<(), StoreError> {
        let transaction = self.database.transaction()?;
        for change in changes {
            write_change(&transaction, &self.shelf, change)?;
        }
        Ok(transaction.commit()?)
    }

    fn catch_up(&mut self) -> Result<(), StoreError> {
        if self.is_ahead {
            let counters = self.shelf.counters;
            self.shelf = load(&self.database, self.keeper, self.quota)?;
            self.shelf.counters = counters;
            self.is_ahead = false;
        }
        Ok(())
    }
}

fn write_change(
    to: &Connection,
    shelf: &DocumentShelf,
    change: &ShelfChange,
) -> Result<(), StoreError> {
    match change {
        ShelfChange::Add(at) => {
            // One that came and left at once is not written.
            let Some(fresh) = shelf.row(*at) else { return Ok(()) };
            let mut add = to.prepare_cached(
                "INSERT INTO frame (at, bringer, epoch, data) VALUES (?, ?, ?, ?)",
            )?;
            let (from, epoch) = (fresh.from.to_bytes(), fresh.entry.stamp.epoch.0.to_be_bytes());
            add.execute(params![at.0, from, epoch, &**fresh.entry.frame()])?;
        }
        ShelfChange::Drop(at) => {
            to.prepare_cached("DELETE FROM frame WHERE at = ?")?.execute([at.0])?;
        }
        ShelfChange::Floor { of, stamp } => {
            let mut set =
                to.prepare_cached("INSERT OR REPLACE INTO floor VALUES (?, ?, ?, ?, ?)")?;
            let (epoch, counter) = (stamp.epoch.0.to_be_bytes(), stamp.counter.to_be_bytes());
            let (origin, data_type) = (of.origin.number(), of.data_type.number());
            set.execute(params![of.group.to_bytes(), origin, data_type, epoch, counter])?;
        }
        ShelfChange::Over { group, origin, number: Some(number) } => {
            let mut set = to.prepare_cached("INSERT OR REPLACE INTO ended VALUES (?, ?, ?)")?;
            set.execute(params![group.to_bytes(), origin.number(), number])?;
        }
        ShelfChange::Over { group, origin, number: None } => {
            let mut forget = to.prepare_cached("DELETE FROM ended WHERE (grp, origin) = (?, ?)")?;
            forget.execute(params![group.to_bytes(), origin.number()])?;
        }
    }
    Ok(())
}

/// Whether a file is a new one. One that is something else is refused.
fn is_new(database: &Connection) -> Result<bool, StoreError> {
    let pragma = |name: &str| database.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 =
        database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(true);
    }
    if pragma("application_id")? != APPLICATION {
        return Err(StoreError::Damaged("another program made it".to_owned()));
    }
    match pragma("user_version")? {
        VERSION => Ok(false),
        other => Err(StoreError::Version(other)),
    }
}

/// Makes the tables of a new file, and takes the lock, which nobody else gets as long as the
/// connection lives.
fn prepare(database: &Connection, is_new: bool) -> Result<(), StoreError> {
    if is_new {
        database.execute_batch(&format!(
            "BEGIN IMMEDIATE; {SCHEMA} {OVER} INSERT INTO meta VALUES ('id', randomblob(16));
             PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
        return Ok(());
    }
    Ok(database.execute_batch(&format!("BEGIN IMMEDIATE; {OVER} COMMIT;"))?)
}

/// The content of a file. Rows that are no frames leave.
fn load(
    database: &Connection,
    keeper: ShelfKeeper,
    quota: DocumentQuota,
) -> Result<DocumentShelf, StoreError> {
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'frame'";
    let last: Option<u64> = database.query_row(last, [], |row| row.get(0)).optional()?;
    let mut shelf = DocumentShelf::new(keeper, quota, DocumentCursor(last.unwrap_or(0)));
    let mut floors = database.prepare("SELECT grp, origin, type, epoch, counter FROM floor")?;
    let mut rows = floors.query([])?;
    while let Some(row) = rows.next()? {
        let Some(origin) = Slot::new(row.get(1)?) else { continue };
        let (group, data_type) = (GroupTag::from_bytes(row.get(0)?), row.get(2)?);
        let (epoch, counter) = (u64::from_be_bytes(row.get(3)?), u64::from_be_bytes(row.get(4)?));
        let of = RegisterName { group, origin, data_type: DataType::from_number(data_type) };
        shelf.set_floor(of, DocumentStamp { epoch: Epoch(epoch), counter });
    }
    let mut over = database.prepare("SELECT grp, origin, number FROM ended")?;
    let mut rows = over.query([])?;
    while let Some(row) = rows.next()? {
        let Some(origin) = Slot::new(row.get(1)?) else { continue };
        shelf.put_over(GroupTag::from_bytes(row.get(0)?), origin, row.get(2)?);
    }
    let mut frames = database.prepare("SELECT at, bringer, epoch, data FROM frame ORDER BY at")?;
    let mut rows = frames.query([])?;
    while let Some(row) = rows.next()? {
        let (at, from) = (DocumentCursor(row.get(0)?), PeerTag::from_bytes(row.get(1)?));
        let (epoch, data): (_, Vec<u8>) = (Epoch(u64::from_be_bytes(row.get(2)?)), row.get(3)?);
        let group = FrameView::parse(&data).map(|view| view.header().group());
        match (group, entry_of(&data, epoch)) {
            (Ok(group), Ok(entry)) => shelf.put_back(ShelfFrame { at, group, from, entry }),
            _ => shelf.changes.push(ShelfChange::Drop(at)),
        }
    }
    // Without keys nobody can look into what has left while it was read.
    shelf.left.clear();
    Ok(shelf)
}

/// The entry that a frame claims to be, without the relay's bytes. `newest` is the newest epoch of
/// its group. Nothing of the entry is sure before the frame is opened.
///
/// # Errors
///
/// [`StoreError::NoFrame`]
pub fn entry_of(frame: &[u8], newest: Epoch) -> Result<RegisterEntry, StoreError> {
    let mut frame = frame.to_vec();
    // It is kept as an origin hands its frame to the first hop, whichever way it came.
    if let Some(hops) = frame.first_chunk_mut() {
        *hops = KEPT_HOPS;
    }
    let view = FrameView::parse(&frame)?;
    let (key, header) = (view.seal_header().key, view.header());
    let stamp = DocumentStamp { epoch: key.epoch(newest), counter: header.sequence() };
    let data_type = DataType::from_number(header.data_type());
    Ok(RegisterEntry::new(key.slot, data_type, stamp, frame.into()))
}

/// Makes the file so that only its owner can read it, where there is none.
fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let opened = options.open(path);
    opened.map(drop).map_err(|cause| StoreError::Failed(format!("{}: {cause}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
    use sealane_seal::{
        Binding, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext, Suite,
    };

    const GROUP: GroupTag = GroupTag::from_bytes([9; 4]);

    #[test]
    fn a_full_disk_loses_nothing_that_was_kept_and_takes_again_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("documents.db");
        let mut store =
            DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap();
        let pages: i64 =
            store.database.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        store.database.pragma_update(None, "max_page_count", pages + 5).unwrap();
        let group = Group::new(GroupId([7; 32]), Suite::ChaCha20Poly1305);
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]));
        let slot = Slot::new(1).unwrap();
        let mut sealer = Sealer::new(group, slot, SenderContext([1; 8]), &epochs, 0).unwrap();
        let me = PeerTag::from_hash([7; 8]);
        let mut seal = || {
            let (fields, mut buf) = (HeaderFields::new(GROUP, me, 72), FrameBuf::new());
            let binding = Binding::stream("mesh/09090909/72");
            seal_frame(&mut sealer, &fields, &binding, &[0; 800], &mut buf).unwrap().to_vec()
        };
        let takes: Vec<_> = (0..60).map(|_| store.take(&seal(), me)).collect();
        let kept = takes.iter().take_while(|taken| matches!(taken, Ok(TakeOutcome::New))).count();
        assert!(matches!(takes[kept], Err(StoreError::DiskFull)), "{:?}", takes[kept]);
        assert_eq!((store.len(), store.since(DocumentCursor::START, 99).len()), (kept, kept));
        drop(store);
        let mut store =
            DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap();
        assert_eq!(store.len(), kept, "what was confirmed is there");
        assert_eq!(store.take(&seal(), me).unwrap(), TakeOutcome::New);
    }

    #[test]
    fn a_file_of_an_earlier_program_is_given_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("documents.db");
        let open =
            || DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap();
        let (call, id) = (EmergencyCall { slot: 3, number: 7 }, open().id());
        open().database.execute_batch("DROP TABLE ended").unwrap();
        let mut store = open();
        store.shelf.set_over(GROUP, call);
        store.commit().unwrap();
        drop(store);
        let mut store = open();
        assert!(store.is_over(GROUP, call) && store.id() == id);
        store.keep_over(GROUP, |origin| origin.number() != 3).unwrap();
        assert!(!store.is_over(GROUP, call));
        drop(store);
        assert!(!open().is_over(GROUP, call));
    }
}
