//! Statements: settlements, deliveries, payments, daily statistics of instruments, and currencies.

use crate::codes::{Direction, Kind, Sorting};
use crate::field::{List, plain_message};
use crate::messages::AccountSummary;
use crate::number::{Decimal, Number};
use crate::scan::Value;
use crate::text::Text;

plain_message! {
    /// Element of the result of `public/get_currencies`.
    pub struct Currency<'a> {
        /// Currency code, as in instruments.
        pub currency: Text<'a>,
        /// Full name.
        pub currency_long: Option<Text<'a>>,
        /// Blockchain of the currency.
        pub coin_type: Option<Text<'a>>,
        /// Decimal places of fees.
        pub fee_precision: Option<u32>,
        /// Blocks required to confirm a deposit.
        pub min_confirmations: Option<u32>,
        /// Minimum fee of a withdrawal.
        pub min_withdrawal_fee: Option<Number<'a>>,
        /// Fee of a withdrawal.
        pub withdrawal_fee: Option<Number<'a>>,
        /// Speeds of withdrawals, and their costs.
        pub withdrawal_priorities: Option<Value<'a>>,
        /// Yearly yield of holding the currency, if any.
        pub apr: Option<Number<'a>>,
        /// True if the currency is part of the cross collateral pool.
        pub in_cross_collateral_pool: Option<bool>,
    }
}

plain_message! {
    /// Result of `public/get_contract_size`.
    #[derive(Copy)]
    pub struct ContractSize {
        /// The amount of one contract.
        pub contract_size: Decimal,
    }
}

plain_message! {
    /// Params of `public/get_book_summary_by_currency`.
    pub struct GetBookSummaryByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only instruments of this kind.
        pub kind: Option<Kind>,
    }
}

plain_message! {
    /// Params of `public/get_book_summary_by_instrument` and `public/get_contract_size`.
    pub struct GetBookSummaryByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
    }
}

plain_message! {
    /// Element of the result of `public/get_book_summary_by_*`.
    pub struct BookSummary<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Base currency.
        pub base_currency: Option<Text<'a>>,
        /// Currency of the prices.
        pub quote_currency: Option<Text<'a>>,
        /// Time of the summary, in milliseconds since 1970.
        pub creation_timestamp: Option<u64>,
        /// Best bid.
        pub bid_price: Option<Decimal>,
        /// Best ask.
        pub ask_price: Option<Decimal>,
        /// Mean of best bid and best ask.
        pub mid_price: Option<Number<'a>>,
        /// Mark price.
        pub mark_price: Option<Number<'a>>,
        /// Price of the last trade.
        pub last: Option<Decimal>,
        /// Highest price in 24 hours.
        pub high: Option<Number<'a>>,
        /// Lowest price in 24 hours.
        pub low: Option<Number<'a>>,
        /// Price change in 24 hours, in percent.
        pub price_change: Option<Number<'a>>,
        /// Volume in 24 hours, in the base coin.
        pub volume: Option<Number<'a>>,
        /// Volume in 24 hours, in USD.
        pub volume_usd: Option<Number<'a>>,
        /// Volume in 24 hours, in the quote currency.
        pub volume_notional: Option<Number<'a>>,
        /// Open interest, in amount.
        pub open_interest: Option<Number<'a>>,
        /// Perpetuals: current funding rate.
        pub current_funding: Option<Number<'a>>,
        /// Perpetuals: funding rate of 8 hours.
        pub funding_8h: Option<Number<'a>>,
        /// Estimated delivery price.
        pub estimated_delivery_price: Option<Number<'a>>,
        /// Options: volatility of the mark price, in percent.
        pub mark_iv: Option<Number<'a>>,
        /// Options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Options: name of the underlying.
        pub underlying_index: Option<Text<'a>>,
        /// Options: interest rate used.
        pub interest_rate: Option<Number<'a>>,
    }
}

plain_message! {
    /// Params of `public/get_funding_rate_value` (result: a number) and `public/get_funding_rate_history`.
    pub struct GetFundingRate<'a> {
        /// The perpetual.
        pub instrument_name: Text<'a>,
        /// Start time in milliseconds since 1970.
        pub start_timestamp: u64,
        /// End time in milliseconds since 1970.
        pub end_timestamp: u64,
    }
}

