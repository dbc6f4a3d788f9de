//! Any process that reads a segment.

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

/// Reads a segment, which it maps for reading alone.
///
/// It believes nothing: whatever is in the file, its methods end and give a value or an error. What another process of
/// the same user can do is to cut the file short under it; [`is_whole`](OpenedSegment::is_whole) sees that.
#[derive(Debug)]
pub struct SegmentReader {
    opened: OpenedSegment,
    names: table::Reader<SymbolName>,
    quotes: table::Reader<TopOfBook>,
    stream: Option<SharedLines>,
}

impl SegmentReader {
    /// Opens the segment that has the name now.
    ///
    /// # Errors
    /// [`ShmError::Missing`], [`ShmError::NotOurs`], [`ShmError::Damaged`], [`ShmError::OtherKind`], and what the system
    /// says.
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

    /// Rows, one for each instrument.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.quotes.entries()
    }

    /// The latest quote of an instrument; zeros when there was none.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when every copy met a write, [`ReadError::NoEntry`] beyond the rows.
    #[inline]
    pub fn try_read(&self, index: usize) -> Result<TopOfBook, ReadError> {
        self.quotes.try_read(index)
    }

    /// The row of an instrument, for whoever reads it often.
    #[inline]
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<Entry<'_, TopOfBook>> {
        self.quotes.entry(index)
    }

    /// The quotes, to be read elsewhere.
    #[must_use]
    pub fn quotes(&self) -> table::Reader<TopOfBook> {
        self.quotes.clone()
    }

    /// The name of a row; `None` when it has none.
    #[must_use]
    pub fn symbol(&self, index: usize) -> Option<SymbolName> {
        self.names.try_read(index).ok().filter(|name| name.as_str().is_some())
    }

    /// What stands in the row of a name, believed or not.
    pub(crate) fn raw_symbol(&self, index: usize) -> Result<SymbolName, ReadError> {
        self.names.try_read(index)
    }

    /// Every row that has a name.
    pub fn symbols(&self) -> impl Iterator<Item = (usize, SymbolName)> {
        (0..self.rows()).filter_map(|index| Some((index, self.symbol(index)?)))
    }

    /// The row with this name; looks at every row, so whoever asks often keeps a map, and makes it anew when
    /// [`named`](SegmentReader::named) has changed.
    #[must_use]
    pub fn find(&self, symbol: &str) -> Option<usize> {
        self.symbols().find(|(_, name)| name.as_str() == Some(symbol)).map(|(index, _)| index)
    }

    /// How often a row was given a name: while it stays, so do the names.
    #[must_use]
    pub fn named(&self) -> u64 {
        LiveWord::Named.load(&self.opened.lines)
    }

    /// Quotes written until the last heartbeat.
    #[must_use]
    pub fn quotes_written(&self) -> u64 {
        LiveWord::QuotesWritten.load(&self.opened.lines)
    }

    /// The stream, from now on; `None` when the segment has none. A reader that is overtaken is told how many it lost.
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
