//! Books of one channel of IEX.

use tickpath_book::BooksById;
use tickpath_iex::{Feed, decode};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, Price, Sequence, Side, SuspectReason, Symbol, TradingState,
};

use super::apply::Apply;
use super::symbols::Symbols;
use crate::instruments::{BuilderCounters, InstrumentState, Instruments, UpdateListener};

/// The highest price of a level of DEEP: 47 bits of 10^-4 dollars. A level beyond it is refused.
pub const PRICE_MAX: Price = Price((1 << 47) - 1);

/// Counts beside those of [`BuilderCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages of the books: levels, orders, quotes.
    pub book_messages: u64,
    /// Trades told of, executions of displayed orders included.
    pub trades: u64,
    /// Trades taken back.
    pub trade_breaks: u64,
    /// Messages of no bytes, which take a number and say nothing.
    pub empty: u64,
    /// Levels that went away and were not there.
    pub absent_levels: u64,
    /// Changes of a DEEP book that were complete, and those of a DEEP+ book of which several messages told.
    pub transitions: u64,
    /// Numberings that began anew; books began anew with them.
    pub session_starts: u64,
    /// Messages about symbols beyond the books' bound, which have no book.
    pub beyond_symbols: u64,
}

/// Best prices of a book while it is between two states.
#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub(super) is_open: bool,
    /// What was best before, of each side: price and quantity, the latter 0 where there was nothing.
    pub(super) best: [(i64, u64); 2],
}

/// What is known of a symbol's trading beside the state that follows from it.
#[derive(Clone, Copy)]
pub(super) struct Status {
    /// As the market of listing says; `None` until it was told.
    pub(super) told: Option<TradingState>,
    /// Whether IEX itself halted it.
    pub(super) is_halted_here: bool,
    /// Whether anything may rest in its book: books that nothing came to are not touched.
    pub(super) has_book: bool,
}

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
    pub(super) instruments: Instruments<B>,
    pub(super) symbols: Symbols,
    pub(super) transitions: Box<[Transition]>,
    pub(super) statuses: Box<[Status]>,
    pub(super) counters: Counters,
    /// Of the exchange's day, since the Unix epoch.
    pub(super) midnight: Nanos,
}

/// Where every message but the System Event has its symbol.
const SYMBOL: std::ops::Range<usize> = 10..18;

const AT_REST: Transition = Transition { is_open: false, best: [(0, 0); 2] };
const UNTOLD: Status = Status { told: None, is_halted_here: false, has_book: false };

impl<B: BooksById> BookBuilder<B> {
    /// Starts with empty books, of which one is taken by each symbol that is named.
    #[must_use]
    pub fn new(feed: Feed, books: B) -> BookBuilder<B> {
        let max = books.limits().max_instrument;
        let count = usize::from(max.0) + 1;
        BookBuilder {
            feed,
            listed: std::array::from_fn(|message_type| feed.lists(message_type as u8)),
            instruments: Instruments::new(books),
            symbols: Symbols::new(max),
            transitions: vec![AT_REST; count].into_boxed_slice(),
            statuses: vec![UNTOLD; count].into_boxed_slice(),
            counters: Counters::default(),
            midnight: Nanos::ZERO,
        }
    }

    /// Gives these symbols the numbers from 1 on, before any message names them.
    #[must_use]
    pub fn naming(mut self, symbols: &[Symbol]) -> BookBuilder<B> {
        for symbol in symbols {
            if self.symbols.find(*symbol).is_none() {
                self.enter(*symbol);
            }
        }
        self
    }

    /// Gives times in updates since this midnight, itself since the Unix epoch. Without it they are since the epoch.
    #[must_use]
    pub fn since(self, midnight: Nanos) -> BookBuilder<B> {
        BookBuilder { midnight, ..self }
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
        let id = self.named_by(message);
        if id.0 == 0 {
            // Nothing rests there yet.
            return self.apply(sequence, message, out);
        }
        let goes_on = waiting.is_some_and(|waiting| is_same_event(message, waiting));
        let transition = &mut self.transitions[usize::from(id.0)];
        let was_open = std::mem::replace(&mut transition.is_open, goes_on);
        if goes_on && !was_open {
            self.transitions[usize::from(id.0)].best = Side::BOTH.map(|side| self.best_now(id, side));
        }
        let untold =
            |counters: &BuilderCounters| counters.unknown_order + counters.refused + counters.malformed;
        let before = *self.instruments.counters();
        self.apply(sequence, message, out);
        if was_open && !goes_on {
            self.counters.transitions += 1;
            if self.instruments.counters().crossed == before.crossed {
                self.instruments.check_crossed(id);
                self.instruments.end_message(out);
            }
            if untold(self.instruments.counters()) != untold(&before) {
                // The last message may have told nothing, and then nobody was told of those before it.
                self.instruments.report_status(id, out);
            }
        }
    }

    /// The instrument whose symbol is where every message but one has it; 0 where none is known.
    fn named_by(&self, message: &[u8]) -> InstrumentId {
        let symbol = message.get(SYMBOL).and_then(|bytes| bytes.try_into().ok());
        symbol.and_then(|bytes| self.symbols.find(Symbol(bytes))).unwrap_or(InstrumentId(0))
    }

