//! Arbitration of lines A and B into one gap-free sequence.

use tickpath_faults::failpoint;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::{Nanos, Sequence};

use crate::counters::{ArbiterCounters, LineCounters};
use crate::framing::{Framing, MoldUdp64, PacketHeader, PacketKind};
use crate::line::{Line, MAX_AHEAD};
use crate::reorder_buffer::ReorderBuffer;
use crate::skew::SkewTracker;

/// Number of consecutive packets of one other session, on either line, that count as a session change.
pub const SESSION_CHANGE_PACKETS: u32 = 3;
/// Minimum silence of the current session before the arbiter reports a change back to the previous one.
/// Without this wait, two publishers on one group would make it alternate between their sessions.
pub const RETURN_AFTER: Nanos = Nanos::from_secs(3);
/// Number of consecutive packets of one line that continue from an earlier sequence number, while neither
/// line delivers a new message, after which the arbiter assumes an unannounced sequence reset.
pub const JUMP_BACK_PACKETS: u32 = 16;
/// Two packets that restart the numbering are duplicates if sent less than this many nanoseconds apart.
const RESTART_APART_NS: u64 = 1_000_000_000;
/// Maximum number of doublings of the request timeout. The first repetitions come soon, in case a datagram
/// was lost. The later ones spare a server that reads old messages from disk.
const WAIT_DOUBLINGS_MAX: u32 = 6;

/// Receives the output of an [`Arbiter`], in sequence order. `S` is the protocol's session identifier.
pub trait MessageListener<S = Session> {
    /// Receives the next message of the session.
    fn on_message(&mut self, sequence: Sequence, message: &[u8]);
    /// Receives the next messages of the session, all from one packet; `first` is the sequence number of the
    /// first.
    #[inline(always)]
    fn on_messages<'a>(&mut self, first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        let mut sequence = first;
        for message in messages {
            self.on_message(sequence, message);
            sequence = sequence.next();
        }
    }
    /// Messages `first..first + count` are lost for good; delivery continues with message `first + count`.
    fn on_lost(&mut self, first: Sequence, count: u64);
    /// The publisher ended the session, and every message of the session was delivered or reported lost.
    fn on_end_of_session(&mut self) {}
    /// The lines have changed to `session`: [`SESSION_CHANGE_PACKETS`] of its packets came in a row. State
    /// built from the old session is obsolete. The arbiter drops packets of the new session until it is
    /// [reset](Arbiter::reset).
    fn on_session_change(&mut self, session: S) {
        let _ = session;
    }
    /// Sequence numbers restart at 1 within the same session: the publisher announced it, or
    /// [`JUMP_BACK_PACKETS`] packets repeated earlier numbers. State built so far is obsolete.
    fn on_restart(&mut self) {}
    /// The lines sent different bytes under the same sequence numbers, from `first` on. The arbiter delivers
    /// the copy that arrived first; `messages` is the later copy.
    fn on_disagreement<'a>(&mut self, first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        let _ = (first, messages);
    }
}

/// Limits and timeouts of an [`Arbiter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterConfig {
    /// Capacity of the reorder buffer, in messages. Messages beyond it are dropped, counted, and requested
    /// again.
    pub hold_messages: usize,
    /// Time that the other line has to fill a gap before retransmission is requested.
    pub reorder_wait: Nanos,
    /// Time to wait for an answer before the first request is repeated. Each repetition doubles the wait, up
    /// to 64 times this value.
    pub request_timeout: Nanos,
    /// Number of requests without progress after which the missing messages count as lost; 0 if there is no
    /// retransmission server.
    pub max_requests: u32,
    /// Maximum number of messages per request.
    pub max_request_messages: u16,
    /// Longest gap, in messages, for which retransmission is requested; `u64::MAX` where there are no
    /// snapshots. A longer gap is given up after `reorder_wait`, since its retransmission would take longer
    /// than a snapshot.
    pub max_gap_messages: u64,
    /// Compare packets of the two lines that carry the same messages. This hashes every packet, about 2 ns
    /// per message. Messages that arrive during a gap are always compared.
    pub compare_lines: bool,
}

impl Default for ArbiterConfig {
    /// Returns a configuration that gives up a gap 2.2 s after its last progress. A venue takes up to 2 s for
    /// messages that it must read from its journal, and sends nothing until then.
    fn default() -> Self {
        ArbiterConfig {
            hold_messages: 65_536,
            reorder_wait: Nanos::from_micros(100),
            request_timeout: Nanos::from_millis(5),
            max_requests: 12,
            max_request_messages: 1_000,
            max_gap_messages: u64::MAX,
            compare_lines: false,
        }
    }
}

