//! Client sessions: admits clients, takes their requests, and sends them the core's events.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use tickpath_admission::{LoginGuard, LoginPolicy};
use tickpath_agent::TscClock;
use tickpath_gateway_core::{Bans, EventSink, Venue};
use tickpath_gateway_io::{ClientId, ClientPort, ClientPortEvent, LeaveReason, Login, LoginId};
use tickpath_gateway_protocol::frame::{RefusalReason, capability};
use tickpath_gateway_protocol::{
    AckStatus, AckType, ErrorCode, Event, EventKind, ExternalLatency, OrderAck, Origin, RequestKind, Text,
};
use tickpath_types::Nanos;

use crate::metrics::{AtDoor, Exception, Function, GatewayMetrics};
use crate::recorder::Recorded;
use crate::users::{CHECKS_MAX, CheckAnswer, LoginChecker};

/// Maximum number of client port events handled in one duty cycle.
const EVENTS_PER_CYCLE: usize = 64;

/// A caller whose password is being checked.
#[derive(Clone, Copy)]
struct Checked {
    check: u64,
    login: LoginId,
    /// User id of its process.
    uid: u32,
    name: Text<32>,
    wants_trading: bool,
}

/// A caller whose password check has not started.
struct Waiting {
    login: Login,
    /// Time of the check.
    at: Nanos,
}

/// A request of this duty cycle; its latencies are recorded once it is written.
#[derive(Clone, Copy, Debug)]
struct Taken {
    kind: RequestKind,
    /// Creation time at the client, by the monotonic clock; 0 if the client does not give it.
    create_ns: u64,
    /// Time of removal from its ring.
    at: Nanos,
    /// Time when its handling ended.
    done: Nanos,
    /// Whether it was passed to the venue's connection.
    is_received: bool,
}

/// Capabilities of every client that follow from the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Clients' orders are cancelled when they disconnect.
    pub cancels: bool,
    /// Orders trade real money.
    pub is_production: bool,
    /// No order is sent to the venue.
    pub is_dry_run: bool,
}

/// The client port, and the clients that are logged in.
pub struct Doorway {
    door: ClientPort,
    checker: LoginChecker,
    bans: Bans,
    /// Whether each user has an account, by user index.
    traders: Vec<bool>,
    capabilities: Capabilities,
    clients: HashMap<u32, ClientId, FxBuildHasher>,
    logins: Vec<Checked>,
    /// Wrong passwords, by gateway user and by system user.
    guard: LoginGuard<u32>,
    waiting: Vec<Waiting>,
    metrics: Arc<GatewayMetrics>,
    /// Requests handled in this duty cycle.
    taken: Vec<Taken>,
    /// The request being handled was passed to the venue's connection.
    is_received: bool,
    ahead_ns: u64,
}

impl Doorway {
    /// Opens the sessions on a client port. `traders` says for each user whether it has an account.
    #[must_use]
    pub fn new(
        door: ClientPort,
        checker: LoginChecker,
        bans: Bans,
        traders: Vec<bool>,
        capabilities: Capabilities,
        metrics: Arc<GatewayMetrics>,
    ) -> Doorway {
        let guard = LoginGuard::new(LoginPolicy::default(), traders.len());
        let clients = HashMap::with_capacity_and_hasher(2 * door.config().clients_max, FxBuildHasher);
        Doorway {
            door,
            checker,
            bans,
            traders,
            capabilities,
            clients,
            logins: Vec::with_capacity(CHECKS_MAX),
            guard,
            waiting: Vec::new(),
            metrics,
            taken: Vec::with_capacity(EVENTS_PER_CYCLE),
            is_received: false,
            ahead_ns: 0,
        }
    }

    /// The gateway's metrics.
    #[must_use]
    pub fn metrics(&self) -> &GatewayMetrics {
        &self.metrics
    }

    /// Records the latencies of this duty cycle's requests after they are written, so that none waits for it.
    #[inline]
    pub fn note_written(&mut self, now: Nanos) {
        let metrics = &self.metrics;
        for Taken { kind, create_ns, at, done, is_received } in self.taken.drain(..) {
            metrics.count_request(kind);
            metrics.profile(Function::Request).record(done.since(at).0);
            if create_ns != 0 {
                let taken_ns = at.0.saturating_sub(self.ahead_ns);
                metrics.inter_process.record(taken_ns.saturating_sub(create_ns));
            }
            if is_received {
                metrics.request_latency(kind).record(now.since(at).0);
            }
        }
    }

    /// Publishes the port's counters of callers and clients to the metrics.
    pub fn note_door(&self) {
        let counters = self.door.counters();
        for (what, count) in [
            (AtDoor::Called, counters.calls),
            (AtDoor::Admitted, counters.admitted),
            (AtDoor::Refused, counters.refused),
            (AtDoor::Malformed, counters.malformed),
            (AtDoor::TimedOut, counters.timed_out),
            (AtDoor::GaveUp, counters.gave_up),
            (AtDoor::Failed, counters.failed),
            (AtDoor::Closed, counters.closed),
            (AtDoor::Died, counters.died),
            (AtDoor::TooSlow, counters.too_slow),
            (AtDoor::Broken, counters.broken),
            (AtDoor::Dismissed, counters.dismissed),
            (AtDoor::WrongPong, counters.wrong_pongs),
            (AtDoor::Evicted, counters.evicted),
        ] {
            self.metrics.set_door(what, count);
        }
        self.metrics.set_exceptions(Exception::LoginRefused, counters.refused);
    }

