use super::DocumentError;
use crate::input::DatumInput;

/// The bytes that [`sealane_message::limits::MAX_COUNT`] takes, 7 bits a byte.
const TOTAL_BYTES_MAX: u32 = 8;

/// The fields of a body, from its front.
pub(super) struct DocumentBodyReader<'a>(DatumInput<'a>);

impl<'a> DocumentBodyReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        DocumentBodyReader(DatumInput::new(body))
    }

    pub(super) fn left(&self) -> usize {
        self.0.left()
    }

    pub(super) fn finish(&self) -> Result<(), DocumentError> {
        if self.left() == 0 { Ok(()) } else { Err(DocumentError::TooLong) }
    }

    pub(super) fn byte(&mut self) -> Result<u8, DocumentError> {
        self.0.byte().map_err(|_| DocumentError::TooShort)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DocumentError> {
        self.0.array().map_err(|_| DocumentError::TooShort)
    }

    /// A byte of flags, of which only those `known` may be set.
    pub(super) fn flags(&mut self, known: u8) -> Result<u8, DocumentError> {
        let flags = self.byte()?;
        if flags & !known == 0 { Ok(flags) } else { Err(DocumentError::ReservedBits) }
    }

    pub(super) fn time(&mut self) -> Result<u64, DocumentError> {
        let [a, b, c, d, e, f] = self.array()?;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    pub(super) fn signed_24(&mut self) -> Result<i32, DocumentError> {
        let [a, b, c] = self.array()?;
        // The shift back repeats the sign.
        Ok(i32::from_le_bytes([0, a, b, c]) >> 8)
    }

    /// LEB128 in its shortest form.
    pub(super) fn total(&mut self) -> Result<u64, DocumentError> {
        const BEYOND: DocumentError = DocumentError::OutOfRange { field: "total" };
        let mut total = 0;
        for shift in (0..TOTAL_BYTES_MAX * 7).step_by(7) {
            let byte = self.byte()?;
            total |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let shortest = byte != 0 || shift == 0;
                return if shortest { Ok(total) } else { Err(BEYOND) };
            }
        }
        Err(BEYOND)
    }

    /// The rest of the body as text.
    pub(super) fn text(
        &mut self,
        field: &'static str,
        max_bytes: usize,
    ) -> Result<&'a str, DocumentError> {
        let left = self.left();
        if left == 0 {
            return Err(DocumentError::TooShort);
        }
        if left > max_bytes {
            return Err(DocumentError::TooLong);
        }
        let bytes = self.0.take(left).map_err(|_| DocumentError::TooShort)?;
        let text = std::str::from_utf8(bytes).map_err(|_| DocumentError::Text { field })?;
        if text.chars().any(char::is_control) {
            return Err(DocumentError::Text { field });
        }
        Ok(text)
    }
}
