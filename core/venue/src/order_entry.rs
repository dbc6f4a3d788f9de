//! Order entry without its network connections: users, logins, sequencing and internal commands.

use tickpath_faults::failpoint;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50::RequestError;
use tickpath_timing::Tracer;
use tickpath_types::{
    CancelReason, Nanos, OrderRequest, RejectReason, SessionId, SystemEventCode, UserRefNum,
};

use crate::admin_command::{AdminCommand, AdminOutcome};
use crate::command_log::LogState;
use crate::front_request::{FrontRequest, FrontRequestKind};
use crate::internal_commands::InternalCommands;
use crate::log_command::LogCommandKind;
use crate::logins::Logins;
use crate::sequencer::{Arrival, Sequencer};
use crate::session_messages::append_session_phase;
use crate::users::{NewUser, User, Users};

/// The decision on a client's message.
pub enum Admission {
    /// The request or its refusal is to be sequenced.
    Sequence {
        /// The command to sequence.
        kind: CommandKind,
        /// UserRefNum of the order in the request.
        user_ref: UserRefNum,
        /// True for a new order, and for any refused request.
        is_new_order: bool,
    },
    /// An account query: the client asks for its next UserRefNum.
    Query,
    /// The message is not a request.
    Drop,
}

impl Admission {
    /// Decides on a decoded message of a user.
    #[inline(always)]
    pub fn of(user: &mut User, decoded: Result<OrderRequest, RequestError>, now: Nanos) -> Admission {
        match user.filter.check(decoded, now) {
            Ok(request) => Admission::Sequence {
                user_ref: request.user_ref(),
                is_new_order: request.is_new_order(),
                kind: CommandKind::Order(request),
            },
            Err(RequestError::Refused { user_ref, reason, client_order_id }) => Admission::Sequence {
                kind: CommandKind::GatewayReject { user_ref, reason, client_order_id },
                user_ref,
                is_new_order: true,
            },
            Err(RequestError::AccountQuery) => Admission::Query,
            Err(_) => Admission::Drop,
        }
    }

    /// True for queries and refusals: they are not logged while the log's space is reserved for cancels.
    #[inline(always)]
    #[must_use]
    pub fn yields_to_cancels(&self) -> bool {
        matches!(self, Admission::Query | Admission::Sequence { kind: CommandKind::GatewayReject { .. }, .. })
    }
}

/// The decision on the request of a front, which is an order entry gateway on another thread.
pub enum FrontAdmission {
    /// A user's request or its refusal is to be sequenced.
    Request {
        /// The request or refusal.
        arrival: Arrival,
        /// True for a refusal.
        is_refused: bool,
    },
    /// An internal command is to be sequenced.
    Internal(Arrival),
    /// The request is refused without a log record, because the log's space is reserved for cancels.
    Unlogged,
    /// The request has no effect: its user does not exist, or no order may be entered for the user.
    Drop,
}

/// Users, their logins, the sequencer and the internal commands: all of order entry except its connections.
///
/// Its parts are public and independent; this type has the operations that involve several of them.
pub struct OrderEntry<P> {
    /// The users, with their sessions.
    pub users: Users,
    /// Connections before and after login, and the checks of logins.
    pub logins: Logins<P>,
    /// Orders and numbers all commands.
    pub sequencer: Sequencer,
    /// Commands of the trading day and of the administrator.
    pub commands: InternalCommands,
}

impl<P> OrderEntry<P> {
    /// Sequences the venue's first commands; starts the cancel-on-disconnect timers of users with messages.
    pub fn open(&mut self, opening: Vec<(SessionId, LogCommandKind)>, now: Nanos, tracer: &mut impl Tracer) {
        self.commands.open(opening, now, &mut self.sequencer, tracer);
        failpoint!(GraceForgottenAtStart => return);
        self.users.begin_grace(now);
    }

    /// Returns the new state of the log if it has changed. While the log is full, refuses new orders.
    pub fn poll_log_state(&mut self) -> Option<LogState> {
        let state = self.sequencer.poll_log_state()?;
        let refusal = (state == LogState::Full).then_some(RejectReason::JournalFull);
        self.users.refuse_new_orders(refusal);
        Some(state)
    }

