//! Indexes of the two sessions of a recorded flow.

/// Session that enters the resting orders of the recording.
pub(super) const MAKER: usize = 0;
/// Session that enters the orders that trade with the resting orders.
pub(super) const TAKER: usize = 1;
