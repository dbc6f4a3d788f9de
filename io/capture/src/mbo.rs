//! Databento DBN files of schema MBO.
//!
//! Source: Databento Binary Encoding versions 1 to 3 and Databento's "MBO" schema documentation. The vendor's
//! own library reads the metadata. This reader parses the records in place: these three versions have the
//! same MBO record. Meaning of the actions on CME: `T` reports a trade with the incoming order's side, `F` the
//! fill of each order in that trade. Neither changes the book: the `C` and `M` records that follow in the
//! same event do. `M` states the open quantity and `C` deletes the order, so a book may apply `F` as well.

use std::hint::select_unpredictable;
use std::io::Read;
use std::mem::offset_of;

use dbn::decode::dbn::fsm::{DbnFsm, ProcessResult};
use dbn::{
    MboMsg, Metadata, RecordHeader, RecordHeaderKind, Schema, UNDEF_TIMESTAMP, VersionUpgradePolicy, flags,
    rtype,
};
use rustc_hash::FxHashMap;
use tickpath_types::{Price, Qty, Side};

use crate::window::{Window, read_some};
use crate::{
    Depth, EventKind, EventReader, IgnoredReason, Level, Position, ReadError, RecordedEvent, RecordingInfo,
    TimeBase,
};

/// Maximum length of the metadata in bytes, enough for some hundred thousand symbols.
pub const DBN_METADATA_LEN_MAX: usize = 16 * 1024 * 1024;

/// Length in bytes of the prelude: `DBN`, the version byte and the length field of the metadata.
const PRELUDE_LEN: usize = 8;
const MAGIC: &[u8; 3] = b"DBN";
/// Number of decimals of the prices in DBN, and in the events of a [`DbnReader`].
pub(crate) const DBN_PRICE_DECIMALS: u8 = 9;

/// Reads a DBN file of schema MBO, already decompressed.
pub struct DbnReader<R> {
    window: Window<R>,
    instruments: Instruments,
    /// Offset of the last record read, in the uncompressed data.
    last_offset: u64,
    is_finished: bool,
}

impl<R: Read> DbnReader<R> {
    /// Reads the metadata, and creates a reader of the records after it.
    ///
    /// # Errors
    /// [`ReadError`] when the data is not DBN, has another schema, or is truncated.
    pub fn new(mut reader: R) -> Result<Self, ReadError> {
        let (metadata, len) = read_metadata(&mut reader)?;
        match metadata.schema {
            None | Some(Schema::Mbo) => Ok(DbnReader::after_metadata(reader, &metadata, len)),
            Some(other) => {
                let what = format!("the DBN schema is {other}: download schema mbo, which has every order");
                Err(ReadError::Unsupported { what })
            }
        }
    }

    /// Creates a reader of the records that follow `len` bytes of metadata.
    pub(crate) fn after_metadata(reader: R, metadata: &Metadata, len: u64) -> Self {
        DbnReader {
            window: Window::starting_at(reader, len),
            instruments: Instruments::of(metadata),
            last_offset: 0,
            is_finished: false,
        }
    }

    #[inline(always)]
    fn event(&mut self, record: &MboRecord) -> RecordedEvent {
        RecordedEvent {
            ts_ns: record.ts_ns,
            instrument: self.instruments.index(record.instrument_id),
            // Each record of a snapshot ends a transaction, even without the flag `LAST`.
            ends_transaction: record.flags & (flags::LAST | flags::SNAPSHOT) != 0,
            is_snapshot: record.flags & flags::SNAPSHOT != 0,
            kind: kind(record),
        }
    }

