//! Execution of requests: each command returns when the venue has answered.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{Key, RequestError};
use tickpath_types::Nanos;

use crate::config::ShellConfig;
use crate::link::{Answer, Link, Standing, wait_for};
use crate::stopwatch::Span;

/// Time-out until requests can be sent on a new connection.
const CONNECT_MAX: Nanos = Nanos::from_secs(20);
/// Time after which the pending step is shown to the person.
const CONNECT_LONG: Nanos = Nanos::from_secs(1);
/// Longest single wait for the socket, so that signals and time-outs are noticed.
const WAIT: Duration = Duration::from_millis(20);
/// Longest pause that the venue's rate limit may impose.
const RATE_WAIT_MAX: Nanos = Nanos::from_secs(5);

/// Upper bound of a query's attempts: one more after a lost connection, one more after expired tokens.
const QUESTION_ASKS: u32 = 3;

/// Whether to repeat a query: its connection was lost, or its tokens expired early, which the session renews
/// itself. Requests that change orders are never repeated.
fn may_ask_again(method: Method, failure: &Failure) -> bool {
    let is_worth_it = match failure {
        Failure::Lost(_) => true,
        Failure::Refused { code, .. } => *code == ErrorCode::Unauthorized.code() && method.is_private(),
        _ => false,
    };
    is_worth_it && method.is_idempotent() && !method.is_matching()
}

/// The reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An unknown command, or invalid arguments.
    #[error("{0}")]
    Invalid(String),
    /// Above a limit of the configuration.
    #[error("{0}")]
    Limit(String),
    /// No connection, or no login.
    #[error("not connected: {0}")]
    NotConnected(String),
    /// The venue refused.
    #[error("refused: {message} ({code}){}", remedy(*code, data.as_deref()))]
    Refused {
        /// The venue's code.
        code: i64,
        /// Its message.
        message: String,
        /// Further details as JSON.
        data: Option<String>,
    },
    /// No answer in time; the outcome of the request is unknown.
    #[error("no answer to {0} in time: whether it was done is not known")]
    Late(&'static str),
    /// The connection was lost before the answer; the outcome of the request is unknown.
    #[error("the connection was lost before the answer to {0}: whether it was done is not known")]
    Lost(&'static str),
    /// The request was lost; a query showed that it was not executed.
    #[error("{0}")]
    NotDone(String),
    /// Queries left the outcome of a request unknown: it may be executed, now or later.
    #[error("{0}")]
    Unknown(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// Ctrl-C before the answer to a request that changes orders.
    #[error("interrupted before the answer to {0}: whether it was done is not known, orders shows it")]
    Unanswered(&'static str),
}

fn remedy(code: i64, data: Option<&str>) -> String {
    let data = data.map(|data| format!(" {}", crate::json_text::one_line(data))).unwrap_or_default();
    let remedy = ErrorCode::from_code(code).map(|code| format!(": {}", code.remedy())).unwrap_or_default();
    format!("{data}{remedy}")
}

impl Failure {
    /// The kind of failure in reports.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Invalid(_) => "invalid",
            Failure::Limit(_) => "limit",
            Failure::NotConnected(_) => "not_connected",
            Failure::Refused { .. } => "refused",
            Failure::Late(_) => "timeout",
            Failure::Lost(_) => "lost",
            Failure::NotDone(_) => "not_done",
            Failure::Unknown(_) => "unknown",
            Failure::Interrupted | Failure::Unanswered(_) => "interrupted",
        }
    }

    /// Whether the outcome of the request is unknown.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        match self {
            Failure::Late(_) | Failure::Lost(_) => true,
            Failure::Refused { code, .. } => ErrorCode::from_code(*code).is_some_and(ErrorCode::is_unsure),
            _ => false,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Invalid(format!("{error:#}"))
    }
}

/// An answer and its timing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The unchanged result.
    pub json: String,
    /// Time from the command to the send.
    pub send: Nanos,
    /// Time from the command to the answer.
    pub total: Nanos,
}

/// The flags that Ctrl-C and SIGTERM set.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// Ctrl-C: ends the command.
    pub command: Arc<AtomicBool>,
    /// SIGTERM: ends the shell.
    pub shell: Arc<AtomicBool>,
}

