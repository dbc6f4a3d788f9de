//! Two lines in, one gap-free sequence out.

use tickpath_faults::failpoint;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::{Nanos, Sequence};

use crate::counters::{ArbiterCounters, LineCounters};
use crate::framing::{Framing, MoldUdp64, PacketHeader, PacketKind};
use crate::hold::HoldBuffer;
use crate::line::{Line, MAX_AHEAD};
use crate::marks::Marks;

/// Packets of one foreign session, in a row and on lines A and B, after which the publisher has started anew.
pub const FOREIGN_PACKETS: u32 = 3;
/// A session that was left is gone back to only after so long without a packet of the present one: two publishers on one
/// group would otherwise have it turn to the one and the other all the while.
pub const RETURN_AFTER: Nanos = Nanos::from_secs(3);
/// Packets of one line, in a row, that begin again further back than the line had come, while nothing new comes by any
/// line: the publisher numbers from an earlier place on, and did not say so.
pub const JUMP_BACK_PACKETS: u32 = 16;
/// Two packets that both begin the numbering are copies of one when they were sent less than this apart.
const RESTART_APART_NS: u64 = 1_000_000_000;
/// How often the wait for an answer doubles: a lost datagram is asked for again soon, and a server that has to read old
/// messages from a disk is not asked for the same all the while.
const WAIT_DOUBLINGS_MAX: u32 = 6;

/// What leaves an [`Arbiter`], strictly in sequence. `S` names a session as the protocol does.
pub trait MessageListener<S = Session> {
    /// The next message of the session.
    fn on_message(&mut self, sequence: Sequence, message: &[u8]);
    /// The next messages of the session, the first with this number: what one packet brought.
    #[inline(always)]
    fn on_messages<'a>(&mut self, first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        let mut sequence = first;
        for message in messages {
            self.on_message(sequence, message);
            sequence = sequence.next();
        }
    }
    /// Messages `first..first + count` are lost for good; the next message is the one after them.
    fn on_lost(&mut self, first: Sequence, count: u64);
    /// The publisher ended the session; every message of it was delivered or reported lost.
    fn on_end_of_session(&mut self) {}
    /// The lines have gone over to another session: [`FOREIGN_PACKETS`] came and none of this one between them.
    /// Nothing more of this session is to be expected, and what was built of it is of the past. Packets of the
    /// other session are dropped until the arbiter is [told to follow](Arbiter::start_anew).
    fn on_foreign_session(&mut self, session: S) {
        let _ = session;
    }
    /// The publisher numbers anew, within the same session: because it said so, or because [`JUMP_BACK_PACKETS`] came of
    /// numbers that had been. What was built is of the past, and the next message is the first one.
    fn on_restart(&mut self) {}
    /// The lines brought different bytes under the same numbers, from `first` on. What came first was delivered; these
    /// are the others.
    fn on_disagreement<'a>(&mut self, first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        let _ = (first, messages);
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
    /// Compare the bytes of what both lines bring, where their packets begin and end alike: a hash of every packet, some
    /// 2 ns a message. What comes while a gap is open is compared in any case.
    pub compare_lines: bool,
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
            compare_lines: false,
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
    /// A request was made since it opened: what is shown stays of before it until all of it has come.
    is_asked: bool,
    /// One past the last message of the latest request.
    asked_end: u64,
}

/// State that is reset when the numbering starts again.
#[derive(Default)]
struct Numbering {
    /// The number that would have been next at the end of the session.
    end_of_session: Option<u64>,
    ended: bool,
    /// The start of the latest packet that was too far ahead.
    far_ahead: Option<u64>,
    /// When the packet was sent that the numbering began with, and the latest one, by the publisher's clock.
    started_ns: u64,
    newest_ns: u64,
}

/// Packets of one foreign session in a row.
#[derive(Clone, Copy)]
struct ForeignRun<S> {
    session: S,
    count: u32,
    since: Nanos,
    is_told: bool,
}

