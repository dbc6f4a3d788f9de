//! Runs a whole market for a long time: its memory must stay constant, and nothing may be lost.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::interrupt::Interrupt;
use crate::print_stdout::print_stdout;
use crate::{options, target_dir};

/// Default duration in minutes.
const MINUTES: u64 = 60;
/// Maximum duration in minutes: a year.
const MINUTES_MAX: u64 = 365 * 24 * 60;
/// Default rate in new orders per second.
const RATE: u64 = 50_000;
/// Interval of the checks for the market's end or an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of the memory samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the printed samples, in samples.
const PRINTED_EVERY: usize = 12;
/// Ratio of the run to its warm-up, in which pools and logs fill up and pages are used for the first time.
const WARM_UP: usize = 3;
/// Maximum growth after the warm-up, in KiB: allocators keep some memory.
const GROWTH_MAX_KIB: u64 = 2 * 1024;
/// Description of the results after Ctrl-C.
const MEANING: &str = "a soak has a verdict only at its end";
/// Reconciliation checks that must hold and must have had something to test.
const EXERCISED: [&str; 3] = ["books_equal", "positions_zero", "gaps_healed"];

/// The memory samples in KiB, and the market's own report.
#[derive(Debug)]
struct Observations {
    /// Resident memory, at equal intervals.
    resident: Vec<u64>,
    /// Whether the market ended with success.
    ended_well: bool,
    /// The market's final output: a line for each of its reconciliation checks.
    report: String,
}

/// The verdict, with the reason for a failure.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed {
        growth: u64,
    },
    TooShort {
        samples: usize,
    },
    Grew {
        from: u64,
        to: u64,
    },
    /// These checks did not hold, or had nothing to test.
    FailedChecks {
        failed_checks: Vec<&'static str>,
    },
    Failed,
}

/// Runs a market with `options`; true when its memory is constant and its reconciliation checks hold.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let [minutes, rate] = options::numbers(options, [("--minutes", MINUTES), ("--rate", RATE)])?;
    ensure!((1..=MINUTES_MAX).contains(&minutes), "--minutes must be 1 to {MINUTES_MAX}");
    ensure!(rate > 0, "--rate must be at least 1");
    let interrupt = Interrupt::on_signals()?;
    let is_built = Command::new("cargo build --release -p tickpath").run(root)?.success();
    interrupt.check(MEANING)?;
    ensure!(is_built, "tickpath does not build");
    let program = root.join(target_dir()).join("release/tickpath");
    let folder = root.join(target_dir()).join("soak");
    // A journal grows by about 20 GB an hour: keep it out of a folder that may be in memory.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let seconds = (minutes * 60).to_string();
    let process = std::process::Command::new(&program)
        .args(["demo", "--plain", "--seconds", &seconds, "--rate", &rate.to_string(), "--journal"])
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut market = Market { process, folder };
    let printed = market.process.stdout.take().map(|mut out| {
        std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
        })
    });
    print_stdout(format_args!("{minutes} min at {rate} new orders a second; resident memory in MiB:"));
    let resident = watch(&mut market.process, &interrupt)?;
    let ended_well = market.process.wait()?.success();
    let text = printed.and_then(|printed| printed.join().ok()).transpose()?.unwrap_or_default();
    // The report without the progress lines before it.
    let report = text.find("Traffic in").map_or(text.as_str(), |start| &text[start..]).to_owned();
    print_stdout(&report);
    let verdict = verdict(&Observations { resident, ended_well, report });
    print_stdout(format_args!("soak: {verdict}"));
    Ok(matches!(verdict, Verdict::Passed { .. }))
}

/// A running market and the folder of its journal; both are removed on drop.
struct Market {
    process: Child,
    folder: PathBuf,
}

