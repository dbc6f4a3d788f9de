//! Puts all requests that reach the venue into a single order.

use tickpath_faults::failpoint;
use tickpath_lockfree::spsc;
use tickpath_lockfree::wake::Waker;
use tickpath_matching::CommandKind;
use tickpath_timing::{CommandId, Hop, Token, Tracer};
use tickpath_types::{Nanos, OrderInstructions, OrderRequest, Sequence, SessionId};

use crate::command_log::{CommandLog, LogState};
use crate::day::Expiries;
use crate::log_command::{LogCommand, LogCommandKind};
use crate::overflow_queue::end_ring;

/// Receive time of internal commands, later than all real receive times.
const INTERNAL: u64 = u64::MAX;

/// A request or internal command to sequence.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time at which the kernel received the request, in ns since 1970; 0 when unknown.
    pub kernel_ns: u64,
    /// The session that sent the request or is its subject.
    pub session: SessionId,
    /// Tracing token of the request's earlier time stamps; `None` if there are none.
    pub token: Option<Token>,
    /// The command to sequence.
    pub kind: LogCommandKind,
}

impl Arrival {
    /// An internal command of the venue; it follows all requests drained in the same cycle.
    #[must_use]
    pub fn internal(session: SessionId, kind: impl Into<LogCommandKind>) -> Arrival {
        Arrival { kernel_ns: INTERNAL, session, token: None, kind: kind.into() }
    }
}

/// Orders the requests drained in one duty cycle by the kernel's receive time, and numbers them.
///
/// Requests of one session keep their order: the sort is by (kernel time, session, arrival), and the kernel
/// times of one session never decrease. Drained requests are sequenced at once and wait for no later packet.
/// Each command of a cycle has a different time, since market data identifies the events of one command,
/// such as an incoming order's executions, by their time. A command goes to the journal and then to the
/// matcher; when either is full, the remaining commands wait in order.
///
/// Before the first command at or after an order's expiry time, an `ExpireOrders` command is inserted, so
/// that nothing trades with an expired order.
pub struct Sequencer {
    next: Sequence,
    /// Time of day of the log's last command before the start; `None` after the first call of `sequence`.
    resumed_after: Option<Nanos>,
    /// Time of the latest command, since 1970.
    last_at: Nanos,
    expiries: Expiries,
    /// Arrivals of this duty cycle, in the order in which they were added.
    batch: Vec<Arrival>,
    /// Sort keys of the batch: 16 bytes each, so that the sort does not move the much longer arrivals.
    keys: Vec<SortKey>,
    /// Number of arrivals sequenced, in the order of the keys.
    sequenced: usize,
    /// Sequence number of the last internal command since the start; 0 if none.
    last_internal: Sequence,
    commands: spsc::Producer<LogCommand>,
    journal: Option<Box<dyn CommandLog>>,
    /// Sequence number of the last durable command; responses to commands up to it may be sent.
    durable: Sequence,
    /// The journal's state as last returned by `poll_log_state`.
    log_state: LogState,
    /// Number of appends that the journal could not take yet, because its buffer or the disk was full.
    delayed: u64,
}

/// Position of an arrival in the order of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    kernel_ns: u64,
    session: SessionId,
    /// Index in the batch.
    index: u32,
}

const _: () = assert!(size_of::<SortKey>() == 16);

/// On resume, the time of day may be earlier than that of the log's last command. If it is less than this
/// earlier, the clock was set back; otherwise a new day has begun.
const HALF_A_DAY: Nanos = Nanos::from_secs(12 * 3_600);

impl Sequencer {
    /// A sequencer without a journal, for at most `capacity` requests per duty cycle; starts at command 1.
    pub fn new(commands: spsc::Producer<LogCommand>, capacity: usize) -> Sequencer {
        let (batch, keys) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Sequencer {
            next: Sequence(1),
            resumed_after: None,
            last_at: Nanos::ZERO,
            expiries: Expiries::none(),
            batch,
            keys,
            sequenced: 0,
            last_internal: Sequence(0),
            commands,
            journal: None,
            durable: Sequence(u64::MAX),
            log_state: LogState::Running,
            delayed: 0,
        }
    }

