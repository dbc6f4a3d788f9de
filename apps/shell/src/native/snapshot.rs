//! A snapshot of one instrument's market, by GLIMPSE.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;

use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{self, AddOrder, Listener, StockDirectory, StockTradingAction};
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_types::{Nanos, Price, Side, Symbol, TradingState};

use super::soup::{Heard, Lost, SoupReader};

/// The login name of the shell; the snapshot endpoint requires no password.
const USER: &str = "SHELL";

/// The levels of an instrument, and its trading state.
#[derive(Debug)]
pub(super) struct Levels {
    symbol: Symbol,
    /// Quantity by price, bids then asks.
    sides: [BTreeMap<i64, u64>; 2],
    /// `None` until it was received.
    pub(super) trading: Option<TradingState>,
    /// True once the snapshot contains the instrument.
    pub(super) is_known: bool,
    /// Sequence number of the first live message after the snapshot, once it is complete.
    pub(super) next: Option<u64>,
    /// True after a message that does not belong to a snapshot.
    is_broken: bool,
}

impl Levels {
    pub(super) fn new(symbol: Symbol) -> Levels {
        Levels {
            symbol,
            sides: Default::default(),
            trading: None,
            is_known: false,
            next: None,
            is_broken: false,
        }
    }

    fn handle_message(&mut self, message: &[u8]) {
        if message.first() == Some(&EndOfSnapshot::TYPE) {
            let end = <EndOfSnapshot as zerocopy::FromBytes>::ref_from_bytes(message).ok();
            self.next = end.and_then(EndOfSnapshot::sequence).map(|sequence| sequence.0);
            self.is_broken |= self.next.is_none();
        } else if itch50::decode(message, self).is_err() {
            self.is_broken = true;
        }
    }

    /// The best levels of a side, best first.
    pub(super) fn best(&self, side: Side, depth: usize) -> Vec<(Price, u64)> {
        let levels = self.sides[side.index()].iter().map(|(price, qty)| (Price(*price), *qty));
        match side {
            Side::Buy => levels.rev().take(depth).collect(),
            Side::Sell => levels.take(depth).collect(),
        }
    }
}

impl Listener for Levels {
    fn on_add_order(&mut self, message: &AddOrder) {
        if message.stock.get() != self.symbol {
            return;
        }
        let Some(side) = message.side.side() else {
            self.is_broken = true;
            return;
        };
        *self.sides[side.index()].entry(message.price.get().0).or_default() += message.shares.get().0;
    }

    fn on_stock_directory(&mut self, message: &StockDirectory) {
        self.is_known |= message.stock.get() == self.symbol;
    }

    fn on_stock_trading_action(&mut self, message: &StockTradingAction) {
        if message.stock.get() == self.symbol {
            self.trading = message.trading_state.state();
        }
    }
}

/// A snapshot that is being received.
pub(super) struct Snapshot {
    reader: SoupReader,
    levels: Levels,
}

impl Snapshot {
    /// Starts to request the market of an instrument.
    pub(super) fn start(server: SocketAddrV4, symbol: Symbol, now: Nanos) -> Result<Snapshot, String> {
        let login = LoginRequest::new(USER, "").expect("both are short enough");
        let mut reader = SoupReader::new(server, login);
        reader.start(now).map_err(|lost| words(server, lost))?;
        Ok(Snapshot { reader, levels: Levels::new(symbol) })
    }

    /// The socket.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// Continues to receive; returns the levels once they are complete.
    pub(super) fn poll(&mut self, now: Nanos, server: SocketAddrV4) -> Option<Result<&Levels, String>> {
        let levels = &mut self.levels;
        let outcome = self.reader.poll(now, |heard| match heard {
            Heard::Message(message) if levels.next.is_none() => levels.handle_message(message),
            _ => {}
        });
        match outcome {
            _ if self.levels.is_broken => Some(Err(format!("{server} sends what is no snapshot"))),
            _ if self.levels.next.is_some() => Some(Ok(&self.levels)),
            Ok(_) => None,
            Err(lost) => Some(Err(words(server, lost))),
        }
    }
}

fn words(server: SocketAddrV4, lost: Lost) -> String {
    match lost {
        Lost::Refused(reason) => format!("the snapshot server at {server} refuses: {reason:?}"),
        Lost::Gone(why) => format!("no snapshot from {server}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_nasdaq::itch50::encode_market_event;
    use tickpath_types::{InstrumentId, MarketEvent, MarketEventKind, OrderId, Qty, Sequence};
    use zerocopy::IntoBytes;

    #[test]
    fn levels_are_summed_best_first_and_others_are_passed_over() {
        let (alpha, bravo) = (Symbol::new("ALPHA").unwrap(), Symbol::new("BRAVO").unwrap());
        let mut levels = Levels::new(alpha);
        let adds = [
            (alpha, Side::Buy, 100, 10),
            (alpha, Side::Buy, 101, 5),
            (bravo, Side::Buy, 900, 1),
            (alpha, Side::Buy, 100, 7),
            (alpha, Side::Sell, 105, 3),
        ];
        for (symbol, side, price, qty) in adds {
            let kind =
                MarketEventKind::Add { order_id: OrderId(1), side, price: Price(price), qty: Qty(qty) };
            let event = MarketEvent {
                sequence: Sequence(1),
                command: Sequence(1),
                ts: Nanos(1),
                instrument: InstrumentId(1),
                kind,
            };
            let mut message = [0; itch50::MESSAGE_LEN_MAX];
            let instrument = tickpath_types::Instrument::in_cents(InstrumentId(1), symbol, Price(100));
            let len = encode_market_event(&event, Some(&instrument), &mut message).unwrap();
            levels.handle_message(&message[..len]);
        }
        assert_eq!(levels.best(Side::Buy, 9), [(Price(101), 5), (Price(100), 17)]);
        assert_eq!(levels.best(Side::Buy, 1), [(Price(101), 5)]);
        assert_eq!(levels.best(Side::Sell, 9), [(Price(105), 3)]);
        assert_eq!(levels.next, None);
        levels.handle_message(EndOfSnapshot::of(Sequence(42)).as_bytes());
        assert_eq!((levels.next, levels.is_broken), (Some(42), false));
        levels.handle_message(b"A");
        assert!(levels.is_broken);
    }
}
