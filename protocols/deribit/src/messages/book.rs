//! The order book: the channel's snapshots and changes, and their levels.

use crate::field::{Field, List, codes, find_member, message};
use crate::number::Decimal;
use crate::scan::{ScanError, ScanErrorKind, Scanner};
use crate::text::Text;

/// Most levels of one side in one message; a message of more is refused.
pub const LEVELS_MAX: usize = 100_000;

codes! {
    /// What happened to a level.
    pub enum LevelAction {
        /// It is new, or it is one of a whole book.
        New = "new",
        /// Its amount changed.
        Change = "change",
        /// It is gone; its amount is 0.
        Delete = "delete",
    }
}

codes! {
    /// What the levels of a message are to the book.
    pub enum BookUpdateKind {
        /// All levels: forget what was before.
        Snapshot = "snapshot",
        /// Changed levels.
        Change = "change",
    }
}

/// A level of the book, or what became of it: `["change",5042.0,950.0]`, or `[5042.0,950.0]` where only levels are
/// given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLevel {
    /// What happened to it.
    pub action: LevelAction,
    /// Its price.
    pub price: Decimal,
    /// Its amount from now on, not the difference.
    pub amount: Decimal,
}

impl<'a> Field<'a> for BookLevel {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.open_array()?;
        expect_element(scanner)?;
        let action = if scanner.peek() == Some(b'"') {
            let action = read_action(scanner)?;
            expect_element(scanner)?;
            action
        } else {
            LevelAction::New
        };
        let price = scanner.decimal()?;
        expect_element(scanner)?;
        let amount = scanner.decimal()?;
        expect_end(scanner)?;
        Ok(BookLevel { action, price, amount })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        self.action.write(out);
        out.push(b',');
        self.price.write(out);
        out.push(b',');
        self.amount.write(out);
        out.push(b']');
    }
}

/// A level that is unlike any other kind would be misread as one of them: it is refused.
#[inline]
fn read_action(scanner: &mut Scanner<'_>) -> Result<LevelAction, ScanError> {
    let at = scanner.at();
    match scanner.text()?.plain() {
        Some("change") => Ok(LevelAction::Change),
        Some("new") => Ok(LevelAction::New),
        Some("delete") => Ok(LevelAction::Delete),
        _ => Err(scanner.error_at(at, ScanErrorKind::UnknownValue)),
    }
}

#[inline]
fn expect_element(scanner: &mut Scanner<'_>) -> Result<(), ScanError> {
    if scanner.next_element()? { Ok(()) } else { Err(scanner.error(ScanErrorKind::WrongType)) }
}

#[inline]
fn expect_end(scanner: &mut Scanner<'_>) -> Result<(), ScanError> {
    if scanner.next_element()? { Err(scanner.error(ScanErrorKind::WrongType)) } else { Ok(()) }
}

/// A price and its amount: `[5042.0,950.0]`, of books of the best levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceAmount {
    /// The price.
    pub price: Decimal,
    /// The amount there.
    pub amount: Decimal,
}

impl<'a> Field<'a> for PriceAmount {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.open_array()?;
        expect_element(scanner)?;
        let price = scanner.decimal()?;
        expect_element(scanner)?;
        let amount = scanner.decimal()?;
        expect_end(scanner)?;
        Ok(PriceAmount { price, amount })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        self.price.write(out);
        out.push(b',');
        self.amount.write(out);
        out.push(b']');
    }
}

message! {
    /// Data of `book.{instrument}.{interval}`: to be written; [`BookUpdate`] reads faster.
    pub struct Book<'a> {
        /// Snapshot or change.
        pub kind as "type": Option<BookUpdateKind>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The `change_id` of the message before; not of snapshots.
        pub prev_change_id: Option<u64>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// This message's number.
        pub change_id: u64,
        /// Bids, best first in a snapshot.
        pub bids: List<'a, BookLevel>,
        /// Asks, best first in a snapshot.
        pub asks: List<'a, BookLevel>,
    }
}