plain_message! {
    /// Element of the result of `public/get_funding_rate_history`: one hour.
    pub struct FundingRate<'a> {
        /// End of the hour, in milliseconds since 1970.
        pub timestamp: u64,
        /// Index price at the end.
        pub index_price: Option<Number<'a>>,
        /// Index price at the start.
        pub prev_index_price: Option<Number<'a>>,
        /// Funding of the hour, as a fraction of the value.
        pub interest_1h: Option<Number<'a>>,
        /// Funding of the eight hours up to the end, as a fraction of the value.
        pub interest_8h: Option<Number<'a>>,
    }
}

plain_message! {
    /// Params of `public/get_delivery_prices`.
    pub struct GetDeliveryPrices<'a> {
        /// Index name, such as `btc_usd`.
        pub index_name: Text<'a>,
        /// Number of entries to skip, 0 by default.
        pub offset: Option<u32>,
        /// Maximum number of entries, 10 by default, up to 1000.
        pub count: Option<u32>,
    }
}

plain_message! {
    /// Delivery price of one day.
    pub struct DeliveryPrice<'a> {
        /// Date, such as `2026-11-22`.
        pub date: Text<'a>,
        /// Delivery price.
        pub delivery_price: Number<'a>,
    }
}

plain_message! {
    /// Result of `public/get_delivery_prices`.
    pub struct DeliveryPrices<'a> {
        /// Requested entries, latest first.
        pub data: List<'a, DeliveryPrice<'a>>,
        /// Total number of entries.
        pub records_total: u64,
    }
}

plain_message! {
    /// Params of `public/get_last_settlements_by_instrument` and `private/get_settlement_history_by_instrument`.
    pub struct GetSettlementsByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// `settlement`, `delivery` or `bankruptcy`.
        pub kind as "type": Option<Text<'a>>,
        /// Maximum number of entries, 20 by default, up to 1000.
        pub count: Option<u32>,
        /// Continuation from the previous page.
        pub continuation: Option<Text<'a>>,
        /// Latest time, in milliseconds since 1970.
        pub search_start_timestamp: Option<u64>,
    }
}

plain_message! {
    /// Params of `public/get_last_settlements_by_currency` and `private/get_settlement_history_by_currency`.
    pub struct GetSettlementsByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// `settlement`, `delivery` or `bankruptcy`.
        pub kind as "type": Option<Text<'a>>,
        /// Maximum number of entries, 20 by default, up to 1000.
        pub count: Option<u32>,
        /// Continuation from the previous page.
        pub continuation: Option<Text<'a>>,
        /// Latest time, in milliseconds since 1970.
        pub search_start_timestamp: Option<u64>,
    }
}

plain_message! {
    /// A settlement, a delivery or a bankruptcy.
    pub struct Settlement<'a> {
        /// `settlement`, `delivery` or `bankruptcy`.
        pub kind as "type": Text<'a>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The instrument; none for bankruptcies.
        pub instrument_name: Option<Text<'a>>,
        /// Size of the position.
        pub position: Option<Number<'a>>,
        /// Index price at the time of settlement.
        pub index_price: Option<Number<'a>>,
        /// Mark price at the time of settlement.
        pub mark_price: Option<Number<'a>>,
        /// Total profit.
        pub profit_loss: Option<Number<'a>>,
        /// Profit since the previous settlement.
        pub session_profit_loss: Option<Number<'a>>,
        /// Perpetuals: funding.
        pub funding: Option<Number<'a>>,
        /// Bankruptcies: amount that the insurance fund paid.
        pub funded: Option<Number<'a>>,
        /// Bankruptcies: amount taken from profitable accounts (socialised loss).
        pub socialized: Option<Number<'a>>,
    }
}

plain_message! {
    /// Result of `public/get_last_settlements_by_*` and `private/get_settlement_history_by_*`.
    pub struct Settlements<'a> {
        /// Settlements, latest first.
        pub settlements: List<'a, Settlement<'a>>,
        /// Continuation for the next page; `None` for the last page.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `public/get_last_trades_by_currency` and, with times, `..._and_time`.
    pub struct GetLastTradesByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only instruments of this kind.
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
        /// Sort order.
        pub sorting: Option<Sorting>,
    }
}

