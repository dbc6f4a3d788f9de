//! Messages from the venue to a client.
//!
//! Source: Nasdaq OUCH 5.0 (editions of 2023 and October 2025), "Outbound Messages".

use tickpath_wire::layout;
use zerocopy::FromBytes;

use super::codes::*;
use super::options::{Options, Presence};
use super::{ParseError, ouch_messages};
use crate::wire::{Alpha, LongPrice, LongTimestamp, MatchNumber, OrderRef, Shares, Stock, UserRef};

layout! {
    /// An order as the venue accepted it: the last part of [`Accepted`] and [`Replaced`].
    ///
    /// Source: Nasdaq OUCH 5.0, "Order Accepted Message" from offset 13 and "Order Replaced Message" from
    /// offset 17; 49 bytes.
    AcceptedOrder, 49 => {
        /// Side and short sale marking.
        0 side: SideMarking,
        /// Number of shares; for a replacement, including those that the old order has executed.
        1 quantity: Shares,
        /// Symbol of the security.
        5 symbol: Stock,
        /// Limit price.
        13 price: LongPrice,
        /// Time in force.
        21 time_in_force: TimeInForceCode,
        /// Display instruction of the order.
        22 display: Display,
        /// The venue's reference of the order.
        23 order_ref: OrderRef,
        /// Capacity in which the client trades, e.g. as agent.
        31 capacity: Capacity,
        /// `Y` for an intermarket sweep order, else `N`.
        32 intermarket_sweep: YesNo,
        /// The continuous market, or the cross or session for which the order was entered.
        33 cross_type: CrossType,
        /// State of the order after acceptance.
        34 order_state: OrderStateCode,
        /// Client order id, as the client sent it.
        35 client_order_id: Alpha<14>,
    }
}

