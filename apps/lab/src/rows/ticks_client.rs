//! A client of the ticks protocol: time to parse ticks, time to draw a frame, and memory.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tickpath_agent::TscClock;
use tickpath_ticks::checksum::{fill_checksums, with_checksum};
use tickpath_ticks::message::{
    Heartbeat, Hello, Place, Quote, Scope, Subscribed, SymbolDefinition, Tick, TickKind, Trade,
};
use tickpath_ticks::parser::{TickListener, TickParser};
use tickpath_ticks_app::client::{Feed, Shared};
use tickpath_ticks_app::view::{Canvas, TicksView};
use tickpath_types::{InstrumentId, Nanos, Price, Symbol};
use zerocopy::IntoBytes;

use super::prelude::*;
use crate::context::Effort;
use crate::support::process::Program;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[row("ticks_parse", "ns")
            .note(
                "a tick of 56 bytes out of a stream, checksum and number checked, handed to a listener that \
                 reads it; the slowest of pieces of 64 KiB, 4 KiB, 1448 and 100 bytes, each the median of \
                 its passes; the bytes lie in the parser's buffer already, as a read puts them there, whose \
                 copy is not in the figure",
            )
            .reference(
                "a C++ tick simulator 182 ns; its parser 17-45 ns on this kind of host, \
                 perhaps with the copy",
            )],
        open_parse,
    ),
    on_one_core(
        &[row("view_refresh", "ms")
            .note(
                "a picture of 120 x 40 from the symbol cache: 100 symbols read and ordered, 20 drawn with \
                 latencies, what changed written as escape codes; every symbol moves between two pictures; \
                 p50",
            )
            .reference("a C++ tick simulator 1.8 ms")],
        open_view,
    ),
    on_one_core(
        &[row("ticks_client_rss", "MB")
            .note(
                "resident memory of `tickpath ticks watch --no-tui` that gets 100,000 ticks/s of 100 \
                 symbols, each of which must come into its cache",
            )
            .goal(Goal::ValueAtMost(6.0))
            .reference("a C++ tick simulator 5.7 MB")],
        open_memory,
    ),
];

/// Number of symbols in the session.
const SYMBOLS: u16 = 100;
/// Number of ticks in the parsed stream: a megabyte.
const PARSED: u64 = 18_725;
/// Lengths in bytes of the pieces passed to the parser: a large read, a page, a TCP segment, a small read.
const PIECE_LENS: [usize; 4] = [65_536, 4_096, 1_448, 100];
/// Number of passes over the stream in a full round, for each piece length.
const PASSES: usize = 300;
/// Number of frames drawn in a full round.
const FRAMES: usize = 1_000;
/// Number of ticks per second that are sent to the client.
const RATE: u64 = 100_000;
/// Interval between two writes of ticks.
const WRITE_INTERVAL: Duration = Duration::from_millis(1);
/// Time during which ticks are sent to the client in a full round, and the additional time until its option
/// `--for` ends the client.
const SENDING: Duration = Duration::from_secs(3);
const SPARE: Duration = Duration::from_secs(2);

/// Returns tick `sequence`; three in ten ticks are trades.
fn tick(sequence: u64, ts: Nanos) -> Tick {
    let instrument = InstrumentId((sequence * 7_919 % u64::from(SYMBOLS)) as u16 + 1);
    let place = Place { instrument, symbol_sequence: sequence as u32, sequence };
    let price = Price(1_000_000 + (sequence * 2_654_435_761 % 997) as i64 * 100);
    match sequence * 40_503 % 10 {
        0..3 => Trade::new(place, ts, price, 100, None, sequence * 100, 0).into(),
        _ => Quote::new(place, ts, (price, 300), (Price(price.0 + 100), 200), 0).into(),
    }
}

fn ticks_with_checksums(first: u64, count: u64, ts: Nanos) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = (first..first + count).map(|sequence| tick(sequence, ts)).collect();
    fill_checksums(&mut ticks);
    ticks
}

