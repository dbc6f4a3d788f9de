//! The connections to a native venue, with one request at a time.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;

use tickpath_deribit::channel::{Channel, Interval, Selector};
use tickpath_deribit::method::Method;
use tickpath_deribit::session::Key;
use tickpath_deribit_link::Standing;
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_net::Kernel;
use tickpath_trader::{OrderEntry, OrderEntryError};
use tickpath_types::{InstrumentId, Nanos, OrderRequest, Symbol};

use super::account::{Account, News};
use super::answers::Best;
use super::board::Board;
use super::live::LiveFeed;
use super::plan::{self, Ask};
use super::request::Conclusion;
use super::settings::NativeSettings;
use super::snapshot::Snapshot;
use super::soup::{Heard, Lost, SoupReader};
use super::{answers, words};
use crate::history::Way;
use crate::link::{Answer, Clock, Inbox};

/// Pause before a reconnect; doubled with each failure, up to `RETRY_MAX`.
const RETRY_MIN: Nanos = Nanos::from_millis(250);
const RETRY_MAX: Nanos = Nanos::from_secs(30);
/// Upper bound of unadmitted login attempts: the venue may not have detected the end of the last session.
const NOT_ADMITTED_MAX: u32 = 40;
/// Pause before a lost market data feed is joined again.
const MARKET_RETRY: Nanos = Nanos::from_secs(1);
/// Number of these attempts after which the drop copies are requested from the first one, of any session.
const SESSION_GONE: u32 = 8;
/// Time after a loss in which answers to requests of the lost connection may still arrive.
const SETTLE: Nanos = Nanos::from_millis(250);
/// The first number that no order can have.
const REFS_END: u64 = 1 << 32;

/// Progress of the synchronisation after a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    /// The order connection or the drop copies are not logged in.
    Off,
    /// Waiting for late answers.
    Settling { until: Nanos },
    /// The account query for a log position was sent.
    Asked,
    /// Waiting for the copies to reach this number.
    Copies(u64),
    /// Requests can be sent.
    Done,
}

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waiting for a new connection.
    Lost,
    /// The request and an account query for a log position were sent.
    Asked,
    /// Waiting for the copies to reach this number.
    Copies(u64),
    /// Receiving a snapshot of the market.
    Snapshot,
}

/// The current request.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: i64,
    pub(super) ask: Ask,
    pub(super) deadline: Nanos,
    /// True after the first time-out, which forces a reconnect.
    pub(super) is_late: bool,
    pub(super) stage: Stage,
    /// The order number that it consumes, if any.
    pub(super) number: Option<u32>,
    /// Number of the user's trades before it.
    pub(super) trades_before: u64,
    /// Orders to be cancelled or reduced.
    pub(super) targets: Vec<u32>,
    /// Number of account queries so far that showed no trace of it.
    pub(super) checks: u8,
}

/// A connection to a native venue as one of its users.
pub struct NativeLink {
    pub(super) settings: NativeSettings,
    entry: Option<OrderEntry>,
    copies: Option<SoupReader>,
    pub(super) account: Account,
    is_wanted: bool,
    retry_at: Nanos,
    retry_wait: Nanos,
    not_admitted: u32,
    has_been_ready: bool,
    sync: Sync,
    sync_since: Nanos,
    login_since: Nanos,
    pub(super) next_ref: u64,
    pending: Option<Pending>,
    /// Numbers of requests of unknown outcome; they are consumed first after a login.
    doubtful: Vec<u32>,
    losses: u64,
    next_id: i64,
    pub(super) venue_time: Nanos,
    snapshot: Option<Snapshot>,
    live: Option<LiveFeed>,
    /// The earliest time to join the market data feed again.
    market_at: Nanos,
    channels: BTreeSet<String>,
}

impl std::fmt::Debug for NativeLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeLink")
            .field("settings", &self.settings)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

