use crate::CodecError;

/// A cursor over the bytes of one datum.
#[derive(Clone)]
pub(crate) struct DatumInput<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> DatumInput<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        DatumInput { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, CodecError> {
        let byte = *self.bytes.get(self.at).ok_or(CodecError::Truncated { at: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Steps over `byte` if it is next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(next);
        next
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], CodecError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..len).ok_or(CodecError::Truncated { at: self.at })?;
        self.at += len;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.first_chunk().ok_or(CodecError::Truncated { at: self.at })?;
        self.at += N;
        Ok(*taken)
    }

    /// The bytes between an earlier place and here.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    pub(crate) fn finish(&self) -> Result<(), CodecError> {
        if self.left() == 0 { Ok(()) } else { Err(CodecError::Trailing { at: self.at }) }
    }
}
