//! Release of code pages that only a program's start needed.
#![allow(unsafe_code)] // advice about memory is a system call with addresses

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use nix::libc;

/// Releases the pages of code and constants that the program has touched so far, and returns the size of
/// their mappings in bytes.
///
/// A start (command line, configurations, clock calibration) maps megabytes of code that is needed only once.
/// Released pages stay in the system's page cache. When needed, they are mapped again from there, sixteen at
/// a time, in about a microsecond. Call this once after the start, if memory matters more than these page
/// faults. It also removes a debugger's breakpoints from the pages.
///
/// # Errors
/// `/proc/self/maps` cannot be read. Outside Linux this does nothing.
pub fn release_code_pages() -> io::Result<u64> {
    if !cfg!(all(target_os = "linux", not(miri))) {
        return Ok(0);
    }
    let mut released = 0;
    for line in BufReader::with_capacity(4 << 10, File::open("/proc/self/maps")?).lines() {
        if let Some((start, end)) = code_range(&line?) {
            released += release(start, end);
        }
    }
    Ok(released)
}

fn release(start: usize, end: usize) -> u64 {
    let len = end - start;
    // SAFETY: the range maps code or the start of a program file. It is and was never writable, so each page
    // equals the file's and is read from it again when touched. If the advice is refused, nothing changes.
    let refused = unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_DONTNEED) };
    if refused == 0 { len as u64 } else { 0 }
}

/// Returns the addresses of a mapping of code, or of the constants at the beginning of a program file, if the
/// line of `/proc/self/maps` describes one; source: proc_pid_maps(5).
///
/// Other mappings without write access may have been written: the loader relocates some before it protects
/// them.
fn code_range(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let (_device, inode, path) = (fields.next()?, fields.next()?, fields.next()?);
    let is_code = access == "r-xp" || access == "r--p" && offset.bytes().all(|digit| digit == b'0');
    // A mapping without a file is the kernel's own code page, or generated code.
    if !is_code || inode == "0" || !path.starts_with('/') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    (start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_and_the_beginning_of_a_file_are_released() {
        let range = |line: &str| code_range(line);
        assert_eq!(range("1000-3000 r-xp 002d3000 fe:00 77   /opt/tickpath"), Some((0x1000, 0x3000)));
        assert_eq!(range("1000-3000 r--p 00000000 fe:00 77   /opt/tickpath"), Some((0x1000, 0x3000)));
        // Mappings not released: relocated, writable, shared, anonymous, the kernel's, and two invalid lines.
        assert_eq!(range("1000-3000 r--p 00fb4000 fe:00 77   /opt/tickpath"), None);
        assert_eq!(range("1000-3000 rw-p 00000000 fe:00 77   /opt/tickpath"), None);
        assert_eq!(range("1000-3000 r--s 00000000 fe:00 77   /dev/shm/prices"), None);
        assert_eq!(range("1000-3000 r-xp 00000000 00:00 0"), None);
        assert_eq!(range("1000-3000 r-xp 00000000 00:00 0    [vdso]"), None);
        assert_eq!(range("3000-1000 r-xp 00000000 fe:00 77   /opt/tickpath"), None);
        assert_eq!(range("x"), None);
    }

    #[test]
    fn the_program_continues_after_the_release() {
        let released = release_code_pages().unwrap();
        assert_eq!(released > 0, cfg!(all(target_os = "linux", not(miri))));
        assert_eq!(format!("{:.3}", 2.0_f64.sqrt()), "1.414");
    }
}