    /// Executes a command of the administrator by [`InternalCommands::handle_command`].
    pub fn handle_command(&mut self, id: u64, command: AdminCommand) -> AdminOutcome {
        self.commands.handle_command(id, command, &mut self.users, &mut self.sequencer)
    }

    /// Adds a user by [`InternalCommands::handle_new_user`].
    pub fn handle_new_user(&mut self, id: u64, user: NewUser) -> AdminOutcome {
        self.commands.handle_new_user(id, user, &mut self.users, &mut self.sequencer)
    }

    /// Decides on a front's request.
    // Inlined, so that the decision is not copied.
    #[inline]
    #[must_use]
    pub fn admit_front(&mut self, request: &FrontRequest, now: Nanos) -> FrontAdmission {
        let FrontRequest { session, received_ns: kernel_ns, kind } = *request;
        let arrival = |kind: CommandKind| Arrival { kernel_ns, session, token: None, kind: kind.into() };
        let is_reserved = self.sequencer.reserves_space_for_cancels();
        let order = match kind {
            FrontRequestKind::Order(order) => order,
            FrontRequestKind::Force(_) => {
                let is_shut = self.users.of_session(session).is_none_or(|user| user.filter.is_shut());
                return match is_shut || is_reserved {
                    true => FrontAdmission::Drop,
                    false => {
                        FrontAdmission::Request { arrival: arrival(request.command()), is_refused: false }
                    }
                };
            }
            FrontRequestKind::PreventSelfTrades(_) | FrontRequestKind::Suspend(_) => {
                return FrontAdmission::Internal(Arrival::internal(session, request.command()));
            }
        };
        let Some(user) = self.users.of_session(session) else { return FrontAdmission::Drop };
        match Admission::of(user, Ok(order), now) {
            refused if is_reserved && refused.yields_to_cancels() => FrontAdmission::Unlogged,
            Admission::Sequence { kind, .. } => {
                let is_refused = matches!(kind, CommandKind::GatewayReject { .. });
                FrontAdmission::Request { arrival: arrival(kind), is_refused }
            }
            Admission::Query | Admission::Drop => FrontAdmission::Drop,
        }
    }

    /// Adds a cancel-all command to the sequencer's batch for each user whose cancel-on-disconnect time has
    /// passed; returns the number of commands.
    #[cold]
    pub fn cancel_for_absent_users(&mut self, now: Nanos) -> usize {
        let OrderEntry { users, sequencer, .. } = self;
        let mut count = 0;
        users.poll_absent(now, |session| {
            let has_capacity = sequencer.remaining_capacity() > 0;
            if has_capacity {
                sequencer.add(cancel_all(session));
                count += 1;
            }
            has_capacity
        });
        count
    }

    /// Adds a cancel-all command to the sequencer's batch for each user with cancel on disconnect; returns
    /// their number. The batch must be empty: then it has capacity for one command per user.
    pub fn cancel_at_shutdown(&mut self) -> usize {
        let OrderEntry { users, sequencer, .. } = self;
        let leaving = users.iter().filter(|user| user.cancel_on_disconnect.is_some());
        leaving.map(|user| sequencer.add(cancel_all(user.session))).count()
    }

    /// Appends the start or end of the day to each user's log; passes the index of each connected user's
    /// connection to `on_connection`.
    #[cold]
    pub fn append_session_phase(
        &mut self,
        ts: Nanos,
        phase: SystemEventCode,
        mut on_connection: impl FnMut(usize),
    ) {
        failpoint!(StageUntold => return);
        for user in self.users.iter_mut() {
            append_session_phase(&mut user.log, ts, phase);
            user.connection.into_iter().for_each(&mut on_connection);
        }
    }
}

