//! An allocator that counts each thread's allocations and places blocks of 4 MiB or more on huge pages.
#![allow(unsafe_code)] // an allocator is unsafe by its trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a counter for each thread. A program installs it by `#[global_allocator]`;
/// [`AgentCounters::allocations`](crate::AgentCounters) then show which agent allocates in its duty cycles.
///
/// Costs an addition per allocation, and nothing otherwise.
///
/// Blocks of at least 4 MiB - books, indices, rings - get huge pages if the system provides them on request
/// (`/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`). A look-up in a large table then
/// causes a cache miss, but rarely a TLB miss too.
pub struct CountingAllocator;

/// Number of allocations and reallocations of this thread so far; always 0 without [`CountingAllocator`].
#[inline]
#[must_use]
pub fn thread_allocations() -> u64 {
    COUNT.get()
}

/// True if this program uses the [`CountingAllocator`]; makes one allocation to test this.
#[must_use]
pub fn counts_allocations() -> bool {
    let before = thread_allocations();
    drop(std::hint::black_box(Box::new(0_u64)));
    thread_allocations() != before
}

fn count() {
    // The counter of a terminating thread may already be destroyed.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every method behaves like the system's allocator, by calling it or, for the largest blocks, by
// separate mappings; the layout alone selects one of the two. Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        if huge::is_for(layout) {
            return huge::map(layout);
        }
        // SAFETY: the caller's promise about `layout` is the one that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        if huge::is_for(layout) {
            return huge::map(layout);
        }
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller promises that the size, rounded up to the alignment, is at most `isize::MAX`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if !huge::is_for(layout) && !huge::is_for(new_layout) {
            // SAFETY: the block came from `System` by this allocator, with this layout.
            return unsafe { System.realloc(pointer, layout, new_size) };
        }
        // SAFETY: the layouts are the caller's; the old block has the size of its layout and does not overlap
        // the new one.
        unsafe {
            let new = if huge::is_for(new_layout) { huge::map(new_layout) } else { System.alloc(new_layout) };
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(pointer, new, layout.size().min(new_size));
                self.dealloc(pointer, layout);
            }
            new
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if huge::is_for(layout) {
            return huge::unmap(pointer, layout);
        }
        // SAFETY: the block came from `System` by this allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Blocks that are large enough for huge pages.
mod huge {
    use std::alloc::Layout;
    use std::ptr;

    use nix::libc;

    /// Size of a huge page on x86-64, and on aarch64 with pages of 4 KiB.
    const PAGE: usize = 2 << 20;
    /// Minimum size of a block on huge pages.
    const SIZE_MIN: usize = 2 * PAGE;

    /// Length of the part of a block that gets huge pages: its rest gets one only if it needs half of it, so
    /// that a block wastes little memory.
    const fn huge_len(size: usize) -> usize {
        let rest = size % PAGE;
        if rest < PAGE / 2 { size - rest } else { size - rest + PAGE }
    }

    pub(super) fn is_for(layout: Layout) -> bool {
        cfg!(all(target_os = "linux", not(miri))) && layout.size() >= SIZE_MIN && layout.align() <= PAGE
    }

    /// Returns a zeroed block, on huge pages if the system provides them; null when there is no memory.
    pub(super) fn map(layout: Layout) -> *mut u8 {
        let len = layout.size().next_multiple_of(PAGE);
        let Some(mapped_len) = len.checked_add(PAGE) else { return ptr::null_mut() };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice replaces no memory.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), mapped_len, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let mapped = mapped.cast::<u8>();
        let before = mapped.align_offset(PAGE);
        // SAFETY: the block and the parts cut off on both sides lie in the new mapping, whose length is a
        // page more than the block's; no other code has a pointer to it yet. If the advice is refused,
        // nothing changes.
        unsafe {
            let block = mapped.add(before);
            if before > 0 {
                libc::munmap(mapped.cast(), before);
            }
            if before < PAGE {
                libc::munmap(block.add(len).cast(), PAGE - before);
            }
            libc::madvise(block.cast(), huge_len(layout.size()), libc::MADV_HUGEPAGE);
            block
        }
    }

    pub(super) fn unmap(pointer: *mut u8, layout: Layout) {
        // SAFETY: `map` created a mapping of this length there: the caller promises that the block is from
        // this allocator, with this layout.
        unsafe { libc::munmap(pointer.cast(), layout.size().next_multiple_of(PAGE)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: usize = 4 << 20;

    #[test]
    fn blocks_on_both_sides_of_the_bound_keep_their_bytes_when_resized() {
        let layout = |size| Layout::from_size_align(size, 64).unwrap();
        let mut size = 1_000;
        // SAFETY: each block is used within its size, resized and freed with the layout it has.
        unsafe {
            let mut block = CountingAllocator.alloc(layout(size));
            block.write_bytes(7, size);
            for new_size in [BOUND - 1, BOUND, 3 * BOUND + 5, BOUND + 1, 100] {
                block = CountingAllocator.realloc(block, layout(size), new_size);
                assert!(!block.is_null());
                assert_eq!(block.align_offset(if new_size < BOUND { 64 } else { 2 << 20 }), 0);
                let kept = std::slice::from_raw_parts(block, size.min(new_size));
                assert!(kept.iter().all(|byte| *byte == 7), "{size} to {new_size}");
                block.write_bytes(7, new_size);
                size = new_size;
            }
            CountingAllocator.dealloc(block, layout(size));
        }
    }

    #[test]
    fn a_large_zeroed_block_is_zero_to_its_end() {
        let layout = Layout::from_size_align(BOUND + 4_097, 8).unwrap();
        // SAFETY: the block is read within its size and freed with its layout.
        unsafe {
            let block = CountingAllocator.alloc_zeroed(layout);
            assert!(std::slice::from_raw_parts(block, layout.size()).iter().all(|byte| *byte == 0));
            CountingAllocator.dealloc(block, layout);
        }
    }
}
