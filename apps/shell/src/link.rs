//! The connection to a venue of either kind: keeps its messages, and passes answers to the waiting caller.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tickpath_deribit::envelope::{ErrorBody, Inbound, Later};
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::{Key, RequestError, SessionConfig, SessionEvent};
use tickpath_deribit_link::{
    Change, Link as VenueLink, LinkConfig, Listener, Loss, Received, Route, Unanswered,
};
use tickpath_types::Nanos;
use tickpath_web::{TlsClient, WebUrl};

use crate::clock::VenueClock;
use crate::config::{ShellConfig, VenueUrl};
use crate::history::{History, Way};
use crate::log::{Log, Module};
use crate::native::{NativeLink, NativeSettings};
use crate::stopwatch::{Span, Stopwatches};
use crate::words::counted;

pub use crate::clock::Clock;
pub use tickpath_deribit_link::Standing;

/// Upper bound of unread notes; new ones displace the oldest.
const NOTES_MAX: usize = 64;
/// The end of a note about refused channels.
const NOT_GIVEN: &str = " not given, see subscriptions";
/// Upper bound of channel messages that wait to be printed; new ones displace the oldest.
const NEWS_MAX: usize = 4096;
/// Upper bound of remembered instrument names; further ones are ignored.
const NAMES_MAX: usize = 8_192;
/// Upper bound of remembered order ids; new ones displace the oldest.
const ORDER_IDS_MAX: usize = 64;
/// Upper bound of the length of a remembered name, in bytes.
const NAME_LEN_MAX: usize = 64;
/// Longest single wait while a connection is being made.
const CONNECTING_WAIT: Duration = Duration::from_millis(1);

/// The venue's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request was executed; holds the unchanged result.
    Done(String),
    /// The request was refused.
    Refused {
        /// The code, see [`ErrorCode`](tickpath_deribit::error_code::ErrorCode).
        code: i64,
        /// The message.
        message: String,
        /// Further details as JSON.
        data: Option<String>,
    },
    /// No answer in time: the request may or may not have been executed.
    Late,
    /// The request was certainly not executed.
    NotDone(String),
    /// The venue has no such function; nothing was sent.
    Impossible(String),
}

/// The received data of a subscribed channel.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// Number of messages so far.
    pub count: u64,
    /// The position of the last message in the history.
    pub place: u64,
}

/// The kinds of venues; all differences between them are handled here.
#[derive(Debug)]
enum Venue {
    /// A venue with Deribit's API.
    Deribit { url: WebUrl, tls: Option<TlsClient>, link: Box<VenueLink> },
    /// A native venue of this project.
    Native(Box<NativeLink>),
}

/// The history of the connection, as a person sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// It was never ready.
    Never,
    /// Requests can be sent.
    Up,
    /// Disconnected since `since_ms`, in milliseconds since 1970; lost or on request.
    Down { since_ms: u64, is_lost: bool },
}

/// The connection to the venue.
#[derive(Debug)]
pub struct Link {
    config: ShellConfig,
    url: VenueUrl,
    venue: Venue,
    inbox: Inbox,
    channels: BTreeSet<String>,
    line: Line,
    /// Names of instruments that the venue has sent.
    names: BTreeSet<String>,
    /// Ids of the most recently reported orders.
    order_ids: VecDeque<String>,
    /// The stopwatches.
    pub watches: Stopwatches,
}

impl Link {
    /// Creates a link to a venue of Deribit's dialect, disconnected. With `key` the session logs in.
    #[must_use]
    pub fn new(config: ShellConfig, url: WebUrl, key: Option<Key>) -> Link {
        let venue = deribit(&config, &url, key);
        Link::of(config, VenueUrl::Deribit(url), venue)
    }

    /// Creates a link to any venue, disconnected; `key` is the identity for the login.
    ///
    /// # Errors
    /// A setting of a native venue that is missing from the configuration, or cannot be read.
    pub fn open(config: ShellConfig, url: VenueUrl, key: Option<Key>) -> anyhow::Result<Link> {
        let venue = venue(&config, &url, key)?;
        Ok(Link::of(config, url, venue))
    }

