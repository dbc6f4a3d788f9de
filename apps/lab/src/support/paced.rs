//! Round trips with one request in flight and a pause after each answer.

use tickpath_types::Nanos;

use crate::context::Context;

/// Time between an answer and the next request. A venue publishes the order in this time. An echo has
/// nothing to do then but gets the same pause.
pub(crate) const PAUSE: Nanos = Nanos::from_micros(20);

/// Returns the ticks of the `measured` round trips after the warm-up. `trip` receives its number, from 1, and
/// returns its ticks.
#[inline(always)]
pub(crate) fn trips(
    context: &Context,
    warm_up: usize,
    measured: usize,
    mut trip: impl FnMut(u64) -> anyhow::Result<u64>,
) -> anyhow::Result<Vec<u64>> {
    let mut ticks = Vec::with_capacity(warm_up + measured);
    for number in 1..=(warm_up + measured) as u64 {
        ticks.push(trip(number)?);
        context.spin(PAUSE);
    }
    Ok(ticks.split_off(warm_up))
}