    /// Reads the next event if [`MboRecord::at_start`] finds no record: another type, or incomplete data.
    #[cold]
    #[inline(never)]
    fn read_unusual(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError> {
        while !self.is_finished {
            let offset = self.window.offset();
            match whole_record(self.window.data()) {
                Ok(Some((record, len))) => {
                    self.last_offset = offset;
                    self.window.consume(len);
                    *event = match record {
                        Record::Mbo(record) => self.event(&record),
                        Record::Other { ts_event } => {
                            RecordedEvent { ts_ns: ts_event, ..RecordedEvent::NOTHING }
                        }
                    };
                    return Ok(true);
                }
                Ok(None) => match self.window.fill() {
                    Ok(true) => {}
                    Ok(false) if self.window.data().is_empty() => self.is_finished = true,
                    Ok(false) => return self.finish(ReadError::Truncated { offset }),
                    Err(error) => return self.finish(error),
                },
                Err(what) => return self.finish(ReadError::malformed(Position::Byte(offset), what)),
            }
        }
        Ok(false)
    }

    fn finish<T>(&mut self, error: ReadError) -> Result<T, ReadError> {
        self.is_finished = true;
        Err(error)
    }
}

/// The instruments of a DBN file, numbered in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Instruments {
    symbols: Vec<String>,
    by_id: FxHashMap<u32, u32>,
    /// Id and index of the last record's instrument, which is mostly also that of the next record.
    last: Option<(u32, u32)>,
}

impl Instruments {
    /// Returns the instruments that the metadata names. Its mappings may lead from ids to symbols or from
    /// symbols to ids.
    pub(crate) fn of(metadata: &Metadata) -> Instruments {
        let mut instruments = Instruments::default();
        for mapping in &metadata.mappings {
            for interval in &mapping.intervals {
                let (id, symbol) = match interval.symbol.parse::<u32>() {
                    Ok(id) => (id, &mapping.raw_symbol),
                    Err(_) => match mapping.raw_symbol.parse::<u32>() {
                        Ok(id) => (id, &interval.symbol),
                        Err(_) => continue,
                    },
                };
                if !instruments.by_id.contains_key(&id) {
                    instruments.by_id.insert(id, instruments.symbols.len() as u32);
                    instruments.symbols.push(symbol.clone());
                }
            }
        }
        instruments
    }

    /// Symbols of the instruments, by index.
    pub(crate) fn symbols(&self) -> &[String] {
        &self.symbols
    }

    /// Index of the instrument with this id, which is added if it is new.
    #[inline]
    pub(crate) fn index(&mut self, id: u32) -> u32 {
        match self.last {
            Some((last, index)) if last == id => index,
            _ => self.other(id),
        }
    }

    fn other(&mut self, id: u32) -> u32 {
        let index = *self.by_id.entry(id).or_insert_with(|| {
            self.symbols.push(id.to_string());
            self.symbols.len() as u32 - 1
        });
        self.last = Some((id, index));
        index
    }

    /// Sets the symbol of the instrument with this id, which is added if it is new.
    pub(crate) fn name(&mut self, id: u32, symbol: &str) {
        let index = self.index(id);
        symbol.clone_into(&mut self.symbols[index as usize]);
    }
}

impl<R: Read> EventReader for DbnReader<R> {
    #[inline]
    fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError> {
        if !self.is_finished
            && let Some((record, len)) = MboRecord::at_start(self.window.data())
        {
            self.last_offset = self.window.offset();
            self.window.consume(len);
            *event = self.event(&record);
            return Ok(true);
        }
        self.read_unusual(event)
    }

    fn position(&self) -> Position {
        Position::Byte(self.last_offset)
    }

    fn symbols(&self) -> &[String] {
        self.instruments.symbols()
    }

    fn info(&self) -> RecordingInfo {
        RecordingInfo {
            time_base: TimeBase::UnixEpoch,
            depth: Depth::Full,
            sums_fills: true,
            price_decimals: DBN_PRICE_DECIMALS,
        }
    }
}

