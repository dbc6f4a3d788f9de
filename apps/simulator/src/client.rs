//! A simulated client that exchanges raw bytes with the venue, and records its actions and observations.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use tickpath_nasdaq::soupbintcp::{LoginRequest, Packet, Password, Session, Username, next_packet};
use tickpath_simnet::{ClosedBy, SocketId, StreamEvent, StreamEventKind, StreamRead};
use tickpath_types::{Nanos, Rng, Sequence, SessionId};

use crate::flow::Flow;
use crate::hosts::PASSWORD;
use crate::net::SimNetwork;
use crate::{ClientEvent, ClientEventKind, ClientLog, DisconnectCause};

/// Timeout of a connection attempt, and separately of the login that follows.
const CONNECT_TIMEOUT: Nanos = Nanos::from_millis(2_000);
/// Minimum wait before a client reconnects; a random wait is added.
const BACKOFF_MIN: Nanos = Nanos::from_millis(2);
/// Value of `ClientBehaviour::backoff_max` after the faults have ended.
const RECOVERY_BACKOFF_MAX: Nanos = Nanos::from_millis(50);
/// Maximum length of a client's message with its header.
const PACKET_LEN_MAX: usize = 256;
/// Number of consecutive refused logins after which a client with a `reset_sequence` gives up the messages
/// that it requested. The venue lost them in a power loss that its policy allows, or no longer keeps them.
const REFUSALS_MAX: u32 = 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientBehaviour {
    /// Mean time between two bursts of requests.
    pub(crate) pause: Nanos,
    pub(crate) burst_max: u64,
    /// Probability per burst of a disconnect, with or without a logout, in parts per thousand.
    pub(crate) leave_ppt: u64,
    /// Probability per burst of a pause in reading, in parts per thousand.
    pub(crate) stall_ppt: u64,
    /// Maximum duration of a pause in reading.
    pub(crate) stall_max: Nanos,
    /// Probability per login of a request for messages already received, in parts per thousand.
    pub(crate) repeat_ppt: u64,
    /// Probability per login of a wrong password, in parts per thousand.
    pub(crate) wrong_password_ppt: u64,
    /// Upper bound of the random wait that is added to `BACKOFF_MIN` before a reconnect.
    pub(crate) backoff_max: Nanos,
    /// Silence of the venue after which the client disconnects.
    pub(crate) peer_timeout: Nanos,
    /// Time without a sent message after which the client sends a heartbeat.
    pub(crate) heartbeat: Nanos,
    /// Sequence number requested after repeated login refusals, if the client accepts lost messages: 1 for
    /// the session's first message, or 0 for new messages only.
    pub(crate) reset_sequence: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Disconnected { until: Nanos },
    Connecting { since: Nanos },
    LoggingIn { since: Nanos },
    Active,
}

#[derive(Debug)]
pub(crate) struct Client {
    name: String,
    behaviour: ClientBehaviour,
    rng: Rng,
    /// The order flow; `None` for a client that only reads.
    flow: Option<Flow>,
    pub(crate) log: ClientLog,
    state: State,
    link: Link,
    /// Name of the venue's session to which `next` belongs; blank before the first login.
    numbered_in: Session,
    /// Sequence number of the first message not yet received.
    next: u64,
    /// Sequence number of the next message on this connection.
    cursor: u64,
    next_burst: Nanos,
    stalls_until: Nanos,
    /// Consecutive refused logins.
    refusals: u32,
    /// True once the client makes no more requests.
    is_quiet: bool,
}

/// A client's connections to the venue, one at a time.
#[derive(Debug)]
struct Link {
    network: SimNetwork,
    venue: SocketAddrV4,
    socket: Option<SocketId>,
    /// Connection numbers, from 1, by socket.
    connections: BTreeMap<SocketId, u32>,
    received: Vec<u8>,
    /// Bytes that the network has not accepted yet.
    outgoing: Vec<u8>,
    last_received: Nanos,
    last_sent: Nanos,
}

