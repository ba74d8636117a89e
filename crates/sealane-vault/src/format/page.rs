use super::chunk::ChunkId;
use crate::Error;
use crate::limits::{
    MAX_ATTRIBUTE_BYTES, MAX_ATTRIBUTE_NAME_BYTES, MAX_ATTRIBUTES_BYTES, MAX_FILE_LISTS,
    MAX_PAGE_ATTRIBUTES, MAX_PAGE_ENTRIES, MAX_PAGE_PIECES, MAX_PATH_BYTES, MAX_PIECES,
};
use crate::wire::{VaultFieldReader, put_bytes, put_varint};

const VERSION: u8 = 1;
const HARD_LINK: u64 = 1;
const ATTRIBUTES: u64 = 2;

/// A part of a file's content, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePiece {
    /// Bytes of a chunk.
    Chunk {
        /// How many.
        bytes: u64,
        /// Which chunk.
        id: ChunkId,
    },
    /// Zero bytes that take no room.
    Hole {
        /// How many.
        bytes: u64,
    },
    /// Pieces that stand in a chunk of their own.
    List {
        /// How many bytes all of them have.
        bytes: u64,
        /// Which chunk.
        id: ChunkId,
    },
}

impl FilePiece {
    /// Bytes of the file that it stands for.
    pub fn bytes(&self) -> u64 {
        match *self {
            FilePiece::Chunk { bytes, .. }
            | FilePiece::Hole { bytes }
            | FilePiece::List { bytes, .. } => bytes,
        }
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotEntryKind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its length in bytes.
        size: u64,
        /// Its content.
        pieces: Vec<FilePiece>,
    },
    /// A symbolic link.
    Link {
        /// Where it points, as raw bytes.
        target: Vec<u8>,
    },
    /// A device of its host, by its numbers. Nothing is ever read of it.
    Device(DeviceNode),
    /// A named pipe.
    Fifo,
}

impl SnapshotEntryKind {
    /// One word for people and programs.
    pub fn name(&self) -> &'static str {
        match self {
            SnapshotEntryKind::Folder => "folder",
            SnapshotEntryKind::File { .. } => "file",
            SnapshotEntryKind::Link { .. } => "link",
            SnapshotEntryKind::Device(DeviceNode { kind: DeviceKind::Character, .. }) => {
                "character"
            }
            SnapshotEntryKind::Device(DeviceNode { kind: DeviceKind::Block, .. }) => "block",
            SnapshotEntryKind::Fifo => "fifo",
        }
    }
}

/// A device: which driver has it, and which one of that driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceNode {
    /// How it is read and written.
    pub kind: DeviceKind,
    /// The driver's number.
    pub major: u32,
    /// The device's number at its driver.
    pub minor: u32,
}

/// The two sorts of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A stream of bytes, as a terminal.
    Character,
    /// Blocks in any order, as a disk.
    Block,
}

/// An extended attribute: an ACL, a capability, or a user's own word about a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryAttribute {
    /// Its name with the part before the first dot, as raw bytes: `user.origin`.
    pub name: Vec<u8>,
    /// Its value, as the system gives it.
    pub value: Vec<u8>,
}

/// A file, folder, link or other item of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// The path relative to the snapshot's root, as raw bytes with `/`.
    pub path: Vec<u8>,
    /// Permission bits: the low 12 of `st_mode`.
    pub mode: u32,
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// Modification time in nanoseconds since 1970-01-01 UTC.
    pub mtime_ns: i64,
    /// The kind of the entry.
    pub node: SnapshotEntryKind,
    /// For all but the first name of a file with several: the path of the first.
    pub hard_link: Option<Vec<u8>>,
    /// Extended attributes, sorted by name, each name once.
    pub attributes: Vec<EntryAttribute>,
}

impl SnapshotEntry {
    /// The file's length; 0 for others.
    pub fn size(&self) -> u64 {
        match self.node {
            SnapshotEntryKind::File { size, .. } => size,
            _ => 0,
        }
    }

