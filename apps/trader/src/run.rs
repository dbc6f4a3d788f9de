//! Runs a trader as a program that prints its progress until it is stopped, and then a report.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use tickpath_agent::{PinGuard, StopSignal, TscClock};
use tickpath_config::{Console, counted, print_stderr};
use tickpath_timing::{Joiner, JoinerConfig, Report};
use tickpath_trading::{
    EngineCounters, MarkTo, Money, Position, StopReason, Strategy, TraderSnapshot, WarmUp,
};
use tickpath_types::Nanos;

use crate::config::TraderSettings;
use crate::system::{AgentWarning, Trader, traces};

/// Interval between two drains of the agents' timing stamps.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between progress lines.
const PROGRESS_INTERVAL: Nanos = Nanos::from_secs(1);
/// Capacity of each agent's ring of timing stamps.
const TRACE_CAPACITY: usize = 1 << 17;
/// Maximum time for cancelling the trader's own orders at the end.
const CANCEL_TIMEOUT: Nanos = Nanos::from_secs(5);

/// Runs a strategy with the configuration at `path` until Ctrl-C, then cancels the trader's orders and prints
/// a report.
///
/// # Errors
/// An invalid configuration, a venue that refuses the login or does not answer, or a failed agent.
pub fn run<S: Strategy + Send + 'static>(path: &Path, strategy: WarmUp<S>) -> anyhow::Result<()> {
    let settings = TraderSettings::load(path)?;
    run_with(&settings, strategy, &StopSignal::on_signals()?)
}

/// Like [`run`], with loaded settings, and until `stop` is set.
///
/// # Errors
/// As [`run`].
pub fn run_with<S: Strategy + Send + 'static>(
    settings: &TraderSettings,
    strategy: WarmUp<S>,
    stop: &StopSignal,
) -> anyhow::Result<()> {
    let clock = TscClock::shared();
    let name = strategy.strategy.name().to_owned();
    let (tracers, mut rings) = traces(TRACE_CAPACITY);
    let trader = Trader::start_traced(settings, strategy, clock, tracers)?;
    let _pinned = trader.observer().and_then(|core| PinGuard::pin(core).ok());
    let mut joiner = Joiner::new(JoinerConfig::default(), *clock.calibration());
    let mut console = Console::default();
    console.print_stdout(first_line(&name, settings));
    if settings.config.market_data.senders().is_any() {
        print_stderr(
            "warning: market data is accepted from every address: name the venue's in market_data.sources",
        );
    }
    trader.warnings().for_each(|warning| print_stderr(format_args!("warning: {warning}")));

    let mut snapshot = TraderSnapshot::default();
    let mut warnings = Warnings::default();
    let mut has_logged_in = false;
    let mut is_first_login = true;
    let mut next_progress = clock.now() + PROGRESS_INTERVAL;
    while !stop.is_stopped() && !trader.has_ended() {
        joiner.drain(&mut rings, TRACE_CAPACITY, clock.ticks());
        update_snapshot(&trader, &mut snapshot);
        has_logged_in |= is_logged_in(&trader);
        if has_logged_in && std::mem::take(&mut is_first_login) {
            let first = trader.view().gateway.first_user_ref.read();
            if first > 1 {
                console.print_stdout(earlier_run(&settings.config.order_entry.user, first));
            }
        }
        if clock.now() >= next_progress {
            next_progress = next_progress + PROGRESS_INTERVAL;
            warnings
                .take_new(&trader)
                .iter()
                .for_each(|warning| print_stderr(format_args!("warning: {warning}")));
            console.print_stdout(progress_line(&trader, &snapshot));
        }
        if snapshot.stopped.is_some() {
            break;
        }
        std::thread::sleep(DRAIN_INTERVAL);
    }
    trader.stop_trading();
    let deadline = clock.now() + CANCEL_TIMEOUT;
    while !trader.has_ended() && clock.now() < deadline {
        joiner.drain(&mut rings, TRACE_CAPACITY, clock.ticks());
        std::thread::sleep(DRAIN_INTERVAL);
        update_snapshot(&trader, &mut snapshot);
        if snapshot.open_orders == 0 && snapshot.stopped.is_some() {
            break;
        }
    }
    let view = trader.view().clone();
    let was_never_logged_in = !has_logged_in && view.gateway.disconnects.read() == 0;
    let refusal = (was_never_logged_in && snapshot.stopped == Some(StopReason::Disconnected))
        .then(|| describe_refusal(&trader, settings));
    trader.join()?;
    if let Some(refusal) = refusal {
        anyhow::bail!(refusal);
    }
    joiner.drain(&mut rings, usize::MAX, clock.ticks());
    joiner.finish();
    let last = view.snapshot()?;
    report_end(console, settings, &last, &joiner.report())
}

fn first_line(name: &str, settings: &TraderSettings) -> String {
    let config = &settings.config;
    format!(
        "{name} trades {} instruments as {} at {}; market data from {} and {}; stop with Ctrl-C",
        settings.instruments.len(),
        config.order_entry.user,
        config.order_entry.address,
        config.market_data.line_a,
        config.market_data.line_b,
    )
}

/// Prints the positions, the latencies and the reason for the end.
///
/// # Errors
/// The trader stopped because of a fault, or orders may still be open.
fn report_end(
    mut console: Console,
    settings: &TraderSettings,
    last: &TraderSnapshot,
    latencies: &Report,
) -> anyhow::Result<()> {
    print_positions(&mut console, settings, last);
    console.print_stdout(latencies);
    console.print_stdout(stop_line(settings, last));
    console.finish()?;
    anyhow::ensure!(last.open_orders == 0, "{} orders may still be open at the venue", last.open_orders);
    // Silence and a lost connection are faults; other stops were requested.
    match last.stopped {
        Some(StopReason::Silence) => anyhow::bail!("the trader stopped because no market data arrived"),
        Some(StopReason::Disconnected) => {
            anyhow::bail!("the trader stopped because the connection was lost")
        }
        _ => Ok(()),
    }
}

