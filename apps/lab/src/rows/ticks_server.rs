//! The ticks server: latency from a tick's generation to the cache of a client on the other core, and
//! maximum rate, each compared with bare TCP.

use std::io::Write;
use std::net::{SocketAddrV4, TcpStream, ToSocketAddrs};

use tickpath_agent::{Agent, StopSignal, TscClock};
use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{EndOfStream, Heartbeat, Hello, SymbolDefinition, TICK_LEN, Tick};
use tickpath_ticks::parser::{Gap, TickListener, TickParser};
use tickpath_ticks::request::encode_subscribe;
use tickpath_ticks_app::client::MarketWriter;
use tickpath_ticks_app::server::{ServeSettings, ServerCounters, TickRate, TicksServer};
use zerocopy::IntoBytes;

use super::prelude::*;
use crate::support::loopback::{read, tcp_pair};

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_two_cores(
        &[
            row("tcp_one_way", "us").note(
                "56 bytes over bare loopback TCP at 100 K/s, both ends busy-polled: from the intended time \
                 to when they are read, p50; 5 s a full round",
            ),
            row("tcp_one_way_p99", "us").note("the same, p99"),
        ],
        |lab| each_round(lab, one_way),
    ),
    on_two_cores(
        &[
            row("ticks_e2e_1", "us")
                .note(
                    "ticks server to one client at 100 K ticks/s, each tick written as it is made: from its \
                     intended time to when it is in the client's symbol cache, p50; 60 s a full round",
                )
                .limit("tcp_one_way")
                .goal(Goal::RatioAtMost(1.5))
                .reference("p50 52 us"),
            row("ticks_e2e_1_p99", "us")
                .note("the same, p99; where the host takes its time, as host_jitter says, that is in both")
                .limit("tcp_one_way_p99")
                .reference("p99 124 us"),
        ],
        |lab| each_round(lab, one_client),
    ),
    on_two_cores(
        &[
            row("ticks_coalesced_1", "us").note("the same with a write each millisecond, one client, p99"),
            row("ticks_e2e_10", "us")
                .note(
                    "the same with ten clients, a million ticks a second delivered, over all of them, p99; \
                     every client the same ticks",
                )
                .limit("ticks_coalesced_1")
                .goal(Goal::RatioAtMost(1.17))
                .reference("p99 + 17% with 10 clients"),
        ],
        |lab| each_round(lab, ten_clients),
    ),
    on_two_cores(
        &[
            row("tcp_bulk", "M/s").note(
                "messages of 56 bytes that bare loopback TCP carries in writes of the size of the next row, \
                 read and not looked at",
            ),
            row("ticks_max_rate", "M/s")
                .note(
                    "ticks made, encoded, sealed and sent on one core, and checked (checksum, sequence) on \
                     the other, as fast as it goes",
                )
                .limit("tcp_bulk")
                .reference("145,833 a second"),
        ],
        |lab| each_round(lab, |context| Ok([bulk(context)?.into(), unpaced(context)?])),
    ),
];

const SYMBOLS: usize = 100;
/// Ticks per second to each client in the paced measurements.
const RATE: u32 = 100_000;
/// Number of ticks in a full round with one client: a minute.
const E2E_TICKS: usize = 6_000_000;
/// Number of ticks in a full round of the other paced measurements: five seconds.
const PACED_TICKS: usize = 500_000;
/// Number of ticks before the measured ones: a tenth of a second.
const WARM_UP: u64 = 10_000;
/// Interval between writes when they are coalesced.
const COALESCE: Nanos = Nanos::from_millis(1);
/// Interval of a client's heartbeats.
const HEARTBEAT: Nanos = Nanos::from_secs(1);
/// Number of clients in `ticks_e2e_10`.
const CLIENTS: usize = 10;
/// Number of ticks in a full round at full speed.
const FAST_TICKS: usize = 40_000_000;
/// Maximum bytes of a write and of a client's read at full speed.
const FAST_WRITE: usize = 112 << 10;
const READ_LEN: usize = 256 << 10;
/// Maximum bytes of a client's read at a paced rate.
const PACED_READ_LEN: usize = 64 << 10;
/// Size of the server's kernel send buffer at full speed.
const FAST_SEND_BUFFER: usize = 1 << 20;

fn one_client(context: &Context) -> anyhow::Result<[Sample; 2]> {
    let mut run = paced(context, 1, E2E_TICKS, Nanos::ZERO)?;
    Ok([Sample::with_note(run.quantile_us(0.5), run.note()), run.quantile_us(0.99).into()])
}

