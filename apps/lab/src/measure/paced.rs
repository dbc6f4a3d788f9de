//! Round trips with one request in flight and a pause after each answer.

use tickpath_types::Nanos;

use crate::context::Context;

/// Round trips of a full round.
const TRIPS: usize = 10_000;
/// Time between an answer and the next request. The venue publishes the order in it, and the echo, which has
/// nothing to do, gets it too.
const PAUSE: Nanos = Nanos::from_micros(20);

/// Round trips of a round, those that warm up included.
pub(super) fn trip_count(context: &Context) -> u64 {
    let trips = context.effort.count(TRIPS);
    (trips + warm_up(context)) as u64
}

fn warm_up(context: &Context) -> usize {
    context.effort.count(TRIPS) / 10
}

/// Median time of a trip in microseconds.
///
/// `trip` is given its number, from 1; what `after` does with the number is not timed.
pub(super) fn p50_us(
    context: &Context,
    mut trip: impl FnMut(u64) -> anyhow::Result<()>,
    mut after: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let warm_up = warm_up(context);
    let mut samples = Vec::with_capacity(trip_count(context) as usize);
    for number in 1..=trip_count(context) {
        let start = context.clock.ticks();
        trip(number)?;
        samples.push(context.clock.ticks() - start);
        after(number)?;
        context.spin(PAUSE);
    }
    Ok(context.quantile_ns(&mut samples[warm_up..], 0.5) / 1_000.0)
}