/// Joins lines A and B of one multicast channel, and the answers of its retransmission server, into one
/// gap-free sequence, whatever protocol numbers the messages.
///
/// The first copy of a message wins; a packet of copies alone is dropped by its header. Performs no IO and reads no clock: packets and time come in through
/// `handle_*`; messages leave through the listener in sequence order; requests to send and the next
/// deadline leave through `poll_*`, to be polled after each `handle_*`.
pub struct Arbiter<F: Framing = MoldUdp64> {
    config: ArbiterConfig,
    session: Option<F::Session>,
    next: u64,
    /// One past the highest sequence that is known to exist.
    end: u64,
    held: HoldBuffer<F::Room>,
    gap: Option<Gap>,
    /// Nothing is missing, so nothing is held; the session goes on; and no line is still at numbers that have been left.
    is_plain: bool,
    request_due: bool,
    /// Packets of another session since the last of this one.
    foreign: Option<ForeignRun<F::Session>>,
    /// The session before this one.
    left: Option<F::Session>,
    numbering: Numbering,
    marks: Marks,
    counters: ArbiterCounters,
}

impl<F: Framing> Arbiter<F> {
    /// Starts before the first message of whatever session the first packet names.
    #[must_use]
    pub fn new(config: ArbiterConfig) -> Arbiter<F> {
        Arbiter {
            config,
            session: None,
            next: 1,
            end: 1,
            held: HoldBuffer::new(config.hold_messages),
            gap: None,
            is_plain: false,
            request_due: false,
            foreign: None,
            left: None,
            numbering: Numbering::default(),
            marks: Marks::new(config.compare_lines),
            counters: ArbiterCounters::default(),
        }
    }

    /// Forgets the session and its numbers, and goes on with whatever other session the next packet names, from its first
    /// message on; with the same one only after [`RETURN_AFTER`]. The counters go on.
    pub fn start_anew(&mut self) {
        self.left = self.session.take();
        self.foreign = None;
        self.restart_numbers();
        self.counters.lines.iter_mut().for_each(|line| line.restart(true));
    }

