//! The state that results from the log: the engine, and all messages sent to users or published.

mod layout;

pub use layout::ReplicaError;

use tickpath_book::FastBooks;
use tickpath_faults::failpoint;
use tickpath_matching::{Command, CommandKind, Engine, EventListener, Owner};
use tickpath_nasdaq::itch50::encode_market_event;
use tickpath_types::{
    Instrument, InstrumentId, InstrumentTable, MarketEvent, Nanos, OrderEvent, Price, Qty, Sequence,
    SessionId, SystemEventCode, UserName, UserRefNum,
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::day::ReplayedDay;
use crate::entitlements::ReplayedUser;
use crate::log_command::{LogCommand, LogCommandKind, VenueCommand, VenueCommandKind};
use crate::message_log::{MAX_LOGGED_MESSAGE, MAX_STORED_MESSAGE, MessageLog};
use crate::session_messages::{append_event, append_query_answer, append_session_phase};

pub use tickpath_matching::EngineLimits;

/// The settings needed to read a log. Every snapshot contains them, so no configuration is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Instruments defined when the session began, without those added later.
    pub instruments: Vec<Instrument>,
    /// Bounds of the engine.
    pub limits: EngineLimits,
    /// Names of the users of sessions 1, 2, 3 ...
    pub users: Vec<String>,
    /// Number of messages kept for each user.
    pub retained_responses: usize,
    /// Number of market data messages kept.
    pub retained_messages: usize,
}

/// A venue without its sockets: the engine and all outbound messages, as the log determines them.
///
/// Replicas with the same commands are identical to each other and to the venue. A memory page is allocated
/// when it is first used.
pub struct Replica {
    definition: Definition,
    /// The matching engine.
    pub engine: Box<Engine<FastBooks<Owner>>>,
    /// Messages to users, and market data messages.
    pub streams: OutboundStreams,
    /// State of the trading day and of the users.
    pub replayed: ReplayedState,
}

/// Messages to users and market data messages, as the log determines them.
pub struct OutboundStreams {
    /// The venue's instruments, including added ones.
    pub table: InstrumentTable,
    /// Messages to each user, in session order.
    pub users: Vec<Stream<MAX_LOGGED_MESSAGE>>,
    /// Market data messages.
    pub market: Stream<MAX_STORED_MESSAGE>,
    /// First command with an event that the market data protocol cannot encode, if any.
    pub unencodable: Option<Sequence>,
    /// First command with a response to a user that the definition does not name, if any: the command was
    /// decided under another definition.
    pub undeliverable: Option<Sequence>,
}

/// The newest messages of a numbered stream, and a digest of all messages ever appended to it.
pub struct Stream<const LEN_MAX: usize> {
    /// The newest messages.
    pub messages: MessageLog<LEN_MAX>,
    digest: u64,
}

/// The state that results from the log, apart from the engine and the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedState {
    /// Time at which the last command was sequenced, since midnight.
    pub last_ts: Nanos,
    /// True while all users are killed, so that their new orders are refused.
    pub is_killed: bool,
    /// State of the trading day.
    pub day: ReplayedDay,
    /// State of each user, in session order.
    pub users: Vec<ReplayedUser>,
}

impl Replica {
    /// The replica before the first command.
    ///
    /// # Errors
    /// [`ReplicaError::Engine`] when the engine rejects the instruments.
    pub fn new(definition: Definition) -> Result<Replica, ReplicaError> {
        let engine = Engine::untouched(&definition.instruments, definition.limits)?;
        let streams = OutboundStreams {
            table: table_of(&definition, &engine),
            users: definition.users.iter().map(|_| Stream::new(definition.retained_responses)).collect(),
            market: Stream::new(definition.retained_messages),
            unencodable: None,
            undeliverable: None,
        };
        let replayed = ReplayedState {
            last_ts: Nanos::ZERO,
            is_killed: false,
            day: ReplayedDay::default(),
            users: vec![ReplayedUser::default(); definition.users.len()],
        };
        Ok(Replica { engine: Box::new(engine), streams, replayed, definition })
    }