ouch_messages! {
    /// A message from the venue to a client.
    Outbound {
        /// Time of the event, in nanoseconds since midnight.
        common 1 timestamp: LongTimestamp,
    }

    /// System Event (`S`): the trading day started or ended.
    SystemEvent = b'S', 10, options Maybe, "System Event Message" {
        /// Start or end of the day.
        9 event_code: EventCode,
    }

    /// Order Accepted (`A`): the venue accepted a new order.
    Accepted = b'A', 62, options Always, "Order Accepted Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// The order as accepted.
        13 order: AcceptedOrder,
    }

    /// Order Replaced (`U`): a new order took the place of another.
    Replaced = b'U', 66, options Always, "Order Replaced Message" {
        /// UserRefNum of the replaced order.
        9 orig_user_ref: UserRef,
        /// UserRefNum of the replacement.
        13 user_ref: UserRef,
        /// The replacement, as accepted.
        17 order: AcceptedOrder,
    }

    /// Order Canceled (`C`): shares were removed from an order without a trade.
    Canceled = b'C', 18, options Maybe, "Order Canceled Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Number of shares removed by this event.
        13 quantity: Shares,
        /// The reason of the removal.
        17 reason: CancelReasonCode,
    }

    /// AIQ Canceled (`D`): shares were removed from an order that would have traded with an order of the same
    /// owner. The 2025 edition adds a 32nd byte, the owner's self-trade prevention strategy.
    AiqCanceled = b'D', 31, options AfterStrategy, "AIQ Canceled Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Number of shares removed.
        13 decrement_shares: Shares,
        /// The reason of the cancel.
        17 reason: CancelReasonCode,
        /// Number of shares that would have traded.
        18 quantity_prevented: Shares,
        /// Price of the prevented trade.
        22 execution_price: LongPrice,
        /// Liquidity flag of the order in the prevented trade.
        30 liquidity_flag: LiquidityFlag,
    }

    /// Order Executed (`E`): an order traded.
    Executed = b'E', 34, options Always, "Order Executed Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Number of shares traded in this execution.
        13 quantity: Shares,
        /// Execution price.
        17 price: LongPrice,
        /// The order's role in the execution.
        25 liquidity_flag: LiquidityFlag,
        /// Match number of the execution.
        26 match_number: MatchNumber,
    }

    /// Broken Trade (`B`): an earlier execution was canceled.
    BrokenTrade = b'B', 36, options Maybe, "Broken Trade Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Match number of the execution.
        13 match_number: MatchNumber,
        /// The reason why the execution was canceled.
        21 reason: BrokenTradeReason,
        /// Client order id of the order.
        22 client_order_id: Alpha<14>,
    }

    /// Price Correction (`F`): the price of an earlier execution changed.
    PriceCorrection = b'F', 49, options Maybe, "Price Correction Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Number of shares of the corrected execution.
        13 quantity: Shares,
        /// The corrected price.
        17 price: LongPrice,
        /// The order's role in the execution.
        25 liquidity_flag: LiquidityFlag,
        /// Match number of the execution.
        26 match_number: MatchNumber,
        /// The reason of the correction.
        34 reason: Alpha<1>,
        /// Client order id of the order.
        35 client_order_id: Alpha<14>,
    }

    /// Rejected (`J`): a request was refused and had no effect.
    Rejected = b'J', 29, options Maybe, "Rejected Message" {
        /// UserRefNum of the request.
        9 user_ref: UserRef,
        /// The reason of the refusal.
        13 reason: RejectCode,
        /// Client order id of the request.
        15 client_order_id: Alpha<14>,
    }

    /// Cancel Pending (`P`): the order is in a cross and will be canceled after it.
    CancelPending = b'P', 13, options Maybe, "Cancel Pending Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
    }

    /// Cancel Reject (`I`): the order cannot be canceled now.
    CancelReject = b'I', 13, options Maybe, "Cancel Reject Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
    }

    /// Order Priority Update (`T`): the order has a new priority and a new reference.
    PriorityUpdate = b'T', 30, options Maybe, "Order Priority Update Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Price of the order.
        13 price: LongPrice,
        /// Display instruction of the order.
        21 display: Display,
        /// The venue's new reference of the order.
        22 order_ref: OrderRef,
    }

    /// Order Modified (`M`): the number of shares or the short sale marking of an order changed.
    Modified = b'M', 18, options Maybe, "Order Modified Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// Side and short sale marking of the order.
        13 side: SideMarking,
        /// New number of shares of the order, including the executed ones.
        14 quantity: Shares,
    }

    /// Order Restated (`R`): the venue changed the order without a request.
    Restated = b'R', 14, options Always, "Order Restated Message" {
        /// UserRefNum of the order.
        9 user_ref: UserRef,
        /// The reason of the change.
        13 reason: RestateReason,
    }

    /// Mass Cancel Response (`X`): a mass cancel was accepted; the messages of the canceled orders follow.
    MassCancelResponse = b'X', 25, options Maybe, "Mass Cancel Response" of 2025 {
        /// UserRefNum of the request.
        9 user_ref: UserRef,
        /// The firm in the request.
        13 firm: Alpha<4>,
        /// The symbol in the request; blank for all symbols.
        17 symbol: Stock,
    }

    /// Disable Order Entry Response (`G`): new orders of the firm are refused from now on.
    DisableOrderEntryResponse = b'G', 17, options Maybe, "Disable Order Entry Response" of 2025 {
        /// UserRefNum of the request.
        9 user_ref: UserRef,
        /// The firm in the request.
        13 firm: Alpha<4>,
    }

    /// Enable Order Entry Response (`K`): new orders of the firm are accepted again.
    EnableOrderEntryResponse = b'K', 17, options Maybe, "Enable Order Entry Response" of 2025 {
        /// UserRefNum of the request.
        9 user_ref: UserRef,
        /// The firm in the request.
        13 firm: Alpha<4>,
    }

    /// Account Query Response (`Q`): the answer to an Account Query Request.
    QueryResponse = b'Q', 13, options Maybe, "Account Query Response Message" {
        /// The UserRefNum to use next.
        9 next_user_ref: UserRef,
    }
}