/// An open gap: message `Arbiter::next` has not arrived, but a later packet shows that it exists.
#[derive(Clone, Copy, Debug)]
struct Gap {
    opened: Nanos,
    act_at: Nanos,
    /// Number of requests sent since a missing message last arrived.
    requests: u32,
    /// True once retransmission was requested for this gap. Until the gap is filled, books are shown as
    /// recovering.
    is_requested: bool,
    /// Sequence number after the last message of the latest request.
    requested_end: u64,
}

/// State that depends on the sequence numbers and is reset when they restart.
#[derive(Default)]
struct Numbering {
    /// Sequence number after the session's last message, once the publisher has announced the end.
    end_of_session: Option<u64>,
    ended: bool,
    /// First sequence number of the latest packet that was more than [`MAX_AHEAD`] messages ahead.
    far_ahead: Option<u64>,
    /// Send times of the packet that began the numbering and of the latest packet sent, by the publisher's
    /// clock.
    started_ns: u64,
    newest_ns: u64,
}

/// A run of consecutive packets of one session other than the current one.
#[derive(Clone, Copy)]
struct OtherSessionRun<S> {
    session: S,
    count: u32,
    since: Nanos,
    is_reported: bool,
}

/// Joins lines A and B of one multicast channel, and the answers of its retransmission server, into one
/// gap-free sequence, for any protocol that numbers its messages.
///
/// The first copy of a message wins. A packet of duplicates is recognised by its header and dropped. The
/// arbiter performs no IO and reads no clock: packets and time enter through `handle_*`. Messages leave
/// through the listener in order. Requests and the next deadline leave through `poll_*`, to be polled after
/// each `handle_*`.
pub struct Arbiter<F: Framing = MoldUdp64> {
    config: ArbiterConfig,
    session: Option<F::Session>,
    next: u64,
    /// One past the highest sequence number that is known to exist.
    end: u64,
    reorder_buffer: ReorderBuffer<F::Storage>,
    gap: Option<Gap>,
    /// True in the normal case: no gap, no end of session, no line with numbers from before a restart.
    is_fast_path: bool,
    request_due: bool,
    /// The run of packets of another session since the last packet of the current session.
    other_session: Option<OtherSessionRun<F::Session>>,
    /// The session that the latest [`reset`](Self::reset) left.
    previous_session: Option<F::Session>,
    numbering: Numbering,
    skew_tracker: SkewTracker,
    counters: ArbiterCounters,
}

impl<F: Framing> Arbiter<F> {
    /// Creates an arbiter that starts with message 1 of the session that the first packet names.
    #[must_use]
    pub fn new(config: ArbiterConfig) -> Arbiter<F> {
        Arbiter {
            config,
            session: None,
            next: 1,
            end: 1,
            reorder_buffer: ReorderBuffer::new(config.hold_messages),
            gap: None,
            is_fast_path: false,
            request_due: false,
            other_session: None,
            previous_session: None,
            numbering: Numbering::default(),
            skew_tracker: SkewTracker::new(config.compare_lines),
            counters: ArbiterCounters::default(),
        }
    }

    /// Leaves the session, and starts with message 1 of the next session that differs from it. A return to
    /// the session just left takes at least [`RETURN_AFTER`]. The counters keep their values.
    pub fn reset(&mut self) {
        self.previous_session = self.session.take();
        self.other_session = None;
        self.restart_numbers();
        self.counters.lines.iter_mut().for_each(|line| line.restart(true));
    }

