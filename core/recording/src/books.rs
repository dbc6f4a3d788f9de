//! The books of a recording and their reference model.

use tickpath_book::{BookLimits, BooksById};
use tickpath_types::{Date, InstrumentId, Nanos};

use crate::growing_books::GrowingBooks;
use crate::moment::Calendar;
use crate::protocol::RecordedProtocol;
use crate::reference_check::{ModelReport, Names, ReferenceModel};
use crate::selection::Selection;

/// Default capacity of the books in open orders of all symbols; a very busy day has up to 1.5 million. Each
/// order takes about 100 bytes.
pub const ORDERS_MAX_DEFAULT: u32 = 2 << 20;

/// Minimum capacity in orders: enough for a small file, however well it is compressed.
const ORDERS_MIN: u32 = 1 << 16;
/// Lower bound of a file's bytes per added order, however well the file is compressed.
const FILE_BYTES_PER_ORDER: u64 = 4;
const NS_PER_DAY: u64 = 86_400_000_000_000;

/// Books and their reference model. `books` is `None` before the first message and when only decoding is
/// requested; `model` is also `None` when no comparison is requested.
pub(crate) struct BookPair<P: RecordedProtocol> {
    pub(crate) books: Option<P::Books<GrowingBooks>>,
    pub(crate) model: Option<ReferenceModel<P>>,
}

impl<P: RecordedProtocol> BookPair<P> {
    pub(crate) const NONE: BookPair<P> = BookPair { books: None, model: None };

    /// Creates the books and the reference model as requested, if the books do not exist yet.
    pub(crate) fn create(
        &mut self,
        protocol: &P,
        selection: &Selection,
        calendar: &Calendar,
        size: impl FnOnce() -> BookSize,
    ) {
        if self.books.is_none() && !selection.decode_only {
            let size = size();
            let size = BookSize { max_orders: selection.orders_max.unwrap_or(size.max_orders), ..size };
            let midnight =
                Nanos(calendar.zone.utc_ns(calendar.date.map_or(0, Date::day).saturating_mul(NS_PER_DAY)));
            self.books = Some(protocol.books(size.empty(), midnight));
            let model = |every| ReferenceModel::new(protocol.books(size.empty(), midnight), every);
            self.model = selection.check_every.map(model);
        }
    }

    /// Returns the order-by-order books on which the protocol's books are built.
    pub(crate) fn orders(&self) -> Option<&GrowingBooks> {
        self.books.as_ref().map(P::orders)
    }

    /// Makes the last comparison with the reference model, and returns the model's report.
    pub(crate) fn finish_model(&mut self, names: &Names<'_>) -> Option<ModelReport> {
        let model = self.model.take();
        model.zip(self.orders()).map(|(model, books)| model.finish(books, names))
    }
}

/// Applies a change to the books of a [`BookPair`] and to those of its reference model.
macro_rules! in_both {
    ($pair:expr, $books:ident => $change:expr) => {
        if let Some($books) = &mut $pair.books {
            $change;
        }
        if let Some(model) = &mut $pair.model {
            let $books = &mut model.books;
            $change;
        }
    };
}
pub(crate) use in_both;

/// The capacity that the books of a recording need.
#[derive(Clone, Copy, Debug)]
pub struct BookSize {
    /// Highest instrument id.
    pub max_instrument: InstrumentId,
    /// Maximum number of open orders.
    pub max_orders: u32,
}

impl BookSize {
    /// Returns the capacity for a file of `len` bytes; `len` is 0 if unknown.
    #[must_use]
    pub fn of_file(len: u64, max_instrument: InstrumentId) -> BookSize {
        let by_len = match len {
            0 => ORDERS_MAX_DEFAULT,
            len => u32::try_from(len / FILE_BYTES_PER_ORDER).unwrap_or(u32::MAX),
        };
        BookSize { max_instrument, max_orders: by_len.clamp(ORDERS_MIN, ORDERS_MAX_DEFAULT) }
    }

    /// Returns empty books of this size.
    fn empty<B: BooksById>(self) -> B {
        let limits = BookLimits::new(self.max_instrument, self.max_orders);
        // Capacity for fewer levels than orders suffices, since many orders share a level.
        B::new(BookLimits { max_levels: self.max_orders.min(ORDERS_MIN.max(self.max_orders / 2)), ..limits })
    }
}
