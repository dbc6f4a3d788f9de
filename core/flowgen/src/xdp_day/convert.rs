//! Conversion of ITCH messages to XDP messages: the same order flow in another protocol.

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
use tickpath_types::{MatchId, Nanos, OrderId, Price, Qty};
use zerocopy::{Immutable, IntoBytes};

use super::channel::Channel;
use super::clock::{MIDNIGHT_SECS, NANOS_PER_SECOND, round_down};
use super::lines::Lines;

/// Market id of NYSE, and product id of its Integrated Feed.
const MARKET_ID: u16 = 1;
const PRODUCT_ID: u8 = 11;
/// First symbol index of the day, and step to the next: real indexes do not start at 1 and have gaps.
const SYMBOL_INDEX_FIRST: u32 = 1_003;
const SYMBOL_INDEX_STEP: u32 = 7;

/// One in this many replacements with a new price is sent as a modification of the order.
const MODIFIED_ONE_IN: u64 = 4;
/// One in this many hidden trades is preceded by a retail price improvement message.
const RETAIL_ONE_IN: u32 = 4;
/// One in this many crosses is followed by a correction of its volume.
const CORRECTED_ONE_IN: u32 = 64;
/// Symbols that start at this price or above have four decimals: with six, a price might exceed 32 bits.
const SIX_DECIMALS_MAX: Price = Price(5_000_000);
const LOT: u32 = 100;
/// Start and end of the core session, since midnight.
const CORE_START: Nanos = Nanos::from_secs(9 * 3_600 + 30 * 60);
const CORE_END: Nanos = Nanos::from_secs(16 * 3_600);

/// The XDP symbol index of a security, which is given by its position in the day's list.
const fn symbol_index(security: usize) -> u32 {
    SYMBOL_INDEX_FIRST + SYMBOL_INDEX_STEP * security as u32
}

/// A resting order, stored by its ITCH order reference.
#[derive(Clone, Copy, Debug)]
struct Resting {
    order_id: u64,
    price: Price,
    volume: u32,
}

/// State of a symbol at the venue.
#[derive(Clone, Debug)]
struct ListedSymbol {
    symbol_seq_num: u32,
    scale: PriceScale,
    state: MarketState,
    ssr: SsrState,
}

/// Converts the messages of an ITCH day to packets of XDP channels.
#[derive(Debug)]
pub(super) struct Converter {
    pub channels: Vec<Channel>,
    pub lines: Lines,
    resting: FxHashMap<u64, Resting>,
    listed: Vec<ListedSymbol>,
    /// Id of the latest trade, which is the only one that can be broken.
    last_trade: u32,
    crosses: u32,
}

/// Converts a time since midnight to nanoseconds since the Unix epoch, as the venue's clock shows it.
fn epoch_ns(ts: Nanos) -> u64 {
    round_down(MIDNIGHT_SECS * NANOS_PER_SECOND + ts.0)
}

const fn nanos_of(epoch_ns: u64) -> u32 {
    (epoch_ns % NANOS_PER_SECOND) as u32
}

const fn secs_of(epoch_ns: u64) -> u32 {
    (epoch_ns / NANOS_PER_SECOND) as u32
}

/// The venue's order id: the order's number in the lower 32 bits, then market and partition.
const fn order_id(reference: OrderId, partition: u8) -> u64 {
    (reference.0 / 4) & 0xffff_ffff | (MARKET_ID as u64) << 40 | (partition as u64) << 48
}

/// Security of a message, and its time: `ts` since midnight, `epoch_ns` by the venue's clock since the epoch.
#[derive(Clone, Copy)]
struct At {
    ts: Nanos,
    epoch_ns: u64,
    security: usize,
}

impl At {
    fn new(ts: Nanos, security: usize) -> At {
        At { ts, epoch_ns: epoch_ns(ts), security }
    }
}

/// Time and security of an ITCH message.
macro_rules! at {
    ($message:expr) => {
        At::new($message.timestamp.get(), usize::from($message.stock_locate.get().0) - 1)
    };
}

