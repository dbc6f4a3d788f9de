//! A file in memory.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use tickpath_lockfree::{LINE_LEN, SharedLines};

/// Memory that a file was mapped to; unmapped when it goes.
struct Mapping {
    start: NonNull<std::ffi::c_void>,
    len: usize,
}

// SAFETY: it does nothing but unmap, which any thread may do.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared references give nothing.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever has lines in it owns a share of `self`.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

/// The first `len` bytes of a file as lines, shared with whoever else maps them; all pages are there at once.
///
/// `len` is a multiple of a line's length, and the file is as long. Should somebody cut it short later, a look at what
/// is gone ends the process by SIGBUS, as with every mapped file.
pub(crate) fn map(file: &File, len: u64, is_writable: bool) -> io::Result<SharedLines> {
    let mapped_len =
        usize::try_from(len).ok().and_then(NonZeroUsize::new).ok_or(io::ErrorKind::InvalidInput)?;
    let write = if is_writable { ProtFlags::PROT_WRITE } else { ProtFlags::empty() };
    let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
    // SAFETY: a new mapping, wherever the kernel wants it, replaces no memory.
    let start = unsafe { mmap(None, mapped_len, ProtFlags::PROT_READ | write, flags, file, 0) }?;
    let mapping = Mapping { start, len: mapped_len.get() };
    let count = mapped_len.get() / LINE_LEN;
    // SAFETY: a mapping begins at a page and has `count` lines, readable and if asked writable; it is this process's
    // own, reached by these lines alone, and stays until the last of them goes.
    Ok(unsafe { SharedLines::from_raw(start.cast(), count, is_writable, Arc::new(mapping)) })
}
