//! The run: interleaved rounds of the measurements that were asked for.

use std::ffi::OsString;
use std::thread;

use anyhow::{Context as _, anyhow, ensure};
use tickpath_agent::{Host, Jitter, StopSignal, TscClock, measure_jitter, pin_current_thread};
use tickpath_config::{tell, tell_part};
use tickpath_types::Nanos;

use crate::context::{Context, Effort};
use crate::days::DayView;
use crate::host::{HostView, sum};
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
            stop: StopSignal::new(),
        }
    }
}

/// Measures on this host.
///
/// Runs on a thread of its own, pinned to a core, and spins on a second core where a row needs one; give it
/// a quiet machine. Every answer is checked, so a run that ends well did the work that it timed.
///
/// # Errors
/// A filter names no row; a socket or a thread cannot be had; an answer was wrong; the run was stopped.
pub fn bench(options: &BenchOptions) -> anyhow::Result<BenchReport> {
    let wanted = rows::choose(&options.filter, options.external_rows)?;
    let run = thread::Builder::new().name("lab".to_owned());
    thread::scope(|scope| {
        let handle = run.spawn_scoped(scope, || Run::new(options, &wanted)?.report())?;
        handle.join().map_err(|_| anyhow!("the measuring thread panicked"))?
    })
}

/// A measurement that is to be made, with what it keeps over the rounds.
struct Open {
    measurement: &'static Measurement,
    round: Round,
}

struct Run<'a> {
    lab: Lab<'a>,
    host: Host,
    rows: Vec<Row>,
    jitter: Jitter,
}

impl<'a> Run<'a> {
    fn new(options: &'a BenchOptions, wanted: &[&RowSpec]) -> anyhow::Result<Run<'a>> {
        let host = Host::describe();
        let context = Context::new(TscClock::shared(), options.effort, &host.cores_allowed);
        pin_current_thread(context.near).map_err(|error| anyhow!(error))?;
        let rows = wanted.iter().map(|spec| spec.row()).collect();
        Ok(Run { lab: Lab::new(context, options), host, rows, jitter: Jitter::default() })
    }

    fn report(mut self) -> anyhow::Result<BenchReport> {
        let mut open = self.open()?;
        let rounds = self.lab.options.rounds.max(1);
        for round in 1..=rounds {
            self.progress(|| tell_part(format_args!("lab bench: round {round} of {rounds}:")));
            self.watch_jitter();
            let measured = self.measure(&mut open);
            // What ended it gets a line of its own.
            self.progress(|| tell(""));
            measured?;
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
        };
        Ok(BenchReport { rows: self.rows, days, host, rounds, effort: context.effort })
    }

    /// Takes one round of every measurement.
    fn measure(&mut self, open: &mut [Open]) -> anyhow::Result<()> {
        for Open { measurement, round } in open {
            self.ensure_wanted()?;
            self.progress(|| tell_part(format_args!(" {}", measurement.rows.join(" "))));
            let samples = round().with_context(|| measurement.rows.join(", "))?;
            self.keep(&samples);
        }
        Ok(())
    }

    /// Prepares the measurements that give a row that is wanted, and says of the others why there is none.
    fn open(&mut self) -> anyhow::Result<Vec<Open>> {
        let mut open = Vec::new();
        for measurement in MEASUREMENTS {
            self.ensure_wanted()?;
            let gives = |row: &Row| measurement.rows.contains(&row.name.as_str());
            if !self.rows.iter().any(gives) {
                continue;
            }
            let prepared = match self.lab.context.far {
                None if measurement.needs_two_cores => {
                    Prepared::Missing("needs two cores, and this process may use one".to_owned())
                }
                _ => (measurement.open)(&self.lab).with_context(|| measurement.rows.join(", "))?,
            };
            match prepared {
                Prepared::Ready(round) => open.push(Open { measurement, round }),
                Prepared::Missing(why) => {
                    let rows = self.rows.iter_mut().filter(|row| gives(row));
                    rows.for_each(|row| row.note = format!("not measured: {why}"));
                }
            }
        }
        Ok(open)
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
