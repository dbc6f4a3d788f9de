//! A venue with its journal: its order rate under each durability policy, and its recovery time.

use std::path::Path;
use std::thread;
use std::time::Duration;

use tickpath_agent::{IdleStrategy, StopSignal};
use tickpath_exchange::{
    Endpoints, JournalSettings, Password, UserSettings, Venue, VenueJournal, VenueSettings,
};
use tickpath_journal::Policy;
use tickpath_matching::{Command, EngineLimits};
use tickpath_types::{InstrumentTable, OrderEventKind, OrderRequest, OrderState, Sequence, SessionId};

use super::journal::{COMMANDS, Log};
use super::prelude::*;
use crate::support::load::workload;
use crate::support::venue::{self, NO_TRACERS, RunningVenue, USER, instruments};

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_two_cores(
        &[
            row("journal_async_rate", "k/s").note(
                "orders that a venue with a journal under policy async accepts from one client over loopback \
                 TCP, 4,096 of them in flight; its threads give their core away when there is nothing to do",
            ),
            row("journal_group_rate", "k/s")
                .note("the same under policy group, on the disk of the temporary folder")
                .limit("journal_async_rate")
                .goal(Goal::RatioAtLeast(0.5)),
        ],
        open_rates,
    ),
    on_one_core(
        &[row("journal_restart", "ms").note(
            "a venue built from the journal of the matching row's load with its snapshots, the newest of \
                 them as old as it can be, until it can be connected to",
        )],
        open_restart,
    ),
];

/// Number of orders in a full round under each policy.
const ORDERS: usize = 200_000;
/// Maximum number of unanswered orders.
const IN_FLIGHT: u64 = 4_096;
/// Number of orders that the client sends in one write.
const ORDERS_PER_WRITE: u64 = 32;
/// Sleep of a client that waits for answers. It frees the core for the journal's thread, as if the client
/// were on another machine.
const PAUSE: Duration = Duration::from_micros(20);
/// Length of the journal in snapshot intervals. In a full round, an interval has the default length of a
/// million commands.
const SNAPSHOTS: usize = 5;

fn open_rates(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let mut round = 0;
    each_round(lab, move |context| {
        in_turn::<_, 2>(&mut round, |place| rate(context, [Policy::Async, Policy::Group][place]))
    })
}

/// Returns the rate at which a venue accepts orders, in thousands per second.
fn rate(context: &Context, policy: Policy) -> anyhow::Result<f64> {
    let (folder, instruments) = (tempfile::tempdir()?, instruments(1));
    let count = context.effort.count(ORDERS) as u64;
    let journal = JournalSettings { snapshot_every: 0, ..JournalSettings::new(folder.path(), policy) };
    let settings = VenueSettings {
        journal: Some(journal),
        retained_responses: IN_FLIGHT as usize,
        ..venue::settings(instruments.clone(), count as u32)?
    };
    let Venue { agents, endpoints, view, journal, .. } = Venue::build(&settings, context.clock, NO_TRACERS)?;
    let _journal = journal.map(VenueJournal::start).transpose()?;
    // Idle threads yield, so that the thread that writes to the disk gets a core.
    let idle = IdleStrategy::Yield;
    let rate = venue::run_with_venue(context, idle, agents, |stop| {
        flood(context, endpoints, instruments, stop, count)
    })?;
    venue::check_final_state(&view, count)?;
    Ok(rate)
}

