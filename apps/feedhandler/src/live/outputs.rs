//! The outputs of a feed handler for other processes, and its reports of suspect books.

use tickpath_book::BooksById;
use tickpath_feed::{Instruments, Line, UpdateListener};
use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentWriter, ShmError, TimeBase};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, SuspectReason, Symbol, TopOfBook, UpdateKind,
};

use super::section::OutputsSection;

/// Capacity of a channel's queue of suspect books to report; books that do not fit are only counted.
const SUSPECTS_MAX: usize = 256;

/// The shared memory segment to which all channels write, and its number of used rows.
pub struct Segment {
    writer: SegmentWriter,
    rows: u32,
}

impl Segment {
    /// Creates the segment named in the configuration; `None` when it names none.
    ///
    /// # Errors
    /// [`ShmError`] that says what to do.
    pub fn create(section: &OutputsSection, now: Nanos) -> Result<Option<Segment>, ShmError> {
        let Some(name) = &section.segment else { return Ok(None) };
        let name = SegmentName::new(name)?;
        let folder = Folder::create(&section.folder.clone().unwrap_or_else(Folder::usual_path))?;
        let config = SegmentConfig {
            rows: section.rows,
            stream_capacity: section.stream,
            time_base: TimeBase::Midnight,
        };
        let writer = SegmentWriter::create(&folder, &name, &config, now)?;
        Ok(Some(Segment { writer, rows: 0 }))
    }

    /// Publishes `now` as the time at which the writer was alive.
    pub(super) fn heartbeat(&mut self, now: Nanos) {
        self.writer.heartbeat(now);
    }

    /// Returns the path of the segment.
    pub(super) fn path(&self) -> String {
        self.writer.path().display().to_string()
    }

    fn assign_row(&mut self, symbol: Symbol) -> Option<u16> {
        let row = u16::try_from(self.rows).ok().filter(|row| usize::from(*row) < self.writer.rows())?;
        self.writer.name(usize::from(row), symbol.as_str()).ok()?;
        self.rows += 1;
        Some(row)
    }
}

/// The segment row that an instrument's updates are written to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// The symbol of the instrument is not known yet.
    Unnamed,
    /// No row: the symbol is not configured, or the segment is full.
    Unpublished,
    At(u16),
}

/// A book that became suspect and is to be reported.
#[derive(Clone, Copy)]
pub(super) struct Suspect {
    pub(super) instrument: InstrumentId,
    /// Symbol of the instrument, if it has one.
    pub(super) symbol: Option<Symbol>,
    pub(super) reason: Option<SuspectReason>,
}

/// The outputs of one channel.
pub(super) struct ChannelOutput {
    symbols: Vec<Symbol>,
    rows: Box<[Row]>,
    quotes: Box<[TopOfBook]>,
    has_unnamed: bool,
    pub(super) updates: u64,
    pub(super) trades: u64,
    /// Suspect books that have not been reported yet; each is reported once.
    suspects: Vec<Suspect>,
    unreported: u64,
    is_reported: Box<[bool]>,
}

impl ChannelOutput {
    pub(super) fn new(max_instrument: InstrumentId, symbols: Vec<Symbol>) -> ChannelOutput {
        let count = usize::from(max_instrument.0) + 1;
        ChannelOutput {
            symbols,
            rows: vec![Row::Unnamed; count].into(),
            quotes: vec![TopOfBook::default(); count].into(),
            has_unnamed: false,
            updates: 0,
            trades: 0,
            suspects: Vec::with_capacity(SUSPECTS_MAX),
            unreported: 0,
            is_reported: vec![false; count].into(),
        }
    }

    pub(super) fn sink<'a>(&'a mut self, segment: &'a mut Option<Segment>) -> Sink<'a> {
        Sink { output: self, segment: segment.as_mut(), held: None }
    }