plain_message! {
    /// Params of `private/get_transaction_log`.
    pub struct GetTransactionLog<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Start time in milliseconds since 1970.
        pub start_timestamp: u64,
        /// End time in milliseconds since 1970.
        pub end_timestamp: u64,
        /// Only transactions of this type.
        pub query: Option<Text<'a>>,
        /// Maximum number of transactions, 100 by default, up to 1000.
        pub count: Option<u32>,
        /// Only transactions of this instrument.
        pub instrument_name: Option<Text<'a>>,
        /// Continuation from the previous page.
        pub continuation: Option<u64>,
    }
}

plain_message! {
    /// A change of a balance: element of [`TransactionLog`].
    pub struct Transaction<'a> {
        /// Number of the transaction.
        pub id: u64,
        /// `trade`, `settlement`, `delivery` and others.
        pub kind as "type": Text<'a>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The currency.
        pub currency: Text<'a>,
        /// Change of the balance.
        pub change: Option<Number<'a>>,
        /// Balance after the transaction.
        pub balance: Option<Number<'a>>,
        /// Equity after the transaction.
        pub equity: Option<Number<'a>>,
        /// Commission.
        pub commission: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// Side, such as `open buy`.
        pub side: Option<Text<'a>>,
        /// The amount.
        pub amount: Option<Number<'a>>,
        /// The amount in contracts.
        pub contracts: Option<Number<'a>>,
        /// Position after the transaction.
        pub position: Option<Number<'a>>,
        /// The price.
        pub price: Option<Number<'a>>,
        /// Mark price.
        pub mark_price: Option<Number<'a>>,
        /// Index price.
        pub index_price: Option<Number<'a>>,
        /// Change of the balance without the commission.
        pub cashflow: Option<Number<'a>>,
        /// True if profit changes the balance at once.
        pub profit_as_cashflow: Option<bool>,
        /// Settlements: funding.
        pub interest_pl: Option<Number<'a>>,
        /// Settlements: profit of the session.
        pub session_rpl: Option<Number<'a>>,
        /// The trade.
        pub trade_id: Option<Text<'a>>,
        /// The order.
        pub order_id: Option<Text<'a>>,
        /// `maker` or `taker`.
        pub user_role: Option<Text<'a>>,
        /// The account.
        pub user_id: Option<u64>,
        /// User name.
        pub username: Option<Text<'a>>,
        /// Number of the transaction within the account.
        pub user_seq: Option<u64>,
        /// Additional data.
        pub info: Option<Value<'a>>,
    }
}

plain_message! {
    /// Result of `private/get_transaction_log`.
    pub struct TransactionLog<'a> {
        /// Transactions, latest first.
        pub logs: List<'a, Transaction<'a>>,
        /// Continuation for the next page; `None` for the last page.
        pub continuation: Option<u64>,
    }
}

plain_message! {
    /// Params of `private/get_margins`.
    pub struct GetMargins<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// The amount.
        pub amount: Decimal,
        /// The price.
        pub price: Decimal,
    }
}

plain_message! {
    /// Result of `private/get_margins`: the margin that an order would require.
    pub struct Margins<'a> {
        /// Margin of a buy order.
        pub buy: Number<'a>,
        /// Margin of a sell order.
        pub sell: Number<'a>,
        /// Lower end of the trading band.
        pub min_price: Option<Decimal>,
        /// Upper end of the trading band.
        pub max_price: Option<Decimal>,
    }
}

plain_message! {
    /// Params of `private/get_account_summaries`.
    #[derive(Copy)]
    pub struct GetAccountSummaries {
        /// Subaccount.
        pub subaccount_id: Option<u64>,
        /// Include account details.
        pub extended: Option<bool>,
    }
}