impl Link {
    fn new(network: SimNetwork, venue: SocketAddrV4) -> Link {
        Link {
            network,
            venue,
            socket: None,
            connections: BTreeMap::new(),
            received: Vec::new(),
            outgoing: Vec::new(),
            last_received: Nanos::ZERO,
            last_sent: Nanos::ZERO,
        }
    }

    fn connect(&mut self) {
        let socket = self.network.connect(self.venue);
        self.socket = Some(socket);
        self.connections.insert(socket, self.connections.len() as u32 + 1);
        self.received.clear();
        self.outgoing.clear();
    }

    fn push(&mut self, now: Nanos, packet: &Packet<'_>) {
        let mut bytes = [0; PACKET_LEN_MAX];
        let len = packet.encode(&mut bytes).expect("no packet of a client is longer");
        self.outgoing.extend_from_slice(&bytes[..len]);
        self.last_sent = now;
    }

    fn close(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.network.wires().network.close(socket);
        }
        self.outgoing.clear();
    }

    fn cause(&self) -> DisconnectCause {
        let closed_by = self.socket.and_then(|socket| self.network.wires().network.closed_by(socket));
        if closed_by == Some(ClosedBy::Network) { DisconnectCause::Network } else { DisconnectCause::Venue }
    }
}

impl ClientLog {
    /// Inserts an event that the network recorded at the venue's end of a connection, in time order.
    pub(crate) fn insert_stream_event(&mut self, stream_event: &StreamEvent, connection: u32) {
        let kind = match &stream_event.kind {
            StreamEventKind::Read { kernel_ns, bytes } => {
                ClientEventKind::ReadByVenue { kernel_ns: *kernel_ns, bytes: bytes.clone() }
            }
            StreamEventKind::Closed => ClientEventKind::DisconnectedAtVenue,
        };
        let place = self.events.partition_point(|event| event.at <= stream_event.at);
        self.events.insert(place, ClientEvent { at: stream_event.at, connection, kind });
    }
}

impl Client {
    pub(crate) fn new(
        session: SessionId,
        name: &str,
        network: SimNetwork,
        venue: SocketAddrV4,
        behaviour: ClientBehaviour,
        flow: Option<Flow>,
        seed: u64,
    ) -> Client {
        Client {
            name: name.to_owned(),
            behaviour,
            rng: Rng::new(seed),
            flow,
            log: ClientLog { session, events: Vec::new() },
            state: State::Disconnected { until: Nanos::ZERO },
            link: Link::new(network, venue),
            numbered_in: Session::BLANK,
            next: 1,
            cursor: 0,
            next_burst: Nanos::ZERO,
            stalls_until: Nanos::ZERO,
            refusals: 0,
            is_quiet: false,
        }
    }

    /// Does the work that is due; returns true if there was any. `time_of_day` is by the venue's clock.
    pub(crate) fn step(&mut self, now: Nanos, time_of_day: Nanos) -> bool {
        match self.state {
            State::Disconnected { until } if now < until => false,
            State::Disconnected { .. } => self.connect(now),
            State::Connecting { since } => self.await_connection(now, since),
            State::LoggingIn { since } => {
                let has_read = self.read(now);
                if matches!(self.state, State::LoggingIn { .. }) && now >= since + CONNECT_TIMEOUT {
                    self.disconnect(now, DisconnectCause::Client);
                }
                has_read | self.flush(now)
            }
            State::Active => {
                let has_read = now >= self.stalls_until && self.read(now);
                has_read | self.act(now, time_of_day) | self.flush(now)
            }
        }
    }

    /// Returns the time by which `step` must be called again, if nothing arrives.
    pub(crate) fn next_due(&self) -> Nanos {
        match self.state {
            State::Disconnected { until } => until,
            State::Connecting { since } | State::LoggingIn { since } => since + CONNECT_TIMEOUT,
            State::Active => {
                let burst = if self.is_quiet { Nanos(u64::MAX) } else { self.next_burst };
                let silence = self.link.last_received + self.behaviour.peer_timeout;
                let heartbeat = self.link.last_sent + self.behaviour.heartbeat;
                let until = self.stalls_until;
                burst.min(silence).min(heartbeat).min(if until.0 == 0 { Nanos(u64::MAX) } else { until })
            }
        }
    }

