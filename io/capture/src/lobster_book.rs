//! LOBSTER order book files.
//!
//! Source: LOBSTER "Orderbook file": `ask price 1, ask size 1, bid price 1, bid size 1, ask price 2, ...`,
//! one line for each line of the message file: the state after that message. A missing level has size 0 and
//! price 9999999999 or -9999999999.

use std::io::Read;
use std::path::{Path, PathBuf};

use tickpath_agent::StopSignal;
use tickpath_types::{Price, Qty, Side};

use crate::format::open;
use crate::lobster::is_header;
use crate::window::Window;
use crate::{CaptureError, Position, ReadError};

/// Maximum number of levels in a row.
pub const LOBSTER_LEVELS_MAX: usize = 200;
/// Maximum length of a line in bytes: each number has at most 12 characters and a comma.
const LINE_LEN_MAX: usize = LOBSTER_LEVELS_MAX * 4 * 13;
/// Number of columns of one level: price and size of ask and bid.
const COLUMNS_PER_LEVEL: usize = 4;

/// One row of an order book file: the visible levels after one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LobsterBookRow {
    /// Existing levels of each side, best first; indexed by [`Side::index`].
    pub sides: [Vec<(Price, Qty)>; 2],
    /// Number of levels per side in the file.
    pub level_count: usize,
}

/// Reads a LOBSTER order book file, already decompressed, with or without a header.
pub struct LobsterBookReader<R> {
    window: Window<R>,
    line: u64,
    level_count: Option<usize>,
}

impl LobsterBookReader<Box<dyn Read + Send>> {
    /// Opens a plain, gzip or Zstandard file. After the stop signal, reads from a pipe fail.
    ///
    /// # Errors
    /// [`CaptureError`] when the file cannot be opened.
    pub fn open(path: impl AsRef<Path>, stop: &StopSignal) -> Result<Self, CaptureError> {
        Ok(LobsterBookReader::new(open(path.as_ref(), stop)?.0))
    }
}

impl<R: Read> LobsterBookReader<R> {
    /// Creates a reader of one file.
    pub fn new(reader: R) -> Self {
        LobsterBookReader { window: Window::new(reader), line: 0, level_count: None }
    }

    /// Number of the last line read, counted from 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next row into `row`; false at the end.
    ///
    /// # Errors
    /// [`ReadError`] for the first invalid row; do not read further.
    pub fn next_row(&mut self, row: &mut LobsterBookRow) -> Result<bool, ReadError> {
        loop {
            let Some((len, is_ended)) = self.window.next_line(self.line + 1, LINE_LEN_MAX)? else {
                return Ok(false);
            };
            let line = self.window.data()[..len].trim_ascii_end();
            self.line += 1;
            let is_row = !(line.is_empty() || (self.line == 1 && is_header(line)));
            let parsed = if is_row { parse(line, row) } else { Ok(()) };
            let offset = self.window.offset();
            self.window.consume(len + usize::from(is_ended));
            match parsed {
                _ if !is_row => continue,
                Err(_) if !is_ended => return Err(ReadError::Truncated { offset }),
                Err(what) => return Err(ReadError::malformed(Position::Line(self.line), what)),
                Ok(()) if *self.level_count.get_or_insert(row.level_count) != row.level_count => {
                    let what = "another number of columns than before";
                    return Err(ReadError::malformed(Position::Line(self.line), what));
                }
                Ok(()) => return Ok(true),
            }
        }
    }
}

fn parse(line: &[u8], row: &mut LobsterBookRow) -> Result<(), &'static str> {
    row.sides.iter_mut().for_each(Vec::clear);
    let mut columns = 0;
    let mut price = 0;
    for field in line.split(|byte| *byte == b',') {
        let number: i64 = std::str::from_utf8(field.trim_ascii())
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or("a column that is not a whole number")?;
        let side = if columns % COLUMNS_PER_LEVEL < 2 { Side::Sell } else { Side::Buy };
        if columns % 2 == 0 {
            price = number;
        } else {
            let qty = u64::try_from(number).map_err(|_| "a size below zero")?;
            if qty > 0 {
                row.sides[side.index()].push((Price(price), Qty(qty)));
            }
        }
        columns += 1;
    }
    if columns == 0 || columns % COLUMNS_PER_LEVEL != 0 || columns / COLUMNS_PER_LEVEL > LOBSTER_LEVELS_MAX {
        return Err("a number of columns that is no multiple of four, or more than 200 levels");
    }
    row.level_count = columns / COLUMNS_PER_LEVEL;
    Ok(())
}

/// The order book file in the folder of a message file, if it exists. Its name has `orderbook` in place of
/// the message file's last `message`.
#[must_use]
pub fn order_book_file_for(message_file: &Path) -> Option<PathBuf> {
    let name = message_file.file_name()?.to_str()?;
    let (before, after) = name.rsplit_once("message")?;
    let file = message_file.with_file_name(format!("{before}orderbook{after}"));
    file.is_file().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_levels_of_the_file() {
        let text = "BestAsk,BestAskVolume,BestBid,BestBidVolume,A2,A2V,B2,B2V\n\
                    2239500,100,2231800,50,2239900,7,-9999999999,0\r\n\n\
                    9999999999,0,2231800,50,9999999999,0,2231700,1";
        let mut reader = LobsterBookReader::new(text.as_bytes());
        let mut row = LobsterBookRow::default();
        assert!(reader.next_row(&mut row).unwrap());
        assert_eq!(row.level_count, 2);
        assert_eq!(row.sides[Side::Sell.index()], [(Price(2_239_500), Qty(100)), (Price(2_239_900), Qty(7))]);
        assert_eq!(row.sides[Side::Buy.index()], [(Price(2_231_800), Qty(50))]);
        assert!(reader.next_row(&mut row).unwrap());
        assert_eq!((row.sides[0].len(), row.sides[1].len(), reader.line()), (2, 0, 4));
        assert!(!reader.next_row(&mut row).unwrap());
    }

    #[test]
    fn an_invalid_row_is_an_error_with_its_line() {
        for (text, expected) in [
            ("1,2,3,4\n1,2,3\n", "line 2"),
            ("1,2,3,4\n1,2,3,4,5,6,7,8\n", "another number of columns"),
            ("1,x,3,4\n", "not a whole number"),
            ("1,-2,3,4\n", "below zero"),
            ("1,2,3", "cut short"),
        ] {
            let mut reader = LobsterBookReader::new(text.as_bytes());
            let mut row = LobsterBookRow::default();
            let error = loop {
                match reader.next_row(&mut row) {
                    Ok(true) => {}
                    Ok(false) => panic!("{text}: no error"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_the_bound() {
        let row_of = |levels: usize| vec!["9999999999,0,-999999999,0"; levels].join(",");
        let mut row = LobsterBookRow::default();
        let at_bound = row_of(LOBSTER_LEVELS_MAX);
        assert!(LobsterBookReader::new(at_bound.as_bytes()).next_row(&mut row).unwrap());
        let beyond = row_of(LOBSTER_LEVELS_MAX + 1) + "\n";
        assert!(LobsterBookReader::new(beyond.as_bytes()).next_row(&mut row).is_err());
    }
}
