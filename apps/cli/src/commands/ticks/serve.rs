//! `tickpath ticks serve`.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use tickpath_agent::StopSignal;
use tickpath_config::{ByteSize, Console, Duration, print_stderr};
use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};
use tickpath_ticks_app::server::{FaultSettings, ServeSettings, SlowClient, TickRate, serve};
use tickpath_types::Nanos;

use super::ADDRESS;
use crate::commands::json;

/// Minimum heartbeat interval, so that a client that the system delays briefly does not count as silent.
const HEARTBEAT_MS_MIN: u16 = 100;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath ticks serve                                      100 symbols, 10,000 ticks a second
  tickpath ticks serve --rate 100K/s --coalesce 0ns         each tick written as it is made; takes a core
  tickpath ticks serve --rate max --threads 2               as fast as the fastest subscriber reads
  tickpath ticks serve --faults gaps=0.01%,disconnect=30s   injected faults")]
pub struct Args {
    /// Number of symbols, 1 to 65535
    #[arg(long, value_name = "N", default_value_t = 100)]
    symbols: usize,
    /// Ticks per second over all symbols: a number such as 10K/s or 2M/s, or max
    #[arg(long, value_name = "RATE", default_value = "10K/s")]
    rate: TickRate,
    /// Number of threads that generate ticks; 1: the sending thread generates them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Listening address; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = ADDRESS)]
    listen: SocketAddrV4,
    /// Allow a listening address beyond the loopback interface, which other machines can reach
    #[arg(long)]
    public: bool,
    /// Random seed: the same seed gives the same ticks
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Trend of the market
    #[arg(long, value_name = "MOOD", default_value = "neutral")]
    preset: Preset,
    /// Number of jumps per million ticks
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    jumps: u32,
    /// Standard deviation of a jump, in basis points
    #[arg(long, value_name = "BP", default_value_t = 100)]
    jump_bp: u32,
    /// Policy for a client that reads too slowly: drop, sample or disconnect
    #[arg(long, value_name = "POLICY", default_value = "drop")]
    slow_client: SlowClient,
    /// Number of ticks kept for slow clients; a client may be behind by half of them
    #[arg(long, value_name = "N", default_value_t = 1 << 15, value_parser = clap::value_parser!(u32).range(4_096..=1 << 26))]
    backlog: u32,
    /// Minimum time between two writes to a client, to batch ticks; 0ns: each tick is written at once
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    coalesce: Duration,
    /// Size of pending ticks that triggers a write before the time of --coalesce
    #[arg(long, value_name = "SIZE", default_value = "56KiB")]
    fill: ByteSize,
    /// Maximum number of clients
    #[arg(long, value_name = "N", default_value_t = 1_100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients_max: u32,
    /// Heartbeat interval; a client that is silent for five intervals is disconnected
    #[arg(long, value_name = "TIME", default_value = "1s")]
    heartbeat: Duration,
    /// Kernel send buffer of a client
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    send_buffer: ByteSize,
    /// Injected faults, e.g. gaps=0.01%,corrupt=0.01%,stall=5s,disconnect=30s (the times are means)
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    faults: FaultSettings,
    /// Stop after this time, e.g. 60s
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<Duration>,
    /// Write the figures at the end as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Preset {
    Bull,
    Bear,
    Neutral,
}

impl Args {
    fn settings(&self) -> anyhow::Result<ServeSettings> {
        ensure!(
            self.listen.ip().is_loopback() || self.public,
            "{} is not on the loopback interface: add --public to let other machines connect",
            self.listen
        );
        let heartbeat_ms = u16::try_from(self.heartbeat.0.0 / 1_000_000).ok();
        let heartbeat_ms = heartbeat_ms
            .filter(|time| *time >= HEARTBEAT_MS_MIN)
            .ok_or_else(|| anyhow::anyhow!("--heartbeat {}: give 100ms to 65s", self.heartbeat))?;
        ensure!(self.coalesce.0 <= Nanos::from_secs(1), "--coalesce {}: give 0ns to 1s", self.coalesce);
        ensure!((1..=65_535).contains(&self.symbols), "--symbols {}: give 1 to 65535", self.symbols);
        let regime = match self.preset {
            Preset::Bull => MarketRegime::Bull,
            Preset::Bear => MarketRegime::Bear,
            Preset::Neutral => MarketRegime::Neutral,
        };
        let market = TickGeneratorConfig::market(regime, self.symbols, self.seed);
        Ok(ServeSettings {
            listen: self.listen,
            rate: self.rate,
            threads: self.threads.into(),
            clients_max: self.clients_max as usize,
            backlog: self.backlog as usize,
            slow_client: self.slow_client,
            coalesce: self.coalesce.0,
            fill_bytes: usize::try_from(self.fill.0)?,
            heartbeat_ms,
            send_buffer: Some(usize::try_from(self.send_buffer.0)?),
            faults: self.faults,
            seed: self.seed,
            ..ServeSettings::new(market.with_jumps(self.jumps, self.jump_bp))
        })
    }

    fn is_standard_output_taken(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    json::check(args.json.as_deref())?;
    let stop = StopSignal::on_signals()?;
    let mut console = Console::default();
    let report = serve(&settings, args.duration.map(|time| time.0), &stop, |line| {
        // Only one output may use standard output.
        if args.is_standard_output_taken() { print_stderr(line) } else { console.print_stdout(line) }
    })?;
    if args.is_standard_output_taken() {
        print_stderr(report.to_text())
    } else {
        console.print_stdout(report.to_text())
    }
    if let Some(path) = &args.json {
        json::write(path, &format!("{:#}", report.to_json()))?;
    }
    console.finish()?;
    let warning = report.warning();
    if let Some(warning) = &warning {
        print_stderr(format_args!("tickpath: {warning}"));
    }
    Ok(if warning.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
