//! Books healed by snapshots, while the live messages wait.

use std::collections::VecDeque;

use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::StockDirectory;
use tickpath_types::{BookHealth, InstrumentId, Sequence};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::builder::instrument_of;
use crate::hold::{HeldMessage, MAX_HELD_MESSAGE, MessageRoom};
use crate::{BooksAlone, MessageBooks, UpdateListener};

/// How far ahead of the next live message a snapshot may end, in messages: some seconds of the busiest market. Live messages
/// up to there are skipped, so that one that names any number would leave its book unchanged and live for good. A reader that
/// is really so far behind is served by a later snapshot, once it has come nearer.
pub const SNAPSHOT_AHEAD_MAX: u64 = 1 << 22;

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotScope {
    /// The whole market: an instrument that it does not name has an empty book. Begun by
    /// [`begin`](SnapshotHealer::begin).
    Market,
    /// One instrument, whose directory message begins it.
    Instrument,
}

/// What came of a snapshot that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// So many books are live again.
    Healed(u32),
    /// It ends before the first message that is held: a later one is needed.
    TooOld,
    /// It ends more than [`SNAPSHOT_AHEAD_MAX`] messages ahead of the live ones, and is not believed.
    TooFarAhead,
    /// It was not needed, or not seen from its beginning.
    Ignored,
}

/// Counts of one [`SnapshotHealer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct HealerCounters {
    /// Books that are live again.
    pub healed: u64,
    /// Snapshots that ended before the first message that was held.
    pub too_old: u64,
    /// Snapshots that ended too far ahead of the live messages to be believed.
    pub too_far_ahead: u64,
    /// Snapshots that were cut off.
    pub abandoned: u64,
    /// Messages dropped because too many waited: the snapshots must be newer than these.
    pub dropped: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Live messages are applied, from this number on.
    From(u64),
    /// Live messages are held until there is a snapshot.
    Waiting,
    /// The same, and a snapshot is being read into the book, without a contradiction so far or with one.
    Loading { is_suspect: bool },
}

impl Stage {
    const LOADING: Stage = Stage::Loading { is_suspect: false };

    fn is_loading(self) -> bool {
        matches!(self, Stage::Loading { .. })
    }
}

/// From one instrument's snapshot to its next one, with those of all other instruments between them.
#[derive(Clone, Copy)]
struct Turn {
    first: InstrumentId,
    /// Where the first snapshot ends.
    end: u64,
}

/// Heals books after messages were lost for good: reads snapshots into them and joins the live messages to these
/// where they end.
///
/// The messages of books that wait are held; when there are too many the oldest is dropped and only newer snapshots are
/// of use. Each book is healed by itself, so that one snapshot of the market and snapshots of one instrument after
/// another are the same to it. An instrument that was never heard of and that a whole turn of the latter does not name
/// was not there when the turn began: its book is empty, up to where the turn's first snapshot ends. Performs no IO and
/// reads no clock.
///
/// The snapshots of ITCH go in whole by [`handle_snapshot`](Self::handle_snapshot); those of other protocols by
/// [`begin`](Self::begin), [`begin_instrument`](Self::begin_instrument) or [`begin_all`](Self::begin_all),
/// [`load`](Self::load) for each message, and [`end`](Self::end).
pub struct SnapshotHealer<R = [u8; MAX_HELD_MESSAGE]> {
    stages: Box<[Stage]>,
    waiting: u32,
    held: VecDeque<(InstrumentId, HeldMessage<R>)>,
    held_max: usize,
    /// Every message from this number on was applied or is held.
    floor: u64,
    /// Number of the next live message.
    next: u64,
    /// Some books are ahead of the live messages up to here.
    ahead_until: u64,
    /// The scope of the snapshot at hand.
    scope: Option<SnapshotScope>,
    /// The instrument whose snapshot came last.
    latest: InstrumentId,
    /// The turn at hand of snapshots of one instrument, of which none was missed so far.
    turn: Option<Turn>,
    counters: HealerCounters,
}