/// Returns the server's messages before the first tick.
fn greeting(with_symbols: bool) -> anyhow::Result<Vec<u8>> {
    let mut bytes = with_checksum(Hello::server(1, 7, 1_000, SYMBOLS, Nanos(1))).as_bytes().to_vec();
    if with_symbols {
        bytes.extend(with_checksum(Subscribed::new(1, 1, Scope::All, u32::from(SYMBOLS))).as_bytes());
        for index in 1..=SYMBOLS {
            let place = Place { instrument: InstrumentId(index), symbol_sequence: 1, sequence: 1 };
            let symbol = Symbol::new(&format!("SYM{index:03}"))?;
            let definition = SymbolDefinition::new(place, symbol, Price(1_000_000), Price(100), 0);
            bytes.extend(with_checksum(definition).as_bytes());
        }
    }
    Ok(bytes)
}

/// A digest of all ticks, so that the compiler cannot omit reading them.
#[derive(Default, PartialEq, Eq, Debug)]
struct Digest {
    ticks: u64,
    qty: u64,
}

impl TickListener for Digest {
    #[inline]
    fn on_ticks(&mut self, ticks: &[Tick]) {
        self.ticks += ticks.len() as u64;
        for tick in ticks {
            // Byte 16 is the first byte of the quantity in both quotes and trades.
            self.qty += u64::from(tick.body[16]);
        }
    }
}

fn open_parse(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let ticks = ticks_with_checksums(1, PARSED, Nanos(1));
    let mut expected = Digest::default();
    for tick in &ticks {
        expected.ticks += 1;
        expected.qty += u64::from(match tick.kind().context("a tick has a kind")? {
            TickKind::Quote(quote) => quote.bid_qty.as_bytes()[0],
            TickKind::Trade(trade) => trade.qty.as_bytes()[0],
            TickKind::Status(_) => 0,
        });
    }
    let stream = [&greeting(false)?[..], ticks.as_bytes()].concat();
    each_round(lab, move |context| {
        let mut nanos = [0.0; PIECE_LENS.len()];
        for (nanos, len) in nanos.iter_mut().zip(PIECE_LENS) {
            let mut passes = Vec::new();
            for _ in 0..context.effort.count(PASSES) {
                // Copy the stream into the parser's buffer before timing. `commit` then gets the length of a
                // piece, as after a read from a socket.
                let mut parser = TickParser::with_buffer(2 * stream.len() + 2);
                parser.free_space()[..stream.len()].copy_from_slice(&stream);
                let mut found = Digest::default();
                let start = context.clock.ticks();
                for piece in black_box(&stream[..]).chunks(len) {
                    black_box(parser.free_space());
                    parser.commit(piece.len(), &mut found)?;
                }
                passes.push(context.clock.ticks() - start);
                let stats = parser.stats();
                ensure!(
                    found == expected && stats.lost + stats.corrupt == 0,
                    "parsed {found:?} of {expected:?}"
                );
            }
            *nanos = context.quantile_ns(&mut passes, 0.5) / PARSED as f64;
        }
        let each = PIECE_LENS.iter().zip(nanos).map(|(len, nanos)| format!("{len} bytes {nanos:.2}"));
        let note = format!("by pieces: {}", each.collect::<Vec<_>>().join(", "));
        let slowest = nanos.into_iter().fold(0.0, f64::max);
        Ok([Sample::with_note(slowest, note)])
    })
}

/// A writer that discards the escape codes of a frame and counts their bytes.
struct Discard(Rc<Cell<usize>>);

