//! Instruments: lists and states.

use tickpath_types::Nanos;

use super::{PutOrCall, SideCode, SubscriptionRequestType};
use crate::body::{entry, message};
use crate::decimal::Decimal;
use crate::time::{parse_date, parse_time};

message! {
    /// Security List Request (`x`).
    SecurityListRequest<'a> = SECURITY_LIST_REQUEST
    {
        /// The client's id of the request.
        security_req_id: &'a str = SECURITY_REQ_ID,
        /// 0 or 4, which Deribit does not tell apart.
        request_type: u64 = SECURITY_LIST_REQUEST_TYPE,
    }
    {
        /// Once, or also what changes.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
        /// Instruments of this currency.
        currency: &'a str = CURRENCY,
        /// And of this second one.
        secondary_currency: &'a str = SECONDARY_CURRENCY,
        /// Instruments of this type: `FXSPOT`, `FUT`, `OPT`, `FUTCO`, `OPTCO`, `INDEX`.
        security_type: &'a str = SECURITY_TYPE,
        /// Whether ids of the multicast feed are shown.
        display_multicast_id: bool = DISPLAY_MULTICAST_INSTRUMENT_ID,
        /// Whether steps of ticks are shown.
        display_increment_steps: bool = DISPLAY_INCREMENT_STEPS,
    }
    {}
}

entry! {
    /// Another id of an instrument.
    SecurityAltId<'a> in NO_SECURITY_ALT_ID from SECURITY_ALT_ID
    {
        /// The id.
        id: &'a str = SECURITY_ALT_ID,
    }
    {
        /// Whose: 101 multicast feed, 102 combo.
        source: u64 = SECURITY_ALT_ID_SOURCE,
    }
    {}
}

entry! {
    /// A tick size from a price on.
    TickRule<'a> in NO_TICK_RULES from START_TICK_PRICE_RANGE
    {
        /// The first price.
        start_price: Decimal = START_TICK_PRICE_RANGE,
        /// The tick size.
        increment: Decimal = TICK_INCREMENT,
    }
    {}
    {}
    borrows
}

entry! {
    /// An instrument.
    Security<'a> in NO_RELATED_SYM from SYMBOL
    {
        /// Its name.
        symbol: &'a str = SYMBOL,
    }
    {
        /// In words.
        description: &'a str = SECURITY_DESC,
        /// `FXSPOT`, `FUT`, `OPT`, `FUTCO`, `OPTCO`, `INDEX`.
        security_type: &'a str = SECURITY_TYPE,
        /// Kind of an option.
        put_or_call: PutOrCall = PUT_OR_CALL,
        /// Strike of an option.
        strike_price: Decimal = STRIKE_PRICE,
        /// Currency of the strike.
        strike_currency: &'a str = STRIKE_CURRENCY,
        /// Currency.
        currency: &'a str = CURRENCY,
        /// Currency of prices.
        price_quote_currency: &'a str = PRICE_QUOTE_CURRENCY,
        /// Digits of prices after the point.
        price_precision: u64 = INSTRUMENT_PRICE_PRECISION,
        /// Tick size.
        min_price_increment: Decimal = MIN_PRICE_INCREMENT,
        /// What lies under it.
        underlying_symbol: &'a str = UNDERLYING_SYMBOL,
        /// Type of that.
        underlying_type: &'a str = UNDERLYING_SECURITY_TYPE,
        /// First day or time, see [`Security::issued_at`].
        issue_date: &'a str = ISSUE_DATE,
        /// Last day or time, see [`Security::expires_at`].
        maturity_date: &'a str = MATURITY_DATE,
        /// Time of the last day.
        maturity_time: &'a str = MATURITY_TIME,
        /// Smallest quantity, in units.
        min_trade_vol: Decimal = MIN_TRADE_VOL,
        /// `M1`, `W1` and so on.
        settl_type: &'a str = SETTL_TYPE,
        /// Currency of settlement.
        settl_currency: &'a str = SETTL_CURRENCY,
        /// Currency of fees.
        comm_currency: &'a str = COMM_CURRENCY,
        /// Units of a contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// 1 active, 2 terminated, 4 closed, 10 created, 12 settled; in updates.
        status: u64 = SECURITY_STATUS,
    }
    {
        /// Other ids.
        alt_ids: SecurityAltId = NO_SECURITY_ALT_ID,
        /// Tick sizes by price.
        tick_rules: TickRule = NO_TICK_RULES,
    }
}

