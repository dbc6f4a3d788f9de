//! Background flow for any venue: a thread that logs in as one user and enters seeded random orders. It is
//! a counterparty for other clients.

use std::net::SocketAddrV4;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tickpath_agent::{Agent, StopSignal, TscClock};
use tickpath_flowgen::{BackgroundFlow, BackgroundFlowConfig};
use tickpath_trader::OrderEntry;
use tickpath_types::{InstrumentId, InstrumentTable, MassCancel, Nanos, OrderRequest, UserRefNum};

use crate::background_flow::BackgroundFlowAgent;
use crate::participant::{Phase, SharedPhase, SourceView};

/// Maximum time to wait for the answer to the login, to the account query, or to the final cancels.
const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Pause between a failure and the next login.
const RETRY_INTERVAL: Nanos = Nanos::from_secs(1);
/// Sleep after a duty cycle without work. The flow may sleep because its latency is not measured.
const IDLE_INTERVAL: Duration = Duration::from_millis(1);
/// Interval at which a wait checks its condition.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of failure notes that wait for [`BackgroundFlowThread::notes`]; further ones are dropped.
const NOTES_MAX: usize = 16;

/// Settings of a background flow.
#[derive(Clone, Debug)]
pub struct BackgroundSettings {
    /// The venue's order entry address.
    pub address: SocketAddrV4,
    /// The user that enters the orders; no other client may use it.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// Instruments of the venue; the flow trades all of them.
    pub instruments: InstrumentTable,
    /// New orders per second over all instruments; cancels and replacements come in addition.
    pub rate: u32,
    /// Seed of the flow's random numbers.
    pub seed: u64,
}

impl BackgroundSettings {
    /// Returns a flow with up to 400 open orders per instrument, enough for a maker and a taker to trade.
    fn background_flow(&self) -> anyhow::Result<BackgroundFlow> {
        let config = BackgroundFlowConfig {
            seed: self.seed,
            rate: self.rate,
            sessions: 1,
            live_orders_max: 400,
            opening_levels: 10,
            opening_orders_per_level: 5,
            opening_rate: 5_000,
            qty_lots: 10,
            ..BackgroundFlowConfig::default()
        };
        BackgroundFlow::new(config, self.instruments.as_slice()).context("the background flow")
    }
}

/// A background flow on a separate thread, which reconnects after a disconnection.
#[derive(Debug)]
pub struct BackgroundFlowThread {
    stop: StopSignal,
    notes: Receiver<String>,
    thread: JoinHandle<()>,
}

impl BackgroundFlowThread {
    /// Starts the thread, which logs in by itself.
    ///
    /// # Errors
    /// An error if the flow cannot trade an instrument, or the system refuses a thread.
    pub fn start(settings: BackgroundSettings, clock: TscClock) -> anyhow::Result<BackgroundFlowThread> {
        settings.background_flow()?;
        let (stop, (sender, notes)) = (StopSignal::new(), sync_channel(NOTES_MAX));
        let stopped = stop.clone();
        let thread = Builder::new()
            .name("background-flow".to_owned())
            .spawn(move || run(&settings, clock, &stopped, &sender))
            .context("the background flow's thread")?;
        Ok(BackgroundFlowThread { stop, notes, thread })
    }

    /// Returns a line for each failure of the flow since the last call; omits repetitions.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.notes.try_iter()
    }

    /// Cancels the flow's orders, logs out and ends the thread.
    pub fn stop(self) {
        self.stop.stop();
        // A panic of the thread was already printed.
        let _ = self.thread.join();
    }
}

/// Runs the flow until it is stopped; restarts it from its beginning after a failure.
fn run(settings: &BackgroundSettings, clock: TscClock, stop: &StopSignal, notes: &SyncSender<String>) {
    let mut last = String::new();
    while !stop.is_stopped() {
        let Err(error) = play(settings, clock, stop) else { return };
        let note = format!("{error:#}");
        // Omit a note that repeats the last one.
        if note != last {
            // While `NOTES_MAX` notes wait, further ones are dropped.
            let _ = notes.try_send(note.clone());
            last = note;
        }
        wait(clock, RETRY_INTERVAL, || stop.is_stopped());
    }
}

/// Runs the flow over one connection, from the login to the logout.
fn play(settings: &BackgroundSettings, clock: TscClock, stop: &StopSignal) -> anyhow::Result<()> {
    let (entry, first) = log_in(settings, clock, stop)?;
    let mut background_flow = settings.background_flow()?;
    background_flow.number_from(0, first);
    let count = settings.instruments.as_slice().len();
    let (shared_phase, (view, writer)) = (SharedPhase::default(), SourceView::new(count));
    let mut agent =
        BackgroundFlowAgent::new(background_flow, vec![entry], count, shared_phase.clone(), clock, writer);
    shared_phase.enter(Phase::Trading);
    while !stop.is_stopped() {
        if agent.do_work(clock.now())? == 0 {
            std::thread::sleep(IDLE_INTERVAL);
        }
    }
    shared_phase.enter(Phase::Draining);
    agent.cancel_all(clock.now());
    let sent = view.counters.received.read();
    let is_cancelled = || view.counters.received.read() > sent && view.counters.open_orders.read() == 0;
    let mut outcome = Ok(0);
    wait(clock, ANSWER_TIMEOUT, || {
        outcome = agent.do_work(clock.now());
        outcome.is_err() || is_cancelled()
    });
    agent.on_close();
    outcome?;
    Ok(())
}

/// Logs in and cancels the orders of an earlier run; returns the connection and the flow's first UserRefNum.
fn log_in(
    settings: &BackgroundSettings,
    clock: TscClock,
    stop: &StopSignal,
) -> anyhow::Result<(OrderEntry, UserRefNum)> {
    let BackgroundSettings { address, user, password, instruments, .. } = settings;
    let entry = OrderEntry::connect(*address, user, password, instruments.clone(), clock.now())?;
    let mut entry = entry.only_new(clock.now());
    until(&mut entry, clock, stop, OrderEntry::is_active)?;
    entry.query_account(clock.now())?;
    until(&mut entry, clock, stop, |entry| entry.client().next_user_ref().is_some())?;
    let number = entry.client().next_user_ref().unwrap_or(UserRefNum(0));
    ensure!(number.0 > 0, "'{user}' has used all order numbers of the day: the flow resumes on the next day");
    let all = MassCancel { user_ref: number, instrument: InstrumentId(0), side: None, firm: *b"    " };
    entry.queue(&OrderRequest::MassCancel(all))?;
    entry.flush(clock.now())?;
    Ok((entry, UserRefNum(number.0.saturating_add(1))))
}

/// Reads from the connection until the condition is true or `stop` is set; fails after [`ANSWER_TIMEOUT`].
fn until(
    entry: &mut OrderEntry,
    clock: TscClock,
    stop: &StopSignal,
    condition: impl Fn(&OrderEntry) -> bool,
) -> anyhow::Result<()> {
    let mut outcome = Ok(0);
    wait(clock, ANSWER_TIMEOUT, || {
        outcome = entry.poll(clock.now(), &mut (), |()| {}, |(), _| {});
        outcome.is_err() || condition(entry) || stop.is_stopped()
    });
    outcome?;
    if condition(entry) || stop.is_stopped() {
        return Ok(());
    }
    bail!("the venue does not answer the login of its background flow")
}

fn wait(clock: TscClock, longest: Nanos, mut is_over: impl FnMut() -> bool) {
    let end = clock.now() + longest;
    while !is_over() && clock.now() < end {
        std::thread::sleep(CHECK_INTERVAL);
    }
}
