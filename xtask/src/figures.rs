//! Generates the figures in documents from the reports in `results/`.
//!
//! Reports are grouped by kind of host: CPU family, CPU model and number of cores. The figure of a row on a
//! kind of host is the median over all runs at one commit: the newest commit with three runs, or the newest
//! if none has three. Runs in which the row had another limit than in its newest run do not count, because
//! the row then measured something else. Runs that lost more than 3% of their time to the host count only if
//! that kind of host has no other run of the row. The goal of a figure is that of its newest run. A goal for
//! the value of a time or a rate is left out, because such values depend on the speed of the host.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::print_stdout::print_stdout;
use crate::tidy::{Problem, Tree};

/// Minimum number of runs at one commit for a figure, if a commit has that many.
const RUNS_MIN: usize = 3;
/// Maximum share of its time, in percent, that a quiet run may lose to the host.
const STEAL_PERCENT_MAX: f64 = 3.0;
/// Units of times and rates, whose values depend on the speed of the host.
const UNITS_OF_SPEED: [&str; 5] = ["ns", "us", "ms", "k/s", "M/s"];
const PERFORMANCE: &str = "docs/performance.md";
const README: &str = "README.md";
const BEGIN: &str = "<!-- figures: begin -->\n";
const END: &str = "<!-- figures: end -->\n";

/// The rows that README quotes, each with a description.
const QUOTED: [(&str, &str); 8] = [
    ("stamp", "one hop stamp"),
    ("spsc_rtt", "ring round trip between two cores, 64-byte slots"),
    ("matching", "matching, 100 k resting orders in 8 books"),
    ("order_rtt", "order to its acceptance over loopback TCP"),
    ("journal_group_ack", "log record appended until it is on the disk, policy `group`"),
    ("itch_books", "ITCH message into full books, 8,000 symbols"),
    ("feed_live", "ITCH message, arbitrated from two lines, to its book update"),
    ("deribit_send_buy", "buy order encoded, encrypted and written over TLS"),
];

/// A committed report.
struct Run {
    /// Path of the report, relative to the root of the tree.
    file: String,
    /// Date and time of the run.
    date: String,
    commit: String,
    host: String,
    steal_percent: f64,
    rows: Vec<RunRow>,
}

/// A row with a value, from one report.
struct RunRow {
    name: String,
    unit: String,
    value: f64,
    limit_name: Option<String>,
    limit: Option<f64>,
    ratio: Option<f64>,
    /// The goal, unless it applies to the value of a time or a rate.
    goal: Option<String>,
    /// Whether the goal is reached; `None` without a goal.
    reached: Option<bool>,
    /// Part of the work that the limit or the goal leaves out. A row with such a part has no verdict. `None`
    /// without a goal.
    limit_excludes: Option<String>,
}

/// The figure of a row, combined over runs.
struct Figure {
    unit: String,
    value: f64,
    least: f64,
    greatest: f64,
    limit: Option<(String, f64)>,
    ratio: Option<f64>,
    goal: Option<String>,
    reached: Option<bool>,
    runs: usize,
    commit: String,
    date: String,
    is_noisy: bool,
}

/// All committed reports.
struct Results {
    /// The reports, newest first.
    runs: Vec<Run>,
}

/// Writes docs/performance.md and the figures in README.
pub fn run(root: &Path) -> Result<bool> {
    let tree = Tree::open(root)?;
    for (path, text) in documents(&tree)? {
        let is_new = tree.read_text(&path).ok().flatten().is_none_or(|old| old != text);
        if is_new {
            fs::write(root.join(&path), text).with_context(|| format!("cannot write {path}"))?;
        }
        print_stdout(format_args!("{path}: {}", if is_new { "written" } else { "up to date" }));
    }
    Ok(true)
}