    /// Returns whether a symbol is configured for the outputs.
    pub(super) fn wants(&self, symbol: Symbol) -> bool {
        self.symbols.is_empty() || self.symbols.contains(&symbol)
    }

    /// Assigns rows to instruments whose symbol became known. Does nothing unless a `Row::Unnamed` instrument
    /// had an update since the last call.
    pub(super) fn name<B: BooksById>(&mut self, instruments: &Instruments<B>, segment: &mut Option<Segment>) {
        let Some(segment) = segment.as_mut().filter(|_| std::mem::take(&mut self.has_unnamed)) else {
            return;
        };
        for id in instruments.ids() {
            let place = usize::from(id.0);
            if self.rows[place] != Row::Unnamed {
                continue;
            }
            let Some(symbol) = instruments.instrument(id).and_then(|state| state.symbol) else { continue };
            let row = if self.wants(symbol) { segment.assign_row(symbol) } else { None };
            self.rows[place] = row.map_or(Row::Unpublished, Row::At);
            if let Some(row) = row {
                // Cannot fail: the row was just assigned.
                let _ = segment.writer.write(usize::from(row), &self.quotes[place]);
            }
        }
    }

    /// Passes queued suspect books to `take`; returns the number that did not fit in `suspects`.
    pub(super) fn drain_suspects<B: BooksById>(
        &mut self,
        instruments: &Instruments<B>,
        take: &mut dyn FnMut(Suspect),
    ) -> u64 {
        for suspect in self.suspects.drain(..) {
            let symbol = instruments.instrument(suspect.instrument).and_then(|state| state.symbol);
            take(Suspect { symbol, ..suspect });
        }
        std::mem::take(&mut self.unreported)
    }

    #[cold]
    fn note_health(&mut self, update: &MarketUpdate) {
        let place = usize::from(update.instrument);
        if update.health() != BookHealth::Suspect || std::mem::replace(&mut self.is_reported[place], true) {
            return;
        }
        if self.suspects.len() == SUSPECTS_MAX {
            self.unreported += 1;
        } else {
            let (instrument, reason) = (update.instrument(), update.reason());
            self.suspects.push(Suspect { instrument, symbol: None, reason });
        }
    }
}

/// Writes a channel's updates to its outputs.
pub(super) struct Sink<'a> {
    output: &'a mut ChannelOutput,
    segment: Option<&'a mut Segment>,
    /// The latest update for the stream, held until the next one or the end of the packet, which decides its
    /// [`MarketUpdate::has_more`].
    held: Option<MarketUpdate>,
}

impl Sink<'_> {
    #[inline]
    fn end_packet(&mut self) {
        if let (Some(segment), Some(update)) = (&mut self.segment, self.held.take()) {
            segment.writer.send(&update);
        }
    }
}

/// Ends the last packet.
impl Drop for Sink<'_> {
    #[inline]
    fn drop(&mut self) {
        self.end_packet();
    }
}

impl UpdateListener for Sink<'_> {
    #[inline]
    fn on_packet(&mut self, _: Line) {
        self.end_packet();
    }

    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        let output = &mut *self.output;
        let place = usize::from(update.instrument);
        output.updates += 1;
        output.trades += u64::from(update.kind == UpdateKind::Trade as u8);
        if update.kind == UpdateKind::Status as u8 {
            output.note_health(update);
        }
        let Some(segment) = &mut self.segment else { return };
        let Some(quote) = output.quotes.get_mut(place) else { return };
        quote.apply(update);
        match output.rows[place] {
            Row::At(row) => {
                let written = segment.writer.write(usize::from(row), quote);
                debug_assert!(written.is_ok(), "rows are taken within the segment's bound");
                if let Some(held) = self.held.replace(MarketUpdate { instrument: row, ..*update }) {
                    segment.writer.send(&MarketUpdate { has_more: 1, ..held });
                }
            }
            Row::Unnamed => output.has_unnamed = true,
            Row::Unpublished => {}
        }
    }
}
