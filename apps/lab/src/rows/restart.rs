//! Start of a venue from journals of three lengths, with and without a recent snapshot.

use std::fs;
use std::path::Path;

use tickpath_book::FastBooks;
use tickpath_exchange::{JournalSettings, Password, UserSettings, Venue, VenueSettings};
use tickpath_journal::Policy;
use tickpath_matching::workload::Workload;
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, Owner};
use tickpath_types::{CancelReason, InstrumentTable, Nanos, OrderRequest, Sequence, SessionId, UserRefNum};

use super::journal::IgnoredEvents;
use super::journaled_venue::write_log;
use super::prelude::*;
use crate::support::load::workload;
use crate::support::venue::{self, NO_TRACERS, USER};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("restart_500k", "ms").note(
            "a venue built from a journal of 500 k commands without a snapshot, in the page cache, until it can be \
             connected to; the matching row's load, repeated",
        ),
        row("restart_5m", "ms").note("the same from 5 M commands"),
        row("restart_20m", "ms").note("the same from 20 M commands"),
        row("restart_500k_snapshot", "ms")
            .note("as restart_500k, with a snapshot that covers all commands but the last 100 k")
            .limit("restart_500k"),
        row("restart_5m_snapshot", "ms").note("as restart_5m, with such a snapshot").limit("restart_5m"),
        row("restart_20m_snapshot", "ms").note("as restart_20m, with such a snapshot").limit("restart_20m"),
    ],
    open,
)];

/// Lengths of the journals in a full round, in commands.
const LENGTHS: [usize; 3] = [500_000, 5_000_000, 20_000_000];
/// Number of commands after the snapshot in a full round.
const TAIL: usize = 100_000;
/// Number of commands of the load, which a longer journal repeats.
const LOAD: usize = 500_000;
/// Interval between the times of two commands.
const INTERVAL_NS: u64 = 40;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let context = &lab.context;
    let load = Load::new(workload(context, LOAD));
    let tail = context.effort.count(TAIL);
    let mut stored = Vec::with_capacity(2 * LENGTHS.len());
    for has_snapshot in [false, true] {
        for len in LENGTHS {
            stored.push(Stored::write(
                context,
                &load,
                context.effort.count(len),
                has_snapshot.then_some(tail),
            )?);
        }
    }
    let mut round = 0;
    each_round(lab, move |context| {
        let starts = in_turn::<_, 6>(&mut round, |place| stored[place].start(context))?;
        for (replayed, restored) in starts.iter().zip(&starts[LENGTHS.len()..]) {
            ensure!(
                replayed.state_hash == restored.state_hash,
                "the state from the snapshot differs from that of the whole log"
            );
        }
        let mut stored = stored.iter();
        Ok(starts.map(|start| {
            let bytes = stored.next().map_or(0, |stored| stored.bytes);
            Sample::with_note(start.ms, format!("{} commands, {bytes} bytes of files", start.commands))
        }))
    })
}

/// The load and the last UserRefNum of each of its sessions.
struct Load {
    workload: Workload,
    last_user_refs: Vec<u32>,
}

impl Load {
    fn new(workload: Workload) -> Load {
        let mut last_user_refs = vec![0; usize::from(workload.limits.max_sessions)];
        for command in workload.opening.iter().chain(&workload.commands) {
            if let CommandKind::Order(OrderRequest::Enter(order)) = command.kind {
                last_user_refs[usize::from(command.session.0)] = order.user_ref.0;
            }
        }
        Load { workload, last_user_refs }
    }

    /// Returns `count` commands: the load, repeated. Each repetition first cancels all orders.
    fn commands(&self, count: usize) -> impl Iterator<Item = Command> {
        let cancel = |session| Command {
            sequence: Sequence(0),
            session: SessionId(session),
            ts: Nanos::ZERO,
            kind: CommandKind::CancelAll { reason: CancelReason::System },
        };
        let sessions = self.workload.limits.max_sessions;
        let repetition = move |number: u32| {
            let is_first = number == 0;
            let cancels = (0..sessions).map(cancel).filter(move |_| !is_first);
            let commands = self.workload.opening.iter().chain(&self.workload.commands).copied();
            let commands =
                commands.filter(move |command| is_first || matches!(command.kind, CommandKind::Order(_)));
            cancels.chain(commands.map(move |command| self.shifted(command, number)))
        };
        (0..).flat_map(repetition).zip(1..).take(count).map(|(command, sequence)| Command {
            sequence: Sequence(sequence),
            // Session 0 belongs to the venue.
            session: SessionId(command.session.0 + 1),
            ts: Nanos(sequence * INTERVAL_NS),
            ..command
        })
    }

