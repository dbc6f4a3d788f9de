//! What was settled, delivered, paid; what instruments did in a day; which currencies there are.

use crate::codes::{Direction, Kind, Sorting};
use crate::field::{List, plain_message};
use crate::messages::AccountSummary;
use crate::number::{Decimal, Number};
use crate::scan::Value;
use crate::text::Text;

plain_message! {
    /// Element of the result of `public/get_currencies`.
    pub struct Currency<'a> {
        /// As instruments name it.
        pub currency: Text<'a>,
        /// Its name in full.
        pub currency_long: Option<Text<'a>>,
        /// On which chain it is.
        pub coin_type: Option<Text<'a>>,
        /// Digits after the point of fees.
        pub fee_precision: Option<u32>,
        /// Blocks before a deposit counts.
        pub min_confirmations: Option<u32>,
        /// Least fee of a withdrawal.
        pub min_withdrawal_fee: Option<Number<'a>>,
        /// Fee of a withdrawal.
        pub withdrawal_fee: Option<Number<'a>>,
        /// How fast withdrawals can be, and what that costs.
        pub withdrawal_priorities: Option<Value<'a>>,
        /// The yearly yield of holding it, where there is one.
        pub apr: Option<Number<'a>>,
        /// True when it stands in for others.
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
        /// Only of this kind.
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
        /// The coin.
        pub base_currency: Option<Text<'a>>,
        /// The currency of its prices.
        pub quote_currency: Option<Text<'a>>,
        /// When the summary was made, in milliseconds since 1970.
        pub creation_timestamp: Option<u64>,
        /// Best bid.
        pub bid_price: Option<Decimal>,
        /// Best ask.
        pub ask_price: Option<Decimal>,
        /// The middle of both.
        pub mid_price: Option<Number<'a>>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Number<'a>>,
        /// Last trade.
        pub last: Option<Decimal>,
        /// Highest price of 24 hours.
        pub high: Option<Number<'a>>,
        /// Lowest price of 24 hours.
        pub low: Option<Number<'a>>,
        /// Change of the price in 24 hours, in percent.
        pub price_change: Option<Number<'a>>,
        /// Traded in 24 hours, in the base coin.
        pub volume: Option<Number<'a>>,
        /// Traded in 24 hours, in USD.
        pub volume_usd: Option<Number<'a>>,
        /// Traded in 24 hours, in the quote currency.
        pub volume_notional: Option<Number<'a>>,
        /// Open positions, in amount.
        pub open_interest: Option<Number<'a>>,
        /// Of perpetuals: the funding rate now.
        pub current_funding: Option<Number<'a>>,
        /// Of perpetuals: the funding rate of 8 hours.
        pub funding_8h: Option<Number<'a>>,
        /// Price at which it would be delivered now.
        pub estimated_delivery_price: Option<Number<'a>>,
        /// Of options: volatility of the mark price, in percent.
        pub mark_iv: Option<Number<'a>>,
        /// Of options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Of options: name of the underlying.
        pub underlying_index: Option<Text<'a>>,
        /// Of options: interest rate used.
        pub interest_rate: Option<Number<'a>>,
    }
}

plain_message! {
    /// Params of `public/get_funding_rate_value`, whose result is a number, and `public/get_funding_rate_history`.
    pub struct GetFundingRate<'a> {
        /// The perpetual.
        pub instrument_name: Text<'a>,
        /// Milliseconds since 1970.
        pub start_timestamp: u64,
        /// Milliseconds since 1970.
        pub end_timestamp: u64,
    }
}

plain_message! {
    /// Element of the result of `public/get_funding_rate_history`: an hour.
    pub struct FundingRate<'a> {
        /// Its end, in milliseconds since 1970.
        pub timestamp: u64,
        /// Price of the index then.
        pub index_price: Option<Number<'a>>,
        /// Price of the index at its begin.
        pub prev_index_price: Option<Number<'a>>,
        /// Funding of the hour, as a part of the value.
        pub interest_1h: Option<Number<'a>>,
        /// Funding of the eight hours that end with it.
        pub interest_8h: Option<Number<'a>>,
    }
}

plain_message! {
    /// Params of `public/get_delivery_prices`.
    pub struct GetDeliveryPrices<'a> {
        /// As `btc_usd`.
        pub index_name: Text<'a>,
        /// So many are left out, 0 by default.
        pub offset: Option<u32>,
        /// At most so many, 10 by default, 1000 at most.
        pub count: Option<u32>,
    }
}

plain_message! {
    /// A day's delivery.
    pub struct DeliveryPrice<'a> {
        /// As `2026-11-22`.
        pub date: Text<'a>,
        /// The price.
        pub delivery_price: Number<'a>,
    }
}

