//! Connections: they carry ordered bytes in both directions until one end closes them or the network resets
//! them.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::cmp::Reverse;
use std::collections::VecDeque;

use tickpath_types::Nanos;

use super::socket::{AddressInUse, ClosedBy, End, HostId, Listener, Segment, Socket, SocketId};
use super::{Network, StreamEvent, StreamEventKind};

/// Maximum number of connections that wait to be accepted by a listener; further ones are refused.
pub(super) const BACKLOG: usize = 128;
/// Source address of all connections; `connect` assigns the port.
const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
/// Upper bound of the time from a partition's end to the retransmission of data that it held back.
const RESEND_MAX: Nanos = Nanos::from_millis(200);

/// Reason why a connection failed or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The connection was refused: no listener, a full backlog, or a random refusal.
    #[error("the connection was refused")]
    Refused,
    /// The other end or the network reset the connection.
    #[error("the connection was reset")]
    Reset,
    /// This end closed the connection, or it is not established yet.
    #[error("not connected")]
    NotConnected,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRead {
    /// Bytes were copied to the buffer.
    Bytes {
        /// Number of bytes copied.
        count: usize,
        /// Arrival time of the last byte, in nanoseconds of the host's clock.
        kernel_ns: u64,
    },
    /// No unread bytes have arrived.
    Empty,
    /// The other end has ended its stream.
    End,
}

impl Network {
    /// Creates a listener at an address; port 0 takes a free port. Returns the listener and its address.
    ///
    /// # Errors
    /// [`AddressInUse`] if another listener has the address.
    pub fn listen(
        &mut self,
        host: HostId,
        address: SocketAddrV4,
    ) -> Result<(SocketId, SocketAddrV4), AddressInUse> {
        let address = self.assign_port(address);
        if self.listener_at(address).is_some() {
            return Err(AddressInUse(address));
        }
        Ok((self.insert(Socket::Listener(Listener { host, address, waiting: VecDeque::new() })), address))
    }

    /// Starts to connect to an address; [`poll_connected`](Network::poll_connected) reports the result.
    pub fn connect(&mut self, host: HostId, to: SocketAddrV4) -> SocketId {
        let from = self.assign_port(LOOPBACK);
        let arrives_at = Nanos(self.now.0 + self.random_delay());
        let answered_at = Nanos(arrives_at.0 + self.random_delay());
        self.arrivals.extend([Reverse(arrives_at), Reverse(answered_at)]);
        let mut end = End::new(host, SocketId(0), host, to, answered_at);
        let listener = self.listener_at(to).map(|id| (id, self.sockets[&id].host()));
        // An unreachable host sends no refusal. Without a listener at the address, the host is unknown, so it
        // counts as unreachable while any host is without power.
        if listener.map_or(!self.powered_off.is_empty(), |(_, server)| !self.can_reach(host, server)) {
            self.counters.connections_cut += 1;
            end.connected_at = Nanos(u64::MAX);
            return self.insert(Socket::End(end));
        }
        let Some((listener, server)) = listener else {
            self.counters.connections_unheard += 1;
            end.refused_at = Some(answered_at);
            return self.insert(Socket::End(end));
        };
        let is_full = matches!(&self.sockets[&listener], Socket::Listener(l) if l.waiting.len() >= BACKLOG);
        if is_full || self.rng.chance_ppm(self.stream_faults.refusal_ppm) {
            self.counters.connections_above_backlog += u64::from(is_full);
            self.counters.connections_refused += u64::from(!is_full);
            end.refused_at = Some(answered_at);
            return self.insert(Socket::End(end));
        }
        self.counters.connections += 1;
        let accepted = self.insert(Socket::End(End::new(server, SocketId(0), host, from, arrives_at)));
        (end.peer, end.peer_host) = (accepted, server);
        let id = self.insert(Socket::End(end));
        if let Some(Socket::End(end)) = self.sockets.get_mut(&accepted) {
            end.peer = id;
        }
        if let Some(Socket::Listener(listener)) = self.sockets.get_mut(&listener) {
            listener.waiting.push_back((arrives_at, accepted));
        }
        id
    }

