//! Memory of bodies that come together.

use bytes::{Bytes, BytesMut};

/// Bytes of one piece of memory at most, unless one body is larger. A body keeps its piece as long
/// as it is in memory itself, so that a stream holds little more than what it counts.
const PIECE_BYTES: usize = 64 << 10;

/// Memory that the bodies of one stream share that come together. Memory of its own for each took
/// three allocations, which one thread made and another one gave back.
#[derive(Debug, Default)]
pub struct EnvelopeBuffer {
    piece: BytesMut,
    /// Bodies that are still to come, and their bytes.
    messages: usize,
    bytes: usize,
}

impl EnvelopeBuffer {
    /// For so many messages, of so many bytes as their clients wrote them. Without any each body
    /// has memory of its own, as it has to be where bodies of several streams come together.
    pub fn expecting(messages: usize, bytes: usize) -> Self {
        let bytes = bytes + messages * super::ID_FIELD_BYTES;
        Self { piece: BytesMut::new(), messages, bytes }
    }

    /// A body of at most `len` bytes, as `write` appends it.
    pub(super) fn body(&mut self, len: usize, write: impl FnOnce(&mut BytesMut)) -> Bytes {
        debug_assert!(self.piece.is_empty(), "what was written is a body already");
        if self.piece.capacity() < len {
            self.piece = BytesMut::with_capacity(len.max(self.bytes.min(PIECE_BYTES)));
        }
        self.bytes = self.bytes.saturating_sub(len);
        self.messages = self.messages.saturating_sub(1);
        write(&mut self.piece);
        if self.messages == 0 {
            // A single message needs no count of who shares its memory.
            return std::mem::take(&mut self.piece).freeze();
        }
        self.piece.split().freeze()
    }

    /// A copy of a body.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.body(bytes.len(), |piece| piece.extend_from_slice(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_come_together_share_memory_and_others_do_not() {
        let mut buffer = EnvelopeBuffer::expecting(3, 3 * 100);
        let bodies = [1, 2, 3].map(|byte| buffer.copy(&[byte; 100]));
        assert_eq!(bodies.each_ref().map(|body| body[0]), [1, 2, 3]);
        let [first, second, _] = bodies.each_ref().map(|body| body.as_ptr() as usize);
        assert_eq!(second, first + 100);
        let mut alone = EnvelopeBuffer::default();
        assert!(alone.copy(&[7; 100]).is_unique() && alone.copy(&[7; 100]).is_unique());
    }

    #[test]
    fn a_body_keeps_no_more_memory_than_a_piece() {
        let mut buffer = EnvelopeBuffer::expecting(1000, 1000 * 1000);
        let first = buffer.copy(&[7; 1000]);
        for _ in 0..PIECE_BYTES / 1000 + 1 {
            buffer.copy(&[7; 1000]);
        }
        // The piece of the first is nobody else's any more.
        assert!(first.is_unique());
        assert_eq!(buffer.copy(&[7; 2 * PIECE_BYTES]).len(), 2 * PIECE_BYTES);
    }
}
