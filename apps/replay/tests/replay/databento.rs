//! DBN files written by the vendor's own library.

use std::fs;
use std::num::NonZeroU64;

use dbn::encode::dbn::MetadataEncoder;
use dbn::record::BidAskPair;
use dbn::{
    FlagSet, HasRType, InstrumentDefMsg, MboMsg, Mbp1Msg, Mbp10Msg, MetadataBuilder, RecordHeader, SType,
    Schema, UNDEF_PRICE, UNDEF_TIMESTAMP, flags, rtype,
};
use tickpath_replay::{Exports, FileReport, Reliability, ReplayOptions};
use tickpath_test_support::recorded;
use tickpath_types::Side;

use crate::support::{checked, file, run, stored, try_run};

/// 2024-01-02, 14:30 UTC.
const OPENED_NS: u64 = 1_704_205_800_000_000_000;
/// A time more than a day before [`OPENED_NS`].
const OLD_NS: u64 = OPENED_NS - 100_000_000_000_000;

/// A DBN file of these records.
pub fn dbn(schema: Schema, records: &[Vec<u8>]) -> Vec<u8> {
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

fn header<T: HasRType>(record_type: u8, instrument: u32, ns: u64) -> RecordHeader {
    RecordHeader::new::<T>(record_type, 1, instrument, ns)
}

/// A record that adds an order; `price` is in units of 10^-9.
fn add(instrument: u32, ns: u64, order_id: u64, side: u8, price: i64, snapshot: bool) -> Vec<u8> {
    let flags = if snapshot { flags::SNAPSHOT } else { flags::LAST };
    let record = MboMsg {
        hd: header::<MboMsg>(rtype::MBO, instrument, ns),
        action: b'A' as _,
        side: side as _,
        price,
        size: 3,
        order_id,
        flags: FlagSet::new(flags),
        ..MboMsg::default()
    };
    record.as_ref().to_vec()
}

fn replayed(name: &str, schema: Schema, records: &[Vec<u8>], options: &ReplayOptions) -> FileReport {
    let (_folder, path) = file(name, &dbn(schema, records));
    run(&path, options)
}

#[test]
fn a_record_without_an_event_time_has_its_receive_time() {
    let record = MboMsg {
        hd: header::<MboMsg>(rtype::MBO, 1, UNDEF_TIMESTAMP),
        action: b'A' as _,
        side: b'B' as _,
        price: 1_000_000_000,
        size: 3,
        order_id: 1,
        ts_recv: OPENED_NS + 7,
        ..MboMsg::default()
    };
    let report = replayed("t.dbn", Schema::Mbo, &[record.as_ref().to_vec()], &checked());
    let span = report.span.expect("a message in the window");
    assert_eq!((report.messages, span.0.to_string()), (1, "2024-01-02 14:30:00.000000007 UTC".to_owned()));
}

#[test]
fn prices_keep_the_precision_of_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let [bbo, orders] = ["bbo.csv", "orders.csv"].map(|name| folder.path().join(name));
    let exports = Exports { bbo: Some(bbo.clone()), orders: Some(orders.clone()), ..Exports::default() };
    let options = ReplayOptions { exports, ..checked() };
    let records = [
        // Prices of a euro future in half pips, and of a Treasury note in 256ths; the smallest, a negative
        // and the highest price.
        add(1, OPENED_NS, 1, b'B', 1_084_550_000, false),
        add(1, OPENED_NS + 1, 2, b'A', 1_084_600_000, false),
        add(2, OPENED_NS + 2, 3, b'B', 110_007_812_500, false),
        add(2, OPENED_NS + 3, 4, b'A', 110_011_718_750, false),
        add(3, OPENED_NS + 4, 5, b'B', 1, false),
        add(4, OPENED_NS + 5, 6, b'B', -37_630_000_000, false),
        add(4, OPENED_NS + 6, 7, b'A', i64::MAX - 1, false),
    ];
    let report = replayed("fine.dbn", Schema::Mbo, &records, &options);
    assert!(report.is_trustworthy(), "{report}");
    assert_eq!((report.integrity.malformed.count, report.integrity.orders_left), (0, 7));
    let text = fs::read_to_string(&bbo).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).map(|row| row.split_once(',').unwrap().1).collect();
    assert_eq!(
        rows,
        [
            "1,1,1.08455,3,,",
            "2,1,1.08455,3,1.0846,3",
            "3,2,110.0078125,3,,",
            "4,2,110.0078125,3,110.01171875,3",
            "5,3,0.000000001,3,,",
            "6,4,-37.6300,3,,",
            "7,4,-37.6300,3,9223372036.854775806,3",
        ]
    );
    assert!(fs::read_to_string(&orders).unwrap().contains(",add,3,,buy,110.0078125,3,"));
    let shown = report.to_string();
    assert!(shown.contains(" 0.00005    1.000\n") && shown.contains("110.01171875"), "{shown}");
    let json = report.to_json();
    assert_eq!(json["tops"][0]["bids"][0]["price"], "1.08455", "{json:#}");
    assert_eq!(json["symbols"][0]["tick"], "0.00005");
    assert_eq!(json["symbols"][0]["spread_sum"], "0.00005");
}

