//! The connections to the venue: one for each account, those that bring market data, and where orders go by FIX one more
//! for each account.

mod fix;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use anyhow::Context;
use tickpath_agent::TscClock;
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::envelope::Inbound;
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::{Grant, Key, RequestError, SessionConfig, SessionEvent};
use tickpath_deribit_link::{
    Change, FixLink, Link, LinkConfig, LinkStats, Listener, Received, Route, Standing, Unanswered,
};
use tickpath_gateway_core::{MARKET_STREAMS_MAX, Venue, account::PENDING_MAX};
use tickpath_net::{Interest, Poller};
use tickpath_types::Nanos;
use tickpath_web::TlsClient;

use crate::config::{GatewayConfig, TestSwitches, Transport};
use crate::doorway::Doorway;
use crate::metrics::{Exception, Function};
use crate::recorder::Recorded;
use crate::view::LossText;

/// Messages that one duty cycle takes from one connection at most, so that requests do not wait for a burst of market data.
const MESSAGES_MAX: usize = 16;

/// Room that a connection must have for a request about an order, in bytes.
const ORDER_LEN_MAX: usize = 2 << 10;

/// How often connections are looked at that the poller does not report: those that are being made, and what times out.
const VISIT_INTERVAL: Nanos = Nanos::from_micros(100);

/// Lines at most about channels that were refused at once.
const REFUSED_LINES_MAX: usize = 8;

/// How the channel begins without which an account cannot be traded with.
const OWN_ORDERS: &str = "user.changes.";

/// All connections, by their numbers: those for market data first, then those of accounts, then those that speak FIX.
pub struct Streams {
    links: Vec<Link>,
    entries: Vec<FixLink>,
    /// Tells which of them have something, by one system call for all: a client's request waits for no more than that.
    poller: Poller,
    /// Of each connection the number of the life that the poller watches.
    watched: Vec<u64>,
    /// Connections to be looked at whatever the poller says: TLS may have more than was taken, or there is something to say.
    due: u128,
    /// The same of FIX sessions, by their places.
    due_entries: u64,
    /// Connections that were given requests since the last flush.
    unflushed: u128,
    /// The same of FIX sessions.
    unflushed_entries: u64,
    /// Requests are rehearsed, not sent.
    is_rehearsal: bool,
    visit_at: Nanos,
    /// Channels that each is to have.
    wanted: Vec<BTreeSet<String>>,
    /// What went wrong, in words.
    notes: Notes,
    /// Failures on purpose.
    test: TestSwitches,
    /// Since when each has been ready, where that matters; and its key.
    ready_at: Vec<Option<Nanos>>,
    keys: Vec<Option<Key>>,
}

/// Where it is said what went wrong.
struct Notes {
    to_print: SyncSender<String>,
    /// Why each connection was lost last.
    losses: Arc<[LossText]>,
    /// The venue has just refused channels.
    has_refused: Cell<bool>,
    /// A login was just done.
    has_login: Cell<bool>,
}

impl Notes {
    #[cold]
    fn lost(&self, stream: usize, name: impl Display, why: impl Display) {
        let why = why.to_string();
        if let Some(place) = self.losses.get(stream) {
            place.set(&why);
        }
        // Where there is no room others have been told of as much.
        let _ = self.to_print.try_send(format!("connection {name}: {why}"));
    }
}

/// The key of one account, and how it is used.
#[derive(Clone)]
pub struct AccountKey {
    /// Its id and its secret.
    pub key: Key,
    /// How it is shown.
    pub grant: Grant,
    /// What its login is to allow; all that it may do when none.
    pub scope: Option<String>,
    /// It is the one that market data is asked for with.
    pub is_master: bool,
}

/// The keys of all accounts, in the order of their names.
///
/// # Errors
/// A secret that is not to be found, or that others can read.
pub fn keys(config: &GatewayConfig, file: Option<&std::path::Path>) -> anyhow::Result<Vec<AccountKey>> {
    let master = config.master().map(|(name, _)| name.to_owned());
    let of_account = |(name, account): (&String, &crate::config::AccountConfig)| {
        // The id of a key is no secret: it may stand in a file that others read.
        let login = account.login.resolve_shown(file).with_context(|| format!("accounts.{name}.login"))?;
        let secret = account.secret.resolve(file).with_context(|| format!("accounts.{name}.secret"))?;
        let key = Key::new(login, secret);
        let grant = match account.grant {
            crate::config::Grant::ClientSignature => Grant::Signature,
            crate::config::Grant::ClientCredentials => Grant::Credentials,
        };
        let is_master = master.as_ref() == Some(name);
        Ok(AccountKey { key, grant, scope: account.scope.clone(), is_master })
    };
    config.accounts.iter().map(of_account).collect()
}