    /// Returns a command of repetition `number`, whose UserRefNums follow those of the one before.
    fn shifted(&self, command: Command, number: u32) -> Command {
        let shift = number * self.last_user_refs[usize::from(command.session.0)];
        let kind = match command.kind {
            CommandKind::Order(OrderRequest::Enter(mut order)) => {
                order.user_ref = UserRefNum(order.user_ref.0 + shift);
                CommandKind::Order(OrderRequest::Enter(order))
            }
            CommandKind::Order(OrderRequest::Cancel(mut cancel)) => {
                cancel.user_ref = UserRefNum(cancel.user_ref.0 + shift);
                CommandKind::Order(OrderRequest::Cancel(cancel))
            }
            other => other,
        };
        Command { kind, ..command }
    }
}

/// A journal, and the settings of its venue.
struct Stored {
    _folder: tempfile::TempDir,
    settings: VenueSettings,
    commands: u64,
    snapshot: Option<Sequence>,
    bytes: u64,
}

/// Result of a start.
#[derive(Clone, Copy, Default)]
struct Start {
    ms: f64,
    commands: u64,
    state_hash: u64,
}

impl Stored {
    /// Writes the journal of a venue that executed `count` commands; with `tail`, also a snapshot that many
    /// commands before its end.
    fn write(context: &Context, load: &Load, count: usize, tail: Option<usize>) -> anyhow::Result<Stored> {
        let folder = tempfile::tempdir()?;
        let sessions = load.workload.limits.max_sessions;
        let snapshot = tail.map(|tail| Sequence((count - tail) as u64));
        let journal = JournalSettings {
            snapshot_every: snapshot.map_or(0, |snapshot| snapshot.0),
            ..JournalSettings::new(folder.path(), Policy::Async)
        };
        let settings = VenueSettings {
            users: (1..=sessions)
                .map(|user| UserSettings::new(format!("{USER}{user}"), Password::plain(USER)))
                .collect(),
            limits: EngineLimits { max_sessions: sessions + 1, ..load.workload.limits },
            journal: Some(journal),
            ..venue::settings(InstrumentTable::new(&load.workload.instruments), 0)?
        };
        let mut engine: Engine<FastBooks<Owner>> = Engine::new(&load.workload.instruments, settings.limits)?;
        let commands = load.commands(count).inspect(|command| engine.apply(command, &mut IgnoredEvents));
        write_log(context, &settings, folder.path(), commands)?;
        let counters = engine.counters();
        ensure!(
            counters.rejected + counters.ignored + counters.duplicates == 0,
            "some commands of the journal have no effect: {counters:?}"
        );
        let bytes = folder_bytes(folder.path())?;
        Ok(Stored { _folder: folder, settings, commands: count as u64, snapshot, bytes })
    }

    /// Builds the venue from its journal.
    fn start(&self, context: &Context) -> anyhow::Result<Start> {
        let start = context.clock.ticks();
        let venue = Venue::build(&self.settings, context.clock, NO_TRACERS)?;
        let elapsed = context.clock.ticks_to_nanos(context.clock.ticks() - start);
        let recovery = venue.journal.context("the venue has a journal")?.recovery;
        let covered = recovery.snapshot.unwrap_or_default();
        let is_right = recovery.last.0 == self.commands
            && covered == self.snapshot.unwrap_or_default()
            && recovery.replayed == self.commands - covered.0;
        ensure!(is_right, "the venue recovered another state: {recovery}");
        Ok(Start { ms: elapsed.0 as f64 / 1e6, commands: self.commands, state_hash: recovery.state_hash })
    }
}

/// Returns the length of all files in a folder, in bytes.
fn folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tickpath_matching::workload::WorkloadConfig;

    use super::*;

    #[test]
    fn repeated_commands_are_all_executed() {
        let config =
            WorkloadConfig { open_order_count: 200, command_count: 1_000, ..WorkloadConfig::default() };
        let load = Load::new(Workload::generate(&config));
        let limits = EngineLimits { max_sessions: 17, ..load.workload.limits };
        let mut engine: Engine<FastBooks<Owner>> = Engine::new(&load.workload.instruments, limits).unwrap();
        let mut executions = Vec::new();
        for (command, number) in load.commands(3 * 1_208 + 2 * 16).zip(1..) {
            assert_eq!(command.sequence, Sequence(number));
            engine.apply(&command, &mut IgnoredEvents);
            if number == 1_208 || number == 1_208 + 16 + 1_200 {
                executions.push(engine.counters().executions);
            }
        }
        let counters = engine.counters();
        assert_eq!((counters.rejected, counters.ignored, counters.duplicates), (0, 0, 0));
        assert_eq!(executions[1], 2 * executions[0], "a repetition trades as the load");
    }
}
