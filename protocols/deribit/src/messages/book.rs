//! The order book: snapshots and changes of the channel, with their levels.

use crate::field::{Field, List, codes, message};
use crate::number::{Decimal, price_amount};
use crate::scan::{Rest, ScanError, ScanErrorKind, Scanner};
use crate::text::Text;

/// Maximum number of levels per side in a message; longer messages are rejected.
pub const LEVELS_MAX: usize = 100_000;

codes! {
    /// Action on a level.
    LevelAction {
        New = "new" "it is new, or it is one of a whole book",
        Change = "change" "its amount changed",
        Delete = "delete" "it is gone; its amount is 0",
    }
    /// Kind of a book message.
    BookUpdateKind {
        Snapshot = "snapshot" "all levels: forget what was before",
        Change = "change" "changed levels",
    }
}

/// A level of the book, or a change of it: `["change",5042.0,950.0]`, or `[5042.0,950.0]` without an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookLevel {
    /// Action on the level.
    pub action: LevelAction,
    /// Its price.
    pub price: Decimal,
    /// New amount, not the difference.
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
        // A level opens one container.
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

/// An unknown action is rejected, because the level would otherwise be misread as another action.
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

/// Reads the level at `at`, with its end position.
#[inline(always)]
fn quick_level(frame: &str, at: usize) -> Option<(BookLevel, usize)> {
    let (action, at) = quick_action(frame.as_bytes(), at)?;
    let (price, amount, end) = quick_pair(frame, at)?;
    Some((BookLevel { action, price, amount }, end))
}

/// Reads the action of the level at `at`, with the position of its price.
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
        // A level without an action; any other value is no price and fails later.
        _ => (a == b'[').then_some((LevelAction::New, at + 1)),
    }
}

/// Reads the price and the amount at the end of a level, with its end position.
#[inline(always)]
fn quick_pair(frame: &str, at: usize) -> Option<(Decimal, Decimal, usize)> {
    match price_amount(frame.as_bytes(), at) {
        Some(pair) => Some(pair),
        None => unusual_pair(frame, at),
    }
}

/// [`quick_pair`] for integers and for long or negative numbers.
#[inline(never)]
fn unusual_pair(frame: &str, at: usize) -> Option<(Decimal, Decimal, usize)> {
    let bytes = frame.as_bytes();
    let (price, len) = Decimal::read_shared(bytes.get(at..)?)?;
    let at = at + len;
    let (amount, len) = Decimal::read_shared(bytes.get(at..)?.strip_prefix(b",")?)?;
    let at = at + 1 + len;
    (*bytes.get(at)? == b']').then_some((price, amount, at + 1))
}

/// A price and its amount: `[5042.0,950.0]`, in books of the best levels.
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
    /// Data of `book.{instrument}.{interval}`, for writing; [`BookUpdate`] decodes faster.
    pub struct Book<'a> {
        /// Snapshot or change.
        pub kind as "type": Option<BookUpdateKind>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The `change_id` of the previous message; absent in snapshots.
        pub prev_change_id: Option<u64>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of this message.
        pub change_id: u64,
        /// Bids, best first in a snapshot.
        pub bids: List<'a, BookLevel>,
        /// Asks, best first in a snapshot.
        pub asks: List<'a, BookLevel>,
    }
}

message! {
    /// Data of `book.{instrument}.{group}.{depth}.{interval}`: the best levels, complete in each message.
    pub struct GroupedBook<'a> {
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of this message.
        pub change_id: u64,
        /// Bids, best first.
        pub bids: List<'a, PriceAmount>,
        /// Asks, best first.
        pub asks: List<'a, PriceAmount>,
    }
}

/// Reusable buffer for the levels of one book message.
#[derive(Clone, Debug, Default)]
pub struct BookLevels {
    /// Bids in the order received.
    pub bids: Vec<BookLevel>,
    /// Asks in the order received.
    pub asks: Vec<BookLevel>,
}

impl BookLevels {
    /// Creates a buffer with this capacity of levels per side; it grows if a message has more.
    #[must_use]
    pub fn with_capacity(levels: usize) -> BookLevels {
        BookLevels { bids: Vec::with_capacity(levels), asks: Vec::with_capacity(levels) }
    }

    fn clear(&mut self) {
        self.bids.clear();
        self.asks.clear();
    }
}

/// Data of any book channel, decoded in one pass; the levels are in a [`BookLevels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookUpdate<'a> {
    /// Snapshot or change; grouped books are snapshots.
    pub kind: BookUpdateKind,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// The `change_id` that the book must have for this change to apply; only in changes.
    pub prev_change_id: Option<u64>,
    /// The instrument.
    pub instrument_name: Text<'a>,
    /// The `change_id` of the book after this message.
    pub change_id: u64,
}

impl<'a> BookUpdate<'a> {
    /// Decodes the message; `levels` is cleared first.
    ///
    /// Old servers do not state the kind: a message without `prev_change_id` is a snapshot.
    ///
    /// # Errors
    /// [`ScanError`]; the content of `levels` is then invalid.
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

    /// Reads the message in the form that the server writes: only these members, in this order.
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

/// Reads a member that another one follows, if it is here.
#[inline(always)]
fn optional_member<'a, T: Field<'a>>(rest: Rest<'a>, name: &'static str) -> Option<(Option<T>, Rest<'a>)> {
    let Some(value) = rest.after(name) else { return Some((None, rest)) };
    let (value, end) = T::quick(value)?;
    Some((Some(value), end.after(",")?))
}

/// Reads all levels of a side if they have the form that servers write and are not too many.
#[inline(never)]
fn quick_levels<'a>(rest: Rest<'a>, levels: &mut Vec<BookLevel>) -> Option<Rest<'a>> {
    let inner = rest.open("[")?;
    if let Some(end) = inner.after("]") {
        return Some(end.close());
    }
    // Each level opens one container.
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