    fn of(config: ShellConfig, url: VenueUrl, venue: Venue) -> Link {
        let history = usize::try_from(config.history.0).unwrap_or(usize::MAX);
        Link {
            url,
            venue,
            inbox: Inbox::new(history),
            channels: BTreeSet::new(),
            line: Line::Never,
            names: BTreeSet::new(),
            order_ids: VecDeque::new(),
            watches: Stopwatches::default(),
            config,
        }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ShellConfig {
        &self.config
    }

    /// The venue.
    #[must_use]
    pub fn url(&self) -> &VenueUrl {
        &self.url
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.inbox.clock
    }

    /// The venue's clock in milliseconds since 1970, estimated from its replies. It lags by the delay of the
    /// last one; `None` before the first.
    #[must_use]
    pub fn venue_ms(&self) -> Option<u64> {
        self.inbox.venue_clock.now_ms(self.inbox.clock.now())
    }

    /// Puts back notes that were taken but not shown.
    pub(crate) fn put_back(&mut self, notes: Vec<String>) {
        for note in notes.into_iter().rev() {
            self.inbox.notes.push_front(note);
        }
        self.inbox.notes.truncate(NOTES_MAX);
    }

    /// Whether the session uses a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().has_key(),
            Venue::Native(link) => link.has_key(),
        }
    }

    /// The user of the session: the key's id, or the native venue's user.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().client_id(),
            Venue::Native(link) => link.user(),
        }
    }

    /// The scope that the venue granted at login; empty if it did not state one.
    #[must_use]
    pub fn scope(&self) -> &str {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().scope(),
            Venue::Native(_) => "",
        }
    }

    /// Describes what the login lacks: permission for orders, or a requested scope that was not granted.
    #[must_use]
    pub fn shortcoming(&self) -> Option<String> {
        let Venue::Deribit { link, .. } = &self.venue else { return None };
        let session = link.session();
        let missing = session.missing_scope().map(|word| format!("the venue did not grant {word}"));
        match session.may_trade() {
            true => missing,
            false => Some(
                "this login cannot trade: orders need trade:read_write, of the key and of scope".to_owned(),
            ),
        }
    }

    /// Whether requests survive a lost connection: they are then answered once their outcome is known.
    #[must_use]
    pub fn keeps_requests(&self) -> bool {
        matches!(self.venue, Venue::Native(_))
    }

    /// Whether a word names an instrument, judged without a request.
    #[must_use]
    pub fn is_instrument(&self, word: &str) -> bool {
        match &self.venue {
            Venue::Deribit { .. } => word.contains(['-', '_']),
            Venue::Native(link) => link.is_instrument(word),
        }
    }

    /// Remembers instrument names for completion, up to `NAMES_MAX`.
    pub(crate) fn learn(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if self.names.len() < NAMES_MAX && name.len() <= NAME_LEN_MAX {
                self.names.insert(name);
            }
        }
    }

    /// Remembers an order id for completion; only the most recent ones are kept.
    pub(crate) fn learn_order(&mut self, id: String) {
        if !self.order_ids.contains(&id) {
            push_bounded(&mut self.order_ids, id, ORDER_IDS_MAX);
        }
    }

    /// Ids of the most recently reported orders.
    pub(crate) fn order_ids(&self) -> impl Iterator<Item = &String> {
        self.order_ids.iter()
    }

    /// Names of instruments that are known without a request.
    #[must_use]
    pub fn instrument_names(&self) -> Vec<String> {
        match &self.venue {
            Venue::Deribit { .. } => self.names.iter().cloned().collect(),
            Venue::Native(link) => link.instrument_names(),
        }
    }

    /// Whether the venue supports this request.
    ///
    /// # Errors
    /// The reason in one line.
    pub fn check<'a>(&self, method: Method, params: &impl Field<'a>) -> Result<(), String> {
        match &self.venue {
            Venue::Deribit { .. } => Ok(()),
            Venue::Native(link) => link.check(method, &text_of(params)),
        }
    }

    /// The status of the link.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match &self.venue {
            Venue::Deribit { link, .. } => link.standing(),
            Venue::Native(link) => link.standing(),
        }
    }

    /// The time of the last disconnect, in milliseconds since 1970; `None` if connected or never connected.
    #[must_use]
    pub fn down_since_ms(&self) -> Option<u64> {
        match self.line {
            Line::Down { since_ms, .. } => Some(since_ms),
            Line::Never | Line::Up => None,
        }
    }

    /// The reason why the last connection was lost or failed, until the next one opens.
    #[must_use]
    pub fn last_loss(&self) -> Option<&str> {
        self.inbox.last_loss.as_deref()
    }

    /// Whether the venue refused the last login.
    #[must_use]
    pub fn is_login_refused(&self) -> bool {
        self.inbox.is_login_refused
    }

    /// Tracks connects and disconnects, and reports when a lost connection and its channels are restored.
    fn watch_line(&mut self) {
        match (self.standing(), self.line) {
            (Standing::Ready, Line::Down { is_lost: true, .. }) => {
                let refused = self.refused_channels().count();
                if self.active_channels() + refused < self.channels.len() {
                    return;
                }
                let channels = match self.active_channels() {
                    0 => String::new(),
                    count => format!(", {}", counted(count, "channel")),
                };
                self.inbox.note(format!("connected again{channels}"));
                self.handle_up();
            }
            (Standing::Ready, Line::Never | Line::Down { .. }) => self.handle_up(),
            (Standing::Off | Standing::Connecting, Line::Up) => {
                self.line = Line::Down { since_ms: Clock::unix_ms(), is_lost: true };
            }
            _ => {}
        }
    }

    fn handle_up(&mut self) {
        (self.line, self.inbox.last_loss) = (Line::Up, None);
    }

    /// Number of lost connections.
    #[must_use]
    pub fn losses(&self) -> u64 {
        match &self.venue {
            Venue::Deribit { link, .. } => link.stats().losses,
            Venue::Native(link) => link.losses(),
        }
    }

    /// Number of messages that could not be parsed.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        match &self.venue {
            Venue::Deribit { link, .. } => link.stats().unreadable,
            Venue::Native(link) => link.unreadable(),
        }
    }

    /// The message history.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.inbox.history
    }

    /// Whether [`history`](Link::history) keeps messages. It does, except to measure its cost.
    pub fn keep_history(&mut self, keeps: bool) {
        self.inbox.keeps_history = keeps;
    }

    /// The channels that sent data.
    #[must_use]
    pub fn feeds(&self) -> &BTreeMap<String, Feed> {
        &self.inbox.feeds
    }

    /// Requested channels that the venue refused.
    pub fn refused_channels(&self) -> impl Iterator<Item = &str> {
        let link = match &self.venue {
            Venue::Deribit { link, .. } => Some(link),
            Venue::Native(_) => None,
        };
        link.into_iter().flat_map(|link| link.session().refused_channels())
    }

    /// Number of subscribed channels.
    #[must_use]
    pub fn active_channels(&self) -> usize {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().active_channels(),
            Venue::Native(link) => link.active_channels(),
        }
    }

    /// Number of channels being unsubscribed, which may still send data.
    #[must_use]
    pub fn ending_channels(&self) -> usize {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().ending_channels(),
            Venue::Native(_) => 0,
        }
    }

    /// Discards the data of channels that are no longer requested.
    pub fn forget_ended(&mut self) {
        let channels = &self.channels;
        self.inbox.feeds.retain(|name, _| channels.contains(name));
        self.inbox.news.retain(|(name, _)| channels.contains(name));
    }

    /// Whether to queue the channel messages to print, up to `NEWS_MAX`; clears the queue.
    pub fn want_news(&mut self, wanted: bool) {
        self.inbox.wants_news = wanted;
        self.inbox.news.clear();
        self.inbox.news_lost = 0;
    }

    /// The next channel with data to print, and the position of its message in the history.
    pub fn next_news(&mut self) -> Option<(String, u64)> {
        self.inbox.news.pop_front()
    }

    /// Number of messages dropped before they were printed, since the last call.
    pub(crate) fn take_lost_news(&mut self) -> u64 {
        std::mem::take(&mut self.inbox.news_lost)
    }

    /// The next note for the user.
    pub fn next_note(&mut self) -> Option<String> {
        self.inbox.notes.pop_front()
    }

    /// Logs these modules from now on; an empty list turns the log off.
    pub fn log(&mut self, modules: Vec<Module>) {
        self.inbox.log = (!modules.is_empty()).then(|| Log::new(modules, &self.inbox.history));
    }

    /// The next line of the log.
    pub fn next_log(&mut self) -> Option<String> {
        let Inbox { log, history, .. } = &mut self.inbox;
        log.as_mut()?.next(history)
    }

    /// Removes notes about refused channels, which were already reported by name.
    pub(crate) fn forget_refusals(&mut self) {
        self.inbox.notes.retain(|note| !note.ends_with(NOT_GIVEN));
    }

    /// Requests a connection, now and after losses. With unusable certificates it reports and stays off.
    pub fn connect(&mut self) {
        let now = self.inbox.clock.now();
        if self.standing() == Standing::Off {
            self.inbox.is_login_refused = false;
        }
        match &mut self.venue {
            Venue::Deribit { url, tls, link } if link.standing() == Standing::Off => {
                match self.config.route(url, tls) {
                    Ok(route) => {
                        link.set_route(now, route, &mut self.inbox);
                        link.connect(now);
                    }
                    Err(error) => self.inbox.note(format!("{error:#}")),
                }
            }
            Venue::Deribit { .. } => {}
            Venue::Native(link) => link.connect(&mut self.inbox),
        }
    }

    /// Closes the connection with "going away" or a logout, and stops reconnecting.
    pub fn disconnect(&mut self) {
        let now = self.inbox.clock.now();
        match &mut self.venue {
            Venue::Deribit { link, .. } => link.disconnect(now, &mut self.inbox),
            Venue::Native(link) => link.disconnect(now),
        }
        self.line = match self.line {
            Line::Never => Line::Never,
            Line::Up => Line::Down { since_ms: Clock::unix_ms(), is_lost: false },
            Line::Down { since_ms, .. } => Line::Down { since_ms, is_lost: false },
        };
    }

    /// Whether the last connection ended by a logout that the venue confirmed.
    #[must_use]
    pub fn has_logged_out(&self) -> bool {
        self.inbox.has_logged_out
    }

    /// Changes the venue; the link is off until connected. Subscriptions the venue offers stay requested.
    ///
    /// # Errors
    /// Those of [`open`](Link::open); nothing is changed.
    pub fn set_venue(&mut self, config: ShellConfig, url: VenueUrl, key: Option<Key>) -> anyhow::Result<()> {
        let venue = venue(&config, &url, key)?;
        self.disconnect();
        self.inbox.feeds.clear();
        self.inbox.venue_clock = VenueClock::default();
        self.names.clear();
        self.order_ids.clear();
        (self.config, self.url, self.venue, self.line) = (config, url, venue, Line::Never);
        for channel in std::mem::take(&mut self.channels) {
            if let Err(why) = self.subscribe(&channel) {
                self.inbox.note(why);
            }
        }
        Ok(())
    }

    /// Logs in with another key, on the open connection if the venue allows it. Subscriptions remain.
    pub fn set_key(&mut self, key: Option<Key>) {
        let now = self.inbox.clock.now();
        if self.line == Line::Up {
            // The session restarts, on this connection or another.
            self.line = Line::Never;
        }
        match &mut self.venue {
            Venue::Deribit { link, .. } => link.set_key(now, key, &mut self.inbox),
            Venue::Native(link) => link.set_key(now, key),
        }
    }

    /// The requested channels.
    #[must_use]
    pub fn channels(&self) -> &BTreeSet<String> {
        &self.channels
    }

    /// Subscribes to a channel, with the next [`poll`](Link::poll) and after each reconnect.
    ///
    /// # Errors
    /// A message in one line, if the venue has no such channel.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), String> {
        match &mut self.venue {
            Venue::Deribit { link, .. } => {
                link.subscribe(channel).map_err(|_| format!("there is no channel {channel:?}"))?;
            }
            Venue::Native(link) => link.subscribe(channel)?,
        }
        self.channels.insert(channel.to_owned());
        self.inbox.feeds.entry(channel.to_owned()).or_default();
        Ok(())
    }

    /// Unsubscribes from a channel, with the next [`poll`](Link::poll).
    pub fn unsubscribe(&mut self, channel: &str) {
        match &mut self.venue {
            Venue::Deribit { link, .. } => link.unsubscribe(channel),
            Venue::Native(link) => link.unsubscribe(channel),
        }
        self.channels.remove(channel);
        self.inbox.feeds.remove(channel);
    }

    /// Sends a request; [`take_answer`](Link::take_answer) returns its answer.
    ///
    /// # Errors
    /// [`RequestError`]; nothing was sent.
    pub fn request<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<i64, RequestError> {
        let now = self.inbox.clock.now();
        let link = match &mut self.venue {
            Venue::Deribit { link, .. } => link,
            Venue::Native(link) => return Ok(link.request(method, &text_of(params), &mut self.inbox)),
        };
        let id = link.request(now, method, params)?;
        self.inbox.expect(id);
        if self.inbox.keeps_history {
            self.inbox.history.push(now, Way::Sent, link.sent());
        }
        Ok(id)
    }

    /// The answer to a request, once it has arrived.
    pub fn take_answer(&mut self, id: i64) -> Option<Answer> {
        match self.inbox.answer.take() {
            Some((of, answer)) if of == id => {
                self.inbox.awaited = None;
                Some(answer)
            }
            _ => None,
        }
    }

    /// Does the pending work. Never blocks.
    pub fn poll(&mut self) {
        let now = self.inbox.clock.now();
        match &mut self.venue {
            Venue::Deribit { link, .. } => {
                link.do_work(now, &mut self.inbox);
            }
            Venue::Native(link) => link.poll(&mut self.inbox),
        }
        self.watch_line();
        if let Some(time) = self.inbox.login_time.take() {
            self.watches.record(Span::E2eAuth, time);
        }
    }

    /// Waits for data or a signal, for at most `time`.
    pub fn wait(&self, time: Duration) {
        match &self.venue {
            Venue::Deribit { link, .. } => match link.fd() {
                Some(fd) if link.is_open() => wait_for(&fd, time),
                // A connection attempt progresses without readable data.
                _ => std::thread::sleep(time.min(CONNECTING_WAIT)),
            },
            Venue::Native(link) => {
                let time = if link.is_restless() { time.min(CONNECTING_WAIT) } else { time };
                wait_for_any(link.fds(), time);
            }
        }
    }

    /// Waits for data on another descriptor or from the venue, or for a signal, for at most `time`. Returns
    /// whether the other descriptor is readable or at its end.
    pub(crate) fn wait_with(&self, other: BorrowedFd<'_>, time: Duration) -> bool {
        let (fds, is_restless): (Vec<BorrowedFd<'_>>, bool) = match &self.venue {
            Venue::Deribit { link, .. } if link.is_open() => (link.fd().into_iter().collect(), false),
            Venue::Deribit { link, .. } => (Vec::new(), link.standing() != Standing::Off),
            Venue::Native(link) => (link.fds().collect(), link.is_restless()),
        };
        let time = if is_restless { time.min(CONNECTING_WAIT) } else { time };
        let mut fds: Vec<PollFd<'_>> =
            std::iter::once(other).chain(fds).map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        // The caller checks again, however the wait ended.
        let _ = poll(&mut fds, time);
        fds[0].revents().is_some_and(|found| !found.is_empty())
    }

    /// A duplicate of a socket's descriptor, for waiting without locking the link.
    #[must_use]
    pub fn waiter(&self) -> Option<std::os::fd::OwnedFd> {
        match &self.venue {
            Venue::Deribit { link, .. } => link.fd()?.try_clone_to_owned().ok(),
            // The market data may continue while the order connection does not.
            Venue::Native(link) if link.is_restless() => None,
            Venue::Native(link) => link.fds().next()?.try_clone_to_owned().ok(),
        }
    }
}

