//! A synthetic run: two instances of the venue, four clients and one feed handler on a perfect network.

use std::collections::BTreeMap;

use tickpath_book::{BookLimits, BooksById, FastBooks, Order, OrderBooks, PackedBooks};
use tickpath_exchange::{
    Definition, LogCommand, LogCommandKind, Password, Replica, UserSettings, VenueCommandKind,
};
use tickpath_feed::{BookBuilder, MessageBooks, UpdateListener};
use tickpath_journal::{Policy, Snapshot};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};
use tickpath_nasdaq::itch50::encode_market_event;
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_nasdaq::ouch50::{QueryResponse, encode_event, encode_request};
use tickpath_nasdaq::soupbintcp::Packet;
use tickpath_simulator::{
    ClientEvent, ClientEventKind, ClientLog, DisconnectCause, FeedInstance, FinalVenue, HostFailure, Line,
    Log, LoginOutcome, Observed, Setup, Timed, VenueEvent,
};
use tickpath_types::Rng;
use tickpath_types::*;
use zerocopy::IntoBytes;

/// Virtual time between commands, in nanoseconds.
const STEP: u64 = 1_000_000;
/// Number of random actions, mostly client requests, before the venue's crash.
const REQUESTS: u64 = 450;
/// Time from a disconnect to the cancel of the user's orders, for users with cancel-on-disconnect.
pub const GRACE: Nanos = Nanos(20 * STEP);
const USERS: u16 = 4;

/// The simulated system, which records all output of a run.
struct World {
    rng: Rng,
    engine: Engine<FastBooks<Owner>>,
    outputs: Outputs,
    observed: Observed,
    now: Nanos,
    /// Number of messages so far, by user.
    message_counts: Vec<u64>,
    /// Next UserRefNum, by user.
    next_ref: Vec<u32>,
    connection: Vec<u32>,
    is_disconnected: Vec<bool>,
    /// Messages queued for disconnected users.
    waiting: Vec<Vec<(Sequence, Vec<u8>)>>,
    packet: PacketBuilder<Vec<u8>>,
    definition: Definition,
}

#[derive(Default)]
struct Outputs {
    table: Option<InstrumentTable>,
    answers: Vec<(SessionId, Vec<u8>)>,
    market: Vec<MarketEvent>,
}

impl EventListener for Outputs {
    fn on_order_event(&mut self, event: &OrderEvent) {
        let mut out = [0; 256];
        let table = self.table.as_ref().unwrap();
        let len = encode_event(event, |id| table.symbol(id), &mut out).unwrap();
        self.answers.push((event.session, out[..len].to_vec()));
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.market.push(*event);
    }

    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        self.answers.push((query.session, QueryResponse::new(query.ts, next).as_bytes().to_vec()));
    }
}

/// Returns the observations of a run; the same seed gives the same run.
pub fn observe(seed: u64) -> Observed {
    let mut world = World::new(seed);
    world.start();
    (1..=USERS).for_each(|session| world.log_in(SessionId(session)));
    world.open_day();
    for _ in 0..REQUESTS {
        world.act();
    }
    world.crash();
    world.start();
    (1..=USERS).for_each(|session| world.log_in(SessionId(session)));
    for _ in 0..REQUESTS / 2 {
        world.act();
    }
    world.end_day();
    for _ in 0..REQUESTS / 2 {
        world.act();
    }
    world.disconnect(SessionId(2));
    for _ in 0..REQUESTS / 4 {
        world.act_of(SessionId(1));
    }
    world.log_in(SessionId(2));
    world.act_of(SessionId(2));
    world.end()
}

