//! Memory mapping of a file.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use tickpath_lockfree::{LINE_LEN, SharedLines};

/// Memory to which a file is mapped; unmapped on drop.
struct Mapping {
    start: NonNull<std::ffi::c_void>,
    len: usize,
}

// SAFETY: a `Mapping` only unmaps on drop, which any thread may do.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared references give no access.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and every user of its lines shares ownership of it.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

/// Maps a file's first `len` bytes as cache lines, shared with all processes that map them. Allocates all
/// pages.
///
/// `len` is a multiple of [`LINE_LEN`], and at most the file's length. If another process truncates the
/// file later, an access to the missing part ends this process by SIGBUS, as with every mapped file.
pub(crate) fn map(file: &File, len: u64, is_writable: bool) -> io::Result<SharedLines> {
    let mapped_len =
        usize::try_from(len).ok().and_then(NonZeroUsize::new).ok_or(io::ErrorKind::InvalidInput)?;
    let write = if is_writable { ProtFlags::PROT_WRITE } else { ProtFlags::empty() };
    let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
    // SAFETY: a new mapping at an address of the kernel's choice replaces no memory.
    let start = unsafe { mmap(None, mapped_len, ProtFlags::PROT_READ | write, flags, file, 0) }?;
    let mapping = Mapping { start, len: mapped_len.get() };
    let count = mapped_len.get() / LINE_LEN;
    // SAFETY: a mapping is page-aligned and has `count` lines, readable and, if requested, writable. This
    // process accesses it only through these lines, and it stays mapped until the last of them is dropped.
    Ok(unsafe { SharedLines::from_raw(start.cast(), count, is_writable, Arc::new(mapping)) })
}
