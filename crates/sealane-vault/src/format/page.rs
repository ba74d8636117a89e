use super::chunk::ChunkId;
use crate::Error;
use crate::limits::{
    MAX_FILE_LISTS, MAX_PAGE_ENTRIES, MAX_PAGE_PIECES, MAX_PATH_BYTES, MAX_PIECES,
};
use crate::wire::{VaultFieldReader, put_bytes, put_varint};

const VERSION: u8 = 1;
const HARD_LINK: u64 = 1;

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
}

/// A file, folder or symbolic link of a snapshot.
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
        });
        let shared = self.last.iter().zip(&entry.path).take_while(|(a, b)| a == b).count();
        put_varint(row, shared as u64);
        put_bytes(row, entry.path.get(shared..).unwrap_or_default());
        put_varint(row, u64::from(entry.mode));
        put_varint(row, u64::from(entry.uid));
        put_varint(row, u64::from(entry.gid));
        row.extend_from_slice(&entry.mtime_ns.to_le_bytes());
        match &entry.node {
            SnapshotEntryKind::Folder => {}
            SnapshotEntryKind::File { size, pieces } => {
                put_varint(row, *size);
                write_pieces(row, pieces);
            }
            SnapshotEntryKind::Link { target } => put_bytes(row, target),
        }
        if let Some(first) = &entry.hard_link {
            put_varint(row, HARD_LINK);
            put_bytes(row, first);
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
    let mut left = MAX_PAGE_PIECES;
    for _ in 0..count {
        let row = reader.bytes(plaintext.len())?;
        let last = entries.last().map_or(&[][..], |entry| &entry.path);
        let entry = read_entry(VaultFieldReader::new("a page", row), last, left)?;
        if let SnapshotEntryKind::File { pieces, .. } = &entry.node {
            left -= pieces.len();
        }
        let sorted = last.is_empty() || compare(last, &entry.path).is_lt();
        if !sorted || !is_path(&entry.path) {
            return Err(reader.malformed());
        }
        entries.push(entry);
    }
    reader.end()?;
    Ok(entries)
}

fn read_entry(
    mut reader: VaultFieldReader<'_>,
    last: &[u8],
    most: usize,
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
        1 => read_file(&mut reader, most)?,
        2 => SnapshotEntryKind::Link { target: reader.bytes(MAX_PATH_BYTES)?.to_vec() },
        _ => return Err(reader.malformed()),
    };
    let mut hard_link = None;
    while reader.left() > 0 {
        let tag = reader.varint()?;
        let value = reader.bytes(reader.left())?;
        if tag == HARD_LINK {
            hard_link = Some(value.to_vec()).filter(|path| is_path(path) && kind == 1);
        }
    }
    if mode > 0o7777 {
        return Err(reader.malformed());
    }
    Ok(SnapshotEntry { path, mode, uid, gid, mtime_ns, node, hard_link })
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
        SnapshotEntry { path, mode: 0o644, uid: 1, gid: 2, mtime_ns: -5, node, hard_link: None }
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let id = ChunkId([7; ID_BYTES]);
        let pieces = vec![FilePiece::Chunk { bytes: 5, id }, FilePiece::Hole { bytes: 9 }];
        let mut linked =
            entry(b"a/b\xff", SnapshotEntryKind::File { size: 14, pieces: pieces.clone() });
        linked.hard_link = Some(b"a/a".to_vec());
        let entries = [
            entry(b"a", SnapshotEntryKind::Folder),
            entry(b"a/a", SnapshotEntryKind::File { size: 14, pieces }),
            linked,
            entry(b"a-b", SnapshotEntryKind::Link { target: b"../x".to_vec() }),
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

    #[test]
    fn the_first_name_of_a_hard_link_is_a_path_and_of_a_file() {
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
        assert_eq!([read(SnapshotEntryKind::Folder, b"a"), read(link(), b"a")], [None, None]);
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
