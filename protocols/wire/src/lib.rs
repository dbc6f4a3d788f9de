//! Macros and types that declare binary exchange protocols: one-byte codes, numeric fields, text, and
//! messages of fixed layout.
//!
//! A message is declared like the table in its specification: offset, name and type of each field. The
//! offsets are checked at compile time. Input is read in place, without a copy. Every byte is accepted as a
//! code: an unlisted one is kept and printed as received. A crate that uses these macros must depend on
//! `zerocopy` itself.
//!
//! ```
//! use tickpath_types::{Qty, Side as OrderSide};
//! use tickpath_wire::{Stock, codes, field, message, maps_to};
//! use zerocopy::byteorder::big_endian::U32;
//! use zerocopy::{FromBytes, IntoBytes};
//!
//! codes! {
//!     /// Side of an order.
//!     Side {
//!         BUY = b'B' "buy",
//!         SELL = b'S' "sell",
//!         SELL_SHORT = b'T' "sell short",
//!     }
//! }
//! maps_to! {
//!     /// The side; `None` for a code that is not listed.
//!     Side, side: OrderSide { BUY = Buy, SELL = Sell, }
//!     read { SELL_SHORT = Sell, }
//! }
//! field! {
//!     /// A quantity of shares in 4 bytes.
//!     Shares(U32: u32) = |bits| Qty { Qty(bits as u64) }
//! }
//! message! {
//!     /// Enter Order (`O`).
//!     EnterOrder = b'O', 14 {
//!         /// Side of the order.
//!         1 side: Side,
//!         /// Number of shares.
//!         2 shares: Shares,
//!         /// Symbol of the stock.
//!         6 stock: Stock,
//!     }
//! }
//!
//! let order = EnterOrder::new(OrderSide::Buy, 300, Stock::new("ACME").unwrap());
//! assert_eq!(order.as_bytes(), b"OB\0\0\x01\x2cACME    ");
//! let read = EnterOrder::ref_from_bytes(order.as_bytes()).unwrap();
//! assert_eq!((read.shares.get(), read.side.meaning()), (Qty(300), Some("buy")));
//! assert_eq!((Side::SELL_SHORT.side(), Side(b'x').side()), (Some(OrderSide::Sell), None));
//! assert_eq!(format!("{:?} {:?}", read.side, Side(b'x')), "'B' (buy) 'x'");
//! ```

mod bits;
mod code;
mod field;
mod malformed;
mod message;
mod messages;
mod text;

pub use bits::{Bits, le_bits};
#[doc(hidden)]
pub use code::fmt_code;
pub use malformed::Malformed;
pub use text::{Alpha, Stock, padded};