/// Sends `count` orders, at most [`IN_FLIGHT`] of them unanswered; returns the rate in thousands per second.
fn flood(
    context: &Context,
    endpoints: Endpoints,
    instruments: InstrumentTable,
    stop: &StopSignal,
    count: u64,
) -> anyhow::Result<f64> {
    let clock = context.clock;
    let mut entry =
        venue::log_in(endpoints.order_entry, USER, instruments, &mut RunningVenue { clock, stop })?;
    let start = clock.ticks();
    let (mut sent, mut accepted) = (0, 0);
    while accepted < count {
        let batch = (IN_FLIGHT - (sent - accepted)).min(count - sent).min(ORDERS_PER_WRITE);
        for number in sent + 1..=sent + batch {
            entry.queue(&OrderRequest::Enter(venue::order(number as u32)))?;
        }
        sent += batch;
        entry.flush(clock.now())?;
        accepted += wait_for(stop, || {
            // Number of acceptances, and of other answers.
            let mut answers = [0, 0];
            entry.poll(
                clock.now(),
                &mut answers,
                |_| (),
                |answers, it| {
                    let is_other =
                        !matches!(it.kind, OrderEventKind::Accepted { state: OrderState::Live, .. });
                    answers[usize::from(is_other)] += 1;
                },
            )?;
            let [new, others] = answers;
            ensure!(others == 0, "{others} of the orders were not accepted");
            let is_full = sent - accepted == IN_FLIGHT || sent == count;
            let continues = new > 0 || !is_full;
            if !continues {
                thread::sleep(PAUSE);
            }
            Ok(continues.then_some(new))
        })?;
    }
    let elapsed = clock.ticks_to_nanos(clock.ticks() - start);
    entry.logout(clock.now());
    Ok(count as f64 * 1e6 / elapsed.0 as f64)
}

fn open_restart(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let context = &lab.context;
    // Session 0 belongs to the venue, so the load's sessions are shifted by one.
    let mut load = workload(context, COMMANDS);
    let sessions = load.limits.max_sessions + 1;
    let count = context.effort.count(COMMANDS);
    let every = count / SNAPSHOTS;
    let of_user = |command: Command| Command { session: SessionId(command.session.0 + 1), ..command };
    // End one command before the next snapshot is due, so that recovery replays the most commands.
    let commands = load.opening.drain(..).chain(load.commands.drain(..)).map(of_user).take(count - 1);
    let folder = tempfile::tempdir()?;
    let settings = VenueSettings {
        users: (1..sessions)
            .map(|user| UserSettings::new(format!("{USER}{user}"), Password::plain(USER)))
            .collect(),
        limits: EngineLimits { max_sessions: sessions, ..load.limits },
        journal: Some(JournalSettings {
            snapshot_every: every as u64,
            ..JournalSettings::new(folder.path(), Policy::Async)
        }),
        ..venue::settings(InstrumentTable::new(&load.instruments), 0)?
    };
    write_log(context, &settings, folder.path(), commands)?;
    let (last, snapshot) = (Sequence(count as u64 - 1), Sequence((count - every) as u64));
    each_round(lab, move |context| {
        let _folder = &folder;
        let start = context.clock.ticks();
        let venue = Venue::build(&settings, context.clock, NO_TRACERS)?;
        let elapsed = context.clock.ticks_to_nanos(context.clock.ticks() - start);
        let recovery = venue.journal.context("the venue has a journal")?.recovery;
        ensure!(
            recovery.last == last && recovery.snapshot == Some(snapshot),
            "the venue recovered another state: {recovery}"
        );
        Ok([elapsed.0 as f64 / 1e6])
    })
}

/// Writes the journal of a venue that executed these commands, with its snapshots.
pub(super) fn write_log(
    context: &Context,
    settings: &VenueSettings,
    folder: &Path,
    commands: impl Iterator<Item = Command>,
) -> anyhow::Result<()> {
    // Building the venue writes its first snapshot, which holds the venue's definition.
    drop(Venue::build(settings, context.clock, NO_TRACERS)?);
    let mut log = Log::open(folder, Policy::Async)?;
    for command in commands {
        log.append(|out| command.encode(out))?;
    }
    log.wait_until_durable()?;
    drop(log);
    let mut journal =
        Venue::build(settings, context.clock, NO_TRACERS)?.journal.context("the venue has a journal")?;
    while journal.follow()? > 0 {}
    Ok(())
}
