//! Books of one channel of IEX.

use tickpath_book::BooksById;
use tickpath_iex::{Feed, decode};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, Side, SuspectReason, Symbol};

use super::apply::Apply;
use super::state::{AT_REST, Counters, Held, State, Status, UNTOLD};
use crate::instruments::{BuilderCounters, InstrumentState, Instruments, UpdateListener};

/// Builds books from the messages of one feed in sequence, and says of each whether it can be believed.
///
/// Symbols are numbered in the order of their first naming. A price level of DEEP, and a side of a quote of TOPS, is one
/// order of its size in the books: its order count says nothing. While several levels of a DEEP book change together, the
/// updates keep the best prices from before until the last of them came, because no market has seen those between. So they
/// do within an event of DEEP+, as far as its messages [came together](Self::handle_next).
///
/// A message that contradicts its book is counted, applied as far as it makes sense, and makes the book
/// [`Suspect`](BookHealth::Suspect); lost messages make every book [`Stale`](BookHealth::Stale). A quote of TOPS says all
/// of its book and heals it; so does a Clear Book of DEEP+.
pub struct BookBuilder<B> {
    pub(super) feed: Feed,
    /// By the type of a message: whether the feed has it.
    listed: [bool; 256],
    pub(super) state: State<B>,
}

impl<B: BooksById> BookBuilder<B> {
    /// Starts with empty books, of which one is taken by each symbol that is named.
    #[must_use]
    pub fn new(feed: Feed, books: B) -> BookBuilder<B> {
        BookBuilder {
            feed,
            listed: std::array::from_fn(|message_type| feed.lists(message_type as u8)),
            state: State::new(books),
        }
    }

    /// Gives these symbols the numbers from 1 on, before any message names them.
    #[must_use]
    pub fn naming(mut self, symbols: &[Symbol]) -> BookBuilder<B> {
        for symbol in symbols {
            if self.state.symbols.find(*symbol).is_none() {
                self.state.enter(*symbol);
            }
        }
        self
    }

    /// Gives times in updates since this midnight, itself since the Unix epoch. Without it they are since the epoch.
    #[must_use]
    pub fn since(mut self, midnight: Nanos) -> BookBuilder<B> {
        self.state.midnight = midnight;
        self
    }

