//! Two lines in, one gap-free sequence out.

use tickpath_faults::{Fault, is_planted};
use tickpath_nasdaq::moldudp64::{Kind, Packet, Request, Session};
use tickpath_types::{Nanos, Sequence};

use crate::counters::{ArbiterCounters, LineCounters};
use crate::hold::HoldBuffer;

/// How far beyond the last message that is known to exist a packet may begin. One that begins further on, as
/// after a long silence or as damage would have it, counts only when the next such one begins near it: a single
/// datagram cannot make the arbiter give up the messages between.
pub const MAX_AHEAD: u64 = 1 << 16;
/// Packets of one foreign session, in a row and on lines A and B, after which the publisher has started anew.
pub const FOREIGN_PACKETS: u32 = 3;
/// How often the wait for an answer doubles: a lost datagram is asked for again soon, and a server that has to read old
/// messages from a disk is not asked for the same all the while.
const WAIT_DOUBLINGS_MAX: u32 = 6;

/// Where a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Line {
    /// First multicast line.
    A = 0,
    /// Second multicast line.
    B = 1,
    /// Answers of the retransmission server.
    Recovery = 2,
}

/// What leaves an [`Arbiter`], strictly in sequence.
pub trait MessageListener {
    /// The next message of the session.
    fn on_message(&mut self, sequence: Sequence, message: &[u8]);
    /// Messages `first..first + count` are lost for good; the next message is the one after them.
    fn on_lost(&mut self, first: Sequence, count: u64);
    /// The publisher ended the session; every message of it was delivered or reported lost.
    fn on_end_of_session(&mut self) {}
    /// The lines have gone over to another session: [`FOREIGN_PACKETS`] came and none of this one between them.
    /// Nothing more of this session is to be expected, and what was built of it is of the past. Packets of the
    /// other session are dropped: it needs an arbiter and books of its own.
    fn on_foreign_session(&mut self, session: Session) {
        let _ = session;
    }
}

/// Bounds and waiting times of an [`Arbiter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterConfig {
    /// Messages held while a gap before them is open; later ones are dropped, counted, and asked for again.
    pub hold_messages: usize,
    /// How long the other line may take to close a gap before retransmission is requested.
    pub reorder_wait: Nanos,
    /// How long the answer to a first request may take before it is repeated. Each repetition is given twice as long as
    /// the one before, up to 64 times this.
    pub request_timeout: Nanos,
    /// Requests without any answer after which the missing messages count as lost; none for who has nobody to ask.
    pub max_requests: u32,
    /// Messages asked for in one request.
    pub max_request_messages: u16,
    /// A gap of more messages than these is given up without a request, once the other line has had its time: they
    /// would take longer than a snapshot. None is while there are no snapshots.
    pub max_gap_messages: u64,
}

impl Default for ArbiterConfig {
    /// Gives a gap up 2.2 s after something of it came last: a venue takes up to 2 s for messages that it has to read
    /// from its journal, and until then says nothing.
    fn default() -> Self {
        ArbiterConfig {
            hold_messages: 65_536,
            reorder_wait: Nanos::from_micros(100),
            request_timeout: Nanos::from_millis(5),
            max_requests: 12,
            max_request_messages: 1_000,
            max_gap_messages: u64::MAX,
        }
    }
}

/// An open gap: `next..end` is missing and something after it was seen.
#[derive(Clone, Copy, Debug)]
struct Gap {
    opened: Nanos,
    act_at: Nanos,
    /// Requests made since something of what was missing came.
    requests: u32,
}

/// Joins lines A and B of one multicast channel, and the answers of its retransmission server, into one
/// gap-free sequence.
///
/// The first copy of a message wins. Performs no IO and reads no clock: packets and time come in through
/// `handle_*`; messages leave through the listener in sequence order; requests to send and the next
/// deadline leave through `poll_*`, to be polled after each `handle_*`.
pub struct Arbiter {
    config: ArbiterConfig,
    session: Option<Session>,
    next: u64,
    /// One past the highest sequence that is known to exist.
    end: u64,
    held: HoldBuffer,
    gap: Option<Gap>,
    request_due: bool,
    end_of_session: Option<u64>,
    ended: bool,
    /// Where the latest packet began that was too far ahead.
    far_ahead: Option<u64>,
    /// The latest foreign session, and how many packets of it came since the last of this one.
    foreign: (Session, u32),
    counters: ArbiterCounters,
}