    /// Accepts the next pending connection, and returns it with its source address.
    pub fn accept(&mut self, listener: SocketId) -> Option<(SocketId, SocketAddrV4)> {
        let now = self.now;
        let Some(Socket::Listener(listener)) = self.sockets.get_mut(&listener) else { return None };
        let (_, id) = listener.waiting.pop_front_if(|(at, _)| *at <= now)?;
        if let Socket::End(end) = &self.sockets[&id] { Some((id, end.peer_address)) } else { None }
    }

    /// Returns true once a connection is established; false forever if the other host was unreachable.
    ///
    /// # Errors
    /// [`StreamError`] if the connection was refused or reset, or this end closed it.
    pub fn poll_connected(&self, id: SocketId) -> Result<bool, StreamError> {
        let Some(Socket::End(end)) = self.sockets.get(&id) else { return Err(StreamError::NotConnected) };
        match (end.refused_at, end.reset_at) {
            (Some(at), _) if at <= self.now => Err(StreamError::Refused),
            (_, Some((at, _))) if at <= self.now => Err(StreamError::Reset),
            (None, _) => Ok(end.connected_at <= self.now),
            _ => Ok(false),
        }
    }

    /// True if a read or an accept has a result: bytes, the end of the stream, a reset, or a connection.
    #[must_use]
    pub fn is_readable(&self, id: SocketId) -> bool {
        match self.sockets.get(&id) {
            Some(Socket::Listener(listener)) => {
                listener.waiting.front().is_some_and(|(at, _)| *at <= self.now)
            }
            Some(Socket::End(end)) => end.is_readable(self.now),
            Some(Socket::Inbox(_)) | None => false,
        }
    }

    /// Reads bytes that have arrived.
    ///
    /// # Errors
    /// [`StreamError`] if the connection was reset and no bytes are left, or if this end is closed.
    pub fn read(&mut self, id: SocketId, buffer: &mut [u8]) -> Result<StreamRead, StreamError> {
        let now = self.now;
        let short_read_ppm = self.stream_faults.short_read_ppm;
        let Some(Socket::End(end)) = self.sockets.get_mut(&id) else { return Err(StreamError::NotConnected) };
        let available = end.arrived(now);
        if available == 0 {
            return match (end.reset_at, end.end_at) {
                (Some((at, _)), _) if at <= now => Err(StreamError::Reset),
                (_, Some(at)) if at <= now && end.incoming.is_empty() => Ok(StreamRead::End),
                _ => Ok(StreamRead::Empty),
            };
        }
        let mut count = available.min(buffer.len());
        if count > 1 && self.rng.chance_ppm(short_read_ppm) {
            self.counters.short_reads += 1;
            count = 1 + self.rng.below(count as u64 - 1) as usize;
        }
        let at = end.take(&mut buffer[..count]);
        let (host, peer) = (end.host, end.peer);
        let kernel_ns = self.stamp(host, at);
        if self.watched.contains(&host) {
            let kind = StreamEventKind::Read { kernel_ns, bytes: buffer[..count].to_vec() };
            self.events.push(StreamEvent { at: now, peer, kind });
        }
        Ok(StreamRead::Bytes { count, kernel_ns })
    }