impl Security<'_> {
    /// When it begins, since the Unix epoch; `None` when absent or written as neither a day nor a time.
    #[must_use]
    pub fn issued_at(&self) -> Option<Nanos> {
        day_or_time(self.issue_date?)
    }

    /// When it ends, since the Unix epoch; `None` when absent or written as neither a day nor a time.
    #[must_use]
    pub fn expires_at(&self) -> Option<Nanos> {
        day_or_time(self.maturity_date?)
    }
}

fn day_or_time(text: &str) -> Option<Nanos> {
    parse_time(text.as_bytes()).or_else(|| parse_date(text.as_bytes()))
}

message! {
    /// Security List (`y`).
    SecurityList<'a> = SECURITY_LIST
    {
        /// The client's id of the request.
        security_req_id: &'a str = SECURITY_REQ_ID,
    }
    {
        /// The venue's id of the answer.
        security_response_id: &'a str = SECURITY_RESPONSE_ID,
        /// 0 when it was done.
        result: u64 = SECURITY_REQUEST_RESULT,
        /// What went wrong.
        text: &'a str = TEXT,
    }
    {
        /// The instruments.
        securities: Security = NO_RELATED_SYM,
    }
}

message! {
    /// Security Status Request (`e`).
    SecurityStatusRequest<'a> = SECURITY_STATUS_REQUEST
    {
        /// The client's id of the request.
        request_id: &'a str = SECURITY_STATUS_REQ_ID,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Once, subscribe or unsubscribe.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
    }
    {}
    {}
}

message! {
    /// Security Status (`f`).
    SecurityStatus<'a> = SECURITY_STATUS_MESSAGE
    {
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// The client's id of the request.
        request_id: &'a str = SECURITY_STATUS_REQ_ID,
        /// 7 ready, 8 not available, 20 unknown.
        trading_status: u64 = SECURITY_TRADING_STATUS,
        /// Bought in 24 hours.
        buy_volume: Decimal = BUY_VOLUME,
        /// Sold in 24 hours.
        sell_volume: Decimal = SELL_VOLUME,
        /// Highest price in 24 hours.
        high_px: Decimal = HIGH_PX,
        /// Lowest price in 24 hours.
        low_px: Decimal = LOW_PX,
        /// Price of the last trade.
        last_px: Decimal = LAST_PX,
        /// What went wrong.
        text: &'a str = TEXT,
    }
    {}
}

entry! {
    /// A part of a combination.
    Leg<'a> in NO_LEGS from LEG_SYMBOL
    {
        /// Its instrument.
        symbol: &'a str = LEG_SYMBOL,
    }
    {
        /// How many of it; of a definition negative where it is sold.
        ratio_qty: Decimal = LEG_RATIO_QTY,
        /// Bought or sold.
        side: SideCode = LEG_SIDE,
    }
    {}
}

message! {
    /// Security Definition Request (`c`): combinations of instruments.
    SecurityDefinitionRequest<'a> = SECURITY_DEFINITION_REQUEST
    {
        /// The client's id of the request.
        security_req_id: &'a str = SECURITY_REQ_ID,
        /// 0 how one is, 1 make one, 3 which there are.
        request_type: u64 = SECURITY_REQUEST_TYPE,
    }
    {
        /// Those of this currency.
        currency: &'a str = CURRENCY,
        /// The one with this id.
        security_id: &'a str = SECURITY_ID,
    }
    {
        /// What it is to be made of.
        legs: Leg = NO_LEGS,
    }
}

message! {
    /// Security Definition (`d`).
    SecurityDefinition<'a> = SECURITY_DEFINITION
    {
        /// As the request said.
        security_req_id: &'a str = SECURITY_REQ_ID,
        /// The venue's id of the answer.
        security_response_id: &'a str = SECURITY_RESPONSE_ID,
        /// 2 accepted, 5 rejected.
        response_type: u64 = SECURITY_RESPONSE_TYPE,
    }
    {
        /// The combination.
        symbol: &'a str = SYMBOL,
        /// Why it was rejected.
        text: &'a str = TEXT,
    }
    {
        /// What it is made of.
        legs: Leg = NO_LEGS,
    }
}