fn deribit(config: &ShellConfig, url: &WebUrl, key: Option<Key>) -> Venue {
    // The trusted certificates are read for the first connection.
    let route = Route::direct(url.clone(), None);
    let link = Box::new(VenueLink::new(LinkConfig::new(route, session_config(config, key))));
    Venue::Deribit { url: url.clone(), tls: None, link }
}

fn venue(config: &ShellConfig, url: &VenueUrl, key: Option<Key>) -> anyhow::Result<Venue> {
    Ok(match url {
        VenueUrl::Deribit(url) => deribit(config, url, key),
        VenueUrl::Native(url) => {
            let (native, file) = (config.native.as_ref(), config.file.as_deref());
            let settings = NativeSettings::load(url, native, file, key, config.request_timeout.0)?;
            Venue::Native(Box::new(NativeLink::new(settings)))
        }
    })
}

/// Encodes params as JSON.
fn text_of<'a>(params: &impl Field<'a>) -> String {
    let mut out = Vec::new();
    params.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Received messages, and the request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) clock: Clock,
    history: History,
    /// False only to measure the cost.
    keeps_history: bool,
    /// The position of the current message.
    place: u64,
    feeds: BTreeMap<String, Feed>,
    news: VecDeque<(String, u64)>,
    wants_news: bool,
    /// Number of messages dropped before they were printed.
    news_lost: u64,
    notes: VecDeque<String>,
    log: Option<Log>,
    venue_clock: VenueClock,
    answer: Option<(i64, Answer)>,
    awaited: Option<i64>,
    auth_sent_at: Option<Nanos>,
    /// Duration of the last login.
    pub(crate) login_time: Option<Nanos>,
    /// True if the last connection ended by a logout that the venue confirmed.
    has_logged_out: bool,
    /// The reason why the last connection was lost or failed, until the next one opens.
    last_loss: Option<String>,
    /// True if the venue refused the last login.
    pub(crate) is_login_refused: bool,
}

