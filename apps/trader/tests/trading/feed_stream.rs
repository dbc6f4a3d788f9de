//! A strategy that reads the books of a feed handler from its shared-memory segment.

use tickpath_agent::Agent;
use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentReader, SegmentWriter};
use tickpath_trader::FeedStream;
use tickpath_trading::{Context, NewOrder, Refusal, Strategy};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, Price, PriceLevel, Qty, Side, UpdateKind,
};

/// A strategy that records its updates and tries to buy.
#[derive(Default)]
struct Watcher {
    bids: Vec<(InstrumentId, Price)>,
    refusals: Vec<Refusal>,
    stale: usize,
}

impl Strategy for Watcher {
    fn name(&self) -> &str {
        "watcher"
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        let features = cx.features(instrument).unwrap();
        self.stale += usize::from(features.health() == BookHealth::Stale);
        let Some((bid, _)) = features.bbo().bid else { return };
        self.bids.push((instrument, bid));
        let order = NewOrder::limit(instrument, Side::Buy, Qty(1), bid);
        self.refusals.extend(cx.enter(&order).err());
    }
}

fn update(row: u16, bid: i64) -> MarketUpdate {
    let mut update: MarketUpdate = zerocopy::FromZeros::new_zeroed();
    update.instrument = row;
    update.kind = UpdateKind::Add as u8;
    update.bid = PriceLevel { price: bid, qty: 100 };
    update
}

#[test]
fn a_strategy_runs_on_the_stream_of_a_segment_and_cannot_enter_orders() {
    const STREAM: u64 = 64;
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(place.path()).unwrap();
    let name = SegmentName::new("feed").unwrap();
    let config = SegmentConfig { stream_capacity: STREAM, ..SegmentConfig::default() };
    let mut writer = SegmentWriter::create(&folder, &name, &config, Nanos(0)).unwrap();
    let reader = SegmentReader::open(&folder, &name).unwrap();
    let open = || FeedStream::new(&reader, Price(100), Watcher::default());
    assert!(open().err().unwrap().to_string().contains("names no instrument yet"));

    writer.name(0, "ALPHA").unwrap();
    writer.name(1, "BRAVO").unwrap();
    let mut stream = open().unwrap();
    let symbols: Vec<&str> = stream.desk().instruments().iter().map(|it| it.symbol.as_str()).collect();
    assert_eq!(symbols, ["ALPHA", "BRAVO"]);
    for (row, bid) in [(0, 900_000), (1, 2_000_000), (0, 1_000_000), (2, 3_000_000)] {
        writer.send(&MarketUpdate { has_more: u8::from(row < 2), ..update(row, bid) });
    }
    assert_eq!(stream.do_work(Nanos(1)).unwrap(), 4);
    let expected = [(InstrumentId(1), Price(1_000_000)), (InstrumentId(2), Price(2_000_000))];
    assert_eq!(stream.strategy().bids, expected, "once each at the end of the packet; row 2 has no name");
    assert_eq!(stream.strategy().refusals, [Refusal::NotConnected; 2]);

    for bid in 0..2 * STREAM.cast_signed() {
        writer.send(&update(0, 100 * bid + 100));
    }
    while stream.do_work(Nanos(2)).unwrap() > 0 {}
    assert!(stream.lost_updates() >= STREAM && stream.strategy().stale == 2, "each book once");
    assert_eq!(stream.strategy().bids.last(), Some(&(InstrumentId(1), Price(200 * STREAM.cast_signed()))));
}