    /// Adds a journal and continues after the command `last`, which was sequenced at `last_ts`.
    pub fn with_journal(self, journal: Box<dyn CommandLog>, last: Sequence, last_ts: Nanos) -> Sequencer {
        let resumed_after = (last > Sequence(0)).then_some(last_ts);
        Sequencer { next: last.next(), resumed_after, durable: last, journal: Some(journal), ..self }
    }

    /// Records a second of the day at which an order in the log expires.
    pub fn add_expiry(&mut self, second: u32) {
        self.expiries.add(second);
    }

    /// True when orders have expired by now and the log has no command yet that expires them.
    pub fn have_expired(&self, now: Nanos) -> bool {
        self.expiries.are_due(now.time_of_day())
    }

    /// Number of requests that may still be added to the batch.
    #[inline]
    #[must_use]
    pub fn remaining_capacity(&self) -> usize {
        self.batch.capacity() - self.batch.len()
    }

    /// Adds a request to the batch; its [`remaining_capacity`](Sequencer::remaining_capacity) must not be 0.
    #[inline]
    pub fn add(&mut self, arrival: Arrival) {
        debug_assert!(self.remaining_capacity() > 0, "the batch is bounded by its capacity");
        let index = self.batch.len() as u32;
        let kernel_ns = arrival.kernel_ns;
        failpoint!(ArrivalsSortedBySession: kernel_ns = 0);
        self.keys.push(SortKey { kernel_ns, session: arrival.session, index });
        self.batch.push(arrival);
    }

    /// Sorts the batch and writes it until journal or ring is full; returns the number of requests written.
    pub fn sequence(&mut self, now: Nanos, tracer: &mut impl Tracer) -> usize {
        let is_unsorted = self.sequenced == 0 && self.batch.len() > 1;
        failpoint!(ArrivalsUnsorted: is_unsorted = false);
        if is_unsorted {
            self.keys.sort_unstable();
        }
        if let Some(last_ts) = self.resumed_after.take() {
            self.resume(now, last_ts);
        }
        let start = self.sequenced;
        while let Some(key) = self.keys.get(self.sequenced) {
            let arrival = &self.batch[key.index as usize];
            let at = now.max(Nanos(self.last_at.0 + 1));
            let ts = at.time_of_day();
            let must_wait = self.expiries.are_due(ts)
                && !matches!(arrival.kind, LogCommandKind::Engine(CommandKind::ExpireOrders));
            failpoint!(ExpiryLate: must_wait = false);
            let command = match must_wait {
                true => expire_orders(self.next, ts),
                false => LogCommand::new(self.next, arrival.session, ts, arrival.kind),
            };
            let token = arrival.token.filter(|_| !must_wait);
            let journal = self.journal.as_mut();
            failpoint!(JournalSkipsRecord: journal = None, for self.next.0);
            if let Some(journal) = journal {
                // Append only if the ring has a free slot: a command in the journal must reach the matcher. Load
                // the matcher's position, a cache miss, only if no slot is known to be free.
                if self.commands.free_slots_hint() == 0 && self.commands.free_slots() == 0 {
                    return self.sequenced - start;
                }
                if !journal.append(&command) {
                    self.delayed += 1;
                    return self.sequenced - start;
                }
            }
            if self.commands.try_push(command).is_err() {
                return self.sequenced - start;
            }
            self.last_at = at;
            self.update_expiries(&command);
            let id = CommandId(self.next);
            tracer.stamp(Hop::T2, id);
            if let Some(token) = token {
                tracer.link(id, token);
            }
            failpoint!(RequestLoggedTwice: must_wait = true, for self.next.0);
            self.next = self.next.next();
            self.sequenced += usize::from(!must_wait);
        }
        // Internal commands sort last, so the batch has one if its last request is internal.
        if let Some(SortKey { kernel_ns: INTERNAL, .. }) = self.keys.last() {
            self.last_internal = Sequence(self.next.0 - 1);
        }
        self.batch.clear();
        self.keys.clear();
        let count = self.sequenced - start;
        self.sequenced = 0;
        count
    }

