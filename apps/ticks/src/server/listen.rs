//! Accepts clients, answers their requests, and closes their connections.

use std::io;
use std::net::Ipv4Addr;

use tickpath_net::{Interest, StreamSocket};
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{EndReason, Hello, Refused, RefusedReason, VERSION};
use tickpath_ticks::request::{RequestError, RequestListener, SubscribePart};
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

use super::client::{CLOSE_TIME, Client, ConnectionEnd, Flush, Socket};
use super::directory::{Directory, Subscription};
use super::faults::Faults;
use super::tick_writer::SymbolState;
use super::{READ_LEN, ServerCounters, TicksServer};

/// The listener's key at the poller; a client's key is its index in `clients` plus one.
pub(super) const LISTENER_KEY: u64 = 0;
/// Maximum number of connections accepted after one poll of the sockets.
const ACCEPTS_MAX: usize = 64;
/// Maximum number of reads from one client after one poll of the sockets.
const READS_MAX: usize = 4;
/// Maximum number of open connections that are being refused because the server is full; further ones are
/// closed without a message.
pub(super) const REFUSED_MAX: usize = 64;
/// Maximum number of bytes queued for a client that sends requests without reading, in addition to the
/// longest possible answer. A client that exceeds it gets no more answers and is disconnected. The sample
/// that `SlowClient::Sample` queues is always shorter than this.
const ANSWERS_MAX: usize = 128 << 10;
/// Upper bound of a message's length in an answer, in bytes. An answer defines each symbol in one message.
const ANSWER_LEN: usize = 64;

impl TicksServer {
    /// Polls the sockets and serves those that are ready.
    pub(super) fn poll_sockets(&mut self, now: Nanos) -> io::Result<usize> {
        self.counters.other_calls += 1;
        self.ready.clear();
        self.ready.extend(self.poller.poll()?);
        for index in 0..self.ready.len() {
            let ready = self.ready[index];
            if ready.key == LISTENER_KEY {
                continue;
            }
            let at = ready.key as usize - 1;
            if ready.is_writable {
                self.unblock(at, now);
            }
            if ready.is_readable || ready.is_closed {
                self.read(at, now);
            }
        }
        // Accept last: accepting may close another connection, whose waiting request must be read first.
        if self.ready.iter().any(|ready| ready.key == LISTENER_KEY) {
            self.accept(now);
        }
        Ok(self.ready.len())
    }

    fn accept(&mut self, now: Nanos) {
        for _ in 0..ACCEPTS_MAX {
            self.counters.other_calls += 1;
            // If no file descriptor is free, the connection stays in the kernel's queue. A connection that
            // was reset has no peer address and is closed.
            let Ok((socket, peer)) = StreamSocket::accept(&self.listener) else { return };
            let Some(peer) = peer.filter(|_| !self.is_shutting_down) else { continue };
            if let Some(bytes) = self.settings.send_buffer {
                // If this fails, the kernel's default limit applies.
                let _ = socket.limit_send_buffer(bytes);
            }
            self.evict_if_full(*peer.ip(), now);
            self.admit(socket, *peer.ip(), now);
        }
    }

    /// If no slot is free for a new connection of `peer`, closes a connection that has not subscribed. Reads
    /// from it first, because its request may have arrived.
    fn evict_if_full(&mut self, peer: Ipv4Addr, now: Nanos) {
        let Some(at) = self.pre_login.victim(peer) else { return };
        self.read(at as usize, now);
        if let Some(at) = self.pre_login.victim(peer) {
            self.counters.evicted += 1;
            self.close(at as usize);
        }
    }

    /// Returns the number of clients that have subscribed or are being refused.
    fn served(&self) -> usize {
        self.live - self.pre_login.len()
    }

    fn admit(&mut self, socket: Socket, peer: Ipv4Addr, now: Nanos) {
        let is_full = self.subscribed.is_full() && self.subscribed.fair_share_victim(peer).is_none();
        self.counters.refused_full += u64::from(is_full);
        if self.served() >= self.settings.clients_max + REFUSED_MAX {
            return;
        }
        self.counters.accepted += 1;
        self.connections += 1;
        let symbols = self.directory.len();
        let mut client = Client::new(socket, peer, symbols as u32, now);
        let place = self.backlog.written();
        let symbol_count = u16::try_from(symbols).expect("checked at the start");
        client.queue_message(Hello::server(
            place + 1,
            self.session,
            self.settings.heartbeat_ms,
            symbol_count,
            now,
        ));
        if is_full {
            client.queue_message(Refused::new(place + 1, 0, RefusedReason::ClientsFull, 0));
            client.close_by(now + CLOSE_TIME);
        }
        if !self.settings.faults.is_none() {
            let faults = Faults::new(self.settings.faults, self.settings.seed, self.connections, place, now);
            client.faults = Some(Box::new(faults));
        }
        let at = self.free.pop().unwrap_or(self.clients.len());
        if self.poller.add(&client.socket, at as u64 + 1, Interest::Read).is_err() {
            self.free.push(at);
            return;
        }
        if at == self.clients.len() {
            self.clients.push(None);
        }
        self.clients[at] = Some(client);
        self.live += 1;
        if !is_full {
            self.pre_login.admit(now, at as u64, peer);
        }
        self.flush_messages(at, now);
    }

