//! A client's session, without a socket or a clock: login, heartbeats, requests and their replies, subscriptions.
//!
//! The owner connects, calls [`Session::start`], sends what [`Session::poll_transmit`] writes, one WebSocket message
//! each, and gives what it receives to [`Session::handle`]. It calls [`Session::handle_timeout`] at the time of
//! [`Session::poll_timeout`], and `poll_transmit` after each of these. When the session is over it connects again and
//! calls `start` again: login and subscriptions are done anew; of requests without a reply it asks for the state.

mod subscriptions;

use std::collections::VecDeque;
use std::fmt;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tickpath_types::Nanos;

pub use self::subscriptions::BATCH_CHANNELS_MAX;
use self::subscriptions::Subscriptions;
use crate::channel::ChannelError;
use crate::credits::{CreditPlan, Credits};
use crate::envelope::{ErrorBody, Id, Inbound, Notification, Response, write_request};
use crate::error_code::ErrorCode;
use crate::field::{Field, List};
use crate::messages::{Auth, AuthResult, Hello, SetCancelOnDisconnect, SetHeartbeat, Test};
use crate::method::Method;
use crate::request::REQUEST_LEN_MAX;
use crate::sign::{Signature, client_signature};
use crate::text::Text;

/// A client's key. Its secret is never shown, and its memory is overwritten when the key is dropped.
#[derive(Clone)]
pub struct Key {
    /// Its id, which is no secret.
    pub client_id: String,
    secret: SecretString,
}

impl Key {
    /// A key of its id and its secret.
    #[must_use]
    pub fn new(client_id: impl Into<String>, secret: impl Into<String>) -> Key {
        Key { client_id: client_id.into(), secret: SecretString::from(secret.into()) }
    }

    /// The secret, to sign with.
    #[must_use]
    pub fn secret(&self) -> &str {
        self.secret.expose_secret()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// How a session is to be.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The program's name, for the server.
    pub client_name: String,
    /// Its version.
    pub client_version: String,
    /// None for public data only.
    pub key: Option<Key>,
    /// Seconds between heartbeats; at least [`SetHeartbeat::INTERVAL_MIN`]. After twice that without a word the session
    /// is over.
    pub heartbeat_s: u32,
    /// The server cancels this connection's orders when it ends; with a key.
    pub cancel_on_disconnect: bool,
    /// How long a reply may take.
    pub request_timeout: Nanos,
    /// Requests that may be without a reply at once.
    pub pending_max: usize,
    /// The limit of requests to the matching engine.
    pub matching: CreditPlan,
    /// Channels asked for by one request, at most [`BATCH_CHANNELS_MAX`].
    pub subscribe_batch: usize,
}

impl SessionConfig {
    /// Heartbeats each 10 s, cancel on disconnect, 10 s for a reply, 256 requests at once, the lowest tier of orders.
    #[must_use]
    pub fn new(client_name: &str, client_version: &str, key: Option<Key>) -> SessionConfig {
        SessionConfig {
            client_name: client_name.to_owned(),
            client_version: client_version.to_owned(),
            key,
            heartbeat_s: SetHeartbeat::INTERVAL_MIN,
            cancel_on_disconnect: true,
            request_timeout: Nanos::from_secs(10),
            pending_max: 256,
            matching: CreditPlan::rate(5, 20),
            subscribe_batch: BATCH_CHANNELS_MAX,
        }
    }
}

/// Why a request was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Login is not done, or the session is over.
    #[error("the session is not ready: wait for its login")]
    NotReady,
    /// The method is for clients with a key.
    #[error("the method needs a login: give the session a key")]
    NoKey,
    /// As many requests as allowed wait for replies.
    #[error("too many requests wait for replies")]
    TooManyPending,
    /// The server would end the session for it.
    #[error("the rate limit is reached: wait {wait_ns} ns")]
    RateLimit {
        /// Nanoseconds until it may be sent.
        wait_ns: u64,
    },
    /// It is longer than the server takes.
    #[error("the request is longer than 32 kB")]
    TooLarge,
}

