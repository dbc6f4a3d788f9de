//! The matching engine alone in an open loop: commands arrive at a fixed rate, whether or not it is ready.

use arrayvec::ArrayVec;
use tickpath_book::FastBooks;
use tickpath_matching::workload::Workload;
use tickpath_matching::{Command, Engine, LOOK_AHEAD_LEN, Owner};

use super::matching::{COMMANDS, RING, Rings, check};
use super::prelude::*;
use crate::support::load::workload;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("empty_loop", "ns").note(
            "an open loop at 1 M commands/s that takes each command of the matching row's load at its \
             intended time and does nothing with it: from the intended time to the end, p50",
        ),
        row("empty_loop_p99", "ns").note("the same, p99"),
        row("empty_loop_p999", "ns").note("the same, p99.9"),
        row("matching_open_loop", "ns")
            .note(
                "the same loop matching each command, every event pushed to a ring that is emptied when time \
                 is left; commands that are due together are taken together by both loops, up to the 32 that \
                 the venue's matcher takes; in turns of 10 ms with the empty loop; p50",
            )
            .limit("empty_loop")
            .reference("exchange-core p50 500 ns on idle metal"),
        row("matching_open_loop_p99", "ns")
            .note(
                "the same, p99; where the host takes about 1% of the time, as host_jitter says, the quantile \
                 lies on the edge of what the host took, and differs much from round to round",
            )
            .limit("empty_loop_p99")
            .goal(Goal::RatioAtMost(1.2))
            .reference("exchange-core p99 4 us on idle metal"),
        row("matching_open_loop_p999", "ns")
            .note("the same, p99.9: what the host takes is in it, and in the empty loop's")
            .limit("empty_loop_p999")
            .goal(Goal::RatioAtMost(1.2))
            .reference("exchange-core p99.9 22 us on idle metal"),
    ],
    open,
)];

/// Interval between commands: a million commands a second.
const INTERVAL: Nanos = Nanos::from_micros(1);
/// Number of commands after which the empty loop and the matching loop alternate, so that the host's noise
/// affects both.
const CHUNK_LEN: usize = 10_000;
/// Number of batches after which the event rings are drained even if a command is due, so that none fills.
const BATCHES_MAX: u32 = 4;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let workload = workload(&lab.context, COMMANDS);
    let opened: Engine<FastBooks<Owner>> = workload.opened();
    each_round(lab, move |context| round(context, &workload, opened.clone()))
}

fn round(
    context: &Context,
    workload: &Workload,
    mut engine: Engine<FastBooks<Owner>>,
) -> anyhow::Result<[f64; 6]> {
    let mut rings = Rings::new(RING);
    let [mut empty, mut matching] = [(); 2].map(|()| Vec::with_capacity(workload.commands.len()));
    for commands in workload.commands.chunks(CHUNK_LEN) {
        run_chunk(context, commands, &mut empty, &mut EmptyWork);
        let mut matcher = Matching { engine: &mut engine, rings: &mut rings };
        run_chunk(context, commands, &mut matching, &mut matcher);
    }
    check(workload, &engine, &rings)?;
    let quantiles = |ticks: &mut [u64]| [0.5, 0.99, 0.999].map(|wanted| context.quantile_ns(ticks, wanted));
    let ([e50, e99, e999], [m50, m99, m999]) = (quantiles(&mut empty), quantiles(&mut matching));
    Ok([e50, e99, e999, m50, m99, m999])
}

/// Work on each command of the loop; the default methods do nothing.
trait Work {
    /// Receives all commands that are due, before they are executed.
    fn look_ahead(&mut self, commands: &[Command]) {
        black_box(commands);
    }

    /// Executes one command.
    fn execute(&mut self, command: &Command) {
        black_box(command);
    }

    /// Does other work when no command is due, and at the latest after [`BATCHES_MAX`] batches.
    fn on_idle(&mut self) {}
}

struct EmptyWork;

impl Work for EmptyWork {}

/// Executes the commands as the venue's matcher does.
struct Matching<'a> {
    engine: &'a mut Engine<FastBooks<Owner>>,
    rings: &'a mut Rings,
}

impl Work for Matching<'_> {
    #[inline(always)]
    fn look_ahead(&mut self, commands: &[Command]) {
        if commands.len() > 1 {
            self.engine.look_ahead(commands);
        }
    }

    #[inline(always)]
    fn execute(&mut self, command: &Command) {
        self.engine.apply(command, self.rings);
    }

    /// Drains the event rings.
    fn on_idle(&mut self) {
        self.rings.drain();
    }
}

/// Executes each command at its intended time, or as soon as those before it are done. Adds the ticks from
/// a command's intended time to its end to `ticks`. Executes commands that are due together in one batch,
/// up to the matcher's batch size.
fn run_chunk(context: &Context, commands: &[Command], ticks: &mut Vec<u64>, work: &mut impl Work) {
    let interval = context.clock.nanos_to_ticks(INTERVAL);
    let mut due: ArrayVec<Command, LOOK_AHEAD_LEN> = ArrayVec::new();
    let mut intended = context.clock.ticks() + interval;
    let (mut waiting, mut batches) = (commands, 0);
    while let Some(next) = waiting.first() {
        // Load the command into the cache, as in a venue, where another core has just written it to a ring.
        black_box(*next);
        let mut now = context.clock.ticks();
        if now < intended || batches == BATCHES_MAX {
            work.on_idle();
            batches = 0;
        }
        while now < intended {
            now = context.clock.ticks();
        }
        let count = 1 + (now - intended) / interval;
        let (taken, rest) = waiting.split_at(waiting.len().min(LOOK_AHEAD_LEN).min(count as usize));
        due.clear();
        due.extend(taken.iter().copied());
        work.look_ahead(&due);
        for command in &due {
            work.execute(command);
            ticks.push(context.clock.ticks().saturating_sub(intended));
            intended += interval;
        }
        waiting = rest;
        batches += 1;
    }
    work.on_idle();
}
