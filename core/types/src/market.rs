//! Market data: what the venue publishes and what a strategy sees.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::codes::coded;
use crate::{InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Sequence, Side};

/// One public event of the venue, in the order in which it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketEvent {
    /// Its number in the market data session, dense from 1.
    pub sequence: Sequence,
    /// The command that caused it.
    pub command: Sequence,
    /// Since midnight.
    pub ts: Nanos,
    /// What it is about; 0 for the whole system.
    pub instrument: InstrumentId,
    /// What happened.
    pub kind: MarketEventKind,
}

/// What happened in public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketEventKind {
    /// The session reached a stage.
    System(SystemEventCode),
    /// The instrument exists; its definition is in the instrument file.
    Directory,
    /// The instrument's trading state.
    TradingAction(TradingState),
    /// An order now rests at the tail of its level.
    Add {
        /// The venue's reference.
        order_id: OrderId,
        /// Its side.
        side: Side,
        /// Its level.
        price: Price,
        /// Its quantity.
        qty: Qty,
    },
    /// A resting order traded at its own price.
    Executed {
        /// The resting order.
        order_id: OrderId,
        /// How much.
        qty: Qty,
        /// Number of the execution.
        match_id: MatchId,
    },
    /// A resting order was reduced and keeps its place.
    Reduced {
        /// The order.
        order_id: OrderId,
        /// By how much.
        qty: Qty,
    },
    /// A resting order went away.
    Deleted {
        /// The order.
        order_id: OrderId,
    },
    /// A resting order went away and another of its side rests at the tail of its level.
    Replaced {
        /// The order that went away.
        old_order_id: OrderId,
        /// The order that rests.
        order_id: OrderId,
        /// Its level.
        price: Price,
        /// Its quantity.
        qty: Qty,
    },
    /// A resting order traded at another price than its own, in a cross.
    ExecutedAt {
        /// The resting order.
        order_id: OrderId,
        /// How much.
        qty: Qty,
        /// At what price.
        price: Price,
        /// Number of the execution.
        match_id: MatchId,
    },
    /// An order that is not displayed traded; no book changes.
    Traded {
        /// Side of the order that rested.
        side: Side,
        /// How much.
        qty: Qty,
        /// At what price.
        price: Price,
        /// Number of the execution.
        match_id: MatchId,
    },
    /// The sum of a cross, whose orders were told of one by one; no book changes.
    Cross {
        /// How much traded; zero when nothing did.
        qty: Qty,
        /// At what price; zero when nothing traded.
        price: Price,
        /// Its number, of no execution.
        match_id: MatchId,
        /// Which cross.
        kind: CrossKind,
    },
    /// An execution is void; no book changes.
    TradeBroken {
        /// Its number.
        match_id: MatchId,
    },
    /// What a cross would do now.
    Imbalance(Imbalance),
    /// The prices within which trading goes on without a pause.
    PriceBand {
        /// What it is around.
        reference: Price,
        /// The lowest.
        low: Price,
        /// The highest.
        high: Price,
    },
}

coded! {
    /// Which cross it is, with its ITCH code.
    pub enum CrossKind {
        /// Opens the day.
        Opening = b'O',
        /// Closes it.
        Closing = b'C',
        /// Resumes trading after a halt, or begins it for a new instrument.
        Halt = b'H',
        /// At another time.
        Intraday = b'I',
    }
}

/// What a cross would do now: the data of ITCH's Net Order Imbalance Indicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imbalance {
    /// How much would trade at [`Imbalance::price`].
    pub paired: Qty,
    /// What of the larger side would be left at that price.
    pub imbalance: Qty,
    /// The larger side, `None` when they are equal.
    pub side: Option<Side>,
    /// Where a cross would trade: ITCH's near price. Zero when nothing would trade.
    pub price: Price,
    /// What the price is chosen nearest to.
    pub reference: Price,
    /// The cross that is expected.
    pub kind: CrossKind,
}

coded! {
    /// Stages of a session, with their ITCH codes and Nasdaq's meaning of each. This venue publishes them
    /// and acts on none: whether orders are taken and trade is each instrument's [`TradingState`].
    pub enum SystemEventCode {
        /// First message of the session.
        StartOfMessages = b'O',
        /// From now on orders are accepted.
        StartOfSystemHours = b'S',
        /// From now on orders for market hours can trade.
        StartOfMarketHours = b'Q',
        /// Orders for market hours trade no longer.
        EndOfMarketHours = b'M',
        /// No new orders are accepted; broken trades and deletions may follow.
        EndOfSystemHours = b'E',
        /// Last message of the session.
        EndOfMessages = b'C',
    }
}