    /// Applies the message of `sequence` and reports its effect.
    #[inline(always)]
    pub fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.handle_next(sequence, message, None, out);
    }

    /// The same of a message behind which another one waits already.
    ///
    /// DEEP+ says nowhere that a change is complete: all messages of one event about a symbol have one time stamp. So while
    /// the message that waits goes on with the event, updates keep the best prices from before, and the book may be crossed.
    /// What does not wait yet is not waited for.
    #[inline(always)]
    pub fn handle_next(
        &mut self,
        sequence: Sequence,
        message: &[u8],
        waiting: Option<&[u8]>,
        out: &mut impl UpdateListener,
    ) {
        if self.feed == Feed::DeepPlus10 {
            self.handle_part(sequence, message, waiting, out);
        } else {
            self.apply(sequence, message, out);
        }
    }

    /// One of perhaps several messages of one event of DEEP+.
    fn handle_part(
        &mut self,
        sequence: Sequence,
        message: &[u8],
        waiting: Option<&[u8]>,
        out: &mut impl UpdateListener,
    ) {
        let id = self.state.named_by(message);
        if id.0 == 0 {
            // Nothing rests there yet.
            return self.apply(sequence, message, out);
        }
        let goes_on = waiting.is_some_and(|waiting| is_same_event(message, waiting));
        let transition = &mut self.state.transitions[usize::from(id.0)];
        let was_open = std::mem::replace(&mut transition.is_open, goes_on);
        if goes_on && !was_open {
            self.state.transitions[usize::from(id.0)].best =
                Side::BOTH.map(|side| self.state.best_now(id, side));
        }
        let untold =
            |counters: &BuilderCounters| counters.unknown_order + counters.refused + counters.malformed;
        let before = *self.state.instruments.counters();
        self.apply(sequence, message, out);
        if was_open && !goes_on {
            self.state.counters.transitions += 1;
            if self.state.instruments.counters().crossed == before.crossed {
                self.state.instruments.check_crossed(id);
                self.state.instruments.end_message(out);
            }
            if untold(self.state.instruments.counters()) != untold(&before) {
                // The last message may have told nothing, and then nobody was told of those before it.
                self.state.instruments.report_status(id, out);
            }
        }
    }

    #[inline(always)]
    fn apply(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.state.instruments.begin_message(sequence);
        let Some(&message_type) = message.first() else {
            self.state.counters.empty += 1;
            return;
        };
        if !self.listed[usize::from(message_type)] {
            self.state.instruments.count_unknown_type();
            return;
        }
        if decode(message, &mut Apply { state: &mut self.state, out }).is_err() {
            self.handle_malformed(message, out);
        }
        let State { instruments, transitions, .. } = &mut self.state;
        instruments.end_message(&mut Held { transitions, out });
    }

    #[cold]
    fn handle_malformed(&mut self, message: &[u8], out: &mut impl UpdateListener) {
        let id = self.state.named_by(message);
        let State { instruments, transitions, .. } = &mut self.state;
        instruments.handle_malformed(id, &mut Held { transitions, out });
    }

    /// A numbering began anew: all books are empty, believed, and no trading state is known.
    pub fn handle_session_start(&mut self, out: &mut impl UpdateListener) {
        self.state.counters.session_starts += 1;
        for id in (1..=self.state.symbols.count()).map(InstrumentId) {
            self.restart(id, out);
        }
    }

    /// The same of one instrument, where a channel has only some of them.
    pub fn restart(&mut self, id: InstrumentId, out: &mut impl UpdateListener) {
        if let Some(status) = self.state.statuses.get_mut(usize::from(id.0)) {
            let has_book = status.has_book;
            *status = Status { has_book, ..UNTOLD };
            self.state.empty(id);
            self.state.instruments.set_health(id, BookHealth::Live, None);
            self.state.instruments.note_trading(id, None);
            self.state.instruments.report_status(id, out);
        }
    }

    /// Empties every book and tells of it: the day is over, or a snapshot follows.
    pub fn clear_all(&mut self, out: &mut impl UpdateListener) {
        self.state.clear_all(out);
    }

    /// Every book can be believed from now on: it was read from a snapshot.
    pub fn heal_all(&mut self, out: &mut impl UpdateListener) {
        for id in (1..=self.state.symbols.count()).map(InstrumentId) {
            self.state.instruments.set_health(id, BookHealth::Live, None);
            self.state.instruments.check_crossed(id);
            self.state.instruments.report_status(id, out);
        }
    }

    /// Messages were lost for good before the next one.
    pub fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        // What closed the transitions may be among what was lost.
        self.state.transitions.fill(AT_REST);
        self.state.instruments.handle_lost(out);
    }

    /// A gap opened that the lines do not close (`true`), or the last one closed (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        let State { instruments, transitions, .. } = &mut self.state;
        instruments.handle_recovering(recovering, &mut Held { transitions, out });
    }

    /// The feed.
    #[must_use]
    pub const fn feed(&self) -> Feed {
        self.feed
    }

    /// The books with what is known of each instrument.
    #[must_use]
    pub const fn instruments(&self) -> &Instruments<B> {
        &self.state.instruments
    }

    /// The same, to be changed.
    #[must_use]
    pub const fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.state.instruments
    }

    /// The books. One that is [in transition](Self::is_in_transition) is in a state that no market has seen.
    #[must_use]
    #[inline(always)]
    pub const fn books(&self) -> &B {
        self.state.instruments.books()
    }

    /// The number of a symbol, once it was named.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.state.symbols.find(symbol)
    }

    /// How many symbols were named.
    #[must_use]
    pub const fn symbol_count(&self) -> u16 {
        self.state.symbols.count()
    }

    /// What is known of an instrument; `None` beyond the books' bound.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.state.instruments.instrument(id)
    }

    /// True while several levels of the book change together and not all of them have come.
    #[must_use]
    pub fn is_in_transition(&self, id: InstrumentId) -> bool {
        self.state.transitions.get(usize::from(id.0)).is_some_and(|transition| transition.is_open)
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &BuilderCounters {
        self.state.instruments.counters()
    }

    /// What happened so far and only IEX knows of.
    #[must_use]
    pub const fn iex_counters(&self) -> &Counters {
        &self.state.counters
    }

    /// The reason why a book is suspect, if it is.
    #[must_use]
    pub fn reason(&self, id: InstrumentId) -> Option<SuspectReason> {
        self.instrument(id).and_then(|state| state.reason)
    }
}

/// True when both messages of DEEP+ are of one event: of one symbol, of one time, and both about orders and trades.
fn is_same_event(message: &[u8], next: &[u8]) -> bool {
    const TIME_AND_SYMBOL: std::ops::Range<usize> = 2..18;
    let is_part = |message: &[u8]| message.first().is_some_and(|kind| b"aMRLT".contains(kind));
    let (here, there) = (message.get(TIME_AND_SYMBOL), next.get(TIME_AND_SYMBOL));
    here.is_some() && here == there && is_part(message) && is_part(next)
}
