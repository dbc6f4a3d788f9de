//! A block of messages applied to books, whatever the messages and the books are.

use tickpath_book::OrderBooks;
use tickpath_feed::{BookBuilder, BuilderCounters, UpdateListener};
use tickpath_types::{MarketUpdate, Sequence};

/// Messages between one that is applied and the one whose order is fetched meanwhile.
const LOOK_AHEAD: usize = 8;

/// What each message of a block did: at most one update a message, in order; `sequence` is the number of the
/// message in the file, counted from 1.
#[derive(Debug, Default)]
pub(crate) struct Updates(pub(crate) Vec<MarketUpdate>);

impl UpdateListener for Updates {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

/// Books that take messages of a kind.
pub(crate) trait ApplyMessages<M> {
    /// The books.
    type Books: OrderBooks<()>;

    /// Applies a block; `first` is the number of its first message.
    fn apply(&mut self, first: u64, messages: &[M], updates: &mut Updates);

    /// The books as they stand.
    fn books(&self) -> &Self::Books;

    /// What contradicted them so far.
    fn counters(&self) -> &BuilderCounters;
}

impl<B: OrderBooks<()>> ApplyMessages<&[u8]> for BookBuilder<B> {
    type Books = B;

    #[inline(never)]
    fn apply(&mut self, first: u64, messages: &[&[u8]], updates: &mut Updates) {
        for (index, message) in messages.iter().enumerate() {
            if let Some(ahead) = messages.get(index + LOOK_AHEAD) {
                self.prefetch(ahead);
            }
            self.handle_message(Sequence(first + index as u64), message, updates);
        }
    }

    fn books(&self) -> &B {
        BookBuilder::books(self)
    }

    fn counters(&self) -> &BuilderCounters {
        BookBuilder::counters(self)
    }
}
