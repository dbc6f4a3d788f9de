//! Counts each thread's allocations, so that a duty cycle that allocates is seen.
#![allow(unsafe_code)] // an allocator is unsafe by its trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread. A program installs it by `#[global_allocator]`;
/// [`AgentCounters::allocations`](crate::AgentCounters) then tell which agent allocates in its duty cycles.
///
/// Costs an addition for each allocation, and nothing where nothing is allocated.
pub struct CountingAllocator;

/// Allocations and reallocations of this thread so far; 0 for ever where [`CountingAllocator`] is not installed.
#[inline]
#[must_use]
pub fn thread_allocations() -> u64 {
    COUNT.get()
}

/// Whether this program counts its allocations: makes one and looks.
#[must_use]
pub fn counts_allocations() -> bool {
    let before = thread_allocations();
    drop(std::hint::black_box(Box::new(0_u64)));
    thread_allocations() != before
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every method passes its arguments unchanged to the system's allocator, whose contract is the same;
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise about `layout` is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the block came from `System` by this allocator, with this layout.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the block came from `System` by this allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