impl Write for Discard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.set(self.0.get() + black_box(bytes).len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn open_view(lab: &Lab<'_>) -> anyhow::Result<Round> {
    each_round(lab, |context| {
        let shared = Arc::new(Shared::default());
        let mut feed = Feed::new(Arc::clone(&shared), None);
        feed.feed(&greeting(true)?, Nanos(2))?;
        let mut view = TicksView::new("127.0.0.1:9200", None);
        let written = Rc::new(Cell::new(0));
        let mut canvas = Canvas::new(120, 40, 20, Discard(Rc::clone(&written)))?;
        let (mut draw_times, mut next) = (Vec::new(), 1);
        for frame in 0..context.effort.count(FRAMES) as u64 {
            // Send ten ticks per symbol, so that every symbol's price and volume change.
            let count = 10 * u64::from(SYMBOLS);
            feed.feed(ticks_with_checksums(next, count, Nanos(next)).as_bytes(), Nanos(next + 1))?;
            next += count;
            written.set(0);
            let start = context.clock.ticks();
            view.update(&shared, Duration::from_millis(500 * (frame + 1)));
            let rows = canvas.draw(&view)?;
            draw_times.push(context.clock.ticks() - start);
            ensure!(rows == 20 && view.rows.len() == usize::from(SYMBOLS), "{rows} symbols were drawn");
            ensure!(written.get() > 500, "a picture of {} bytes shows no change", written.get());
        }
        let nanos = context.quantile_ns(&mut draw_times, 0.5);
        Ok([nanos / 1e6])
    })
}

fn open_memory(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let program = lab.sibling_program("ticks")?;
    each_round(lab, move |context| {
        let sending = if context.effort == Effort::Full { SENDING } else { SENDING / 3 };
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report.json");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut command = Command::new(&program);
        command.args(["watch", &listener.local_addr()?.to_string(), "--no-tui", "--for"]);
        command.arg(format!("{}ms", (sending + SPARE).as_millis()));
        command.arg("--json").arg(&report).stdout(Stdio::null());
        let mut client = Program::start(&mut command, Signal::SIGKILL)?;
        let found = serve_and_measure(&listener, &mut client, sending, context.clock)?;
        Ok([found.sample(&client.report(&report, "client")?["counts"], sending)?])
    })
}

/// Number of ticks sent to a client, and the memory and processor time that it used.
struct ClientUsage {
    sent: u64,
    resident_bytes: u64,
    cpu: Duration,
}

impl ClientUsage {
    fn sample(&self, counts: &serde_json::Value, sending: Duration) -> anyhow::Result<Sample> {
        let count = |name: &str| counts[name].as_u64().unwrap_or(u64::MAX);
        let (ticks, lost) = (count("ticks"), count("lost").saturating_add(count("corrupt")));
        ensure!(ticks == self.sent && lost == 0, "{ticks} of {} ticks came, {lost} were lost", self.sent);
        let seconds = sending.as_secs_f64();
        let note = format!(
            "{ticks} ticks in {seconds:.0} s: {:.1}% of a core, start included, {:.0} reads a second",
            100.0 * self.cpu.as_secs_f64() / seconds,
            count("reads") as f64 / seconds,
        );
        Ok(Sample::with_note(self.resident_bytes as f64 / 1e6, note))
    }
}

/// Sends ticks at `RATE`, measures the client, and keeps the connection until the client has ended.
fn serve_and_measure(
    listener: &TcpListener,
    client: &mut Program,
    sending: Duration,
    clock: TscClock,
) -> anyhow::Result<ClientUsage> {
    let mut stream = accept(listener, client)?;
    stream.write_all(&greeting(true)?)?;
    let (started, mut sent) = (Instant::now(), 0);
    while started.elapsed() < sending {
        let due = started.elapsed().as_nanos() as u64 * RATE / 1_000_000_000;
        if due > sent {
            stream.write_all(ticks_with_checksums(sent + 1, due - sent, clock.now()).as_bytes())?;
            sent = due;
        }
        thread::sleep(WRITE_INTERVAL);
    }
    let usage = ClientUsage { sent, resident_bytes: client.memory_bytes("VmRSS")?, cpu: client.cpu_time()? };
    while client.child.try_wait()?.is_none() {
        // This write may fail because the client has just ended, which is no error.
        match stream.write_all(with_checksum(Heartbeat::new(sent + 1, clock.now())).as_bytes()) {
            Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Err(error.into());
            }
            _ => thread::sleep(Duration::from_millis(100)),
        }
    }
    Ok(usage)
}

/// Waits for the client's connection and its hello.
fn accept(listener: &TcpListener, client: &mut Program) -> anyhow::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ensure!(client.child.try_wait()?.is_none(), "the client ended before it connected");
                thread::sleep(WRITE_INTERVAL);
            }
            Err(error) => return Err(error.into()),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut hello = [0; size_of::<Hello>()];
    stream.read_exact(&mut hello).context("the client sent no hello")?;
    Ok(stream)
}
