//! One client: its connection, its place in the stream of ticks, and the messages to be sent to it.

use std::io;
use std::net::{Ipv4Addr, Shutdown};

use tickpath_net::{Kernel, Network, StreamSocket};
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{EndOfStream, EndReason, Heartbeat, Message, Skipped, TICK_LEN};
use tickpath_ticks::request::RequestParser;
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

use super::backlog::Backlog;
use super::counters::ServerCounters;
use super::directory::{Subscription, symbol_of};
use super::faults::{Faults, TickFault};
use super::selection::TickSelection;
use super::settings::SlowClient;
use super::tick_writer::SymbolState;

pub(super) type Socket = <Kernel as Network>::Socket;

/// The reason for which a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The client closed the connection, or it was lost.
    Lost,
    /// The server has sent its last message, and ignores further input from the client.
    Finished,
}

/// The arguments of [`Client::flush`].
pub(super) struct Flush<'a> {
    pub(super) backlog: &'a Backlog,
    pub(super) states: &'a [SymbolState],
    pub(super) counters: &'a mut ServerCounters,
    pub(super) selection: &'a mut TickSelection,
    pub(super) policy: SlowClient,
    pub(super) now: Nanos,
}

/// A client's connection.
pub(super) struct Client {
    pub(super) socket: Socket,
    pub(super) peer: Ipv4Addr,
    pub(super) parser: RequestParser,
    /// The active subscription. `requested` is the next one, built from the parts of an unfinished request.
    pub(super) subscription: Option<Subscription>,
    pub(super) requested: Option<Subscription>,
    /// Place (see [`Backlog`]) of the next tick to be sent, or to be omitted if its symbol is not subscribed.
    place: u64,
    /// Numbers of messages of the listed symbols: `base` were generated before the subscription, `passed`
    /// were sent or omitted since. Not used if all symbols are subscribed.
    base: u64,
    passed: u64,
    /// A tick of which the kernel has accepted the first `partial_from` bytes; [`TICK_LEN`]: no bytes remain.
    partial_tick: [u8; TICK_LEN],
    partial_from: usize,
    /// Messages other than ticks, to be sent before the next tick.
    outbox: Vec<u8>,
    outbox_from: usize,
    /// True while the kernel's buffer is full; the poller reports when the kernel accepts bytes again.
    pub(super) is_blocked: bool,
    /// Time at which the connection is closed; until then, no new ticks are sent. `None` if it stays open.
    closing: Option<Nanos>,
    /// True once the last message is sent and the sending side is closed.
    pub(super) has_ended: bool,
    pub(super) last_sent: Nanos,
    pub(super) last_received: Nanos,
    pub(super) stalled_until: Nanos,
    pub(super) faults: Option<Box<Faults>>,
}

impl Client {
    pub(super) fn new(socket: Socket, peer: Ipv4Addr, symbols: u32, now: Nanos) -> Client {
        Client {
            socket,
            peer,
            parser: RequestParser::new(symbols),
            subscription: None,
            requested: None,
            place: 0,
            base: 0,
            passed: 0,
            partial_tick: [0; TICK_LEN],
            partial_from: TICK_LEN,
            outbox: Vec::new(),
            outbox_from: 0,
            is_blocked: false,
            closing: None,
            has_ended: false,
            last_sent: now,
            last_received: now,
            stalled_until: Nanos::ZERO,
            faults: None,
        }
    }

    /// Returns the messages to be sent before the next tick.
    pub(super) fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// Adds a message to be sent before the next tick.
    pub(super) fn queue_message<M: Message>(&mut self, message: M) {
        self.outbox.extend_from_slice(with_checksum(message).as_bytes());
    }

    /// Returns the place of the next tick; `None` if the client has no subscription or is closing.
    pub(super) fn tick_place(&self) -> Option<u64> {
        (self.subscription.is_some() && self.closing.is_none()).then_some(self.place)
    }

    /// Returns the sequence number of the tick at the client's place.
    pub(super) fn next_sequence(&self) -> u64 {
        self.place + 1
    }

    /// Subscribes the client to the ticks of these symbols from `place` on.
    pub(super) fn subscribe(&mut self, subscription: Subscription, place: u64, states: &[SymbolState]) {
        (self.base, self.passed) = (subscription.messages(states), 0);
        (self.subscription, self.place) = (Some(subscription), place);
    }

    /// Ends the stream: no more ticks are sent, and the connection is closed at the earliest deadline given.
    pub(super) fn close_by(&mut self, deadline: Nanos) {
        self.closing = Some(self.closing.unwrap_or(deadline).min(deadline));
    }

    pub(super) fn closes_at(&self) -> Option<Nanos> {
        self.closing
    }

    /// Ends the stream with an End of Stream message that has this reason, unless it is already ending.
    pub(super) fn end(&mut self, reason: EndReason, now: Nanos, deadline: Nanos) {
        if self.closing.is_none() {
            self.queue_message(EndOfStream::new(self.next_sequence(), reason, now));
            self.close_by(deadline);
        }
    }

