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

    /// Enter Order (`O`): enters a new order.
    EnterOrder = b'O', 45, options Always, "Enter Order Message" {
        /// UserRefNum of the order, greater than every earlier one.
        1 user_ref: UserRef,
        /// Side and short sale marking.
        5 side: SideMarking,
        /// Number of shares, 1 to 999,999.
        6 quantity: Shares,
        /// Symbol of the security.
        10 symbol: Stock,
        /// Limit price.
        18 price: LongPrice,
        /// Time in force.
        26 time_in_force: TimeInForceCode,
        /// Display instruction of the order.
        27 display: Display,
        /// Capacity in which the client trades, e.g. as agent.
        28 capacity: Capacity,
        /// `Y` for an intermarket sweep order, else `N`.
        29 intermarket_sweep: YesNo,
        /// The continuous market, or the cross or session for which the order is entered.
        30 cross_type: CrossType,
        /// Client order id: any text, which the venue's answers echo.
        31 client_order_id: Alpha<14>,
    }

    /// Replace Order Request (`U`): replaces an order by a new one.
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
        /// Display instruction of the order.
        22 display: Display,
        /// `Y` for an intermarket sweep order, else `N`.
        23 intermarket_sweep: YesNo,
        /// Client order id: any text, which the venue's answers echo.
        24 client_order_id: Alpha<14>,
    }

    /// Cancel Order Request (`X`): cancels an order, or reduces its number of shares.
    CancelOrder = b'X', 9, options Maybe, "Cancel Order Request Message" {
        /// UserRefNum of the order.
        1 user_ref: UserRef,
        /// New number of shares, including the executed ones; 0 cancels the order.
        5 quantity: Shares,
    }

    /// Modify Order Request (`M`): reduces the shares or changes the short sale marking; the order keeps its
    /// priority.
    ModifyOrder = b'M', 10, options Maybe, "Modify Order Request Message" {
        /// UserRefNum of the order.
        1 user_ref: UserRef,
        /// New short sale marking; a buy order must keep `B`.
        5 side: SideMarking,
        /// New number of shares, including the executed ones.
        6 quantity: Shares,
    }

    /// Mass Cancel Request (`C`): cancels a firm's orders in one symbol or in all symbols. The answer is a
    /// [`MassCancelResponse`](super::MassCancelResponse).
    MassCancel = b'C', 17, options Maybe, "Mass Cancel Request" of 2025 {
        /// UserRefNum of the request, greater than every earlier one.
        1 user_ref: UserRef,
        /// The firm whose orders to cancel.
        5 firm: Alpha<4>,
        /// The symbol whose orders to cancel; blank for all.
        9 symbol: Stock,
    }

    /// Disable Order Entry Request (`D`): blocks new orders of the firm. The answer is a
    /// [`DisableOrderEntryResponse`](super::DisableOrderEntryResponse).
    DisableOrderEntry = b'D', 9, options Maybe, "Disable Order Entry Request" of 2025 {
        /// UserRefNum of the request, greater than every earlier one.
        1 user_ref: UserRef,
        /// The firm whose order entry to disable.
        5 firm: Alpha<4>,
    }

    /// Enable Order Entry Request (`E`): permits new orders of the firm again. The answer is an
    /// [`EnableOrderEntryResponse`](super::EnableOrderEntryResponse).
    EnableOrderEntry = b'E', 9, options Maybe, "Enable Order Entry Request" of 2025 {
        /// UserRefNum of the request, greater than every earlier one.
        1 user_ref: UserRef,
        /// The firm whose order entry to enable.
        5 firm: Alpha<4>,
    }

    /// Account Query Request (`Q`): queries the next UserRefNum. The answer is a
    /// [`QueryResponse`](super::QueryResponse).
    AccountQuery = b'Q', 1, options Maybe, "Account Query Request Message" {}
}
