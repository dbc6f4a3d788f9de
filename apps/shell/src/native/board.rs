//! Book and ticker channels, published from the books of the feed handler.

use std::collections::BTreeMap;

use tickpath_book::{BooksById, PackedBooks};
use tickpath_deribit::channel::{Channel, Interval};
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{Book, BookLevel, BookUpdateKind, GroupedBook, LevelAction, PriceAmount};
use tickpath_deribit::text::Text;
use tickpath_types::{Instrument, Nanos, Price, Side, TradingState};

use super::answers::{self, amount, json};
use crate::link::Clock;

/// Minimum interval between a channel's messages; `raw` publishes at each poll of the feed.
const fn pause(interval: Interval) -> Nanos {
    match interval {
        Interval::Raw => Nanos::ZERO,
        Interval::Ms100 => Nanos::from_millis(100),
        _ => Nanos::from_secs(1),
    }
}

/// The content of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Best prices and the last price.
    Ticker,
    /// The best levels, all of them in each message.
    Grouped { depth: usize },
    /// The whole book, then its changes.
    Changes,
}

/// The last published state.
#[derive(Debug, Default)]
struct Told {
    at: Nanos,
    change_id: u64,
    /// Quantity by price, bids then asks; only for channels of changes.
    sides: [BTreeMap<i64, u64>; 2],
}

/// A channel of one instrument's book.
#[derive(Debug)]
pub(super) struct Board {
    name: String,
    instrument: String,
    what: What,
    pause: Nanos,
    /// `None` until a snapshot was published, and while the book is not trusted.
    told: Option<Told>,
}

/// The state of an instrument, apart from its book.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Sequence number of its last message.
    pub(super) sequence: u64,
    /// Time of the last event, in milliseconds since 1970; 0 before the first message.
    pub(super) at_ms: u64,
    /// The price of the last trade.
    pub(super) last: Option<Price>,
}

impl Seen {
    /// The time to publish: now, if the book has had no event.
    pub(super) fn time_ms(&self) -> u64 {
        if self.at_ms == 0 { Clock::unix_ms() } else { self.at_ms }
    }
}

/// An instrument's current book.
pub(super) struct Market<'b> {
    pub(super) instrument: &'b Instrument,
    pub(super) books: &'b PackedBooks,
    pub(super) trading: Option<TradingState>,
    pub(super) seen: Seen,
}

impl Market<'_> {
    fn levels(&self, side: Side) -> impl Iterator<Item = (Price, u64)> {
        self.books.levels(self.instrument.id, side).map(|level| (level.price, level.qty.0))
    }
}