/// What happened, of interest to the session's owner.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SessionEvent<'f> {
    /// Login is done: requests may be sent.
    Ready,
    /// The reply to a request of the owner.
    Reply {
        /// What [`Session::request`] gave.
        id: i64,
        /// The request's method.
        method: Method,
        /// The reply.
        response: Response<'f>,
    },
    /// Data of a channel.
    Notification(Notification<'f>),
    /// Channels were asked for; see [`Session::refused_channels`].
    Subscribed {
        /// So many are subscribed.
        accepted: usize,
        /// So many are not: they do not exist, or need more rights.
        refused: usize,
    },
    /// Login or its renewal was refused: the session is over.
    LoginRefused {
        /// The step.
        method: Method,
        /// Why; none when the reply cannot be read.
        error: Option<ErrorBody<'f>>,
    },
}

/// What did not happen in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// The reply to a request of the owner: it may have been done or not.
    Request {
        /// What [`Session::request`] gave.
        id: i64,
        /// Its method.
        method: Method,
    },
    /// A step of login or its renewal: the session is over.
    Login {
        /// The step.
        method: Method,
    },
    /// Any word of the server: the session is over.
    Silence,
}

/// The id of answers to questions for a sign of life; their replies are of no interest.
const ALIVE: &str = "alive";
/// The shortest life of a token that is reckoned with, in seconds: a renewal each moment would help nobody.
const TOKEN_LIFE_MIN_S: u64 = 10;

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Over,
    Hello,
    Login,
    Heartbeat,
    CancelOnDisconnect,
    Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Login,
    Channels,
    Owner,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    id: i64,
    method: Method,
    purpose: Purpose,
    deadline: Nanos,
}

struct LoginParams {
    timestamp_ms: u64,
    nonce: String,
    signature: Signature,
}

/// What a session counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Replies to nothing that was asked, or too late.
    pub unmatched: u64,
    /// Questions for a sign of life.
    pub test_requests: u64,
    /// Notifications of a later version of the API.
    pub unknown: u64,
}

/// A client's session.
pub struct Session {
    config: SessionConfig,
    step: Step,
    is_step_sent: bool,
    is_test_due: bool,
    login: Option<LoginParams>,
    refresh_token: Zeroizing<String>,
    /// What the last login allows.
    scope: String,
    refresh_at: Nanos,
    /// In the order of ids, which is that of deadlines.
    pending: VecDeque<Pending>,
    next_id: i64,
    now: Nanos,
    silent_at: Nanos,
    channels: Subscriptions,
    /// When a request about channels may be sent.
    channels_at: Nanos,
    subscribe_credits: Credits,
    matching_credits: Credits,
    other_credits: Credits,
    stats: SessionStats,
}

impl Session {
    /// A session that is not started.
    #[must_use]
    pub fn new(config: SessionConfig) -> Session {
        Session {
            step: Step::Over,
            is_step_sent: false,
            is_test_due: false,
            login: None,
            refresh_token: Zeroizing::default(),
            scope: String::new(),
            refresh_at: Nanos::MAX,
            pending: VecDeque::with_capacity(config.pending_max),
            next_id: 1,
            now: Nanos::ZERO,
            silent_at: Nanos::MAX,
            channels: Subscriptions::default(),
            channels_at: Nanos::ZERO,
            subscribe_credits: Credits::new(CreditPlan::SUBSCRIBE, Nanos::ZERO),
            matching_credits: Credits::new(config.matching, Nanos::ZERO),
            other_credits: Credits::new(CreditPlan::NON_MATCHING, Nanos::ZERO),
            stats: SessionStats::default(),
            config,
        }
    }

    /// A connection was made. `unix_ms` is the time of day in milliseconds since 1970 and `nonce` a text never used before;
    /// both are signed.
    pub fn start(&mut self, now: Nanos, unix_ms: u64, nonce: &str) {
        self.login = self.config.key.as_ref().map(|key| LoginParams {
            timestamp_ms: unix_ms,
            nonce: nonce.to_owned(),
            signature: client_signature(key.secret().as_bytes(), unix_ms, nonce, ""),
        });
        self.pending.clear();
        self.channels.reset();
        self.refresh_token = Zeroizing::default();
        self.scope.clear();
        self.refresh_at = Nanos::MAX;
        self.is_test_due = false;
        self.enter(Step::Hello);
        self.hear(now);
    }

    /// The connection is lost or is to be closed: nothing is sent any more and no reply comes. Wanted channels stay wanted.
    pub fn end(&mut self) {
        self.step = Step::Over;
        self.pending.clear();
    }

    /// Another key, or none, from the next [`start`](Session::start) on.
    pub fn set_key(&mut self, key: Option<Key>) {
        self.config.key = key;
    }