    /// Returns true if a partial tick or messages in the outbox remain to be sent.
    pub(super) fn has_messages(&self) -> bool {
        self.outbox_from < self.outbox.len() || self.partial_from < TICK_LEN
    }

    /// Queues a heartbeat if no other message is queued and the client can receive; returns true if it did.
    pub(super) fn queue_heartbeat(&mut self, now: Nanos) -> bool {
        let is_due =
            !self.has_messages() && !self.is_blocked && self.closing.is_none() && now >= self.stalled_until;
        if is_due {
            self.queue_message(Heartbeat::new(self.next_sequence(), now));
        }
        is_due
    }

    /// Sends the waiting messages and ticks, as far as the kernel accepts them.
    #[inline]
    pub(super) fn flush(&mut self, flush: &mut Flush<'_>) -> Result<(), ConnectionEnd> {
        if self.is_blocked || flush.now < self.stalled_until {
            return Ok(());
        }
        loop {
            if self.has_messages() && !self.send_messages(flush)? {
                return Ok(());
            }
            if self.closing.is_some() {
                return self.finish();
            }
            if self.subscription.is_none() || !self.send_ticks(flush)? {
                return Ok(());
            }
        }
    }

    /// Sends the partial tick and the outbox as far as the kernel accepts them. If the connection is closing
    /// and all is sent, closes the sending side.
    pub(super) fn flush_messages(&mut self, flush: &mut Flush<'_>) -> Result<(), ConnectionEnd> {
        if self.is_blocked
            || flush.now < self.stalled_until
            || self.has_messages() && !self.send_messages(flush)?
        {
            return Ok(());
        }
        if self.closing.is_some() { self.finish() } else { Ok(()) }
    }

