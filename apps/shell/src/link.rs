//! The connection to the venue, whichever it is: its messages are remembered, and its answers given to who asked.

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

/// Notes that wait to be read; the oldest make room.
const NOTES_MAX: usize = 64;
/// How the note of channels that are not given ends.
const NOT_GIVEN: &str = " not given, see subscriptions";
/// Names of channels whose data waits to be printed; the oldest make room.
const NEWS_MAX: usize = 4096;
/// Names of instruments that are remembered; more are not.
const NAMES_MAX: usize = 8_192;
/// Ids of orders that are remembered; the oldest make room.
const ORDER_IDS_MAX: usize = 64;
/// Bytes of a name that is remembered.
const NAME_LEN_MAX: usize = 64;
/// How long to wait at once while a connection is being made.
const CONNECTING_WAIT: Duration = Duration::from_millis(1);

/// What the venue says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done; the result as it came.
    Done(String),
    /// It was refused.
    Refused {
        /// The code, see [`ErrorCode`](tickpath_deribit::error_code::ErrorCode).
        code: i64,
        /// The message.
        message: String,
        /// More about it, JSON.
        data: Option<String>,
    },
    /// Nothing in time: it may have been done or not.
    Late,
    /// It was not done, for certain.
    NotDone(String),
    /// The venue has nothing of the kind; nothing was sent.
    Impossible(String),
}

/// A subscribed channel, as far as data came.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// Messages so far.
    pub count: u64,
    /// The place of the last one in the history.
    pub place: u64,
}

/// The kinds of venues. Whatever differs between them is behind this.
#[derive(Debug)]
enum Venue {
    /// One that speaks Deribit's dialect.
    Deribit { url: WebUrl, tls: Option<TlsClient>, link: Box<VenueLink> },
    /// One of this project's own.
    Native(Box<NativeLink>),
}

/// What became of the connection, as a person sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// It was never ready.
    Never,
    /// Requests can be sent.
    Up,
    /// It is gone since then, in milliseconds since 1970; lost, or as was wanted.
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
    /// Names of instruments that the venue has given.
    names: BTreeSet<String>,
    /// Ids of the orders that were told of last.
    order_ids: VecDeque<String>,
    /// Times of this program.
    pub watches: Stopwatches,
}

impl Link {
    /// A link to a venue of Deribit's dialect that is off. With `key` the session logs in.
    #[must_use]
    pub fn new(config: ShellConfig, url: WebUrl, key: Option<Key>) -> Link {
        let venue = deribit(&config, &url, key);
        Link::of(config, VenueUrl::Deribit(url), venue)
    }

    /// A link to any venue that is off; `key` is whom it is used as.
    ///
    /// # Errors
    /// What a native venue needs and the configuration does not name, or names and cannot be read.
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

    /// The venue's clock in milliseconds since 1970 as far as its replies tell: behind it by what the last one took on its
    /// way; none before the first.
    #[must_use]
    pub fn venue_ms(&self) -> Option<u64> {
        self.inbox.venue_clock.now_ms(self.inbox.clock.now())
    }

    /// Tells notes once more that were taken and shown to nobody.
    pub(crate) fn put_back(&mut self, notes: Vec<String>) {
        for note in notes.into_iter().rev() {
            self.inbox.notes.push_front(note);
        }
        self.inbox.notes.truncate(NOTES_MAX);
    }