    /// Whether it is of a client with a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.config.key.is_some()
    }

    /// The id of the key, where there is one.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.config.key.as_ref().map(|key| key.client_id.as_str())
    }

    /// What the venue said that the login allows, such as `connection trade:read_write`; empty before it.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// A request that was written was not sent after all: no reply is waited for.
    pub fn withdraw(&mut self, id: i64) {
        self.pending.retain(|pending| pending.id != id);
    }

    /// True between login and the end of the session.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.step == Step::Ready
    }

    /// True before the start and when the connection is to be closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// What was counted.
    #[must_use]
    pub const fn stats(&self) -> SessionStats {
        self.stats
    }

    /// Requests of the owner without a reply.
    pub fn pending(&self) -> impl Iterator<Item = (i64, Method)> {
        let of_owner = self.pending.iter().filter(|pending| pending.purpose == Purpose::Owner);
        of_owner.map(|pending| (pending.id, pending.method))
    }

    /// Wants a channel, now and after every reconnection.
    ///
    /// # Errors
    /// [`ChannelError`] when no channel has such a name.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ChannelError> {
        self.channels.add(channel)
    }

    /// Wants a channel no longer.
    pub fn unsubscribe(&mut self, channel: &str) {
        self.channels.remove(channel);
    }

    /// Ends a subscription and, after the reply, subscribes again, for a whole book after a loss. False when the channel is
    /// not wanted.
    pub fn resubscribe(&mut self, channel: &str) -> bool {
        self.channels.renew(channel)
    }

    /// The wanted channels that the server does not give.
    pub fn refused_channels(&self) -> impl Iterator<Item = &str> {
        self.channels.refused()
    }

    /// How many channels are subscribed.
    #[must_use]
    pub fn active_channels(&self) -> usize {
        self.channels.active_count()
    }

    /// How many channels are to end and may still give data.
    #[must_use]
    pub fn ending_channels(&self) -> usize {
        self.channels.ending_count()
    }

    /// Appends a request; its id is given with its reply.
    ///
    /// # Errors
    /// [`RequestError`]; nothing is appended then.
    pub fn request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
        out: &mut Vec<u8>,
    ) -> Result<i64, RequestError> {
        self.now = self.now.max(now);
        if self.step != Step::Ready {
            return Err(RequestError::NotReady);
        }
        if method.is_private() && self.config.key.is_none() {
            return Err(RequestError::NoKey);
        }
        if self.pending.len() >= self.config.pending_max {
            return Err(RequestError::TooManyPending);
        }
        let start = out.len();
        write_request(Id::Number(self.next_id), method, params, out);
        if out.len() - start > REQUEST_LEN_MAX {
            out.truncate(start);
            return Err(RequestError::TooLarge);
        }
        let credits = if method.is_matching() { &mut self.matching_credits } else { &mut self.other_credits };
        if let Err(wait_ns) = credits.try_take(self.now) {
            out.truncate(start);
            return Err(RequestError::RateLimit { wait_ns });
        }
        if method == Method::Logout {
            // It has no reply but the end of the connection.
            self.step = Step::Over;
            self.next_id += 1;
            return Ok(self.next_id - 1);
        }
        Ok(self.expect_reply(method, Purpose::Owner))
    }

    /// Takes a message of the server, see [`Inbound::parse`]; one that cannot be parsed is counted by the owner.
    pub fn handle<'f>(&mut self, now: Nanos, inbound: Inbound<'f>) -> Option<SessionEvent<'f>> {
        if self.step == Step::Over {
            return None;
        }
        self.hear(now);
        match inbound {
            Inbound::Response(response) => self.handle_response(response),
            Inbound::Notification(notification) => Some(SessionEvent::Notification(notification)),
            Inbound::TestRequest => {
                self.stats.test_requests += 1;
                self.is_test_due = true;
                None
            }
            Inbound::Heartbeat => None,
            Inbound::Unknown { .. } => {
                self.stats.unknown += 1;
                None
            }
        }
    }

    fn handle_response<'f>(&mut self, response: Response<'f>) -> Option<SessionEvent<'f>> {
        let place = match response.id {
            Some(Id::Text(text)) if text == ALIVE => return None,
            Some(Id::Number(id)) => self.pending.binary_search_by_key(&id, |pending| pending.id).ok(),
            _ => None,
        };
        let Some(pending) = place.and_then(|place| self.pending.remove(place)) else {
            self.stats.unmatched += 1;
            return None;
        };
        let Pending { id, method, purpose, .. } = pending;
        match purpose {
            Purpose::Owner => {
                if let Err(error) = response.outcome {
                    self.learn(method, error.error_code());
                }
                Some(SessionEvent::Reply { id, method, response })
            }
            Purpose::Channels => self.handle_channels(id, method, &response),
            Purpose::Login => self.handle_login(method, &response),
        }
    }

    /// What a refusal says of the session itself; whether the same may succeed once the tokens are renewed.
    fn learn(&mut self, method: Method, code: Option<ErrorCode>) -> bool {
        let is_matching = method.is_matching();
        match code {
            // The server has counted otherwise: its pool is empty.
            Some(ErrorCode::TooManyRequests) if is_matching => self.matching_credits.drain(self.now),
            Some(ErrorCode::TooManyRequests) => self.other_credits.drain(self.now),
            // The tokens are over before their time. A renewal that is refused ends the session, and the next one logs in
            // anew; where there is nothing to renew with, one is on its way.
            Some(ErrorCode::Unauthorized) if method.is_private() && !self.refresh_token.is_empty() => {
                self.refresh_at = self.now;
                return true;
            }
            _ => {}
        }
        false
    }

    fn handle_channels<'f>(
        &mut self,
        id: i64,
        method: Method,
        response: &Response<'f>,
    ) -> Option<SessionEvent<'f>> {
        let is_end = matches!(method, Method::PublicUnsubscribe | Method::PrivateUnsubscribe);
        let (accepted, refused) = match response.outcome {
            _ if is_end => {
                self.channels.on_unsubscribed(id);
                return None;
            }
            Ok(result) => {
                self.channels.on_subscribed(id, &result.parse::<List<'_, Text<'_>>>().unwrap_or_default())
            }
            Err(error) => {
                let code = error.error_code();
                let is_retryable = code.is_some_and(ErrorCode::is_retryable) || self.learn(method, code);
                (0, self.channels.on_error(id, is_retryable))
            }
        };
        Some(SessionEvent::Subscribed { accepted, refused })
    }

    fn handle_login<'f>(&mut self, method: Method, response: &Response<'f>) -> Option<SessionEvent<'f>> {
        let result = match response.outcome {
            Ok(result) => result,
            Err(error) => return Some(self.refuse_login(method, Some(error))),
        };
        if method == Method::Auth {
            let Ok(auth) = result.parse::<AuthResult<'_>>() else {
                return Some(self.refuse_login(method, None));
            };
            self.refresh_token = Zeroizing::new(auth.refresh_token.expose().to_cow().into_owned());
            self.scope = auth.scope.to_cow().into_owned();
            // At four fifths of its life.
            let life = Nanos::from_secs(1).0.saturating_mul(auth.expires_in.max(TOKEN_LIFE_MIN_S)) / 5 * 4;
            self.refresh_at = Nanos(self.now.0.saturating_add(life));
        }
        if self.step == Step::Ready {
            return None;
        }
        let has_key = self.config.key.is_some();
        self.enter(match self.step {
            Step::Hello if has_key => Step::Login,
            Step::Hello | Step::Login => Step::Heartbeat,
            Step::Heartbeat if has_key && self.config.cancel_on_disconnect => Step::CancelOnDisconnect,
            _ => Step::Ready,
        });
        (self.step == Step::Ready).then_some(SessionEvent::Ready)
    }

    fn refuse_login<'f>(&mut self, method: Method, error: Option<ErrorBody<'f>>) -> SessionEvent<'f> {
        self.step = Step::Over;
        SessionEvent::LoginRefused { method, error }
    }

    /// When [`Session::handle_timeout`] or [`Session::poll_transmit`] has something to do, if nothing else happens; none
    /// when the session is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        if self.step == Step::Over {
            return None;
        }
        let reply_at = self.pending.front().map_or(Nanos::MAX, |pending| pending.deadline);
        let next = self.silent_at.min(reply_at);
        if self.step != Step::Ready {
            return Some(next);
        }
        let channels_at = if self.channels.may_be_due() { self.channels_at } else { Nanos::MAX };
        Some(next.min(self.refresh_at).min(channels_at))
    }

    /// What did not happen until now; to be called until there is no more.
    pub fn handle_timeout(&mut self, now: Nanos) -> Option<Expiry> {
        self.now = self.now.max(now);
        if self.step == Step::Over {
            return None;
        }
        if self.now >= self.silent_at {
            self.step = Step::Over;
            return Some(Expiry::Silence);
        }
        while let Some(pending) = self.pending.front().filter(|pending| pending.deadline <= self.now) {
            let Pending { id, method, purpose, .. } = *pending;
            self.pending.pop_front();
            match purpose {
                Purpose::Owner => return Some(Expiry::Request { id, method }),
                Purpose::Login => {
                    self.step = Step::Over;
                    return Some(Expiry::Login { method });
                }
                Purpose::Channels => self.channels.on_timeout(id),
            }
        }
        None
    }

    /// Appends one message to be sent, if there is one; to be called until there is no more.
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        self.now = self.now.max(now);
        if self.step == Step::Over {
            return false;
        }
        if std::mem::take(&mut self.is_test_due) {
            write_request(Id::Text(Text::new(ALIVE)), Method::Test, &Test { expected_result: None }, out);
            let _ = self.other_credits.try_take(self.now);
            return true;
        }
        if self.step != Step::Ready {
            return !std::mem::replace(&mut self.is_step_sent, true) && self.send_step(out);
        }
        if self.now >= self.refresh_at {
            // Not again before the reply: two renewals at once end each other's tokens.
            self.refresh_at = Nanos::MAX;
            let token = std::mem::take(&mut self.refresh_token);
            write_request(Id::Number(self.next_id), Method::Auth, &Auth::refresh(&token), out);
            self.expect_login_reply(Method::Auth);
            return true;
        }
        self.send_channels(out)
    }

    fn send_step(&mut self, out: &mut Vec<u8>) -> bool {
        let id = self.next_id;
        let config = &self.config;
        let method = match (self.step, &config.key, &self.login) {
            (Step::Hello, ..) => {
                let params = Hello {
                    client_name: Text::new(&config.client_name),
                    client_version: Text::new(&config.client_version),
                };
                write_request(Id::Number(id), Method::Hello, &params, out);
                Method::Hello
            }
            (Step::Login, Some(key), Some(login)) => {
                let LoginParams { timestamp_ms, nonce, signature } = login;
                let params = Auth::signature(&key.client_id, *timestamp_ms, nonce, signature.as_str());
                write_request(Id::Number(id), Method::Auth, &params, out);
                Method::Auth
            }
            (Step::Heartbeat, ..) => {
                let interval = config.heartbeat_s.max(SetHeartbeat::INTERVAL_MIN);
                write_request(Id::Number(id), Method::SetHeartbeat, &SetHeartbeat { interval }, out);
                Method::SetHeartbeat
            }
            (Step::CancelOnDisconnect, ..) => {
                let params = SetCancelOnDisconnect { scope: None };
                write_request(Id::Number(id), Method::EnableCancelOnDisconnect, &params, out);
                Method::EnableCancelOnDisconnect
            }
            _ => return false,
        };
        self.expect_login_reply(method);
        true
    }

    fn send_channels(&mut self, out: &mut Vec<u8>) -> bool {
        if self.now < self.channels_at || !self.channels.is_due() {
            return false;
        }
        if let Err(wait_ns) = self.subscribe_credits.try_take(self.now) {
            self.channels_at = Nanos(self.now.0.saturating_add(wait_ns));
            return false;
        }
        let method = self.channels.write_request(
            self.next_id,
            self.config.key.is_some(),
            self.config.subscribe_batch,
            out,
        );
        if let Some(method) = method {
            self.expect_reply(method, Purpose::Channels);
        }
        method.is_some()
    }

    /// A step of login costs credits and does not wait for them.
    fn expect_login_reply(&mut self, method: Method) {
        let _ = self.other_credits.try_take(self.now);
        self.expect_reply(method, Purpose::Login);
    }

    fn expect_reply(&mut self, method: Method, purpose: Purpose) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let deadline = Nanos(self.now.0.saturating_add(self.config.request_timeout.0));
        self.pending.push_back(Pending { id, method, purpose, deadline });
        id
    }

    fn enter(&mut self, step: Step) {
        self.step = step;
        self.is_step_sent = false;
    }

    /// A word of the server.
    fn hear(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        let silence =
            Nanos::from_secs(2 * u64::from(self.config.heartbeat_s.max(SetHeartbeat::INTERVAL_MIN)));
        self.silent_at = Nanos(self.now.0.saturating_add(silence.0));
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Session { step, stats, channels, .. } = self;
        f.debug_struct("Session")
            .field("step", step)
            .field("stats", stats)
            .field("channels", channels)
            .finish()
    }
}
