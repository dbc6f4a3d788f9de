//! Reader of a segment of market data.

use std::ops::Deref;

use tickpath_lockfree::SharedLines;
use tickpath_lockfree::broadcast::Receiver;
use tickpath_lockfree::table::{self, Entry, ReadError};
use tickpath_types::{MarketUpdate, TopOfBook};

use crate::header::KIND_MARKET_DATA;
use crate::live::LiveWord;
use crate::opened::OpenedSegment;
use crate::writer::Sections;
use crate::{Folder, SegmentName, ShmError, SymbolName};

/// Reads a segment of market data, which it maps read-only.
///
/// It validates all contents: whatever the file holds, its methods return a value or an error. Another
/// process of the same user can still truncate the file; [`is_whole`](OpenedSegment::is_whole) detects that.
#[derive(Debug)]
pub struct SegmentReader {
    opened: OpenedSegment,
    names: table::Reader<SymbolName>,
    quotes: table::Reader<TopOfBook>,
    stream: Option<SharedLines>,
}

impl SegmentReader {
    /// Opens the current segment of this name.
    ///
    /// # Errors
    /// [`ShmError::Missing`], [`ShmError::NotPrivate`], [`ShmError::Damaged`], [`ShmError::OtherKind`], and
    /// the system's errors.
    pub fn open(folder: &Folder, name: &SegmentName) -> Result<SegmentReader, ShmError> {
        SegmentReader::over(OpenedSegment::open(folder, name)?.expect(KIND_MARKET_DATA)?)
    }

    pub(crate) fn over(opened: OpenedSegment) -> Result<SegmentReader, ShmError> {
        let sections = Sections::of(&opened.lines, opened.header()).ok_or_else(|| opened.damaged())?;
        let Sections { names, quotes, stream } = sections;
        Ok(SegmentReader {
            names: table::Reader::over(names),
            quotes: table::Reader::over(quotes),
            stream,
            opened,
        })
    }

    /// Returns the number of rows, one for each instrument.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.quotes.entries()
    }

    /// Returns the latest quote of an instrument; zeros when there was none.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when every attempt collided with a write, [`ReadError::NoEntry`] beyond the rows.
    #[inline]
    pub fn try_read(&self, index: usize) -> Result<TopOfBook, ReadError> {
        self.quotes.try_read(index)
    }

    /// Returns the quote entry of an instrument, for callers that read it often.
    #[inline]
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<Entry<'_, TopOfBook>> {
        self.quotes.entry(index)
    }

    /// Returns a reader of the quotes that can outlive this reader.
    #[must_use]
    pub fn quotes(&self) -> table::Reader<TopOfBook> {
        self.quotes.clone()
    }

    /// Returns the name of a row; `None` when it has none.
    #[must_use]
    pub fn symbol(&self, index: usize) -> Option<SymbolName> {
        self.names.try_read(index).ok().filter(|name| name.as_str().is_some())
    }

    /// Returns the unvalidated name of a row.
    pub(crate) fn raw_symbol(&self, index: usize) -> Result<SymbolName, ReadError> {
        self.names.try_read(index)
    }

    /// Returns every row that has a name.
    pub fn symbols(&self) -> impl Iterator<Item = (usize, SymbolName)> {
        (0..self.rows()).filter_map(|index| Some((index, self.symbol(index)?)))
    }

    /// Returns the row with this name. Searches all rows, so frequent callers should keep a map, and rebuild
    /// it when [`named`](SegmentReader::named) has changed.
    #[must_use]
    pub fn find(&self, symbol: &str) -> Option<usize> {
        self.symbols().find(|(_, name)| name.as_str() == Some(symbol)).map(|(index, _)| index)
    }

    /// Returns the number of times that any row was named. While this number is unchanged, so are all names.
    #[must_use]
    pub fn named(&self) -> u64 {
        LiveWord::Named.load(&self.opened.lines)
    }

    /// Returns the number of quotes written until the last heartbeat.
    #[must_use]
    pub fn quotes_written(&self) -> u64 {
        LiveWord::QuotesWritten.load(&self.opened.lines)
    }

    /// Returns a receiver of updates from now on, if there is a stream. It reports lost updates.
    #[must_use]
    pub fn stream(&self) -> Option<Receiver<MarketUpdate>> {
        Receiver::over(self.stream.clone()?).ok()
    }
}

impl Deref for SegmentReader {
    type Target = OpenedSegment;

    fn deref(&self) -> &OpenedSegment {
        &self.opened
    }
}