message! {
    /// Data of `book.{instrument}.{group}.{depth}.{interval}`: the best levels, all of them each time.
    pub struct GroupedBook<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// This message's number.
        pub change_id: u64,
        /// Bids, best first.
        pub bids: List<'a, PriceAmount>,
        /// Asks, best first.
        pub asks: List<'a, PriceAmount>,
    }
}

/// The levels of one book message: a buffer to be used again and again.
#[derive(Clone, Debug, Default)]
pub struct BookLevels {
    /// Bids as they came.
    pub bids: Vec<BookLevel>,
    /// Asks as they came.
    pub asks: Vec<BookLevel>,
}

impl BookLevels {
    /// With room for so many levels of each side; it grows where a message has more.
    #[must_use]
    pub fn with_capacity(levels: usize) -> BookLevels {
        BookLevels { bids: Vec::with_capacity(levels), asks: Vec::with_capacity(levels) }
    }
}

/// Data of every book channel, read in one pass; the levels are in a [`BookLevels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookUpdate<'a> {
    /// Snapshot or change; grouped books are snapshots.
    pub kind: BookUpdateKind,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// The `change_id` that the book must have, for this change to apply; of changes only.
    pub prev_change_id: Option<u64>,
    /// The instrument.
    pub instrument_name: Text<'a>,
    /// The number that the book has then.
    pub change_id: u64,
}

impl<'a> BookUpdate<'a> {
    /// Reads the message; `levels` is emptied first.
    ///
    /// Old servers name no kind: a message without `prev_change_id` is a snapshot.
    ///
    /// # Errors
    /// [`ScanError`]; `levels` then has nothing that may be used.
    pub fn read(scanner: &mut Scanner<'a>, levels: &mut BookLevels) -> Result<BookUpdate<'a>, ScanError> {
        const NAMES: &[&str] =
            &["type", "timestamp", "prev_change_id", "instrument_name", "change_id", "bids", "asks"];
        let (mut kind, mut timestamp, mut prev_change_id) = (None, None, None);
        let (mut instrument_name, mut change_id) = (None, None);
        levels.bids.clear();
        levels.asks.clear();
        let at = scanner.at();
        scanner.open_object()?;
        let mut hint = 0;
        while let Some(key) = scanner.next_key()? {
            let place = find_member(NAMES, hint, key);
            match place {
                0 => kind = Option::<BookUpdateKind>::read(scanner)?,
                1 => timestamp = Some(u64::read(scanner)?),
                2 => prev_change_id = Option::<u64>::read(scanner)?,
                3 => instrument_name = Some(scanner.text()?),
                4 => change_id = Some(u64::read(scanner)?),
                5 => read_levels(scanner, &mut levels.bids)?,
                6 => read_levels(scanner, &mut levels.asks)?,
                _ => {
                    scanner.skip()?;
                    continue;
                }
            }
            hint = place + 1;
        }
        let missing = |place: usize| scanner.error_at(at, ScanErrorKind::Missing).of_member(NAMES[place]);
        Ok(BookUpdate {
            kind: match (kind, prev_change_id) {
                (Some(BookUpdateKind::Other), _) => {
                    return Err(scanner.error_at(at, ScanErrorKind::UnknownValue).of_member("type"));
                }
                (Some(kind), _) => kind,
                (None, None) => BookUpdateKind::Snapshot,
                (None, Some(_)) => BookUpdateKind::Change,
            },
            timestamp: timestamp.ok_or_else(|| missing(1))?,
            prev_change_id,
            instrument_name: instrument_name.ok_or_else(|| missing(3))?,
            change_id: change_id.ok_or_else(|| missing(4))?,
        })
    }
}

#[inline]
fn read_levels(scanner: &mut Scanner<'_>, levels: &mut Vec<BookLevel>) -> Result<(), ScanError> {
    levels.clear();
    scanner.open_array()?;
    while scanner.next_element()? {
        if levels.len() == LEVELS_MAX {
            return Err(scanner.error(ScanErrorKind::TooMany));
        }
        levels.push(BookLevel::read(scanner)?);
    }
    Ok(())
}