impl<R: MessageRoom> SnapshotHealer<R> {
    /// For books of instruments up to `max_instrument`; holds up to `held_max` messages, at least one.
    #[must_use]
    pub fn new(max_instrument: InstrumentId, held_max: usize) -> SnapshotHealer<R> {
        let held_max = held_max.max(1);
        SnapshotHealer {
            stages: vec![Stage::From(0); usize::from(max_instrument.0) + 1].into_boxed_slice(),
            waiting: 0,
            held: VecDeque::with_capacity(held_max),
            held_max,
            floor: 0,
            next: 0,
            ahead_until: 0,
            scope: None,
            latest: InstrumentId(0),
            turn: None,
            counters: HealerCounters::default(),
        }
    }

    /// True while live messages must pass through [`handle_message`](Self::handle_message).
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.waiting > 0 || self.next < self.ahead_until
    }

    /// True while a book waits for a snapshot.
    #[must_use]
    pub const fn needs_snapshot(&self) -> bool {
        self.waiting > 0
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &HealerCounters {
        &self.counters
    }

    /// Books that wait.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Every message before `next` that was not applied is lost: every book waits for a snapshot.
    pub fn handle_lost(&mut self, next: Sequence) {
        self.abandon();
        self.stages[1..].fill(Stage::Waiting);
        self.waiting = self.stages.len() as u32 - 1;
        self.held.clear();
        (self.floor, self.next) = (next.0, next.0);
    }

    /// The book of one instrument is to be read anew: it waits for a snapshot that ends at `next`, the next live message, or
    /// later. False when there is no such instrument, or it waits already.
    pub fn resync(&mut self, id: InstrumentId, next: Sequence) -> bool {
        let Some(stage @ Stage::From(_)) = self.stages.get_mut(usize::from(id.0)).filter(|_| id.0 != 0)
        else {
            return false;
        };
        // A book that is ahead of the live messages is as good as new.
        if matches!(stage, Stage::From(first) if *first > next.0) {
            return false;
        }
        *stage = Stage::Waiting;
        if self.waiting == 0 {
            self.held.clear();
        }
        self.waiting += 1;
        // What came before is in the book that is given up, and not held.
        (self.floor, self.next) = (self.floor.max(next.0), next.0);
        true
    }

    /// True while the book of this instrument waits for a snapshot.
    #[must_use]
    pub fn is_waiting(&self, id: InstrumentId) -> bool {
        self.stages.get(usize::from(id.0)).is_some_and(|stage| !matches!(stage, Stage::From(_)))
    }

    /// The first instrument whose book waits for a snapshot.
    #[must_use]
    pub fn first_waiting(&self) -> Option<InstrumentId> {
        let place = self.stages.iter().position(|stage| *stage == Stage::Waiting)?;
        Some(InstrumentId(place as u16))
    }

    /// The numbering starts again and the books with it: nothing waits.
    pub fn restart(&mut self) {
        self.abandon();
        self.stages.fill(Stage::From(0));
        self.waiting = 0;
        self.held.clear();
        (self.floor, self.next, self.ahead_until) = (0, 0, 0);
    }

    /// The least number that a snapshot may end with to be of use: that of the first message that is held, or next.
    #[must_use]
    pub const fn floor(&self) -> Sequence {
        Sequence(self.floor)
    }

    /// Takes the next live message: it is applied, held, or known to its book already.
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
            Some(Stage::From(first)) if sequence.0 < *first => {}
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
        let mut held = HeldMessage::NONE;
        if held.set(sequence, message) {
            self.held.push_back((instrument, held));
        } else {
            // No message that is known is that long: whatever it was to say is in a later snapshot.
            self.floor = sequence + 1;
        }
    }

    /// A snapshot of the market begins.
    pub fn begin(&mut self, scope: SnapshotScope) {
        if self.scope.is_some() {
            self.abandon();
        }
        self.scope = Some(scope);
    }

    /// The snapshot at hand was cut off, or one before it was missed. The next one begins anew.
    pub fn abandon(&mut self) {
        self.turn = None;
        if self.scope.take().is_none() {
            return;
        }
        let mut is_cut = false;
        for stage in self.stages.iter_mut().filter(|stage| stage.is_loading()) {
            *stage = Stage::Waiting;
            is_cut = true;
        }
        self.counters.abandoned += u64::from(is_cut);
    }

    /// What follows is the snapshot of this instrument's book, which is emptied if it waits for one.
    pub fn begin_instrument(&mut self, instrument: InstrumentId, builder: &mut impl MessageBooks) {
        let id = usize::from(instrument.0);
        if self.scope.is_some()
            && let Some(stage @ Stage::Waiting) = self.stages.get_mut(id).filter(|_| id != 0)
        {
            *stage = Stage::LOADING;
            builder.begin_snapshot(instrument);
        }
    }

    /// What follows is the snapshot of every book: all that wait for one are emptied.
    pub fn begin_all(&mut self, builder: &mut impl MessageBooks) {
        self.begin(SnapshotScope::Market);
        self.load_unnamed(SnapshotScope::Market, builder);
    }

    /// Takes a message of the snapshot at hand: of a book that waits for it it is applied.
    pub fn load(&mut self, instrument: InstrumentId, message: &[u8], builder: &mut impl MessageBooks) {
        if let Some(Stage::Loading { is_suspect }) = self.stages.get_mut(usize::from(instrument.0)) {
            let before = builder.instruments().contradictions();
            // A book that catches up tells nobody before it has.
            builder.handle_message(Sequence(self.next), message, &mut BooksAlone);
            *is_suspect |= builder.instruments().contradictions() != before;
        }
    }

    /// Takes the next message of an ITCH snapshot; says what came of it when it has ended.
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

    /// The snapshot at hand has ended; `end` is the number of the first live message that is not in it.
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
        let healed = match scope {
            SnapshotScope::Market => {
                builder.instruments_mut().set_whole();
                self.load_unnamed(scope, builder);
                self.join(end, builder, out)
            }
            SnapshotScope::Instrument => self.join(end, builder, out) + self.turn(end, builder, out),
        };
        if healed == 0 { SnapshotOutcome::Ignored } else { SnapshotOutcome::Healed(healed) }
    }

    /// Snapshots of all instruments have come, the first of which ends at `end`: instruments that nobody has heard of
    /// have empty books. Returns how many.
    pub fn end_turn(
        &mut self,
        end: Sequence,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> u32 {
        if end.0 < self.floor {
            return 0;
        }
        builder.instruments_mut().set_whole();
        self.load_unnamed(SnapshotScope::Instrument, builder);
        self.join(end.0, builder, out)
    }

    /// Books that still wait were not named: they are empty. Of a turn that is said only of instruments that nobody has
    /// heard of.
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

    /// The latest snapshot of one instrument has ended: perhaps the turn has, too. What an instrument that was added
    /// since it began has published is held.
    ///
    /// Only snapshots of ITCH go by turns; whoever reads others knows when all have come, see [`end_turn`](Self::end_turn).
    fn turn(&mut self, end: u64, builder: &mut impl MessageBooks, out: &mut impl UpdateListener) -> u32 {
        if self.latest == InstrumentId(0) {
            return 0;
        }
        if self.turn.is_some_and(|turn| turn.first != self.latest) {
            return 0;
        }
        let ended = self.turn.replace(Turn { first: self.latest, end });
        let Some(Turn { end, .. }) = ended.filter(|turn| turn.end >= self.floor) else { return 0 };
        self.load_unnamed(SnapshotScope::Instrument, builder);
        self.join(end, builder, out)
    }

    /// Applies what is held of the books that were loaded; from now on they are live.
    fn join(&mut self, end: u64, builder: &mut impl MessageBooks, out: &mut impl UpdateListener) -> u32 {
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
                builder.handle_message(Sequence(held.sequence), held.message(), &mut BooksAlone);
            }
            !is_loaded
        });
        let mut healed = 0;
        for (id, stage) in stages.iter_mut().enumerate().filter(|(_, stage)| stage.is_loading()) {
            *stage = Stage::From(end);
            builder.instruments().report_status(InstrumentId(id as u16), out);
            healed += 1;
        }
        self.waiting -= healed;
        if healed > 0 {
            self.ahead_until = self.ahead_until.max(end);
        }
        self.counters.healed += u64::from(healed);
        healed
    }
}
