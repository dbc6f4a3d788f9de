//! The error of a bounded container that has no room.

use core::fmt;

/// No room; the item comes back.
///
/// Retry after the other side has made room, or apply the caller's own policy: refuse, drop and
/// count, or disconnect.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("full: retry after the other side has made room, or raise the capacity")]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}
