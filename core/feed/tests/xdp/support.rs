//! Messages and books for the XDP tests.

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::xdp::{BookBuilder, Channel};
use tickpath_feed::{MessageBooks, UpdateListener};
use tickpath_nyse as xdp;
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Sequence, Side};
use zerocopy::IntoBytes;

pub const CHANNEL: Channel = Channel(1);
/// Midnight of the tests' day, in seconds since the Unix epoch.
pub const MIDNIGHT_SECS: u32 = 1_795_150_800;
/// Symbol index of the tests' first symbol; the next symbols have the next indexes.
pub const INDEX: u32 = 4_966;

/// Listener that keeps every update.
#[derive(Default)]
pub struct Updates(pub Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

pub struct Feed {
    pub builder: BookBuilder<PackedBooks>,
    pub updates: Updates,
    sequence: u64,
}

impl Feed {
    /// Creates books for this many symbols, none of them mapped.
    pub fn new(symbols: u16) -> Feed {
        let books = PackedBooks::new(BookLimits::new(InstrumentId(symbols), 1_000));
        let builder = BookBuilder::new(books, Nanos::from_secs(u64::from(MIDNIGHT_SECS)));
        Feed { builder, updates: Updates::default(), sequence: 0 }
    }

    /// Creates books for two symbols with four decimals that trade.
    pub fn trading() -> Feed {
        let mut feed = Feed::new(2);
        for place in 0..2 {
            feed.send(&mapping(place, ["ALPHA", "BETA"][place as usize], 4));
            feed.send(&xdp::SymbolClear::new(MIDNIGHT_SECS, 0, INDEX + place, 1));
            feed.send(&status(place, 1, xdp::SecurityStatusCode::CORE, xdp::MarketState::CORE));
        }
        feed
    }

    pub fn send<M: IntoBytes + zerocopy::Immutable>(&mut self, message: &M) {
        self.send_bytes(message.as_bytes());
    }

    pub fn send_bytes(&mut self, message: &[u8]) {
        self.sequence += 1;
        self.builder.handle_message_on(CHANNEL, Sequence(self.sequence), message, &mut self.updates);
    }

    /// Returns id, price and quantity of the orders of a side, by price and time priority.
    pub fn orders(&self, id: u16, side: Side) -> Vec<(u64, i64, u64)> {
        let orders = self.builder.instruments().books().orders(InstrumentId(id), side);
        orders.map(|order| (order.id.0, order.price.0, order.qty.0)).collect()
    }

    /// Returns the last update.
    pub fn last(&self) -> MarketUpdate {
        *self.updates.0.last().unwrap()
    }
}

pub fn mapping(place: u32, symbol: &str, price_scale_code: u8) -> xdp::SymbolIndexMapping {
    xdp::SymbolIndexMapping::new(
        INDEX + place,
        xdp::XdpSymbol::new(symbol).unwrap(),
        0,
        1_u16,
        1,
        xdp::ExchangeCode::NYSE,
        price_scale_code,
        xdp::SecurityType::COMMON,
        100_u16,
        0,
        0,
        0,
        xdp::YesNo::YES,
        100_u16,
        1_u16,
        0_u16,
    )
}

pub fn status(
    place: u32,
    seq: u32,
    code: xdp::SecurityStatusCode,
    state: xdp::MarketState,
) -> xdp::SecurityStatus {
    halted(place, seq, code, state, xdp::HaltCondition::NONE)
}

pub fn halted(
    place: u32,
    seq: u32,
    code: xdp::SecurityStatusCode,
    state: xdp::MarketState,
    halt: xdp::HaltCondition,
) -> xdp::SecurityStatus {
    let exchange = xdp::ExchangeCode(b' ');
    let ssr = xdp::SsrState::NONE;
    xdp::SecurityStatus::new(
        MIDNIGHT_SECS + 5,
        7,
        INDEX + place,
        seq,
        code,
        halt,
        0,
        0,
        0,
        exchange,
        0,
        0,
        ssr,
        state,
        0,
    )
}

pub fn add(seq: u32, id: u64, side: Side, price: u32, volume: u32) -> xdp::AddOrder {
    add_of(0, seq, id, side, price, volume)
}

pub fn add_of(place: u32, seq: u32, id: u64, side: Side, price: u32, volume: u32) -> xdp::AddOrder {
    xdp::AddOrder::new(7, INDEX + place, seq, id, price, volume, side, xdp::Firm::NONE, 0)
}

pub fn modify(seq: u32, id: u64, price: u32, volume: u32, change: xdp::PositionChange) -> xdp::ModifyOrder {
    xdp::ModifyOrder::new(7, INDEX, seq, id, price, volume, change, xdp::Side(0), 0)
}

pub fn delete(seq: u32, id: u64) -> xdp::DeleteOrder {
    xdp::DeleteOrder::new(7, INDEX, seq, id, 0)
}

pub fn execution(seq: u32, id: u64, price: u32, volume: u32) -> xdp::OrderExecution {
    let conditions = [xdp::TradeCondition::REGULAR; 4];
    xdp::OrderExecution::new(7, INDEX, seq, id, 77, price, volume, xdp::PrintableFlag::PRINTED, 0, conditions)
}

pub fn replace(seq: u32, id: u64, new_id: u64, price: u32, volume: u32) -> xdp::ReplaceOrder {
    xdp::ReplaceOrder::new(7, INDEX, seq, id, new_id, price, volume, xdp::Side(0), 0)
}
