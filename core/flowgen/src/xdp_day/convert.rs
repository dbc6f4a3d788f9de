//! ITCH messages into XDP messages: the same order flow in another protocol.

use rustc_hash::FxHashMap;
use tickpath_nasdaq::itch50::{
    AddOrder, AddOrderMpid, BrokenTrade, CrossTrade, CrossType, EventCode, ImbalanceDirection, Listener,
    NetOrderImbalance, NonCrossTrade, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, RegShoAction, RegShoRestriction, StockDirectory, StockTradingAction, SystemEvent, YesNo,
};
use tickpath_nyse as xdp;
use tickpath_nyse::{
    AuctionType, DeliveryFlag, ExchangeCode, Firm, HaltCondition, ImbalanceSide, MarketState, PositionChange,
    PriceScale, PrintableFlag, SecurityStatusCode, SecurityType, SequenceNumberReset, Side, SsrState,
    TradeCondition, XdpSymbol,
};
use tickpath_types::{Nanos, OrderId, Price, Qty, Symbol};

use super::channel::Channel;
use super::clock::{MIDNIGHT_SECS, NANOS_PER_SECOND, round_down};
use super::counters::XdpDayCounters;
use super::packet::XdpPacket;

/// The market, and its product: NYSE's Integrated Feed.
const MARKET_ID: u16 = 1;
const PRODUCT_ID: u8 = 11;
/// Symbol indexes are the market's own, for all days: they do not begin at 1 and have gaps.
const SYMBOL_INDEX_FIRST: u32 = 1_003;
const SYMBOL_INDEX_STEP: u32 = 7;

/// One replacement with another price in so many is told as a modification of the same order.
const MODIFIED_ONE_IN: u64 = 4;
/// One hidden trade in so many follows news of retail price improvement.
const RETAIL_ONE_IN: u32 = 4;
/// One cross in so many is corrected.
const CORRECTED_ONE_IN: u32 = 64;
/// Prices from this on do not fit four bytes with six decimals as they move.
const SIX_DECIMALS_MAX: Price = Price(5_000_000);
/// A round lot.
const LOT: u32 = 100;
/// Since midnight: where the core session begins and ends.
const CORE_START: Nanos = Nanos::from_secs(9 * 3_600 + 30 * 60);
const CORE_END: Nanos = Nanos::from_secs(16 * 3_600);

/// The venue's index of a security.
const fn symbol_index(security: usize) -> u32 {
    SYMBOL_INDEX_FIRST + SYMBOL_INDEX_STEP * security as u32
}

/// An order that rests, by its ITCH reference.
#[derive(Clone, Copy, Debug)]
struct Resting {
    order_id: u64,
    price: Price,
    volume: u32,
}

/// A symbol as the venue knows it.
#[derive(Clone, Debug)]
struct Listed {
    symbol_seq_num: u32,
    scale: PriceScale,
    state: MarketState,
    ssr: SsrState,
    symbol: Symbol,
}

/// Turns the messages of an ITCH day into packets of XDP channels.
#[derive(Debug)]
pub(super) struct Converter {
    pub channels: Vec<Channel>,
    pub window_ns: u64,
    pub counters: XdpDayCounters,
    resting: FxHashMap<u64, Resting>,
    listed: Vec<Listed>,
    /// The last trade of all, which alone is ever broken.
    last_trade: u32,
    crosses: u32,
}

/// One message being converted, and where its packets go.
pub(super) struct Convert<'a, F> {
    pub converter: &'a mut Converter,
    pub out: &'a mut F,
}

impl Converter {
    pub fn new(channels: u8, symbols: u32, window_ns: u64) -> Converter {
        let listed = Listed {
            symbol_seq_num: 0,
            scale: PriceScale::FOUR_DECIMALS,
            state: MarketState::PRE_OPENING,
            ssr: SsrState::NONE,
            symbol: Symbol([b' '; 8]),
        };
        Converter {
            channels: (1..=channels).map(Channel::new).collect(),
            window_ns,
            counters: XdpDayCounters::default(),
            resting: FxHashMap::default(),
            listed: vec![listed; symbols as usize],
            last_trade: 0,
            crosses: 0,
        }
    }
}

