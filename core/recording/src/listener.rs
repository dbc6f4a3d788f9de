//! The trait that receives the messages, trades and prices of a replay.

use tickpath_book::BooksById;
use tickpath_types::{InstrumentId, MarketUpdate};

use crate::moment::Calendar;
use crate::view::{Bbo, MessageView, TradeInfo};

/// A completed step in the processing of a block of messages, for time measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// Work whose time is not attributed to messages.
    Other,
    /// The messages were located in the input.
    Framed,
    /// This number of messages was decoded, and all their fields were added to the checksum.
    Decoded(usize),
    /// Messages were applied to the books.
    Applied,
    /// The block is finished, and this number of messages was applied to books; 0 without books.
    Done(usize),
}

/// Receives the messages, trades and prices of a replay, in the order of the recording, for the chosen
/// symbols and within the window. `symbol` is empty while it is unknown.
pub trait Listener {
    /// Announces recording `_recording` of the file, counted from 0: the following calls are about it.
    /// `_calendar` interprets its times, and its prices have `_price_decimals` decimals.
    fn on_recording(&mut self, _recording: usize, _calendar: &Calendar, _price_decimals: u8) {}

    /// A step of the work is complete; it took the time since the previous call of this method.
    fn on_step(&mut self, _step: WorkStep) {}

    /// Receives a message, and the update of the books that it caused, if any.
    fn on_message(&mut self, _view: &MessageView<'_>, _symbol: &str, _update: Option<&MarketUpdate>) {}

    /// Receives a trade, with price and side if the message or the books provide them.
    fn on_trade(&mut self, _view: &MessageView<'_>, _symbol: &str, _trade: &TradeInfo) {}

    /// Receives the best prices of an instrument after a message that changed them.
    fn on_bbo(&mut self, _view: &MessageView<'_>, _symbol: &str, _bbo: Bbo) {}

    /// True to receive calls of [`Listener::before_message`] and [`Listener::on_book`]: the replay then applies
    /// messages one by one.
    fn wants_books(&self) -> bool {
        false
    }

    /// Receives all books before the next message, which has the time `_ts_ns`, if it is within the window and not part
    /// of a snapshot.
    fn before_message(&mut self, _ts_ns: u64, _books: &impl BooksById) {}

    /// Receives all books after a message that changed the book of instrument `_id`.
    fn on_book(
        &mut self,
        _view: &MessageView<'_>,
        _symbol: &str,
        _id: InstrumentId,
        _books: &impl BooksById,
    ) {
    }
}

/// A listener that ignores all calls.
impl Listener for () {}