#[test]
fn a_snapshot_builds_the_book_and_is_in_no_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let [bbo, orders, depth] = ["bbo.csv", "orders.csv", "depth.csv"].map(|name| folder.path().join(name));
    let exports = Exports {
        bbo: Some(bbo.clone()),
        orders: Some(orders.clone()),
        depth: Some(depth.clone()),
        ..Exports::default()
    };
    let price = |ticks: i64| 4_800_000_000_000 + ticks * 250_000_000;
    // The first order of the snapshot is far from the market: the spread is a hundred ticks until the third
    // arrives.
    let records = [
        add(1, OLD_NS, 1, b'B', price(-100), true),
        add(1, OLD_NS + 9, 2, b'A', price(1), true),
        add(1, OLD_NS + 3, 3, b'B', price(0), true),
        add(1, OPENED_NS, 4, b'B', price(0), false),
        add(1, OPENED_NS + 1, 5, b'A', price(1), false),
    ];
    // Times without a date are on the first day with an event that is not of a snapshot.
    let options = ReplayOptions {
        exports,
        from: Some("14:30:00".parse().unwrap()),
        to: Some("15:00:00".parse().unwrap()),
        ..checked()
    };
    let report = replayed("snapshot.dbn", Schema::Mbo, &records, &options);
    assert_eq!((report.snapshot_messages, report.integrity.orders_left), (0, 5), "before the window");
    assert_eq!(report.statistics[0].1.messages, 2);
    let options = ReplayOptions { from: None, to: None, ..options };
    let report = replayed("snapshot.dbn", Schema::Mbo, &records, &options);
    assert!(report.is_trustworthy(), "{report}");
    assert_eq!((report.messages, report.snapshot_messages), (5, 3));
    assert_eq!(report.integrity.time_backwards.count, 0);
    let (first, last) = report.span.unwrap();
    assert_eq!((first.ns, last.ns), (OPENED_NS, OPENED_NS + 1));
    let statistics = report.statistics[0].1;
    assert_eq!((statistics.messages, statistics.adds), (2, 2));
    assert_eq!(statistics.spread_average_ticks_ppm(), Some(1_000_000));
    let text = fs::read_to_string(&bbo).unwrap();
    assert_eq!(text.lines().nth(1).unwrap(), format!("{OPENED_NS},4,1,4800.0000,6,4800.2500,3"));
    assert_eq!(text.lines().count(), 3);
    let text = fs::read_to_string(&orders).unwrap();
    assert_eq!((text.matches(",snapshot,").count(), text.matches(",add,").count()), (3, 2));
    let text = fs::read_to_string(&depth).unwrap();
    assert!(text.lines().skip(1).all(|row| row.starts_with(&OPENED_NS.to_string()[..10])), "{text}");
}

#[test]
fn a_snapshot_is_not_paced() {
    // A replay of both records at recorded speed would take more than a day.
    let records =
        [add(1, OLD_NS, 1, b'B', 1_000_000_000, true), add(1, OPENED_NS, 2, b'B', 1_000_000_000, false)];
    let options = ReplayOptions { speed: "1x".parse().unwrap(), ..ReplayOptions::default() };
    assert_eq!(replayed("paced.dbn", Schema::Mbo, &records, &options).messages, 2);
}

