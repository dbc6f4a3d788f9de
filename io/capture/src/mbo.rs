//! Databento DBN files of schema MBO.
//!
//! Source: Databento Binary Encoding versions 1 to 3, read with the vendor's own library, and
//! Databento's "MBO" schema documentation. What the actions mean on CME: `T` is the trade as its
//! incoming order sees it, `F` the same trade as each order in it sees it, and neither changes the
//! book by itself: the `C` and `M` records that follow in the same event do. As `M` is absolute and
//! `C` deletes, they agree with a book to which the fills were applied.

use std::io::Read;

use dbn::decode::dbn::fsm::{DbnFsm, ProcessResult};
use dbn::{MboMsg, Metadata, Schema, VersionUpgradePolicy};
use rustc_hash::FxHashMap;
use tickpath_types::{Price, Qty, Side};

use crate::window::read_some;
use crate::{
    Depth, EventKind, EventReader, IgnoredReason, Level, Position, ReadError, RecordedEvent, RecordingInfo,
    TimeBase,
};

/// Longest metadata that is accepted, in bytes: some hundred thousand symbols.
pub const DBN_METADATA_LEN_MAX: usize = 16 * 1024 * 1024;

/// `DBN`, version, length of the metadata.
const PRELUDE_LEN: usize = 8;
const MAGIC: &[u8; 3] = b"DBN";
/// DBN prices count 10^-9, ours 10^-4.
const DBN_PER_PRICE: i64 = 100_000;
/// Room that the state machine reads ahead into.
const BUFFER_LEN: usize = 64 * 1024;

/// Reads a DBN file of schema MBO, already decompressed.
pub struct DbnReader<R> {
    reader: R,
    decoder: DbnFsm,
    /// Bytes given to the decoder.
    offset: u64,
    symbols: Vec<String>,
    by_id: FxHashMap<u32, u32>,
    /// Where the record that was read last begins.
    last_offset: u64,
    is_finished: bool,
}

impl<R: Read> DbnReader<R> {
    /// Reads the metadata.
    ///
    /// # Errors
    /// [`ReadError`] when the data is not DBN, has another schema, or ends too early.
    pub fn new(mut reader: R) -> Result<Self, ReadError> {
        let prelude = read_prelude(&mut reader)?;
        let mut decoder = DbnFsm::builder()
            .buffer_size(BUFFER_LEN)
            .upgrade_policy(VersionUpgradePolicy::AsIs)
            .build()
            .map_err(|error| ReadError::Unsupported { what: error.to_string() })?;
        decoder.write_all(&prelude);
        let mut dbn = DbnReader {
            reader,
            decoder,
            offset: PRELUDE_LEN as u64,
            symbols: Vec::new(),
            by_id: FxHashMap::default(),
            last_offset: 0,
            is_finished: false,
        };
        let metadata = dbn.read_metadata()?;
        match metadata.schema {
            None | Some(Schema::Mbo) => {}
            Some(other) => {
                let what = format!("the DBN schema is {other}: download schema mbo, which has every order");
                return Err(ReadError::Unsupported { what });
            }
        }
        dbn.learn_symbols(&metadata);
        Ok(dbn)
    }

    fn read_metadata(&mut self) -> Result<Metadata, ReadError> {
        loop {
            match self.decoder.process() {
                ProcessResult::Metadata(metadata) => return Ok(metadata),
                ProcessResult::ReadMore(_) if self.read_more()? => {}
                ProcessResult::ReadMore(_) => return Err(ReadError::Truncated { offset: 0 }),
                ProcessResult::Record(()) => {
                    return Err(ReadError::malformed(Position::Byte(0), "a record before the metadata"));
                }
                ProcessResult::Err(error) => {
                    return Err(ReadError::malformed(Position::Byte(0), error.to_string()));
                }
            }
        }
    }

    /// Instrument ids that the metadata maps, in either direction that Databento writes.
    fn learn_symbols(&mut self, metadata: &Metadata) {
        for mapping in &metadata.mappings {
            for interval in &mapping.intervals {
                let (id, symbol) = match interval.symbol.parse::<u32>() {
                    Ok(id) => (id, &mapping.raw_symbol),
                    Err(_) => match mapping.raw_symbol.parse::<u32>() {
                        Ok(id) => (id, &interval.symbol),
                        Err(_) => continue,
                    },
                };
                if !self.by_id.contains_key(&id) {
                    self.by_id.insert(id, self.symbols.len() as u32);
                    self.symbols.push(symbol.clone());
                }
            }
        }
    }

    fn instrument(&mut self, id: u32) -> u32 {
        if let Some(index) = self.by_id.get(&id) {
            return *index;
        }
        let index = self.symbols.len() as u32;
        self.by_id.insert(id, index);
        self.symbols.push(id.to_string());
        index
    }

    /// Gives the decoder more bytes; false at the end of the data.
    fn read_more(&mut self) -> Result<bool, ReadError> {
        let start = self.unread_offset();
        let len = read_some(&mut self.reader, self.decoder.space())
            .map_err(|error| ReadError::of_io(error, start))?;
        self.decoder.fill(len);
        self.offset += len as u64;
        Ok(len != 0)
    }

