//! `tickpath sim`.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stdout, thousands};
use tickpath_simulator::{FaultLevel, Outcome, Simulation};

use super::{INTERRUPTED, json};

/// Interval of the progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of violations reported per seed.
const VIOLATIONS_SHOWN_MAX: usize = 10;

/// Run a venue, its clients, feed handlers and traders in one thread under virtual time, with injected faults and independent checks
///
/// Simulates a venue with its journal, clients, whole traders - books, strategy, orders, positions, limits -
/// and feed handlers. The network and the disk between them fail: packets are lost, repeated, delayed and
/// overtaken, connections cut and reset, processes killed, power lost in the middle of a write, clocks set.
/// Then the faults end. Checkers with a reference model and separate decoders look for a lost order, a
/// doubled fill or a broken guarantee. The Deribit front and the gateway are not included.
///
/// A seed determines its run, bit for bit. If a run finds a violation, the exit code is 1 and the command
/// that repeats it is printed. Ctrl-C stops after the current run, with a report of the completed ones: exit
/// code 130.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath sim --seed 7                 one run, and what went wrong in it
  tickpath sim --seeds 1..3000          3,000 runs, one per seed
  tickpath sim --minutes 60             as many runs as fit into an hour
  tickpath sim --seeds 1..300 --json -  the same figures as JSON")]
pub struct Args {
    /// Run this seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run the seeds from A to B, both included; without an end when B is missing
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    seeds: Option<RangeInclusive<u64>>,
    /// Stop after this number of minutes; without seeds, begin with seed 1
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Run without faults
    #[arg(long)]
    calm: bool,
    /// Write the figures as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Totals of all runs.
#[derive(Default)]
struct Summary {
    seeds: u64,
    failed: Vec<(u64, Vec<String>)>,
    faults: BTreeMap<&'static str, u64>,
    consequences: BTreeMap<&'static str, u64>,
    commands: u64,
    market_events: u64,
    virtual_ns: u64,
    /// Combined hash of the engine's final state in every run; depends on the order of the runs.
    state_hash: u64,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let seeds = match (args.seed, &args.seeds, args.minutes) {
        (Some(seed), ..) => seed..=seed,
        (None, Some(seeds), _) => seeds.clone(),
        (None, None, Some(_)) => 1..=u64::MAX,
        (None, None, None) => 1..=300,
    };
    let limit = args.minutes.map(|minutes| Duration::try_from_secs_f64(minutes * 60.0)).transpose();
    let limit = limit.context("--minutes: give a number of minutes, 0 or more")?;
    json::check(args.json.as_deref())?;
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let fault_level = if args.calm { FaultLevel::None } else { FaultLevel::Full };
    let started = Instant::now();
    let mut summary = Summary::default();
    let mut progress = Progress::new();
    for seed in seeds {
        if stop.is_stopped() || limit.is_some_and(|limit| started.elapsed() >= limit) {
            break;
        }
        summary.add(seed, fault_level);
        progress.print(&summary, started.elapsed());
    }
    progress.end();
    let is_json_alone = args.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    if !is_json_alone {
        summary.report(started.elapsed(), fault_level)?;
    }
    if let Some(file) = &args.json {
        json::write(file, &summary.to_json(started.elapsed(), fault_level).to_string())?;
    }
    if stop.is_stopped() {
        print_stderr(format_args!("tickpath: interrupted: the report covers the seeds that were run"));
    }
    Ok(match (summary.failed.is_empty(), stop.is_stopped()) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(INTERRUPTED),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// Parses `A..B` or `A..`.
fn parse_seeds(text: &str) -> anyhow::Result<RangeInclusive<u64>> {
    let (first, last) = text.split_once("..").context("give it as A..B, such as 1..300")?;
    let number =
        |text: &str| text.parse::<u64>().with_context(|| format!("'{text}' is not a seed: give A..B"));
    let last = if last.is_empty() { u64::MAX } else { number(last.trim_start_matches('='))? };
    let first = number(first)?;
    ensure!(first <= last, "the first seed is after the last: give A..B with A no more than B");
    Ok(first..=last)
}

impl Summary {
    fn add(&mut self, seed: u64, fault_level: FaultLevel) {
        self.seeds += 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, fault_level).run()));
        let Ok(outcome) = outcome else {
            return self.failed.push((seed, vec!["panicked, see the message above".to_owned()]));
        };
        let Outcome { violations, faults, consequences, observed } = outcome;
        for (sum, counts) in [(&mut self.faults, faults), (&mut self.consequences, consequences)] {
            for (what, count) in counts {
                *sum.entry(what).or_default() += count;
            }
        }
        self.commands += observed.log.commands.len() as u64;
        self.market_events += observed.last.last_market.0;
        self.virtual_ns += observed.ended_at.0;
        self.state_hash = self.state_hash.rotate_left(1) ^ observed.last.state_hash;
        if !violations.is_empty() {
            self.failed.push((seed, violations.iter().map(ToString::to_string).collect()));
        }
    }

