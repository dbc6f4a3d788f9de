//! Book, trades and prices of one instrument, derived from the venue's market events.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tickpath_deribit::codes::{Direction, InstrumentState, Liquidity, OptionType};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{PriceAmount, PublicTrade};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Contract, FundingMeter, Money, Style};
use tickpath_types::{MarketEventKind, MatchId, OrderId, Price, Qty, Side, TradingState};

use crate::day_stats::{Counted, DayStats, Stats};
use crate::json::whole;
use crate::listing::{Listing, decimal_money, figure};
use crate::options::{Black, as_float};

/// Maximum number of trades kept per instrument; the oldest is dropped.
const TRADES_MAX: usize = 20_000;
/// Divisor of the index that gives the maximum distance of the mark price from it.
const BASIS_PART: i64 = 200;
/// Divisor for smoothing the basis: the weight of the latest value is 1 / `BASIS_MEMORY`.
const BASIS_MEMORY: i64 = 32;
/// Number of funding minutes kept: a month.
const FUNDING_MAX: usize = 44_640;

/// A public trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    /// The venue's match id, the same for both sides.
    pub(crate) match_id: MatchId,
    /// Trade number of the instrument, from 1.
    pub(crate) seq: u64,
    pub(crate) at_ms: u64,
    /// Side of the incoming order.
    pub(crate) direction: Side,
    pub(crate) price: Price,
    pub(crate) qty: Qty,
    pub(crate) tick_direction: u8,
    pub(crate) index: Money,
    pub(crate) mark: Price,
    /// Side that was liquidated, if any.
    pub(crate) liquidation: Option<Liquidity>,
}

#[derive(Clone, Copy, Debug)]
struct Resting {
    side: Side,
    price: Price,
    qty: Qty,
}

/// Quantities by price, for both sides.
pub(crate) type Levels = [BTreeMap<i64, u64>; 2];

/// Public state of an instrument.
pub(crate) struct Market {
    orders: HashMap<OrderId, Resting>,
    pub(crate) levels: Levels,
    /// Levels changed by the current command.
    pub(crate) touched: Vec<(Side, i64)>,
    /// Number of the last command that changed a level.
    pub(crate) change_id: u64,
    pub(crate) state: TradingState,
    pub(crate) trades: VecDeque<Trade>,
    next_seq: u64,
    last_tick: u8,
    pub(crate) last: Option<Price>,
    /// Mark price, at which positions are valued.
    pub(crate) mark: Price,
    /// Index price of the underlying, as a number.
    pub(crate) index: Money,
    pub(crate) basis: i64,
    /// Funding, for perpetuals.
    pub(crate) funding: Funding,
    /// Mark price at the last settlement.
    pub(crate) settled: Option<Price>,
    pub(crate) life: Life,
    /// Statistics of the last 24 hours.
    pub(crate) day: DayStats,
}

/// Lifecycle state of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Tradable, unless the venue has halted it.
    Listed,
    /// Expired at this index price; the venue must suspend it.
    Expired(Money),
    /// Delivered at this index price.
    Delivered(Money),
}

/// Funding of a perpetual.
#[derive(Default)]
pub(crate) struct Funding {
    pub(crate) meter: FundingMeter,
    /// Recent payments, oldest first.
    pub(crate) paid: VecDeque<FundingPaid>,
}

/// Funding of one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FundingPaid {
    /// End of the minute.
    pub(crate) at_ms: u64,
    /// 8-hour rate, in 10^-9.
    pub(crate) rate_ppb: i64,
    pub(crate) index: Money,
}

impl Funding {
    pub(crate) fn note(&mut self, paid: FundingPaid) {
        if self.paid.len() == FUNDING_MAX {
            self.paid.pop_front();
        }
        self.paid.push_back(paid);
    }