fn pair(bid: i64, ask: i64, size: u32) -> BidAskPair {
    BidAskPair { bid_px: bid, ask_px: ask, bid_sz: size, ask_sz: size, bid_ct: 1, ask_ct: 1 }
}

const EMPTY: BidAskPair =
    BidAskPair { bid_px: UNDEF_PRICE, ask_px: UNDEF_PRICE, bid_sz: 0, ask_sz: 0, bid_ct: 0, ask_ct: 0 };

fn mbp_1(ns: u64, action: u8, side: u8, price: i64, level: BidAskPair) -> Vec<u8> {
    let record = Mbp1Msg {
        hd: header::<Mbp1Msg>(rtype::MBP_1, 1, ns),
        action: action as _,
        side: side as _,
        price,
        size: 2,
        flags: FlagSet::new(flags::LAST),
        levels: [level],
        ..Mbp1Msg::default()
    };
    record.as_ref().to_vec()
}

#[test]
fn best_levels_and_trades_of_mbp_1_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let [bbo, trades] = ["bbo.csv", "trades.csv"].map(|name| folder.path().join(name));
    let exports = Exports { bbo: Some(bbo.clone()), trades: Some(trades.clone()), ..Exports::default() };
    let records = [
        mbp_1(OPENED_NS, b'A', b'B', 1_084_550_000, pair(1_084_550_000, 1_084_600_000, 5)),
        mbp_1(OPENED_NS + 1, b'T', b'A', 1_084_550_000, pair(1_084_550_000, 1_084_600_000, 5)),
        mbp_1(OPENED_NS + 2, b'M', b'B', 1_084_550_000, pair(1_084_550_000, 1_084_600_000, 3)),
        mbp_1(OPENED_NS + 3, b'R', b'N', UNDEF_PRICE, EMPTY),
    ];
    let report = replayed("levels.dbn", Schema::Mbp1, &records, &ReplayOptions { exports, ..checked() });
    assert_eq!((report.reliability(), report.messages), (Reliability::Partial, 4), "{report}");
    assert!(report.to_string().contains("DBN, mbp-1"), "{report}");
    assert!(report.reservations[0].contains("the best 1 level(s)"), "{:?}", report.reservations);
    assert_eq!(report.model.as_ref().unwrap().difference, None);
    let text = fs::read_to_string(&bbo).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).map(|row| row.split_once(',').unwrap().1).collect();
    assert_eq!(rows, ["1,1,1.08455,5,1.0846,5", "3,1,1.08455,3,1.0846,3", "4,1,,,,"]);
    let text = fs::read_to_string(&trades).unwrap();
    assert_eq!(text.lines().nth(1).unwrap(), format!("{},2,1,1.08455,2,sell,trade,", OPENED_NS + 1));
    assert_eq!(report.statistics[0].1.volume, 2);
    // The tick size is derived from the prices of the levels, not of the events.
    assert_eq!(report.statistics[0].1.tick, 50_000);
    let exports = Exports { orders: Some(folder.path().join("o.csv")), ..Exports::default() };
    let (_folder, path) = file("levels.dbn", &dbn(Schema::Mbp1, &records));
    let error = try_run(&path, &ReplayOptions { exports, ..checked() }).unwrap_err().to_string();
    assert_eq!(error, "DBN schema mbp-1 has no data for --orders: omit it");
}

#[test]
fn the_recorded_best_levels_have_their_tick() {
    let Some(path) = recorded("databento/dbn_test_mbp-1.v3.dbn.zst") else { return };
    let report = run(&path, &checked());
    assert!(report.to_string().contains(" 0.2500    1.000\n"), "{report}");
}

