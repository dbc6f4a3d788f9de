//! The machine between clients and venue: no sockets, no clock.
//!
//! Requests of clients, messages of the venue and time go in by `handle_*`; events leave by a [`Door`], requests to the venue
//! by a [`Venue`]. What has to wait - downloads, questions about orders, subscriptions - is done bit by bit by
//! [`Core::poll`]. The same inputs give the same outputs.

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
pub use self::out::{About, Cause, Door, Stamp, Venue};
pub use self::policy::Policy;
pub use self::request_limits::{Bans, RequestLimits, Verdict};
pub use self::settings::{
    AccountSettings, Feeds, Matcher, RequestLimit, Settings, SymbolFilter, UserSettings,
};

/// Connections for market data at most.
pub const MARKET_STREAMS_MAX: usize = 16;
/// Trades that are remembered, so that none is told twice.
const TRADES_MAX: u32 = 1 << 16;

/// What differs from one life of a gateway to the next.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// What clients know it by.
    pub session: SessionId,
    /// Its number in the labels of its orders, see [`label::session_at`].
    pub label_session: u64,
    /// Scatters ids that others choose.
    pub seed: u64,
    /// What the gateway's clock is ahead of the monotonic clock, in nanoseconds.
    pub ahead_ns: u64,
}

/// What a core counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Requests of clients.
    pub requests: u64,
    /// Those of them that were refused here.
    pub refused: u64,
    /// Messages of the venue that were read.
    pub messages: u64,
    /// News of the venue that could not be told exactly, and were not told.
    pub faults: u64,
    /// Books that lost a message, or were crossed.
    pub books_lost: u64,
    /// Orders whose fate was not certain.
    pub doubts: u64,
    /// Requests to the venue that had no answer.
    pub unanswered: u64,
    /// Orders at the accounts that no client of this gateway made.
    pub foreign_orders: u64,
    /// Open orders that could not be read and may be of this gateway.
    pub unreadable_orders: u64,
    /// Orders under this gateway's name at which somebody else is at work.
    pub orders_elsewhere: u64,
    /// Channels that the venue refused.
    pub channels_refused: u64,
    /// Instruments that were left out: too many, or not to be told exactly.
    pub instruments_left_out: u64,
    /// Orders that could not be kept: there was no room.
    pub orders_left_out: u64,
}

/// One connection, as clients are told of it.
#[derive(Clone, Copy, Debug)]
struct Stream {
    status: ConnectionStatus,
    losses: u32,
    /// How long the venue took to answer the last ping; zero before the first.
    round_trip: Nanos,
    name: Text<16>,
    /// The account that it is of; none for market data.
    account: Option<u16>,
    transport: Transport,
    /// Orders go by it.
    is_trading: bool,
}

/// One connection, as whoever runs the gateway is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// As clients are told.
    pub status: StreamStatus,
    /// How long the venue took to answer the last ping, both ways; zero before the first.
    pub round_trip: Nanos,
    /// It is wanted.
    pub is_used: bool,
}

/// How far the market data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// The list of instruments was never asked for, or must be again.
    Wanted,
    /// It was asked for.
    Asked(i64),
    /// It is there.
    Known,
}

/// The machine between clients and venue.
pub struct Core {
    stamp: Stamp,
    mark: LabelMark,
    settings: Settings,
    instruments: Instruments,
    listing: Listing,
    /// The list was there once.
    is_listed: bool,
    /// Instruments in it, also those that are not wanted.
    listed: u64,
    /// An instrument came to be while the list was on its way.
    is_listing_old: bool,
    listing_at: Nanos,
    /// The place of the next instrument whose channels are to be wanted.
    subscribe_next: usize,
    /// Channels of each connection for market data.
    channels: [usize; MARKET_STREAMS_MAX],
    /// Instruments that have a place on each.
    members: [usize; MARKET_STREAMS_MAX],
    /// Books whose channels are to be subscribed anew, and when.
    lost_books: std::collections::VecDeque<(Nanos, u32)>,
    /// The first of these times.
    lost_books_at: Nanos,
    /// Books that are waited for, and until when; the first to be given up first.
    awaited_books: std::collections::VecDeque<(Nanos, u32)>,
    /// Candles that are asked for.
    charts: candles::Charts,
    streams: Vec<Stream>,
    accounts: Vec<Account>,
    users: Vec<User>,
    /// Of each user, and of each account, one flag for each instrument.
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
    /// The place of the order that was entered last.
    last_created: Option<requests::LastOrder>,
    /// The kill switch was on when it was looked at last.
    was_killed: bool,
    scratch: Scratch,
    /// Room for the events of one message.
    held: Held,
    /// Places of orders that a list names.
    scratch_marks: Vec<u32>,
    counters: CoreCounters,
    /// When the venue made the message that is being taken, in nanoseconds since 1970; 0 when it does not say.
    said_utc_ns: u64,
    /// What the venue's clock is ahead of ours, in ms.
    venue_ahead_ms: i64,
    state: GatewayState,
    /// Accounts that were ready when clients were told last.
    told_ready: usize,
    ping_at: Nanos,
    rates_at: Nanos,
    is_stopping: bool,
}

