//! A report as JSON with stable field names.

use serde::Serialize;
use tickpath_agent::Jitter;

use crate::days::DayView;
use crate::host::HostView;
use crate::report::BenchReport;
use crate::row::Row;

/// Declares a JSON object that describes a value: each field has a name, a type and an expression.
macro_rules! object {
    ($name:ident$(<$life:lifetime>)? of $view:ident: $of:ty { $($field:ident: $type:ty = $value:expr,)* }) => {
        #[derive(Serialize)]
        struct $name$(<$life>)? {
            $($field: $type,)*
        }

        impl$(<$life>)? $name$(<$life>)? {
            fn of($view: &$($life)? $of) -> Self {
                $name { $($field: $value,)* }
            }
        }
    };
}

object! {
    ReportJson<'a> of report: BenchReport {
        commit: Option<&'a str> = report.commit.as_deref(),
        date: String = report.date(),
        steal_percent: f64 = report.host.steal_percent(),
        effort: &'a str = report.effort.name(),
        rows: Vec<RowJson<'a>> = report.rows.iter().map(RowJson::of).collect(),
        standard_days: &'a [DayView] = &report.days,
        host: HostJson<'a> = HostJson::of(&report.host),
    }
}

object! {
    RowJson<'a> of row: Row {
        name: &'a str = row.spec.name,
        value: Option<f64> = row.value(),
        unit: &'a str = row.spec.unit,
        limit_name: Option<&'a str> = row.spec.limit,
        limit: Option<f64> = row.limit(),
        ratio: Option<f64> = row.ratio(),
        reference: &'a str = row.spec.reference,
        goal: Option<String> = row.spec.goal.map(|goal| goal.to_string()),
        reached: Option<bool> = row.reached(),
        limit_excludes: Option<&'a str> = row.spec.limit_excludes,
        failure: Option<&'a str> = row.failure.as_deref(),
        rounds: usize = row.values.len(),
        spread: Option<[f64; 2]> = row.spread(),
        note: String = row.full_note(),
    }
}

object! {
    HostJson<'a> of view: HostView {
        cpu_model: &'a str = &view.host.cpu_model,
        is_virtual: bool = view.host.is_virtual,
        cores_allowed: &'a [usize] = &view.host.cores_allowed,
        cores_used: Vec<usize> = std::iter::once(view.near_core).chain(view.far_core).collect(),
        memory_bytes: u64 = view.host.memory_bytes,
        kernel: &'a str = &view.host.kernel,
        clock: String = view.clock.to_string(),
        jitter: JitterJson = JitterJson::of(&view.jitter),
    }
}

object! {
    JitterJson of jitter: Jitter {
        elapsed_ns: u64 = jitter.elapsed.0,
        gaps_over_1us: u64 = jitter.gaps_over_1us,
        gaps_over_10us: u64 = jitter.gaps_over_10us,
        gaps_over_100us: u64 = jitter.gaps_over_100us,
        gaps_over_1ms: u64 = jitter.gaps_over_1ms,
        gap_max_ns: u64 = jitter.gap_max.0,
        lost_ns: u64 = jitter.lost.0,
        lost_percent: f64 = jitter.lost_share() * 100.0,
    }
}

impl BenchReport {
    /// Returns the report as one JSON object: the `commit` of the program, the `date`, `steal_percent`,
    /// `rows` with a value, unit, limit, ratio, goal and spread each, `standard_days` with the size of the
    /// days of market data, `host`, and `effort`: `full`, `quick` or `smoke`.
    ///
    /// Figures are numbers in the row's unit, and `null` if unavailable; `goal` is the output of
    /// [`Goal`](crate::Goal); `spread` is the minimum and maximum of the rounds.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&ReportJson::of(self)).expect("plain data with text keys can be written")
    }
}
