//! How a sender makes itself known on a live link.

use crate::Error;

/// The body of an announcement: a class S message that is bound to the link. Its frame says the
/// context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    /// Milliseconds since 1970-01-01 UTC when the sender started, or one more than the start
    /// before if that is not below: a later start always has a greater number.
    pub start: u64,
    /// How many orders of its group the sender has obeyed.
    pub orders: u64,
}

const VERSION: u8 = 1;

impl Announcement {
    /// Bytes of the body.
    pub const BYTES: usize = 1 + 8 + 8;

    /// Version 1, start and orders; integers big-endian.
    pub fn to_bytes(self) -> [u8; Announcement::BYTES] {
        let mut bytes = [VERSION; Announcement::BYTES];
        let parts = [self.start, self.orders].into_iter().flat_map(u64::to_be_bytes);
        bytes.iter_mut().skip(1).zip(parts).for_each(|(target, byte)| *target = byte);
        bytes
    }

    /// Reads the body.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for another length or version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Announcement, Error> {
        let bytes: &[u8; Announcement::BYTES] = bytes.try_into().map_err(|_| Error::Malformed)?;
        let [VERSION, words @ ..] = bytes else { return Err(Error::Malformed) };
        let mut words = words.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word));
        let start = words.next().ok_or(Error::Malformed)?;
        let orders = words.next().ok_or(Error::Malformed)?;
        Ok(Announcement { start, orders })
    }
}

#[cfg(test)]
mod tests;