    /// The client port.
    #[must_use]
    pub const fn door(&self) -> &ClientPort {
        &self.door
    }

    /// Handles pending events of the client port; returns their number.
    #[inline]
    pub fn poll(
        &mut self,
        now: Nanos,
        ahead_ns: u64,
        clock: TscClock,
        core: &mut Recorded,
        venue: &mut impl Venue,
    ) -> usize {
        let mut work = 0;
        self.ahead_ns = ahead_ns;
        while work < EVENTS_PER_CYCLE
            && let Some(event) = self.door.poll(Nanos(now.0.saturating_sub(ahead_ns)))
        {
            work += 1;
            match event {
                ClientPortEvent::Request(client, request) => {
                    let at = clock.now();
                    self.is_received = false;
                    core.handle_request(at, client.number(), &request, self, venue);
                    self.taken.push(Taken {
                        kind: request.header.kind,
                        create_ns: request.header.create_ns,
                        at,
                        done: clock.now(),
                        is_received: self.is_received && !self.capabilities.is_dry_run,
                    });
                }
                ClientPortEvent::Login(login) => self.put_off(now, login),
                ClientPortEvent::Left(client, reason) => self.leave(now, client, reason, core),
                ClientPortEvent::Heartbeat(client, heartbeat) => {
                    let metrics = self.metrics.client(client.slot());
                    metrics.to_client.record(heartbeat.to_client_ns);
                    metrics.to_gateway.record(heartbeat.to_gateway_ns);
                }
            }
        }
        if !self.waiting.is_empty() {
            work += self.check_due(now);
        }
        if self.checker.is_waiting()
            && let Some(answer) = self.checker.poll()
        {
            self.settle(now, answer, core);
            work += 1;
        }
        work
    }

    #[cold]
    fn leave(&mut self, now: Nanos, client: ClientId, reason: LeaveReason, core: &mut Recorded) {
        match reason {
            LeaveReason::TooSlow => self.metrics.count_exception(Exception::SlowClient),
            LeaveReason::Broken => self.metrics.count_exception(Exception::BadClient),
            _ => {}
        }
        self.metrics.client(client.slot()).leave();
        self.clients.remove(&client.number());
        core.handle_leave(now, client.number());
    }

    /// Queues a caller's password check: at once, or after a delay if there were too many wrong passwords.
    #[cold]
    fn put_off(&mut self, now: Nanos, login: Login) {
        let user = self.checker.user(login.hello.user.as_str()).map(usize::from);
        let at = now + self.guard.delay(now, user, login.peer.uid);
        let is_trusted = self.guard.is_trusted(user, login.peer.uid);
        self.door.postpone(login.id, user, Nanos(at.0.saturating_sub(self.ahead_ns)), is_trusted);
        // Callers that have left are dropped; the socket bounds the number of the others.
        self.waiting.retain(|waiting| self.door.is_waiting(waiting.login.id));
        self.waiting.push(Waiting { login, at });
    }

    /// Submits the password checks that are due, as many as the checker accepts; returns their number.
    #[cold]
    fn check_due(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while let Some(place) = self.waiting.iter().position(|waiting| now >= waiting.at) {
            let Login { id, hello, peer } = &self.waiting[place].login;
            let Some(check) = self.checker.submit(0, hello.user.as_str(), &hello.password) else { break };
            let (name, wants_trading) = (hello.name, hello.wants_trading());
            self.logins.push(Checked { check, login: *id, uid: peer.uid, name, wants_trading });
            self.waiting.swap_remove(place);
            count += 1;
        }
        count
    }

    /// Admits a caller if its password is correct and it is not banned.
    #[cold]
    fn settle(&mut self, now: Nanos, answer: CheckAnswer, core: &mut Recorded) {
        let Some(place) = self.logins.iter().position(|login| login.check == answer.id) else { return };
        let Checked { login, uid, name, wants_trading, .. } = self.logins.swap_remove(place);
        let Some(user) = answer.user else {
            return self.door.refuse(login, RefusalReason::CREDENTIALS, Nanos::ZERO);
        };
        self.guard.record_success(usize::from(user), uid);
        // Only now: only a caller that knows the password may learn that the user exists and is banned.
        if let Some(until) = self.bans.until(now, usize::from(user)) {
            return self.door.refuse(login, RefusalReason::BANNED, Nanos(until.0.saturating_sub(now.0)));
        }
        let has_account = self.traders.get(usize::from(user)).copied().unwrap_or(false);
        if wants_trading && !has_account {
            return self.door.refuse(login, RefusalReason::NO_TRADING, Nanos::ZERO);
        }
        let Capabilities { cancels, is_production, is_dry_run } = self.capabilities;
        let mut all = 0;
        for (is_so, bit) in [
            (wants_trading, capability::TRADING),
            (cancels && wants_trading, capability::CANCEL_ON_DISCONNECT),
            (is_production, capability::PRODUCTION),
            (is_dry_run, capability::DRY_RUN),
        ] {
            all |= if is_so { bit } else { 0 };
        }
        if let Some(client) = self.door.admit(login, all) {
            self.clients.insert(client.number(), client);
            let user_name = core.user_name(user).unwrap_or_default();
            let place = self.metrics.client(client.slot());
            place.join(name.as_str(), user_name, client.number(), wants_trading);
            core.handle_join(now, client.number(), user, wants_trading);
        }
    }

