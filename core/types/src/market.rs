//! Market data: events that the venue publishes, and updates that a strategy receives.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codes::coded;
use crate::{InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Sequence, Side};

/// One public event of the venue, as published in the market data session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketEvent {
    /// Sequence number in the market data session, dense from 1.
    pub sequence: Sequence,
    /// Sequence number of the command that caused the event.
    pub command: Sequence,
    /// Time of the event, since midnight.
    pub ts: Nanos,
    /// Id of the instrument; 0 for the whole system.
    pub instrument: InstrumentId,
    /// Kind of event, with its data.
    pub kind: MarketEventKind,
}

/// Kind of a public event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketEventKind {
    /// A phase of the session started or ended.
    System(SystemEventCode),
    /// Announces an instrument, whose definition is in the instrument file.
    Directory,
    /// Trading state of the instrument.
    TradingAction(TradingState),
    /// An order now rests at the tail of its price level.
    Add {
        /// Id of the order.
        order_id: OrderId,
        /// Side of the order.
        side: Side,
        /// Price of the order.
        price: Price,
        /// Quantity of the order.
        qty: Qty,
    },
    /// A resting order traded at its own price.
    Executed {
        /// Id of the resting order.
        order_id: OrderId,
        /// Executed quantity.
        qty: Qty,
        /// Match number of the execution.
        match_id: MatchId,
    },
    /// A resting order was reduced and keeps its priority.
    Reduced {
        /// Id of the order.
        order_id: OrderId,
        /// Quantity of the reduction.
        qty: Qty,
    },
    /// A resting order was removed.
    Deleted {
        /// Id of the order.
        order_id: OrderId,
    },
    /// A resting order was removed, and a new order of the same side was added at the tail of its price
    /// level.
    Replaced {
        /// Id of the removed order.
        old_order_id: OrderId,
        /// Id of the new order.
        order_id: OrderId,
        /// Price of the new order.
        price: Price,
        /// Quantity of the new order.
        qty: Qty,
    },
    /// A resting order traded at a price other than its own, in a cross.
    ExecutedAt {
        /// Id of the resting order.
        order_id: OrderId,
        /// Executed quantity.
        qty: Qty,
        /// Execution price.
        price: Price,
        /// Match number of the execution.
        match_id: MatchId,
    },
    /// A non-displayed order traded; no book changes.
    Traded {
        /// Side of the resting order.
        side: Side,
        /// Executed quantity.
        qty: Qty,
        /// Execution price.
        price: Price,
        /// Match number of the execution.
        match_id: MatchId,
    },
    /// Summary of a cross, after the executions of its orders; no book changes.
    Cross {
        /// Total executed quantity; zero if the cross did not trade.
        qty: Qty,
        /// Price of the cross; zero if the cross did not trade.
        price: Price,
        /// Match number of the cross, distinct from those of executions.
        match_id: MatchId,
        /// Kind of cross.
        kind: CrossKind,
    },
    /// An execution was broken; no book changes.
    TradeBroken {
        /// Match number of the broken execution.
        match_id: MatchId,
    },
    /// Result that a cross would have if it took place now.
    Imbalance(Imbalance),
    /// Price band within which trading continues without a pause.
    PriceBand {
        /// Reference price of the band.
        reference: Price,
        /// Lowest price of the band.
        low: Price,
        /// Highest price of the band.
        high: Price,
    },
}

coded! {
    /// Kind of cross, with its ITCH code.
    pub enum CrossKind {
        /// Opening of the trading day.
        Opening = b'O',
        /// Close of the trading day.
        Closing = b'C',
        /// Start of trading after a halt, or for a new instrument.
        Halt = b'H',
        /// A cross at any other time.
        Intraday = b'I',
    }
}

/// Indicative result of a cross: the data of ITCH's Net Order Imbalance Indicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imbalance {
    /// Quantity that would trade at [`Imbalance::price`].
    pub paired: Qty,
    /// Unmatched quantity of the larger side at that price.
    pub imbalance: Qty,
    /// Side with the larger quantity; `None` if both sides are equal.
    pub side: Option<Side>,
    /// Indicative price of the cross: ITCH's near price. Zero if nothing would trade.
    pub price: Price,
    /// Reference price: of equally good prices, the cross takes the nearest to it.
    pub reference: Price,
    /// Kind of the expected cross.
    pub kind: CrossKind,
}

coded! {
    /// Starts and ends of a session's phases, with their ITCH codes and Nasdaq's meaning of each. The venue
    /// publishes them but does not act on them: the [`TradingState`] of each instrument decides whether its
    /// orders trade.
    pub enum SystemEventCode {
        /// First message of the session.
        StartOfMessages = b'O',
        /// Orders are accepted from now on.
        StartOfSystemHours = b'S',
        /// Orders for market hours can trade from now on.
        StartOfMarketHours = b'Q',
        /// Orders for market hours no longer trade.
        EndOfMarketHours = b'M',
        /// No new orders are accepted; broken trades and deletions may follow.
        EndOfSystemHours = b'E',
        /// Last message of the session.
        EndOfMessages = b'C',
    }
}

