//! The symbols, books and counts of one feed of IEX: all that its messages change.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Price, PriceLevel, Side, Symbol, TradingState};

use crate::instruments::{Instruments, UpdateListener};
use crate::numbering::Numbering;

/// The highest price of a level of DEEP: 47 bits of 10^-4 dollars. A level beyond it is refused.
pub const PRICE_MAX: Price = Price((1 << 47) - 1);

/// Best prices of a book while it is between two states.
#[derive(Clone, Copy)]
pub(super) struct Transition {
    pub(super) is_open: bool,
    /// The best price before, of each side.
    pub(super) best: [PriceLevel; 2],
}

/// The statuses of a symbol from which its trading state follows.
#[derive(Clone, Copy)]
pub(super) struct Status {
    /// The state at the listing market; `None` until a message gave it.
    pub(super) told: Option<TradingState>,
    /// Whether IEX itself halted it.
    pub(super) is_halted_here: bool,
    /// Whether anything may rest in its book: books that nothing came to are not touched.
    pub(super) has_book: bool,
}

pub(super) const AT_REST: Transition =
    Transition { is_open: false, best: [PriceLevel { price: 0, qty: 0 }; 2] };

pub(super) const UNTOLD: Status = Status { told: None, is_halted_here: false, has_book: false };

/// The symbols, books and counts of one feed.
pub(super) struct State<B> {
    pub(super) instruments: Instruments<B>,
    /// By the characters of each symbol, in the order of their first naming.
    pub(super) symbols: Numbering<u64>,
    pub(super) transitions: Box<[Transition]>,
    pub(super) statuses: Box<[Status]>,
    /// Of the exchange's day, since the Unix epoch.
    pub(super) midnight: Nanos,
}

/// The place of the symbol in every message but the System Event.
const SYMBOL: std::ops::Range<usize> = 10..18;

impl<B: BooksById> State<B> {
    /// Empty books, and no symbol named.
    pub(super) fn new(books: B) -> State<B> {
        let max = books.limits().max_instrument;
        let count = usize::from(max.0) + 1;
        State {
            instruments: Instruments::new(books),
            symbols: Numbering::new(max),
            transitions: vec![AT_REST; count].into_boxed_slice(),
            statuses: vec![UNTOLD; count].into_boxed_slice(),
            midnight: Nanos::ZERO,
        }
    }

    /// The number of a symbol, once it was named.
    #[inline(always)]
    pub(super) fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        Some(self.symbols.find(u64::from_le_bytes(symbol.0))).filter(|id| id.0 != 0)
    }

    /// The number of a symbol, which takes the next one if it has none; `None` when there is none left.
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

    /// The instrument whose symbol is where every message but one has it; 0 where none is known.
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
            self.transitions[place] = AT_REST;
        }
    }

    /// Empties every book and tells of it: the day is over, or a snapshot follows.
    pub(super) fn clear_all(&mut self, out: &mut impl UpdateListener) {
        for id in self.symbols.ids() {
            self.empty(id);
            self.instruments.report_status(id, out);
        }
    }
}

/// The symbol that every message but the System Event has at one place.
pub(super) fn symbol_of(message: &[u8]) -> Option<Symbol> {
    message.get(SYMBOL)?.try_into().ok().map(Symbol)
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
            Some(&Transition { is_open: true, best: [bid, ask] }) => {
                self.out.on_update(&MarketUpdate { bid, ask, ..*update });
            }
            _ => self.out.on_update(update),
        }
    }
}
