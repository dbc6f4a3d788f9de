//! The order book: the channel's snapshots and changes, and their levels.

use crate::field::{Field, List, codes, message};
use crate::number::{Decimal, price_amount};
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
        // A level opens a container.
        rest.open("[")?;
        let frame = rest.frame();
        let at = rest.at();
        let (level, end) = quick_level(frame, at)?;
        Some((level, rest.skip(end - at)?))
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

/// The level at `at` and where it ends.
#[inline(always)]
fn quick_level(frame: &str, at: usize) -> Option<(BookLevel, usize)> {
    let (action, at) = quick_action(frame.as_bytes(), at)?;
    let (price, amount, end) = quick_pair(frame, at)?;
    Some((BookLevel { action, price, amount }, end))
}

/// What becomes of the level at `at`, and where its price is.
#[inline(always)]
fn quick_action(frame: &[u8], at: usize) -> Option<(LevelAction, usize)> {
    const CHANGE: u64 = u64::from_le_bytes(*b"[\"change");
    const DELETE: u64 = u64::from_le_bytes(*b"[\"delete");
    const NEW: u64 = u64::from_le_bytes(*b"[\"new\",\0");
    let head: &[u8; 10] = frame.get(at..)?.first_chunk()?;
    let [a, b, c, d, e, f, g, h, end @ ..] = *head;
    let (word, is_end) = (u64::from_le_bytes([a, b, c, d, e, f, g, h]), end == *b"\",");
    match word {
        CHANGE if is_end => Some((LevelAction::Change, at + 10)),
        _ if word << 8 == NEW << 8 => Some((LevelAction::New, at + 7)),
        DELETE if is_end => Some((LevelAction::Delete, at + 10)),
        // Only levels are given; or it is something else, which is no price.
        _ => (a == b'[').then_some((LevelAction::New, at + 1)),
    }
}

/// The price and the amount that end a level, and where it ends.
#[inline(always)]
fn quick_pair(frame: &str, at: usize) -> Option<(Decimal, Decimal, usize)> {
    match price_amount(frame.as_bytes(), at) {
        Some(pair) => Some(pair),
        None => unusual_pair(frame, at),
    }
}

/// [`quick_pair`] of numbers that are whole, long or negative.
#[inline(never)]
fn unusual_pair(frame: &str, at: usize) -> Option<(Decimal, Decimal, usize)> {
    let bytes = frame.as_bytes();
    let (price, len) = Decimal::read_shared(bytes.get(at..)?)?;
    let at = at + len;
    let (amount, len) = Decimal::read_shared(bytes.get(at..)?.strip_prefix(b",")?)?;
    let at = at + 1 + len;
    (*bytes.get(at)? == b']').then_some((price, amount, at + 1))
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
        let inner = rest.open("[")?;
        let at = inner.at();
        let (price, amount, end) = quick_pair(inner.frame(), at)?;
        Some((PriceAmount { price, amount }, inner.skip(end - at)?.close()))
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
    let inner = rest.open("[")?;
    if let Some(end) = inner.after("]") {
        return Some(end.close());
    }
    // Each level opens a container.
    if !inner.has_room() {
        return None;
    }
    let (frame, start) = (inner.frame(), inner.at());
    let mut at = start;
    while levels.len() < LEVELS_MAX {
        let (level, end) = quick_level(frame, at)?;
        levels.push(level);
        at = end + 1;
        match frame.as_bytes().get(end)? {
            b',' => {}
            b']' => return Some(inner.skip(at - start)?.close()),
            _ => return None,
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