/// Sends a message. `$field` are its fields after nanoseconds, symbol index and symbol sequence number.
macro_rules! send {
    ($converter:ident, $at:expr, $message:ident($($field:expr),* $(,)?) $(,)?) => {{
        let (nanos, index) = (nanos_of($at.epoch_ns), symbol_index($at.security));
        let sequence = $converter.next_seq($at.security);
        $converter.push($at, &xdp::$message::new(nanos, index, sequence, $($field),*));
    }};
}

impl Converter {
    /// Creates a converter; `references` are the starting prices of the securities.
    pub fn new(channels: u8, lines: Lines, references: impl Iterator<Item = Price>) -> Converter {
        let listed = |reference| ListedSymbol {
            symbol_seq_num: 0,
            // Prices of the symbol have six decimals, or four if they are too large for six.
            scale: PriceScale::new(if reference < SIX_DECIMALS_MAX { 6 } else { 4 })
                .expect("both are scales"),
            state: MarketState::PRE_OPENING,
            ssr: SsrState::NONE,
        };
        Converter {
            channels: (1..=channels).map(Channel::new).collect(),
            lines,
            resting: FxHashMap::default(),
            listed: references.map(listed).collect(),
            last_trade: 0,
            crosses: 0,
        }
    }

    fn push<M: IntoBytes + Immutable>(&mut self, at: At, message: &M) {
        let place = at.security % self.channels.len();
        self.channels[place].push(at.epoch_ns, message, &mut self.lines);
    }

    /// Returns the symbol's next sequence number.
    fn next_seq(&mut self, security: usize) -> u32 {
        let listed = &mut self.listed[security];
        listed.symbol_seq_num += 1;
        listed.symbol_seq_num
    }

    fn units(&self, at: At, price: Price) -> u32 {
        let scale = self.listed[at.security].scale;
        scale.units(price).expect("scales are chosen so that every price of the day fits")
    }

    fn partition(&self, at: At) -> u8 {
        self.channels[at.security % self.channels.len()].id
    }

    fn status(&mut self, at: At, status: SecurityStatusCode) {
        let (At { epoch_ns: ns, security, .. }, halt, market) = (at, HaltCondition::NONE, ExchangeCode(b' '));
        let (seq, index) = (self.next_seq(security), symbol_index(security));
        let ListedSymbol { state, ssr, .. } = self.listed[security];
        let (secs, nanos) = (secs_of(ns), nanos_of(ns));
        self.push(
            at,
            &xdp::SecurityStatus::new(
                secs, nanos, index, seq, status, halt, 0, 0, 0, market, 0, 0, ssr, state, 0,
            ),
        );
    }

    /// Publishes the start of a session for every symbol.
    fn session(&mut self, ts: Nanos, state: MarketState) {
        for security in 0..self.listed.len() {
            self.listed[security].state = state;
            self.status(At::new(ts, security), SecurityStatusCode(state.0));
        }
    }

    fn reset(&mut self, ts: Nanos) {
        let ns = epoch_ns(ts);
        for channel in &mut self.channels {
            let reset = SequenceNumberReset::new(secs_of(ns), nanos_of(ns), PRODUCT_ID, channel.id);
            channel.send_separately(ns, DeliveryFlag::SEQUENCE_RESET, &reset, &mut self.lines);
        }
    }

    fn add(&mut self, at: At, reference: OrderId, side: Side, shares: Qty, price: Price, firm: Firm) {
        let (volume, order_id) = (shares.0 as u32, order_id(reference, self.partition(at)));
        self.resting.insert(reference.0, Resting { order_id, price, volume });
        let units = self.units(at, price);
        send!(self, at, AddOrder(order_id, units, volume, side, firm, 0));
    }

    fn resting(&mut self, reference: OrderId) -> &mut Resting {
        self.resting.get_mut(&reference.0).expect("the day names orders that rest")
    }

    /// Reduces an order by a volume and removes it if nothing is left. Returns the reduced order.
    fn take(&mut self, reference: OrderId, volume: u32) -> Resting {
        let resting = self.resting(reference);
        resting.volume -= volume;
        let left = *resting;
        if left.volume == 0 {
            self.resting.remove(&reference.0);
        }
        left
    }