    /// Records the expiry of an order, if it has one; `ExpireOrders` clears the expiries that have passed.
    #[inline]
    fn update_expiries(&mut self, command: &LogCommand) {
        let LogCommand::Engine(command) = command else { return };
        let special = match &command.kind {
            CommandKind::Order(OrderRequest::Enter(order)) => &order.special,
            CommandKind::Order(OrderRequest::Replace(order)) => &order.special,
            CommandKind::ExpireOrders => return self.expiries.clear_until(command.ts),
            _ => return,
        };
        // An order whose expiry has passed is refused, so its expiry is not recorded.
        if let Some(OrderInstructions { expire_at: second @ 1.., .. }) = special
            && Nanos::from_secs((*second).into()) > command.ts
        {
            failpoint!(ExpiryForgotten => return);
            self.expiries.add(*second);
        }
    }

    /// Makes command times continue after `last_ts`, the log's last time, even if the clock was set back.
    #[cold]
    fn resume(&mut self, now: Nanos, last_ts: Nanos) {
        let ahead = Nanos((last_ts.0 + Nanos::DAY.0 - now.time_of_day().0) % Nanos::DAY.0);
        if ahead < HALF_A_DAY {
            self.last_at = now + ahead;
        }
    }

    /// Polls the journal; called in every duty cycle after commands are appended. Returns the amount of work.
    #[inline]
    pub fn poll_journal(&mut self) -> usize {
        let Some(journal) = &mut self.journal else { return 0 };
        let work = journal.poll();
        self.durable = journal.durable();
        work
    }

    /// Makes the journal's progress wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        if let Some(journal) = &self.journal {
            journal.wake_by(waker);
        }
    }

    /// The journal's state as last returned by [`poll_log_state`](Self::poll_log_state).
    #[must_use]
    pub fn log_state(&self) -> LogState {
        self.log_state
    }

    /// The journal's state if it has changed since the last call.
    pub fn poll_log_state(&mut self) -> Option<LogState> {
        let state = self.journal.as_ref()?.state();
        let is_changed = state != self.log_state;
        self.log_state = state;
        is_changed.then_some(state)
    }

    /// True while the log's remaining space is reserved for requests that remove orders: log no others.
    #[inline(always)]
    #[must_use]
    pub fn reserves_space_for_cancels(&self) -> bool {
        self.log_state == LogState::Full
            && self.journal.as_ref().is_some_and(|journal| !journal.has_space_for_refusals())
    }

    /// Description of the journal's failure, if it has failed.
    #[must_use]
    pub fn log_failure(&self) -> Option<String> {
        self.journal.as_ref().and_then(|journal| journal.failure())
    }

    /// True when the command is durable, so its events may be published.
    #[inline]
    pub fn is_durable(&self, command: Sequence) -> bool {
        failpoint!(AnswerBeforeSafe => return true);
        command <= self.durable
    }

    /// Sequence number of the last durable command; responses to commands up to it may be sent.
    #[inline]
    #[must_use]
    pub fn durable(&self) -> Sequence {
        self.durable
    }

    /// Number of appends that the journal could not take yet, because its buffer or the disk was full.
    #[inline]
    #[must_use]
    pub fn delayed(&self) -> u64 {
        self.delayed
    }

    /// True when all sequenced commands are durable, so their events may be published.
    pub fn is_all_durable(&self) -> bool {
        self.durable >= Sequence(self.next.0 - 1)
    }

    /// True when all added requests are in the log.
    #[inline]
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.batch.is_empty()
    }

    /// Sequence number of the last internal command since the start; 0 if none.
    pub fn last_internal(&self) -> Sequence {
        self.last_internal
    }

    /// Ends the ring to the matcher, which then finds the producer disconnected.
    pub fn end(&mut self) {
        end_ring(&mut self.commands);
    }

    /// Number of requests in the batch, including those already sequenced.
    #[inline]
    #[must_use]
    pub fn command_batch(&self) -> usize {
        self.batch.len()
    }

    /// Number of commands in the log.
    #[inline]
    #[must_use]
    pub fn command_count(&self) -> u64 {
        self.next.0 - 1
    }
}

