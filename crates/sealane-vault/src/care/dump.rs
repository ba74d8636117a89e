//! Parts of a snapshot as a stream: a file as it is, a folder as a tar archive.
//!
//! The archive is POSIX.1-2001 (pax): names, sizes and times that the older header cannot hold
//! stand in an extended header before it.

use std::io::{self, Write};

use crate::Error;
use crate::format::page::{DeviceKind, DeviceNode, SnapshotEntry, SnapshotEntryKind};
use crate::get::{ChunkReader, GetOptions, SnapshotEntries, is_in, write_file};
use crate::vault::{Snapshot, Vault};

/// A tar archive consists of blocks of this size.
const BLOCK_BYTES: usize = 512;
/// The longest name that the old header holds, and the longest target of a link.
const NAME_BYTES: usize = 100;
/// The largest number in 11 octal digits.
const LAST_OCTAL: u64 = (1 << 33) - 1;

/// The counts of a dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpReport {
    /// Entries, with folders and links.
    pub entries: u64,
    /// Bytes of the files, all verified.
    pub bytes: u64,
    /// Entries that did not get the owner, the setuid bits or the rights that a writer's snapshot
    /// names.
    pub withheld: u64,
    /// Devices of a writer's snapshot, which the archive lacks.
    pub refused: u64,
}

impl Vault {
    /// Writes what a snapshot has at `path` to `out`: a file as it is, and a folder, or with an
    /// empty path all of it, as a tar archive.
    ///
    /// Every byte of a file is verified before it is written. If something cannot be read, the
    /// stream ends there: it is no whole archive then. Of a writer's snapshot the archive names no
    /// setuid bits, and this user as the owner: root may be who unpacks it.
    ///
    /// # Errors
    /// [`Error::NoEntry`], as [`Vault::entries`] and [`crate::StoredFile::read_range`].
    pub fn dump(
        &self,
        snapshot: &Snapshot,
        path: &[u8],
        out: &mut dyn Write,
    ) -> Result<DumpReport, Error> {
        let paths = if path.is_empty() { Vec::new() } else { vec![path.to_vec()] };
        let located = self.locate(snapshot, &paths)?;
        let path = located.first().map_or(&[][..], Vec::as_slice);
        if !path.is_empty() {
            match self.file(snapshot, path) {
                Ok(mut file) => {
                    let bytes = file.read_range(0, u64::MAX, out)?;
                    return Ok(DumpReport { entries: 1, bytes, ..DumpReport::default() });
                }
                // It may be a folder.
                Err(Error::NoEntry(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let pages = ChunkReader::of(self, snapshot)?;
        // One for all files: small ones lie side by side in what it has read.
        let mut chunks = ChunkReader::of(self, snapshot)?;
        let options = GetOptions::default().of_writer(snapshot.by_writer);
        let mut report = DumpReport::default();
        for entry in SnapshotEntries::new(pages, &snapshot.body.pages) {
            let mut entry = entry?;
            if path.is_empty() || is_in(&entry.path, path) {
                if options.refuses(&entry) {
                    report.refused += 1;
                    continue;
                }
                report.withheld += u64::from(withhold(&options, &mut entry));
                report.entries += 1;
                report.bytes += entry.size();
                dump_entry(&mut chunks, &entry, out)?;
            }
        }
        write(out, &[0; 2 * BLOCK_BYTES])?;
        Ok(report)
    }
}

/// Takes from an entry what its signer is not trusted with, the owner too; gives whether it named
/// any of that.
fn withhold(options: &GetOptions, entry: &mut SnapshotEntry) -> bool {
    let mut withheld = options.withhold(entry);
    if options.no_owner {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let own = (user.as_raw(), group.as_raw());
        withheld |= (entry.uid, entry.gid) != own;
        (entry.uid, entry.gid) = own;
    }
    withheld
}

fn dump_entry(
    chunks: &mut ChunkReader<'_>,
    entry: &SnapshotEntry,
    out: &mut dyn Write,
) -> Result<(), Error> {
    write(out, &TarEntry::new(entry).header())?;
    let written = write_file(chunks, entry, out)?;
    let over = usize::try_from(written % BLOCK_BYTES as u64).unwrap_or(0);
    let padding = [0; BLOCK_BYTES];
    write(out, padding.get(over..).filter(|_| over > 0).unwrap_or_default())
}

fn write(out: &mut dyn Write, bytes: &[u8]) -> Result<(), Error> {
    let written: io::Result<()> = out.write_all(bytes);
    written.map_err(|cause| Error::File { path: "the output".to_owned(), cause })
}

/// An entry as an archive names it.
struct TarEntry<'a> {
    name: Vec<u8>,
    target: &'a [u8],
    kind: u8,
    device: Option<DeviceNode>,
    entry: &'a SnapshotEntry,
}

impl TarEntry<'_> {
    fn new(entry: &SnapshotEntry) -> TarEntry<'_> {
        let (kind, target) = match &entry.node {
            SnapshotEntryKind::Folder => (b'5', &[][..]),
            SnapshotEntryKind::File { .. } => (b'0', &[][..]),
            SnapshotEntryKind::Link { target } => (b'2', target.as_slice()),
            SnapshotEntryKind::Device(device) => match device.kind {
                DeviceKind::Character => (b'3', &[][..]),
                DeviceKind::Block => (b'4', &[][..]),
            },
            SnapshotEntryKind::Fifo => (b'6', &[][..]),
        };
        let end: &[u8] = if kind == b'5' { b"/" } else { b"" };
        let device = match entry.node {
            SnapshotEntryKind::Device(device) => Some(device),
            _ => None,
        };
        TarEntry { name: [&entry.path, end].concat(), target, kind, device, entry }
    }

    /// The header, behind an extended one where that is needed.
    fn header(&self) -> Vec<u8> {
        let SnapshotEntry { mtime_ns, uid, gid, mode, .. } = *self.entry;
        let seconds = mtime_ns.div_euclid(1_000_000_000);
        let mut records = Vec::new();
        if self.name.len() > NAME_BYTES || self.name.iter().any(|byte| !byte.is_ascii()) {
            record(&mut records, "path", &self.name);
        }
        if self.target.len() > NAME_BYTES || self.target.iter().any(|byte| !byte.is_ascii()) {
            record(&mut records, "linkpath", self.target);
        }
        for (key, number) in [("size", self.entry.size()), ("uid", uid.into()), ("gid", gid.into())]
        {
            let most = if key == "size" { LAST_OCTAL } else { 0o7_777_777 };
            if number > most {
                record(&mut records, key, number.to_string().as_bytes());
            }
        }
        let nanos = mtime_ns.rem_euclid(1_000_000_000);
        let is_whole = nanos == 0 && u64::try_from(seconds).is_ok_and(|time| time <= LAST_OCTAL);
        if !is_whole {
            record(&mut records, "mtime", decimal(mtime_ns).as_bytes());
        }
        for attribute in &self.entry.attributes {
            record(&mut records, &attribute_key(&attribute.name), &attribute.value);
        }
        let mut out = Vec::new();
        if !records.is_empty() {
            let head =
                TarHeader { name: b"pax", size: records.len() as u64, ..TarHeader::of(b'x') };
            out.extend_from_slice(&head.write());
            out.extend_from_slice(&records);
            out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
        }
        let head = TarHeader {
            name: &self.name,
            target: self.target,
            mode,
            uid,
            gid,
            size: self.entry.size(),
            seconds: u64::try_from(seconds).unwrap_or(0),
            kind: self.kind,
            major: self.device.map_or(0, |device| device.major),
            minor: self.device.map_or(0, |device| device.minor),
        };
        out.extend_from_slice(&head.write());
        out
    }
}

/// The key of an attribute, as GNU tar, bsdtar and star read it. A `=` would end it.
fn attribute_key(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).replace('%', "%25").replace('=', "%3D");
    format!("SCHILY.xattr.{name}")
}