coded! {
    /// Trading state of an instrument, with its ITCH code.
    ///
    /// At this venue open orders stay in the book in every state and can be cancelled and reduced. In
    /// [`Halted`](TradingState::Halted), new orders and replacements are rejected as
    /// [`Halted`](crate::RejectReason::Halted). In [`QuotationOnly`](TradingState::QuotationOnly) and
    /// [`Paused`](TradingState::Paused) orders rest without trading, so bids can be above asks until a cross.
    pub enum TradingState {
        /// No orders trade, and none are accepted.
        Halted = b'H',
        /// Orders are accepted but do not trade: before the opening, and before trading resumes.
        QuotationOnly = b'Q',
        /// As [`QuotationOnly`](TradingState::QuotationOnly), because a trade would have left the price band.
        Paused = b'P',
        /// Orders trade.
        Trading = b'T',
    }
}

coded! {
    /// Health of a book built from a feed.
    #[derive(Default, PartialOrd, Ord)]
    pub enum BookHealth {
        /// All messages so far were applied.
        #[default]
        Live = 0 => "live",
        /// A gap is open, and its messages have been requested.
        Recovering = 1 => "recovering",
        /// Messages were permanently lost; the book may be wrong until it is rebuilt.
        Stale = 2 => "stale",
        /// A message contradicted the book (unknown order, excess execution, crossed market), or the book
        /// belongs to another symbol than expected.
        Suspect = 3 => "suspect",
    }
}

impl BookHealth {
    /// Health with this code, from an update or a quote; an unknown code counts as suspect.
    #[inline]
    pub(crate) const fn or_suspect(code: u8) -> BookHealth {
        match BookHealth::from_code(code) {
            Some(health) => health,
            None => BookHealth::Suspect,
        }
    }
}

coded! {
    /// Reason why a book is [`Suspect`](BookHealth::Suspect): the first contradiction since it was last live.
    /// The text completes "the book is suspect: ...".
    pub enum SuspectReason {
        /// A message could not be decoded; it may have concerned this book.
        Malformed = 1 => "a message could not be decoded",
        /// A message about an order that does not rest.
        UnknownOrder = 2 => "a message about an order that does not rest",
        /// An add of an order that already rests.
        DuplicateOrder = 3 => "an order was added twice",
        /// An execution or a reduction above the remaining quantity, which would become negative.
        BeyondQty = 4 => "an execution or reduction exceeded the order's quantity",
        /// An add for which the books have no capacity, or a value that no order can have.
        Refused = 5 => "an order that the book cannot hold",
        /// Bid and ask crossed in continuous trading.
        Crossed = 6 => "bid and ask crossed in continuous trading",
        /// The feed's directory message names another symbol than expected. No snapshot can recover from
        /// this.
        OtherSymbol = 7 => "the directory names another symbol than expected",
        /// A message with a symbol index that was never mapped to a symbol.
        UnmappedIndex = 8 => "a message about an index that was never mapped to a symbol",
        /// A gap in the symbol's own sequence numbers.
        SymbolGap = 9 => "the symbol's own numbering skipped messages",
        /// The two lines of the feed carried different bytes under one sequence number.
        LinesDisagree = 10 => "the two lines carried different bytes under one sequence number",
        /// A resync of the book was requested.
        Resync = 11 => "a resync was requested",
    }
}

coded! {
    /// Kind of a [`MarketUpdate`].
    pub enum UpdateKind {
        /// An order was added.
        Add = 1,
        /// A resting order traded.
        Trade = 2,
        /// A resting order was reduced.
        Reduce = 3,
        /// A resting order was removed.
        Delete = 4,
        /// A resting order was replaced.
        Replace = 5,
        /// The trading state of the instrument or the health of its book changed.
        Status = 6,
    }
}

/// Code of [`MarketUpdate::side`] if the feed does not state the side.
pub const SIDE_NOT_STATED: u8 = 2;

/// A price and the quantity at it.
///
/// Fixed-size plain data, for the best price of a side in updates and quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PriceLevel {
    /// Price, in the scale of [`Price`]; meaningless while `qty` is 0.
    pub price: i64,
    /// Quantity; 0 if the side is empty.
    pub qty: u64,
}

impl PriceLevel {
    /// Creates a level from a price and its quantity; zeros if the side is empty.
    #[inline]
    #[must_use]
    pub const fn of(best: Option<(Price, Qty)>) -> PriceLevel {
        match best {
            Some((price, qty)) => PriceLevel { price: price.0, qty: qty.0 },
            None => PriceLevel { price: 0, qty: 0 },
        }
    }

    /// The price and its quantity; `None` if the side is empty.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Option<(Price, Qty)> {
        if self.qty == 0 { None } else { Some((Price(self.price), Qty(self.qty))) }
    }
}