    /// Whether the session is with a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().has_key(),
            Venue::Native(link) => link.has_key(),
        }
    }

    /// Whom the session is of: the key's id, or the native venue's user.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().client_id(),
            Venue::Native(link) => link.user(),
        }
    }

    /// What the login allows, as the venue said it; empty where it said nothing.
    #[must_use]
    pub fn scope(&self) -> &str {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().scope(),
            Venue::Native(_) => "",
        }
    }

    /// What of the login falls short, in a line: orders that it does not allow, a word that was asked for and not granted.
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

    /// Whether a request outlives its connection: then it has an answer all the same, once it is known what became of it.
    #[must_use]
    pub fn keeps_requests(&self) -> bool {
        matches!(self.venue, Venue::Native(_))
    }

    /// Whether a word names an instrument, as far as that is known without asking.
    #[must_use]
    pub fn is_instrument(&self, word: &str) -> bool {
        match &self.venue {
            Venue::Deribit { .. } => word.contains(['-', '_']),
            Venue::Native(link) => link.is_instrument(word),
        }
    }

    /// Remembers names that the venue has given, for completion, as far as there is room.
    pub(crate) fn learn(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if self.names.len() < NAMES_MAX && name.len() <= NAME_LEN_MAX {
                self.names.insert(name);
            }
        }
    }

    /// Remembers the id of an order for completion; of many, the last ones.
    pub(crate) fn learn_order(&mut self, id: String) {
        if !self.order_ids.contains(&id) {
            push_bounded(&mut self.order_ids, id, ORDER_IDS_MAX);
        }
    }

    /// Ids of the orders that were told of last.
    pub(crate) fn order_ids(&self) -> impl Iterator<Item = &String> {
        self.order_ids.iter()
    }

    /// Names of instruments, where they are known without asking.
    #[must_use]
    pub fn instrument_names(&self) -> Vec<String> {
        match &self.venue {
            Venue::Deribit { .. } => self.names.iter().cloned().collect(),
            Venue::Native(link) => link.instrument_names(),
        }
    }

    /// Whether the venue could be asked that.
    ///
    /// # Errors
    /// Why not, in a line.
    pub fn check<'a>(&self, method: Method, params: &impl Field<'a>) -> Result<(), String> {
        match &self.venue {
            Venue::Deribit { .. } => Ok(()),
            Venue::Native(link) => link.check(method, &text_of(params)),
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match &self.venue {
            Venue::Deribit { link, .. } => link.standing(),
            Venue::Native(link) => link.standing(),
        }
    }

    /// Since when there is no connection, in milliseconds since 1970, where there was one.
    #[must_use]
    pub fn down_since_ms(&self) -> Option<u64> {
        match self.line {
            Line::Down { since_ms, .. } => Some(since_ms),
            Line::Never | Line::Up => None,
        }
    }

    /// Why the last connection was lost or did not come to be, until there is another one.
    #[must_use]
    pub fn last_loss(&self) -> Option<&str> {
        self.inbox.last_loss.as_deref()
    }

    /// Whether the venue refused the last login.
    #[must_use]
    pub fn is_login_refused(&self) -> bool {
        self.inbox.is_login_refused
    }

    /// Sees the connection come and go, and tells when one that was lost is there again, with its channels.
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

    /// How many connections were lost.
    #[must_use]
    pub fn losses(&self) -> u64 {
        match &self.venue {
            Venue::Deribit { link, .. } => link.stats().losses,
            Venue::Native(link) => link.losses(),
        }
    }

    /// Messages that could not be read.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        match &self.venue {
            Venue::Deribit { link, .. } => link.stats().unreadable,
            Venue::Native(link) => link.unreadable(),
        }
    }

    /// The messages.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.inbox.history
    }

    /// Whether messages are kept for [`history`](Link::history). They are unless it is measured what that costs.
    pub fn keep_history(&mut self, keeps: bool) {
        self.inbox.keeps_history = keeps;
    }

    /// The channels that gave data.
    #[must_use]
    pub fn feeds(&self) -> &BTreeMap<String, Feed> {
        &self.inbox.feeds
    }

    /// Wanted channels that the venue does not give.
    pub fn refused_channels(&self) -> impl Iterator<Item = &str> {
        let link = match &self.venue {
            Venue::Deribit { link, .. } => Some(link),
            Venue::Native(_) => None,
        };
        link.into_iter().flat_map(|link| link.session().refused_channels())
    }

    /// How many channels are subscribed.
    #[must_use]
    pub fn active_channels(&self) -> usize {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().active_channels(),
            Venue::Native(link) => link.active_channels(),
        }
    }

    /// How many channels are to end and may still give data.
    #[must_use]
    pub fn ending_channels(&self) -> usize {
        match &self.venue {
            Venue::Deribit { link, .. } => link.session().ending_channels(),
            Venue::Native(_) => 0,
        }
    }

    /// Forgets what came of channels that are not wanted any more.
    pub fn forget_ended(&mut self) {
        let channels = &self.channels;
        self.inbox.feeds.retain(|name, _| channels.contains(name));
        self.inbox.news.retain(|(name, _)| channels.contains(name));
    }

    /// Whether it is kept which channels gave data, to be printed, as many as there is room for; what was kept is forgotten.
    pub fn want_news(&mut self, wanted: bool) {
        self.inbox.wants_news = wanted;
        self.inbox.news.clear();
        self.inbox.news_lost = 0;
    }

    /// The next channel with data to print, and the place of its message in the history.
    pub fn next_news(&mut self) -> Option<(String, u64)> {
        self.inbox.news.pop_front()
    }

    /// How many messages made room before they were printed, since this was asked last.
    pub(crate) fn take_lost_news(&mut self) -> u64 {
        std::mem::take(&mut self.inbox.news_lost)
    }

    /// The next thing to tell the user.
    pub fn next_note(&mut self) -> Option<String> {
        self.inbox.notes.pop_front()
    }

    /// Lines of these modules are made from now on; of none, no more.
    pub fn log(&mut self, modules: Vec<Module>) {
        self.inbox.log = (!modules.is_empty()).then(|| Log::new(modules, &self.inbox.history));
    }

    /// The next line of the log.
    pub fn next_log(&mut self) -> Option<String> {
        let Inbox { log, history, .. } = &mut self.inbox;
        log.as_mut()?.next(history)
    }

    /// Forgets to tell of channels that are not given: they were told by name.
    pub(crate) fn forget_refusals(&mut self) {
        self.inbox.notes.retain(|note| !note.ends_with(NOT_GIVEN));
    }

    /// Wants a connection, from now on. Where its certificates cannot be used it stays off, and says so.
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

    /// Wants no connection any longer, and closes it with "going away", or a logout.
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

    /// Whether the last connection ended by a logout that the venue took.
    #[must_use]
    pub fn has_logged_out(&self) -> bool {
        self.inbox.has_logged_out
    }

    /// Goes to another venue; off until it is connected. What is subscribed stays wanted where the venue has it.
    ///
    /// # Errors
    /// As [`open`](Link::open); everything stays as it is.
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

    /// Logs in with another key, on this connection where there is one and the venue can. What is subscribed stays so.
    pub fn set_key(&mut self, key: Option<Key>) {
        let now = self.inbox.clock.now();
        if self.line == Line::Up {
            // The session begins anew, on this connection or another.
            self.line = Line::Never;
        }
        match &mut self.venue {
            Venue::Deribit { link, .. } => link.set_key(now, key, &mut self.inbox),
            Venue::Native(link) => link.set_key(now, key),
        }
    }

    /// The wanted channels.
    #[must_use]
    pub fn channels(&self) -> &BTreeSet<String> {
        &self.channels
    }

    /// Wants a channel, with the next [`poll`](Link::poll) and after each new connection.
    ///
    /// # Errors
    /// In a line, when the venue has no channel of that name.
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

    /// Wants a channel no longer, with the next [`poll`](Link::poll).
    pub fn unsubscribe(&mut self, channel: &str) {
        match &mut self.venue {
            Venue::Deribit { link, .. } => link.unsubscribe(channel),
            Venue::Native(link) => link.unsubscribe(channel),
        }
        self.channels.remove(channel);
        self.inbox.feeds.remove(channel);
    }

    /// Sends a request; [`take_answer`](Link::take_answer) gives its answer.
    ///
    /// # Errors
    /// [`RequestError`]; nothing was sent then.
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

    /// The answer to a request, once it is there.
    pub fn take_answer(&mut self, id: i64) -> Option<Answer> {
        match self.inbox.answer.take() {
            Some((of, answer)) if of == id => {
                self.inbox.awaited = None;
                Some(answer)
            }
            _ => None,
        }
    }

    /// Does what is to be done now. Waits for nothing.
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

    /// Waits until something came, a signal, or so long.
    pub fn wait(&self, time: Duration) {
        match &self.venue {
            Venue::Deribit { link, .. } => match link.fd() {
                Some(fd) if link.is_open() => wait_for(&fd, time),
                // A connection that is being made goes on without anything to read.
                _ => std::thread::sleep(time.min(CONNECTING_WAIT)),
            },
            Venue::Native(link) => {
                let time = if link.is_restless() { time.min(CONNECTING_WAIT) } else { time };
                wait_for_any(link.fds(), time);
            }
        }
    }

    /// Waits until another descriptor can be read, something came from the venue, a signal, or so long; whether the
    /// descriptor can be read, or is at its end.
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
        // Whatever ended the wait, who waits looks again.
        let _ = poll(&mut fds, time);
        fds[0].revents().is_some_and(|found| !found.is_empty())
    }

    /// A copy of a socket's descriptor, to wait for without holding the link.
    #[must_use]
    pub fn waiter(&self) -> Option<std::os::fd::OwnedFd> {
        match &self.venue {
            Venue::Deribit { link, .. } => link.fd()?.try_clone_to_owned().ok(),
            // The market may go on where the user's orders do not.
            Venue::Native(link) if link.is_restless() => None,
            Venue::Native(link) => link.fds().next()?.try_clone_to_owned().ok(),
        }
    }
}

