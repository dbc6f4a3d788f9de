//! What can be traded, and in which steps.

use crate::codes::{InstrumentState, InstrumentType, Kind, OptionType};
use crate::field::{List, message};
use crate::number::{Decimal, Number};
use crate::text::Text;

message! {
    /// Params of `public/get_instruments`.
    pub struct GetInstruments<'a> {
        /// `BTC`, `ETH`, `USDC`, `USDT`, `EURR` or `any`: the settlement group.
        pub currency: Text<'a>,
        /// Only of this kind.
        pub kind: Option<Kind>,
        /// The expired ones instead.
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
    /// Above a price another tick counts.
    #[derive(Copy)]
    pub struct TickSizeStep {
        /// Prices above this one ...
        pub above_price: Decimal,
        /// ... are multiples of this one.
        pub tick_size: Decimal,
    }
}

message! {
    /// An instrument: an element of the result of `public/get_instruments`. Its values change over time; read them anew
    /// each day.
    pub struct Instrument<'a> {
        /// Which index its price follows.
        pub price_index: Option<Text<'a>>,
        /// What it is.
        pub kind: Kind,
        /// Its name.
        pub instrument_name: Text<'a>,
        /// Whether it can be traded; of newer servers.
        pub state: Option<InstrumentState>,
        /// Of options: the right.
        pub option_type: Option<OptionType>,
        /// Of options: the price at expiry that it is about.
        pub strike: Option<Decimal>,
        /// The most that margin may be multiplied by.
        pub max_leverage: Option<Number<'a>>,
        /// The part of a trade's value that its resting side pays.
        pub maker_commission: Option<Decimal>,
        /// The part of a trade's value that its incoming side pays.
        pub taker_commission: Option<Decimal>,
        /// In what its amount and profit are.
        pub instrument_type: Option<InstrumentType>,
        /// Milliseconds since 1970; perpetuals have one in the year 3000, pairs none.
        pub expiration_timestamp: Option<u64>,
        /// Milliseconds since 1970.
        pub creation_timestamp: Option<u64>,
        /// True while it can be traded.
        pub is_active: bool,
        /// Prices are multiples of it, unless a step says otherwise.
        pub tick_size: Decimal,
        /// The amount of one contract.
        pub contract_size: Option<Decimal>,
        /// Its number at the venue.
        pub instrument_id: Option<u64>,
        /// Least amount and step of amounts.
        pub min_trade_amount: Decimal,
        /// The part of a liquidation's value that it costs.
        pub max_liquidation_commission: Option<Decimal>,
        /// The same as `maker_commission`, of trades arranged elsewhere.
        pub block_trade_commission: Option<Decimal>,
        /// Least amount of a trade arranged elsewhere.
        pub block_trade_min_trade_amount: Option<Decimal>,
        /// Tick of a trade arranged elsewhere.
        pub block_trade_tick_size: Option<Decimal>,
        /// The currency of margin and profit; pairs have none.
        pub settlement_currency: Option<Text<'a>>,
        /// `month`, `week`, `day` or `perpetual`; pairs have none.
        pub settlement_period: Option<Text<'a>>,
        /// The coin.
        pub base_currency: Text<'a>,
        /// The currency it is traded for.
        pub counter_currency: Option<Text<'a>>,
        /// The currency of its prices.
        pub quote_currency: Text<'a>,
        /// Other ticks at higher prices, lowest first.
        pub tick_size_steps: Option<List<'a, TickSizeStep>>,
    }
}

impl Instrument<'_> {
    /// The tick at a price: that of the highest step below the price.
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
