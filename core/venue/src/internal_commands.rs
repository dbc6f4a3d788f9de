//! The internal commands of the venue: from the trading day's schedule and clock, and from the administrator.

use tickpath_faults::failpoint;
use tickpath_matching::CommandKind;
use tickpath_timing::Tracer;
use tickpath_types::{
    Instrument, InstrumentId, InstrumentTable, Nanos, RejectReason, Sequence, SessionId, TradingState,
};

use crate::admin_command::{AdminAnswer, AdminCommand, AdminOutcome, AdminRefusal};
use crate::command_log::LogState;
use crate::day::{Day, InstrumentSelection, Phase};
use crate::log_command::{LogCommandKind, VenueCommandKind};
use crate::sequencer::{Arrival, Sequencer};
use crate::user_registry::UserRegistry;
use crate::users::{NewUser, User, Users};

/// Progress of the matcher through the internal commands.
#[derive(Debug, Default)]
struct Applied {
    /// The last internal command that the matcher applied and that is durable.
    last: Sequence,
    /// The last internal command that had no effect.
    last_ignored: Sequence,
}

/// Internal commands that were added to the sequencer together.
#[derive(Clone, Copy, Debug)]
struct CommandGroup {
    /// Sequence number of the last command before the group.
    before: Sequence,
    /// Sequence number of the group's last command or of a later internal one, set once the whole group is in
    /// the log; `None` until then.
    last: Option<Sequence>,
}

/// An answer to the administrator, held back until the log commands of its command are durable and applied.
struct PendingAnswer {
    answer: AdminAnswer,
    commands: CommandGroup,
    /// The refusal to report instead of `answer` if the log commands had no effect.
    without_effect: Option<AdminRefusal>,
}

impl CommandGroup {
    /// The group of the commands in the sequencer's current batch.
    fn just_added(sequencer: &Sequencer) -> CommandGroup {
        CommandGroup { before: Sequence(sequencer.command_count()), last: None }
    }

    /// `None` until the group's commands are durable and applied; then true if any of them had no effect.
    fn outcome(&mut self, sequencer: &Sequencer, applied: &Applied) -> Option<bool> {
        if self.last.is_none() && sequencer.is_drained() {
            // Not the log's last command: that may be a client's, which the matcher never reports as applied.
            self.last = Some(sequencer.last_internal());
            failpoint!(DayWaitsForClients => self.last = Some(Sequence(sequencer.command_count())));
        }
        let last = self.last?;
        (applied.last >= last).then_some(applied.last_ignored > self.before)
    }
}

/// Carries out the commands of the administrator and of the trading day.
///
/// Schedule steps and the administrator's commands run one at a time. Each depends on the trading states that
/// the previous one leaves, so it waits until the previous one's commands are applied.
pub struct InternalCommands {
    day: Day,
    instruments: InstrumentTable,
    registry: UserRegistry,
    /// The venue's first commands, until they are applied.
    opening: Option<CommandGroup>,
    /// The latest commands of the schedule or the clock, until they are applied.
    day_step: Option<CommandGroup>,
    /// The answer to the administrator's latest command, until that command is applied.
    pending: Option<PendingAnswer>,
    /// An answer that is ready to be returned.
    answer: Option<AdminAnswer>,
    applied: Applied,
    /// True once the venue drains: it refuses new orders until it stops.
    is_draining: bool,
}

impl InternalCommands {
    /// The internal commands of a venue with these instruments and users.
    #[must_use]
    pub fn new(day: Day, instruments: InstrumentTable, registry: UserRegistry) -> InternalCommands {
        InternalCommands {
            day,
            instruments,
            registry,
            opening: None,
            day_step: None,
            pending: None,
            answer: None,
            applied: Applied::default(),
            is_draining: false,
        }
    }

    /// Sequences the venue's first commands, in as many batches as needed.
    pub fn open(
        &mut self,
        opening: Vec<(SessionId, LogCommandKind)>,
        now: Nanos,
        sequencer: &mut Sequencer,
        tracer: &mut impl Tracer,
    ) {
        for (session, kind) in opening {
            if sequencer.remaining_capacity() == 0 {
                sequencer.sequence(now, tracer);
            }
            sequencer.add(Arrival::internal(session, kind));
        }
        self.opening = Some(CommandGroup::just_added(sequencer));
    }

    /// Begins the due schedule step. If there is none, adds the commands that are due by the clock: order
    /// expiry, ends of pauses and imbalances.
    pub fn handle_time(&mut self, now: Nanos, sequencer: &mut Sequencer) {
        if !self.is_all_applied(sequencer) || sequencer.remaining_capacity() < self.day.commands_max() {
            return;
        }
        let count = sequencer.command_batch();
        let have_expired = sequencer.have_expired(now);
        let mut emit = |kind: LogCommandKind| sequencer.add(Arrival::internal(SessionId::default(), kind));
        if !self.day.step(now, &mut emit) {
            // Without this, `ExpireOrders` would wait until the sequencer has another command to sequence.
            if have_expired {
                emit(CommandKind::ExpireOrders.into());
            }
            self.day.tick(now, &mut |kind| emit(kind.into()));
        }
        if sequencer.command_batch() > count {
            self.day_step = Some(CommandGroup::just_added(sequencer));
        }
    }

