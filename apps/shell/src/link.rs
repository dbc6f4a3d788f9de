//! The connection to the venue: its messages are remembered, and its answers given to who asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tickpath_deribit::channel::ChannelError;
use tickpath_deribit::envelope::{ErrorBody, Inbound, Visitor};
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::{Key, RequestError, SessionConfig, SessionEvent};
use tickpath_deribit_link::{Change, Link as VenueLink, LinkConfig, Listener, Received, Route, Unanswered};
use tickpath_types::Nanos;
use tickpath_web::{TlsClient, WebUrl};

use crate::config::ShellConfig;
use crate::history::{History, Way};
use crate::stopwatch::{Span, Stopwatches};

pub use tickpath_deribit_link::Standing;

/// Notes that wait to be read; the oldest make room.
const NOTES_MAX: usize = 64;
/// Names of channels whose data waits to be printed; the oldest make room.
const NEWS_MAX: usize = 4096;
/// How long to wait at once while a connection is being made.
const CONNECTING_WAIT: Duration = Duration::from_millis(1);

/// The time of the program, and that of the day.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Time since the program's start.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn unix_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

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
}

/// A subscribed channel, as far as data came.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// Messages so far.
    pub count: u64,
    /// The place of the last one in the history.
    pub place: u64,
}

/// The connection to the venue.
#[derive(Debug)]
pub struct Link {
    config: ShellConfig,
    url: WebUrl,
    tls: Option<TlsClient>,
    link: VenueLink,
    inbox: Inbox,
    channels: BTreeSet<String>,
    /// Times of this program.
    pub watches: Stopwatches,
}

impl Link {
    /// A link that is off. With `key` the session logs in.
    #[must_use]
    pub fn new(config: ShellConfig, url: WebUrl, key: Option<Key>) -> Link {
        let history = usize::try_from(config.history.0).unwrap_or(usize::MAX);
        // The certificates to trust are read when the first connection is wanted.
        let route = Route::direct(url.clone(), None);
        Link {
            link: VenueLink::new(LinkConfig::new(route, session_config(&config, key))),
            url,
            tls: None,
            inbox: Inbox::new(history),
            channels: BTreeSet::new(),
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
    pub fn url(&self) -> &WebUrl {
        &self.url
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.inbox.clock
    }

    /// Whether the session is with a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.link.session().has_key()
    }

    /// Where it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.link.standing()
    }