plain_message! {
    /// Result of `private/get_account_summaries`.
    pub struct AccountSummaries<'a> {
        /// Account id.
        pub id: Option<u64>,
        /// User name.
        pub username: Option<Text<'a>>,
        /// System name of the account.
        pub system_name: Option<Text<'a>>,
        /// `main` or `subaccount`.
        pub account_type as "type": Option<Text<'a>>,
        /// Self-trade prevention mode.
        pub self_trading_reject_mode: Option<Text<'a>>,
        /// True if the account may quote.
        pub mmp_enabled: Option<bool>,
        /// One summary per currency.
        pub summaries: List<'a, AccountSummary<'a>>,
    }
}

plain_message! {
    /// Params of `private/get_order_history_by_instrument`.
    pub struct GetOrderHistoryByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Maximum number of orders, 20 by default.
        pub count: Option<u32>,
        /// Number of orders to skip, 0 by default.
        pub offset: Option<u32>,
        /// Include orders that ended more than two days ago.
        pub include_old: Option<bool>,
        /// Include orders without any execution.
        pub include_unfilled: Option<bool>,
        /// Return older, indexed orders instead of recent ones.
        pub historical: Option<bool>,
        /// Return an [`OrderHistory`].
        pub with_continuation: Option<bool>,
        /// Continuation from the previous page.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `private/get_order_history_by_currency`.
    pub struct GetOrderHistoryByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only orders of this kind.
        pub kind: Option<Kind>,
        /// Maximum number of orders, 20 by default.
        pub count: Option<u32>,
        /// Number of orders to skip, 0 by default.
        pub offset: Option<u32>,
        /// Include orders that ended more than two days ago.
        pub include_old: Option<bool>,
        /// Include orders without any execution.
        pub include_unfilled: Option<bool>,
        /// Return older, indexed orders instead of recent ones.
        pub historical: Option<bool>,
        /// Return an [`OrderHistory`].
        pub with_continuation: Option<bool>,
        /// Continuation from the previous page.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Result of `private/get_order_history_by_*` with `with_continuation`; without it, a list of orders.
    pub struct OrderHistory<'a> {
        /// Orders, latest first.
        pub orders: List<'a, super::Order<'a>>,
        /// Continuation for the next page; `None` for the last page.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Element of the result of cancel requests with `detailed`: the orders of one instrument.
    pub struct CancelReport<'a> {
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// Currency of the instrument.
        pub currency: Option<Text<'a>>,
        /// Type of the orders: `limit` or `trigger`.
        pub kind as "type": Option<Text<'a>>,
        /// The orders after cancellation.
        pub result: List<'a, super::Order<'a>>,
    }
}

plain_message! {
    /// An element of `otoco_config` of `private/buy` and `private/sell`: an order linked with the main one.
    pub struct LinkedOrder<'a> {
        /// Side of the order.
        pub direction: Direction,
        /// Amount; by default that of the primary order.
        pub amount: Option<Decimal>,
        /// Order type; a limit order by default.
        pub order_type as "type": Option<crate::codes::OrderType>,
        /// Limit price.
        pub price: Option<Decimal>,
        /// Client's label.
        pub label: Option<Text<'a>>,
        /// Time in force.
        pub time_in_force: Option<crate::codes::TimeInForce>,
        /// Post-only: the order must not take liquidity.
        pub post_only: bool,
        /// With `post_only`: reject rather than reprice.
        pub reject_post_only: bool,
        /// Reduce-only: the order must not increase the position.
        pub reduce_only: bool,
        /// Price that the trigger watches.
        pub trigger: Option<crate::codes::Trigger>,
        /// Trigger price.
        pub trigger_price: Option<Decimal>,
        /// Trailing stops: the distance.
        pub trigger_offset: Option<Decimal>,
    }
}

plain_message! {
    /// The params of `private/buy` and `private/sell` that link other orders with the primary order. They are
    /// in the same object as those of [`PlaceOrder`](super::PlaceOrder).
    pub struct Links<'a> {
        /// `one_triggers_other`, `one_cancels_other` or `one_triggers_one_cancels_other`.
        pub linked_order_type: Option<Text<'a>>,
        /// Condition that releases the linked orders: `first_hit`, `complete_fill` or `incremental`.
        pub trigger_fill_condition: Option<Text<'a>>,
        /// The linked orders.
        pub otoco_config: Option<List<'a, LinkedOrder<'a>>>,
    }
}
