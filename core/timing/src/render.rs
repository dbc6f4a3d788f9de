//! The report as text, for readers who do not know the hop codes.

use std::fmt;

use crate::{EntryCounts, Group, ReconciliationCheck, Report, Row, Span, TimelineStep, TradeTimeline};

/// Width of the bar column in a trade's timeline, in characters.
const BAR_WIDTH: usize = 38;
/// Explanation of the columns, printed above the tables.
const LEGEND: &str = "\
    count: messages with both stamps; for functions, sampled calls. p50: half of the messages were\n\
    faster; p99: 99 of 100. Times are in microseconds. T7_T8 is the time from hop T7 to hop T8";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(timeline) = &self.median_trade {
            writeln!(f, "Trade nearest to the median\n{timeline}")?;
        }
        let counters = &self.counters;
        writeln!(
            f,
            "{} market data messages, {} commands and {} order requests in {}.",
            counters.markets.finalised(),
            counters.commands.finalised(),
            counters.tokens.finalised(),
            self.elapsed
        )?;
        writeln!(f, "{LEGEND}")?;
        for group in Group::ALL {
            self.fmt_group(f, group)?;
        }
        self.fmt_negatives(f)?;
        writeln!(f)?;
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        self.fmt_counters(f)
    }
}

impl Report {
    fn fmt_group(&self, f: &mut fmt::Formatter<'_>, group: Group) -> fmt::Result {
        let mut rows = self.rows.iter().filter(|row| row.group == group).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let headings = ["count", "p50 us", "p99 us", "p99.9 us", "max us"].map(str::to_owned);
        writeln!(f, "\n{}", columns(group.title(), headings).trim_start())?;
        rows.try_for_each(|row| writeln!(f, "{row}"))
    }

    /// Lists the rows with negative times, and their cause: a reader's call returned before the writer's
    /// call.
    fn fmt_negatives(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = self.rows.iter().filter(|row| row.summary.negatives > 0).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        write!(f, "\nNegative times, where a reader returned before the writer's call did:")?;
        rows.try_for_each(|row| write!(f, " {} {}", row.name, row.summary.negatives))?;
        writeln!(f)
    }

    fn fmt_counters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        writeln!(
            f,
            "Stamps: {} records read, {} dropped by full rings, {} late, {} duplicate,\n  \
             {} unrecognised, {} of an unknown observer.",
            counters.records,
            counters.dropped,
            counters.late,
            counters.duplicates,
            counters.unrecognised,
            counters.unknown_observer,
        )?;
        let spaces = [
            ("market data messages", counters.markets),
            ("commands", counters.commands),
            ("order requests", counters.tokens),
        ];
        write!(f, "Complete:")?;
        for (name, counts) in spaces {
            let EntryCounts { complete, displaced, .. } = counts;
            write!(f, "\n  {complete} of {} {name} ({displaced} displaced)", counts.finalised())?;
        }
        writeln!(f, "\n  {} parents lost", counters.orphans)?;
        let mut missing = counters.missing().peekable();
        if missing.peek().is_some() {
            write!(f, "Stamps missing:")?;
            for (hop, count) in missing {
                write!(f, " {hop} {count}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        let times = [summary.p50_ns, summary.p99_ns, summary.p999_ns, summary.max_ns];
        let [p50, p99, p999, max] = times.map(micros);
        f.write_str(&columns(&label(self), [summary.count.to_string(), p50, p99, p999, max]))
    }
}

/// Label of a row: its name and description, or for a span its name, first hop and last hop.
fn label(row: &Row) -> String {
    let span = Span::ALL.iter().find(|span| span.name() == row.name);
    match (row.group, span) {
        (Group::Span, Some(span)) => format!("{:<28}{} to {}", row.name, span.from(), span.to()),
        (Group::Function, _) => format!("{:<16}{}", row.name, row.description),
        _ => format!("{:<9}{}", row.name, row.description),
    }
}

/// A line of a table, at most 100 characters.
fn columns(label: &str, [count, p50, p99, p999, max]: [String; 5]) -> String {
    format!("  {label:<47}{count:>9}{p50:>10}{p99:>10}{p999:>11}{max:>11}")
}

impl fmt::Display for TradeTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  session {}, order {}", self.token.session(), self.token.user_ref())?;
        if let Some(trigger) = self.trigger {
            write!(f, ", triggered by market data message {}", trigger.sequence())?;
        }
        if let Some(command) = self.command {
            write!(f, ", command {}", command.0)?;
        }
        writeln!(f, ": {} us in all", micros(self.total_ns))?;
        for step in &self.steps {
            let bar = bar(step, self.total_ns);
            writeln!(
                f,
                "  {:<9} {:<38}{:>9} |{bar}|",
                step.pair.name(),
                step.pair.describe(),
                micros(step.duration_ns)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ReconciliationCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReconciliationCheck { span, messages, mismatches, hops_ticks, span_ticks } = self;
        let name = span.name();
        match (messages, self.holds()) {
            (0, _) => write!(f, "{name}: no order request with every hop to check the sum of hops on."),
            (_, true) => write!(
                f,
                "{name}: hops add up to the span for each of {messages} order requests ({span_ticks} ticks)."
            ),
            (_, false) => write!(
                f,
                "{name}: HOPS DO NOT ADD UP for {mismatches} of {messages} order requests ({hops_ticks} ticks of hops, {span_ticks} of spans)."
            ),
        }
    }
}

/// Formats nanoseconds as microseconds with three decimals, so that the points in a column are aligned.
fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000)
}

/// Bar of a step in a trade's timeline, to the scale of the whole trade; at least one character wide.
fn bar(step: &TimelineStep, total_ns: i64) -> String {
    let column = |ns: i64| {
        let share = ns.clamp(0, total_ns) as f64 / total_ns.max(1) as f64;
        (share * BAR_WIDTH as f64).round() as usize
    };
    let start = column(step.start_ns).min(BAR_WIDTH - 1);
    let end = column(step.start_ns.saturating_add(step.duration_ns)).clamp(start + 1, BAR_WIDTH);
    format!("{}{}{}", " ".repeat(start), "#".repeat(end - start), " ".repeat(BAR_WIDTH - end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pair, Span};

    #[test]
    fn bars_are_to_scale_and_never_empty_or_outside() {
        let bar_of = |start_ns, duration_ns| {
            let bar = bar(&TimelineStep { pair: Pair::T7T8, start_ns, duration_ns }, 4_000);
            assert_eq!(bar.len(), BAR_WIDTH);
            (bar.find('#').expect("a mark"), bar.matches('#').count())
        };
        assert_eq!(bar_of(0, 1_000), (0, 10));
        assert_eq!(bar_of(1_000, 3_000), (10, 28));
        assert_eq!(bar_of(2_000, 1), (19, 1));
        assert_eq!(bar_of(4_000, 0), (37, 1));
        assert_eq!(bar_of(2_000, -1_500), (19, 1));
        assert_eq!(bar_of(-500, 100_000), (0, 38));
    }

    #[test]
    fn a_failed_check_is_reported() {
        let mut check = ReconciliationCheck::new(Span::TickToTrade);
        assert!(check.to_string().contains("no order request with every hop"));
        check.check([Some(3)], Some(3));
        assert!(check.to_string().contains("for each of 1 order requests (3 ticks)"));
        check.check([Some(3)], Some(4));
        assert!(check.to_string().contains("HOPS DO NOT ADD UP for 1 of 2 order requests"));
        assert_eq!([-12_345, 85, 60_000_000_000].map(micros), ["-12.345", "0.085", "60000000.000"]);
    }
}
