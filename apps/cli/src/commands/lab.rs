//! `tickpath lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stdout};
use tickpath_demo::{DemoSettings, Outcome, ViewMode};
use tickpath_lab::{
    BenchOptions, BenchReport, CompareOptions, Effort, Goal, ROUNDS_DEFAULT, Row, bench, check_recordable,
    compare, matching_names, row, row_names, run_counted,
};
use tickpath_types::Nanos;

use super::{INTERRUPTED, json};

/// Names of the benchmark rows that are measured in a run of the demo's whole market.
const DEMO_ROWS: [&str; 2] = ["demo_tick_to_trade_software", "hot_allocations"];
/// Trading time of the demo's market in each round, without `--quick`.
const DEMO_TIME: Nanos = Nanos::from_secs(5);
/// As [`DEMO_TIME`], with `--quick`.
const DEMO_TIME_QUICK: Nanos = Nanos::from_secs(2);

/// The latency laboratory
#[derive(clap::Subcommand)]
pub enum Args {
    /// Measure the cost of Tickpath's parts on this host, each next to the host's limit
    ///
    /// Rounds are interleaved; a figure is the median over them with its minimum and maximum. Use a quiet
    /// machine: the host's jitter during the run is printed too. Market data rows use standard days of ITCH
    /// 5.0, generated once and cached in $XDG_CACHE_HOME/tickpath or ~/.cache/tickpath (2.2 GB; with --quick
    /// 0.2 GB more).
    #[command(after_help = rows_help())]
    Bench(BenchArgs),
    /// Compare two builds of Tickpath on this host, row by row
    ///
    /// In each round the first build measures twice and the second once, in changing order. The two runs of
    /// the first build show the noise between equal builds: a row has changed only if the builds differ by
    /// more, and in every round. Counts of instructions (rows NAME_instructions) have no noise.
    #[command(after_help = "Example, after `git worktree add ../before HEAD~1` and a build there:\n  \
        tickpath lab compare ../before/target/release target/release --filter itch_books")]
    Compare(CompareArgs),
    /// Run the work whose instructions callgrind counts for `bench`
    #[command(hide = true)]
    Counted { arguments: Vec<String> },
}

#[derive(clap::Args)]
pub struct BenchArgs {
    /// Measure only these rows, and their limits; a prefix of a name is sufficient, see below for the names
    #[arg(long, value_name = "NAME,NAME...", value_delimiter = ',')]
    filter: Vec<String>,
    /// Write the report as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as JSON to a new file FOLDER/DATE-MACHINE/bench-TIME.json; `cargo xtask figures`
    /// generates the figures of the documents from those in "results"
    #[arg(long, value_name = "FOLDER", conflicts_with = "quick")]
    record: Option<PathBuf>,
    /// Number of rounds of each measurement
    #[arg(long, value_name = "N", default_value_t = ROUNDS_DEFAULT)]
    rounds: usize,
    /// Do a tenth of the work in each round: for a first impression, not for published figures
    #[arg(long)]
    quick: bool,
    /// Print the names of all rows and exit
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
pub struct CompareArgs {
    /// The first build: a folder with the program tickpath-lab, or the program
    first: PathBuf,
    /// The second build
    second: PathBuf,
    /// Compare only these rows; a prefix of a name is sufficient
    #[arg(long, value_name = "NAME,NAME...", value_delimiter = ',')]
    filter: Vec<String>,
    /// Write the comparison as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = ROUNDS_DEFAULT)]
    rounds: usize,
    /// Do a tenth of the work in each round
    #[arg(long)]
    quick: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Bench(args) => run_bench(args),
        Args::Compare(args) => run_compare(args),
        Args::Counted { arguments } => run_counted(arguments).map(|()| ExitCode::SUCCESS),
    }
}

fn run_bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    if args.list {
        row_names().chain(DEMO_ROWS).try_for_each(print_stdout)?;
        return Ok(ExitCode::SUCCESS);
    }
    anyhow::ensure!(args.rounds > 0, "--rounds must be at least 1");
    json::check(args.json.as_deref())?;
    let (effort, commit) =
        (if args.quick { Effort::Quick } else { Effort::Full }, tickpath_version::commit());
    if args.record.is_some() {
        check_recordable(effort, commit)?;
    }
    let stop = StopSignal::on_signals()?;
    let Some(report) = unless_interrupted(measure(args, effort, commit, &stop), &stop)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    // Write the figures to their files even if the text cannot be printed.
    let prints_text = args.json.as_deref().is_none_or(|path| path.as_os_str() != "-");
    let printed = if prints_text { print_stdout(&report) } else { Ok(()) };
    if let Some(path) = &args.json {
        json::write(path, &report.to_json())?;
    }
    if let Some(folder) = &args.record {
        print_stderr(format_args!("lab bench: recorded in {}", report.record(folder)?.display()));
    }
    printed?;
    let failed: Vec<&str> = report.failed().collect();
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    print_stderr(format_args!("tickpath: these rows failed, and the report says why: {}", failed.join(", ")));
    Ok(ExitCode::FAILURE)
}

