//! Compares two builds: measures the same rows by both, in turns, and shows the noise between equal builds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickpath_agent::StopSignal;
use tickpath_config::print_stderr;

use crate::statistics::median;
use crate::table::{format_value, text_table, wrapped_text};

/// Name of the program that measures, in a folder of programs.
const PROGRAM: &str = "tickpath-lab";
/// The names of the two builds.
const ORDINALS: [&str; 2] = ["first", "second"];
const HEADINGS: [&str; 7] = ["row", "first", "second", "unit", "ratio", "noise", "result"];
/// Indexes of the columns of numbers, which are right-aligned.
const NUMBERS: [usize; 4] = [1, 2, 4, 5];
const LEGEND: &str = "first and second are medians over the rounds. ratio: second / first, the median of the rounds. noise: the greatest \
     difference between two runs of the first build in one round. A row has changed if its ratio differs from 1 by more \
     than the noise, and the second build lies on the same side of both runs of the first in every round.";

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The two builds: programs `tickpath-lab`, or folders with one.
    pub builds: [PathBuf; 2],
    /// Rows to compare, by name or by its first letters; empty means all rows of both builds.
    pub filter: Vec<String>,
    /// Number of rounds, 1 at least. In each round the first build measures twice and the second once.
    pub rounds: usize,
    /// True for a tenth of the work in each round.
    pub is_quick: bool,
    /// Once raised, ends the comparison with an error.
    pub stop: StopSignal,
}

/// The result of a comparison. `Display` gives a text table; see also [`Comparison::to_json`].
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The builds.
    pub builds: [Build; 2],
    /// Number of rounds.
    pub rounds: usize,
    /// The rows that both builds have.
    pub rows: Vec<ComparedRow>,
    /// Names of selected rows that only one of the builds has, for each build.
    pub only_in: [Vec<String>; 2],
}

/// One of the two builds.
#[derive(Clone, Debug)]
pub struct Build {
    /// Path of the program.
    pub program: PathBuf,
    /// Commit of the program, if known.
    pub commit: Option<String>,
}

/// One row, measured by both builds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedRow {
    /// Name of the row.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Values of the first build: two for each round.
    pub first: Vec<[f64; 2]>,
    /// Values of the second build: one for each round.
    pub second: Vec<f64>,
    /// The reason why the row has no values.
    pub failure: Option<String>,
}

/// The difference of the second build from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The difference is within the noise, or not in every round.
    Same,
    /// The second build is better by more than the noise, and in every round.
    Better,
    /// The second build is worse by more than the noise, and in every round.
    Worse,
}

impl ComparedRow {
    /// Adds the values of a round: two of the first build and one of the second.
    fn add(&mut self, round: [&ReportRow; 3]) {
        if let [Some(first), Some(again), Some(second)] = round.map(|row| row.value) {
            self.first.push([first, again]);
            self.second.push(second);
        } else {
            let missing = round.into_iter().find(|row| row.value.is_none());
            self.failure = missing.map(|row| row.failure.clone().unwrap_or_else(|| row.note.clone()));
        }
    }

    /// Median over the rounds of the ratio of the second build's value to the mean of the first build's two.
    /// `None` without values, or if the first build's values are 0.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let ratios =
            self.first.iter().zip(&self.second).map(|([a, b], second)| second / f64::midpoint(*a, *b));
        median(&ratios.collect::<Vec<f64>>()).filter(|ratio| ratio.is_finite())
    }

    /// Greatest difference between the first build's two values of a round, as a share of their mean.
    #[must_use]
    pub fn noise(&self) -> f64 {
        let share = |[a, b]: &[f64; 2]| (a - b).abs() / f64::midpoint(*a, *b);
        self.first.iter().map(share).filter(|share| share.is_finite()).fold(0.0, f64::max)
    }

    /// Returns the change from the first build to the second; `None` without values.
    #[must_use]
    pub fn change(&self) -> Option<Change> {
        let is_rate = self.unit.ends_with("/s");
        let better_if = |is_better| if is_better { Change::Better } else { Change::Worse };
        let Some(ratio) = self.ratio() else {
            // Without a ratio, the first build's values are 0, such as a number of allocations.
            let second = median(&self.second)?;
            return Some(if second == 0.0 { Change::Same } else { better_if(is_rate) });
        };
        let has_changed = (ratio - 1.0).abs() > self.noise() && self.is_beyond_first(ratio > 1.0);
        Some(if has_changed { better_if((ratio > 1.0) == is_rate) } else { Change::Same })
    }

    /// Returns whether, in every round, the second build's value is above both of the first's, or below both.
    fn is_beyond_first(&self, is_above: bool) -> bool {
        self.first
            .iter()
            .zip(&self.second)
            .all(|([a, b], second)| if is_above { *second > a.max(*b) } else { *second < a.min(*b) })
    }
}

