//! The gateway's core between clients and venue: no sockets, no clock.
//!
//! Client requests, venue messages and time enter by `handle_*`. Events to clients and requests to the venue
//! leave by the traits in [`out`]. [`Core::poll`] does deferred work in portions: downloads, order status
//! queries, subscriptions. The same inputs give the same outputs.

pub mod account;
mod batch;
pub mod book;
pub mod candles;
mod caps;
pub mod clients;
mod command;
mod control;
mod convert;
mod download;
mod elsewhere;
mod fix;
pub mod foreign;
pub mod instruments;
pub mod label;
mod leavers;
pub mod market;
mod market_data;
mod mass_cancels;
pub mod news;
pub mod orders;
pub mod out;
mod own_orders;
mod policy;
pub mod quotes;
mod rate_limits;
mod reading;
mod reconcile;
mod refusal;
mod replies;
mod request_limits;
mod requests;
mod seen;
mod settings;
mod standing;
mod templates;

use tickpath_deribit::session::SessionEvent;
use tickpath_gateway_protocol::{
    AccountReference, Body, ConnectionStatus, Event, ExternalLatency, GatewayState, GatewayStatus, Request,
    SessionId, StreamStatus, Text, Transport,
};
use tickpath_types::Nanos;

use self::account::{Account, Step};
use self::batch::{Batch, Held};
use self::clients::{Client, Clients, User};
use self::instruments::Instruments;
use self::label::LabelMark;
use self::leavers::Leavers;
use self::orders::Orders;
use self::reading::Scratch;
use self::seen::Seen;

pub use self::caps::{Exposure, RiskLimit};
pub use self::command::AdminCommand;
pub use self::control::{Control, SafetyChecks};
pub use self::download::{Download, ring_needed};
pub use self::out::{About, Cause, EventSink, Stamp, Venue};
pub use self::policy::Policy;
pub use self::request_limits::{Bans, RequestLimits, Verdict};
pub use self::settings::{
    AccountSettings, Feeds, Matcher, RequestLimit, Settings, SymbolFilter, UserSettings,
};

/// Maximum number of market data connections.
pub const MARKET_STREAMS_MAX: usize = 16;
/// Number of trades remembered for deduplication.
const TRADES_MAX: u32 = 1 << 16;

/// Values that differ between instances of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Session id that clients see.
    pub session: SessionId,
    /// Session number in the labels of the instance's orders, see [`label::session_at`].
    pub label_session: u64,
    /// Seed for hashing ids that others choose.
    pub seed: u64,
    /// Time by which the gateway's clock is ahead of the monotonic clock, in nanoseconds.
    pub ahead_ns: u64,
}

/// Counters of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Requests received from clients.
    pub requests: u64,
    /// Requests rejected by the gateway.
    pub refused: u64,
    /// Messages read from the venue.
    pub messages: u64,
    /// Venue updates that could not be represented exactly and were not sent.
    pub faults: u64,
    /// Books that lost a message or were crossed.
    pub books_lost: u64,
    /// Orders whose status became unknown.
    pub doubts: u64,
    /// Requests to the venue without an answer.
    pub unanswered: u64,
    /// External orders at the accounts.
    pub foreign_orders: u64,
    /// Open orders that could not be decoded and may belong to this gateway.
    pub unreadable_orders: u64,
    /// Orders under this gateway's name that another party manages.
    pub orders_elsewhere: u64,
    /// Channels refused by the venue.
    pub channels_refused: u64,
    /// Instruments omitted because there were too many or they could not be represented exactly.
    pub instruments_left_out: u64,
    /// Orders that could not be stored for lack of capacity.
    pub orders_left_out: u64,
}

/// One connection, as reported to clients.
#[derive(Clone, Copy, Debug)]
struct Stream {
    status: ConnectionStatus,
    losses: u32,
    /// Round-trip time of the last ping; zero before the first.
    round_trip: Nanos,
    name: Text<16>,
    /// Account of the connection; none for market data.
    account: Option<u16>,
    transport: Transport,
    /// Whether orders use the connection.
    is_trading: bool,
}