/// Finds reports that do not identify the measured code, documents with outdated figures, and figures in
/// README that are not generated.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut problems = unidentified(tree)?;
    for (path, text) in documents(tree)? {
        let is_there = tree.files().contains(&path);
        if !is_there || tree.read_text(&path)?.is_none_or(|old| old != text) {
            let what = "its figures differ from results/: run cargo xtask figures";
            problems.push(Problem::in_file(&path, what));
        }
        if path == README {
            problems.extend(written_by_hand(&text));
        }
    }
    Ok(problems)
}

/// Finds reports without the measured code, the time, or the share that the host took.
fn unidentified(tree: &Tree) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for path in reports(tree) {
        let report = read_report(tree, path)?;
        // The commit of a build with uncommitted changes has a suffix.
        let is_commit = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fields = [
            ("commit", report["commit"].as_str().is_some_and(is_commit)),
            ("date", report["date"].is_string()),
            ("steal_percent", report["steal_percent"].is_number()),
        ];
        for (name, _) in fields.into_iter().filter(|(_, is_there)| !is_there) {
            let text = format!("a report without a valid `{name}`: record it with lab bench --record");
            problems.push(Problem::in_file(path, text));
        }
    }
    Ok(problems)
}

/// Paths of the reports.
fn reports(tree: &Tree) -> impl Iterator<Item = &str> {
    let files = tree.files().iter().map(String::as_str);
    files.filter(|path| path.starts_with("results/") && path.ends_with(".json"))
}

fn read_report(tree: &Tree, path: &str) -> Result<Value> {
    let text = tree.read_text(path)?.with_context(|| format!("{path} is not text"))?;
    serde_json::from_str(&text).with_context(|| format!("{path} is not JSON"))
}

