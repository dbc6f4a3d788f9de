//! Reader of Databento DBN files without orders: schemas MBP-1, MBP-10, TBBO, trades and definition.
//!
//! Source: Databento Binary Encoding versions 1 to 3 and Databento's documentation of these schemas. The
//! vendor's own library decodes the records, converting earlier versions to the third.

use dbn::decode::dbn::fsm::{DbnFsm, ProcessResult};
use dbn::record::BidAskPair;
use dbn::{
    InstrumentDefMsg, Mbp1Msg, Mbp10Msg, Record, RecordHeader, RecordRef, Schema, TradeMsg, UNDEF_PRICE,
    UNDEF_TIMESTAMP, VersionUpgradePolicy,
};
use tickpath_recording::{DBN_LEVELS_MAX, DbnRecord, DbnSchema};
use tickpath_types::{Decimal, Price, Qty, Side};

use crate::input::Input;
use crate::mbo::{DBN_PRICE_DECIMALS, Instruments, price, read_metadata};
use crate::window::read_some;
use crate::{CaptureError, InputMeter, Position, ReadError, RecordingFile};

/// The definition of an instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbnDefinition {
    /// The venue's symbol.
    pub symbol: String,
    /// Letter of the instrument's class, such as `F` for a future and `C` for a call; a blank for none.
    pub class: char,
    /// Code of the exchange.
    pub exchange: String,
    /// The currency of the prices.
    pub currency: String,
    /// The tick, if the instrument has one constant tick.
    pub tick: Option<Decimal>,
    /// Time of the last possible trade, in nanoseconds since 1970-01-01 UTC, if given.
    pub expiration_ns: Option<u64>,
    /// The strike price, for an option.
    pub strike: Option<Decimal>,
}

/// Reads a DBN file without orders.
pub struct DbnLevels {
    reader: Input,
    meter: InputMeter,
    decoder: DbnFsm,
    schema: DbnSchema,
    instruments: Instruments,
    /// Number of uncompressed bytes read.
    offset: u64,
    /// The last definition read, until it is taken.
    definition: Option<DbnDefinition>,
    is_finished: bool,
}

/// An open DBN file. Its schema determines the variant.
pub enum DbnFile {
    /// A file with orders, or without a stated schema.
    Orders(crate::Recording),
    /// A file with levels, trades or definitions.
    Levels(Box<DbnLevels>),
}

impl DbnFile {
    /// Reads the metadata of an open file, and creates the reader for its schema.
    ///
    /// # Errors
    /// [`CaptureError`] when it is not DBN, has an unsupported schema, or is truncated.
    pub fn of(file: RecordingFile) -> Result<DbnFile, CaptureError> {
        let meter = file.meter().clone();
        let RecordingFile { path, mut input, .. } = file;
        let failed = |source| CaptureError::Read { path: path.clone(), source };
        let (metadata, offset) = read_metadata(&mut input).map_err(failed)?;
        let Some(schema) = schema_of(metadata.schema).map_err(failed)? else {
            return Ok(DbnFile::Orders(crate::Recording::of_dbn(path, meter, input, &metadata, offset)));
        };
        let decoder = DbnFsm::builder()
            .skip_metadata(true)
            .ts_out(metadata.ts_out)
            .upgrade_policy(VersionUpgradePolicy::UpgradeToV3)
            .input_dbn_version(Some(metadata.version))
            .and_then(|builder| builder.build())
            .map_err(|error| failed(ReadError::Unsupported { what: error.to_string() }))?;
        Ok(DbnFile::Levels(Box::new(DbnLevels {
            reader: input,
            meter,
            decoder,
            schema,
            instruments: Instruments::of(&metadata),
            offset,
            definition: None,
            is_finished: false,
        })))
    }
}

/// Returns the schema of a file with levels, trades or definitions; `None` for a file with orders.
fn schema_of(schema: Option<Schema>) -> Result<Option<DbnSchema>, ReadError> {
    Ok(match schema {
        None | Some(Schema::Mbo) => None,
        Some(Schema::Mbp1 | Schema::Tbbo) => Some(DbnSchema::Mbp1),
        Some(Schema::Mbp10) => Some(DbnSchema::Mbp10),
        Some(Schema::Trades) => Some(DbnSchema::Trades),
        Some(Schema::Definition) => Some(DbnSchema::Definition),
        Some(other) => {
            let what = format!(
                "the DBN schema is {other}, which is not supported: download mbo, which has every order, or mbp-10, mbp-1, \
                 tbbo, trades or definition"
            );
            return Err(ReadError::Unsupported { what });
        }
    })
}

impl DbnLevels {
    /// Schema of the file.
    #[must_use]
    pub const fn schema(&self) -> DbnSchema {
        self.schema
    }

    /// The progress of reading the file, and the time spent on it.
    #[must_use]
    pub const fn meter(&self) -> &InputMeter {
        &self.meter
    }

