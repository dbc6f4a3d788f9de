//! A value on separate cache lines.

use core::ops::Deref;

/// Keeps a value on cache lines that hold nothing else, so that two cores which write neighbouring values do
/// not contend for a line.
///
/// The alignment is 128 bytes: lines are 64 bytes on x86-64, but its adjacent-line prefetcher fetches them in
/// aligned pairs; on some aarch64 cores the line itself has 128 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Puts `value` on separate cache lines.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_no_pair_of_lines() {
        let pair = [CachePadded::new(1_u8), CachePadded::new(2_u8)];
        let distance = (&raw const *pair[1]).addr() - (&raw const *pair[0]).addr();
        assert_eq!(distance, 128);
        assert_eq!((&raw const *pair[0]).addr() % 128, 0);
    }
}
