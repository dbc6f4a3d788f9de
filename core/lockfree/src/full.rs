//! The error of a full bounded container.

use core::fmt;

/// Error: the container is full. Holds the item that was not added.
///
/// Retry after the consumer has freed capacity, or apply the caller's own policy: refuse, drop and count, or
/// disconnect.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("full: retry after the consumer has freed space, or raise the capacity")]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}
