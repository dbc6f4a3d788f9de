//! Runs a server until it is stopped.

use std::time::Duration;

use serde_json::{Value, json};
use tickpath_agent::{Agent, StopSignal, TscClock, release_code_pages};
use tickpath_config::thousands;
use tickpath_types::Nanos;

use super::{ServeSettings, ServerCounters, TickRate, TicksServer};

/// Interval between progress lines.
const PROGRESS_INTERVAL: Nanos = Nanos::from_secs(10);
/// The thread sleeps only if it has no work for at least this time.
const SLEEP_MIN: Nanos = Nanos::from_micros(200);
/// A sleep is this much shorter than the idle time, because the kernel may wake a thread late.
const WAKE_EARLY: Nanos = Nanos::from_micros(80);
/// Maximum number of duty cycles between two checks of the stop signal.
const CYCLES: u32 = 64;

/// The reason for which a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeEnd {
    /// The planned duration was over.
    Time,
    /// The server was interrupted.
    Interrupted,
}

/// The result of a server's run.
#[derive(Clone, Debug)]
pub struct ServeReport {
    /// The reason for which the server ended.
    pub end: ServeEnd,
    /// Time from the first duty cycle to the stop, without the shutdown.
    pub elapsed: Nanos,
    /// The server's counters.
    pub counters: ServerCounters,
    /// Number of sleeps while no work was due.
    pub sleeps: u64,
    /// The requested rate of ticks.
    pub rate: TickRate,
}

impl ServeReport {
    /// Returns a warning if the server could not keep the requested rate and dropped ticks.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (self.counters.given_up > 0).then(|| {
            format!(
                "the rate was not kept: {} ticks were more than a second late and were dropped: use a lower --rate",
                thousands(self.counters.given_up)
            )
        })
    }

    /// Returns the figures of the run as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = self.counters.to_json();
        let elapsed_s = self.elapsed.0 as f64 / 1e9;
        json["sleeps"] = json!(self.sleeps);
        json["rate"] = json!(self.rate.to_string());
        json["elapsed_s"] = json!(elapsed_s);
        json["ticks_per_s"] = json!(self.counters.ticks as f64 / elapsed_s.max(1e-9));
        json["ended"] = json!(match self.end {
            ServeEnd::Time => "time",
            ServeEnd::Interrupted => "interrupted",
        });
        json
    }

    /// Returns the figures of the run as lines of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let it = &self.counters;
        let seconds = self.elapsed.0 as f64 / 1e9;
        let each = |count: u64| thousands((count as f64 / seconds.max(1e-9)) as u64);
        let mut text = format!(
            "{} ticks in {seconds:.1} s ({}/s of {}), {} sent ({}/s) in {} writes, {} bytes\n\
             {} connections, {} subscriptions; refused: {} full, {} version, {} malformed, {} too many symbols, {} unknown symbols\n\
             slow clients: {} times, {} ticks skipped, {} disconnected; {} silent; {} heartbeats",
            thousands(it.ticks),
            each(it.ticks),
            self.rate,
            thousands(it.ticks_sent),
            each(it.ticks_sent),
            thousands(it.writes),
            thousands(it.bytes_sent),
            thousands(it.accepted),
            thousands(it.subscriptions),
            it.refused_full,
            it.refused_version,
            it.refused_malformed,
            it.refused_symbols,
            it.refused_unknown,
            thousands(it.slow),
            thousands(it.skipped),
            it.slow_disconnected,
            it.silent,
            thousands(it.heartbeats),
        );
        let faults = it.fault_gaps + it.fault_corrupt + it.fault_stalls + it.fault_disconnects;
        if faults > 0 {
            text += &format!(
                "\ninjected faults: {} ticks omitted, {} corrupted, {} stalls, {} disconnections",
                thousands(it.fault_gaps),
                thousands(it.fault_corrupt),
                it.fault_stalls,
                it.fault_disconnects
            );
        }
        text
    }
}

/// Serves until the stop signal is raised or `time` is over. Passes the server's address and progress lines
/// to `print_line`.
///
/// The thread spins if the next work is due within 200 us; otherwise it sleeps until shortly before it.
///
/// # Errors
/// The server cannot be [opened](TicksServer::open), or a system call fails.
pub fn serve(
    settings: &ServeSettings,
    time: Option<Nanos>,
    stop: &StopSignal,
    mut print_line: impl FnMut(&str),
) -> anyhow::Result<ServeReport> {
    let clock = TscClock::shared();
    let mut server = TicksServer::open(settings, clock)?;
    // Free code pages that only the start needed; a failure changes nothing.
    let _ = release_code_pages();
    print_line(&format!(
        "ticks of {} symbols at {}; {} ticks; stop it with Ctrl-C",
        settings.market.symbols.len(),
        server.local_address(),
        settings.rate,
    ));
    let start = clock.now();
    let deadline = time.map_or(Nanos::MAX, |time| start + time);
    let mut next_progress = start + PROGRESS_INTERVAL;
    let (mut now, mut sleeps) = (start, 0);
    while !stop.is_stopped() && now < deadline {
        for _ in 0..CYCLES {
            now = clock.now();
            if server.do_work(now)? == 0 && sleep_if_idle(&server, now) {
                sleeps += 1;
                break;
            }
        }
        if now >= next_progress {
            next_progress = now + PROGRESS_INTERVAL;
            print_line(&progress(&server));
        }
    }
    let elapsed = clock.now().since(start);
    while !server.finish(clock.now())? {
        std::thread::sleep(Duration::from_millis(1));
    }
    let end = if stop.is_stopped() { ServeEnd::Interrupted } else { ServeEnd::Time };
    Ok(ServeReport { end, elapsed, counters: *server.counters(), sleeps, rate: settings.rate })
}

/// Sleeps until shortly before the next work, if that is at least [`SLEEP_MIN`] away. Returns true if it
/// slept.
fn sleep_if_idle(server: &TicksServer, now: Nanos) -> bool {
    let idle = server.idle_until().since(now);
    if idle < SLEEP_MIN {
        return false;
    }
    std::thread::sleep(Duration::from_nanos(idle.0 - WAKE_EARLY.0));
    true
}

fn progress(server: &TicksServer) -> String {
    let counters = server.counters();
    format!(
        "clients {} | {} ticks, {} sent | {} skipped | {} writes",
        server.clients(),
        thousands(counters.ticks),
        thousands(counters.ticks_sent),
        thousands(counters.skipped),
        thousands(counters.writes),
    )
}