impl World {
    fn new(seed: u64) -> World {
        let instruments: Vec<Instrument> = (1..=2)
            .map(|id| Instrument {
                id: InstrumentId(id),
                symbol: Symbol::new(&format!("SYM{id}")).unwrap(),
                tick_size: Price(100),
                lot_size: Qty(if id == 1 { 1 } else { 10 }),
                max_qty: Qty(10_000),
                reference_price: Price(100_000),
                collar_low: Price(90_000),
                collar_high: Price(110_000),
            })
            .collect();
        let limits = EngineLimits {
            max_open_orders: 1 << 12,
            max_open_orders_per_session: 1 << 12,
            max_sessions: USERS + 1,
            max_index_pages: 64,
            max_index_pages_per_session: 32,
            max_special_orders: 1 << 11,
            max_recent_executions: 1 << 6,
            max_instruments: 0,
        };
        let user = |session: u16| UserSettings {
            cancel_on_disconnect: session.is_multiple_of(2).then_some(GRACE),
            ..UserSettings::new(format!("USER{session}"), Password::plain("secret"))
        };
        let users: Vec<UserSettings> = (1..=USERS).map(user).collect();
        let client = |session| ClientLog { session: SessionId(session), events: Vec::new() };
        let definition = Definition {
            instruments: instruments.clone(),
            limits,
            users: users.iter().map(|user| user.name.clone()).collect(),
            retained_responses: 1 << 12,
            retained_messages: 1 << 12,
        };
        let table = Some(InstrumentTable::new(&instruments));
        World {
            rng: Rng::new(seed),
            engine: Engine::new(&instruments, limits).unwrap(),
            outputs: Outputs { table, ..Outputs::default() },
            now: Nanos(STEP),
            message_counts: vec![0; USERS.into()],
            next_ref: vec![1; USERS.into()],
            connection: vec![0; USERS.into()],
            is_disconnected: vec![true; USERS.into()],
            waiting: vec![Vec::new(); USERS.into()],
            packet: PacketBuilder::new(vec![0; 60_000], Session::new("TODAY").unwrap(), Sequence(1)),
            definition,
            observed: Observed {
                setup: Setup {
                    instruments,
                    limits,
                    policy: Policy::Group,
                    users,
                    schedule: vec![0],
                    reaction_max: Nanos(4 * STEP),
                },
                clients: (1..=USERS).map(client).collect(),
                copies: None,
                venue: Vec::new(),
                clock_steps: Vec::new(),
                log: Log::default(),
                published: Vec::new(),
                retransmitted: Vec::new(),
                feeds: Vec::new(),
                traders: Vec::new(),
                last: FinalVenue::default(),
                ended_at: Nanos(0),
            },
        }
    }

    fn start(&mut self) {
        let replica = self.replay();
        let last = replica.last_command();
        let mut payload = Vec::new();
        replica.encode(&mut payload);
        let state_hash = replica.state_hash();
        self.observed.log.snapshots.push(Snapshot { sequence: last, state_hash, payload });
        let journal = self.observed.log.commands.clone();
        self.venue(VenueEvent::Started { last, state_hash, journal });
    }

    fn replay(&self) -> Replica {
        let mut replica = Replica::new(self.definition.clone()).unwrap();
        self.observed.log.commands.iter().for_each(|command| replica.apply(command));
        replica
    }

    fn venue(&mut self, value: VenueEvent) {
        self.now.0 += STEP;
        self.observed.venue.push(Timed { at: self.now, value });
    }

    fn record(&mut self, session: SessionId, kind: ClientEventKind) {
        let place = usize::from(session.0) - 1;
        let (at, connection) = (self.now, self.connection[place]);
        self.observed.clients[place].events.push(ClientEvent { at, connection, kind });
    }