    fn report(&self, elapsed: Duration, fault_level: FaultLevel) -> anyhow::Result<()> {
        print_stdout(match self.failed.len() {
            0 => "PASS: no violation".to_owned(),
            failed => format!("FAIL: {failed} of {} seeds found a violation", thousands(self.seeds)),
        })?;
        for (seed, violations) in &self.failed {
            print_stdout(format!("seed {seed}:"))?;
            for violation in violations.iter().take(VIOLATIONS_SHOWN_MAX) {
                print_stdout(format!("  {violation}"))?;
            }
            if violations.len() > VIOLATIONS_SHOWN_MAX {
                print_stdout(format!("  and {} more", violations.len() - VIOLATIONS_SHOWN_MAX))?;
            }
            print_stdout(format!("  repeat with: {}", repeat_command(*seed, fault_level)))?;
        }
        print_stdout(format!(
            "{} seeds in {:.1} s: {} commands, {} market data messages, {:.0} s of virtual time",
            thousands(self.seeds),
            elapsed.as_secs_f64(),
            thousands(self.commands),
            thousands(self.market_events),
            self.virtual_ns as f64 / 1e9,
        ))?;
        print_stdout(format!("hash of all final states: {:016x}", self.state_hash))?;
        print_stdout(format!("faults: {}", thousands(self.faults.values().sum::<u64>())))?;
        print_counts(&self.faults)?;
        print_stdout("consequences:".to_owned())?;
        print_counts(&self.consequences)?;
        Ok(())
    }

    fn to_json(&self, elapsed: Duration, fault_level: FaultLevel) -> serde_json::Value {
        let failed = self.failed.iter().map(|(seed, violations)| {
            json!({ "seed": seed, "again_by": repeat_command(*seed, fault_level), "found": violations })
        });
        json!({
            "seeds": self.seeds,
            "faults": by_name(&self.faults),
            "consequences": by_name(&self.consequences),
            "violations": failed.collect::<Vec<_>>(),
            "commands": self.commands,
            "market_events": self.market_events,
            "state_hash": format!("{:016x}", self.state_hash),
            "virtual_s": self.virtual_ns as f64 / 1e9,
            "elapsed_s": elapsed.as_secs_f64(),
        })
    }
}

/// Returns the command that repeats a run.
fn repeat_command(seed: u64, fault_level: FaultLevel) -> String {
    let calm = if fault_level == FaultLevel::None { " --calm" } else { "" };
    format!("tickpath sim --seed {seed}{calm}")
}

/// Turns the names of counts into JSON keys: removes apostrophes, and replaces spaces by underscores.
fn by_name(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(what, count)| (what.replace('\'', "").replace(' ', "_"), *count)).collect()
}

fn print_counts(counts: &BTreeMap<&'static str, u64>) -> anyhow::Result<()> {
    for (what, count) in counts {
        print_stdout(format!("  {:>12}  {}", thousands(*count), what.replace('_', " ")))?;
    }
    Ok(())
}

/// The progress line, shown only on a terminal.
struct Progress {
    is_shown: bool,
    printed_at: Instant,
}

impl Progress {
    fn new() -> Progress {
        Progress { is_shown: stderr().is_terminal(), printed_at: Instant::now() }
    }

    fn print(&mut self, summary: &Summary, elapsed: Duration) {
        if self.is_shown && self.printed_at.elapsed() >= PROGRESS_INTERVAL {
            self.printed_at = Instant::now();
            let (seeds, failed, seconds) = (summary.seeds, summary.failed.len(), elapsed.as_secs());
            // A failure to print the progress line must not stop the runs.
            let _ = write!(stderr(), "\r{seeds} seeds, {failed} with a violation, {seconds} s ");
        }
    }

    fn end(&self) {
        if self.is_shown {
            let _ = writeln!(stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_seed_has_its_repeat_command() {
        let summary =
            Summary { seeds: 1, failed: vec![(7, vec!["log: a gap".to_owned()])], ..Summary::default() };
        for (fault_level, command) in
            [(FaultLevel::Full, "tickpath sim --seed 7"), (FaultLevel::None, "tickpath sim --seed 7 --calm")]
        {
            let json = summary.to_json(Duration::ZERO, fault_level);
            assert_eq!(json["violations"][0]["again_by"], command);
        }
    }

    #[test]
    fn seeds_are_a_range_with_both_ends() {
        assert_eq!(parse_seeds("1..300").unwrap(), 1..=300);
        assert_eq!(parse_seeds("7..").unwrap(), 7..=u64::MAX);
        for text in ["7", "a..3", "3..2", "1..x"] {
            assert!(parse_seeds(text).is_err(), "{text}");
        }
    }
}
