//! Mistakes that a test can plant in the system, to see whether its checkers find them.
//!
//! Every [`Fault`] is a slip of one line at one place of the system, which asks [`is_planted`] whether to make it. Without
//! the feature `planted` the answer is `false` at compile time, and nothing is left of the place.
//!
//! ```
//! use tickpath_faults::{Fault, is_planted};
//!
//! assert!(!is_planted(Fault::TradeAtTakersPrice));
//! # #[cfg(feature = "planted")]
//! {
//!     let planted = tickpath_faults::plant(Fault::TradeAtTakersPrice);
//!     assert!(is_planted(Fault::TradeAtTakersPrice) && !is_planted(Fault::TradeUntold));
//!     drop(planted);
//!     assert!(!is_planted(Fault::TradeAtTakersPrice));
//! }
//! ```

mod fault;
#[cfg(feature = "planted")]
mod planted;

pub use fault::Fault;
#[cfg(feature = "planted")]
pub use planted::{Planted, plant};

/// A fault that does not show each time shows for one number in so many.
const SHOWS_EVERY: u64 = 16;

/// True when the place of this fault is to make its mistake.
#[inline(always)]
#[must_use]
pub fn is_planted(fault: Fault) -> bool {
    #[cfg(feature = "planted")]
    return planted::is_planted(fault);
    #[cfg(not(feature = "planted"))]
    {
        _ = fault;
        false
    }
}

/// The same, for one number in sixteen: a mistake that is not made each time.
#[inline(always)]
#[must_use]
pub fn is_planted_for(fault: Fault, number: u64) -> bool {
    is_planted(fault) && number % SHOWS_EVERY == SHOWS_EVERY - 1
}
