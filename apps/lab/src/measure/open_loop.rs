//! The matching engine alone, at a rate that does not ask whether it is ready.

use std::hint::black_box;

use anyhow::ensure;
use tickpath_book::FastBooks;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{Command, Engine, Owner};
use tickpath_types::Nanos;

use super::matching::Rings;
use super::{Round, Sample};
use crate::context::Context;
use crate::statistics::quantile;

/// Time from one command to the next: a million commands a second.
const INTERVAL: Nanos = Nanos::from_micros(1);
/// Commands from one change between the two loops to the next: both meet what the host does meanwhile.
const TURN: usize = 10_000;

pub(super) fn open(context: Context) -> anyhow::Result<Round> {
    let full = WorkloadConfig::default();
    let config = WorkloadConfig {
        open_order_count: context.effort.count(full.open_order_count as usize) as u32,
        command_count: context.effort.count(full.command_count),
        ..full
    };
    let workload = Workload::generate(&config);
    let opened: Engine<FastBooks<Owner>> = workload.opened();
    Ok(Box::new(move || round(&context, &workload, opened.clone())))
}

fn round(
    context: &Context,
    workload: &Workload,
    mut engine: Engine<FastBooks<Owner>>,
) -> anyhow::Result<Vec<Sample>> {
    let mut rings = Rings::new();
    let [mut empty, mut matching] = [(); 2].map(|()| Vec::with_capacity(workload.commands.len()));
    for commands in workload.commands.chunks(TURN) {
        take_turn(context, commands, &mut empty, &mut rings, |command, _| _ = black_box(command));
        take_turn(context, commands, &mut matching, &mut rings, |command, rings| {
            engine.apply(command, rings);
        });
    }
    ensure!(rings.full == 0, "{} events found their ring full", rings.full);
    ensure!(rings.event_count == workload.event_count, "the engine gave other events than its twin");
    ensure!(engine.state_hash() == workload.state_hash, "the engine ended in another state than its twin");
    let nanos = |ticks: &mut [u64], quantile_wanted| {
        context.clock.ticks_to_nanos(quantile(ticks, quantile_wanted)).0 as f64
    };
    Ok(vec![
        Sample::new("empty_loop", nanos(&mut empty, 0.5)),
        Sample::new("empty_loop_p99", nanos(&mut empty, 0.99)),
        Sample::new("empty_loop_p999", nanos(&mut empty, 0.999)),
        Sample::new("matching_open_loop", nanos(&mut matching, 0.5)),
        Sample::new("matching_open_loop_p99", nanos(&mut matching, 0.99)),
        Sample::new("matching_open_loop_p999", nanos(&mut matching, 0.999)),
    ])
}

/// Does `work` with each command at its intended time, or as soon as those before it are done; adds the ticks from the
/// intended time to the end.
fn take_turn(
    context: &Context,
    commands: &[Command],
    ticks: &mut Vec<u64>,
    rings: &mut Rings,
    mut work: impl FnMut(&Command, &mut Rings),
) {
    let interval = context.clock.nanos_to_ticks(INTERVAL);
    let mut intended = context.clock.ticks() + interval;
    for command in commands {
        // It waits in the cache, as in a ring that another core has written.
        let command = *black_box(command);
        while context.clock.ticks() < intended {}
        work(&command, rings);
        ticks.push(context.clock.ticks().saturating_sub(intended));
        // The time that is left is that of whoever takes the events.
        rings.drain();
        intended += interval;
    }
}