    fn execute(
        &mut self,
        at: At,
        reference: OrderId,
        trade_id: MatchId,
        shares: Qty,
        price: Option<Price>,
        printable: PrintableFlag,
    ) {
        let (trade_id, volume) = (trade_id.0 as u32, shares.0 as u32);
        let order = self.take(reference, volume);
        let units = self.units(at, price.unwrap_or(order.price));
        self.last_trade = trade_id;
        let conditions = conditions(at.ts, volume);
        send!(self, at, OrderExecution(order.order_id, trade_id, units, volume, printable, 0, conditions));
    }

    /// Sends the price and volume of a changed order that keeps its order id.
    fn modify(&mut self, at: At, order: Resting) {
        let units = self.units(at, order.price);
        let (id, volume) = (order.order_id, order.volume);
        send!(self, at, ModifyOrder(id, units, volume, PositionChange::KEPT, Side(0), 0));
    }
}

fn conditions(ts: Nanos, volume: u32) -> [TradeCondition; 4] {
    let is_core = (CORE_START..CORE_END).contains(&ts);
    let extended = if is_core { TradeCondition::NONE } else { TradeCondition::EXTENDED };
    let odd = if volume < LOT { TradeCondition::ODD_LOT } else { TradeCondition::NONE };
    [TradeCondition::REGULAR, TradeCondition::NONE, extended, odd]
}

impl Listener for Converter {
    fn on_system_event(&mut self, message: &SystemEvent) {
        let ts = message.timestamp.get();
        match message.event_code {
            EventCode::START_OF_MESSAGES => self.reset(ts),
            EventCode::START_OF_SYSTEM_HOURS => self.session(ts, MarketState::EARLY),
            EventCode::START_OF_MARKET_HOURS => self.session(ts, MarketState::CORE),
            EventCode::END_OF_MARKET_HOURS => self.session(ts, MarketState::LATE),
            EventCode::END_OF_SYSTEM_HOURS => {
                self.session(ts, MarketState::CLOSED);
                self.resting.clear();
            }
            _ => {}
        }
    }

