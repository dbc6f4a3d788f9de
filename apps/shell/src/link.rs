//! The connection to the venue: it is kept, its messages are remembered, and its answers given to who asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tickpath_deribit::channel::ChannelError;
use tickpath_deribit::envelope::{ErrorBody, Inbound, Visitor};
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{Expiry, Key, RequestError, Session, SessionConfig, SessionEvent};
use tickpath_net::{Kernel, SendOutcome};
use tickpath_types::Nanos;
use tickpath_web::{TlsClient, WebEvent, WebLimits, WebSocketClient, WebUrl};

use crate::config::ShellConfig;
use crate::history::{History, Way};
use crate::stopwatch::{Span, Stopwatches};

/// Messages taken in by one call, so that a stream of market data does not keep it.
const MESSAGES_MAX: usize = 256;
/// Notes that wait to be read; the oldest make room.
const NOTES_MAX: usize = 64;
/// Names of channels whose data waits to be printed; the oldest make room.
const NEWS_MAX: usize = 4096;
/// How long to wait at once while a connection is being made.
const CONNECTING_WAIT: Duration = Duration::from_millis(1);
/// The first pause before connecting again; each further one is twice as long, up to the last.
const PAUSE_MIN: Nanos = Nanos::from_millis(250);
const PAUSE_MAX: Nanos = Nanos::from_secs(30);

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

/// Whether there is a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No connection is wanted.
    Off,
    /// It is being made, or made again.
    Connecting,
    /// Requests may be sent.
    Ready,
}

/// The connection to the venue.
#[derive(Debug)]
pub struct Link {
    config: ShellConfig,
    url: WebUrl,
    tls: Option<TlsClient>,
    key: Option<Key>,
    clock: Clock,
    socket: Option<WebSocketClient>,
    is_open: bool,
    session: Session,
    is_wanted: bool,
    connect_at: Nanos,
    pause: Nanos,
    /// Counts connections that were lost, so that who waits for an answer notices.
    losses: u64,
    history: History,
    /// False to measure what it costs.
    keeps_history: bool,
    channels: BTreeSet<String>,
    feeds: BTreeMap<String, Feed>,
    news: VecDeque<(String, u64)>,
    wants_news: bool,
    notes: VecDeque<String>,
    answer: Option<(i64, Answer)>,
    awaited: Option<i64>,
    auth_sent_at: Option<Nanos>,
    /// Times of this program.
    pub watches: Stopwatches,
    out: Vec<u8>,
    unreadable: u64,
    nonces: u64,
}

