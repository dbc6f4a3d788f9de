//! The order book: the channel's snapshots and changes, and their levels.

use crate::field::{Field, List, codes, message};
use crate::number::Decimal;
use crate::scan::{Rest, ScanError, ScanErrorKind, Scanner};
use crate::text::Text;

/// Most levels of one side in one message; a message of more is refused.
pub const LEVELS_MAX: usize = 100_000;

codes! {
    /// What happened to a level.
    LevelAction {
        New = "new" "it is new, or it is one of a whole book",
        Change = "change" "its amount changed",
        Delete = "delete" "it is gone; its amount is 0",
    }
    /// What the levels of a message are to the book.
    BookUpdateKind {
        Snapshot = "snapshot" "all levels: forget what was before",
        Change = "change" "changed levels",
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

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        let rest = rest.open("[")?;
        let (action, rest) = match () {
            () if let Some(rest) = rest.after("\"change\",") => (LevelAction::Change, rest),
            () if let Some(rest) = rest.after("\"new\",") => (LevelAction::New, rest),
            () if let Some(rest) = rest.after("\"delete\",") => (LevelAction::Delete, rest),
            () => (LevelAction::New, rest),
        };
        let (PriceAmount { price, amount }, rest) = quick_pair(rest)?;
        Some((BookLevel { action, price, amount }, rest))
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

/// The price and the amount that end a level.
#[inline(always)]
fn quick_pair(rest: Rest<'_>) -> Option<(PriceAmount, Rest<'_>)> {
    let (price, rest) = rest.decimal()?;
    let (amount, rest) = rest.after(",")?.decimal()?;
    Some((PriceAmount { price, amount }, rest.after("]")?.close()))
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

    #[inline]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        quick_pair(rest.open("[")?)
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

    fn clear(&mut self) {
        self.bids.clear();
        self.asks.clear();
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
        levels.clear();
        if let Some(update) = scanner.quick_by(|rest| BookUpdate::quick(rest, levels)) {
            return Ok(update);
        }
        levels.clear();
        let (mut kind, mut timestamp, mut prev_change_id) = (None, None, None);
        let (mut instrument_name, mut change_id) = (None, None);
        let at = scanner.at();
        scanner.open_object()?;
        while scanner.next_member()? {
            match scanner.key()? {
                "type" => kind = Option::<BookUpdateKind>::read(scanner)?,
                "timestamp" => timestamp = Some(u64::read(scanner)?),
                "prev_change_id" => prev_change_id = Option::read(scanner)?,
                "instrument_name" => instrument_name = Some(scanner.text()?),
                "change_id" => change_id = Some(u64::read(scanner)?),
                "bids" => read_levels(scanner, &mut levels.bids)?,
                "asks" => read_levels(scanner, &mut levels.asks)?,
                _ => scanner.skip()?,
            }
        }
        let missing = |name| scanner.error_at(at, ScanErrorKind::Missing).of_member(name);
        Ok(BookUpdate {
            kind: match (kind, prev_change_id) {
                (Some(BookUpdateKind::Other), _) => {
                    return Err(scanner.error_at(at, ScanErrorKind::UnknownValue).of_member("type"));
                }
                (Some(kind), _) => kind,
                (None, None) => BookUpdateKind::Snapshot,
                (None, Some(_)) => BookUpdateKind::Change,
            },
            timestamp: timestamp.ok_or_else(|| missing("timestamp"))?,
            prev_change_id,
            instrument_name: instrument_name.ok_or_else(|| missing("instrument_name"))?,
            change_id: change_id.ok_or_else(|| missing("change_id"))?,
        })
    }

    /// The message as the server writes it: in this order, nothing else.
    #[inline]
    fn quick(rest: Rest<'a>, levels: &mut BookLevels) -> Option<(BookUpdate<'a>, Rest<'a>)> {
        let rest = rest.open("{")?;
        let (kind, rest) = optional_member::<BookUpdateKind>(rest, "\"type\":")?;
        let (timestamp, rest) = optional_member(rest, "\"timestamp\":")?;
        let (prev_change_id, rest) = optional_member(rest, "\"prev_change_id\":")?;
        let (instrument_name, rest) = optional_member(rest, "\"instrument_name\":")?;
        let (change_id, rest) = optional_member(rest, "\"change_id\":")?;
        let rest = quick_levels(rest.after("\"bids\":")?, &mut levels.bids)?;
        let rest = quick_levels(rest.after(",\"asks\":")?, &mut levels.asks)?;
        let update = BookUpdate {
            kind: match (kind, prev_change_id) {
                (Some(kind), _) => kind,
                (None, None) => BookUpdateKind::Snapshot,
                (None, Some(_)) => BookUpdateKind::Change,
            },
            timestamp: timestamp?,
            prev_change_id,
            instrument_name: instrument_name?,
            change_id: change_id?,
        };
        Some((update, rest.after("}")?.close()))
    }
}

/// A member that another follows, if it stands here.
#[inline(always)]
fn optional_member<'a, T: Field<'a>>(rest: Rest<'a>, name: &'static str) -> Option<(Option<T>, Rest<'a>)> {
    let Some(value) = rest.after(name) else { return Some((None, rest)) };
    let (value, end) = T::quick(value)?;
    Some((Some(value), end.after(",")?))
}

/// Takes all levels of a side when they are in the form that servers write, and not too many.
#[inline(never)]
fn quick_levels<'a>(rest: Rest<'a>, levels: &mut Vec<BookLevel>) -> Option<Rest<'a>> {
    let mut rest = rest.open("[")?;
    if let Some(end) = rest.after("]") {
        return Some(end.close());
    }
    while levels.len() < LEVELS_MAX {
        let (level, end) = BookLevel::quick(rest)?;
        levels.push(level);
        match end.after(",") {
            Some(next) => rest = next,
            None => return Some(end.after("]")?.close()),
        }
    }
    None
}

fn read_levels(scanner: &mut Scanner<'_>, levels: &mut Vec<BookLevel>) -> Result<(), ScanError> {
    levels.clear();
    if scanner.quick_by(|rest| Some(((), quick_levels(rest, levels)?))).is_some() {
        return Ok(());
    }
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
