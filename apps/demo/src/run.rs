//! Runs a demonstration, from the start of the market to the outcome.

use std::time::Duration;

use anyhow::Context;
use tickpath_agent::{Host, PinGuard, StopSignal, TscClock, measure_jitter};
use tickpath_monitor::{Action, View};
use tickpath_timing::{Hop, MarketId, Trace, Tracer};
use tickpath_types::{Nanos, Sequence};

use crate::market::Market;
use crate::notes::{endpoints, idle_note};
use crate::outcome::Outcome;
use crate::participant::Phase;
use crate::settings::{DemoSettings, ViewMode};
use crate::watch::Watch;

/// Interval at which the observing thread drains the stamps and reads the keyboard.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which the view is drawn.
const DRAW_INTERVAL: Nanos = Nanos::from_millis(250);
/// Maximum time for all logins.
const LOGIN_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Maximum time for messages in flight to arrive.
const DRAIN_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Time without new messages after which the market counts as drained.
const QUIET: Nanos = Nanos::from_millis(150);
/// Duration of the jitter measurement on the host before the market starts.
const JITTER_TIME: Nanos = Nanos::from_millis(300);
/// Trading time after which the market is warm: all code has run, and every ring has wrapped or had its
/// usual load.
const WARM_UP: Nanos = Nanos::from_secs(1);
/// Maximum number of stamps taken from one ring per drain.
const DRAIN_MAX: usize = 1 << 18;
/// Maximum number of notes in the view; beyond it, no note is added for an administrator's command.
const NOTES_MAX: usize = 1_000;
/// Number of stamps over which the cost of one is averaged.
const COST_SAMPLES: u64 = 200_000;

/// Runs a demonstration until its time is over, it is stopped, or its recording ends, whichever is first.
///
/// # Errors
/// An error that prevents the market's start, or a failed agent; failed checks are part of the outcome.
pub fn run(settings: &DemoSettings, stop: &StopSignal) -> anyhow::Result<Outcome> {
    let clock = TscClock::shared();
    let host = Host::describe();
    let jitter = measure_jitter(&clock, JITTER_TIME);
    let stamp_ns = stamp_cost(&clock);
    let mut market = Market::start(settings, clock)?;
    let _pinned = market.observer.and_then(|core| PinGuard::pin(core).ok());
    let mut watch = Watch::new(market.instruments.as_slice().len(), host_line(&host));
    match trade(&mut market, &mut watch, settings, stop) {
        Ok((elapsed, is_quiet)) => {
            Outcome::of(market, watch, settings, host, jitter, stamp_ns, elapsed, is_quiet)
        }
        Err(error) => Err(market.end(error)),
    }
}

/// Opens the view, lets the market trade, and drains it; returns the trading time, and whether the market
/// drained.
fn trade(
    market: &mut Market,
    watch: &mut Watch,
    settings: &DemoSettings,
    stop: &StopSignal,
) -> anyhow::Result<(Nanos, bool)> {
    let mut view = match settings.view {
        ViewMode::Silent => None,
        ViewMode::Monitor(mode) => Some(View::open(mode).context("cannot open the view")?),
    };
    let mut notes: Vec<String> = market.runner.warnings().map(str::to_owned).collect();
    notes.extend(endpoints(market, settings).into_iter().map(|endpoint| format!("join: {endpoint}")));
    notes.push(idle_note(settings)?);

    log_in(market)?;
    let began = market.clock.now();
    market.shared_phase.enter(Phase::Trading);
    play(market, watch, view.as_mut(), settings, stop, began, notes)?;
    let elapsed = market.clock.now().since(began);
    drop(view);
    Ok((elapsed, drain(market, watch)?))
}

/// Describes the host in one line.
fn host_line(host: &Host) -> String {
    format!("{}, {} cores, kernel {}", host.cpu_model, host.cores_allowed.len(), host.kernel)
}

/// Measures the cost of one stamp on this host, in nanoseconds.
fn stamp_cost(clock: &TscClock) -> f64 {
    let (mut trace, mut ring) = Trace::new(1 << 12);
    let start = clock.ticks();
    let mut drained = 0;
    for sequence in 0..COST_SAMPLES {
        trace.stamp(Hop::T7, MarketId::new(Sequence(sequence)));
        if sequence % 2_048 == 0 {
            trace.flush();
            let before = clock.ticks();
            ring.drain(usize::MAX, |_| {});
            drained += clock.ticks() - before;
        }
    }
    let ticks = clock.ticks() - start - drained;
    clock.ticks_to_nanos(ticks).0 as f64 / COST_SAMPLES as f64
}

