//! `tickpath exchange`.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tickpath_agent::{Host, Runner, StopSignal, TscClock};
use tickpath_config::{Console, TEST_PASSWORD, print_stderr, thousands};
use tickpath_demo::{BackgroundFlowThread, BackgroundSettings};
use tickpath_exchange::{
    AdminSocket, BackgroundFlowConfig, DrainWatch, Endpoints, ExchangeConfig, FrontPort, JournalThreads,
    Venue, VenueJournal, VenueSettings, VenueTracers, VenueView, archive,
};
use tickpath_timing::{Joiner, JoinerConfig, Trace};
use tickpath_types::Nanos;

#[cfg(feature = "deribit")]
pub mod deribit;
mod lines;

use crate::program;
use lines::LineLocks;

/// Interval at which the main thread empties the agents' queues of time stamps.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of the progress lines.
const PROGRESS_INTERVAL: Nanos = Nanos::from_secs(10);
/// Capacity of each agent's queue of time stamps.
const TRACE_CAPACITY: usize = 1 << 16;

/// Run a venue until Ctrl-C: OUCH 5.0 in, ITCH 5.0 out, and the Deribit API if configured
///
/// Market data is published on two multicast lines, and retransmitted on request. Prints the venue's
/// addresses. Try configs/exchange.toml, with configs/trader.toml for a trader. A restarted venue continues
/// at the end of its journal: orders, numbers and messages are unchanged. With a table deribit in its file it
/// also serves the Deribit API v2, over WebSocket, HTTP and FIX.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath exchange --config configs/exchange.toml         docs/market-data.md, docs/journal.md
  tickpath exchange --config configs/exchange.toml --flow  with orders of a crowd to trade against: docs/commands.md
  tickpath exchange --config configs/exchange-day.toml     a day by a schedule: docs/admin.md
  tickpath exchange --config configs/deribit.toml          with Deribit's dialect: docs/deribit.md")]
pub struct Args {
    /// The venue's configuration file, such as configs/exchange.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Order entry port, instead of the configuration's
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Enter RATE seeded background orders per second, as a counterparty for others [default rate: 1000]
    ///
    /// The user of [background_flow] (FLOW) enters them through the venue's order entry.
    #[arg(long, visible_alias = "crowd", value_name = "RATE", num_args = 0..=1)]
    flow: Option<Option<u32>>,
    /// Begin a new session; the journal of the last one is moved to a subfolder with the session's name
    #[arg(long)]
    new_session: bool,
    /// Continue under a new session name although the journal lost answered commands, by damage or power loss
    #[arg(long)]
    accept_loss: bool,
}

/// An additional front of the venue, served on a separate thread.
pub struct Front {
    /// Returns the front's progress line.
    pub progress: Box<dyn Fn() -> String>,
    /// Waits until the front's thread has ended. An error is the reason why it ended before the venue.
    pub join: Box<dyn FnOnce() -> anyhow::Result<()>>,
}

/// Function that prints a front's endpoints and serves clients there. Fails if its thread cannot be started.
pub type StartFront = Box<dyn FnOnce(&mut Console, TscClock) -> anyhow::Result<Front>>;

/// Function that opens an additional front of the venue with these settings.
pub type OpenFront = fn(&Args, &VenueSettings, FrontPort, TscClock) -> anyhow::Result<StartFront>;

