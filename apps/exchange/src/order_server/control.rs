//! Commands of whoever runs the venue.

use tickpath_matching::CommandKind;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::{Nanos, Sequence, SessionId};

use super::OrderServer;
use crate::admin::{AdminAnswer, AdminCommand, AdminOutcome};
use crate::sequencer::Arrival;

/// An answer that waits until its command is safe in the log.
pub(super) struct HeldAnswer {
    answer: AdminAnswer,
    /// The last command of the batch that it was sequenced with, once it is.
    command: Option<Sequence>,
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Carries out the commands that wait; each sequences one command at most.
    pub(super) fn take_admin_commands(&mut self, now: Nanos) {
        while self.held_answer.is_none()
            && self.sequencer.room() > 0
            && self.admin.answers.free_slots() > 0
            && let Some(request) = self.admin.requests.try_pop()
        {
            let outcome = self.obey(request.command, now);
            if matches!(outcome, AdminOutcome::Done { .. }) {
                self.counters.admin_commands.add(1);
            }
            let answer = AdminAnswer { id: request.id, outcome };
            if let AdminOutcome::Done { commands: 1.. } = answer.outcome {
                self.held_answer = Some(HeldAnswer { answer, command: None });
            } else {
                // There is room, unless nobody is there to read it.
                let _ = self.admin.answers.try_push(answer);
            }
        }
    }

    /// Gives the answer that waits, if it need not wait any more; returns how many.
    #[cold]
    pub(super) fn release_answer(&mut self) -> usize {
        let sequencer = &self.sequencer;
        let Some(held) = &mut self.held_answer else { return 0 };
        if held.command.is_none() && sequencer.is_drained() {
            held.command = Some(Sequence(sequencer.command_count()));
        }
        if !held.command.is_some_and(|command| sequencer.is_durable(command)) {
            return 0;
        }
        // There is room, unless nobody is there to read it.
        let _ = self.held_answer.take().map(|held| self.admin.answers.try_push(held.answer));
        1
    }

    #[cold]
    fn obey(&mut self, command: AdminCommand, now: Nanos) -> AdminOutcome {
        match command {
            AdminCommand::SetTradingState { instrument, state } => {
                self.sequence(SessionId::default(), CommandKind::SetTradingState { instrument, state })
            }
            AdminCommand::Kill(None) => self.set_venue_killed(true),
            AdminCommand::Unkill(None) => self.set_venue_killed(false),
            AdminCommand::Drain => {
                self.counters.is_draining.set(1);
                self.users.iter_mut().for_each(|user| user.gate.set_draining());
                AdminOutcome::Done { commands: 0 }
            }
            AdminCommand::Kill(Some(session)) => self.set_killed(session, true),
            AdminCommand::Unkill(Some(session)) => self.set_killed(session, false),
            AdminCommand::Unlock(session) => self.of_user(session, |server, place| {
                server.guard.unlock(place);
                server.user_views[place].locked_until.set(0);
                AdminOutcome::Done { commands: 0 }
            }),
            AdminCommand::Disconnect(session) => {
                self.of_user(session, |server, place| match server.users.get(place).connection {
                    Some(connection) => {
                        server.close(connection, now);
                        AdminOutcome::Done { commands: 0 }
                    }
                    None => AdminOutcome::NotConnected,
                })
            }
        }
    }

    fn of_user(
        &mut self,
        session: SessionId,
        obey: impl FnOnce(&mut Self, usize) -> AdminOutcome,
    ) -> AdminOutcome {
        match usize::from(session.0).checked_sub(1).filter(|place| *place < self.users.len()) {
            Some(place) => obey(self, place),
            None => AdminOutcome::UnknownUser,
        }
    }

    fn set_venue_killed(&mut self, is_killed: bool) -> AdminOutcome {
        self.counters.is_killed.set(is_killed.into());
        self.sequence(SessionId::default(), CommandKind::KillVenue { is_killed })
    }

    fn set_killed(&mut self, session: SessionId, is_killed: bool) -> AdminOutcome {
        self.of_user(session, |server, place| {
            server.user_views[place].is_killed.set(is_killed.into());
            server.sequence(session, CommandKind::KillSession { is_killed })
        })
    }

    fn sequence(&mut self, session: SessionId, kind: CommandKind) -> AdminOutcome {
        self.sequencer.add(Arrival::of_venue(session, kind));
        AdminOutcome::Done { commands: 1 }
    }
}
