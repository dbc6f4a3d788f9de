//! A report as a text table.

use std::fmt;

use crate::context::Effort;
use crate::report::BenchReport;
use crate::row::{Goal, Row, RowSpec};

/// Longest line of the text below the table.
const TEXT_WIDTH: usize = 100;
const COLUMNS: usize = 10;
const HEADINGS: [&str; COLUMNS] =
    ["row", "value", "limit", "unit", "ratio", "goal", "reached", "spread", "limit's row", "reference"];
/// Columns of numbers, which are right-aligned; their unit has a separate column.
const NUMBERS: [usize; 3] = [1, 2, 4];

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<[String; COLUMNS]> =
            std::iter::once(HEADINGS.map(str::to_owned)).chain(self.rows.iter().map(cells)).collect();
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
        });
        for line in &lines {
            let padded: Vec<String> = line.iter().zip(widths).enumerate().map(padded).collect();
            writeln!(f, "{}", padded.join("  ").trim_end())?;
        }
        writeln!(f)?;
        let indent = widths[0] + 2;
        let mut notes = self.rows.iter().filter(|row| !row.note.is_empty());
        notes.try_for_each(|row| described(f, row.spec.name, &row.full_note(), indent))?;
        if !self.days.is_empty() {
            writeln!(f, "\nstandard days")?;
            self.days.iter().try_for_each(|day| described(f, &day.name, &day.to_string(), indent))?;
        }
        writeln!(f)?;
        writeln!(f, "{}", wrapped(&conditions(self), TEXT_WIDTH).join("\n"))?;
        write!(f, "{}", self.host.host)
    }
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
        "{effort}Commit {}, {}; the host took {:.1}% of the time. Values and limits are medians over {} interleaved rounds, the ratio is the median of that of value \
             and limit in each round, the spread is the least and the greatest round; threads were {cores} and \
             spun while they waited; time is that of the {}; a thread that only spun saw, {}.",
        report.commit.as_deref().unwrap_or("not known"),
        report.date(),
        host.steal_percent(),
        report.rounds,
        host.clock,
        host.jitter
    )
}

fn padded((column, (cell, width)): (usize, (&String, usize))) -> String {
    if NUMBERS.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
}

/// Writes a name, and beside it its description.
fn described(f: &mut fmt::Formatter<'_>, name: &str, text: &str, indent: usize) -> fmt::Result {
    let text = wrapped(text, TEXT_WIDTH - indent).join(&format!("\n{:indent$}", ""));
    writeln!(f, "{name:<indent$}{text}")
}

/// The words of a text in lines of at most `width` characters, where no word is longer.
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
    /// The note, the part that the limit leaves out, and the spread of the control samples where that is the
    /// goal.
    pub(crate) fn full_note(&self) -> String {
        let mut note = match &self.failure {
            Some(failure) => format!("FAILED: {failure}"),
            None => self.note.clone(),
        };
        if let Some(excludes) = self.spec.limit_excludes {
            note += &format!("; not judged: {excludes}");
        }
        if let Some([least, greatest]) = self.again_spread() {
            note += &format!("; the limit again came to {least:.2} to {greatest:.2} times the limit");
        }
        note
    }

    /// One line about the values so far.
    pub(crate) fn first_look(&self) -> String {
        let RowSpec { name, unit, .. } = self.spec;
        match (self.value(), self.ratio()) {
            (Some(value), Some(ratio)) => {
                let limit = self.spec.limit.unwrap_or_default();
                format!("{name} {} {unit}, {limit} x {ratio:.2}", figure(value))
            }
            (Some(value), None) => format!("{name} {} {unit}", figure(value)),
            (None, _) => format!("{name}: {}", self.full_note()),
        }
    }
}

fn cells(row: &Row) -> [String; COLUMNS] {
    let dash = || "-".to_owned();
    let RowSpec { name, unit, limit, goal, reference, .. } = row.spec;
    let shown = goal.map(|goal| match goal {
        Goal::RatioAtMost(bound) => format!("<= {bound} x limit"),
        Goal::RatioAtLeast(bound) => format!(">= {bound} x limit"),
        Goal::RatioWithinAgain => match row.again_spread() {
            Some([_, greatest]) => format!("<= {greatest:.2} x limit"),
            None => "<= limit again".to_owned(),
        },
        Goal::ValueAtMost(bound) => format!("<= {bound} {unit}"),
        Goal::AboveLimitAtMost(bound) => format!("<= +{bound} {unit}"),
        Goal::ValueAtLeast(bound) => format!(">= {bound} {unit}"),
    });
    let reached = match (row.reached(), goal) {
        _ if row.failure.is_some() => "FAILED",
        (Some(true), _) => "yes",
        (Some(false), _) => "NO",
        (None, Some(_)) => "not judged",
        (None, None) => "-",
    };
    let spread = row.spread().map(|[least, greatest]| format!("{} - {}", figure(least), figure(greatest)));
    let text = |text: &str| if text.is_empty() { dash() } else { text.to_owned() };
    [
        name.to_owned(),
        row.value().map_or_else(dash, figure),
        row.limit().map_or_else(dash, figure),
        unit.to_owned(),
        row.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}")),
        shown.unwrap_or_else(dash),
        reached.to_owned(),
        spread.unwrap_or_else(dash),
        text(limit.unwrap_or_default()),
        text(reference),
    ]
}

/// Formats a number with three significant digits, but all digits before the point.
fn figure(value: f64) -> String {
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
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1234"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn text_is_wrapped_at_its_width_and_not_before() {
        assert_eq!(wrapped("one two three  four", 7), ["one two", "three", "four"]);
        assert_eq!(wrapped("", 7), [""; 0]);
    }

    #[test]
    fn a_row_reads_as_a_sentence_of_the_table() {
        let row = Row {
            values: vec![15.0, 14.0, 16.0],
            limits: vec![10.0, 10.0, 10.0],
            ..Row::of(
                row("stamp", "ns").limit("tsc_read").goal(Goal::RatioAtMost(1.6)).reference("another 50 ns"),
            )
        };
        let expected = [
            "stamp",
            "15.0",
            "10.0",
            "ns",
            "1.50",
            "<= 1.6 x limit",
            "yes",
            "14.0 - 16.0",
            "tsc_read",
            "another 50 ns",
        ];
        assert_eq!(cells(&row), expected);
        assert_eq!(row.first_look(), "stamp 15.0 ns, tsc_read x 1.50");
        let mut failed = row;
        failed.fail("the answer was wrong".to_owned());
        let cells = cells(&failed);
        assert_eq!([&cells[1], &cells[2], &cells[6]], ["-", "-", "FAILED"]);
        assert_eq!(failed.first_look(), "stamp: FAILED: the answer was wrong");
    }
}