    fn on_stock_directory(&mut self, message: &StockDirectory) {
        let at = at!(message);
        let index = symbol_index(at.security);
        let mapping = xdp::SymbolIndexMapping::new(
            index,
            XdpSymbol::from(message.stock.get()),
            0,
            MARKET_ID,
            self.partition(at),
            ExchangeCode::NASDAQ,
            self.listed[at.security].scale.code(),
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
        self.push(at, &mapping);
        self.push(at, &xdp::SymbolClear::new(secs_of(at.epoch_ns), nanos_of(at.epoch_ns), index, 1));
    }

    fn on_stock_trading_action(&mut self, message: &StockTradingAction) {
        self.status(at!(message), SecurityStatusCode::PRE_OPENING);
    }

    fn on_reg_sho_restriction(&mut self, message: &RegShoRestriction) {
        if message.reg_sho_action == RegShoAction::REMAINS {
            let at = at!(message);
            self.listed[at.security].ssr = SsrState::RESTRICTED;
            self.status(at, SecurityStatusCode::SSR_DAY_2);
        }
    }

    fn on_add_order(&mut self, message: &AddOrder) {
        let (reference, side) = (message.order_ref.get(), Side(message.side.0));
        self.add(at!(message), reference, side, message.shares.get(), message.price.get(), Firm::NONE);
    }

    fn on_add_order_mpid(&mut self, message: &AddOrderMpid) {
        let (reference, side) = (message.order_ref.get(), Side(message.side.0));
        let firm = Firm::new(message.attribution.as_str()).expect("four characters have room in five");
        self.add(at!(message), reference, side, message.shares.get(), message.price.get(), firm);
    }

    fn on_order_executed(&mut self, message: &OrderExecuted) {
        let (reference, trade) = (message.order_ref.get(), message.match_number.get());
        let shares = message.executed_shares.get();
        self.execute(at!(message), reference, trade, shares, None, PrintableFlag::PRINTED);
    }

    fn on_order_executed_with_price(&mut self, message: &OrderExecutedWithPrice) {
        let (reference, trade) = (message.order_ref.get(), message.match_number.get());
        let (shares, price) = (message.executed_shares.get(), Some(message.execution_price.get()));
        let is_printed = message.printable == YesNo::YES;
        let printable = if is_printed { PrintableFlag::PRINTED } else { PrintableFlag::NOT_PRINTED };
        self.execute(at!(message), reference, trade, shares, price, printable);
    }

    fn on_order_cancel(&mut self, message: &OrderCancel) {
        let order = self.take(message.order_ref.get(), message.canceled_shares.get().0 as u32);
        self.modify(at!(message), order);
    }

    fn on_order_delete(&mut self, message: &OrderDelete) {
        let volume = self.resting(message.order_ref.get()).volume;
        let order = self.take(message.order_ref.get(), volume);
        send!(self, at!(message), DeleteOrder(order.order_id, 0));
    }

    fn on_order_replace(&mut self, message: &OrderReplace) {
        let at = at!(message);
        let old = message.original_order_ref.get();
        let (reference, price) = (message.new_order_ref.get(), message.price.get());
        let volume = message.shares.get().0 as u32;
        let previous = *self.resting(old);
        self.resting.remove(&old.0);
        // With a new price, modification and replacement both lose the priority: either gives the same books.
        if price != previous.price && (reference.0 / 4).is_multiple_of(MODIFIED_ONE_IN) {
            let order = Resting { order_id: previous.order_id, price, volume };
            self.resting.insert(reference.0, order);
            return self.modify(at, order);
        }
        let order_id = order_id(reference, self.partition(at));
        self.resting.insert(reference.0, Resting { order_id, price, volume });
        let units = self.units(at, price);
        send!(self, at, ReplaceOrder(previous.order_id, order_id, units, volume, Side(0), 0));
    }

    fn on_non_cross_trade(&mut self, message: &NonCrossTrade) {
        let at = at!(message);
        let trade_id = message.match_number.get().0 as u32;
        if trade_id.is_multiple_of(RETAIL_ONE_IN) {
            let indicator = xdp::RpiIndicator([b' ', b'A', b'B', b'C'][trade_id as usize / 4 % 4]);
            send!(self, at, RetailPriceImprovement(indicator));
        }
        let volume = message.shares.get().0 as u32;
        let (units, conditions) = (self.units(at, message.price.get()), conditions(at.ts, volume));
        self.last_trade = trade_id;
        send!(self, at, NonDisplayedTrade(trade_id, units, volume, PrintableFlag::PRINTED, conditions));
    }

    fn on_cross_trade(&mut self, message: &CrossTrade) {
        let shares = message.shares.get().0 as u32;
        if shares == 0 {
            return;
        }
        let at = at!(message);
        let is_opening = message.cross_type == CrossType::OPENING;
        let kind = if is_opening { xdp::CrossType::OPENING } else { xdp::CrossType::CLOSING };
        let (cross_id, units) =
            (message.match_number.get().0 as u32, self.units(at, message.cross_price.get()));
        send!(self, at, CrossTrade(cross_id, units, shares, kind));
        self.crosses += 1;
        if self.crosses.is_multiple_of(CORRECTED_ONE_IN) {
            send!(self, at, CrossCorrection(cross_id, shares + LOT));
        }
    }

    fn on_broken_trade(&mut self, message: &BrokenTrade) {
        send!(self, at!(message), TradeCancel(self.last_trade));
    }

    fn on_net_order_imbalance(&mut self, message: &NetOrderImbalance) {
        let at = at!(message);
        let side = match message.imbalance_direction {
            ImbalanceDirection::BUY => ImbalanceSide::BUY,
            ImbalanceDirection::SELL => ImbalanceSide::SELL,
            _ => ImbalanceSide::NONE,
        };
        let is_opening = message.cross_type == CrossType::OPENING;
        let (kind, time) =
            if is_opening { (AuctionType::CORE_OPENING, 930_u16) } else { (AuctionType::CLOSING, 1600_u16) };
        let left = message.imbalance_shares.get().0 as u32;
        let near = self.units(at, message.near_price.get());
        let imbalance = xdp::Imbalance::new(
            secs_of(at.epoch_ns),
            nanos_of(at.epoch_ns),
            symbol_index(at.security),
            self.next_seq(at.security),
            self.units(at, message.current_reference_price.get()),
            message.paired_shares.get().0 as u32,
            left,
            0,
            time,
            kind,
            side,
            near,
            self.units(at, message.far_price.get()),
            0,
            near,
            0,
            0,
            0,
            0,
            0,
            left,
            side,
            b' ',
        );
        self.push(at, &imbalance);
    }
}
