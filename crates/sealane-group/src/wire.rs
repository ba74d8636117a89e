//! Fixed tables of bytes, big-endian: what every card, order and file of this crate is made of.

use sealane_message::bytes::ByteReader;

use crate::limits::MAX_NAME_BYTES;
use crate::{Error, GroupDocument};

/// Begins a document: four letters of its kind, and the version.
pub(crate) fn begin(document: GroupDocument) -> Vec<u8> {
    let mut bytes = document.magic().to_vec();
    bytes.push(document.version());
    bytes
}

/// Appends a text of at most 255 bytes behind its length.
pub(crate) fn put_name(out: &mut Vec<u8>, name: &str) {
    let name = name.as_bytes();
    let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
    out.push(len);
    out.extend(name.iter().take(usize::from(len)));
}

/// Appends bytes behind their length as u32.
pub(crate) fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(part);
}

/// Whether a text may name a member, an identity or a group.
pub(crate) fn is_name(name: &str) -> bool {
    let is_refused = |c: char| c.is_control() || turns_text(c);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(is_refused)
}

/// Whether a character turns the direction of those behind it (Unicode's `Bidi_Control`), so that
/// a name would be shown as another one.
fn turns_text(c: char) -> bool {
    let is_embedding = ('\u{202a}'..='\u{202e}').contains(&c);
    let is_isolate = ('\u{2066}'..='\u{2069}').contains(&c);
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}') || is_embedding || is_isolate
}

/// Reads a table from its front. What is missing or left over is [`Error::Malformed`].
#[derive(Debug, Clone)]
pub(crate) struct GroupFieldReader<'a> {
    document: GroupDocument,
    rest: ByteReader<'a>,
}

impl<'a> GroupFieldReader<'a> {
    /// Reads bytes that have no head of their own.
    pub(crate) fn new(document: GroupDocument, bytes: &'a [u8]) -> GroupFieldReader<'a> {
        GroupFieldReader { document, rest: ByteReader::new(bytes) }
    }

    /// Reads a document behind its head, whose kind and version must be the ones that are known.
    pub(crate) fn open(
        document: GroupDocument,
        bytes: &'a [u8],
    ) -> Result<GroupFieldReader<'a>, Error> {
        let mut reader = GroupFieldReader::new(document, bytes);
        if reader.array()? != document.magic() {
            return Err(reader.malformed());
        }
        match reader.u8()? {
            0 => Err(reader.malformed()),
            version if version < document.version() => {
                Err(Error::OlderVersion { document, version })
            }
            version if version > document.version() => {
                Err(Error::NewerVersion { document, version })
            }
            _ => Ok(reader),
        }
    }

    pub(crate) fn malformed(&self) -> Error {
        Error::Malformed(self.document)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.rest.array().ok_or(Error::Malformed(self.document))
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        self.rest.bytes(len).ok_or(Error::Malformed(self.document))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }

    /// A count of things of which each takes at least `least` bytes of the rest, so that no count
    /// asks for more memory than the bytes that came.
    pub(crate) fn count(&mut self, max: usize, least: usize) -> Result<usize, Error> {
        let count = usize::from(self.u16()?);
        let fits = count <= max && count.saturating_mul(least) <= self.left();
        if fits { Ok(count) } else { Err(self.malformed()) }
    }

    /// Bytes behind their length as u32.
    pub(crate) fn part(&mut self) -> Result<&'a [u8], Error> {
        let len = usize::try_from(self.u32()?).map_err(|_| self.malformed())?;
        self.bytes(len)
    }

    pub(crate) fn name(&mut self) -> Result<String, Error> {
        let len = usize::from(self.u8()?);
        let name = std::str::from_utf8(self.bytes(len)?).map_err(|_| self.malformed())?;
        if is_name(name) { Ok(name.to_owned()) } else { Err(self.malformed()) }
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest.rest()
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.rest().len()
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), Error> {
        if self.left() == 0 { Ok(()) } else { Err(self.malformed()) }
    }
}
