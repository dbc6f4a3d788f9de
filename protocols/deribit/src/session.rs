//! A client's session without socket or clock: login, heartbeats, requests and their replies, subscriptions.
//!
//! The owner connects, calls [`Session::start`], sends each message of [`Session::poll_transmit`] as one
//! WebSocket message, and passes received ones to [`Session::handle`]. It calls [`Session::handle_timeout`]
//! at the time of [`Session::poll_timeout`], and `poll_transmit` after each call. When the session ends, the
//! owner reconnects and calls `start` again, which repeats login and subscriptions. It queries the state of
//! requests without a reply.

mod scope;
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
use crate::credits::{CreditPlan, CreditPool, Credits};
use crate::envelope::{ErrorBody, Id, Inbound, Notification, Response, write_request};
use crate::error_code::ErrorCode;
use crate::field::{Field, List};
use crate::messages::{Auth, AuthResult, Hello, SetCancelOnDisconnect, SetHeartbeat, Test};
use crate::method::Method;
use crate::request::REQUEST_LEN_MAX;
use crate::sign::{Signature, client_signature};
use crate::text::Text;

/// A client's key. Its secret is never displayed, and its memory is overwritten when the key is dropped.
#[derive(Clone)]
pub struct Key {
    /// Id of the key, which is not secret.
    pub client_id: String,
    secret: SecretString,
}

impl Key {
    /// Creates a key from its id and its secret.
    #[must_use]
    pub fn new(client_id: impl Into<String>, secret: impl Into<String>) -> Key {
        Key { client_id: client_id.into(), secret: SecretString::from(secret.into()) }
    }

    /// The secret, for signing.
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

/// Authentication method of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A signature: the secret is never sent (`client_signature`).
    #[default]
    Signature,
    /// The secret itself (`client_credentials`): for an inaccurate clock, as signatures expire in a minute.
    Credentials,
}

/// Configuration of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Name of the program, sent to the server.
    pub client_name: String,
    /// Version of the program.
    pub client_version: String,
    /// Key; `None` for public data only.
    pub key: Option<Key>,
    /// Authentication method.
    pub grant: Grant,
    /// Requested token scope, such as `trade:read_write account:read`; if `None`, all that the key allows.
    pub scope: Option<String>,
    /// Seconds between heartbeats, at least [`SetHeartbeat::INTERVAL_MIN`]. The session ends after twice that
    /// time without a message.
    pub heartbeat_s: u32,
    /// Whether the server cancels this connection's orders when it ends; requires a key.
    pub cancel_on_disconnect: bool,
    /// Maximum time until a reply.
    pub request_timeout: Nanos,
    /// Maximum number of requests that await a reply.
    pub pending_max: usize,
    /// Rate limit of requests to the matching engine.
    pub matching: CreditPlan,
    /// Number of channels per subscribe request, at most [`BATCH_CHANNELS_MAX`].
    pub subscribe_batch: usize,
}

impl SessionConfig {
    /// Creates a configuration with 10 s heartbeats, cancel on disconnect, 10 s for a reply, 256 pending
    /// requests, and the lowest tier of order limits.
    #[must_use]
    pub fn new(client_name: &str, client_version: &str, key: Option<Key>) -> SessionConfig {
        SessionConfig {
            client_name: client_name.to_owned(),
            client_version: client_version.to_owned(),
            key,
            grant: Grant::default(),
            scope: None,
            heartbeat_s: SetHeartbeat::INTERVAL_MIN,
            cancel_on_disconnect: true,
            request_timeout: Nanos::from_secs(10),
            pending_max: 256,
            matching: CreditPlan::rate(5, 20),
            subscribe_batch: BATCH_CHANNELS_MAX,
        }
    }
}

/// Reason why a request was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Login is not complete, or the session has ended.
    #[error("the session is not ready: wait for its login")]
    NotReady,
    /// The method requires a key.
    #[error("the method needs a login: give the session a key")]
    NoKey,
    /// The maximum number of requests await replies.
    #[error("too many requests wait for replies")]
    TooManyPending,
    /// The server would end the session because of the rate limit.
    #[error("the rate limit is reached: wait {wait_ns} ns")]
    RateLimit {
        /// Nanoseconds until the request can be sent.
        wait_ns: u64,
    },
    /// The request exceeds the server's maximum length.
    #[error("the request is longer than 32 kB")]
    TooLarge,
}

