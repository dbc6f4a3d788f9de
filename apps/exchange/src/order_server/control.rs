//! Commands of whoever runs the venue.

use tickpath_matching::CommandKind;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::{Instrument, InstrumentId, Nanos, Price, RejectReason, SessionId, TradingState};
use tickpath_venue::day::{BandWidth, Day, Phase, Which};
use tickpath_venue::{AdminCommand, AdminOutcome, AdminRefusal, Arrival, LimitsChange, LogState, NewUser};

use super::OrderServer;
use super::day::Given;
use crate::admin::{AdminAnswer, NewUserRequest, Work};

/// An answer that waits until its commands are safe in the log and applied.
pub(super) struct HeldAnswer {
    answer: AdminAnswer,
    given: Given,
    /// What is answered where they had no effect.
    without_effect: Option<AdminRefusal>,
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Carries out the commands that wait, one after the other: what is answered to one depends on those before it.
    pub(super) fn take_admin_commands(&mut self, now: Nanos) {
        while self.is_day_settled()
            && self.sequencer.room() >= self.day.commands_max()
            && self.admin.answers.free_slots() > 0
            && self.may_take_request()
            && let Some(request) = self.admin.requests.try_pop()
        {
            let (outcome, without_effect) = match request.work {
                Work::AddUser => (self.add_user(), None),
                Work::Command(command) => {
                    let outcome = self.obey(command, now).unwrap_or_else(AdminOutcome::Refused);
                    (outcome, command.without_effect())
                }
            };
            if matches!(outcome, AdminOutcome::Done { .. }) {
                self.counters.admin_commands.add(1);
            }
            let answer = AdminAnswer { id: request.id, outcome };
            if let AdminOutcome::Done { commands: 1.. } = answer.outcome {
                self.held_answer =
                    Some(HeldAnswer { answer, given: Given::now(&self.sequencer), without_effect });
            } else {
                // There is room, unless nobody is there to read it.
                let _ = self.admin.answers.try_push(answer);
            }
        }
    }

    /// A user that is added is told what comes after it alone, so it waits until all that the venue said before is told.
    fn may_take_request(&mut self) -> bool {
        let adds_user =
            matches!(self.admin.requests.peek(), Some(request) if matches!(request.work, Work::AddUser));
        if adds_user
            && let Some(given) = &mut self.opening
            && given.outcome(&self.sequencer, &self.applied).is_some()
        {
            self.opening = None;
        }
        !adds_user || self.opening.is_none()
    }

    /// Gives the answer that waits, if it need not wait any more; returns how many.
    #[cold]
    pub(super) fn release_answer(&mut self) -> usize {
        let Some(held) = &mut self.held_answer else { return 0 };
        let Some(is_ignored) = held.given.outcome(&self.sequencer, &self.applied) else { return 0 };
        let mut answer = held.answer;
        if let Some(refusal) = held.without_effect.filter(|_| is_ignored) {
            answer.outcome = AdminOutcome::Refused(refusal);
        }
        self.held_answer = None;
        // There is room, unless nobody is there to read it.
        let _ = self.admin.answers.try_push(answer);
        1
    }

