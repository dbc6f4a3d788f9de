//! Recovery of books from snapshots, while live messages are held.

use std::collections::VecDeque;

use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::StockDirectory;
use tickpath_types::{BookHealth, InstrumentId, Sequence};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::builder::instrument_of;
use crate::reorder_buffer::{BufferedMessage, MAX_BUFFERED_MESSAGE, MessageStorage};
use crate::{IgnoreUpdates, MessageBooks, UpdateListener};

/// Maximum distance, in messages, of a snapshot's end ahead of the next live message: a few seconds of the
/// busiest market's messages. Live messages before the end are skipped, so a corrupt end would freeze the
/// loaded books for good. A reader that is really so far behind uses a later snapshot, after catching up.
pub const SNAPSHOT_AHEAD_MAX: u64 = 1 << 22;

/// The instruments that a snapshot covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotScope {
    /// The whole market: an instrument that the snapshot does not name has an empty book. Such a snapshot
    /// starts with [`begin`](SnapshotRecovery::begin).
    Market,
    /// One instrument. Its directory message begins the snapshot.
    Instrument,
}

/// The result of a snapshot that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// Number of books that are live again.
    Recovered(u32),
    /// The snapshot ends before the first held message: a later one is needed.
    TooOld,
    /// The snapshot ends more than [`SNAPSHOT_AHEAD_MAX`] after the next live message, so it is rejected.
    TooFarAhead,
    /// The snapshot was not needed, or its beginning was missed.
    Ignored,
}

/// Counters of one [`SnapshotRecovery`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct SnapshotRecoveryCounters {
    /// Books that recovered and are live again.
    pub recovered: u64,
    /// Snapshots that ended before the first held message.
    pub too_old: u64,
    /// Snapshots rejected because they ended too far ahead of the live messages.
    pub too_far_ahead: u64,
    /// Snapshots discarded while a book was loading: interrupted, too old or too far ahead.
    pub abandoned: u64,
    /// Held messages dropped because the buffer was full. Only a snapshot that includes them is usable.
    pub dropped: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Live messages from this sequence number on are applied; earlier ones are skipped.
    LiveFrom(u64),
    /// Live messages are held until a snapshot comes.
    Waiting,
    /// Live messages are held while a snapshot is loaded; `is_suspect` if the snapshot contradicts itself.
    Loading { is_suspect: bool },
}

impl Stage {
    const LOADING: Stage = Stage::Loading { is_suspect: false };

    fn is_loading(self) -> bool {
        matches!(self, Stage::Loading { .. })
    }
}

/// A cycle of snapshots of one instrument each. It begins with a snapshot of instrument `first` and ends
/// before that instrument's next one.
#[derive(Clone, Copy)]
struct Cycle {
    first: InstrumentId,
    /// Sequence number at which the cycle's first snapshot ends.
    end: u64,
}

/// Recovers books after messages were lost for good: loads snapshots and continues with the live messages
/// from the end of each snapshot.
///
/// Live messages for waiting books are held. When the buffer is full, the oldest is dropped, and only a
/// snapshot that includes it is usable. Each book recovers separately, from a market snapshot or an
/// instrument snapshot. If an instrument has no symbol yet and a whole cycle of instrument snapshots does not
/// name it, it was not listed when the cycle began: its book was empty at the end of the cycle's first
/// snapshot. The recovery performs no IO and reads no clock.
///
/// All messages of an ITCH snapshot enter through [`handle_snapshot`](Self::handle_snapshot). Other protocols
/// use [`begin`](Self::begin), [`begin_instrument`](Self::begin_instrument) or
/// [`begin_all`](Self::begin_all), then [`load`](Self::load) for each message, and [`end`](Self::end).
pub struct SnapshotRecovery<R = [u8; MAX_BUFFERED_MESSAGE]> {
    stages: Box<[Stage]>,
    waiting: u32,
    held: VecDeque<(InstrumentId, BufferedMessage<R>)>,
    held_max: usize,
    /// Every message from this sequence number on is applied or held.
    floor: u64,
    /// Sequence number of the next live message.
    next: u64,
    /// Highest end of a loaded snapshot: some recovered books include the live messages before it.
    ahead_until: u64,
    /// The scope of the current snapshot.
    scope: Option<SnapshotScope>,
    /// The instrument of the latest instrument snapshot; 0 before the first.
    latest: InstrumentId,
    /// The current cycle of instrument snapshots; `None` after an interruption.
    cycle: Option<Cycle>,
    counters: SnapshotRecoveryCounters,
}

