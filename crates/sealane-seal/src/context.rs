use std::fmt;

/// The context of one start of a sender, which tells it from every other: 8 random bytes that enter
/// all its keys.
///
/// Every start of a sender draws new ones. So two messages are never sealed under one key and
/// counter. That holds for a copied folder, a disk that was put back, and a process that forked.
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
        sealane_message::hex::write(&self.0, f)
    }
}

impl fmt::Debug for SenderContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenderContext({self})")
    }
}
