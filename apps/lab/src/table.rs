//! A report as a text table.

use std::fmt;

use crate::context::Effort;
use crate::report::BenchReport;
use crate::row::{Goal, Row, RowSpec};

/// Maximum length in characters of the text lines above and below the table.
const TEXT_WIDTH: usize = 100;
const COLUMNS: usize = 8;
const HEADINGS: [&str; COLUMNS] = ["row", "value", "limit", "unit", "ratio", "goal", "reached", "spread"];
/// Indexes of the columns of numbers, which are right-aligned.
const NUMBERS: [usize; 4] = [1, 2, 4, 7];
/// Explanation of the columns.
const LEGEND: &str = "Values and limits are medians over the rounds. ratio: value / limit of the same round, the median. goal: x1.5 is 1.5 times \
     the limit, control is the greatest ratio of the limit to itself, others are values. spread: greatest \
     less least round, in % of the value.";

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", wrapped_text(&verdict(self)))?;
        let rows: Vec<[String; COLUMNS]> = self.rows.iter().map(cells).collect();
        write!(f, "{}", text_table(HEADINGS, &rows, &NUMBERS))?;
        writeln!(f, "\n{}\n", wrapped_text(LEGEND))?;
        let names = self.rows.iter().map(|row| row.spec.name.len());
        let indent = names.max().unwrap_or(0).max(HEADINGS[0].len()) + 2;
        let described_rows = self.rows.iter().map(|row| (row.spec.name, row.description()));
        let mut notes = described_rows.filter(|(_, text)| !text.is_empty());
        notes.try_for_each(|(name, text)| described(f, name, &text, indent))?;
        if !self.days.is_empty() {
            writeln!(f, "\nstandard days")?;
            self.days.iter().try_for_each(|day| described(f, &day.name, &day.to_string(), indent))?;
        }
        writeln!(f)?;
        writeln!(f, "{}", wrapped_text(&conditions(self)))?;
        write!(f, "{}", self.host.host)
    }
}

