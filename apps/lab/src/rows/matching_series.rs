//! The matching engine alone with few and many open orders, with few and many instruments, and under the shape
//! of a published benchmark.

use tickpath_book::FastBooks;
use tickpath_matching::workload::{Flow, Workload, WorkloadConfig};
use tickpath_matching::{Engine, Owner};
use tickpath_reference::ReferenceBooks;

use super::matching::{Pass, RING, Rings, SLICE};
use super::prelude::*;
use crate::context::Effort;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[row("matching_exchange_core_shape", "M/s")
            .note(
                "commands matched on one core: 9 in 100 are day orders, 3 IOC orders, 6 cancels, 82 moves to \
                 another price, about 6 trade; one book, 1,000 resting orders at about 750 prices, 1,000 \
                 sessions; every event pushed to a ring; p50 of groups of 64 commands",
            )
            .reference(
                "exchange-core: 5 M/s at p50 1.5 us published, with risk checks, on 6 threads; its order book \
                 alone 12.0 M/s on a host of this kind",
            )],
        open_exchange_core_shape,
    ),
    on_one_core(
        &[
            row("matching_orders_1k", "ns").note(
                "a command of the matching row's mix, one book with 1 k open orders, every event pushed to a \
                 ring; p50 of groups of 64 commands; in turns of 10,240 commands with the cases below",
            ),
            row("matching_orders_10k", "ns")
                .note("the same with 10 k open orders")
                .limit("matching_orders_1k"),
            row("matching_orders_100k", "ns")
                .note("the same with 100 k open orders")
                .limit("matching_orders_1k"),
            row("matching_orders_1m", "ns")
                .note("the same with 1 M open orders")
                .limit("matching_orders_1k"),
        ],
        open_by_orders,
    ),
    on_one_core(
        &[
            row("matching_instruments_1", "ns").note(
                "a command of the matching row's mix, 100 k open orders in one book, every event pushed to a \
                 ring; p50 of groups of 64 commands; in turns of 10,240 commands with the cases below",
            ),
            row("matching_instruments_64", "ns")
                .note("the same, the orders in 64 books")
                .limit("matching_instruments_1"),
            row("matching_instruments_1000", "ns")
                .note("the same, the orders in 1,000 books")
                .limit("matching_instruments_1"),
            row("matching_instruments_8000", "ns")
                .note("the same, the orders in 8,000 books")
                .limit("matching_instruments_1"),
        ],
        open_by_instruments,
    ),
];

/// Number of commands of each case in a full round.
const COMMANDS: usize = 300_000;
/// Number of commands timed together: few enough that a pause of the host spoils few groups, also those of a
/// slow book.
pub(super) const GROUP: usize = 64;
/// Number of commands after which the cases alternate, so that the host's noise affects all alike. After a
/// change, the working set of the small cases is in the cache again within a slice.
pub(super) const TURN: usize = 20 * SLICE;
/// Number of commands that the reference model checks. It takes long for a level with many orders.
const CHECKED_COMMANDS: usize = 2_000;
/// Maximum number of orders of one book that the reference model checks.
const CHECKED_ORDERS: u32 = 100_000;

/// Minimum number of open orders in a smoke test.
const SMOKE_ORDERS_MIN: usize = 1_000;

/// Scales a load to the effort of a run. The number of open orders belongs to the measured shape, so only a
/// smoke test has fewer. A round has at least one slice of commands.
pub(super) fn scaled(context: &Context, full: WorkloadConfig) -> WorkloadConfig {
    WorkloadConfig {
        open_order_count: open_orders(context, full.open_order_count as usize) as u32,
        command_count: context.effort.count(full.command_count).max(SLICE),
        ..full
    }
}

/// Number of open orders of a measurement with `full` of them; a smoke test has fewer.
pub(super) fn open_orders(context: &Context, full: usize) -> usize {
    match context.effort {
        Effort::Smoke => context.effort.count(full).max(SMOKE_ORDERS_MIN).min(full),
        Effort::Quick | Effort::Full => full,
    }
}

