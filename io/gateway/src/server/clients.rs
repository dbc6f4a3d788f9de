//! Connected clients.

use tickpath_gateway_protocol::{Event, Ping, Pong, Request, RequestKind, SessionId};
use tickpath_shm::channel::Channel;
use tickpath_types::Nanos;

use super::{ClientId, DoorCounters, Heartbeat, LeaveReason};
use crate::clock::monotonic;

/// A client that is connected, or whose departure is not yet reported.
#[derive(Debug)]
struct Client {
    id: ClientId,
    channel: Channel<Event, Request>,
    /// Number of events put into its ring.
    sent: u64,
    /// Number of pings sent.
    pings: u64,
    /// Send time of the last ping; `None` once it is answered.
    ping: Option<u64>,
    next_ping: Nanos,
    /// Measured times of the last answered ping.
    last: Heartbeat,
    /// The client is leaving; its earlier requests may be returned first.
    leaving: Option<Leaving>,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    reason: LeaveReason,
    /// Maximum number of requests left in its ring to return; 0 if they are dropped.
    requests_left: usize,
}

/// Result of polling the clients' rings.
pub(super) enum Found {
    Request(ClientId, Request),
    /// An answer to a ping.
    Pong(ClientId, Request),
    Left(ClientId, LeaveReason),
}

/// All clients, each in its slot.
#[derive(Debug)]
pub(super) struct Clients {
    slots: Box<[Option<Client>]>,
    count: usize,
    /// Number of slots, from 0, that were ever used.
    used: usize,
    /// First slot of the next poll.
    next: usize,
    /// Slot of the next process check.
    next_check: usize,
    numbers: u32,
}