/// Measures rows by two builds in turns.
///
/// In each round, the first build measures twice and the second once. The order changes from round to round,
/// so that a slow drift of the host affects both builds alike. Each measurement is a separate process.
///
/// # Errors
/// A build that cannot be run; a filter without a row that both builds have; the comparison was stopped.
pub fn compare(options: &CompareOptions) -> anyhow::Result<Comparison> {
    let [first, second] = &options.builds;
    let programs = [program_of(first)?, program_of(second)?];
    let lists = [rows_of(&programs[0])?, rows_of(&programs[1])?];
    let is_wanted = |name: &&String| {
        options.filter.is_empty() || options.filter.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    let in_one = |one: usize| {
        let other = &lists[1 - one];
        lists[one].iter().filter(is_wanted).filter(|name| !other.contains(name)).cloned().collect()
    };
    let names: Vec<&str> = lists[0]
        .iter()
        .filter(is_wanted)
        .filter(|name| lists[1].contains(name))
        .map(String::as_str)
        .collect();
    ensure!(
        !names.is_empty(),
        "both builds have no row named {}: `tickpath lab bench --list` prints the names",
        options.filter.join(", ")
    );
    let mut commits = [None, None];
    let mut rows: Vec<ComparedRow> = Vec::new();
    for round in 0..options.rounds {
        let mut reports = [Vec::new(), Vec::new()];
        for turn in 0..3 {
            let build = usize::from(turn == (round + 1) % 3);
            let (of, rounds) = (ORDINALS[build], options.rounds);
            print_stderr(format_args!("lab compare: round {} of {rounds}: the {of} build", round + 1));
            let measured = measure(&programs[build], &names, options);
            ensure!(!options.stop.is_stopped(), "interrupted");
            let report = measured?;
            commits[build].clone_from(&report.commit);
            reports[build].push(report);
        }
        let ([first, again], [second]) = (&reports[0][..], &reports[1][..]) else {
            bail!("a round has three runs")
        };
        for row in &first.rows {
            let (Some(again), Some(second)) = (again.row(&row.name), second.row(&row.name)) else { continue };
            let found = rows.iter().position(|it| it.name == row.name);
            let index = found.unwrap_or_else(|| {
                let (name, unit) = (row.name.clone(), row.unit.clone());
                rows.push(ComparedRow { name, unit, ..ComparedRow::default() });
                rows.len() - 1
            });
            rows[index].add([row, again, second]);
        }
    }
    let builds =
        [0, 1].map(|build| Build { program: programs[build].clone(), commit: commits[build].take() });
    Ok(Comparison { builds, rounds: options.rounds, rows, only_in: [in_one(0), in_one(1)] })
}

/// Returns the program that measures: the path itself, or the program in a folder.
fn program_of(build: &Path) -> anyhow::Result<PathBuf> {
    let program = if build.is_dir() { build.join(PROGRAM) } else { build.to_owned() };
    ensure!(
        program.is_file(),
        "there is no {}: cargo build --release --features full builds it",
        program.display()
    );
    std::fs::canonicalize(&program).with_context(|| program.display().to_string())
}

fn rows_of(program: &Path) -> anyhow::Result<Vec<String>> {
    let text = output(program, &["bench", "--list"])?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The part of a report that a comparison needs.
#[derive(Debug, Deserialize)]
struct Report {
    commit: Option<String>,
    rows: Vec<ReportRow>,
}

impl Report {
    fn row(&self, name: &str) -> Option<&ReportRow> {
        self.rows.iter().find(|row| row.name == name)
    }
}

#[derive(Debug, Deserialize)]
struct ReportRow {
    name: String,
    unit: String,
    value: Option<f64>,
    failure: Option<String>,
    #[serde(default)]
    note: String,
}

fn measure(program: &Path, names: &[&str], options: &CompareOptions) -> anyhow::Result<Report> {
    let filter = names.join(",");
    let mut args = vec!["bench", "--rounds", "1", "--json", "-", "--filter", &filter];
    if options.is_quick {
        args.push("--quick");
    }
    serde_json::from_str(&output(program, &args)?)
        .with_context(|| format!("{} printed no report", program.display()))
}

/// Runs a program and returns its standard output. A failed row is part of the report, and the exit code is
/// then 1.
fn output(program: &Path, args: &[&str]) -> anyhow::Result<String> {
    let run = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = run.with_context(|| format!("{} does not start", program.display()))?;
    if output.stdout.is_empty() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        bail!("{}: {last}", program.display());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", wrapped_text(&self.summary()))?;
        let rows = self.rows.iter().map(cells).collect::<Vec<_>>();
        writeln!(f, "{}", text_table(HEADINGS, &rows, &NUMBERS))?;
        writeln!(f, "{}", wrapped_text(LEGEND))?;
        for (of, build) in ORDINALS.iter().zip(&self.builds) {
            let commit = build.commit.as_deref().unwrap_or("unknown");
            write!(f, "\n{of:<7} {}, commit {commit}", build.program.display())?;
        }
        for (of, names) in ORDINALS.iter().zip(&self.only_in) {
            if !names.is_empty() {
                write!(f, "\n{}", wrapped_text(&format!("Only the {of} build has: {}", names.join(", "))))?;
            }
        }
        for row in &self.rows {
            if let Some(failure) = &row.failure {
                write!(f, "\n{}", wrapped_text(&format!("{}: {failure}", row.name)))?;
            }
        }
        Ok(())
    }
}

impl Comparison {
    /// Returns the comparison as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            json!({
                "name": row.name,
                "unit": row.unit,
                "first": row.first,
                "second": row.second,
                "ratio": row.ratio(),
                "noise": row.noise(),
                "change": row.change(),
                "failure": row.failure,
            })
        });
        let builds = self
            .builds
            .each_ref()
            .map(|build| json!({ "program": build.program.display().to_string(), "commit": build.commit }));
        let rows: Vec<Value> = rows.collect();
        let json = json!({ "builds": builds, "rounds": self.rounds, "rows": rows, "only_in": self.only_in });
        format!("{json:#}")
    }

    /// Returns one sentence on the second build.
    fn summary(&self) -> String {
        let names = |change: Change| {
            let rows = self.rows.iter().filter(|row| row.change() == Some(change));
            rows.map(|row| row.name.as_str()).collect::<Vec<_>>()
        };
        let (better, worse, same) = (names(Change::Better), names(Change::Worse), names(Change::Same).len());
        let list = |names: &[&str]| match names {
            [] => "no row".to_owned(),
            names => names.join(", "),
        };
        let rounds = self.rounds;
        format!(
            "After {rounds} rounds, the second build is worse in {}, better in {}, and within the noise in {same} of {} rows.",
            list(&worse),
            list(&better),
            self.rows.len()
        )
    }
}

