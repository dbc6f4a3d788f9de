//! Runs a client until the user stops it, and shows its data on a terminal, as lines, or only in files.

mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use tickpath_agent::{StopSignal, release_code_pages};
use tickpath_config::{print_stderr, print_stdout};
use tickpath_monitor::Mode;

use crate::client::{Client, ClientConfig, CsvFile, LinkState};
use crate::view::{Action, TicksView, Viewer};

pub use report::{Ended, WatchReport};

/// Interval between two frames.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum delay until a key press or the stop signal takes effect.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The kind of output that a watch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// No output, because standard output is used for something else, such as CSV.
    Silent,
    /// The view, shown in this mode.
    View(Mode),
}

/// Options of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The configuration of the client.
    pub client: ClientConfig,
    /// File to which every tick is written as a line of CSV.
    pub csv: Option<PathBuf>,
    /// Time after which the watch ends; `None`: it runs until stopped.
    pub duration: Option<Duration>,
    /// The kind of output.
    pub output: Output,
    /// Maximum number of symbols shown at once.
    pub rows_max: usize,
}

/// Runs a client and shows its data until the duration is over, the user stops it, or the client fails.
///
/// # Errors
/// The terminal, a file or a thread is unavailable. A failure of the client is in the report.
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
    // Read the state before `finish` closes the connection, and the counters after it, so that they include
    // the data received until the close.
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
        last_error: failure.as_ref().map(ToString::to_string).or_else(|| shared.last_error()),
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
        // The CSV writer has ended: the reader closed the pipe, or `CsvFile::finish` will return the error.
        if csv.is_some_and(CsvFile::has_ended) {
            return Ok(Ended::Quit);
        }
        let elapsed = started.elapsed();
        if view.planned.is_some_and(|planned| elapsed >= planned) {
            return Ok(Ended::TimeOver);
        }
        let now = Instant::now();
        if now >= draw_at {
            // Add the interval to the planned time, so that frames do not drift; after a long delay, draw
            // again at once.
            draw_at = (draw_at + DRAW_INTERVAL).max(now);
            view.update(client.shared(), elapsed);
            if let Some(viewer) = viewer {
                viewer.draw(view, client.shared())?;
            }
            // The start is complete, so free the code pages that only it needed. A failure has no effect.
            if is_starting && client.shared().state() == LinkState::Live {
                is_starting = false;
                let _ = release_code_pages();
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

/// Prints a report and, if its result cannot be trusted, a warning with the reason.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print(report: &WatchReport) -> anyhow::Result<()> {
    print_stdout(report)?;
    if let Some(warning) = report.warning() {
        print_stderr(format_args!("tickpath: {warning}"));
    }
    Ok(())
}
