//! The venue's own commands: its day, by schedule and by whoever runs it.

use tickpath_faults::{Fault, is_planted};
use tickpath_matching::CommandKind;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::{Nanos, Sequence, SessionId, SystemEventCode};
use tickpath_venue::day::{Phase, Which};
use tickpath_venue::{Arrival, Sequencer, append_stage};

use super::OrderServer;

/// How far the venue's own commands have come.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The last one that the matcher applied and that is safe.
    last: Sequence,
    /// The last one that had no effect.
    last_ignored: Sequence,
}

/// Commands of the venue that were given to the sequencer together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// The last command before them.
    before: Sequence,
    /// The last of them, or one of the venue's that came later, once all of them are numbered.
    last: Option<Sequence>,
}

impl Given {
    /// Those that were just added.
    pub(super) fn now(sequencer: &Sequencer) -> Given {
        Given { before: Sequence(sequencer.command_count()), last: None }
    }

    /// Once all of them are applied and safe: whether one had no effect.
    pub(super) fn outcome(&mut self, sequencer: &Sequencer, applied: &Applied) -> Option<bool> {
        if self.last.is_none() && sequencer.is_drained() {
            // Not the last command of all: one that a client sent is never said to be applied.
            self.last = Some(match is_planted(Fault::DayWaitsForClients) {
                true => Sequence(sequencer.command_count()),
                false => sequencer.last_internal(),
            });
        }
        let last = self.last?;
        (applied.last >= last).then_some(applied.last_ignored > self.before)
    }
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Begins what is due. The next step waits until the commands of the one before are applied: what it does depends
    /// on the states that they lead to.
    pub(super) fn run_day(&mut self, now: Nanos) {
        if !self.is_day_settled() || self.sequencer.room() < self.day.commands_max() {
            return;
        }
        let count = self.sequencer.command_batch();
        let have_expired = self.sequencer.have_expired(now);
        let OrderServer { day, sequencer, .. } = self;
        let mut emit = |kind| sequencer.add(Arrival::internal(SessionId::default(), kind));
        if !day.step(now, &mut emit) {
            // Any other command is preceded by it; where none comes it does.
            if have_expired {
                emit(CommandKind::ExpireOrders);
            }
            day.tick(now, &mut emit);
        }
        if self.sequencer.command_batch() > count {
            self.given = Some(Given::now(&self.sequencer));
        }
    }

    /// True when everything that the venue commanded is applied.
    pub(super) fn is_day_settled(&mut self) -> bool {
        if let Some(given) = &mut self.given
            && given.outcome(&self.sequencer, &self.applied).is_some()
        {
            self.given = None;
        }
        self.given.is_none() && self.held_answer.is_none()
    }

    /// Sequences what a phase is made of, of which there is room; returns how many commands.
    pub(super) fn begin_phase(&mut self, phase: Phase, which: Which<'_>) -> u32 {
        let OrderServer { day, sequencer, .. } = self;
        let mut count = 0;
        day.begin(phase, which, &mut |kind| {
            sequencer.add(Arrival::internal(SessionId::default(), kind));
            count += 1;
        });
        count
    }

    /// Ends the day of a session that ends with the venue.
    pub(super) fn end_day_with_session(&mut self) {
        let OrderServer { day, sequencer, .. } = self;
        day.end_session(&mut |kind| sequencer.add(Arrival::internal(SessionId::default(), kind)));
    }

    pub(super) fn sequence_for_venue(&mut self, kind: CommandKind) {
        self.sequencer.add(Arrival::internal(SessionId::default(), kind));
    }

    #[cold]
    pub(super) fn note_applied(&mut self, command: Sequence, is_ignored: bool) {
        self.applied.last = command;
        if is_ignored {
            self.applied.last_ignored = command;
        }
    }

    /// Tells every user that the day starts or ends.
    #[cold]
    pub(super) fn log_stage(&mut self, ts: Nanos, stage: SystemEventCode) {
        for user in self.users.iter_mut().filter(|_| !is_planted(Fault::StageUntold)) {
            append_stage(&mut user.log, ts, stage);
            if let Some(connection) = user.connection.and_then(|place| self.connections[place].as_mut()) {
                connection.is_behind = true;
            }
        }
    }
}