impl Link {
    /// A link that is off. With `key` the session logs in.
    #[must_use]
    pub fn new(config: ShellConfig, url: WebUrl, key: Option<Key>) -> Link {
        let history = usize::try_from(config.history.0).unwrap_or(usize::MAX);
        Link {
            session: Session::new(session_config(&config, key.clone())),
            url,
            tls: None,
            key,
            clock: Clock { start: Instant::now() },
            socket: None,
            is_open: false,
            is_wanted: false,
            connect_at: Nanos::ZERO,
            pause: PAUSE_MIN,
            losses: 0,
            history: History::new(history),
            keeps_history: true,
            channels: BTreeSet::new(),
            feeds: BTreeMap::new(),
            news: VecDeque::new(),
            wants_news: false,
            notes: VecDeque::with_capacity(NOTES_MAX),
            answer: None,
            awaited: None,
            auth_sent_at: None,
            watches: Stopwatches::default(),
            out: Vec::with_capacity(4 << 10),
            unreadable: 0,
            nonces: 0,
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
        self.clock
    }

    /// Whether the session is with a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Where it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (self.is_wanted, self.is_open && self.session.is_ready()) {
            (false, _) => Standing::Off,
            (true, true) => Standing::Ready,
            (true, false) => Standing::Connecting,
        }
    }

    /// How many connections were lost.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Messages that could not be read.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// The messages.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether messages are kept for [`history`](Link::history). They are unless it is measured what that costs.
    pub fn keep_history(&mut self, keeps: bool) {
        self.keeps_history = keeps;
    }

    /// The channels that gave data.
    #[must_use]
    pub fn feeds(&self) -> &BTreeMap<String, Feed> {
        &self.feeds
    }

    /// Wanted channels that the venue does not give.
    pub fn refused_channels(&self) -> impl Iterator<Item = &str> {
        self.session.refused_channels()
    }

    /// How many channels are subscribed.
    #[must_use]
    pub fn active_channels(&self) -> usize {
        self.session.active_channels()
    }

    /// Whether it is kept which channels gave data, to be printed, as many as there is room for; what was kept is forgotten.
    pub fn want_news(&mut self, wanted: bool) {
        self.wants_news = wanted;
        self.news.clear();
    }

    /// The next channel with data to print, and the place of its message in the history.
    pub fn next_news(&mut self) -> Option<(String, u64)> {
        self.news.pop_front()
    }

    /// The next thing to tell the user.
    pub fn next_note(&mut self) -> Option<String> {
        self.notes.pop_front()
    }

    /// Forgets what there was to tell.
    pub fn forget_notes(&mut self) {
        self.notes.clear();
    }

    /// Wants a connection, from now on.
    pub fn connect(&mut self) {
        if !self.is_wanted {
            self.is_wanted = true;
            self.connect_at = self.clock.now();
            self.pause = PAUSE_MIN;
        }
    }

    /// Wants no connection any longer, and closes it with "going away".
    pub fn disconnect(&mut self) {
        self.is_wanted = false;
        self.close();
    }

    /// Goes to another venue; off until it is connected.
    pub fn set_venue(&mut self, config: ShellConfig, url: WebUrl) {
        self.disconnect();
        self.tls = None;
        self.feeds.clear();
        (self.config, self.url) = (config, url);
        self.renew_session();
    }

    /// Logs in with another key, on this connection where there is one. What is subscribed stays so.
    pub fn set_key(&mut self, key: Option<Key>) {
        self.key = key;
        self.renew_session();
        if self.is_open {
            self.start_session();
        }
    }

    fn renew_session(&mut self) {
        self.session = Session::new(session_config(&self.config, self.key.clone()));
        for channel in &self.channels {
            // It was taken before, so it is again.
            let _ = self.session.subscribe(channel);
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
    /// [`ChannelError`] when no channel has such a name.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ChannelError> {
        self.session.subscribe(channel)?;
        self.channels.insert(channel.to_owned());
        Ok(())
    }

    /// Wants a channel no longer, with the next [`poll`](Link::poll).
    pub fn unsubscribe(&mut self, channel: &str) {
        self.session.unsubscribe(channel);
        self.channels.remove(channel);
        self.feeds.remove(channel);
    }

    /// Sends a request; [`take_answer`](Link::take_answer) gives its answer.
    ///
    /// # Errors
    /// [`RequestError`]; nothing was sent then.
    pub fn request<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<i64, RequestError> {
        if !self.is_open {
            return Err(RequestError::NotReady);
        }
        self.out.clear();
        let now = self.clock.now();
        let id = self.session.request(now, method, params, &mut self.out)?;
        (self.answer, self.awaited) = (None, Some(id));
        self.send_out(now);
        Ok(id)
    }

    /// The answer to a request, once it is there.
    pub fn take_answer(&mut self, id: i64) -> Option<Answer> {
        match self.answer.take() {
            Some((of, answer)) if of == id => {
                self.awaited = None;
                Some(answer)
            }
            _ => None,
        }
    }

    /// Does what is to be done now. Waits for nothing but the name service, when it connects.
    pub fn poll(&mut self) {
        let now = self.clock.now();
        if !self.is_wanted {
            return;
        }
        if self.socket.is_none() {
            if now >= self.connect_at {
                self.start_connecting(now);
            }
            return;
        }
        if !self.is_open {
            self.poll_open(now);
        }
        if self.is_open {
            self.receive();
            self.expire();
            self.transmit();
            self.end_session();
        }
    }

    /// Waits until something came, a signal, or so long.
    pub fn wait(&self, time: Duration) {
        match self.socket.as_ref().and_then(WebSocketClient::fd) {
            Some(fd) if self.is_open => wait_for(&fd, time),
            // A connection that is being made goes on without anything to read.
            _ => std::thread::sleep(time.min(CONNECTING_WAIT)),
        }
    }

    /// A copy of the socket's descriptor, to wait for without holding the link.
    #[must_use]
    pub fn waiter(&self) -> Option<std::os::fd::OwnedFd> {
        self.socket.as_ref()?.fd()?.try_clone_to_owned().ok()
    }

    fn start_connecting(&mut self, now: Nanos) {
        let target = match self.config.target(&self.url, &mut self.tls) {
            Ok(target) => target,
            Err(error) => return self.lose(now, &format!("{error:#}")),
        };
        match WebSocketClient::start(&Kernel, now, target, WebLimits::client()) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => self.lose(now, &error.to_string()),
        }
    }

    fn poll_open(&mut self, now: Nanos) {
        let Some(socket) = &mut self.socket else { return };
        match socket.poll_open(now) {
            Ok(is_open) => {
                self.is_open = is_open;
                if is_open {
                    self.start_session();
                }
            }
            Err(error) => self.lose(now, &error.to_string()),
        }
    }

    fn start_session(&mut self) {
        let unix_ms = Clock::unix_ms();
        self.nonces += 1;
        let nonce = format!("{unix_ms:x}-{:x}-{:x}", std::process::id(), self.nonces);
        self.session.start(self.clock.now(), unix_ms, &nonce);
        self.transmit();
    }

    fn receive(&mut self) {
        for _ in 0..MESSAGES_MAX {
            let Some(socket) = &mut self.socket else { return };
            let now = self.clock.now();
            match socket.receive() {
                Ok(None) => return,
                Ok(Some(WebEvent::Text(text))) => {
                    let place =
                        if self.keeps_history { self.history.push(now, Way::Received, text) } else { 0 };
                    let mut taker = Taker {
                        feeds: &mut self.feeds,
                        news: self.wants_news.then_some(&mut self.news),
                        notes: &mut self.notes,
                        awaited: self.awaited,
                        answer: &mut self.answer,
                        place,
                    };
                    match Inbound::parse_with(text, &mut Later) {
                        Ok(inbound) => {
                            if let Some(event) = self.session.handle(now, inbound) {
                                taker.take(event);
                            }
                        }
                        Err(_) => self.unreadable += 1,
                    }
                    if self.auth_sent_at.is_some() {
                        // The step after login shows that its answer was taken in.
                        self.transmit();
                    }
                }
                Ok(Some(WebEvent::Binary(_))) => self.unreadable += 1,
                Ok(Some(WebEvent::Closed(closed))) => {
                    let why = format!("the venue closed the connection: {} {}", closed.code, closed.reason);
                    return self.lose(now, why.trim_end());
                }
                Err(error) => return self.lose(now, &error.to_string()),
            }
        }
    }

    fn expire(&mut self) {
        let now = self.clock.now();
        while let Some(expiry) = self.session.handle_timeout(now) {
            match expiry {
                Expiry::Request { id, .. } if self.awaited == Some(id) => {
                    self.answer = Some((id, Answer::Late));
                }
                Expiry::Login { method } => return self.lose(now, &format!("no answer to {method} in time")),
                Expiry::Silence => return self.lose(now, "the venue is silent"),
                _ => {}
            }
        }
    }

    /// Sends what the session has to say, and what waits.
    fn transmit(&mut self) {
        if !self.is_open {
            return;
        }
        loop {
            self.out.clear();
            let now = self.clock.now();
            if !self.session.poll_transmit(now, &mut self.out) {
                break;
            }
            if let Some(sent_at) = self.auth_sent_at.take() {
                self.watches.record(Span::E2eAuth, now.since(sent_at));
            }
            if contains(&self.out, Method::Auth.name()) && !contains(&self.out, "\"refresh_token\"") {
                self.auth_sent_at = Some(now);
            }
            self.send_out(now);
        }
        if let Some(socket) = &mut self.socket
            && socket.has_pending()
        {
            // What is not taken now is tried again; a lost connection is told by receiving.
            let _ = socket.flush();
        }
    }

    fn send_out(&mut self, now: Nanos) {
        let Some(socket) = &mut self.socket else { return };
        let text = std::str::from_utf8(&self.out).expect("requests are written as JSON text");
        let outcome = socket.send(text);
        if self.keeps_history {
            self.history.push(now, Way::Sent, text);
        }
        match outcome {
            SendOutcome::Sent | SendOutcome::Pending => {}
            SendOutcome::Backpressured => self.lose(now, "the venue takes nothing any more"),
            SendOutcome::Closed => self.lose(now, "the connection is closed"),
        }
    }

    /// A session that ended by itself takes its connection with it.
    fn end_session(&mut self) {
        if self.is_open && self.session.is_over() {
            self.lose(self.clock.now(), "the session is over");
            if self.auth_sent_at.take().is_some() {
                // A login that was refused is refused again: the user has to do something.
                self.is_wanted = false;
            }
        }
    }

    fn lose(&mut self, now: Nanos, why: &str) {
        let was_ready = self.is_open && self.session.is_ready();
        self.close();
        self.losses += 1;
        if was_ready {
            self.pause = PAUSE_MIN;
        }
        self.connect_at = now + self.pause;
        self.pause = Nanos((self.pause.0 * 2).min(PAUSE_MAX.0));
        self.note(why.to_owned());
    }

    fn note(&mut self, note: String) {
        push_bounded(&mut self.notes, note, NOTES_MAX);
    }

    fn close(&mut self) {
        if let Some(mut socket) = self.socket.take() {
            socket.close(1001, "going away");
            let _ = socket.flush();
        }
        self.is_open = false;
        self.awaited = None;
    }
}

