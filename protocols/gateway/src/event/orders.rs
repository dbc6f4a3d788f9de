//! What becomes of orders.

use super::bodies;
use crate::field::structures;
use crate::{
    AckStatus, AckType, ErrorCode, ExecutionFlags, Fixed, Liquidity, Money, OrderStatus, OrderType, Origin,
    Reserved, Side, Text, TimeInForce, Trigger, UpdateKind,
};

structures! {
    /// State of a request: first from the gateway ([`AckStatus::RECEIVED`], or refused), then from the venue.
    OrderAck "order_ack" {
        /// The client's id of the order.
        client_order_id: u64,
        /// The gateway's id of the order, 10,000,001 and up; 0 when it was refused before it had one.
        order_id: u64,
        /// The client's id of the request.
        request_id: u64,
        /// The venue's id of the order; empty until it has one.
        external_order_id: Text<24>,
        /// From the client's making of the request to this event, in nanoseconds.
        round_trip_ns: u64,
        /// Who says it.
        origin: Origin,
        /// What became of it.
        status: AckStatus,
        /// Which request.
        request: AckType,
        /// Side of the order.
        side: Side,
        /// Why it was refused.
        error: ErrorCode,
        /// Zero.
        reserved: Reserved<2>,
        /// The same for people, with the venue's own words and number.
        text: Text<48>,
    }

    /// How an order stands.
    OrderUpdate "order_update" {
        /// The client's id of the order; 0 for quotes, and when no client of this gateway made it.
        client_order_id: u64,
        /// The gateway's id of the order.
        order_id: u64,
        /// The venue's id of the order.
        external_order_id: Text<24>,
        /// Its price; 0 for a market order.
        price: Fixed,
        /// Its stop price; 0 when it has none.
        stop_price: Fixed,
        /// What can still trade.
        remaining_quantity: Fixed,
        /// What has traded.
        traded_quantity: Fixed,
        /// Mean price of what has traded, rounded toward zero; 0 before.
        average_price: Fixed,
        /// When it was entered at the venue, in nanoseconds since the Unix epoch; 0 when it is not known.
        created_utc_ns: u64,
        /// How it stands.
        status: OrderStatus,
        /// Its side.
        side: Side,
        /// Its type.
        order_type: OrderType,
        /// How long it rests.
        time_in_force: TimeInForce,
        /// What it must or must not do.
        execution: ExecutionFlags,
        /// Whose price wakes it.
        trigger: Trigger,
        /// A state, or a change.
        update: UpdateKind,
        /// Why it has ended, as far as it is known.
        error: ErrorCode,
        /// Zero.
        reserved: Reserved<6>,
    }

    /// One fill of an own order.
    TradeUpdate "trade_update" {
        /// The client's id of the order; 0 for quotes, and when no client of this gateway made it.
        client_order_id: u64,
        /// The gateway's id of the order.
        order_id: u64,
        /// The venue's id of the order.
        external_order_id: Text<24>,
        /// The venue's id of the trade.
        trade_id: Text<24>,
        /// Its price.
        price: Fixed,
        /// Its quantity.
        quantity: Fixed,
        /// What it cost; below 0 when the venue paid.
        fee: Money,
        /// In which currency it did.
        fee_currency: Text<8>,
        /// Side of the order.
        side: Side,
        /// Whether it took or gave.
        liquidity: Liquidity,
        /// A state, or a change.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<5>,
    }

    /// What became of a mass quote, of a request to cancel quotes, or to cancel all orders.
    QuoteAck "quote_ack" {
        /// The client's id of the request.
        request_id: u64,
        /// The client's id of the quotes; 0 for orders.
        quote_set: u64,
        /// From the client's making of the request to this event, in nanoseconds.
        round_trip_ns: u64,
        /// Quotes entered, or orders and quotes canceled, where the venue says it.
        done: u32,
        /// Quotes refused, or orders that were not canceled: the venue refused that, or they had ended otherwise before.
        refused: u32,
        /// Who says it.
        origin: Origin,
        /// What became of it.
        status: AckStatus,
        /// Which request.
        request: AckType,
        /// Zero.
        reserved: Reserved<1>,
        /// Why it was refused.
        error: ErrorCode,
        /// Zero.
        reserved_too: Reserved<2>,
        /// The same for people.
        text: Text<64>,
    }
}

bodies! {
    OrderAck = ORDER_ACK,
    OrderUpdate = ORDER_UPDATE,
    TradeUpdate = TRADE_UPDATE,
    QuoteAck = MASS_QUOTE_ACK,
}