    /// Ends requests, pauses in reading and wrong passwords. A disconnected client reconnects immediately.
    pub(crate) fn quiesce(&mut self) {
        self.is_quiet = true;
        self.stalls_until = Nanos::ZERO;
        self.behaviour.wrong_password_ppt = 0;
        self.behaviour.backoff_max = RECOVERY_BACKOFF_MAX;
        if let State::Disconnected { until } = &mut self.state {
            *until = Nanos::ZERO;
        }
    }

    /// Crashes the client's process; its received messages survive.
    pub(crate) fn crash(&mut self, now: Nanos, restart_at: Nanos) {
        if self.link.socket.is_some() {
            self.disconnect(now, DisconnectCause::ClientCrash);
        }
        self.state = State::Disconnected { until: restart_at };
    }

    /// Returns true if the client is logged in and has nothing to send.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.state == State::Active && self.link.outgoing.is_empty()
    }

    /// Handles the network's event on a connection of this client; returns false for another connection.
    pub(crate) fn on_stream_event(&mut self, stream_event: &StreamEvent) -> bool {
        let Some(connection) = self.link.connections.get(&stream_event.peer).copied() else { return false };
        self.log.insert_stream_event(stream_event, connection);
        true
    }

    fn record(&mut self, now: Nanos, kind: ClientEventKind) {
        let connection = self.link.connections.len() as u32;
        self.log.events.push(ClientEvent { at: now, connection, kind });
    }

    fn connect(&mut self, now: Nanos) -> bool {
        self.link.connect();
        self.state = State::Connecting { since: now };
        true
    }

    fn await_connection(&mut self, now: Nanos, since: Nanos) -> bool {
        let Some(socket) = self.link.socket else { return false };
        let is_connected = self.link.network.wires().network.poll_connected(socket);
        match is_connected {
            Ok(true) => {
                self.record(now, ClientEventKind::Connected);
                self.log_in(now);
                self.state = State::LoggingIn { since: now };
                true
            }
            Ok(false) if now < since + CONNECT_TIMEOUT => false,
            _ => {
                self.link.close();
                self.schedule_reconnect(now);
                true
            }
        }
    }

    fn log_in(&mut self, now: Nanos) {
        let received_count = self.next.saturating_sub(1);
        let sequence = match self.rng.below(1_000) < self.behaviour.repeat_ppt && received_count > 0 {
            true => 1 + self.rng.below(received_count),
            false => self.next,
        };
        let is_wrong = self.rng.below(1_000) < self.behaviour.wrong_password_ppt;
        let password = if is_wrong { "wrong" } else { PASSWORD };
        let login = LoginRequest {
            username: Username::new(&self.name).expect("names are short"),
            password: Password::new(password).expect("passwords are short"),
            session: self.numbered_in,
            sequence: Sequence(sequence),
            heartbeat_timeout: None,
        };
        self.link.push(now, &Packet::LoginRequest(login));
        self.record(now, ClientEventKind::LoginSent { sequence: Sequence(sequence) });
        self.flush(now);
    }

    /// Sends as many waiting bytes as the network accepts. Returns true if it accepted any, or if the write
    /// failed and the client disconnected.
    fn flush(&mut self, now: Nanos) -> bool {
        let Some(socket) = self.link.socket.filter(|_| !self.link.outgoing.is_empty()) else { return false };
        let written = self.link.network.wires().network.write(socket, &self.link.outgoing);
        match written {
            Ok(count) => {
                self.link.outgoing.drain(..count);
                count > 0
            }
            Err(_) => {
                self.disconnect(now, self.link.cause());
                true
            }
        }
    }

    fn read(&mut self, now: Nanos) -> bool {
        let Some(socket) = self.link.socket else { return false };
        let mut bytes = [0; 4_096];
        let read = self.link.network.wires().network.read(socket, &mut bytes);
        match read {
            Ok(StreamRead::Bytes { count, .. }) => {
                self.link.received.extend_from_slice(&bytes[..count]);
                self.link.last_received = now;
                self.take_packets(now);
                true
            }
            Ok(StreamRead::Empty) => false,
            Ok(StreamRead::End) | Err(_) => {
                self.disconnect(now, self.link.cause());
                true
            }
        }
    }

    fn take_packets(&mut self, now: Nanos) {
        let received = std::mem::take(&mut self.link.received);
        let mut taken = 0;
        while self.link.socket.is_some() {
            match next_packet(&received[taken..]) {
                Ok(Some((packet, used))) => {
                    taken += used;
                    self.take_packet(now, packet);
                }
                Ok(None) => break,
                Err(_) => {
                    self.record(now, ClientEventKind::Garbage);
                    self.disconnect(now, DisconnectCause::Client);
                }
            }
        }
        self.link.received = received[taken..].to_vec();
    }

    fn take_packet(&mut self, now: Nanos, packet: Packet<'_>) {
        let sequence = self.cursor;
        if let Some(kind) = ClientEventKind::of_packet(&packet, &mut self.cursor) {
            self.record(now, kind);
        }
        match packet {
            Packet::LoginAccepted(accepted) => {
                self.numbered_in = accepted.session;
                if self.next == 0 {
                    self.next = self.cursor;
                }
                self.state = State::Active;
                self.refusals = 0;
                self.next_burst = now + self.random_pause();
            }
            Packet::LoginRejected(_) => {
                self.disconnect(now, DisconnectCause::Venue);
                self.refusals += 1;
                if let Some(next) = self.behaviour.reset_sequence
                    && self.refusals >= REFUSALS_MAX
                {
                    (self.refusals, self.numbered_in, self.next) = (0, Session::BLANK, next);
                }
            }
            Packet::SequencedData(message) if sequence == self.next => {
                self.next += 1;
                self.flow.iter_mut().for_each(|flow| flow.on_message(message));
            }
            _ => {}
        }
    }

    fn act(&mut self, now: Nanos, time_of_day: Nanos) -> bool {
        if self.link.socket.is_none() {
            return false;
        }
        if now >= self.link.last_received + self.behaviour.peer_timeout && now >= self.stalls_until {
            self.disconnect(now, DisconnectCause::Client);
            return true;
        }
        if now >= self.stalls_until {
            self.stalls_until = Nanos::ZERO;
        }
        if !self.is_quiet && now >= self.next_burst {
            self.next_burst = now + self.random_pause();
            self.send_burst(now, time_of_day);
            return true;
        }
        if now >= self.link.last_sent + self.behaviour.heartbeat {
            self.link.push(now, &Packet::ClientHeartbeat);
            return true;
        }
        false
    }

    fn send_burst(&mut self, now: Nanos, time_of_day: Nanos) {
        for _ in 0..=self.rng.below(self.behaviour.burst_max) {
            let Some(flow) = &mut self.flow else { break };
            let request = flow.next(&mut self.rng, time_of_day);
            self.link.push(now, &Packet::UnsequencedData(&request));
            self.record(now, ClientEventKind::Sent(request));
        }
        if self.rng.below(1_000) < self.behaviour.stall_ppt {
            self.stalls_until = now + Nanos(self.rng.below(self.behaviour.stall_max.0));
        }
        if self.rng.below(1_000) < self.behaviour.leave_ppt {
            if self.rng.below(2) == 0 {
                self.link.push(now, &Packet::LogoutRequest);
            }
            self.flush(now);
            if self.link.socket.is_some() {
                self.disconnect(now, DisconnectCause::Client);
            }
        }
    }

    fn disconnect(&mut self, now: Nanos, cause: DisconnectCause) {
        self.record(now, ClientEventKind::Disconnected(cause));
        self.link.close();
        self.stalls_until = Nanos::ZERO;
        self.schedule_reconnect(now);
    }

    fn schedule_reconnect(&mut self, now: Nanos) {
        let backoff = BACKOFF_MIN.0 + self.rng.below(self.behaviour.backoff_max.0);
        self.state = State::Disconnected { until: now + Nanos(backoff) };
    }

    fn random_pause(&mut self) -> Nanos {
        Nanos(self.rng.exponential(self.behaviour.pause.0))
    }
}