impl Arbiter {
    /// Starts before the first message of whatever session the first packet names.
    #[must_use]
    pub fn new(config: ArbiterConfig) -> Arbiter {
        Arbiter {
            config,
            session: None,
            next: 1,
            end: 1,
            held: HoldBuffer::new(config.hold_messages),
            gap: None,
            request_due: false,
            end_of_session: None,
            ended: false,
            far_ahead: None,
            foreign: (Session::BLANK, 0),
            counters: ArbiterCounters::default(),
        }
    }

    /// Takes one datagram from `line`.
    ///
    /// Never inlined: what is received and what is rehearsed run the same code.
    #[inline(never)]
    pub fn handle_packet(&mut self, now: Nanos, line: Line, packet: &[u8], out: &mut impl MessageListener) {
        let Ok(packet) = Packet::parse(packet) else {
            self.line(line).malformed += 1;
            return;
        };
        if *self.session.get_or_insert(packet.session()) != packet.session() {
            self.take_foreign(line, packet.session(), out);
            return;
        }
        self.foreign.1 = 0;
        let first = packet.sequence().0;
        if first > self.end.saturating_add(MAX_AHEAD) && !self.is_confirmed(first) {
            self.line(line).far_ahead += 1;
            return;
        }
        self.count_line(line, first, u64::from(packet.message_count()));
        let before_packet = self.next;
        match packet.kind() {
            Kind::Messages => self.take_messages(line, &packet, out),
            Kind::Heartbeat => self.end = self.end.max(first),
            Kind::EndOfSession => {
                self.end = self.end.max(first);
                self.end_of_session = Some(first);
            }
        }
        self.settle(now, line, before_packet, out);
    }

    /// Lets time pass: decides that a request is due, or that messages are lost.
    pub fn handle_timeout(&mut self, now: Nanos, out: &mut impl MessageListener) {
        let Some(mut gap) = self.gap.filter(|gap| now >= gap.act_at) else { return };
        let missing_end = self.missing_end();
        let count = missing_end - self.next;
        if gap.requests < self.config.max_requests && count <= self.config.max_gap_messages {
            let doublings = gap.requests.min(WAIT_DOUBLINGS_MAX);
            gap.requests += 1;
            gap.act_at = now + Nanos(self.config.request_timeout.0.saturating_mul(1 << doublings));
            self.gap = Some(gap);
            self.request_due = true;
            return;
        }
        if !is_planted(Fault::LossUntold) {
            out.on_lost(Sequence(self.next), count);
        }
        self.counters.gaps_lost += 1;
        self.counters.messages_lost += count;
        self.next = missing_end;
        self.gap = None;
        self.settle(now, Line::Recovery, missing_end, out);
    }

    /// The request to send now, if one is due.
    pub fn poll_request(&mut self) -> Option<Request> {
        let is_forgotten = is_planted(Fault::RequestForgotten);
        if !std::mem::take(&mut self.request_due) || self.gap.is_none() || is_forgotten {
            return None;
        }
        let session = self.session?;
        let missing = self.missing_end() - self.next;
        let count = u16::try_from(missing).unwrap_or(u16::MAX).min(self.config.max_request_messages);
        self.counters.requests += 1;
        Some(Request { session, sequence: Sequence(self.next), message_count: count })
    }