impl Streams {
    /// Connections that are off. What goes wrong with them is said to `notes`, as far as there is room.
    ///
    /// # Errors
    /// An address that is none, certificates that cannot be read.
    pub fn new(
        config: &GatewayConfig,
        keys: &[AccountKey],
        notes: SyncSender<String>,
    ) -> anyhow::Result<Streams> {
        let url = config.venue.ws_url()?;
        let tls = match (&config.venue.ca_file, url.is_tls()) {
            (_, false) => None,
            (Some(path), true) => Some(TlsClient::with_ca_file(path)?),
            (None, true) => Some(TlsClient::with_system_roots()?),
        };
        let proxy = config.venue.proxy.as_ref().map(|proxy| proxy.parse()).transpose()?;
        let route = Route { url, proxy, tls };
        let master = keys.iter().find(|key| key.is_master).or_else(|| keys.first());
        let market = master.cloned();
        let by_fix = config.venue.transport == Transport::Fix;
        let of_key = |key: Option<AccountKey>, is_trading: bool| {
            let venue = &config.venue;
            let grant = key.as_ref().map_or(Grant::default(), |key| key.grant);
            let scope = key.as_ref().and_then(|key| key.scope.clone());
            let key = key.map(|key| key.key);
            let session = SessionConfig {
                grant,
                scope,
                cancel_on_disconnect: is_trading && !by_fix && venue.cancel_on_disconnect,
                request_timeout: venue.request_timeout.0,
                pending_max: PENDING_MAX,
                matching: CreditPlan::rate(venue.matching_rate.into(), venue.matching_burst.into()),
                subscribe_batch: venue.subscribe_batch as usize,
                ..SessionConfig::new("tickpath-gateway", env!("CARGO_PKG_VERSION"), key)
            };
            let mut link = LinkConfig::new(route.clone(), session);
            link.messages_max = MESSAGES_MAX;
            link.retries_refused_login = true;
            link.pause_max = venue.reconnect_pause_max.0;
            link.limits.message_max = venue.decode_buffer.0 as usize;
            link.limits.pending_max = venue.encode_buffer.0 as usize;
            Link::new(link)
        };
        let mut links: Vec<Link> = (0..MARKET_STREAMS_MAX).map(|_| of_key(market.clone(), false)).collect();
        links.extend(keys.iter().map(|key| of_key(Some(key.clone()), true)));
        let wanted = vec![BTreeSet::new(); links.len()];
        let mut all = vec![market.map(|market| market.key); MARKET_STREAMS_MAX];
        all.extend(keys.iter().map(|key| Some(key.key.clone())));
        let entries = fix::links(config, keys)?;
        let count = links.len() + entries.len();
        let losses = (0..count).map(|_| LossText::default()).collect();
        let notes =
            Notes { to_print: notes, losses, has_refused: Cell::new(false), has_login: Cell::new(false) };
        let poller = Poller::new(count).context("venue: the system gives no poller for its connections")?;
        Ok(Streams {
            watched: vec![0; count],
            links,
            entries,
            poller,
            due: 0,
            due_entries: 0,
            unflushed: 0,
            unflushed_entries: 0,
            is_rehearsal: false,
            visit_at: Nanos::ZERO,
            wanted,
            notes,
            test: config.test,
            ready_at: vec![None; count],
            keys: all,
        })
    }

    /// Wants the first connection for market data and those of all accounts.
    pub fn start(&mut self, now: Nanos) {
        for (place, link) in self.links.iter_mut().enumerate() {
            if place == 0 || place >= MARKET_STREAMS_MAX {
                link.connect(now);
            }
        }
        self.entries.iter_mut().for_each(|entry| entry.connect(now));
    }

    /// Reads what has come on all connections, and tells the core; how much it was.
    pub fn poll(&mut self, now: Nanos, clock: TscClock, core: &mut Recorded, door: &mut Doorway) -> usize {
        if now >= self.visit_at {
            return self.visit_all(now, clock, core, door);
        }
        let mut due = std::mem::take(&mut self.due);
        let mut due_entries = std::mem::take(&mut self.due_entries);
        let first_entry = self.links.len() as u64;
        if let Ok(ready) = self.poller.poll() {
            for one in ready {
                match one.key.checked_sub(first_entry) {
                    Some(place) => due_entries |= 1_u64 << place,
                    None => due |= 1_u128 << one.key,
                }
            }
        }
        let mut work = 0;
        while due != 0 {
            work += self.visit(due.trailing_zeros() as usize, now, clock, core, door);
            due &= due - 1;
        }
        while due_entries != 0 {
            work += self.visit_entry(due_entries.trailing_zeros() as usize, now, clock, core, door);
            due_entries &= due_entries - 1;
        }
        work
    }

