//! Accepting connections, and reading their requests.

use std::net::Ipv4Addr;

use tickpath_agent::AgentError;
use tickpath_faults::failpoint;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50;
use tickpath_nasdaq::soupbintcp::ServerEvent;
use tickpath_net::{Fill, Network, TcpConnection};
use tickpath_timing::{Function, Hop, Token, Tracer};
use tickpath_types::{Nanos, SessionId};
use tickpath_venue::{Admission, Arrival, FrontAdmission, OrderServerCounters, UserRegistry};

use super::connections::Connection;
use super::listener::Ready;
use super::{FRONT_REQUESTS_PER_CYCLE, MALFORMED_MAX, OrderServer, REQUESTS_PER_READ_MAX, TIMED_EVERY};
use crate::soup_endpoint::SoupEndpoint;
use crate::soup_link::{DisconnectReason, SoupLink};

/// Times at which a message was received and read.
struct Received {
    /// Kernel receive time, in nanoseconds of the kernel's clock; 0 when unknown.
    kernel_ns: u64,
    /// Kernel receive time, in ticks of the time stamp counter; 0 when unknown or not traced.
    received_at: u64,
    /// Read time, in ticks of the time stamp counter.
    read_at: u64,
}

impl<T: Tracer, N: Network> SoupEndpoint<N> for OrderServer<T, N> {
    const ACCEPTS_MAX: usize = 4; // each costs some system calls

    fn next_connection(&mut self, now: Nanos) -> Option<TcpConnection<N>> {
        // Accepting may read once from the connection to evict, so the batch needs capacity for a read.
        if self.entry.sequencer.remaining_capacity() < REQUESTS_PER_READ_MAX {
            return None;
        }
        self.listener.accept(now).unwrap_or_else(|_| {
            self.counters.accept_errors.add(1);
            None
        })
    }

    fn victim(&self, peer: Ipv4Addr) -> Option<u64> {
        self.entry.logins.victim(peer).map(|place| place as u64)
    }

    fn serve_once(&mut self, key: u64, now: Nanos) {
        self.read_or_disconnect(key as usize, now);
    }

    fn evict(&mut self, key: u64, now: Nanos) {
        self.counters.pre_login_evicted.add(1);
        self.close(key as usize, now);
    }

    fn admit(&mut self, tcp: TcpConnection<N>, peer: Ipv4Addr, now: Nanos) -> bool {
        let place =
            self.connections.free_place().expect("logged-in clients and pending logins have separate places");
        if !self.watch_all() {
            self.listener.take_back(tcp, place);
            self.listener.pause(now);
            self.counters.accept_errors.add(1);
            return false;
        }
        let Some(tcp) = self.listener.watch(tcp, place, now) else {
            self.counters.accept_errors.add(1);
            return false;
        };
        self.counters.connections.add(1);
        self.entry.logins.handle_connection(now, place, peer);
        self.connections.add(place, Connection::new(tcp, now));
        true
    }
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Reads requests while the batch has capacity, and accepts new connections; returns the work done.
    pub(super) fn read_requests(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let Some(place) = self.listener.direct() else { return self.poll_sockets(now) };
        let work = self.read_or_disconnect(place, now);
        if self.listener.count_direct_read() { Ok(work + self.poll_sockets(now)?) } else { Ok(work) }
    }

    /// Polls the sockets, reads the readable connections while the batch has capacity, then accepts new ones;
    /// returns the work done.
    fn poll_sockets(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut ready = Ready::default();
        self.listener.poll(&mut ready)?;
        let mut work = 0;
        for place in &ready.places {
            work += 1;
            self.read_or_disconnect(*place, now);
        }
        // Accept last: a new connection can evict one that has not logged in, so read arrived logins first.
        if ready.has_new_connections {
            work += self.accept(now);
        } else if let [place] = ready.places[..]
            && self.connections.count() == 1
            && let Some(connection) = self.connections.get(place)
        {
            self.listener.handle_poll_of_one(&connection.link.tcp, place);
        }
        Ok(work)
    }

    /// Returns true when all connections are in the poller: before a second client is admitted, and before the
    /// thread sleeps. False if the system refuses to add the connection that is read directly.
    pub(super) fn watch_all(&mut self) -> bool {
        let direct = self.listener.direct().and_then(|place| Some((place, self.connections.get(place)?)));
        direct.is_none_or(|(place, connection)| self.listener.watch_direct(&connection.link.tcp, place))
    }

    /// Reads once from a connection if the batch has capacity; returns 1 if there was data or the connection
    /// ended, else 0.
    #[inline]
    fn read_or_disconnect(&mut self, place: usize, now: Nanos) -> usize {
        if self.entry.sequencer.remaining_capacity() < REQUESTS_PER_READ_MAX {
            return 0;
        }
        match self.read(place, now) {
            Ok(has_data) => has_data.into(),
            Err(reason) => {
                self.disconnect(place, reason, now);
                1
            }
        }
    }

    /// Reads once from a connection, and handles the messages; false if there was no data.
    #[inline]
    fn read(&mut self, place: usize, now: Nanos) -> Result<bool, DisconnectReason> {
        let Some(connection) = self.connections.get_mut(place) else { return Ok(false) };
        let fill = connection.link.tcp.fill().map_err(|_| DisconnectReason::Closed)?;
        if fill == Fill::Empty {
            return Ok(false);
        }
        let read_at = self.tracer.now();
        if let Fill::Bytes { kernel_ns, .. } = fill {
            connection.kernel_ns = kernel_ns.unwrap_or(0);
        }
        self.take_messages(place, read_at, now)?;
        if fill == Fill::Closed {
            return Err(DisconnectReason::Closed);
        }
        let is_due = self.connections.get(place).is_some_and(|connection| connection.is_due(now));
        if is_due {
            self.transmit(place, now)?;
        }
        Ok(true)
    }

