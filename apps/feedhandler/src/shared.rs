//! What a feed handler shows to other processes: symbols, the latest quotes, and its updates, in shared memory.

use std::path::PathBuf;

use tickpath_feed::UpdateListener;
use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentWriter, ShmError, TimeBase};
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Symbol};

/// Rows whose names are looked at in one call: half a microsecond.
const NAMES_PER_CALL: usize = 256;
/// How often a sign of life is given.
const HEARTBEAT_INTERVAL: Nanos = Nanos::from_millis(100);

/// Where the outputs go.
#[derive(Clone, Debug)]
pub struct SharedSettings {
    /// Folder of the segment, made if there is none.
    pub folder: PathBuf,
    /// The segment's name.
    pub name: String,
    /// Instruments with ids from 1 to this.
    pub max_instrument: InstrumentId,
    /// Updates that the stream keeps, rounded up to a power of two; 0 for no stream.
    pub stream_capacity: u64,
    /// What the updates' times count from.
    pub time_base: TimeBase,
}

impl SharedSettings {
    /// A segment of this name in the usual folder, with a stream of 65,536 updates and times since midnight.
    #[must_use]
    pub fn new(name: &str, max_instrument: InstrumentId) -> SharedSettings {
        SharedSettings {
            folder: Folder::usual_path(),
            name: name.to_owned(),
            max_instrument,
            stream_capacity: SegmentConfig::default().stream_capacity,
            time_base: TimeBase::Midnight,
        }
    }
}

/// What was shown so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCounters {
    /// Updates that went out.
    pub updates: u64,
    /// Updates of instruments beyond [`SharedSettings::max_instrument`], of which the stream alone has the update.
    pub beyond: u64,
    /// Names that instruments got, new ones included.
    pub names: u64,
    /// Symbols that cannot stand in the table, as they are not printable.
    pub unprintable: u64,
}

/// Writes a segment of shared memory from the updates of a feed handler.
///
/// It is cheap enough - a few nanoseconds an update - to stand in the feed handler's own duty cycle, behind the ring to
/// the engines: an agent of its own would take a core, or its part of one, and a reader would see the cache later.
pub struct SharedOutputs {
    segment: SegmentWriter,
    /// The names that the rows have.
    symbols: Box<[Option<Symbol>]>,
    next_name: usize,
    next_heartbeat: Nanos,
    counters: SharedCounters,
}

impl SharedOutputs {
    /// Makes the segment. `now` counts from the Unix epoch.
    ///
    /// # Errors
    /// [`ShmError`]: the name is taken by a writer that lives, or there is no room.
    pub fn create(settings: &SharedSettings, now: Nanos) -> Result<SharedOutputs, ShmError> {
        let folder = Folder::create(&settings.folder)?;
        let name = SegmentName::new(&settings.name)?;
        let rows = usize::from(settings.max_instrument.0) + 1;
        let config = SegmentConfig {
            rows: rows as u64,
            stream_capacity: settings.stream_capacity,
            time_base: settings.time_base,
        };
        Ok(SharedOutputs {
            segment: SegmentWriter::create(&folder, &name, &config, now)?,
            symbols: vec![None; rows].into_boxed_slice(),
            next_name: 0,
            next_heartbeat: now,
            counters: SharedCounters::default(),
        })
    }

    /// Gives a row its name, unless it has it.
    pub fn name(&mut self, instrument: InstrumentId, symbol: Symbol) {
        let index = usize::from(instrument.0);
        let Some(known) = self.symbols.get_mut(index).filter(|known| **known != Some(symbol)) else { return };
        *known = Some(symbol);
        match self.segment.name(index, symbol.as_str()) {
            Ok(()) => self.counters.names += 1,
            Err(_) => self.counters.unprintable += 1,
        }
    }

