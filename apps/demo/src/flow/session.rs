//! The two sessions of a recorded flow, by their place among its connections.

/// Enters the orders that rested in the recording.
pub(super) const MAKER: usize = 0;
/// Enters the orders that took them.
pub(super) const TAKER: usize = 1;