    /// Handles one datagram from `line`.
    ///
    /// Never inlined, so that the warm-up runs the same code as live input.
    #[inline(never)]
    pub fn handle_packet(
        &mut self,
        now: Nanos,
        line: Line,
        datagram: &[u8],
        out: &mut impl MessageListener<F::Session>,
    ) {
        let Some(header) = F::header(datagram, self.next) else {
            self.line(line).malformed += 1;
            return;
        };
        let is_ours = self.session == Some(header.session);
        if header.is_reset && is_ours && self.is_restart(line, &header) {
            self.counters.restarts += 1;
            self.restart(line, &header, out);
        }
        let is_duplicate = header.end() <= self.next && header.kind == PacketKind::Messages && is_ours;
        failpoint!(DuplicatesDelivered: is_duplicate = false);
        if is_duplicate {
            self.handle_duplicate(now, line, &header, datagram, out);
            return;
        }
        let Some(messages) = F::messages(datagram) else {
            self.line(line).malformed += 1;
            return;
        };
        if is_ours && self.is_in_sequence(line, &header) {
            self.other_session = None;
            self.note_line(now, line, &header, datagram);
            self.deliver_next(line, &header, messages, out);
            return;
        }
        if header.kind == PacketKind::OutOfBand {
            self.counters.out_of_band += 1;
            return;
        }
        if !is_ours {
            if self.session.is_some() || self.previous_session == Some(header.session) {
                self.handle_other_session(now, line, header.session, out);
                return;
            }
            self.session = Some(header.session);
            self.numbering.started_ns = header.sent_ns;
        }
        self.other_session = None;
        let (first, next) = (header.first, self.next);
        if self.is_out_of_range(line, first) {
            return;
        }
        match header.kind {
            PacketKind::Messages => {
                self.note_line(now, line, &header, datagram);
                self.end = self.end.max(header.end());
                self.handle_each(line, first, messages, out);
            }
            PacketKind::Heartbeat | PacketKind::EndOfSession | PacketKind::OutOfBand => {
                self.count_line(line, &header);
                self.end = self.end.max(first);
                if header.kind == PacketKind::EndOfSession {
                    self.numbering.end_of_session = Some(first);
                }
            }
            PacketKind::Unavailable => self.handle_unavailable(line, &header, out),
        }
        self.advance(now, line, next, out);
    }

    /// Counts a packet whose numbers predate a restart or are too far ahead; returns true for such a packet.
    #[inline]
    fn is_out_of_range(&mut self, line: Line, first: u64) -> bool {
        let next = self.next;
        if self.line(line).is_before_restart() && self.line(line).is_left_behind(first, next) {
            self.counters.left_behind += 1;
            return true;
        }
        let is_far_ahead = first > self.end.saturating_add(MAX_AHEAD) && !self.is_confirmed(first);
        self.line(line).far_ahead += u64::from(is_far_ahead);
        is_far_ahead
    }

    /// If the gap's deadline has passed, makes a request due or gives up the missing messages as lost.
    pub fn handle_timeout(&mut self, now: Nanos, out: &mut impl MessageListener<F::Session>) {
        let Some(mut gap) = self.gap.filter(|gap| now >= gap.act_at) else { return };
        let missing_end = self.missing_end();
        let count = missing_end - self.next;
        if gap.requests < self.config.max_requests && count <= self.config.max_gap_messages {
            let doublings = gap.requests.min(WAIT_DOUBLINGS_MAX);
            (gap.requests, gap.is_requested) = (gap.requests + 1, true);
            gap.act_at = now + Nanos(self.config.request_timeout.0.saturating_mul(1 << doublings));
            self.gap = Some(gap);
            self.request_due = true;
            return;
        }
        self.give_up(count, out);
        self.advance(now, Line::Recovery, missing_end, out);
    }

    /// Handles a refusal by the retransmission server: reports the missing messages as lost.
    pub fn handle_refused(&mut self, now: Nanos, out: &mut impl MessageListener<F::Session>) {
        if self.gap.is_some() {
            let missing_end = self.missing_end();
            self.give_up(missing_end - self.next, out);
            self.advance(now, Line::Recovery, missing_end, out);
        }
    }

    /// Returns the request for missing messages to send now, if one is due.
    pub fn poll_request(&mut self) -> Option<F::Request> {
        if !std::mem::take(&mut self.request_due) || self.gap.is_none() {
            return None;
        }
        failpoint!(RequestForgotten => return None);
        let session = self.session?;
        let missing = self.missing_end() - self.next;
        let count = u16::try_from(missing).unwrap_or(u16::MAX).min(self.config.max_request_messages);
        self.counters.requests += 1;
        if let Some(gap) = &mut self.gap {
            gap.requested_end = self.next + u64::from(count);
        }
        Some(F::request(session, Sequence(self.next), count))
    }