    /// Names further rows and gives a sign of life when it is due: a bounded amount of work, to be called about every
    /// millisecond. `symbol_of` tells an instrument's symbol once it is known; `now` counts from the Unix epoch.
    pub fn keep(&mut self, now: Nanos, symbol_of: impl Fn(InstrumentId) -> Option<Symbol>) {
        let rows = self.symbols.len();
        for _ in 0..NAMES_PER_CALL.min(rows) {
            let index = self.next_name;
            self.next_name = if index + 1 == rows { 0 } else { index + 1 };
            // Rows are as many as ids at most.
            let id = InstrumentId(index as u16);
            if let Some(symbol) = symbol_of(id) {
                self.name(id, symbol);
            }
        }
        if now >= self.next_heartbeat {
            self.next_heartbeat = now + HEARTBEAT_INTERVAL;
            self.segment.heartbeat(now);
        }
    }

    /// What was shown so far.
    #[must_use]
    pub const fn counters(&self) -> &SharedCounters {
        &self.counters
    }

    /// Where it is, and who reads it how.
    #[must_use]
    pub const fn segment(&self) -> &SegmentWriter {
        &self.segment
    }
}

impl UpdateListener for SharedOutputs {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        let index = usize::from(update.instrument);
        let shown = self.segment.update(index, |quote| quote.apply(update));
        self.counters.beyond += u64::from(shown.is_err());
        self.segment.send(update);
        self.counters.updates += 1;
    }
}

#[cfg(test)]
mod tests {
    use tickpath_shm::{SegmentReader, WriterState, verify};
    use tickpath_types::{TradingState, UpdateKind};
    use zerocopy::FromZeros;

    use super::*;

    fn update(instrument: u16, kind: UpdateKind, number: u64) -> MarketUpdate {
        MarketUpdate {
            sequence: number,
            instrument,
            kind: kind as u8,
            price: 1_000_000 + number as i64,
            qty: number,
            bid_price: 1_000_000,
            bid_qty: number,
            ..MarketUpdate::new_zeroed()
        }
    }

    #[test]
    fn another_process_sees_names_quotes_and_updates() {
        let place = tempfile::tempdir().unwrap();
        let settings = SharedSettings {
            folder: place.path().join("shm"),
            stream_capacity: 8,
            ..SharedSettings::new("feed", InstrumentId(600))
        };
        let mut outputs = SharedOutputs::create(&settings, Nanos(1)).unwrap();
        let folder = Folder::open(&settings.folder).unwrap();
        let reader = SegmentReader::open(&folder, &SegmentName::new("feed").unwrap()).unwrap();
        let mut stream = reader.stream().unwrap();
        let symbol_of = |id: InstrumentId| (id.0 != 0).then(|| Symbol::new(&format!("S{id}")).unwrap());
        // A part at a time, all of them after three calls.
        outputs.keep(Nanos(2), symbol_of);
        assert_eq!((reader.symbols().count(), reader.heartbeat()), (255, Nanos(2)));
        outputs.keep(Nanos(3), symbol_of);
        outputs.keep(Nanos(2) + HEARTBEAT_INTERVAL, symbol_of);
        assert_eq!((reader.symbols().count(), reader.heartbeat()), (600, Nanos(2) + HEARTBEAT_INTERVAL));
        assert_eq!((reader.find("S600"), reader.named()), (Some(600), 600));

        outputs.on_update(&update(600, UpdateKind::Trade, 7));
        outputs.on_update(&update(600, UpdateKind::Add, 9));
        outputs.on_update(&MarketUpdate { trading: b'T', ..update(600, UpdateKind::Status, 0) });
        outputs.on_update(&update(601, UpdateKind::Add, 10));
        let quote = reader.try_read(600).unwrap();
        assert_eq!((quote.bid(), quote.last_price, quote.last_qty), (None, 1_000_007, 7));
        assert_eq!(quote.trading_state(), Some(TradingState::Trading));
        for sequence in [7, 9, 0, 10] {
            assert_eq!(stream.try_recv().unwrap().unwrap().sequence, sequence);
        }
        let expected = SharedCounters { updates: 4, beyond: 1, names: 600, unprintable: 0 };
        assert_eq!(*outputs.counters(), expected);
        assert_eq!(verify(&reader).problems, [""; 0]);

        outputs.name(InstrumentId(3), Symbol(*b"NEW     "));
        outputs.name(InstrumentId(4), Symbol([0; 8]));
        assert_eq!((reader.find("NEW"), outputs.counters().unprintable), (Some(3), 1));
        drop(outputs);
        assert_eq!(reader.writer_state(), WriterState::Closed);
    }
}
