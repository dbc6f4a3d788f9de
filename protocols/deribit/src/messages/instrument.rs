//! Instruments and their tick sizes.

use crate::codes::{InstrumentState, InstrumentType, Kind, OptionType};
use crate::field::{List, message};
use crate::number::{Decimal, Number};
use crate::text::Text;

message! {
    /// Params of `public/get_instruments`.
    pub struct GetInstruments<'a> {
        /// Settlement group: `BTC`, `ETH`, `USDC`, `USDT`, `EURR` or `any`.
        pub currency: Text<'a>,
        /// Only instruments of this kind.
        pub kind: Option<Kind>,
        /// Expired instruments instead of active ones.
        pub expired: bool,
    }
}

message! {
    /// Params of `public/get_instrument`.
    pub struct GetInstrument<'a> {
        /// The instrument.
        pub instrument_name: Text<'a>,
    }
}

message! {
    /// A tick size that applies above a price.
    #[derive(Copy)]
    pub struct TickSizeStep {
        /// Prices above this one ...
        pub above_price: Decimal,
        /// ... are multiples of this one.
        pub tick_size: Decimal,
    }
}

message! {
    /// An instrument: an element of the result of `public/get_instruments`. Its values change over time;
    /// query them again every day.
    pub struct Instrument<'a> {
        /// Index that the price follows.
        pub price_index: Option<Text<'a>>,
        /// Kind of the instrument.
        pub kind: Kind,
        /// Name of the instrument.
        pub instrument_name: Text<'a>,
        /// Trading state; only from newer servers.
        pub state: Option<InstrumentState>,
        /// Options: the right.
        pub option_type: Option<OptionType>,
        /// Options: the strike price.
        pub strike: Option<Decimal>,
        /// Maximum leverage.
        pub max_leverage: Option<Number<'a>>,
        /// Maker fee as a fraction of a trade's value.
        pub maker_commission: Option<Decimal>,
        /// Taker fee as a fraction of a trade's value.
        pub taker_commission: Option<Decimal>,
        /// Type, which determines the currency of amount and profit.
        pub instrument_type: Option<InstrumentType>,
        /// Expiry in milliseconds since 1970: the year 3000 for perpetuals, none for pairs.
        pub expiration_timestamp: Option<u64>,
        /// Milliseconds since 1970.
        pub creation_timestamp: Option<u64>,
        /// True while trading is possible.
        pub is_active: bool,
        /// Tick size, unless a tick size step applies.
        pub tick_size: Decimal,
        /// Amount of one contract.
        pub contract_size: Option<Decimal>,
        /// The venue's number of the instrument.
        pub instrument_id: Option<u64>,
        /// Minimum amount, and step of amounts.
        pub min_trade_amount: Decimal,
        /// Liquidation fee as a fraction of the value.
        pub max_liquidation_commission: Option<Decimal>,
        /// `maker_commission` for block trades.
        pub block_trade_commission: Option<Decimal>,
        /// Minimum amount of a block trade.
        pub block_trade_min_trade_amount: Option<Decimal>,
        /// Tick size of a block trade.
        pub block_trade_tick_size: Option<Decimal>,
        /// Currency of margin and profit; none for pairs.
        pub settlement_currency: Option<Text<'a>>,
        /// `month`, `week`, `day` or `perpetual`; none for pairs.
        pub settlement_period: Option<Text<'a>>,
        /// Base currency.
        pub base_currency: Text<'a>,
        /// Counter currency.
        pub counter_currency: Option<Text<'a>>,
        /// Currency of the prices.
        pub quote_currency: Text<'a>,
        /// Tick sizes at higher prices, in ascending order.
        pub tick_size_steps: Option<List<'a, TickSizeStep>>,
    }
}

impl Instrument<'_> {
    /// Tick size at a price: that of the highest step below the price.
    #[must_use]
    pub fn tick_at(&self, price: Decimal) -> Decimal {
        let steps = self.tick_size_steps.as_ref();
        let passed = steps.into_iter().flat_map(|steps| steps.iter().flatten());
        passed
            .filter(|step| price > step.above_price)
            .max_by_key(|step| step.above_price)
            .map_or(self.tick_size, |step| step.tick_size)
    }
}