/// Generates the documents; none without results.
fn documents(tree: &Tree) -> Result<Vec<(String, String)>> {
    let results = Results::read(tree)?;
    if results.runs.is_empty() {
        return Ok(Vec::new());
    }
    let readme = tree.read_text(README)?.context("README.md is not text")?;
    let (before, rest) =
        readme.split_once(BEGIN).with_context(|| format!("README.md has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("README.md has no line {END}"))?;
    let readme = format!("{before}{BEGIN}{}{END}{after}", results.quoted());
    Ok(vec![(PERFORMANCE.to_owned(), results.performance()), (README.to_owned(), readme)])
}

/// Finds times and rates in README outside its generated figures.
fn written_by_hand(readme: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut is_generated = false;
    for (place, line) in readme.split_inclusive('\n').enumerate() {
        is_generated = (is_generated || line == BEGIN) && line != END;
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_figure = |pair: &[&str]| {
            let unit = pair[1].trim_end_matches([',', '.', ';', ')', '|']);
            pair[0].trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit())
                && ["ns", "us", "M/s"].contains(&unit)
        };
        if !is_generated && words.windows(2).any(is_figure) {
            problems.push(Problem::at(
                README,
                place + 1,
                "a figure written by hand: add its row to QUOTED in xtask/src/figures.rs, or link docs/performance.md",
            ));
        }
    }
    problems
}

impl Results {
    fn read(tree: &Tree) -> Result<Results> {
        let mut runs = Vec::new();
        for path in reports(tree) {
            let report = read_report(tree, path)?;
            if report["effort"] == "full" {
                runs.push(
                    Run::of(path, &report).with_context(|| format!("{path} is not a report of lab bench"))?,
                );
            }
        }
        runs.sort_by(|a, b| (&b.date, &b.file).cmp(&(&a.date, &a.file)));
        Ok(Results { runs })
    }

    /// A row in its newest run, on any kind of host.
    fn newest(&self, name: &str) -> Option<&RunRow> {
        self.runs.iter().find_map(|run| run.row(name))
    }

    /// Part of the work that the limit or the goal of a row leaves out, according to the row's newest run.
    fn limit_excludes(&self, name: &str) -> Option<&str> {
        self.newest(name)?.limit_excludes.as_deref()
    }

    /// Kinds of host; that of the newest run comes first.
    fn hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !hosts.contains(&run.host.as_str()) {
                hosts.push(&run.host);
            }
        }
        hosts
    }

    fn figure(&self, host: &str, name: &str) -> Option<Figure> {
        let limit_name = &self.newest(name)?.limit_name;
        let runs = self.runs.iter().filter(|run| run.host == host);
        let rows = runs.filter_map(|run| Some((run, run.row(name)?)));
        let all: Vec<(&Run, &RunRow)> = rows.filter(|(_, row)| row.limit_name == *limit_name).collect();
        let quiet: Vec<_> = all.iter().copied().filter(|(run, _)| !run.is_noisy()).collect();
        let is_noisy = quiet.is_empty();
        let eligible = if is_noisy { all } else { quiet };
        let group = |wanted: &str| -> Vec<_> {
            eligible.iter().copied().filter(|(run, _)| run.commit == wanted).collect()
        };
        // The runs are sorted, so the first is the newest.
        let (newest, _) = *eligible.first()?;
        let mut groups = eligible.iter().map(|(run, _)| group(&run.commit));
        let runs = groups.find(|runs| runs.len() >= RUNS_MIN).unwrap_or_else(|| group(&newest.commit));
        let (run, row) = runs[0];
        let of = |what: &dyn Fn(&RunRow) -> Option<f64>| {
            median(runs.iter().filter_map(|(_, row)| what(row)).collect())
        };
        let values = || runs.iter().map(|(_, row)| row.value);
        let judged: Vec<bool> = runs.iter().filter_map(|(_, row)| row.reached).collect();
        let reached = judged.iter().filter(|reached| **reached).count() * 2 > judged.len();
        let is_judged = !judged.is_empty() && self.limit_excludes(name).is_none();
        Some(Figure {
            unit: row.unit.clone(),
            value: of(&|row| Some(row.value))?,
            least: values().fold(f64::INFINITY, f64::min),
            greatest: values().fold(f64::NEG_INFINITY, f64::max),
            limit: row.limit_name.clone().zip(of(&|row| row.limit)),
            ratio: of(&|row| row.ratio),
            goal: row.goal.clone(),
            reached: is_judged.then_some(reached),
            runs: runs.len(),
            commit: run.commit.clone(),
            date: run.date.clone(),
            is_noisy,
        })
    }

    /// Generates the table of README. For each row it prefers a host with three runs at one commit, then one
    /// with a quiet run, then the one with the newest run.
    fn quoted(&self) -> String {
        let mut text = String::from(
            "| measurement | Tickpath | limit of the host | goal | host |\n|---|---|---|---|---|\n",
        );
        let mut used = BTreeSet::new();
        for (name, words) in QUOTED {
            let hosts = self.hosts();
            let of_hosts =
                hosts.iter().enumerate().filter_map(|(place, host)| Some((place, self.figure(host, name)?)));
            let best = of_hosts.max_by(|(_, a), (_, b)| {
                let rank = |figure: &Figure| (figure.runs >= RUNS_MIN, !figure.is_noisy, figure.date.clone());
                rank(a).cmp(&rank(b))
            });
            let Some((place, figure)) = best else { continue };
            used.insert(place);
            let line = writeln!(
                text,
                "| {words} | {}{} | {} | {} | {} |",
                number(figure.value, &figure.unit),
                mark(figure.is_noisy),
                figure.limit_text(),
                figure.goal_text(),
                place + 1
            );
            line.expect("writing to a string does not fail");
        }
        text.push('\n');
        for place in used {
            let host = self.hosts()[place];
            writeln!(text, "Host {}: {host}.", place + 1).expect("writing to a string does not fail");
        }
        let runs = self.runs.iter().filter(|run| run.is_noisy()).count();
        if runs > 0 && text.contains('†') {
            text.push_str("† The host took more than 3% of the time, and there is no other run.\n");
        }
        text
    }

    fn performance(&self) -> String {
        let mut text = String::from(INTRODUCTION);
        for (place, host) in self.hosts().into_iter().enumerate() {
            let mut lines = Vec::new();
            for name in names(self.runs.iter().filter(|run| run.host == host)) {
                if let Some(figure) = self.figure(host, name) {
                    lines.push(figure.line(name));
                }
            }
            text += &format!(
                "\n## Host {}: {host}\n\n| row | value | limit | ratio | goal | reached | runs |\n|---|---|---|---|---|---|---|\n{}",
                place + 1,
                lines.concat()
            );
        }
        text.push_str("\n## Rows without a verdict\n\nThese rows are not judged, because value, limit and goal do not cover the same work.\n\n");
        text.push_str("| row | reason |\n|---|---|\n");
        for name in names(self.runs.iter()) {
            if let Some(excludes) = self.limit_excludes(name) {
                text += &format!("| `{name}` | {excludes} |\n");
            }
        }
        text.push_str("\n## Runs\n\n| report | commit | host | steal time |\n|---|---|---|---|\n");
        for run in &self.runs {
            let host = self.hosts().iter().position(|host| *host == run.host).unwrap_or_default() + 1;
            let commit = short(&run.commit);
            let steal = format!("{:.2}%{}", run.steal_percent, mark(run.is_noisy()));
            text += &format!(
                "| [{}](../{}) | {commit} | {host} | {steal} |\n",
                run.file.trim_start_matches("results/"),
                run.file
            );
        }
        text
    }
}

