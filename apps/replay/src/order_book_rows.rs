//! Compares LOBSTER messages with the order book rows that belong to them.

use std::io::Read;

use serde::Serialize;
use tickpath_capture::{LobsterBookReader, LobsterBookRow, ReadError};
use tickpath_recording::{EventKind, RecordedEvent};
use tickpath_types::{Price, Qty, Side};

/// The result of comparing each row with its message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowsReport {
    /// Path of the order book file.
    pub file: String,
    /// Rows that are determined by the previous row and their message, and were compared.
    pub determined: u64,
    /// Rows that are not determined: the first, and those with a new level from below the file's depth.
    pub undeterminable: u64,
    /// Determined rows that differ from the expected row.
    pub different: u64,
    /// Description of the first difference, or the reason why the comparison ended.
    pub first_difference: Option<String>,
}

/// Compares each row of a LOBSTER order book file with its message.
///
/// The previous row and the message determine a row, with two exceptions: the first row, and a row whose
/// message removes a whole level of a side with as many levels as the file records. In that case an unknown
/// level becomes visible. An add puts its quantity at its level; if there are then too many levels, the worst
/// one disappears. A reduction, deletion or execution takes its quantity off its level. A hidden execution, a
/// cross, a halt, or an event below the visible levels changes nothing.
pub(crate) struct RowCheck<R> {
    rows: LobsterBookReader<R>,
    before: LobsterBookRow,
    expected: LobsterBookRow,
    row: LobsterBookRow,
    has_before: bool,
    is_ended: bool,
    report: RowsReport,
}

impl<R: Read> RowCheck<R> {
    pub(crate) fn new(rows: LobsterBookReader<R>, file: String) -> RowCheck<R> {
        let row = LobsterBookRow::default;
        RowCheck {
            rows,
            before: row(),
            expected: row(),
            row: row(),
            has_before: false,
            is_ended: false,
            report: RowsReport { file, ..RowsReport::default() },
        }
    }

    /// Compares the row of the next message with the expected row.
    pub(crate) fn message(&mut self, number: u64, event: &RecordedEvent) {
        if self.is_ended {
            return;
        }
        match self.rows.next_row(&mut self.row) {
            Ok(true) => {}
            Ok(false) => return self.end(format!("the order book file has no row for message {number}")),
            Err(error) => return self.end(row_error(&error)),
        }
        self.expected.clone_from(&self.before);
        let outcome = match self.has_before {
            true => apply_event(&mut self.expected, &event.kind),
            false => Outcome::Undeterminable,
        };
        match outcome {
            Outcome::Undeterminable => self.report.undeterminable += 1,
            Outcome::Determined if self.expected == self.row => self.report.determined += 1,
            Outcome::Determined => {
                self.differs(number, &format!("the expected row is {}", levels_text(&self.expected)));
            }
            Outcome::Impossible => self.differs(number, "the message removes more than the row shows"),
        }
        std::mem::swap(&mut self.before, &mut self.row);
        self.has_before = true;
    }

    fn differs(&mut self, number: u64, what: &str) {
        self.report.determined += 1;
        self.report.different += 1;
        let (line, before, row) = (self.rows.line(), levels_text(&self.before), levels_text(&self.row));
        self.report.first_difference.get_or_insert_with(|| {
            format!("message {number}, line {line} of the order book file: after {before} {what}; the actual row is {row}")
        });
    }

    fn end(&mut self, reason: String) {
        self.is_ended = true;
        self.report.different += 1;
        self.report.first_difference.get_or_insert(reason);
    }

    /// Returns the result; `is_whole` means that every message of the file was passed.
    pub(crate) fn finish(mut self, is_whole: bool) -> RowsReport {
        if is_whole && !self.is_ended {
            match self.rows.next_row(&mut self.row) {
                Ok(false) => {}
                Ok(true) => {
                    let line = self.rows.line();
                    self.end(format!("line {line} of the order book file has no message"));
                }
                Err(error) => self.end(row_error(&error)),
            }
        }
        self.report
    }
}

fn row_error(error: &ReadError) -> String {
    format!("the order book file: {error}")
}

/// The result of applying a message to the previous row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Determined,
    /// A level becomes visible that the previous row does not show.
    Undeterminable,
    /// The previous row lacks the quantity that the message takes.
    Impossible,
}

/// Applies a message to the visible levels of a row.
fn apply_event(row: &mut LobsterBookRow, kind: &EventKind) -> Outcome {
    match *kind {
        EventKind::Add { level, qty, .. } => {
            add(row, level.side, level.price, qty);
            Outcome::Determined
        }
        EventKind::Reduce { by, level: Some(level), .. } => take(row, level.side, level.price, by),
        EventKind::Delete { qty: Some(qty), level: Some(level), .. } => {
            take(row, level.side, level.price, qty)
        }
        EventKind::Fill { qty, side: Some(side), price: Some(price), .. } => take(row, side, price, qty),
        _ => Outcome::Determined,
    }
}