fn cancel_all(session: SessionId) -> Arrival {
    Arrival::internal(session, CommandKind::CancelAll { reason: CancelReason::System })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickpath_admission::{LoginGuard, LoginPolicy, PreLoginLimits};
    use tickpath_lockfree::{Counter, spsc};
    use tickpath_test_support::instrument;
    use tickpath_timing::NoTrace;
    use tickpath_types::{
        BrokenReason, EnterOrder, InstrumentId, InstrumentTable, MatchId, Price, Qty, Sequence, Side,
        TradingState, UserName,
    };

    use super::*;
    use crate::admin_command::{AdminAnswer, AdminRefusal};
    use crate::day::{Day, DaySettings, Phase, ReplayedDay};
    use crate::log_command::{LogCommand, VenueCommandKind};
    use crate::message_log::SessionLog;
    use crate::password::Password;
    use crate::user_registry::UserRegistry;
    use crate::user_settings::UserSettings;

    const GRACE: Nanos = Nanos::from_secs(2);
    const NOW: Nanos = Nanos::from_secs(1_000);
    const ALPHA: InstrumentId = InstrumentId(1);
    const ANNA: SessionId = SessionId(1);

    struct Rig {
        entry: OrderEntry<u32>,
        commands: spsc::Consumer<LogCommand>,
    }

    fn table() -> InstrumentTable {
        InstrumentTable::with_capacity(&[instrument(1, "ALPHA")], InstrumentId(2))
    }

    impl Rig {
        /// ANNA's orders are cancelled `GRACE` after a disconnect.
        fn new() -> Rig {
            let anna = UserSettings {
                cancel_on_disconnect: Some(GRACE),
                ..UserSettings::new("ANNA", Password::plain("secret"))
            };
            let (settings, table) = ([anna], table());
            let users = Users::for_test(&settings, &table);
            let states: Arc<[Counter]> = (0..=2).map(|_| Counter::default()).collect();
            let day = Day::new(DaySettings::default(), table.clone(), states, &ReplayedDay::default());
            let (producer, commands) = spsc::channel(64);
            let guard = LoginGuard::new(LoginPolicy::default(), 2);
            let entry = OrderEntry {
                users,
                logins: Logins::new(1, PreLoginLimits::default(), guard),
                sequencer: Sequencer::new(producer, 64),
                commands: InternalCommands::new(day, table, UserRegistry::new(&settings, 2)),
            };
            Rig { entry, commands }
        }

        /// The commands sequenced since the last call, as session and kind.
        fn sequenced(&mut self) -> Vec<(SessionId, LogCommandKind)> {
            self.entry.sequencer.sequence(NOW, &mut NoTrace);
            std::iter::from_fn(|| self.commands.try_pop()).map(|it| (it.session(), it.kind())).collect()
        }

        /// Reports all sequenced commands as applied; returns the answer to the administrator, if any.
        fn apply_all(&mut self, is_ignored: bool) -> Option<AdminAnswer> {
            let last = Sequence(self.entry.sequencer.command_count());
            self.entry.commands.handle_applied(last, is_ignored);
            self.entry.commands.poll_answer(&self.entry.sequencer)
        }
    }

    fn order() -> FrontRequestKind {
        let order = EnterOrder::limit(UserRefNum(1), ALPHA, Side::Buy, Qty(1), Price(1_000_000));
        FrontRequestKind::Order(OrderRequest::Enter(order))
    }

    #[test]
    fn a_command_is_answered_once_it_is_applied() {
        let mut rig = Rig::new();
        let done = AdminOutcome::Done { commands: 1 };
        assert!(rig.entry.commands.may_handle(false, &rig.entry.sequencer));
        assert_eq!(rig.entry.handle_command(7, AdminCommand::Kill(Some(ANNA))), done);
        assert_eq!(rig.entry.commands.poll_answer(&rig.entry.sequencer), None, "it waits");
        assert!(!rig.entry.commands.may_handle(false, &rig.entry.sequencer));
        assert_eq!(rig.sequenced(), [(ANNA, CommandKind::KillSession { is_killed: true }.into())]);
        assert_eq!(rig.apply_all(false), Some(AdminAnswer { id: 7, outcome: done }));
        assert!(rig.entry.commands.may_handle(false, &rig.entry.sequencer));
    }

    #[test]
    fn a_command_without_effect_is_refused_after_it() {
        let mut rig = Rig::new();
        let command = AdminCommand::BreakTrade { match_id: MatchId(5), reason: BrokenReason::Consent };
        assert_eq!(rig.entry.handle_command(1, command), AdminOutcome::Done { commands: 1 });
        assert_eq!(rig.sequenced().len(), 1);
        let outcome = AdminOutcome::Refused(AdminRefusal::NoExecution);
        assert_eq!(rig.apply_all(true), Some(AdminAnswer { id: 1, outcome }));
    }

    #[test]
    fn impossible_commands_are_answered_immediately() {
        let mut rig = Rig::new();
        let halt = |instrument| AdminCommand::SetTradingState { instrument, state: TradingState::Halted };
        let end = AdminCommand::Phase { phase: Phase::EndOfDay, instrument: None };
        for (command, outcome) in [
            (halt(ALPHA), AdminOutcome::Refused(AdminRefusal::DayNotStarted)),
            (halt(InstrumentId(2)), AdminOutcome::Refused(AdminRefusal::NoInstrument)),
            (end, AdminOutcome::Refused(AdminRefusal::DayNotStarted)),
            (AdminCommand::Kill(Some(SessionId(2))), AdminOutcome::UnknownUser),
        ] {
            assert_eq!(rig.entry.handle_command(3, command), outcome);
            let answer = rig.entry.commands.poll_answer(&rig.entry.sequencer);
            assert_eq!(answer, Some(AdminAnswer { id: 3, outcome }));
        }
        assert_eq!(rig.sequenced(), []);
    }

    #[test]
    fn a_new_user_waits_for_the_first_commands_and_is_refused_orders_while_draining() {
        let mut rig = Rig::new();
        rig.entry.open(vec![(SessionId(0), CommandKind::ExpireOrders.into())], NOW, &mut NoTrace);
        assert!(!rig.entry.commands.may_handle(true, &rig.entry.sequencer));
        assert!(rig.entry.commands.may_handle(false, &rig.entry.sequencer));
        assert_eq!(rig.sequenced().len(), 1);
        assert_eq!(rig.apply_all(false), None);
        assert!(rig.entry.commands.may_handle(true, &rig.entry.sequencer));
        assert_eq!(rig.entry.handle_command(1, AdminCommand::Drain), AdminOutcome::Done { commands: 0 });
        let settings = UserSettings::new("BERT", Password::plain("secret"));
        let (name, session) = (UserName::new("BERT").unwrap(), SessionId(2));
        let bert = NewUser::new(&settings, name, session, SessionLog::new(4), &table());
        assert_eq!(rig.entry.handle_new_user(2, bert), AdminOutcome::Done { commands: 1 });
        assert_eq!(rig.sequenced(), [(session, VenueCommandKind::AddUser { name }.into())]);
        let request = FrontRequest { session, received_ns: 0, kind: order() };
        let admission = rig.entry.admit_front(&request, NOW);
        assert!(matches!(admission, FrontAdmission::Request { is_refused: true, .. }));
    }

    #[test]
    fn requests_of_a_front_pass_the_filter_of_their_user() {
        let mut rig = Rig::new();
        let mut admit =
            |session, kind| rig.entry.admit_front(&FrontRequest { session, received_ns: 9, kind }, NOW);
        match admit(ANNA, order()) {
            FrontAdmission::Request { arrival, is_refused: false } => {
                assert_eq!((arrival.kernel_ns, arrival.session), (9, ANNA));
            }
            _ => panic!("it is sequenced"),
        }
        assert!(matches!(admit(SessionId(2), order()), FrontAdmission::Drop), "there is no such user");
        let suspend = FrontRequestKind::Suspend(ALPHA);
        assert!(matches!(admit(SessionId(0), suspend), FrontAdmission::Internal(_)));
    }

    #[test]
    fn orders_of_an_absent_user_are_cancelled_once() {
        let mut rig = Rig::new();
        rig.entry.users[0].connect(5);
        rig.entry.users.log_out(0, NOW);
        assert_eq!(rig.entry.users.next_cancel(), NOW + GRACE);
        assert_eq!(rig.entry.cancel_for_absent_users(NOW), 0);
        rig.entry.users[0].connect(5);
        assert_eq!(rig.entry.cancel_for_absent_users(NOW + GRACE), 0, "back in time");
        rig.entry.users.log_out(0, NOW);
        assert_eq!(rig.entry.cancel_for_absent_users(NOW + GRACE), 1);
        assert_eq!(rig.entry.cancel_for_absent_users(NOW + GRACE), 0);
        assert_eq!(rig.entry.cancel_at_shutdown(), 1);
        let cancel = (ANNA, CommandKind::CancelAll { reason: CancelReason::System }.into());
        assert_eq!(rig.sequenced(), [cancel, cancel]);
    }
}
