//! An unrealistic day: prices that are not multiples of the tick, very low and very high prices, crossed
//! books, levels that appear and vanish far from the best price. Structures must be correct for every price,
//! not only for standard days.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_nasdaq::itch50::{AddOrder, BuySell, OrderCancel, OrderDelete, OrderReplace};
use tickpath_nasdaq::wire::Stock;
use tickpath_types::{InstrumentId, Nanos, OrderId};
use zerocopy::IntoBytes;

use crate::books::Limits;
use crate::day::{Day, PIECES};

const MESSAGES: u64 = 24_000;
const INSTRUMENTS: u16 = 3;
/// Approximate maximum number of resting orders. At this number, deletes begin to outnumber adds, until a
/// quarter is left.
const LIVE_MAX: usize = 400;
const TRACKING: u16 = 0;

struct Open {
    instrument: InstrumentId,
    id: OrderId,
    qty: u32,
}

struct Source {
    random: Xoshiro256PlusPlus,
    open: Vec<Open>,
    /// Centre of most prices; it jumps occasionally.
    mid: u32,
    last_id: u64,
    is_draining: bool,
}

/// Generates the day.
pub fn make() -> Day {
    let mut source = Source {
        random: Xoshiro256PlusPlus::seed_from_u64(3),
        open: Vec::new(),
        mid: 1_000_000,
        last_id: 0,
        is_draining: false,
    };
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for message in 1..=MESSAGES {
        source.next_message(&mut bytes);
        if message % (MESSAGES / PIECES as u64) == 0 {
            ends.push(bytes.len());
        }
    }
    let (max_orders, order_refs) = (LIVE_MAX as u32 * 2, source.last_id);
    let limits = Limits { max_instrument: InstrumentId(INSTRUMENTS), max_orders };
    Day { name: "odd", bytes, ends, messages: MESSAGES, live_max: max_orders, order_refs, limits }
}

impl Source {
    fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.random.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    fn price(&mut self) -> u32 {
        match self.below(100) {
            0 => self.mid = 10_000 + self.below(2_000) * 1_000,
            1..4 => return 1 + self.below(300),
            4..6 => return 1_999_000_000 + self.below(1_000),
            6..20 => return self.mid + self.below(9_000) - 4_500,
            20..30 => return self.mid + self.below(200) * 1_000,
            _ => {}
        }
        self.mid / 100 * 100 + self.below(60) * 100 - 3_000
    }

    fn new_id(&mut self) -> OrderId {
        self.last_id += 1;
        OrderId(self.last_id)
    }

    fn next_message(&mut self, out: &mut Vec<u8>) {
        match self.open.len() {
            LIVE_MAX => self.is_draining = true,
            0..100 => self.is_draining = false,
            _ => {}
        }
        let adds = if self.is_draining { 20 } else { 65 };
        let kind = if self.open.is_empty() { 0 } else { self.below(100) };
        match kind {
            _ if kind < adds => self.add(out),
            90..95 => self.cancel(out),
            95..100 => self.replace(out),
            _ => {
                let Open { instrument, id, .. } = self.take();
                put(out, &OrderDelete::new(instrument, TRACKING, Nanos(1), id));
            }
        }
    }

    fn take(&mut self) -> Open {
        let index = self.below(self.open.len() as u32) as usize;
        self.open.swap_remove(index)
    }

    fn add(&mut self, out: &mut Vec<u8>) {
        let instrument = InstrumentId(1 + self.below(u32::from(INSTRUMENTS)) as u16);
        let side = [BuySell::BUY, BuySell::SELL][self.below(2) as usize];
        let (id, qty, price) = (self.new_id(), 1 + self.below(1_000), self.price());
        let stock = Stock::new("ODD").expect("at most 8 letters");
        put(out, &AddOrder::new(instrument, TRACKING, Nanos(1), id, side, qty, stock, price));
        self.open.push(Open { instrument, id, qty });
    }

    /// Cancels part of an order, or all of it.
    fn cancel(&mut self, out: &mut Vec<u8>) {
        let Open { instrument, id, qty } = self.take();
        let canceled = 1 + self.below(qty);
        put(out, &OrderCancel::new(instrument, TRACKING, Nanos(1), id, canceled));
        if canceled < qty {
            self.open.push(Open { instrument, id, qty: qty - canceled });
        }
    }

    fn replace(&mut self, out: &mut Vec<u8>) {
        let Open { instrument, id: old, .. } = self.take();
        let (id, qty, price) = (self.new_id(), 1 + self.below(1_000), self.price());
        put(out, &OrderReplace::new(instrument, TRACKING, Nanos(1), old, id, qty, price));
        self.open.push(Open { instrument, id, qty });
    }
}

fn put(out: &mut Vec<u8>, message: &(impl IntoBytes + zerocopy::Immutable)) {
    let bytes = message.as_bytes();
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}