    /// Looks at every connection.
    fn visit_all(&mut self, now: Nanos, clock: TscClock, core: &mut Recorded, door: &mut Doorway) -> usize {
        self.visit_at = now + VISIT_INTERVAL;
        if !self.test.is_off() {
            self.fail_on_purpose(now, clock, core, door);
        }
        let mut work = 0;
        for stream in 0..self.links.len() {
            work += self.visit(stream, now, clock, core, door);
            self.watch(stream);
        }
        for place in 0..self.entries.len() {
            work += self.visit_entry(place, now, clock, core, door);
            self.watch(self.links.len() + place);
        }
        work
    }

    #[inline]
    fn visit(
        &mut self,
        stream: usize,
        now: Nanos,
        clock: TscClock,
        core: &mut Recorded,
        door: &mut Doorway,
    ) -> usize {
        let notes = &self.notes;
        let work = self.links[stream].do_work(now, &mut Ear { core, door, clock, stream, notes });
        self.due |= u128::from(work > 0) << stream;
        if self.notes.has_login.take() {
            self.note_scope(stream, now, core, door);
        }
        if self.notes.has_refused.take() {
            self.tell_refused(stream, core);
        }
        work
    }

    #[inline]
    fn visit_entry(
        &mut self,
        place: usize,
        now: Nanos,
        clock: TscClock,
        core: &mut Recorded,
        door: &mut Doorway,
    ) -> usize {
        let (notes, stream) = (&self.notes, self.links.len() + place);
        let work = self.entries[place].do_work(now, &mut Ear { core, door, clock, stream, notes });
        self.due_entries |= u64::from(work > 0) << place;
        work
    }

    /// Tells the core whether an account's login may trade, and says where it may not, or less than was asked for.
    #[cold]
    fn note_scope(&mut self, stream: usize, now: Nanos, core: &mut Recorded, door: &mut Doorway) {
        let session = self.links[stream].session();
        let (may_trade, name) = (session.may_trade(), core.stream_name(stream));
        if let Some(word) = session.missing_scope() {
            let _ = self.notes.to_print.try_send(format!(
                "connection {name}: the venue does not grant {word}: give the key that scope, or ask for less of it"
            ));
        }
        if stream < MARKET_STREAMS_MAX {
            return;
        }
        core.handle_scope(stream, now, may_trade, door);
        if !may_trade && !self.entries.is_empty() {
            let _ = self.notes.to_print.try_send(format!(
                "connection {name}: its login may not trade (granted: {}), so nothing can be cancelled while the FIX session is down: give the key the scope trade:read_write",
                session.scope()
            ));
        } else if !may_trade {
            let _ = self.notes.to_print.try_send(format!(
                "connection {name}: its login may not trade (granted: {}), orders are refused: give the key the scope trade:read_write",
                session.scope()
            ));
        }
    }

    /// Says which channels the venue refuses: of what they would have told nobody is told.
    #[cold]
    fn tell_refused(&mut self, stream: usize, core: &Recorded) {
        let session = self.links[stream].session();
        let name = core.stream_name(stream);
        for channel in session.refused_channels().take(REFUSED_LINES_MAX) {
            let what = match channel.starts_with(OWN_ORDERS) {
                true => "the account cannot be traded with: give the key the scope trade:read_write",
                false => "nothing of it is told",
            };
            let _ = self
                .notes
                .to_print
                .try_send(format!("connection {name}: the venue refuses {channel}: {what}"));
        }
    }

    /// Has the poller report a connection that has come to stand.
    fn watch(&mut self, stream: usize) {
        let life = self.stats(stream).map_or(0, |stats| stats.opened);
        if life == self.watched[stream] {
            return;
        }
        let entry = stream.checked_sub(self.links.len()).map(|place| &self.entries[place]);
        let socket = entry.map_or_else(|| self.links[stream].fd(), FixLink::fd);
        if let Some(socket) = socket {
            self.watched[stream] = life;
            // One that cannot be watched is visited now and then.
            let _ = self.poller.add(&socket, stream as u64, Interest::Read);
        }
    }

