//! `tickpath demo`.

use std::path::PathBuf;
use std::process::ExitCode;

use tickpath_agent::StopSignal;
use tickpath_config::{Fraction, say};
use tickpath_demo::{DemoSettings, Speed, ViewMode};
use tickpath_monitor::Mode;
use tickpath_types::Nanos;

use super::json;

/// One venue, eight instruments, a maker, a taker and a seeded crowd trade over real loopback TCP and
/// multicast. At the end: where the time went, hop by hop, and the proofs that nothing was lost.
///
/// Exit code 0 when every proof holds.
#[derive(clap::Args)]
pub struct Args {
    /// New orders of the crowd per second; cancels and replacements come in addition [default: 20000]
    #[arg(long, value_name = "N")]
    rate: Option<u64>,
    /// Seed of the crowd and of the injected losses [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How long the market trades [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "forever")]
    seconds: Option<u64>,
    /// Trade until stopped by Ctrl-C or q
    #[arg(long)]
    forever: bool,
    /// Packets lost on each multicast line, e.g. 0.1% or 0 [default: 0.1%]
    #[arg(long, value_name = "SHARE")]
    loss: Option<Fraction>,
    /// Drive the venue with a recorded order flow in place of the crowd: Databento DBN MBO, LOBSTER CSV or
    /// ITCH 5.0, plain, .gz or .zst
    #[arg(long, value_name = "FILE")]
    flow: Option<PathBuf>,
    /// How fast a recorded flow is played: max, or a multiple of its own time such as 10x
    #[arg(long, value_name = "SPEED", default_value = "max", requires = "flow", value_parser = parse_speed)]
    speed: Speed,
    /// A configuration file: rate, instruments, limits, placement of agents on threads
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print plain progress lines even on a terminal
    #[arg(long)]
    plain: bool,
    /// Write the results as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let error = || format!("'{text}' is not a speed: write max, 1x, 10x or 0.5x");
    let number = text.strip_suffix('x').ok_or_else(error)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = format!("{fraction:0<2}");
    if whole.is_empty() || fraction.len() > 2 {
        return Err(error());
    }
    let hundredths: u64 = format!("{whole}{fraction}").parse().map_err(|_| error())?;
    if hundredths == 0 { Err(error()) } else { Ok(Speed::Hundredths(hundredths)) }
}

impl Args {
    fn settings(&self) -> anyhow::Result<DemoSettings> {
        let mut settings = DemoSettings::load(self.config.as_deref())?;
        settings.rate = self.rate.unwrap_or(settings.rate);
        anyhow::ensure!(settings.rate > 0, "--rate must be at least 1 order a second");
        settings.seed = self.seed.unwrap_or(settings.seed);
        settings.loss_ppm = self.loss.map_or(settings.loss_ppm, |loss| loss.ppm);
        if let Some(seconds) = self.seconds {
            anyhow::ensure!(seconds > 0, "--seconds must be at least 1");
            settings.duration = Some(Nanos::from_secs(seconds));
        }
        if self.forever {
            settings.duration = None;
        }
        settings.flow.clone_from(&self.flow);
        settings.speed = self.speed;
        // Standard output is the JSON's alone when it goes there.
        settings.view = match &self.json {
            Some(path) if path.as_os_str() == "-" => ViewMode::Silent,
            _ if self.plain => ViewMode::Monitor(Mode::Plain),
            _ => ViewMode::Monitor(Mode::Auto),
        };
        Ok(settings)
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    let stop = StopSignal::on_signals()?;
    let outcome = tickpath_demo::run(&settings, &stop)?;
    if settings.view != ViewMode::Silent {
        say(&outcome);
    }
    if let Some(path) = &args.json {
        json::write(path, &format!("{:#}", outcome.to_json()))?;
    }
    // What was asked for is the whole recording.
    let damage = outcome.flow.as_ref().and_then(|flow| flow.damage.as_ref());
    if let Some(damage) = damage {
        eprintln!("tickpath: {damage}");
    }
    Ok(if outcome.holds() && damage.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_exact_multiples() {
        for (text, speed) in [
            ("max", Speed::Max),
            ("1x", Speed::Hundredths(100)),
            ("0.5x", Speed::Hundredths(50)),
            ("12.25x", Speed::Hundredths(1_225)),
        ] {
            assert_eq!(parse_speed(text), Ok(speed), "{text}");
        }
        for text in ["", "x", "1", "0x", "-1x", "1.234x", "fast", ".5x"] {
            assert!(parse_speed(text).is_err(), "{text}");
        }
    }
}