    #[cold]
    fn obey(&mut self, command: AdminCommand, now: Nanos) -> Result<AdminOutcome, AdminRefusal> {
        if command.instrument().is_some_and(|id| self.config.instruments.get(id).is_none()) {
            return Err(AdminRefusal::NoInstrument);
        }
        Ok(match command {
            AdminCommand::Phase { phase, instrument } => return self.obey_phase(phase, instrument),
            AdminCommand::SetPriceBand { instrument, width, reference } => {
                return self.set_price_bands(instrument, width, reference);
            }
            AdminCommand::BreakTrade { match_id, reason } => {
                self.sequence(SessionId::default(), CommandKind::BreakTrade { match_id, reason })
            }
            AdminCommand::AddInstrument(instrument) => return self.add_instrument(instrument),
            AdminCommand::SuspendInstrument { instrument } => {
                self.sequence(SessionId::default(), CommandKind::SuspendInstrument { instrument })
            }
            AdminCommand::SetLimits { session, change } => self.set_limits(session, change),
            AdminCommand::AllowInstrument { session, instrument, is_allowed } => {
                self.allow_instrument(session, instrument, is_allowed)
            }
            AdminCommand::SetTradingState { .. } if !self.day.has_started() => {
                return Err(AdminRefusal::DayNotStarted);
            }
            AdminCommand::SetTradingState { instrument, state } => {
                self.sequence(SessionId::default(), CommandKind::SetTradingState { instrument, state })
            }
            AdminCommand::Kill(None) => self.set_venue_killed(true),
            AdminCommand::Unkill(None) => self.set_venue_killed(false),
            AdminCommand::Drain => {
                self.counters.is_draining.set(1);
                self.users.iter_mut().for_each(|user| user.filter.set_draining());
                AdminOutcome::Done { commands: 0 }
            }
            AdminCommand::Kill(Some(session)) => self.set_killed(session, true),
            AdminCommand::Unkill(Some(session)) => self.set_killed(session, false),
            AdminCommand::Unlock(session) => self.of_user(session, |server, place| {
                server.guard.forgive(place);
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
        })
    }

    fn obey_phase(
        &mut self,
        phase: Phase,
        instrument: Option<InstrumentId>,
    ) -> Result<AdminOutcome, AdminRefusal> {
        match self.day.has_started() {
            true if phase == Phase::Start => return Err(AdminRefusal::DayStarted),
            false if !phase.starts_day() => return Err(AdminRefusal::DayNotStarted),
            _ => {}
        }
        if let Some(id) = instrument {
            let state = self.day.state(id);
            match phase {
                Phase::Open if state == TradingState::Trading => return Err(AdminRefusal::Trading),
                Phase::Close if state == TradingState::Halted => return Err(AdminRefusal::Halted),
                _ => {}
            }
        }
        let commands = self.begin_phase(phase, instrument.map_or(Which::All, Which::One));
        Ok(AdminOutcome::Done { commands })
    }

    fn set_price_bands(
        &mut self,
        instrument: Option<InstrumentId>,
        width: BandWidth,
        reference: Option<Price>,
    ) -> Result<AdminOutcome, AdminRefusal> {
        let table = self.config.instruments.clone();
        let is_meant = |other: &&Instrument| instrument.is_none_or(|id| other.id == id);
        let mut commands = 0;
        for instrument in table.iter().filter(is_meant) {
            self.sequence_for_venue(Day::band(instrument, width, reference));
            commands += 1;
        }
        Ok(AdminOutcome::Done { commands })
    }

    /// The instrument is in the table before its commands are in the log, so whoever hears of it finds it.
    fn add_instrument(&mut self, definition: Instrument) -> Result<AdminOutcome, AdminRefusal> {
        if !self.day.has_started() {
            return Err(AdminRefusal::DayNotStarted);
        }
        let table = &self.config.instruments;
        let instrument = Instrument { id: table.next_id(), ..definition };
        table.add(instrument)?;
        self.sequence_for_venue(CommandKind::AddInstrument(instrument));
        let OrderServer { day, sequencer, .. } = self;
        let mut commands = 1;
        day.open_added(instrument.id, &mut |kind| {
            sequencer.add(Arrival::internal(SessionId::default(), kind));
            commands += 1;
        });
        Ok(AdminOutcome::Done { commands })
    }

    /// The user is in the roster already, so whoever hears of it by the log finds it.
    #[cold]
    fn add_user(&mut self) -> AdminOutcome {
        let Ok(NewUserRequest { user, checker }) = self.admin.new_users.try_recv() else {
            return AdminOutcome::UnknownUser;
        };
        let NewUser { mut user, commands } = user;
        if self.counters.is_draining.read() != 0 {
            user.filter.set_draining();
        }
        let is_full = self.log_state == LogState::Full;
        user.filter.set_refusal(is_full.then_some(RejectReason::JournalFull));
        if let Some(thread) = checker {
            self.checker.engage(thread);
        }
        let (session, count) = (user.session, commands.len() as u32);
        self.users.add(user);
        for kind in commands {
            self.sequence(session, kind);
        }
        AdminOutcome::Done { commands: count }
    }

    fn set_limits(&mut self, session: SessionId, change: LimitsChange) -> AdminOutcome {
        self.of_user(session, |server, place| {
            let user = server.users.get_mut(place);
            let before = user.limits;
            user.limits = change.applied_to(before);
            let limits = user.limits;
            server.registry[place].limits.set(&limits);
            let mut commands = 0;
            if limits.rate != before.rate {
                user.filter.set_rate(limits.rate);
                server.sequence(session, limits.rate_command());
                commands += 1;
            }
            if limits.as_command() != before.as_command() {
                server.sequence(session, limits.as_command());
                commands += 1;
            }
            AdminOutcome::Done { commands }
        })
    }

    fn allow_instrument(
        &mut self,
        session: SessionId,
        instrument: InstrumentId,
        is_allowed: bool,
    ) -> AdminOutcome {
        self.of_user(session, |server, place| {
            if server.users.get_mut(place).filter.allow(instrument, is_allowed) {
                server.sequence(session, CommandKind::AllowInstrument { instrument, is_allowed })
            } else {
                AdminOutcome::Done { commands: 0 }
            }
        })
    }

    fn of_user(
        &mut self,
        session: SessionId,
        obey: impl FnOnce(&mut Self, usize) -> AdminOutcome,
    ) -> AdminOutcome {
        match self.users.place_of(session) {
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
            server.registry[place].is_killed.set(is_killed.into());
            server.sequence(session, CommandKind::KillSession { is_killed })
        })
    }

    fn sequence(&mut self, session: SessionId, kind: CommandKind) -> AdminOutcome {
        self.sequencer.add(Arrival::internal(session, kind));
        AdminOutcome::Done { commands: 1 }
    }
}
