//! `tickpath demo`.

use std::path::PathBuf;
use std::process::ExitCode;

use tickpath_agent::StopSignal;
use tickpath_config::{Fraction, Speed, print_stderr, print_stdout};
use tickpath_demo::{DemoConfig, DemoSettings, ViewMode};
use tickpath_monitor::Mode;

use super::json;

/// Run a whole market on this machine, with a live view and a latency report at the end
///
/// One venue, eight instruments, a maker, a taker and a seeded background flow trade over real loopback TCP
/// and multicast. The final report has the latency of each hop, and the checks that nothing was lost.
///
/// Exit code 0 when every check passes.
#[derive(clap::Args)]
pub struct Args {
    /// New background orders per second, in addition to cancels and replacements [default: 20000]
    #[arg(long, value_name = "N", conflicts_with = "flow")]
    rate: Option<u64>,
    /// Seed of the background flow and of the injected losses [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Maximum trading time in seconds [default: 20; a recorded flow to its end]
    #[arg(long, value_name = "N", conflicts_with = "forever")]
    seconds: Option<u64>,
    /// Trade until stopped by Ctrl-C or q, or until a recorded flow ends
    #[arg(long)]
    forever: bool,
    /// Fraction of packets lost on each multicast line, e.g. 0.1% or 0 [default: 0.1%]
    #[arg(long, value_name = "SHARE")]
    loss: Option<Fraction>,
    /// Drive the venue with a recorded order flow instead of the background flow: Databento DBN MBO, LOBSTER
    /// CSV or ITCH 5.0, plain, .gz or .zst
    #[arg(long, value_name = "FILE")]
    flow: Option<PathBuf>,
    /// Playback speed of a recorded flow: max, or a multiple of real time such as 10x
    #[arg(long, value_name = "SPEED", default_value = "max", requires = "flow")]
    speed: Speed,
    /// Write the venue's journal to this folder, which must not hold one [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,
    /// Configuration file with rate, instruments, limits, users, placement; such as configs/demo.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print plain progress lines even on a terminal
    #[arg(long)]
    plain: bool,
    /// Write the results as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Args {
    /// Returns whether `--flow` names a recording: only the separate program `tickpath-demo` can play it.
    pub(super) const fn reads_a_recording(&self) -> bool {
        self.flow.is_some()
    }

    fn settings(&self) -> anyhow::Result<DemoSettings> {
        let mut config = DemoConfig::load(self.config.as_deref())?;
        config.rate = self.rate.or(config.rate);
        config.seed = self.seed.or(config.seed);
        config.loss = self.loss.or(config.loss);
        config.seconds = self.seconds.or(config.seconds);
        let mut settings = config.settings()?;
        // Without --seconds, a recording is played to its end.
        if self.forever || (self.flow.is_some() && config.seconds.is_none()) {
            settings.duration = None;
        }
        settings.flow.clone_from(&self.flow);
        settings.speed = self.speed;
        settings.journal.clone_from(&self.journal);
        // When the JSON goes to standard output, nothing else may be printed there.
        settings.view = match &self.json {
            Some(path) if path.as_os_str() == "-" => ViewMode::Silent,
            _ if self.plain => ViewMode::Monitor(Mode::Plain),
            _ => ViewMode::Monitor(Mode::Auto),
        };
        Ok(settings)
    }
}

/// Runs the demo's market until its duration ends, its recording ends or it is stopped.
///
/// # Errors
/// Invalid settings, or a failure of the host.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    json::check(args.json.as_deref())?;
    let stop = StopSignal::on_signals()?;
    let outcome = tickpath_demo::run(&settings, &stop)?;
    // Write the results to their file even if the text cannot be printed.
    let printed = if settings.view == ViewMode::Silent { Ok(()) } else { print_stdout(&outcome) };
    if let Some(path) = &args.json {
        json::write(path, &format!("{:#}", outcome.to_json()))?;
    }
    printed?;
    // A recording that is damaged before the requested end makes the run fail.
    let damage = outcome.flow.as_ref().and_then(|flow| flow.damage.as_ref());
    if let Some(damage) = damage {
        print_stderr(format_args!("tickpath: {damage}"));
    }
    Ok(if outcome.holds() && damage.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
