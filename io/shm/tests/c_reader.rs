//! A reader in C, written only from `docs/shm.md`, sees the data of the writer.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentWriter, TimeBase};
use tickpath_types::{
    BookHealth, MarketUpdate, Nanos, PriceLevel, SuspectReason, TopOfBook, TradingState, UpdateKind,
};
use zerocopy::FromZeros;

#[test]
fn a_reader_in_c_follows_the_document() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("reader");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reader.c");
    // Rust programs are linked with the C compiler, so there is one.
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-o"]).arg(&program).arg(source);
    let built = compile.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let folder = Folder::create(&place.path().join("shm")).unwrap();
    let name = SegmentName::new("feed").unwrap();
    let config = SegmentConfig { rows: 70, stream_capacity: 2, time_base: TimeBase::Midnight };
    let mut writer = SegmentWriter::create(&folder, &name, &config, Nanos(5)).unwrap();
    writer.name(1, "ALPHA").unwrap();
    writer.name(69, "BTC-PERPETUAL").unwrap();
    let quote = TopOfBook {
        bid: PriceLevel { price: -1_000_000, qty: 1 << 40 },
        ask: PriceLevel { price: 1_000_100, qty: 2 },
        last_price: 1_000_050,
        ts_event: 34_200_000_000_001,
        last_qty: 7,
        health: BookHealth::Suspect as u8,
        trading_state: TradingState::Trading as u8,
        suspect_reason: SuspectReason::Crossed as u8,
        reserved: 0,
    };
    writer.write(69, &quote).unwrap();
    for sequence in 1..=3 {
        writer.send(&MarketUpdate {
            sequence,
            price: -5,
            instrument: 69,
            kind: UpdateKind::Trade as u8,
            side: 1,
            health: 2,
            ..MarketUpdate::new_zeroed()
        });
    }
    let pid = std::process::id();
    drop(writer);

    let ran = Command::new(&program).arg(folder.file(&name)).output().unwrap();
    let expected = format!(
        "pid {pid} state 2 named 2\n\
         row 1 ALPHA bid 0 x 0 ask 0 x 0 last 0 x 0 ts 0 health 0 trading - reason 0\n\
         row 69 BTC-PERPETUAL bid -1000000 x 1099511627776 ask 1000100 x 2 last 1000050 x 7 ts 34200000000001 \
         health 3 trading T reason 6\n\
         update 1 sequence 2 instrument 69 kind 2 side 1 health 2 price -5\n\
         update 2 sequence 3 instrument 69 kind 2 side 1 health 2 price -5\n"
    );
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success());

    std::fs::write(folder.file(&name), b"no segment").unwrap();
    assert!(!Command::new(&program).arg(folder.file(&name)).output().unwrap().status.success());
}