/// A time in seconds, with all its digits.
fn decimal(mtime_ns: i64) -> String {
    let sign = if mtime_ns < 0 { "-" } else { "" };
    let (seconds, nanos) =
        (mtime_ns.unsigned_abs() / 1_000_000_000, mtime_ns.unsigned_abs() % 1_000_000_000);
    format!("{sign}{seconds}.{nanos:09}")
}

/// A line of an extended header, which begins with its own length.
fn record(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend_from_slice(format!("{length} {key}=").as_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// The fields of a header of POSIX.1-1988 (ustar).
struct TarHeader<'a> {
    name: &'a [u8],
    target: &'a [u8],
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    seconds: u64,
    kind: u8,
    major: u32,
    minor: u32,
}

impl TarHeader<'_> {
    fn of(kind: u8) -> TarHeader<'static> {
        let (name, target, mode) = (&b""[..], &b""[..], 0o600);
        let (major, minor) = (0, 0);
        TarHeader { name, target, mode, uid: 0, gid: 0, size: 0, seconds: 0, kind, major, minor }
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_BYTES);
        put_text(&mut out, self.name, NAME_BYTES);
        put_octal(&mut out, self.mode.into(), 8);
        put_octal(&mut out, self.uid.into(), 8);
        put_octal(&mut out, self.gid.into(), 8);
        put_octal(&mut out, self.size, 12);
        put_octal(&mut out, self.seconds, 12);
        let sum_at = out.len();
        // The sum is made with blanks in its own place.
        out.extend_from_slice(&[b' '; 8]);
        out.push(self.kind);
        put_text(&mut out, self.target, NAME_BYTES);
        out.extend_from_slice(b"ustar\x0000");
        // The names of owner and group, which the vault does not keep.
        out.extend_from_slice(&[0; 64]);
        put_octal(&mut out, self.major.into(), 8);
        put_octal(&mut out, self.minor.into(), 8);
        out.resize(BLOCK_BYTES, 0);
        let sum: u64 = out.iter().map(|byte| u64::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        if let Some(place) = out.get_mut(sum_at..sum_at + 8) {
            place.copy_from_slice(sum.as_bytes());
        }
        out
    }
}

/// Text in a field, cut where it is longer: an extended header has all of it then.
fn put_text(out: &mut Vec<u8>, text: &[u8], bytes: usize) {
    let end = out.len() + bytes;
    out.extend_from_slice(text.get(..bytes).unwrap_or(text));
    out.resize(end, 0);
}

/// A number in octal digits before a zero; the largest of that length if it is larger.
fn put_octal(out: &mut Vec<u8>, number: u64, bytes: usize) {
    let digits = bytes - 1;
    let most = (1_u64 << (3 * digits)) - 1;
    out.extend_from_slice(format!("{:0digits$o}\0", number.min(most)).as_bytes());
}
