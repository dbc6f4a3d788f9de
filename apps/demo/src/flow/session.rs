//! The two sessions of a recorded flow, by their index among its connections.

/// Enters the resting orders of the recording.
pub(super) const MAKER: usize = 0;
/// Enters the orders that trade with them.
pub(super) const TAKER: usize = 1;