    /// Returns the funding of the minutes that ended after `from_ms` and not after `to_ms`.
    pub(crate) fn within(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = &FundingPaid> {
        let first = self.paid.partition_point(|paid| paid.at_ms <= from_ms);
        self.paid.range(first..).take_while(move |paid| paid.at_ms <= to_ms)
    }
}

impl Market {
    pub(crate) fn new(index: Money, mark: Price) -> Market {
        Market {
            orders: HashMap::new(),
            levels: Levels::default(),
            touched: Vec::new(),
            change_id: 0,
            state: TradingState::Halted,
            trades: VecDeque::new(),
            next_seq: 1,
            last_tick: 1,
            last: None,
            mark,
            index,
            basis: 0,
            funding: Funding::default(),
            settled: None,
            life: Life::Listed,
            day: DayStats::default(),
        }
    }

    /// Applies a public event; returns its trade, if it is one.
    pub(crate) fn apply(&mut self, kind: &MarketEventKind, at_ms: u64) -> Option<Trade> {
        match *kind {
            MarketEventKind::TradingAction(state) => self.state = state,
            MarketEventKind::Add { order_id, side, price, qty } => {
                self.add(order_id, Resting { side, price, qty });
            }
            MarketEventKind::Executed { order_id, qty, match_id } => {
                let resting = self.take(order_id, qty)?;
                return Some(self.trade(match_id, resting.side.opposite(), resting.price, qty, at_ms));
            }
            MarketEventKind::ExecutedAt { order_id, qty, price, match_id } => {
                let resting = self.take(order_id, qty)?;
                return Some(self.trade(match_id, resting.side.opposite(), price, qty, at_ms));
            }
            MarketEventKind::Traded { side, qty, price, match_id } => {
                return Some(self.trade(match_id, side.opposite(), price, qty, at_ms));
            }
            MarketEventKind::Cross { qty, price, match_id, .. } if qty.0 > 0 => {
                return Some(self.trade(match_id, Side::Buy, price, qty, at_ms));
            }
            MarketEventKind::Reduced { order_id, qty } => _ = self.take(order_id, qty),
            MarketEventKind::Deleted { order_id } => self.remove(order_id),
            MarketEventKind::Replaced { old_order_id, order_id, price, qty } => {
                let side = self.orders.get(&old_order_id).map(|resting| resting.side)?;
                self.remove(old_order_id);
                self.add(order_id, Resting { side, price, qty });
            }
            _ => {}
        }
        None
    }

    fn add(&mut self, id: OrderId, order: Resting) {
        *self.levels[order.side.index()].entry(order.price.0).or_default() += order.qty.0;
        self.touched.push((order.side, order.price.0));
        self.orders.insert(id, order);
    }

    /// Removes quantity from a resting order; returns the order before the change.
    fn take(&mut self, id: OrderId, qty: Qty) -> Option<Resting> {
        let order = self.orders.get_mut(&id)?;
        let before = *order;
        let taken = Qty(qty.0.min(order.qty.0));
        order.qty.0 -= taken.0;
        if order.qty.is_zero() {
            self.orders.remove(&id);
        }
        self.lower(before.side, before.price, taken);
        Some(before)
    }

    fn remove(&mut self, id: OrderId) {
        if let Some(order) = self.orders.remove(&id) {
            self.lower(order.side, order.price, order.qty);
        }
    }

    fn lower(&mut self, side: Side, price: Price, qty: Qty) {
        let levels = &mut self.levels[side.index()];
        if let Some(level) = levels.get_mut(&price.0) {
            *level = level.saturating_sub(qty.0);
            if *level == 0 {
                levels.remove(&price.0);
            }
        }
        self.touched.push((side, price.0));
    }

    fn trade(&mut self, match_id: MatchId, direction: Side, price: Price, qty: Qty, at_ms: u64) -> Trade {
        let tick_direction = match self.last {
            Some(last) if price > last => 0,
            Some(last) if price < last => 2,
            Some(_) => self.last_tick | 1,
            None => 0,
        };
        (self.last_tick, self.last) = (tick_direction, Some(price));
        let trade = Trade {
            match_id,
            seq: self.next_seq,
            at_ms,
            direction,
            price,
            qty,
            tick_direction,
            index: self.index,
            mark: self.mark,
            liquidation: None,
        };
        self.next_seq += 1;
        if self.trades.len() == TRADES_MAX {
            self.trades.pop_front();
        }
        self.trades.push_back(trade);
        trade
    }

