//! What books of every protocol have in common.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, Sequence};

use crate::instruments::{BuilderCounters, InstrumentState, Instruments, UpdateListener};

/// Books that take the messages of one protocol in sequence, as a [`Channel`](crate::Channel) and a
/// [`SnapshotHealer`](crate::SnapshotHealer) need them.
pub trait MessageBooks {
    /// The books of all instruments.
    type Books: BooksById;

    /// The books with what is known of each instrument.
    fn instruments(&self) -> &Instruments<Self::Books>;

    /// The same, to be changed.
    fn instruments_mut(&mut self) -> &mut Instruments<Self::Books>;

    /// Looks at a datagram of a line before the arbiter does; false for one of another feed.
    #[inline]
    fn admits(&mut self, datagram: &[u8]) -> bool {
        let _ = datagram;
        true
    }

    /// Applies the message of `sequence` and reports its effect.
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener);

    /// Applies messages that came together, the first with this number.
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

    /// Begins to fetch what a message that will be handled soon refers to; a hint.
    #[inline]
    fn prefetch(&self, message: &[u8]) {
        let _ = message;
    }

    /// The instrument whose book a message is about; 0 for one that is about none, or that is to be applied whatever the
    /// book waits for. A symbol that is named for the first time gets its number by this.
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId;

    /// The books.
    #[inline(always)]
    fn books(&self) -> &Self::Books {
        self.instruments().books()
    }

    /// The state of an instrument; `None` beyond the books' bound.
    fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.instruments().instrument(id)
    }

    /// Counts so far.
    fn counters(&self) -> &BuilderCounters {
        self.instruments().counters()
    }

    /// Messages were lost for good before the next one.
    fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.instruments_mut().handle_lost(out);
    }

    /// The numbering starts again: every book is empty and live, and nothing of the state before is known.
    fn handle_restart(&mut self, out: &mut impl UpdateListener) {
        self.instruments_mut().restart(out);
    }

    /// Empties the book of an instrument: what follows is a snapshot of it.
    fn begin_snapshot(&mut self, id: InstrumentId) {
        self.instruments_mut().clear(id);
    }
}