impl Inbox {
    fn new(history: usize) -> Inbox {
        Inbox {
            clock: Clock::start(),
            history: History::new(history),
            keeps_history: true,
            place: 0,
            feeds: BTreeMap::new(),
            news: VecDeque::new(),
            wants_news: false,
            news_lost: 0,
            notes: VecDeque::with_capacity(NOTES_MAX),
            log: None,
            venue_clock: VenueClock::default(),
            answer: None,
            awaited: None,
            auth_sent_at: None,
            login_time: None,
            has_logged_out: false,
            last_loss: None,
            is_login_refused: false,
        }
    }

    /// Records a lost or failed connection. A repeated reason, as of further attempts, goes only to the log.
    pub(crate) fn note_loss(&mut self, why: String) {
        if self.last_loss.as_ref() == Some(&why) {
            return self.tell_log(&why);
        }
        self.last_loss = Some(why.clone());
        self.note(why);
    }

    pub(crate) fn note(&mut self, note: String) {
        self.tell_log(&note);
        push_bounded(&mut self.notes, note, NOTES_MAX);
    }

    /// Logs an event of the connection.
    fn tell_log(&mut self, text: &str) {
        if let Some(log) = &mut self.log {
            log.tell(self.clock.now(), text.to_owned());
        }
    }

