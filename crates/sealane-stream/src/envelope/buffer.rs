//! Memory of bodies that come together.

use bytes::{Bytes, BytesMut};

use super::ID_FIELD_BYTES;

/// Bytes of one piece of memory, at most. A body in memory keeps its whole piece there. A stream
/// counts its bodies alone, so that a piece must hold little else.
const PIECE_BYTES: usize = 64 << 10;
/// The longest body that shares a piece. A larger one has memory of its own, so that no more than
/// an eighth of a piece stays empty at its end.
pub(super) const SHARED_BODY_BYTES: usize = PIECE_BYTES / 8;
/// A buffer is loose if its pieces are more than so many times as large as what stands in them.
const LOOSE_PART: usize = 2;

/// Memory that the bodies of one stream share that come together. Memory of its own for each took
/// three allocations, which one thread made and another one gave back.
#[derive(Debug, Default)]
pub struct EnvelopeBuffer {
    piece: BytesMut,
    /// Small bodies that are still to come, and their bytes.
    left: usize,
    left_bytes: usize,
    /// Bytes of all pieces.
    held_bytes: usize,
    /// Bytes of the bodies in them.
    used_bytes: usize,
}

impl EnvelopeBuffer {
    /// For messages of so many bytes each, as their clients wrote them. Without any each body has
    /// memory of its own, as it has to be where bodies of several streams come together.
    pub fn expecting(lens: impl IntoIterator<Item = usize>) -> Self {
        let mut buffer = Self::default();
        for bytes in lens.into_iter().filter_map(shared_bytes) {
            buffer.left += 1;
            buffer.left_bytes += bytes;
        }
        buffer
    }

    /// Whether the pieces are much larger than the bodies that were read into them: others were
    /// refused, or took less room than they were expected to. Then each body needs memory of its
    /// own ([`StreamEnvelope::own`](super::StreamEnvelope::own)).
    pub fn is_loose(&self) -> bool {
        self.held_bytes > LOOSE_PART * self.used_bytes
    }

    /// A body of at most `len` bytes, as `write` appends it, of a message that came as `raw_len`.
    pub(super) fn body(
        &mut self,
        raw_len: usize,
        len: usize,
        write: impl FnOnce(&mut BytesMut),
    ) -> Bytes {
        debug_assert!(self.piece.is_empty(), "what was written is a body already");
        let Some(expected) = shared_bytes(raw_len) else { return alone(len, write) };
        let (left, left_bytes) = (self.left, self.left_bytes);
        self.left = left.saturating_sub(1);
        self.left_bytes = left_bytes.saturating_sub(expected);
        if self.piece.capacity() < len {
            // Nobody is left to share a further piece with.
            if left <= 1 {
                return alone(len, write);
            }
            let bytes = len.max(left_bytes.min(PIECE_BYTES));
            self.held_bytes += bytes;
            self.piece = BytesMut::with_capacity(bytes);
        }
        write(&mut self.piece);
        self.used_bytes += self.piece.len();
        if self.left == 0 {
            // The last one takes the piece over. That needs no further count of who shares it.
            return std::mem::take(&mut self.piece).freeze();
        }
        self.piece.split().freeze()
    }

    /// A copy of a body.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.body(bytes.len(), bytes.len(), |piece| piece.extend_from_slice(bytes))
    }
}

/// The bytes of a body at most whose message came as `raw_len` bytes. None: it is too large for a
/// piece.
fn shared_bytes(raw_len: usize) -> Option<usize> {
    Some(raw_len + ID_FIELD_BYTES).filter(|bytes| *bytes <= SHARED_BODY_BYTES)
}

/// A body in memory of its own.
fn alone(len: usize, write: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut body = BytesMut::with_capacity(len);
    write(&mut body);
    body.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_come_together_share_memory_and_others_do_not() {
        let mut buffer = EnvelopeBuffer::expecting([100; 3]);
        let bodies = [1, 2, 3].map(|byte| buffer.copy(&[byte; 100]));
        assert_eq!(bodies.each_ref().map(|body| body[0]), [1, 2, 3]);
        let [first, second, _] = bodies.each_ref().map(|body| body.as_ptr() as usize);
        assert_eq!(second, first + 100);
        let mut alone = EnvelopeBuffer::default();
        assert!(alone.copy(&[7; 100]).is_unique() && alone.copy(&[7; 100]).is_unique());
        assert_eq!(alone.held_bytes, 0);
    }

    #[test]
    fn a_body_keeps_no_more_memory_than_a_piece() {
        let frames: [&[usize]; 5] = [
            &[1000; 1000],
            &[100; 700],
            &[100, 20_000, 8000, 8000, 100, 200_000, 8100, 3, 8000, 8000],
            // A body larger than its share, or alone, is in no piece.
            &[SHARED_BODY_BYTES; 30],
            &[100],
        ];
        for lens in frames {
            let mut buffer = EnvelopeBuffer::expecting(lens.iter().copied());
            let bodies: Vec<_> = lens.iter().map(|len| buffer.copy(&vec![7; *len])).collect();
            let shared: usize = lens.iter().filter(|len| shared_bytes(**len).is_some()).sum();
            let counted: usize = bodies.iter().map(Bytes::len).sum();
            let held = buffer.held_bytes + counted - buffer.used_bytes;
            assert!(held <= 2 * counted, "{held} for {counted}");
            assert!(!buffer.is_loose() && buffer.used_bytes <= shared, "{:?}", lens.first());
        }
        let mut buffer = EnvelopeBuffer::expecting([1000; 1000]);
        let first = buffer.copy(&[7; 1000]);
        for _ in 0..PIECE_BYTES / 1000 + 1 {
            buffer.copy(&[7; 1000]);
        }
        // The piece of the first is nobody else's any more.
        assert!(first.is_unique());
    }

    #[test]
    fn a_body_whose_companions_do_not_come_is_in_a_loose_buffer() {
        let mut buffer = EnvelopeBuffer::expecting([1000; 60]);
        buffer.copy(&[7; 1000]);
        assert!(buffer.is_loose(), "59 of 60 were refused");
        for _ in 0..40 {
            buffer.copy(&[7; 1000]);
        }
        assert!(!buffer.is_loose(), "most have come");
        // Of a message that begins with spaces, little may be left.
        let mut buffer = EnvelopeBuffer::expecting([8000; 8]);
        (0..8).for_each(|_| drop(buffer.body(8000, 40, |piece| piece.extend_from_slice(b"{}"))));
        assert!(buffer.is_loose());
    }
}