impl NativeLink {
    /// Creates a link, disconnected.
    #[must_use]
    pub fn new(settings: NativeSettings) -> NativeLink {
        let user = settings.key.as_ref().map_or("", |key| &key.client_id);
        NativeLink {
            account: Account::new(user),
            settings,
            entry: None,
            copies: None,
            is_wanted: false,
            retry_at: Nanos::ZERO,
            retry_wait: RETRY_MIN,
            not_admitted: 0,
            has_been_ready: false,
            sync: Sync::Off,
            sync_since: Nanos::ZERO,
            login_since: Nanos::ZERO,
            next_ref: 0,
            pending: None,
            doubtful: Vec::new(),
            losses: 0,
            next_id: 0,
            venue_time: Nanos::ZERO,
            snapshot: None,
            live: None,
            market_at: Nanos::ZERO,
            channels: BTreeSet::new(),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.sync {
            _ if !self.is_wanted => Standing::Off,
            Sync::Done => Standing::Ready,
            _ => Standing::Connecting,
        }
    }

    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    pub(crate) fn unreadable(&self) -> u64 {
        self.account.unreadable + self.entry.as_ref().map_or(0, |entry| entry.client().unknown_answers())
    }

    pub(crate) fn has_key(&self) -> bool {
        self.settings.key.is_some()
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.settings.key.as_ref().map(|key| key.client_id.as_str())
    }

    pub(crate) fn is_instrument(&self, name: &str) -> bool {
        Symbol::new(name).is_ok_and(|symbol| self.settings.instruments.find(symbol).is_some())
    }

    /// Names of the instruments, for completion.
    pub(crate) fn instrument_names(&self) -> Vec<String> {
        self.settings.instruments.iter().map(|instrument| instrument.symbol.to_string()).collect()
    }

    /// The sockets to wait for.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let entry = self.entry.as_ref().and_then(OrderEntry::descriptor);
        let copies = self.copies.as_ref().and_then(SoupReader::fd);
        let snapshot = self.snapshot.as_ref().and_then(Snapshot::fd);
        entry.into_iter().chain(copies).chain(snapshot)
    }

    /// Whether work is pending that no socket of [`fds`](Self::fds) reports.
    pub(crate) fn is_restless(&self) -> bool {
        self.live.is_some() || self.sync != Sync::Done || self.snapshot.is_some()
    }

    pub(crate) fn connect(&mut self, inbox: &mut Inbox) {
        if self.settings.key.is_none() {
            inbox.note(
                "a native venue asks for user and password: set TICKPATH_CLIENT_ID and TICKPATH_CLIENT_SECRET, or name a key file"
                    .to_owned(),
            );
            return;
        }
        if !self.is_wanted {
            (self.is_wanted, self.retry_at, self.retry_wait) = (true, Nanos::ZERO, RETRY_MIN);
            self.not_admitted = 0;
            // Subscriptions survive a logout and a change of the user.
            if self.account.news.is_none() && self.channels.iter().any(|name| name.starts_with("user.")) {
                self.account.news = Some(Default::default());
            }
        }
    }

    pub(crate) fn disconnect(&mut self, now: Nanos) {
        if let Some(entry) = &mut self.entry {
            entry.logout(now);
        }
        self.give_up_pending();
        self.close();
        (self.is_wanted, self.snapshot, self.live) = (false, None, None);
    }

    /// Changes the user; the link is off until it is connected.
    pub(crate) fn set_key(&mut self, now: Nanos, key: Option<Key>) {
        let words =
            |key: &Option<Key>| key.as_ref().map(|key| (key.client_id.clone(), key.secret().to_owned()));
        if words(&self.settings.key) == words(&key) {
            return;
        }
        self.disconnect(now);
        let settings = NativeSettings { key, ..self.settings.clone() };
        let channels = std::mem::take(&mut self.channels);
        *self =
            NativeLink { channels, losses: self.losses, next_id: self.next_id, ..NativeLink::new(settings) };
    }

