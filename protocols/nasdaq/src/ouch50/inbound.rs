//! Messages from a client to the venue.
//!
//! Source: Nasdaq OUCH 5.0 (editions of 2023 and October 2025), "Inbound Messages".

use zerocopy::FromBytes;

use super::codes::*;
use super::options::{Options, Presence};
use super::{ParseError, ouch_messages};
use crate::wire::{Alpha, LongPrice, Shares, Stock, UserRef};

ouch_messages! {
    /// A message from a client to the venue.
    Inbound {}

    /// Enter Order (`O`).
    EnterOrder = b'O', 45, options Always, "Enter Order Message" {
        /// UserRefNum of the order, greater than every earlier one.
        1 user_ref: UserRef,
        /// Side and marking.
        5 side: SideMarking,
        /// Number of shares, 1 to 999,999.
        6 quantity: Shares,
        /// Symbol.
        10 symbol: Stock,
        /// Limit price.
        18 price: LongPrice,
        /// Time in force.
        26 time_in_force: TimeInForceCode,
        /// Display of the order.
        27 display: Display,
        /// Capacity in which the client acts.
        28 capacity: Capacity,
        /// Intermarket sweep order, yes or no.
        29 intermarket_sweep: YesNo,
        /// The market or cross that the order is for.
        30 cross_type: CrossType,
        /// The client's text, to be echoed.
        31 client_order_id: Alpha<14>,
    }

    /// Replace Order Request (`U`).
    ReplaceOrder = b'U', 38, options Always, "Replace Order Request Message" {
        /// UserRefNum of the order to replace.
        1 orig_user_ref: UserRef,
        /// UserRefNum of the new order.
        5 user_ref: UserRef,
        /// Number of shares of the new order, including those that the old one has executed.
        9 quantity: Shares,
        /// The new limit price.
        13 price: LongPrice,
        /// Time in force.
        21 time_in_force: TimeInForceCode,
        /// Display of the order.
        22 display: Display,
        /// Intermarket sweep order, yes or no.
        23 intermarket_sweep: YesNo,
        /// The client's text, to be echoed.
        24 client_order_id: Alpha<14>,
    }

    /// Cancel Order Request (`X`).
    CancelOrder = b'X', 9, options Maybe, "Cancel Order Request Message" {
        /// UserRefNum of the order.
        1 user_ref: UserRef,
        /// The new number of shares, including those executed; 0 cancels all.
        5 quantity: Shares,
    }

    /// Modify Order Request (`M`): reduces the shares or changes the marking of a sale; priority is kept.
    ModifyOrder = b'M', 10, options Maybe, "Modify Order Request Message" {
        /// UserRefNum of the order.
        1 user_ref: UserRef,
        /// The new marking; `B` stays `B`.
        5 side: SideMarking,
        /// The new number of shares, including those executed.
        6 quantity: Shares,
    }

    /// Mass Cancel Request (`C`): cancels the orders of a firm, of one symbol or of all. The answer is a
    /// [`MassCancelResponse`](super::MassCancelResponse).
    MassCancel = b'C', 17, options Maybe, "Mass Cancel Request" of 2025 {
        /// UserRefNum of the request, greater than every earlier one.
        1 user_ref: UserRef,
        /// The firm.
        5 firm: Alpha<4>,
        /// The symbol, blank for all.
        9 symbol: Stock,
    }

    /// Disable Order Entry Request (`D`): stops new orders of the firm. The answer is a
    /// [`DisableOrderEntryResponse`](super::DisableOrderEntryResponse).
    DisableOrderEntry = b'D', 9, options Maybe, "Disable Order Entry Request" of 2025 {
        /// UserRefNum of the request, greater than every earlier one.
        1 user_ref: UserRef,
        /// The firm.
        5 firm: Alpha<4>,
    }

    /// Enable Order Entry Request (`E`): permits new orders of the firm again. The answer is an
    /// [`EnableOrderEntryResponse`](super::EnableOrderEntryResponse).
    EnableOrderEntry = b'E', 9, options Maybe, "Enable Order Entry Request" of 2025 {
        /// UserRefNum of the request, greater than every earlier one.
        1 user_ref: UserRef,
        /// The firm.
        5 firm: Alpha<4>,
    }

    /// Account Query Request (`Q`): queries the next UserRefNum. The answer is a
    /// [`QueryResponse`](super::QueryResponse).
    AccountQuery = b'Q', 1, options Maybe, "Account Query Request Message" {}
}