    /// How many connections were lost.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.link.stats().losses
    }

    /// Messages that could not be read.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.link.stats().unreadable
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
        self.link.session().refused_channels()
    }

    /// How many channels are subscribed.
    #[must_use]
    pub fn active_channels(&self) -> usize {
        self.link.session().active_channels()
    }

    /// Whether it is kept which channels gave data, to be printed, as many as there is room for; what was kept is forgotten.
    pub fn want_news(&mut self, wanted: bool) {
        self.inbox.wants_news = wanted;
        self.inbox.news.clear();
    }

    /// The next channel with data to print, and the place of its message in the history.
    pub fn next_news(&mut self) -> Option<(String, u64)> {
        self.inbox.news.pop_front()
    }

    /// The next thing to tell the user.
    pub fn next_note(&mut self) -> Option<String> {
        self.inbox.notes.pop_front()
    }

    /// Forgets what there was to tell.
    pub fn forget_notes(&mut self) {
        self.inbox.notes.clear();
    }

    /// Wants a connection, from now on. Where its certificates cannot be used it stays off, and says so.
    pub fn connect(&mut self) {
        if self.link.standing() != Standing::Off {
            return;
        }
        let now = self.inbox.clock.now();
        match self.config.route(&self.url, &mut self.tls) {
            Ok(route) => {
                self.link.set_route(now, route, &mut self.inbox);
                self.link.connect(now);
            }
            Err(error) => self.inbox.note(format!("{error:#}")),
        }
    }

    /// Wants no connection any longer, and closes it with "going away".
    pub fn disconnect(&mut self) {
        self.link.disconnect(self.inbox.clock.now(), &mut self.inbox);
    }

    /// Goes to another venue; off until it is connected.
    pub fn set_venue(&mut self, config: ShellConfig, url: WebUrl) {
        self.disconnect();
        self.tls = None;
        self.inbox.feeds.clear();
        (self.config, self.url) = (config, url);
    }

    /// Logs in with another key, on this connection where there is one. What is subscribed stays so.
    pub fn set_key(&mut self, key: Option<Key>) {
        self.link.set_key(self.inbox.clock.now(), key, &mut self.inbox);
    }

    /// The wanted channels.
    #[must_use]
    pub fn channels(&self) -> &BTreeSet<String> {
        &self.channels
    }

    /// Wants a channel, with the next [`poll`](Link::poll) and after each new connection.
    ///
    /// # Errors
    /// [`ChannelError`] when no channel has such a name.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ChannelError> {
        self.link.subscribe(channel)?;
        self.channels.insert(channel.to_owned());
        Ok(())
    }

    /// Wants a channel no longer, with the next [`poll`](Link::poll).
    pub fn unsubscribe(&mut self, channel: &str) {
        self.link.unsubscribe(channel);
        self.channels.remove(channel);
        self.inbox.feeds.remove(channel);
    }

    /// Sends a request; [`take_answer`](Link::take_answer) gives its answer.
    ///
    /// # Errors
    /// [`RequestError`]; nothing was sent then.
    pub fn request<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<i64, RequestError> {
        let now = self.inbox.clock.now();
        let id = self.link.request(now, method, params)?;
        (self.inbox.answer, self.inbox.awaited) = (None, Some(id));
        if self.inbox.keeps_history {
            self.inbox.history.push(now, Way::Sent, self.link.sent());
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
        self.link.do_work(self.inbox.clock.now(), &mut self.inbox);
        if let Some(time) = self.inbox.login_time.take() {
            self.watches.record(Span::E2eAuth, time);
        }
    }

    /// Waits until something came, a signal, or so long.
    pub fn wait(&self, time: Duration) {
        match self.link.fd() {
            Some(fd) if self.link.is_open() => wait_for(&fd, time),
            // A connection that is being made goes on without anything to read.
            _ => std::thread::sleep(time.min(CONNECTING_WAIT)),
        }
    }

    /// A copy of the socket's descriptor, to wait for without holding the link.
    #[must_use]
    pub fn waiter(&self) -> Option<std::os::fd::OwnedFd> {
        self.link.fd()?.try_clone_to_owned().ok()
    }
}

/// Results and data are read when somebody looks at them.
struct Later;

impl Visitor<'_> for Later {}

/// What came, and who waits for it.
#[derive(Debug)]
struct Inbox {
    clock: Clock,
    history: History,
    /// False to measure what it costs.
    keeps_history: bool,
    /// Of the message that is being read.
    place: u64,
    feeds: BTreeMap<String, Feed>,
    news: VecDeque<(String, u64)>,
    wants_news: bool,
    notes: VecDeque<String>,
    answer: Option<(i64, Answer)>,
    awaited: Option<i64>,
    auth_sent_at: Option<Nanos>,
    /// How long the last login took.
    login_time: Option<Nanos>,
}

impl Inbox {
    fn new(history: usize) -> Inbox {
        Inbox {
            clock: Clock { start: Instant::now() },
            history: History::new(history),
            keeps_history: true,
            place: 0,
            feeds: BTreeMap::new(),
            news: VecDeque::new(),
            wants_news: false,
            notes: VecDeque::with_capacity(NOTES_MAX),
            answer: None,
            awaited: None,
            auth_sent_at: None,
            login_time: None,
        }
    }

    fn note(&mut self, note: String) {
        push_bounded(&mut self.notes, note, NOTES_MAX);
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
        Inbound::parse_with(text, &mut Later)
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
                let feed = match self.feeds.get_mut(channel) {
                    Some(feed) => feed,
                    None => self.feeds.entry(channel.to_owned()).or_default(),
                };
                feed.count += 1;
                feed.place = self.place;
                if self.wants_news {
                    push_bounded(&mut self.news, (channel.to_owned(), self.place), NEWS_MAX);
                }
            }
            SessionEvent::Subscribed { refused, .. } if refused > 0 => {
                self.note(format!("{refused} channels are not given, see subscriptions"));
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
        if let Change::Lost { why, .. } = change {
            self.auth_sent_at = None;
            self.note(why.to_string());
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
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
        ..SessionConfig::new("tickpath", env!("CARGO_PKG_VERSION"), key)
    }
}

/// Waits until a descriptor can be read, a signal, or so long.
pub(crate) fn wait_for(fd: &impl AsFd, time: Duration) {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    // Whatever ended the wait, who waits looks again.
    let _ = poll(&mut fds, time);
}
