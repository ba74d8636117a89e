//! An allocator that counts what the present thread asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn grew(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    LIVE.set(LIVE.get().wrapping_add(bytes));
    PEAK.set(PEAK.get().max(LIVE.get()));
}

// SAFETY: every call goes to the system's allocator as it is; counting touches thread-local cells
// without destructors only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().saturating_sub(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LIVE.set(LIVE.get().saturating_sub(layout.size()));
        grew(new_size);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

/// The result of `work`, and the most bytes that it held at once.
#[allow(dead_code, reason = "each test file that includes this one uses a part of it")]
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LIVE.set(0);
    PEAK.set(0);
    let result = work();
    (result, PEAK.get())
}

/// How often `work` asks for memory.
#[allow(dead_code, reason = "each test file that includes this one uses a part of it")]
pub(crate) fn allocations_of(work: impl FnOnce()) -> usize {
    CALLS.set(0);
    work();
    CALLS.get()
}
