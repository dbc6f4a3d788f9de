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
        /// Request type, 0 or 4; Deribit does not distinguish them.
        request_type: u64 = SECURITY_LIST_REQUEST_TYPE,
    }
    {
        /// Snapshot, or snapshot and updates.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
        /// Currency of the instruments.
        currency: &'a str = CURRENCY,
        /// Second currency of the instruments.
        secondary_currency: &'a str = SECONDARY_CURRENCY,
        /// Type of the instruments: `FXSPOT`, `FUT`, `OPT`, `FUTCO`, `OPTCO`, `INDEX`.
        security_type: &'a str = SECURITY_TYPE,
        /// Whether to include ids of the multicast feed.
        display_multicast_id: bool = DISPLAY_MULTICAST_INSTRUMENT_ID,
        /// Whether to include tick size steps.
        display_increment_steps: bool = DISPLAY_INCREMENT_STEPS,
    }
    {}
}

entry! {
    /// Alternative id of an instrument.
    SecurityAltId<'a> in NO_SECURITY_ALT_ID from SECURITY_ALT_ID
    {
        /// The id.
        id: &'a str = SECURITY_ALT_ID,
    }
    {
        /// Source of the id: 101 multicast feed, 102 combo.
        source: u64 = SECURITY_ALT_ID_SOURCE,
    }
    {}
}

entry! {
    /// A tick size that applies from a price on.
    TickRule<'a> in NO_TICK_RULES from START_TICK_PRICE_RANGE
    {
        /// First price.
        start_price: Decimal = START_TICK_PRICE_RANGE,
        /// Tick size.
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
        /// Name of the instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// Description.
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
        /// Currency of the prices.
        price_quote_currency: &'a str = PRICE_QUOTE_CURRENCY,
        /// Number of decimals of prices.
        price_precision: u64 = INSTRUMENT_PRICE_PRECISION,
        /// Tick size.
        min_price_increment: Decimal = MIN_PRICE_INCREMENT,
        /// Underlying.
        underlying_symbol: &'a str = UNDERLYING_SYMBOL,
        /// Type of the underlying.
        underlying_type: &'a str = UNDERLYING_SECURITY_TYPE,
        /// Issue date or time, see [`Security::issued_at`].
        issue_date: &'a str = ISSUE_DATE,
        /// Expiry date or time, see [`Security::expires_at`].
        maturity_date: &'a str = MATURITY_DATE,
        /// Time of the expiry.
        maturity_time: &'a str = MATURITY_TIME,
        /// Minimum quantity, in units.
        min_trade_vol: Decimal = MIN_TRADE_VOL,
        /// Settlement type: `M1`, `W1` etc.
        settl_type: &'a str = SETTL_TYPE,
        /// Settlement currency.
        settl_currency: &'a str = SETTL_CURRENCY,
        /// Fee currency.
        comm_currency: &'a str = COMM_CURRENCY,
        /// Units per contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Status in updates: 1 active, 2 terminated, 4 closed, 10 created, 12 settled.
        status: u64 = SECURITY_STATUS,
    }
    {
        /// Alternative ids.
        alt_ids: SecurityAltId = NO_SECURITY_ALT_ID,
        /// Tick sizes by price.
        tick_rules: TickRule = NO_TICK_RULES,
    }
}

impl Security<'_> {
    /// Issue time since the Unix epoch; `None` if absent or neither a date nor a time.
    #[must_use]
    pub fn issued_at(&self) -> Option<Nanos> {
        day_or_time(self.issue_date?)
    }

    /// Expiry time since the Unix epoch; `None` if absent or neither a date nor a time.
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
        /// The venue's id of the reply.
        security_response_id: &'a str = SECURITY_RESPONSE_ID,
        /// Result; 0 for success.
        result: u64 = SECURITY_REQUEST_RESULT,
        /// Description of an error.
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
        /// Snapshot, subscribe or unsubscribe.
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
        /// Trading status: 7 ready, 8 not available, 20 unknown.
        trading_status: u64 = SECURITY_TRADING_STATUS,
        /// Buy volume in 24 hours.
        buy_volume: Decimal = BUY_VOLUME,
        /// Sell volume in 24 hours.
        sell_volume: Decimal = SELL_VOLUME,
        /// Highest price in 24 hours.
        high_px: Decimal = HIGH_PX,
        /// Lowest price in 24 hours.
        low_px: Decimal = LOW_PX,
        /// Price of the last trade.
        last_px: Decimal = LAST_PX,
        /// Description of an error.
        text: &'a str = TEXT,
    }
    {}
}

entry! {
    /// A leg of a combination.
    Leg<'a> in NO_LEGS from LEG_SYMBOL
    {
        /// Instrument of the leg.
        symbol: &'a str = LEG_SYMBOL,
    }
    {
        /// Ratio; in a definition negative for a sold leg.
        ratio_qty: Decimal = LEG_RATIO_QTY,
        /// Side of the leg.
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
        /// Request type: 0 one definition, 1 create, 3 list.
        request_type: u64 = SECURITY_REQUEST_TYPE,
    }
    {
        /// Currency of the combinations.
        currency: &'a str = CURRENCY,
        /// Id of the combination.
        security_id: &'a str = SECURITY_ID,
    }
    {
        /// Legs of a new combination.
        legs: Leg = NO_LEGS,
    }
}

message! {
    /// Security Definition (`d`).
    SecurityDefinition<'a> = SECURITY_DEFINITION
    {
        /// The client's id of the request.
        security_req_id: &'a str = SECURITY_REQ_ID,
        /// The venue's id of the reply.
        security_response_id: &'a str = SECURITY_RESPONSE_ID,
        /// Response type: 2 accepted, 5 rejected.
        response_type: u64 = SECURITY_RESPONSE_TYPE,
    }
    {
        /// The combination.
        symbol: &'a str = SYMBOL,
        /// Reason for a rejection.
        text: &'a str = TEXT,
    }
    {
        /// Legs of the combination.
        legs: Leg = NO_LEGS,
    }
}
