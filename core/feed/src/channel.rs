//! One live channel: lines, books, and snapshot recovery.

use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, SuspectReason};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::arbiter::{Arbiter, ArbiterConfig, MessageListener};
use crate::counters::ArbiterCounters;
use crate::framing::{Framing, MoldUdp64};
use crate::instruments::UpdateListener;
use crate::line::Line;
use crate::message_books::MessageBooks;
use crate::snapshot_recovery::SnapshotRecovery;

/// Maximum number of automatic resyncs of one suspect book. The bound prevents an endless loop on a snapshot
/// that contradicts itself.
pub const RESYNCS_MAX: u8 = 3;

/// Configuration of a [`Channel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Configuration of the line arbitration.
    pub arbiter: ArbiterConfig,
    /// Maximum number of messages held for books that wait for a snapshot. `None` where there are no
    /// snapshots: books that lost messages then stay stale.
    pub hold_snapshot: Option<usize>,
    /// Resync suspect books from snapshots, each at most three times.
    pub resync_suspects: bool,
    /// Mark a book suspect when the lines sent different bytes for it under the same sequence numbers.
    pub suspect_disagreements: bool,
    /// Follow the lines to another session, with empty books. Otherwise the books stay stale, and
    /// [`poll_session_change`](Channel::poll_session_change) reports the change.
    pub follow_sessions: bool,
}

impl ChannelConfig {
    /// Creates a configuration with `resync_suspects`, `suspect_disagreements` and `follow_sessions` set.
    #[must_use]
    pub const fn new(arbiter: ArbiterConfig, hold_snapshot: Option<usize>) -> ChannelConfig {
        let (resync_suspects, suspect_disagreements, follow_sessions) = (true, true, true);
        ChannelConfig { arbiter, hold_snapshot, resync_suspects, suspect_disagreements, follow_sessions }
    }
}

/// Counters of a [`Channel`], besides those of its arbiter, books and snapshot recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ChannelCounters {
    /// Session changes that the channel followed.
    pub session_changes: u64,
    /// Sessions whose end the publisher announced.
    pub ended_sessions: u64,
    /// Automatic resyncs of suspect books.
    pub resyncs: u64,
    /// Resyncs started through [`Channel::resync`].
    pub resyncs_asked: u64,
}

/// The books of one channel, built from the packets of its lines by arbitration, gap filling and snapshot
/// recovery.
///
/// Packets and time enter through `handle_*`, updates leave through the listener, and requests through
/// `poll_*`. The channel performs no IO and reads no clock. A snapshot client checks
/// [`needs_snapshot`](Self::needs_snapshot) and feeds [`recovery`](Self::recovery).
pub struct Channel<B, F: Framing = MoldUdp64> {
    arbiter: Arbiter<F>,
    content: Content<B, F>,
}

/// The part of a channel that receives the arbitrated messages.
struct Content<B, F: Framing> {
    config: ChannelConfig,
    books: B,
    recovery: Option<SnapshotRecovery<F::Storage>>,
    /// The session to which the lines have changed, until it is followed or reported.
    new_session: Option<F::Session>,
    /// Automatic resyncs of each book, by instrument id; a requested resync or a restart resets them to 0.
    resyncs: Box<[u8]>,
    suspected: u64,
    counters: ChannelCounters,
}

impl<B: MessageBooks, F: Framing> Channel<B, F> {
    /// Creates a channel with `books`, before the first message of any session.
    #[must_use]
    pub fn new(config: &ChannelConfig, books: B) -> Channel<B, F> {
        let last = books.instruments().ids().last().unwrap_or_default();
        let recovery = config.hold_snapshot.map(|held_max| SnapshotRecovery::new(last, held_max));
        Channel {
            arbiter: Arbiter::new(config.arbiter),
            content: Content {
                config: *config,
                books,
                recovery,
                new_session: None,
                resyncs: vec![0; usize::from(last.0) + 1].into_boxed_slice(),
                suspected: 0,
                counters: ChannelCounters::default(),
            },
        }
    }

    /// Handles one datagram from `line`: applies all of its new messages.
    #[inline]
    pub fn handle_packet(&mut self, now: Nanos, line: Line, datagram: &[u8], out: &mut impl UpdateListener) {
        out.on_packet(line);
        let Channel { arbiter, content } = self;
        arbiter.handle_packet(now, line, datagram, &mut Deliver { content, out });
        self.check_changes(out);
    }

