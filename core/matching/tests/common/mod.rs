//! Shared test support: instruments, orders, and a listener that keeps all events.

use tickpath_book::OrderBooks;
use tickpath_matching::{Command, CommandKind, Engine, EventListener, Owner};
use tickpath_types::*;

/// Instruments with tick 0.01, collar 5.00 to 15.00 and `max_qty` 10,000; lot size 1 for the first, else 10.
pub fn instruments(count: u16) -> Vec<Instrument> {
    let instrument = |id| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(&format!("SYM{id}")).unwrap(),
        tick_size: Price(100),
        lot_size: Qty(if id == 1 { 1 } else { 10 }),
        max_qty: Qty(10_000),
        reference_price: Price(100_000),
        collar_low: Price(50_000),
        collar_high: Price(150_000),
    };
    (1..=count).map(instrument).collect()
}

/// The command under the next sequence number, one microsecond after the one before.
pub fn numbered(sequence: &mut u64, session: u16, kind: CommandKind) -> Command {
    *sequence += 1;
    Command { sequence: Sequence(*sequence), session: SessionId(session), ts: Nanos(*sequence * 1_000), kind }
}

/// A day order of instrument 1.
pub fn order(user_ref: u32, side: Side, qty: u64, price: i64) -> EnterOrder {
    EnterOrder::limit(UserRefNum(user_ref), InstrumentId(1), side, Qty(qty), Price(price))
}

/// Keeps all events, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub events: Vec<Event>,
}

/// An order event or a market event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Order(OrderEvent),
    Market(MarketEvent),
}

impl EventListener for Log {
    fn on_order_event(&mut self, event: &OrderEvent) {
        self.events.push(Event::Order(*event));
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.events.push(Event::Market(*event));
    }
}

/// Applies one command and returns its events.
pub fn apply<B: OrderBooks<Owner>>(engine: &mut Engine<B>, command: &Command) -> Vec<Event> {
    let mut log = Log::default();
    engine.apply(command, &mut log);
    log.events
}