/// Event for the owner of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SessionEvent<'f> {
    /// Login is complete: requests may be sent.
    Ready,
    /// The reply to a request of the owner.
    Reply {
        /// Id from [`Session::request`].
        id: i64,
        /// Method of the request.
        method: Method,
        /// The reply.
        response: Response<'f>,
    },
    /// Data of a channel.
    Notification(Notification<'f>),
    /// The server processed a subscription request; see [`Session::refused_channels`].
    Subscribed {
        /// Number of channels subscribed.
        accepted: usize,
        /// Number of channels refused: they do not exist, or require more rights.
        refused: usize,
    },
    /// The scope of the token is narrower than requested, see [`Session::missing_scope`].
    ScopeNarrowed,
    /// Login or its renewal was rejected, which ends the session.
    LoginRefused {
        /// Method of the login step.
        method: Method,
        /// Error of the server; `None` if the reply cannot be decoded.
        error: Option<ErrorBody<'f>>,
    },
}

/// A timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// No reply to a request of the owner: it may have been executed or not.
    Request {
        /// Id from [`Session::request`].
        id: i64,
        /// Method of the request.
        method: Method,
    },
    /// No reply to a login step or its renewal, which ends the session.
    Login {
        /// Method of the login step.
        method: Method,
    },
    /// No message from the server, which ends the session.
    Silence,
}

/// Request id of the calls that answer the venue's test requests; their responses are ignored.
const ALIVE: &str = "alive";
/// Minimum token lifetime to assume, in seconds, to avoid continual renewals.
const TOKEN_LIFE_MIN_S: u64 = 10;

/// All pools, each at its index.
const POOLS: [CreditPool; CreditPool::COUNT] = [
    CreditPool::NonMatching,
    CreditPool::GetInstruments,
    CreditPool::Subscribe,
    CreditPool::TransactionLog,
    CreditPool::Matching,
    CreditPool::Quotes,
    CreditPool::CancelAll,
];
/// Pauses after temporarily rejected channel requests: the first one, doubled each time, and the maximum.
const PAUSE_MIN: Nanos = Nanos::from_secs(1);
const PAUSE_MAX: Nanos = Nanos::from_secs(60);

/// Current step of a session.
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

/// Signed login parameters.
struct LoginParams {
    timestamp_ms: u64,
    nonce: String,
    signature: Signature,
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Replies without a matching request, or after its timeout.
    pub unmatched: u64,
    /// Test requests.
    pub test_requests: u64,
    /// Notifications of a later API version.
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
    refresh_at: Nanos,
    /// Scope of the token as granted by the server; empty before login.
    scope: String,
    sid: Option<String>,
    /// Pending requests in the order of ids, which is also that of deadlines.
    pending: VecDeque<Pending>,
    next_id: i64,
    now: Nanos,
    silent_at: Nanos,
    channels: Subscriptions,
    /// Earliest time of the next channel request.
    channels_at: Nanos,
    /// Pause before the next channel request after a temporary rejection.
    channels_pause: Nanos,
    /// Credits by pool index.
    credits: [Credits; CreditPool::COUNT],
    stats: SessionStats,
}

impl Session {
    /// Creates a session that is not started.
    #[must_use]
    pub fn new(config: SessionConfig) -> Session {
        Session {
            step: Step::Over,
            is_step_sent: false,
            is_test_due: false,
            login: None,
            refresh_token: Zeroizing::default(),
            refresh_at: Nanos::MAX,
            scope: String::new(),
            sid: None,
            pending: VecDeque::with_capacity(config.pending_max),
            next_id: 1,
            now: Nanos::ZERO,
            silent_at: Nanos::MAX,
            channels: Subscriptions::default(),
            channels_at: Nanos::ZERO,
            channels_pause: PAUSE_MIN,
            credits: POOLS.map(|pool| Credits::new(pool.plan(config.matching), Nanos::ZERO)),
            stats: SessionStats::default(),
            config,
        }
    }

