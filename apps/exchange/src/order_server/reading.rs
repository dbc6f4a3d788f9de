//! Connections that come, and what is read of them.

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use tickpath_agent::AgentError;
use tickpath_faults::{Fault, is_planted_for};
use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50::{self, RequestError};
use tickpath_nasdaq::soupbintcp::ServerEvent;
use tickpath_net::{Fill, Network, SocketPoller};
use tickpath_timing::{Function, Hop, Token, Tracer};
use tickpath_types::{Nanos, OrderRequest, UserRefNum};
use tickpath_venue::Arrival;

use super::log::is_kept_for_cancels;
use super::{
    ACCEPT_PAUSE, ACCEPTOR_KEY, ACCEPTS_PER_CYCLE, Connection, MALFORMED_MAX, OrderServer, READY_MAX,
    REQUESTS_PER_READ_MAX, TIMED_EVERY,
};
use crate::soup_link::{Hangup, SoupLink};

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Reads every connection that has something, as far as the batch has room.
    pub(super) fn read_requests(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let ready: ArrayVec<u64, READY_MAX> = self
            .poller
            .poll()
            .map_err(|error| AgentError::fatal(format!("cannot poll the order entry sockets: {error}")))?
            .map(|ready| ready.key)
            .collect();
        let mut work = 0;
        for key in ready.iter().copied().filter(|key| *key != ACCEPTOR_KEY) {
            work += 1;
            if self.sequencer.room() >= REQUESTS_PER_READ_MAX {
                let place = key as usize;
                if let Err(hangup) = self.read(place, now) {
                    self.hang_up(place, hangup, now);
                }
            }
        }
        // Behind the others: a login that has come is read before its connection could be closed for a newcomer.
        if ready.contains(&ACCEPTOR_KEY) {
            work += self.accept(now);
        }
        Ok(work)
    }

    /// Accepts some of those who wait; returns how many.
    #[cold]
    fn accept(&mut self, now: Nanos) -> usize {
        for count in 0..ACCEPTS_PER_CYCLE {
            // One that has to give way is read once more.
            if self.sequencer.room() < REQUESTS_PER_READ_MAX {
                return count;
            }
            let tcp = match self.acceptor.accept() {
                Ok(Some(tcp)) => tcp,
                Ok(None) => return count,
                Err(_) => {
                    self.pause_accepting(now);
                    return count;
                }
            };
            let peer = *tcp.peer_address().ip();
            self.make_room(peer, now);
            let place = self.connections.iter().position(Option::is_none);
            let place = place.expect("clients and those who are not yet have places of their own");
            if tcp.watch(&self.poller, place as u64).is_err() {
                self.acceptor.take_back(tcp);
                self.pause_accepting(now);
                return count;
            }
            self.counters.connections.add(1);
            self.pre_login.admit(now, place as u64, peer);
            self.connections[place] = Some(Connection {
                link: SoupLink::new(tcp, self.config.soup, now),
                user: None,
                login: None,
                kernel_ns: 0,
                malformed: 0,
                replies: ArrayVec::new(),
                is_behind: false,
                full_until: Nanos::ZERO,
                lingers_until: None,
            });
        }
        ACCEPTS_PER_CYCLE
    }

    /// Closes a connection that has not logged in, where another one of `peer` finds no capacity. It is read once more
    /// before: its login may have come.
    fn make_room(&mut self, peer: Ipv4Addr, now: Nanos) {
        let Some(place) = self.pre_login.victim(peer).map(|place| place as usize) else { return };
        if let Err(hangup) = self.read(place, now) {
            self.hang_up(place, hangup, now);
        }
        if let Some(place) = self.pre_login.victim(peer) {
            self.counters.pre_login_evicted.add(1);
            self.close(place as usize, now);
        }
    }

    /// The system has no room for a connection: who waits is asked for again after a while, not in every duty cycle.
    fn pause_accepting(&mut self, now: Nanos) {
        self.counters.accept_errors.add(1);
        if self.acceptor.unwatch(&self.poller).is_ok() {
            self.accept_again_at = Some(now + ACCEPT_PAUSE);
        }
    }

    pub(super) fn resume_accepting(&mut self, now: Nanos) {
        if self.accept_again_at.is_some_and(|at| now >= at)
            && self.acceptor.watch(&self.poller, ACCEPTOR_KEY).is_ok()
        {
            self.accept_again_at = None;
        }
    }

    fn read(&mut self, place: usize, now: Nanos) -> Result<(), Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        let fill = connection.link.tcp.fill().map_err(|_| Hangup::Over)?;
        let read_at = self.tracer.now();
        if let Fill::Bytes { kernel_ns, .. } = fill {
            connection.kernel_ns = kernel_ns.unwrap_or(0);
        }
        self.take_messages(place, read_at, now)?;
        if fill == Fill::Closed {
            return Err(Hangup::Over);
        }
        match self.connections[place].as_ref() {
            Some(connection) if connection.is_behind && now >= connection.full_until => {
                self.transmit(place, now)
            }
            _ => Ok(()),
        }
    }

    /// Takes every whole packet that was received; the sequencer must have room for as many as a buffer can hold.
    #[inline(always)]
    pub(super) fn take_messages(&mut self, place: usize, read_at: u64, now: Nanos) -> Result<(), Hangup> {
        let Some(connection) = self.connections[place].as_ref() else { return Ok(()) };
        let kernel_ns = connection.kernel_ns;
        let received_at =
            if T::ENABLED && kernel_ns != 0 { self.kernel_time.ticks(kernel_ns, read_at) } else { 0 };
        loop {
            let connection = self.connections[place].as_mut().ok_or(Hangup::Over)?;
            let SoupLink { tcp, soup } = &mut connection.link;
            let (event, used) = match soup.handle_bytes(now, tcp.received()) {
                Ok(Some(found)) => found,
                Ok(None) => return connection.link.check_announced(),
                Err(_) => return Err(Hangup::Malformed),
            };
            let mut is_unlogged = false;
            match event {
                ServerEvent::Message(message) => {
                    let Some(place) = connection.user else { return Err(Hangup::Over) };
                    let user = self.users.get_mut(place);
                    let timed = T::ENABLED && self.counters.requests.read().is_multiple_of(TIMED_EVERY);
                    let started = if timed { self.tracer.now() } else { 0 };
                    let decoded =
                        ouch50::decode_request(message, |symbol| self.config.instruments.find(symbol));
                    if timed {
                        let ticks = self.tracer.now().wrapping_sub(started);
                        self.tracer.time(Function::OrderDecode, ticks);
                    }
                    match admit(user.filter.check(decoded, now)) {
                        Admission::Query | Admission::Sequence { kind: CommandKind::Refuse { .. }, .. }
                            if is_kept_for_cancels(self.log_state, &self.sequencer) =>
                        {
                            self.counters.requests_refused.add(1);
                            is_unlogged = true;
                        }
                        Admission::Sequence { kind, user_ref, is_new_order } => {
                            let token = Token::new(user.session, user_ref, is_new_order);
                            self.tracer.stamp_at(Hop::T1k, token, received_at);
                            self.tracer.stamp_at(Hop::T1, token, read_at);
                            self.counters.requests.add(1);
                            if matches!(kind, CommandKind::Refuse { .. }) {
                                self.counters.requests_refused.add(1);
                                self.registry[place].requests_refused.add(1);
                            }
                            let (session, token) = (user.session, Some(token));
                            if !is_planted_for(Fault::RequestDropped, self.counters.requests.read()) {
                                self.sequencer.add(Arrival { kernel_ns, session, token, kind });
                            }
                        }
                        Admission::Query => {
                            self.counters.requests.add(1);
                            let (session, kind) = (user.session, CommandKind::AccountQuery);
                            self.sequencer.add(Arrival { kernel_ns, session, token: None, kind });
                        }
                        Admission::Drop => {
                            connection.malformed += 1;
                            // The last one is counted with the end of the connection.
                            if connection.malformed >= MALFORMED_MAX {
                                return Err(Hangup::Malformed);
                            }
                            self.counters.malformed.add(1);
                        }
                    }
                }
                ServerEvent::LoginRequest(login) => self.begin_login(place, &login, now),
                ServerEvent::LogoutRequest => return Err(Hangup::Over),
                ServerEvent::Heartbeat | ServerEvent::Debug(_) => {}
            }
            if let Some(connection) = self.connections[place].as_mut() {
                connection.link.tcp.consume(used);
            }
            if is_unlogged {
                self.refuse_without_record(place);
            }
        }
    }
}

/// What becomes of a message of a client.
enum Admission {
    Sequence { kind: CommandKind, user_ref: UserRefNum, is_new_order: bool },
    Query,
    Drop,
}

#[inline(always)]
fn admit(decoded: Result<OrderRequest, RequestError>) -> Admission {
    match decoded {
        Ok(request) => Admission::Sequence {
            user_ref: request.user_ref(),
            is_new_order: request.is_new_order(),
            kind: CommandKind::Order(request),
        },
        Err(RequestError::Refused { user_ref, reason, client_order_id }) => Admission::Sequence {
            kind: CommandKind::Refuse { user_ref, reason, client_order_id },
            user_ref,
            is_new_order: true,
        },
        Err(RequestError::AccountQuery) => Admission::Query,
        Err(_) => Admission::Drop,
    }
}