    /// Names of the instruments seen so far, by index.
    #[must_use]
    pub fn symbols(&self) -> &[String] {
        self.instruments.symbols()
    }

    /// Takes the last definition read, if it was not taken before.
    pub fn take_definition(&mut self) -> Option<DbnDefinition> {
        self.definition.take()
    }

    /// Reads the next record; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`]; the reader then has no more records.
    pub fn next_record(&mut self) -> Result<Option<DbnRecord>, ReadError> {
        let result = if self.is_finished { Ok(None) } else { self.read_record() };
        self.is_finished |= !matches!(result, Ok(Some(_)));
        result
    }

    fn read_record(&mut self) -> Result<Option<DbnRecord>, ReadError> {
        loop {
            let begin = self.offset - self.decoder.data().len() as u64;
            match self.decoder.process() {
                ProcessResult::Record(()) => {
                    let Some(record) = self.decoder.last_record() else { continue };
                    let mut found = record_of(record, &mut self.instruments, &mut self.definition);
                    if found.ts_ns == UNDEF_TIMESTAMP {
                        // The event time is undefined: use the time of receipt, which most schemas have too.
                        found.ts_ns = record.raw_index_ts();
                    }
                    return Ok(Some(found));
                }
                ProcessResult::ReadMore(_) => match read_some(&mut self.reader, self.decoder.space()) {
                    Ok(0) if self.decoder.data().is_empty() => return Ok(None),
                    Ok(0) => return Err(ReadError::Truncated { offset: begin }),
                    Ok(len) => {
                        self.decoder.fill(len);
                        self.offset += len as u64;
                    }
                    Err(error) => return Err(ReadError::of_io(error, begin)),
                },
                ProcessResult::Metadata(_) => {}
                ProcessResult::Err(error) => {
                    return Err(ReadError::malformed(Position::Byte(begin), error.to_string()));
                }
            }
        }
    }
}

fn record_of(
    record: RecordRef<'_>,
    instruments: &mut Instruments,
    definition: &mut Option<DbnDefinition>,
) -> DbnRecord {
    /// Builds a record from the fields that records of levels and of trades have in common.
    macro_rules! event {
        ($record:ident, $levels:expr) => {
            DbnRecord {
                action: $record.action as u8,
                side: match $record.side as u8 {
                    b'B' => Some(Side::Buy),
                    b'A' => Some(Side::Sell),
                    _ => None,
                },
                price: price($record.price),
                qty: Qty(u64::from($record.size)),
                is_snapshot: $record.flags.is_snapshot(),
                levels: levels($levels),
                ..other(&$record.hd, instruments, b'?')
            }
        };
    }
    if let Some(record) = record.get::<Mbp10Msg>() {
        event!(record, &record.levels)
    } else if let Some(record) = record.get::<Mbp1Msg>() {
        event!(record, &record.levels)
    } else if let Some(record) = record.get::<TradeMsg>() {
        event!(record, &[])
    } else if let Some(record) = record.get::<InstrumentDefMsg>() {
        let found = definition_of(record);
        instruments.name(record.hd.instrument_id, &found.symbol);
        *definition = Some(found);
        other(&record.hd, instruments, b'D')
    } else {
        other(record.header(), instruments, b'?')
    }
}

fn other(header: &RecordHeader, instruments: &mut Instruments, action: u8) -> DbnRecord {
    DbnRecord {
        ts_ns: header.ts_event,
        instrument: instruments.index(header.instrument_id),
        action,
        side: None,
        price: None,
        qty: Qty::ZERO,
        is_snapshot: false,
        levels: [[None; DBN_LEVELS_MAX]; 2],
    }
}

/// Returns the bid and ask levels by rank; `None` for a level without price or quantity.
fn levels(pairs: &[BidAskPair]) -> [[Option<(Price, Qty)>; DBN_LEVELS_MAX]; 2] {
    let mut levels = [[None; DBN_LEVELS_MAX]; 2];
    let level =
        |units: i64, size: u32| price(units).filter(|_| size > 0).map(|price| (price, Qty(u64::from(size))));
    for (rank, pair) in pairs.iter().enumerate().take(DBN_LEVELS_MAX) {
        levels[Side::Buy.index()][rank] = level(pair.bid_px, pair.bid_sz);
        levels[Side::Sell.index()][rank] = level(pair.ask_px, pair.ask_sz);
    }
    levels
}

