//! Reads the venue's messages directly from the receive buffer. Frequent ones are parsed in the pass that
//! checks the frame.

use tickpath_deribit::envelope::{Id, Inbound, Visitor};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{BookLevels, BookUpdate, BookUpdateKind, Order as VenueOrder, OrderReply};
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;

use super::Core;
use super::account::{Account, Purpose};
use super::instruments::Instruments;
use super::news::{NewsFault, OrderNews, TradeNews};

/// Initial capacity for the levels on one side of a message.
const LEVELS: usize = 1_024;
/// Initial capacity for the trades of a reply.
const TRADES: usize = 256;

/// Parsed content of a message.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) levels: BookLevels,
    pub(super) book: Option<BookHead>,
    pub(super) order: Option<Result<OrderNews, NewsFault>>,
    pub(super) trades: Vec<Result<TradeNews, NewsFault>>,
}

/// Fields of a book message apart from its levels.
#[derive(Clone, Copy, Debug)]
pub(super) struct BookHead {
    pub(super) symbol: u32,
    kind: BookUpdateKind,
    timestamp: u64,
    prev_change_id: Option<u64>,
    change_id: u64,
}

impl BookHead {
    /// The message without the instrument name.
    pub(super) const fn update(&self) -> BookUpdate<'static> {
        BookUpdate {
            kind: self.kind,
            timestamp: self.timestamp,
            prev_change_id: self.prev_change_id,
            instrument_name: Text::new(""),
            change_id: self.change_id,
        }
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch {
            levels: BookLevels::with_capacity(LEVELS),
            book: None,
            order: None,
            trades: Vec::with_capacity(TRADES),
        }
    }
}

impl Core {
    /// Reads a message of a connection; [`handle_event`](Core::handle_event) then takes the session's event.
    ///
    /// # Errors
    /// [`ScanError`]: count and drop the message.
    #[inline]
    pub fn read<'f>(&mut self, stream: usize, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        let account = self.streams[stream].account.map(|account| &self.accounts[usize::from(account)]);
        self.scratch.book = None;
        self.scratch.order = None;
        self.scratch.trades.clear();
        let mut reader = Reader { scratch: &mut self.scratch, instruments: &self.instruments, account };
        Inbound::parse_with(text, &mut reader)
    }
}

struct Reader<'c> {
    scratch: &'c mut Scratch,
    instruments: &'c Instruments,
    account: Option<&'c Account>,
}

impl<'a> Visitor<'a> for Reader<'_> {
    #[inline]
    fn on_result(&mut self, id: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        let (Some(account), Some(Id::Number(id))) = (self.account, id) else { return result.skip() };
        match account.purpose(id) {
            Some(Purpose::Create { .. } | Purpose::Modify { .. }) => {
                let reply = OrderReply::read(result)?;
                self.scratch.order = Some(OrderNews::read(&reply.order));
                self.scratch.trades.clear();
                let trades = reply.trades.iter().map(|trade| {
                    trade.map_err(|_| NewsFault::Code).and_then(|trade| TradeNews::read(&trade))
                });
                self.scratch.trades.extend(trades);
                Ok(())
            }
            Some(Purpose::Cancel { is_by_label: false, .. }) => {
                self.scratch.order = Some(OrderNews::read(&VenueOrder::read(result)?));
                Ok(())
            }
            _ => result.skip(),
        }
    }

    #[inline]
    fn on_data(&mut self, channel: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        if !channel.plain().is_some_and(|name| name.starts_with("book.")) {
            return data.skip();
        }
        let update = BookUpdate::read(data, &mut self.scratch.levels)?;
        let symbol = update.instrument_name.plain().and_then(|name| self.instruments.number(name));
        self.scratch.book = symbol.map(|symbol| BookHead {
            symbol,
            kind: update.kind,
            timestamp: update.timestamp,
            prev_change_id: update.prev_change_id,
            change_id: update.change_id,
        });
        Ok(())
    }
}
