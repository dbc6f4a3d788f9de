//! One live channel: lines, books, and what heals them.

use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, SuspectReason};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::arbiter::{Arbiter, ArbiterConfig, MessageListener};
use crate::counters::ArbiterCounters;
use crate::deferred::Deferred;
use crate::framing::{Framing, MoldUdp64};
use crate::heal::SnapshotHealer;
use crate::instruments::UpdateListener;
use crate::line::Line;
use crate::message_books::MessageBooks;

/// How often one suspect book is read anew without having been asked for it: a snapshot that contradicts itself would be
/// read for ever.
pub const RESYNCS_MAX: u8 = 3;

/// Bounds of a [`Channel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Of the arbitration of the lines.
    pub arbiter: ArbiterConfig,
    /// Messages held for books that wait for a snapshot; `None` where there are no snapshots, so that books that lost
    /// messages stay stale.
    pub hold_snapshot: Option<usize>,
    /// Read suspect books anew, each three times at most.
    pub resync_suspects: bool,
    /// Make the books suspect of which the lines brought different bytes under the same numbers.
    pub suspect_disagreements: bool,
    /// Follow the lines to another session, with empty books. Otherwise the books stay stale, and
    /// [`poll_session_change`](Channel::poll_session_change) reports it.
    pub follow_sessions: bool,
}

impl ChannelConfig {
    /// A channel of any number of sessions, which recovers from everything that it can.
    #[must_use]
    pub const fn new(arbiter: ArbiterConfig, hold_snapshot: Option<usize>) -> ChannelConfig {
        let (resync_suspects, suspect_disagreements, follow_sessions) = (true, true, true);
        ChannelConfig { arbiter, hold_snapshot, resync_suspects, suspect_disagreements, follow_sessions }
    }
}

/// Counts of a [`Channel`] beside those of its arbiter, its books and its snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ChannelCounters {
    /// Sessions that the channel has followed after its first.
    pub session_changes: u64,
    /// Sessions that ended in good order.
    pub ended_sessions: u64,
    /// Books that were begun to be read anew because they were suspect.
    pub resyncs: u64,
    /// The same, because somebody asked.
    pub resyncs_asked: u64,
}

/// The books of one channel from the packets of its lines: arbitration, gaps, health, snapshots.
///
/// Packets and time come in through `handle_*`, updates leave through the listener, requests through `poll_*`. Performs no
/// IO and reads no clock. A client for snapshots asks [`needs_snapshot`](Self::needs_snapshot) and feeds
/// [`healer`](Self::healer).
pub struct Channel<B, F: Framing = MoldUdp64> {
    arbiter: Arbiter<F>,
    content: Content<B, F>,
}

/// What the messages go to.
struct Content<B, F: Framing> {
    config: ChannelConfig,
    books: B,
    healer: Option<SnapshotHealer<F::Room>>,
    /// Messages of a short packet that wait for their turn.
    deferred: Deferred<F::Room>,
    /// The session that the lines have gone over to.
    foreign: Option<F::Session>,
    /// Books of which the reading anew has been begun so often.
    resyncs: Box<[u8]>,
    suspected: u64,
    counters: ChannelCounters,
}

impl<B: MessageBooks, F: Framing> Channel<B, F> {
    /// Starts with `books` before the first message of whatever session comes.
    #[must_use]
    pub fn new(config: &ChannelConfig, books: B) -> Channel<B, F> {
        let last = books.instruments().ids().last().unwrap_or_default();
        let healer = config.hold_snapshot.map(|held_max| SnapshotHealer::new(last, held_max));
        Channel {
            arbiter: Arbiter::new(config.arbiter),
            content: Content {
                config: *config,
                books,
                healer,
                deferred: Deferred::new(),
                foreign: None,
                resyncs: vec![0; usize::from(last.0) + 1].into_boxed_slice(),
                suspected: 0,
                counters: ChannelCounters::default(),
            },
        }
    }

    /// Takes one datagram from `line`.
    #[inline]
    pub fn handle_packet(&mut self, now: Nanos, line: Line, datagram: &[u8], out: &mut impl UpdateListener) {
        self.take_packet(now, line, datagram, false, out);
    }

