//! The outcome of a demonstration as text.

use std::fmt;

use tickpath_agent::ThreadReport;
use tickpath_capture::flow::Exclusion;
use tickpath_config::thousands;

use crate::json::format_pnl;
use crate::outcome::Outcome;
use crate::retention::JournalSummary;

/// Minimum percentage of stalled time for which the report attributes latency tails to the host.
const NOTABLE_STALL_PERCENT: f64 = 1.0;

impl Outcome {
    /// Share of the agents' busy time spent on stamps.
    #[must_use]
    pub fn stamp_share(&self) -> f64 {
        let busy: u64 = self.threads.iter().map(|thread| thread.counters.busy_ticks()).sum();
        let busy_ns = busy as f64 * 1e9 / self.ticks_per_second as f64;
        // An upper bound: every stamp counts at full cost, although most reuse a time that was already read.
        if busy_ns > 0.0 { self.report.counters.records as f64 * self.stamp_ns / busy_ns } else { 0.0 }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_verdict(f)?;
        writeln!(f, "{}", self.report)?;
        self.write_participants(f)?;
        self.write_flow(f)?;
        self.write_rates(f)?;
        self.write_threads(f)?;
        self.write_journal(f)?;
        self.write_measurement(f)?;
        self.write_endpoints(f)?;
        self.write_checks(f)
    }
}