    /// When [`handle_timeout`](Arbiter::handle_timeout) has something to do next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.gap.map(|gap| gap.act_at)
    }

    /// The next sequence that will be delivered.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        Sequence(self.next)
    }

    /// The session, once a packet has named it.
    #[must_use]
    pub const fn session(&self) -> Option<Session> {
        self.session
    }

    /// True while messages are missing and a request for them has been made.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.gap.is_some_and(|gap| gap.requests > 0)
    }

    /// True while messages are missing.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &ArbiterCounters {
        &self.counters
    }

    #[cold]
    fn take_foreign(&mut self, line: Line, session: Session, out: &mut impl MessageListener) {
        self.line(line).wrong_session += 1;
        if line == Line::Recovery {
            return;
        }
        let (latest, count) = self.foreign;
        let count = if latest == session { count.saturating_add(1) } else { 1 };
        self.foreign = (session, count);
        if count == FOREIGN_PACKETS {
            self.counters.foreign_sessions += 1;
            out.on_foreign_session(session);
        }
    }

    /// True when a packet that begins far ahead begins near the latest other one that did.
    #[cold]
    fn is_confirmed(&mut self, first: u64) -> bool {
        let latest = self.far_ahead.replace(first);
        latest.is_some_and(|latest| first.abs_diff(latest) <= MAX_AHEAD)
    }

    /// One past the last message of the run that is missing from `next` on.
    fn missing_end(&mut self) -> u64 {
        self.held.first_held(self.next, self.end).unwrap_or(self.end)
    }

    fn take_messages(&mut self, line: Line, packet: &Packet<'_>, out: &mut impl MessageListener) {
        let (first, end) = (packet.sequence().0, packet.next_sequence().0);
        self.end = self.end.max(end);
        if end <= self.next && !is_planted(Fault::DuplicatesDelivered) {
            self.line(line).duplicate_messages += end - first;
            return;
        }
        for (Sequence(sequence), message) in packet.messages() {
            if sequence == self.next {
                let is_first = self.held.take(sequence).is_none();
                out.on_message(Sequence(sequence), message);
                self.next += 1;
                let line = self.line(line);
                *if is_first { &mut line.first_messages } else { &mut line.duplicate_messages } += 1;
            } else if sequence < self.next {
                self.line(line).duplicate_messages += 1;
                if is_planted(Fault::DuplicatesDelivered) {
                    out.on_message(Sequence(sequence), message);
                }
            } else if self.held.hold(self.next, sequence, message) {
                self.line(line).first_messages += 1;
            } else {
                self.counters.not_held += 1;
            }
        }
    }

    /// Delivers what is held and has become next, then opens, keeps or closes the gap.
    fn settle(&mut self, now: Nanos, line: Line, before_packet: u64, out: &mut impl MessageListener) {
        let swap = u64::from(is_planted(Fault::HeldMessagesSwapped));
        while let Some(message) = self.held.take(self.next ^ swap) {
            out.on_message(Sequence(self.next), message);
            self.next += 1;
        }
        if self.next >= self.end {
            self.close_gap(now, line);
            if self.end_of_session.is_some_and(|end| self.next >= end)
                && !std::mem::replace(&mut self.ended, true)
            {
                out.on_end_of_session();
            }
            return;
        }
        match &mut self.gap {
            None => {
                self.counters.gaps_opened += 1;
                self.gap = Some(Gap { opened: now, act_at: now + self.config.reorder_wait, requests: 0 });
            }
            // What is missing now is something else. An answer is one packet: what follows it is asked for again at once.
            // Of what follows on a line the other one has its time to bring it.
            Some(gap) if self.next > before_packet => {
                let wait = if line == Line::Recovery { Nanos::ZERO } else { self.config.reorder_wait };
                (gap.act_at, gap.requests) = (now + wait, 0);
                self.request_due = false;
            }
            Some(_) => {}
        }
    }

    fn close_gap(&mut self, now: Nanos, line: Line) {
        let Some(gap) = self.gap.take() else { return };
        self.request_due = false;
        let duration = now.since(gap.opened);
        self.counters.longest_gap = self.counters.longest_gap.max(duration);
        if line == Line::Recovery {
            self.counters.gaps_healed_by_retransmission += 1;
        } else {
            self.counters.gaps_healed_by_line += 1;
        }
    }

    fn line(&mut self, line: Line) -> &mut LineCounters {
        &mut self.counters.lines[line as usize]
    }

    fn count_line(&mut self, line: Line, first: u64, count: u64) {
        let line = self.line(line);
        line.packets += 1;
        if line.next_sequence != 0 && first > line.next_sequence {
            line.missed_messages += first - line.next_sequence;
        }
        line.next_sequence = line.next_sequence.max(first.saturating_add(count));
    }
}