#[cold]
fn expire_orders(sequence: Sequence, ts: Nanos) -> LogCommand {
    LogCommand::new(sequence, SessionId::default(), ts, CommandKind::ExpireOrders.into())
}

#[cfg(test)]
mod tests {
    use tickpath_timing::NoTrace;
    use tickpath_types::{CancelOrder, EnterOrder, InstrumentId, Price, Qty, Side, TimeInForce, UserRefNum};

    use super::*;

    fn arrival(kernel_ns: u64, session: u16, user_ref: u32) -> Arrival {
        let cancel = CancelOrder { user_ref: UserRefNum(user_ref), qty: Qty::ZERO };
        Arrival {
            kernel_ns,
            session: SessionId(session),
            token: None,
            kind: CommandKind::Order(OrderRequest::Cancel(cancel)).into(),
        }
    }

    /// A sequencer for at most `capacity` requests per cycle, and its ring of `slots` commands.
    fn sequencer(slots: usize, capacity: usize) -> (Sequencer, spsc::Consumer<LogCommand>) {
        let (producer, commands) = spsc::channel(slots);
        (Sequencer::new(producer, capacity), commands)
    }

    /// The sequenced commands, each with its UserRefNum, or 0 for `ExpireOrders`.
    fn taken(commands: &mut spsc::Consumer<LogCommand>) -> Vec<(u32, LogCommand)> {
        std::iter::from_fn(|| commands.try_pop())
            .map(|command| match command.engine_kind() {
                Some(CommandKind::Order(request)) => (request.user_ref().0, command),
                Some(CommandKind::ExpireOrders) => (0, command),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn user_refs(commands: &mut spsc::Consumer<LogCommand>) -> Vec<(u64, u32)> {
        taken(commands).into_iter().map(|(user_ref, command)| (command.sequence().0, user_ref)).collect()
    }

    fn times(commands: &mut spsc::Consumer<LogCommand>) -> Vec<(u32, u64)> {
        taken(commands).into_iter().map(|(user_ref, command)| (user_ref, command.ts().0)).collect()
    }

    #[test]
    fn kernel_times_order_sessions_and_each_session_keeps_its_order() {
        let (mut sequencer, mut commands) = sequencer(16, 16);
        for (kernel_ns, session, user_ref) in [(30, 1, 1), (30, 1, 2), (10, 2, 3), (30, 3, 4), (20, 2, 5)] {
            sequencer.add(arrival(kernel_ns, session, user_ref));
        }
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 5);
        assert_eq!(user_refs(&mut commands), [(1, 3), (2, 5), (3, 1), (4, 2), (5, 4)]);
        assert!(sequencer.is_drained());
    }

    #[test]
    fn a_full_ring_keeps_remaining_requests_in_order() {
        let (mut sequencer, mut commands) = sequencer(2, 3);
        for (kernel_ns, user_ref) in [(3, 3), (2, 2), (1, 1)] {
            sequencer.add(arrival(kernel_ns, 1, user_ref));
        }
        assert_eq!(sequencer.remaining_capacity(), 0);
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 2);
        assert!(!sequencer.is_drained());
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 0);
        assert_eq!(user_refs(&mut commands), [(1, 1), (2, 2)]);
        assert_eq!(sequencer.sequence(Nanos(1), &mut NoTrace), 1);
        assert_eq!(user_refs(&mut commands), [(3, 3)]);
        assert_eq!((sequencer.command_count(), sequencer.remaining_capacity()), (3, 3));
    }

