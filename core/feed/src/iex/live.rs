//! What a live channel needs of the books.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, Sequence};

use super::builder::BookBuilder;
use super::state::symbol_of;
use crate::instruments::{Instruments, UpdateListener};
use crate::message_books::MessageBooks;

impl<B: BooksById> MessageBooks for BookBuilder<B> {
    type Books = B;

    fn instruments(&self) -> &Instruments<B> {
        self.instruments()
    }

    fn instruments_mut(&mut self) -> &mut Instruments<B> {
        self.instruments_mut()
    }

    /// Too short a datagram to name its feed is left to the arbiter, which counts it as malformed.
    #[inline]
    fn admits(&mut self, datagram: &[u8]) -> bool {
        datagram.get(2..4).is_none_or(|id| id == self.feed.protocol_id().to_le_bytes())
    }

    #[inline(always)]
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.handle_message(sequence, message, out);
    }

    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        let mut messages = messages.peekable();
        let mut sequence = first;
        while let Some(message) = messages.next() {
            self.handle_next(sequence, message, messages.peek().copied(), out);
            sequence = sequence.next();
        }
    }

    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId {
        symbol_of(message).and_then(|symbol| self.state.id_of(symbol)).unwrap_or(InstrumentId(0))
    }

    fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.handle_lost(out);
    }

    fn handle_restart(&mut self, out: &mut impl UpdateListener) {
        self.handle_session_start(out);
    }

    fn begin_snapshot(&mut self, id: InstrumentId) {
        self.state.empty(id);
    }
}