    /// Drops connections, and logs in anew, as the test switches say.
    #[cold]
    fn fail_on_purpose(&mut self, now: Nanos, clock: TscClock, core: &mut Recorded, door: &mut Doorway) {
        for (stream, link) in self.links.iter_mut().enumerate() {
            if link.standing() != Standing::Ready {
                self.ready_at[stream] = None;
                continue;
            }
            let since = *self.ready_at[stream].get_or_insert(now);
            let is_due = |after: Option<tickpath_config::Duration>| {
                after.is_some_and(|after| now.since(since) >= after.0)
            };
            if is_due(self.test.disconnect_after) {
                self.ready_at[stream] = None;
                link.disconnect(now, &mut Ear { core, door, clock, stream, notes: &self.notes });
                core.handle_lost(stream, now, door);
                link.connect(now);
            } else if is_due(self.test.logon_after) {
                self.ready_at[stream] = None;
                let key = self.keys[stream].clone();
                link.set_key(now, key, &mut Ear { core, door, clock, stream, notes: &self.notes });
            }
        }
        for (stream, entry) in (self.links.len()..).zip(&mut self.entries) {
            if entry.standing() != Standing::Ready {
                self.ready_at[stream] = None;
                continue;
            }
            let since = *self.ready_at[stream].get_or_insert(now);
            // A FIX session logs on once: another logon is another connection.
            let after = [self.test.disconnect_after, self.test.logon_after].into_iter().flatten().min();
            if after.is_some_and(|after| now.since(since) >= after.0) {
                self.ready_at[stream] = None;
                entry.disconnect(now);
                core.handle_lost(stream, now, door);
                entry.connect(now);
            }
        }
    }

    /// Gives the kernel the requests that wait; what it does not take at once leaves with the next looks.
    #[inline]
    pub fn flush(&mut self) {
        let mut due = std::mem::take(&mut self.unflushed);
        while due != 0 {
            self.links[due.trailing_zeros() as usize].flush();
            due &= due - 1;
        }
        let mut due = std::mem::take(&mut self.unflushed_entries);
        while due != 0 {
            self.entries[due.trailing_zeros() as usize].flush();
            due &= due - 1;
        }
    }

    /// Closes all connections.
    pub fn stop(&mut self, now: Nanos, clock: TscClock, core: &mut Recorded, door: &mut Doorway) {
        for (stream, link) in self.links.iter_mut().enumerate() {
            if link.standing() != Standing::Off {
                link.disconnect(now, &mut Ear { core, door, clock, stream, notes: &self.notes });
            }
        }
        self.entries.iter_mut().for_each(|entry| entry.disconnect(now));
    }

    /// The first connection that speaks FIX; none where orders go by the WebSocket.
    #[must_use]
    pub fn first_fix(&self) -> Option<usize> {
        (!self.entries.is_empty()).then_some(self.links.len())
    }

    /// What a connection counts.
    #[must_use]
    pub fn stats(&self, stream: usize) -> Option<LinkStats> {
        let entry = |stream: usize| self.entries.get(stream - self.links.len()).map(FixLink::stats);
        self.links.get(stream).map(Link::stats).or_else(|| entry(stream))
    }

    /// Why each connection was lost last, for others to read.
    #[must_use]
    pub fn loss_texts(&self) -> Arc<[LossText]> {
        Arc::clone(&self.notes.losses)
    }

    /// What a connection waits for, in words.
    #[must_use]
    pub fn stage(&self, stream: usize) -> Option<&'static str> {
        let entry = |stream: usize| self.entries.get(stream - self.links.len()).map(FixLink::stage);
        self.links.get(stream).map(Link::stage).or_else(|| entry(stream))
    }
}

