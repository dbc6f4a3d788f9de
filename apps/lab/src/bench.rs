//! The run: interleaved rounds of the measurements that were asked for.

use std::ffi::OsString;
use std::thread;

use anyhow::{anyhow, ensure};
use tickpath_agent::{Host, Jitter, StopSignal, TscClock, measure_jitter, pin_current_thread};
use tickpath_config::tell;
use tickpath_types::Nanos;

use crate::context::{Context, Effort};
use crate::days::DayView;
use crate::host::{HostView, StealTime, sum};
use crate::lab::Lab;
use crate::measure::{MEASUREMENTS, Measurement, Prepared, Round, Sample};
use crate::report::BenchReport;
use crate::row::Row;
use crate::rows::{self, RowSpec};

/// Rounds unless stated otherwise.
pub const ROUNDS_DEFAULT: usize = 5;
/// Time that the host's jitter is watched in a full round.
const JITTER_MICROS: usize = 200_000;

/// What to measure and how thoroughly.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Rows to measure, by name; each brings its limit with it. Empty means all.
    pub filter: Vec<String>,
    /// Names that a filter may have besides: rows that the caller measures and pushes.
    pub external_rows: &'static [&'static str],
    /// Rounds, at least one.
    pub rounds: usize,
    /// How much is done in each round.
    pub effort: Effort,
    /// Whether to say on standard error what is being measured.
    pub show_progress: bool,
    /// The command line, program first, by which [`run_counted`](crate::run_counted) is called, for rows whose
    /// instructions are counted; without it these have no value.
    pub counting_command: Option<Vec<OsString>>,
    /// Commit that the program was built from, as the report states it; none where that is not known.
    pub commit: Option<String>,
    /// Raised, it ends the run with an error before the next measurement, or while a standard day is made.
    pub stop: StopSignal,
}

impl Default for BenchOptions {
    fn default() -> Self {
        BenchOptions {
            filter: Vec::new(),
            external_rows: &[],
            rounds: ROUNDS_DEFAULT,
            effort: Effort::default(),
            show_progress: false,
            counting_command: None,
            commit: None,
            stop: StopSignal::new(),
        }
    }
}

/// Measures on this host.
///
/// Runs on a thread of its own, pinned to a core, and spins on a second core where a row needs one; give it
/// a quiet machine. Every answer is checked; a row whose answer was wrong, or that cannot be measured, has a
/// [failure](Row::failure) in place of values, and the others are measured all the same.
///
/// # Errors
/// A filter names no row; the measuring thread cannot be started or pinned; the run was stopped.
pub fn bench(options: &BenchOptions) -> anyhow::Result<BenchReport> {
    let wanted = rows::choose(&options.filter, options.external_rows)?;
    let run = thread::Builder::new().name("lab".to_owned());
    thread::scope(|scope| {
        let handle = run.spawn_scoped(scope, || Run::new(options, &wanted)?.report(MEASUREMENTS))?;
        handle.join().map_err(|_| anyhow!("the measuring thread panicked"))?
    })
}

/// A measurement that is to be made.
struct Planned {
    measurement: &'static Measurement,
    state: State,
}

enum State {
    /// Prepared in the first round, just before it is measured, so that the first figures come at once.
    Unprepared,
    Ready(Round),
    /// Not on this host, or failed: its rows say why.
    Ended,
}

struct Run<'a> {
    lab: Lab<'a>,
    host: Host,
    rows: Vec<Row>,
    jitter: Jitter,
    started: u64,
    steal: StealTime,
}