    #[inline(always)]
    fn apply(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.instruments.begin_message(sequence);
        let Some(&message_type) = message.first() else {
            self.counters.empty += 1;
            return;
        };
        if !self.listed[usize::from(message_type)] {
            self.instruments.count_unknown_type();
            return;
        }
        if decode(message, &mut Apply { builder: self, out }).is_err() {
            self.handle_malformed(message, out);
        }
        let BookBuilder { instruments, transitions, .. } = self;
        instruments.end_message(&mut Held { transitions, out });
    }

    #[cold]
    fn handle_malformed(&mut self, message: &[u8], out: &mut impl UpdateListener) {
        let id = self.named_by(message);
        let BookBuilder { instruments, transitions, .. } = self;
        instruments.handle_malformed(id, &mut Held { transitions, out });
    }

    /// A numbering began anew: all books are empty, believed, and no trading state is known.
    pub fn handle_session_start(&mut self, out: &mut impl UpdateListener) {
        self.counters.session_starts += 1;
        for id in (1..=self.symbols.count()).map(InstrumentId) {
            self.restart(id, out);
        }
    }

    /// The same of one instrument, where a channel has only some of them.
    pub fn restart(&mut self, id: InstrumentId, out: &mut impl UpdateListener) {
        if let Some(status) = self.statuses.get_mut(usize::from(id.0)) {
            let has_book = status.has_book;
            *status = Status { has_book, ..UNTOLD };
            self.empty(id);
            self.instruments.set_health(id, BookHealth::Live, None);
            self.instruments.note_trading(id, None);
            self.instruments.report_status(id, out);
        }
    }

    /// Empties every book and tells of it: the day is over, or a snapshot follows.
    pub fn clear_all(&mut self, out: &mut impl UpdateListener) {
        for id in (1..=self.symbols.count()).map(InstrumentId) {
            self.empty(id);
            self.instruments.report_status(id, out);
        }
    }

    /// Every book can be believed from now on: it was read from a snapshot.
    pub fn heal_all(&mut self, out: &mut impl UpdateListener) {
        for id in (1..=self.symbols.count()).map(InstrumentId) {
            self.instruments.set_health(id, BookHealth::Live, None);
            self.instruments.check_crossed(id);
            self.instruments.report_status(id, out);
        }
    }

    pub(super) fn empty(&mut self, id: InstrumentId) {
        let place = usize::from(id.0);
        if self.statuses.get_mut(place).is_some_and(|status| std::mem::take(&mut status.has_book)) {
            self.instruments.clear(id);
            self.transitions[place] = AT_REST;
        }
    }

    /// Messages were lost for good before the next one.
    pub fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        // What closed the transitions may be among what was lost.
        self.transitions.fill(AT_REST);
        self.instruments.handle_lost(out);
    }

    /// A gap opened that the lines do not close (`true`), or the last one closed (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        let BookBuilder { instruments, transitions, .. } = self;
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
        &self.instruments
    }

    /// The same, to be changed.
    #[must_use]
    pub const fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.instruments
    }

    /// The books. One that is [in transition](Self::is_in_transition) is in a state that no market has seen.
    #[must_use]
    #[inline(always)]
    pub const fn books(&self) -> &B {
        self.instruments.books()
    }

    /// The number of a symbol, once it was named.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.symbols.find(symbol)
    }

    /// How many symbols were named.
    #[must_use]
    pub const fn symbol_count(&self) -> u16 {
        self.symbols.count()
    }

    /// What is known of an instrument; `None` beyond the books' bound.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.instruments.instrument(id)
    }

    /// True while several levels of the book change together and not all of them have come.
    #[must_use]
    pub fn is_in_transition(&self, id: InstrumentId) -> bool {
        self.transitions.get(usize::from(id.0)).is_some_and(|transition| transition.is_open)
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &BuilderCounters {
        self.instruments.counters()
    }

    /// What happened so far and only IEX knows of.
    #[must_use]
    pub const fn iex_counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of a symbol, which takes the next one if it has none; `None` when there is none left.
    #[inline(always)]
    pub(super) fn id_of(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        match self.symbols.find(symbol) {
            Some(id) => Some(id),
            None => self.enter(symbol),
        }
    }

    #[cold]
    fn enter(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        let entered = self.symbols.enter(symbol);
        match entered {
            Some(id) => self.instruments.name(id, symbol),
            None => {
                self.counters.beyond_symbols += 1;
                self.instruments.note_bookless();
            }
        }
        entered
    }

    #[inline]
    pub(super) fn best_now(&self, id: InstrumentId, side: Side) -> (i64, u64) {
        match self.books().best(id, side) {
            Some(level) => (level.price.0, level.qty.0),
            None => (0, 0),
        }
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

/// Gives updates of a book in transition the best prices from before.
pub(super) struct Held<'a, L> {
    pub(super) transitions: &'a [Transition],
    pub(super) out: &'a mut L,
}

impl<L: UpdateListener> UpdateListener for Held<'_, L> {
    const WANTS_UPDATES: bool = L::WANTS_UPDATES;

    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        match self.transitions.get(usize::from(update.instrument)) {
            Some(Transition { is_open: true, best: [bid, ask] }) => self.out.on_update(&MarketUpdate {
                bid_price: bid.0,
                bid_qty: bid.1,
                ask_price: ask.0,
                ask_qty: ask.1,
                ..*update
            }),
            _ => self.out.on_update(update),
        }
    }
}