/// Reads the prelude. Checks the metadata length in it before the `dbn` crate allocates that many bytes.
fn read_prelude(reader: &mut impl Read) -> Result<[u8; PRELUDE_LEN], ReadError> {
    let mut prelude = Vec::with_capacity(PRELUDE_LEN);
    let read = reader.take(PRELUDE_LEN as u64).read_to_end(&mut prelude);
    read.map_err(|error| ReadError::of_io(error, prelude.len() as u64))?;
    let prelude = *prelude.first_chunk().ok_or(ReadError::Truncated { offset: 0 })?;
    if prelude[..MAGIC.len()] != *MAGIC {
        return Err(ReadError::malformed(Position::Byte(0), "no DBN prefix"));
    }
    let metadata_len = u32::from_le_bytes([prelude[4], prelude[5], prelude[6], prelude[7]]) as usize;
    if metadata_len > DBN_METADATA_LEN_MAX {
        let what = format!("metadata of {metadata_len} bytes, above the bound of {DBN_METADATA_LEN_MAX},");
        return Err(ReadError::malformed(Position::Byte(4), what));
    }
    Ok(prelude)
}

/// Reads the metadata and nothing beyond; also returns the offset of the first record.
pub(crate) fn read_metadata(reader: &mut impl Read) -> Result<(Metadata, u64), ReadError> {
    let prelude = read_prelude(reader)?;
    let mut decoder = DbnFsm::builder()
        .upgrade_policy(VersionUpgradePolicy::AsIs)
        .build()
        .map_err(|error| ReadError::Unsupported { what: error.to_string() })?;
    decoder.write_all(&prelude);
    let mut offset = PRELUDE_LEN as u64;
    loop {
        match decoder.process() {
            ProcessResult::Metadata(metadata) => return Ok((metadata, offset)),
            ProcessResult::ReadMore(missing) => {
                let unread = offset - decoder.data().len() as u64;
                let space = decoder.space();
                let missing = missing.min(space.len());
                match read_some(reader, &mut space[..missing]) {
                    Ok(0) => return Err(ReadError::Truncated { offset: 0 }),
                    Ok(len) => {
                        decoder.fill(len);
                        offset += len as u64;
                    }
                    Err(error) => return Err(ReadError::of_io(error, unread)),
                }
            }
            ProcessResult::Record(()) => {
                return Err(ReadError::malformed(Position::Byte(0), "a record before the metadata"));
            }
            ProcessResult::Err(error) => {
                return Err(ReadError::malformed(Position::Byte(0), error.to_string()));
            }
        }
    }
}

/// Length of an MBO record in bytes. Live sessions append the time of sending, which makes records longer.
const MBO_LEN: usize = size_of::<MboMsg>();

/// The fields of an MBO record that a book needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MboRecord {
    instrument_id: u32,
    /// Time of the event; if that is undefined, the time of its receipt.
    ts_ns: u64,
    order_id: u64,
    price: i64,
    size: u32,
    flags: u8,
    action: u8,
    side: u8,
}

impl MboRecord {
    /// The MBO record at the start of `data` and its length; `None` if it has another type or is incomplete.
    #[inline]
    fn at_start(data: &[u8]) -> Option<(MboRecord, usize)> {
        let [words, record_type, ..] = data else { return None };
        let len = usize::from(*words) * RecordHeader::LENGTH_MULTIPLIER;
        let record = data.get(..len)?.first_chunk()?;
        (*record_type == rtype::MBO).then(|| (MboRecord::of(record), len))
    }

    #[inline]
    fn of(record: &[u8; MBO_LEN]) -> MboRecord {
        const HEADER: usize = offset_of!(MboMsg, hd);
        let ts_event = u64::from_le_bytes(field(record, HEADER + offset_of!(RecordHeader, ts_event)));
        MboRecord {
            instrument_id: u32::from_le_bytes(field(
                record,
                HEADER + offset_of!(RecordHeader, instrument_id),
            )),
            ts_ns: match ts_event {
                UNDEF_TIMESTAMP => u64::from_le_bytes(field(record, offset_of!(MboMsg, ts_recv))),
                ts_event => ts_event,
            },
            order_id: u64::from_le_bytes(field(record, offset_of!(MboMsg, order_id))),
            price: i64::from_le_bytes(field(record, offset_of!(MboMsg, price))),
            size: u32::from_le_bytes(field(record, offset_of!(MboMsg, size))),
            flags: record[offset_of!(MboMsg, flags)],
            action: record[offset_of!(MboMsg, action)],
            side: record[offset_of!(MboMsg, side)],
        }
    }
}