    /// The path for people: bytes that are not UTF-8 are replaced.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Whether `path` can be an entry's: relative, and without a way out.
pub(crate) fn is_path(path: &[u8]) -> bool {
    let component = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    path.len() <= MAX_PATH_BYTES && path.split(|&byte| byte == b'/').all(component)
}

/// The order of entries: by components.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let slash_first = |byte: &u8| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 };
    a.iter().map(slash_first).cmp(b.iter().map(slash_first))
}

/// Entries on their way into a page.
#[derive(Debug, Default)]
pub(crate) struct PageDraft {
    entries: Vec<u8>,
    count: usize,
    last: Vec<u8>,
    scratch: Vec<u8>,
}

impl PageDraft {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn push(&mut self, entry: &SnapshotEntry) {
        let row = &mut self.scratch;
        row.clear();
        row.push(match entry.node {
            SnapshotEntryKind::Folder => 0,
            SnapshotEntryKind::File { .. } => 1,
            SnapshotEntryKind::Link { .. } => 2,
            SnapshotEntryKind::Device(DeviceNode { kind: DeviceKind::Character, .. }) => 3,
            SnapshotEntryKind::Device(DeviceNode { kind: DeviceKind::Block, .. }) => 4,
            SnapshotEntryKind::Fifo => 5,
        });
        let shared = self.last.iter().zip(&entry.path).take_while(|(a, b)| a == b).count();
        put_varint(row, shared as u64);
        put_bytes(row, entry.path.get(shared..).unwrap_or_default());
        put_varint(row, u64::from(entry.mode));
        put_varint(row, u64::from(entry.uid));
        put_varint(row, u64::from(entry.gid));
        row.extend_from_slice(&entry.mtime_ns.to_le_bytes());
        match &entry.node {
            SnapshotEntryKind::Folder | SnapshotEntryKind::Fifo => {}
            SnapshotEntryKind::File { size, pieces } => {
                put_varint(row, *size);
                write_pieces(row, pieces);
            }
            SnapshotEntryKind::Link { target } => put_bytes(row, target),
            SnapshotEntryKind::Device(device) => {
                put_varint(row, u64::from(device.major));
                put_varint(row, u64::from(device.minor));
            }
        }
        if let Some(first) = &entry.hard_link {
            put_varint(row, HARD_LINK);
            put_bytes(row, first);
        }
        // An entry without attributes stays as it was before there were any: its page is the same.
        if !entry.attributes.is_empty() {
            put_varint(row, ATTRIBUTES);
            put_bytes(row, &write_attributes(&entry.attributes));
        }
        put_bytes(&mut self.entries, row);
        self.last.clear();
        self.last.extend_from_slice(&entry.path);
        self.count += 1;
    }

    /// The page so far.
    pub(crate) fn plaintext(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() + 4);
        out.push(VERSION);
        put_varint(&mut out, self.count as u64);
        out.extend_from_slice(&self.entries);
        out
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.last.clear();
        self.count = 0;
    }
}

fn write_attributes(attributes: &[EntryAttribute]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, attributes.len() as u64);
    for attribute in attributes {
        put_bytes(&mut out, &attribute.name);
        put_bytes(&mut out, &attribute.value);
    }
    out
}

/// Whether an entry may have these attributes: sorted, each once, and within the limits.
pub(crate) fn are_attributes(attributes: &[EntryAttribute]) -> bool {
    let is_one = |one: &EntryAttribute| {
        let name = one.name.as_slice();
        !name.is_empty()
            && !name.contains(&0)
            && name.len() <= MAX_ATTRIBUTE_NAME_BYTES
            && one.value.len() <= MAX_ATTRIBUTE_BYTES
    };
    let bytes: usize = attributes.iter().map(|one| one.name.len() + one.value.len()).sum();
    bytes <= MAX_ATTRIBUTES_BYTES
        && attributes.iter().all(is_one)
        && attributes.is_sorted_by(|a, b| a.name < b.name)
}