impl Drop for Market {
    fn drop(&mut self) {
        // Has no effect if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Samples the resident memory of the market until it ends.
fn watch(market: &mut Child, interrupt: &Interrupt) -> Result<Vec<u64>> {
    let started = Instant::now();
    let mut next_sample = started + SAMPLE_INTERVAL;
    let mut resident = Vec::new();
    loop {
        std::thread::sleep(POLL_INTERVAL);
        interrupt.check(MEANING)?;
        if market.try_wait()?.is_some() {
            return Ok(resident);
        }
        if Instant::now() < next_sample {
            continue;
        }
        next_sample += SAMPLE_INTERVAL;
        let status = fs::read_to_string(format!("/proc/{}/status", market.id())).unwrap_or_default();
        let Some(kib) = resident_kib(&status) else { continue };
        resident.push(kib);
        if resident.len() % PRINTED_EVERY == 1 {
            print_stdout(format_args!(
                "  {:>6.0} s  {:>8.1}",
                started.elapsed().as_secs_f64(),
                kib as f64 / 1024.0
            ));
        }
    }
}

/// Returns `VmRSS` from a process's status.
fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn verdict(observations: &Observations) -> Verdict {
    let Observations { resident, ended_well, report } = observations;
    let failed_checks: Vec<&str> =
        EXERCISED.into_iter().filter(|check_name| !has_passed(report, check_name)).collect();
    let warm = &resident[resident.len() / WARM_UP..];
    // Compare maxima, because the process shrinks while it ends.
    let (first, last) = warm.split_at(warm.len() / 2);
    match (first.iter().max(), last.iter().max()) {
        _ if !failed_checks.is_empty() => Verdict::FailedChecks { failed_checks },
        _ if !ended_well => Verdict::Failed,
        (Some(from), Some(to)) if *to > from + GROWTH_MAX_KIB => Verdict::Grew { from: *from, to: *to },
        (Some(from), Some(to)) => Verdict::Passed { growth: to.saturating_sub(*from) },
        _ => Verdict::TooShort { samples: resident.len() },
    }
}

/// True when the report says that a reconciliation check had something to test and holds.
fn has_passed(report: &str, check_name: &str) -> bool {
    report.lines().any(|line| line.split_whitespace().take(2).eq(["holds", check_name]))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Passed { growth } => {
                write!(f, "passed: every check holds, and memory grew by {growth} KiB after the warm-up")
            }
            Verdict::TooShort { samples } => {
                write!(f, "failed: {samples} memory samples are too few: use more --minutes")
            }
            Verdict::Grew { from, to } => write!(f, "failed: memory grew from {from} KiB to {to} KiB"),
            Verdict::FailedChecks { failed_checks } => {
                write!(f, "failed: checks that do not hold: {}", failed_checks.join(", "))
            }
            Verdict::Failed => f.write_str("failed: the market ended with an error"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupted;

    #[test]
    fn dropping_a_market_kills_it_and_removes_its_journal() {
        let folder = std::env::temp_dir().join(format!("xtask-soak-{}", std::process::id()));
        fs::create_dir_all(folder.join("journal")).unwrap();
        let process = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut market = Market { process, folder: folder.clone() };
        let status = format!("/proc/{}/status", market.process.id());
        assert!(Path::new(&status).exists());
        let error = watch(&mut market.process, &Interrupt::raised()).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
        drop(market);
        assert!(!Path::new(&status).exists() && !folder.exists());
    }

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(resident_kib("Name:\tx\nVmHWM:\t    9 kB\nVmRSS:\t  123456 kB\n"), Some(123_456));
        assert_eq!(resident_kib("Name:\tx\n"), None, "a process that has ended");
    }

    /// The output of a market whose check `gaps_healed` has the result `gaps`.
    fn report(gaps: &str) -> String {
        let passed_lines =
            ["books_equal      the books", "positions_zero   they sum to zero", "hops_sum         they do"];
        let passed_lines: String =
            passed_lines.iter().map(|check_name| format!("  holds         {check_name}\n")).collect();
        format!("Traffic in 60.0 s\n\nChecks\n{passed_lines}  {gaps:<13} gaps_healed      of 3 gaps 3\n")
    }

    fn verdict_of(resident: Vec<u64>) -> Verdict {
        verdict(&Observations { resident, ended_well: true, report: report("holds") })
    }

    /// 12 growing samples of the warm-up, then 24 equal ones.
    fn flat() -> Vec<u64> {
        (0..12).map(|step| step * 10_000).chain([120_000; 24]).collect()
    }

    #[test]
    fn growth_is_found_and_the_warm_up_is_not_growth() {
        assert_eq!(verdict_of(flat()), Verdict::Passed { growth: 0 });
        let bound = 120_000 + GROWTH_MAX_KIB;
        let grown = |to| flat().into_iter().take(35).chain([to]).collect();
        assert_eq!(verdict_of(grown(bound)), Verdict::Passed { growth: GROWTH_MAX_KIB });
        assert_eq!(verdict_of(grown(bound + 1)), Verdict::Grew { from: 120_000, to: bound + 1 });
        let leak = (0..36).map(|step| 100_000 + step * 500).collect();
        assert!(matches!(verdict_of(leak), Verdict::Grew { .. }));
        assert_eq!(verdict_of(vec![]), Verdict::TooShort { samples: 0 });
    }

    #[test]
    fn open_and_missing_gaps_fail() {
        let verdict = |ended_well, report| verdict(&Observations { resident: flat(), ended_well, report });
        assert_eq!(verdict(true, report("holds")), Verdict::Passed { growth: 0 });
        for (ended_well, gaps) in [(false, "FAILS"), (true, "not exercised")] {
            let unrecovered = Verdict::FailedChecks { failed_checks: vec!["gaps_healed"] };
            assert_eq!(verdict(ended_well, report(gaps)), unrecovered, "{gaps}");
        }
        assert_eq!(verdict(false, report("holds")), Verdict::Failed);
        assert_eq!(
            verdict(false, String::new()),
            Verdict::FailedChecks { failed_checks: EXERCISED.to_vec() }
        );
    }
}