    /// Touches all memory that has not been touched yet, so that a venue's duty cycles have no page faults.
    pub fn prefault(&mut self) {
        self.engine.prefault();
        self.streams.users.iter_mut().for_each(|user| user.messages.prefault());
        self.streams.market.messages.prefault();
    }

    /// The definition under which the log is read.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Applies the next command.
    pub fn apply(&mut self, command: &LogCommand) {
        self.update(command);
        command.apply(&mut self.engine, &mut self.streams);
    }

    /// As [`Replica::apply`]; `on_message` gets each message to a user: user index, sequence number, bytes.
    pub fn apply_with_messages(&mut self, command: &LogCommand, on_message: impl FnMut(usize, u64, &[u8])) {
        self.update(command);
        command.apply(&mut self.engine, &mut MessageTap { streams: &mut self.streams, on_message });
    }

    /// As [`Replica::apply`], but only `out` receives the events: outbound messages are not kept.
    pub fn apply_to(&mut self, command: &LogCommand, out: &mut impl EventListener) {
        self.update(command);
        command.apply(&mut self.engine, out);
    }

    /// Updates the replayed state, the instrument table and the users before the engine applies the command.
    fn update(&mut self, command: &LogCommand) {
        self.replayed.update(command);
        match command {
            // If the table rejects the instrument, the engine ignores it too.
            LogCommand::Engine(Command { kind: CommandKind::AddInstrument(instrument), .. }) => {
                _ = self.streams.table.add(*instrument);
            }
            LogCommand::Venue(VenueCommand { session, kind: VenueCommandKind::AddUser { name }, .. }) => {
                self.add_user(*session, *name);
            }
            _ => {}
        }
    }

    /// Adds a user without messages; does nothing unless `session` is the next one and below the maximum.
    #[cold]
    fn add_user(&mut self, session: SessionId, name: UserName) {
        let Definition { users, limits, retained_responses, .. } = &mut self.definition;
        let is_next = usize::from(session.0) == users.len() + 1 && session.0 < limits.max_sessions;
        if !is_next {
            return;
        }
        users.push(name.to_string());
        self.streams.users.push(Stream::new(*retained_responses));
        self.replayed.users.push(ReplayedUser::default());
    }

    /// Sequence number of each user's next message, in session order.
    pub fn next_numbers(&self) -> impl Iterator<Item = u64> {
        self.streams.users.iter().map(|user| user.messages.next_sequence())
    }

    /// Prefetches memory that these commands will access.
    pub fn look_ahead(&mut self, commands: &[LogCommand]) {
        self.engine.look_ahead(commands.iter().filter_map(LogCommand::engine));
    }

    /// Sequence number of the last applied command.
    #[must_use]
    pub fn last_command(&self) -> Sequence {
        self.engine.last_command()
    }

