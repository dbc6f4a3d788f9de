//! Round trips to another core: a bare cache line, and a message over two rings.

use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_lockfree::{CachePadded, spsc};

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_two_cores(
        &[row("cacheline_rtt", "ns").note("a bare cache line to the other core and another one back, p50")],
        |lab| each_round(lab, |context| Ok([cache_line(context)?])),
    ),
    on_two_cores(
        &[row("spsc_rtt", "ns")
            .note("a 56-byte message over an SPSC ring to the other core and back over another, p50")
            .limit("cacheline_rtt")
            .goal(Goal::RatioAtMost(1.4))
            .reference("rtrb 170 ns, Aeron IPC 140 ns")],
        |lab| each_round(lab, |context| Ok([spsc(context)?])),
    ),
];

/// Message of 56 bytes: with its sequence number it fills a 64-byte slot of the ring.
type Message = [u64; 7];

/// Number of round trips timed together: the resolution of the clock is too coarse for a single one.
const GROUP: u64 = 8;
/// Number of groups in a full round.
const GROUPS: usize = 40_000;
/// Slots of each ring.
const CAPACITY: usize = 1_024;

/// Measures round trips of a bare cache line to the other core and back; returns the p50 in nanoseconds.
pub(super) fn cache_line(context: &Context) -> anyhow::Result<f64> {
    let [ping, pong] = [0, 0].map(|zero| CachePadded::new(AtomicU64::new(zero)));
    let has = |line: &AtomicU64, number| Ok((line.load(Ordering::Acquire) == number).then_some(()));
    context.run_on_two_cores(
        |stop| {
            (1..).try_for_each(|number| {
                wait_for(stop, || has(&ping, number))?;
                pong.store(number, Ordering::Release);
                Ok(())
            })
        },
        |stop| {
            p50_of_trips(context, |number| {
                ping.store(number, Ordering::Release);
                wait_for(stop, || has(&pong, number))
            })
        },
    )
}

fn spsc(context: &Context) -> anyhow::Result<f64> {
    let (mut there_in, mut there_out) = spsc::channel::<Message>(CAPACITY);
    let (mut back_in, mut back_out) = spsc::channel::<Message>(CAPACITY);
    context.run_on_two_cores(
        move |stop| {
            loop {
                let message = wait_for(stop, || Ok(there_out.try_pop()))?;
                back_in.try_push(message).ok().context("the ring back is full")?;
            }
        },
        |stop| {
            p50_of_trips(context, |number| {
                let message = std::array::from_fn(|word| number + word as u64);
                there_in.try_push(message).ok().context("the ring there is full")?;
                let answer = wait_for(stop, || Ok(back_out.try_pop()))?;
                ensure!(answer == message, "message {number} came back changed");
                Ok(())
            })
        },
    )
}

/// Returns the time per trip in nanoseconds, as the median over groups of trips; trips are numbered from 1.
fn p50_of_trips(context: &Context, mut trip: impl FnMut(u64) -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let groups = context.effort.count(GROUPS);
    let mut samples = Vec::with_capacity(groups);
    let mut number = 0;
    for group in 0..groups + groups / 4 {
        let ticks = context.timed(|| {
            (0..GROUP).try_for_each(|_| {
                number += 1;
                trip(number)
            })
        })?;
        // The first fifth of all groups is the warm-up.
        if group >= groups / 4 {
            samples.push(ticks);
        }
    }
    Ok(context.quantile_ns(&mut samples, 0.5) / GROUP as f64)
}