    /// The same. Where `defers`, which is for packets of up to [`DEFERRED_MAX`](crate::DEFERRED_MAX) messages, of those that are next
    /// only the first is applied: the others wait for [`apply_deferred`](Self::apply_deferred), which comes before any other
    /// input.
    #[inline(always)]
    pub fn take_packet(
        &mut self,
        now: Nanos,
        line: Line,
        datagram: &[u8],
        defers: bool,
        out: &mut impl UpdateListener,
    ) {
        out.on_packet(line);
        let delivery = if defers { Delivery::First } else { Delivery::All };
        let Channel { arbiter, content } = self;
        arbiter.handle_packet(now, line, datagram, &mut Deliver { content, delivery, out });
        self.settle(out);
    }

    /// Applies the next message that waits; false when none does.
    #[inline]
    pub fn apply_deferred(&mut self, out: &mut impl UpdateListener) -> bool {
        self.content.apply_deferred(out)
    }

    /// True while messages of a short packet wait.
    #[inline]
    #[must_use]
    pub const fn has_deferred(&self) -> bool {
        !self.content.deferred.is_empty()
    }

    /// Takes the next messages of a stream that loses none, the first with this number.
    pub fn handle_stream<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        Deliver { content: &mut self.content, delivery: Delivery::All, out }.on_messages(first, messages);
        self.settle(out);
    }

    /// Lets time pass for the arbiter.
    pub fn handle_timeout(&mut self, now: Nanos, out: &mut impl UpdateListener) {
        let Channel { arbiter, content } = self;
        arbiter.handle_timeout(now, &mut Deliver { content, delivery: Delivery::All, out });
        self.settle(out);
    }

    /// The server refused the messages that are missing: they are lost.
    pub fn handle_refused(&mut self, now: Nanos, out: &mut impl UpdateListener) {
        let Channel { arbiter, content } = self;
        arbiter.handle_refused(now, &mut Deliver { content, delivery: Delivery::All, out });
        self.settle(out);
    }

    /// The session that the lines have gone over to, once, where it is not followed.
    #[inline(always)]
    pub fn poll_session_change(&mut self) -> Option<F::Session> {
        let session = self.content.foreign?;
        self.content.foreign = None;
        Some(session)
    }

    /// The request to send now, if one is due.
    pub fn poll_request(&mut self) -> Option<F::Request> {
        self.arbiter.poll_request()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.arbiter.poll_timeout()
    }

    /// True while a book waits for a snapshot.
    #[inline]
    #[must_use]
    pub fn needs_snapshot(&self) -> bool {
        self.content.healer.as_ref().is_some_and(SnapshotHealer::needs_snapshot)
    }

    /// What reads snapshots, and the books that it reads them into; `None` where there are no snapshots.
    pub fn healer(&mut self) -> Option<(&mut SnapshotHealer<F::Room>, &mut B)> {
        let Content { healer, books, .. } = &mut self.content;
        healer.as_mut().map(|healer| (healer, books))
    }

    /// Begins to read one book anew, because somebody asks: until it is healed it is suspect and says so. False when there
    /// are no snapshots or no such instrument; true as well when it waits for one already.
    pub fn resync(&mut self, id: InstrumentId, out: &mut impl UpdateListener) -> bool {
        let next = self.arbiter.next_sequence();
        let content = &mut self.content;
        let Some(healer) = &mut content.healer else { return false };
        if healer.resync(id, next) {
            content.counters.resyncs_asked += 1;
            content.resyncs[usize::from(id.0)] = 0;
            let instruments = content.books.instruments_mut();
            instruments.set_health(id, BookHealth::Suspect, Some(SuspectReason::Resync));
            instruments.report_status(id, out);
            return true;
        }
        healer.is_waiting(id)
    }

    /// The books.
    #[must_use]
    pub const fn books(&self) -> &B {
        &self.content.books
    }

    /// The books, with which the channel ends.
    #[must_use]
    pub fn into_books(self) -> B {
        self.content.books
    }

    /// The books, to be changed by who feeds them otherwise.
    #[must_use]
    pub const fn books_mut(&mut self) -> &mut B {
        &mut self.content.books
    }

    /// What joins the lines.
    #[must_use]
    pub const fn arbiter(&self) -> &Arbiter<F> {
        &self.arbiter
    }

    /// What happened on the lines.
    #[must_use]
    pub fn line_counters(&self) -> &ArbiterCounters {
        self.arbiter.counters()
    }

    /// What happened to snapshots; `None` where there are none.
    #[must_use]
    pub const fn snapshots(&self) -> Option<&SnapshotHealer<F::Room>> {
        self.content.healer.as_ref()
    }

    /// What else happened.
    #[must_use]
    pub const fn counters(&self) -> &ChannelCounters {
        &self.content.counters
    }

    /// After each input: follows another session, reports a gap, and resyncs suspect books.
    #[inline]
    fn settle(&mut self, out: &mut impl UpdateListener) {
        let Channel { arbiter, content } = &*self;
        let instruments = content.books.instruments();
        if content.foreign.is_some()
            || instruments.is_recovering() != arbiter.is_recovering()
            || instruments.suspected() != content.suspected
        {
            self.settle_changes(out);
        }
    }

    #[cold]
    fn settle_changes(&mut self, out: &mut impl UpdateListener) {
        if self.content.foreign.is_some() && self.content.config.follow_sessions {
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
            self.content.heal_suspects(next);
        }
    }

    /// Goes over to another session: the books begin anew.
    #[cold]
    pub fn follow(&mut self, out: &mut impl UpdateListener) {
        self.content.foreign = None;
        self.content.counters.session_changes += 1;
        self.arbiter.start_anew();
        self.content.restart(out);
    }
}