    /// Records that the matcher applied the internal command `command`, which is durable.
    #[cold]
    pub fn handle_applied(&mut self, command: Sequence, is_ignored: bool) {
        self.applied.last = command;
        if is_ignored {
            self.applied.last_ignored = command;
        }
    }

    /// True when the next command of the administrator may run: the previous commands are applied, and the
    /// batch has capacity. With `adds_user`, the venue's first commands must be applied too, because a new
    /// user must not receive their messages.
    pub fn may_handle(&mut self, adds_user: bool, sequencer: &Sequencer) -> bool {
        if !self.is_all_applied(sequencer) || sequencer.remaining_capacity() < self.day.commands_max() {
            return false;
        }
        if adds_user
            && let Some(opening) = &mut self.opening
            && opening.outcome(sequencer, &self.applied).is_some()
        {
            self.opening = None;
        }
        !adds_user || self.opening.is_none()
    }

    /// Executes a command of the administrator; [`poll_answer`](Self::poll_answer) returns the answer, with
    /// the same `id`. Does not execute [`AdminCommand::Disconnect`] and [`AdminCommand::Unlock`]: the caller
    /// executes them and calls [`answer`](Self::answer) instead.
    #[cold]
    pub fn handle_command(
        &mut self,
        id: u64,
        command: AdminCommand,
        users: &mut Users,
        sequencer: &mut Sequencer,
    ) -> AdminOutcome {
        let before = sequencer.command_batch();
        let outcome = match self.execute(command, users, sequencer) {
            Ok(()) => AdminOutcome::Done { commands: (sequencer.command_batch() - before) as u32 },
            Err(outcome) => outcome,
        };
        self.answer_when_applied(AdminAnswer { id, outcome }, command.without_effect(), sequencer);
        outcome
    }

    /// Adds a user to `users`, and adds its commands to the batch. The caller has registered the user, so
    /// readers of the log find it.
    #[cold]
    pub fn handle_new_user(
        &mut self,
        id: u64,
        new_user: NewUser,
        users: &mut Users,
        sequencer: &mut Sequencer,
    ) -> AdminOutcome {
        let NewUser { mut user, commands } = new_user;
        if self.is_draining {
            user.filter.set_draining();
        }
        let is_full = sequencer.log_state() == LogState::Full;
        user.filter.set_refusal(is_full.then_some(RejectReason::JournalFull));
        let (session, count) = (user.session, commands.len() as u32);
        users.add(user);
        for kind in commands {
            sequencer.add(Arrival::internal(session, kind));
        }
        let outcome = AdminOutcome::Done { commands: count };
        self.answer_when_applied(AdminAnswer { id, outcome }, None, sequencer);
        outcome
    }

    /// Sets an answer that the next call of [`poll_answer`](Self::poll_answer) returns.
    pub fn answer(&mut self, answer: AdminAnswer) {
        self.answer = Some(answer);
    }

    /// True while the answer to the administrator waits for log commands to be applied.
    #[inline]
    #[must_use]
    pub fn is_answer_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The answer to the administrator's latest command, once available.
    #[cold]
    pub fn poll_answer(&mut self, sequencer: &Sequencer) -> Option<AdminAnswer> {
        if let Some(answer) = self.answer.take() {
            return Some(answer);
        }
        let pending = self.pending.as_mut()?;
        let is_ignored = pending.commands.outcome(sequencer, &self.applied)?;
        let mut answer = pending.answer;
        if let Some(refusal) = pending.without_effect.filter(|_| is_ignored) {
            answer.outcome = AdminOutcome::Refused(refusal);
        }
        self.pending = None;
        Some(answer)
    }

    /// Adds the system events that end the day in progress, if any. Called at shutdown, if the session
    /// does not continue after a restart.
    pub fn end_session(&mut self, sequencer: &mut Sequencer) {
        self.day.end_session(&mut |kind| sequencer.add(Arrival::internal(SessionId::default(), kind)));
    }

    /// True when the latest commands of the schedule, the clock and the administrator are applied.
    fn is_all_applied(&mut self, sequencer: &Sequencer) -> bool {
        if let Some(commands) = &mut self.day_step
            && commands.outcome(sequencer, &self.applied).is_some()
        {
            self.day_step = None;
        }
        self.day_step.is_none() && self.pending.is_none()
    }