    fn log_in(&mut self, session: SessionId) {
        let place = usize::from(session.0) - 1;
        self.connection[place] += 1;
        let waiting = std::mem::take(&mut self.waiting[place]);
        let sequence =
            waiting.first().map_or(Sequence(self.message_counts[place] + 1), |(sequence, _)| *sequence);
        self.record(session, ClientEventKind::Connected);
        self.record(session, ClientEventKind::LoginSent { sequence });
        self.now.0 += STEP;
        self.record(session, ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }));
        self.is_disconnected[place] = false;
        for (sequence, bytes) in waiting {
            self.deliver(session, sequence, bytes);
        }
    }

    /// Disconnects the client, and cancels its orders after its grace period, if it has one.
    fn disconnect(&mut self, session: SessionId) {
        self.record(session, ClientEventKind::Disconnected(DisconnectCause::Client));
        self.record(session, ClientEventKind::DisconnectedAtVenue);
        self.is_disconnected[usize::from(session.0) - 1] = true;
        if let Some(grace) = self.observed.setup.users[usize::from(session.0) - 1].cancel_on_disconnect {
            self.now.0 += grace.0;
            self.sequence(session, CommandKind::CancelAll { reason: CancelReason::System });
        }
    }

    fn crash(&mut self) {
        for session in 1..=USERS {
            self.record(SessionId(session), ClientEventKind::Disconnected(DisconnectCause::Venue));
            self.record(SessionId(session), ClientEventKind::DisconnectedAtVenue);
        }
        self.is_disconnected.fill(true);
        self.venue(VenueEvent::Crashed(HostFailure::Power));
    }

    fn open_day(&mut self) {
        let limits =
            CommandKind::SetLimits { open_orders: u32::MAX, order_qty: Qty(900), order_notional: u64::MAX };
        self.sequence(SessionId(4), limits);
        for (session, strategy) in
            [(1, SelfTradePrevention::CancelOldest), (3, SelfTradePrevention::Decrement)]
        {
            let account = SessionId(session);
            self.sequence(account, CommandKind::SetSelfTradePrevention { strategy, account });
        }
        self.sequence(SessionId(0), CommandKind::System(SystemEventCode::StartOfMessages));
        self.sequence(SessionId(0), VenueCommandKind::ScheduleDone { day: 0, second: 0 });
        for instrument in [InstrumentId(1), InstrumentId(2)] {
            let state = TradingState::Trading;
            self.sequence(SessionId(0), CommandKind::OpenInstrument { instrument, state });
        }
    }

    /// Ends the day; UserRefNums restart at 1.
    fn end_day(&mut self) {
        self.sequence(SessionId(0), CommandKind::EndDay);
        self.next_ref.fill(1);
    }

    fn act(&mut self) {
        let session = SessionId(1 + self.below(USERS.into()) as u16);
        match self.below(100) {
            0 => {
                let state = TradingState::Halted;
                let instrument = InstrumentId(2);
                self.sequence(SessionId(0), CommandKind::SetTradingState { instrument, state });
                (0..4).for_each(|_| self.act_of(session));
                let state = TradingState::Trading;
                self.sequence(SessionId(0), CommandKind::SetTradingState { instrument, state });
            }
            1 => self.sequence(SessionId(0), CommandKind::ExpireOrders),
            2 => {
                self.sequence(session, CommandKind::KillSession { is_killed: true });
                self.sequence(session, CommandKind::KillSession { is_killed: false });
            }
            _ => self.act_of(session),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Sends a random request of a client; the venue reads and sequences it immediately.
    fn act_of(&mut self, session: SessionId) {
        let request = self.request(session);
        let table = InstrumentTable::new(&self.observed.setup.instruments);
        let mut out = [0; 256];
        let len = encode_request(&request, |id| table.symbol(id), &mut out).unwrap();
        let bytes = out[..len].to_vec();
        self.record(session, ClientEventKind::Sent(bytes.clone()));
        let mut framed = [0; 300];
        let len = Packet::UnsequencedData(&bytes).encode(&mut framed).unwrap();
        self.now.0 += STEP / 2;
        let kernel_ns = self.now.0;
        let read = ClientEventKind::ReadByVenue { kernel_ns, bytes: framed[..len].to_vec() };
        self.record(session, read);
        let decoded = tickpath_nasdaq::ouch50::decode_request(&bytes, |symbol| table.find(symbol));
        self.sequence(session, CommandKind::Order(decoded.unwrap()));
    }

    fn request(&mut self, session: SessionId) -> OrderRequest {
        let place = usize::from(session.0) - 1;
        let user_ref = UserRefNum(self.next_ref[place]);
        let older = UserRefNum(user_ref.0.saturating_sub(1 + self.below(12) as u32).max(1));
        let choice = self.below(100);
        if !(60..85).contains(&choice) && choice != 99 {
            self.next_ref[place] += 1;
        }
        let attributes = OrderAttributes::default();
        let qty = Qty(10 * (1 + self.below(100)));
        let price = Price(100_000 + 100 * (self.below(12) as i64 - 6));
        match choice {
            0..60 => OrderRequest::Enter(self.order(user_ref, qty, price)),
            60..75 => OrderRequest::Cancel(CancelOrder { user_ref: older, qty: Qty(10 * self.below(30)) }),
            75..80 => OrderRequest::Cancel(CancelOrder { user_ref: older, qty: Qty(0) }),
            80..85 => OrderRequest::Modify(ModifyOrder { user_ref: older, side_marking: b'B', qty }),
            85..96 => OrderRequest::Replace(ReplaceOrder {
                orig_user_ref: older,
                user_ref,
                qty,
                price,
                time_in_force: TimeInForce::Day,
                post_only: false,
                min_qty: Qty(0),
                special: None,
                attributes,
                client_order_id: ClientOrderId::default(),
            }),
            96..98 => OrderRequest::MassCancel(MassCancel {
                user_ref,
                instrument: InstrumentId(1),
                side: None,
                firm: *b"FIRM",
            }),
            98 => OrderRequest::Enter(self.order(user_ref, Qty(10), price)),
            // Uses the client's last UserRefNum again.
            _ => OrderRequest::Enter(self.order(UserRefNum(user_ref.0.saturating_sub(1).max(1)), qty, price)),
        }
    }

    fn order(&mut self, user_ref: UserRefNum, qty: Qty, price: Price) -> EnterOrder {
        let plain = EnterOrder {
            user_ref,
            instrument: InstrumentId(1 + self.below(2) as u16),
            side: if self.below(2) == 0 { Side::Buy } else { Side::Sell },
            qty,
            price,
            time_in_force: TimeInForce::Day,
            post_only: false,
            min_qty: Qty(0),
            special: None,
            attributes: OrderAttributes::default(),
            client_order_id: ClientOrderId(*b"from-the-model"),
        };
        let hidden = OrderAttributes { display: b'N', ..OrderAttributes::default() };
        let special = |instructions| Some(OrderInstructions { ..instructions });
        match self.below(12) {
            0 => EnterOrder { time_in_force: TimeInForce::Ioc, ..plain },
            1 => EnterOrder { time_in_force: TimeInForce::Ioc, min_qty: qty, ..plain },
            2 => EnterOrder { post_only: true, ..plain },
            3 => EnterOrder {
                special: special(OrderInstructions { is_hidden: true, ..OrderInstructions::default() }),
                attributes: hidden,
                ..plain
            },
            4 => EnterOrder {
                special: special(OrderInstructions { display_qty: Qty(10), ..OrderInstructions::default() }),
                ..plain
            },
            5 => {
                let now = (self.time_of_day().0 / 1_000_000_000) as u32;
                let expire_at = now + 1 + self.below(2) as u32;
                let instructions = OrderInstructions { expire_at, ..OrderInstructions::default() };
                EnterOrder { time_in_force: TimeInForce::Gtt, special: special(instructions), ..plain }
            }
            _ => plain,
        }
    }

    /// Returns the venue's time of day, which runs ten times as fast as virtual time, so that orders expire.
    fn time_of_day(&self) -> Nanos {
        Nanos(10 * self.now.0)
    }

    /// Expires due orders, then logs and applies the command, and delivers the resulting messages.
    fn sequence(&mut self, session: SessionId, kind: impl Into<LogCommandKind>) {
        self.now.0 += STEP / 2;
        // Orders expire before other events of the same time.
        let now = self.time_of_day();
        if self.engine.expire_times().any(|second| Nanos::from_secs(second.into()) <= now) {
            self.write(SessionId(0), CommandKind::ExpireOrders);
            self.now.0 += 1;
        }
        self.write(session, kind);
    }

    fn write(&mut self, session: SessionId, kind: impl Into<LogCommandKind>) {
        let sequence = Sequence(self.observed.log.commands.len() as u64 + 1);
        let command = LogCommand::new(sequence, session, self.time_of_day(), kind.into());
        self.observed.log.commands.push(command);
        self.observed.log.sequenced.push(Timed { at: self.now, value: sequence });
        command.apply(&mut self.engine, &mut self.outputs);
        for (session, bytes) in std::mem::take(&mut self.outputs.answers) {
            let place = usize::from(session.0) - 1;
            self.message_counts[place] += 1;
            let sequence = Sequence(self.message_counts[place]);
            self.deliver(session, sequence, bytes);
        }
        let first = self.packet.sequence();
        for event in std::mem::take(&mut self.outputs.market) {
            let instrument =
                self.observed.setup.instruments.get(usize::from(event.instrument.0).wrapping_sub(1));
            let mut message = [0; 64];
            let len = encode_market_event(&event, instrument, &mut message).unwrap();
            self.packet.push(&message[..len]).unwrap();
        }
        if self.packet.next_sequence() > first {
            let bytes = self.packet.finish().to_vec();
            self.packet.start_next();
            for line in [Line::A, Line::B] {
                self.observed.published.push(Timed { at: self.now, value: (line, bytes.clone()) });
            }
        }
    }

    /// Delivers a message to a client, or queues it for the next login of a disconnected client.
    fn deliver(&mut self, session: SessionId, sequence: Sequence, bytes: Vec<u8>) {
        let place = usize::from(session.0) - 1;
        match self.is_disconnected[place] {
            true => self.waiting[place].push((sequence, bytes)),
            false => self.record(session, ClientEventKind::Received { sequence, bytes }),
        }
    }

    fn end(mut self) -> Observed {
        self.now.0 += 10 * STEP;
        let observed = &mut self.observed;
        observed.ended_at = self.now;
        let engine = &self.engine;
        let mut displayed = Vec::new();
        for instrument in &observed.setup.instruments {
            for side in Side::BOTH {
                displayed.extend(engine.books().orders(instrument.id, side).map(|(_, order)| {
                    let Order { id, instrument, side, price, qty, .. } = order;
                    Order { id, instrument, side, price, qty, data: () }
                }));
            }
        }
        let mut open_orders = BTreeMap::new();
        for (session, next) in (1..).zip(&self.next_ref) {
            let session = SessionId(session);
            for user_ref in (1..=*next).map(UserRefNum) {
                open_orders.extend(engine.open_qty(session, user_ref).map(|qty| ((session, user_ref), qty)));
            }
        }
        let (commands, events) = (observed.log.commands.len() as u64, engine.last_market().0);
        let counters = [
            ("order_server.commands", commands),
            ("journal.durable", commands),
            ("matcher.market_events", events),
            ("publisher.messages", events),
        ];
        observed.last = FinalVenue {
            state_hash: engine.state_hash(),
            last_command: engine.last_command(),
            last_market: engine.last_market(),
            stopped_at: Nanos(10 * self.now.0),
            open_orders,
            displayed,
            counters: counters.map(|(name, count)| (name.to_owned(), count)).to_vec(),
        };
        observed.feeds = vec![feed(observed)];
        self.observed
    }
}

#[derive(Default)]
struct Updates(Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

/// Returns the results of a feed handler that received all packets of line A.
fn feed(observed: &Observed) -> FeedInstance {
    let limits = BookLimits::new(InstrumentId(observed.setup.instruments.len() as u16), 1 << 12);
    let mut builder = BookBuilder::new(PackedBooks::new(limits));
    let mut updates = Updates::default();
    let mut next = Sequence(1);
    for sent in observed.published.iter().filter(|sent| sent.value.0 == Line::A) {
        let packet = tickpath_nasdaq::moldudp64::Packet::parse(&sent.value.1).unwrap();
        for (sequence, message) in packet.messages() {
            builder.handle_message(sequence, message, &mut updates);
            next = sequence.next();
        }
    }
    let mut orders = Vec::new();
    let mut health = Vec::new();
    for instrument in &observed.setup.instruments {
        health.push((instrument.id, builder.instrument(instrument.id).unwrap().health));
        for side in Side::BOTH {
            orders.extend(builder.books().orders(instrument.id, side));
        }
    }
    let (handler, started_at, ended_at) = (1, Nanos(1), None);
    let updates = updates.0;
    FeedInstance {
        handler,
        started_at,
        ended_at,
        lost: 0,
        updates,
        unrecorded: 0,
        orders,
        health,
        next,
        recovered: 0,
    }
}