fn ten_clients(context: &Context) -> anyhow::Result<[Sample; 2]> {
    let mut one = paced(context, 1, PACED_TICKS, COALESCE)?;
    let mut ten = paced(context, CLIENTS, PACED_TICKS, COALESCE)?;
    Ok([one.quantile_us(0.99).into(), Sample::with_note(ten.quantile_us(0.99), ten.note())])
}

/// Returns p50 and p99 of the one-way time over bare TCP, in microseconds: from a message's intended send
/// time to its read on the other core.
fn one_way(context: &Context) -> anyhow::Result<[f64; 2]> {
    let count = context.effort.count(PACED_TICKS);
    let [mut reader, mut writer] = tcp_pair()?;
    let interval = context.clock.nanos_to_ticks(Nanos(1_000_000_000 / u64::from(RATE)));
    let clock = context.clock;
    let mut latencies = context.run_on_two_cores(
        move |_| {
            let mut message = [0; TICK_LEN];
            let mut intended = clock.ticks() + interval;
            for _ in 0..count {
                while clock.ticks() < intended {}
                message[..8].copy_from_slice(&intended.to_le_bytes());
                writer.write_all(&message)?;
                intended += interval;
            }
            Ok(())
        },
        |stop| {
            let mut latencies = Vec::with_capacity(count);
            let mut buffer = vec![0; PACED_READ_LEN];
            let mut waiting = 0;
            while latencies.len() < count {
                let got = wait_for(stop, || read(&mut reader, &mut buffer[waiting..]))?;
                let now = clock.ticks();
                let (messages, rest) = buffer[..waiting + got].as_chunks::<TICK_LEN>();
                for message in messages {
                    let intended = u64::from_le_bytes(*message.first_chunk().expect("56 bytes hold 8"));
                    latencies.push(clock.ticks_to_nanos(now.saturating_sub(intended)).0);
                }
                let (start, len) = (messages.len() * TICK_LEN, rest.len());
                buffer.copy_within(start..start + len, 0);
                waiting = len;
            }
            Ok(latencies)
        },
    )?;
    Ok([0.5, 0.99].map(|wanted| quantile(&mut latencies, wanted) as f64 / 1e3))
}

/// Returns the millions of messages per second over bare TCP, written in blocks of [`FAST_WRITE`] bytes and
/// not parsed.
fn bulk(context: &Context) -> anyhow::Result<f64> {
    let bytes = context.effort.count(FAST_TICKS) * TICK_LEN;
    let [mut reader, mut writer] = tcp_pair()?;
    writer.set_nonblocking(false)?;
    context.run_on_two_cores(
        move |_| {
            let block = vec![7; FAST_WRITE];
            let mut left = bytes;
            while left > 0 {
                let count = left.min(block.len());
                writer.write_all(&block[..count])?;
                left -= count;
            }
            Ok(())
        },
        |stop| {
            let mut buffer = vec![0; READ_LEN];
            let mut got = 0;
            let mut start = None;
            while got < bytes {
                let count = wait_for(stop, || read(&mut reader, &mut buffer));
                // The writer ends once the kernel has accepted all bytes. Read those that it still buffers.
                got += match count {
                    Err(error) if error.is::<crate::context::Ended>() => {
                        read(&mut reader, &mut buffer)?.unwrap_or(0)
                    }
                    other => other?,
                };
                start.get_or_insert_with(|| context.clock.ticks());
            }
            let ticks = context.clock.ticks() - start.context("nothing was read")?;
            Ok(1e3 / context.nanos_each(ticks, (bytes / TICK_LEN) as u64))
        },
    )
}

/// Runs a server on the other core while `near` runs on this one; returns `near`'s result and the counters.
fn with_server<T>(
    context: &Context,
    settings: &ServeSettings,
    near: impl FnOnce(&StopSignal, SocketAddrV4) -> anyhow::Result<T>,
) -> anyhow::Result<(T, ServerCounters)> {
    let clock = context.clock;
    let mut server = TicksServer::open(settings, clock)?;
    let address = server.local_address();
    let result = context.run_on_two_cores(
        |stop| {
            while !stop.is_stopped() {
                for _ in 0..64 {
                    server.do_work(clock.now())?;
                }
            }
            Ok(())
        },
        |stop| near(stop, address),
    )?;
    Ok((result, *server.counters()))
}