impl<B: MessageBooks, F: Framing> Content<B, F> {
    #[inline]
    fn apply_deferred(&mut self, out: &mut impl UpdateListener) -> bool {
        let Some(held) = self.deferred.pop() else { return false };
        self.apply(Sequence(held.sequence), held.message(), out);
        true
    }

    #[cold]
    fn apply_healing(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        if let Some(healer) = &mut self.healer {
            healer.handle_message(sequence, message, &mut self.books, out);
        }
    }

    /// Takes the next message to its book.
    #[inline]
    fn apply(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        match &self.healer {
            Some(healer) if healer.is_active() => self.apply_healing(sequence, message, out),
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
        if let Some(healer) = &mut self.healer {
            healer.restart();
        }
    }

    /// Reads every suspect book anew, as often as it may be.
    #[cold]
    fn heal_suspects(&mut self, next: Sequence) {
        let Some(healer) = &mut self.healer else { return };
        let instruments = self.books.instruments();
        for id in instruments.ids() {
            let Some(state) = instruments.instrument(id) else { continue };
            let resyncs = &mut self.resyncs[usize::from(id.0)];
            if state.health == BookHealth::Suspect
                && state.reason != Some(SuspectReason::OtherSymbol)
                && *resyncs < RESYNCS_MAX
                && healer.resync(id, next)
            {
                *resyncs += 1;
                self.counters.resyncs += 1;
            }
        }
    }

    fn lose(&mut self, next: Sequence, out: &mut impl UpdateListener) {
        self.books.handle_lost(out);
        if let Some(healer) = &mut self.healer {
            healer.handle_lost(next);
        }
    }
}

/// Delivery of the messages of one packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// All are applied.
    All,
    /// The first is applied, the others are deferred.
    First,
    /// The first was applied.
    Later,
}

/// The arbiter's messages on their way to the books.
struct Deliver<'a, B, F: Framing, L> {
    content: &'a mut Content<B, F>,
    delivery: Delivery,
    out: &'a mut L,
}

impl<B: MessageBooks, F: Framing, L: UpdateListener> MessageListener<F::Session> for Deliver<'_, B, F, L> {
    #[inline]
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        match self.delivery {
            Delivery::All => {}
            Delivery::First => self.delivery = Delivery::Later,
            Delivery::Later if self.content.deferred.push(sequence.0, message) => {
                return self.content.books.prefetch(message);
            }
            Delivery::Later => {
                // Cannot wait: so nothing before it can.
                self.delivery = Delivery::All;
                while self.content.apply_deferred(self.out) {}
            }
        }
        self.content.apply(sequence, message, self.out);
    }

    #[inline]
    fn on_messages<'a>(&mut self, first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        let is_together = !L::WANTS_MESSAGES && self.delivery == Delivery::All;
        if !is_together || self.content.healer.as_ref().is_some_and(SnapshotHealer::is_active) {
            let mut sequence = first;
            for message in messages {
                self.on_message(sequence, message);
                sequence = sequence.next();
            }
            return;
        }
        self.content.books.handle_messages(first, messages, self.out);
    }

    #[cold]
    fn on_lost(&mut self, first: Sequence, count: u64) {
        self.content.lose(Sequence(first.0 + count), self.out);
    }

    #[cold]
    fn on_end_of_session(&mut self) {
        self.content.counters.ended_sessions += 1;
    }

    #[cold]
    fn on_foreign_session(&mut self, session: F::Session) {
        self.content.foreign = Some(session);
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