/// Names of all rows of `runs`, each once, in the order of the reports, beginning with the newest.
fn names<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in runs.flat_map(|run| &run.rows) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    names
}

const INTRODUCTION: &str = "\
# Performance

This page has the measured figures of Tickpath, for everyone who compares them. `cargo xtask figures` writes it from the
reports in [results](../results); do not edit it. [lab.md](lab.md) describes each row and its *limit*, the minimum that
the host needs for the same work. To add a run, on a quiet machine:

```
tickpath lab bench --record results
cargo xtask figures
```

- Values, limits and ratios are medians over all runs of the row at one commit on one kind of host (CPU family, CPU model,
  cores). The commit is the newest one with three runs; without such a commit, it is the newest. Runs in which the row had
  another limit than in its newest run do not count. Parentheses contain the least and the greatest value. A ratio is
  measured within each round, so it can differ from value divided by limit.
- A limit is measured in the same runs as its row and in the row's unit, so it can differ from the figure of the limit's
  own row.
- The goal is that of the newest of these runs; goals for times and rates themselves are omitted, because such values
  depend on the speed of the host. *reached* says whether more than half of the runs reached the goal. Goals apply to
  figures that are not rounded. In a goal, *that of the limit again* means: the limit is measured twice in each round,
  and the second measurement divided by the first is the permitted ratio.
- Steal time is the share of CPU time that the hypervisor took. A spinning thread and the kernel both measure it; the
  larger share counts. A run with more than 3% is marked †, and is used only if that host has no other run of the row.
";

impl Run {
    fn of(path: &str, report: &Value) -> Option<Run> {
        let host = &report["host"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Run {
            file: path.to_owned(),
            date: text(&report["date"])?,
            commit: text(&report["commit"])?,
            host: host_kind(host["cpu_model"].as_str()?, host["cores_allowed"].as_array()?.len()),
            steal_percent: report["steal_percent"].as_f64()?,
            rows: report["rows"].as_array()?.iter().filter_map(RunRow::of).collect(),
        })
    }

    fn row(&self, name: &str) -> Option<&RunRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    fn is_noisy(&self) -> bool {
        self.steal_percent > STEAL_PERCENT_MAX
    }
}