    /// Updates the estimate of the venue's clock from a reply.
    fn set_clock_by(&mut self, at: Nanos, inbound: &Inbound<'_>) {
        if let Inbound::Response(response) = inbound {
            self.venue_clock.hear(at, response.server_time.us_out);
        }
    }

    /// Waits for the answer to this request only.
    pub(crate) fn expect(&mut self, id: i64) {
        (self.answer, self.awaited) = (None, Some(id));
    }

    /// Stores the answer to a request if it is the awaited one.
    pub(crate) fn answer_with(&mut self, id: i64, answer: Answer) {
        if self.awaited == Some(id) {
            self.answer = Some((id, answer));
        }
    }

    /// Adds a message to the history.
    pub(crate) fn keep(&mut self, at: Nanos, way: Way, text: &str) {
        self.place = if self.keeps_history { self.history.push(at, way, text) } else { 0 };
    }

    /// Stores channel data as a notification of Deribit's dialect.
    pub(crate) fn notify(&mut self, at: Nanos, channel: &str, data: &str) {
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{\"channel\":\"{channel}\",\"data\":{data}}}}}"
        );
        self.keep(at, Way::Received, &text);
        self.count(channel);
    }

    /// Counts a channel's message, the last of the history. Channels without a subscription are not counted:
    /// a venue could send any number of names.
    fn count(&mut self, channel: &str) {
        let Some(feed) = self.feeds.get_mut(channel) else { return };
        feed.count += 1;
        feed.place = self.place;
        if self.wants_news {
            self.news_lost += u64::from(self.news.len() == NEWS_MAX);
            push_bounded(&mut self.news, (channel.to_owned(), self.place), NEWS_MAX);
        }
    }
}

