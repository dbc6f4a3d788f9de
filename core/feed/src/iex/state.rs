//! The state of one IEX feed: symbols, books and counters.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Price, PriceLevel, Side, Symbol, TradingState};

use crate::instruments::{Instruments, UpdateListener};
use crate::numbering::Numbering;

/// The highest price of a DEEP level: 47 bits of 10^-4 dollars. A higher one is refused.
pub const PRICE_MAX: Price = Price((1 << 47) - 1);

/// A change of a book by several messages, and the best prices before it.
#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub(super) is_open: bool,
    /// The best price of each side before the change.
    pub(super) best: [PriceLevel; 2],
}

/// The statuses from which a symbol's trading state is derived.
#[derive(Clone, Copy)]
pub(super) struct Status {
    /// Trading state at the listing market; `None` until a message states it.
    pub(super) listing_state: Option<TradingState>,
    /// True if IEX itself halted the symbol.
    pub(super) is_halted_here: bool,
    /// True if the symbol's book may contain orders; other books are not accessed.
    pub(super) has_book: bool,
}

pub(super) const NO_TRANSITION: Transition =
    Transition { is_open: false, best: [PriceLevel { price: 0, qty: 0 }; 2] };

pub(super) const UNKNOWN_STATUS: Status =
    Status { listing_state: None, is_halted_here: false, has_book: false };

/// The symbols, books and counters of one feed.
pub(super) struct State<B> {
    pub(super) instruments: Instruments<B>,
    /// Instrument ids by the characters of the symbol, assigned in the order of first use.
    pub(super) symbols: Numbering<u64>,
    pub(super) transitions: Box<[Transition]>,
    pub(super) statuses: Box<[Status]>,
    /// Midnight of the exchange's day, since the Unix epoch.
    pub(super) midnight: Nanos,
}

/// Byte range of the symbol in every message but the System Event.
const SYMBOL: std::ops::Range<usize> = 10..18;

impl<B: BooksById> State<B> {
    /// Creates the state of a feed whose books are empty and whose symbols are unknown.
    pub(super) fn new(books: B) -> State<B> {
        let max = books.limits().max_instrument;
        let count = usize::from(max.0) + 1;
        State {
            instruments: Instruments::new(books),
            symbols: Numbering::new(max),
            transitions: vec![NO_TRANSITION; count].into_boxed_slice(),
            statuses: vec![UNKNOWN_STATUS; count].into_boxed_slice(),
            midnight: Nanos::ZERO,
        }
    }

    /// Returns the instrument id of a symbol, if it has one.
    #[inline(always)]
    pub(super) fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        Some(self.symbols.find(u64::from_le_bytes(symbol.0))).filter(|id| id.0 != 0)
    }

    /// Returns the instrument id of a symbol, and assigns the next one if needed; `None` when none is left.
    #[inline(always)]
    pub(super) fn id_of(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        match self.find(symbol) {
            Some(id) => Some(id),
            None => self.enter(symbol),
        }
    }

    #[cold]
    pub(super) fn enter(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        let entered = self.symbols.find_or_enter(u64::from_le_bytes(symbol.0));
        match entered {
            Some(id) => self.instruments.name(id, symbol),
            None => self.instruments.note_bookless(),
        }
        entered
    }

    /// Returns the instrument whose symbol is at [`SYMBOL`] in a message; 0 if the symbol is unknown.
    pub(super) fn named_by(&self, message: &[u8]) -> InstrumentId {
        symbol_of(message).and_then(|symbol| self.find(symbol)).unwrap_or(InstrumentId(0))
    }

    #[inline]
    pub(super) fn best_now(&self, id: InstrumentId, side: Side) -> PriceLevel {
        PriceLevel::of(self.instruments.books().best(id, side).map(|level| (level.price, level.qty)))
    }

    pub(super) fn empty(&mut self, id: InstrumentId) {
        let place = usize::from(id.0);
        if self.statuses.get_mut(place).is_some_and(|status| std::mem::take(&mut status.has_book)) {
            self.instruments.clear(id);
            self.transitions[place] = NO_TRANSITION;
        }
    }

    /// Empties every book and reports it, at the end of the day or before a snapshot.
    pub(super) fn clear_all(&mut self, out: &mut impl UpdateListener) {
        for id in self.symbols.ids() {
            self.empty(id);
            self.instruments.report_status(id, out);
        }
    }
}

/// Returns the symbol at [`SYMBOL`] in a message; `None` if the message is too short.
pub(super) fn symbol_of(message: &[u8]) -> Option<Symbol> {
    message.get(SYMBOL)?.try_into().ok().map(Symbol)
}

/// Forwards updates. While a book's change is incomplete, its updates get the best prices before the change.
pub(super) struct TransitionListener<'a, L> {
    pub(super) transitions: &'a [Transition],
    pub(super) out: &'a mut L,
}

impl<L: UpdateListener> UpdateListener for TransitionListener<'_, L> {
    const WANTS_UPDATES: bool = L::WANTS_UPDATES;

    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        match self.transitions.get(usize::from(update.instrument)) {
            Some(&Transition { is_open: true, best: [bid, ask] }) => {
                self.out.on_update(&MarketUpdate { bid, ask, ..*update });
            }
            _ => self.out.on_update(update),
        }
    }
}
