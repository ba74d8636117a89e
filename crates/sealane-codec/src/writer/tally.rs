//! Whether a container holds as many keys and values as its head says: debug builds assert it.
//!
//! The binary codecs write the number in front. A wrong one damages what follows, and JSON, which
//! has none, hides it.

#[cfg(debug_assertions)]
use crate::limits::MAX_TALLY_DEPTH;

/// The keys and values that the open containers lack. In release builds this type is empty and
/// takes no room.
pub(super) struct WriterTally {
    /// Keys and values that are missing, outermost container first; none where nobody counts.
    #[cfg(debug_assertions)]
    lacking: Option<[usize; MAX_TALLY_DEPTH]>,
    #[cfg(debug_assertions)]
    depth: usize,
}

#[cfg(debug_assertions)]
impl WriterTally {
    pub(super) fn new() -> Self {
        Self { lacking: Some([0; MAX_TALLY_DEPTH]), depth: 0 }
    }

    /// One that counts nothing, for containers that are not ended.
    pub(super) fn off() -> Self {
        Self { lacking: None, depth: 0 }
    }

    /// A container of so many keys and values begins.
    pub(super) fn open(&mut self, items: usize) {
        self.item();
        let depth = self.depth;
        if let Some(lacking) = self.lacking.as_mut().and_then(|all| all.get_mut(depth)) {
            *lacking = items;
        }
        self.depth += 1;
    }

    /// A key or value is written.
    pub(super) fn item(&mut self) {
        if let Some(lacking) = self.innermost() {
            debug_assert!(*lacking > 0, "more keys and values than were announced");
            *lacking = lacking.saturating_sub(1);
        }
    }

    /// The innermost container ends.
    pub(super) fn close(&mut self) {
        let lacking = self.innermost().copied().unwrap_or_default();
        debug_assert!(lacking == 0, "fewer keys and values than were announced");
        self.depth = self.depth.saturating_sub(1);
    }

    /// The innermost container lacks so many keys and values.
    pub(super) fn expect(&mut self, items: usize) {
        if let Some(lacking) = self.innermost() {
            *lacking = items;
        }
    }

    fn innermost(&mut self) -> Option<&mut usize> {
        let index = self.depth.checked_sub(1)?;
        self.lacking.as_mut()?.get_mut(index)
    }
}

#[cfg(not(debug_assertions))]
impl WriterTally {
    #[inline]
    pub(super) fn new() -> Self {
        Self {}
    }

    #[inline]
    pub(super) fn off() -> Self {
        Self {}
    }

    #[inline]
    pub(super) fn open(&mut self, _items: usize) {}

    #[inline]
    pub(super) fn item(&mut self) {}

    #[inline]
    pub(super) fn close(&mut self) {}

    #[inline]
    pub(super) fn expect(&mut self, _items: usize) {}
}
