//! Quotes of market makers, and their protection.

use crate::codes::Kind;
use crate::field::{List, plain_message};
use crate::messages::{Order, UserTrade};
use crate::number::{Decimal, Number};
use crate::scan::Value;
use crate::text::Text;

plain_message! {
    /// One side of a quote.
    #[derive(Copy)]
    pub struct QuoteSide {
        /// Price.
        pub price: Option<Decimal>,
        /// Amount; 0 cancels the side.
        pub amount: Option<Decimal>,
        /// The side must not take liquidity.
        pub post_only: bool,
        /// With `post_only`: reject rather than reprice.
        pub reject_post_only: bool,
    }
}

plain_message! {
    /// A quote of one instrument: element of [`MassQuote`].
    pub struct QuoteEntry<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Id of the set, for cancellation.
        pub quote_set_id: Text<'a>,
        /// Bid.
        pub bid: Option<QuoteSide>,
        /// Ask.
        pub ask: Option<QuoteSide>,
    }
}

plain_message! {
    /// Params of `private/mass_quote`.
    pub struct MassQuote<'a> {
        /// Client's id of the quote, repeated in each of its orders.
        pub quote_id: Text<'a>,
        /// Market maker protection group.
        pub mmp_group: Text<'a>,
        /// Quotes, with at most 100 sides.
        pub quotes: List<'a, QuoteEntry<'a>>,
        /// Whether the reply waits for completion (the default).
        pub wait_for_response: Option<bool>,
        /// Whether the result includes orders and trades.
        pub detailed: bool,
        /// Milliseconds since 1970: the request is rejected if it arrives later.
        pub valid_until: Option<u64>,
    }
}

plain_message! {
    /// Rejection of a side of a quote.
    pub struct QuoteRefusal<'a> {
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// `bid` or `ask`.
        pub side: Option<Text<'a>>,
        /// Id of the set.
        pub quote_set_id: Option<Text<'a>>,
        /// Error code and message, as in a reply.
        pub error: Value<'a>,
    }
}

plain_message! {
    /// Result of `private/mass_quote`.
    pub struct MassQuoteResult<'a> {
        /// Rejected sides.
        pub errors: List<'a, QuoteRefusal<'a>>,
        /// Number of rejected sides.
        pub errors_count: Option<u32>,
        /// Number of orders.
        pub orders_count: Option<u32>,
        /// Number of trades.
        pub trades_count: Option<u32>,
        /// Orders; only with `detailed`.
        pub orders: Option<List<'a, Order<'a>>>,
        /// Trades; only with `detailed`.
        pub trades: Option<List<'a, UserTrade<'a>>>,
    }
}

plain_message! {
    /// Params of `private/cancel_quotes`; the result is a count. `cancel_type` determines the members needed.
    pub struct CancelQuotes<'a> {
        /// `delta`, `quote_set_id`, `instrument`, `instrument_kind`, `currency`, `currency_pair` or `all`.
        pub cancel_type: Text<'a>,
        /// Minimum delta; for `delta`.
        pub min_delta: Option<Decimal>,
        /// Maximum delta; for `delta`.
        pub max_delta: Option<Decimal>,
        /// Id of the set; for `quote_set_id`.
        pub quote_set_id: Option<Text<'a>>,
        /// Instrument; for `instrument`.
        pub instrument_name: Option<Text<'a>>,
        /// Kind; for `instrument_kind`.
        pub kind: Option<Kind>,
        /// Currency; for `currency`, `instrument_kind` and `delta`.
        pub currency: Option<Text<'a>>,
        /// Currency pair; for `currency_pair`.
        pub currency_pair: Option<Text<'a>>,
        /// Return a list of reports.
        pub detailed: bool,
        /// Block new quotes for one second.
        pub freeze_quotes: bool,
    }
}

plain_message! {
    /// Params of `private/set_mmp_config`.
    pub struct SetMmpConfig<'a> {
        /// Index name, such as `btc_usd`.
        pub index_name: Text<'a>,
        /// Period over which trades are summed, in seconds; 0 disables protection.
        pub interval: u32,
        /// Duration of a stop of quoting, in seconds; 0 means until reset.
        pub frozen_time: u32,
        /// Maximum total amount of the quotes on one side.
        pub max_quote_quantity: Option<Decimal>,
        /// Traded amount that stops quoting, in the base coin.
        pub quantity_limit: Option<Decimal>,
        /// Traded delta that stops quoting.
        pub delta_limit: Option<Decimal>,
        /// Traded vega that stops quoting.
        pub vega_limit: Option<Decimal>,
        /// Group of mass quotes.
        pub mmp_group: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `private/get_mmp_config` and `private/get_mmp_status`.
    pub struct GetMmp<'a> {
        /// Index.
        pub index_name: Option<Text<'a>>,
        /// Group.
        pub mmp_group: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `private/reset_mmp`.
    pub struct ResetMmp<'a> {
        /// Index name, such as `btc_usd`.
        pub index_name: Text<'a>,
        /// Group of mass quotes.
        pub mmp_group: Option<Text<'a>>,
    }
}

plain_message! {
    /// Element of the result of `private/set_mmp_config` and `private/get_mmp_config`.
    pub struct MmpConfig<'a> {
        /// Index name, such as `btc_usd`.
        pub index_name: Text<'a>,
        /// Group of mass quotes.
        pub mmp_group: Option<Text<'a>>,
        /// Period over which trades are summed, in seconds.
        pub interval: u32,
        /// Duration of a stop of quoting, in seconds; 0 means until reset.
        pub frozen_time: u32,
        /// Traded amount that stops quoting; 0 for none.
        pub quantity_limit: Option<Number<'a>>,
        /// Traded delta that stops quoting; 0 for none.
        pub delta_limit: Option<Number<'a>>,
        /// Traded vega that stops quoting; 0 for none.
        pub vega_limit: Option<Number<'a>>,
        /// Maximum total amount of the quotes on one side; 0 for none.
        pub max_quote_quantity: Option<Number<'a>>,
    }
}

plain_message! {
    /// Stop of quoting: element of `private/get_mmp_status` results, data of `user.mmp_trigger.{index}`.
    pub struct MmpStatus<'a> {
        /// Index name, such as `btc_usd`.
        pub index_name: Text<'a>,
        /// Group of mass quotes.
        pub mmp_group: Option<Text<'a>>,
        /// End of the stop, in milliseconds since 1970; 0 means until reset.
        pub frozen_until: u64,
    }
}

plain_message! {
    /// Params of `private/set_self_trading_config`.
    pub struct SetSelfTradingConfig<'a> {
        /// `reject_taker` or `cancel_maker`.
        pub mode: Text<'a>,
        /// Whether it applies to subaccounts as well.
        pub extended_to_subaccounts: Option<bool>,
    }
}
