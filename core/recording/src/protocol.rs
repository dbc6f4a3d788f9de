//! The trait of a recorded protocol: how its messages are decoded, applied to books, counted and reported.
//!
//! The loops over messages are generic over the trait, so the choice of protocol costs nothing per message.

use tickpath_book::BooksById;
use tickpath_types::Nanos;

use crate::digest::Checksums;
use crate::error::Result;
use crate::selection::Tables;
use crate::updates::Updates;
use crate::view::MessageView;
use crate::{Depth, RecordingInfo};

/// A protocol of recorded market data; each value holds the decoding state of one recording.
pub trait RecordedProtocol: Sized + 'static {
    /// A message, with context from earlier messages of the recording, such as the symbol of its instrument.
    type Message<'a>: Clone;
    /// Books to which the protocol's messages are applied, built on order-by-order books `B`.
    type Books<B: BooksById>;
    /// True if the times of a recording's messages never run backwards.
    const IS_ORDERED_BY_TIME: bool;

    /// Time base, depth and price decimals of the recording, and whether its fills are sums.
    fn info(&self) -> RecordingInfo;

    /// True if the recording has every published change: unknown references and crossed books are then
    /// errors.
    fn is_full_depth(&self) -> bool {
        self.info().depth == Depth::Full
    }

    /// Creates the protocol's books on `empty`, which has no orders; the session's day began at `midnight`.
    fn books<B: BooksById>(&self, empty: B, midnight: Nanos) -> Self::Books<B>;

    /// Returns the order-by-order books on which `books` is built.
    fn orders<B: BooksById>(books: &Self::Books<B>) -> &B;

    /// Applies a block of messages to books; `first` is the number of the first one in the file.
    fn apply<B: BooksById>(
        books: &mut Self::Books<B>,
        first: u64,
        messages: &[Self::Message<'_>],
        updates: &mut Updates,
    );

    /// Number of orders removed without a message, as later messages prove.
    fn unreported<B: BooksById>(_books: &Self::Books<B>) -> u64 {
        0
    }

    /// Returns an error if a requested table would have no rows.
    ///
    /// # Errors
    /// [`Error::NoOrders`](crate::Error::NoOrders) or [`Error::NothingFor`](crate::Error::NothingFor).
    fn check_tables(&self, _tables: Tables<bool>) -> Result {
        Ok(())
    }

    /// The time of a message, in the recording's time base.
    fn ts_ns(message: &Self::Message<'_>) -> u64;

    /// True for a message that is part of a snapshot: it builds the books, but is not a market event.
    fn is_snapshot(_message: &Self::Message<'_>) -> bool {
        false
    }

    /// The content of a message for counts, statistics and the listener; `number` is its number in the file.
    fn view<'s>(message: &'s Self::Message<'_>, number: u64, source: Source<'s>) -> MessageView<'s>;

    /// Adds all fields of a message to a checksum. Ignores a malformed message, which
    /// [`RecordedProtocol::view`] reports.
    fn digest(message: &Self::Message<'_>, checksums: &mut Checksums);

    /// The name of a message type; `None` for an unknown code.
    fn type_name(code: u8) -> Option<&'static str>;

    /// The code of a message type, as text in the protocol's notation.
    fn type_code(code: u8) -> String {
        char::from(code).to_string()
    }
}

/// The properties of the recording from which a message was read.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Time base, depth and price decimals of the recording.
    pub info: RecordingInfo,
    /// Symbols, indexed by instrument; empty if messages carry the symbols.
    pub symbols: &'a [String],
    /// True when all messages are part of a snapshot, regardless of their contents.
    pub is_snapshot: bool,
}

impl Source<'_> {
    /// True if `message` is part of a snapshot.
    #[must_use]
    pub fn is_snapshot<P: RecordedProtocol>(&self, message: &P::Message<'_>) -> bool {
        self.is_snapshot || P::is_snapshot(message)
    }
}
