//! A report as JSON, with field names that stay.

use serde::Serialize;
use tickpath_agent::Jitter;

use crate::days::{DayView, Simulated};
use crate::host::HostView;
use crate::report::BenchReport;
use crate::row::Row;

#[derive(Serialize)]
struct ReportJson<'a> {
    commit: Option<&'a str>,
    date: String,
    steal_percent: f64,
    effort: &'a str,
    rows: Vec<RowJson<'a>>,
    standard_days: Vec<DayJson<'a>>,
    host: HostJson<'a>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    value: Option<f64>,
    unit: &'a str,
    limit_name: Option<&'a str>,
    limit: Option<f64>,
    ratio: Option<f64>,
    reference: &'a str,
    goal: Option<String>,
    reached: Option<bool>,
    limit_excludes: Option<&'a str>,
    failure: Option<&'a str>,
    rounds: usize,
    spread: Option<[f64; 2]>,
    note: String,
}

#[derive(Serialize)]
struct DayJson<'a> {
    name: &'a str,
    messages: u64,
    bytes: u64,
    xxh3: String,
    symbols: u32,
    live_orders_max: u32,
    levels_at_peak: u32,
    unique_references: u64,
    file: Option<String>,
    not_kept: Option<&'a str>,
    simulated: Option<SimulatedJson<'a>>,
    not_simulated: Option<&'a str>,
}

#[derive(Serialize)]
struct SimulatedJson<'a> {
    by: &'a str,
    day: &'a str,
    caches: &'a [String],
    instructions_per_message: f64,
    branch_misses_per_message: f64,
    first_level_data_misses_per_message: f64,
    last_level_data_misses_per_message: f64,
}

#[derive(Serialize)]
struct HostJson<'a> {
    cpu_model: &'a str,
    is_virtual: bool,
    cores_allowed: &'a [usize],
    cores_used: Vec<usize>,
    memory_bytes: u64,
    kernel: &'a str,
    clock: String,
    jitter: JitterJson,
}

#[derive(Serialize)]
struct JitterJson {
    elapsed_ns: u64,
    gaps_over_1us: u64,
    gaps_over_10us: u64,
    gaps_over_100us: u64,
    gaps_over_1ms: u64,
    gap_max_ns: u64,
    lost_ns: u64,
    lost_percent: f64,
}

impl BenchReport {
    /// The report as one JSON object: the `commit` of the program, the `date`, `steal_percent`, `rows` with a value, unit, limit, ratio, goal and spread each, `standard_days`
    /// with what the days of market data asked for, `host`, and `effort`: `full`, `quick` or `smoke`.
    ///
    /// Figures are numbers in the row's unit, and `null` where they could not be had; `goal` is what
    /// [`Goal`](crate::Goal) prints; `spread` is the least and the greatest value of the rounds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let report = ReportJson {
            commit: self.commit.as_deref(),
            date: self.date(),
            steal_percent: self.host.steal_percent(),
            effort: self.effort.name(),
            rows: self.rows.iter().map(RowJson::of).collect(),
            standard_days: self.days.iter().map(DayJson::of).collect(),
            host: HostJson::of(&self.host),
        };
        serde_json::to_string_pretty(&report).expect("plain data with text keys can be written")
    }
}

impl RowJson<'_> {
    fn of(row: &Row) -> RowJson<'_> {
        RowJson {
            name: &row.name,
            value: row.value(),
            unit: &row.unit,
            limit_name: row.limit_name.as_deref(),
            limit: row.limit(),
            ratio: row.ratio(),
            reference: &row.reference,
            goal: row.goal.map(|goal| goal.to_string()),
            reached: row.reached(),
            limit_excludes: row.limit_excludes,
            failure: row.failure.as_deref(),
            rounds: row.values.len(),
            spread: row.spread(),
            note: row.full_note(),
        }
    }
}

impl DayJson<'_> {
    fn of(day: &DayView) -> DayJson<'_> {
        DayJson {
            name: &day.name,
            messages: day.messages,
            bytes: day.bytes,
            xxh3: format!("{:016x}", day.xxh3),
            symbols: day.symbols,
            live_orders_max: day.live_orders_max,
            levels_at_peak: day.levels_at_peak,
            unique_references: day.unique_references,
            file: day.kept.as_ref().ok().map(|path| path.display().to_string()),
            not_kept: day.kept.as_ref().err().map(String::as_str),
            simulated: day.simulated.as_ref().ok().map(SimulatedJson::of),
            not_simulated: day.simulated.as_ref().err().map(String::as_str),
        }
    }
}

impl SimulatedJson<'_> {
    fn of(simulated: &Simulated) -> SimulatedJson<'_> {
        SimulatedJson {
            by: "callgrind",
            day: &simulated.day,
            caches: &simulated.caches,
            instructions_per_message: simulated.instructions,
            branch_misses_per_message: simulated.branch_misses,
            first_level_data_misses_per_message: simulated.first_level_misses,
            last_level_data_misses_per_message: simulated.last_level_misses,
        }
    }
}

impl HostJson<'_> {
    fn of(view: &HostView) -> HostJson<'_> {
        HostJson {
            cpu_model: &view.host.cpu_model,
            is_virtual: view.host.is_virtual,
            cores_allowed: &view.host.cores_allowed,
            cores_used: std::iter::once(view.near_core).chain(view.far_core).collect(),
            memory_bytes: view.host.memory_bytes,
            kernel: &view.host.kernel,
            clock: view.clock.to_string(),
            jitter: JitterJson::of(&view.jitter),
        }
    }
}

impl JitterJson {
    fn of(jitter: &Jitter) -> JitterJson {
        JitterJson {
            elapsed_ns: jitter.elapsed.0,
            gaps_over_1us: jitter.gaps_over_1us,
            gaps_over_10us: jitter.gaps_over_10us,
            gaps_over_100us: jitter.gaps_over_100us,
            gaps_over_1ms: jitter.gaps_over_1ms,
            gap_max_ns: jitter.gap_max.0,
            lost_ns: jitter.lost.0,
            lost_percent: jitter.lost_share() * 100.0,
        }
    }
}
