//! Writes every tick as a line of CSV, on a separate thread.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow};
use tickpath_config::OutputFile;
use tickpath_lockfree::spsc;
use tickpath_ticks::message::{NO_PRICE, Tick, TickKind};
use tickpath_types::{Price, Symbol};

/// The first line of the file: the column names.
pub const CSV_HEADER: &str = "ts_generate_ns,symbol,sequence,symbol_sequence,type,bid_qty,bid,ask,ask_qty,price,qty,aggressor,volume,state";

/// Capacity of the ring in ticks: some milliseconds at full speed, more than half a second at 100,000
/// ticks/s.
pub(super) const RING_CAPACITY: usize = 1 << 16;
/// Pause of the producer before it retries to add to a full ring.
pub(super) const FULL_WAIT: Duration = Duration::from_micros(200);
/// Pause of the writer before it retries to read from an empty ring.
const EMPTY_WAIT: Duration = Duration::from_millis(2);
/// Length in bytes of the text that is collected for one write to the file.
const BLOCK_LEN: usize = 1 << 16;

/// A tick in the ring, with its symbol.
#[derive(Clone, Copy)]
pub(super) struct CsvItem {
    pub(super) tick: Tick,
    /// The tick's symbol; `None` if the server did not define it.
    pub(super) symbol: Option<Symbol>,
}

/// A CSV file of ticks, written by a separate thread.
pub struct CsvFile {
    path: PathBuf,
    thread: JoinHandle<io::Result<u64>>,
    producer: Option<spsc::Producer<CsvItem>>,
    is_last: Arc<AtomicBool>,
}

impl CsvFile {
    /// Creates the file and starts the thread that writes it.
    ///
    /// # Errors
    /// The file or the thread cannot be created.
    pub fn create(path: &Path) -> anyhow::Result<CsvFile> {
        let file = OutputFile::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let (producer, consumer) = spsc::channel(RING_CAPACITY);
        let is_last = Arc::new(AtomicBool::new(false));
        let writer = CsvWriter { file, text: String::with_capacity(BLOCK_LEN + 256), rows: 0 };
        let thread = thread::Builder::new().name("csv".to_owned()).spawn({
            let is_last = Arc::clone(&is_last);
            move || writer.run(consumer, &is_last)
        })?;
        Ok(CsvFile { path: path.to_owned(), thread, producer: Some(producer), is_last })
    }

    /// Takes the ring's only producer; `None` if it was taken before.
    pub(super) fn take_producer(&mut self) -> Option<spsc::Producer<CsvItem>> {
        self.producer.take()
    }

    /// Returns true once the writer thread has ended; [`finish`](CsvFile::finish) returns the reason.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Writes the remaining ticks and moves the file to its final name; returns the number of rows. Call it
    /// last.
    ///
    /// # Errors
    /// Describes in one line the failure of the writer, such as a full disk.
    pub fn finish(self) -> anyhow::Result<u64> {
        self.is_last.store(true, Ordering::Release);
        let written = self.thread.join().map_err(|_| anyhow!("the CSV writer thread panicked"))?;
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

struct CsvWriter {
    file: OutputFile,
    text: String,
    rows: u64,
}

impl CsvWriter {
    /// Writes ticks until `is_last` is set and the ring is empty; returns the number of rows. A closed pipe
    /// is not an error.
    fn run(mut self, mut ring: spsc::Consumer<CsvItem>, is_last: &AtomicBool) -> io::Result<u64> {
        match self.write_all(&mut ring, is_last).and_then(|()| self.file.finish()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(self.rows),
        }
    }

    fn write_all(&mut self, ring: &mut spsc::Consumer<CsvItem>, is_last: &AtomicBool) -> io::Result<()> {
        self.text.push_str(CSV_HEADER);
        self.text.push('\n');
        loop {
            // Read the flag before the ring: no tick is added after the flag is set.
            let is_end = is_last.load(Ordering::Acquire);
            match ring.try_pop() {
                Some(item) => self.write_tick(&item),
                None if is_end => break,
                None => {
                    self.write_block()?;
                    thread::sleep(EMPTY_WAIT);
                }
            }
            if self.text.len() >= BLOCK_LEN {
                self.write_block()?;
            }
        }
        self.write_block()
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.file.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.file.flush()
    }

    fn write_tick(&mut self, CsvItem { tick, symbol }: &CsvItem) {
        let (header, Some(kind)) = (tick.header, tick.kind()) else { return };
        self.rows += 1;
        // The results of `write!` are ignored: writing to a string does not fail.
        let _ = write!(self.text, "{},", tick.ts_generate);
        // An instrument without a known symbol is written as `#` and its number.
        let _ = match symbol {
            Some(symbol) => write!(self.text, "{}", symbol.as_str()),
            None => write!(self.text, "#{}", header.instrument),
        };
        let _ = write!(self.text, ",{},{},", header.sequence, header.symbol_sequence);
        let _ = match kind {
            TickKind::Quote(quote) => {
                let (bid, ask) = (Price(quote.bid_price.get()), Price(quote.ask_price.get()));
                let (bid, ask) = (PriceOrNone(bid), PriceOrNone(ask));
                writeln!(self.text, "quote,{},{bid},{ask},{},,,,,", quote.bid_qty, quote.ask_qty)
            }
            TickKind::Trade(trade) => {
                let aggressor = char::from(trade.aggressor().map_or(b' ', |_| trade.aggressor));
                let price = Price(trade.price.get());
                let (qty, volume) = (trade.qty, trade.volume);
                let aggressor = aggressor.to_string();
                writeln!(self.text, "trade,,,,,{price},{qty},{},{volume},", aggressor.trim_end())
            }
            TickKind::Status(status) => {
                let state =
                    status.trading_state().map_or(String::new(), |_| char::from(status.state).to_string());
                writeln!(self.text, "status,,,,,,,,,{state}")
            }
        };
    }
}

/// Formats a price; formats `NO_PRICE` as empty text.
struct PriceOrNone(Price);

impl std::fmt::Display for PriceOrNone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == NO_PRICE { Ok(()) } else { std::fmt::Display::fmt(&self.0, f) }
    }
}