fn settings() -> ServeSettings {
    ServeSettings::new(TickGeneratorConfig::market(MarketRegime::Neutral, SYMBOLS, 7))
}

/// A client that subscribes to all symbols, and the listener that gets its ticks.
pub(super) struct Client<L> {
    stream: TcpStream,
    pub(super) parser: Box<TickParser>,
    pub(super) sink: L,
    /// Time of the client's last message to the server.
    last_sent: Nanos,
}

impl<L: TickListener> Client<L> {
    pub(super) fn connect(
        server: impl ToSocketAddrs,
        parser: TickParser,
        sink: L,
        now: Nanos,
    ) -> anyhow::Result<Client<L>> {
        let mut stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        let mut request = with_checksum(Hello::client(0, now)).as_bytes().to_vec();
        encode_subscribe(1, &[], &mut request);
        stream.write_all(&request)?;
        stream.set_nonblocking(true)?;
        Ok(Client { stream, parser: Box::new(parser), sink, last_sent: now })
    }

    /// Reads and parses once; `None` if no data were available.
    #[inline]
    pub(super) fn poll(&mut self) -> anyhow::Result<Option<()>> {
        let Some(count) = read(&mut self.stream, self.parser.free_space())? else { return Ok(None) };
        self.parser.commit(count, &mut self.sink)?;
        Ok(Some(()))
    }

    /// Sends a heartbeat if one is due, because the server disconnects silent clients.
    #[inline]
    fn send_heartbeat(&mut self, now: Nanos) -> anyhow::Result<()> {
        if now.since(self.last_sent) >= HEARTBEAT {
            self.last_sent = now;
            self.stream.write_all(with_checksum(Heartbeat::new(0, Nanos::ZERO)).as_bytes())?;
        }
        Ok(())
    }
}

/// A listener that only counts ticks, because the parser verifies checksums and sequence numbers.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) ticks: u64,
    pub(super) has_ended: bool,
}

impl TickListener for Counted {
    #[inline]
    fn on_ticks(&mut self, ticks: &[Tick]) {
        self.ticks += ticks.len() as u64;
    }

    fn on_end_of_stream(&mut self, _: &EndOfStream) {
        self.has_ended = true;
    }
}

/// A listener that writes ticks into a symbol cache and records the latencies of those in `window`.
struct Sink {
    clock: TscClock,
    market: Option<MarketWriter>,
    /// Sequence numbers of the first measured tick, and of the one after the last.
    window: (u64, u64),
    latencies: Vec<u64>,
    /// Digest of all ticks in `window`.
    digest: u64,
    next: u64,
    lost: u64,
}

impl TickListener for Sink {
    fn on_hello(&mut self, hello: &Hello) {
        let symbols = u16::try_from(hello.symbol_count.get()).unwrap_or(u16::MAX);
        self.market = Some(MarketWriter::new(hello.session.get(), symbols, None));
    }

    fn on_symbol(&mut self, symbol: &SymbolDefinition) {
        if let Some(market) = &mut self.market {
            market.define(symbol);
        }
    }

    #[inline]
    fn on_ticks(&mut self, ticks: &[Tick]) {
        let Some(market) = &mut self.market else { return };
        for tick in ticks {
            let is_written = market.apply(tick);
            let sequence = tick.header.sequence.get();
            self.next = sequence + 1;
            if (self.window.0..self.window.1).contains(&sequence) {
                let now = self.clock.now();
                self.latencies.push(now.since(Nanos(tick.ts_generate.get())).0);
                self.digest = self.digest.rotate_left(7) ^ u64::from(tick.checksum.get()) ^ sequence;
                self.lost += u64::from(!is_written);
            }
        }
    }

    fn on_gap(&mut self, gap: Gap) {
        self.lost += gap.lost;
    }

    fn on_skipped(&mut self, skipped: &tickpath_ticks::message::Skipped) {
        self.lost += skipped.count.get();
    }

    fn on_corrupt(&mut self) {
        self.lost += 1;
    }
}

impl Sink {
    fn new(clock: TscClock) -> Sink {
        let (window, latencies) = ((u64::MAX, u64::MAX), Vec::new());
        Sink { clock, market: None, window, latencies, digest: 0, next: 0, lost: 0 }
    }
}

/// Result of [`paced`]: the latencies in nanoseconds, the server's counters, and the run's duration.
struct Run {
    latencies: Vec<u64>,
    counters: ServerCounters,
    seconds: f64,
}

impl Run {
    fn quantile_us(&mut self, wanted: f64) -> f64 {
        quantile(&mut self.latencies, wanted) as f64 / 1e3
    }