/// Nanoseconds since the Unix epoch, at the resolution of the venue's clock.
fn epoch_ns(ts: Nanos) -> u64 {
    round_down(MIDNIGHT_SECS * NANOS_PER_SECOND + ts.0)
}

const fn nanos_of(epoch_ns: u64) -> u32 {
    (epoch_ns % NANOS_PER_SECOND) as u32
}

const fn secs_of(epoch_ns: u64) -> u32 {
    (epoch_ns / NANOS_PER_SECOND) as u32
}

/// The venue's number of an order: its own in the lower half, then its market and its partition.
const fn order_id(reference: OrderId, partition: u8) -> u64 {
    (reference.0 / 4) & 0xffff_ffff | (MARKET_ID as u64) << 40 | (partition as u64) << 48
}

impl<F: FnMut(XdpPacket)> Convert<'_, F> {
    fn push<M: zerocopy::IntoBytes + zerocopy::Immutable>(
        &mut self,
        security: usize,
        epoch_ns: u64,
        message_type: u16,
        message: &M,
    ) {
        let Converter { channels, window_ns, counters, .. } = &mut *self.converter;
        let place = security % channels.len();
        let count = channels[place].push(epoch_ns, *window_ns, message, self.out);
        counters.note(message_type, count);
    }

    /// The number of the security's next message.
    fn next_seq(&mut self, security: usize) -> u32 {
        let listed = &mut self.converter.listed[security];
        listed.symbol_seq_num += 1;
        listed.symbol_seq_num
    }

    fn units(&self, security: usize, price: Price) -> u32 {
        let scale = self.converter.listed[security].scale;
        scale.units(price).expect("scales are chosen so that every price of the day fits")
    }

    fn partition(&self, security: usize) -> u8 {
        self.converter.channels[security % self.converter.channels.len()].id
    }

    fn status(&mut self, security: usize, ts: Nanos, status: SecurityStatusCode) {
        let ns = epoch_ns(ts);
        let seq = self.next_seq(security);
        let Listed { state, ssr, .. } = self.converter.listed[security];
        let message = xdp::SecurityStatus::new(
            secs_of(ns),
            nanos_of(ns),
            symbol_index(security),
            seq,
            status,
            HaltCondition::NONE,
            0,
            0,
            0,
            ExchangeCode(b' '),
            0,
            0,
            ssr,
            state,
            0,
        );
        self.push(security, ns, xdp::SecurityStatus::TYPE, &message);
    }

    /// Every symbol enters a session.
    fn session(&mut self, ts: Nanos, state: MarketState) {
        for security in 0..self.converter.listed.len() {
            self.converter.listed[security].state = state;
            self.status(security, ts, SecurityStatusCode(state.0));
        }
    }

    fn reset(&mut self, ts: Nanos) {
        let ns = epoch_ns(ts);
        let Converter { channels, counters, .. } = &mut *self.converter;
        for channel in channels {
            let reset = SequenceNumberReset::new(secs_of(ns), nanos_of(ns), PRODUCT_ID, channel.id);
            channel.send_alone(ns, DeliveryFlag::SEQUENCE_RESET, &reset, self.out);
            counters.note(SequenceNumberReset::TYPE, 1);
        }
    }

    fn add(&mut self, security: usize, ts: Nanos, reference: OrderId, add: (Side, Qty, Price), firm: Firm) {
        let (side, Qty(qty), price) = add;
        let (ns, volume) = (epoch_ns(ts), qty as u32);
        let order_id = order_id(reference, self.partition(security));
        self.converter.resting.insert(reference.0, Resting { order_id, price, volume });
        let (seq, units) = (self.next_seq(security), self.units(security, price));
        let message = xdp::AddOrder::new(
            nanos_of(ns),
            symbol_index(security),
            seq,
            order_id,
            units,
            volume,
            side,
            firm,
            0,
        );
        self.push(security, ns, xdp::AddOrder::TYPE, &message);
    }

    fn resting(&mut self, reference: OrderId) -> &mut Resting {
        self.converter.resting.get_mut(&reference.0).expect("the day names orders that rest")
    }

    /// Takes a volume off an order, and the order away when nothing is left.
    fn take(&mut self, reference: OrderId, volume: u32) -> Resting {
        let resting = self.resting(reference);
        resting.volume -= volume;
        let left = *resting;
        if left.volume == 0 {
            self.converter.resting.remove(&reference.0);
        }
        left
    }

    fn execute(
        &mut self,
        at: (usize, Nanos),
        reference: OrderId,
        trade: (u32, u32),
        price: Option<Price>,
        print: bool,
    ) {
        let ((security, ts), (trade_id, volume)) = (at, trade);
        let order = self.take(reference, volume);
        let ns = epoch_ns(ts);
        let seq = self.next_seq(security);
        let units = self.units(security, price.unwrap_or(order.price));
        let printable = if print { PrintableFlag::PRINTED } else { PrintableFlag::NOT_PRINTED };
        self.converter.last_trade = trade_id;
        let message = xdp::OrderExecution::new(
            nanos_of(ns),
            symbol_index(security),
            seq,
            order.order_id,
            trade_id,
            units,
            volume,
            printable,
            0,
            conditions(ts, volume),
        );
        self.push(security, ns, xdp::OrderExecution::TYPE, &message);
    }
}

