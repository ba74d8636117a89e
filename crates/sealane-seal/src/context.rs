use std::fmt;

/// What tells one start of a sender from every other: 8 random bytes that enter all its keys.
///
/// Whoever starts to send draws new ones, so that a folder that was copied, a disk that was put
/// back, or a process that forked never seals two messages under one key and counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SenderContext(pub [u8; SenderContext::BYTES]);

impl SenderContext {
    /// Bytes of a context.
    pub const BYTES: usize = 8;

    /// The last byte, by which the compact form tells contexts of one sender apart.
    pub const fn low(self) -> u8 {
        let [.., low] = self.0;
        low
    }
}

/// 16 lower-case hexadecimal digits.
impl fmt::Display for SenderContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SenderContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenderContext({self})")
    }
}