fn open_exchange_core_shape(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let shape = WorkloadConfig {
        instrument_count: 1,
        session_count: 1_000,
        open_order_count: 1_000,
        flow: Flow::Moves,
        ..WorkloadConfig::default()
    };
    let case = Case::prepare(&scaled(&lab.context, shape))?;
    each_round(lab, move |context| {
        let [nanos] = measure(context, std::slice::from_ref(&case), 0)?;
        Ok([1_000.0 / nanos])
    })
}

fn open_by_orders(lab: &Lab<'_>) -> anyhow::Result<Round> {
    series(lab, [1_000, 10_000, 100_000, 1_000_000].map(|orders| (1, orders)))
}

fn open_by_instruments(lab: &Lab<'_>) -> anyhow::Result<Round> {
    series(lab, [1, 64, 1_000, 8_000].map(|instruments| (instruments, 100_000)))
}

/// Measures loads of these numbers of instruments and open orders.
fn series<const CASES: usize>(lab: &Lab<'_>, sizes: [(u16, u32); CASES]) -> anyhow::Result<Round> {
    let cases = sizes.map(|(instrument_count, open_order_count)| {
        let full = WorkloadConfig {
            instrument_count,
            open_order_count,
            command_count: COMMANDS,
            ..WorkloadConfig::default()
        };
        Case::prepare(&scaled(&lab.context, full))
    });
    let cases = cases.into_iter().collect::<anyhow::Result<Vec<Case>>>()?;
    let mut round = 0;
    each_round(lab, move |context| {
        round += 1;
        measure::<CASES>(context, &cases, round)
    })
}

/// A load, and an engine that it finds.
pub(super) struct Case {
    pub(super) workload: Workload,
    pub(super) opened: Engine<FastBooks<Owner>>,
}

impl Case {
    /// Generates a load, and checks its first commands with the reference model.
    pub(super) fn prepare(config: &WorkloadConfig) -> anyhow::Result<Case> {
        let mut workload = Workload::generate(config);
        let opened: Engine<FastBooks<Owner>> = workload.opened();
        if config.open_order_count / u32::from(config.instrument_count) <= CHECKED_ORDERS {
            let mut reference: Engine<ReferenceBooks<Owner>> = workload.opened();
            let (mut fast, mut events, mut expected) = (opened.clone(), Vec::new(), Vec::new());
            for command in workload.commands.iter().take(CHECKED_COMMANDS) {
                fast.apply(command, &mut events);
                reference.apply(command, &mut expected);
            }
            ensure!(
                events == expected && fast.state_hash() == reference.state_hash(),
                "the engine differs from the reference model"
            );
        }
        // The opening is as large as the load, and no longer needed.
        workload.opening = Vec::new();
        Ok(Case { workload, opened })
    }
}

/// Matches the load of each case, a turn of commands after the other, and checks the final states. Returns
/// the nanoseconds per command.
fn measure<const CASES: usize>(
    context: &Context,
    cases: &[Case],
    first: usize,
) -> anyhow::Result<[f64; CASES]> {
    let command_count = cases[0].workload.commands.len();
    let new_pass = |case: &Case| Pass::new(case.opened.clone(), Rings::new(RING), GROUP, command_count);
    let mut passes: Vec<_> = cases.iter().map(new_pass).collect();
    for (turn, from) in (0..command_count).step_by(TURN).enumerate() {
        for step in 0..CASES {
            let place = (first + turn + step) % CASES;
            let commands = &cases[place].workload.commands;
            passes[place].apply(context, &commands[from..commands.len().min(from + TURN)]);
        }
    }
    let mut nanos = [0.0; CASES];
    for ((nanos, pass), case) in nanos.iter_mut().zip(passes).zip(cases) {
        *nanos = context.quantile_ns(&mut pass.finish(&case.workload)?, 0.5) / GROUP as f64;
    }
    Ok(nanos)
}