impl<R: MessageStorage> SnapshotRecovery<R> {
    /// Creates a recovery for instruments 1 to `max_instrument`. It holds up to `held_max` messages, at least
    /// one.
    #[must_use]
    pub fn new(max_instrument: InstrumentId, held_max: usize) -> SnapshotRecovery<R> {
        let held_max = held_max.max(1);
        SnapshotRecovery {
            stages: vec![Stage::LiveFrom(0); usize::from(max_instrument.0) + 1].into_boxed_slice(),
            waiting: 0,
            held: VecDeque::with_capacity(held_max),
            held_max,
            floor: 0,
            next: 0,
            ahead_until: 0,
            scope: None,
            latest: InstrumentId(0),
            cycle: None,
            counters: SnapshotRecoveryCounters::default(),
        }
    }

    /// Returns true while live messages must pass through [`handle_message`](Self::handle_message).
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.waiting > 0 || self.next < self.ahead_until
    }

    /// Returns true while a book waits for a snapshot.
    #[must_use]
    pub const fn needs_snapshot(&self) -> bool {
        self.waiting > 0
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &SnapshotRecoveryCounters {
        &self.counters
    }

    /// Returns the number of books that wait for a snapshot.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Handles the loss of messages before the live message `next`: every book waits for a snapshot.
    pub fn handle_lost(&mut self, next: Sequence) {
        self.abandon();
        self.stages[1..].fill(Stage::Waiting);
        self.waiting = self.stages.len() as u32 - 1;
        self.held.clear();
        (self.floor, self.next) = (next.0, next.0);
    }

    /// Makes one instrument's book wait for a snapshot that ends at `next` (the next live message) or later.
    /// Returns false if the instrument is unknown, or if its book already waits or is ahead of `next`.
    pub fn resync(&mut self, id: InstrumentId, next: Sequence) -> bool {
        let Some(stage @ Stage::LiveFrom(_)) = self.stages.get_mut(usize::from(id.0)).filter(|_| id.0 != 0)
        else {
            return false;
        };
        // A book that is ahead of the live messages comes from a recent snapshot.
        if matches!(stage, Stage::LiveFrom(first) if *first > next.0) {
            return false;
        }
        *stage = Stage::Waiting;
        if self.waiting == 0 {
            self.held.clear();
        }
        self.waiting += 1;
        // Messages before `next` were applied to the discarded book and are not held: the snapshot must
        // include them.
        (self.floor, self.next) = (self.floor.max(next.0), next.0);
        true
    }

    /// Returns true while the book of this instrument waits for a snapshot.
    #[must_use]
    pub fn is_waiting(&self, id: InstrumentId) -> bool {
        self.stages.get(usize::from(id.0)).is_some_and(|stage| !matches!(stage, Stage::LiveFrom(_)))
    }

    /// Returns the first instrument whose book waits for a snapshot.
    #[must_use]
    pub fn first_waiting(&self) -> Option<InstrumentId> {
        let place = self.stages.iter().position(|stage| *stage == Stage::Waiting)?;
        Some(InstrumentId(place as u16))
    }

    /// Resets the recovery after sequence numbers restarted: no book waits.
    pub fn restart(&mut self) {
        self.abandon();
        self.stages.fill(Stage::LiveFrom(0));
        self.waiting = 0;
        self.held.clear();
        (self.floor, self.next, self.ahead_until) = (0, 0, 0);
    }

    /// Returns the lowest usable end of a snapshot: every message from this sequence number on is applied or
    /// held.
    #[must_use]
    pub const fn floor(&self) -> Sequence {
        Sequence(self.floor)
    }

    /// Handles the next live message: applies it, holds it, or skips it if its book contains it.
    pub fn handle_message(
        &mut self,
        sequence: Sequence,
        message: &[u8],
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) {
        self.next = sequence.0 + 1;
        let instrument = builder.instrument_of(message);
        let id = instrument.0;
        match self.stages.get(usize::from(id)).filter(|_| id != 0) {
            Some(Stage::Waiting | Stage::Loading { .. }) => self.hold(sequence.0, instrument, message),
            Some(Stage::LiveFrom(first)) if sequence.0 < *first => {}
            _ => builder.handle_message(sequence, message, out),
        }
    }

    fn hold(&mut self, sequence: u64, instrument: InstrumentId, message: &[u8]) {
        if self.held.len() == self.held_max
            && let Some((_, oldest)) = self.held.pop_front()
        {
            self.floor = oldest.sequence + 1;
            self.counters.dropped += 1;
        }
        let mut held = BufferedMessage::NONE;
        if held.set(sequence, message) {
            self.held.push_back((instrument, held));
        } else {
            // The message is too long to hold (known types are not). Only a snapshot that includes it is
            // usable.
            self.floor = sequence + 1;
        }
    }

    /// Begins a snapshot of this scope; discards an unfinished one.
    pub fn begin(&mut self, scope: SnapshotScope) {
        if self.scope.is_some() {
            self.abandon();
        }
        self.scope = Some(scope);
    }

    /// Discards the current snapshot and its cycle, after an interruption or a missed snapshot.
    pub fn abandon(&mut self) {
        self.cycle = None;
        if self.scope.take().is_none() {
            return;
        }
        let mut is_interrupted = false;
        for stage in self.stages.iter_mut().filter(|stage| stage.is_loading()) {
            *stage = Stage::Waiting;
            is_interrupted = true;
        }
        self.counters.abandoned += u64::from(is_interrupted);
    }

    /// Begins one instrument's part of the current snapshot: empties its book if it waits for a snapshot.
    pub fn begin_instrument(&mut self, instrument: InstrumentId, builder: &mut impl MessageBooks) {
        let id = usize::from(instrument.0);
        if self.scope.is_some()
            && let Some(stage @ Stage::Waiting) = self.stages.get_mut(id).filter(|_| id != 0)
        {
            *stage = Stage::LOADING;
            builder.begin_snapshot(instrument);
        }
    }

    /// Begins a snapshot of every book, and empties all books that wait for one.
    pub fn begin_all(&mut self, builder: &mut impl MessageBooks) {
        self.begin(SnapshotScope::Market);
        self.load_unnamed(SnapshotScope::Market, builder);
    }

    /// Handles a message of the current snapshot; applies it if its book is being loaded.
    pub fn load(&mut self, instrument: InstrumentId, message: &[u8], builder: &mut impl MessageBooks) {
        if let Some(Stage::Loading { is_suspect }) = self.stages.get_mut(usize::from(instrument.0)) {
            let before = builder.instruments().contradictions();
            // A book publishes no updates until it is live.
            builder.handle_message(Sequence(self.next), message, &mut IgnoreUpdates);
            *is_suspect |= builder.instruments().contradictions() != before;
        }
    }

    /// Handles the next message of an ITCH snapshot; returns the result at its end.
    pub fn handle_snapshot(
        &mut self,
        scope: SnapshotScope,
        message: &[u8],
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> Option<SnapshotOutcome> {
        if message.first() == Some(&EndOfSnapshot::TYPE) {
            let end = EndOfSnapshot::ref_from_bytes(message).ok().and_then(EndOfSnapshot::sequence);
            return Some(self.end(end, builder, out));
        }
        let instrument = instrument_of(message);
        if message.first() == Some(&StockDirectory::TYPE) {
            if scope == SnapshotScope::Instrument {
                self.begin(scope);
                self.latest = instrument;
            }
            self.begin_instrument(instrument, builder);
        }
        self.load(instrument, message, builder);
        None
    }

    /// Ends the current snapshot. `end` is the sequence number of the first message that it does not include;
    /// `None` discards the snapshot.
    pub fn end(
        &mut self,
        end: Option<Sequence>,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> SnapshotOutcome {
        let (Some(scope), Some(Sequence(end))) = (self.scope, end) else {
            self.abandon();
            return SnapshotOutcome::Ignored;
        };
        let is_needed = self.stages.iter().any(|stage| stage.is_loading());
        let fault = if end > self.next.saturating_add(SNAPSHOT_AHEAD_MAX) {
            Some((SnapshotOutcome::TooFarAhead, &mut self.counters.too_far_ahead))
        } else if end < self.floor {
            Some((SnapshotOutcome::TooOld, &mut self.counters.too_old))
        } else {
            None
        };
        if let Some((outcome, counter)) = fault {
            *counter += u64::from(is_needed);
            self.abandon();
            return if is_needed { outcome } else { SnapshotOutcome::Ignored };
        }
        self.scope = None;
        let recovered = match scope {
            SnapshotScope::Market => {
                builder.instruments_mut().set_complete();
                self.load_unnamed(scope, builder);
                self.finish_loading(end, builder, out)
            }
            SnapshotScope::Instrument => {
                self.finish_loading(end, builder, out) + self.advance_cycle(end, builder, out)
            }
        };
        if recovered == 0 { SnapshotOutcome::Ignored } else { SnapshotOutcome::Recovered(recovered) }
    }

    /// Ends a full cycle of snapshots, the first of which ends at `end`: instruments that no snapshot named
    /// have empty books. Returns the number of books that recovered.
    pub fn end_cycle(
        &mut self,
        end: Sequence,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> u32 {
        if end.0 < self.floor {
            return 0;
        }
        builder.instruments_mut().set_complete();
        self.load_unnamed(SnapshotScope::Instrument, builder);
        self.finish_loading(end.0, builder, out)
    }

    /// Empties the waiting books that no snapshot named, and marks them as loading. With the scope
    /// `Instrument`, it does so only for instruments without a symbol.
    fn load_unnamed(&mut self, scope: SnapshotScope, builder: &mut impl MessageBooks) {
        for (id, stage) in self.stages.iter_mut().enumerate().filter(|(_, stage)| **stage == Stage::Waiting) {
            let id = InstrumentId(id as u16);
            let is_known = builder.instruments().instrument(id).is_some_and(|state| state.symbol.is_some());
            if scope == SnapshotScope::Market || !is_known {
                *stage = Stage::LOADING;
                builder.begin_snapshot(id);
            }
        }
    }

    /// If the latest snapshot is again that of the cycle's first instrument, ends the cycle and begins the
    /// next. The messages about an instrument that was added during the cycle are among the held ones.
    ///
    /// Cycles are detected only in ITCH snapshots; readers of other protocols call
    /// [`end_cycle`](Self::end_cycle).
    fn advance_cycle(
        &mut self,
        end: u64,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> u32 {
        if self.latest == InstrumentId(0) {
            return 0;
        }
        if self.cycle.is_some_and(|cycle| cycle.first != self.latest) {
            return 0;
        }
        let ended = self.cycle.replace(Cycle { first: self.latest, end });
        let Some(Cycle { end, .. }) = ended.filter(|cycle| cycle.end >= self.floor) else { return 0 };
        self.load_unnamed(SnapshotScope::Instrument, builder);
        self.finish_loading(end, builder, out)
    }

    /// Applies the held messages to the loaded books and makes these live. Returns the number of these books.
    fn finish_loading(
        &mut self,
        end: u64,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> u32 {
        let stages = &mut self.stages;
        for (id, stage) in stages.iter().enumerate() {
            if let Stage::Loading { is_suspect } = stage {
                let health = if *is_suspect { BookHealth::Suspect } else { BookHealth::Live };
                let id = InstrumentId(id as u16);
                let reason = builder.instruments().instrument(id).and_then(|state| state.reason);
                builder.instruments_mut().set_health(id, health, reason);
            }
        }
        self.held.retain(|(instrument, held)| {
            let is_loaded = stages.get(usize::from(instrument.0)).is_some_and(|stage| stage.is_loading());
            if is_loaded && held.sequence >= end {
                builder.handle_message(Sequence(held.sequence), held.message(), &mut IgnoreUpdates);
            }
            !is_loaded
        });
        let mut recovered = 0;
        for (id, stage) in stages.iter_mut().enumerate().filter(|(_, stage)| stage.is_loading()) {
            *stage = Stage::LiveFrom(end);
            builder.instruments().report_status(InstrumentId(id as u16), out);
            recovered += 1;
        }
        self.waiting -= recovered;
        if recovered > 0 {
            self.ahead_until = self.ahead_until.max(end);
        }
        self.counters.recovered += u64::from(recovered);
        recovered
    }
}
