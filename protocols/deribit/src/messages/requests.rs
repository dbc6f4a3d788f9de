//! Params of requests about orders, trades, positions and market data.

use crate::codes::{Advanced, Kind, OrderFilter, OrderType, Sorting, TimeInForce, Trigger};
use crate::field::message;
use crate::number::Decimal;
use crate::scan::Value;
use crate::text::Text;

message! {
    /// Params of `private/buy` and `private/sell`. Either the amount or the contracts must be given.
    pub struct PlaceOrder<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Amount, in the unit of the instrument.
        pub amount: Option<Decimal>,
        /// Amount in contracts; must agree with `amount` if both are given.
        pub contracts: Option<Decimal>,
        /// Order type; a limit order by default.
        pub order_type as "type": Option<OrderType>,
        /// Limit price; for types with a limit.
        pub price: Option<Decimal>,
        /// Client's label, at most 64 characters.
        pub label: Option<Text<'a>>,
        /// Time in force; good til cancelled by default. Not for types without a limit.
        pub time_in_force: Option<TimeInForce>,
        /// Post-only: the order must not take liquidity.
        pub post_only: bool,
        /// With `post_only`: reject rather than reprice.
        pub reject_post_only: bool,
        /// Reduce-only: the order must not increase the position.
        pub reduce_only: bool,
        /// Amount displayed in the book.
        pub display_amount: Option<Decimal>,
        /// Price that the trigger watches; for trigger types.
        pub trigger: Option<Trigger>,
        /// Trigger price; for trigger types.
        pub trigger_price: Option<Decimal>,
        /// Distance; for trailing stops.
        pub trigger_offset: Option<Decimal>,
        /// Pricing; for options.
        pub advanced: Option<Advanced>,
        /// Whether market maker protection includes the order.
        pub mmp: bool,
        /// Milliseconds since 1970: a later request is rejected. The order itself does not expire then.
        pub valid_until: Option<u64>,
    }
}

message! {
    /// Params of `private/edit`. Omitted members stay unchanged, except the flags.
    pub struct EditOrder<'a> {
        /// The order.
        pub order_id: Text<'a>,
        /// Total amount, including the executed one.
        pub amount: Option<Decimal>,
        /// Total amount in contracts.
        pub contracts: Option<Decimal>,
        /// New price.
        pub price: Option<Decimal>,
        /// Post-only: the order must not take liquidity.
        pub post_only: bool,
        /// Reduce-only: the order must not increase the position.
        pub reduce_only: bool,
        /// With `post_only`: cancel rather than reprice.
        pub reject_post_only: bool,
        /// Pricing; for options.
        pub advanced: Option<Advanced>,
        /// Trigger price; for trigger types.
        pub trigger_price: Option<Decimal>,
        /// Distance; for trailing stops.
        pub trigger_offset: Option<Decimal>,
        /// Whether market maker protection includes the order.
        pub mmp: bool,
        /// Milliseconds since 1970: the request is rejected if it arrives later.
        pub valid_until: Option<u64>,
        /// Amount displayed in the book.
        pub display_amount: Option<Decimal>,
    }
}

message! {
    /// Params of `private/edit_by_label`. The label must identify a single order.
    pub struct EditByLabel<'a> {
        /// Label of the order.
        pub label: Text<'a>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Total amount, including the executed one.
        pub amount: Option<Decimal>,
        /// Total amount in contracts.
        pub contracts: Option<Decimal>,
        /// New price.
        pub price: Option<Decimal>,
        /// Post-only: the order must not take liquidity.
        pub post_only: bool,
        /// Reduce-only: the order must not increase the position.
        pub reduce_only: bool,
        /// With `post_only`: cancel rather than reprice.
        pub reject_post_only: bool,
        /// Pricing; for options.
        pub advanced: Option<Advanced>,
        /// Trigger price; for trigger types.
        pub trigger_price: Option<Decimal>,
        /// Distance; for trailing stops.
        pub trigger_offset: Option<Decimal>,
        /// Whether market maker protection includes the order.
        pub mmp: bool,
        /// Milliseconds since 1970: the request is rejected if it arrives later.
        pub valid_until: Option<u64>,
        /// Amount displayed in the book.
        pub display_amount: Option<Decimal>,
    }
}

