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
        /// Its price.
        pub price: Option<Decimal>,
        /// Its amount; 0 cancels it.
        pub amount: Option<Decimal>,
        /// It must not take liquidity.
        pub post_only: bool,
        /// It is refused rather than moved; with `post_only`.
        pub reject_post_only: bool,
    }
}

plain_message! {
    /// A quote of one instrument: element of [`MassQuote`].
    pub struct QuoteEntry<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// What it can be cancelled by.
        pub quote_set_id: Text<'a>,
        /// What is bought.
        pub bid: Option<QuoteSide>,
        /// What is sold.
        pub ask: Option<QuoteSide>,
    }
}

plain_message! {
    /// Params of `private/mass_quote`.
    pub struct MassQuote<'a> {
        /// The client's text, told with every order of it.
        pub quote_id: Text<'a>,
        /// The group of market maker protection.
        pub mmp_group: Text<'a>,
        /// The quotes, 100 sides at most.
        pub quotes: List<'a, QuoteEntry<'a>>,
        /// Answered once all of it is done; so by default.
        pub wait_for_response: Option<bool>,
        /// The result has orders and trades.
        pub detailed: bool,
        /// Milliseconds since 1970: when the request arrives later it is refused.
        pub valid_until: Option<u64>,
    }
}

plain_message! {
    /// Why a side of a quote was refused.
    pub struct QuoteRefusal<'a> {
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// `bid` or `ask`.
        pub side: Option<Text<'a>>,
        /// The set.
        pub quote_set_id: Option<Text<'a>>,
        /// Its code and message, as an error of a reply.
        pub error: Value<'a>,
    }
}

plain_message! {
    /// Result of `private/mass_quote`.
    pub struct MassQuoteResult<'a> {
        /// What was refused.
        pub errors: List<'a, QuoteRefusal<'a>>,
        /// How much was refused.
        pub errors_count: Option<u32>,
        /// How many orders there are of it.
        pub orders_count: Option<u32>,
        /// How many trades it made.
        pub trades_count: Option<u32>,
        /// The orders; with `detailed`.
        pub orders: Option<List<'a, Order<'a>>>,
        /// The trades; with `detailed`.
        pub trades: Option<List<'a, UserTrade<'a>>>,
    }
}

plain_message! {
    /// Params of `private/cancel_quotes`; the result is how many. `cancel_type` says which of the others are needed.
    pub struct CancelQuotes<'a> {
        /// `delta`, `quote_set_id`, `instrument`, `instrument_kind`, `currency`, `currency_pair` or `all`.
        pub cancel_type: Text<'a>,
        /// Least delta; of `delta`.
        pub min_delta: Option<Decimal>,
        /// Greatest delta; of `delta`.
        pub max_delta: Option<Decimal>,
        /// Of `quote_set_id`.
        pub quote_set_id: Option<Text<'a>>,
        /// Of `instrument`.
        pub instrument_name: Option<Text<'a>>,
        /// Of `instrument_kind`.
        pub kind: Option<Kind>,
        /// Of `currency`, `instrument_kind` and `delta`.
        pub currency: Option<Text<'a>>,
        /// Of `currency_pair`.
        pub currency_pair: Option<Text<'a>>,
        /// The result is a list of reports.
        pub detailed: bool,
        /// No new quotes for a second.
        pub freeze_quotes: bool,
    }
}

plain_message! {
    /// Params of `private/set_mmp_config`.
    pub struct SetMmpConfig<'a> {
        /// As `btc_usd`.
        pub index_name: Text<'a>,
        /// Seconds that trades are summed over; 0 ends protection.
        pub interval: u32,
        /// Seconds that quoting stops; 0 until it is reset.
        pub frozen_time: u32,
        /// The most that the quotes of one side may be.
        pub max_quote_quantity: Option<Decimal>,
        /// Traded amount that stops quoting, in the base coin.
        pub quantity_limit: Option<Decimal>,
        /// Traded delta that stops quoting.
        pub delta_limit: Option<Decimal>,
        /// Traded vega that stops quoting.
        pub vega_limit: Option<Decimal>,
        /// The group; of mass quotes.
        pub mmp_group: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `private/get_mmp_config` and `private/get_mmp_status`.
    pub struct GetMmp<'a> {
        /// Of this index.
        pub index_name: Option<Text<'a>>,
        /// Of this group.
        pub mmp_group: Option<Text<'a>>,
    }
}

plain_message! {
    /// Params of `private/reset_mmp`.
    pub struct ResetMmp<'a> {
        /// As `btc_usd`.
        pub index_name: Text<'a>,
        /// The group; of mass quotes.
        pub mmp_group: Option<Text<'a>>,
    }
}

plain_message! {
    /// Element of the result of `private/set_mmp_config` and `private/get_mmp_config`.
    pub struct MmpConfig<'a> {
        /// As `btc_usd`.
        pub index_name: Text<'a>,
        /// The group; of mass quotes.
        pub mmp_group: Option<Text<'a>>,
        /// Seconds that trades are summed over.
        pub interval: u32,
        /// Seconds that quoting stops; 0 until it is reset.
        pub frozen_time: u32,
        /// Traded amount that stops quoting; 0 for none.
        pub quantity_limit: Option<Number<'a>>,
        /// Traded delta that stops quoting; 0 for none.
        pub delta_limit: Option<Number<'a>>,
        /// Traded vega that stops quoting; 0 for none.
        pub vega_limit: Option<Number<'a>>,
        /// The most that the quotes of one side may be; 0 for any.
        pub max_quote_quantity: Option<Number<'a>>,
    }
}

plain_message! {
    /// Element of the result of `private/get_mmp_status`, and data of `user.mmp_trigger.{index}`: quoting has stopped.
    pub struct MmpStatus<'a> {
        /// As `btc_usd`.
        pub index_name: Text<'a>,
        /// The group; of mass quotes.
        pub mmp_group: Option<Text<'a>>,
        /// Until when, in milliseconds since 1970; 0 until it is reset.
        pub frozen_until: u64,
    }
}

plain_message! {
    /// Params of `private/set_self_trading_config`.
    pub struct SetSelfTradingConfig<'a> {
        /// `reject_taker` or `cancel_maker`.
        pub mode: Text<'a>,
        /// For the subaccounts too.
        pub extended_to_subaccounts: Option<bool>,
    }
}
