//! The trait of a recorded protocol: how its messages are decoded, applied to books, counted and reported.
//!
//! The loops over messages are generic over it, so which protocol a recording is of costs nothing per message.

use tickpath_book::BooksById;
use tickpath_types::Nanos;

use crate::digest::Checksums;
use crate::error::Result;
use crate::seen::Seen;
use crate::selection::Tables;
use crate::updates::Updates;
use crate::{Depth, RecordingInfo};

/// A protocol of recorded market data; a value is what is known of one recording of it.
pub trait RecordedProtocol: Sized + 'static {
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

    /// Books without orders, of the day that began at `midnight`.
    fn books<B: BooksById>(&self, empty: B, midnight: Nanos) -> Self::Books<B>;

    /// The order-by-order books under books.
    fn orders<B: BooksById>(books: &Self::Books<B>) -> &B;

    /// Applies a block to books; `first` is the number of its first message.
    fn apply<B: BooksById>(
        books: &mut Self::Books<B>,
        first: u64,
        messages: &[Self::Message<'_>],
        updates: &mut Updates,
    );

    /// Orders that went without a message, as later ones prove.
    fn unreported<B: BooksById>(_books: &Self::Books<B>) -> u64 {
        0
    }

    /// Refuses tables that could have no row.
    ///
    /// # Errors
    /// [`Error::NoOrders`](crate::Error::NoOrders) or [`Error::NothingFor`](crate::Error::NothingFor).
    fn check_tables(&self, _tables: Tables<bool>) -> Result {
        Ok(())
    }

    /// The time of a message, as the recording counts.
    fn ts_ns(message: &Self::Message<'_>) -> u64;

    /// Whether a message is part of a snapshot, which builds the books and is none of what happened.
    fn is_snapshot(_message: &Self::Message<'_>) -> bool {
        false
    }

    /// The content of a message for counts, statistics and the listener; `number` is its number in the file.
    fn see<'s>(message: &'s Self::Message<'_>, number: u64, source: Source<'s>) -> Seen<'s>;

    /// Takes all fields of a message into a checksum. A malformed message is counted by [`RecordedProtocol::see`].
    fn digest(message: &Self::Message<'_>, checksums: &mut Checksums);

    /// The name of a type of messages; `None` for a code that is no type.
    fn type_name(code: u8) -> Option<&'static str>;

    /// A type as the protocol writes it.
    fn type_code(code: u8) -> String {
        char::from(code).to_string()
    }
}

/// The recording that a message is from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Time base, depth and price scale.
    pub info: RecordingInfo,
    /// By index of instrument; ITCH tells its symbols in its messages.
    pub symbols: &'a [String],
    /// True when all messages are part of a snapshot, whatever they say themselves.
    pub is_snapshot: bool,
}

impl Source<'_> {
    /// Whether a message is part of a snapshot.
    #[must_use]
    pub fn is_snapshot<P: RecordedProtocol>(&self, message: &P::Message<'_>) -> bool {
        self.is_snapshot || P::is_snapshot(message)
    }
}
