//! Failpoints: mistakes that a test can plant in the system, to verify that its checkers detect them.
//!
//! Every [`Fault`] is a one-line mistake at one point of the code, marked by [`failpoint!`]. Without the
//! feature `planted` the mark compiles to nothing.
//!
//! ```
//! use tickpath_faults::failpoint;
//!
//! fn price_of_trade(taker: i64, resting: i64) -> i64 {
//!     let price = resting;
//!     failpoint!(TradeAtTakersPrice: price = taker);
//!     price
//! }
//!
//! assert_eq!(price_of_trade(11, 10), 10);
//! # #[cfg(feature = "planted")]
//! {
//!     let planted = tickpath_faults::plant(tickpath_faults::Fault::TradeAtTakersPrice);
//!     assert_eq!(price_of_trade(11, 10), 11);
//!     drop(planted);
//!     assert_eq!(price_of_trade(11, 10), 10);
//! }
//! ```

mod fault;
#[cfg(feature = "planted")]
mod planted;

pub use fault::Fault;
#[cfg(feature = "planted")]
pub use planted::{Planted, is_active, plant};

/// Inserts a [`Fault`], given by its variant name, at this point of the code.
///
/// | form | while the fault is planted |
/// |---|---|
/// | `failpoint!(Fault: name = value)` | `name` is shadowed by `value` |
/// | `failpoint!(Fault: mut name => action)` | `name` is shadowed by a mutable copy, and the action runs |
/// | `failpoint!(Fault => action)` | the action runs: a call, a block, `return` |
///
/// With `, for number` at the end of the first or last form, the fault is active only if `number % 16` is 15.
/// Value and action are evaluated only while the fault is planted, and compiled only with the feature
/// `planted`.
#[macro_export]
macro_rules! failpoint {
    ($fault:ident: $name:ident = $value:expr $(, for $number:expr)?) => {
        $crate::if_planted! {
            let is_active = $crate::is_active($crate::Fault::$fault, $crate::failpoint!(@number $($number)?));
            let $name = if is_active { $value } else { $name };
        }
    };
    ($fault:ident: mut $name:ident => $action:expr) => {
        $crate::if_planted! { let mut $name = $name; }
        $crate::failpoint!($fault => $action);
    };
    ($fault:ident => $action:expr $(, for $number:expr)?) => {
        $crate::if_planted! {
            if $crate::is_active($crate::Fault::$fault, $crate::failpoint!(@number $($number)?)) {
                $action;
            }
        }
    };
    (@number) => { None };
    (@number $number:expr) => { Some($number) };
}

/// Compiles its content only with the feature `planted`; for functions that only [`failpoint!`] calls.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! if_planted {
    ($($content:tt)*) => { $($content)* };
}

/// Compiles its content only with the feature `planted`; for functions that only [`failpoint!`] calls.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! if_planted {
    ($($content:tt)*) => {};
}