/// A market data message that the feed handler applied to a book, and the best prices after it.
///
/// Fixed-size plain data without padding, so that its bytes can be passed through a ring or shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MarketUpdate {
    /// Sequence number of the message in the market data session.
    pub sequence: u64,
    /// Time of the event at the venue, in nanoseconds since midnight.
    pub ts_event: u64,
    /// Id of the order, or of the new order in a replacement; 0 if none.
    pub order_id: u64,
    /// Price of the order or trade, in the scale of [`Price`].
    pub price: i64,
    /// Quantity added, traded or removed; in a replacement, the quantity of the new order.
    pub qty: u64,
    /// Best bid after the message.
    pub bid: PriceLevel,
    /// Best ask after the message.
    pub ask: PriceLevel,
    /// Id of the instrument.
    pub instrument: u16,
    /// Code of the [`UpdateKind`].
    pub kind: u8,
    /// Side of the resting order, 0 buy, 1 sell; [`SIDE_NOT_STATED`] if the feed does not state it.
    pub side: u8,
    /// Code of the [`BookHealth`].
    pub health: u8,
    /// Code of the [`SuspectReason`] in an [`UpdateKind::Status`] of a suspect book; 0 otherwise.
    pub reason: u8,
    /// Code of the [`TradingState`] in an [`UpdateKind::Status`]; 0 in other kinds, or if unknown.
    pub trading: u8,
    /// 1 if updates of the same packet follow; 0 in the last update of a packet.
    pub has_more: u8,
}

impl MarketUpdate {
    /// The instrument.
    #[must_use]
    #[inline]
    pub const fn instrument(&self) -> InstrumentId {
        InstrumentId(self.instrument)
    }

    /// Kind of update; `None` for a code that is unknown to this version.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> Option<UpdateKind> {
        UpdateKind::from_code(self.kind)
    }

    /// Side of the resting order; `None` if the feed does not state it (as for a trade of a non-displayed
    /// order), and in an [`UpdateKind::Status`].
    #[must_use]
    #[inline]
    pub const fn side(&self) -> Option<Side> {
        Side::from_code(self.side)
    }

    /// Side of the incoming order of a trade; `None` if the feed does not state it.
    #[must_use]
    #[inline]
    pub const fn aggressor(&self) -> Option<Side> {
        match self.side() {
            Some(side) => Some(side.opposite()),
            None => None,
        }
    }

    /// Best bid and its quantity; `None` without bids.
    #[must_use]
    #[inline]
    pub const fn bid(&self) -> Option<(Price, Qty)> {
        self.bid.get()
    }

    /// Best ask and its quantity; `None` without asks.
    #[must_use]
    #[inline]
    pub const fn ask(&self) -> Option<(Price, Qty)> {
        self.ask.get()
    }

    /// Reason why the book is suspect, if stated.
    #[must_use]
    #[inline]
    pub const fn reason(&self) -> Option<SuspectReason> {
        SuspectReason::from_code(self.reason)
    }

    /// Trading state of the instrument, if stated.
    #[must_use]
    #[inline]
    pub const fn trading(&self) -> Option<TradingState> {
        TradingState::from_code(self.trading)
    }

    /// Whether this is the last update of its packet.
    #[must_use]
    #[inline]
    pub const fn ends_packet(&self) -> bool {
        self.has_more == 0
    }

    /// Health of the book; an unknown code counts as suspect.
    #[must_use]
    #[inline]
    pub const fn health(&self) -> BookHealth {
        BookHealth::or_suspect(self.health)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_fits_two_cache_lines_with_the_ring_sequence() {
        assert!(size_of::<MarketUpdate>() <= 120);
        // A large variant for a rare event would enlarge every event.
        assert!(size_of::<MarketEvent>() <= 72, "{}", size_of::<MarketEvent>());
    }

    #[test]
    fn every_reason_has_its_own_code_and_text() {
        let mut texts = std::collections::BTreeSet::new();
        for reason in (0..=u8::MAX).filter_map(SuspectReason::from_code) {
            assert!(texts.insert(reason.as_str()));
        }
        assert_eq!((texts.len(), SuspectReason::from_code(0)), (11, None));
    }

    #[test]
    fn unknown_codes_decode_as_none_or_suspect() {
        let update = MarketUpdate { kind: 99, health: 77, ..MarketUpdate::default() };
        assert_eq!(update.kind(), None);
        assert_eq!(update.health(), BookHealth::Suspect);
        assert_eq!(update.bid(), None);
    }

    #[test]
    fn an_unstated_side_is_none() {
        let update = |side| MarketUpdate { side, ..MarketUpdate::default() };
        assert_eq!(update(Side::Buy as u8).aggressor(), Some(Side::Sell));
        assert_eq!(update(Side::Sell as u8).aggressor(), Some(Side::Buy));
        assert_eq!((update(SIDE_NOT_STATED).side(), update(SIDE_NOT_STATED).aggressor()), (None, None));
    }
}