    /// Handles the next messages of a lossless stream; `first` is the sequence number of the first.
    pub fn handle_stream<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        Deliver { content: &mut self.content, out }.on_messages(first, messages);
        self.check_changes(out);
    }

    /// Handles the arbiter's timeout, if it is due.
    pub fn handle_timeout(&mut self, now: Nanos, out: &mut impl UpdateListener) {
        let Channel { arbiter, content } = self;
        arbiter.handle_timeout(now, &mut Deliver { content, out });
        self.check_changes(out);
    }

    /// Handles a refusal by the retransmission server: the missing messages count as lost.
    pub fn handle_refused(&mut self, now: Nanos, out: &mut impl UpdateListener) {
        let Channel { arbiter, content } = self;
        arbiter.handle_refused(now, &mut Deliver { content, out });
        self.check_changes(out);
    }

    /// Returns the session to which the lines have changed, if the channel does not follow it. Reports each
    /// change once.
    #[inline(always)]
    pub fn poll_session_change(&mut self) -> Option<F::Session> {
        let session = self.content.new_session?;
        self.content.new_session = None;
        Some(session)
    }

    /// Returns the retransmission request to send now, if one is due.
    pub fn poll_request(&mut self) -> Option<F::Request> {
        self.arbiter.poll_request()
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called next; `None` without
    /// a gap.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.arbiter.poll_timeout()
    }

    /// Returns true while a book waits for a snapshot.
    #[inline]
    #[must_use]
    pub fn needs_snapshot(&self) -> bool {
        self.content.recovery.as_ref().is_some_and(SnapshotRecovery::needs_snapshot)
    }

    /// Returns the snapshot recovery and the books that it loads; `None` where there are no snapshots.
    pub fn recovery(&mut self) -> Option<(&mut SnapshotRecovery<F::Storage>, &mut B)> {
        let Content { recovery, books, .. } = &mut self.content;
        recovery.as_mut().map(|recovery| (recovery, books))
    }

    /// Starts a resync of one book on request; the book is suspect until it has recovered. Returns false if
    /// there are no snapshots or no such instrument, and true if the book already waits for a snapshot.
    pub fn resync(&mut self, id: InstrumentId, out: &mut impl UpdateListener) -> bool {
        let next = self.arbiter.next_sequence();
        let content = &mut self.content;
        let Some(recovery) = &mut content.recovery else { return false };
        if recovery.resync(id, next) {
            content.counters.resyncs_asked += 1;
            content.resyncs[usize::from(id.0)] = 0;
            let instruments = content.books.instruments_mut();
            instruments.set_health(id, BookHealth::Suspect, Some(SuspectReason::Resync));
            instruments.report_status(id, out);
            return true;
        }
        recovery.is_waiting(id)
    }

    /// Returns the books.
    #[must_use]
    pub const fn books(&self) -> &B {
        &self.content.books
    }

    /// Returns the books and drops the channel.
    #[must_use]
    pub fn into_books(self) -> B {
        self.content.books
    }

    /// Returns the books, for changes that do not come from the lines.
    #[must_use]
    pub const fn books_mut(&mut self) -> &mut B {
        &mut self.content.books
    }

    /// Returns the arbiter of the lines.
    #[must_use]
    pub const fn arbiter(&self) -> &Arbiter<F> {
        &self.arbiter
    }

    /// Returns the counters of the lines.
    #[must_use]
    pub fn line_counters(&self) -> &ArbiterCounters {
        self.arbiter.counters()
    }

    /// Returns the snapshot recovery; `None` where there are no snapshots.
    #[must_use]
    pub const fn snapshots(&self) -> Option<&SnapshotRecovery<F::Storage>> {
        self.content.recovery.as_ref()
    }

    /// Returns the counters that belong to the channel itself.
    #[must_use]
    pub const fn counters(&self) -> &ChannelCounters {
        &self.content.counters
    }

    /// Runs after each input: follows a session change, reports gap recovery, and resyncs suspect books.
    #[inline]
    fn check_changes(&mut self, out: &mut impl UpdateListener) {
        let Channel { arbiter, content } = &*self;
        let instruments = content.books.instruments();
        if content.new_session.is_some()
            || instruments.is_recovering() != arbiter.is_recovering()
            || instruments.suspected() != content.suspected
        {
            self.apply_changes(out);
        }
    }

    #[cold]
    fn apply_changes(&mut self, out: &mut impl UpdateListener) {
        if self.content.new_session.is_some() && self.content.config.follow_sessions {
            self.follow(out);
        }
        let is_recovering = self.arbiter.is_recovering();
        let instruments = self.content.books.instruments_mut();
        instruments.handle_recovering(is_recovering, out);
        let suspected = instruments.suspected();
        if std::mem::replace(&mut self.content.suspected, suspected) != suspected
            && self.content.config.resync_suspects
        {
            let next = self.arbiter.next_sequence();
            self.content.start_resyncs(next);
        }
    }

    /// Follows the lines to their new session, with empty books.
    #[cold]
    pub fn follow(&mut self, out: &mut impl UpdateListener) {
        self.content.new_session = None;
        self.content.counters.session_changes += 1;
        self.arbiter.reset();
        self.content.restart(out);
    }
}

