//! The order book: the channel's snapshots and changes, and their levels.

use crate::field::{Field, List, codes, message};
use crate::number::Decimal;
use crate::scan::{ScanError, ScanErrorKind, Scanner};
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

/// A member of a book message.
#[derive(Clone, Copy)]
enum Member {
    Kind,
    Timestamp,
    PrevChangeId,
    InstrumentName,
    ChangeId,
    Bids,
    Asks,
    Unknown,
}

impl Member {
    #[cold]
    fn of(name: &str) -> Member {
        match name {
            "type" => Member::Kind,
            "timestamp" => Member::Timestamp,
            "prev_change_id" => Member::PrevChangeId,
            "instrument_name" => Member::InstrumentName,
            "change_id" => Member::ChangeId,
            "bids" => Member::Bids,
            "asks" => Member::Asks,
            _ => Member::Unknown,
        }
    }
}

/// Takes the name of a member in the form that the server writes.
#[inline(always)]
fn usual_member(scanner: &mut Scanner<'_>) -> Option<Member> {
    Some(match () {
        () if scanner.take("\"timestamp\":") => Member::Timestamp,
        () if scanner.take("\"type\":") => Member::Kind,
        () if scanner.take("\"change_id\":") => Member::ChangeId,
        () if scanner.take("\"prev_change_id\":") => Member::PrevChangeId,
        () if scanner.take("\"instrument_name\":") => Member::InstrumentName,
        () if scanner.take("\"bids\":") => Member::Bids,
        () if scanner.take("\"asks\":") => Member::Asks,
        () => return None,
    })
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
        let (mut kind, mut timestamp, mut prev_change_id) = (None, None, None);
        let (mut instrument_name, mut change_id) = (None, None);
        levels.bids.clear();
        levels.asks.clear();
        let at = scanner.at();
        scanner.open_object()?;
        while scanner.next_member()? {
            let member = match usual_member(scanner) {
                Some(member) => member,
                None => Member::of(scanner.key()?),
            };
            match member {
                Member::Kind => kind = Option::<BookUpdateKind>::read(scanner)?,
                Member::Timestamp => timestamp = Some(u64::read(scanner)?),
                Member::PrevChangeId if scanner.try_null()? => prev_change_id = None,
                Member::PrevChangeId => prev_change_id = Some(u64::read(scanner)?),
                Member::InstrumentName => instrument_name = Some(scanner.text()?),
                Member::ChangeId => change_id = Some(u64::read(scanner)?),
                Member::Bids => read_levels(scanner, &mut levels.bids)?,
                Member::Asks => read_levels(scanner, &mut levels.asks)?,
                Member::Unknown => scanner.skip()?,
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
}

/// A level in the form that the server writes, at the start of `bytes`, and its length.
#[inline]
fn quick_level(bytes: &[u8]) -> Option<(BookLevel, usize)> {
    let (action, mut at) = if bytes.starts_with(b"[\"change\",") {
        (LevelAction::Change, 10)
    } else if bytes.starts_with(b"[\"new\",") {
        (LevelAction::New, 7)
    } else if bytes.starts_with(b"[\"delete\",") {
        (LevelAction::Delete, 10)
    } else if bytes.first() == Some(&b'[') {
        (LevelAction::New, 1)
    } else {
        return None;
    };
    let (price, len) = Decimal::read_quick(bytes.get(at..)?)?;
    at += len;
    if bytes.get(at) != Some(&b',') {
        return None;
    }
    let (amount, len) = Decimal::read_quick(bytes.get(at + 1..)?)?;
    at += 1 + len;
    if bytes.get(at) != Some(&b']') {
        return None;
    }
    Some((BookLevel { action, price, amount }, at + 1))
}

/// Takes levels from the start of `bytes` as long as they are in that form, and gives their length; none when the first
/// is not.
#[inline]
fn quick_levels(bytes: &[u8], levels: &mut Vec<BookLevel>) -> Option<((), usize)> {
    let (first, mut end) = quick_level(bytes)?;
    levels.push(first);
    while levels.len() < LEVELS_MAX && bytes.get(end) == Some(&b',') {
        let Some((level, len)) = bytes.get(end + 1..).and_then(quick_level) else { break };
        levels.push(level);
        end += 1 + len;
    }
    Some(((), end))
}

#[inline]
fn read_levels(scanner: &mut Scanner<'_>, levels: &mut Vec<BookLevel>) -> Result<(), ScanError> {
    levels.clear();
    scanner.open_array()?;
    while scanner.next_element()? {
        if levels.len() == LEVELS_MAX {
            return Err(scanner.error(ScanErrorKind::TooMany));
        }
        if scanner.quick(|rest| quick_levels(rest, levels)).is_none() {
            levels.push(BookLevel::read(scanner)?);
        }
    }
    Ok(())
}