    fn note(&self) -> String {
        let each = |count: u64| count as f64 / self.seconds / 1e3;
        let calls = self.counters.writes + self.counters.other_calls;
        format!(
            "{:.1} K ticks/s made, {:.1} K/s sent, {:.1} K system calls/s of the server, which spins on its core; 0 lost",
            each(self.counters.ticks),
            each(self.counters.ticks_sent),
            each(calls)
        )
    }
}

/// Runs `clients` clients at [`RATE`], with `ticks` ticks to each in a full round. The latency is the time
/// from the intended time of a tick to its write into the client's symbol cache.
fn paced(context: &Context, clients: usize, ticks: usize, coalesce: Nanos) -> anyhow::Result<Run> {
    let count = context.effort.count(ticks) as u64;
    let settings = ServeSettings { rate: TickRate::PerSecond(RATE), coalesce, ..settings() };
    let start = context.clock.now();
    let (clients, counters) = with_server(context, &settings, |stop, address| {
        let now = || context.clock.now();
        let connect = || Client::connect(address, TickParser::new(), Sink::new(context.clock), now());
        let mut clients =
            std::iter::repeat_with(connect).take(clients).collect::<anyhow::Result<Vec<_>>>()?;
        let listen = |clients: &mut [Client<Sink>], until: &dyn Fn(&Client<Sink>) -> bool| {
            let mut at = 0;
            while !clients.iter().all(until) {
                wait_for(stop, || {
                    at = (at + 1) % clients.len();
                    let found = clients[at].poll()?;
                    if found.is_some() {
                        clients[at].send_heartbeat(now())?;
                    }
                    Ok(found)
                })?;
            }
            anyhow::Ok(())
        };
        listen(&mut clients, &|client| client.sink.next > 0)?;
        let first = clients.iter().map(|client| client.sink.next).max().unwrap_or(0) + WARM_UP;
        for client in &mut clients {
            client.sink.window = (first, first + count);
            client.sink.latencies.reserve(count as usize);
        }
        listen(&mut clients, &|client| client.sink.next >= first + count)?;
        Ok(clients)
    })?;
    let seconds = context.clock.now().since(start).0 as f64 / 1e9;
    ensure!(
        counters.given_up == 0,
        "{} ticks were not made in time: is the host overloaded?",
        counters.given_up
    );
    let mut latencies = Vec::with_capacity(clients.len() * count as usize);
    for client in &clients {
        let lost = client.sink.lost + client.parser.stats().lost;
        ensure!(lost == 0, "{lost} ticks were lost: is the host overloaded?");
        ensure!(client.sink.latencies.len() as u64 == count, "ticks are missing");
        ensure!(client.sink.digest == clients[0].sink.digest, "two clients were sent different ticks");
        latencies.extend(&client.sink.latencies);
    }
    Ok(Run { latencies, counters, seconds })
}

/// Returns the millions of ticks per second that one core generates and the other core verifies.
fn unpaced(context: &Context) -> anyhow::Result<Sample> {
    let count = context.effort.count(FAST_TICKS) as u64;
    let settings = ServeSettings {
        rate: TickRate::Max,
        coalesce: Nanos::ZERO,
        fill_bytes: FAST_WRITE,
        send_buffer: Some(FAST_SEND_BUFFER),
        ..settings()
    };
    let ((ticks, made), counters) = with_server(context, &settings, |stop, address| {
        let (clock, parser) = (context.clock, TickParser::new());
        let mut client = Client::connect(address, parser, Counted::default(), clock.now())?;
        let mut start = None;
        let mut at_start = 0;
        while client.sink.ticks < at_start + count {
            wait_for(stop, || client.poll())?;
            client.send_heartbeat(clock.now())?;
            if start.is_none() && client.sink.ticks > 0 {
                (start, at_start) = (Some(clock.ticks()), client.sink.ticks);
            }
        }
        let ticks = clock.ticks() - start.context("no tick came")?;
        let stats = client.parser.stats();
        let bad = stats.lost + stats.corrupt + stats.skipped + stats.duplicates;
        ensure!(bad == 0, "{bad} ticks were lost or damaged");
        Ok((ticks, client.sink.ticks - at_start))
    })?;
    let each_write = counters.bytes_sent / counters.writes.max(1);
    let note = format!("writes of {each_write} bytes on average; 0 lost");
    Ok(Sample::with_note(1e3 / context.nanos_each(ticks, made), note))
}