fn read_attributes(value: &[u8], most: usize) -> Result<Vec<EntryAttribute>, Error> {
    let mut reader = VaultFieldReader::new("a page", value);
    let count = reader.length(most.min(reader.left() / 2))?;
    let mut attributes = Vec::with_capacity(count);
    for _ in 0..count {
        let name = reader.bytes(MAX_ATTRIBUTE_NAME_BYTES)?.to_vec();
        attributes
            .push(EntryAttribute { name, value: reader.bytes(MAX_ATTRIBUTE_BYTES)?.to_vec() });
    }
    if !are_attributes(&attributes) {
        return Err(reader.malformed());
    }
    reader.end()?;
    Ok(attributes)
}

/// Pieces, with their count: a list's plaintext, and a part of an entry.
pub(crate) fn write_pieces(out: &mut Vec<u8>, pieces: &[FilePiece]) {
    put_varint(out, pieces.len() as u64);
    for piece in pieces {
        let (kind, id) = match piece {
            FilePiece::Chunk { id, .. } => (0, Some(id)),
            FilePiece::Hole { .. } => (1, None),
            FilePiece::List { id, .. } => (2, Some(id)),
        };
        out.push(kind);
        put_varint(out, piece.bytes());
        out.extend_from_slice(id.map_or(&[][..], |id| &id.0));
    }
}

fn read_piece(reader: &mut VaultFieldReader<'_>, lists: bool) -> Result<FilePiece, Error> {
    let kind = reader.u8()?;
    let bytes = reader.varint()?;
    let piece = match kind {
        0 => FilePiece::Chunk { bytes, id: ChunkId(reader.array()?) },
        1 => FilePiece::Hole { bytes },
        2 if lists => FilePiece::List { bytes, id: ChunkId(reader.array()?) },
        _ => return Err(reader.malformed()),
    };
    if bytes == 0 { Err(reader.malformed()) } else { Ok(piece) }
}

/// Reads at most `most` pieces; a count above that is refused before memory is taken.
fn read_pieces(
    reader: &mut VaultFieldReader<'_>,
    most: usize,
    lists: bool,
) -> Result<Vec<FilePiece>, Error> {
    let count = reader.length(most.min(reader.left() / 2))?;
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        pieces.push(read_piece(reader, lists)?);
    }
    Ok(pieces)
}

/// The pieces of a file as this machine remembers them, however many.
pub(crate) fn read_remembered(plaintext: &[u8]) -> Result<Vec<FilePiece>, Error> {
    let mut reader = VaultFieldReader::new("the manifest", plaintext);
    let pieces = read_pieces(&mut reader, usize::MAX, false)?;
    reader.end()?;
    Ok(pieces)
}

/// The pieces of a list.
pub(crate) fn read_list(plaintext: &[u8]) -> Result<Vec<FilePiece>, Error> {
    let mut reader = VaultFieldReader::new("a list of chunks", plaintext);
    let pieces = read_pieces(&mut reader, MAX_PIECES, false)?;
    reader.end()?;
    Ok(pieces)
}

/// The entries of a page.
pub(crate) fn read_page(plaintext: &[u8]) -> Result<Vec<SnapshotEntry>, Error> {
    let mut reader = VaultFieldReader::new("a page", plaintext);
    if reader.u8()? != VERSION {
        return Err(reader.malformed());
    }
    let count = reader.length(MAX_PAGE_ENTRIES)?;
    let mut entries: Vec<SnapshotEntry> = Vec::with_capacity(count);
    let mut left = PageRoom { pieces: MAX_PAGE_PIECES, attributes: MAX_PAGE_ATTRIBUTES };
    for _ in 0..count {
        let row = reader.bytes(plaintext.len())?;
        let last = entries.last().map_or(&[][..], |entry| &entry.path);
        let entry = read_entry(VaultFieldReader::new("a page", row), last, &left)?;
        if let SnapshotEntryKind::File { pieces, .. } = &entry.node {
            left.pieces -= pieces.len();
        }
        left.attributes -= entry.attributes.len();
        let sorted = last.is_empty() || compare(last, &entry.path).is_lt();
        if !sorted || !is_path(&entry.path) {
            return Err(reader.malformed());
        }
        entries.push(entry);
    }
    reader.end()?;
    Ok(entries)
}