    /// Removes a client and closes its socket.
    pub(super) fn close(&mut self, at: usize) {
        if self.clients[at].take().is_some() {
            self.pre_login.remove(at as u64);
            self.subscribed.remove(at as u64);
            self.free.push(at);
            self.live -= 1;
            self.counters.closed += 1;
            let places = self.clients.iter().flatten().filter_map(Client::tick_place);
            self.furthest = places.max();
        }
    }

    /// Sends a client's queued messages, and also its ticks if no tick waits to be sealed.
    pub(super) fn flush_messages(&mut self, at: usize, now: Nanos) {
        let Some(client) = &mut self.clients[at] else { return };
        let is_full_flush = self.backlog.written() == self.backlog.sealed();
        if !is_full_flush && !client.has_messages() && client.closes_at().is_none() {
            return;
        }
        let was_blocked = client.is_blocked;
        let mut flush = Flush {
            backlog: &self.backlog,
            states: self.source.states(),
            counters: &mut self.counters,
            selection: &mut self.selection,
            policy: self.settings.slow_client,
            now,
        };
        let result = if is_full_flush { client.flush(&mut flush) } else { client.flush_messages(&mut flush) };
        if let Some(place) = client.tick_place() {
            self.furthest = Some(self.furthest.unwrap_or(0).max(place));
        }
        let is_blocked = client.is_blocked;
        match result {
            Err(ConnectionEnd::Lost) => self.close(at),
            _ if is_blocked && !was_blocked => self.watch_writable(at, true),
            _ => {}
        }
    }

    /// Sets whether the poller reports when the kernel accepts more bytes for a client.
    pub(super) fn watch_writable(&mut self, at: usize, is_blocked: bool) {
        let Some(client) = &self.clients[at] else { return };
        self.counters.other_calls += 1;
        let interest = if is_blocked { Interest::ReadWrite } else { Interest::Read };
        if self.poller.modify(&client.socket, at as u64 + 1, interest).is_err() {
            self.close(at);
        }
    }

    fn unblock(&mut self, at: usize, now: Nanos) {
        let Some(client) = self.clients.get_mut(at).and_then(Option::as_mut) else { return };
        if client.is_blocked {
            client.is_blocked = false;
            self.has_unblocked = true;
            self.watch_writable(at, false);
            self.flush_messages(at, now);
        }
    }