plain_message! {
    /// Result of `public/get_delivery_prices`.
    pub struct DeliveryPrices<'a> {
        /// Those asked for, the latest first.
        pub data: List<'a, DeliveryPrice<'a>>,
        /// How many there are.
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
        /// At most so many, 20 by default, 1000 at most.
        pub count: Option<u32>,
        /// Where the page before ended.
        pub continuation: Option<Text<'a>>,
        /// The latest time, in milliseconds since 1970.
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
        /// At most so many, 20 by default, 1000 at most.
        pub count: Option<u32>,
        /// Where the page before ended.
        pub continuation: Option<Text<'a>>,
        /// The latest time, in milliseconds since 1970.
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
        /// The instrument; none of bankruptcies.
        pub instrument_name: Option<Text<'a>>,
        /// Size of the position.
        pub position: Option<Number<'a>>,
        /// Price of the index then.
        pub index_price: Option<Number<'a>>,
        /// The price that profit was reckoned at.
        pub mark_price: Option<Number<'a>>,
        /// What was won in all.
        pub profit_loss: Option<Number<'a>>,
        /// What was won since the settlement before.
        pub session_profit_loss: Option<Number<'a>>,
        /// Of perpetuals: funding.
        pub funding: Option<Number<'a>>,
        /// Of bankruptcies: what the insurance fund gave.
        pub funded: Option<Number<'a>>,
        /// Of bankruptcies: what was taken from those who won.
        pub socialized: Option<Number<'a>>,
    }
}

plain_message! {
    /// Result of `public/get_last_settlements_by_*` and `private/get_settlement_history_by_*`.
    pub struct Settlements<'a> {
        /// The latest first.
        pub settlements: List<'a, Settlement<'a>>,
        /// Asks for the next page; none where there is no other.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `public/get_last_trades_by_currency` and, with times, `..._and_time`.
    pub struct GetLastTradesByCurrency<'a> {
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
        /// Their order.
        pub sorting: Option<Sorting>,
    }
}

plain_message! {
    /// Params of `private/get_transaction_log`.
    pub struct GetTransactionLog<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Milliseconds since 1970.
        pub start_timestamp: u64,
        /// Milliseconds since 1970.
        pub end_timestamp: u64,
        /// Only of this type.
        pub query: Option<Text<'a>>,
        /// At most so many, 100 by default, 1000 at most.
        pub count: Option<u32>,
        /// Only of this instrument.
        pub instrument_name: Option<Text<'a>>,
        /// Where the page before ended.
        pub continuation: Option<u64>,
    }
}

plain_message! {
    /// A change of a balance: element of [`TransactionLog`].
    pub struct Transaction<'a> {
        /// Its number.
        pub id: u64,
        /// `trade`, `settlement`, `delivery` and others.
        pub kind as "type": Text<'a>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The currency.
        pub currency: Text<'a>,
        /// What it changed.
        pub change: Option<Number<'a>>,
        /// The balance after it.
        pub balance: Option<Number<'a>>,
        /// The equity after it.
        pub equity: Option<Number<'a>>,
        /// What it cost.
        pub commission: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// As `open buy`.
        pub side: Option<Text<'a>>,
        /// The amount.
        pub amount: Option<Number<'a>>,
        /// The amount in contracts.
        pub contracts: Option<Number<'a>>,
        /// The position after it.
        pub position: Option<Number<'a>>,
        /// The price.
        pub price: Option<Number<'a>>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Number<'a>>,
        /// Price of the index.
        pub index_price: Option<Number<'a>>,
        /// What it changed without its commission.
        pub cashflow: Option<Number<'a>>,
        /// True where profit changes the balance at once.
        pub profit_as_cashflow: Option<bool>,
        /// Funding, of settlements.
        pub interest_pl: Option<Number<'a>>,
        /// Profit of the session, of settlements.
        pub session_rpl: Option<Number<'a>>,
        /// The trade.
        pub trade_id: Option<Text<'a>>,
        /// The order.
        pub order_id: Option<Text<'a>>,
        /// `maker` or `taker`.
        pub user_role: Option<Text<'a>>,
        /// The account.
        pub user_id: Option<u64>,
        /// Its name.
        pub username: Option<Text<'a>>,
        /// Number of the change within the account.
        pub user_seq: Option<u64>,
        /// More about it.
        pub info: Option<Value<'a>>,
    }
}

