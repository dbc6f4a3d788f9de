//! Host jitter: the share of time that a spinning thread loses, measured in every run.

use tickpath_agent::{Jitter, measure_jitter};
use tickpath_types::Nanos;

use crate::context::Context;
use crate::measurement::{RowSpec, Sample, row};

pub(crate) const ROW: RowSpec = row("host_jitter", "% lost")
    .note("time that a thread spinning on the clock lost in gaps above 1 us; it is in every tail below");

/// Duration of the jitter measurement in a full round, in microseconds.
const MICROS: usize = 200_000;

/// Measures the host's jitter for one round.
pub(crate) fn watch(context: &Context) -> (Jitter, Sample) {
    let jitter = measure_jitter(&context.clock, Nanos::from_micros(context.effort.count(MICROS) as u64));
    (jitter, (jitter.lost_share() * 100.0).into())
}
