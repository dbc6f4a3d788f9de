//! Connections to the venue: one per account, those for market data, and one more per account if orders use
//! FIX.

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

/// Maximum number of messages per connection and duty cycle: a burst of market data must not delay requests.
const MESSAGES_MAX: usize = 16;

/// Free capacity that a connection must have for an order request, in bytes.
const ORDER_LEN_MAX: usize = 2 << 10;

/// Interval of visits to connections that the poller does not report: those being established, and timeouts.
const VISIT_INTERVAL: Nanos = Nanos::from_micros(100);

/// Maximum number of lines about channels refused at once.
const REFUSED_LINES_MAX: usize = 8;

/// Prefix of the channel that an account needs for trading.
const OWN_ORDERS: &str = "user.changes.";

/// All connections by number: first those for market data, then those of accounts, then the FIX sessions.
pub struct Streams {
    links: Vec<Link>,
    entries: Vec<FixLink>,
    /// Reports connections with data by one system call for all; it is the only delay for a client's request.
    poller: Poller,
    /// Connection instance that the poller watches, per connection.
    watched: Vec<u64>,
    /// Connections to visit regardless of the poller: TLS may have buffered data, or a message is to be sent.
    due: u128,
    /// FIX sessions to visit regardless of the poller, by index.
    due_entries: u64,
    /// Connections with requests queued since the last flush.
    unflushed: u128,
    /// FIX sessions with messages queued since the last flush.
    unflushed_entries: u64,
    /// Warm-up is on: requests are encoded and not sent.
    is_rehearsal: bool,
    visit_at: Nanos,
    /// Channels requested of each connection.
    wanted: Vec<BTreeSet<String>>,
    /// Messages about failures.
    notes: Notes,
    /// Deliberate failures.
    test: TestSwitches,
    /// Time since which each connection is ready, for deliberate failures; and its key.
    ready_at: Vec<Option<Nanos>>,
    keys: Vec<Option<Key>>,
}

/// Outlets for messages about failures.
struct Notes {
    to_print: SyncSender<String>,
    /// Reason for the latest loss of each connection.
    losses: Arc<[LossText]>,
    /// The venue has just refused channels.
    has_refused: Cell<bool>,
    /// A login has just completed.
    has_login: Cell<bool>,
}

impl Notes {
    #[cold]
    fn lost(&self, stream: usize, name: impl Display, why: impl Display) {
        let why = why.to_string();
        if let Some(place) = self.losses.get(stream) {
            place.set(&why);
        }
        // If the queue is full, enough messages are waiting to be printed.
        let _ = self.to_print.try_send(format!("connection {name}: {why}"));
    }
}

/// The key of one account and its login settings.
#[derive(Clone)]
pub struct AccountKey {
    /// Id and secret.
    pub key: Key,
    /// Login method.
    pub grant: Grant,
    /// Scope that the login requests; all rights of the key when absent.
    pub scope: Option<String>,
    /// Whether market data is subscribed with this key.
    pub is_master: bool,
}

/// Reads the keys of all accounts, sorted by name.
///
/// # Errors
/// A secret is missing, or others can read it.
pub fn keys(config: &GatewayConfig, file: Option<&std::path::Path>) -> anyhow::Result<Vec<AccountKey>> {
    let master = config.master().map(|(name, _)| name.to_owned());
    let of_account = |(name, account): (&String, &crate::config::AccountConfig)| {
        // The id of a key is not secret: others may read the file that holds it.
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
    /// Creates the connections, switched off. Failures are sent to `notes`, unless it is full.
    ///
    /// # Errors
    /// An address is invalid, or certificates cannot be read.
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

    /// Starts the first market data connection and those of all accounts.
    pub fn start(&mut self, now: Nanos) {
        for (place, link) in self.links.iter_mut().enumerate() {
            if place == 0 || place >= MARKET_STREAMS_MAX {
                link.connect(now);
            }
        }
        self.entries.iter_mut().for_each(|entry| entry.connect(now));
    }

    /// Reads the connections that have data and passes messages to the core; returns the amount of work.
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

    /// Visits every connection.
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

    /// Passes an account's trading right to the core, and reports a scope that was requested and not granted.
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

    /// Reports the channels that the venue refuses, as their data is missing.
    #[cold]
    fn tell_refused(&mut self, stream: usize, core: &Recorded) {
        let session = self.links[stream].session();
        let name = core.stream_name(stream);
        for channel in session.refused_channels().take(REFUSED_LINES_MAX) {
            let what = match channel.starts_with(OWN_ORDERS) {
                true => "the account cannot be traded with: give the key the scope trade:read_write",
                false => "nothing of it is published",
            };
            let _ = self
                .notes
                .to_print
                .try_send(format!("connection {name}: the venue refuses {channel}: {what}"));
        }
    }

    /// Registers a newly established connection with the poller.
    fn watch(&mut self, stream: usize) {
        let life = self.stats(stream).map_or(0, |stats| stats.opened);
        if life == self.watched[stream] {
            return;
        }
        let entry = stream.checked_sub(self.links.len()).map(|place| &self.entries[place]);
        let socket = entry.map_or_else(|| self.links[stream].fd(), FixLink::fd);
        if let Some(socket) = socket {
            self.watched[stream] = life;
            // A connection that cannot be registered is still visited at intervals.
            let _ = self.poller.add(&socket, stream as u64, Interest::Read);
        }
    }

    /// Drops connections and logs in again, as the test switches configure.
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
            // A FIX session logs on only once: another logon needs another connection.
            let after = [self.test.disconnect_after, self.test.logon_after].into_iter().flatten().min();
            if after.is_some_and(|after| now.since(since) >= after.0) {
                self.ready_at[stream] = None;
                entry.disconnect(now);
                core.handle_lost(stream, now, door);
                entry.connect(now);
            }
        }
    }

    /// Passes queued requests to the kernel; the remainder is sent by the next visits.
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

    /// Index of the first FIX connection; none if orders use the WebSocket.
    #[must_use]
    pub fn first_fix(&self) -> Option<usize> {
        (!self.entries.is_empty()).then_some(self.links.len())
    }

    /// Counters of a connection.
    #[must_use]
    pub fn stats(&self, stream: usize) -> Option<LinkStats> {
        let entry = |stream: usize| self.entries.get(stream - self.links.len()).map(FixLink::stats);
        self.links.get(stream).map(Link::stats).or_else(|| entry(stream))
    }

    /// Shared reasons for the latest loss of each connection.
    #[must_use]
    pub fn loss_texts(&self) -> Arc<[LossText]> {
        Arc::clone(&self.notes.losses)
    }

    /// The step that a connection waits for, for display.
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
            self.links[stream].rehearse_request(now, method, params);
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
            // Without this channel the gateway gets no execution reports.
            return Some(0);
        }
        let active = session.active_channels();
        (active + session.refused_channels().count() >= self.wanted[stream].len()).then_some(active)
    }

    fn is_refused(&self, stream: usize, channel: &str) -> bool {
        self.links[stream].session().refused_channels().any(|refused| refused == channel)
    }
}

/// Listener of one connection, which passes its events to the core.
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

/// Function under which a message's time is recorded.
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
