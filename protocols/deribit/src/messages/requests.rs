//! Params of requests about orders, trades, positions and market data.

use crate::codes::{Advanced, Kind, OrderFilter, OrderType, Sorting, TimeInForce, Trigger};
use crate::field::message;
use crate::number::Decimal;
use crate::scan::Value;
use crate::text::Text;

message! {
    /// Params of `private/buy` and `private/sell`. One of amount and contracts is needed.
    pub struct PlaceOrder<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// The amount, as the instrument counts it.
        pub amount: Option<Decimal>,
        /// The amount in contracts; where both are given they must agree.
        pub contracts: Option<Decimal>,
        /// What it is; a limit order by default.
        pub order_type as "type": Option<OrderType>,
        /// Its price; of types with a limit.
        pub price: Option<Decimal>,
        /// The client's text, at most 64 characters.
        pub label: Option<Text<'a>>,
        /// How long it stays; until it is cancelled by default. Not with types without a limit.
        pub time_in_force: Option<TimeInForce>,
        /// It must not take liquidity.
        pub post_only: bool,
        /// It is refused rather than moved; with `post_only`.
        pub reject_post_only: bool,
        /// It must not make the position larger.
        pub reduce_only: bool,
        /// The amount that the book shows.
        pub display_amount: Option<Decimal>,
        /// The price that is watched; of trigger types.
        pub trigger: Option<Trigger>,
        /// The price that fires it; of trigger types.
        pub trigger_price: Option<Decimal>,
        /// The distance; of trailing stops.
        pub trigger_offset: Option<Decimal>,
        /// How it is priced; of options.
        pub advanced: Option<Advanced>,
        /// Market maker protection counts it.
        pub mmp: bool,
        /// Milliseconds since 1970: when the request arrives later it is refused. It does not end the order.
        pub valid_until: Option<u64>,
    }
}

message! {
    /// Params of `private/edit`. What is not given stays, except the flags.
    pub struct EditOrder<'a> {
        /// The order.
        pub order_id: Text<'a>,
        /// All of its amount, with what is executed.
        pub amount: Option<Decimal>,
        /// The same in contracts.
        pub contracts: Option<Decimal>,
        /// The new price.
        pub price: Option<Decimal>,
        /// It must not take liquidity.
        pub post_only: bool,
        /// It must not make the position larger.
        pub reduce_only: bool,
        /// It is cancelled rather than moved; with `post_only`.
        pub reject_post_only: bool,
        /// How it is priced; of options.
        pub advanced: Option<Advanced>,
        /// The price that fires it; of trigger types.
        pub trigger_price: Option<Decimal>,
        /// The distance; of trailing stops.
        pub trigger_offset: Option<Decimal>,
        /// Market maker protection counts it.
        pub mmp: bool,
        /// Milliseconds since 1970: when the request arrives later it is refused.
        pub valid_until: Option<u64>,
        /// The amount that the book shows.
        pub display_amount: Option<Decimal>,
    }
}

message! {
    /// Params of `private/edit_by_label`. The label must be of one order alone.
    pub struct EditByLabel<'a> {
        /// The order's text.
        pub label: Text<'a>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// All of its amount, with what is executed.
        pub amount: Option<Decimal>,
        /// The same in contracts.
        pub contracts: Option<Decimal>,
        /// The new price.
        pub price: Option<Decimal>,
        /// It must not take liquidity.
        pub post_only: bool,
        /// It must not make the position larger.
        pub reduce_only: bool,
        /// It is cancelled rather than moved; with `post_only`.
        pub reject_post_only: bool,
        /// How it is priced; of options.
        pub advanced: Option<Advanced>,
        /// The price that fires it; of trigger types.
        pub trigger_price: Option<Decimal>,
        /// The distance; of trailing stops.
        pub trigger_offset: Option<Decimal>,
        /// Market maker protection counts it.
        pub mmp: bool,
        /// Milliseconds since 1970: when the request arrives later it is refused.
        pub valid_until: Option<u64>,
        /// The amount that the book shows.
        pub display_amount: Option<Decimal>,
    }
}

impl<'a> EditByLabel<'a> {
    /// The same change of an order that is named by its id.
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
    /// Params of `private/cancel_by_label`; the result is how many.
    pub struct CancelByLabel<'a> {
        /// The orders' text.
        pub label: Text<'a>,
        /// Only of this currency: cheaper.
        pub currency: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/cancel_all`; the result is how many.
    pub struct CancelAll {
        /// The result is a list of reports.
        pub detailed: bool,
        /// No new quotes for a second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_instrument`; the result is how many.
    pub struct CancelAllByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// Those of combinations with it too.
        pub include_combos: bool,
        /// The result is a list of reports.
        pub detailed: bool,
        /// No new quotes for a second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_currency`; the result is how many.
    pub struct CancelAllByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// The result is a list of reports.
        pub detailed: bool,
        /// No new quotes for a second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_currency_pair`; the result is how many.
    pub struct CancelAllByCurrencyPair<'a> {
        /// The pair, as `btc_usd`.
        pub currency_pair: Text<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// The result is a list of reports.
        pub detailed: bool,
        /// No new quotes for a second.
        pub freeze_quotes: bool,
    }
}