    /// Closes the sending side of the socket, after the last message.
    fn finish(&mut self) -> Result<(), ConnectionEnd> {
        if !self.has_ended {
            self.has_ended = true;
            // Closing the sending side of a lost connection fails, which does no harm.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Err(ConnectionEnd::Finished)
    }

    /// Sends the remaining bytes of a partial tick, then the outbox. Returns false if the kernel did not
    /// accept all bytes.
    fn send_messages(&mut self, flush: &mut Flush<'_>) -> Result<bool, ConnectionEnd> {
        if self.partial_from < TICK_LEN {
            let sent = send(&self.socket, &self.partial_tick[self.partial_from..], flush.counters)?;
            self.note_sent(sent, flush.now);
            self.partial_from += sent;
            if self.partial_from < TICK_LEN {
                self.is_blocked = true;
                return Ok(false);
            }
        }
        if self.outbox_from < self.outbox.len() {
            let sent = send(&self.socket, &self.outbox[self.outbox_from..], flush.counters)?;
            self.note_sent(sent, flush.now);
            self.outbox_from += sent;
            if self.outbox_from < self.outbox.len() {
                self.is_blocked = true;
                return Ok(false);
            }
            self.outbox_from = 0;
            self.outbox.clear();
            // Releases the memory of a long outbox.
            self.outbox.shrink_to(TICK_LEN);
        }
        Ok(true)
    }

    /// Sends the sealed ticks. Returns true if the policy for slow subscribers or a fault interrupted it: the
    /// caller then sends the queued messages and calls again.
    fn send_ticks(&mut self, flush: &mut Flush<'_>) -> Result<bool, ConnectionEnd> {
        let end = flush.backlog.sealed();
        while self.place < end {
            if end - self.place > flush.backlog.retained() {
                self.apply_slow_policy(flush);
                return Ok(true);
            }
            let fault = self.faults.as_mut().map_or(u64::MAX, |faults| faults.next_place(self.place));
            if fault <= self.place {
                self.inject_fault(flush);
                return Ok(true);
            }
            let end = end.min(fault);
            let sent_all = match &self.subscription {
                Some(Subscription::All) => self.send_all(end, flush)?,
                Some(Subscription::Listed(_)) => self.send_chosen(end, flush)?,
                None => return Ok(false),
            };
            if !sent_all {
                self.is_blocked = true;
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Sends the ticks of all symbols before place `end`, directly from the backlog. Returns false if the
    /// kernel did not accept all bytes.
    #[inline]
    fn send_all(&mut self, end: u64, flush: &mut Flush<'_>) -> Result<bool, ConnectionEnd> {
        let bytes = flush.backlog.ticks(self.place, end).as_bytes();
        let sent = send(&self.socket, bytes, flush.counters)?;
        self.note_sent(sent, flush.now);
        let whole = (sent / TICK_LEN) as u64;
        self.place += whole;
        flush.counters.ticks_sent += whole;
        let torn = sent % TICK_LEN;
        if torn > 0 {
            self.keep_partial(flush.backlog.bytes(self.place), torn, flush.counters);
            self.place += 1;
        }
        Ok(sent == bytes.len())
    }

    /// Sends the ticks of the listed symbols before place `end`. Returns false if the kernel did not accept
    /// all bytes.
    fn send_chosen(&mut self, end: u64, flush: &mut Flush<'_>) -> Result<bool, ConnectionEnd> {
        let Some(subscription) = &self.subscription else { return Ok(true) };
        let examined_to = flush.selection.fill(flush.backlog, subscription, self.place, end);
        let bytes = flush.selection.bytes();
        if bytes.is_empty() {
            self.place = examined_to;
            return Ok(true);
        }
        let sent = send(&self.socket, bytes, flush.counters)?;
        self.note_sent(sent, flush.now);
        let is_all = sent == bytes.len();
        let (whole, torn) = (sent / TICK_LEN, sent % TICK_LEN);
        self.passed += whole as u64;
        flush.counters.ticks_sent += whole as u64;
        if is_all {
            self.place = examined_to;
            return Ok(true);
        }
        self.place = flush.selection.place(whole);
        if torn > 0 {
            let rest = flush.selection.tick(whole);
            self.keep_partial(rest, torn, flush.counters);
            self.place += 1;
            self.passed += 1;
        }
        Ok(false)
    }

    /// Stores a tick of which the kernel accepted `sent` bytes; the next flush sends its other bytes.
    fn keep_partial(&mut self, tick: [u8; TICK_LEN], sent: usize, counters: &mut ServerCounters) {
        (self.partial_tick, self.partial_from) = (tick, sent);
        counters.ticks_sent += 1;
    }

    #[inline]
    fn note_sent(&mut self, sent: usize, now: Nanos) {
        if sent > 0 {
            self.last_sent = now;
        }
    }

    /// Applies the server's policy for slow subscribers to this client.
    #[cold]
    fn apply_slow_policy(&mut self, flush: &mut Flush<'_>) {
        let Some(subscription) = self.subscription.take() else { return };
        flush.counters.slow += 1;
        let end = flush.backlog.sealed();
        // Number of subscribed ticks not yet sent: from the places if all symbols are subscribed, else from
        // the symbols' sequence numbers.
        let missed = |client: &Client| match &subscription {
            Subscription::All => end - client.place,
            Subscription::Listed(_) => {
                (subscription.messages(flush.states) - client.base).saturating_sub(client.passed)
            }
        };
        let missed = missed(self);
        match flush.policy {
            SlowClient::Disconnect => {
                flush.counters.slow_disconnected += 1;
                self.end(EndReason::TooSlow, flush.now, flush.now + CLOSE_TIME);
            }
            SlowClient::Drop => {
                flush.counters.skipped += missed;
                self.queue_message(Skipped::new(end + 1, missed));
            }
            SlowClient::Sample => {
                let kept = flush.selection.sample(
                    flush.backlog,
                    &subscription,
                    flush.states,
                    end,
                    missed,
                    &mut self.outbox,
                );
                flush.counters.skipped += missed - kept;
                flush.counters.ticks_sent += kept;
            }
        }
        self.passed += missed;
        (self.subscription, self.place) = (Some(subscription), end);
    }

    /// Injects the tick fault that is scheduled for the client's place.
    #[cold]
    fn inject_fault(&mut self, flush: &mut Flush<'_>) {
        let (Some(faults), Some(subscription)) = (&mut self.faults, &self.subscription) else { return };
        let left = flush.backlog.sealed() - self.place;
        match faults.take(self.place) {
            TickFault::Gap(count) => {
                let count = count.min(left);
                let ticks =
                    (self.place..self.place + count).map(|place| flush.backlog.ticks(place, place + 1));
                let dropped = ticks.flatten().filter(|tick| subscription.has(symbol_of(tick))).count() as u64;
                flush.counters.fault_gaps += dropped;
                self.passed += dropped;
                self.place += count;
            }
            TickFault::Corrupt(bit) => {
                let tick = flush.backlog.ticks(self.place, self.place + 1);
                if tick.iter().all(|tick| subscription.has(symbol_of(tick))) {
                    let mut bytes = flush.backlog.bytes(self.place);
                    bytes[bit / 8 % TICK_LEN] ^= 1 << (bit % 8);
                    self.keep_partial(bytes, 0, flush.counters);
                    flush.counters.fault_corrupt += 1;
                    self.passed += 1;
                }
                self.place += 1;
            }
        }
    }

    /// Returns true if the client is blocked, and so far behind that the policy for slow subscribers applies.
    pub(super) fn is_too_slow(&self, backlog: &Backlog) -> bool {
        self.is_blocked
            && self.tick_place().is_some_and(|place| backlog.sealed() - place > backlog.retained())
    }
}

/// Time for which a closing connection waits for the client to receive the last message.
pub(super) const CLOSE_TIME: Nanos = Nanos::from_secs(2);

/// Writes bytes to the socket; returns the number of bytes that the kernel accepted.
#[inline]
fn send(socket: &Socket, bytes: &[u8], counters: &mut ServerCounters) -> Result<usize, ConnectionEnd> {
    counters.writes += 1;
    match StreamSocket::send(socket, bytes) {
        Ok(sent) => {
            counters.bytes_sent += sent as u64;
            counters.blocked += u64::from(sent < bytes.len());
            Ok(sent)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            counters.blocked += 1;
            Ok(0)
        }
        Err(_) => Err(ConnectionEnd::Lost),
    }
}