impl Board {
    /// The instrument of a channel, if it is a book or ticker channel.
    pub(super) fn instrument_of<'c>(channel: &Channel<'c>) -> Option<&'c str> {
        Board::meant(channel).map(|(name, ..)| name)
    }

    fn meant<'c>(channel: &Channel<'c>) -> Option<(&'c str, What, Interval)> {
        match *channel {
            Channel::Ticker { instrument, interval } => Some((instrument, What::Ticker, interval)),
            Channel::Book { instrument, interval } => Some((instrument, What::Changes, interval)),
            Channel::GroupedBook { instrument, group: "none", depth, interval } => {
                Some((instrument, What::Grouped { depth: usize::try_from(depth).ok()? }, interval))
            }
            _ => None,
        }
    }

    /// Creates a channel that has published nothing.
    pub(super) fn new(name: &str) -> Option<Board> {
        let (instrument, what, interval) = Board::meant(&Channel::parse(name).ok()?)?;
        let (name, instrument) = (name.to_owned(), instrument.to_owned());
        Some(Board { name, instrument, what, pause: pause(interval), told: None })
    }

    /// Whether the channel belongs to an instrument.
    pub(super) fn is_of(&self, instrument: &str) -> bool {
        self.instrument == instrument
    }

    /// The channel's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Marks the book as not trusted: a snapshot follows once it is trusted again.
    pub(super) fn doubt(&mut self) {
        self.told = None;
    }

    /// The data to publish for a trusted book, if it changed and the interval is over.
    pub(super) fn tell(&mut self, now: Nanos, market: &Market<'_>) -> Option<String> {
        let change_id = market.seen.sequence;
        if let Some(told) = &self.told
            && (told.change_id == change_id || now < told.at + self.pause)
        {
            return None;
        }
        let data = match self.what {
            What::Ticker => ticker(market),
            What::Grouped { depth } => grouped(market, depth),
            What::Changes => return self.tell_changes(now, market),
        };
        self.told = Some(Told { at: now, change_id, ..Told::default() });
        Some(data)
    }

    fn tell_changes(&mut self, now: Nanos, market: &Market<'_>) -> Option<String> {
        let before = self.told.take();
        let is_first = before.is_none();
        let Told { change_id: prev_change_id, sides: old, at } = before.unwrap_or_default();
        let sides = [Side::Buy, Side::Sell]
            .map(|side| market.levels(side).map(|(price, qty)| (price.0, qty)).collect::<BTreeMap<_, _>>());
        let changes = [0, 1].map(|side| changes(&old[side], &sides[side], side == Side::Buy.index()));
        let is_silent = !is_first && changes.iter().all(Vec::is_empty);
        // Without a message the number stays, so that the next change follows the last published one.
        let change_id = if is_silent { prev_change_id } else { market.seen.sequence };
        self.told = Some(Told { at: if is_silent { at } else { now }, change_id, sides });
        if is_silent {
            return None;
        }
        let [bids, asks] = &changes;
        Some(json(&Book {
            kind: Some(if is_first { BookUpdateKind::Snapshot } else { BookUpdateKind::Change }),
            timestamp: market.seen.time_ms(),
            prev_change_id: (!is_first).then_some(prev_change_id),
            instrument_name: Text::new(market.instrument.symbol.as_str()),
            change_id,
            bids: List::new(bids),
            asks: List::new(asks),
        }))
    }
}

/// The changes between two states of a side, best first.
fn changes(old: &BTreeMap<i64, u64>, new: &BTreeMap<i64, u64>, is_bid: bool) -> Vec<BookLevel> {
    let level =
        |action, price: i64, qty| BookLevel { action, price: Price(price).into(), amount: amount(qty) };
    let mut list: Vec<(i64, BookLevel)> = new
        .iter()
        .filter_map(|(price, qty)| match old.get(price) {
            None => Some((*price, level(LevelAction::New, *price, *qty))),
            Some(before) if before != qty => Some((*price, level(LevelAction::Change, *price, *qty))),
            Some(_) => None,
        })
        .collect();
    let gone = old.keys().filter(|price| !new.contains_key(price));
    list.extend(gone.map(|price| (*price, level(LevelAction::Delete, *price, 0))));
    list.sort_by_key(|(price, _)| if is_bid { -*price } else { *price });
    list.into_iter().map(|(_, level)| level).collect()
}

fn ticker(market: &Market<'_>) -> String {
    let best = |side| market.levels(side).next();
    let best = answers::Best { bid: best(Side::Buy), ask: best(Side::Sell), last: market.seen.last };
    answers::ticker(market.instrument, market.trading, best, market.seen.time_ms())
}