message! {
    /// Params of `private/cancel_all_by_kind_or_type`; the result is how many.
    pub struct CancelAllByKindOrType<'a> {
        /// The currency, a list of them, or `any`.
        pub currency: Value<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
        /// The result is a list of reports.
        pub detailed: bool,
        /// No new quotes for a second.
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
        /// Of a limit order.
        pub price: Option<Decimal>,
    }
}

message! {
    /// Params of `private/get_open_orders`.
    pub struct GetOpenOrders {
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
    }
}

message! {
    /// Params of `private/get_open_orders_by_instrument`.
    pub struct GetOpenOrdersByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
    }
}

message! {
    /// Params of `private/get_open_orders_by_currency`.
    pub struct GetOpenOrdersByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// Only of this type.
        pub order_type as "type": Option<OrderFilter>,
    }
}

message! {
    /// Params of `private/get_open_orders_by_label`.
    pub struct GetOpenOrdersByLabel<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// The orders' text.
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
        /// The orders' text.
        pub label: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/get_user_trades_by_instrument` and, with times, `..._and_time`.
    pub struct GetUserTradesByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// First number of a trade.
        pub start_seq: Option<u64>,
        /// Last number of a trade.
        pub end_seq: Option<u64>,
        /// Milliseconds since 1970.
        pub start_timestamp: Option<u64>,
        /// Milliseconds since 1970.
        pub end_timestamp: Option<u64>,
        /// At most so many, 10 by default, 1000 at most.
        pub count: Option<u32>,
        /// Older ones, indexed, rather than recent ones.
        pub historical: Option<bool>,
        /// Their order.
        pub sorting: Option<Sorting>,
    }
}

message! {
    /// Params of `private/get_user_trades_by_currency` and, with times, `..._and_time`.
    pub struct GetUserTradesByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// First id of a trade.
        pub start_id: Option<Text<'a>>,
        /// Last id of a trade.
        pub end_id: Option<Text<'a>>,
        /// Milliseconds since 1970.
        pub start_timestamp: Option<u64>,
        /// Milliseconds since 1970.
        pub end_timestamp: Option<u64>,
        /// At most so many, 10 by default, 1000 at most.
        pub count: Option<u32>,
        /// Older ones, indexed, rather than recent ones.
        pub historical: Option<bool>,
        /// Their order.
        pub sorting: Option<Sorting>,
    }
}

message! {
    /// Params of `private/get_user_trades_by_order`; the result is a list of trades, or [`UserTrades`](super::UserTrades).
    pub struct GetUserTradesByOrder<'a> {
        /// The order.
        pub order_id: Text<'a>,
        /// Their order.
        pub sorting: Option<Sorting>,
        /// Older ones, indexed, rather than recent ones.
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
        /// Only of this currency.
        pub currency: Option<Text<'a>>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// Of this subaccount.
        pub subaccount_id: Option<u64>,
    }
}

message! {
    /// Params of `private/get_account_summary`.
    pub struct GetAccountSummary<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Of this subaccount.
        pub subaccount_id: Option<u64>,
        /// With the account's own data.
        pub extended: Option<bool>,
    }
}

message! {
    /// Params of `public/get_order_book`.
    pub struct GetOrderBook<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Levels of each side: 1, 5, 10, 20, 50, 100, 1000 or 10000.
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
        /// The index, as `btc_usd`.
        pub index_name: Text<'a>,
    }
}

message! {
    /// Params of `public/get_last_trades_by_instrument` and, with times, `..._and_time`.
    pub struct GetLastTradesByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// First number of a trade.
        pub start_seq: Option<u64>,
        /// Last number of a trade.
        pub end_seq: Option<u64>,
        /// Milliseconds since 1970.
        pub start_timestamp: Option<u64>,
        /// Milliseconds since 1970.
        pub end_timestamp: Option<u64>,
        /// At most so many, 10 by default, 1000 at most.
        pub count: Option<u32>,
        /// Their order.
        pub sorting: Option<Sorting>,
    }
}

impl<'a> PlaceOrder<'a> {
    /// An order of so much at a price, that stays until it is cancelled.
    #[must_use]
    pub const fn limit(instrument_name: &'a str, amount: Decimal, price: Decimal) -> PlaceOrder<'a> {
        PlaceOrder {
            order_type: Some(OrderType::Limit),
            price: Some(price),
            ..PlaceOrder::market(instrument_name, amount)
        }
    }

    /// An order of so much at what the market is.
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
    /// Changes nothing yet of an order.
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