/// Returns the bytes of the field at `offset`. The field must be inside the record.
#[inline(always)]
fn field<const LEN: usize>(record: &[u8; MBO_LEN], offset: usize) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(&record[offset..offset + LEN]);
    bytes
}

/// A parsed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Mbo(MboRecord),
    Other { ts_event: u64 },
}

/// The record at the start of `data` and its length; `None` if incomplete. An error describes the damage.
fn whole_record(data: &[u8]) -> Result<Option<(Record, usize)>, String> {
    let Some(header) = data.first_chunk::<{ size_of::<RecordHeader>() }>() else { return Ok(None) };
    let len = RecordHeader::frame_len(header).map_err(|error| error.to_string())?;
    if len > data.len() {
        return Ok(None);
    }
    match MboRecord::at_start(data) {
        Some((record, len)) => Ok(Some((Record::Mbo(record), len))),
        None if header[offset_of!(RecordHeader, rtype)] == rtype::MBO => {
            Err("an MBO record shorter than 56 bytes".to_owned())
        }
        None => {
            const TS_EVENT: usize = offset_of!(RecordHeader, ts_event);
            let [.., t0, t1, t2, t3, t4, t5, t6, t7] = *header;
            const { assert!(TS_EVENT + 8 == size_of::<RecordHeader>()) };
            let ts_event = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
            Ok(Some((Record::Other { ts_event }, len)))
        }
    }
}

#[inline]
fn kind(record: &MboRecord) -> EventKind {
    const INVALID: EventKind = EventKind::Ignored(IgnoredReason::InvalidField);
    const NO_PRICE: EventKind = EventKind::Ignored(IgnoredReason::PriceNotRepresentable);
    let order_id = record.order_id;
    let qty = Qty(u64::from(record.size));
    // No branch on the side: a CPU cannot predict it.
    let (is_bid, is_ask) = (record.side == b'B', record.side == b'A');
    let side = (is_bid | is_ask).then_some(select_unpredictable(is_ask, Side::Sell, Side::Buy));
    let price = price(record.price);
    let level = side.zip(price).map(|(side, price)| Level { side, price });
    // An add or change without a price or a side is ignored; the event gives the reason.
    let placed = |make: &dyn Fn(Level) -> EventKind| match level {
        Some(level) => make(level),
        None if price.is_none() => NO_PRICE,
        None => INVALID,
    };
    match record.action {
        b'A' => placed(&|level| EventKind::Add { order_id, level, qty }),
        b'M' => placed(&|level| EventKind::Modify { order_id, level, qty }),
        // A cancel on CME reports the open quantity of the order and removes all of it.
        b'C' => EventKind::Delete { order_id, level, qty: Some(qty) },
        b'F' if price.is_none() => NO_PRICE,
        b'F' => EventKind::Fill { order_id, qty, side, price, in_auction: side.is_none() },
        b'T' => match price {
            Some(price) => EventKind::Trade { order_id, price, qty, aggressor: side, is_hidden: false },
            None => NO_PRICE,
        },
        b'R' => EventKind::Clear,
        b'N' => EventKind::Ignored(IgnoredReason::OtherRecord),
        _ => INVALID,
    }
}

/// A DBN price, or `None` when it is undefined.
pub(crate) fn price(dbn: i64) -> Option<Price> {
    (dbn != dbn::UNDEF_PRICE).then_some(Price(dbn))
}

#[cfg(test)]
mod tests {
    use tickpath_types::Rng;

    use super::*;

    #[test]
    fn every_price_except_the_undefined_one_is_read() {
        for units in [4_799_250_000_000, -250_000_000, 1_084_550_000, 1, i64::MIN, i64::MAX - 1] {
            assert_eq!(price(units), Some(Price(units)));
        }
        assert_eq!(price(dbn::UNDEF_PRICE), None);
    }