plain_message! {
    /// Result of `private/get_transaction_log`.
    pub struct TransactionLog<'a> {
        /// The latest first.
        pub logs: List<'a, Transaction<'a>>,
        /// Asks for the next page; none where there is no other.
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
    /// Result of `private/get_margins`: what an order would hold.
    pub struct Margins<'a> {
        /// Bought.
        pub buy: Number<'a>,
        /// Sold.
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
        /// Of this subaccount.
        pub subaccount_id: Option<u64>,
        /// With the account's own data.
        pub extended: Option<bool>,
    }
}

plain_message! {
    /// Result of `private/get_account_summaries`.
    pub struct AccountSummaries<'a> {
        /// The account.
        pub id: Option<u64>,
        /// Its user's name.
        pub username: Option<Text<'a>>,
        /// Its own name.
        pub system_name: Option<Text<'a>>,
        /// `main` or `subaccount`.
        pub account_type as "type": Option<Text<'a>>,
        /// What happens to orders that would trade with the account itself.
        pub self_trading_reject_mode: Option<Text<'a>>,
        /// True when it may quote.
        pub mmp_enabled: Option<bool>,
        /// One for each currency.
        pub summaries: List<'a, AccountSummary<'a>>,
    }
}

plain_message! {
    /// Params of `private/get_order_history_by_instrument`.
    pub struct GetOrderHistoryByInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// At most so many, 20 by default.
        pub count: Option<u32>,
        /// So many are left out, 0 by default.
        pub offset: Option<u32>,
        /// Those that ended more than two days ago too.
        pub include_old: Option<bool>,
        /// Those that nothing was executed of too.
        pub include_unfilled: Option<bool>,
        /// Older ones, indexed, rather than recent ones.
        pub historical: Option<bool>,
        /// The result is [`OrderHistory`].
        pub with_continuation: Option<bool>,
        /// Where the page before ended.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `private/get_order_history_by_currency`.
    pub struct GetOrderHistoryByCurrency<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// At most so many, 20 by default.
        pub count: Option<u32>,
        /// So many are left out, 0 by default.
        pub offset: Option<u32>,
        /// Those that ended more than two days ago too.
        pub include_old: Option<bool>,
        /// Those that nothing was executed of too.
        pub include_unfilled: Option<bool>,
        /// Older ones, indexed, rather than recent ones.
        pub historical: Option<bool>,
        /// The result is [`OrderHistory`].
        pub with_continuation: Option<bool>,
        /// Where the page before ended.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Result of `private/get_order_history_by_*` with `with_continuation`; without it the orders alone.
    pub struct OrderHistory<'a> {
        /// The latest first.
        pub orders: List<'a, super::Order<'a>>,
        /// Asks for the next page; none where there is no other.
        pub continuation: Option<Text<'a>>,
    }
}

plain_message! {
    /// Element of the result of cancel requests with `detailed`: the orders of an instrument.
    pub struct CancelReport<'a> {
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// Its currency.
        pub currency: Option<Text<'a>>,
        /// Which orders: `limit` or `trigger`.
        pub kind as "type": Option<Text<'a>>,
        /// The orders as they are now.
        pub result: List<'a, super::Order<'a>>,
    }
}

plain_message! {
    /// An element of `otoco_config` of `private/buy` and `private/sell`: an order that is linked with the one entered.
    pub struct LinkedOrder<'a> {
        /// Its side.
        pub direction: Direction,
        /// Its amount; that of the primary order by default.
        pub amount: Option<Decimal>,
        /// What it is; a limit order by default.
        pub order_type as "type": Option<crate::codes::OrderType>,
        /// Its price.
        pub price: Option<Decimal>,
        /// The client's text.
        pub label: Option<Text<'a>>,
        /// How long it stays.
        pub time_in_force: Option<crate::codes::TimeInForce>,
        /// It must not take liquidity.
        pub post_only: bool,
        /// It is refused rather than moved; with `post_only`.
        pub reject_post_only: bool,
        /// It must not make the position larger.
        pub reduce_only: bool,
        /// The price that is watched.
        pub trigger: Option<crate::codes::Trigger>,
        /// The price that fires it.
        pub trigger_price: Option<Decimal>,
        /// The distance; of trailing stops.
        pub trigger_offset: Option<Decimal>,
    }
}

plain_message! {
    /// The params of `private/buy` and `private/sell` that link other orders with the one entered; beside those of
    /// [`PlaceOrder`](super::PlaceOrder), in the same object.
    pub struct Links<'a> {
        /// `one_triggers_other`, `one_cancels_other` or `one_triggers_one_cancels_other`.
        pub linked_order_type: Option<Text<'a>>,
        /// When the others are let go: `first_hit`, `complete_fill` or `incremental`.
        pub trigger_fill_condition: Option<Text<'a>>,
        /// The others.
        pub otoco_config: Option<List<'a, LinkedOrder<'a>>>,
    }
}