impl<B: MessageBooks, F: Framing> Content<B, F> {
    #[cold]
    fn apply_in_recovery(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        if let Some(recovery) = &mut self.recovery {
            recovery.handle_message(sequence, message, &mut self.books, out);
        }
    }

    /// Applies the next message to its book, or passes it to snapshot recovery.
    #[inline]
    fn apply(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        match &self.recovery {
            Some(recovery) if recovery.is_active() => self.apply_in_recovery(sequence, message, out),
            _ => {
                out.on_apply(sequence);
                self.books.handle_message(sequence, message, out);
            }
        }
        out.on_applied(sequence);
    }

    fn restart(&mut self, out: &mut impl UpdateListener) {
        self.books.handle_restart(out);
        self.resyncs.fill(0);
        if let Some(recovery) = &mut self.recovery {
            recovery.restart();
        }
    }

    /// Starts a resync of every suspect book that has attempts left.
    #[cold]
    fn start_resyncs(&mut self, next: Sequence) {
        let Some(recovery) = &mut self.recovery else { return };
        let instruments = self.books.instruments();
        for id in instruments.ids() {
            let Some(state) = instruments.instrument(id) else { continue };
            let resyncs = &mut self.resyncs[usize::from(id.0)];
            if state.health == BookHealth::Suspect
                && state.reason != Some(SuspectReason::OtherSymbol)
                && *resyncs < RESYNCS_MAX
                && recovery.resync(id, next)
            {
                *resyncs += 1;
                self.counters.resyncs += 1;
            }
        }
    }

    fn handle_lost(&mut self, next: Sequence, out: &mut impl UpdateListener) {
        self.books.handle_lost(out);
        if let Some(recovery) = &mut self.recovery {
            recovery.handle_lost(next);
        }
    }
}

/// Delivers the arbiter's messages to the books.
struct Deliver<'a, B, F: Framing, L> {
    content: &'a mut Content<B, F>,
    out: &'a mut L,
}

impl<B: MessageBooks, F: Framing, L: UpdateListener> MessageListener<F::Session> for Deliver<'_, B, F, L> {
    #[inline]
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        self.content.apply(sequence, message, self.out);
    }

    #[inline]
    fn on_messages<'a>(&mut self, first: Sequence, mut messages: impl Iterator<Item = &'a [u8]>) {
        if L::WANTS_MESSAGES || self.content.recovery.as_ref().is_some_and(SnapshotRecovery::is_active) {
            let (mut sequence, mut next) = (first, messages.next());
            while let Some(message) = next {
                // The next message's cache misses overlap with the work on this one.
                next = messages.next();
                next.into_iter().for_each(|next| self.content.books.prefetch(next));
                self.on_message(sequence, message);
                sequence = sequence.next();
            }
            return;
        }
        self.content.books.handle_messages(first, messages, self.out);
    }

    #[cold]
    fn on_lost(&mut self, first: Sequence, count: u64) {
        self.content.handle_lost(Sequence(first.0 + count), self.out);
    }

    #[cold]
    fn on_end_of_session(&mut self) {
        self.content.counters.ended_sessions += 1;
    }

    #[cold]
    fn on_session_change(&mut self, session: F::Session) {
        self.content.new_session = Some(session);
        if !self.content.config.follow_sessions {
            self.content.books.handle_lost(self.out);
        }
    }

    #[cold]
    fn on_restart(&mut self) {
        self.content.restart(self.out);
    }

    #[cold]
    fn on_disagreement<'a>(&mut self, _first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        let books = &mut self.content.books;
        for message in messages.filter(|_| self.content.config.suspect_disagreements) {
            let id = books.instrument_of(message);
            books.instruments_mut().suspect(id, SuspectReason::LinesDisagree);
            books.instruments_mut().end_message(self.out);
        }
    }
}