    /// Admits no more clients and disconnects all.
    pub fn stop(&mut self) {
        self.door.stop();
    }
}

impl Doorway {
    /// Records metrics of an event as it was put into a ring.
    #[inline]
    fn note(&mut self, event: &Event) {
        self.metrics.count_event(event.header.kind);
        match event.header.kind {
            EventKind::ORDER_ACK => {
                if let Some(ack) = event.body::<OrderAck>() {
                    self.note_ack(ack.request, ack.origin, ack.status, ack.error, ack.round_trip_ns);
                }
            }
            EventKind::MASS_QUOTE_ACK | EventKind::CANCEL_QUOTES_ACK | EventKind::CANCEL_ALL_ACK => {
                if let Some(ack) = event.quote_ack() {
                    self.note_ack(ack.request, ack.origin, ack.status, ack.error, ack.round_trip_ns);
                }
            }
            _ => {}
        }
    }

    fn note_ack(
        &mut self,
        request: AckType,
        origin: Origin,
        status: AckStatus,
        error: ErrorCode,
        round_trip_ns: u64,
    ) {
        let kind = kind_of(request);
        match (origin, status) {
            (Origin::EXCHANGE, _) => self.metrics.round_trip(kind).record(round_trip_ns),
            // The cancels of a cancel-all leave later.
            (Origin::GATEWAY, AckStatus::RECEIVED) => {
                self.is_received = error == ErrorCode::default() && request != AckType::CANCEL_ALL;
            }
            (Origin::GATEWAY, AckStatus::REJECTED) => self.metrics.count_refusal(error),
            (_, AckStatus::TIMEOUT) => self.metrics.count_exception(Exception::Timeout),
            _ => {}
        }
    }

    /// Records the age of market data and its latency in the gateway.
    #[inline]
    fn note_broadcast(&self, event: &Event) {
        let header = &event.header;
        if header.receive_ns == 0 || !event.is_last_in_batch() {
            return;
        }
        self.metrics.end_to_end.record(header.send_ns.saturating_sub(header.receive_ns));
        let stream = usize::from(header.stream).saturating_sub(1);
        if header.origin_utc_ns != 0 {
            let received_utc = header.receive_ns.saturating_add(self.ahead_ns);
            self.metrics.market_data(stream).record(received_utc.saturating_sub(header.origin_utc_ns));
        }
        if let Some(latency) = event.body::<ExternalLatency>() {
            self.metrics.external(stream).record(latency.round_trip_ns);
        }
    }
}

impl EventSink for Doorway {
    #[inline]
    fn send(&mut self, client: u32, event: Event) {
        self.deliver(client, event, false);
    }

    fn deliver(&mut self, client: u32, mut event: Event, is_rehearsal: bool) {
        // A client whose ring is full is disconnected; later polls report it.
        if let Some(id) = self.clients.get(&client)
            && self.door.deliver(*id, &mut event, is_rehearsal)
        {
            self.note(&event);
        }
    }

    #[inline]
    fn broadcast(&mut self, mut event: Event) {
        self.door.broadcast(&mut event);
        self.note(&event);
        self.note_broadcast(&event);
    }

    fn follow(&mut self, client: u32, symbol: u32) {
        if let Some(client) = self.clients.get(&client) {
            let _ = self.door.send_instrument_ready(*client, symbol);
        }
    }

    fn room(&self, client: u32) -> usize {
        self.clients.get(&client).map_or(0, |client| self.door.room(*client) as usize)
    }
}

/// Kind of the request that an ack answers.
const fn kind_of(ack: AckType) -> RequestKind {
    match ack {
        AckType::CREATE => RequestKind::CREATE_ORDER,
        AckType::MODIFY => RequestKind::MODIFY_ORDER,
        AckType::CANCEL => RequestKind::CANCEL_ORDER,
        AckType::CANCEL_ALL => RequestKind::CANCEL_ALL,
        AckType::MASS_QUOTE => RequestKind::MASS_QUOTE,
        AckType::CANCEL_QUOTES => RequestKind::CANCEL_QUOTES,
        AckType::SET_RISK_LIMITS => RequestKind::SET_RISK_LIMITS,
        // An unknown kind.
        _ => RequestKind(0),
    }
}