/// How much the rest of a page may have, which takes more memory than it has bytes.
struct PageRoom {
    pieces: usize,
    attributes: usize,
}

fn read_entry(
    mut reader: VaultFieldReader<'_>,
    last: &[u8],
    most: &PageRoom,
) -> Result<SnapshotEntry, Error> {
    let kind = reader.u8()?;
    let shared = reader.length(last.len())?;
    let rest = reader.bytes(MAX_PATH_BYTES)?;
    let path = [last.get(..shared).unwrap_or_default(), rest].concat();
    let number = |reader: &mut VaultFieldReader<'_>| {
        u32::try_from(reader.varint()?).map_err(|_| reader.malformed())
    };
    let mode = number(&mut reader)?;
    let uid = number(&mut reader)?;
    let gid = number(&mut reader)?;
    let mtime_ns = reader.i64()?;
    let node = match kind {
        0 => SnapshotEntryKind::Folder,
        1 => read_file(&mut reader, most.pieces)?,
        2 => SnapshotEntryKind::Link { target: reader.bytes(MAX_PATH_BYTES)?.to_vec() },
        3 | 4 => SnapshotEntryKind::Device(DeviceNode {
            kind: if kind == 3 { DeviceKind::Character } else { DeviceKind::Block },
            major: number(&mut reader)?,
            minor: number(&mut reader)?,
        }),
        5 => SnapshotEntryKind::Fifo,
        _ => return Err(reader.malformed()),
    };
    let mut hard_link = None;
    let mut attributes = Vec::new();
    while reader.left() > 0 {
        let tag = reader.varint()?;
        let value = reader.bytes(reader.left())?;
        match tag {
            HARD_LINK => {
                hard_link = Some(value.to_vec()).filter(|path| is_path(path) && kind != 0);
            }
            ATTRIBUTES => attributes = read_attributes(value, most.attributes)?,
            _ => {}
        }
    }
    if mode > 0o7777 {
        return Err(reader.malformed());
    }
    Ok(SnapshotEntry { path, mode, uid, gid, mtime_ns, node, hard_link, attributes })
}

