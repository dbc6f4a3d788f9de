//! Commands carried out: each returns when the venue has answered.

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

/// How long a connection may take until requests can be sent.
const CONNECT_MAX: Nanos = Nanos::from_secs(20);
/// After so long a person is told what is waited for.
const CONNECT_LONG: Nanos = Nanos::from_secs(1);
/// How long to wait for the socket at once, so that signals and time-outs are noticed.
const WAIT: Duration = Duration::from_millis(20);
/// The longest pause that the venue's rate limit may ask for.
const RATE_WAIT_MAX: Nanos = Nanos::from_secs(5);

/// How often a question is asked at most: once more after a lost connection, and once more after tokens that were over.
const QUESTION_ASKS: u32 = 3;

/// Whether a question may be asked again: its connection was lost, or its tokens were over before their time, which the
/// session renews by itself. What changes orders is never repeated.
fn may_ask_again(method: Method, failure: &Failure) -> bool {
    let is_worth_it = match failure {
        Failure::Lost(_) => true,
        Failure::Refused { code, .. } => *code == ErrorCode::Unauthorized.code() && method.is_private(),
        _ => false,
    };
    is_worth_it && method.is_idempotent() && !method.is_matching()
}

/// Why a command did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is not a command, or one that cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// A limit of the configuration forbids it.
    #[error("{0}")]
    Limit(String),
    /// There is no connection, or no login.
    #[error("not connected: {0}")]
    NotConnected(String),
    /// The venue refused.
    #[error("refused: {message} ({code}){}", remedy(*code, data.as_deref()))]
    Refused {
        /// The venue's code.
        code: i64,
        /// Its message.
        message: String,
        /// More about it, JSON.
        data: Option<String>,
    },
    /// No answer in time; what became of the request is not known.
    #[error("no answer to {0} in time: whether it was done is not known")]
    Late(&'static str),
    /// The connection was lost before the answer; what became of the request is not known.
    #[error("the connection was lost before the answer to {0}: whether it was done is not known")]
    Lost(&'static str),
    /// The request was lost, and the venue was asked: it was not done.
    #[error("{0}")]
    NotDone(String),
    /// The venue was asked what became of a request, and that is not known yet: it may be done, now or later.
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
    /// Its name in reports.
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

    /// Whether it is unknown what became of the request.
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

/// An answer, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The result as it came.
    pub json: String,
    /// From the command to the socket.
    pub send: Nanos,
    /// From the command to the answer.
    pub total: Nanos,
}

/// What Ctrl-C and SIGTERM raise.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// Ctrl-C: the command ends.
    pub command: Arc<AtomicBool>,
    /// SIGTERM: the shell ends.
    pub shell: Arc<AtomicBool>,
}

impl Interrupt {
    /// One that signals raise.
    ///
    /// # Errors
    /// The system's.
    pub fn on_signals() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupt.command))?;
        signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&interrupt.shell))?;
        Ok(interrupt)
    }

    /// Whether to end what is being done.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.command.load(Ordering::Relaxed) || self.shell.load(Ordering::Relaxed)
    }
}

/// A shell: a link, and what is needed to carry commands out over it.
#[derive(Debug)]
pub struct Shell {
    link: Arc<Mutex<Link>>,
    pub(crate) interrupt: Interrupt,
    pub(crate) key: Option<Key>,
    /// Where that key is from, for who has to correct it; empty where nobody said.
    pub(crate) key_place: String,
    /// The host that the key is for, and whether the venue there is a native one.
    pub(crate) key_of: (String, bool),
    pub(crate) is_dry_run: bool,
    /// Standard output is something else's.
    pub(crate) is_silent: bool,
    /// What commands gave is kept for a report.
    pub(crate) is_reported: bool,
    /// A person looks at the terminal: what comes between commands is shown there and not kept for the next `wait`.
    pub(crate) is_watched: bool,
    /// Instruments that were asked for, as they came.
    pub(crate) instruments: HashMap<String, String>,
    pub(crate) labels: u64,
    /// When the command began that is carried out, and whether it has asked the venue already.
    pub(crate) began: Option<Nanos>,
    pub(crate) has_asked: bool,
    /// The question is the shell's own: it is not timed.
    pub(crate) is_quiet: bool,
    /// Where the shell was begun: `production = true` is for that venue alone.
    pub(crate) home: ShellConfig,
    /// Ids of the last orders that were answered.
    pub(crate) entered: VecDeque<String>,
    /// An order was entered that rested at first; how many connections were lost before.
    pub(crate) rests: Option<u64>,
    was_ready: bool,
}