    /// Takes one datagram from `line`.
    ///
    /// Never inlined: what is received and what is rehearsed run the same code.
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
        if header.starts_anew && is_ours && self.is_restart(line, &header) {
            self.counters.restarts += 1;
            self.restart(line, &header, out);
        }
        let is_duplicate = header.end() <= self.next && header.kind == PacketKind::Messages && is_ours;
        failpoint!(DuplicatesDelivered: is_duplicate = false);
        if is_duplicate {
            self.take_copies(now, line, &header, datagram, out);
            return;
        }
        let Some(messages) = F::messages(datagram) else {
            self.line(line).malformed += 1;
            return;
        };
        if is_ours && self.goes_on(line, &header) {
            self.foreign = None;
            self.note_line(now, line, &header, datagram);
            self.take_next(line, &header, messages, out);
            return;
        }
        if header.kind == PacketKind::Aside {
            self.counters.aside += 1;
            return;
        }
        if !is_ours {
            if self.session.is_some() || self.left == Some(header.session) {
                self.take_foreign(now, line, header.session, out);
                return;
            }
            self.session = Some(header.session);
            self.numbering.started_ns = header.sent_ns;
        }
        self.foreign = None;
        let (first, next) = (header.first, self.next);
        if self.is_out_of_place(line, first) {
            return;
        }
        match header.kind {
            PacketKind::Messages => {
                self.note_line(now, line, &header, datagram);
                self.end = self.end.max(header.end());
                self.take_apart(line, first, messages, out);
            }
            PacketKind::Heartbeat | PacketKind::EndOfSession | PacketKind::Aside => {
                self.count_line(line, &header);
                self.end = self.end.max(first);
                if header.kind == PacketKind::EndOfSession {
                    self.numbering.end_of_session = Some(first);
                }
            }
            PacketKind::Unavailable => self.take_unavailable(line, &header, out),
        }
        self.settle(now, line, next, out);
    }

    /// True for a packet whose numbers are those of before a restart, or too far ahead; it is counted.
    #[inline]
    fn is_out_of_place(&mut self, line: Line, first: u64) -> bool {
        let next = self.next;
        if self.line(line).is_elsewhere() && self.line(line).is_left_behind(first, next) {
            self.counters.left_behind += 1;
            return true;
        }
        let is_far_ahead = first > self.end.saturating_add(MAX_AHEAD) && !self.is_confirmed(first);
        self.line(line).far_ahead += u64::from(is_far_ahead);
        is_far_ahead
    }

    /// Lets time pass: decides that a request is due, or that messages are lost.
    pub fn handle_timeout(&mut self, now: Nanos, out: &mut impl MessageListener<F::Session>) {
        let Some(mut gap) = self.gap.filter(|gap| now >= gap.act_at) else { return };
        let missing_end = self.missing_end();
        let count = missing_end - self.next;
        if gap.requests < self.config.max_requests && count <= self.config.max_gap_messages {
            let doublings = gap.requests.min(WAIT_DOUBLINGS_MAX);
            (gap.requests, gap.is_asked) = (gap.requests + 1, true);
            gap.act_at = now + Nanos(self.config.request_timeout.0.saturating_mul(1 << doublings));
            self.gap = Some(gap);
            self.request_due = true;
            return;
        }
        self.give_up(count, out);
        self.settle(now, Line::Recovery, missing_end, out);
    }

    /// Whoever was asked for the messages that are missing refused: they are lost.
    pub fn handle_refused(&mut self, now: Nanos, out: &mut impl MessageListener<F::Session>) {
        if self.gap.is_some() {
            let missing_end = self.missing_end();
            self.give_up(missing_end - self.next, out);
            self.settle(now, Line::Recovery, missing_end, out);
        }
    }

    /// The request to send now, if one is due.
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
            gap.asked_end = self.next + u64::from(count);
        }
        Some(F::request(session, Sequence(self.next), count))
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
    pub const fn session(&self) -> Option<F::Session> {
        self.session
    }

    /// True from the first request for messages that are missing until none is: also while the rest of a long gap is still
    /// to be asked for.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.gap.is_some_and(|gap| gap.is_asked)
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

    /// The next `count` messages are lost for good.
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
    fn take_foreign(
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
        let before = self.foreign.filter(|run| run.session == session);
        let mut run = before.unwrap_or(ForeignRun { session, count: 0, since: now, is_told: false });
        run.count = run.count.saturating_add(1);
        let is_back = self.left == Some(session);
        if run.count >= FOREIGN_PACKETS
            && (!is_back || now.since(run.since) >= RETURN_AFTER)
            && !std::mem::replace(&mut run.is_told, true)
        {
            self.counters.foreign_sessions += 1;
            self.left = self.left.filter(|_| !is_back);
            out.on_foreign_session(session);
        }
        self.foreign = Some(run);
    }

    /// True when a packet that begins the numbering is no copy of the one that began it: it was sent after everything
    /// else, and well after that.
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
        self.held.clear();
        (self.gap, self.is_plain) = (None, false);
        self.request_due = false;
        self.numbering = Numbering::default();
        self.marks.clear();
    }

    /// Takes a packet that has nothing new, by its header alone.
    #[inline]
    fn take_copies(
        &mut self,
        now: Nanos,
        line: Line,
        header: &PacketHeader<F::Session>,
        datagram: &[u8],
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.foreign = None;
        self.count_line(line, header);
        self.line(line).duplicate_messages += header.count;
        if line == Line::Recovery {
            return;
        }
        if let Some(copy) = self.marks.compare(now, line, header, F::body(datagram)) {
            self.line(line).skew.record(copy.behind);
            if copy.differs {
                self.disagree(header.first, datagram, out);
            }
        }
        if self.line(line).back_run >= u64::from(JUMP_BACK_PACKETS) {
            // From the first message on: what of it is not on the lines any more is a gap like any other.
            self.counters.jumps_back += 1;
            self.restart(line, header, out);
        }
    }

    #[cold]
    fn disagree(&mut self, first: u64, datagram: &[u8], out: &mut impl MessageListener<F::Session>) {
        self.counters.disagreements += 1;
        if let Some(messages) = F::messages(datagram) {
            out.on_disagreement(Sequence(first), messages);
        }
    }

    /// The publisher does not have these messages any more: what of them is next is lost now.
    #[cold]
    fn take_unavailable(
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

    /// True when a packet that begins far ahead begins near the latest other one that did.
    #[cold]
    fn is_confirmed(&mut self, first: u64) -> bool {
        let latest = self.numbering.far_ahead.replace(first);
        latest.is_some_and(|latest| first.abs_diff(latest) <= MAX_AHEAD)
    }

    /// One past the last message of the run that is missing from `next` on.
    fn missing_end(&mut self) -> u64 {
        self.held.first_held(self.next, self.end).unwrap_or(self.end)
    }

    /// True for messages that come when nothing is missing, and of which some are next: as nearly always.
    #[inline(always)]
    fn goes_on(&self, line: Line, header: &PacketHeader<F::Session>) -> bool {
        failpoint!(DuplicatesDelivered => return false);
        failpoint!(HeldMessagesSwapped => return false);
        self.is_plain
            && header.first <= self.next
            && header.kind == PacketKind::Messages
            && line != Line::Recovery
    }

    /// Delivers what is new of a packet that [goes on](Self::goes_on).
    #[inline(always)]
    fn take_next<'a>(
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

    /// Takes the messages of a packet one by one: some are next, some are held, some have been.
    fn take_apart<'a>(
        &mut self,
        line: Line,
        first: u64,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl MessageListener<F::Session>,
    ) {
        for (sequence, message) in (first..).zip(messages) {
            if sequence == self.next {
                let is_first = self.held.take(sequence).is_none();
                out.on_message(Sequence(sequence), message);
                self.next += 1;
                let line = self.line(line);
                *if is_first { &mut line.first_messages } else { &mut line.duplicate_messages } += 1;
            } else if sequence < self.next {
                self.line(line).duplicate_messages += 1;
                failpoint!(DuplicatesDelivered => out.on_message(Sequence(sequence), message));
            } else if self.held.hold(self.next, sequence, message) {
                self.line(line).first_messages += 1;
            } else {
                self.counters.not_held += 1;
                if self.held.peek(sequence).is_some_and(|held| held != message) {
                    self.counters.disagreements += 1;
                    out.on_disagreement(Sequence(sequence), std::iter::once(message));
                }
            }
        }
    }

    /// Delivers what is held and has become next, then opens, keeps or closes the gap.
    fn settle(
        &mut self,
        now: Nanos,
        line: Line,
        before_packet: u64,
        out: &mut impl MessageListener<F::Session>,
    ) {
        self.deliver_held(now, line, before_packet, out);
        self.is_plain = self.gap.is_none()
            && self.numbering.end_of_session.is_none()
            && !self.counters.lines.iter().any(LineCounters::is_elsewhere);
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
            let Some(message) = self.held.take(next) else { break };
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
                self.gap = Some(Gap { opened: now, act_at, requests: 0, is_asked: false, asked_end: 0 });
            }
            // What is missing now is something else. What follows an answer is asked for at once, and the rest of one that
            // comes in several packets is waited for. Of what follows on a line the other one has its time to bring it.
            Some(gap) if self.next > before_packet => {
                let is_answered = F::ANSWERS_ARE_ONE_PACKET || self.next >= gap.asked_end;
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

    /// Counts a packet with messages, and when it came.
    #[inline(always)]
    fn note_line(&mut self, now: Nanos, line: Line, header: &PacketHeader<F::Session>, datagram: &[u8]) {
        self.count_line(line, header);
        if line != Line::Recovery {
            self.numbering.newest_ns = self.numbering.newest_ns.max(header.sent_ns);
            self.marks.note(now, line, header, F::body(datagram));
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
        line.count_step(first, end, known_end);
    }
}