    /// Returns the instrument state shown to clients.
    pub(crate) fn listed_state(&self) -> InstrumentState {
        match self.life {
            Life::Listed if self.state == TradingState::Trading => InstrumentState::Open,
            Life::Listed => InstrumentState::Halted,
            Life::Expired(_) => InstrumentState::Settlement,
            Life::Delivered(_) => InstrumentState::Delivered,
        }
    }

    /// Returns the state in the wording of the `instrument.state` channel.
    pub(crate) fn told_state(&self) -> InstrumentState {
        match self.listed_state() {
            InstrumentState::Delivered => InstrumentState::Closed,
            state => state,
        }
    }

    /// Adds a trade to the statistics of the last 24 hours.
    pub(crate) fn count(&mut self, contract: &Contract, trade: &Trade) {
        let (amount, value) = (contract.amount(trade.qty), contract.value(trade.qty, trade.price));
        let is_inverse = contract.style == Style::Inverse;
        let (volume, notional) = if is_inverse { (value, amount) } else { (amount, value) };
        let Trade { at_ms, price, direction: side, qty, .. } = *trade;
        self.day.note(Counted { at_ms, price, volume, notional, side, qty });
    }

    /// Marks a trade of the last command as a liquidation.
    pub(crate) fn mark_forced(&mut self, match_id: MatchId) {
        if let Some(trade) = self.trades.iter_mut().rev().find(|trade| trade.match_id == match_id) {
            trade.liquidation = Some(Liquidity::Taker);
        }
    }

    /// Returns the best price of a side and its quantity.
    pub(crate) fn best(&self, side: Side) -> Option<(Price, Qty)> {
        let levels = &self.levels[side.index()];
        let best = if side == Side::Buy { levels.last_key_value() } else { levels.first_key_value() };
        best.map(|(price, qty)| (Price(*price), Qty(*qty)))
    }

    /// Returns the levels of a side, best first.
    pub(crate) fn depth(&self, side: Side) -> Box<dyn Iterator<Item = (i64, u64)> + '_> {
        let levels = self.levels[side.index()].iter().map(|(price, qty)| (*price, *qty));
        if side == Side::Buy { Box::new(levels.rev()) } else { Box::new(levels) }
    }

    /// Updates the mark price, once a second. A future's is the index plus a smoothed basis. Any other's is
    /// the middle of the book, or the last trade price unless the book has both sides.
    pub(crate) fn remark(&mut self, contract: &Contract, index: Money) {
        self.index = index;
        let middle = match (self.best(Side::Buy), self.best(Side::Sell)) {
            (Some((bid, _)), Some((ask, _))) => Some((bid.0 + ask.0) / 2),
            _ => None,
        };
        let unit = 10_i128.pow(Money::DECIMALS - u32::from(contract.price_decimals));
        let index = i64::try_from(index.0 / unit).unwrap_or(i64::MAX).max(1);
        self.mark = match contract.style {
            Style::Inverse | Style::Linear => {
                let bound = (index / BASIS_PART).max(1);
                let distance = middle.map_or(0, |middle| (middle - index).clamp(-bound, bound));
                self.basis += (distance - self.basis) / BASIS_MEMORY;
                Price((index + self.basis).max(1))
            }
            Style::Spot => Price(middle.or(self.last.map(|last| last.0)).unwrap_or(index).max(1)),
            _ => Price(middle.or(self.last.map(|last| last.0)).unwrap_or(self.mark.0).max(1)),
        };
    }

    /// Returns the valid order prices: within `band_ppm` of the mark price and within the engine's collar.
    pub(crate) fn band(&self, listing: &Listing, band_ppm: u32) -> (Price, Price) {
        let width = (i128::from(self.mark.0) * i128::from(band_ppm) / 1_000_000) as i64;
        let (low, high) = listing.collar;
        if listing.contract.is_option() {
            return self.option_band(listing, band_ppm);
        }
        let min = listing.on_tick(self.mark.0.saturating_sub(width).max(listing.tick.0), true);
        let max = listing.on_tick(self.mark.0.saturating_add(width), false);
        (min.max(low), max.min(high))
    }

