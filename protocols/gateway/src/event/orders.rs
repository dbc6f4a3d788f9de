//! Order acknowledgements, order states and fills.

use super::bodies;
use crate::field::structures;
use crate::{
    AckStatus, AckType, ErrorCode, ExecutionFlags, Fixed, Liquidity, Money, OrderStatus, OrderType, Origin,
    Reserved, Side, Text, TimeInForce, Trigger, UpdateKind,
};

structures! {
    /// State of a request: first from the gateway ([`AckStatus::RECEIVED`] or rejected), then from the venue.
    OrderAck "order_ack" {
        /// The client's id of the order.
        client_order_id: u64,
        /// The gateway's id of the order, 10,000,001 and up; 0 if rejected before one was assigned.
        order_id: u64,
        /// The client's id of the request.
        request_id: u64,
        /// The venue's id of the order; empty until it has one.
        external_order_id: Text<24>,
        /// Time from the creation of the request at the client to this event, in nanoseconds.
        round_trip_ns: u64,
        /// Source of the ack.
        origin: Origin,
        /// Result of the request.
        status: AckStatus,
        /// Kind of request.
        request: AckType,
        /// Side of the order.
        side: Side,
        /// Reason of the rejection.
        error: ErrorCode,
        /// Zero.
        reserved: Reserved<2>,
        /// The reason as text, with the venue's message and error code.
        text: Text<48>,
    }

    /// State of an order.
    OrderUpdate "order_update" {
        /// The client's id of the order; 0 for quotes and for orders that no client of this gateway entered.
        client_order_id: u64,
        /// The gateway's id of the order.
        order_id: u64,
        /// The venue's id of the order.
        external_order_id: Text<24>,
        /// Limit price; 0 for a market order.
        price: Fixed,
        /// Stop price; 0 if the order has none.
        stop_price: Fixed,
        /// Quantity that can still trade.
        remaining_quantity: Fixed,
        /// Quantity that has traded.
        traded_quantity: Fixed,
        /// Mean price of the fills, rounded toward zero; 0 before the first fill.
        average_price: Fixed,
        /// Time of entry at the venue, in nanoseconds since the Unix epoch; 0 when unknown.
        created_utc_ns: u64,
        /// Order status.
        status: OrderStatus,
        /// Side of the order.
        side: Side,
        /// Order type.
        order_type: OrderType,
        /// Time in force.
        time_in_force: TimeInForce,
        /// Order instructions.
        execution: ExecutionFlags,
        /// Price that triggers a stop order.
        trigger: Trigger,
        /// Snapshot or change.
        update: UpdateKind,
        /// Reason why the order has ended, if known.
        error: ErrorCode,
        /// Zero.
        reserved: Reserved<6>,
    }

    /// One fill of the client's own order.
    TradeUpdate "trade_update" {
        /// The client's id of the order; 0 for quotes and for orders that no client of this gateway entered.
        client_order_id: u64,
        /// The gateway's id of the order.
        order_id: u64,
        /// The venue's id of the order.
        external_order_id: Text<24>,
        /// The venue's id of the trade.
        trade_id: Text<24>,
        /// Price of the fill.
        price: Fixed,
        /// Quantity of the fill.
        quantity: Fixed,
        /// Fee; negative when the venue paid it.
        fee: Money,
        /// Currency of the fee.
        fee_currency: Text<8>,
        /// Side of the order.
        side: Side,
        /// Maker or taker.
        liquidity: Liquidity,
        /// Snapshot or change.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<5>,
    }

    /// Result of a mass quote, of a request to cancel quotes, or of a request to cancel all orders.
    QuoteAck "quote_ack" {
        /// The client's id of the request.
        request_id: u64,
        /// The client's id of the quotes; 0 for orders.
        quote_set: u64,
        /// Time from the creation of the request at the client to this event, in nanoseconds.
        round_trip_ns: u64,
        /// Quotes entered, or orders and quotes canceled, if the venue reports the number.
        done: u32,
        /// Quotes rejected, or orders not canceled because the venue rejected that or they had already ended.
        refused: u32,
        /// Source of the ack.
        origin: Origin,
        /// Result of the request.
        status: AckStatus,
        /// Kind of request.
        request: AckType,
        /// Zero.
        reserved: Reserved<1>,
        /// Reason of the rejection.
        error: ErrorCode,
        /// Zero.
        reserved_too: Reserved<2>,
        /// The reason as text.
        text: Text<64>,
    }
}

bodies! {
    OrderAck = ORDER_ACK,
    OrderUpdate = ORDER_UPDATE,
    TradeUpdate = TRADE_UPDATE,
    QuoteAck = MASS_QUOTE_ACK,
}
