use sealane_message::document::Position;

use super::{DocumentError, within};

/// A time travels in so many bytes.
const TIME_BYTES: usize = 6;
const TIME_MAX_MS: u64 = (1 << (8 * TIME_BYTES)) - 1;
/// Signed numbers of 24 bits reach from minus this to one less.
const SIGNED_24_BEYOND: i32 = 1 << 23;

/// The end of a body that is being written.
pub(super) struct Out<'o>(&'o mut Vec<u8>);

impl<'o> Out<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Out(out)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// One byte, with the flag of each field that is there.
    pub(super) fn put_flags(&mut self, fields: &[(u8, bool)]) {
        let flags = fields.iter().filter(|(_, is_there)| *is_there);
        self.0.push(flags.fold(0, |flags, (flag, _)| flags | flag));
    }

    pub(super) fn put_time(&mut self, time_ms: u64) -> Result<(), DocumentError> {
        within("time", time_ms <= TIME_MAX_MS)?;
        self.put(time_ms.to_le_bytes().first_chunk::<TIME_BYTES>().map_or(&[], |low| low));
        Ok(())
    }

    pub(super) fn put_position(&mut self, position: Position) {
        self.put(&position.latitude_e7().to_le_bytes());
        self.put(&position.longitude_e7().to_le_bytes());
    }

    pub(super) fn put_signed_24(
        &mut self,
        field: &'static str,
        number: i32,
    ) -> Result<(), DocumentError> {
        within(field, (-SIGNED_24_BEYOND..SIGNED_24_BEYOND).contains(&number))?;
        let [a, b, c, _] = number.to_le_bytes();
        self.put(&[a, b, c]);
        Ok(())
    }

    /// LEB128 in its shortest form.
    pub(super) fn put_total(&mut self, mut total: u64) {
        loop {
            // Seven bits fit.
            let low = (total & 0x7f) as u8;
            total >>= 7;
            if total == 0 {
                return self.put(&[low]);
            }
            self.put(&[low | 0x80]);
        }
    }

    /// A text up to the end of the body.
    pub(super) fn put_text(
        &mut self,
        field: &'static str,
        text: &str,
        max_bytes: usize,
    ) -> Result<(), DocumentError> {
        within(field, (1..=max_bytes).contains(&text.len()))?;
        if text.chars().any(char::is_control) {
            return Err(DocumentError::Text { field });
        }
        self.put(text.as_bytes());
        Ok(())
    }
}