    /// XXH3 digest (64 bits) of the engine's state and of every byte sent to users or published.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&self.engine.state_hash().to_le_bytes());
        let users = self.streams.users.iter().map(|user| (user.messages.next_sequence(), user.digest));
        let market = (self.streams.market.messages.next_sequence(), self.streams.market.digest);
        for (next, digest) in users.chain([market]) {
            hasher.update(&next.to_le_bytes());
            hasher.update(&digest.to_le_bytes());
        }
        hasher.digest()
    }

    /// Number of messages to all users, and number of market data messages, since the session began.
    #[must_use]
    pub fn message_counts(&self) -> (u64, u64) {
        let users = self.streams.users.iter().map(|user| user.messages.next_sequence() - 1);
        (users.sum(), self.streams.market.messages.next_sequence() - 1)
    }

    /// Continues under another definition, which may have other bounds and more users after the existing
    /// ones. Reserves capacity for its additional instruments; later commands add them.
    ///
    /// Returns true if the definition changed: then a snapshot must be written before the next command.
    ///
    /// # Errors
    /// [`ReplicaError`] when the log has other instruments or users, or its state exceeds the limits.
    pub fn redefine(&mut self, mut requested: Definition) -> Result<bool, ReplicaError> {
        self.check_instruments(&requested.instruments)?;
        // Keep capacity for instruments already added, even if the new definition reserves less.
        let needed = self.streams.table.iter().count().max(requested.instruments.len());
        if needed > self.definition.instruments.len() {
            requested.limits.max_instruments = requested.limits.max_instruments.max(needed as u16);
        }
        requested.instruments.clone_from(&self.definition.instruments);
        if requested == self.definition {
            return Ok(false);
        }
        let known = &self.definition.users;
        let are_kept =
            requested.users.iter().zip(known).all(|(requested, known)| requested.eq_ignore_ascii_case(known));
        if !are_kept || requested.users.len() < known.len() {
            return Err(ReplicaError::Users(known.join(", ")));
        }
        let (expected, found) = (self.definition.limits.max_sessions, requested.limits.max_sessions);
        if expected != found {
            return Err(ReplicaError::Capacity { expected, found });
        }
        if requested.limits != self.definition.limits {
            let mut state = Vec::new();
            self.engine.snapshot(&mut state);
            *self.engine = Engine::restore(&requested.instruments, requested.limits, &state)?;
            self.streams.table = table_of(&requested, &self.engine);
        }
        let OutboundStreams { users, market, .. } = &mut self.streams;
        for user in users.iter_mut() {
            user.messages = user.messages.resized(requested.retained_responses);
        }
        users.resize_with(requested.users.len(), || Stream::new(requested.retained_responses));
        self.replayed.users.resize(requested.users.len(), ReplayedUser::default());
        market.messages = market.messages.resized(requested.retained_messages);
        self.definition = requested;
        Ok(true)
    }

    /// Checks that all initial instruments are present and unchanged. After them, `requested` may list the
    /// instruments added since, in order of addition, and then new ones.
    fn check_instruments(&self, requested: &[Instrument]) -> Result<(), ReplicaError> {
        let listed = |known: &Instrument| requested.iter().find(|requested| requested.symbol == known.symbol);
        let first = self.definition.instruments.iter();
        let missing: Vec<String> =
            first.filter(|known| listed(known).is_none()).map(|known| known.symbol.to_string()).collect();
        if !missing.is_empty() {
            return Err(ReplicaError::InstrumentsMissing(missing.join(", ")));
        }
        for known in self.streams.table.iter() {
            if let Some(field) = listed(known).and_then(|requested| difference(known, requested)) {
                return Err(ReplicaError::InstrumentChanged { symbol: known.symbol, field });
            }
        }
        for Instrument { id, symbol, .. } in requested {
            if let Some(known) = self.streams.table.symbol(*id).filter(|known| known != symbol) {
                return Err(ReplicaError::InstrumentMisplaced { symbol: *symbol, id: *id, known });
            }
        }
        Ok(())
    }
}

/// Description of the first difference between two definitions of an instrument, apart from the id.
fn difference(was: &Instrument, is: &Instrument) -> Option<String> {
    let price = |name, of: fn(&Instrument) -> Price| (name, of(was).to_string(), of(is).to_string());
    let qty = |name, of: fn(&Instrument) -> Qty| (name, of(was).to_string(), of(is).to_string());
    let fields = [
        price("reference_price", |instrument| instrument.reference_price),
        price("tick_size", |instrument| instrument.tick_size),
        qty("lot_size", |instrument| instrument.lot_size),
        qty("max_qty", |instrument| instrument.max_qty),
        price("lowest price", |instrument| instrument.collar_low),
        price("highest price", |instrument| instrument.collar_high),
    ];
    let (name, was, is) = fields.into_iter().find(|(_, was, is)| was != is)?;
    Some(format!("{name} was {was} and is {is}"))
}

/// Table of the definition's instruments and of those that the engine added, up to the definition's maximum.
fn table_of(definition: &Definition, engine: &Engine<FastBooks<Owner>>) -> InstrumentTable {
    let max_id = InstrumentId(definition.limits.max_instruments);
    let table = InstrumentTable::with_capacity(&definition.instruments, max_id);
    while let Some(added) = engine.instrument(table.next_id()) {
        if table.add(*added).is_err() {
            break;
        }
    }
    table
}

