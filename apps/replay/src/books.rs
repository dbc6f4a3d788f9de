//! The books of a recording and the plain twin beside them.

use tickpath_book::{BookLimits, BooksById, FastBooks, Indexed};
use tickpath_capture::InputMeter;
use tickpath_reference::ReferenceBooks;
use tickpath_types::InstrumentId;

use crate::check::{Names, Twin, TwinReport};
use crate::moment::Calendar;
use crate::options::{ORDERS_MAX_DEFAULT, ReplayOptions};
use crate::protocol::RecordedProtocol;

/// Room for orders is never below this, so that a small file has enough whatever its compression.
const ORDERS_MIN: u32 = 1 << 16;
/// At most one message adds an order in this number of bytes of a file, however well it is compressed.
const FILE_BYTES_PER_ORDER: u64 = 4;

/// Books and their plain twin; nothing before the first message, and none at all with `--decode-only`.
pub(crate) struct BookPair<P: RecordedProtocol> {
    pub(crate) books: Option<P::Books<Indexed<FastBooks>>>,
    pub(crate) twin: Option<Twin<P>>,
}

impl<P: RecordedProtocol> BookPair<P> {
    pub(crate) const NONE: BookPair<P> = BookPair { books: None, twin: None };

    /// Makes the books, where there are none yet and they are wanted.
    pub(crate) fn create(
        &mut self,
        protocol: &P,
        options: &ReplayOptions,
        calendar: &Calendar,
        size: impl FnOnce() -> BookSize,
    ) {
        if self.books.is_none() && !options.decode_only {
            let size = size().with_options(options);
            self.books = Some(protocol.books(size.empty(), calendar));
            self.twin =
                options.check_every.map(|every| Twin::new(protocol.books(size.empty(), calendar), every));
        }
    }

    /// Does something to the books and to their twin.
    pub(crate) fn change(
        &mut self,
        fast: impl FnOnce(&mut P::Books<Indexed<FastBooks>>),
        plain: impl FnOnce(&mut P::Books<Indexed<ReferenceBooks>>),
    ) {
        if let Some(books) = &mut self.books {
            fast(books);
        }
        if let Some(twin) = &mut self.twin {
            twin.also(plain);
        }
    }

    /// The order-by-order books.
    pub(crate) fn orders(&self) -> Option<&Indexed<FastBooks>> {
        self.books.as_ref().map(P::orders)
    }

    /// Compares a last time.
    pub(crate) fn finish_twin(&mut self, names: &Names<'_>) -> Option<TwinReport> {
        let twin = self.twin.take();
        twin.zip(self.orders()).map(|(twin, books)| twin.finish(books, names))
    }
}

/// The capacity that the books of a recording need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookSize {
    pub(crate) max_instrument: InstrumentId,
    pub(crate) max_orders: u32,
}

impl BookSize {
    /// For a file of which no more is known than its length.
    pub(crate) fn of_file(meter: &InputMeter, max_instrument: InstrumentId) -> BookSize {
        let by_len = match meter.len() {
            0 => ORDERS_MAX_DEFAULT,
            len => u32::try_from(len / FILE_BYTES_PER_ORDER).unwrap_or(u32::MAX),
        };
        BookSize { max_instrument, max_orders: by_len.clamp(ORDERS_MIN, ORDERS_MAX_DEFAULT) }
    }

    /// With the room for orders that the options ask for, if they do.
    fn with_options(self, options: &ReplayOptions) -> BookSize {
        BookSize { max_orders: options.orders_max.unwrap_or(self.max_orders), ..self }
    }

    /// Books of this size.
    fn empty<B: BooksById>(self) -> B {
        let limits = BookLimits::new(self.max_instrument, self.max_orders);
        // Many orders share levels.
        B::new(BookLimits { max_levels: self.max_orders.min(ORDERS_MIN.max(self.max_orders / 2)), ..limits })
    }
}