/// One connection, as reported to the operator.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Status as reported to clients.
    pub status: StreamStatus,
    /// Round-trip time of the last ping; zero before the first.
    pub round_trip: Nanos,
    /// Whether the connection is in use.
    pub is_used: bool,
}

/// State of the instrument list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// To be queried, for the first time or again.
    Wanted,
    /// Query in flight, with its request id.
    Asked(i64),
    /// Received.
    Known,
}

/// The gateway's core between clients and venue.
pub struct Core {
    stamp: Stamp,
    mark: LabelMark,
    settings: Settings,
    instruments: Instruments,
    listing: Listing,
    /// The list was received at least once.
    is_listed: bool,
    /// Number of instruments in the list, including those that are filtered out.
    listed: u64,
    /// An instrument was created while the list query was in flight.
    is_listing_old: bool,
    listing_at: Nanos,
    /// Index of the next instrument whose channels are to be subscribed.
    subscribe_next: usize,
    /// Number of channels on each market data connection.
    channels: [usize; MARKET_STREAMS_MAX],
    /// Number of instruments on each market data connection.
    members: [usize; MARKET_STREAMS_MAX],
    /// Books to resubscribe, and when.
    lost_books: std::collections::VecDeque<(Nanos, u32)>,
    /// The earliest of these times.
    lost_books_at: Nanos,
    /// Books awaited, with deadlines, earliest first.
    awaited_books: std::collections::VecDeque<(Nanos, u32)>,
    /// Candle requests.
    charts: candles::Charts,
    streams: Vec<Stream>,
    accounts: Vec<Account>,
    users: Vec<User>,
    /// For each user and each account, one flag per instrument.
    user_symbols: Vec<Vec<bool>>,
    account_symbols: Vec<Vec<bool>>,
    clients: Clients,
    leavers: Leavers,
    elsewhere: elsewhere::Elsewhere,
    mass_cancels: mass_cancels::MassCancels,
    /// Some user has a time in `absent_since`.
    has_absent: bool,
    orders: Orders,
    seen: Seen,
    policy: Policy,
    /// The last order entered.
    last_created: Option<requests::LastOrder>,
    /// Whether the kill switch was on at the last check.
    was_killed: bool,
    scratch: Scratch,
    /// Buffer for the events of one message.
    held: Held,
    /// Slots of the orders, or numbers of the instruments, in a list being handled.
    scratch_marks: Vec<u32>,
    /// Buffer for the encoding of templates of order requests.
    template_buffer: Vec<u8>,
    counters: CoreCounters,
    /// Venue time of the message being handled, in nanoseconds since 1970; 0 when it has none.
    said_utc_ns: u64,
    /// Time by which the venue's clock is ahead of the gateway's, in ms.
    venue_ahead_ms: i64,
    state: GatewayState,
    /// Number of ready accounts as last sent to clients.
    told_ready: usize,
    ping_at: Nanos,
    rates_at: Nanos,
    is_stopping: bool,
}

