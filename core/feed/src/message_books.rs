//! What books of every protocol have in common.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, Sequence};

use crate::BookBuilder;
use crate::builder::instrument_of;
use crate::instruments::{Instruments, TopLevels, UpdateListener};

/// Books that take the messages of one protocol in sequence, as a [`Channel`](crate::Channel) and a
/// [`SnapshotHealer`](crate::SnapshotHealer) need them.
pub trait MessageBooks {
    /// The books of all instruments.
    type Books: TopLevels;

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

    /// The instrument whose book a message is about; 0 for one that is about none, or that is to be applied whatever the
    /// book waits for. A symbol that is named for the first time gets its number by this.
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId;

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

impl<B: BooksById> MessageBooks for BookBuilder<B> {
    type Books = B;

    fn instruments(&self) -> &Instruments<B> {
        self.instruments()
    }

    fn instruments_mut(&mut self) -> &mut Instruments<B> {
        self.instruments_mut()
    }

    #[inline(always)]
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.handle_message(sequence, message, out);
    }

    #[inline]
    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        self.handle_batch(first, messages, out);
    }

    #[inline]
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId {
        instrument_of(message)
    }
}
