//! The error of a bounded container that has no room.

use core::fmt;

/// No room; the item comes back.
///
/// Retry after the other side has made room, or apply the caller's own policy: refuse, drop and
/// count, or disconnect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("full: retry after the other side has made room, or raise the capacity")
    }
}

impl<T> core::error::Error for Full<T> {}
