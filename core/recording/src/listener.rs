//! The output of a replay as it proceeds.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, MarketUpdate};

use crate::moment::Calendar;
use crate::seen::{Bbo, Seen, SeenTrade};

/// A part of the work on some messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// Work that is not part of the cost of messages.
    Other,
    /// The messages were found in what was read.
    Framed,
    /// This number of messages was decoded, with all fields in the checksum.
    Decoded(usize),
    /// Messages were applied to the books.
    Applied,
    /// The books have all messages of a block, of which this is the number; 0 without books.
    Done(usize),
}

/// Takes what a replay finds, in the order of the recording. Of messages and prices it gets those of the chosen symbols in
/// the window; `symbol` is empty while it is not known.
pub trait Listener {
    /// The next calls are about this recording of the file, counted from 0, with these times and decimals of prices.
    fn on_recording(&mut self, _recording: usize, _calendar: &Calendar, _price_decimals: u8) {}

    /// A step of the work is complete, and the time since the one before was its.
    fn on_step(&mut self, _step: WorkStep) {}

    /// A message, and what it did to the books.
    fn on_message(&mut self, _seen: &Seen<'_>, _symbol: &str, _update: Option<&MarketUpdate>) {}

    /// A trade, with price and side where the message or the books tell them.
    fn on_trade(&mut self, _seen: &Seen<'_>, _symbol: &str, _trade: &SeenTrade) {}

    /// Other best prices after a message.
    fn on_bbo(&mut self, _seen: &Seen<'_>, _symbol: &str, _bbo: Bbo) {}

    /// Whether [`Listener::on_book`] is wanted: messages are then applied one by one.
    fn wants_books(&self) -> bool {
        false
    }

    /// The books after a message that changed an instrument's.
    fn on_book(&mut self, _seen: &Seen<'_>, _symbol: &str, _id: InstrumentId, _books: &impl BooksById) {}
}

/// Listens to nothing.
impl Listener for () {}