    #[test]
    fn command_times_are_unique_and_restart_at_midnight() {
        let (mut sequencer, mut commands) = sequencer(16, 16);
        // Two nanoseconds before midnight.
        let now = Nanos(3 * Nanos::DAY.0 - 2);
        for (now, count) in [(now, 3), (now, 2), (Nanos(now.0 + 100), 1)] {
            for user_ref in 1..=count {
                sequencer.add(arrival(0, 1, user_ref));
            }
            assert_eq!(sequencer.sequence(now, &mut NoTrace), count as usize);
        }
        let times: Vec<u64> = times(&mut commands).into_iter().map(|(_, ts)| ts).collect();
        let midnight = Nanos::DAY.0;
        assert_eq!(times, [midnight - 2, midnight - 1, 0, 1, 2, 98]);
    }

    fn expiring(user_ref: u32, expire_at: u32) -> Arrival {
        let order = EnterOrder {
            time_in_force: TimeInForce::Gtt,
            special: Some(OrderInstructions { expire_at, ..OrderInstructions::default() }),
            ..EnterOrder::limit(UserRefNum(user_ref), InstrumentId(1), Side::Buy, Qty(1), Price(100))
        };
        Arrival { kind: CommandKind::Order(OrderRequest::Enter(order)).into(), ..arrival(0, 1, user_ref) }
    }

    #[test]
    fn orders_expire_before_commands_of_the_same_time() {
        let (mut sequencer, mut commands) = sequencer(16, 16);
        // The second order's expiry has passed; the third expires at the time of the fifth command.
        let second = 1_000_000_000;
        for new in [expiring(1, 9), expiring(2, 1), expiring(3, 2), arrival(1, 1, 4), arrival(1, 1, 5)] {
            sequencer.add(new);
        }
        let now = Nanos(2 * second - 4);
        assert!(!sequencer.have_expired(now));
        assert_eq!(sequencer.sequence(now, &mut NoTrace), 5);
        let at = |user_ref, ahead| (user_ref, now.0 + ahead);
        assert_eq!(times(&mut commands), [at(1, 0), at(2, 1), at(3, 2), at(4, 3), at(0, 4), at(5, 5)]);
        assert_eq!(sequencer.command_count(), 6);
        // The first order expires without a further request.
        let now = Nanos(Nanos::DAY.0 + 9 * second);
        assert!(sequencer.have_expired(now));
        sequencer.add(Arrival::internal(SessionId(0), CommandKind::ExpireOrders));
        assert_eq!(sequencer.sequence(now, &mut NoTrace), 1);
        assert_eq!(times(&mut commands), [(0, 9 * second)]);
        assert!(!sequencer.have_expired(now));
    }

    #[test]
    fn expiry_with_a_full_ring_loses_nothing() {
        let (mut sequencer, mut commands) = sequencer(2, 4);
        sequencer.add_expiry(1);
        let now = Nanos(2_000_000_000);
        (1..=2).for_each(|user_ref| sequencer.add(arrival(user_ref, 1, user_ref as u32)));
        assert_eq!(sequencer.sequence(now, &mut NoTrace), 1);
        assert_eq!(sequencer.sequence(now, &mut NoTrace), 0);
        assert_eq!(times(&mut commands), [(0, now.0), (1, now.0 + 1)]);
        assert_eq!(sequencer.sequence(now, &mut NoTrace), 1);
        assert_eq!(times(&mut commands), [(2, now.0 + 2)]);
        assert!(sequencer.is_drained());
    }

    #[test]
    fn requests_refused_by_a_full_ring_use_no_time() {
        let (mut sequencer, mut commands) = sequencer(2, 3);
        (1..=3).for_each(|user_ref| sequencer.add(arrival(0, 1, user_ref)));
        for _ in 0..5 {
            sequencer.sequence(Nanos(7), &mut NoTrace);
        }
        assert_eq!(times(&mut commands), [(1, 7), (2, 8)]);
        sequencer.sequence(Nanos(7), &mut NoTrace);
        assert_eq!(times(&mut commands), [(3, 9)]);
    }
}
