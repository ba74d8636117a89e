//! A sender allocates nothing per message once its buffer is warm, but where a block of counters is
//! reserved on disk, which comes less and less often.
#![allow(unsafe_code)] // A counting allocator can only be written so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::shared::{Place, log};
use sealane_frame::FrameBuf;
use sealane_group::NewGroup;
use sealane_seal::Class;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it is; counting touches thread-local cells
// without destructors only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        LARGEST.set(LARGEST.get().max(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The largest piece of memory that this thread asks for meanwhile.
pub(crate) fn largest<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let done = work();
    (done, LARGEST.get())
}

#[test]
fn sealing_allocates_only_where_counters_are_reserved() {
    let place = Place::new();
    let base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let mut sender = base.sender().unwrap();
    let (fields, binding) = (sender.fields(Class::Group, 1), log());
    let (body, mut buf) = ([7; 8192], FrameBuf::new());
    sender.seal(&fields, &binding, &body, &mut buf).unwrap();
    let mut allocating = Vec::with_capacity(64);
    for message in 1..20_000 {
        CALLS.set(0);
        sender.seal(&fields, &binding, &body, &mut buf).unwrap();
        if CALLS.get() > 0 {
            allocating.push(message);
        }
    }
    // Blocks of 1,024, 2,048, 4,096 and 8,192 counters end there.
    assert_eq!(allocating, [1024, 3072, 7168, 15360]);
}
