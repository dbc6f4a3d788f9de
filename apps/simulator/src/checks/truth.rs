//! The expected results: the log replayed by the reference engine.

use tickpath_exchange::LogCommand;
use tickpath_matching::{Command, CommandKind, EventListener};
use tickpath_nasdaq::itch50::encode_market_event;
use tickpath_nasdaq::ouch50::{self, EventCode, QueryResponse, SystemEvent};
use tickpath_reference::{ReferenceEngine, ReferenceOrder};
use tickpath_types::{
    InstrumentId, InstrumentTable, MarketEvent, Nanos, OrderEvent, Sequence, SessionId, SystemEventCode,
    UserRefNum,
};
use zerocopy::IntoBytes;

use crate::Observed;

/// Upper bound of the length of an OUCH or ITCH message.
const MESSAGE_LEN_MAX: usize = 256;

/// The results that the reference engine computes from the log.
pub(super) struct Truth {
    /// Each user's expected messages, from sequence number 1.
    pub(super) streams: Vec<Vec<ExpectedMessage>>,
    /// Index of the receiving user for each message of all users, in log order.
    pub(super) order: Vec<usize>,
    /// The expected market data messages, from sequence number 1.
    pub(super) market: Vec<MarketMessage>,
    /// Number of open orders of each user, after each command that changed the number.
    pub(super) open_counts: Vec<Vec<(Sequence, usize)>>,
    /// Orders still open at or after their expiry when a command other than `ExpireOrders` was applied, each
    /// with that command.
    pub(super) overdue: Vec<(Sequence, ReferenceOrder)>,
    /// The engine after the last command.
    pub(super) engine: ReferenceEngine,
    pub(super) table: InstrumentTable,
    /// Number of market events of kind `Executed`.
    pub(super) executions: u64,
}

pub(super) struct ExpectedMessage {
    pub(super) command: Sequence,
    /// The order event of the message; `None` for answers to queries and for session phases.
    pub(super) event: Option<OrderEvent>,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct MarketMessage {
    pub(super) event: MarketEvent,
    pub(super) bytes: Vec<u8>,
}

impl Truth {
    pub(super) fn of(observed: &Observed) -> Truth {
        let users = observed.setup.users.len();
        let mut truth = Truth {
            streams: (0..users).map(|_| Vec::new()).collect(),
            order: Vec::new(),
            market: Vec::new(),
            open_counts: vec![Vec::new(); users],
            overdue: Vec::new(),
            engine: ReferenceEngine::new(&observed.setup.instruments, observed.setup.limits),
            table: InstrumentTable::with_capacity(
                &observed.setup.instruments,
                InstrumentId(observed.setup.limits.max_instruments),
            ),
            executions: 0,
        };
        let mut engine = truth.engine.clone();
        let mut next_expiry = None;
        for command in &observed.log.commands {
            if next_expiry.is_some_and(|at| command.ts() >= at) {
                truth.record_overdue(&engine, command);
            }
            let LogCommand::Engine(command) = command else { continue };
            if let CommandKind::AddInstrument(instrument) = command.kind {
                // No book exists for an instrument that the table refuses.
                let _ = truth.table.add(instrument);
            }
            engine.apply(command, &mut truth);
            next_expiry = truth.count_open(&engine, command.sequence);
        }
        truth.engine = engine;
        truth
    }

    /// Unless the command is `ExpireOrders`, records the orders that are open although their expiry is due.
    fn record_overdue(&mut self, engine: &ReferenceEngine, command: &LogCommand) {
        if command.engine_kind() != Some(&CommandKind::ExpireOrders) {
            let is_overdue = |it: &&ReferenceOrder| it.expires_at().is_some_and(|at| at <= command.ts());
            self.overdue.extend(engine.open_orders().filter(is_overdue).map(|it| (command.sequence(), *it)));
        }
    }

    /// Records the number of open orders of each user; returns the earliest expiry.
    fn count_open(&mut self, engine: &ReferenceEngine, command: Sequence) -> Option<Nanos> {
        let mut counts = vec![0; self.open_counts.len()];
        for order in engine.open_orders() {
            if let Some(count) = place_of(order.session).and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        for (changes, count) in self.open_counts.iter_mut().zip(counts) {
            if changes.last().map_or(0, |(_, last)| *last) != count {
                changes.push((command, count));
            }
        }
        engine.open_orders().filter_map(ReferenceOrder::expires_at).min()
    }

    pub(super) fn open_after(&self, place: usize, command: Sequence) -> usize {
        let changes = &self.open_counts[place];
        let count = changes.partition_point(|(at, _)| *at <= command);
        count.checked_sub(1).map_or(0, |last| changes[last].1)
    }

    /// Returns the sequence number of the last market event that the commands up to this one cause.
    pub(super) fn market_after(&self, command: Sequence) -> u64 {
        self.market.partition_point(|public| public.event.command <= command) as u64
    }

    fn push_message(
        &mut self,
        session: SessionId,
        command: Sequence,
        event: Option<OrderEvent>,
        bytes: &[u8],
    ) {
        if let Some(place) = place_of(session).filter(|place| *place < self.streams.len()) {
            self.streams[place].push(ExpectedMessage { command, event, bytes: bytes.to_vec() });
            self.order.push(place);
        }
    }
}

/// Returns the index of a session's user in the lists of users: the session minus one.
pub(super) fn place_of(session: SessionId) -> Option<usize> {
    usize::from(session.0).checked_sub(1)
}

impl EventListener for Truth {
    fn on_order_event(&mut self, event: &OrderEvent) {
        let mut out = [0; MESSAGE_LEN_MAX];
        // An event that cannot be encoded has no bytes here, and no client receives it.
        let len = ouch50::encode_event(event, |id| self.table.symbol(id), &mut out).unwrap_or(0);
        self.push_message(event.session, event.command, Some(*event), &out[..len]);
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        let mut out = [0; MESSAGE_LEN_MAX];
        let len = encode_market_event(event, self.table.get(event.instrument), &mut out).unwrap_or(0);
        self.executions += u64::from(matches!(event.kind, tickpath_types::MarketEventKind::Executed { .. }));
        self.market.push(MarketMessage { event: *event, bytes: out[..len].to_vec() });
    }

    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        let answer = QueryResponse::new(query.ts, next);
        self.push_message(query.session, query.sequence, None, answer.as_bytes());
    }

    /// Every user receives the start and the end of the day, and no other session phase.
    fn on_session_phase(&mut self, command: &Command, stage: SystemEventCode) {
        let code = match stage {
            SystemEventCode::StartOfSystemHours => EventCode::START_OF_DAY,
            SystemEventCode::EndOfSystemHours => EventCode::END_OF_DAY,
            _ => return,
        };
        let event = SystemEvent::new(command.ts, code);
        for session in (1..=self.streams.len() as u16).map(SessionId) {
            self.push_message(session, command.sequence, None, event.as_bytes());
        }
    }
}