    /// Handles all complete packets received. The batch must have capacity for a full buffer of requests.
    #[inline(always)]
    pub(super) fn take_messages(
        &mut self,
        place: usize,
        read_at: u64,
        now: Nanos,
    ) -> Result<(), DisconnectReason> {
        let Some(connection) = self.connections.get(place) else { return Ok(()) };
        let kernel_ns = connection.kernel_ns;
        let received_at =
            if T::ENABLED && kernel_ns != 0 { self.kernel_time.ticks(kernel_ns, read_at) } else { 0 };
        let received = Received { kernel_ns, received_at, read_at };
        loop {
            let connection = self.connections.get_mut(place).ok_or(DisconnectReason::Closed)?;
            let SoupLink { tcp, soup } = &mut connection.link;
            let (event, used) = match soup.handle_bytes(now, tcp.received()) {
                Ok(Some(found)) => found,
                Ok(None) => return connection.link.check_packet_len(),
                Err(_) => return Err(DisconnectReason::Malformed),
            };
            match event {
                ServerEvent::Message(message) => {
                    let Some(user) = connection.user else { return Err(DisconnectReason::Closed) };
                    let timed = T::ENABLED && self.counters.requests.read().is_multiple_of(TIMED_EVERY);
                    let started = if timed { self.tracer.now() } else { 0 };
                    let decoded = ouch50::decode_request(message, |it| self.config.instruments.find(it));
                    if timed {
                        let ticks = self.tracer.now().wrapping_sub(started);
                        self.tracer.time(Function::OrderDecode, ticks);
                    }
                    let known = &mut self.entry.users[user];
                    let (session, admission) = (known.session, Admission::of(known, decoded, now));
                    self.take_request(place, (user, session), admission, &received)?;
                }
                ServerEvent::LoginRequest(login) => self.begin_login(place, &login, now),
                ServerEvent::LogoutRequest => return Err(DisconnectReason::Closed),
                ServerEvent::Heartbeat | ServerEvent::Debug(_) => {}
            }
            if let Some(connection) = self.connections.get_mut(place) {
                connection.link.tcp.consume(used);
            }
        }
    }

    /// Carries out the admission decision on a client's message.
    #[inline(always)]
    fn take_request(
        &mut self,
        place: usize,
        (user, session): (usize, SessionId),
        admission: Admission,
        received: &Received,
    ) -> Result<(), DisconnectReason> {
        let kernel_ns = received.kernel_ns;
        match admission {
            admission
                if admission.yields_to_cancels() && self.entry.sequencer.reserves_space_for_cancels() =>
            {
                self.counters.requests_refused.add(1);
                self.refuse_without_record(place);
            }
            Admission::Sequence { kind, user_ref, is_new_order } => {
                let token = Token::new(session, user_ref, is_new_order);
                self.tracer.stamp_at(Hop::T1k, token, received.received_at);
                self.tracer.stamp_at(Hop::T1, token, received.read_at);
                self.counters.requests.add(1);
                if matches!(kind, CommandKind::GatewayReject { .. }) {
                    self.counters.requests_refused.add(1);
                    self.registry[user].requests_refused.add(1);
                }
                failpoint!(RequestDropped => return Ok(()), for self.counters.requests.read());
                let arrival = Arrival { kernel_ns, session, token: Some(token), kind: kind.into() };
                self.entry.sequencer.add(arrival);
            }
            Admission::Query => {
                self.counters.requests.add(1);
                let kind = CommandKind::AccountQuery.into();
                self.entry.sequencer.add(Arrival { kernel_ns, session, token: None, kind });
            }
            Admission::Drop => {
                let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
                connection.malformed += 1;
                // The last malformed message is counted when the connection is closed.
                if connection.malformed >= MALFORMED_MAX {
                    return Err(DisconnectReason::Malformed);
                }
                self.counters.malformed.add(1);
            }
        }
        Ok(())
    }

    #[cold]
    fn refuse_without_record(&mut self, place: usize) {
        self.journal.unlogged_refusals.add(1);
        self.connections.refuse_without_record(place);
    }

    /// Handles pending front requests while the batch has capacity; returns their number.
    // Out of line: most venues have no front.
    #[inline(never)]
    pub(super) fn take_front_requests(&mut self, now: Nanos) -> usize {
        let OrderServer { links, entry, counters, registry, .. } = self;
        let Some(front) = &mut links.front else { return 0 };
        let limit = FRONT_REQUESTS_PER_CYCLE.min(entry.sequencer.remaining_capacity());
        front.drain(limit, |request| match entry.admit_front(request, now) {
            FrontAdmission::Request { arrival, is_refused } => {
                if is_refused {
                    note_refused(counters, registry, request.session);
                }
                counters.requests.add(1);
                failpoint!(RequestDropped => if !matches!(arrival.kind, tickpath_venue::LogCommandKind::Engine(CommandKind::Force(_))) { return },
                    for counters.requests.read());
                entry.sequencer.add(arrival);
            }
            FrontAdmission::Internal(arrival) => entry.sequencer.add(arrival),
            FrontAdmission::Unlogged => note_refused(counters, registry, request.session),
            FrontAdmission::Drop => {}
        })
    }
}

/// Counts a refused front request, for the server and for the user that `session` identifies.
#[cold]
fn note_refused(counters: &OrderServerCounters, registry: &UserRegistry, session: SessionId) {
    counters.requests_refused.add(1);
    let place = usize::from(session.0).checked_sub(1);
    if let Some(user) = place.and_then(|place| registry.get(place)) {
        user.requests_refused.add(1);
    }
}