    /// Returns the band of an option: a fraction of the underlying around its mark price and its intrinsic
    /// value. Without a price the engine's collar applies.
    fn option_band(&self, listing: &Listing, band_ppm: u32) -> (Price, Price) {
        let (low, high) = listing.collar;
        let is_priced = self.last.is_some() || self.levels.iter().all(|levels| !levels.is_empty());
        let Some(strike) = listing.strike.filter(|_| is_priced) else { return (low, high) };
        let is_call = listing.option_type == Some(OptionType::Call);
        let contract = &listing.contract;
        let paid = contract.payoff(Qty(1), decimal_money(strike), is_call, self.index);
        let amount = contract.amount(Qty(1));
        let intrinsic = listing.price_of(Money::ratio(paid.0, amount.0.max(1)));
        let underlying = if contract.style == Style::InverseOption { Money::ONE } else { self.index };
        let width = listing.price_of(underlying.scaled(band_ppm.into(), 1_000_000)).0;
        let min = self.mark.min(intrinsic).0.saturating_sub(width).max(listing.tick.0);
        let max = self.mark.max(intrinsic).0.saturating_add(width);
        (listing.on_tick(min, true).max(low), listing.on_tick(max, false).min(high))
    }

    /// Returns the statistics of the last 24 hours.
    pub(crate) const fn stats(&self) -> Stats {
        self.day.stats()
    }
}

impl Trade {
    pub(crate) fn write(&self, listing: &Listing, out: &mut Vec<u8>) {
        let (index, mark) = (figure(self.index).to_string(), listing.price(self.mark).to_string());
        let (id, contracts) = (self.id(listing), listing.contracts(self.qty));
        let iv = self.volatility(listing);
        PublicTrade {
            timestamp: self.at_ms,
            price: listing.price(self.price),
            amount: listing.amount(self.qty),
            direction: Direction::from(self.direction),
            index_price: Number::new(&index).ok(),
            instrument_name: Text::new(&listing.name),
            trade_seq: self.seq,
            mark_price: Number::new(&mark).ok(),
            tick_direction: Some(self.tick_direction),
            contracts: Number::new(&contracts).ok(),
            combo_trade_id: None,
            combo_id: None,
            trade_id: Text::new(&id),
            iv: iv.as_deref().and_then(|iv| Number::new(iv).ok()),
            liquidation: self.liquidation,
            block_trade_id: None,
            block_trade_leg_count: None,
            block_rfq_id: None,
        }
        .write(out);
    }

    /// Returns the implied volatility of an option trade, in percent.
    pub(crate) fn volatility(&self, listing: &Listing) -> Option<String> {
        let price = as_float(listing.contract.price(self.price));
        let volatility = Black::of(listing, self.index, self.at_ms)?.volatility(price)?;
        Some(format!("{:.2}", volatility * 100.0))
    }

    /// Returns the id: a number for BTC, with the currency as prefix for all others.
    pub(crate) fn id(&self, listing: &Listing) -> String {
        prefixed(listing, self.match_id.0)
    }
}

/// Formats an id as Deribit does.
pub(crate) fn prefixed(listing: &Listing, number: u64) -> String {
    match listing.currency() {
        "BTC" => number.to_string(),
        currency => format!("{currency}-{number}"),
    }
}

/// Writes a level as in best-levels books.
pub(crate) fn price_amount(listing: &Listing, (price, qty): (i64, u64)) -> PriceAmount {
    PriceAmount { price: listing.price(Price(price)), amount: listing.amount(Qty(qty)) }
}

/// Returns the best price of a side and its amount; both are 0 for an empty side, as on the real venue.
pub(crate) fn best_of(market: &Market, listing: &Listing, side: Side) -> (Decimal, Decimal) {
    match market.best(side) {
        Some((price, qty)) => (listing.price(price), listing.amount(qty)),
        None => (whole(0), whole(0)),
    }
}
