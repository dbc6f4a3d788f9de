//! A counting allocator: the most that a structure asked for at a time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The system's allocator, which counts while it is asked to. Otherwise it costs a branch that is always guessed.
pub struct Counting;

static IS_ON: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_MAX: AtomicUsize = AtomicUsize::new(0);

fn count(freed: usize, taken: usize) {
    if IS_ON.load(Relaxed) {
        // One thread allocates here.
        let held = HELD.load(Relaxed).wrapping_sub(freed).wrapping_add(taken);
        HELD.store(held, Relaxed);
        HELD_MAX.store(HELD_MAX.load(Relaxed).max(held), Relaxed);
    }
}

// SAFETY: every call goes on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(layout.size(), new_size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// Counts anew from nothing.
pub fn reset() {
    HELD.store(0, Relaxed);
    HELD_MAX.store(0, Relaxed);
}

/// Counts what `work` takes and gives back.
pub fn counted<R>(work: impl FnOnce() -> R) -> R {
    IS_ON.store(true, Relaxed);
    let result = work();
    IS_ON.store(false, Relaxed);
    result
}

/// The most bytes that were held at a time since [`reset`].
pub fn held_max() -> usize {
    HELD_MAX.load(Relaxed)
}