    /// Sends bytes; returns the number of bytes accepted, which is 0 while the peer's window is full.
    ///
    /// # Errors
    /// [`StreamError`] if the connection was reset or is not established, or this end has ended its sending.
    pub fn write(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize, StreamError> {
        let now = self.now;
        let Some(Socket::End(end)) = self.sockets.get(&id) else { return Err(StreamError::NotConnected) };
        if end.is_reset(now) {
            return Err(StreamError::Reset);
        }
        if end.has_ended || end.connected_at > now {
            return Err(StreamError::NotConnected);
        }
        let (peer, peer_host) = (end.peer, end.peer_host);
        let Some(Socket::End(receiver)) = self.sockets.get(&peer) else {
            return Ok(self.write_to_closed_end(id, peer_host, bytes.len()));
        };
        let space = self.stream_faults.window.saturating_sub(receiver.incoming_len);
        let mut count = space.min(bytes.len());
        if count == 0 {
            self.counters.full_windows += u64::from(!bytes.is_empty());
            return Ok(0);
        }
        if count > 1 && self.rng.chance_ppm(self.stream_faults.short_write_ppm) {
            count = 1 + self.rng.below(count as u64 - 1) as usize;
        }
        self.counters.short_writes += u64::from(count < bytes.len());
        self.send(peer, Some(&bytes[..count]));
        if self.rng.chance_ppm(self.stream_faults.reset_ppm) {
            self.reset(id);
        }
        Ok(count)
    }

    /// Ends the sending direction of this end, which can still read.
    pub fn end_sending(&mut self, id: SocketId) {
        let Some(Socket::End(end)) = self.sockets.get_mut(&id) else { return };
        if !std::mem::replace(&mut end.has_ended, true) {
            let peer = end.peer;
            self.counters.half_closes += 1;
            self.send(peer, None);
        }
    }

    /// The party that closed a connection; `None` until the end of the stream or a reset has arrived.
    #[must_use]
    pub fn closed_by(&self, id: SocketId) -> Option<ClosedBy> {
        match self.sockets.get(&id) {
            Some(Socket::End(end)) => match end.reset_at {
                Some((at, by)) if at <= self.now => Some(by),
                _ => end.end_at.filter(|at| *at <= self.now).map(|_| ClosedBy::Peer),
            },
            _ => None,
        }
    }

    /// Makes the network reset a connection: a random prefix of the data in flight arrives.
    pub fn reset(&mut self, id: SocketId) {
        self.counters.resets += 1;
        let Some(Socket::End(end)) = self.sockets.get(&id) else { return };
        for id in [id, end.peer] {
            let at = Nanos(self.now.0 + self.random_delay());
            self.reset_end(id, at, ClosedBy::Network);
        }
    }

    pub(super) fn listener_at(&self, address: SocketAddrV4) -> Option<SocketId> {
        let is_match =
            |socket: &Socket| matches!(socket, Socket::Listener(listener) if listener.address == address);
        self.sockets.iter().find(|(_, socket)| is_match(socket)).map(|(id, _)| *id)
    }

    fn random_delay(&mut self) -> u64 {
        let faults = self.stream_faults;
        let mut delay = faults.delay_min.0 + self.rng.exponential(faults.jitter.0);
        if self.rng.chance_ppm(faults.spike_ppm) {
            self.counters.segments_delayed += 1;
            delay += self.rng.below(faults.spike_max.0);
        }
        delay
    }

    /// Schedules the arrival of `bytes` after all data in flight; `None` stands for the end of the stream.
    fn send(&mut self, to: SocketId, bytes: Option<&[u8]>) {
        self.counters.segments += u64::from(bytes.is_some());
        let at = Nanos(self.now.0 + self.random_delay());
        let Some(Socket::End(end)) = self.sockets.get_mut(&to) else { return };
        // A reset ends the stream: later data never arrives.
        if end.reset_at.is_some() {
            return;
        }
        end.latest = end.latest.max(at);
        self.arrivals.push(Reverse(end.latest));
        match bytes {
            Some(bytes) => {
                end.incoming.push_back(Segment { at: end.latest, bytes: bytes.to_vec(), read: 0 });
                end.incoming_len += bytes.len();
            }
            None => {
                end.end_at = Some(end.latest);
                self.closing.push((end.latest, to));
            }
        }
        if self.is_cut(to) {
            self.hold(to);
        }
    }

    /// Writes to an end that no longer exists. The host of that end responds with a reset if it is reachable.
    fn write_to_closed_end(&mut self, id: SocketId, peer_host: HostId, len: usize) -> usize {
        let is_reachable = self.can_reach(peer_host, self.sockets[&id].host());
        let at = Nanos(self.now.0 + 2 * self.random_delay());
        if is_reachable {
            self.reset_end(id, at, ClosedBy::Peer);
        } else if let Some(Socket::End(end)) = self.sockets.get_mut(&id) {
            end.is_unanswered = true;
        }
        len
    }

    /// True while a partition or a power loss keeps data from this end.
    fn is_cut(&self, id: SocketId) -> bool {
        matches!(self.sockets.get(&id), Some(Socket::End(end)) if !self.can_reach(end.host, end.peer_host))
    }

    /// Holds the data in flight to this end until the partition ends.
    fn hold(&mut self, id: SocketId) {
        let now = self.now;
        let Some(Socket::End(end)) = self.sockets.get_mut(&id) else { return };
        let never = Nanos(u64::MAX);
        end.incoming.iter_mut().filter(|segment| segment.at > now).for_each(|segment| segment.at = never);
        end.end_at = end.end_at.map(|at| if at > now { never } else { at });
        end.latest = never;
        self.closing.retain(|(at, closing)| *closing != id || *at <= now);
    }

    /// Schedules the retransmission of held data after a partition has ended.
    pub(super) fn release_segments(&mut self) {
        let held = |socket: &Socket| matches!(socket, Socket::End(end) if end.latest == Nanos(u64::MAX));
        for id in self.ids(held) {
            if self.is_cut(id) {
                continue;
            }
            let at = Nanos(self.now.0 + self.rng.below(RESEND_MAX.0));
            let Some(Socket::End(end)) = self.sockets.get_mut(&id) else { continue };
            end.incoming.iter_mut().for_each(|segment| segment.at = segment.at.min(at));
            end.latest = at;
            if let Some(end_at) = &mut end.end_at {
                *end_at = at.min(*end_at);
                self.closing.push((*end_at, id));
            }
            self.arrivals.push(Reverse(at));
        }
        self.reset_half_open();
    }

    /// Resets each end that has sent data to a closed end, if the host of the closed end is reachable now.
    pub(super) fn reset_half_open(&mut self) {
        let is_half_open = |socket: &Socket| matches!(socket, Socket::End(end) if end.is_unanswered && self.can_reach(end.host, end.peer_host));
        for id in self.ids(is_half_open) {
            let at = Nanos(self.now.0 + self.rng.below(RESEND_MAX.0));
            self.reset_end(id, at, ClosedBy::Peer);
        }
    }

    fn reset_end(&mut self, id: SocketId, at: Nanos, by: ClosedBy) {
        let now = self.now;
        let Some(Socket::End(end)) = self.sockets.get_mut(&id) else { return };
        if end.reset_at.is_some() {
            return;
        }
        end.reset_at = Some((at, by));
        // Data that would arrive after the reset is lost, and so is a random suffix of the data in flight.
        let kept = end.incoming.iter().filter(|segment| segment.at <= at).count();
        let in_flight = kept - end.incoming.iter().filter(|segment| segment.at <= now).count();
        let kept = kept - self.rng.below(in_flight as u64 + 1) as usize;
        end.incoming.truncate(kept);
        end.incoming_len = end.incoming.iter().map(|segment| segment.bytes.len() - segment.read).sum();
        end.end_at = end.end_at.filter(|end_at| *end_at <= now);
        self.arrivals.push(Reverse(at));
        self.closing.push((at, id));
    }

    pub(super) fn close_listener(&mut self, id: SocketId) {
        let Some(Socket::Listener(listener)) = self.sockets.remove(&id) else { return };
        for (_, waiting) in listener.waiting {
            self.close_end(waiting);
        }
    }

    /// Closes an end. If incoming bytes are unread or in flight, it resets the other end, which can lose
    /// data.
    pub(super) fn close_end(&mut self, id: SocketId) {
        self.record_closed_now(id);
        let Some(Socket::End(end)) = self.sockets.remove(&id) else { return };
        if end.is_reset(self.now) || !self.sockets.contains_key(&end.peer) {
            return;
        }
        if end.incoming_len > 0 {
            self.counters.resets_by_close += 1;
            let at = Nanos(self.now.0 + self.random_delay());
            self.reset_end(end.peer, at, ClosedBy::Peer);
        } else if !end.has_ended {
            self.send(end.peer, None);
        }
    }

    /// Records a `StreamEventKind::Closed` event for each watched socket whose stream has ended by now.
    pub(super) fn record_closed(&mut self) {
        let now = self.now;
        let mut due: Vec<(Nanos, SocketId)> = self.closing.extract_if(.., |(at, _)| *at <= now).collect();
        due.sort_unstable();
        for (at, id) in due {
            self.record_closed_at(id, at);
        }
    }

    pub(super) fn record_closed_now(&mut self, id: SocketId) {
        self.record_closed_at(id, self.now);
        self.closing.retain(|(_, closing)| *closing != id);
    }

    fn record_closed_at(&mut self, id: SocketId, at: Nanos) {
        if let Some(Socket::End(end)) = self.sockets.get(&id)
            && self.watched.contains(&end.host)
        {
            self.events.push(StreamEvent { at, peer: end.peer, kind: StreamEventKind::Closed });
        }
    }
}