/// Returns the summary: failed rows, reached goals, and the processor time that the host took.
fn verdict(report: &BenchReport) -> String {
    let names = |has: fn(&Row) -> bool| {
        let names = report.rows.iter().filter(|row| has(row)).map(|row| row.spec.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let count = |has: fn(&Row) -> bool| report.rows.iter().filter(|row| has(row)).count();
    let failed = names(|row| row.failure.is_some());
    let missed = names(|row| row.failure.is_none() && row.reached() == Some(false));
    let reached = count(|row| row.reached() == Some(true));
    let judged = count(|row| row.reached().is_some());
    let answers = match failed.is_empty() {
        true => "PASS: every answer is right".to_owned(),
        false => format!("FAIL: wrong answer or failed measurement: {failed}"),
    };
    let not = if missed.is_empty() { String::new() } else { format!(", not {missed}") };
    let goals = format!("{reached} of {judged} rows with a goal reach it{not}");
    format!("{answers}; {goals}. The host took {:.1}% of the time.", report.host.steal_percent())
}

fn conditions(report: &BenchReport) -> String {
    let host = &report.host;
    let cores = match host.far_core {
        Some(far) => format!("pinned to cores {} and {far}", host.near_core),
        None => format!("pinned to core {}, the only one", host.near_core),
    };
    let effort = match report.effort {
        Effort::Full => "",
        Effort::Quick => {
            "QUICK: a tenth of the work in each round, and tenths of the standard days; a first look and not \
                 figures to quote. "
        }
        Effort::Smoke => "SMOKE: just enough to see that it works. ",
    };
    format!(
        "{effort}Commit {}, {}; {} interleaved rounds. Threads were {cores} and spun while they waited. Time is that of the {}; a \
             thread that only spun saw, {}.",
        report.commit.as_deref().unwrap_or("not known"),
        report.date(),
        report.rounds,
        host.clock,
        host.jitter
    )
}

/// Returns a table with a line for the headings and one for each row. Columns of `numbers` are right-aligned.
pub(crate) fn text_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
    numbers: &[usize],
) -> String {
    let headings = headings.map(str::to_owned);
    let lines = || std::iter::once(&headings).chain(rows);
    let widths: [usize; N] =
        std::array::from_fn(|column| lines().map(|line| line[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for line in lines() {
        let padded = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if numbers.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Wraps a text into lines of at most 100 characters.
pub(crate) fn wrapped_text(text: &str) -> String {
    wrapped(text, TEXT_WIDTH).join("\n")
}

/// Writes a name and, to the right of it, a wrapped description.
fn described(f: &mut fmt::Formatter<'_>, name: &str, text: &str, indent: usize) -> fmt::Result {
    let text = wrapped(text, TEXT_WIDTH - indent).join(&format!("\n{:indent$}", ""));
    writeln!(f, "{name:<indent$}{text}")
}

/// Wraps a text into lines of at most `width` characters; a longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl Row {
    /// Returns the failure or the note; the part of the work that the limit or the goal leaves out; and the
    /// spread of the control samples, if any.
    pub(crate) fn full_note(&self) -> String {
        let mut note = match &self.failure {
            Some(failure) => format!("FAILED: {failure}"),
            None => self.note.clone(),
        };
        if let Some(excludes) = self.spec.limit_excludes {
            note += &format!("; not judged: {excludes}");
        }
        if let Some([least, greatest]) = self.control_spread() {
            note += &format!("; the limit again came to {least:.2} to {greatest:.2} times the limit");
        }
        note
    }

    /// Returns the full note, the name of the limit's row, and the published reference figures.
    fn description(&self) -> String {
        let limit = self.spec.limit.map(|row| format!("limit: {row}"));
        let reference = Some(self.spec.reference).filter(|text| !text.is_empty());
        let reference = reference.map(|text| format!("elsewhere: {text}"));
        let parts = [Some(self.full_note()).filter(|note| !note.is_empty()), limit, reference];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Returns a line with the row's value so far and its ratio to the limit.
    pub(crate) fn progress_line(&self) -> String {
        let RowSpec { name, unit, .. } = self.spec;
        match (self.value(), self.ratio()) {
            (Some(value), Some(ratio)) => {
                let limit = self.spec.limit.unwrap_or_default();
                format!("{name} {} {unit}, {limit} x {ratio:.2}", format_value(value))
            }
            (Some(value), None) => format!("{name} {} {unit}", format_value(value)),
            (None, _) => format!("{name}: {}", self.full_note()),
        }
    }
}

fn cells(row: &Row) -> [String; COLUMNS] {
    let dash = || "-".to_owned();
    let goal = row.spec.goal.map(|goal| match goal {
        Goal::RatioAtMost(bound) => format!("<= x{bound}"),
        Goal::RatioAtLeast(bound) => format!(">= x{bound}"),
        Goal::RatioWithinControl => "<= control".to_owned(),
        Goal::ValueAtMost(bound) => format!("<= {bound}"),
    });
    let reached = match row.reached() {
        _ if row.failure.is_some() => "FAILED",
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    };
    let spread = row.spread().zip(row.value()).filter(|(_, value)| *value != 0.0);
    let spread =
        spread.map(|([least, greatest], value)| format!("{:.0}%", 100.0 * (greatest - least) / value));
    [
        row.spec.name.to_owned(),
        row.value().map_or_else(dash, format_value),
        row.limit().map_or_else(dash, format_value),
        row.spec.unit.to_owned(),
        row.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}")),
        goal.unwrap_or_else(dash),
        reached.to_owned(),
        spread.unwrap_or_else(dash),
    ]
}

/// Formats a number without decimals from 100 on; with one, two or three decimals below 100, 10 or 1.
pub(crate) fn format_value(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::row;

    #[test]
    fn values_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1234"),
        ] {
            assert_eq!(format_value(value), text);
        }
    }

    #[test]
    fn text_is_wrapped_at_its_width_and_not_before() {
        assert_eq!(wrapped("one two three  four", 7), ["one two", "three", "four"]);
        assert_eq!(wrapped("", 7), [""; 0]);
    }

    #[test]
    fn a_row_has_its_text_in_the_table() {
        let row = Row {
            values: vec![15.0, 14.0, 16.0],
            limits: vec![10.0, 10.0, 10.0],
            ..Row::of(
                row("stamp", "ns").limit("tsc_read").goal(Goal::RatioAtMost(1.6)).reference("another 50 ns"),
            )
        };
        let expected = ["stamp", "15.0", "10.0", "ns", "1.50", "<= x1.6", "yes", "13%"];
        assert_eq!(cells(&row), expected);
        assert_eq!(row.progress_line(), "stamp 15.0 ns, tsc_read x 1.50");
        assert_eq!(row.description(), "limit: tsc_read; elsewhere: another 50 ns");
        let mut failed = row;
        failed.fail("the answer was wrong".to_owned());
        let cells = cells(&failed);
        assert_eq!([&cells[1], &cells[2], &cells[6]], ["-", "-", "FAILED"]);
        assert_eq!(failed.progress_line(), "stamp: FAILED: the answer was wrong");
    }
}
