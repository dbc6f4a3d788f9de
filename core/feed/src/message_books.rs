//! The interface that the books of every protocol implement.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, Sequence};

use crate::instruments::{BuilderCounters, InstrumentState, Instruments, UpdateListener};

/// Books that apply the messages of one protocol in sequence. A [`Channel`](crate::Channel) and a
/// [`SnapshotRecovery`](crate::SnapshotRecovery) use them through this interface.
pub trait MessageBooks {
    /// Type of the books.
    type Books: BooksById;

    /// Returns the books with the state of each instrument.
    fn instruments(&self) -> &Instruments<Self::Books>;

    /// Returns the books with the state of each instrument, for changes.
    fn instruments_mut(&mut self) -> &mut Instruments<Self::Books>;

    /// Checks a datagram before the arbiter handles it; returns false for a datagram of another feed.
    #[inline]
    fn admits(&mut self, datagram: &[u8]) -> bool {
        let _ = datagram;
        true
    }

    /// Applies the message of `sequence` and reports its effect.
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener);

    /// Applies messages that arrived together; `first` is the sequence number of the first.
    #[inline]
    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        let mut sequence = first;
        for message in messages {
            self.handle_message(sequence, message, out);
            sequence = sequence.next();
        }
    }

    /// Prefetches the memory that a later message needs. Has no other effect.
    #[inline]
    fn prefetch(&self, message: &[u8]) {
        let _ = message;
    }

    /// Returns the instrument whose book a message refers to; 0 for a message that refers to none, or that
    /// applies even while a book waits for a snapshot. Assigns an id to a symbol on its first use.
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId;

    /// Returns the books.
    #[inline(always)]
    fn books(&self) -> &Self::Books {
        self.instruments().books()
    }

    /// Returns the state of an instrument; `None` beyond the books' limit.
    fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.instruments().instrument(id)
    }

    /// Returns the counters so far.
    fn counters(&self) -> &BuilderCounters {
        self.instruments().counters()
    }

    /// Handles the loss of messages: every book becomes stale.
    fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.instruments_mut().handle_lost(out);
    }

    /// Handles a restart of the numbering: every book becomes empty and live, and all other state is cleared.
    fn handle_restart(&mut self, out: &mut impl UpdateListener) {
        self.instruments_mut().restart(out);
    }

    /// Empties the book of an instrument before its snapshot.
    fn begin_snapshot(&mut self, id: InstrumentId) {
        self.instruments_mut().clear(id);
    }
}
