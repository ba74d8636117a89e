use crate::wire::{Reader, begin, put_part};
use crate::{Document, Error};

const FRAME: u8 = 1;
const RENEWAL: u8 = 2;

/// One message of a group's control stream: a sealed frame with an order or a certificate, or a
/// renewal, which needs no earlier secret.
///
/// Members apply notices in the order in which the authority gave them; again does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    bytes: Vec<u8>,
}

impl Notice {
    /// A notice as it was published.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for bytes that begin like none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Notice, Error> {
        match bytes.first() {
            Some(&(FRAME | RENEWAL)) => Ok(Notice { bytes: bytes.to_vec() }),
            _ => Err(Error::Malformed(Document::Order)),
        }
    }

    /// A notice that came as a frame of the full form, over a mesh for example.
    pub fn from_frame(frame: &[u8]) -> Notice {
        Notice { bytes: [&[FRAME], frame].concat() }
    }

    pub(crate) fn from_renewal(renewal: &[u8]) -> Notice {
        Notice { bytes: [&[RENEWAL], renewal].concat() }
    }

    /// What is published.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The frame, unless it is a renewal.
    pub fn frame(&self) -> Option<&[u8]> {
        self.bytes.split_first().filter(|(kind, _)| **kind == FRAME).map(|(_, frame)| frame)
    }

    pub(crate) fn renewal(&self) -> Option<&[u8]> {
        self.bytes.split_first().filter(|(kind, _)| **kind == RENEWAL).map(|(_, bytes)| bytes)
    }
}

/// Joins notices into one order file, to be handed on where no hub carries them.
pub fn write_orders(notices: &[Notice]) -> Vec<u8> {
    let mut bytes = begin(Document::Order);
    notices.iter().for_each(|notice| put_part(&mut bytes, &notice.bytes));
    bytes
}

/// Reads an order file.
///
/// # Errors
///
/// [`Error::Malformed`], [`Error::NewerVersion`].
pub fn read_orders(bytes: &[u8]) -> Result<Vec<Notice>, Error> {
    let mut reader = Reader::open(Document::Order, bytes)?;
    let mut notices = Vec::new();
    while reader.left() > 0 {
        notices.push(Notice::from_bytes(reader.part()?)?);
    }
    if notices.is_empty() { Err(reader.malformed()) } else { Ok(notices) }
}