coded! {
    /// Whether an instrument trades, with its ITCH code.
    ///
    /// At this venue open orders stay where they are in every state and may be cancelled and reduced. New orders and
    /// replacements are refused as [`Halted`](crate::RejectReason::Halted) while the state is
    /// [`Halted`](TradingState::Halted); in the two states between they are taken and do not trade, so that a book may
    /// be crossed until a cross begins [`Trading`](TradingState::Trading).
    pub enum TradingState {
        /// No orders trade and none are taken.
        Halted = b'H',
        /// Orders are taken and do not trade: before the opening, and before trading resumes.
        QuotationOnly = b'Q',
        /// As [`QuotationOnly`](TradingState::QuotationOnly), because a trade would have left the price band.
        Paused = b'P',
        /// Orders trade.
        Trading = b'T',
    }
}

coded! {
    /// Health of a book that is built from a feed.
    #[derive(Default, PartialOrd, Ord)]
    pub enum BookHealth {
        /// Every message so far was applied.
        #[default]
        Live = 0 => "live",
        /// A gap is open and its messages have been asked for.
        Recovering = 1 => "recovering",
        /// Messages were lost for good; the book may be wrong until it is rebuilt.
        Stale = 2 => "stale",
        /// A message contradicted the book: an unknown order, too large an execution, a crossed market; or it is
        /// the book of another symbol than is expected.
        Suspect = 3 => "suspect",
    }
}

impl BookHealth {
    /// The health of an update's or a quote's byte; an unknown one counts as suspect.
    pub(crate) const fn or_suspect(code: u8) -> BookHealth {
        match BookHealth::from_code(code) {
            Some(health) => health,
            None => BookHealth::Suspect,
        }
    }
}

coded! {
    /// Why a book is [`Suspect`](BookHealth::Suspect): the first contradiction since it was last live. Its text follows "the
    /// book is suspect: ...".
    pub enum SuspectReason {
        /// A message could not be decoded, and may have been about this book.
        Malformed = 1 => "a message could not be read",
        /// A message about an order that does not rest.
        UnknownOrder = 2 => "a message about an order that does not rest",
        /// An add of an order that rests already.
        DuplicateOrder = 3 => "an order was added twice",
        /// An execution or a reduction beyond what was left of the order: its quantity would have become negative.
        BeyondQty = 4 => "more was taken from an order than it had",
        /// An add that the books' bounds refused, or a value that no order can have.
        Refused = 5 => "an order that the book cannot hold",
        /// Bid and ask met in continuous trading.
        Crossed = 6 => "bid and ask met in continuous trading",
        /// The directory names another symbol than is expected: no snapshot heals that.
        OtherSymbol = 7 => "the directory names another symbol than is expected",
        /// A message about a number that no symbol was mapped to.
        UnmappedIndex = 8 => "a message about an index that was never mapped to a symbol",
        /// The instrument's own numbering skipped messages.
        SymbolGap = 9 => "the symbol's own numbering skipped messages",
        /// The two lines carried different bytes under one number.
        LinesDisagree = 10 => "the two lines carried different bytes under one number",
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
        /// A resting order went away.
        Delete = 4,
        /// A resting order was replaced.
        Replace = 5,
        /// The state of the instrument or of its book's health changed.
        Status = 6,
    }
}

/// Code of [`MarketUpdate::side`] when the feed does not state the side.
pub const SIDE_NOT_STATED: u8 = 2;

/// A price and the quantity there.
///
/// Plain fixed data, as updates and quotes have it for the best price of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PriceLevel {
    /// See [`Price`]; meaningless while `qty` is 0.
    pub price: i64,
    /// 0 when the side is empty.
    pub qty: u64,
}

impl PriceLevel {
    /// Of a price and its quantity; zeros when the side is empty.
    #[inline]
    #[must_use]
    pub const fn of(best: Option<(Price, Qty)>) -> PriceLevel {
        match best {
            Some((price, qty)) => PriceLevel { price: price.0, qty: qty.0 },
            None => PriceLevel { price: 0, qty: 0 },
        }
    }

    /// The price and its quantity; `None` when the side is empty.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Option<(Price, Qty)> {
        if self.qty == 0 { None } else { Some((Price(self.price), Qty(self.qty))) }
    }
}

