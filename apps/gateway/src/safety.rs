//! What keeps an order from a real market: caps, limits that a risk manager publishes, the kill switch.
//!
//! That real money is meant at all is checked when the configuration is read. Here is what is asked for each order, in the
//! duty cycle: some loads and comparisons, no allocation and no lock. [`Control`] is the other end: whoever runs the gateway
//! turns the kill switch, and a risk manager publishes limits.

mod caps;
mod control;
mod marker;

pub use caps::{Exposure, RiskLimit};
pub use control::{Control, SafetyChecks};
pub use marker::KillMarker;