impl Clients {
    pub(super) fn new(count: usize) -> Clients {
        Clients {
            slots: (0..count.max(1)).map(|_| None).collect(),
            count: 0,
            used: 0,
            next: 0,
            next_check: 0,
            numbers: 0,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the id for the next client; `None` if no slot is free.
    pub(super) fn next_id(&self) -> Option<ClientId> {
        let slot = self.slots.iter().position(Option::is_none)?;
        Some(ClientId { number: self.numbers.checked_add(1)?, slot: slot as u32 })
    }

    pub(super) fn join(&mut self, id: ClientId, channel: Channel<Event, Request>) {
        self.numbers = id.number;
        self.count += 1;
        self.used = self.used.max(id.slot() + 1);
        let last = Heartbeat { to_client_ns: 0, to_gateway_ns: 0 };
        let (ping, next_ping) = (None, Nanos::ZERO);
        self.slots[id.slot()] =
            Some(Client { id, channel, sent: 0, pings: 0, ping, next_ping, last, leaving: None });
    }

    /// Polls each client once, starting after the last one that had a request.
    #[inline]
    pub(super) fn poll(&mut self, counters: &mut DoorCounters) -> Option<Found> {
        for _ in 0..self.used {
            let slot = self.next;
            self.next = if slot + 1 >= self.used { 0 } else { slot + 1 };
            let Some(client) = &mut self.slots[slot] else { continue };
            if client.leaving.is_some() {
                return Some(self.poll_leaving(slot, counters));
            }
            if let Some(request) = client.channel.receiver.try_pop() {
                counters.requests += 1;
                let id = client.id;
                return Some(Client::found(id, request));
            }
        }
        None
    }

    /// Returns the next request of a leaving client, or its departure.
    #[cold]
    fn poll_leaving(&mut self, slot: usize, counters: &mut DoorCounters) -> Found {
        let client = self.slots[slot].as_mut().expect("it was there");
        let leaving = client.leaving.as_mut().expect("it leaves");
        if leaving.requests_left > 0
            && let Some(request) = client.channel.receiver.try_pop()
        {
            leaving.requests_left -= 1;
            counters.requests += 1;
            return Client::found(client.id, request);
        }
        let (id, reason) = (client.id, leaving.reason);
        *match reason {
            LeaveReason::Closed => &mut counters.closed,
            LeaveReason::Died => &mut counters.died,
            LeaveReason::TooSlow => &mut counters.too_slow,
            LeaveReason::Broken => &mut counters.broken,
            LeaveReason::Dismissed => &mut counters.dismissed,
        } += 1;
        self.slots[slot] = None;
        self.count -= 1;
        Found::Left(id, reason)
    }

    /// Checks whether clients have left - the notice of each, and the process of one - and sends pings that
    /// are due.
    pub(super) fn look_after(&mut self, now: Nanos, period: Nanos, (session, source): (SessionId, u8)) {
        self.next_check = if self.next_check + 1 >= self.used { 0 } else { self.next_check + 1 };
        for slot in 0..self.used {
            let Some(client) = self.slots[slot].as_mut().filter(|client| client.leaving.is_none()) else {
                continue;
            };
            if client.channel.receiver.is_disconnected() {
                client.leave(LeaveReason::Closed);
            } else if slot == self.next_check && client.channel.is_peer_disconnected() {
                client.leave(LeaveReason::Died);
            } else if now >= client.next_ping {
                client.next_ping = now + period;
                client.send_ping(session, source);
            }
        }
    }

    /// Processes the answer to a ping; `None` if it matches no ping.
    pub(super) fn pong(&mut self, id: ClientId, request: &Request, now: Nanos) -> Option<Heartbeat> {
        let client = self.client(id)?;
        let pong: Pong = request.body()?;
        let sent = client.ping.filter(|sent| *sent == pong.ping_ns && client.pings == pong.number)?;
        let heartbeat = Heartbeat {
            to_client_ns: pong.received_ns.checked_sub(sent)?,
            to_gateway_ns: now.0.checked_sub(request.header.create_ns)?,
        };
        if request.header.create_ns < pong.received_ns {
            return None;
        }
        client.ping = None;
        client.last = heartbeat;
        Some(heartbeat)
    }

    #[inline]
    fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.slots.get_mut(id.slot())?.as_mut().filter(|client| client.id == id)
    }

    #[inline]
    pub(super) fn send(&mut self, id: ClientId, event: &mut Event, is_rehearsal: bool) -> bool {
        self.client(id).is_some_and(|client| client.send(event, is_rehearsal))
    }

    pub(super) fn is_in(&self, id: ClientId) -> bool {
        let client = self.slots.get(id.slot()).and_then(Option::as_ref);
        client.is_some_and(|client| client.id == id && client.leaving.is_none())
    }

    pub(super) fn room(&self, id: ClientId) -> u64 {
        let client = self.slots.get(id.slot()).and_then(Option::as_ref);
        let is_in = |client: &&Client| client.id == id && client.leaving.is_none();
        client.filter(is_in).map_or(0, |client| client.channel.sender.free_slots())
    }

    pub(super) fn dismiss(&mut self, id: ClientId, reason: LeaveReason) {
        if let Some(client) = self.client(id) {
            client.leave(reason);
        }
    }

    pub(super) fn dismiss_all(&mut self) {
        self.slots.iter_mut().flatten().for_each(|client| client.leave(LeaveReason::Dismissed));
    }
}

impl Client {
    #[inline]
    fn found(id: ClientId, request: Request) -> Found {
        match request.header.kind {
            RequestKind::PONG => Found::Pong(id, request),
            _ => Found::Request(id, request),
        }
    }

    /// Marks the client as leaving. Requests of one that left by itself are returned first, others dropped.
    fn leave(&mut self, reason: LeaveReason) {
        let is_own = matches!(reason, LeaveReason::Closed | LeaveReason::Died);
        let requests_left = if is_own { self.channel.receiver.capacity() } else { 0 };
        self.leaving.get_or_insert(Leaving { reason, requests_left });
    }

    #[inline]
    fn send(&mut self, event: &mut Event, is_rehearsal: bool) -> bool {
        event.header.sequence = self.sent + 1;
        if self.leaving.is_some() || is_rehearsal {
            return false;
        }
        if self.channel.sender.try_push(*event).is_err() {
            let is_broken = self.channel.sender.is_broken();
            self.leave(if is_broken { LeaveReason::Broken } else { LeaveReason::TooSlow });
            return false;
        }
        self.sent += 1;
        true
    }

    fn send_ping(&mut self, session: SessionId, source: u8) {
        let sent = monotonic().0;
        let Heartbeat { to_client_ns, to_gateway_ns } = self.last;
        let ping = Ping { number: self.pings + 1, ping_ns: sent, to_client_ns, to_gateway_ns };
        let mut event = Event::of(&ping);
        (event.header.session, event.header.source, event.header.send_ns) = (session, source, sent);
        if self.send(&mut event, false) {
            self.pings += 1;
            self.ping = Some(sent);
        }
    }
}