/// Results and data are read when somebody looks at them.
struct Later;

impl Visitor<'_> for Later {}

/// Takes what the session gives, while its message is still borrowed.
struct Taker<'l> {
    feeds: &'l mut BTreeMap<String, Feed>,
    news: Option<&'l mut VecDeque<(String, u64)>>,
    notes: &'l mut VecDeque<String>,
    awaited: Option<i64>,
    answer: &'l mut Option<(i64, Answer)>,
    place: u64,
}

impl Taker<'_> {
    fn take(&mut self, event: SessionEvent<'_>) {
        match event {
            SessionEvent::Reply { id, response, .. } if self.awaited == Some(id) => {
                let answer = match response.outcome {
                    Ok(result) => Answer::Done(result.text().to_owned()),
                    Err(error) => refused(&error),
                };
                *self.answer = Some((id, answer));
            }
            SessionEvent::Notification(notification) => {
                let Some(channel) = notification.channel.plain() else { return };
                let feed = match self.feeds.get_mut(channel) {
                    Some(feed) => feed,
                    None => self.feeds.entry(channel.to_owned()).or_default(),
                };
                feed.count += 1;
                feed.place = self.place;
                if let Some(news) = &mut self.news {
                    push_bounded(news, (channel.to_owned(), self.place), NEWS_MAX);
                }
            }
            SessionEvent::Subscribed { refused, .. } if refused > 0 => {
                push_bounded(
                    self.notes,
                    format!("{refused} channels are not given, see subscriptions"),
                    NOTES_MAX,
                );
            }
            SessionEvent::LoginRefused { error, .. } => {
                let why =
                    error.map_or_else(|| "its answer cannot be read".to_owned(), |error| describe(&error));
                push_bounded(self.notes, format!("login refused: {why}"), NOTES_MAX);
            }
            _ => {}
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

fn describe(error: &ErrorBody<'_>) -> String {
    let remedy = error.error_code().map_or("", |code| code.remedy());
    format!("{} ({}): {remedy}", error.message.to_cow(), error.code)
}

fn session_config(config: &ShellConfig, key: Option<Key>) -> SessionConfig {
    SessionConfig {
        cancel_on_disconnect: config.cancel_on_disconnect,
        request_timeout: config.request_timeout.0,
        pending_max: 16,
        ..SessionConfig::new("tickpath", env!("CARGO_PKG_VERSION"), key)
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Waits until a descriptor can be read, a signal, or so long.
pub(crate) fn wait_for(fd: &impl AsFd, time: Duration) {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    // Whatever ended the wait, who waits looks again.
    let _ = poll(&mut fds, time);
}
