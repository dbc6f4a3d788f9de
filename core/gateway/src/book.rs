//! The book of one instrument, as the venue's channel reports it.

use tickpath_deribit::messages::{BookLevel, LevelAction};
use tickpath_types::Side;

/// Scale of prices and quantities: units of 10^-8.
pub const SCALE: u8 = 8;
/// Maximum number of levels on one side. A book with more is not used.
pub const LEVELS_MAX: usize = 10_000;
/// Initial capacity of one side, in levels.
const LEVELS_USUAL: usize = 128;

/// A price and the amount at it, in units of 10^-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: i64,
    /// The amount; 0 if the level was removed.
    pub amount: i64,
}

/// Reason why a level was not applied: the book must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelFault {
    /// A number that is not representable in units of 10^-8.
    Number,
    /// More than [`LEVELS_MAX`] levels.
    TooMany,
}

/// One side, the best level last: changes there move few elements.
#[derive(Clone, Debug)]
struct Levels {
    levels: Vec<Level>,
    side: Side,
}

impl Levels {
    fn new(side: Side) -> Levels {
        Levels { levels: Vec::with_capacity(LEVELS_USUAL), side }
    }

    /// Sort key of a price, ascending from worst to best.
    fn key(&self, price: i64) -> i64 {
        if self.side == Side::Buy { price } else { -price }
    }

    fn best(&self) -> Option<Level> {
        self.levels.last().copied()
    }

    fn set(&mut self, level: Level) -> Result<(), LevelFault> {
        let key = self.key(level.price);
        // Most changes are near the best level.
        let worse = self.levels.iter().rposition(|known| self.key(known.price) <= key);
        let (at, is_known) = match worse {
            Some(place) if self.levels[place].price == level.price => (place, true),
            Some(place) => (place + 1, false),
            None => (0, false),
        };
        match (is_known, level.amount) {
            (true, 0) => drop(self.levels.remove(at)),
            (true, _) => self.levels[at] = level,
            (false, 0) => {}
            (false, _) if self.levels.len() >= LEVELS_MAX => return Err(LevelFault::TooMany),
            (false, _) => self.levels.insert(at, level),
        }
        Ok(())
    }
}

/// The best level of each side; an amount of 0 where a side is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Top {
    /// The highest bid.
    pub bid: Level,
    /// The lowest ask.
    pub ask: Level,
}

/// Both sides of an instrument's book.
#[derive(Clone, Debug)]
pub struct Book {
    bids: Levels,
    asks: Levels,
    /// The venue's number of the book's last change.
    pub change_id: u64,
}

impl Default for Book {
    fn default() -> Book {
        Book { bids: Levels::new(Side::Buy), asks: Levels::new(Side::Sell), change_id: 0 }
    }
}

impl Book {
    /// Removes all levels.
    pub fn clear(&mut self) {
        self.bids.levels.clear();
        self.asks.levels.clear();
    }

    /// Applies one level of the venue's message.
    ///
    /// # Errors
    /// [`LevelFault`]; the book must not be used afterwards.
    pub fn apply(&mut self, side: Side, level: &BookLevel) -> Result<Level, LevelFault> {
        let level = level_of(level)?;
        match side {
            Side::Buy => self.bids.set(level)?,
            Side::Sell => self.asks.set(level)?,
        }
        Ok(level)
    }

    /// The best levels.
    #[must_use]
    pub fn top(&self) -> Top {
        Top { bid: self.bids.best().unwrap_or_default(), ask: self.asks.best().unwrap_or_default() }
    }

    /// Whether a bid is at or above an ask, which a complete message never leaves behind.
    #[must_use]
    pub fn is_crossed(&self) -> bool {
        let Top { bid, ask } = self.top();
        bid.amount != 0 && ask.amount != 0 && bid.price >= ask.price
    }

