//! The outcome of a demonstration as JSON; `docs/json.md` lists the members.

use serde_json::{Map, Value, json};
use tickpath_timing::{Group, Row};

use crate::flow::FlowResult;
use crate::outcome::Outcome;

impl Outcome {
    /// Returns an object with `checks`, `spans`, `hops`, `functions`, `rates`, `participants`, `feed`,
    /// `threads`, `flow`, `journal`, `measurement` and `host`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = |is_included: fn(Group) -> bool| -> Map<String, Value> {
            self.report
                .rows
                .iter()
                .filter(|row| is_included(row.group))
                .map(|row| (row.name.to_owned(), row_json(row)))
                .collect()
        };
        json!({
            "checks": self.checks.iter().map(|check| {
                (check.name.to_owned(), json!({ "ok": check.ok, "exercised": check.exercised, "text": check.description }))
            }).collect::<Map<_, _>>(),
            "spans": rows(|group| group == Group::Span),
            "hops": rows(|group| group != Group::Span && group != Group::Function),
            "functions": rows(|group| group == Group::Function),
            "rates": self.rates_json(),
            "participants": self.participants.iter().map(|participant| json!({
                "name": participant.name,
                "orders": participant.orders,
                "fills": participant.fills,
                "volume": participant.volume,
                "positions": participant.positions,
                "pnl": format_pnl(participant.pnl),
                "refused": participant.refused,
            })).collect::<Vec<_>>(),
            "feed": self.feed_json(),
            "threads": self.threads_json(),
            "flow": self.flow.as_ref().map(flow_json),
            "journal": json!({
                "policy": "async",
                "folder": self.journal.folder.as_ref().map(|folder| folder.display().to_string()),
                "commands": self.journal.commands,
                "delayed": self.journal.delayed,
            }),
            "measurement": self.measurement_json(),
            "host": self.host_json(),
        })
    }

    fn rates_json(&self) -> Value {
        let seconds = self.elapsed.as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let totals = &self.totals;
        json!({
            "seconds": seconds,
            "orders_per_second": per_second(totals.source_orders),
            "requests_per_second": per_second(totals.requests),
            "commands_per_second": per_second(totals.commands),
            "messages_per_second": per_second(totals.messages),
            "packets_per_second": per_second(totals.packets),
            "executions_per_second": per_second(totals.executions),
            "requests": totals.requests,
            "commands": totals.commands,
            "responses": totals.responses,
            "messages": totals.messages,
            "packets": totals.packets,
            "executions": totals.executions,
        })
    }

    fn feed_json(&self) -> Value {
        let arbiter = &self.arbiter;
        let line = |index: usize| {
            let line = &arbiter.lines[index];
            json!({
                "packets": line.packets,
                "injected_losses": self.injected[index],
                "missed_messages": line.missed_messages,
                "first_messages": line.first_messages,
                "duplicate_messages": line.duplicate_messages,
            })
        };
        json!({
            "line_a": line(0),
            "line_b": line(1),
            "gaps_opened": arbiter.gaps_opened,
            "gaps_healed_by_line": arbiter.gaps_healed_by_line,
            "gaps_healed_by_retransmission": arbiter.gaps_healed_by_retransmission,
            "messages_lost": arbiter.messages_lost,
            "retransmitted": self.totals.retransmitted,
            "longest_gap_ns": arbiter.longest_gap.0,
        })
    }

    fn threads_json(&self) -> Value {
        let agents = |thread: &tickpath_agent::ThreadReport| -> Vec<Value> {
            let elapsed = thread.counters.elapsed_ticks().max(1) as f64;
            let share = |ticks: u64| ticks as f64 / elapsed;
            thread
                .counters
                .agents
                .iter()
                .map(|agent| json!({ "role": agent.role, "utilisation": share(agent.busy_ticks.read()) }))
                .collect()
        };
        self.threads
            .iter()
            .map(|thread| {
                json!({
                    "name": thread.counters.name,
                    "utilisation": thread.counters.utilisation(),
                    "agents": agents(thread),
                })
            })
            .collect()
    }

    fn measurement_json(&self) -> Value {
        let counters = &self.report.counters;
        json!({
            "stamp_ns": self.stamp_ns,
            "records": counters.records,
            "records_dropped": counters.dropped,
            "missed_updates": self.missed_updates,
            "share_of_busy_time": self.stamp_share(),
            "hot_allocations": self.allocations.as_ref().map(|list| list.iter().map(|(_, count)| count).sum::<u64>()),
        })
    }

    fn host_json(&self) -> Value {
        let jitter = &self.jitter;
        json!({
            "description": self.host.to_string(),
            "cores": self.host.cores_allowed.len(),
            "jitter": {
                "elapsed_ns": jitter.elapsed.0,
                "gaps_over_1us": jitter.gaps_over_1us,
                "gaps_over_10us": jitter.gaps_over_10us,
                "gaps_over_100us": jitter.gaps_over_100us,
                "gaps_over_1ms": jitter.gaps_over_1ms,
                "gap_max_ns": jitter.gap_max.0,
                "lost_share": jitter.lost_share(),
            },
            "stalls_during_run": self.threads.iter().map(|thread| thread.counters.cycles.stalls.read()).sum::<u64>(),
            "clock_drift_ppm": self.drift.ppm,
            "market_data_reader": self.read_by.to_string(),
        })
    }
}

fn row_json(row: &Row) -> Value {
    let summary = &row.summary;
    json!({
        "count": summary.count,
        "negatives": summary.negatives,
        "p50_ns": summary.p50_ns,
        "p90_ns": summary.p90_ns,
        "p99_ns": summary.p99_ns,
        "p999_ns": summary.p999_ns,
        "max_ns": summary.max_ns,
        "mean_ns": summary.mean_ns,
        "words": row.description,
    })
}

fn flow_json(flow: &FlowResult) -> Value {
    let executions = &flow.counts.executions;
    let excluded: Map<String, Value> = tickpath_capture::flow::Exclusion::ALL
        .into_iter()
        .filter(|reason| executions.excluded[reason.index()] > 0)
        .map(|reason| (format!("{reason:?}"), executions.excluded[reason.index()].into()))
        .collect();
    json!({
        "executions_seen": executions.seen,
        "eligible": executions.eligible,
        "eligible_synthesised": executions.eligible_synthesised,
        "expected": flow.expected,
        "confirmed": flow.confirmed,
        "contradicted": flow.contradicted,
        "excluded": excluded,
        "rejected": flow.rejected,
        "would_have_crossed": flow.would_have_crossed,
        "recorded_ns": flow.recorded_ns,
        "complete": flow.is_complete,
        "damage": flow.damage,
    })
}

/// Formats a profit in units of 10^-4 as an exact decimal with 4 places.
pub(crate) fn format_pnl(pnl: i128) -> String {
    let sign = if pnl < 0 { "-" } else { "" };
    let magnitude = pnl.unsigned_abs();
    format!("{sign}{}.{:04}", magnitude / 10_000, magnitude % 10_000)
}