impl Interrupt {
    /// Registers the flags with the signals.
    ///
    /// # Errors
    /// A system error.
    pub fn on_signals() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupt.command))?;
        signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&interrupt.shell))?;
        Ok(interrupt)
    }

    /// Whether to stop the current work.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.command.load(Ordering::Relaxed) || self.shell.load(Ordering::Relaxed)
    }
}

/// A shell: a link, and the state needed to execute commands.
#[derive(Debug)]
pub struct Shell {
    link: Arc<Mutex<Link>>,
    pub(crate) interrupt: Interrupt,
    pub(crate) key: Option<Key>,
    /// Describes the source of the key, for error messages; empty if unknown.
    pub(crate) key_place: String,
    /// The host of the key, and whether its venue is a native one.
    pub(crate) key_of: (String, bool),
    pub(crate) is_dry_run: bool,
    /// True if standard output is reserved for other output.
    pub(crate) is_silent: bool,
    /// True if results are kept for a report.
    pub(crate) is_reported: bool,
    /// True if a person watches the terminal: messages between commands are shown, not kept for `wait`.
    pub(crate) is_watched: bool,
    /// Requested instruments with the venue's unchanged answers.
    pub(crate) instruments: HashMap<String, String>,
    pub(crate) labels: u64,
    /// Start time of the current command, and whether it has queried the venue.
    pub(crate) began: Option<Nanos>,
    pub(crate) has_asked: bool,
    /// True during a query of the shell itself, which is not timed.
    pub(crate) is_quiet: bool,
    /// The initial configuration: `production = true` applies to its venue only.
    pub(crate) home: ShellConfig,
    /// Ids of the most recently answered orders.
    pub(crate) entered: VecDeque<String>,
    /// The number of lost connections when an order last rested; `None` if none did.
    pub(crate) rests: Option<u64>,
    was_ready: bool,
}

impl Shell {
    /// Creates a shell over a link; `key` is used by `auth`.
    #[must_use]
    pub fn new(mut link: Link, key: Option<Key>, is_dry_run: bool, interrupt: Interrupt) -> Shell {
        link.want_news(true);
        let home = link.config().clone();
        let key_of = crate::execute::key_of(link.url());
        let link = Arc::new(Mutex::new(link));
        Shell {
            link,
            interrupt,
            key,
            key_place: String::new(),
            key_of,
            is_dry_run,
            is_silent: false,
            is_reported: false,
            is_watched: false,
            instruments: HashMap::new(),
            labels: 0,
            began: None,
            has_asked: false,
            is_quiet: false,
            home,
            entered: VecDeque::new(),
            rests: None,
            was_ready: false,
        }
    }