    /// Starts the session on a new connection. `unix_ms` is the time in milliseconds since 1970 and `nonce` a
    /// unique text; both are signed.
    pub fn start(&mut self, now: Nanos, unix_ms: u64, nonce: &str) {
        let signed = self.config.key.as_ref().filter(|_| self.config.grant == Grant::Signature);
        self.login = signed.map(|key| LoginParams {
            timestamp_ms: unix_ms,
            nonce: nonce.to_owned(),
            signature: client_signature(key.secret().as_bytes(), unix_ms, nonce, ""),
        });
        self.pending.clear();
        self.channels.reset();
        (self.channels_at, self.channels_pause) = (Nanos::ZERO, PAUSE_MIN);
        self.refresh_token = Zeroizing::default();
        self.refresh_at = Nanos::MAX;
        self.scope.clear();
        self.sid = None;
        self.is_test_due = false;
        self.enter(Step::Hello);
        self.hear(now);
    }

    /// Ends the session: nothing is sent, and no reply is expected. Requested channels stay requested.
    pub fn end(&mut self) {
        self.step = Step::Over;
        self.pending.clear();
    }

    /// Sets another key, or none, from the next [`start`](Session::start) on.
    pub fn set_key(&mut self, key: Option<Key>) {
        self.config.key = key;
    }