    /// The levels of a side, best first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = Level> + '_ {
        let of_side = if side == Side::Buy { &self.bids } else { &self.asks };
        of_side.levels.iter().rev().copied()
    }

    /// Number of levels on a side.
    #[must_use]
    pub fn len(&self, side: Side) -> usize {
        if side == Side::Buy { self.bids.levels.len() } else { self.asks.levels.len() }
    }

    /// Whether both sides are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bids.levels.is_empty() && self.asks.levels.is_empty()
    }
}

/// Converts a level to units of 10^-8.
///
/// # Errors
/// [`LevelFault::Number`] if a number is not representable.
pub fn level_of(level: &BookLevel) -> Result<Level, LevelFault> {
    let price = level.price.units(SCALE).map_err(|_| LevelFault::Number)?;
    let amount = if level.action == LevelAction::Delete {
        0
    } else {
        level.amount.units(SCALE).map_err(|_| LevelFault::Number)?
    };
    Ok(Level { price, amount })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn level(action: LevelAction, price: &str, amount: &str) -> BookLevel {
        BookLevel { action, price: price.parse().unwrap(), amount: amount.parse().unwrap() }
    }

    #[test]
    fn levels_come_change_and_go() {
        let mut book = Book::default();
        for (side, price, amount) in [
            (Side::Buy, "99.5", "10"),
            (Side::Buy, "100", "20"),
            (Side::Sell, "101", "5"),
            (Side::Sell, "100.5", "1"),
        ] {
            book.apply(side, &level(LevelAction::New, price, amount)).unwrap();
        }
        let units = |price: i64| price * 50_000_000;
        assert_eq!((book.top().bid.price, book.top().ask.price), (units(200), units(201)));
        book.apply(Side::Buy, &level(LevelAction::Delete, "100", "0")).unwrap();
        book.apply(Side::Buy, &level(LevelAction::Change, "99.5", "3")).unwrap();
        // Deleting an unknown level has no effect.
        book.apply(Side::Sell, &level(LevelAction::Delete, "777", "0")).unwrap();
        assert_eq!(book.top().bid, Level { price: units(199), amount: 300_000_000 });
        assert_eq!(
            book.levels(Side::Sell).map(|level| level.price).collect::<Vec<_>>(),
            [units(201), units(202)]
        );
        assert!(!book.is_crossed());
        book.apply(Side::Buy, &level(LevelAction::New, "100.5", "1")).unwrap();
        assert!(book.is_crossed());
    }

    #[test]
    fn it_is_as_a_map_would_be() {
        let mut book = Book::default();
        let mut map = BTreeMap::new();
        let mut seed = 7_u64;
        for _ in 0..5_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (price, amount) = ((seed >> 40) as i64 % 97, (seed >> 20) as i64 % 4);
            let side = if seed >> 63 == 0 { Side::Buy } else { Side::Sell };
            let action = if amount == 0 { LevelAction::Delete } else { LevelAction::Change };
            let change = BookLevel { action, price: price.into(), amount: amount.into() };
            book.apply(side, &change).unwrap();
            match amount {
                0 => map.remove(&(side == Side::Buy, price)),
                _ => map.insert((side == Side::Buy, price), amount),
            };
        }
        for side in [Side::Buy, Side::Sell] {
            let mut wanted: Vec<_> = map.iter().filter(|((bid, _), _)| *bid == (side == Side::Buy)).collect();
            if side == Side::Buy {
                wanted.reverse();
            }
            let wanted: Vec<_> = wanted.iter().map(|((_, price), amount)| (*price, **amount)).collect();
            let unit = 100_000_000;
            let got: Vec<_> =
                book.levels(side).map(|level| (level.price / unit, level.amount / unit)).collect();
            assert_eq!(got, wanted);
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_faults() {
        let mut book = Book::default();
        for (price, amount) in [("0.000000001", "1"), ("1", "100000000000000"), ("92233720369", "1")] {
            assert_eq!(
                book.apply(Side::Buy, &level(LevelAction::New, price, amount)),
                Err(LevelFault::Number)
            );
        }
        assert!(book.is_empty());
    }
}