fn conditions(ts: Nanos, volume: u32) -> [TradeCondition; 4] {
    let is_core = (CORE_START..CORE_END).contains(&ts);
    let extended = if is_core { TradeCondition::NONE } else { TradeCondition::EXTENDED };
    let odd = if volume < LOT { TradeCondition::ODD_LOT } else { TradeCondition::NONE };
    [TradeCondition::REGULAR, TradeCondition::NONE, extended, odd]
}

/// A security's place in the day.
macro_rules! security {
    ($message:expr) => {
        usize::from($message.stock_locate.get().0) - 1
    };
}

impl<F: FnMut(XdpPacket)> Listener for Convert<'_, F> {
    fn on_system_event(&mut self, message: &SystemEvent) {
        let ts = message.timestamp.get();
        match message.event_code {
            EventCode::START_OF_MESSAGES => self.reset(ts),
            EventCode::START_OF_SYSTEM_HOURS => self.session(ts, MarketState::EARLY),
            EventCode::START_OF_MARKET_HOURS => self.session(ts, MarketState::CORE),
            EventCode::END_OF_MARKET_HOURS => self.session(ts, MarketState::LATE),
            EventCode::END_OF_SYSTEM_HOURS => {
                self.session(ts, MarketState::CLOSED);
                self.converter.resting.clear();
            }
            _ => {}
        }
    }

    fn on_stock_directory(&mut self, message: &StockDirectory) {
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let symbol = message.stock.get();
        self.converter.listed[security].symbol = symbol;
        let partition = self.partition(security);
        let mapping = xdp::SymbolIndexMapping::new(
            symbol_index(security),
            XdpSymbol::from(symbol),
            0,
            MARKET_ID,
            partition,
            ExchangeCode::NASDAQ,
            self.converter.listed[security].scale.code(),
            SecurityType::COMMON,
            LOT as u16,
            0,
            0,
            0,
            xdp::YesNo::YES,
            100_u16,
            1_u16,
            0_u16,
        );
        self.push(security, ns, xdp::SymbolIndexMapping::TYPE, &mapping);
        let clear = xdp::SymbolClear::new(secs_of(ns), nanos_of(ns), symbol_index(security), 1);
        self.push(security, ns, xdp::SymbolClear::TYPE, &clear);
    }

    fn on_stock_trading_action(&mut self, message: &StockTradingAction) {
        self.status(security!(message), message.timestamp.get(), SecurityStatusCode::PRE_OPENING);
    }

    fn on_reg_sho_restriction(&mut self, message: &RegShoRestriction) {
        if message.reg_sho_action == RegShoAction::REMAINS {
            let security = security!(message);
            self.converter.listed[security].ssr = SsrState::RESTRICTED;
            self.status(security, message.timestamp.get(), SecurityStatusCode::SSR_DAY_2);
        }
    }

    fn on_add_order(&mut self, message: &AddOrder) {
        let add = (Side(message.side.0), message.shares.get(), message.price.get());
        self.add(security!(message), message.timestamp.get(), message.order_ref.get(), add, Firm::NONE);
    }

    fn on_add_order_mpid(&mut self, message: &AddOrderMpid) {
        let add = (Side(message.side.0), message.shares.get(), message.price.get());
        let firm = Firm::new(message.attribution.as_str()).expect("four characters have room in five");
        self.add(security!(message), message.timestamp.get(), message.order_ref.get(), add, firm);
    }

    fn on_order_executed(&mut self, message: &OrderExecuted) {
        let trade = (message.match_number.get().0 as u32, message.executed_shares.get().0 as u32);
        let at = (security!(message), message.timestamp.get());
        self.execute(at, message.order_ref.get(), trade, None, true);
    }

    fn on_order_executed_with_price(&mut self, message: &OrderExecutedWithPrice) {
        let trade = (message.match_number.get().0 as u32, message.executed_shares.get().0 as u32);
        let at = (security!(message), message.timestamp.get());
        let price = Some(message.execution_price.get());
        self.execute(at, message.order_ref.get(), trade, price, message.printable == YesNo::YES);
    }

    fn on_order_cancel(&mut self, message: &OrderCancel) {
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let order = self.take(message.order_ref.get(), message.canceled_shares.get().0 as u32);
        let (seq, units) = (self.next_seq(security), self.units(security, order.price));
        let modify = xdp::ModifyOrder::new(
            nanos_of(ns),
            symbol_index(security),
            seq,
            order.order_id,
            units,
            order.volume,
            PositionChange::KEPT,
            Side(0),
            0,
        );
        self.push(security, ns, xdp::ModifyOrder::TYPE, &modify);
    }

    fn on_order_delete(&mut self, message: &OrderDelete) {
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let volume = self.resting(message.order_ref.get()).volume;
        let order = self.take(message.order_ref.get(), volume);
        let seq = self.next_seq(security);
        let delete = xdp::DeleteOrder::new(nanos_of(ns), symbol_index(security), seq, order.order_id, 0);
        self.push(security, ns, xdp::DeleteOrder::TYPE, &delete);
    }

    fn on_order_replace(&mut self, message: &OrderReplace) {
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let old = message.original_order_ref.get();
        let (reference, price) = (message.new_order_ref.get(), message.price.get());
        let volume = message.shares.get().0 as u32;
        let was = *self.resting(old);
        self.converter.resting.remove(&old.0);
        let (seq, units) = (self.next_seq(security), self.units(security, price));
        // The same order with another price loses its place too, so the books are the same in both ways.
        if price != was.price && (reference.0 / 4).is_multiple_of(MODIFIED_ONE_IN) {
            self.converter.resting.insert(reference.0, Resting { order_id: was.order_id, price, volume });
            let modify = xdp::ModifyOrder::new(
                nanos_of(ns),
                symbol_index(security),
                seq,
                was.order_id,
                units,
                volume,
                PositionChange::KEPT,
                Side(0),
                0,
            );
            return self.push(security, ns, xdp::ModifyOrder::TYPE, &modify);
        }
        let order_id = order_id(reference, self.partition(security));
        self.converter.resting.insert(reference.0, Resting { order_id, price, volume });
        let replace = xdp::ReplaceOrder::new(
            nanos_of(ns),
            symbol_index(security),
            seq,
            was.order_id,
            order_id,
            units,
            volume,
            Side(0),
            0,
        );
        self.push(security, ns, xdp::ReplaceOrder::TYPE, &replace);
    }

    fn on_non_cross_trade(&mut self, message: &NonCrossTrade) {
        let (security, ts) = (security!(message), message.timestamp.get());
        let ns = epoch_ns(ts);
        let trade_id = message.match_number.get().0 as u32;
        if trade_id.is_multiple_of(RETAIL_ONE_IN) {
            let indicator = xdp::RpiIndicator([b' ', b'A', b'B', b'C'][trade_id as usize / 4 % 4]);
            let seq = self.next_seq(security);
            let retail =
                xdp::RetailPriceImprovement::new(nanos_of(ns), symbol_index(security), seq, indicator);
            self.push(security, ns, xdp::RetailPriceImprovement::TYPE, &retail);
        }
        let volume = message.shares.get().0 as u32;
        let (seq, units) = (self.next_seq(security), self.units(security, message.price.get()));
        self.converter.last_trade = trade_id;
        let trade = xdp::NonDisplayedTrade::new(
            nanos_of(ns),
            symbol_index(security),
            seq,
            trade_id,
            units,
            volume,
            PrintableFlag::PRINTED,
            conditions(ts, volume),
        );
        self.push(security, ns, xdp::NonDisplayedTrade::TYPE, &trade);
    }

    fn on_cross_trade(&mut self, message: &CrossTrade) {
        let shares = message.shares.get().0 as u32;
        if shares == 0 {
            return;
        }
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let is_opening = message.cross_type == CrossType::OPENING;
        let kind = if is_opening { xdp::CrossType::OPENING } else { xdp::CrossType::CLOSING };
        let cross_id = message.match_number.get().0 as u32;
        let (seq, units) = (self.next_seq(security), self.units(security, message.cross_price.get()));
        let index = symbol_index(security);
        let cross = xdp::CrossTrade::new(nanos_of(ns), index, seq, cross_id, units, shares, kind);
        self.push(security, ns, xdp::CrossTrade::TYPE, &cross);
        self.converter.crosses += 1;
        if self.converter.crosses.is_multiple_of(CORRECTED_ONE_IN) {
            let seq = self.next_seq(security);
            let correction = xdp::CrossCorrection::new(nanos_of(ns), index, seq, cross_id, shares + LOT);
            self.push(security, ns, xdp::CrossCorrection::TYPE, &correction);
        }
    }

    fn on_broken_trade(&mut self, message: &BrokenTrade) {
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let seq = self.next_seq(security);
        let trade_id = self.converter.last_trade;
        let cancel = xdp::TradeCancel::new(nanos_of(ns), symbol_index(security), seq, trade_id);
        self.push(security, ns, xdp::TradeCancel::TYPE, &cancel);
    }

    fn on_net_order_imbalance(&mut self, message: &NetOrderImbalance) {
        let (security, ns) = (security!(message), epoch_ns(message.timestamp.get()));
        let seq = self.next_seq(security);
        let side = match message.imbalance_direction {
            ImbalanceDirection::BUY => ImbalanceSide::BUY,
            ImbalanceDirection::SELL => ImbalanceSide::SELL,
            _ => ImbalanceSide::NONE,
        };
        let is_opening = message.cross_type == CrossType::OPENING;
        let (kind, time) =
            if is_opening { (AuctionType::CORE_OPENING, 930_u16) } else { (AuctionType::CLOSING, 1600_u16) };
        let left = message.imbalance_shares.get().0 as u32;
        let reference = self.units(security, message.current_reference_price.get());
        let (near, far) = (message.near_price.get(), message.far_price.get());
        let imbalance = xdp::Imbalance::new(
            secs_of(ns),
            nanos_of(ns),
            symbol_index(security),
            seq,
            reference,
            message.paired_shares.get().0 as u32,
            left,
            0,
            time,
            kind,
            side,
            self.units(security, near),
            self.units(security, far),
            0,
            self.units(security, near),
            0,
            0,
            0,
            0,
            0,
            left,
            side,
            b' ',
        );
        self.push(security, ns, xdp::Imbalance::TYPE, &imbalance);
    }
}

impl Converter {
    /// Chooses how the prices of a security are told: with six decimals, and with four where they are too large for that.
    pub fn choose_scale(&mut self, security: usize, reference: Price) {
        let code = if reference < SIX_DECIMALS_MAX { 6 } else { 4 };
        self.listed[security].scale = PriceScale::new(code).expect("both are scales");
    }
}