/// Reads the engine's snapshot; keeps the previous one while the engine is writing.
fn update_snapshot(trader: &Trader, snapshot: &mut TraderSnapshot) {
    if let Ok(newer) = trader.view().snapshot() {
        *snapshot = newer;
    }
}

/// Returns the reason why the trader ended before its first login.
fn describe_refusal(trader: &Trader, settings: &TraderSettings) -> String {
    let entry = &settings.config.order_entry;
    let reasons: Vec<_> = trader.last_errors().map(|warning| warning.error).collect();
    let reasons = if reasons.is_empty() { "it does not answer".to_owned() } else { reasons.join("; ") };
    format!(
        "the venue at {} did not accept the login of {} within {}: {reasons}",
        entry.address, entry.user, settings.config.disconnect_stop
    )
}

/// Warnings that were already printed.
#[derive(Default)]
struct Warnings {
    /// Number of errors and the latest error of each agent.
    agents: HashMap<&'static str, (u64, String)>,
    has_reported_symbols: bool,
    has_reported_unauthorised: bool,
}

impl Warnings {
    /// Returns the new warnings and errors. Omits an agent's repeated error, unless the trader has logged in
    /// since.
    fn take_new(&mut self, trader: &Trader) -> Vec<String> {
        let symbols = if self.has_reported_symbols { None } else { trader.other_symbols() };
        self.has_reported_symbols |= symbols.is_some();
        let mut new_warnings = Vec::from_iter(symbols);
        let unauthorised = trader.feed().counters.unauthorised.read();
        if unauthorised > 0 && !std::mem::replace(&mut self.has_reported_unauthorised, true) {
            new_warnings.push(format!(
                "{unauthorised} packets of market data from unauthorised addresses were dropped: \
                 see market_data.sources"
            ));
        }
        for AgentWarning { role, count, error } in trader.last_errors() {
            let (reported, latest) = self.agents.entry(role).or_default();
            if count > std::mem::replace(reported, count) && *latest != error {
                new_warnings.push(format!("{role}: {error}"));
                *latest = error;
            }
        }
        if is_logged_in(trader) {
            self.agents.values_mut().for_each(|(_, latest)| latest.clear());
        }
        new_warnings
    }
}

/// Returns the note about a user who has traded in this session before.
fn earlier_run(user: &str, first: u64) -> String {
    format!(
        "{user} has used this session before: orders are numbered from {first}, positions begin at zero, and orders that \
         are still open from that run are unknown here"
    )
}

fn is_logged_in(trader: &Trader) -> bool {
    trader.view().gateway.logged_in.read() == 1
}

fn total_pnl(positions: &[Position]) -> Money {
    Money(positions.iter().map(|position| position.total_pnl(MarkTo::Mid).0).sum())
}

fn progress_line(trader: &Trader, snapshot: &TraderSnapshot) -> String {
    let feed = &trader.feed().counters;
    format!(
        "{} | {} market data messages, {} gaps, {} lost | {} orders, {} fills, {} open | P&L {}",
        if is_logged_in(trader) { "logged in" } else { "not logged in" },
        feed.messages.read(),
        feed.gaps_opened.read(),
        feed.messages_lost.read(),
        snapshot.counters.enters + snapshot.counters.replaces,
        snapshot.counters.fills,
        snapshot.open_orders,
        total_pnl(&snapshot.positions),
    )
}

fn print_positions(console: &mut Console, settings: &TraderSettings, snapshot: &TraderSnapshot) {
    console.print_stdout(format_args!(
        "\n{:<10} {:>13} {:>16} {:>16}",
        "Positions", "net quantity", "traded quantity", "P&L"
    ));
    for (instrument, position) in settings.instruments.iter().zip(&snapshot.positions) {
        console.print_stdout(format_args!(
            "  {:<8} {:>13} {:>16} {:>16}",
            instrument.symbol,
            position.net_qty(),
            position.volume(),
            position.total_pnl(MarkTo::Mid),
        ));
    }
    console.print_stdout(format_args!(
        "  {:<8} {:>13} {:>16} {:>16}\n",
        "all",
        "",
        "",
        total_pnl(&snapshot.positions)
    ));
    let EngineCounters { unsent, unanswered, .. } = snapshot.counters;
    if unsent + unanswered > 0 {
        console.print_stdout(format_args!(
            "lost connections: {unsent} requests not sent, {unanswered} sent without an answer"
        ));
    }
}

/// Returns the end of the report: the reason for the stop, and the orders left at the venue.
fn stop_line(settings: &TraderSettings, snapshot: &TraderSnapshot) -> String {
    let open = snapshot.open_orders;
    let reason = match snapshot.stopped {
        // Ctrl-C and SIGTERM pull the kill switch.
        Some(StopReason::Killed | StopReason::Shutdown) => "as requested".to_owned(),
        Some(StopReason::Silence) => match settings.config.stop_after_silence {
            Some(limit) => format!("no market data arrived for {limit}"),
            None => "no market data arrived".to_owned(),
        },
        Some(StopReason::Disconnected) => format!(
            "the connection to the venue was lost and not restored within {}",
            settings.config.disconnect_stop
        ),
        Some(_) | None => "before it traded".to_owned(),
    };
    match open {
        0 => format!("stopped: {reason}; no order is open"),
        _ => format!("stopped: {reason}; {} may still be open at the venue", counted(open, "order")),
    }
}