fn deribit(config: &ShellConfig, url: &WebUrl, key: Option<Key>) -> Venue {
    // The certificates to trust are read when the first connection is wanted.
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

/// Params as JSON.
fn text_of<'a>(params: &impl Field<'a>) -> String {
    let mut out = Vec::new();
    params.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What came, and who waits for it.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) clock: Clock,
    history: History,
    /// False to measure what it costs.
    keeps_history: bool,
    /// Of the message that is being read.
    place: u64,
    feeds: BTreeMap<String, Feed>,
    news: VecDeque<(String, u64)>,
    wants_news: bool,
    /// Messages that made room before they were printed.
    news_lost: u64,
    notes: VecDeque<String>,
    log: Option<Log>,
    venue_clock: VenueClock,
    answer: Option<(i64, Answer)>,
    awaited: Option<i64>,
    auth_sent_at: Option<Nanos>,
    /// How long the last login took.
    pub(crate) login_time: Option<Nanos>,
    /// The last connection ended by a logout that the venue took.
    has_logged_out: bool,
    /// Why the last connection was lost or did not come to be, until there is another one.
    last_loss: Option<String>,
    /// The venue refused the last login.
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

    /// A connection was lost or did not come to be. The same reason once more, with each try, is of the log alone.
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

    /// Something about the connection, for the log.
    fn tell_log(&mut self, text: &str) {
        if let Some(log) = &mut self.log {
            log.tell(self.clock.now(), text.to_owned());
        }
    }

    /// What becomes known of the venue's clock by a reply.
    fn set_clock_by(&mut self, at: Nanos, inbound: &Inbound<'_>) {
        if let Inbound::Response(response) = inbound {
            self.venue_clock.hear(at, response.server_time.us_out);
        }
    }

    /// Waits for the answer to this request, and for no other.
    pub(crate) fn expect(&mut self, id: i64) {
        (self.answer, self.awaited) = (None, Some(id));
    }

    /// The answer to a request, for whoever waits for it.
    pub(crate) fn answer_with(&mut self, id: i64, answer: Answer) {
        if self.awaited == Some(id) {
            self.answer = Some((id, answer));
        }
    }

    /// Keeps a message of the history.
    pub(crate) fn keep(&mut self, at: Nanos, way: Way, text: &str) {
        self.place = if self.keeps_history { self.history.push(at, way, text) } else { 0 };
    }

    /// Data of a channel, as a notification of Deribit's dialect.
    pub(crate) fn notify(&mut self, at: Nanos, channel: &str, data: &str) {
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{\"channel\":\"{channel}\",\"data\":{data}}}}}"
        );
        self.keep(at, Way::Received, &text);
        self.count(channel);
    }

    /// A message of a channel came and is the last of the history. What nobody wants, or wants no longer, is kept there alone:
    /// a venue could send names without end.
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
        // The step after login shows that its answer was taken in.
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
                // Who logged out is told by the command.
                Loss::Logout | Loss::LogoutUnanswered => self.tell_log(&why.to_string()),
                _ => self.note_loss(why.to_string()),
            }
        }
    }
}

/// Keeps one more; the oldest makes room.
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

/// Waits until a descriptor can be read, a signal, or so long.
pub(crate) fn wait_for(fd: &impl AsFd, time: Duration) {
    wait_for_any(std::iter::once(fd.as_fd()), time);
}

/// The same for several.
fn wait_for_any<'f>(fds: impl Iterator<Item = BorrowedFd<'f>>, time: Duration) {
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    // Whatever ended the wait, who waits looks again.
    let _ = poll(&mut fds, time);
}
