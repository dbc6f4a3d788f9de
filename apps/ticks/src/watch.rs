//! A client that is watched: on a terminal, as lines, or by its files alone, until somebody ends it.

mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use tickpath_agent::{StopSignal, give_back_code};
use tickpath_config::{say, tell};
use tickpath_monitor::Mode;

use crate::client::{Client, ClientConfig, CsvFile, LinkState};
use crate::view::{Action, TicksView, Viewer};

pub use report::{Ended, WatchReport};

/// How often the picture is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// How long a key or the stop signal waits at most to be seen.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What to show, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing: standard output is something else's.
    Silent,
    /// The view.
    View(Mode),
}

/// What to watch, and how.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The client.
    pub client: ClientConfig,
    /// Every tick as a line of this file.
    pub csv: Option<PathBuf>,
    /// When to end by itself.
    pub duration: Option<Duration>,
    /// What to show.
    pub output: Output,
    /// Symbols that are shown at once.
    pub rows_max: usize,
}

/// Watches until the time is over, somebody ends it, or the client cannot go on.
///
/// # Errors
/// The terminal, a file, or a thread cannot be had. What the client cannot get over is in the report.
pub fn watch(options: &WatchOptions, stop: &StopSignal) -> anyhow::Result<WatchReport> {
    let mut csv = options.csv.as_deref().map(CsvFile::create).transpose()?;
    let mut viewer = match options.output {
        Output::Silent => None,
        Output::View(mode) => Some(Viewer::open(mode, options.rows_max)?),
    };
    let client = Client::start(options.client.clone(), csv.as_mut()).context("cannot start a thread")?;
    let started = Instant::now();
    let mut view = TicksView::new(&options.client.address, options.duration);
    let ended = run(&client, &mut viewer, &mut view, csv.as_ref(), stop, started);
    // Of the time before the end closes the connection; what came until then counts.
    let is_live = client.shared().state() == LinkState::Live;
    let shared = std::sync::Arc::clone(client.shared());
    let failure = client.finish().err();
    let elapsed = started.elapsed();
    drop(viewer);
    let csv_rows = csv.map(CsvFile::finish).transpose();
    Ok(WatchReport {
        address: options.client.address.clone(),
        elapsed,
        counts: shared.counts(),
        latencies: WatchReport::latencies_of(&shared),
        is_live,
        trouble: failure.as_ref().map(ToString::to_string).or_else(|| shared.trouble()),
        ended: if failure.is_some() { Ended::Failed } else { ended? },
        csv_rows: csv_rows?,
    })
}

fn run(
    client: &Client,
    viewer: &mut Option<Viewer>,
    view: &mut TicksView,
    csv: Option<&CsvFile>,
    stop: &StopSignal,
    started: Instant,
) -> anyhow::Result<Ended> {
    let (mut draw_at, mut is_starting) = (started, true);
    loop {
        if stop.is_stopped() {
            return Ok(Ended::Interrupted);
        }
        if client.has_ended() {
            return Ok(Ended::Failed);
        }
        // Its reader went away, or an error that its end tells.
        if csv.is_some_and(CsvFile::has_ended) {
            return Ok(Ended::Quit);
        }
        let elapsed = started.elapsed();
        if view.planned.is_some_and(|planned| elapsed >= planned) {
            return Ok(Ended::TimeOver);
        }
        let now = Instant::now();
        if now >= draw_at {
            // From the intended time on, except after a stop.
            draw_at = (draw_at + DRAW_INTERVAL).max(now);
            view.update(client.shared(), elapsed);
            if let Some(viewer) = viewer {
                viewer.draw(view, client.shared())?;
            }
            // By now each kind of work was done once; that it cannot be had changes nothing.
            if is_starting && client.shared().state() == LinkState::Live {
                is_starting = false;
                let _ = give_back_code();
            }
        }
        let left = view.planned.map_or(POLL_INTERVAL, |planned| planned.saturating_sub(started.elapsed()));
        let wait = draw_at.saturating_duration_since(Instant::now()).min(left).min(POLL_INTERVAL);
        match viewer.as_mut().map_or_else(|| pause(wait), |viewer| viewer.poll_key(wait))? {
            None => {}
            Some(Action::Quit) => return Ok(Ended::Quit),
            Some(Action::Interrupt) => return Ok(Ended::Interrupted),
            Some(Action::Reconnect) => {
                client.shared().latencies().clear();
                view.reset(client.shared());
                client.reconnect();
                draw_at = Instant::now();
            }
            Some(Action::Redraw) => {
                if let Some(viewer) = viewer {
                    viewer.redraw(view)?;
                }
            }
        }
    }
}

fn pause(wait: Duration) -> std::io::Result<Option<Action>> {
    std::thread::sleep(wait);
    Ok(None)
}

/// Prints a report, and says why it cannot be trusted where it cannot.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(report: &WatchReport) -> anyhow::Result<()> {
    say(report)?;
    if let Some(doubt) = report.doubt() {
        tell(format_args!("tickpath: {doubt}"));
    }
    Ok(())
}