fn cells(row: &ComparedRow) -> [String; HEADINGS.len()] {
    let dash = || "-".to_owned();
    let firsts: Vec<f64> = row.first.iter().flatten().copied().collect();
    let result = match (row.change(), &row.failure) {
        (_, Some(_)) | (None, _) => "no value",
        (Some(Change::Same), None) => "same",
        (Some(Change::Better), None) => "better",
        (Some(Change::Worse), None) => "WORSE",
    };
    [
        row.name.clone(),
        median(&firsts).map_or_else(dash, format_value),
        median(&row.second).map_or_else(dash, format_value),
        row.unit.clone(),
        row.ratio().map_or_else(dash, |ratio| format!("{ratio:.3}")),
        if row.first.is_empty() { dash() } else { format!("{:.1}%", 100.0 * row.noise()) },
        result.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: &str, first: &[[f64; 2]], second: &[f64]) -> ComparedRow {
        let (first, second) = (first.to_vec(), second.to_vec());
        ComparedRow { name: "x".to_owned(), unit: unit.to_owned(), first, second, failure: None }
    }

    #[test]
    fn a_difference_within_the_noise_is_no_change() {
        let rounds = [[100.0, 104.0], [99.0, 101.0], [100.0, 100.0]];
        assert_eq!(row("ns", &rounds, &[103.0, 103.0, 103.0]).change(), Some(Change::Same));
        assert_eq!(row("ns", &rounds, &[106.0, 107.0, 106.0]).change(), Some(Change::Worse));
        assert_eq!(row("ns", &rounds, &[90.0, 91.0, 90.0]).change(), Some(Change::Better));
        assert_eq!(row("M/s", &rounds, &[90.0, 91.0, 90.0]).change(), Some(Change::Worse));
        assert_eq!(row("instructions", &[[100.0, 100.0]], &[101.0]).change(), Some(Change::Worse));
        // The second build is worse in two rounds, and between the runs of the first in the last one.
        assert_eq!(row("ns", &rounds, &[106.0, 107.0, 100.0]).change(), Some(Change::Same));
    }

    #[test]
    fn a_row_of_zeros_is_compared_without_a_ratio() {
        assert_eq!(row("ns", &[], &[]).change(), None);
        assert_eq!(row("allocations", &[[0.0, 0.0]], &[0.0]).change(), Some(Change::Same));
        let more = row("allocations", &[[0.0, 0.0]], &[3.0]);
        assert_eq!((more.ratio(), more.change()), (None, Some(Change::Worse)));
    }
}