impl ReplayedState {
    #[inline]
    fn update(&mut self, command: &LogCommand) {
        self.last_ts = command.ts();
        if !matches!(command.engine_kind(), Some(CommandKind::Order(_))) {
            self.update_rare(command.session(), &command.kind());
        }
    }

    #[cold]
    fn update_rare(&mut self, session: SessionId, kind: &LogCommandKind) {
        if let LogCommandKind::Engine(CommandKind::KillVenue { is_killed }) = *kind {
            self.is_killed = is_killed;
        }
        self.day.update(kind);
        if let Some(user) = user_place(session).and_then(|place| self.users.get_mut(place)) {
            user.update(kind);
        }
    }
}

fn user_place(session: SessionId) -> Option<usize> {
    usize::from(session.0).checked_sub(1)
}

impl<const LEN_MAX: usize> Stream<LEN_MAX> {
    fn new(capacity: usize) -> Self {
        Stream { messages: MessageLog::new(capacity), digest: 0 }
    }

    #[inline]
    fn append(&mut self, append: impl FnOnce(&mut MessageLog<LEN_MAX>)) {
        let sequence = self.messages.next_sequence();
        append(&mut self.messages);
        if let Some(message) = self.messages.message(sequence) {
            self.digest = xxh3_64_with_seed(message, self.digest);
        }
    }
}

impl EventListener for OutboundStreams {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        let OutboundStreams { users, table, undeliverable, .. } = self;
        let Some(place) = user_place(event.session) else { return };
        if let Some(user) = users.get_mut(place) {
            user.append(|log| append_event(log, event, table));
            failpoint!(FillDoubledOnReplay => if let tickpath_types::OrderEventKind::Executed { .. } = event.kind {
                user.append(|log| append_event(log, event, table));
            });
        } else {
            undeliverable.get_or_insert(event.command);
        }
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        let mut message = [0; MAX_STORED_MESSAGE];
        match encode_market_event(event, self.table.get(event.instrument), &mut message) {
            Ok(len) => self.market.append(|log| log.append(&message[..len])),
            Err(_) => _ = self.unencodable.get_or_insert(event.command),
        }
    }

    #[cold]
    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        if let Some(user) = user_place(query.session).and_then(|place| self.users.get_mut(place)) {
            user.append(|log| append_query_answer(log, query.ts, next));
        }
    }

    #[cold]
    fn on_session_phase(&mut self, command: &Command, phase: SystemEventCode) {
        (0..self.users.len()).for_each(|place| self.append_session_phase(place, command, phase));
    }
}

impl OutboundStreams {
    fn append_session_phase(&mut self, place: usize, command: &Command, phase: SystemEventCode) {
        self.users[place].append(|log| append_session_phase(log, command.ts, phase));
    }
}

/// Outbound streams, with a function that also receives each message to a user.
struct MessageTap<'a, F> {
    streams: &'a mut OutboundStreams,
    on_message: F,
}

impl<F: FnMut(usize, u64, &[u8])> MessageTap<'_, F> {
    fn tap(&mut self, session: SessionId, append: impl FnOnce(&mut OutboundStreams)) {
        let newest = |streams: &OutboundStreams| {
            let place = user_place(session)?;
            Some((place, streams.users.get(place)?.messages.next_sequence()))
        };
        let before = newest(self.streams);
        append(self.streams);
        if let Some((place, number)) = before
            && let Some(message) = self.streams.users[place].messages.message(number)
        {
            (self.on_message)(place, number, message);
        }
    }
}

impl<F: FnMut(usize, u64, &[u8])> EventListener for MessageTap<'_, F> {
    fn on_order_event(&mut self, event: &OrderEvent) {
        self.tap(event.session, |streams| streams.on_order_event(event));
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.streams.on_market_event(event);
    }

    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        self.tap(query.session, |streams| streams.on_query_answer(query, next));
    }

    fn on_session_phase(&mut self, command: &Command, phase: SystemEventCode) {
        for place in 0..self.streams.users.len() {
            self.tap(SessionId(place as u16 + 1), |streams| {
                streams.append_session_phase(place, command, phase)
            });
        }
    }
}
