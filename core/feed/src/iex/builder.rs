//! Books of one channel of IEX.

use tickpath_book::BooksById;
use tickpath_iex::{Feed, decode};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, Side, Symbol};

use super::apply::Apply;
use super::state::{AT_REST, Held, State, Status, UNTOLD, symbol_of};
use crate::instruments::{BuilderCounters, Instruments, UpdateListener};
use crate::message_books::MessageBooks;

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

    /// Gives a symbol the next number, before any message names it.
    pub fn name(&mut self, symbol: Symbol) {
        self.state.id_of(symbol);
    }

    /// Gives times in updates since this midnight, itself since the Unix epoch. Without it they are since the epoch.
    #[must_use]
    pub fn since(mut self, midnight: Nanos) -> BookBuilder<B> {
        self.state.midnight = midnight;
        self
    }

    /// Applies the message of `sequence`, behind which another one may wait already, and reports its effect.
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
        // An empty message takes a number and says nothing.
        let Some(&message_type) = message.first() else { return };
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

    /// The book of an instrument is empty and live, and nothing else of it is known.
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

    /// The number of a symbol, once it was named.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.state.find(symbol)
    }

    /// The number of symbols that were named.
    #[must_use]
    pub const fn symbol_count(&self) -> u16 {
        self.state.symbols.count()
    }
}

impl<B: BooksById> MessageBooks for BookBuilder<B> {
    type Books = B;

    fn instruments(&self) -> &Instruments<B> {
        &self.state.instruments
    }

    fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.state.instruments
    }

    /// Too short a datagram to name its feed is left to the arbiter, which counts it as malformed.
    #[inline]
    fn admits(&mut self, datagram: &[u8]) -> bool {
        datagram.get(2..4).is_none_or(|id| id == self.feed.protocol_id().to_le_bytes())
    }

    #[inline(always)]
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.handle_next(sequence, message, None, out);
    }

    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        let mut messages = messages.peekable();
        let mut sequence = first;
        while let Some(message) = messages.next() {
            self.handle_next(sequence, message, messages.peek().copied(), out);
            sequence = sequence.next();
        }
    }

    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId {
        symbol_of(message).and_then(|symbol| self.state.id_of(symbol)).unwrap_or(InstrumentId(0))
    }

    fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        // The messages that close the transitions may be lost.
        self.state.transitions.fill(AT_REST);
        self.state.instruments.handle_lost(out);
    }

    fn handle_restart(&mut self, out: &mut impl UpdateListener) {
        for id in self.state.symbols.ids() {
            self.restart(id, out);
        }
    }

    fn begin_snapshot(&mut self, id: InstrumentId) {
        self.state.empty(id);
    }
}

/// True when both messages of DEEP+ are of one event: of one symbol, of one time, and both about orders and trades.
fn is_same_event(message: &[u8], next: &[u8]) -> bool {
    const TIME_AND_SYMBOL: std::ops::Range<usize> = 2..18;
    let is_part = |message: &[u8]| message.first().is_some_and(|kind| b"aMRLT".contains(kind));
    let (here, there) = (message.get(TIME_AND_SYMBOL), next.get(TIME_AND_SYMBOL));
    here.is_some() && here == there && is_part(message) && is_part(next)
}