    /// Returns the time at which [`handle_timeout`](Arbiter::handle_timeout) must be called next; `None`
    /// without a gap.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.gap.map(|gap| gap.act_at)
    }

    /// Returns the sequence number of the next message to be delivered.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        Sequence(self.next)
    }

    /// Returns the current session; `None` until a packet names one.
    #[must_use]
    pub const fn session(&self) -> Option<F::Session> {
        self.session
    }

    /// Returns true from the first request for missing messages until none are missing, even if a request
    /// covers only part of a long gap.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.gap.is_some_and(|gap| gap.is_requested)
    }

    /// Returns true while messages are missing.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counters(&self) -> &ArbiterCounters {
        &self.counters
    }

    /// Reports the next `count` messages as lost for good.
    fn give_up(&mut self, count: u64, out: &mut impl MessageListener<F::Session>) {
        let first = Sequence(self.next);
        self.counters.gaps_lost += 1;
        self.counters.messages_lost += count;
        self.next += count;
        self.gap = None;
        failpoint!(LossUntold => return);
        out.on_lost(first, count);
    }

    #[cold]
    fn handle_other_session(
        &mut self,
        now: Nanos,
        line: Line,
        session: F::Session,
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.line(line).wrong_session += 1;
        if line == Line::Recovery {
            return;
        }
        let before = self.other_session.filter(|run| run.session == session);
        let mut run = before.unwrap_or(OtherSessionRun { session, count: 0, since: now, is_reported: false });
        run.count = run.count.saturating_add(1);
        let is_back = self.previous_session == Some(session);
        if run.count >= SESSION_CHANGE_PACKETS
            && (!is_back || now.since(run.since) >= RETURN_AFTER)
            && !std::mem::replace(&mut run.is_reported, true)
        {
            self.counters.other_sessions += 1;
            self.previous_session = self.previous_session.filter(|_| !is_back);
            out.on_session_change(session);
        }
        self.other_session = Some(run);
    }

    /// Returns true if a packet with `is_reset` is a new restart, not a duplicate of the one that began the
    /// numbering: it was sent after every other packet, and [`RESTART_APART_NS`] or more after that one.
    fn is_restart(&self, line: Line, header: &PacketHeader<F::Session>) -> bool {
        line != Line::Recovery
            && self.end > header.end()
            && header.sent_ns > self.numbering.newest_ns
            && header.sent_ns - self.numbering.started_ns >= RESTART_APART_NS
    }

    #[cold]
    fn restart(
        &mut self,
        line: Line,
        header: &PacketHeader<F::Session>,
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.restart_numbers();
        for (place, counters) in self.counters.lines.iter_mut().enumerate() {
            counters.restart(place == line as usize);
        }
        self.numbering.started_ns = header.sent_ns;
        out.on_restart();
    }

    fn restart_numbers(&mut self) {
        (self.next, self.end) = (1, 1);
        self.reorder_buffer.clear();
        (self.gap, self.is_fast_path) = (None, false);
        self.request_due = false;
        self.numbering = Numbering::default();
        self.skew_tracker.clear();
    }

    /// Handles a packet of duplicates by its header; decodes its messages only if the lines disagree.
    #[inline]
    fn handle_duplicate(
        &mut self,
        now: Nanos,
        line: Line,
        header: &PacketHeader<F::Session>,
        datagram: &[u8],
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.other_session = None;
        self.count_line(line, header);
        self.line(line).duplicate_messages += header.count;
        if line == Line::Recovery {
            return;
        }
        if let Some(duplicate) = self.skew_tracker.compare(now, line, header, F::body(datagram)) {
            self.line(line).skew.record(duplicate.behind);
            if duplicate.differs {
                self.report_disagreement(header.first, datagram, out);
            }
        }
        if self.line(line).back_run >= u64::from(JUMP_BACK_PACKETS) {
            // Restart at message 1. The messages sent since the unannounced reset form an ordinary gap.
            self.counters.jumps_back += 1;
            self.restart(line, header, out);
        }
    }

    #[cold]
    fn report_disagreement(
        &mut self,
        first: u64,
        datagram: &[u8],
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.counters.disagreements += 1;
        if let Some(messages) = F::messages(datagram) {
            out.on_disagreement(Sequence(first), messages);
        }
    }

    /// Handles the publisher's notice that messages are no longer available: gives up those that are next in
    /// sequence.
    #[cold]
    fn handle_unavailable(
        &mut self,
        line: Line,
        header: &PacketHeader<F::Session>,
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.line(line).packets += 1;
        self.counters.unavailable += header.count;
        let end = header.end().min(self.missing_end());
        if header.first <= self.next && end > self.next {
            self.give_up(end - self.next, out);
        }
    }

    /// Returns true if a packet too far ahead begins near the previous packet that was too far ahead.
    #[cold]
    fn is_confirmed(&mut self, first: u64) -> bool {
        let latest = self.numbering.far_ahead.replace(first);
        latest.is_some_and(|latest| first.abs_diff(latest) <= MAX_AHEAD)
    }

    /// Returns the end (exclusive) of the run of missing messages that begins at `next`.
    fn missing_end(&mut self) -> u64 {
        self.reorder_buffer.first_held(self.next, self.end).unwrap_or(self.end)
    }

    /// Returns true in the usual case: `is_fast_path` is set, and a packet with messages from line A or B
    /// begins at or before `next`.
    #[inline(always)]
    fn is_in_sequence(&self, line: Line, header: &PacketHeader<F::Session>) -> bool {
        failpoint!(DuplicatesDelivered => return false);
        failpoint!(HeldMessagesSwapped => return false);
        self.is_fast_path
            && header.first <= self.next
            && header.kind == PacketKind::Messages
            && line != Line::Recovery
    }

    /// Delivers the new messages of a packet that is [in sequence](Self::is_in_sequence).
    #[inline(always)]
    fn deliver_next<'a>(
        &mut self,
        line: Line,
        header: &PacketHeader<F::Session>,
        mut messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl MessageListener<F::Session>,
    ) {
        let (next, end) = (self.next, header.end());
        for _ in header.first..next {
            messages.next();
        }
        (self.next, self.end) = (end, end);
        let line = self.line(line);
        line.duplicate_messages += next - header.first;
        line.first_messages += end - next;
        out.on_messages(Sequence(next), messages);
    }

    /// Handles the messages of a packet one by one: each is delivered, held or dropped.
    fn handle_each<'a>(
        &mut self,
        line: Line,
        first: u64,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl MessageListener<F::Session>,
    ) {
        for (sequence, message) in (first..).zip(messages) {
            if sequence == self.next {
                let is_first = self.reorder_buffer.take(sequence).is_none();
                out.on_message(Sequence(sequence), message);
                self.next += 1;
                let line = self.line(line);
                *if is_first { &mut line.first_messages } else { &mut line.duplicate_messages } += 1;
            } else if sequence < self.next {
                self.line(line).duplicate_messages += 1;
                failpoint!(DuplicatesDelivered => out.on_message(Sequence(sequence), message));
            } else if self.reorder_buffer.hold(self.next, sequence, message) {
                self.line(line).first_messages += 1;
            } else {
                self.counters.not_held += 1;
                if self.reorder_buffer.peek(sequence).is_some_and(|held| held != message) {
                    self.counters.disagreements += 1;
                    out.on_disagreement(Sequence(sequence), std::iter::once(message));
                }
            }
        }
    }

    /// Delivers held messages that are next in sequence, then opens, keeps or closes the gap.
    fn advance(
        &mut self,
        now: Nanos,
        line: Line,
        before_packet: u64,
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.deliver_held(now, line, before_packet, out);
        self.is_fast_path = self.gap.is_none()
            && self.numbering.end_of_session.is_none()
            && !self.counters.lines.iter().any(LineCounters::is_before_restart);
    }

    fn deliver_held(
        &mut self,
        now: Nanos,
        line: Line,
        before_packet: u64,
        out: &mut impl MessageListener<F::Session>,
    ) {
        loop {
            let next = self.next;
            failpoint!(HeldMessagesSwapped: next = next ^ 1);
            let Some(message) = self.reorder_buffer.take(next) else { break };
            out.on_message(Sequence(self.next), message);
            self.next += 1;
        }
        if self.next >= self.end {
            self.close_gap(now, line);
            if self.numbering.end_of_session.is_some_and(|end| self.next >= end)
                && !std::mem::replace(&mut self.numbering.ended, true)
            {
                out.on_end_of_session();
            }
            return;
        }
        match &mut self.gap {
            None => {
                self.counters.gaps_opened += 1;
                let act_at = now + self.config.reorder_wait;
                self.gap =
                    Some(Gap { opened: now, act_at, requests: 0, is_requested: false, requested_end: 0 });
            }
            // The gap has shrunk. After a complete answer, request the rest of the gap at once; after a
            // partial one, wait for the rest of the answer. After progress on a line, give the other line
            // time to fill the gap.
            Some(gap) if self.next > before_packet => {
                let is_answered = F::ANSWERS_ARE_ONE_PACKET || self.next >= gap.requested_end;
                let wait = match line {
                    Line::Recovery if is_answered => Nanos::ZERO,
                    Line::Recovery => self.config.request_timeout,
                    Line::A | Line::B => self.config.reorder_wait,
                };
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

    /// Counts a packet with messages, and records its arrival time.
    #[inline(always)]
    fn note_line(&mut self, now: Nanos, line: Line, header: &PacketHeader<F::Session>, datagram: &[u8]) {
        self.count_line(line, header);
        if line != Line::Recovery {
            self.numbering.newest_ns = self.numbering.newest_ns.max(header.sent_ns);
            self.skew_tracker.note(now, line, header, F::body(datagram));
        }
    }

    #[inline(always)]
    fn count_line(&mut self, line: Line, header: &PacketHeader<F::Session>) {
        let (first, end, known_end) = (header.first, header.end(), self.end);
        let line = self.line(line);
        line.packets += 1;
        if first == line.next_sequence {
            line.next_sequence = end;
            return;
        }
        line.count_jump(first, end, known_end);
    }
}