fn grouped(market: &Market<'_>, depth: usize) -> String {
    let side = |side| -> Vec<PriceAmount> {
        let levels = market.levels(side).take(depth);
        levels.map(|(price, qty)| PriceAmount { price: price.into(), amount: amount(qty) }).collect()
    };
    let (bids, asks) = (side(Side::Buy), side(Side::Sell));
    json(&GroupedBook {
        timestamp: market.seen.time_ms(),
        instrument_name: Text::new(market.instrument.symbol.as_str()),
        change_id: market.seen.sequence,
        bids: List::new(&bids),
        asks: List::new(&asks),
    })
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, Order};
    use tickpath_types::{InstrumentId, OrderId, Qty, Symbol};

    use super::*;

    struct Rig {
        instrument: Instrument,
        books: PackedBooks,
        seen: Seen,
    }

    impl Rig {
        fn new() -> Rig {
            let symbol = Symbol::new("ALPHA").unwrap();
            let instrument = Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000));
            Rig {
                instrument,
                books: PackedBooks::new(BookLimits::new(InstrumentId(1), 64)),
                seen: Seen::default(),
            }
        }

        fn add(&mut self, id: u64, side: Side, price: i64, qty: u64) {
            self.seen.sequence += 1;
            let order = Order {
                id: OrderId(id),
                instrument: InstrumentId(1),
                side,
                price: Price(price),
                qty: Qty(qty),
                data: (),
            };
            self.books.add(order).unwrap();
        }

        fn remove(&mut self, id: u64) {
            self.seen.sequence += 1;
            self.books.remove(InstrumentId(1), OrderId(id)).unwrap();
        }

        fn tell(&self, board: &mut Board, now: u64) -> Option<String> {
            let market =
                Market { instrument: &self.instrument, books: &self.books, trading: None, seen: self.seen };
            board.tell(Nanos::from_millis(now), &market)
        }
    }

    #[test]
    fn a_book_is_told_whole_and_then_by_its_changes() {
        let mut rig = Rig::new();
        let mut board = Board::new("book.ALPHA.raw").unwrap();
        rig.add(1, Side::Buy, 990_000, 10);
        rig.add(2, Side::Sell, 1_010_000, 5);
        let text = rig.tell(&mut board, 1).unwrap();
        assert!(
            text.contains(r#""type":"snapshot""#)
                && text.contains(r#""bids":[["new",99,10]]"#)
                && text.contains(r#""change_id":2"#)
                && !text.contains("prev_change_id"),
            "{text}"
        );
        assert_eq!(rig.tell(&mut board, 2), None);
        rig.add(3, Side::Buy, 990_000, 7);
        rig.add(4, Side::Buy, 980_000, 1);
        rig.remove(2);
        let text = rig.tell(&mut board, 3).unwrap();
        assert!(
            text.contains(r#""type":"change""#)
                && text.contains(r#""prev_change_id":2"#)
                && text.contains(r#""bids":[["change",99,17],["new",98,1]]"#)
                && text.contains(r#""asks":[["delete",101,0]]"#),
            "{text}"
        );
        // A message that changes no level is not published, and does not break the chain.
        rig.seen.sequence += 1;
        assert_eq!(rig.tell(&mut board, 4), None);
        rig.remove(4);
        assert!(rig.tell(&mut board, 5).unwrap().contains(r#""prev_change_id":5"#));
        board.doubt();
        assert!(rig.tell(&mut board, 6).unwrap().contains("snapshot"));
    }

    #[test]
    fn best_levels_and_the_ticker_come_no_more_often_than_is_asked_for() {
        let mut rig = Rig::new();
        let mut book = Board::new("book.ALPHA.none.1.100ms").unwrap();
        let mut ticker = Board::new("ticker.ALPHA.raw").unwrap();
        rig.add(1, Side::Buy, 990_000, 10);
        rig.seen.last = Some(Price(985_000));
        assert!(rig.tell(&mut book, 1).unwrap().contains(r#""bids":[[99,10]],"asks":[]"#));
        let text = rig.tell(&mut ticker, 1).unwrap();
        assert!(text.contains(r#""best_bid_price":99"#) && text.contains(r#""last_price":98.5"#), "{text}");
        rig.add(2, Side::Buy, 995_000, 3);
        assert_eq!(rig.tell(&mut book, 50), None);
        assert!(rig.tell(&mut ticker, 50).unwrap().contains(r#""best_bid_price":99.5"#));
        assert!(rig.tell(&mut book, 101).unwrap().contains(r#""bids":[[99.5,3]]"#));
        for other in ["book.ALPHA.5.10.100ms", "quote.ALPHA", "nonsense"] {
            assert!(Board::new(other).is_none(), "{other}");
        }
    }
}