    /// Where the bytes start that the decoder has and has not decoded.
    fn unread_offset(&self) -> u64 {
        self.offset - self.decoder.data().len() as u64
    }

    fn event(&mut self, record: &MboMsg) -> RecordedEvent {
        RecordedEvent {
            ts_ns: record.hd.ts_event,
            instrument: self.instrument(record.hd.instrument_id),
            // The adds of a snapshot are one message each, whatever their flags say.
            ends_transaction: record.flags.is_last() || record.flags.is_snapshot(),
            kind: kind(record),
        }
    }

    fn finish<T>(&mut self, error: ReadError) -> Result<T, ReadError> {
        self.is_finished = true;
        Err(error)
    }
}

impl<R: Read> EventReader for DbnReader<R> {
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, ReadError> {
        while !self.is_finished {
            let offset = self.unread_offset();
            match self.decoder.process() {
                ProcessResult::Record(()) => {
                    self.last_offset = offset;
                    let Some(record) = self.decoder.last_record() else { continue };
                    if !record.has::<MboMsg>() {
                        let ts_ns = record.header().ts_event;
                        let kind = EventKind::Ignored(IgnoredReason::OtherRecord);
                        return Ok(Some(RecordedEvent {
                            ts_ns,
                            instrument: 0,
                            ends_transaction: false,
                            kind,
                        }));
                    }
                    match record.try_get::<MboMsg>().cloned() {
                        Ok(record) => return Ok(Some(self.event(&record))),
                        Err(_) => {
                            let what = "an MBO record shorter than 56 bytes";
                            return self.finish(ReadError::malformed(Position::Byte(offset), what));
                        }
                    }
                }
                ProcessResult::ReadMore(_) => match self.read_more() {
                    Ok(true) => {}
                    Ok(false) if self.decoder.data().is_empty() => self.is_finished = true,
                    Ok(false) => return self.finish(ReadError::Truncated { offset }),
                    Err(error) => return self.finish(error),
                },
                ProcessResult::Metadata(_) => {}
                ProcessResult::Err(error) => {
                    return self.finish(ReadError::malformed(Position::Byte(offset), error.to_string()));
                }
            }
        }
        Ok(None)
    }

    fn position(&self) -> Position {
        Position::Byte(self.last_offset)
    }

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn info(&self) -> RecordingInfo {
        RecordingInfo { time_base: TimeBase::UnixEpoch, depth: Depth::Full, sums_fills: true }
    }
}

/// The first bytes, checked before the library allocates what they ask for.
fn read_prelude(reader: &mut impl Read) -> Result<[u8; PRELUDE_LEN], ReadError> {
    let mut prelude = [0; PRELUDE_LEN];
    let mut len = 0;
    while len < PRELUDE_LEN {
        match read_some(reader, &mut prelude[len..]).map_err(|error| ReadError::of_io(error, len as u64))? {
            0 => return Err(ReadError::Truncated { offset: 0 }),
            more => len += more,
        }
    }
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

fn kind(record: &MboMsg) -> EventKind {
    const INVALID: EventKind = EventKind::Ignored(IgnoredReason::InvalidField);
    const NO_PRICE: EventKind = EventKind::Ignored(IgnoredReason::PriceNotRepresentable);
    let order_id = record.order_id;
    let qty = Qty(u64::from(record.size));
    let side = match record.side as u8 {
        b'B' => Some(Side::Buy),
        b'A' => Some(Side::Sell),
        _ => None,
    };
    let price = price(record.price);
    let level = side.zip(price).map(|(side, price)| Level { side, price });
    // Without a level an order cannot be placed; which field is missing decides the reason.
    let placed = |make: &dyn Fn(Level) -> EventKind| match level {
        Some(level) => make(level),
        None if price.is_none() => NO_PRICE,
        None => INVALID,
    };
    match record.action as u8 {
        b'A' => placed(&|level| EventKind::Add { order_id, level, qty }),
        b'M' => placed(&|level| EventKind::Modify { order_id, level, qty }),
        // A cancel on CME reports what is left of the order and takes all of it.
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

/// A DBN price in our units, or `None` when it is undefined or has more than 4 decimals.
fn price(dbn: i64) -> Option<Price> {
    (dbn != dbn::UNDEF_PRICE && dbn % DBN_PER_PRICE == 0).then_some(Price(dbn / DBN_PER_PRICE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact_or_refused() {
        assert_eq!(price(4_799_250_000_000), Some(Price(47_992_500)));
        assert_eq!(price(-250_000_000), Some(Price(-2_500)));
        assert_eq!(price(1_000_050_000), None);
        assert_eq!(price(dbn::UNDEF_PRICE), None);
    }

    fn record(action: u8, side: u8, price: i64) -> MboMsg {
        MboMsg { action: action as _, side: side as _, price, size: 3, order_id: 7, ..MboMsg::default() }
    }

    #[test]
    fn actions_become_events() {
        let level = Level { side: Side::Sell, price: Price(10_000) };
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
        let odd = kind(&record(b'A', b'B', 1));
        assert_eq!(odd, EventKind::Ignored(IgnoredReason::PriceNotRepresentable));
        let auction = kind(&record(b'F', b'N', 1_000_000_000));
        assert!(matches!(auction, EventKind::Fill { in_auction: true, side: None, .. }));
    }
}