    /// Returns a warning if ending the shell would cancel orders: it has entered resting orders, and the
    /// venue cancels the open ones on disconnect.
    pub(crate) fn parting_word(&self) -> Option<&'static str> {
        let link = self.link();
        // A connection lost since then has already cancelled them.
        let is_at_risk = self.rests == Some(link.losses())
            && !self.is_dry_run
            && link.config().cancel_on_disconnect
            && !link.url().is_native()
            && link.standing() != Standing::Off;
        is_at_risk.then_some(
            "the venue cancels what is still open of this shell's orders, as the connection ends \
             (cancel_on_disconnect): with logout before the end they stay",
        )
    }

    /// The link, for the thread that services it while no command runs.
    #[must_use]
    pub fn shared_link(&self) -> Arc<Mutex<Link>> {
        Arc::clone(&self.link)
    }

    /// Locks the link for a command.
    pub fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().expect("who holds the link does not panic")
    }

    /// Connects, logs in if there is a key, and waits until requests can be sent. A lost connection is
    /// retried for a while; a first connection is not.
    ///
    /// # Errors
    /// [`Failure::NotConnected`] with the reason, [`Failure::Interrupted`].
    pub fn ensure_ready(&mut self) -> Result<(), Failure> {
        let link = Arc::clone(&self.link);
        let mut link = link.lock().expect("who holds the link does not panic");
        link.connect();
        let (start, losses) = (link.clock().now(), link.losses());
        let mut reasons = Vec::new();
        let mut is_patient = !self.is_watched;
        loop {
            link.poll();
            while let Some(note) = link.next_note() {
                reasons.push(note);
            }
            match link.standing() {
                Standing::Ready => {
                    self.was_ready = true;
                    // The reasons are outdated but still of interest: the loss may have cancelled orders.
                    link.put_back(reasons);
                    return Ok(());
                }
                Standing::Off => break,
                Standing::Connecting => {}
            }
            let is_late = link.clock().now().since(start) > CONNECT_MAX;
            if is_late || (link.losses() > losses && !self.was_ready) {
                break;
            }
            if self.interrupt.is_raised() {
                link.put_back(reasons);
                return Err(Failure::Interrupted);
            }
            if !is_patient && link.clock().now().since(start) > CONNECT_LONG {
                is_patient = true;
                let why = link.last_loss().map(|why| format!(": {why}")).unwrap_or_default();
                tickpath_config::print_stderr(crate::run::visible(&format!(
                    "tickpath: waiting for the connection, Ctrl-C ends it, Ctrl-D the shell{why}"
                )));
            }
            link.wait(WAIT);
        }
        // A reason that was already shown still applies.
        if reasons.is_empty() {
            reasons.extend(link.last_loss().map(str::to_owned));
        }
        if let (true, Some(id)) = (link.is_login_refused() && !self.key_place.is_empty(), link.client_id()) {
            reasons.push(format!("the key {id} is from {}", self.key_place));
        }
        link.disconnect();
        reasons.dedup();
        if reasons.is_empty() {
            reasons.push("the venue does not finish the login in time".to_owned());
        }
        Err(Failure::NotConnected(reasons.join("; ")))
    }

    /// Sends a request and waits for its answer. Queries are repeated once after a lost connection.
    ///
    /// # Errors
    /// [`Failure`]; after [`Failure::Late`] and [`Failure::Lost`] the outcome is unknown.
    pub fn ask<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Reply, Failure> {
        self.check_asked(method, params)?;
        self.begin_ready()?;
        self.ask_when_ready(method, params)
    }

    /// Checks that the venue supports this request and that there is a login for it.
    pub(crate) fn check_asked<'a>(&self, method: Method, params: &impl Field<'a>) -> Result<(), Failure> {
        let link = self.link();
        link.check(method, params).map_err(Failure::Invalid)?;
        match method.is_private() && !link.has_key() {
            true => Err(Failure::Invalid(format!("{method} needs a login: see help auth"))),
            false => Ok(()),
        }
    }

    /// [`ask`](Shell::ask) after [`begin_ready`](Shell::begin_ready).
    pub(crate) fn ask_when_ready<'a>(
        &mut self,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<Reply, Failure> {
        let mut asks_left = QUESTION_ASKS;
        loop {
            let result = self.ask_once(method, params);
            asks_left -= 1;
            match result {
                Err(failure) if asks_left > 0 && may_ask_again(method, &failure) => self.ensure_ready()?,
                result => return result,
            }
        }
    }

    /// [`ensure_ready`](Shell::ensure_ready) before the first request of a command.
    pub(crate) fn begin_ready(&mut self) -> Result<(), Failure> {
        let state = |link: &Link| (link.standing() == Standing::Ready, link.losses());
        let before = state(&self.link());
        self.ensure_ready()?;
        if !before.0 || state(&self.link()) != before {
            // The time to connect does not count as time of the command.
            self.began = None;
        }
        Ok(())
    }

    fn ask_once<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Reply, Failure> {
        // Nothing is sent after Ctrl-C.
        if self.interrupt.is_raised() {
            return Err(Failure::Interrupted);
        }
        // The first request is timed from the start of the command, and so is an order after queries.
        let began = self.began;
        let is_first = !std::mem::replace(&mut self.has_asked, true);
        let mut link = self.link.lock().expect("who holds the link does not panic");
        let asked = link.clock().now();
        let start = began.filter(|_| is_first || method.is_matching()).unwrap_or(asked);
        let id = self.send(&mut link, method, params)?;
        let sent = link.clock().now();
        let send = sent.since(start);
        let is_timed = !self.is_quiet;
        if is_timed {
            link.watches.record(Span::SendRequest, send);
        }
        let losses = link.losses();
        loop {
            link.poll();
            if let Some(answer) = link.take_answer(id) {
                let now = link.clock().now();
                let total = now.since(start);
                if is_timed {
                    link.watches.record(Span::RoundTrip, now.since(asked));
                }
                if method == Method::Buy && matches!(answer, Answer::Done(_)) {
                    link.watches.record(Span::E2eBuyOrder, total);
                }
                return match answer {
                    Answer::Done(json) => Ok(Reply { json, send, total }),
                    Answer::Refused { code, message, data } => Err(Failure::Refused { code, message, data }),
                    Answer::Late => Err(Failure::Late(method.name())),
                    Answer::NotDone(why) => Err(Failure::NotDone(why)),
                    Answer::Impossible(why) => Err(Failure::Invalid(why)),
                };
            }
            let is_lost = link.losses() > losses || link.standing() != Standing::Ready;
            // If requests survive the connection, the answer reports the outcome, given a reconnect.
            if is_lost && (!link.keeps_requests() || link.standing() == Standing::Off) {
                return Err(Failure::Lost(method.name()));
            }
            if self.interrupt.is_raised() {
                let is_trade = method.is_matching();
                return Err(if is_trade { Failure::Unanswered(method.name()) } else { Failure::Interrupted });
            }
            link.wait(WAIT);
        }
    }

    /// Sends a request, after a short pause if the rate limit requires one.
    fn send<'a>(&self, link: &mut Link, method: Method, params: &impl Field<'a>) -> Result<i64, Failure> {
        let start = link.clock().now();
        loop {
            match link.request(method, params) {
                Ok(id) => return Ok(id),
                Err(RequestError::RateLimit { wait_ns }) if wait_ns <= RATE_WAIT_MAX.0 => {
                    if self.interrupt.is_raised() {
                        return Err(Failure::Interrupted);
                    }
                    if link.clock().now().since(start) > RATE_WAIT_MAX {
                        return Err(Failure::Invalid(RequestError::RateLimit { wait_ns }.to_string()));
                    }
                    link.poll();
                    link.wait(WAIT.min(Duration::from_nanos(wait_ns)));
                }
                Err(RequestError::NotReady) => {
                    return Err(Failure::NotConnected("the connection was just lost".to_owned()));
                }
                Err(error) => return Err(Failure::Invalid(error.to_string())),
            }
        }
    }

    /// Forgets the earlier connection: the first one to another venue or with another key is not retried.
    pub(crate) fn begin_anew(&mut self) {
        self.was_ready = false;
    }

    /// Processes messages until the time is over, a signal arrives, or `until` returns true; returns whether
    /// it did. Other users of the link, such as the pane, get their turn.
    pub(crate) fn pump(
        &mut self,
        time: Nanos,
        mut until: impl FnMut(&mut Link) -> bool,
    ) -> Result<bool, Failure> {
        self.pump_lines(time, |link, _| until(link))
    }

    /// Does the same, and prints the lines that `until` adds, without locking the link: a stopped terminal or
    /// a full pipe must not block its heartbeats.
    pub(crate) fn pump_lines(
        &mut self,
        time: Nanos,
        mut until: impl FnMut(&mut Link, &mut Vec<String>) -> bool,
    ) -> Result<bool, Failure> {
        let clock = self.link().clock();
        let end = clock.now() + time;
        let (mut told, mut said) = (Vec::new(), Vec::new());
        loop {
            let mut link = self.link();
            link.poll();
            told.extend(std::iter::from_fn(|| link.next_log()));
            let is_enough = until(&mut link, &mut said);
            if !(told.is_empty() && said.is_empty()) {
                drop(link);
                told.drain(..).for_each(|line| tickpath_config::print_stderr(crate::run::visible(&line)));
                for line in said.drain(..) {
                    // The command's own result reports a full disk or a closed pipe.
                    let _ = tickpath_config::print_stdout(crate::run::visible(&line));
                }
                link = self.link();
            }
            if is_enough {
                return Ok(true);
            }
            let left = end.since(clock.now());
            if left == Nanos::ZERO {
                return Ok(false);
            }
            if self.interrupt.is_raised() {
                return Err(Failure::Interrupted);
            }
            let time = WAIT.min(Duration::from_nanos(left.0));
            match link.waiter().filter(|_| self.is_watched) {
                Some(fd) => {
                    drop(link);
                    wait_for(&fd, time);
                }
                None => link.wait(time),
            }
        }
    }
}