impl<'a> Run<'a> {
    fn new(options: &'a BenchOptions, wanted: &[&RowSpec]) -> anyhow::Result<Run<'a>> {
        let host = Host::describe();
        let context = Context::new(TscClock::shared(), options.effort, &host.cores_allowed);
        pin_current_thread(context.near).map_err(|error| anyhow!(error))?;
        let rows = wanted.iter().map(|spec| spec.row()).collect();
        let steal = StealTime::start(&host.cores_allowed);
        let started = context.clock.now().0;
        Ok(Run { lab: Lab::new(context, options), host, rows, jitter: Jitter::default(), started, steal })
    }

    fn report(mut self, measurements: &'static [Measurement]) -> anyhow::Result<BenchReport> {
        let gives = |measurement: &Measurement, row: &Row| measurement.rows.contains(&row.name.as_str());
        let wanted = measurements.iter().filter(|it| self.rows.iter().any(|row| gives(it, row)));
        let mut plan: Vec<Planned> =
            wanted.map(|measurement| Planned { measurement, state: State::Unprepared }).collect();
        let rounds = self.lab.options.rounds.max(1);
        for round in 1..=rounds {
            self.progress(|| tell(format_args!("lab bench: round {round} of {rounds}")));
            self.watch_jitter();
            for planned in &mut plan {
                self.ensure_wanted()?;
                self.measure(planned);
                // An interrupted measurement may fail; that is not the row's failure.
                self.ensure_wanted()?;
                if round == 1 {
                    self.show(planned.measurement.rows);
                }
            }
        }
        let days = self.lab.days().iter().map(|day| DayView::of(&self.lab, day)).collect();
        self.ensure_wanted()?;
        let context = &self.lab.context;
        let host = HostView {
            host: self.host,
            clock: context.clock.source(),
            near_core: context.near,
            far_core: context.far,
            jitter: self.jitter,
            kernel_steal: self.steal.share(),
        };
        Ok(BenchReport {
            rows: self.rows,
            days,
            host,
            rounds,
            effort: context.effort,
            commit: self.lab.options.commit.clone(),
            started_ns: self.started,
        })
    }

    /// Takes one round of a measurement, prepared if need be.
    fn measure(&mut self, Planned { measurement, state }: &mut Planned) {
        if matches!(state, State::Unprepared) {
            *state = match self.prepare(measurement) {
                Ok(Prepared::Ready(round)) => State::Ready(round),
                Ok(Prepared::Missing(why)) => {
                    self.rows_of(measurement).for_each(|row| row.note = format!("not measured: {why}"));
                    State::Ended
                }
                Err(error) => {
                    self.fail(measurement, &error);
                    State::Ended
                }
            };
        }
        let State::Ready(round) = state else { return };
        match round() {
            Ok(samples) => self.keep(&samples),
            Err(error) => {
                self.fail(measurement, &error);
                *state = State::Ended;
            }
        }
    }

    fn prepare(&self, measurement: &Measurement) -> anyhow::Result<Prepared> {
        if self.lab.context.far.is_none() && measurement.needs_two_cores {
            return Ok(Prepared::Missing("needs two cores, and this process may use one".to_owned()));
        }
        (measurement.open)(&self.lab)
    }

    fn rows_of(&mut self, measurement: &'static Measurement) -> impl Iterator<Item = &mut Row> {
        self.rows.iter_mut().filter(|row| measurement.rows.contains(&row.name.as_str()))
    }

    /// Takes the rows of a measurement that failed out of the report's figures.
    fn fail(&mut self, measurement: &'static Measurement, error: &anyhow::Error) {
        self.rows_of(measurement).for_each(|row| row.fail(format!("{error:#}")));
    }

    fn watch_jitter(&mut self) {
        let time = Nanos::from_micros(self.lab.context.effort.count(JITTER_MICROS) as u64);
        let jitter = measure_jitter(&self.lab.context.clock, time);
        self.jitter = sum(self.jitter, jitter);
        self.keep(&[Sample::new("host_jitter", jitter.lost_share() * 100.0)]);
    }

    /// Adds the samples of a measurement to their rows, each beside its limit, which was measured before it.
    fn keep(&mut self, samples: &[Sample]) {
        for sample in samples {
            let Some(place) = self.rows.iter().position(|row| row.name == sample.row) else { continue };
            let limit_name = self.rows[place].limit_name.as_deref();
            let latest = self.rows.iter().find(|row| Some(row.name.as_str()) == limit_name);
            let limit = sample.limit.or_else(|| latest?.values.last().copied());
            self.rows[place].values.push(sample.value);
            self.rows[place].limits.extend(limit);
            self.rows[place].again.extend(sample.again);
            if let (Some(found), Some(spec)) = (&sample.note, rows::spec(sample.row)) {
                self.rows[place].note = format!("{}; {found}", spec.note);
            }
        }
    }

    /// Says what the rows came to in the first round, before the report has the medians.
    fn show(&self, names: &[&str]) {
        let shown = self.rows.iter().filter(|row| names.contains(&row.name.as_str()));
        self.progress(|| shown.for_each(|row| tell(format_args!("lab bench: {}", row.first_look()))));
    }

    fn progress(&self, say: impl FnOnce()) {
        if self.lab.options.show_progress {
            say();
        }
    }

    /// An error once the run was told to stop.
    fn ensure_wanted(&self) -> anyhow::Result<()> {
        ensure!(!self.lab.options.stop.is_stopped(), "interrupted");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    /// One that cannot be prepared, one that is wrong in its second round, and one that is well.
    const PARTLY_BROKEN: &[Measurement] = &[
        Measurement { rows: &["stamp"], needs_two_cores: false, open: |_| bail!("no counter") },
        Measurement {
            rows: &["matching", "matching_p99"],
            needs_two_cores: false,
            open: |_| {
                let mut round = 0;
                Ok(Prepared::Ready(Box::new(move || {
                    round += 1;
                    ensure!(round < 2, "round {round} was wrong");
                    Ok(vec![Sample::new("matching", 1.0), Sample::new("matching_p99", 2.0)])
                })))
            },
        },
        Measurement {
            rows: &["tsc_read"],
            needs_two_cores: false,
            open: |_| Ok(Prepared::Ready(Box::new(|| Ok(vec![Sample::new("tsc_read", 3.0)])))),
        },
    ];

    #[test]
    fn a_row_that_fails_leaves_the_others_their_figures() {
        let filter = ["stamp", "matching", "matching_p99"].map(str::to_owned).to_vec();
        let options = BenchOptions { filter, rounds: 3, effort: Effort::Smoke, ..BenchOptions::default() };
        let wanted = rows::choose(&options.filter, &[]).unwrap();
        let report = Run::new(&options, &wanted).unwrap().report(PARTLY_BROKEN).unwrap();
        assert_eq!(report.failed().collect::<Vec<_>>(), ["stamp", "matching", "matching_p99"]);
        let failure = |name| report.row(name).and_then(|row| row.failure.as_deref());
        assert_eq!(failure("stamp"), Some("no counter"));
        assert_eq!(failure("matching_p99"), Some("round 2 was wrong"));
        assert_eq!(
            (report.row("matching").unwrap().value(), report.row("matching").unwrap().reached()),
            (None, Some(false))
        );
        assert_eq!(report.row("tsc_read").unwrap().values, [3.0, 3.0, 3.0]);
        assert!(report.to_string().contains("FAILED: round 2 was wrong"));
    }
}