/// One market data message after the feed handler applied it, with the best prices that it left.
///
/// Plain fixed data without padding, so that it can cross a ring or shared memory as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MarketUpdate {
    /// Number of the message in the market data session.
    pub sequence: u64,
    /// Time of the event at the venue, in nanoseconds since midnight.
    pub ts_event: u64,
    /// The order that it is about; 0 when none.
    pub order_id: u64,
    /// Price of the order or trade, see [`Price`].
    pub price: i64,
    /// Quantity added, traded or taken away.
    pub qty: u64,
    /// Best bid after the message.
    pub bid: PriceLevel,
    /// Best ask after the message.
    pub ask: PriceLevel,
    /// The instrument.
    pub instrument: u16,
    /// An [`UpdateKind`].
    pub kind: u8,
    /// Side of the resting order, 0 buy, 1 sell; [`SIDE_NOT_STATED`] when the feed does not state it.
    pub side: u8,
    /// A [`BookHealth`].
    pub health: u8,
    /// In an [`UpdateKind::Status`] of a suspect book, a [`SuspectReason`]; else 0.
    pub reason: u8,
    /// In an [`UpdateKind::Status`], the code of the [`TradingState`]; 0 in others and before one was published.
    pub trading: u8,
    /// Zero.
    pub reserved: u8,
}

impl MarketUpdate {
    /// The instrument.
    #[must_use]
    pub const fn instrument(&self) -> InstrumentId {
        InstrumentId(self.instrument)
    }

    /// What it reports; `None` for a code that this version does not know.
    #[must_use]
    pub const fn kind(&self) -> Option<UpdateKind> {
        UpdateKind::from_code(self.kind)
    }

    /// Side of the resting order; `None` where the feed does not state it, as for a trade of an order that was not
    /// displayed, and in an [`UpdateKind::Status`].
    #[must_use]
    pub const fn side(&self) -> Option<Side> {
        Side::from_code(self.side)
    }

    /// Side of the order that came in, for a trade; `None` where the feed does not state it.
    #[must_use]
    pub const fn aggressor(&self) -> Option<Side> {
        match self.side() {
            Some(side) => Some(side.opposite()),
            None => None,
        }
    }

    /// Best bid and its quantity.
    #[must_use]
    pub const fn bid(&self) -> Option<(Price, Qty)> {
        self.bid.get()
    }

    /// Best ask and its quantity.
    #[must_use]
    pub const fn ask(&self) -> Option<(Price, Qty)> {
        self.ask.get()
    }

    /// Why the book is suspect, as far as the update says.
    #[must_use]
    pub const fn reason(&self) -> Option<SuspectReason> {
        SuspectReason::from_code(self.reason)
    }

    /// Whether the instrument trades, as far as the update says.
    #[must_use]
    pub const fn trading(&self) -> Option<TradingState> {
        TradingState::from_code(self.trading)
    }

    /// Whether the book can be believed; an unknown code counts as suspect.
    #[must_use]
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
        // What is seldom published must not make what is often published longer.
        assert!(size_of::<MarketEvent>() <= 72, "{}", size_of::<MarketEvent>());
    }

    #[test]
    fn every_reason_has_a_code_and_words_of_its_own() {
        let mut words = std::collections::BTreeSet::new();
        for reason in (0..=u8::MAX).filter_map(SuspectReason::from_code) {
            assert!(words.insert(reason.as_str()));
        }
        assert_eq!((words.len(), SuspectReason::from_code(0)), (11, None));
    }

    #[test]
    fn unknown_codes_are_told_apart() {
        let update = MarketUpdate { kind: 99, health: 77, ..MarketUpdate::default() };
        assert_eq!(update.kind(), None);
        assert_eq!(update.health(), BookHealth::Suspect);
        assert_eq!(update.bid(), None);
    }

    #[test]
    fn a_side_that_the_feed_does_not_state_is_not_taken_for_one() {
        let update = |side| MarketUpdate { side, ..MarketUpdate::default() };
        assert_eq!(update(Side::Buy as u8).aggressor(), Some(Side::Sell));
        assert_eq!(update(Side::Sell as u8).aggressor(), Some(Side::Buy));
        assert_eq!((update(SIDE_NOT_STATED).side(), update(SIDE_NOT_STATED).aggressor()), (None, None));
    }
}