impl Listener for Inbox {
    fn now(&mut self, _cycle: Nanos) -> Nanos {
        self.clock.now()
    }

    fn unix_ms(&mut self, _now: Nanos) -> u64 {
        Clock::unix_ms()
    }

    fn on_text<'f>(&mut self, at: Received, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        self.place = if self.keeps_history { self.history.push(at.at, Way::Received, text) } else { 0 };
        let inbound = Inbound::parse_with(text, &mut Later)?;
        self.set_clock_by(at.at, &inbound);
        Ok(inbound)
    }

    fn on_event(&mut self, _at: Received, event: SessionEvent<'_>) {
        match event {
            SessionEvent::Reply { id, response, .. } if self.awaited == Some(id) => {
                let answer = match response.outcome {
                    Ok(result) => Answer::Done(result.text().to_owned()),
                    Err(error) => refused(&error),
                };
                self.answer = Some((id, answer));
            }
            SessionEvent::Notification(notification) => {
                let Some(channel) = notification.channel.plain() else { return };
                self.count(channel);
            }
            SessionEvent::Subscribed { refused, .. } if refused > 0 => {
                let are = if refused == 1 { "is" } else { "are" };
                self.note(format!("{} {are}{NOT_GIVEN}", counted(refused, "channel")));
            }
            _ => {}
        }
    }

    fn on_sent(&mut self, at: Nanos, text: &str) {
        // The step after the login shows that its answer was processed.
        if let Some(sent_at) = self.auth_sent_at.take() {
            self.login_time = Some(at.since(sent_at));
        }
        if text.contains(Method::Auth.name()) && !text.contains("\"refresh_token\"") {
            self.auth_sent_at = Some(at);
        }
        if self.keeps_history {
            self.history.push(at, Way::Sent, text);
        }
    }

    fn on_unanswered(&mut self, _at: Nanos, id: i64, _method: Method, why: Unanswered) {
        if self.awaited == Some(id) {
            match why {
                Unanswered::Late => self.answer = Some((id, Answer::Late)),
                Unanswered::Lost => self.awaited = None,
            }
        }
    }

    fn on_change(&mut self, _at: Nanos, change: Change<'_>) {
        if let Change::Opened = change {
            self.tell_log("the connection stands");
        }
        if let Change::Lost { why, .. } = change {
            self.auth_sent_at = None;
            self.has_logged_out = matches!(why, Loss::Logout);
            self.is_login_refused = matches!(why, Loss::Refused { .. });
            match why {
                // The logout command reports its own outcome.
                Loss::Logout | Loss::LogoutUnanswered => self.tell_log(&why.to_string()),
                _ => self.note_loss(why.to_string()),
            }
        }
    }
}

/// Appends an item; a full queue drops its oldest.
pub(crate) fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    if queue.len() == max {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn refused(error: &ErrorBody<'_>) -> Answer {
    Answer::Refused {
        code: error.code,
        message: error.message.to_cow().into_owned(),
        data: error.data.map(|data| data.text().to_owned()),
    }
}

fn session_config(config: &ShellConfig, key: Option<Key>) -> SessionConfig {
    SessionConfig {
        cancel_on_disconnect: config.cancel_on_disconnect,
        request_timeout: config.request_timeout.0,
        pending_max: 16,
        grant: config.grant.0,
        scope: config.scope.clone(),
        ..SessionConfig::new("tickpath", env!("CARGO_PKG_VERSION"), key)
    }
}

/// Waits until a descriptor is readable or a signal arrives, for at most `time`.
pub(crate) fn wait_for(fd: &impl AsFd, time: Duration) {
    wait_for_any(std::iter::once(fd.as_fd()), time);
}

/// Does the same for several descriptors.
fn wait_for_any<'f>(fds: impl Iterator<Item = BorrowedFd<'f>>, time: Duration) {
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    // The caller checks again, however the wait ended.
    let _ = poll(&mut fds, time);
}