fn add(row: &mut LobsterBookRow, side: Side, price: Price, qty: Qty) {
    let level_count = row.level_count;
    let levels = &mut row.sides[side.index()];
    match levels.iter().position(|(resting, _)| !side.is_better(*resting, price)) {
        Some(index) if levels[index].0 == price => {
            levels[index].1.0 = levels[index].1.0.saturating_add(qty.0)
        }
        Some(index) => levels.insert(index, (price, qty)),
        None => levels.push((price, qty)),
    }
    levels.truncate(level_count);
}

fn take(row: &mut LobsterBookRow, side: Side, price: Price, qty: Qty) -> Outcome {
    let level_count = row.level_count;
    let levels = &mut row.sides[side.index()];
    let is_full = levels.len() == level_count;
    match levels.iter().position(|(resting, _)| *resting == price) {
        Some(index) if qty < levels[index].1 => {
            levels[index].1.0 -= qty.0;
            Outcome::Determined
        }
        Some(index) if qty == levels[index].1 => {
            levels.remove(index);
            if is_full { Outcome::Undeterminable } else { Outcome::Determined }
        }
        // The price is below the visible levels, so the row does not change.
        None if is_full && levels.last().is_some_and(|(worst, _)| side.is_better(*worst, price)) => {
            Outcome::Determined
        }
        _ => Outcome::Impossible,
    }
}

/// Describes the visible levels, bids first.
fn levels_text(row: &LobsterBookRow) -> String {
    let side = |side: Side| {
        let levels: Vec<String> =
            row.sides[side.index()].iter().map(|(price, qty)| format!("{qty} at {price}")).collect();
        if levels.is_empty() { "nothing".to_owned() } else { levels.join(", ") }
    };
    format!("bid {} / ask {}", side(Side::Buy), side(Side::Sell))
}

#[cfg(test)]
mod tests {
    use tickpath_capture::{Depth, EventReader, LobsterReader};

    use super::*;

    fn check(messages: &str, rows: &str) -> RowsReport {
        let mut events = LobsterReader::new(messages.as_bytes(), "ABC", Depth::Partial { levels: Some(2) });
        let mut check = RowCheck::new(LobsterBookReader::new(rows.as_bytes()), "rows".to_owned());
        let mut number = 0;
        while let Some(event) = events.next_event().unwrap() {
            number += 1;
            check.message(number, &event);
        }
        check.finish(true)
    }

    const NONE: &str = "9999999999,0,-9999999999,0";

    #[test]
    fn rows_follow_from_messages() {
        let messages = "1,1,1,10,100,1\n2,1,2,5,99,1\n3,1,3,7,98,1\n4,1,4,1,101,1\n5,4,4,1,101,1\n6,2,1,3,100,1\n7,5,0,9,99,1\n8,1,9,4,105,-1\n9,3,9,4,105,-1\n";
        let bids = |a: &str, b: &str| format!("9999999999,0,{a},9999999999,0,{b}");
        let rows = [
            bids("100,10", "-9999999999,0"),
            bids("100,10", "99,5"),
            // The third level is below the visible ones.
            bids("100,10", "99,5"),
            bids("101,1", "100,10"),
            // The level that becomes visible again is not known from the previous row.
            bids("100,10", "99,5"),
            bids("100,7", "99,5"),
            bids("100,7", "99,5"),
            "105,4,100,7,9999999999,0,99,5".to_owned(),
            // A side with fewer levels than the file's depth shows all of its levels.
            bids("100,7", "99,5"),
        ];
        let report = check(messages, &rows.join("\n"));
        assert_eq!((report.determined, report.undeterminable, report.different), (7, 2, 0), "{report:?}");
    }

    #[test]
    fn a_wrong_row_is_reported() {
        let rows = format!("100,5,{},\n", NONE.split_once(",0,").unwrap().1).replace(",\n", "\n");
        let report = check("1,1,1,5,100,-1\n2,1,2,5,100,-1\n", &format!("{rows}100,9,-9999999999,0\n"));
        assert_eq!((report.determined, report.different), (1, 1));
        let difference = report.first_difference.unwrap();
        assert!(
            difference.contains("message 2")
                && difference.contains("10 at 0.0100")
                && difference.contains("9 at 0.0100"),
            "{difference}"
        );
    }

    #[test]
    fn files_of_different_length_differ() {
        let row = format!("{NONE}\n");
        for (messages, rows) in [("1,5,0,1,1,1\n2,5,0,1,1,1\n", &row), ("1,5,0,1,1,1\n", &row.repeat(2))] {
            assert_eq!(check(messages, rows).different, 1);
        }
    }
}
