//! Helpers: generated files, and replays of files.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tickpath_agent::StopSignal;
use tickpath_nasdaq::itch50::{
    AddOrder, BuySell, EventCode, NonCrossTrade, OrderCancel, OrderDelete, OrderExecuted, OrderReplace,
    StockTradingAction, StockTradingState, SystemEvent,
};
use tickpath_nasdaq::wire::{Alpha, Stock};
use tickpath_replay::{FileReport, ReplayError, ReplayOptions, ReplayReport, replay};
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

/// 09:30, in nanoseconds since midnight.
pub const OPEN_NS: u64 = 34_200_000_000_000;

/// Path of a file in `tests/data`.
pub fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Replays all recordings in a file.
pub fn try_run_all(path: &Path, options: &ReplayOptions) -> Result<ReplayReport, ReplayError> {
    replay(path, options, &StopSignal::new(), &mut |_| {})
}

/// Replays a file with one recording.
pub fn try_run(path: &Path, options: &ReplayOptions) -> Result<FileReport, ReplayError> {
    try_run_all(path, options).map(|mut report| {
        assert_eq!(report.files.len(), 1);
        report.files.remove(0)
    })
}

pub fn run(path: &Path, options: &ReplayOptions) -> FileReport {
    try_run(path, options).unwrap()
}

pub fn checked() -> ReplayOptions {
    ReplayOptions { check_every: Some(3), ..ReplayOptions::default() }
}

/// An ITCH day under construction.
#[derive(Default)]
pub struct Day {
    pub bytes: Vec<u8>,
    pub ns: u64,
    refs: u64,
}

impl Day {
    pub fn push(&mut self, message: &[u8]) -> &mut Day {
        self.bytes.extend((message.len() as u16).to_be_bytes());
        self.bytes.extend(message);
        self
    }

    /// Returns the time of the next message, a millisecond after the previous message.
    pub fn now(&mut self) -> Nanos {
        self.ns += 1_000_000;
        Nanos(OPEN_NS + self.ns)
    }

    pub fn add(&mut self, locate: u16, side: BuySell, shares: u32, price: u32) -> u64 {
        self.refs += 1;
        let stock = Stock::new(["", "AAA", "BBB"][usize::from(locate)]).unwrap();
        let message = AddOrder::new(locate, 0, self.now(), self.refs, side, shares, stock, price);
        self.push(message.as_bytes());
        self.refs
    }

    pub fn execute(&mut self, locate: u16, order_ref: u64, shares: u32) -> &mut Day {
        let message = OrderExecuted::new(locate, 0, self.now(), order_ref, shares, 1);
        self.push(message.as_bytes())
    }

    pub fn cancel(&mut self, locate: u16, order_ref: u64, shares: u32) -> &mut Day {
        let message = OrderCancel::new(locate, 0, self.now(), order_ref, shares);
        self.push(message.as_bytes())
    }

    pub fn delete(&mut self, locate: u16, order_ref: u64) -> &mut Day {
        let message = OrderDelete::new(locate, 0, self.now(), order_ref);
        self.push(message.as_bytes())
    }

    pub fn replace(&mut self, locate: u16, order_ref: u64, shares: u32, price: u32) -> u64 {
        self.refs += 1;
        let message = OrderReplace::new(locate, 0, self.now(), order_ref, self.refs, shares, price);
        self.push(message.as_bytes());
        self.refs
    }

    pub fn state(&mut self, locate: u16, state: StockTradingState) -> &mut Day {
        let stock = Stock::new(["", "AAA", "BBB"][usize::from(locate)]).unwrap();
        let message =
            StockTradingAction::new(locate, 0, self.now(), stock, state, Alpha::BLANK, Alpha::BLANK);
        self.push(message.as_bytes())
    }

    pub fn stage(&mut self, stage: EventCode) -> &mut Day {
        let message = SystemEvent::new(0, 0, self.now(), stage);
        self.push(message.as_bytes())
    }

    pub fn hidden(&mut self, locate: u16, shares: u32, price: u32) -> &mut Day {
        let stock = Stock::new(["", "AAA", "BBB"][usize::from(locate)]).unwrap();
        let message = NonCrossTrade::new(locate, 0, self.now(), 0, BuySell::BUY, shares, stock, price, 9);
        self.push(message.as_bytes())
    }

    /// A day of two symbols and thirteen messages, without contradictions.
    pub fn small() -> Day {
        let mut day = Day::default();
        let start = SystemEvent::new(0, 0, day.now(), EventCode::START_OF_MESSAGES);
        day.push(start.as_bytes());
        day.state(1, StockTradingState::TRADING).state(2, StockTradingState::TRADING);
        let bid = day.add(1, BuySell::BUY, 100, 1_000_000);
        let ask = day.add(1, BuySell::SELL, 200, 1_000_300);
        let deep = day.add(1, BuySell::BUY, 50, 999_900);
        let other = day.add(2, BuySell::SELL, 10, 50_000);
        day.execute(1, bid, 40);
        day.hidden(1, 7, 1_000_200);
        let ask = day.replace(1, ask, 150, 1_000_200);
        day.cancel(1, ask, 50).delete(1, deep).delete(2, other);
        day
    }
}

/// Writes `bytes` to a file `name` in a new folder.
pub fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}