    fn close(&mut self) {
        self.entry = None;
        if let Some(copies) = &mut self.copies {
            copies.close();
        }
        self.sync = Sync::Off;
    }

    /// Abandons the current request. The next connection consumes its number, which the venue may have.
    fn give_up_pending(&mut self) {
        if let Some(Pending { number: Some(number), .. }) = self.pending.take() {
            self.doubtful.push(number);
        }
    }

    /// Subscribes to a channel.
    ///
    /// # Errors
    /// A message in one line, if a native venue has no such channel.
    pub(crate) fn subscribe(&mut self, name: &str) -> Result<(), String> {
        let is_market = self.check_channel(name)?;
        if is_market && self.live.is_none() {
            let data = self.settings.market_data.as_ref().ok_or(NO_MARKET_DATA)?;
            self.live = Some(LiveFeed::open(data, &self.settings.instruments)?);
        }
        if let Some(live) = self.live.as_mut().filter(|_| is_market) {
            live.add(name);
        }
        if !is_market && self.account.news.is_none() {
            self.account.news = Some(Default::default());
        }
        self.channels.insert(name.to_owned());
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, name: &str) {
        self.channels.remove(name);
        if let Some(live) = &mut self.live {
            live.remove(name);
        }
        if !self.channels.iter().any(|name| name.starts_with("user.")) {
            self.account.news = None;
        }
        if self.channels.iter().all(|name| name.starts_with("user.")) {
            self.live = None;
        }
    }

    pub(crate) fn active_channels(&self) -> usize {
        if self.sync == Sync::Done { self.channels.len() } else { 0 }
    }