    fn record(action: u8, side: u8, price: i64) -> MboRecord {
        let message =
            MboMsg { action: action as _, side: side as _, price, size: 3, order_id: 7, ..MboMsg::default() };
        MboRecord::at_start(message.as_ref()).unwrap().0
    }

    #[test]
    fn actions_become_events() {
        let level = Level { side: Side::Sell, price: Price(1_000_000_000) };
        let cases = [
            (b'A', EventKind::Add { order_id: 7, level, qty: Qty(3) }),
            (b'M', EventKind::Modify { order_id: 7, level, qty: Qty(3) }),
            (b'C', EventKind::Delete { order_id: 7, level: Some(level), qty: Some(Qty(3)) }),
            (b'R', EventKind::Clear),
            (b'?', EventKind::Ignored(IgnoredReason::InvalidField)),
        ];
        for (action, expected) in cases {
            assert_eq!(kind(&record(action, b'A', 1_000_000_000)), expected);
        }
        let none = kind(&record(b'A', b'N', 1_000_000_000));
        assert_eq!(none, EventKind::Ignored(IgnoredReason::InvalidField));
        let undefined = kind(&record(b'A', b'B', dbn::UNDEF_PRICE));
        assert_eq!(undefined, EventKind::Ignored(IgnoredReason::PriceNotRepresentable));
        let auction = kind(&record(b'F', b'N', 1_000_000_000));
        assert!(matches!(auction, EventKind::Fill { in_auction: true, side: None, .. }));
    }

    /// The record at the start of `data`, as decoded by the vendor's library.
    fn vendors_record(data: &[u8]) -> Result<Option<(Record, usize)>, String> {
        let mut decoder =
            DbnFsm::builder().skip_metadata(true).upgrade_policy(VersionUpgradePolicy::AsIs).build().unwrap();
        decoder.set_input_dbn_version(3).unwrap();
        decoder.write_all(data);
        match decoder.process() {
            ProcessResult::Record(()) => {}
            ProcessResult::Err(error) => return Err(error.to_string()),
            _ => return Ok(None),
        }
        let len = data.len() - decoder.data().len();
        let record = decoder.last_record().unwrap();
        if !record.has::<MboMsg>() {
            return Ok(Some((Record::Other { ts_event: record.header().ts_event }, len)));
        }
        let message =
            record.try_get::<MboMsg>().map_err(|_| "an MBO record shorter than 56 bytes".to_owned())?;
        let record = MboRecord {
            instrument_id: message.hd.instrument_id,
            ts_ns: message.hd.ts_event,
            order_id: message.order_id,
            price: message.price,
            size: message.size,
            flags: message.flags.raw(),
            action: message.action as u8,
            side: message.side as u8,
        };
        Ok(Some((Record::Mbo(record), len)))
    }

    #[test]
    fn records_equal_those_of_the_vendors_library() {
        let mut rng = Rng::new(1);
        let mut random = |below: usize| rng.below(below as u64) as usize;
        let mut counts = [0; 4];
        for _ in 0..20_000 {
            // Random bytes, mostly with the length and type of an MBO record; some are truncated.
            let mut data: Vec<u8> = (0..MBO_LEN + random(24)).map(|_| random(256) as u8).collect();
            data[0] = [14, 14, 14, 16, random(256) as u8, random(6) as u8][random(6)];
            data[1] = [rtype::MBO, rtype::MBO, rtype::MBO, random(256) as u8][random(4)];
            if random(4) == 0 {
                data.truncate(random(data.len()));
            }
            let found = whole_record(&data);
            assert_eq!(found, vendors_record(&data), "{data:?}");
            let usual = MboRecord::at_start(&data).map(|(record, len)| (Record::Mbo(record), len));
            let expected = found
                .as_ref()
                .ok()
                .and_then(|found| found.filter(|(record, _)| matches!(record, Record::Mbo(_))));
            assert_eq!(usual, expected);
            counts[match found {
                Ok(Some((Record::Mbo(_), _))) => 0,
                Ok(Some(_)) => 1,
                Ok(None) => 2,
                Err(_) => 3,
            }] += 1;
        }
        assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
    }
}