impl Core {
    /// A core that is connected to nothing. `policy` decides what clients may do.
    #[must_use]
    pub fn new(settings: Settings, life: Life, policy: Policy) -> Core {
        // Those that are over have places too.
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

    /// What was counted.
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

    /// Instruments that the venue has, also those that are not wanted; 0 before they are known.
    #[must_use]
    pub const fn listed_instruments(&self) -> u64 {
        self.listed
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Whether no order leaves in any case.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.policy.is_dry_run()
    }

    /// What orders go by.
    #[must_use]
    pub const fn trading(&self) -> Transport {
        self.settings.trading
    }

    /// Accounts that can be traded with.
    #[must_use]
    pub fn ready_accounts(&self) -> usize {
        self.accounts.iter().filter(|account| account.step == Step::Ready).count()
    }

    /// Connections that work.
    #[must_use]
    pub fn ready_streams(&self) -> usize {
        self.streams.iter().filter(|stream| stream.status == ConnectionStatus::READY).count()
    }

    /// How the gateway stands.
    #[must_use]
    pub const fn state(&self) -> GatewayState {
        self.state
    }

    /// How many connections there may be: those for market data, one of each account, and one more of each whose orders go
    /// by FIX.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// What decides over requests.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The gateway's clock, and how far it is ahead of the monotonic one.
    pub const fn set_ahead(&mut self, ahead_ns: u64) {
        self.stamp.ahead_ns = ahead_ns;
    }

    /// The place of a user's name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<u16> {
        self.users.iter().position(|user| user.name == name).map(|place| place as u16)
    }

    /// The name of a user at a place.
    #[must_use]
    pub fn user_name(&self, user: u16) -> Option<&str> {
        self.users.get(usize::from(user)).map(|user| user.name.as_str())
    }

    /// A client came in, under a number of the door's, for a user. What there is is told to it from the next
    /// [`poll`](Core::poll) on.
    pub fn handle_join(&mut self, number: u32, user: u16, may_trade: bool) {
        let download = Download::begin();
        let (wants_again, again_at) = (false, Nanos::ZERO);
        self.clients.join(Client { number, user, download, may_trade, wants_again, again_at });
        if may_trade {
            self.users[usize::from(user)].absent_since = None;
        }
    }

    /// The gateway is to stop: no new order is taken.
    pub const fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether orders are to be cancelled and the venue has not said yet that they are.
    #[must_use]
    pub fn has_cancels(&self) -> bool {
        let stands = |account: &Account| account.step != Step::Down || account.has_fix();
        // What a login may not cancel is not waited for.
        let is_waiting = |account: &Account| stands(account) && account.may_trade && account.has_cancels();
        !self.leavers.is_empty() || self.accounts.iter().any(is_waiting)
    }

    /// Open orders at the accounts that no client of this gateway made, and how many of them cannot be read.
    #[must_use]
    pub fn foreign_orders(&self) -> (u32, u32) {
        let sum = |count: fn(&foreign::Foreign) -> u32| {
            self.accounts.iter().map(|account| count(&account.foreign)).fold(0, u32::saturating_add)
        };
        (sum(foreign::Foreign::count), sum(foreign::Foreign::unreadable_count))
    }

    /// A request of a client.
    pub fn handle_request(
        &mut self,
        now: Nanos,
        client: u32,
        request: &Request,
        door: &mut impl Door,
        venue: &mut impl Venue,
    ) {
        self.counters.requests += 1;
        self.take_request(now, client, request, door, venue);
    }

    /// What a connection makes of a message that [`read`](Core::read) has read before.
    pub fn handle_event(
        &mut self,
        stream: usize,
        received: Nanos,
        event: SessionEvent<'_>,
        door: &mut impl Door,
    ) {
        self.counters.messages += 1;
        let mut batch = Batch::new(door, std::mem::replace(&mut self.held, Held::none()));
        self.take_event(stream, received, event, &mut batch);
        self.held = batch.finish();
    }