    fn answer_when_applied(
        &mut self,
        answer: AdminAnswer,
        without_effect: Option<AdminRefusal>,
        sequencer: &Sequencer,
    ) {
        if let AdminOutcome::Done { commands: 1.. } = answer.outcome {
            let commands = CommandGroup::just_added(sequencer);
            self.pending = Some(PendingAnswer { answer, commands, without_effect });
        } else {
            self.answer = Some(answer);
        }
    }

    /// Executes a command; returns `Err` with the outcome when the command was not carried out.
    fn execute(
        &mut self,
        command: AdminCommand,
        users: &mut Users,
        sequencer: &mut Sequencer,
    ) -> Result<(), AdminOutcome> {
        if command.instrument().is_some_and(|id| self.instruments.get(id).is_none()) {
            return Err(AdminOutcome::Refused(AdminRefusal::NoInstrument));
        }
        if matches!(command, AdminCommand::SetTradingState { .. }) && !self.day.has_started() {
            return Err(AdminOutcome::Refused(AdminRefusal::DayNotStarted));
        }
        if let Some(kind) = command.log_command() {
            sequencer.add(Arrival::internal(SessionId::default(), kind));
            return Ok(());
        }
        let emit = &mut |kind: CommandKind| sequencer.add(Arrival::internal(SessionId::default(), kind));
        match command {
            AdminCommand::Phase { phase, instrument } => {
                self.begin_phase(phase, instrument, emit).map_err(AdminOutcome::Refused)?;
            }
            AdminCommand::SetPriceBand { instrument, width, reference } => {
                let is_selected = |other: &&Instrument| instrument.is_none_or(|id| other.id == id);
                let selected = self.instruments.iter().filter(is_selected);
                selected.for_each(|instrument| emit(Day::band(instrument, width, reference)));
            }
            AdminCommand::AddInstrument(instrument) => {
                self.add_instrument(instrument, emit).map_err(AdminOutcome::Refused)?;
            }
            AdminCommand::Drain => {
                self.is_draining = true;
                users.drain();
            }
            AdminCommand::SetLimits { session, .. }
            | AdminCommand::AllowInstrument { session, .. }
            | AdminCommand::Kill(Some(session))
            | AdminCommand::Unkill(Some(session))
            | AdminCommand::Unlock(session)
            | AdminCommand::Disconnect(session) => {
                let place = users.place_of(session).ok_or(AdminOutcome::UnknownUser)?;
                self.execute_for_user(command, place, &mut users[place], sequencer);
            }
            // Commands with a `log_command` have returned above.
            _ => {}
        }
        Ok(())
    }

    /// Executes a command about the user with registry index `place`.
    fn execute_for_user(
        &mut self,
        command: AdminCommand,
        place: usize,
        user: &mut User,
        sequencer: &mut Sequencer,
    ) {
        let view = &self.registry[place];
        let session = user.session;
        let mut emit = |kind: LogCommandKind| sequencer.add(Arrival::internal(session, kind));
        match command {
            AdminCommand::Kill(_) | AdminCommand::Unkill(_) => {
                let is_killed = matches!(command, AdminCommand::Kill(_));
                view.is_killed.set(is_killed.into());
                emit(CommandKind::KillSession { is_killed }.into());
            }
            AdminCommand::SetLimits { change, .. } => {
                let before = user.limits;
                let limits = change.applied_to(before);
                user.limits = limits;
                view.limits.set(&limits);
                if limits.rate != before.rate {
                    user.filter.set_rate(limits.rate);
                    emit(limits.rate_command().into());
                }
                if limits.as_command() != before.as_command() {
                    emit(limits.as_command().into());
                }
            }
            AdminCommand::AllowInstrument { instrument, is_allowed, .. }
                if user.filter.allow(instrument, is_allowed) =>
            {
                emit(VenueCommandKind::AllowInstrument { instrument, is_allowed }.into());
            }
            _ => {}
        }
    }

    fn begin_phase(
        &mut self,
        phase: Phase,
        instrument: Option<InstrumentId>,
        emit: &mut impl FnMut(CommandKind),
    ) -> Result<(), AdminRefusal> {
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
        self.day.begin(phase, instrument.map_or(InstrumentSelection::All, InstrumentSelection::One), emit);
        Ok(())
    }

    /// Adds the instrument to the table before its commands enter the log: readers of the log will need it.
    fn add_instrument(
        &mut self,
        definition: Instrument,
        emit: &mut impl FnMut(CommandKind),
    ) -> Result<(), AdminRefusal> {
        if !self.day.has_started() {
            return Err(AdminRefusal::DayNotStarted);
        }
        let instrument = Instrument { id: self.instruments.next_id(), ..definition };
        self.instruments.add(instrument)?;
        emit(CommandKind::AddInstrument(instrument));
        self.day.open_new(instrument.id, TradingState::Halted, emit);
        Ok(())
    }
}