fn read_file(reader: &mut VaultFieldReader<'_>, most: usize) -> Result<SnapshotEntryKind, Error> {
    let size = reader.varint()?;
    let pieces = read_pieces(reader, most.min(MAX_FILE_LISTS), true)?;
    let sum = pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.bytes()));
    if sum == Some(size) {
        Ok(SnapshotEntryKind::File { size, pieces })
    } else {
        Err(reader.malformed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::chunk::ID_BYTES;

    fn entry(path: &[u8], node: SnapshotEntryKind) -> SnapshotEntry {
        let path = path.to_vec();
        let (hard_link, attributes) = (None, Vec::new());
        SnapshotEntry {
            path,
            mode: 0o644,
            uid: 1,
            gid: 2,
            mtime_ns: -5,
            node,
            hard_link,
            attributes,
        }
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let id = ChunkId([7; ID_BYTES]);
        let pieces = vec![FilePiece::Chunk { bytes: 5, id }, FilePiece::Hole { bytes: 9 }];
        let mut linked =
            entry(b"a/b\xff", SnapshotEntryKind::File { size: 14, pieces: pieces.clone() });
        linked.hard_link = Some(b"a/a".to_vec());
        linked.attributes =
            vec![attribute(b"system.posix_acl_access", b"\x02\0\0\0"), attribute(b"user.x", b"")];
        let device = |kind| DeviceNode { kind, major: 8, minor: 1 << 19 };
        let entries = [
            entry(b"a", SnapshotEntryKind::Folder),
            entry(b"a/a", SnapshotEntryKind::File { size: 14, pieces }),
            linked,
            entry(b"a-b", SnapshotEntryKind::Link { target: b"../x".to_vec() }),
            entry(b"null", SnapshotEntryKind::Device(device(DeviceKind::Character))),
            entry(b"pipe", SnapshotEntryKind::Fifo),
            entry(b"sda", SnapshotEntryKind::Device(device(DeviceKind::Block))),
        ];
        let mut draft = PageDraft::default();
        entries.iter().for_each(|entry| draft.push(entry));
        assert_eq!(read_page(&draft.plaintext()).unwrap(), entries);
    }

    /// `/` comes before every byte that a name may have, so that a folder's entries follow it.
    #[test]
    fn entries_of_a_folder_come_before_longer_names() {
        let sorted = [&b"a"[..], b"a/", b"a/\xff", b"a\x01", b"a\x01/b", b"a-", b"a0", b"b"];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), at.cmp(&other), "{a:?} {b:?}");
            }
        }
    }

    fn attribute(name: &[u8], value: &[u8]) -> EntryAttribute {
        EntryAttribute { name: name.to_vec(), value: value.to_vec() }
    }

    #[test]
    fn attributes_in_disorder_twice_or_too_long_are_refused() {
        let read = |attributes: Vec<EntryAttribute>| {
            let mut draft = PageDraft::default();
            let plain = entry(b"b", SnapshotEntryKind::Folder);
            draft.push(&SnapshotEntry { attributes, ..plain });
            read_page(&draft.plaintext()).map(|mut page| page.remove(0).attributes)
        };
        let (a, b) = (attribute(b"user.a", b"1"), attribute(b"user.b", b"2"));
        assert_eq!(read(vec![a.clone(), b.clone()]).unwrap(), [a.clone(), b.clone()]);
        let long = vec![7; MAX_ATTRIBUTE_BYTES + 1];
        let many = |count: usize| {
            let name = |at: usize| format!("user.{at:03}").into_bytes();
            let value = vec![7; MAX_ATTRIBUTE_BYTES];
            (0..count).map(|at| attribute(&name(at), &value)).collect::<Vec<_>>()
        };
        let most = MAX_ATTRIBUTES_BYTES / MAX_ATTRIBUTE_BYTES;
        assert_eq!(read(many(most - 1)).unwrap().len(), most - 1);
        let bad = [
            vec![b, a.clone()],
            vec![a.clone(), a],
            vec![attribute(b"", b"")],
            vec![attribute(b"user.\0", b"")],
            vec![attribute(&[b'x'; MAX_ATTRIBUTE_NAME_BYTES + 1], b"")],
            vec![attribute(b"user.long", &long)],
            many(most),
        ];
        for (at, attributes) in bad.into_iter().enumerate() {
            assert!(read(attributes).is_err(), "{at}");
        }
    }

    #[test]
    fn the_first_name_of_a_hard_link_is_a_path_and_of_no_folder() {
        let file = || SnapshotEntryKind::File { size: 0, pieces: vec![] };
        let link = || SnapshotEntryKind::Link { target: b"x".to_vec() };
        let read = |node: SnapshotEntryKind, first: &[u8]| {
            let mut draft = PageDraft::default();
            draft.push(&SnapshotEntry { hard_link: Some(first.to_vec()), ..entry(b"b", node) });
            read_page(&draft.plaintext()).unwrap().remove(0).hard_link
        };
        assert_eq!(read(file(), b"a/first").as_deref(), Some(&b"a/first"[..]));
        for way_out in [&b"../x"[..], b"/x", b"", b"a/../../x", b"a\0"] {
            assert_eq!(read(file(), way_out), None, "{way_out:?}");
        }
        for node in [link(), SnapshotEntryKind::Fifo] {
            assert_eq!(read(node, b"a").as_deref(), Some(&b"a"[..]));
        }
        assert_eq!(read(SnapshotEntryKind::Folder, b"a"), None);
    }

    #[test]
    fn a_way_out_or_a_wrong_order_is_refused() {
        for path in [&b"/a"[..], b"a/", b"..", b"a/../b", b".", b"", b"a\0", b"a//b"] {
            let mut draft = PageDraft::default();
            draft.push(&entry(path, SnapshotEntryKind::Folder));
            assert!(read_page(&draft.plaintext()).is_err(), "{path:?}");
        }
        let mut draft = PageDraft::default();
        [b"b", b"a"].iter().for_each(|path| draft.push(&entry(*path, SnapshotEntryKind::Folder)));
        assert!(read_page(&draft.plaintext()).is_err());
    }
}