impl Core {
    /// Creates a core without connections. `policy` decides what clients may do.
    #[must_use]
    pub fn new(settings: Settings, life: Life, policy: Policy) -> Core {
        // Ended orders take slots too.
        let places = (settings.orders_max as u32).saturating_mul(2).max(orders::PLACES_MIN);
        Core {
            stamp: Stamp { source: 1, session: life.session, ahead_ns: life.ahead_ns },
            mark: LabelMark::new(&settings.name, life.label_session),
            instruments: Instruments::default(),
            listing: Listing::Wanted,
            is_listed: false,
            listed: 0,
            is_listing_old: false,
            listing_at: Nanos::ZERO,
            subscribe_next: 0,
            channels: [0; MARKET_STREAMS_MAX],
            members: [0; MARKET_STREAMS_MAX],
            lost_books: std::collections::VecDeque::with_capacity(1_024),
            lost_books_at: Nanos::ZERO,
            awaited_books: std::collections::VecDeque::with_capacity(1_024),
            charts: candles::Charts::default(),
            streams: settings.streams(),
            accounts: settings.accounts(),
            users: settings.users(),
            user_symbols: vec![Vec::new(); settings.users.len()],
            account_symbols: vec![Vec::new(); settings.accounts.len()],
            clients: Clients::new(),
            leavers: Leavers::new(),
            elsewhere: elsewhere::Elsewhere::new(),
            mass_cancels: mass_cancels::MassCancels::new(places),
            has_absent: false,
            orders: Orders::new(places, life.seed),
            seen: Seen::new(TRADES_MAX, life.seed),
            policy,
            last_created: None,
            was_killed: false,
            scratch: Scratch::default(),
            held: Held::new(),
            scratch_marks: Vec::with_capacity(1_024),
            template_buffer: Vec::with_capacity(templates::TEMPLATE_BUFFER),
            counters: CoreCounters::default(),
            said_utc_ns: 0,
            venue_ahead_ms: 0,
            state: GatewayState::DISCONNECTED,
            told_ready: 0,
            ping_at: Nanos::ZERO,
            rates_at: Nanos::ZERO,
            is_stopping: false,
            settings,
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> CoreCounters {
        self.counters
    }

    /// The orders.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The instruments.
    #[must_use]
    pub const fn instruments(&self) -> &Instruments {
        &self.instruments
    }

    /// Number of instruments at the venue, including those filtered out; 0 before the list is known.
    #[must_use]
    pub const fn listed_instruments(&self) -> u64 {
        self.listed
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Whether this is a dry run, in which no order leaves.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.policy.is_dry_run()
    }

    /// Transport used for orders.
    #[must_use]
    pub const fn trading(&self) -> Transport {
        self.settings.trading
    }

    /// Number of accounts ready for trading.
    #[must_use]
    pub fn ready_accounts(&self) -> usize {
        self.accounts.iter().filter(|account| account.step == Step::Ready).count()
    }

    /// Number of connections that are ready.
    #[must_use]
    pub fn ready_streams(&self) -> usize {
        self.streams.iter().filter(|stream| stream.status == ConnectionStatus::READY).count()
    }

    /// State of the gateway.
    #[must_use]
    pub const fn state(&self) -> GatewayState {
        self.state
    }

    /// Maximum number of connections: those for market data, one for each account, and one more for each
    /// account whose orders use FIX.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// The policy that decides on requests.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Sets the time by which the gateway's clock is ahead of the monotonic clock, in nanoseconds.
    pub const fn set_ahead(&mut self, ahead_ns: u64) {
        self.stamp.ahead_ns = ahead_ns;
    }

    /// Index of the user with this name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<u16> {
        self.users.iter().position(|user| user.name == name).map(|place| place as u16)
    }

    /// Name of the user at an index.
    #[must_use]
    pub fn user_name(&self, user: u16) -> Option<&str> {
        self.users.get(usize::from(user)).map(|user| user.name.as_str())
    }

    /// Handles a new client of a user, under a number that the event sink assigned. Its download starts with
    /// the next [`poll`](Core::poll).
    pub fn handle_join(&mut self, number: u32, user: u16, may_trade: bool) {
        let download = Download::begin();
        let (wants_again, again_at) = (false, Nanos::ZERO);
        self.clients.join(Client { number, user, download, may_trade, wants_again, again_at });
        if may_trade {
            self.users[usize::from(user)].absent_since = None;
        }
    }

    /// Begins the shutdown: new orders are rejected.
    pub const fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether cancellations are pending that the venue has not confirmed.
    #[must_use]
    pub fn has_cancels(&self) -> bool {
        let stands = |account: &Account| account.step != Step::Down || account.has_fix();
        // Orders that the login cannot cancel are not waited for.
        let is_waiting = |account: &Account| stands(account) && account.may_trade && account.has_cancels();
        !self.leavers.is_empty() || self.accounts.iter().any(is_waiting)
    }

    /// Number of open external orders at the accounts, and number of those that cannot be decoded.
    #[must_use]
    pub fn foreign_orders(&self) -> (u32, u32) {
        let sum = |count: fn(&foreign::Foreign) -> u32| {
            self.accounts.iter().map(|account| count(&account.foreign)).fold(0, u32::saturating_add)
        };
        (sum(foreign::Foreign::count), sum(foreign::Foreign::unreadable_count))
    }

    /// Handles a client's request.
    pub fn handle_request(
        &mut self,
        now: Nanos,
        client: u32,
        request: &Request,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        self.counters.requests += 1;
        self.take_request(now, client, request, door, venue);
    }

    /// Handles the session event that a connection made of a message, after [`read`](Core::read) has read it.
    pub fn handle_event(
        &mut self,
        stream: usize,
        received: Nanos,
        event: SessionEvent<'_>,
        door: &mut impl EventSink,
    ) {
        self.counters.messages += 1;
        let mut batch = Batch::new(door, std::mem::replace(&mut self.held, Held::none()));
        self.take_event(stream, received, event, &mut batch);
        self.held = batch.finish();
    }

    #[inline]
    fn take_event(
        &mut self,
        stream: usize,
        received: Nanos,
        event: SessionEvent<'_>,
        door: &mut impl EventSink,
    ) {
        match event {
            SessionEvent::Ready => self.handle_ready(stream, received, door),
            SessionEvent::Reply { id, response, .. } => {
                self.said_utc_ns = response.server_time.us_out.saturating_mul(1_000);
                self.note_venue_time(received, response.server_time.us_out);
                match self.streams[stream].account {
                    Some(account) => self.handle_account_reply(account, id, &response, received, door),
                    None => self.handle_market_reply(stream, id, &response, received, door),
                }
            }
            SessionEvent::Notification(notification) => match self.streams[stream].account {
                Some(account) => self.handle_account_news(account, &notification, received, door),
                None => self.handle_market_news(&notification, received, door),
            },
            SessionEvent::Subscribed { refused, .. } => self.counters.channels_refused += refused as u64,
            _ => {}
        }
    }

    /// Handles a request that remains without a reply: it timed out, or the connection was lost.
    pub fn handle_unanswered(
        &mut self,
        stream: usize,
        id: i64,
        is_lost: bool,
        now: Nanos,
        door: &mut impl EventSink,
    ) {
        match self.streams[stream].account {
            Some(account) => self.handle_account_unanswered(account, id, is_lost, now, door),
            None => self.handle_market_unanswered(stream, id, now),
        }
    }

    /// Handles the completed login on a connection.
    fn handle_ready(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        let Stream { account, transport, .. } = self.streams[stream];
        let status = match account {
            Some(account) if transport == Transport::FIX => return self.entry_up(account, now, door),
            Some(account) => {
                self.accounts[usize::from(account)].enter(Step::Channels, now);
                ConnectionStatus::DOWNLOADING
            }
            None => {
                if stream == 0 {
                    (self.listing, self.listing_at) = (Listing::Wanted, now);
                }
                self.want_candles_of(stream);
                ConnectionStatus::READY
            }
        };
        self.set_stream(stream, status, now, door);
    }

    /// Sets the permission of an account's login. If it may not trade, the gateway rejects orders. Orders
    /// over FIX use another login.
    pub fn handle_scope(&mut self, stream: usize, now: Nanos, may_trade: bool, door: &mut impl EventSink) {
        let Some(account) = self.streams[stream].account else { return };
        let known = &mut self.accounts[usize::from(account)];
        let may_trade = may_trade || known.entry.is_some();
        if std::mem::replace(&mut known.may_trade, may_trade) == may_trade {
            return;
        }
        let body =
            AccountReference { name: known.name, may_trade: may_trade.into(), ..AccountReference::default() };
        let cause = Cause { received: now, ..Cause::default() };
        self.tell_account(account, &body, self.about_account(account), cause, door);
    }

    /// Handles the start of a connection attempt.
    pub fn handle_begun(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        self.set_stream(stream, ConnectionStatus::CONNECTING, now, door);
    }

    /// Handles an established connection that logs in.
    pub fn handle_opened(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        self.set_stream(stream, ConnectionStatus::LOGIN_SENT, now, door);
    }

    /// Handles a connection that was lost or could not be made. Its unanswered requests were reported before.
    pub fn handle_lost(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        self.streams[stream].losses += 1;
        let Stream { account, transport, .. } = self.streams[stream];
        match account {
            Some(account) if transport == Transport::FIX => self.lose_entry(account, now, door),
            Some(account) => self.lose_account(account, now, door),
            None => self.lose_market(stream, now, door),
        }
        self.set_stream(stream, ConnectionStatus::WAITING, now, door);
    }

    /// Does a bounded amount of deferred work and returns how much; 0 without output means no change.
    pub fn poll(&mut self, now: Nanos, door: &mut impl EventSink, venue: &mut impl Venue) -> usize {
        let mut work = self.poll_market(now, door, venue);
        for account in 0..self.accounts.len() as u16 {
            work += self.poll_account(account, now, door, venue);
        }
        self.poll_kill_switch(door);
        work += self.poll_leavers(now);
        work += self.poll_downloads(now, door);
        work += self.poll_pings(now, venue);
        work += self.poll_rate_limits(now, door, venue);
        self.poll_state(door);
        work
    }

    /// Cancels everything when the kill switch turns on, by one request per account. The risk limits of each
    /// account report the state of the switch.
    fn poll_kill_switch(&mut self, door: &mut impl EventSink) {
        let is_killed = self.policy.is_killed();
        if is_killed == self.was_killed {
            return;
        }
        self.was_killed = is_killed;
        for account in &mut self.accounts {
            account.is_cancel_all_wanted = is_killed;
            account.is_cancel_all_due = is_killed && account.step < Step::Entry;
        }
        (0..self.accounts.len() as u16).for_each(|account| self.tell_limits(account, door));
    }

    /// Pings each account's connection; clients receive the round-trip time.
    fn poll_pings(&mut self, now: Nanos, venue: &mut impl Venue) -> usize {
        if now < self.ping_at {
            return 0;
        }
        self.ping_at = now + self.settings.ping_interval;
        for account in &mut self.accounts {
            if account.step != Step::Ready || !account.has_room() {
                continue;
            }
            let method = tickpath_deribit::method::Method::Test;
            let params = tickpath_deribit::messages::Test { expected_result: None };
            if let Ok(id) = venue.request(now, account.stream, method, &params) {
                let (purpose, asker) = (account::Purpose::Ping, account::Asker::default());
                account.push(account::Pending { id, purpose, asker, sent: now, gateway_id: 0 });
            }
        }
        1
    }

    fn tell_latency(&mut self, account: u16, round_trip: Nanos, received: Nanos, door: &mut impl EventSink) {
        self.streams[self.accounts[usize::from(account)].stream].round_trip = round_trip;
        let about = self.about_account(account);
        let cause = Cause { received, ..Cause::default() };
        door.broadcast(self.stamp.event(&ExternalLatency { round_trip_ns: round_trip.0 }, about, cause));
    }

    /// Broadcasts the gateway's state if it has changed.
    fn poll_state(&mut self, door: &mut impl EventSink) {
        let (state, ready) = (self.state_now(), self.ready_accounts());
        if state != self.state || ready != self.told_ready {
            (self.state, self.told_ready) = (state, ready);
            let event = self.stamp.event(&self.gateway_status(), About::default(), Cause::default());
            door.broadcast(event);
        }
    }

    fn state_now(&self) -> GatewayState {
        let ready = self.ready_accounts();
        let connected = self.accounts.iter().any(|account| account.step != Step::Down);
        match () {
            () if self.is_stopping => GatewayState::STOPPING,
            () if self.policy.is_killed() => GatewayState::KILLED,
            () if ready > 0 => GatewayState::READY,
            () if connected => GatewayState::RECONCILING,
            () if self.streams[0].status == ConnectionStatus::READY => GatewayState::MARKET_DATA,
            () => GatewayState::DISCONNECTED,
        }
    }

    fn gateway_status(&self) -> GatewayStatus {
        let ready = self.ready_accounts();
        GatewayStatus {
            state: self.state,
            trading: self.settings.trading,
            is_production: u8::from(self.settings.is_production),
            is_dry_run: u8::from(self.settings.is_dry_run),
            accounts_ready: ready as u16,
            accounts: self.accounts.len() as u16,
            exchange: self.settings.exchange,
            text: self.why(),
        }
    }

    fn set_stream(&mut self, stream: usize, status: ConnectionStatus, now: Nanos, door: &mut impl EventSink) {
        if self.streams[stream].status == status {
            return;
        }
        self.streams[stream].status = status;
        let about = About { stream: stream as u8 + 1, ..About::default() };
        let cause = Cause { received: now, ..Cause::default() };
        door.broadcast(self.stamp.event(&self.stream_status(stream), about, cause));
    }

    fn stream_status(&self, stream: usize) -> StreamStatus {
        let Stream { status, losses, name, account, transport, is_trading, .. } = self.streams[stream];
        StreamStatus {
            status,
            transport,
            is_market_data: u8::from(account.is_none()),
            is_trading: u8::from(is_trading),
            losses,
            name,
            uri: if transport == Transport::FIX { self.settings.fix_uri } else { self.settings.uri },
        }
    }

    /// State of a connection.
    #[must_use]
    pub fn connection(&self, stream: usize) -> Connection {
        Connection {
            status: self.stream_status(stream),
            round_trip: self.streams[stream].round_trip,
            is_used: self.is_used(stream),
        }
    }

    /// Whether a connection is in use: all of accounts, the first for market data, and others with channels.
    fn is_used(&self, stream: usize) -> bool {
        self.streams[stream].account.is_some() || stream == 0 || self.channels[stream] > 0
    }

    /// Name of a connection.
    #[must_use]
    pub fn stream_name(&self, stream: usize) -> Text<16> {
        self.streams[stream].name
    }

    fn about_account(&self, account: u16) -> About {
        let stream = self.accounts[usize::from(account)].stream as u8 + 1;
        About { stream, account: account + 1, symbol: 0 }
    }

    fn account_reference(&self, user: u16, account: u16) -> AccountReference {
        let Account { name, may_trade, .. } = self.accounts[usize::from(account)];
        let may_trade = u8::from(self.users[usize::from(user)].has(account) && may_trade);
        AccountReference { name, may_trade, ..AccountReference::default() }
    }

    /// Sends an event to all clients of the account's users whose download of the account has started.
    fn tell_account<B: Body>(
        &self,
        account: u16,
        body: &B,
        about: About,
        cause: Cause,
        door: &mut impl EventSink,
    ) {
        let event = self.stamp.event(body, about, cause);
        for client in self.clients.all() {
            if self.users[usize::from(client.user)].has(account) && client.download.has_account(account) {
                door.send(client.number, event);
            }
        }
    }

    /// Sends an event to all clients of a user whose download of the account has started.
    fn tell_user(&self, user: u16, account: u16, event: Event, door: &mut impl EventSink) {
        for client in self.clients.all() {
            if client.user == user && client.download.has_account(account) {
                door.send(client.number, event);
            }
        }
    }

    /// Tracks the venue's clock by the timestamps of its replies.
    fn note_venue_time(&mut self, received: Nanos, us_out: u64) {
        if us_out != 0 {
            let ours = i64::try_from(received.0 / 1_000_000).unwrap_or(i64::MAX);
            let theirs = i64::try_from(us_out / 1_000).unwrap_or(i64::MAX);
            self.venue_ahead_ms = theirs.saturating_sub(ours);
        }
    }

    /// The venue's time at a time of the gateway's clock, in ms since 1970.
    fn venue_ms(&self, now: Nanos) -> u64 {
        (now.0 / 1_000_000).saturating_add_signed(self.venue_ahead_ms)
    }
}
