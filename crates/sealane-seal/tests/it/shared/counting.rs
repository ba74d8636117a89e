//! Counts what the present thread asks for, from Rust and from C alike: both end in `malloc`,
//! which stands here in front of the C library's own.

use std::cell::Cell;
use std::ffi::c_void;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
}

fn called() {
    CALLS.set(CALLS.get() + 1);
}

// SAFETY, of all four: the C library's function of the same contract gets the arguments as they
// are; counting touches a thread-local cell without destructor only.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    called();
    unsafe { __libc_malloc(bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    called();
    unsafe { __libc_calloc(count, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    called();
    unsafe { __libc_realloc(block, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    called();
    unsafe { __libc_memalign(align, bytes) }
}

/// How often `work` asks for memory.
pub(crate) fn allocations_of(work: impl FnOnce()) -> usize {
    CALLS.set(0);
    work();
    CALLS.get()
}
