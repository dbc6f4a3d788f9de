//! Books of one channel of IEX.

use tickpath_book::BooksById;
use tickpath_iex::{Feed, decode};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, Side, Symbol};

use super::apply::Apply;
use super::state::{NO_TRANSITION, State, Status, TransitionListener, UNKNOWN_STATUS, symbol_of};
use crate::instruments::{BuilderCounters, Instruments, UpdateListener};
use crate::message_books::MessageBooks;

/// Builds books from the messages of one feed in sequence, and tracks whether each book can be trusted.
///
/// Symbols get instrument ids in the order of their first use. Each price level of DEEP, and each side of a
/// TOPS quote, is held as one order, so order counts have no meaning. While several levels of a DEEP book
/// change, updates keep the previous best prices until the last level: the intermediate ones never existed in
/// the market. The same holds within a DEEP+ event, for messages that [arrived together](Self::handle_next).
///
/// A message that contradicts its book is counted and applied as far as possible. The book becomes
/// [`Suspect`](BookHealth::Suspect). Lost messages make every book [`Stale`](BookHealth::Stale). A TOPS quote
/// contains its whole book and makes it live; so does a DEEP+ Clear Book.
pub struct BookBuilder<B> {
    pub(super) feed: Feed,
    /// True for each message type of the feed, indexed by the type byte.
    listed: [bool; 256],
    pub(super) state: State<B>,
}

impl<B: BooksById> BookBuilder<B> {
    /// Creates a builder with empty books; each new symbol takes one of them.
    #[must_use]
    pub fn new(feed: Feed, books: B) -> BookBuilder<B> {
        BookBuilder {
            feed,
            listed: std::array::from_fn(|message_type| feed.has_message_type(message_type as u8)),
            state: State::new(books),
        }
    }

    /// Assigns the next instrument id to a symbol before any message names it.
    pub fn name(&mut self, symbol: Symbol) {
        self.state.id_of(symbol);
    }

    /// Makes times in updates relative to this midnight (since the Unix epoch) instead of the epoch.
    #[must_use]
    pub fn since(mut self, midnight: Nanos) -> BookBuilder<B> {
        self.state.midnight = midnight;
        self
    }

    /// Applies the message of `sequence` and reports its effect. `next_message` is the one after it, if any.
    ///
    /// DEEP+ does not mark the end of a change, but all messages of one event for a symbol have one
    /// timestamp. While the next message belongs to the event, updates keep the previous best prices, and the
    /// book may be crossed. The builder does not wait for a next message that has not arrived.
    #[inline(always)]
    pub fn handle_next(
        &mut self,
        sequence: Sequence,
        message: &[u8],
        next_message: Option<&[u8]>,
        out: &mut impl UpdateListener,
    ) {
        if self.feed == Feed::DeepPlus10 {
            self.handle_part(sequence, message, next_message, out);
        } else {
            self.apply(sequence, message, out);
        }
    }

    /// Applies one DEEP+ message, which may be part of an event of several messages.
    fn handle_part(
        &mut self,
        sequence: Sequence,
        message: &[u8],
        next_message: Option<&[u8]>,
        out: &mut impl UpdateListener,
    ) {
        let id = self.state.named_by(message);
        if id.0 == 0 {
            // The symbol is not known yet: its book is empty, so there are no best prices to keep.
            return self.apply(sequence, message, out);
        }
        let continues = next_message.is_some_and(|next_message| is_same_event(message, next_message));
        let transition = &mut self.state.transitions[usize::from(id.0)];
        let was_open = std::mem::replace(&mut transition.is_open, continues);
        if continues && !was_open {
            self.state.transitions[usize::from(id.0)].best =
                Side::BOTH.map(|side| self.state.best_now(id, side));
        }
        let unreported =
            |counters: &BuilderCounters| counters.unknown_order + counters.refused + counters.malformed;
        let before = *self.state.instruments.counters();
        self.apply(sequence, message, out);
        if was_open && !continues {
            if self.state.instruments.counters().crossed == before.crossed {
                self.state.instruments.check_crossed(id);
                self.state.instruments.end_message(out);
            }
            if unreported(self.state.instruments.counters()) != unreported(&before) {
                // The event's last message may have published no update, so publish the result of the earlier
                // messages.
                self.state.instruments.report_status(id, out);
            }
        }
    }

    #[inline(always)]
    fn apply(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.state.instruments.begin_message(sequence);
        // An empty message takes a sequence number and has no effect.
        let Some(&message_type) = message.first() else { return };
        if !self.listed[usize::from(message_type)] {
            self.state.instruments.count_unknown_type();
            return;
        }
        if decode(message, &mut Apply { state: &mut self.state, out }).is_err() {
            self.handle_malformed(message, out);
        }
        let State { instruments, transitions, .. } = &mut self.state;
        instruments.end_message(&mut TransitionListener { transitions, out });
    }

    #[cold]
    fn handle_malformed(&mut self, message: &[u8], out: &mut impl UpdateListener) {
        let id = self.state.named_by(message);
        let State { instruments, transitions, .. } = &mut self.state;
        instruments.handle_malformed(id, &mut TransitionListener { transitions, out });
    }

    /// Resets an instrument: its book is empty and live, and all its other state is cleared.
    pub fn restart(&mut self, id: InstrumentId, out: &mut impl UpdateListener) {
        if let Some(status) = self.state.statuses.get_mut(usize::from(id.0)) {
            let has_book = status.has_book;
            *status = Status { has_book, ..UNKNOWN_STATUS };
            self.state.empty(id);
            self.state.instruments.set_health(id, BookHealth::Live, None);
            self.state.instruments.note_trading(id, None);
            self.state.instruments.report_status(id, out);
        }
    }

    /// Returns the instrument id of a symbol, if it has one.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.state.find(symbol)
    }

    /// Returns the number of symbols that have an instrument id.
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

    /// Admits datagrams of this feed, and those without a protocol id, which the arbiter counts as malformed.
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
        // The messages that close the transitions may be among those lost.
        self.state.transitions.fill(NO_TRANSITION);
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

/// Returns true if two DEEP+ messages, on orders or trades, belong to one event: same time and symbol.
fn is_same_event(message: &[u8], next: &[u8]) -> bool {
    const TIME_AND_SYMBOL: std::ops::Range<usize> = 2..18;
    let is_part = |message: &[u8]| message.first().is_some_and(|kind| b"aMRLT".contains(kind));
    let (here, there) = (message.get(TIME_AND_SYMBOL), next.get(TIME_AND_SYMBOL));
    here.is_some() && here == there && is_part(message) && is_part(next)
}