fn definition_of(record: &InstrumentDefMsg) -> DbnDefinition {
    let scaled = |units: i64| Decimal { units, decimals: DBN_PRICE_DECIMALS };
    let given = |units: i64| (units != UNDEF_PRICE && units != 0).then(|| scaled(units));
    let text = |text: dbn::Result<&str>| text.unwrap_or_default().to_owned();
    let class = char::from(record.instrument_class as u8);
    DbnDefinition {
        symbol: text(record.raw_symbol()),
        class: if class.is_ascii_graphic() { class } else { ' ' },
        exchange: text(record.exchange()),
        currency: text(record.currency()),
        tick: given(record.min_price_increment),
        expiration_ns: (record.expiration != dbn::UNDEF_TIMESTAMP).then_some(record.expiration),
        strike: given(record.strike_price),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use dbn::encode::dbn::MetadataEncoder;
    use dbn::{MetadataBuilder, SType};

    use super::*;

    fn file(schema: Schema, records: &[&[u8]]) -> Vec<u8> {
        let metadata = MetadataBuilder::new()
            .dataset("GLBX.MDP3".to_owned())
            .schema(Some(schema))
            .start(1)
            .end(NonZeroU64::new(2))
            .stype_in(Some(SType::InstrumentId))
            .stype_out(SType::RawSymbol)
            .build();
        let mut bytes = Vec::new();
        MetadataEncoder::new(&mut bytes).encode(&metadata).unwrap();
        bytes.extend(records.concat());
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<DbnRecord>, Option<ReadError>, Vec<DbnDefinition>) {
        let file_at = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file_at.path(), bytes).unwrap();
        let opened = DbnFile::of(RecordingFile::open(file_at.path()).unwrap()).unwrap();
        let DbnFile::Levels(mut levels) = opened else { panic!("it has no orders") };
        let (mut records, mut definitions) = (Vec::new(), Vec::new());
        loop {
            match levels.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return (records, None, definitions),
                Err(error) => return (records, Some(error), definitions),
            }
            definitions.extend(levels.take_definition());
        }
    }

    fn header<T: dbn::HasRType>(rtype: u8) -> RecordHeader {
        RecordHeader::new::<T>(rtype, 1, 77, 5_000)
    }

    #[test]
    fn levels_and_trades_are_read_and_a_cut_is_reported() {
        let pair = BidAskPair {
            bid_px: 1_084_550_000,
            ask_px: 1_084_600_000,
            bid_sz: 3,
            ask_sz: 4,
            bid_ct: 1,
            ask_ct: 2,
        };
        let quote = Mbp1Msg {
            hd: header::<Mbp1Msg>(dbn::rtype::MBP_1),
            action: b'A' as _,
            side: b'B' as _,
            price: 1_084_550_000,
            size: 3,
            levels: [pair],
            ..Mbp1Msg::default()
        };
        let bytes = file(Schema::Mbp1, &[quote.as_ref(), quote.as_ref()]);
        let (records, error, _) = read(&bytes);
        assert!(error.is_none() && records.len() == 2, "{error:?}");
        let record = records[0];
        assert_eq!((record.ts_ns, record.action, record.side), (5_000, b'A', Some(Side::Buy)));
        assert_eq!(record.levels[0][0], Some((Price(1_084_550_000), Qty(3))));
        assert_eq!(record.levels[1][0], Some((Price(1_084_600_000), Qty(4))));
        assert_eq!(record.levels[1][1], None);
        let (records, error, _) = read(&bytes[..bytes.len() - 1]);
        assert!(records.len() == 1 && matches!(error, Some(ReadError::Truncated { .. })), "{error:?}");
        let trade = TradeMsg {
            hd: header::<TradeMsg>(dbn::rtype::MBP_0),
            action: b'T' as _,
            side: b'N' as _,
            price: UNDEF_PRICE,
            size: 1,
            ..TradeMsg::default()
        };
        let (records, ..) = read(&file(Schema::Trades, &[trade.as_ref()]));
        assert_eq!((records[0].action, records[0].side, records[0].price), (b'T', None, None));
    }

    #[test]
    fn definitions_name_their_instruments() {
        let mut record = InstrumentDefMsg {
            hd: header::<InstrumentDefMsg>(dbn::rtype::INSTRUMENT_DEF),
            min_price_increment: 50_000,
            strike_price: UNDEF_PRICE,
            instrument_class: b'F' as _,
            ..InstrumentDefMsg::default()
        };
        for (place, byte) in record.raw_symbol.iter_mut().zip(b"6EH4") {
            *place = *byte as _;
        }
        let (records, error, definitions) = read(&file(Schema::Definition, &[record.as_ref()]));
        assert!(error.is_none() && records[0].action == b'D', "{error:?}");
        let [definition] = definitions.as_slice() else { panic!("{definitions:?}") };
        assert_eq!((definition.symbol.as_str(), definition.class, definition.strike), ("6EH4", 'F', None));
        assert_eq!(definition.tick.unwrap().to_string(), "0.00005");
    }

    #[test]
    fn other_schemas_are_rejected_with_the_supported_ones() {
        for schema in [Schema::Ohlcv1D, Schema::Status, Schema::Cmbp1] {
            let error = schema_of(Some(schema)).unwrap_err().to_string();
            assert!(error.contains(schema.as_str()) && error.contains("mbp-10, mbp-1"), "{error}");
        }
    }
}
