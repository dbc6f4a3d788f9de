//! Runs the requested measurements in interleaved rounds.

use std::thread;

use anyhow::{anyhow, ensure};
use tickpath_agent::{Host, Jitter, TscClock, pin_current_thread};

use crate::context::Context;
use crate::days::DayView;
use crate::filter::select_rows;
use crate::host::{HostView, StealTime, sum};
use crate::lab::Lab;
use crate::measurement::{Measurement, Missing, Round, RowSpec, Sample};
use crate::options::BenchOptions;
use crate::report::BenchReport;
use crate::row::Row;
use crate::rows::{host_jitter, measurements};

/// Measures the requested rows on this host.
///
/// Runs on a separate thread, pinned to a core, and spins on a second core for rows that need one. Use a
/// quiet machine. The results of the measured work are checked. A row with a wrong result, or whose
/// measurement fails, has a [failure](Row::failure) in place of values; all other rows are still measured.
///
/// # Errors
/// A filter matches no row; the measuring thread cannot be started or pinned; the run was stopped.
pub fn bench(options: &BenchOptions) -> anyhow::Result<BenchReport> {
    let selected = select_rows(&options.filter, options.external_rows)?;
    let run = thread::Builder::new().name("lab".to_owned());
    thread::scope(|scope| {
        let handle = run.spawn_scoped(scope, || Run::new(options, &selected)?.report(measurements()))?;
        handle.join().map_err(|_| anyhow!("the measuring thread panicked"))?
    })
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
    fn new(options: &'a BenchOptions, selected: &[&RowSpec]) -> anyhow::Result<Run<'a>> {
        let host = Host::describe();
        let context = Context::new(TscClock::shared(), options.effort, &host.cores_allowed);
        pin_current_thread(context.near).map_err(|error| anyhow!(error))?;
        let rows = selected.iter().map(|spec| Row::of(**spec)).collect();
        let steal = StealTime::start(&host.cores_allowed);
        let started = context.clock.now().0;
        Ok(Run { lab: Lab::new(context, options), host, rows, jitter: Jitter::default(), started, steal })
    }

    fn report(
        mut self,
        measurements: impl Iterator<Item = &'static Measurement>,
    ) -> anyhow::Result<BenchReport> {
        let selected = measurements.filter(|it| self.rows.iter().any(|row| it.has_row(row.spec.name)));
        let mut plan: Vec<(_, Option<Round>)> = selected.map(|measurement| (measurement, None)).collect();
        let rounds = self.lab.options.rounds.max(1);
        for round in 1..=rounds {
            self.lab.print_progress(format_args!("round {round} of {rounds}"));
            let (jitter, sample) = host_jitter::watch(&self.lab.context);
            self.jitter = sum(self.jitter, jitter);
            self.add_sample(&host_jitter::ROW, sample);
            for (measurement, prepared) in &mut plan {
                self.ensure_not_stopped()?;
                // Prepare a measurement just before its first round, so that the first figures appear early.
                if round == 1 {
                    *prepared = self.prepare(measurement);
                }
                self.measure(measurement, prepared);
                // An interrupted measurement may fail; that is no failure of the row.
                self.ensure_not_stopped()?;
                if round == 1 {
                    self.show(measurement);
                }
            }
        }
        let days = self.lab.days().iter().map(|day| DayView::of(&self.lab, day)).collect();
        self.ensure_not_stopped()?;
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

    /// Prepares the rounds of a measurement; if that fails, the reason is written to its rows.
    fn prepare(&mut self, measurement: &'static Measurement) -> Option<Round> {
        let opened = if self.lab.context.far.is_none() && measurement.needs_two_cores {
            Err(Missing("needs two cores, and this process may use one".to_owned()).into())
        } else {
            (measurement.open)(&self.lab)
        };
        match opened.map_err(|error| error.downcast::<Missing>()) {
            Ok(round) => return Some(round),
            Err(Ok(Missing(why))) => {
                self.rows_of(measurement).for_each(|row| row.note = format!("not measured: {why}"));
            }
            Err(Err(error)) => self.fail(measurement, &error),
        }
        None
    }

    /// Runs one round of a prepared measurement.
    fn measure(&mut self, measurement: &'static Measurement, prepared: &mut Option<Round>) {
        let Some(round) = prepared else { return };
        match round() {
            Ok(samples) => {
                debug_assert!(samples.is_empty() || samples.len() == measurement.rows.len());
                measurement.rows.iter().zip(samples).for_each(|(spec, sample)| self.add_sample(spec, sample))
            }
            Err(error) => {
                self.fail(measurement, &error);
                *prepared = None;
            }
        }
    }

    fn rows_of(&mut self, measurement: &'static Measurement) -> impl Iterator<Item = &mut Row> {
        self.rows.iter_mut().filter(|row| measurement.has_row(row.spec.name))
    }

    /// Marks the rows of a measurement as failed and discards their values.
    fn fail(&mut self, measurement: &'static Measurement, error: &anyhow::Error) {
        self.rows_of(measurement).for_each(|row| row.fail(format!("{error:#}")));
    }

    /// Adds a sample, and its limit's value in the same round, to the row `spec`, if that row is requested.
    fn add_sample(&mut self, spec: &RowSpec, sample: Sample) {
        let value_of =
            |wanted: &str| self.rows.iter().find(|row| row.spec.name == wanted)?.values.last().copied();
        let limit = sample.limit.or_else(|| value_of(spec.limit?));
        let Some(row) = self.rows.iter_mut().find(|row| row.spec.name == spec.name) else { return };
        row.values.push(sample.value);
        row.limits.extend(limit);
        row.control.extend(sample.control);
        if let Some(found) = sample.note {
            row.note = format!("{}; {found}", spec.note);
        }
    }

    /// Prints the first round's values of a measurement, because the report appears only after all rounds.
    fn show(&self, measurement: &Measurement) {
        for row in self.rows.iter().filter(|row| measurement.has_row(row.spec.name)) {
            self.lab.print_progress(format_args!("{}", row.progress_line()));
        }
    }

    /// Returns an error once the run was stopped.
    fn ensure_not_stopped(&self) -> anyhow::Result<()> {
        ensure!(!self.lab.options.stop.is_stopped(), "interrupted");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;
    use crate::context::Effort;
    use crate::measurement::{on_one_core, row};

    /// One measurement that cannot be prepared, one that fails in its second round, and one that succeeds.
    const PARTLY_BROKEN: &[Measurement] = &[
        on_one_core(&[row("stamp", "ns")], |_| bail!("no counter")),
        on_one_core(&[row("matching", "M/s"), row("matching_p99", "ns")], |_| {
            let mut round = 0;
            Ok(Box::new(move || {
                round += 1;
                ensure!(round < 2, "round {round} was wrong");
                Ok(vec![1.0.into(), 2.0.into()])
            }))
        }),
        on_one_core(&[row("tsc_read", "ns")], |_| Ok(Box::new(|| Ok(vec![3.0.into()])))),
    ];

    #[test]
    fn a_failed_row_leaves_the_other_values() {
        let filter = ["stamp", "matching", "matching_p99"].map(str::to_owned).to_vec();
        let options = BenchOptions { filter, rounds: 3, effort: Effort::Smoke, ..BenchOptions::default() };
        let wanted = select_rows(&options.filter, &[]).unwrap();
        let report = Run::new(&options, &wanted).unwrap().report(PARTLY_BROKEN.iter()).unwrap();
        assert_eq!(report.failed().collect::<Vec<_>>(), ["stamp", "matching", "matching_p99"]);
        let failure = |name| report.row(name).and_then(|row| row.failure.as_deref());
        assert_eq!(failure("stamp"), Some("no counter"));
        assert_eq!(failure("matching_p99"), Some("round 2 was wrong"));
        assert_eq!(
            (report.row("matching_p99").unwrap().value(), report.row("matching_p99").unwrap().reached()),
            (None, Some(false))
        );
        assert_eq!(report.row("tsc_read").unwrap().values, [3.0, 3.0, 3.0]);
        assert!(report.to_string().contains("FAILED: round 2 was wrong"));
    }
}