impl<'a> EditByLabel<'a> {
    /// Returns the same change for an order identified by its id.
    #[must_use]
    pub fn of_order(&self, order_id: &'a str) -> EditOrder<'a> {
        EditOrder {
            order_id: Text::new(order_id),
            amount: self.amount,
            contracts: self.contracts,
            price: self.price,
            post_only: self.post_only,
            reduce_only: self.reduce_only,
            reject_post_only: self.reject_post_only,
            advanced: self.advanced,
            trigger_price: self.trigger_price,
            trigger_offset: self.trigger_offset,
            mmp: self.mmp,
            valid_until: self.valid_until,
            display_amount: self.display_amount,
        }
    }
}

message! {
    /// Params of `private/cancel`.
    pub struct CancelOrder<'a> {
        /// The order.
        pub order_id: Text<'a>,
    }
}

message! {
    /// Params of `private/cancel_by_label`; the result is a count.
    pub struct CancelByLabel<'a> {
        /// Label of the orders.
        pub label: Text<'a>,
        /// Only orders of this currency, which costs fewer credits.
        pub currency: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/cancel_all`; the result is a count.
    pub struct CancelAll {
        /// Return a list of reports.
        pub detailed: bool,
        /// Block new quotes for one second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_instrument`; the result is a count.
    pub struct CancelAllByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// Include orders of combinations with the instrument.
        pub include_combos: bool,
        /// Return a list of reports.
        pub detailed: bool,
        /// Block new quotes for one second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_currency`; the result is a count.
    pub struct CancelAllByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only orders of this kind.
        pub kind: Option<Kind>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// Return a list of reports.
        pub detailed: bool,
        /// Block new quotes for one second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_currency_pair`; the result is a count.
    pub struct CancelAllByCurrencyPair<'a> {
        /// Currency pair, such as `btc_usd`.
        pub currency_pair: Text<'a>,
        /// Only orders of this kind.
        pub kind: Option<Kind>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// Return a list of reports.
        pub detailed: bool,
        /// Block new quotes for one second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_kind_or_type`; the result is a count.
    pub struct CancelAllByKindOrType<'a> {
        /// Currency, list of currencies, or `any`.
        pub currency: Value<'a>,
        /// Only orders of this kind.
        pub kind: Option<Kind>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// Return a list of reports.
        pub detailed: bool,
        /// Block new quotes for one second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/close_position`.
    pub struct ClosePosition<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// `limit` or `market`.
        pub order_type as "type": OrderType,
        /// Price of a limit order.
        pub price: Option<Decimal>,
    }
}

message! {
    /// Params of `private/get_open_orders`.
    pub struct GetOpenOrders {
        /// Only orders of this kind.
        pub kind: Option<Kind>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
    }
}

message! {
    /// Params of `private/get_open_orders_by_instrument`.
    pub struct GetOpenOrdersByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
    }
}

message! {
    /// Params of `private/get_open_orders_by_currency`.
    pub struct GetOpenOrdersByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only orders of this kind.
        pub kind: Option<Kind>,
        /// Only orders of this type.
        pub order_type as "type": Option<OrderFilter>,
    }
}

message! {
    /// Params of `private/get_open_orders_by_label`.
    pub struct GetOpenOrdersByLabel<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Label of the orders.
        pub label: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/get_order_state`.
    pub struct GetOrderState<'a> {
        /// The order.
        pub order_id: Text<'a>,
    }
}

message! {
    /// Params of `private/get_order_state_by_label`.
    pub struct GetOrderStateByLabel<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Label of the orders.
        pub label: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/get_user_trades_by_instrument` and, with times, `..._and_time`.
    pub struct GetUserTradesByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// First trade number.
        pub start_seq: Option<u64>,
        /// Last trade number.
        pub end_seq: Option<u64>,
        /// Start time in milliseconds since 1970.
        pub start_timestamp: Option<u64>,
        /// End time in milliseconds since 1970.
        pub end_timestamp: Option<u64>,
        /// Maximum number of trades, 10 by default, up to 1000.
        pub count: Option<u32>,
        /// Return older, indexed trades instead of recent ones.
        pub historical: Option<bool>,
        /// Sort order.
        pub sorting: Option<Sorting>,
    }
}

