//! The error for bytes that violate a protocol.

use std::fmt;

/// The reason why received bytes violate the protocol. A receiver counts and drops the whole packet, or
/// closes the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}