/// Runs a venue until it is stopped. A venue with a Deribit front runs in the program
/// `tickpath-exchange`, which passes `open_front`.
///
/// # Errors
/// Invalid settings, a journal that cannot be continued, or a failure of the host.
pub fn run(args: &Args, open_front: Option<OpenFront>) -> anyhow::Result<ExitCode> {
    let (config, mut settings) = ExchangeConfig::load(&args.config)?;
    if config.deribit.is_some() && open_front.is_none() {
        return Err(program::run_separate(
            "exchange",
            "deribit",
            "a venue with a table deribit",
            program::arguments_of_command(),
        ));
    }
    let background = background_flow(args, &config)?;
    if let Some(port) = args.port {
        settings.order_entry.set_port(port);
    }
    let mut console = Console::default();
    if let Some(journal) = &mut settings.journal {
        journal.accept_loss = args.accept_loss;
        if args.new_session
            && let Some(kept) = archive(&journal.folder, journal.session)
                .with_context(|| format!("journal {}", journal.folder.display()))?
        {
            console.print_stdout(format_args!("the previous session is kept in {}", kept.display()));
        }
    }
    let stop = StopSignal::on_signals()?;
    let clock = TscClock::shared();
    let cores = Host::describe().cores_allowed;
    settings.has_line_b_agent = config.has_line_b_agent(&cores);
    let mut rings = Vec::new();
    let mut trace = || {
        let (trace, ring) = Trace::new(TRACE_CAPACITY);
        rings.push(ring);
        trace
    };
    let tracers = VenueTracers { order_server: trace(), matcher: trace(), publisher: trace() };
    let venue = Venue::build(&settings, clock, tracers)?;
    let front = match (venue.front_port, open_front) {
        (Some(port), Some(open)) => Some(open(args, &settings, port, clock)?),
        _ => None,
    };
    let mut admin = match &config.admin {
        Some(admin) => Some((
            AdminSocket::open(&admin.socket, venue.admin, venue.instruments.clone(), venue.view.clone())?
                .with_config(&args.config),
            DrainWatch::new(admin.drain.0),
        )),
        None => None,
    };
    let threads_stop = StopSignal::new();
    let session = venue.session.to_string();
    let journal = venue.journal.map(|journal| start_journal(&mut console, journal)).transpose()?;
    let market_recovery = venue.market_recovery.map(|recovery| recovery.start(clock)).transpose()?;
    if journal.is_none() {
        print_stderr(
            "warning: journal.policy is off: every order and every message is forgotten when this venue stops",
        );
    }
    let runner = Runner::start(config.placement(&cores).plan(venue.agents)?, clock, threads_stop.clone())?;
    runner.warnings().for_each(|warning| print_stderr(format_args!("warning: {warning}")));
    print_endpoints(&mut console, &config, &session, &venue.endpoints, venue.instruments.iter().count());
    let _lines = lock_lines(&venue.endpoints, config.market_data.interface);
    let front = front.map(|start| start(&mut console, clock)).transpose()?;
    let (progress_of_front, join_front) = front.map(|front| (front.progress, front.join)).unzip();
    let mut background = background
        .map(|flow| start_background_flow(&mut console, flow, &venue.endpoints, &settings, clock))
        .transpose()?;
    for step in &venue.missed {
        console.print_stdout(format_args!("schedule: {step} runs now"));
    }
    venue.notices.iter().for_each(|notice| console.print_stdout(notice));

    let mut joiner = Joiner::new(joiner_config(), *clock.calibration());
    let mut next_progress = clock.now() + PROGRESS_INTERVAL;
    let mut last_progress = Vec::new();
    let mut is_unsegmented_noted = false;
    while !stop.is_stopped() && !threads_stop.is_stopped() {
        joiner.drain(&mut rings, TRACE_CAPACITY, clock.ticks());
        if let Some((socket, drain)) = &mut admin {
            socket.poll(clock.now(), |uid, line| {
                console.print_stdout(format_args!("admin: user id {uid}: {line}"));
            });
            if drain.is_over(&venue.view, clock.now()) && !socket.is_waiting() {
                console.print_stdout("drained: the venue stops");
                break;
            }
        }
        if venue.view.order_server.is_draining.read() == 1 {
            background.take().into_iter().for_each(BackgroundFlowThread::stop);
        }
        for note in background.iter().flat_map(BackgroundFlowThread::notes) {
            print_stderr(format_args!("warning: background flow: {note}"));
        }
        if venue.view.publisher.is_unsegmented.read() == 1
            && !std::mem::replace(&mut is_unsegmented_noted, true)
        {
            print_stderr(
                "warning: the kernel refused to segment market data packets (UDP GSO): each is sent by a separate call",
            );
        }
        if clock.now() >= next_progress {
            next_progress = next_progress + PROGRESS_INTERVAL;
            let progress = progress_of(&venue.view, &progress_of_front);
            // The progress lines of an idle venue do not change: do not repeat them.
            if progress != last_progress {
                progress.iter().for_each(|line| console.print_stdout(line));
                last_progress = progress;
            }
        }
        std::thread::sleep(DRAIN_INTERVAL);
    }
    // Stopping the flow cancels its orders, which needs a running venue.
    background.into_iter().for_each(BackgroundFlowThread::stop);
    threads_stop.stop();
    let joined = join_front.map_or(Ok(()), |join| join());
    runner.join()?;
    drop(market_recovery);
    // Every answered command is in the journal, so the journal's threads may end.
    drop(journal);
    joiner.drain(&mut rings, usize::MAX, clock.ticks());
    joiner.finish();
    let trades = super::admin::market_table(&tickpath_exchange::status(&venue.view, &venue.instruments));
    console.print_stdout(format_args!("\n{}\n", trades.join("\n")));
    // Without any requests there are no latencies to report.
    if venue.view.order_server.requests.read() > 0 {
        console.print_stdout(joiner.report());
    }
    let progress = progress_of(&venue.view, &progress_of_front);
    if progress != last_progress {
        progress.iter().for_each(|line| console.print_stdout(line));
    }
    console.finish()?;
    joined?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the progress line of the venue, and that of its front.
fn progress_of(view: &VenueView, front: &Option<Box<dyn Fn() -> String>>) -> Vec<String> {
    [progress_line(view)].into_iter().chain(front.iter().map(|of| of())).collect()
}

/// Returns the background flow configured on the command line or in the file, with its user's password.
fn background_flow(
    args: &Args,
    config: &ExchangeConfig,
) -> anyhow::Result<Option<(BackgroundFlowConfig, String)>> {
    let asked = args.flow.map(|rate| {
        let flow = config.background_flow.clone().unwrap_or_default();
        BackgroundFlowConfig { rate: rate.unwrap_or(flow.rate), ..flow }
    });
    let Some(flow) = asked.or_else(|| config.background_flow.clone()) else { return Ok(None) };
    let password = flow
        .password(&config.order_entry, Some(&args.config))
        .map_err(|error| error.in_file(&args.config))?;
    Ok(Some((flow, password)))
}

fn start_background_flow(
    console: &mut Console,
    (flow, password): (BackgroundFlowConfig, String),
    endpoints: &Endpoints,
    settings: &VenueSettings,
    clock: TscClock,
) -> anyhow::Result<BackgroundFlowThread> {
    let BackgroundFlowConfig { rate, seed, user } = flow;
    console.print_stdout(format_args!(
        "  background flow  {} new orders a second as user {user}, with cancels and replacements; seed {seed}",
        thousands(rate)
    ));
    let (address, instruments) = (endpoints.order_entry, settings.instruments.clone());
    let settings = BackgroundSettings { address, user, password, instruments, rate, seed };
    BackgroundFlowThread::start(settings, clock)
}

/// Returns the latency joiner's configuration, for 60,000 market data messages per second in 8 MB of memory.
/// Above that rate, the joiner finalises the oldest messages early, and counts them.
fn joiner_config() -> JoinerConfig {
    JoinerConfig {
        market_capacity: 1 << 14,
        command_capacity: 1 << 13,
        token_capacity: 1 << 13,
        ..JoinerConfig::default()
    }
}

/// Prints the recovery report and starts the journal's threads.
fn start_journal(console: &mut Console, journal: VenueJournal) -> anyhow::Result<JournalThreads> {
    journal
        .recovery
        .to_string()
        .lines()
        .for_each(|line| console.print_stdout(format_args!("journal: {line}")));
    Ok(journal.start()?)
}

fn print_endpoints(
    console: &mut Console,
    config: &ExchangeConfig,
    session: &str,
    endpoints: &Endpoints,
    instruments: usize,
) {
    console.print_stdout(format_args!(
        "venue '{session}' with {instruments} instruments is open; stop it with Ctrl-C"
    ));
    console.print_stdout(format_args!(
        "  order entry      {}   OUCH 5.0 over SoupBinTCP",
        endpoints.order_entry
    ));
    console.print_stdout(format_args!(
        "  market data A    {}   ITCH 5.0 over MoldUDP64 on {}",
        endpoints.line_a, config.market_data.interface
    ));
    console.print_stdout(format_args!("  market data B    {}", endpoints.line_b));
    console
        .print_stdout(format_args!("  retransmission   {}   MoldUDP64 requests", endpoints.retransmission));
    if let Some(drop_copy) = endpoints.drop_copy {
        console.print_stdout(format_args!(
            "  drop copies      {drop_copy}   OUCH 5.0 with its user, over SoupBinTCP"
        ));
    }
    if let (Some(glimpse), Some(group)) = (endpoints.glimpse, endpoints.snapshots) {
        console.print_stdout(format_args!("  snapshots        {glimpse}   GLIMPSE over SoupBinTCP"));
        console.print_stdout(format_args!(
            "  snapshots        {group}   one instrument after another over MoldUDP64"
        ));
    }
    if let Some(admin) = &config.admin {
        console.print_stdout(format_args!("  admin            {}   tickpath admin", admin.socket.display()));
    }
    let test_users = &config.order_entry.test_users;
    if !test_users.is_empty() {
        console.print_stdout(format_args!(
            "  test users       {}   password '{TEST_PASSWORD}', on the loopback interface only",
            test_users.join(", ")
        ));
    }
}

/// Locks the multicast groups. Warns about groups that another venue has locked: their readers receive the
/// data of both venues.
fn lock_lines(endpoints: &Endpoints, interface: Ipv4Addr) -> LineLocks {
    let groups: Vec<_> =
        [endpoints.line_a, endpoints.line_b].into_iter().chain(endpoints.snapshots).collect();
    let (lines, taken) = LineLocks::acquire(&groups, interface);
    for group in taken {
        print_stderr(format_args!(
            "warning: another venue of this machine sends to {group} too, and readers receive both: give one of them separate \
             groups under [market_data]"
        ));
    }
    lines
}

fn progress_line(view: &VenueView) -> String {
    let server = &view.order_server;
    format!(
        "{} logins, {} refused | {} requests, {} refused before the log, {} malformed | {} executions | {} market data messages, {} sent again",
        server.logins.read(),
        server.logins_refused.read(),
        server.requests.read(),
        server.requests_refused.read(),
        server.malformed.read(),
        view.matcher.executions.read(),
        view.publisher.messages.read(),
        view.publisher.retransmitted.read(),
    )
}