impl Venue for Streams {
    #[inline]
    fn request<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        if self.is_rehearsal {
            self.links[stream].rehearse_request(method, params);
            return Ok(0);
        }
        self.unflushed |= 1 << stream;
        self.links[stream].queue_request(now, method, params)
    }

    #[inline]
    fn check(&mut self, now: Nanos, stream: usize, method: Method) -> Result<(), RequestError> {
        match stream.checked_sub(self.links.len()) {
            None => self.links[stream].check_request(now, method, ORDER_LEN_MAX),
            Some(place) => {
                let entry = self.entries.get(place).ok_or(RequestError::NotReady)?;
                entry.check_request(now, ORDER_LEN_MAX)
            }
        }
    }

    #[inline]
    fn send_fix<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        body: &impl tickpath_fix::Body<'a>,
    ) -> Result<i64, RequestError> {
        let place = stream.checked_sub(self.links.len()).ok_or(RequestError::NotReady)?;
        let entry = self.entries.get_mut(place).ok_or(RequestError::NotReady)?;
        if self.is_rehearsal {
            return entry.rehearse(body);
        }
        self.unflushed_entries |= 1_u64 << place;
        entry.send(now, body)
    }

    fn set_rehearsal(&mut self, is_rehearsal: bool) {
        self.is_rehearsal = is_rehearsal;
    }

    fn subscribe(&mut self, stream: usize, channel: &str) {
        self.due |= 1 << stream;
        if self.links[stream].subscribe(channel).is_ok() {
            self.wanted[stream].insert(channel.to_owned());
        }
    }

    fn unsubscribe(&mut self, stream: usize, channel: &str) {
        self.due |= 1 << stream;
        self.links[stream].unsubscribe(channel);
        self.wanted[stream].remove(channel);
    }

    fn resubscribe(&mut self, stream: usize, channel: &str) {
        self.due |= 1 << stream;
        self.links[stream].resubscribe(channel);
    }

    fn connect(&mut self, stream: usize, now: Nanos) {
        self.links[stream].connect(now);
    }

    fn requests_left(&self, stream: usize, now: Nanos) -> Option<u64> {
        match self.links.get(stream) {
            Some(link) => Some(link.session().matching_requests_left(now)),
            None => self.entries.get(stream - self.links.len()).map(|entry| entry.requests_left(now)),
        }
    }

    fn settled_channels(&self, stream: usize) -> Option<usize> {
        let session = self.links[stream].session();
        if session.refused_channels().any(|channel| channel.starts_with(OWN_ORDERS)) {
            // Without it nobody would be told what becomes of orders.
            return Some(0);
        }
        let active = session.active_channels();
        (active + session.refused_channels().count() >= self.wanted[stream].len()).then_some(active)
    }

    fn is_refused(&self, stream: usize, channel: &str) -> bool {
        self.links[stream].session().refused_channels().any(|refused| refused == channel)
    }
}

/// Hears one connection for the core.
struct Ear<'a> {
    core: &'a mut Recorded,
    door: &'a mut Doorway,
    clock: TscClock,
    stream: usize,
    notes: &'a Notes,
}

impl Listener for Ear<'_> {
    #[inline]
    fn now(&mut self, _: Nanos) -> Nanos {
        self.clock.now()
    }

    #[inline]
    fn on_text<'f>(&mut self, at: Received, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        let metrics = self.door.metrics();
        metrics.count_bytes(self.stream, text.len() as u64);
        metrics.updated_ns.set(at.at.0);
        let read = self.core.read(at.at, self.stream, text);
        if read.is_err() {
            self.door.metrics().count_exception(Exception::Unreadable);
        }
        read
    }

    #[inline]
    fn on_event(&mut self, at: Received, event: SessionEvent<'_>) {
        let function = function_of(&event);
        if matches!(event, SessionEvent::Ready) {
            self.notes.has_login.set(true);
        }
        if matches!(event, SessionEvent::Subscribed { refused, .. } if refused > 0) {
            self.notes.has_refused.set(true);
        }
        self.core.handle_event(self.stream, at.at, event, self.door);
        self.door.metrics().parsed(self.stream, function).record(self.clock.now().since(at.at).0);
    }

    fn on_unanswered(&mut self, at: Nanos, id: i64, _: Method, why: Unanswered) {
        self.core.handle_unanswered(self.stream, id, why == Unanswered::Lost, at, self.door);
    }

    fn on_change(&mut self, at: Nanos, change: Change<'_>) {
        match change {
            Change::Begun => self.core.handle_begun(self.stream, at, self.door),
            Change::Opened => self.core.handle_opened(self.stream, at, self.door),
            Change::Lost { why, .. } => {
                self.door.metrics().count_exception(Exception::Disconnect);
                self.notes.lost(self.stream, self.core.stream_name(self.stream), why);
                self.core.handle_lost(self.stream, at, self.door);
            }
            _ => {}
        }
    }
}

/// What the time of a message is counted under.
#[inline]
fn function_of(event: &SessionEvent<'_>) -> Function {
    let channel = match event {
        SessionEvent::Notification(notification) => notification.channel.plain().unwrap_or(""),
        SessionEvent::Reply { method, .. } if method.is_matching() => return Function::ParseOrder,
        _ => return Function::ParseOther,
    };
    match channel.as_bytes().first() {
        Some(b'b') => Function::ParseBook,
        Some(b't') if channel.starts_with("ticker.") => Function::ParseTicker,
        Some(b't') => Function::ParseTrades,
        Some(b'u') => Function::ParseOrder,
        _ => Function::ParseOther,
    }
}