#[test]
fn ten_levels_of_mbp_10_are_read() {
    let record = |ns: u64, top: i64, count: usize| {
        let mut levels = [EMPTY; 10];
        for (rank, level) in levels.iter_mut().enumerate().take(count) {
            *level = pair(top - rank as i64 * 250, top + 250 + rank as i64 * 250, 1 + rank as u32);
        }
        let record = Mbp10Msg {
            hd: header::<Mbp10Msg>(rtype::MBP_10, 1, ns),
            action: b'A' as _,
            side: b'B' as _,
            price: top,
            size: 1,
            levels,
            ..Mbp10Msg::default()
        };
        record.as_ref().to_vec()
    };
    let records =
        [record(OPENED_NS, 10_000, 10), record(OPENED_NS + 1, 10_250, 10), record(OPENED_NS + 2, 10_250, 4)];
    let report = replayed("levels.dbn", Schema::Mbp10, &records, &ReplayOptions { depth: 10, ..checked() });
    assert!(report.is_trustworthy(), "{report}");
    let levels = |side: Side| -> Vec<_> {
        report.tops[0].sides[side.index()].iter().map(|level| (level.price.0, level.qty.0)).collect()
    };
    assert_eq!(levels(Side::Buy), [(10_250, 1), (10_000, 2), (9_750, 3), (9_500, 4)]);
    assert_eq!(levels(Side::Sell), [(10_500, 1), (10_750, 2), (11_000, 3), (11_250, 4)]);
    assert_eq!(report.statistics[0].1.tick, 250);
    assert_eq!(report.model.as_ref().unwrap().difference, None);
}

#[test]
fn trades_and_definitions_are_read() {
    let report = run(&stored("test_data.trades.v3.dbn.zst"), &checked());
    assert!(report.is_trustworthy() && report.books.is_none(), "{report}");
    assert_eq!((report.messages, report.statistics[0].0.as_str()), (2, "ESH1"));
    assert!(report.statistics[0].1.volume > 0);
    let folder = tempfile::tempdir().unwrap();
    let exports = Exports { bbo: Some(folder.path().join("b.csv")), ..Exports::default() };
    let error = try_run(&stored("test_data.trades.v3.dbn.zst"), &ReplayOptions { exports, ..checked() });
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "DBN schema trades has no data for --bbo: omit it");

    let mut definition = InstrumentDefMsg {
        hd: header::<InstrumentDefMsg>(rtype::INSTRUMENT_DEF, 7, OPENED_NS),
        min_price_increment: 7_812_500,
        strike_price: UNDEF_PRICE,
        expiration: OPENED_NS,
        instrument_class: b'F' as _,
        ..InstrumentDefMsg::default()
    };
    for (place, byte) in definition.raw_symbol.iter_mut().zip(b"ZFH4") {
        *place = *byte as _;
    }
    for (place, byte) in definition.exchange.iter_mut().zip(b"XCBT") {
        *place = *byte as _;
    }
    let records = [definition.as_ref().to_vec()];
    let report = replayed("def.dbn", Schema::Definition, &records, &checked());
    assert!(report.is_trustworthy(), "{report}");
    let text = report.to_string();
    assert!(text.contains("ZFH4") && text.contains("0.0078125") && text.contains("2024-01-02"), "{text}");
    assert_eq!(report.to_json()["definitions"][0]["tick"], "0.0078125");
    assert_eq!((report.symbol_count, report.reliability()), (1, Reliability::Complete));
}

#[test]
fn an_unsupported_schema_is_one_line_with_the_supported_ones() {
    let (_folder, path) = file("bars.dbn", &dbn(Schema::Ohlcv1M, &[]));
    let error = try_run(&path, &checked()).unwrap_err().to_string();
    assert!(
        error.contains("schema is ohlcv-1m") && error.contains("mbp-10") && !error.contains('\n'),
        "{error}"
    );
}

#[test]
fn a_cut_file_of_levels_is_reported() {
    let records: Vec<Vec<u8>> =
        (0..4).map(|n| mbp_1(OPENED_NS + n, b'A', b'B', 1_000, pair(1_000, 2_000, 1))).collect();
    let whole = dbn(Schema::Mbp1, &records);
    for cut in [1, 40, 79] {
        let (_folder, path) = file("cut.dbn", &whole[..whole.len() - cut]);
        let report = run(&path, &checked());
        assert_eq!(report.messages, 3);
        assert!(report.contradictions[0].contains("cut short at byte"), "{:?}", report.contradictions);
    }
    // A record of an impossible size ends the reading with an error; it does not end the program.
    let mut damaged = whole.clone();
    let at = whole.len() - 80;
    damaged[at] = 0;
    let (_folder, path) = file("damaged.dbn", &damaged);
    assert!(!run(&path, &checked()).is_trustworthy());
}