    #[inline]
    fn take_event(&mut self, stream: usize, received: Nanos, event: SessionEvent<'_>, door: &mut impl Door) {
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

    /// A request on a connection has no reply and will have none: it came too late, or the connection was lost.
    pub fn handle_unanswered(
        &mut self,
        stream: usize,
        id: i64,
        is_lost: bool,
        now: Nanos,
        door: &mut impl Door,
    ) {
        match self.streams[stream].account {
            Some(account) => self.handle_account_unanswered(account, id, is_lost, now, door),
            None => self.handle_market_unanswered(stream, id, now),
        }
    }

    /// The login on a connection is done.
    fn handle_ready(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
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

    /// What the login of an account's connection allows: where it may not trade, orders are refused here. Orders by FIX go by
    /// another login.
    pub fn handle_scope(&mut self, stream: usize, now: Nanos, may_trade: bool, door: &mut impl Door) {
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

    /// A connection is being made.
    pub fn handle_begun(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
        self.set_stream(stream, ConnectionStatus::CONNECTING, now, door);
    }

    /// A connection stands, and logs in.
    pub fn handle_opened(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
        self.set_stream(stream, ConnectionStatus::LOGIN_SENT, now, door);
    }

    /// A connection was lost, or did not come to be. What was sent by it and has no reply was told before.
    pub fn handle_lost(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
        self.streams[stream].losses += 1;
        let Stream { account, transport, .. } = self.streams[stream];
        match account {
            Some(account) if transport == Transport::FIX => self.lose_entry(account, now, door),
            Some(account) => self.lose_account(account, now, door),
            None => self.lose_market(stream, now, door),
        }
        self.set_stream(stream, ConnectionStatus::WAITING, now, door);
    }

    /// Does a bounded amount of what has to wait; returns how much. One that returns 0 and gave nothing out has changed nothing.
    pub fn poll(&mut self, now: Nanos, door: &mut impl Door, venue: &mut impl Venue) -> usize {
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

    /// When the kill switch is turned on everything is cancelled, by one request for each account. That it was turned is told
    /// with the limits of each account.
    fn poll_kill_switch(&mut self, door: &mut impl Door) {
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

    /// Asks each account's connection for a sign of life: the time that the answer takes is told.
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

    fn tell_latency(&mut self, account: u16, round_trip: Nanos, received: Nanos, door: &mut impl Door) {
        self.streams[self.accounts[usize::from(account)].stream].round_trip = round_trip;
        let about = self.about_account(account);
        let cause = Cause { received, ..Cause::default() };
        door.broadcast(self.stamp.event(&ExternalLatency { round_trip_ns: round_trip.0 }, about, cause));
    }

    /// Tells how the gateway stands when that has changed.
    fn poll_state(&mut self, door: &mut impl Door) {
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

    fn set_stream(&mut self, stream: usize, status: ConnectionStatus, now: Nanos, door: &mut impl Door) {
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

    /// How a connection stands.
    #[must_use]
    pub fn connection(&self, stream: usize) -> Connection {
        Connection {
            status: self.stream_status(stream),
            round_trip: self.streams[stream].round_trip,
            is_used: self.is_used(stream),
        }
    }

    /// Whether a connection is wanted: those of accounts, the first for market data, and further ones that have channels.
    fn is_used(&self, stream: usize) -> bool {
        self.streams[stream].account.is_some() || stream == 0 || self.channels[stream] > 0
    }

    /// What a connection is called.
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

    /// Tells all clients of users that have an account, as far as they have been told of it at all.
    fn tell_account<B: Body>(
        &self,
        account: u16,
        body: &B,
        about: About,
        cause: Cause,
        door: &mut impl Door,
    ) {
        let event = self.stamp.event(body, about, cause);
        for client in self.clients.all() {
            if self.users[usize::from(client.user)].has(account) && client.download.has_account(account) {
                door.send(client.number, event);
            }
        }
    }

    /// Tells all clients of a user.
    fn tell_user(&self, user: u16, account: u16, event: Event, door: &mut impl Door) {
        for client in self.clients.all() {
            if client.user == user && client.download.has_account(account) {
                door.send(client.number, event);
            }
        }
    }

    /// Follows the venue's clock, from what its replies say.
    fn note_venue_time(&mut self, received: Nanos, us_out: u64) {
        if us_out != 0 {
            let ours = i64::try_from(received.0 / 1_000_000).unwrap_or(i64::MAX);
            let theirs = i64::try_from(us_out / 1_000).unwrap_or(i64::MAX);
            self.venue_ahead_ms = theirs.saturating_sub(ours);
        }
    }

    /// The venue's time of day at a time of ours, in ms since 1970.
    fn venue_ms(&self, now: Nanos) -> u64 {
        (now.0 / 1_000_000).saturating_add_signed(self.venue_ahead_ms)
    }
}