    fn read(&mut self, at: usize, now: Nanos) {
        let mut buffer = [0; READ_LEN];
        for _ in 0..READS_MAX {
            let Some(client) = self.clients.get_mut(at).and_then(Option::as_mut) else { return };
            self.counters.other_calls += 1;
            match client.socket.receive(&mut buffer) {
                Ok(Some((0, _))) => return self.close(at),
                Ok(Some((count, _))) => {
                    client.last_received = now;
                    if client.closes_at().is_none() {
                        self.on_bytes(at, &buffer[..count], now);
                    }
                    if count < READ_LEN {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
                Err(_) => return self.close(at),
            }
        }
    }

    /// Processes the bytes that a client sent.
    fn on_bytes(&mut self, at: usize, bytes: &[u8], now: Nanos) {
        let Some(client) = &mut self.clients[at] else { return };
        let place = self.backlog.written();
        let (subscription, requested) = (client.subscription.take(), client.requested.take());
        let allowed = ANSWERS_MAX + (self.directory.len() + 2) * ANSWER_LEN;
        let mut handler = RequestHandler {
            directory: &self.directory,
            states: self.source.states(),
            counters: &mut self.counters,
            place,
            next_sequence: if subscription.is_some() { client.next_sequence() } else { place + 1 },
            granted: None,
            requested,
            answers: Vec::new(),
            answers_max: allowed.saturating_sub(client.outbox().len()),
        };
        let result = client.parser.feed(bytes, &mut handler);
        let (granted, answers) = (handler.granted.take(), std::mem::take(&mut handler.answers));
        client.requested = handler.requested.take();
        client.subscription = subscription;
        let peer = client.peer;
        if granted.is_some() && self.pre_login.remove(at as u64) {
            // If all slots are taken, the oldest client of the address with the most clients is closed.
            if let Some(rival) = self.subscribed.fair_share_victim(peer) {
                self.counters.evicted += 1;
                self.close(rival as usize);
            }
            if !self.subscribed.is_full() {
                self.subscribed.admit(now, at as u64, peer);
            }
        }
        let is_over_limit = granted.is_some() && !self.subscribed.contains(at as u64);
        let Some(client) = &mut self.clients[at] else { return };
        if is_over_limit {
            self.counters.refused_full += 1;
            client.queue_message(Refused::new(client.next_sequence(), 0, RefusedReason::ClientsFull, 0));
            client.close_by(now + CLOSE_TIME);
            return self.flush_messages(at, now);
        }
        if let Some(granted) = granted {
            client.subscribe(granted, place, self.source.states());
        }
        client.outbox().extend_from_slice(&answers);
        if let Err(error) = result {
            let (reason, limit) = match error {
                RequestError::Version(_) => (RefusedReason::Version, u32::from(VERSION)),
                _ => (RefusedReason::Malformed, 0),
            };
            match reason {
                RefusedReason::Version => self.counters.refused_version += 1,
                _ => self.counters.refused_malformed += 1,
            }
            client.queue_message(Refused::new(client.next_sequence(), 0, reason, limit));
            client.close_by(now + CLOSE_TIME);
        } else if !answers.is_empty() && client.outbox().len() > allowed {
            self.counters.slow_disconnected += 1;
            client.end(EndReason::TooSlow, now, now);
        }
        self.flush_messages(at, now);
    }
}

/// Handles a client's requests, and collects the answers.
struct RequestHandler<'a> {
    directory: &'a Directory,
    states: &'a [SymbolState],
    counters: &'a mut ServerCounters,
    /// Place of the first tick that a new subscription receives.
    place: u64,
    next_sequence: u64,
    granted: Option<Subscription>,
    /// The subscription built so far from the parts of a request.
    requested: Option<Subscription>,
    answers: Vec<u8>,
    /// Requests are answered until `answers` is longer than this number of bytes; then the client is
    /// disconnected.
    answers_max: usize,
}

impl RequestHandler<'_> {
    fn refuse(&mut self, request: u32, reason: RefusedReason, limit: u32) {
        let message = Refused::new(self.next_sequence, request, reason, limit);
        self.answers.extend_from_slice(with_checksum(message).as_bytes());
    }
}

impl RequestListener for RequestHandler<'_> {
    fn on_hello(&mut self, _: &Hello) {}

    fn on_subscribe(&mut self, part: SubscribePart<'_>) {
        if part.is_first {
            let none = || Subscription::none(self.directory.len());
            self.requested = Some(if part.total == 0 { Subscription::All } else { none() });
        }
        // A request with an unknown symbol is refused after its last part.
        let is_known =
            self.requested.as_mut().is_some_and(|requested| requested.add(self.directory, part.names));
        if !is_known {
            self.requested = None;
        }
        if !part.is_last || self.answers.len() > self.answers_max {
            return;
        }
        match self.requested.take() {
            Some(subscription) => {
                self.counters.subscriptions += 1;
                self.directory.define(
                    part.request,
                    &subscription,
                    self.states,
                    self.place,
                    &mut self.answers,
                );
                self.next_sequence = self.place + 1;
                self.granted = Some(subscription);
            }
            None => {
                self.counters.refused_unknown += 1;
                self.refuse(part.request, RefusedReason::UnknownSymbol, 0);
            }
        }
    }

    fn on_too_many(&mut self, request: u32, _: u32) {
        self.counters.refused_symbols += 1;
        self.refuse(request, RefusedReason::TooManySymbols, self.directory.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};

    use super::*;

    /// A request has 32 bytes, but its answer may have megabytes: the answers for a client that does not read
    /// are bounded.
    #[test]
    fn answers_are_bounded() {
        let market = TickGeneratorConfig::market(MarketRegime::Neutral, 1_000, 7);
        let directory = Directory::new(&market);
        let states = vec![SymbolState { symbol_sequence: 1, ..SymbolState::default() }; 1_000];
        let mut counters = ServerCounters::default();
        let mut handler = RequestHandler {
            directory: &directory,
            states: &states,
            counters: &mut counters,
            place: 0,
            next_sequence: 1,
            granted: None,
            requested: None,
            answers: Vec::new(),
            answers_max: ANSWERS_MAX,
        };
        for request in 1..=1_000 {
            let part = SubscribePart { request, total: 0, names: &[], is_first: true, is_last: true };
            handler.on_subscribe(part);
        }
        let answer = 1_000 * ANSWER_LEN;
        assert!(
            (ANSWERS_MAX..ANSWERS_MAX + answer).contains(&handler.answers.len()),
            "{}",
            handler.answers.len()
        );
        assert_eq!(counters.subscriptions, 3);
    }
}