    /// Whether the client has a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.config.key.is_some()
    }

    /// Id of the key, if any.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.config.key.as_ref().map(|key| key.client_id.as_str())
    }

    /// Withdraws a written request that was not sent: no reply is expected.
    pub fn withdraw(&mut self, id: i64) {
        self.pending.retain(|pending| pending.id != id);
    }

    /// Number of requests to the matching engine that the session's credit estimate allows now.
    #[must_use]
    pub fn matching_requests_left(&self, now: Nanos) -> u64 {
        self.credits[CreditPool::Matching as usize].requests_left(now)
    }

    /// True from login to the end of the session.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.step == Step::Ready
    }

    /// True before the start, and when the connection should be closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// Scope of the token as granted by the server; empty before login. It may be narrower than requested.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The server's id of the session, if any.
    #[must_use]
    pub fn sid(&self) -> Option<&str> {
        self.sid.as_deref()
    }

    /// First element of the requested scope that the token lacks; `None` before login.
    #[must_use]
    pub fn missing_scope(&self) -> Option<&str> {
        let asked = self.config.scope.as_deref().filter(|_| !self.scope.is_empty())?;
        scope::missing(asked, &self.scope)
    }

    /// Whether the token allows orders; true before login and if the server states no scope.
    #[must_use]
    pub fn may_trade(&self) -> bool {
        self.scope.is_empty() || scope::missing(scope::TRADE, &self.scope).is_none()
    }

    /// Counters of the session.
    #[must_use]
    pub const fn stats(&self) -> SessionStats {
        self.stats
    }

    /// The owner's requests without a reply.
    pub fn pending(&self) -> impl Iterator<Item = (i64, Method)> {
        let of_owner = self.pending.iter().filter(|pending| pending.purpose == Purpose::Owner);
        of_owner.map(|pending| (pending.id, pending.method))
    }

    /// Requests a channel, now and after every reconnection.
    ///
    /// # Errors
    /// [`ChannelError`] if there is no channel with this name.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ChannelError> {
        self.channels.add(channel)
    }

    /// Removes a channel.
    pub fn unsubscribe(&mut self, channel: &str) {
        self.channels.remove(channel);
    }

    /// Ends a subscription and, after the reply, subscribes again, to obtain a complete book after a loss.
    /// Returns false if the channel is not requested.
    pub fn resubscribe(&mut self, channel: &str) -> bool {
        self.channels.renew(channel)
    }

    /// Requested channels that the server refused.
    pub fn refused_channels(&self) -> impl Iterator<Item = &str> {
        self.channels.refused()
    }

    /// Number of subscribed channels.
    #[must_use]
    pub fn active_channels(&self) -> usize {
        self.channels.active_count()
    }

    /// Number of channels whose subscription is ending and which may still deliver data.
    #[must_use]
    pub fn ending_channels(&self) -> usize {
        self.channels.ending_count()
    }

    /// Appends a request, and returns its id, which its reply carries.
    ///
    /// # Errors
    /// [`RequestError`]; nothing is appended then.
    ///
    /// Never inlined, so that requests and warm-up run the same code.
    #[inline(never)]
    pub fn request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
        out: &mut Vec<u8>,
    ) -> Result<i64, RequestError> {
        self.now = self.now.max(now);
        self.check_step(method)?;
        let start = out.len();
        write_request(Id::Number(self.next_id), method, params, out);
        if out.len() - start > REQUEST_LEN_MAX {
            out.truncate(start);
            return Err(RequestError::TooLarge);
        }
        if let Err(wait_ns) = self.take_credits(method) {
            out.truncate(start);
            return Err(RequestError::RateLimit { wait_ns });
        }
        if method == Method::Logout {
            // The only reply is the end of the connection.
            self.step = Step::Over;
            self.next_id += 1;
            return Ok(self.next_id - 1);
        }
        Ok(self.expect_reply(method, Purpose::Owner))
    }

    /// Checks whether a request could be made now, apart from its length. Changes nothing.
    ///
    /// # Errors
    /// As for [`request`](Session::request).
    #[inline]
    pub fn check_request(&self, now: Nanos, method: Method) -> Result<(), RequestError> {
        self.check_step(method)?;
        let wait = |pool: CreditPool| self.credits[pool as usize].wait_ns(self.now.max(now));
        let also = if method == Method::CancelByLabel { wait(CreditPool::CancelAll) } else { 0 };
        match wait(CreditPool::of(method)).max(also) {
            0 => Ok(()),
            wait_ns => Err(RequestError::RateLimit { wait_ns }),
        }
    }

    #[inline]
    fn check_step(&self, method: Method) -> Result<(), RequestError> {
        if self.step != Step::Ready {
            return Err(RequestError::NotReady);
        }
        if method.is_private() && self.config.key.is_none() {
            return Err(RequestError::NoKey);
        }
        if self.pending.len() >= self.config.pending_max {
            return Err(RequestError::TooManyPending);
        }
        Ok(())
    }

    /// Does the same as [`request`](Session::request) and reverts the session's state, to warm up code and data
    /// in the CPU caches.
    pub fn rehearse_request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
        out: &mut Vec<u8>,
    ) {
        let (step, time, next_id) = (self.step, self.now, self.next_id);
        let (credits, pending) = (self.credits.clone(), self.pending.len());
        // A request that would be refused now warms up the code as far as it gets.
        let _ = self.request(now, method, params, out);
        self.pending.truncate(pending);
        (self.step, self.now, self.next_id, self.credits) = (step, time, next_id, credits);
    }

    #[inline]
    fn credits(&mut self, pool: CreditPool) -> &mut Credits {
        &mut self.credits[pool as usize]
    }

    #[inline]
    fn take_credits(&mut self, method: Method) -> Result<(), u64> {
        let now = self.now;
        if method == Method::CancelByLabel {
            // The server uses either pool, depending on a currency.
            self.credits(CreditPool::CancelAll).try_take(now)?;
        }
        self.credits(CreditPool::of(method)).try_take(now)
    }

    /// Processes a message of the server, see [`Inbound::parse`]. The owner counts unparsable messages.
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

    /// Updates the session after a rejection. Returns whether a retry may succeed after a token renewal.
    fn learn(&mut self, method: Method, code: Option<ErrorCode>) -> bool {
        let now = self.now;
        match code {
            // The server counts differently: its pool is empty.
            Some(ErrorCode::TooManyRequests) => self.credits(CreditPool::of(method)).drain(now),
            // The tokens expired early. A rejected renewal ends the session, and the next session logs in
            // again. Without a refresh token, a renewal is already in progress.
            Some(ErrorCode::Unauthorized) if method.is_private() && !self.refresh_token.is_empty() => {
                self.refresh_at = self.now;
                return true;
            }
            _ => {}
        }
        false
    }

    /// Handles a rejected channel request. Returns whether to resend it, possibly after a pause.
    fn refuse_channels(&mut self, method: Method, code: Option<ErrorCode>) -> bool {
        let is_passing = code.is_some_and(ErrorCode::is_retryable);
        let is_retryable = self.learn(method, code) || is_passing;
        if is_passing && code != Some(ErrorCode::TooManyRequests) {
            self.channels_at = Nanos(self.now.0.saturating_add(self.channels_pause.0));
            self.channels_pause = Nanos((self.channels_pause.0 * 2).min(PAUSE_MAX.0));
        }
        is_retryable
    }

    fn handle_channels<'f>(
        &mut self,
        id: i64,
        method: Method,
        response: &Response<'f>,
    ) -> Option<SessionEvent<'f>> {
        let is_end = matches!(method, Method::PublicUnsubscribe | Method::PrivateUnsubscribe);
        let (accepted, refused) = match response.outcome {
            Ok(_) if is_end => {
                self.channels.on_unsubscribed(id);
                return None;
            }
            Err(error) if is_end => {
                // The subscription may still exist, so it must be ended.
                match self.refuse_channels(method, error.error_code()) {
                    true => self.channels.on_timeout(id),
                    false => self.channels.on_unsubscribed(id),
                }
                return None;
            }
            Ok(result) => {
                self.channels_pause = PAUSE_MIN;
                self.channels.on_subscribed(id, &result.parse::<List<'_, Text<'_>>>().unwrap_or_default())
            }
            Err(error) => {
                let is_retryable = self.refuse_channels(method, error.error_code());
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
            auth.scope.to_cow().as_ref().clone_into(&mut self.scope);
            self.sid = auth.sid.map(|sid| sid.to_cow().into_owned());
            self.refresh_token = Zeroizing::new(auth.refresh_token.expose().to_cow().into_owned());
            // Renewal at four fifths of the lifetime.
            let life = Nanos::from_secs(1).0.saturating_mul(auth.expires_in.max(TOKEN_LIFE_MIN_S)) / 5 * 4;
            self.refresh_at = Nanos(self.now.0.saturating_add(life));
        }
        if self.step == Step::Ready {
            return None;
        }
        let has_key = self.config.key.is_some();
        // A client without permission to trade has no orders to cancel, and may not call the method.
        let cancels = has_key && self.config.cancel_on_disconnect && self.may_trade();
        self.enter(match self.step {
            Step::Hello if has_key => Step::Login,
            Step::Hello | Step::Login => Step::Heartbeat,
            Step::Heartbeat if cancels => Step::CancelOnDisconnect,
            _ => Step::Ready,
        });
        if method == Method::Auth && self.missing_scope().is_some() {
            return Some(SessionEvent::ScopeNarrowed);
        }
        (self.step == Step::Ready).then_some(SessionEvent::Ready)
    }

    fn refuse_login<'f>(&mut self, method: Method, error: Option<ErrorBody<'f>>) -> SessionEvent<'f> {
        self.step = Step::Over;
        SessionEvent::LoginRefused { method, error }
    }

    /// Time of the next action of [`Session::handle_timeout`] or [`Session::poll_transmit`] without other
    /// events; `None` if the session has ended.
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

    /// Returns the next timeout; call it until `None`.
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

    /// Appends one message to send, if any; call it until false.
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        self.now = self.now.max(now);
        if self.step == Step::Over {
            return false;
        }
        if std::mem::take(&mut self.is_test_due) {
            write_request(Id::Text(Text::new(ALIVE)), Method::Test, &Test { expected_result: None }, out);
            let _ = self.take_credits(Method::Test);
            return true;
        }
        if self.step != Step::Ready {
            return !std::mem::replace(&mut self.is_step_sent, true) && self.send_step(out);
        }
        if self.now >= self.refresh_at {
            // Not again before the reply: two concurrent renewals invalidate each other's tokens.
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
        let scope = config.scope.as_deref().map(Text::new);
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
                let signed = Auth::signature(&key.client_id, *timestamp_ms, nonce, signature.as_str());
                write_request(Id::Number(id), Method::Auth, &Auth { scope, ..signed }, out);
                Method::Auth
            }
            (Step::Login, Some(key), None) => {
                let shown = Auth::credentials(&key.client_id, key.secret());
                write_request(Id::Number(id), Method::Auth, &Auth { scope, ..shown }, out);
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
        let now = self.now;
        if let Err(wait_ns) = self.credits(CreditPool::Subscribe).try_take(now) {
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

    /// A login step costs credits, but does not wait for them.
    fn expect_login_reply(&mut self, method: Method) {
        let _ = self.take_credits(method);
        self.expect_reply(method, Purpose::Login);
    }

    #[inline]
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

    /// Records the arrival of a message from the server.
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