    /// Whether a channel carries market data; otherwise it is a user channel.
    fn check_channel(&self, name: &str) -> Result<bool, String> {
        let is_ours = |of: &Selector<'_>| match of {
            Selector::Instrument(name) => self.is_instrument(name),
            Selector::Kind { .. } => *of == ANY,
        };
        let is_market = match Channel::parse(name) {
            Ok(
                Channel::Quote { instrument: name } | Channel::Trades { of: Selector::Instrument(name), .. },
            ) if self.is_instrument(name) => true,
            Ok(channel) if Board::instrument_of(&channel).is_some_and(|name| self.is_instrument(name)) => {
                true
            }
            Ok(
                Channel::UserOrders { of, interval: Interval::Raw }
                | Channel::UserTrades { of, interval: Interval::Raw },
            ) if is_ours(&of) => false,
            _ => {
                return Err(format!(
                    "a native venue has no channel {name:?}: quote.X, ticker.X.100ms, book.X.100ms, book.X.none.10.100ms, trades.X.raw, user.orders.X.raw and user.trades.X.raw of an instrument X, and user.orders.any.any.raw, user.trades.any.any.raw"
                ));
            }
        };
        Ok(is_market)
    }

    /// Whether the venue supports this request.
    ///
    /// # Errors
    /// The reason in one line.
    pub(crate) fn check(&self, method: Method, params: &str) -> Result<(), String> {
        plan::ask(method, params, &self.settings.instruments).map(drop)
    }

    /// Sends a request; the inbox receives its answer.
    pub(crate) fn request(&mut self, method: Method, params: &str, inbox: &mut Inbox) -> i64 {
        let now = inbox.clock.now();
        self.give_up_pending_of_before();
        self.next_id += 1;
        let id = self.next_id;
        inbox.expect(id);
        match plan::ask(method, params, &self.settings.instruments) {
            Err(why) => inbox.answer_with(id, Answer::Impossible(why)),
            Ok(ask) => {
                let deadline = now + self.settings.request_timeout;
                let pending = Pending {
                    id,
                    ask,
                    deadline,
                    is_late: false,
                    stage: Stage::Lost,
                    number: None,
                    trades_before: self.account.trade_count,
                    targets: Vec::new(),
                    checks: 0,
                };
                self.begin_request(now, pending, inbox);
            }
        }
        id
    }

    /// Abandons an interrupted request. On an open connection the venue is certain to have it, and the next
    /// number is the following one.
    fn give_up_pending_of_before(&mut self) {
        match &self.pending {
            Some(pending) if pending.stage == Stage::Lost => self.give_up_pending(),
            _ => self.pending = None,
        }
        self.snapshot = None;
    }

    fn begin_request(&mut self, now: Nanos, pending: Pending, inbox: &mut Inbox) {
        let instruments = &self.settings.instruments;
        let answer = match pending.ask {
            Ask::Instruments { is_any } => {
                let listed = instruments.iter().filter(|_| is_any);
                let texts: Vec<String> =
                    listed.map(|instrument| answers::json(&answers::instrument(instrument))).collect();
                Ok(format!("[{}]", texts.join(",")))
            }
            Ask::Instrument { instrument } => match instruments.get(instrument) {
                Some(instrument) => Ok(answers::json(&answers::instrument(instrument))),
                None => Err("there is no such instrument".to_owned()),
            },
            Ask::Ticker { instrument } | Ask::Book { instrument, .. } => {
                match self.begin_snapshot(instrument, now) {
                    Ok(()) => {
                        self.pending = Some(Pending { stage: Stage::Snapshot, ..pending });
                        return;
                    }
                    Err(why) => Err(why),
                }
            }
            _ => return self.send(now, pending, inbox),
        };
        inbox.answer_with(pending.id, answer.map_or_else(Answer::NotDone, Answer::Done));
    }

    fn begin_snapshot(&mut self, instrument: InstrumentId, now: Nanos) -> Result<(), String> {
        let server = self.glimpse()?;
        let symbol = self.settings.instruments.symbol(instrument).ok_or("there is no such instrument")?;
        self.snapshot = Some(Snapshot::start(server, symbol, now)?);
        Ok(())
    }

    fn glimpse(&self) -> Result<std::net::SocketAddrV4, String> {
        let data = self.settings.market_data.as_ref().ok_or(NO_MARKET_DATA)?;
        data.glimpse.ok_or_else(|| {
            "native.market_data.glimpse is not named in the configuration: the market is read there"
                .to_owned()
        })
    }

    /// Sends a request for the first time.
    fn send(&mut self, now: Nanos, mut pending: Pending, inbox: &mut Inbox) {
        let requests = match self.requests(&mut pending) {
            Ok(requests) => requests,
            Err(why) => return inbox.answer_with(pending.id, Answer::NotDone(why)),
        };
        match self.transmit(now, &requests, inbox) {
            Ok(()) => self.pending = Some(Pending { stage: Stage::Asked, ..pending }),
            Err(OrderEntryError::Encode(error)) => {
                // Nothing was sent: its number is free.
                if let (Some(number), Some(entry)) = (pending.number, &mut self.entry) {
                    self.next_ref = number.into();
                    entry.client_mut().discard();
                }
                inbox.answer_with(pending.id, Answer::Impossible(error.to_string()));
            }
            Err(error) => {
                self.pending = Some(pending);
                self.lose(now, &error.to_string(), inbox);
            }
        }
    }

    /// Sends requests, followed by an account query for the log position.
    fn transmit(
        &mut self,
        now: Nanos,
        requests: &[OrderRequest],
        inbox: &mut Inbox,
    ) -> Result<(), OrderEntryError> {
        let gone = || OrderEntryError::Disconnected { reason: "the connection was just lost".to_owned() };
        let entry = self.entry.as_mut().filter(|entry| entry.is_active()).ok_or_else(gone)?;
        // Discards answers to earlier queries.
        entry.client_mut().take_query_answer();
        for request in requests {
            entry.queue(request)?;
        }
        entry.query_account(now)?;
        for request in requests {
            inbox.keep(now, Way::Sent, &words::request(request, &self.settings.instruments));
        }
        inbox.keep(now, Way::Sent, &words::query());
        Ok(())
    }

    /// Does the pending work. Never blocks.
    pub(crate) fn poll(&mut self, inbox: &mut Inbox) {
        if !self.is_wanted {
            return;
        }
        let now = inbox.clock.now();
        if let Err(lost) = self.listen(now, inbox) {
            self.handle_loss(now, lost, inbox);
        }
        if let Err(error) = self.go_on(now, inbox) {
            self.lose(now, &error.to_string(), inbox);
        }
        self.poll_snapshot(now, inbox);
        self.poll_live(now, inbox);
        self.tell_news(inbox);
        self.check_time(now, inbox);
    }

    /// Connects if necessary, and handles received messages.
    fn listen(&mut self, now: Nanos, inbox: &mut Inbox) -> Result<(), Loss> {
        if self.entry.is_none() {
            if now < self.retry_at {
                return Ok(());
            }
            self.begin(now)?;
        }
        let (account, instruments) = (&mut self.account, &self.settings.instruments);
        let copied = account.copies;
        if let Some(copies) = &mut self.copies {
            let mut has_ended = false;
            copies
                .poll(now, |heard| match heard {
                    Heard::Message(copy) => account.handle_copy(copy, instruments),
                    Heard::End => has_ended = true,
                })
                .map_err(Loss::Copies)?;
            if has_ended {
                return Err(Loss::Copies(Lost::Gone("the session has ended".to_owned())));
            }
        }
        if account.copies > copied {
            // Reading a long log is progress, not silence.
            self.sync_since = now;
        }
        let Some(entry) = &mut self.entry else { return Ok(()) };
        if !entry.poll_connected(now)? {
            return Ok(());
        }
        entry.poll(
            now,
            inbox,
            |_| {},
            |inbox, answer| {
                inbox.keep(now, Way::Received, &words::answer(answer, instruments));
            },
        )?;
        Ok(())
    }

    fn begin(&mut self, now: Nanos) -> Result<(), Loss> {
        let NativeSettings { address, key, instruments, drop_copy, .. } = &self.settings;
        let Some(key) = key else { return Ok(()) };
        let entry =
            OrderEntry::begin_on(Kernel, *address, &key.client_id, key.secret(), instruments.clone(), now)?;
        // Earlier events come from the drop copies.
        self.entry = Some(entry.only_new(now));
        (self.sync_since, self.login_since) = (now, now);
        let copies = match &mut self.copies {
            Some(copies) => copies,
            none => {
                let login = self.settings.reader().map_err(Loss::Final)?;
                none.insert(SoupReader::new(*drop_copy, login))
            }
        };
        if copies.is_off() {
            copies.start(now).map_err(Loss::Copies)?;
        }
        Ok(())
    }

    /// Takes the next step of the login, or of the request.
    fn go_on(&mut self, now: Nanos, inbox: &mut Inbox) -> Result<(), OrderEntryError> {
        let is_up = self.entry.as_ref().is_some_and(OrderEntry::is_active)
            && self.copies.as_ref().is_some_and(SoupReader::is_active);
        if !is_up {
            return Ok(());
        }
        match self.sync {
            Sync::Off => {
                let until = if self.has_been_ready { now + SETTLE } else { now };
                (self.sync, self.sync_since) = (Sync::Settling { until }, now);
            }
            Sync::Settling { until } if now >= until => {
                let voids: Vec<OrderRequest> =
                    self.doubtful.iter().map(|number| self.void(*number)).collect();
                self.transmit(now, &voids, inbox)?;
                self.sync = Sync::Asked;
            }
            Sync::Settling { .. } => {}
            Sync::Asked => {
                if let Some(number) = self.take_place(now, inbox) {
                    self.sync = Sync::Copies(number);
                }
            }
            Sync::Copies(number) if self.account.number >= number => return self.become_ready(now, inbox),
            Sync::Copies(_) => {}
            Sync::Done => return self.go_on_with_request(now, inbox),
        }
        Ok(())
    }

    /// The log position of the account query, once it is answered.
    fn take_place(&mut self, now: Nanos, inbox: &mut Inbox) -> Option<u64> {
        let entry = self.entry.as_mut()?;
        self.venue_time = entry.client_mut().take_query_answer()?;
        let next = entry.client().next_user_ref().map_or(0, |next| next.0);
        self.next_ref = self.next_ref.max(if next == 0 { REFS_END } else { next.into() });
        inbox.keep(now, Way::Received, &words::query_answer(self.venue_time, next));
        // Waits also for all that arrived with the answer.
        Some(entry.client().next_sequence().saturating_sub(1))
    }

    fn become_ready(&mut self, now: Nanos, inbox: &mut Inbox) -> Result<(), OrderEntryError> {
        self.next_ref = self.next_ref.max(u64::from(self.account.last_ref) + 1);
        self.doubtful.clear();
        (self.sync, self.retry_wait, self.not_admitted) = (Sync::Done, RETRY_MIN, 0);
        (self.has_been_ready, self.account.is_catching_up) = (true, false);
        inbox.login_time = Some(now.since(self.login_since));
        if let Some(why) = self.account.incomplete {
            inbox.note(why.to_owned());
        }
        let Some(mut pending) = self.pending.take_if(|pending| pending.stage == Stage::Lost) else {
            return Ok(());
        };
        pending.checks = 0;
        // Consuming the number shows the outcome: an unreceived request can then not take effect.
        let requests = match (pending.number, &pending.ask) {
            (Some(number), Ask::Enter(_) | Ask::Edit(_)) => {
                self.next_ref = self.next_ref.max(u64::from(number) + 1);
                vec![self.void(number)]
            }
            (Some(number), _) => {
                self.next_ref = self.next_ref.max(u64::from(number) + 1);
                self.requests(&mut pending).unwrap_or_default()
            }
            // An accepted reduction is not repeated, since that would cost the order's place in the queue.
            (None, Ask::Edit(edit)) if self.is_reduced(edit) => Vec::new(),
            (None, Ask::Edit(_) | Ask::Cancel { .. } | Ask::CancelLabel { .. }) => {
                // An order that has ended needs nothing more.
                let targets = pending.targets.clone();
                let requests = self.requests(&mut pending).unwrap_or_default();
                pending.targets = targets;
                requests
            }
            (None, _) => Vec::new(),
        };
        self.pending = Some(Pending { stage: Stage::Asked, ..pending });
        self.transmit(now, &requests, inbox)
    }

    fn go_on_with_request(&mut self, now: Nanos, inbox: &mut Inbox) -> Result<(), OrderEntryError> {
        let Some(stage) = self.pending.as_ref().map(|pending| pending.stage) else { return Ok(()) };
        match stage {
            Stage::Asked => {
                if let Some(number) = self.take_place(now, inbox)
                    && let Some(pending) = &mut self.pending
                {
                    pending.stage = Stage::Copies(number);
                }
            }
            Stage::Copies(number) if self.account.number >= number => {
                let Some(mut pending) = self.pending.take() else { return Ok(()) };
                match self.conclude(&pending) {
                    Conclusion::Answer(answer) => inbox.answer_with(pending.id, answer),
                    Conclusion::Next(ask) => {
                        let trades_before = self.account.trade_count;
                        self.send(now, Pending { ask, trades_before, ..pending }, inbox);
                    }
                    Conclusion::AskAgain => {
                        pending.checks += 1;
                        self.pending = Some(Pending { stage: Stage::Asked, ..pending });
                        self.transmit(now, &[], inbox)?;
                    }
                }
            }
            Stage::Copies(_) | Stage::Lost | Stage::Snapshot => {}
        }
        Ok(())
    }

    fn poll_snapshot(&mut self, now: Nanos, inbox: &mut Inbox) {
        let Ok(server) = self.glimpse() else { return };
        let Some(snapshot) = &mut self.snapshot else { return };
        let Some(outcome) = snapshot.poll(now, server) else { return };
        let Some(pending) = self.pending.take_if(|pending| pending.stage == Stage::Snapshot) else {
            self.snapshot = None;
            return;
        };
        let instruments = &self.settings.instruments;
        let now_ms = Clock::unix_ms();
        let answer = outcome.and_then(|levels| {
            let (Ask::Ticker { instrument } | Ask::Book { instrument, .. }) = pending.ask else {
                return Err("no question of the market".to_owned());
            };
            let known = instruments.get(instrument).filter(|_| levels.is_known);
            let known = known.ok_or("the venue's market data do not tell of it")?;
            Ok(match pending.ask {
                Ask::Book { depth, .. } => answers::book(known, levels, depth, now_ms),
                _ => answers::ticker(known, levels.trading, Best::of(levels), now_ms),
            })
        });
        self.snapshot = None;
        inbox.answer_with(pending.id, answer.map_or_else(Answer::NotDone, Answer::Done));
    }

    fn poll_live(&mut self, now: Nanos, inbox: &mut Inbox) {
        if self.is_wanted {
            self.keep_market(now, inbox);
        }
        let Some(live) = &mut self.live else { return };
        let outcome = live.poll(now, &self.settings.instruments, &self.channels, |channel, data| {
            inbox.notify(now, channel, data);
        });
        if let Err(why) = outcome {
            inbox.note(format!("{why}; the market data is joined again"));
            (self.live, self.market_at) = (None, now + MARKET_RETRY);
        }
    }

    /// Joins the market data feed for the subscribed channels, and again after a loss.
    fn keep_market(&mut self, now: Nanos, inbox: &mut Inbox) {
        let is_needed = self.live.is_none() && self.channels.iter().any(|name| !name.starts_with("user."));
        if !is_needed || now < self.market_at {
            return;
        }
        self.market_at = now + MARKET_RETRY;
        let Some(data) = &self.settings.market_data else { return };
        match LiveFeed::open(data, &self.settings.instruments) {
            Ok(mut live) => {
                self.channels.iter().for_each(|channel| live.add(channel));
                self.live = Some(live);
            }
            Err(why) => inbox.note(why),
        }
    }

    /// Publishes changes from the copies to the user's channels.
    fn tell_news(&mut self, inbox: &mut Inbox) {
        if self.sync != Sync::Done {
            return;
        }
        let now = inbox.clock.now();
        while let Some(news) = self.account.news.as_mut().and_then(std::collections::VecDeque::pop_front) {
            let (account, instruments) = (&self.account, &self.settings.instruments);
            let (kind, instrument, data) = match news {
                News::Order(id) => {
                    let Some(own) = account.order(id) else { continue };
                    ("orders", own.order.instrument, answers::order(own, instruments))
                }
                News::Trade(number) => {
                    let Some(trade) = account.trade(number) else { continue };
                    ("trades", trade.instrument, answers::trade(trade, account, instruments))
                }
            };
            let name = instruments.symbol(instrument).map(|symbol| symbol.to_string()).unwrap_or_default();
            for channel in [format!("user.{kind}.{name}.raw"), format!("user.{kind}.any.any.raw")] {
                if self.channels.contains(&channel) {
                    inbox.notify(now, &channel, &data);
                }
            }
        }
    }

    /// Handles time-outs.
    fn check_time(&mut self, now: Nanos, inbox: &mut Inbox) {
        let timeout = self.settings.request_timeout;
        if self.entry.is_some() && self.sync != Sync::Done && now >= self.sync_since + timeout {
            let why = match self.sync {
                Sync::Copies(_) => {
                    "the drop copies do not tell of this user: does its reader's copies_of name it?"
                }
                _ => "the venue does not answer",
            };
            self.lose(now, why, inbox);
        }
        let Some(pending) = &mut self.pending else { return };
        if now < pending.deadline {
            return;
        }
        if pending.is_late || pending.stage == Stage::Snapshot {
            let id = pending.id;
            self.give_up_pending();
            self.snapshot = None;
            inbox.answer_with(id, Answer::Late);
            return;
        }
        // Reconnects once, which shows whether the venue received the request.
        (pending.is_late, pending.deadline) = (true, now + timeout);
        if self.sync == Sync::Done {
            self.lose(now, "the venue does not answer", inbox);
        }
    }

    fn handle_loss(&mut self, now: Nanos, loss: Loss, inbox: &mut Inbox) {
        let reason = match &loss {
            Loss::Final(why) => return self.end(why, inbox),
            Loss::Orders(OrderEntryError::LoginRejected { reason, .. })
            | Loss::Copies(Lost::Refused(reason)) => *reason,
            Loss::Orders(error) => return self.lose(now, &error.to_string(), inbox),
            Loss::Copies(Lost::Gone(why)) => return self.lose(now, &format!("drop copies: {why}"), inbox),
        };
        let is_copies = matches!(loss, Loss::Copies(_));
        let whose = if is_copies { "drop copies" } else { "orders" };
        let user = self.settings.key.as_ref().map_or("", |key| &key.client_id);
        if reason != LoginRejectReason::SESSION_NOT_AVAILABLE {
            inbox.is_login_refused = true;
            let port = if is_copies { ", and has the user the port drop_copy?" } else { "" };
            return self
                .end(&format!("the venue refuses {user:?} ({whose}): check user and password{port}"), inbox);
        }
        self.not_admitted += 1;
        if self.not_admitted > NOT_ADMITTED_MAX {
            let why = format!(
                "the venue does not admit {user:?} ({whose}): is somebody else logged in as that user, or has the log been cut?"
            );
            return self.end(&why, inbox);
        }
        if is_copies && self.not_admitted == SESSION_GONE {
            self.forget();
        }
        self.close();
        self.keep_pending_lost();
        self.retry_at = now + RETRY_MIN;
    }

    /// Resets the state: the session of the copies may no longer exist, so all of them are read again.
    fn forget(&mut self) {
        let user = self.settings.key.as_ref().map_or("", |key| &key.client_id);
        let news = self.account.news.as_ref().map(|_| std::collections::VecDeque::new());
        self.account = Account::new(user);
        self.account.news = news;
        self.copies = None;
    }

    /// Ends the link after a permanently refused login.
    fn end(&mut self, why: &str, inbox: &mut Inbox) {
        inbox.note(why.to_owned());
        self.give_up_pending();
        self.close();
        self.is_wanted = false;
        self.losses += 1;
    }

    /// Handles a lost connection, and schedules the reconnect.
    fn lose(&mut self, now: Nanos, why: &str, inbox: &mut Inbox) {
        self.close();
        self.keep_pending_lost();
        self.losses += 1;
        inbox.note_loss(why.to_owned());
        self.retry_at = now + self.retry_wait;
        self.retry_wait = Nanos((self.retry_wait.0 * 2).min(RETRY_MAX.0));
    }

    fn keep_pending_lost(&mut self) {
        if let Some(pending) = &mut self.pending
            && pending.stage != Stage::Snapshot
        {
            pending.stage = Stage::Lost;
        }
    }
}

/// All instruments.
const ANY: Selector<'static> = Selector::Kind { kind: tickpath_deribit::codes::Kind::Any, currency: "any" };
const NO_MARKET_DATA: &str = "the configuration has no [native.market_data]: the market is not known";

/// The reason why a connection failed.
enum Loss {
    Orders(OrderEntryError),
    Copies(Lost),
    /// A permanent failure: a retry would not help.
    Final(String),
}

impl From<OrderEntryError> for Loss {
    fn from(error: OrderEntryError) -> Loss {
        match error {
            OrderEntryError::Credentials { .. } => Loss::Final(error.to_string()),
            other => Loss::Orders(other),
        }
    }
}