/// Returns the result of a measurement; `None`, after printing its error, if Ctrl-C ended it.
fn unless_interrupted<T>(result: anyhow::Result<T>, stop: &StopSignal) -> anyhow::Result<Option<T>> {
    match result {
        Err(error) if stop.is_stopped() => {
            print_stderr(format_args!("tickpath: {error:#}"));
            Ok(None)
        }
        result => result.map(Some),
    }
}

fn run_compare(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.rounds > 0, "--rounds must be at least 1");
    json::check(args.json.as_deref())?;
    let stop = StopSignal::on_signals()?;
    let options = CompareOptions {
        builds: [args.first.clone(), args.second.clone()],
        filter: args.filter.clone(),
        rounds: args.rounds,
        is_quick: args.quick,
        stop: stop.clone(),
    };
    let Some(comparison) = unless_interrupted(compare(&options), &stop)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if args.json.as_deref().is_none_or(|path| path.as_os_str() != "-") {
        print_stdout(&comparison)?;
    }
    if let Some(path) = &args.json {
        json::write(path, &comparison.to_json())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(
    args: &BenchArgs,
    effort: Effort,
    commit: Option<&str>,
    stop: &StopSignal,
) -> anyhow::Result<BenchReport> {
    let filter = matching_names(&args.filter, &DEMO_ROWS)?;
    let options = BenchOptions {
        filter: filter.clone(),
        external_rows: &DEMO_ROWS,
        rounds: args.rounds,
        effort,
        show_progress: true,
        counting_command: counting_command(),
        commit: commit.map(str::to_owned),
        stop: stop.clone(),
    };
    let mut report = bench(&options)?;
    let wanted = |name: &str| filter.is_empty() || filter.iter().any(|wanted| wanted == name);
    if DEMO_ROWS.into_iter().any(wanted) {
        push_demo_rows(&mut report, args, stop, wanted)?;
    }
    Ok(report)
}

/// Runs the demo's market once per round, and adds the [`DEMO_ROWS`] that are `wanted` to the report.
fn push_demo_rows(
    report: &mut BenchReport,
    args: &BenchArgs,
    stop: &StopSignal,
    wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let mut rows = [
        row(DEMO_ROWS[0], "ns").note(
            "market data read to order ready to write, p50, in `demo` at its default rate; the end of the read \
             call and the write call are not in it",
        ),
        row(DEMO_ROWS[1], "allocations")
            .note("allocations in all duty cycles of a whole market after its first second")
            .goal(Goal::ValueAtMost(0.0)),
    ]
    .map(Row::of);
    for round in 1..=args.rounds {
        print_stderr(format_args!("lab bench: round {round} of {}: a whole market", args.rounds));
        let outcome = trade(args, stop);
        anyhow::ensure!(!stop.is_stopped(), "interrupted");
        match outcome {
            Ok(outcome) => {
                rows[0].values.extend(tick_to_trade_software(&outcome));
                rows[1].values.extend(hot_allocations(&outcome));
            }
            Err(error) => {
                rows.iter_mut().for_each(|row| row.fail(format!("{error:#}")));
                break;
            }
        }
    }
    rows.into_iter().filter(|row| wanted(row.spec.name)).for_each(|row| report.push(row));
    Ok(())
}

/// Runs the demo's market once, at its default rate.
fn trade(args: &BenchArgs, stop: &StopSignal) -> anyhow::Result<Outcome> {
    let mut settings = DemoSettings::load(None)?;
    settings.view = ViewMode::Silent;
    settings.duration = Some(if args.quick { DEMO_TIME_QUICK } else { DEMO_TIME });
    let outcome = tickpath_demo::run(&settings, stop)?;
    anyhow::ensure!(outcome.holds(), "a check of the market fails: run tickpath demo");
    Ok(outcome)
}

/// Returns the help text that lists the row names for `--filter`.
fn rows_help() -> String {
    format!("Rows: {}", row_names().chain(DEMO_ROWS).collect::<Vec<_>>().join(", "))
}

/// Returns the command that runs this program's `counted` command, whose instructions callgrind counts.
fn counting_command() -> Option<Vec<OsString>> {
    let program = std::env::current_exe().ok()?;
    Some(vec![program.into(), "counted".into()])
}

fn tick_to_trade_software(outcome: &Outcome) -> Option<f64> {
    outcome.report.row("tick_to_trade_software").map(|row| row.summary.p50_ns as f64)
}

fn hot_allocations(outcome: &Outcome) -> Option<f64> {
    outcome.allocations.as_ref().map(|list| list.iter().map(|(_, count)| *count as f64).sum())
}