impl RunRow {
    /// Parses a row; `None` if it has no value.
    fn of(row: &Value) -> Option<RunRow> {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let unit = text("unit")?;
        let is_of_speed = |goal: &str| goal.starts_with("value") && UNITS_OF_SPEED.contains(&&*unit);
        let goal = text("goal").filter(|goal| !is_of_speed(goal));
        let has_goal = goal.is_some();
        Some(RunRow {
            name: text("name")?,
            value: row["value"].as_f64()?,
            limit_name: text("limit_name"),
            limit: row["limit"].as_f64(),
            ratio: row["ratio"].as_f64(),
            reached: row["reached"].as_bool().filter(|_| has_goal),
            limit_excludes: text("limit_excludes").filter(|_| has_goal),
            unit,
            goal,
        })
    }
}

impl Figure {
    fn limit_text(&self) -> String {
        match (&self.limit, self.ratio) {
            (Some((name, limit)), Some(ratio)) => {
                format!("`{name}` {} (x {ratio:.2})", number(*limit, &self.unit))
            }
            _ => String::new(),
        }
    }

    fn goal_text(&self) -> String {
        let goal = self.goal.as_deref().unwrap_or_default();
        match self.reached {
            Some(false) => format!("{goal}, **not reached**"),
            None if !goal.is_empty() => format!("{goal}, not judged"),
            _ => goal.to_owned(),
        }
    }

    /// Formats a line of the page.
    fn line(&self, name: &str) -> String {
        let reached = match (self.reached, &self.goal) {
            (Some(true), _) => "yes",
            (Some(false), _) => "**no**",
            (None, Some(_)) => "not judged",
            (None, None) => "",
        };
        let range = match self.runs {
            1 => String::new(),
            _ => format!(" ({} - {})", digits(self.least), digits(self.greatest)),
        };
        let limit = self
            .limit
            .as_ref()
            .map_or_else(String::new, |(name, limit)| format!("`{name}` {}", digits(*limit)));
        format!(
            "| `{name}` | {}{range}{} | {limit} | {} | {} | {reached} | {} at {} |\n",
            number(self.value, &self.unit),
            mark(self.is_noisy),
            self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            self.goal.as_deref().unwrap_or_default(),
            self.runs,
            short(&self.commit),
        )
    }
}

fn mark(is_noisy: bool) -> &'static str {
    if is_noisy { " †" } else { "" }
}

fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// Names a kind of host: for `AMD EPYC, family 25 model 17 stepping 1` and two cores, it is `AMD EPYC, family
/// 25 model 17, 2 cores`.
fn host_kind(cpu_model: &str, cores: usize) -> String {
    let model = cpu_model.split(" stepping ").next().unwrap_or(cpu_model);
    format!("{model}, {cores} cores")
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

fn number(value: f64, unit: &str) -> String {
    format!("{} {unit}", digits(value))
}

/// Formats a number with three significant digits, but all digits before the point, and thousand separators.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.len() {
        len if decimals == 0 && (4..=6).contains(&len) => {
            format!("{},{}", &text[..len - 3], &text[len - 3..])
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::TempTree;

    const EPYC: &str = "AMD EPYC, family 25 model 17, 2 cores";

    /// A report whose only row is `stamp`.
    fn report(date: &str, commit: &str, steal: f64, value: f64) -> String {
        let stepping = if value > 10.0 { 1 } else { 2 };
        serde_json::json!({
            "commit": commit, "date": date, "effort": "full", "steal_percent": steal,
            "rows": [{
                "name": "stamp", "value": value, "unit": "ns", "limit_name": "tsc_read", "limit": 10.0,
                "ratio": value / 10.0, "goal": "ratio <= 1.6", "reached": value <= 16.0
            }],
            "host": {
                "cpu_model": format!("AMD EPYC, family 25 model 17 stepping {stepping}"),
                "cores_allowed": [0, 1]
            }
        })
        .to_string()
    }

    /// Returns the figure of row `stamp` on one host; each run has a date, a commit, a steal percentage and a
    /// value.
    fn figure(runs: &[(&str, &str, f64, f64)]) -> Figure {
        let texts: Vec<(String, String)> = runs
            .iter()
            .enumerate()
            .map(|(place, (date, commit, steal, value))| {
                (format!("results/{date}-x/{place}.json"), report(date, commit, *steal, *value))
            })
            .collect();
        let files: Vec<(&str, &str)> =
            texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let results = Results::read(&TempTree::new(&files).tree()).unwrap();
        assert_eq!(results.hosts(), [EPYC], "steppings are one kind of host");
        results.figure(EPYC, "stamp").unwrap()
    }

    #[test]
    fn a_figure_is_the_median_of_the_newest_commit_with_three_runs() {
        let figure = figure(&[
            ("2026-01-01", "a", 0.5, 50.0),
            ("2026-01-01", "a", 0.5, 51.0),
            ("2026-01-01", "a", 0.5, 52.0),
            ("2026-01-02", "b", 0.5, 17.0),
            ("2026-01-02", "b", 0.5, 9.0),
            ("2026-01-03", "b", 0.5, 15.0),
            ("2026-01-04", "c", 0.5, 1.0),
        ]);
        assert_eq!((figure.value, figure.runs, figure.commit.as_str()), (15.0, 3, "b"));
        assert_eq!((figure.least, figure.greatest, figure.ratio), (9.0, 17.0, Some(1.5)));
        assert_eq!((figure.reached, figure.is_noisy), (Some(true), false));
    }

    #[test]
    fn fewer_than_three_runs_quote_the_newest_commit() {
        let figure = figure(&[
            ("2026-01-01", "a", 0.5, 20.0),
            ("2026-01-02", "b", 0.5, 14.0),
            ("2026-01-02", "b", 0.5, 30.0),
        ]);
        assert_eq!((figure.value, figure.runs, figure.commit.as_str()), (22.0, 2, "b"));
        assert_eq!(figure.reached, Some(false), "one of two is no majority");
    }

    #[test]
    fn runs_with_another_limit_than_the_newest_do_not_count() {
        let old = report("2026-01-01", "a", 0.5, 11.0);
        let newest = report("2026-01-02", "b", 50.0, 13.0).replace("tsc_read", "empty_loop");
        let paths = ["results/1-x/a.json", "results/1-x/b.json", "results/1-x/c.json", "results/2-x/a.json"];
        let files: Vec<(&str, &str)> = paths.into_iter().zip([&*old, &old, &old, &newest]).collect();
        let results = Results::read(&TempTree::new(&files).tree()).unwrap();
        let figure = results.figure(EPYC, "stamp").unwrap();
        assert_eq!((figure.value, figure.runs, figure.is_noisy), (13.0, 1, true));
        let of_old = Results::read(&TempTree::new(&files[..3]).tree()).unwrap();
        assert_eq!(of_old.figure(EPYC, "stamp").unwrap().runs, 3);
    }

    #[test]
    fn a_report_has_its_commit_and_date() {
        let whole = report("2026-01-01", "0a1b", 0.5, 11.0);
        let lines = |path, report: &str| -> Vec<String> {
            let temp = TempTree::new(&[(path, report)]);
            unidentified(&temp.tree()).unwrap().iter().map(Problem::to_string).collect()
        };
        let path = "results/2026-01-01-x/a.json";
        assert_eq!(lines(path, &whole), [""; 0]);
        let text = |name: &str| {
            format!("{path}: a report without a valid `{name}`: record it with lab bench --record")
        };
        assert_eq!(lines(path, "{}"), ["commit", "date", "steal_percent"].map(text));
        assert_eq!(lines(path, &report("2026-01-01", "0a1b-dirty", 0.5, 11.0)), [text("commit")]);
    }

    #[test]
    fn noisy_runs_count_only_without_others() {
        let quiet = ("2026-01-01", "a", 3.0, 12.0);
        let noisy = ("2026-01-02", "b", 3.1, 11.0);
        let both = figure(&[quiet, noisy]);
        assert_eq!((both.value, both.is_noisy), (12.0, false));
        let alone = figure(&[noisy]);
        assert_eq!((alone.value, alone.is_noisy), (11.0, true));
        assert!(alone.line("stamp").contains('†'));
    }

    #[test]
    fn a_row_with_an_incomplete_limit_has_no_verdict() {
        let before = report("2026-01-01", "a", 0.5, 11.0);
        let newest = report("2026-01-02", "b", 50.0, 11.0)
            .replace("\"limit\":", "\"limit_excludes\":\"the ring\",\"limit\":");
        let files = [("results/2026-01-01-x/a.json", &*before), ("results/2026-01-02-x/a.json", &*newest)];
        let results = Results::read(&TempTree::new(&files).tree()).unwrap();
        let figure = results.figure(EPYC, "stamp").unwrap();
        assert_eq!(figure.reached, None);
        assert!(figure.line("stamp").contains("| not judged |"));
        assert!(results.performance().contains("| `stamp` | the ring |"));
    }

    #[test]
    fn goals_for_times_and_rates_are_left_out() {
        let goal_of = |goal: &str, unit: &str| {
            let row = serde_json::json!({
                "name": "stamp", "value": 11.0, "unit": unit, "goal": goal, "reached": true, "limit_excludes": "a part"
            });
            let row = RunRow::of(&row).unwrap();
            assert_eq!(
                (row.reached.is_some(), row.limit_excludes.is_some()),
                (row.goal.is_some(), row.goal.is_some())
            );
            row.goal
        };
        for (goal, unit) in [("value <= 25", "ns"), ("value >= 25", "M/s"), ("value - limit <= 200", "ns")] {
            assert_eq!(goal_of(goal, unit), None);
        }
        for (goal, unit) in [("value <= 25", "MB"), ("ratio <= 1.6", "ns"), ("ratio >= 0.5", "k/s")] {
            assert_eq!(goal_of(goal, unit).as_deref(), Some(goal));
        }
    }

    #[test]
    fn a_figure_that_differs_from_the_results_is_found() {
        let report = report("2026-01-01", "a", 0.5, 11.0);
        let readme = format!("# Name\n\n{BEGIN}{END}\nIt takes 5 ns.\n");
        let temp = TempTree::new(&[("results/2026-01-01-x/a.json", &report), (README, &readme)]);
        let lines = || -> Vec<(String, Option<usize>)> {
            check(&temp.tree()).unwrap().into_iter().map(|it| (it.path, it.line)).collect()
        };
        let by_hand = |line| (README.to_owned(), Some(line));
        assert_eq!(lines()[..2], [(PERFORMANCE.to_owned(), None), (README.to_owned(), None)]);
        for (path, text) in documents(&temp.tree()).unwrap() {
            temp.write(&path, &text);
        }
        let readme = temp.tree().read_text(README).unwrap().unwrap();
        assert!(
            readme.contains("| one hop stamp | 11.0 ns | `tsc_read` 10.0 ns (x 1.10) | ratio <= 1.6 | 1 |"),
            "{readme}"
        );
        let at = readme.lines().position(|line| line == "It takes 5 ns.").unwrap() + 1;
        assert_eq!(lines(), [by_hand(at)], "a figure outside the generated ones");
        temp.write(README, &readme.replace("It takes 5 ns.", "It takes no time."));
        assert_eq!(lines(), []);
        temp.write(
            README,
            &readme.replace("11.0 ns", "10.0 ns").replace("It takes 5 ns.", "It takes no time."),
        );
        assert_eq!(lines(), [(README.to_owned(), None)]);
    }

    #[test]
    fn without_results_there_is_nothing_to_check() {
        assert_eq!(check(&TempTree::new(&[(README, "# Name\n")]).tree()).unwrap(), []);
    }

    #[test]
    fn figures_have_three_digits() {
        let texts = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (9_095.2, "9,095"),
        ];
        for (value, text) in texts {
            assert_eq!(digits(value), text);
        }
    }
}