message! {
    /// Params of `private/get_user_trades_by_currency` and, with times, `..._and_time`.
    pub struct GetUserTradesByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only trades of this kind.
        pub kind: Option<Kind>,
        /// First trade id.
        pub start_id: Option<Text<'a>>,
        /// Last trade id.
        pub end_id: Option<Text<'a>>,
        /// Start time in milliseconds since 1970.
        pub start_timestamp: Option<u64>,
        /// End time in milliseconds since 1970.
        pub end_timestamp: Option<u64>,
        /// Maximum number of trades, 10 by default, up to 1000.
        pub count: Option<u32>,
        /// Return older, indexed trades instead of recent ones.
        pub historical: Option<bool>,
        /// Sort order.
        pub sorting: Option<Sorting>,
    }
}

message! {
    /// Params of `private/get_user_trades_by_order`. Result: a list or [`UserTrades`](super::UserTrades).
    pub struct GetUserTradesByOrder<'a> {
        /// The order.
        pub order_id: Text<'a>,
        /// Sort order.
        pub sorting: Option<Sorting>,
        /// Return older, indexed trades instead of recent ones.
        pub historical: Option<bool>,
    }
}

message! {
    /// Params of `private/get_position`.
    pub struct GetPosition<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
    }
}

message! {
    /// Params of `private/get_positions`.
    pub struct GetPositions<'a> {
        /// Only positions of this currency.
        pub currency: Option<Text<'a>>,
        /// Only positions of this kind.
        pub kind: Option<Kind>,
        /// Subaccount.
        pub subaccount_id: Option<u64>,
    }
}

message! {
    /// Params of `private/get_account_summary`.
    pub struct GetAccountSummary<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Subaccount.
        pub subaccount_id: Option<u64>,
        /// Include account details.
        pub extended: Option<bool>,
    }
}

message! {
    /// Params of `public/get_order_book`.
    pub struct GetOrderBook<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Levels per side: 1, 5, 10, 20, 50, 100, 1000 or 10000.
        pub depth: Option<u32>,
    }
}

message! {
    /// Params of `public/ticker`.
    pub struct GetTicker<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
    }
}

message! {
    /// Params of `public/get_index_price`.
    pub struct GetIndexPrice<'a> {
        /// Index name, such as `btc_usd`.
        pub index_name: Text<'a>,
    }
}

message! {
    /// Params of `public/get_last_trades_by_instrument` and, with times, `..._and_time`.
    pub struct GetLastTradesByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// First trade number.
        pub start_seq: Option<u64>,
        /// Last trade number.
        pub end_seq: Option<u64>,
        /// Start time in milliseconds since 1970.
        pub start_timestamp: Option<u64>,
        /// End time in milliseconds since 1970.
        pub end_timestamp: Option<u64>,
        /// Maximum number of trades, 10 by default, up to 1000.
        pub count: Option<u32>,
        /// Sort order.
        pub sorting: Option<Sorting>,
    }
}

impl<'a> PlaceOrder<'a> {
    /// Creates a limit order with this amount and price, good til cancelled.
    #[must_use]
    pub const fn limit(instrument_name: &'a str, amount: Decimal, price: Decimal) -> PlaceOrder<'a> {
        PlaceOrder {
            order_type: Some(OrderType::Limit),
            price: Some(price),
            ..PlaceOrder::market(instrument_name, amount)
        }
    }

    /// Creates a market order with this amount.
    #[must_use]
    pub const fn market(instrument_name: &'a str, amount: Decimal) -> PlaceOrder<'a> {
        PlaceOrder {
            instrument_name: Text::new(instrument_name),
            amount: Some(amount),
            contracts: None,
            order_type: Some(OrderType::Market),
            price: None,
            label: None,
            time_in_force: None,
            post_only: false,
            reject_post_only: false,
            reduce_only: false,
            display_amount: None,
            trigger: None,
            trigger_price: None,
            trigger_offset: None,
            advanced: None,
            mmp: false,
            valid_until: None,
        }
    }
}

impl<'a> EditOrder<'a> {
    /// Creates an edit without changes.
    #[must_use]
    pub const fn of(order_id: &'a str) -> EditOrder<'a> {
        EditOrder {
            order_id: Text::new(order_id),
            amount: None,
            contracts: None,
            price: None,
            post_only: false,
            reduce_only: false,
            reject_post_only: false,
            advanced: None,
            trigger_price: None,
            trigger_offset: None,
            mmp: false,
            valid_until: None,
            display_amount: None,
        }
    }
}
