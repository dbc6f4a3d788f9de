//! One recorded event, whatever format it was recorded in.

use tickpath_types::{Price, Qty, Side, SystemEventCode, TradingState};

/// One order-by-order event of a recording.
///
/// Apply the events in order to rebuild the book: `Add`, `Delete`, `Reduce`, `Modify`, `Replace` and
/// `Clear` change it, and so does `Fill`, which takes its quantity off the resting order. A recording
/// that reports the outcome of a fill once more (a `Modify` to the quantity that is left, a `Delete`
/// of what is gone) then says nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Time of the event at the venue, in nanoseconds since what [`RecordingInfo::time_base`] says.
    pub ts_ns: u64,
    /// Index into the reader's symbols.
    pub instrument: u32,
    /// True when the venue's transaction is complete with this event. Within one transaction the
    /// order of events is the order of the report, not of what happened.
    pub ends_transaction: bool,
    /// True for a part of a snapshot of the book: it builds the book and happened before the recording began, or not now.
    pub is_snapshot: bool,
    /// What happened.
    pub kind: EventKind,
}

impl RecordedEvent {
    /// An event that says nothing: a place to read into.
    pub const NOTHING: RecordedEvent = RecordedEvent {
        ts_ns: 0,
        instrument: 0,
        ends_transaction: false,
        is_snapshot: false,
        kind: EventKind::Ignored(IgnoredReason::OtherRecord),
    };
}

/// Side and price of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its side.
    pub side: Side,
    /// Its price, in the recording's units: see [`RecordingInfo::price_decimals`].
    pub price: Price,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An order rests at the tail of its level.
    Add {
        /// The venue's reference of the order.
        order_id: u64,
        /// Where.
        level: Level,
        /// How much.
        qty: Qty,
    },
    /// A resting order goes away.
    Delete {
        /// The order.
        order_id: u64,
        /// Where it was, when the recording says so.
        level: Option<Level>,
        /// How much goes, when the recording says so.
        qty: Option<Qty>,
    },
    /// A resting order becomes smaller and keeps its place.
    Reduce {
        /// The order.
        order_id: u64,
        /// By how much.
        by: Qty,
        /// Where it is, when the recording says so.
        level: Option<Level>,
    },
    /// A resting order now stands so. At another price or with more it goes to the tail of its
    /// level; otherwise it keeps its place.
    Modify {
        /// The order.
        order_id: u64,
        /// Where.
        level: Level,
        /// How much.
        qty: Qty,
    },
    /// A resting order goes away and another of its side rests at the tail of its level.
    Replace {
        /// The order that goes.
        order_id: u64,
        /// The order that comes.
        new_order_id: u64,
        /// Its price.
        price: Price,
        /// Its quantity.
        qty: Qty,
    },
    /// A resting order traded.
    Fill {
        /// The order.
        order_id: u64,
        /// How much.
        qty: Qty,
        /// Its side, when the recording says so.
        side: Option<Side>,
        /// The price of the trade, when the recording says so; otherwise the order's own.
        price: Option<Price>,
        /// True for an execution in an auction, which no incoming order caused.
        in_auction: bool,
    },
    /// A trade as the tape reports it; changes no resting order by itself.
    Trade {
        /// The incoming order, or 0.
        order_id: u64,
        /// At what price.
        price: Price,
        /// How much.
        qty: Qty,
        /// Side of the incoming order; `None` when there is none or the recording does not say.
        aggressor: Option<Side>,
        /// True when it traded with an order that was not displayed.
        is_hidden: bool,
    },
    /// All orders of the instrument go away.
    Clear,
    /// The state of the instrument or of the session.
    Status(Status),
    /// A record that is not an event of the book.
    Ignored(IgnoredReason),
}

impl EventKind {
    /// The place in the book, where the recording says it; none of an auction.
    #[must_use]
    #[inline]
    pub fn level(&self) -> Option<Level> {
        match *self {
            EventKind::Add { level, .. } | EventKind::Modify { level, .. } => Some(level),
            EventKind::Delete { level, .. } | EventKind::Reduce { level, .. } => level,
            EventKind::Fill { side, price, in_auction: false, .. } => {
                side.zip(price).map(|(side, price)| Level { side, price })
            }
            _ => None,
        }
    }
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Whether the instrument trades.
    Trading(TradingState),
    /// The session reached a stage.
    System(SystemEventCode),
}

/// Why a record is not an event of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IgnoredReason {
    /// A record of another kind: definitions, statistics, imbalances.
    OtherRecord,
    /// The price is undefined.
    PriceNotRepresentable,
    /// A field has a value that the format does not allow.
    InvalidField,
    /// The message is not as long as its type says, or its type is not known.
    MalformedMessage,
    /// A bust: it corrects the tape and not the book.
    BrokenTrade,
}

/// What times count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBase {
    /// 1970-01-01 UTC.
    UnixEpoch,
    /// Midnight of the venue's day.
    Midnight,
}

/// How much of the book the recording covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every order.
    Full,
    /// Only events that touch the best levels; an order that stands deeper comes, changes and goes
    /// unreported.
    Partial {
        /// How many levels, when the recording says so.
        levels: Option<u32>,
    },
}

/// What a recording says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingInfo {
    /// What times count from.
    pub time_base: TimeBase,
    /// How much of the book it covers.
    pub depth: Depth,
    /// True when one `Fill` may sum several displayed slices of one order, so that it may be larger
    /// than what the order showed.
    pub sums_fills: bool,
    /// Decimals of the units in which prices are counted: 4 as everywhere, or as many as the format has.
    pub price_decimals: u8,
}

impl RecordingInfo {
    /// Every order is announced, fills change it, and times count from midnight.
    pub const ORDER_BY_ORDER: RecordingInfo = RecordingInfo {
        time_base: TimeBase::Midnight,
        depth: Depth::Full,
        sums_fills: false,
        price_decimals: PRICE_DECIMALS,
    };
}

/// Decimals of prices in units of [`Price`].
pub const PRICE_DECIMALS: u8 = Price::DECIMALS as u8;