/// Waits until every participant is logged in and the feed has the venue's first messages.
fn log_in(market: &mut Market) -> anyhow::Result<()> {
    let deadline = market.clock.now() + LOGIN_TIMEOUT;
    loop {
        fail_if_ended(market)?;
        let traders = market.traders.iter().all(|trader| trader.view.gateway.logged_in.read() == 1);
        let source = market.source.view.counters.logged_in.read() == market.source.sessions as u64;
        let published = market.venue.publisher.messages.read();
        let received = market.feed.counters.messages.read();
        if traders && source && published > 0 && received == published {
            return Ok(());
        }
        anyhow::ensure!(
            market.clock.now() < deadline,
            "the participants were not logged in within {LOGIN_TIMEOUT}: the host is too busy, or loopback multicast \
             does not arrive (is the interface lo up?)"
        );
        drain_traces(market);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns [`Ended`] once a failed agent has stopped the market.
fn fail_if_ended(market: &Market) -> anyhow::Result<()> {
    anyhow::ensure!(!market.stop.is_stopped(), Ended);
    Ok(())
}

/// The market stopped because an agent failed; [`Market::end`] returns the agent's error instead.
#[derive(Debug, thiserror::Error)]
#[error("the market has ended by itself")]
struct Ended;

fn drain_traces(market: &mut Market) {
    let now = market.clock.ticks();
    market.joiner.drain(&mut market.rings, DRAIN_MAX, now);
}

/// Drains the stamps and draws the view while the market trades; returns when trading must end.
fn play(
    market: &mut Market,
    watch: &mut Watch,
    mut view: Option<&mut View>,
    settings: &DemoSettings,
    stop: &StopSignal,
    began: Nanos,
    mut notes: Vec<String>,
) -> anyhow::Result<()> {
    let mut next_draw = began;
    loop {
        let now = market.clock.now();
        let elapsed = now.since(began);
        let is_over = settings.duration.is_some_and(|duration| elapsed >= duration);
        let is_played = market.source.view.counters.finished.read() == 1;
        if stop.is_stopped() || is_over || is_played {
            return Ok(());
        }
        fail_if_ended(market)?;
        if elapsed >= WARM_UP {
            watch.mark_warm(market);
        }
        drain_traces(market);
        watch.follow(market);
        if take_commands(market, now, &mut notes) {
            return Ok(());
        }
        let Some(view) = view.as_deref_mut() else {
            std::thread::sleep(DRAIN_INTERVAL);
            continue;
        };
        if now >= next_draw {
            next_draw = now + DRAW_INTERVAL;
            view.draw(&watch.view(market, elapsed, settings.duration, notes.clone()))
                .context("cannot write to standard output")?;
        }
        if view.poll_key(DRAIN_INTERVAL).context("cannot read the terminal")? == Some(Action::Quit) {
            return Ok(());
        }
    }
}

/// Serves the admin socket; returns true once an administrator's drain of the venue is complete.
fn take_commands(market: &mut Market, now: Nanos, notes: &mut Vec<String>) -> bool {
    let Some((socket, drain)) = &mut market.admin else { return false };
    socket.poll(now, |uid, line| {
        if notes.len() < NOTES_MAX {
            notes.push(format!("admin: user id {uid}: {line}"));
        }
    });
    drain.is_over(&market.venue, now) && !socket.is_waiting()
}

/// Ends the flow of orders and waits until all messages in flight have arrived. Returns false if they did not
/// arrive in time, or if the market stopped.
fn drain(market: &mut Market, watch: &mut Watch) -> anyhow::Result<bool> {
    market.shared_phase.enter(Phase::Draining);
    for trader in &market.traders {
        trader.kill.pull();
    }
    let deadline = market.clock.now() + DRAIN_TIMEOUT;
    let mut quiet_since = None;
    let mut last = Vec::new();
    loop {
        let now = market.clock.now();
        drain_traces(market);
        watch.follow(market);
        if market.stop.is_stopped() {
            return Ok(false);
        }
        let counts = arrivals(market);
        let is_drained = counts.iter().all(|(sent, arrived)| sent == arrived) && counts == last;
        quiet_since = is_drained.then(|| quiet_since.unwrap_or(now));
        if quiet_since.is_some_and(|since| now.since(since) >= QUIET) {
            return Ok(true);
        }
        if now >= deadline {
            return Ok(false);
        }
        last = counts;
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns, for each connection or ring between two components, the messages sent and received so far.
///
/// With guests, whose counters are unknown, it omits the connections between clients and the venue.
fn arrivals(market: &Market) -> Vec<(u64, u64)> {
    let (venue, source) = (&market.venue, &market.source.view.counters);
    let mut legs = vec![
        (venue.order_server.commands.read(), venue.matcher.commands.read()),
        (venue.matcher.responses.read(), venue.order_server.responses.read()),
        (venue.matcher.market_events.read(), venue.publisher.messages.read()),
        (venue.publisher.messages.read(), market.feed.counters.messages.read()),
    ];
    if market.guests() > 0 {
        return legs;
    }
    let traders = || market.traders.iter().map(|trader| &trader.view.gateway);
    let requests = source.requests.read() + traders().map(|gateway| gateway.requests.read()).sum::<u64>();
    let received =
        source.received.read() + traders().map(|gateway| gateway.last_sequence.read()).sum::<u64>();
    legs.push((requests, venue.order_server.requests.read()));
    let responses = venue.order_server.responses.read();
    // Each session begins with a start-of-day message, which is not an answer. `received` counts it only
    // if it arrived together with the answer to the login.
    let starts = market.source.sessions as u64 + market.traders.len() as u64;
    let has_all = (responses..=responses + starts).contains(&received);
    legs.push((responses, if has_all { responses } else { received }));
    legs
}
