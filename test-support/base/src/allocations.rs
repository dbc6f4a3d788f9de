//! A counting global allocator, for tests and benches that install it by `#[global_allocator]`.
#![allow(unsafe_code)] // an allocator is unsafe by its trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The system's allocator with a counter of [allocations of each thread](thread_allocations), or [held
/// bytes](HeldBytes).
#[derive(Debug)]
pub struct CountingAllocator<C = Allocations>(PhantomData<C>);

impl<C> CountingAllocator<C> {
    /// Creates an allocator to install.
    #[must_use]
    #[allow(clippy::new_without_default)] // it is a constant
    pub const fn new() -> CountingAllocator<C> {
        CountingAllocator(PhantomData)
    }
}

/// The counter of a [`CountingAllocator`].
pub trait Count {
    /// Counts a block of `taken` bytes that replaces one of `freed` bytes; either is 0 if there is no such
    /// block. Must not allocate.
    fn count(freed: usize, taken: usize);
}

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl<C: Count> GlobalAlloc for CountingAllocator<C> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        C::count(0, layout.size());
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        C::count(0, layout.size());
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        C::count(layout.size(), 0);
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        C::count(layout.size(), new_size);
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations and reallocations of each thread.
#[derive(Debug)]
pub struct Allocations;

impl Count for Allocations {
    fn count(_freed: usize, taken: usize) {
        if taken > 0 {
            // A thread that is ending has no counter any more.
            let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        }
    }
}

/// Allocations and reallocations of this thread so far; 0 if no [`CountingAllocator`] is installed.
#[must_use]
pub fn thread_allocations() -> u64 {
    COUNT.get()
}

/// Allocations and reallocations of this thread during `work`.
pub fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = thread_allocations();
    work();
    thread_allocations() - before
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_MAX: AtomicUsize = AtomicUsize::new(0);

/// Counts the bytes that the program holds. Supports one allocating thread, and counts only [on
/// request](HeldBytes::counted). While counting is off, an allocation costs one additional, well-predicted
/// branch.
#[derive(Debug)]
pub struct HeldBytes;

impl Count for HeldBytes {
    fn count(freed: usize, taken: usize) {
        if IS_ON.load(Relaxed) {
            let held = HELD.load(Relaxed).wrapping_sub(freed).wrapping_add(taken);
            HELD.store(held, Relaxed);
            HELD_MAX.store(HELD_MAX.load(Relaxed).max(held), Relaxed);
        }
    }
}

impl HeldBytes {
    /// Resets the count to 0.
    pub fn reset() {
        HELD.store(0, Relaxed);
        HELD_MAX.store(0, Relaxed);
    }

    /// Runs `work` and counts the bytes that it allocates and frees. Returns its result.
    pub fn counted<R>(work: impl FnOnce() -> R) -> R {
        IS_ON.store(true, Relaxed);
        let result = work();
        IS_ON.store(false, Relaxed);
        result
    }

    /// Maximum number of bytes held at a time since [`reset`](HeldBytes::reset).
    #[must_use]
    pub fn max() -> usize {
        HELD_MAX.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator::new();

    #[test]
    fn allocations_of_the_thread_are_counted() {
        assert_eq!(allocations_of(|| ()), 0);
        assert_eq!(allocations_of(|| drop(black_box(Box::new(1_u64)))), 1);
        let grows = || {
            let mut list = black_box(vec![0_u8; 8]);
            list.reserve_exact(1_000);
            drop(black_box(list));
        };
        assert_eq!(allocations_of(grows), 2);
        let on_another = std::thread::spawn(move || allocations_of(grows)).join().unwrap();
        assert_eq!(on_another, 2, "each thread has its own count");
    }

    #[test]
    fn the_maximum_of_held_bytes_is_counted() {
        HeldBytes::reset();
        HeldBytes::counted(|| {
            HeldBytes::count(0, 100);
            HeldBytes::count(100, 300);
            HeldBytes::count(300, 0);
        });
        HeldBytes::count(0, 1_000);
        assert_eq!(HeldBytes::max(), 300);
    }
}