impl Shell {
    /// A shell over a link. `key` is what `auth` logs in with.
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

    /// What goes with the connection when the shell ends now, in a line: where it has entered orders that rested, and the
    /// venue cancels with the connection what is open of them.
    pub(crate) fn parting_word(&self) -> Option<&'static str> {
        let link = self.link();
        // A connection that was lost since has taken them with it.
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

    /// The link, for whoever keeps it while no command runs.
    #[must_use]
    pub fn shared_link(&self) -> Arc<Mutex<Link>> {
        Arc::clone(&self.link)
    }

    /// The link, held for a command.
    pub fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().expect("who holds the link does not panic")
    }

    /// Connects, logs in where there is a key, and waits until requests can be sent. A connection that was there before is
    /// tried again for a while; one that never was is not.
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
                    // It is no reason any more, and happened all the same: orders may have gone with a connection.
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
                tickpath_config::tell(crate::run::visible(&format!(
                    "tickpath: waiting for the connection, Ctrl-C ends it, Ctrl-D the shell{why}"
                )));
            }
            link.wait(WAIT);
        }
        // A reason that was told before is one still.
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

    /// Asks the venue and waits for its answer. What changes nothing is asked once more where the connection was lost.
    ///
    /// # Errors
    /// [`Failure`]; after [`Failure::Late`] and [`Failure::Lost`] nobody knows what was done.
    pub fn ask<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Reply, Failure> {
        self.check_asked(method, params)?;
        self.begin_ready()?;
        self.ask_when_ready(method, params)
    }

    /// Whether the venue can be asked this at all.
    pub(crate) fn check_asked<'a>(&self, method: Method, params: &impl Field<'a>) -> Result<(), Failure> {
        let link = self.link();
        link.check(method, params).map_err(Failure::Invalid)?;
        match method.is_private() && !link.has_key() {
            true => Err(Failure::Invalid(format!("{method} needs a login: see help auth"))),
            false => Ok(()),
        }
    }

    /// [`ask`](Shell::ask) behind [`begin_ready`](Shell::begin_ready).
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
            // A connection that had to be made first is no part of the command's time.
            self.began = None;
        }
        Ok(())
    }

    fn ask_once<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Reply, Failure> {
        // Nothing is sent behind Ctrl-C.
        if self.interrupt.is_raised() {
            return Err(Failure::Interrupted);
        }
        // A command's first request begins with the command; the order behind its questions is timed from there as well.
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
            // Where a request outlives its connection the answer says what became of it; not where no other one comes.
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

    /// Sends a request, after a pause where the rate limit asks for a short one.
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

    /// Forgets that there was a connection: the first one of another venue or key comes about at once, or not at all.
    pub(crate) fn begin_anew(&mut self) {
        self.was_ready = false;
    }

    /// Takes in what comes, until a time, a signal, or `until` says so. Whether it did. Whoever keeps the link beside,
    /// such as the pane, has its turn.
    pub(crate) fn pump(
        &mut self,
        time: Nanos,
        mut until: impl FnMut(&mut Link) -> bool,
    ) -> Result<bool, Failure> {
        self.pump_lines(time, |link, _| until(link))
    }

    /// The same with lines that `until` makes for standard output. They are printed without the link: a terminal that
    /// stands still, or a pipe that is full, must not keep the connection from its heartbeats.
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
                told.drain(..).for_each(|line| tickpath_config::tell(crate::run::visible(&line)));
                for line in said.drain(..) {
                    // A full pipe or disk is noticed when the command's own result is printed.
                    let _ = tickpath_config::say(crate::run::visible(&line));
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