impl Outcome {
    /// Writes the result of the checks, and on a second line the share of time taken by the host.
    fn write_verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |ok: Option<bool>| {
            let names = self.checks.iter().filter(move |check| check.ok == ok).map(|check| check.name);
            names.collect::<Vec<_>>().join(", ")
        };
        if self.holds() {
            write!(f, "PASS: {}", named(Some(true)))?;
        } else {
            let failed = self.checks.iter().filter(|check| check.ok == Some(false));
            let reasons: Vec<_> =
                failed.map(|check| format!("{}: {}", check.name, check.description)).collect();
            write!(f, "FAIL: {}", reasons.join("; "))?;
        }
        let untested = named(None);
        writeln!(f, "{}{untested}", if untested.is_empty() { "" } else { "; not exercised: " })?;
        let percent = self.stalled_percent();
        let tails = if percent < NOTABLE_STALL_PERCENT { "" } else { ": tails are the host's" };
        writeln!(f, "The host took {percent:.1}% of the time{tails}.\n")
    }

    /// Share of the time, in percent, in which the host kept a thread from running.
    fn stalled_percent(&self) -> f64 {
        let sum = |ticks: fn(&ThreadReport) -> u64| self.threads.iter().map(ticks).sum::<u64>() as f64;
        let stalled = sum(|thread| thread.counters.cycles.stalled_ticks.read());
        100.0 * stalled / sum(|thread| thread.counters.elapsed_ticks()).max(1.0)
    }

    fn write_rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let rate = |count: u64| thousands((count as f64 / seconds.max(1e-9)) as u64);
        let totals = &self.totals;
        writeln!(f, "Traffic in {seconds:.1} s")?;
        for (label, count) in [
            ("new orders of the crowd or the recording", totals.source_orders),
            ("requests of all clients, sequenced", totals.requests),
            ("executions", totals.executions),
            ("market data messages", totals.messages),
            ("packets on each line", totals.packets),
        ] {
            writeln!(f, "  {label:<42} {:>12}  {:>10}/s", thousands(count), rate(count))?;
        }
        writeln!(f)
    }

    fn write_threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Use of the threads: share of the time in duty cycles that found work")?;
        for thread in &self.threads {
            let elapsed = thread.counters.elapsed_ticks().max(1) as f64;
            write!(f, "  {:<14} {:>5.1}%  ", thread.counters.name, 100.0 * thread.counters.utilisation())?;
            for agent in &thread.counters.agents {
                write!(f, " {} {:.1}%", agent.role, 100.0 * agent.busy_ticks.read() as f64 / elapsed)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "  market data was read by {}", self.read_by)?;
        writeln!(f, "  {}", self.idle)?;
        writeln!(f)
    }

    fn write_participants(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Participants                orders       fills        volume             P&L  refused")?;
        for participant in &self.participants {
            writeln!(
                f,
                "  {:<20} {:>12} {:>11} {:>13} {:>15} {:>8}",
                participant.name,
                thousands(participant.orders),
                thousands(participant.fills),
                thousands(participant.volume),
                format_pnl(participant.pnl),
                thousands(participant.refused),
            )?;
        }
        let sum: i128 = self.participants.iter().map(|participant| participant.pnl).sum();
        writeln!(f, "  {:<20} {:>54}", "sum", format_pnl(sum))?;
        if sum != 0 {
            writeln!(f, "  the sum is not zero because open prices are rounded to 0.0001")?;
        }
        if self.missed_updates > 0 {
            writeln!(
                f,
                "  the view fell behind and missed {} market updates: open positions may be valued at older prices",
                thousands(self.missed_updates)
            )?;
        }
        writeln!(f)
    }

    fn write_flow(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(flow) = &self.flow else { return Ok(()) };
        let executions = &flow.counts.executions;
        let eligible = executions.eligible + executions.eligible_synthesised;
        writeln!(f, "The recorded flow")?;
        writeln!(f, "  {:>9} executions recorded", thousands(executions.seen))?;
        writeln!(
            f,
            "  {:>9} eligible: the resting order was at the front of the best level",
            thousands(eligible)
        )?;
        if executions.eligible_synthesised > 0 {
            writeln!(
                f,
                "  {:>9} of these are of orders that the recording never announces, entered at their place",
                thousands(executions.eligible_synthesised)
            )?;
        }
        writeln!(
            f,
            "  {:>9} of {} executions here traded with the same order, at its price and quantity",
            thousands(flow.confirmed),
            thousands(flow.expected),
        )?;
        if flow.expected > eligible {
            writeln!(
                f,
                "  {:>9} of these are further slices of iceberg orders",
                thousands(flow.expected - eligible)
            )?;
        }
        for reason in Exclusion::ALL {
            let count = executions.excluded[reason.index()];
            if count > 0 {
                writeln!(f, "  {:>9} excluded: {}", thousands(count), reason.description())?;
            }
        }
        if !flow.is_complete {
            let seconds = self.elapsed.as_secs_f64();
            writeln!(f, "  not played to its end: the market was stopped after {seconds:.1} s")?;
        }
        if let Some(damage) = &flow.damage {
            writeln!(f, "  the recording is damaged; what came before was played: {damage}")?;
        }
        writeln!(f)
    }

    fn write_journal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JournalSummary { folder, commands, delayed } = &self.journal;
        write!(
            f,
            "The journal, policy async: {} commands, {} of them waited; ",
            thousands(*commands),
            thousands(*delayed)
        )?;
        match folder {
            Some(folder) => writeln!(f, "tickpath journal verify {}", folder.display())?,
            None => writeln!(f, "in a temporary folder, removed (kept by --journal FOLDER)")?,
        }
        writeln!(f)
    }

    fn write_measurement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.report.counters;
        writeln!(f, "Cost of the measurement, and time taken by the host")?;
        writeln!(
            f,
            "  a stamp costs {:.1} ns; {} records, at most {:.1}% of the busy time; {} were dropped",
            self.stamp_ns,
            thousands(counters.records),
            100.0 * self.stamp_share(),
            thousands(counters.dropped),
        )?;
        match &self.allocations {
            Some(list) => {
                let total: u64 = list.iter().map(|(_, count)| count).sum();
                write!(f, "  allocations in duty cycles after the first second: {total}")?;
                for (role, count) in list.iter().filter(|(_, count)| *count > 0) {
                    write!(f, ", {role} {count}")?;
                }
                writeln!(f)?;
            }
            None => writeln!(f, "  allocations in duty cycles were not counted")?,
        }
        let stalls: u64 = self.threads.iter().map(|thread| thread.counters.cycles.stalls.read()).sum();
        writeln!(
            f,
            "  the host stopped an idle thread {} times for more than 10 us, {:.2}% of the time\n  before the run: {}",
            thousands(stalls),
            self.stalled_percent(),
            self.jitter,
        )?;
        writeln!(
            f,
            "  the clock is {} ns off the system's after the run ({:.2} ppm)",
            self.drift.ahead_ns, self.drift.ppm
        )?;
        let host = self.host.to_string();
        host.lines().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f)
    }

    fn write_endpoints(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Endpoints for other clients")?;
        self.endpoints.iter().try_for_each(|endpoint| writeln!(f, "  {endpoint}"))?;
        writeln!(f)
    }

    fn write_checks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Checks")?;
        for check in &self.checks {
            let verdict = match check.ok {
                Some(true) => "holds",
                Some(false) => "FAILS",
                None => "not exercised",
            };
            writeln!(f, "  {verdict:<13} {:<16} {}", check.name, check.description)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact() {
        assert_eq!(format_pnl(-12_345), "-1.2345");
        assert_eq!(format_pnl(5), "0.0005");
    }
}
