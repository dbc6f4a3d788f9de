//! The trait of a recorded protocol: how its messages are decoded, applied to books, counted, reported and exported.
//!
//! The loops over messages are generic over it: which protocol a recording is of is decided once, by the
//! [registry](crate::registry), and costs nothing per message.

use tickpath_book::BooksById;
use tickpath_capture::{Depth, Format, PRICE_DECIMALS, RecordingInfo, TimeBase};

use crate::error::Result;
use crate::fold::Checksums;
use crate::moment::Calendar;
use crate::options::Exports;
use crate::seen::Seen;
use crate::updates::Updates;

/// A protocol of recorded market data; a value is what is known of one recording of it.
pub(crate) trait RecordedProtocol: Sized + 'static {
    /// A message with what its place in the recording tells.
    type Message<'a>: Clone;
    /// Books that take such messages, upon order-by-order books of a kind.
    type Books<B: BooksById>;
    /// Times never run backwards.
    const IS_ORDERED_BY_TIME: bool;

    /// The meaning of times, prices and fills, and the depth.
    fn info(&self) -> RecordingInfo;

    /// Every change of what is published is announced, so unknown references and crossed books contradict the recording.
    fn is_full_depth(&self) -> bool {
        self.info().depth == Depth::Full
    }

    /// Books without orders.
    fn books<B: BooksById>(&self, empty: B, calendar: &Calendar) -> Self::Books<B>;

    /// The order-by-order books under books.
    fn orders<B: BooksById>(books: &Self::Books<B>) -> &B;

    /// Applies a block to books; `first` is the number of its first message.
    fn apply<B: BooksById>(
        books: &mut Self::Books<B>,
        first: u64,
        messages: &[Self::Message<'_>],
        updates: &mut Updates,
    );

    /// Refuses tables that could have no row.
    fn check_exports(&self, _exports: &Exports) -> Result {
        Ok(())
    }

    /// The time of a message, as the recording counts.
    fn ts_ns(message: &Self::Message<'_>) -> u64;

    /// Whether a message is part of a snapshot, which builds the books and is none of what happened.
    fn is_snapshot(_message: &Self::Message<'_>) -> bool {
        false
    }

    /// The content of a message for counts, statistics and exports; `number` is its number in the file.
    fn see<'s>(message: &'s Self::Message<'_>, number: u64, source: Source<'s>) -> Seen<'s>;

    /// Takes all fields of a message into a checksum. A malformed message is counted by [`RecordedProtocol::see`].
    fn fold(message: &Self::Message<'_>, checksums: &mut Checksums);

    /// The name of a type of messages; `None` for a code that is no type.
    fn type_name(code: u8) -> Option<&'static str>;

    /// A type as the protocol writes it.
    fn type_code(code: u8) -> String {
        char::from(code).to_string()
    }
}

/// Every order is announced, fills change it, and times count from midnight.
pub(crate) const ORDER_BY_ORDER: RecordingInfo = RecordingInfo {
    time_base: TimeBase::Midnight,
    depth: Depth::Full,
    sums_fills: false,
    price_decimals: PRICE_DECIMALS,
};

/// The recording that a message is from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) format: Format,
    pub(crate) info: RecordingInfo,
    pub(crate) calendar: Calendar,
    /// By index of instrument; ITCH tells its symbols in its messages.
    pub(crate) symbols: &'a [String],
    /// True when all messages are part of a snapshot, whatever they say themselves.
    pub(crate) is_snapshot: bool,
}

impl Source<'_> {
    /// Whether a message is part of a snapshot.
    pub(crate) fn is_snapshot<P: RecordedProtocol>(&self, message: &P::Message<'_>) -> bool {
        self.is_snapshot || P::is_snapshot(message)
    }
}
