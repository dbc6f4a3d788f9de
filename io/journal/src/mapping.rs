//! A memory mapping of the start of a file. The contents survive the death of the process.

#![allow(unsafe_code)] // a mapping

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::SharedBytes;

/// A mapping of the start of a file, written in 64-bit words. Dropping it unmaps the memory.
pub(crate) struct Mapping {
    file: File,
    start: NonNull<AtomicU64>,
    len: NonZeroUsize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and its words are atomic.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which must have this length and allocated space. If another
    /// process truncates the file later, the next write ends this process by SIGBUS, as with every mapped
    /// file.
    pub(crate) fn new(file: File, len: usize) -> io::Result<Mapping> {
        let len = NonZeroUsize::new(len).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces no memory.
        let start =
            unsafe { mmap(None, len, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, flags, &file, 0) }?;
        Ok(Mapping { file, start: start.cast(), len })
    }
}

impl SharedBytes for Mapping {
    #[inline]
    fn write(&mut self, bytes: &[u8], at: usize) {
        let (words, rest) = bytes.as_chunks::<8>();
        assert!(
            rest.is_empty() && at.is_multiple_of(8) && at + bytes.len() <= self.len.get(),
            "whole words within"
        );
        for (word, place) in words.iter().zip(at / 8..) {
            // SAFETY: the word is within the mapping, which is page-aligned and lives as long as `self`.
            let place = unsafe { self.start.add(place).as_ref() };
            // Store the words in order: the checksum is last, and thus wrong if the process dies in between.
            place.store(u64::from_ne_bytes(*word), Ordering::Release);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and no reference into it remains.
        let _ = unsafe { munmap(self.start.cast(), self.len.get()) };
    }
}
